"""When which request is due: the whole load is known before it begins (an open loop), so that a
slow controller is asked as much as a quick one, and each answer is late by all that it is late.

Place: tool/load. Pure: a plan and its seed in, requests out; the same for the same seed, also dealt
to several processes.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Final, NamedTuple

from understudy.tool.load.plan import DAY, EVEN, POISSON, put_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from understudy.tool.load.plan import Plan, Stream

_NOON: Final = 1.8  # how much more than on average is due in the middle of a day


class Request(NamedTuple):
    """One command line. `due` and `run` are seconds of the cluster's time, `due` since the load
    began; `{job}` is put in when it is sent: `draw`, between 0 and 1, says which of the known jobs.
    """

    due: float
    stream: int
    line: str
    run: float
    draw: float
    number: int  # within the stream
    follows: bool  # is the `then` of the stream's request of this number


class Names(NamedTuple):
    """What is put into command lines: the cluster's nodes and default partition, and the names of
    users who may submit.
    """

    nodes: Sequence[str]
    partition: str = ""
    users: Sequence[str] = ()


def requests(plan: Plan, names: Names, share: int = 0, shares: int = 1) -> list[Request]:
    """All requests in the order in which they are due, or every `shares`th of each stream.

    Args:
        plan: the load.
        names: of the cluster.
        share: which of the processes is asked for, from 0.
        shares: how many processes there are.
    """
    found = []
    for number, stream in enumerate(plan.streams):
        chance = random.Random(f"{plan.seed} {stream.name}")  # noqa: S311  a load, no secret
        for index, due in enumerate(due_times(stream, plan.duration, chance)):
            pair = _drawn(number, stream, index, due, chance, names)
            if index % shares == share:
                found += pair  # what follows undoes something: also after the end
    found.sort(key=lambda request: request.due)
    return found


def _drawn(
    number: int, stream: Stream, index: int, due: float, chance: random.Random, names: Names
) -> list[Request]:
    draw, length = chance.random(), chance.random()
    shortest, longest = stream.run
    run = stream.ends_at - due if stream.ends_at else shortest + (longest - shortest) * length
    values = {
        "nodes": chance.choice(stream.nodes) or len(names.nodes),
        "node": names.nodes[min(int(draw * len(names.nodes)), len(names.nodes) - 1)],
        "partition": names.partition,
        "number": index,
        "user": _in_turn(names.users, stream.users, index),
        "account": f"load{index % stream.accounts + 1}" if stream.accounts else "",
        "job": "{job}",
    }
    lines = [put_in(stream.command, values)]
    if stream.then:
        lines.append(put_in(stream.then, values))
    return [
        Request(
            due + place * stream.after,
            number,
            line,
            max(round(run, 3), 0.0),
            draw,
            index,
            bool(place),
        )
        for place, line in enumerate(lines)
    ]


def _in_turn(users: Sequence[str], most: int, index: int) -> str:
    return users[index % min(most, len(users))] if most and users else ""


def due_times(stream: Stream, duration: float, chance: random.Random) -> Iterator[float]:
    """When the requests of a stream are due."""
    until = stream.until or duration
    most = stream.count or math.inf
    if not stream.rate:
        for _ in range(stream.count):
            yield stream.begin
        return
    gap = stream.burst / stream.rate
    done, time = 0, stream.begin + (gap if stream.arrivals == EVEN else 0.0)
    while done < most:
        if stream.arrivals == POISSON:
            time += chance.expovariate(1.0) * gap
        elif stream.arrivals == DAY:
            time += chance.expovariate(1.0) * gap / _NOON
        if time > until:
            return
        if stream.arrivals == DAY and chance.random() * _NOON > daylight(time / duration):
            continue
        for _ in range(int(min(stream.burst, most - done))):
            yield time
            done += 1
        if stream.arrivals == EVEN:
            time += gap


def daylight(part: float) -> float:
    """How busy a day is at this part of it, beside its average: from 0.2 at its ends to 1.8 in its
    middle.
    """
    return 1.0 - (_NOON - 1.0) * math.cos(2 * math.pi * part)
