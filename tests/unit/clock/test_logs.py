"""Lines of logs: their levels, their times, and what they say of jobs.

Covers: controller/core/log_lines.
"""

from __future__ import annotations

import io
import logging
from typing import TYPE_CHECKING

import pytest
from controller_harness import ROOT, USER, Harness

from understudy.clock.logs import DEBUG2, VERBOSE, Logs
from understudy.controller.core import log_lines
from understudy.controller.edge.server import Server
from understudy.protocol.messages import CancelJobs, JobSpec, Message, SubmitJob, UpdateNodes

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger("understudy.test_logs")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("understudy")
    handlers, level = root.handlers[:], ours.level
    yield
    root.handlers[:] = handlers
    ours.setLevel(level)


def say_all() -> None:
    log.critical("c")
    log.error("e")
    log.warning("w")
    log.info("i")
    log.log(VERBOSE, "v")
    log.debug("d")
    log.log(DEBUG2, "d2")
    log.log(6, "d5")


@pytest.mark.parametrize(
    ("level", "said"),
    [
        ("quiet", ""),
        ("fatal", "fatal: c"),
        ("error", "fatal: c/error: e/error: w"),
        ("info", "fatal: c/error: e/error: w/i"),
        ("3", "fatal: c/error: e/error: w/i"),
        ("verbose", "fatal: c/error: e/error: w/i/v"),
        ("Debug", "fatal: c/error: e/error: w/i/v/debug:  d"),
        ("debug2", "fatal: c/error: e/error: w/i/v/debug:  d/debug2: d2"),
        ("9", "fatal: c/error: e/error: w/i/v/debug:  d/debug2: d2/debug5: d5"),
    ],
)
def test_a_level_lets_through_what_it_names_and_what_is_more_important(
    level: str, said: str
) -> None:
    stream = io.StringIO()
    Logs(lambda: 0.0, stream=stream, program="slurmd").configure(level, "iso8601")
    say_all()
    assert (
        "/".join(line.removeprefix("slurmd: ") for line in stream.getvalue().splitlines()) == said
    )


def test_options_win_over_the_configuration_and_setdebug_over_both() -> None:
    stream = io.StringIO()
    logs = Logs(lambda: 0.0, stream=stream, verbose=2)
    logs.configure("error", "short")
    assert logs.level == "debug"
    logs.set_level("quiet")
    say_all()
    assert stream.getvalue() == ""
    assert Logs(lambda: 0.0, stream=stream, fixed="error").level == "error"


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("iso8601_ms", "[1970-01-02T00:00:01.250]"),
        ("iso8601", "[1970-01-02T00:00:01]"),
        ("rfc5424", "[1970-01-02T00:00:01+00:00]"),
        ("RFC5424_ms", "[1970-01-02T00:00:01.250+00:00]"),
        ("short", "[Jan 02 00:00:01]"),
    ],
)
def test_lines_have_the_clusters_time_in_the_form_that_is_asked_for(
    form: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    stream = io.StringIO()
    Logs(lambda: 86401.25, stream=stream).configure("info", form)
    log.info("text")
    assert stream.getvalue() == f"{shown} text\n"
    monkeypatch.undo()
    time.tzset()


class Request:
    def __init__(self, message: Message, sender: object) -> None:
        self.message, self.sender = message, sender

    def reply(self, answer: Message) -> None: ...

    def is_gone(self) -> bool:
        return False


def test_the_life_of_a_job_is_told_in_slurms_words(caplog: pytest.LogCaptureFixture) -> None:
    h = Harness()
    server = Server(h.core, h.locks, h.passes, None, soon=lambda _call: None, clock=lambda: 0.0)
    with caplog.at_level(logging.INFO, "understudy"):
        server.handle(Request(SubmitJob(JobSpec(name="a"), script="#!/bin/sh\n"), USER))  # type: ignore[arg-type]
        job = max(h.core.tables.jobs.values(), key=lambda each: each.job_id)
        h.run()
        h.complete(job, 3)
        server.handle(
            Request(SubmitJob(JobSpec(name="a", partition="nope"), script="#!/bin/sh\n"), USER)
        )  # type: ignore[arg-type]
        server.handle(Request(CancelJobs([str(job.job_id)]), ROOT))  # type: ignore[arg-type]
        server.handle(Request(UpdateNodes("n2", {"state": "drain", "reason": "disk"}), ROOT))  # type: ignore[arg-type]
    name = f"JobId={job.job_id}"
    assert [
        record.getMessage() for record in caplog.records if record.name == "understudy.controller"
    ] == [
        f"_slurm_rpc_submit_batch_job: {name} InitPrio={job.priority} usec=0",
        f"sched: Allocate {name} NodeList={job.node_list} #CPUs=1 Partition=main",
        f"_job_complete: {name} WEXITSTATUS 3",
        f"_job_complete: {name} done",
        "_slurm_rpc_submit_batch_job: Invalid partition name specified",
        f"_slurm_rpc_kill_job: REQUEST_KILL_JOB {name} uid 0",
        "update_node: node n2 reason set to: disk",
        "update_node: node n2 state set to DRAINED",
    ]


def test_tasks_of_arrays_are_named_as_slurm_names_them() -> None:
    h = Harness()
    first = h.submit(array="1-2")
    tasks = sorted(
        (job for job in h.core.tables.jobs.values() if job.array is not None),
        key=lambda job: job.job_id,
    )
    assert first.array is not None
    assert {log_lines.job_name(job) for job in tasks} <= {
        f"JobId={first.array.job_id}_{job.array_task_id}({job.job_id})" for job in tasks
    } | {f"JobId={first.array.job_id}_*"}
    assert log_lines.job_name(h.submit(name="alone")) == f"JobId={max(h.core.tables.jobs)}"
