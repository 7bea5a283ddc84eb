"""The fate of a job in sentences.

Place: pure text, for `understudy why`, and for the first jobs that differ between two runs.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from understudy.experiments.drawing import duration
from understudy.model.nouns import many
from understudy.model.times import format_duration

if TYPE_CHECKING:
    from understudy.experiments.outcomes.fate import Fate, Passer, Promise, Stretch

_LINES: Final = 12  # of reasons, and of promises: the first and the last of more


def instant(at: int | None, zero: float | None) -> str:
    """`2-03:04:05` since the zero, with the calendar's time where the zero is known."""
    if at is None:
        return "never"
    since = f"-{format_duration(-at)}" if at < 0 else format_duration(at)
    if zero is None:
        return since
    return f"{since} ({time.strftime('%Y-%m-%dT%H:%M:%S', time.localtime(zero + at))})"


def lines(fate: Fate, zero: float | None = None) -> list[str]:
    """What became of a job, in the order of time."""

    def at(when: int | None) -> str:
        return instant(when, zero)

    told = [f"submitted   {at(fate.submit)}"]
    if fate.eligible is None and fate.start is None:
        told.append("eligible    never: it was held, or waited for what did not come")
    elif fate.eligible is not None and fate.eligible > fate.submit:
        told.append(f"eligible    {at(fate.eligible)}")
    told += _some([f"waited      {at(each.at)}: {_waited(each)}" for each in fate.stretches])
    if not fate.stretches and fate.waited_for:
        told.append(f"waited      longest for {fate.waited_for}")
    told += _some(
        [
            f"promised    {at(each.at)}: to start {at(each.start)}{_moved(each)}"
            for each in fate.promises
        ]
    )
    told += _others(fate, zero)
    if fate.start is None and fate.end is not None:
        told.append(f"ended       {at(fate.end)} {fate.state}, before it started")
        return told
    if fate.start is None:
        told.append(f"never started: {fate.reason or fate.state}")
        return told
    by = {"Main": "the main scheduler", "Backfill": "backfill", "Submit": "its submission"}
    started = f" by {by.get(fate.scheduled_by, fate.scheduled_by)}" if fate.scheduled_by else ""
    where = f" on {fate.nodes}" if fate.nodes else ""
    waited = duration(fate.wait or 0)
    told.append(f"started     {at(fate.start)}{started}{where}, after {waited}")
    for event in fate.happenings:
        due = f" for job {event.job}" if event.job else ""
        told.append(f"            {at(event.at)}: {event.what}{due}")
    if fate.end is None:
        told.append(f"has not ended: {fate.state}")
    else:
        code = f", exit code {fate.exit_code}" if fate.exit_code not in ("", "0:0") else ""
        ran = duration(fate.end - fate.start)
        told.append(f"ended       {at(fate.end)} {fate.state}{code}, after {ran}")
    return told


def _some(told: list[str]) -> list[str]:
    """All of few lines; of many the first and the last, and how many are between."""
    if len(told) <= _LINES:
        return told
    half = _LINES // 2
    return [*told[:half], f"            ... {len(told) - _LINES:,} more ...", *told[-half:]]


def _waited(stretch: Stretch) -> str:
    reason = stretch.reason or "no reason that was said"
    if stretch.until is None:
        return reason
    return f"{duration(stretch.until - stretch.at)} of {reason}"


def _moved(promise: Promise) -> str:
    if not promise.moved:
        return ""
    return f", {duration(abs(promise.moved))} {'later' if promise.moved > 0 else 'earlier'}"


def _others(fate: Fate, zero: float | None) -> list[str]:
    told = []
    if fate.ahead:
        named = ", ".join(fate.ahead_jobs)
        more = " ..." if fate.ahead > len(fate.ahead_jobs) else ""
        told.append(f"behind      {many(fate.ahead, 'job')} that had come before it: {named}{more}")
    if fate.passed:
        told.append(f"passed by   {many(fate.passed, 'job')}, the first:")
        told += [f"            {_passer(each, zero)}" for each in fate.passers]
    return told


def _passer(passer: Passer, zero: float | None) -> str:
    who = f" of {passer.user}" if passer.user else ""
    why = f": {passer.why}" if passer.why else ""
    return (
        f"job {passer.job}{who}, {many(passer.cpus, 'CPU')}, submitted "
        f"{instant(passer.submit, zero)}, started {instant(passer.start, zero)}{why}"
    )
