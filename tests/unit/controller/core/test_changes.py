"""A job has changed."""

from __future__ import annotations

from controller_harness import ROOT, START, Harness

from understudy.controller.core.changes import job_changed, jobs_shown_anew
from understudy.controller.ports import NoJournal
from understudy.controller.scheduling.api import Note
from understudy.protocol.messages import UpdateJobs


class Journal(NoJournal):
    def __init__(self) -> None:
        self.jobs: list[int] = []

    def job(self, job_id: int) -> None:
        self.jobs.append(job_id)


def test_a_changed_job_is_shown_and_saved_and_what_was_planned_counts() -> None:
    journal = Journal()
    h = Harness(journal=journal)
    job = h.submit(hold=True)
    journal.jobs.clear()
    version = h.core.tables.version
    job_changed(h.core, job, START + 5)
    assert (h.core.last_job_update, journal.jobs) == (START + 5, [job.job_id])
    assert h.core.tables.version == version


def test_the_policy_is_told_where_others_may_start() -> None:
    h = Harness()
    job = h.submit(hold=True)
    told: list[Note] = []
    h.core.policy.note = lambda what, _now: told.append(what)  # type: ignore[method-assign]
    version = h.core.tables.version
    job_changed(h.core, job, START, Note.MET)
    assert told == [Note.MET]
    assert h.core.tables.version > version, "what was planned counts no more"


def test_what_is_about_waiting_jobs_alone_leaves_what_running_jobs_hold() -> None:
    """A pass over many jobs plans with it, while thousands more are submitted."""
    h = Harness()
    running = h.submit()
    h.run(10)
    assert running.is_running
    tables = h.core.tables
    before = (tables.held_version, tables.version)
    waiting = h.submit(min_nodes=4)
    for note in (Note.MET, Note.PRIORITY):
        h.core.changed(note, START + 20)
    assert waiting.is_pending
    assert tables.version > before[1]
    assert tables.held_version == before[0]
    h.ask(UpdateJobs([str(running.job_id)], {"timelimit": "1"}), ROOT)
    assert tables.held_version > before[0], "it ends sooner"


def test_what_only_shows_is_not_saved() -> None:
    journal = Journal()
    h = Harness(journal=journal)
    h.submit(hold=True)
    journal.jobs.clear()
    jobs_shown_anew(h.core, START + 5)
    assert (h.core.last_job_update, journal.jobs) == (START + 5, [])
