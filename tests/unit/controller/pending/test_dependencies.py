"""Job dependencies.

Covers: controller/tables/dependency.
"""

from __future__ import annotations

import pytest
from controller_harness import OTHER, Harness

from understudy.controller.saved.records import decode_job, encode_job
from understudy.controller.tables.dependency import Outlook, Term, parse
from understudy.controller.tables.settings import Settings
from understudy.model.errors import SlurmError
from understudy.model.states import JobState
from understudy.protocol.messages import CancelJobs


def shown(h: Harness, job_id: int) -> str:
    (row,) = h.query("jobs", "dependency", job_id=[job_id])
    return str(row[0])


@pytest.mark.parametrize(
    "text",
    [
        "afterok",
        "afterok:",
        "afterok:x",
        "never:1",
        "afterok:1+x",
        "singleton:1",
        "afterok:1,,",
        "afterok:7",
    ],
)
def test_malformed_dependencies_are_refused(text: str) -> None:
    with pytest.raises(SlurmError):
        parse(text, own_job_id=7)


def test_dependencies_are_shown_as_squeue_shows_them() -> None:
    assert (
        str(parse("afterok:1:2,after:3+10")) == "afterok:1(unfulfilled),afterok:2(unfulfilled),"
        "after:3+10(unfulfilled)"
    )
    assert str(parse("afterok:1?singleton")) == "afterok:1(unfulfilled)?singleton(unfulfilled)"
    assert str(parse("afterok:1+5")) == "afterok:1+5(unfulfilled)"
    assert str(parse("afterok:1:1,afterok:1")) == "afterok:1(unfulfilled)", "said twice, kept once"
    assert (
        str(parse("afterok:4:5", arrays={4})) == "afterok:4_*(unfulfilled),afterok:5(unfulfilled)"
    )
    assert parse("afterany: 1(unfulfilled)") == parse("afterany:1"), "as it is shown"
    assert parse("17") == parse("afterany:17")
    assert parse("") is None


def test_any_term_suffices_with_question_marks_and_all_are_needed_with_commas() -> None:
    met, never, waiting = (
        Term("afterok", 1, 0, outlook) for outlook in (Outlook.MET, Outlook.NEVER, Outlook.WAITING)
    )
    of = parse("afterok:1").__class__
    assert of((met, never), any_suffices=True).outlook is Outlook.MET
    assert of((waiting, never), any_suffices=True).outlook is Outlook.WAITING
    assert of((waiting, never)).outlook is Outlook.NEVER
    assert of((met, waiting)).outlook is Outlook.WAITING


@pytest.mark.parametrize(
    ("kind", "code", "runs"),
    [
        ("afterok", 0, True),
        ("afterok", 1, False),
        ("afternotok", 0, False),
        ("afternotok", 1, True),
        ("afterany", 1, True),
    ],
)
def test_the_end_of_a_job_decides(kind: str, code: int, runs: bool) -> None:
    h = Harness()
    first = h.submit()
    second = h.submit(dependency=f"{kind}:{first.job_id}")
    assert (second.reason, second.eligible_time) == ("Dependency", None)
    h.acknowledge()
    h.finish(first, code)
    assert second.is_pending, "the first is still completing"
    h.acknowledge()
    h.epilog(first)
    assert second.is_running is runs
    if not runs:
        assert second.reason == "DependencyNeverSatisfied"
        assert shown(h, second.job_id) == f"{kind}:{first.job_id}(failed)"


@pytest.mark.parametrize("first_runs", [False, True])
@pytest.mark.parametrize(
    ("kind", "runs"), [("afterok", False), ("afternotok", True), ("afterany", True)]
)
def test_waiting_tasks_that_were_cancelled_have_failed_for_who_waits_for_their_array(
    kind: str, runs: bool, first_runs: bool
) -> None:
    """Seen of 22.05.8, whether others of the array ran before or after."""
    h = Harness()
    first = h.submit(array="1-3%1", hold=not first_runs)
    after = h.submit(dependency=f"{kind}:{first.job_id}")
    assert h.ask(CancelJobs([f"{first.job_id}_[2-3]"])).results[0][1] == 0
    if not first_runs:
        h.control("release", first)
    (task,) = h.core.tables.running.values()
    h.complete(task)
    assert after.is_running is runs
    again = decode_job(encode_job(first))
    assert again.array is not None
    assert again.array.has_lost_tasks


def test_after_waits_for_the_start_and_its_delay() -> None:
    h = Harness()
    first = h.submit(hold=True)
    at_start = h.submit(dependency=f"after:{first.job_id}")
    later = h.submit(dependency=f"after:{first.job_id}+10")
    h.control("release", first)
    assert at_start.is_running
    assert later.is_pending
    h.acknowledge()
    h.run(599)
    assert later.is_pending
    h.run(2)
    assert later.is_running


def test_a_singleton_waits_for_earlier_jobs_of_the_same_name_and_user() -> None:
    h = Harness()
    first, other = h.submit(name="s"), h.submit(OTHER, name="s")
    second, third = (
        h.submit(name="s", dependency="singleton"),
        h.submit(name="s", dependency="singleton"),
    )
    assert second.is_pending
    h.complete(first)
    assert (second.is_running, third.is_pending) == (True, True)
    h.cancel(second)
    h.acknowledge()
    h.epilog(second)
    assert third.is_running
    assert other.is_running


@pytest.mark.parametrize("kind", ["after", "afterany", "afterok", "afternotok", "aftercorr"])
def test_nobody_waits_for_jobs_that_there_are_not(kind: str) -> None:
    h = Harness()
    assert h.submit(dependency=f"{kind}:999").is_running
    first = h.submit()
    assert (
        shown(h, h.submit(dependency=f"{kind}:999,afterok:{first.job_id}").job_id)
        == f"afterok:{first.job_id}(unfulfilled)"
    )


def test_the_dependency_of_a_held_job_is_looked_at_when_it_is_released() -> None:
    h = Harness()
    first = h.submit()
    job = h.submit(dependency=f"afterok:{first.job_id}", hold=True)
    h.complete(first, code=1)
    assert shown(h, job.job_id) == f"afterok:{first.job_id}(unfulfilled)"
    h.control("release", job)
    assert shown(h, job.job_id) == f"afterok:{first.job_id}(failed)"


def test_a_site_may_have_jobs_cancelled_whose_dependency_cannot_be_met() -> None:
    h = Harness(settings=Settings(kill_invalid_dependency=True, min_job_age_s=0))
    first = h.submit()
    second = h.submit(dependency=f"afterok:{first.job_id}")
    third = h.submit(dependency=f"afterany:{second.job_id}")
    h.complete(first, code=1)
    assert (second.state, second.reason) == (JobState.CANCELLED, "DependencyNeverSatisfied")
    assert third.is_running


def test_a_dependency_is_changed_and_taken_away() -> None:
    h = Harness()
    first = h.submit()
    job = h.submit(dependency=f"afterok:{first.job_id}")
    assert h.update(job, dependency=f"afterok:{job.job_id}") == 2038
    assert h.update(job, dependency=f"afternotok:{first.job_id}") == 0
    assert job.reason == "Dependency"
    assert h.update(job, dependency="") == 0
    assert job.is_running
    assert not h.core.dependents


def test_a_held_job_is_released_into_its_dependency() -> None:
    h = Harness()
    first = h.submit()
    job = h.submit(dependency=f"afterok:{first.job_id}", hold=True)
    h.complete(first)
    assert (job.reason, shown(h, job.job_id)) == (
        "JobHeldUser",
        f"afterok:{first.job_id}(unfulfilled)",
    )
    h.control("release", job)
    assert job.is_running


def test_a_job_that_was_cancelled_and_requeued_waits_for_its_dependency_again() -> None:
    h = Harness(settings=Settings(credential_lifetime_s=0, min_job_age_s=0))
    first = h.submit(exclusive=True, min_nodes=4)
    second = h.submit(dependency=f"afterany:{first.job_id}")
    h.cancel(second)
    assert h.control("requeue", second) == 0
    h.run(10)
    assert (second.is_pending, second.reason) == (True, "Dependency")
    h.acknowledge()
    h.complete(first)
    assert second.is_running


def test_a_circle_of_dependencies_is_refused() -> None:
    h = Harness()
    h.submit(exclusive=True, min_nodes=4)
    first = h.submit(exclusive=True, min_nodes=4)
    second = h.submit(dependency=f"afterok:{first.job_id}")
    third = h.submit(dependency=f"afterany:{second.job_id}")
    assert h.update(first, dependency=f"afterany:{third.job_id}") == 2071
    assert first.dependency is None
    assert h.update(third, dependency=f"afterok:{first.job_id}") == 0
    assert h.update(first, dependency=f"afterany:{third.job_id}") == 2071


def test_circles_are_looked_for_among_so_many_jobs() -> None:
    h = Harness(settings=Settings(max_depend_depth=2))
    h.submit(exclusive=True, min_nodes=4)
    chain = [h.submit(exclusive=True, min_nodes=4)]
    chain += [h.submit(dependency=f"afterok:{chain[0].job_id}")]
    for _ in range(2):
        chain.append(h.submit(dependency=f"afterok:{chain[-1].job_id}"))
    assert h.update(chain[0], dependency=f"afterok:{chain[2].job_id}") == 2071
    assert h.update(chain[0], dependency=f"afterok:{chain[3].job_id}") == 0
