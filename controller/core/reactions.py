"""What happens to jobs, and who reacts to it. What makes it happen knows these lists alone; who is
in them, and in which order, is said in one place (`edge/reactions.py`).

Place: core. It must not know who reacts. Prior art: Dask's `worker_state_machine.py`, in which no
transition calls another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.tables.job import Job
    from understudy.controller.tables.job_states import JobEvent

    Reaction = Callable[[Any, Job, float], None]


class End(NamedTuple):
    """How a run ended. `lost_nodes`: a bitmap of those that are clean already, or do not answer."""

    event: JobEvent
    reason: str
    lost_nodes: int = 0


@dataclass(slots=True, eq=False)
class Reactions:
    """The lists, in the order of a job's life; each function is given the core (untyped here, as it
    holds these), the job, what the comment says, and the time; who needs less of it takes `*_`.
    """

    # it is about to start: the first that gives a reason keeps it from that; without a time
    starting: list[Callable[[Any, Job], str]] = field(default_factory=list)
    # it has its nodes; then, when all components of its whole have theirs
    allocated: list[Reaction] = field(default_factory=list)
    started: list[Reaction] = field(default_factory=list)
    # how: its run is over, and its nodes are to be cleaned up
    ended: list[Callable[[Any, Job, End, float], None]] = field(default_factory=list)
    # which (a bitmap): it has given back nodes
    freed: list[Callable[[Any, Job, int, float], None]] = field(default_factory=list)
    # it holds nothing any more: the first that says yes has taken it, and else it is over
    emptied: list[Callable[[Any, Job, float], bool]] = field(default_factory=list)
    over: list[Reaction] = field(default_factory=list)
    # it is about to go back into the queue; it is there
    requeued: list[Reaction] = field(default_factory=list)
    queued: list[Reaction] = field(default_factory=list)
    # anything has happened, to jobs or not, that could let one start; without a job or a time
    changed: list[Callable[[Any], None]] = field(default_factory=list)
