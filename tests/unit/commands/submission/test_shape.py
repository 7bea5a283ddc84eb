"""What sbatch makes of numbers of nodes and tasks that do not go together, and of cores that jobs
may not ask for.

Covers: commands/submission/job.
"""

from __future__ import annotations

import msgspec
import pytest
from fake_controller import FakeClient, Outcome, record, run_command

from understudy.commands.sbatch import sbatch
from understudy.protocol.messages import JobSpec

IGNORED = "since it's not allowed by configuration (AllowSpecResourcesUsage = No)"


def submit(*arguments: str, allowed: str = "No") -> tuple[Outcome, JobSpec | None]:
    client = FakeClient(config=[record("config", name="AllowSpecResourcesUsage", value=allowed)])
    client.answers["SubmitJob"] = [7301, ""]
    outcome = run_command(sbatch, *arguments, "--wrap", "true", client=client)
    return outcome, msgspec.convert(client.asked[-1][1]["spec"], JobSpec) if client.asked else None


@pytest.mark.parametrize(("nodes", "most"), [(["-N1"], 1), (["-N1-2"], 2), (["-N2", "-n9"], 2)])
def test_more_nodes_are_named_than_the_job_may_have(nodes: list[str], most: int) -> None:
    outcome, spec = submit("-w", "n[1-3]", *nodes)
    assert (outcome.code, outcome.err, spec) == (
        1,
        f"sbatch: error: invalid number of nodes (-N 3-{most})\n",
        None,
    )


def test_more_nodes_are_named_than_there_are_tasks() -> None:
    outcome, spec = submit("-w", "n1,n3", "-n1")
    assert outcome.err == "sbatch: Warning: can't run 1 processes on 2 nodes, setting nnodes to 1\n"
    assert spec is not None
    assert (spec.min_nodes, spec.max_nodes, spec.required_nodes) == (1, 1, "n1,n3")


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        ("-n3", "3"),
        ("-N2", None),
        ("-N2 --ntasks-per-node=3", "6"),
        ("-N2-3 --ntasks-per-node=3", None),
        ("--ntasks-per-node=3", "3"),
        ("-w n[1-3] -N1-3 --ntasks-per-node=2", "6"),
        ("-w n[1-2] -N1-4 --ntasks-per-node=2", None),
        ("-B 2:2", "4"),
        ("-N2-3 -B 2:2", None),
        ("-w n[1-3] -B 2:2", "12"),
        ("-N2 --cores-per-socket=2", "4"),
        ("--cores-per-socket=2", None),
        ("-N2 --hint=nomultithread", "2"),
        ("-N2 -n3 -B 2:2", "3"),
    ],
)
def test_jobs_are_told_of_their_tasks_where_these_are_certain(
    options: str, tasks: str | None
) -> None:
    _, spec = submit(*options.split())
    assert spec is not None
    told = dict(entry.partition("=")[::2] for entry in spec.environment)
    assert told.get("SLURM_NTASKS") == told.get("SLURM_NPROCS") == tasks


def test_gpus_are_compared_with_the_nodes_that_the_tasks_leave() -> None:
    outcome, spec = submit("-N3", "-n2", "--gpus=2")
    assert (outcome.code, outcome.err) == (
        0,
        "sbatch: Warning: can't run 2 processes on 3 nodes, setting nnodes to 2\n",
    )
    assert spec is not None
    assert spec.min_nodes == 2


def test_a_node_that_is_named_twice_is_one() -> None:
    assert submit("-w", "n1,n1", "-n1", "-N1")[0].err == ""


def test_named_nodes_are_no_number_of_nodes() -> None:
    _, spec = submit("-w", "n[1-3]")
    assert spec is not None
    assert spec.min_nodes is None


@pytest.mark.parametrize(
    ("option", "name"),
    [("-S2", "-S"), ("--core-spec=0", "-S"), ("--thread-spec=2", "--thread-spec")],
)
def test_specialised_cores_are_asked_for_in_vain_where_jobs_may_not(option: str, name: str) -> None:
    outcome, spec = submit(option)
    assert (outcome.code, outcome.err) == (0, f"sbatch: error: Ignoring {name} {IGNORED}\n")
    assert spec is not None
    assert not spec.extra.keys() & {"core_spec", "thread_spec"}


def test_specialised_cores_are_asked_for_where_jobs_may() -> None:
    outcome, spec = submit("-S2", allowed="Yes")
    assert outcome.err == ""
    assert spec is not None
    assert spec.extra["core_spec"] == "2"


def test_cores_and_threads_are_not_asked_for_together() -> None:
    outcome, spec = submit("-S2", "--thread-spec=2")
    assert (outcome.code, spec) == (1, None)
    assert (
        outcome.err == "sbatch: fatal: -S/--core-spec and --thred-spec options are mutually "
        "exclusive\n"
    )


@pytest.mark.parametrize(
    ("options", "sockets", "cores", "threads"),
    [
        ("--hint=compute_bound", None, None, 1),
        ("--hint=memory_bound", None, 1, 1),
        ("--hint=multithread", None, None, None),
        ("--hint=memory_bound,nomultithread", None, 1, 1),
        # it says of sockets and cores what there is to say
        ("--sockets-per-node=2 --hint=nomultithread --cores-per-socket=2", None, None, 1),
        ("--hint=multithread --sockets-per-node=2", None, None, None),
        # and nothing where threads of a core, or tasks of one, are told, wherever
        ("--hint=memory_bound --threads-per-core=2", None, None, 2),
        ("--threads-per-core=1 --hint=memory_bound", None, None, 1),
        ("--cores-per-socket=2 --ntasks-per-core=1 --hint=memory_bound", None, 2, None),
        ("-B2 --hint=compute_bound", 2, None, None),
    ],
)
def test_a_hint_says_what_a_node_is_like_as_22_05_8_takes_it(
    options: str, sockets: int | None, cores: int | None, threads: int | None
) -> None:
    _, spec = submit("-n2", *options.split())
    assert spec is not None
    found = (spec.sockets_per_node, spec.cores_per_socket, spec.threads_per_core)
    assert found == (sockets, cores, threads)


@pytest.mark.parametrize(("hint", "word"), [("memory_bound,Fast", "Fast"), ("x,help", "x")])
def test_the_first_hint_that_is_none_is_refused(hint: str, word: str) -> None:
    outcome, spec = submit(f"--hint={hint}")
    assert (outcome.code, spec) == (1, None)
    assert f'unrecognized --hint argument "{word}", see --hint=help' in outcome.err
