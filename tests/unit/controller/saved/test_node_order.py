"""Saved jobs when nodes have come, gone or changed places in slurm.conf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from controller_harness import FakeTime, Harness, make_tables

from understudy.controller.edge.validate import validate
from understudy.controller.saved.lease import Lease, LeaseLostError
from understudy.controller.saved.recover import recover
from understudy.controller.saved.store import Dirty, Store
from understudy.controller.views.job_columns import JOB_COLUMNS
from understudy.model.states import JobState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from understudy.controller.tables.job import Job


@pytest.fixture
def restart(tmp_path: Path) -> Callable[[Sequence[str]], Harness]:
    """A controller with these nodes, which finds what the one before it has saved."""
    time, before = FakeTime(), []

    def start(names: Sequence[str], cpus: int = 4) -> Harness:
        for dirty, store, h in before:
            store.write(dirty.take(h.core))
            store.close()
        dirty, store = Dirty(), Store(tmp_path)
        daemons = {"noded0": ",".join(names)}
        tables = make_tables(cpus=cpus, names=names)
        h = Harness(tables, journal=dirty, time=time, register=False, daemons=daemons)
        recover(h.core, store.read(h.core))
        validate(h.core)
        before[:] = [(dirty, store, h)]
        return h

    return start


def _shown(h: Harness, job: Job, column: str) -> str:
    return JOB_COLUMNS[column](h.core, job, h.core.time.now())


def test_a_job_runs_on_where_nodes_before_its_own_are_gone(
    restart: Callable[[Sequence[str]], Harness],
) -> None:
    h = restart(["n1", "n2", "n3", "n4"])
    h.register("noded0")
    job = h.submit(required_nodes="n[3-4]", min_nodes=2)
    assert job.is_running
    for names in (["n3", "n4"], ["n0", "n1", "n3", "n9", "n4"]):
        h = restart(names)
        again = h.core.tables.jobs[job.job_id]
        assert again.is_running
        assert again.node_list == "n[3-4]"
        assert again.allocation is not None
        assert h.core.names.to_expression(again.allocation.nodes) == "n[3-4]"


@pytest.mark.parametrize("names", [["n1", "n2", "n3"], ["n4", "n3"]])
def test_a_job_that_lost_a_node_or_has_another_batch_host_is_lost(
    restart: Callable[[Sequence[str]], Harness], names: list[str]
) -> None:
    h = restart(["n1", "n2", "n3", "n4"])
    h.register("noded0")
    job = h.submit(required_nodes="n[3-4]", min_nodes=2, requeue=False)
    h = restart(names)
    assert h.core.tables.jobs[job.job_id].state is JobState.NODE_FAIL


def test_a_lost_job_is_requeued_unless_it_had_asked_for_the_node_that_is_gone(
    restart: Callable[[Sequence[str]], Harness],
) -> None:
    h = restart(["n1", "n2", "n3", "n4"])
    h.register("noded0")
    asked = h.submit(required_nodes="n[2-3]", min_nodes=2)
    not_asked = h.submit(excluded_nodes="n[1-3]")
    assert asked.is_running
    assert not_asked.is_running
    h = restart(["n1", "n2"])
    jobs = h.core.tables.jobs
    assert jobs[asked.job_id].state is JobState.NODE_FAIL
    assert jobs[not_asked.job_id].state is JobState.PENDING
    assert jobs[not_asked.job_id].restarts == 1


@pytest.mark.parametrize("requeue", [False, True])
def test_a_job_whose_nodes_have_become_too_small_for_it_is_lost_and_the_others_go_on(
    restart: Callable[..., Harness], caplog: pytest.LogCaptureFixture, *, requeue: bool
) -> None:
    h = restart(["n1", "n2"])
    h.register("noded0")
    large = h.submit(required_nodes="n1", num_tasks=4, requeue=requeue)
    small = h.submit(required_nodes="n2", num_tasks=1)
    assert large.is_running
    assert small.is_running
    h = restart(["n1", "n2"], 2)
    again = h.core.tables.jobs[large.job_id]
    assert again.state is (JobState.PENDING if requeue else JobState.NODE_FAIL)
    assert f"job {large.job_id} ran on n1, which has become smaller" in caplog.text
    assert h.core.tables.jobs[small.job_id].is_running
    h = restart(["n1", "n2"], 8)
    assert h.core.tables.jobs[small.job_id].is_running


def test_nodes_that_a_pending_job_wants_or_not_stay_those_of_their_names(
    restart: Callable[[Sequence[str]], Harness],
) -> None:
    h = restart(["n1", "n2", "n3", "n4"])
    wants = h.submit(required_nodes="n3", excluded_nodes="n[1,4]", hold=True)
    for names, excluded in (
        (["n4", "n3"], "n4"),
        (["n3"], "n[1,4]"),
        (["n1", "n3", "n4"], "n[1,4]"),
    ):
        h = restart(names)
        h.register("noded0")
        again = h.core.tables.jobs[wants.job_id]
        assert h.core.names.to_expression(again.required_nodes) == "n3"
        assert _shown(h, again, "required_nodes") == "n3"
        assert _shown(h, again, "excluded_nodes") == excluded
    assert h.core.names.to_expression(again.excluded_nodes) == "n[1,4]"


@pytest.mark.parametrize(
    "said",
    [
        {"min_nodes": 4},
        {"hold": True},
        {"array": "1-3"},
        {"begin_time": 1e10},
        {"dependency": "afterany:1"},
        {"required_nodes": "n[1-2]"},
        {"requeue": False},
    ],
    ids=lambda said: next(iter(said)),
)
def test_a_job_that_waits_for_a_node_by_name_is_lost_with_it(
    restart: Callable[[Sequence[str]], Harness], said: dict[str, Any]
) -> None:
    """As 22.05.8: NODE_FAIL, not requeued, whatever it waited for besides; and what depends on it
    goes on.
    """
    h = restart(["n1", "n2", "n3"])
    first = h.submit(hold=True)
    waits = h.submit(**{"required_nodes": "n2", **said})
    after = h.submit(dependency=f"afternotok:{waits.job_id}")
    never = h.submit(dependency=f"afterok:{waits.job_id}")
    h = restart(["n1", "n3"])
    jobs = h.core.tables.jobs
    lost = jobs[waits.job_id]
    assert (lost.state, lost.reason, lost.requeue) == (JobState.NODE_FAIL, "NodeDown", False)
    assert lost.start_time == lost.end_time == int(h.core.time.now())
    assert _shown(h, lost, "required_nodes") == said.get("required_nodes", "n2")
    h.register("noded0")
    assert jobs[after.job_id].is_running
    assert jobs[never.job_id].reason == "DependencyNeverSatisfied"
    assert jobs[first.job_id].is_pending
    h = restart(["n1", "n2", "n3"])
    assert h.core.tables.jobs[waits.job_id].state is JobState.NODE_FAIL


def test_a_job_that_is_over_forgets_steps_on_nodes_that_are_gone(
    restart: Callable[[Sequence[str]], Harness],
) -> None:
    h = restart(["n1", "n2"])
    h.register("noded0")
    job = h.submit(required_nodes="n2")
    h.acknowledge()
    h.finish(job)
    h = restart(["n1"])
    assert h.core.tables.jobs[job.job_id].allocation is None
    assert h.core.tables.jobs[job.job_id].state is JobState.COMPLETED


def test_a_controller_that_leads_no_more_puts_nothing_to_new_places(
    restart: Callable[[Sequence[str]], Harness], tmp_path: Path
) -> None:
    h = restart(["n1", "n2"])
    h.register("noded0")
    job = h.submit(required_nodes="n2")
    restart(["n1", "n2"])
    lease = Lease(tmp_path / "state.sqlite", "backup1", None)
    assert lease.take(lease.read())
    store = Store(tmp_path)
    store.fence = lease.fence - 1
    with pytest.raises(LeaseLostError):
        store.read(Harness(make_tables(names=["n2", "n1"]), register=False).core)
    store.close()
    lease.close()
    assert restart(["n1", "n2"]).core.tables.jobs[job.job_id].node_list == "n2"
