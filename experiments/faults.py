"""What is to go wrong in a run, as data: lines of a scenario's events.jsonl that have a `fault`.

Place: pure; `understudy.tool.faults` does it to a cluster. The format is documented in
docs/faults.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from understudy.model.cluster import is_controller

if TYPE_CHECKING:
    from collections.abc import Mapping

# the kind -> keys that it has beside `at`, `fault`, `of` and `for`
KINDS: Final[Mapping[str, frozenset[str]]] = {
    "crash": frozenset(),  # nodes lose power, daemons are killed; they come back afterwards
    "stall": frozenset(),  # daemons stand still, those of nodes too; then they go on
    "slow": frozenset({"times"}),  # jobs that start on the nodes take so many times as long
    "partition": frozenset({"to", "one_way"}),
    "link": frozenset({"to", "one_way", "latency", "loss", "duplicate", "reorder"}),
    "disk_full": frozenset(),
    "disk_slow": frozenset({"seconds"}),  # a write takes so long
    "fsync_fails": frozenset(),
}
ON_DISK: Final = ("disk_full", "disk_slow", "fsync_fails")
BETWEEN: Final = ("partition", "link")
CONTROLLER: Final = "controller"
ACCOUNTING: Final = "accounting"
CLOCK: Final = "clock"
OF_CLOCK: Final = ("crash", "stall")  # what can befall it: who starts then does not know the time
_LEAST: Final = {"times": 1.0}  # a key's smallest value; else 0
_SHARES: Final = ("loss", "duplicate", "reorder")


@dataclass(frozen=True, slots=True)
class Fault:
    """Times in seconds after the scenario's zero. `of`, `to`: `controller`, `backup1`,
    `accounting`, `clock`, nodes as a host list expression, or switches of topology.conf, at commas;
    `to` "": everybody else.
    """

    at: float
    kind: str
    of: str
    lasts_s: float = math.inf
    to: str = ""
    one_way: bool = False  # from `of` to `to` alone
    latency_s: float = 0.0  # more than ever
    loss: float = 0.0  # probabilities of each message
    duplicate: float = 0.0
    reorder: float = 0.0
    times: float = 1.0
    seconds: float = 0.0

    def as_line(self) -> dict[str, Any]:
        """The object that stands for it in events.jsonl."""
        keys = KINDS[self.kind]
        values = {
            "to": self.to,
            "one_way": self.one_way,
            "latency": self.latency_s,
            "loss": self.loss,
            "duplicate": self.duplicate,
            "reorder": self.reorder,
            "times": self.times,
            "seconds": self.seconds,
        }
        line: dict[str, Any] = {"at": self.at, "fault": self.kind, "of": self.of}
        if self.lasts_s != math.inf:
            line["for"] = self.lasts_s
        return line | {key: value for key, value in values.items() if key in keys and value}


def read_fault(line: Mapping[str, Any]) -> Fault:
    """A fault of events.jsonl.

    Raises:
        KeyError, TypeError, ValueError: it is none; says why.
    """
    kind = str(line["fault"])
    if kind not in KINDS:
        raise ValueError(f"fault: {kind!r} is none of {', '.join(KINDS)}")
    known = KINDS[kind] | {"at", "fault", "of", "for"}
    strange = [key for key in line if key not in known]
    if strange:
        raise ValueError(f"{strange[0]}: not a key of the fault {kind}")
    numbers = {
        key: _number(line, key)
        for key in ("latency", "loss", "duplicate", "reorder", "times", "seconds")
        if key in line
    }
    for key in _SHARES:
        if numbers.get(key, 0.0) > 1:
            raise ValueError(f"{key}: {line[key]!r} is not a probability")
    of = str(line.get("of", CONTROLLER)) if kind in ON_DISK else str(line["of"])
    if kind in ON_DISK and not (is_controller(of) or of == ACCOUNTING):
        raise ValueError(f"of: {of!r}: a disk is a controller's or accounting's")
    if kind == "disk_slow" and not is_controller(of):
        raise ValueError(f"of: {of!r}: only a controller's disk can be slow")
    return Fault(
        at=_number(line, "at"),
        kind=kind,
        of=of,
        lasts_s=_number(line, "for") if "for" in line else math.inf,
        to=str(line.get("to", "")),
        one_way=str(line.get("one_way", False)).lower() in ("true", "1", "yes"),
        latency_s=numbers.get("latency", 0.0),
        loss=1.0 if kind == "partition" else numbers.get("loss", 0.0),
        duplicate=numbers.get("duplicate", 0.0),
        reorder=numbers.get("reorder", 0.0),
        times=numbers.get("times", 1.0),
        seconds=numbers.get("seconds", 0.0),
    )


def read_words(text: str) -> Fault:
    """A fault of a command line: `crash of=n[1-4] at=60 for=600`.

    Raises:
        ValueError: it is none; says why.
    """
    kind, *words = text.split() or [""]
    pairs = [word.partition("=") for word in words]
    for key, equals, _ in pairs:
        if not equals:
            raise ValueError(f"{key}: not KEY=VALUE")
    try:
        return read_fault({"fault": kind} | {key: value for key, _, value in pairs})
    except KeyError as error:
        raise ValueError(f"{error.args[0]}= is missing") from None


def _number(line: Mapping[str, Any], key: str) -> float:
    try:
        value = float(line[key])
    except (TypeError, ValueError):
        value = math.nan
    least = _LEAST.get(key, -math.inf if key == "at" else 0.0)
    if not least <= value < math.inf:
        raise ValueError(f"{key}: {line[key]!r} is not a number from {max(least, 0.0):g} on")
    return value
