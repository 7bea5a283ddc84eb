"""A daemon's log: Slurm's levels and forms of lines, with the cluster's time.

Place: the edge, set up by clock/daemon.py for one daemon a process; whoever logs uses Python's own loggers. Follows: slurm.conf(5) SlurmctldDebug and
LogTimeFormat, slurmctld(8) -v and -D. A replay in one process has no `Logs`: what it logs beyond errors is not worth its time.
"""

from __future__ import annotations

import logging
import sys
import time as real_time
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable

VERBOSE: Final = 15
DEBUG2: Final = 9
LEVELS: Final = {
    "quiet": logging.CRITICAL + 1,
    "fatal": logging.CRITICAL,
    "error": logging.WARNING,
    "info": logging.INFO,
    "verbose": VERBOSE,
    "debug": logging.DEBUG,
    "debug2": DEBUG2,
    "debug3": 8,
    "debug4": 7,
    "debug5": 6,
}
_NAMES: Final = tuple(LEVELS)
_PREFIXES: Final = {logging.CRITICAL: "fatal: ", logging.ERROR: "error: ", logging.WARNING: "error: ", logging.DEBUG: "debug:  "}
_FORMS: Final = {
    "iso8601": ("%Y-%m-%dT%H:%M:%S", False, False),
    "iso8601_ms": ("%Y-%m-%dT%H:%M:%S", True, False),
    "rfc5424": ("%Y-%m-%dT%H:%M:%S", False, True),
    "rfc5424_ms": ("%Y-%m-%dT%H:%M:%S", True, True),
    "short": ("%b %d %H:%M:%S", False, False),
}  # by LogTimeFormat: the date, whether milliseconds follow, and the zone


class Line(logging.Formatter):
    """`[TIME] error: TEXT`, or with a program in the foreground `PROGRAM: error: TEXT`."""

    def __init__(self, now: Callable[[], float], program: str = "") -> None:
        super().__init__()
        self.now, self._program, self._second, self._stamp = now, program, -1, ""
        self.form = "iso8601_ms"

    def forget(self) -> None:
        """The form has changed."""
        self._second = -1

    def format(self, record: logging.LogRecord) -> str:
        level = record.levelno
        prefix = _PREFIXES.get(level) or (f"debug{11 - level}: " if level < logging.DEBUG else "")
        text = f"{self._program}: {prefix}{record.getMessage()}" if self._program else f"[{self._time()}] {prefix}{record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text

    def _time(self) -> str:
        if self.form == "clock":
            return str(int(real_time.process_time() * 1e6))
        now = self.now()
        date, has_ms, has_zone = _FORMS.get(self.form, _FORMS["iso8601_ms"])
        if int(now) != self._second:
            self._second, self._stamp = int(now), real_time.strftime(date, real_time.localtime(now))
        text = f"{self._stamp}.{int(now % 1 * 1000):03d}" if has_ms else self._stamp
        if has_zone:
            zone = real_time.strftime("%z", real_time.localtime(now))
            text += f"{zone[:3]}:{zone[3:]}"
        return text


class Logs:
    """What the process writes. `verbose`: how often -v was given, `fixed`: a level that who started the cluster wants; each wins over slurm.conf."""

    def __init__(self, now: Callable[[], float], *, verbose: int = 0, fixed: str = "", stream: TextIO | None = None, program: str = "") -> None:
        self._line = Line(now, program)
        self._fixed = _NAMES[min(_NAMES.index("info") + verbose, len(_NAMES) - 1)] if verbose else fixed
        handler = logging.StreamHandler(stream or sys.stderr)
        handler.setFormatter(self._line)
        logging.basicConfig(handlers=[handler], force=True)
        self.level = ""
        self.set_level(self._fixed or "info")

    def set_time(self, now: Callable[[], float]) -> None:
        """The lines' time from now on."""
        self._line.now = now

    def configure(self, level: str, time_format: str) -> None:
        """What the configuration says; a level is a name or a number."""
        self._line.form = time_format.lower()
        self._line.forget()
        self.set_level(self._fixed or (_NAMES[min(int(level), len(_NAMES) - 1)] if level.isdecimal() else level.lower()))

    def set_level(self, level: str) -> None:
        """Write this level, and what is more important."""
        self.level = level if level in LEVELS else "info"
        logging.getLogger("understudy").setLevel(LEVELS[self.level])
