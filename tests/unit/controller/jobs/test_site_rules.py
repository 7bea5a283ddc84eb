"""Job submit plug-ins: what they may do to new jobs and changes, and what happens when they
fail.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from controller_harness import ROOT, USER, Harness

from understudy.controller.jobs import site_rules as job_submit
from understudy.controller.jobs.site_rules import Modification, Submission, load_plugins
from understudy.protocol.messages import AllocateJob, Failure, JobSpec, SubmitJob, UpdateJobs

if TYPE_CHECKING:
    import pytest


class Rules:
    def submit(self, submission: Submission) -> None:
        if submission.spec.name == "bad":
            submission.tell("hello")
            submission.refuse(f"{submission.user_name} may not")
        if submission.spec.name == "late":
            submission.refuse("too long", 2051)
        if submission.spec.time_limit_s is None:
            submission.tell("one hour")
            submission.change(time_limit_s=3600)
        submission.script += "true\n"

    def modify(self, modification: Modification) -> None:
        if "priority" in modification.changes:
            modification.refuse("not that")
        modification.changes["comment"] = "changed"


class Broken:
    def submit(self, submission: Submission) -> None:
        raise ZeroDivisionError


def site(*plugins: Any) -> Harness:
    harness = Harness()
    harness.core.job_submit = list(plugins)
    return harness


def ask(harness: Harness, name: str) -> Any:
    return harness.ask(SubmitJob(JobSpec(name=name, work_dir="/"), "#!/bin/sh\n"), USER)


def test_a_plug_in_changes_what_is_submitted_and_says_so() -> None:
    harness = site(Rules())
    answer = ask(harness, "a")
    assert answer.note == "one hour"
    assert harness.core.tables.jobs[answer.job_id].time_limit_s == 3600
    assert harness.core.scripts[answer.job_id] == "#!/bin/sh\ntrue\n"


def test_a_plug_in_refuses_with_its_words_before_the_errors() -> None:
    harness = site(Rules())
    assert ask(harness, "bad") == Failure(-1, "hello\nann may not\nUnspecified error")
    assert ask(harness, "late") == Failure(
        2051, "too long\nRequested time limit is invalid (missing or exceeds some limit)"
    )
    assert not harness.core.tables.jobs


def test_a_plug_in_that_fails_lets_nothing_through() -> None:
    assert ask(site(Broken()), "a") == Failure(-1, "Unspecified error")


def test_a_plug_in_sees_interactive_jobs_and_changes_too() -> None:
    harness = site(Rules())
    refused = harness.ask(AllocateJob(JobSpec(name="bad", work_dir="/")), USER)
    assert refused == Failure(-1, "hello\nann may not\nUnspecified error")
    job = harness.submit(hold=True)
    harness.ask(UpdateJobs([str(job.job_id)], {"name": "x"}), ROOT)
    assert (job.spec.name, job.spec.comment) == ("x", "changed")
    assert harness.ask(UpdateJobs([str(job.job_id)], {"priority": "1"}), ROOT) == Failure(
        -1, "not that\nUnspecified error"
    )


def test_plug_ins_are_entry_points_that_slurm_conf_names(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("rules", f"{__name__}:Rules", job_submit.GROUP),
        EntryPoint("gone", "no.such:thing", job_submit.GROUP),
    ]
    monkeypatch.setattr(
        EntryPoint, "load", lambda point: Rules if point.name == "rules" else __import__("no.such")
    )
    monkeypatch.setattr(
        job_submit,
        "offered",
        lambda group: {point.name: point for point in points if point.group == group},
    )
    found = load_plugins(["lua", "gone", "job_submit/rules"])
    assert [type(each) for each in found] == [Rules]
