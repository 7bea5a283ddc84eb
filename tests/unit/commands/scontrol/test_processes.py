"""scontrol listpids, pidinfo, getent."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from fake_controller import NOW, FakeClient, run_command

from understudy.commands.scontrol.processes import processes, read_process
from understudy.commands.scontrol.scontrol import scontrol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLUSTER = f"of-process-{os.getpid()}"
ENVIRONMENT = {"SLURM_JOB_ID": "7301", "SLURMD_NODENAME": "n1", "SLURM_CLUSTER_NAME": CLUSTER}


@pytest.fixture
def pid() -> Iterator[int]:
    """A process of job 7301 on node n1."""
    script = "print(flush=True); input()"  # it has its environment when it has said something
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=pipe, stdout=pipe, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        yield process.pid
        process.kill()


def client() -> FakeClient:
    fake = FakeClient(
        nodes=[{"name": "n1"}],
        jobs=[{"job_id": 7301, "end_time": int(NOW) + 90}],
        steps=[{"job_id": 7301, "step": "batch", "user_id": 0, "nodes": "n[1-2]", "state": 1}],
    )
    fake.cluster_name = CLUSTER
    return fake


def ask(*words: str, **environ: str) -> tuple[int, list[str], str]:
    result = run_command(scontrol, *words, client=client(), environ=environ)
    return result.code, result.lines, result.err


def test_the_processes_of_a_job_are_found_by_what_their_environment_says(pid: int) -> None:
    code, lines, err = ask("listpids", "7301", "n1")
    assert (code, err) == (0, "")
    assert lines == [
        "PID      JOBID    STEPID   LOCALID GLOBALID",
        f"{pid:<8} 7301     batch    -       -",
    ]
    assert ask("listpids", SLURMD_NODENAME="n1")[1] == lines
    assert ask("listpids", "*", "n1")[1] == lines


def test_a_task_is_shown_with_its_ranks(tmp_path: Path) -> None:
    for number, words in {
        5: ["SLURM_JOB_ID=1", "SLURMD_NODENAME=n1", "SLURM_STEP_ID=0", "SLURM_TASK_PID=5"],
        6: ["HOME=/"],
    }.items():
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "environ").write_bytes("\0".join(words).encode())
    (found,) = processes(str(tmp_path))
    assert (found.pid, found.job, found.step, found.is_task) == (5, "1", "0", True)
    assert read_process(6, str(tmp_path)) is None
    assert read_process(7, str(tmp_path)) is None


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nosuch"], 1, '"nosuch" does not look like a jobid'),
        (["7301.batch", "n1"], 0, '"7301.batch" does not look like a stepid'),
        (["99999", "n1"], 1, "JobId=99999 does not exist on node n1."),
        (["99999.0", "n1"], 1, "StepId=99999.0 does not exist on node n1."),
        (["*", "n9"], 1, "No job steps exist on this node."),
    ],
)
def test_what_is_not_there(words: list[str], code: int, said: str) -> None:
    assert ask("listpids", *words)[::2] == (code, said + "\n")


def test_a_job_without_steps_on_a_node_that_has_others(pid: int) -> None:
    assert pid
    assert ask("listpids", "99999", "n1")[::2] == (
        1,
        "There are no steps for job 99999 on node n1.\n",
    )


def test_the_job_of_a_process_and_its_end(pid: int) -> None:
    code, lines, _ = ask("pidinfo", str(pid))
    assert code == 0
    assert lines[0].startswith("Slurm JobId=7301 ends at ")
    assert re.search(r" [A-Z][a-z][a-z] [A-Z][a-z][a-z] \d\d \d\d:\d\d:\d\d 20\d\d$", lines[0])
    assert lines[1] == "Job remaining time is 90 seconds"
    assert ask("pidinfo", "1")[::2] == (1, "Failed to locate job for requested pid\n")
    assert ask("pidinfo")[::2] == (1, "missing argument for keyword:pidinfo\n")


def test_the_users_of_a_nodes_steps() -> None:
    code, lines, _ = ask("getent", "n2")
    assert (code, lines[:2], lines[3:]) == (0, ["JobId=7301.batch:", "User:"], ["Groups:", ""])
    assert lines[2].startswith("root:x:0:0:")
    assert ask("getent", "n3")[:2] == (0, [])
