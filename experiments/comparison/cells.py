"""Cells: a workload, seed and part under a policy, and what came of each.

Place: between a comparison's file and those who run its cells. Pure. Whoever runs cells needs a
function from `Cell` to `Row` and nothing else.
"""

from __future__ import annotations

import hashlib
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from understudy.experiments.comparison.comparison import WHOLE, Form, Policy, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from understudy.experiments.comparison.comparison import Comparison


class Pair(NamedTuple):
    """What the cells that are compared with each other have in common."""

    workload: str
    seed: int
    part: int

    def __str__(self) -> str:
        part = "" if self.part == WHOLE else f", part {self.part}"
        return f"{self.workload}, seed {self.seed}{part}"


class Drawn(NamedTuple):
    """A trace file as it is replayed, and the machine for it."""

    workload: Workload
    seed: int
    part: int
    jobs: int  # the first so many of the part; 0: all

    @property
    def pair(self) -> Pair:
        return Pair(self.workload.name, self.seed, self.part)


class Cell(NamedTuple):
    """One replay."""

    drawn: Drawn
    policy: Policy

    @property
    def parameters(self) -> str:
        """SchedulerParameters of this cell."""
        return self.policy.parameters.replace("{seed}", str(self.drawn.seed))

    @property
    def name(self) -> str:
        return f"{self.policy.name} on {self.drawn.pair}"


class Row(msgspec.Struct, frozen=True):
    """What came of a cell. `failed` is "" or why there are no figures."""

    pair: Pair
    policy: str
    figures: dict[str, float] = {}
    schedule_sha256: str = ""
    jobs: int = 0
    seconds: float = 0.0  # on the wall
    code: str = ""  # hash of the scheduling code with which it was made
    failed: str = ""


def chosen(form: Form, **others: Sequence[int] | Sequence[str] | int | None) -> Form:
    """The form with what the user wants otherwise; None is as the file has it."""
    return msgspec.structs.replace(
        form, **{name: value for name, value in others.items() if value is not None}
    )


def cells(comparison: Comparison, form: Form) -> list[Cell]:
    """All of them: seed after seed, and of each part after part, so that what has been run when it
    is interrupted can be compared.
    """
    workloads = [
        each for each in comparison.workloads if not form.workloads or each.name in form.workloads
    ]
    policies = [
        each for each in comparison.policies if not form.policies or each.name in form.policies
    ]
    return [
        Cell(Drawn(workload, seed, part, form.jobs), policy)
        for seed, part, workload, policy in product(form.seeds, form.parts, workloads, policies)
    ]


def key(cell: Cell, trace_sha256: str, processors: int) -> str:
    """Equal for cells that have the same schedule, whatever they are called."""
    inputs = (trace_sha256, processors, cell.policy.scheduler, cell.parameters)
    return hashlib.sha256(repr(inputs).encode()).hexdigest()[:24]


def by_policy(rows: Sequence[Row], workload: str) -> dict[str, dict[Pair, Row]]:
    """Those that have figures, of one workload."""
    found: dict[str, dict[Pair, Row]] = {}
    for row in rows:
        if row.pair.workload == workload and not row.failed:
            found.setdefault(row.policy, {})[row.pair] = row
    return found


def values(rows: Mapping[Pair, Row], figure: str) -> list[float]:
    """The figure of each, in the order of their pairs."""
    return [rows[pair].figures[figure] for pair in sorted(rows)]


def ratios(rows: Mapping[Pair, Row], base: Mapping[Pair, Row], figure: str) -> list[float]:
    """Of each pair that both have, in the order of pairs; left out where one of them is 0, since
    such a ratio says nothing.
    """
    both = sorted(pair for pair in rows if pair in base)
    found = [(rows[pair].figures[figure], base[pair].figures[figure]) for pair in both]
    return [one / other for one, other in found if one > 0 and other > 0]
