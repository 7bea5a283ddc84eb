"""Nodes that fail and are repaired, by a model or as recorded: for research on scheduling under
failures.

Place: pure; makes faults (`faults.py`) of what `--failures` says. Each node has numbers of its own
from the seed, so nodes fail at the same instants whatever the policy or the jobs.

A node works for a time drawn from the model, is away for a time drawn for the repair, and works
again as new. Schroeder and Gibson, "A large-scale study of failures in high-performance computing
systems" (2010), found times between failures of a node to be Weibull with a shape of 0.7 to 0.8,
and repair times lognormal.
"""

from __future__ import annotations

import csv
import heapq
import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from understudy.experiments.faults import Fault
from understudy.model.hostlist import compress

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MODELS: Final = ("exponential", "weibull", "trace")
REPAIRS: Final = ("fixed", "exponential", "lognormal")
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_SIGMA: Final = 1.0  # ours: of the logarithm of a lognormal repair time
_COLUMNS: Final = ("nodes", "down", "up")
_NEEDS: Final = {"exponential": {"mtbf"}, "weibull": {"mtbf", "shape"}, "trace": {"file"}}
_MAY: Final = {"repair", "repairs", "together"}


class FailuresError(ValueError):
    """`--failures` cannot be used; says why."""


@dataclass(frozen=True, slots=True)
class Model:
    """`mtbf_s`: the mean time that a node works; `shape`: of Weibull's distribution, 1 for the
    exponential one; `repair_s`: the mean time until it is back, `repairs` how that is spread;
    `together`: the probability that a failure takes the whole rack.
    """

    mtbf_s: float = 0.0
    shape: float = 1.0
    repair_s: float = 3600.0
    repairs: str = "exponential"
    together: float = 0.0
    file: Path | None = None  # recorded failures in place of a distribution

    @classmethod
    def read(cls, text: str) -> Model:
        """`weibull:mtbf=30d,shape=0.7,repair=4h,repairs=lognormal,together=0.1`, or
        `exponential:mtbf=30d`, or `trace:file=FAILURES.csv`.

        Raises:
            FailuresError: it is none of them.
        """
        name, _, rest = text.partition(":")
        if name not in MODELS:
            raise FailuresError(f"{name!r} is none of {', '.join(MODELS)}")
        said = dict(word.split("=", 1) for word in rest.split(",") if "=" in word)
        known = _NEEDS[name] | (_MAY if name != "trace" else set())
        for key in said:
            if key not in known:
                raise FailuresError(f"{key}: {name} knows {', '.join(sorted(known))}")
        for key in _NEEDS[name]:
            if key not in said:
                raise FailuresError(f"{name} needs {key}=")
        if name == "trace":
            return cls(file=Path(said["file"]))
        repairs = said.get("repairs", "exponential")
        if repairs not in REPAIRS:
            raise FailuresError(f"repairs: {repairs!r} is none of {', '.join(REPAIRS)}")
        together = _number("together", said.get("together", "0"), least=0.0)
        if together > 1:
            raise FailuresError(f"together: {together:g} is not a probability")
        return cls(
            mtbf_s=_seconds("mtbf", said["mtbf"]),
            shape=_number("shape", said.get("shape", "1"), least=0.01),
            repair_s=_seconds("repair", said.get("repair", "1h")),
            repairs=repairs,
            together=together,
        )

    def failures(
        self, nodes: Sequence[str], racks: Mapping[str, Sequence[str]], seed: int
    ) -> Iterator[Fault]:
        """When which nodes fail and for how long, in order of time, without end but for recorded
        ones. `racks`: the nodes that are in a node's rack, itself among them.

        Raises:
            FailuresError: the file of recorded failures cannot be read.
        """
        if self.file is not None:
            yield from _recorded(self.file)
            return
        draws = {node: random.Random(f"failures {seed} {node}") for node in nodes}  # noqa: S311
        due = [(self._works_s(draws[node]), node) for node in nodes]
        heapq.heapify(due)
        while due:
            at, node = heapq.heappop(due)
            rng = draws[node]
            away_s = self._away_s(rng)
            takes_all = rng.random() < self.together
            of = compress(racks.get(node, (node,))) if takes_all else node
            yield Fault(at, "crash", of, away_s)
            heapq.heappush(due, (at + away_s + self._works_s(rng), node))

    def _works_s(self, rng: random.Random) -> float:
        return rng.weibullvariate(self.mtbf_s / math.gamma(1 + 1 / self.shape), self.shape)

    def _away_s(self, rng: random.Random) -> float:
        match self.repairs:
            case "fixed":
                return self.repair_s
            case "exponential":
                return rng.expovariate(1 / self.repair_s)
            case _:
                return rng.lognormvariate(math.log(self.repair_s) - _SIGMA**2 / 2, _SIGMA)


def _recorded(path: Path) -> Iterator[Fault]:
    """Lines `nodes,down,up` in order of time, seconds after the zero; hosts as an expression."""
    last = -math.inf
    try:
        with path.open(newline="") as file:
            rows = csv.DictReader(file)
            if not rows.fieldnames or not set(_COLUMNS) <= set(rows.fieldnames):
                raise FailuresError(f"{path} line 1: no columns {', '.join(_COLUMNS)}")
            for number, row in enumerate(rows, 2):
                try:
                    down, up = float(row["down"]), float(row["up"])
                except (TypeError, ValueError):
                    raise FailuresError(f"{path} line {number}: down and up are numbers") from None
                if not last <= down < up < math.inf:
                    raise FailuresError(
                        f"{path} line {number}: in order of down, and each up after its down"
                    )
                last = down
                yield Fault(down, "crash", row["nodes"], up - down)
    except OSError as error:
        raise FailuresError(f"{path}: {error.strerror}") from error


def _seconds(key: str, text: str) -> float:
    unit = _UNITS.get(text[-1:])
    return _number(key, text if unit is None else text[:-1], least=1e-3) * (unit or 1.0)


def _number(key: str, text: str, *, least: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value < math.inf:
        raise FailuresError(f"{key}: {text!r} is not a number from {least:g} on")
    return value
