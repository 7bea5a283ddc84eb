"""Faults at random, from a seed: what a campaign has happen to a cluster.

Place: pure; makes values of `faults.py`, which a scenario's events.jsonl can hold as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from understudy.experiments.faults import ACCOUNTING, CLOCK, CONTROLLER, OF_CLOCK, Fault
from understudy.model.hostlist import compress

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

# how often each is drawn, as shares
WEIGHTS: Final = {
    "crash": 6,
    "stall": 3,
    "slow": 2,
    "partition": 3,
    "link": 4,
    "disk_full": 1,
    "disk_slow": 1,
    "fsync_fails": 1,
}
_LASTS_S: Final = (0.5, 5.0, 50.0, 500.0)  # ours: between races and what SlurmdTimeout notices
_OF_CONTROLLER: Final = 0.4  # of crashes and stalls: the other daemons are many
_OF_ACCOUNTING: Final = 0.2
_OF_BACKUP: Final = 0.4  # of what would be the primary's
_MORE_OF_CLOCK: Final = 0.05  # so many more for each of the others, which are as without


def random_faults(
    rng: random.Random,
    count: int,
    span_s: float,
    nodes: Sequence[str],
    *,
    racks: Sequence[str] = (),
    accounting: bool = False,
    backups: Sequence[str] = (),
) -> list[Fault]:
    """So many, and some of the clock, in order of time, that begin within the span. `racks`: names
    of switches; `backups`: of backup controllers.
    """
    found = [_one(rng, span_s, nodes, racks, accounting=accounting) for _ in range(count)]
    for _ in range(count):
        if rng.random() < _MORE_OF_CLOCK:
            kind = rng.choice(OF_CLOCK)
            found.append(Fault(rng.uniform(0.0, span_s), kind, CLOCK, _lasts(rng)))
    if backups:
        found = [_of_any_controller(rng, fault, backups) for fault in found]
    return sorted(found, key=lambda fault: fault.at)


def _one(
    rng: random.Random,
    span_s: float,
    nodes: Sequence[str],
    racks: Sequence[str],
    *,
    accounting: bool,
) -> Fault:
    kind = rng.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))[0]
    at = rng.uniform(0.0, span_s)
    if rng.random() < 0.5:
        at = float(int(at))
    lasts_s = _lasts(rng)
    some = _some_nodes(rng, nodes, racks)
    match kind:
        case "crash" | "stall":
            chance = rng.random()
            if chance < _OF_CONTROLLER:
                of = CONTROLLER
            elif accounting and chance < _OF_CONTROLLER + _OF_ACCOUNTING:
                of = ACCOUNTING
            else:
                of = some
            return Fault(at, kind, of, lasts_s)
        case "slow":
            return Fault(at, kind, some, lasts_s, times=rng.choice((1.5, 3.0, 20.0)))
        case "partition" | "link":
            to = rng.choice((CONTROLLER, CONTROLLER, ""))
            of = some
            if accounting and rng.random() < _OF_ACCOUNTING:
                of, to = ACCOUNTING, CONTROLLER
            one_way = rng.random() < 0.3
            if kind == "partition":
                return Fault(at, kind, of, lasts_s, to=to, one_way=one_way, loss=1.0)
            return Fault(
                at,
                kind,
                of,
                lasts_s,
                to=to,
                one_way=one_way,
                latency_s=rng.choice((0.0, 0.05, 1.0, 12.0)),
                loss=rng.choice((0.0, 0.1, 0.5)),
                duplicate=rng.choice((0.0, 0.2, 1.0)),
                reorder=rng.choice((0.0, 0.3)),
            )
        case "disk_slow":
            return Fault(at, kind, CONTROLLER, lasts_s, seconds=rng.choice((0.1, 2.0, 20.0)))
        case _:
            is_accountings = accounting and rng.random() < _OF_ACCOUNTING
            return Fault(at, kind, ACCOUNTING if is_accountings else CONTROLLER, lasts_s)


def _of_any_controller(rng: random.Random, fault: Fault, backups: Sequence[str]) -> Fault:
    """Let it befall a backup in place of the primary, or cut a controller off in place of nodes."""
    if fault.of == CONTROLLER and rng.random() < _OF_BACKUP:
        return replace(fault, of=rng.choice(backups))
    if fault.to == CONTROLLER and rng.random() < _OF_BACKUP:
        return replace(fault, of=rng.choice((CONTROLLER, *backups)), to="")
    return fault


def _lasts(rng: random.Random) -> float:
    return rng.choice(_LASTS_S) * rng.uniform(0.5, 1.5)


def _some_nodes(rng: random.Random, nodes: Sequence[str], racks: Sequence[str]) -> str:
    """One node mostly, some beside each other, or a rack."""
    if racks and rng.random() < 0.2:
        return rng.choice(racks)
    first = rng.randrange(len(nodes))
    return compress(nodes[first : first + rng.choice((1, 1, 1, 2, 4, len(nodes)))])
