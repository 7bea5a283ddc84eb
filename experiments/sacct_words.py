"""The values that sacct writes: instants, durations, limits, memory, TRES, states.

Place: used by the readers of sacct's output. Pure but for the local time zone: sacct tells local
time. Follows: sacct(1) of 22.05, and what versions from 17.11 to 23.11 write.
"""

from __future__ import annotations

import math
import re
import time
from datetime import datetime
from typing import Final

from understudy.experiments.past import PARTITION_LIMIT, UNLIMITED

UNKNOWN_TIMES: Final = frozenset(
    ("", "unknown", "none", "n/a", "invalid", "null", "(null)", "none assigned")
)
NONE_ASSIGNED: Final = frozenset(("", "none assigned", "none", "n/a", "(null)", "unknown"))
STATES: Final = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "COMPLETING",
        "CONFIGURING",
        "DEADLINE",
        "FAILED",
        "LAUNCH_FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PENDING",
        "POWER_UP_NODE",
        "PREEMPTED",
        "RECONFIG_FAIL",
        "REQUEUED",
        "REQUEUE_FED",
        "REQUEUE_HOLD",
        "RESIZING",
        "RESV_DEL_HOLD",
        "REVOKED",
        "RUNNING",
        "SIGNALING",
        "SPECIAL_EXIT",
        "STAGE_OUT",
        "STOPPED",
        "SUSPENDED",
        "TIMEOUT",
    }
)
_STATE_LETTERS: Final = {
    "BF": "BOOT_FAIL",
    "CA": "CANCELLED",
    "CD": "COMPLETED",
    "DL": "DEADLINE",
    "F": "FAILED",
    "NF": "NODE_FAIL",
    "OOM": "OUT_OF_MEMORY",
    "PD": "PENDING",
    "PR": "PREEMPTED",
    "R": "RUNNING",
    "RQ": "REQUEUED",
    "RS": "RESIZING",
    "RV": "REVOKED",
    "S": "SUSPENDED",
    "TO": "TIMEOUT",
}
_DURATION: Final = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?(?:\.\d+)?")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)([KMGTPE]?)([cnCN]?)")
_KILO: Final = {
    "K": 1 / 1024,
    "": 1.0,
    "M": 1.0,
    "G": 1024.0,
    "T": 1024.0**2,
    "P": 1024.0**3,
    "E": 1024.0**4,
}
# "2026-11-23T01" and "2026-11-23T01:26": the instants; None: clocks are changed within that hour
_starts: dict[str, int | None] = {}


def instant(text: str) -> int | None:
    """`2026-11-23T01:26:21`, with a blank, a zone or a fraction, too, or seconds since the epoch
    (SLURM_TIME_FORMAT=%s); None: unknown.

    Raises:
        ValueError: anything else. A format without the year cannot be decided.
    """
    if len(text) == 19 and text[10] == "T":
        try:
            minute, second = text[14:16], int(text[17:])
            hour = _start(text[:13], "%Y-%m-%dT%H", 3540)
            if hour is None:
                found = _start(text[:16], "%Y-%m-%dT%H:%M", 0)
            elif minute.isdecimal() and minute < "60":
                found = hour + 60 * int(minute)
            else:
                found = None
            if found is not None and text[13] == text[16] == ":" and 0 <= second <= 60:
                return found + second
        except ValueError:
            pass
        raise ValueError(f"{text[:40]!r} is no time of sacct")
    if text.lower() in UNKNOWN_TIMES:
        return None
    if re.fullmatch(r"\d{1,12}(\.\d+)?", text):
        seconds = int(text.partition(".")[0])
        return seconds or None
    try:
        return math.floor(datetime.fromisoformat(text.replace("/", "-")).timestamp())
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"{text[:40]!r} is no time of sacct (set SLURM_TIME_FORMAT=standard, or %s, for it)"
        ) from None


def _start(text: str, form: str, within: int) -> int | None:
    """The instant of the full hour or minute; None: the clocks do not run evenly from then on for
    `within` seconds.
    """
    if text not in _starts:
        parts = time.strptime(text, form)
        start = round(time.mktime(parts))
        is_even = (
            not within
            or round(time.mktime((*parts[:4], within // 60, *parts[5:]))) == start + within
        )
        _starts[text] = start if is_even else None
    return _starts[text]


def duration(text: str) -> int | None:
    """`[DAYS-]HOURS:MINUTES:SECONDS`, `MINUTES:SECONDS`, in seconds; None: unknown.

    Raises:
        ValueError: anything else.
    """
    if text.lower() in UNKNOWN_TIMES:
        return None
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is no duration")
    days, first, second, third = match.groups()
    if third is not None:
        return int(days or 0) * 86_400 + int(first) * 3600 + int(second) * 60 + int(third)
    if days:
        return int(days) * 86_400 + int(first) * 3600 + int(second or 0) * 60
    return int(first) * 60 + int(second) if second is not None else int(first)


def limit(text: str, *, in_minutes: bool) -> int | None:
    """Timelimit, or TimelimitRaw (`in_minutes`), in minutes.

    Raises:
        ValueError: anything else.
    """
    word = text.lower()
    if word in ("unlimited", "infinite", "infinity"):
        return UNLIMITED
    if word == "partition_limit":
        return PARTITION_LIMIT
    if in_minutes:
        if word in UNKNOWN_TIMES:
            return None
        if not text.isdigit():
            raise ValueError(f"{text[:40]!r} is no time limit")
        return int(text)
    seconds = duration(text)
    return None if seconds is None else -(-seconds // 60)


def state(text: str) -> str:
    """The state's name; `CANCELLED by 1000` is CANCELLED.

    Raises:
        ValueError: none of Slurm's.
    """
    word = text.split(None, 1)[0].rstrip("+").upper() if text.strip() else ""
    word = _STATE_LETTERS.get(word, word)
    if word in STATES:
        return word
    whole = (
        [name for name in STATES if text.rstrip().endswith("+") and name.startswith(word)]
        if word
        else []
    )
    if len(whole) == 1:  # cut short by a column's width
        return whole[0]
    raise ValueError(f"{text[:40]!r} is no state of a job")


def exit_code(text: str) -> tuple[int, int]:
    """`3:0` is exit code 3, `0:9` signal 9. A signal beyond 64 is a word of Slurm's own (125: out
    of memory) and none that ended a process.
    """
    code, _, signal = text.partition(":")
    return (int(code) if code.isdigit() else 0) & 0xFF, int(signal) if signal.isdigit() and int(
        signal
    ) <= 64 else 0


def megabytes(text: str) -> tuple[int, str] | None:
    """`4Gc` is 4096 MB of each CPU ("c"), `8Gn` of each node ("n"), `1600M` ("") of the job as a
    whole; None: none.
    """
    match = _SIZE.fullmatch(text.upper().replace(" ", "")) if text else None
    if match is None:
        return None
    number, unit, per = match.groups()
    return math.ceil(float(number) * _KILO[unit]), per.lower()


def tres(text: str) -> dict[str, str]:
    """`cpu=4,mem=8G,gres/gpu:a100=2` by name."""
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def count(text: str) -> int | None:
    """`12`, `12K` (sacct shortens large numbers); None: not said."""
    if text.isdigit():
        return int(text)
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG])", text.upper())
    return round(float(match[1]) * 1000 ** ("KMG".index(match[2]) + 1)) if match else None


def whole(text: str | None) -> int | None:
    """`12`; None: anything else."""
    return int(text) if text and text.isdigit() else None
