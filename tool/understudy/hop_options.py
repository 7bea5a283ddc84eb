"""The options of `understudy up` on hops between nodes, and what they come to.

Place: beside `cluster.py`. What they mean is told in `../docs/fan-out.md`.
"""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from understudy.model.cluster import Hops


class Way(StrEnum):
    """How a message goes from node to node."""

    MEMORY = "memory"
    SOCKETS = "sockets"


class Transport(StrEnum):
    """What hops go through."""

    UNIX = "unix"
    TCP = "tcp"


WayOption = Annotated[
    Way,
    typer.Option(
        "--hops",
        help="Whether messages to many nodes are handed on in the memory of a node daemon, or each "
        "node is a hop of its own with connections of its own. Not in virtual time.",
    ),
]
Processes = Annotated[
    int | None,
    typer.Option(
        "--hop-processes",
        min=1,
        help="With --hops sockets: how many processes share the nodes; else one a CPU.",
    ),
]
Width = Annotated[
    str | None,
    typer.Option(
        "--hop-width",
        metavar="N|flat",
        help="With --hops sockets: how many heads a message has, in place of TreeWidth.",
    ),
]
Through = Annotated[
    Transport | None,
    typer.Option(
        "--hop-transport",
        help="With --hops sockets: over Unix sockets, or TCP on the loopback interface.",
    ),
]
Latency = Annotated[
    float | None,
    typer.Option(
        "--link-latency-ms",
        min=0,
        help="With --hops sockets: the mean over the links of what a message takes each way; each "
        "link has its own, from half to one and a half of it.",
    ),
]
Loss = Annotated[
    float | None,
    typer.Option(
        "--link-loss",
        min=0,
        max=1,
        help="With --hops sockets: the probability that a message, or an answer, is lost.",
    ),
]
Deaths = Annotated[
    float | None,
    typer.Option(
        "--head-deaths",
        min=0,
        max=1,
        help="With --hops sockets: the probability that a node dies with a message that it is to "
        "hand on, after some of those below have it.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--hop-seed", help="With --hops sockets: what latencies and losses follow."),
]


def read_hops(
    way: Way,
    width: str | None,
    transport: Transport | None,
    latency_ms: float | None,
    loss: float | None,
    deaths: float | None,
    seed: int | None,
) -> Hops | None:
    """What cluster.json says of hops; None: they are taken in memory.

    Raises:
        LaunchError: an option that is for sockets alone, or a width that is none.
    """
    from understudy.model.cluster import FLAT, Hops
    from understudy.tool.cluster.run_dir import LaunchError

    if way is Way.MEMORY:
        given = {
            "--hop-width": width,
            "--hop-transport": transport,
            "--link-latency-ms": latency_ms,
            "--link-loss": loss,
            "--head-deaths": deaths,
            "--hop-seed": seed,
        }
        for option, value in given.items():
            if value is not None:
                raise LaunchError(f"{option} goes with --hops sockets")
        return None
    if width not in (None, "flat") and not (width.isdigit() and int(width)):
        raise LaunchError(f"--hop-width {width}: expected a number from 1, or flat")
    return Hops(
        FLAT if width == "flat" else int(width or 0),
        latency_ms or 0.0,
        loss or 0.0,
        deaths or 0.0,
        seed or 0,
        transport is Transport.TCP,
    )


def process_count(way: Way, noded: int, processes: int | None, nodes: int) -> int:
    """How many node daemons share the nodes.

    Raises:
        LaunchError: both options say so, or it is said of hops in memory.
    """
    from understudy.tool.cluster.run_dir import LaunchError

    if way is Way.MEMORY:
        if processes is not None:
            raise LaunchError("--hop-processes goes with --hops sockets; --noded is for both")
        return noded
    if processes is None:
        return noded if noded > 1 else min(os.cpu_count() or 1, nodes)
    if noded not in (1, processes):
        raise LaunchError("--noded and --hop-processes say the same with --hops sockets: use one")
    return processes
