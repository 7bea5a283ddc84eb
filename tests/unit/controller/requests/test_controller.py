"""What administrators ask of the running controller: its log, words to jobs, and the names of debug
flags.

Covers: model/debug_flags.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from controller_harness import OTHER, ROOT, USER, Harness

from understudy.controller.requests.controller import notify_job, set_configuration, update_step
from understudy.model.debug_flags import changed_flags
from understudy.model.errors import SlurmError
from understudy.protocol.messages import (
    AwaitJob,
    NotifyJob,
    NotifyTasks,
    Ok,
    SetConfiguration,
    UpdateStep,
)


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ("", "+steps,gres", "Gres,Steps"),
        ("Gres,Steps", "-GRES", "Steps"),
        ("Backfill", "+backfill", "Backfill"),
        ("", "-gres", ""),
    ],
)
def test_flags_are_added_and_taken_away(before: str, change: str, after: str) -> None:
    assert changed_flags(before, change) == after


def test_an_unknown_flag_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\+nosuch"):
        changed_flags("Gres", "+nosuch")


def test_administrators_change_what_is_logged() -> None:
    h = Harness()
    made: list[dict[str, str]] = []
    h.core.show_configuration = lambda: [("DebugFlags", "Steps"), ("SlurmSchedLogFile", "(null)")]
    h.core.change_configuration = made.append
    assert set_configuration(h.core, SetConfiguration({"DebugFlags": "+gres"}), ROOT) == Ok()
    assert made == [{"DebugFlags": "Gres,Steps"}]
    with pytest.raises(SlurmError, match="Requested operation is presently disabled"):
        set_configuration(h.core, SetConfiguration({"SlurmSchedLogLevel": "1"}), ROOT)
    with pytest.raises(SlurmError, match="Permission denied"):
        set_configuration(h.core, SetConfiguration({"SlurmctldDebug": "debug"}), USER)


def test_words_go_to_jobs_that_run() -> None:
    h = Harness()
    job, held = h.submit(), h.submit(hold=True)
    assert notify_job(h.core, NotifyJob(str(job.job_id), "hello"), USER) == Ok()
    assert [sent.message.text for sent in h.sent(NotifyTasks)] == ["hello"]  # type: ignore[attr-defined]
    waiting: list[Any] = []
    later = SimpleNamespace(give=waiting.append)
    for command in ("", "x"):
        asked = h.submit(command=command)
        h.core.awaited[asked.job_id] = [(AwaitJob(asked.job_id, until_end=True), later)]  # type: ignore[list-item]
        notify_job(h.core, NotifyJob(str(asked.job_id), "hello"), USER)
    assert [(told.notice, told.is_running) for told in waiting] == [("hello", True)]
    for sender, job_id, error in (
        (USER, held.job_id, "presently disabled"),
        (OTHER, job.job_id, "Invalid user id"),
        (USER, 99, "Invalid job id"),
    ):
        with pytest.raises(SlurmError, match=error):
            notify_job(h.core, NotifyJob(str(job_id), "x"), sender)


def test_a_step_that_is_not_there_has_no_limit_to_change() -> None:
    h = Harness()
    job = h.submit()
    assert update_step(h.core, UpdateStep(str(job.job_id), "", "5"), USER) == Ok()
    with pytest.raises(SlurmError, match="Invalid job id"):
        update_step(h.core, UpdateStep(str(job.job_id), "7", "5"), USER)
    with pytest.raises(SlurmError, match="Invalid user id"):
        update_step(h.core, UpdateStep(str(job.job_id), "", "5"), OTHER)
