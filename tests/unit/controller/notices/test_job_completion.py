"""jobcomp/filetxt: one line for each run that has ended."""

from __future__ import annotations

from controller_harness import ROOT, USER, Harness

from understudy.controller.accounting.link import NotingJournal
from understudy.controller.notices.job_completion import CompletionLog
from understudy.controller.ports import NoJournal
from understudy.controller.tables.settings import Settings


def logged() -> tuple[Harness, list[str]]:
    journal, lines = NotingJournal(NoJournal()), []
    harness = Harness(journal=journal)
    journal.listeners.append(CompletionLog(harness.core, lines.append).note)
    return harness, lines


def test_a_job_that_ends_is_written_down_once() -> None:
    harness, lines = logged()
    job = harness.submit(name="bad", min_nodes=2, time_limit_s=300)
    harness.complete(job, 3)
    assert len(lines) == 1
    assert lines[0].startswith("JobId=1 UserId=ann(1000) GroupId=")
    assert " Name=bad JobState=FAILED Partition=main TimeLimit=5 " in lines[0]
    assert " NodeList=n[1-2] NodeCnt=2 ProcCnt=2 WorkDir=/home/ann ReservationName= " in lines[0]
    assert lines[0].endswith(" DerivedExitCode=0:0 ExitCode=3:0 \n")


def test_a_held_job_that_is_cancelled_has_no_nodes_and_was_never_eligible() -> None:
    harness, lines = logged()
    harness.cancel(harness.submit(hold=True), USER)
    assert "JobState=CANCELLED" in lines[0]
    assert " NodeList=(null) NodeCnt=0 ProcCnt=0 " in lines[0]
    assert " EligibleTime=unknown " in lines[0]


def test_a_run_that_is_requeued_is_written_down_as_pending() -> None:
    harness, lines = logged()
    job = harness.submit()
    harness.acknowledge()
    harness.control("requeue", job, ROOT)
    assert "JobState=PENDING" in lines[0]


def test_a_run_that_was_over_is_written_down_once_more_when_it_is_requeued() -> None:
    harness, lines = logged()
    job = harness.submit()
    harness.complete(job, 3)
    harness.control("requeue", job, ROOT)
    assert ["JobState=FAILED" in line for line in lines] == [True, False]
    assert "JobState=PENDING" in lines[1]
    assert "NodeCnt=0" in lines[1]


def test_a_run_whose_exit_code_has_it_run_again_has_failed() -> None:
    harness, lines = logged()
    harness.core.settings = Settings(requeue_exit_codes=frozenset({3}))
    harness.complete(harness.submit(), 3)
    assert ["JobState=FAILED" in line for line in lines] == [True]


def test_what_the_controller_came_back_with_is_not_written_again() -> None:
    harness = Harness()
    harness.cancel(harness.submit(hold=True))
    lines: list[str] = []
    log = CompletionLog(harness.core, lines.append)
    log.known()
    log.note(1)
    assert not lines
