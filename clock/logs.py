"""A daemon's log: Slurm's levels and forms of lines, with the cluster's time.

Place: the edge, set up by clock/daemon.py for one daemon a process; whoever logs uses Python's own
loggers. Follows: slurm.conf(5) SlurmctldDebug and LogTimeFormat, slurmctld(8) -v and -D. A replay
in one process has no `Logs`: what it logs beyond errors is not worth its time.
"""

from __future__ import annotations

import logging
import os
import sys
import time as real_time
from logging.handlers import WatchedFileHandler
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
_PREFIXES: Final = {
    logging.CRITICAL: "fatal: ",
    logging.ERROR: "error: ",
    logging.WARNING: "error: ",
    logging.DEBUG: "debug:  ",
}
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
        text = (
            f"{self._program}: {prefix}{record.getMessage()}"
            if self._program
            else f"[{self._time()}] {prefix}{record.getMessage()}"
        )
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
    """What the process writes. `verbose`: how often -v was given, `fixed`: a level that who started
    the cluster wants; each wins over slurm.conf.

    With a `file`, all is written there, too: one that is moved away is begun anew. Where it cannot
    be opened, that is said and all else goes on.
    """

    def __init__(
        self,
        now: Callable[[], float],
        *,
        verbose: int = 0,
        fixed: str = "",
        stream: TextIO | None = None,
        program: str = "",
        file: str = "",
    ) -> None:
        self._fixed = (
            _NAMES[min(_NAMES.index("info") + verbose, len(_NAMES) - 1)] if verbose else fixed
        )
        self._stream: logging.StreamHandler[TextIO] = logging.StreamHandler(stream or sys.stderr)
        self._lines = [Line(now, program)]
        self._stream.setFormatter(self._lines[0])
        logging.basicConfig(handlers=[self._stream], force=True)
        if file:
            self._open(file, now)
        self.level = ""
        self.set_level(self._fixed or "info")

    def _open(self, file: str, now: Callable[[], float]) -> None:
        try:
            os.close(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
            handler = WatchedFileHandler(file, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            print(
                f"(null): _log_init: Unable to open logfile `{file}': {error.strerror}",
                file=sys.stderr,
                flush=True,
            )
            return
        self._lines.append(Line(now))
        handler.setFormatter(self._lines[-1])
        logging.getLogger().addHandler(handler)

    def write_to(self, stream: TextIO) -> None:
        """Another stream, in place of the one so far."""
        self._stream.setStream(stream)

    def leave_stream(self) -> None:
        """Write to the file alone, if there is one."""
        if len(self._lines) > 1:
            logging.getLogger().removeHandler(self._stream)

    def set_time(self, now: Callable[[], float]) -> None:
        """The lines' time from now on."""
        for line in self._lines:
            line.now = now

    def configure(self, level: str, time_format: str) -> None:
        """What the configuration says; a level is a name or a number."""
        for line in self._lines:
            line.form = time_format.lower()
            line.forget()
        self.set_level(
            self._fixed
            or (_NAMES[min(int(level), len(_NAMES) - 1)] if level.isdecimal() else level.lower())
        )

    def set_level(self, level: str) -> None:
        """Write this level, and what is more important."""
        self.level = level if level in LEVELS else "info"
        logging.getLogger("understudy").setLevel(LEVELS[self.level])
