"""The site's programs around jobs, and mail: when they run, what they are told, what their failure
does. As Slurm 22.05.8 was seen to do.

Covers: controller/facts/environment, controller/notices/mail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controller_harness import ROOT, USER, FakeSender, Harness

from understudy.controller.accounting.link import NotingJournal
from understudy.controller.later import Later
from understudy.controller.notices.mail import Mailer
from understudy.controller.ports import NoJournal
from understudy.controller.tables.job import HELD_BY_ADMIN
from understudy.controller.tables.settings import Settings
from understudy.model.states import JobFlag, JobState, NodeFlag
from understudy.protocol.messages import (
    AllocateJob,
    AwaitJob,
    BatchComplete,
    ControlJobs,
    EpilogComplete,
    JobSpec,
    LaunchBatch,
    TerminateJob,
)

if TYPE_CHECKING:
    from collections.abc import Callable

DAEMON = FakeSender("noded0", 0, 0, is_daemon=True)


class Site(Harness):
    """A cluster with programs, which end when the test says so."""

    def __init__(self, **settings: object) -> None:
        journal = NotingJournal(NoJournal())
        super().__init__(
            settings=Settings(min_job_age_s=0, emulates_jobs=False, **settings), journal=journal
        )  # type: ignore[arg-type]
        self.programs: list[tuple[list[str], dict[str, str], Callable[[int], None]]] = []
        self.core.run_script = lambda words, environment, done: self.programs.append(
            (words, environment, done)
        )
        self.core.mailer = Mailer(self.core)
        journal.listeners.append(self.core.mailer.note)

    def ends(self, code: int) -> None:
        """The oldest program ends."""
        self.programs.pop(0)[2](code)
        self.run(0)

    def subjects(self) -> list[str]:
        return [words[2] for words, _, _ in self.programs if words[0] == "mail"]


def test_a_script_waits_for_the_prolog_of_the_controller() -> None:
    site = Site(prolog_slurmctld="/p")
    job = site.submit(comment="c")
    words, told, _ = site.programs[0]
    assert words == ["/p"]
    assert told["SLURM_SCRIPT_CONTEXT"] == "prolog_slurmctld"
    assert (told["SLURM_JOB_COMMENT"], told["SLURM_JOB_ACCOUNT"], told["SLURM_JOB_NODELIST"]) == (
        "c",
        "(null)",
        "n1",
    )
    assert job.is_running
    assert job.flags & JobFlag.CONFIGURING
    assert not site.sent(LaunchBatch)
    site.run(5)
    site.ends(0)
    assert not job.flags
    assert job.start_time == int(site.time.now())
    assert len(site.sent(LaunchBatch, job)) == 1


def test_who_waits_for_components_hears_of_their_nodes_while_the_prolog_still_runs() -> None:
    site = Site(prolog_slurmctld="/p")
    before = site.submit(min_nodes=4, num_tasks=16)
    site.ends(0)
    answer = site.ask(AllocateJob(JobSpec(), components=[JobSpec()]), USER)
    later = site.ask(AwaitJob(answer.job_id), USER)
    assert isinstance(later, Later)
    heard: list[Any] = []
    later.listen(heard.append)
    site.complete(before)
    assert [words for words, _, _ in site.programs] == [["/p"]], "it has begun, and not ended"
    assert [(each.is_running, each.is_ready) for each in heard] == [(True, False)]


def test_a_failing_prolog_of_the_controller_requeues_or_cancels() -> None:
    site = Site(prolog_slurmctld="/p")
    job, other = site.submit(), site.submit(requeue=False)
    site.ends(1)
    site.ends(1)
    assert job.is_pending
    assert other.state is JobState.CANCELLED
    assert not site.sent(LaunchBatch)


def test_a_prolog_that_ends_after_its_job_was_cancelled_changes_nothing() -> None:
    site = Site(prolog_slurmctld="/p")
    job = site.submit()
    site.cancel(job, ROOT)
    site.ends(0)
    assert job.state is JobState.CANCELLED
    assert not site.sent(LaunchBatch)


def test_the_epilog_of_the_controller_hears_how_a_job_ended() -> None:
    site = Site(epilog_slurmctld="/e")
    job = site.submit()
    site.acknowledge()
    site.finish(job, 3)
    _, told, _ = site.programs[0]
    assert (
        told["SLURM_JOB_EXIT_CODE"],
        told["SLURM_JOB_EXIT_CODE2"],
        told["SLURM_SCRIPT_CONTEXT"],
    ) == ("768", "3:0", "epilog_slurmctld")


def test_nodes_are_told_what_their_programs_need_where_there_are_any() -> None:
    site = Site(has_prolog=True, has_epilog=True)
    job = site.submit()
    launch = site.sent(LaunchBatch, job)[0].message
    assert isinstance(launch, LaunchBatch)
    assert {"SLURM_NODELIST=n1", "SLURM_UID=1000", "SLURM_JOB_WORK_DIR=/home/ann"} <= set(
        launch.program_environment
    )
    site.acknowledge()
    site.finish(job)
    terminate = site.sent(TerminateJob, job)[0].message
    assert isinstance(terminate, TerminateJob)
    assert "SLURM_JOB_EXIT_CODE2=0:0" in terminate.program_environment
    plain = Site()
    plain.submit()
    launch = plain.sent(LaunchBatch)[0].message
    assert isinstance(launch, LaunchBatch)
    assert not launch.program_environment


def test_a_failing_prolog_drains_its_node_and_holds_its_job() -> None:
    site = Site()
    job = site.submit()
    site.acknowledge()
    site.ask(BatchComplete(job.job_id, 0, 0, 0, node="n1", fault="prolog"), DAEMON)
    node = site.core.tables.nodes.nodes[0]
    assert node.flags & NodeFlag.DRAIN
    assert node.reason == "Prolog error"
    assert job.is_pending
    assert (job.priority, job.held_by, job.reason_detail) == (
        0,
        HELD_BY_ADMIN,
        "launch failed requeued held",
    )


def test_a_failing_epilog_drains_its_node_which_is_given_back_all_the_same() -> None:
    site = Site()
    job = site.submit(min_nodes=2)
    site.acknowledge()
    site.finish(job)
    site.ask(EpilogComplete(job.job_id, 0, "n[1-2]", "n2"), DAEMON)
    nodes = site.core.tables.nodes.nodes
    assert (
        nodes[1].reason,
        bool(nodes[1].flags & NodeFlag.DRAIN),
        bool(nodes[0].flags & NodeFlag.DRAIN),
    ) == ("Epilog error", True, False)
    assert not job.completing_nodes


def test_too_much_memory_ends_a_job_in_a_state_of_its_own() -> None:
    site = Site(gathers_usage=True)
    job = site.submit()
    site.acknowledge()
    site.ask(BatchComplete(job.job_id, 0, 4, 0, fault="memory", usage={"max_rss": 7}), DAEMON)
    assert (job.state, job.exit_code, job.exit_signal, job.reason) == (
        JobState.OUT_OF_MEMORY,
        0,
        125,
        "OutOfMemory",
    )
    assert job.batch_usage == {"max_rss": 7}


# --- mail -----------------------------------------------------------------------------------------

ALL = "INVALID_DEPEND,BEGIN,END,FAIL,REQUEUE,STAGE_OUT"


def mailed(**settings: object) -> Site:
    return Site(mail_program="mail", **settings)


def test_mail_tells_of_a_jobs_beginning_and_end() -> None:
    site = mailed()
    job = site.submit(name="a", mail_type=ALL)
    site.acknowledge()
    site.run(70)
    site.complete(job)
    assert site.subjects() == [
        "Slurm Job_id=1 Name=a Began, Queued time 00:00:00",
        "Slurm Job_id=1 Name=a Ended, Run time 00:01:10, COMPLETED, ExitCode 0",
    ]
    assert [words[3] for words, _, _ in site.programs] == ["ann", "ann"]
    assert site.programs[0][1]["SLURM_JOB_MAIL_TYPE"] == "Began"
    assert [told.get("SLURM_JOB_RUN_TIME") for _, told, _ in site.programs] == [None, "00:01:10"]


def test_only_what_was_asked_for_is_mailed_to_whom_it_was_to_go() -> None:
    site = mailed(mail_domain="x.org")
    quiet, failing = (
        site.submit(mail_type="END"),
        site.submit(name="b", mail_type="FAIL", mail_user="bob@y.org"),
    )
    killed = site.submit(name="k", mail_type="FAIL")
    site.submit()
    site.acknowledge()
    site.complete(quiet, 1)
    site.complete(failing, 3)
    site.finish(killed, 0, 9)
    assert [words[2:] for words, _, _ in site.programs] == [
        ["Slurm Job_id=2 Name=b Failed, Run time 00:00:00, FAILED, ExitCode 3", "bob@y.org"],
        ["Slurm Job_id=3 Name=k Failed, Run time 00:00:00, FAILED", "ann@x.org"],
    ]


def test_an_array_gets_one_mail_for_all_unless_each_task_is_to() -> None:
    site = mailed()
    one = site.submit(name="m", mail_type=ALL, array="1-2")
    site.acknowledge()
    for number, job in enumerate(list(one.array.records.values()), 1):  # type: ignore[union-attr]
        site.complete(job, number)
    assert site.subjects() == [
        "Slurm Array Summary Job_id=1_* (1) Name=m Began",
        "Slurm Array Summary Job_id=1_* (1) Name=m Failed, FAILED, ExitCode [1-2]",
    ]
    each = mailed()
    each.submit(name="m", mail_type=f"{ALL},ARRAY_TASKS", array="1-2")
    assert (
        min(each.subjects()) == "Slurm Array Task Job_id=1_1 (2) Name=m Began, Queued time 00:00:00"
    )
    assert len(each.subjects()) == 2


def test_a_requeued_job_is_not_told_of_as_ended() -> None:
    site = mailed()
    job = site.submit(mail_type="END,FAIL,REQUEUE")
    site.acknowledge()
    site.control("requeue", job, ROOT)
    assert site.subjects() == ["Slurm Job_id=1 Name=j Requeued, Run time 00:00:00"]


def test_a_job_that_is_requeued_when_it_is_over_is_told_of_twice() -> None:
    site = mailed()
    job = site.submit(mail_type="END,REQUEUE")
    site.complete(job)
    site.control("requeue", job, ROOT)
    assert [subject.split()[3].strip(",") for subject in site.subjects()] == ["Ended", "Requeued"]


def test_how_much_of_its_time_has_passed_is_told_at_the_looks_at_limits() -> None:
    site = mailed()
    site.submit(mail_type="TIME_LIMIT,TIME_LIMIT_50,TIME_LIMIT_80,TIME_LIMIT_90", time_limit_s=120)
    site.acknowledge()
    site.run(200)
    assert [subject.partition("Reached ")[2].partition(",")[0] for subject in site.subjects()] == [
        "50% of time limit",
        "80% of time limit",
        "90% of time limit",
        "time limit",
    ]


def test_what_the_controller_came_back_with_is_not_mailed_again() -> None:
    site = mailed()
    job = site.submit(mail_type=ALL)
    site.programs.clear()
    fresh = site.core.mailer = Mailer(site.core)
    fresh.known(site.core.tables.jobs.values())
    fresh.note(job.job_id)
    assert not site.programs


# --- what its output says -------------------------------------------------------------------------


def test_nodes_are_told_why_a_job_is_ended() -> None:
    site = Site()
    requeued, cancelled = site.submit(), site.submit()
    site.acknowledge()
    site.ask(ControlJobs("requeue", [str(requeued.job_id)]), ROOT)
    site.cancel(cancelled, ROOT)
    told = {
        job.job_id: [sent.message.why for sent in site.sent(TerminateJob, job)]
        for job in (requeued, cancelled)
    }  # type: ignore[attr-defined]
    assert told == {requeued.job_id: ["JOB REQUEUE"], cancelled.job_id: [""]}
