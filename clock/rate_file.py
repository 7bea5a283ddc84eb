"""The line of scaled time on disk, RUN_DIR/clock.json, so that a clock service that has died goes
on where it would be.

Place: beside service.py, which writes the line when it changes, and reads it when it starts. A line
of another start of the cluster, which has another epoch, says nothing.
"""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from understudy.clock.host_clock import host_clock

if TYPE_CHECKING:
    from pathlib import Path

    from understudy.clock.rates import Rates

FILE_NAME: Final = "clock.json"
_INEXACT_S: Final = 1.0  # ours: a line is written a moment after it begins to hold
log = logging.getLogger("understudy.clock")


class Line(NamedTuple):
    """What is kept. `segment`, `wanted`: as `Rates` has them; `until_us`: where time is to stop, if
    anywhere; `host`, `written`: whose monotonic clock, and the time of day.
    """

    epoch: float
    segment: tuple[float, float, float]
    wanted: float
    until_us: float | None
    host: str
    written: float


def write(path: Path, epoch: float, rates: Rates, until_us: float | None) -> None:
    """Keep the line; what cannot be is logged, and time goes on."""
    line = Line(epoch, rates.segment, rates.wanted, until_us, host_clock(), time.time())
    try:
        temporary = path.with_suffix(".new")
        temporary.write_text(json.dumps(line._asdict()))
        temporary.replace(path)
    except OSError as error:
        log.error("cannot write %s: %s", path, error.strerror)  # noqa: TRY400


def reached(path: Path, epoch: float, seen: float) -> float | None:
    """The latest time that the cluster with this epoch can have had when its last daemon died,
    which was seen at this time of day. None: it has left no line.
    """
    try:
        line = Line(**json.loads(path.read_text()))
        base_us, _, rate = map(float, line.segment)
        until_us = float("inf") if line.until_us is None else float(line.until_us)
        lasted_s = max(0.0, seen - line.written) + _INEXACT_S
    except (OSError, ValueError, TypeError):
        return None
    if line.epoch != epoch:
        return None
    return epoch + min(base_us + lasted_s * rate * 1e6, max(base_us, until_us)) / 1e6


def read(path: Path, epoch: float, rates: Rates) -> float | None:
    """Have `rates` go on by the line that was kept, if there is one. Where time is to stop."""
    try:
        line = Line(**json.loads(path.read_text()))
        base_us, base_s, rate = map(float, line.segment)
        wanted, written = float(line.wanted), float(line.written)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        log.error("cannot read %s: %s", path, error)  # noqa: TRY400
        return None
    if line.epoch != epoch:
        return None
    if line.host != host_clock():  # it was started again since: by the time of day
        base_us += max(0.0, time.time() - written) * rate * 1e6
        base_s = time.monotonic()
    rates.segment, rates.wanted = (base_us, base_s, rate), wanted
    return line.until_us
