"""Saved jobs after slurm.conf has changed: they name nodes by their places in the table of nodes,
which is another when nodes came or went.

Place: saved, between the store and the tables. The order of the nodes is saved as a document of its
own; where it differs from slurm.conf's when the state is read, what jobs say of nodes is put to
their new places. A job that holds a node which is gone, or whose batch host would be another, has
no allocation then, and is lost when it comes back (recover.py). If it had asked for that node by
name it is not requeued, as 22.05.8 does: it would run where it was not to; one that waits for such
a node is lost, too. A node that a job does not want, and that comes back, is unwanted again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from understudy.model import hostlist, nodeset

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.step import Step

SAVED_AS: Final = "node_order"


def encode(core: Core) -> bytes:
    """The names of all nodes, in the table's order."""
    return hostlist.compress([each.name for each in core.tables.nodes.nodes], sort=False).encode()


def wants_what_is_gone(core: Core, job: Job) -> bool:
    """Whether the job asked by name for nodes of which slurm.conf does not have all any more."""
    try:
        core.names.to_bitmap(job.spec.required_nodes)
    except ValueError:
        return True
    return False


class Moves:
    """From the places of nodes in a saved order to those in the table."""

    def __init__(self, saved: bytes, core: Core) -> None:
        self._core = core
        index_of = core.tables.nodes.index_of
        # None: it is gone
        self._now = [index_of.get(name) for name in hostlist.expand(saved.decode())]

    def job(self, job: Job) -> None:
        """Have the job name nodes by their places now."""
        if wants_what_is_gone(self._core, job):
            job.required_nodes, job.requeue = 0, False
        job.required_nodes = self._moved(job.required_nodes)
        job.excluded_nodes = self._moved(job.excluded_nodes) | self._known(job.spec.excluded_nodes)
        if job.allocation is not None:
            job.allocation = self._allocation(job.allocation)
        if job.allocation is not None:  # else it is lost, with all that it holds
            job.completing_nodes = self._moved(job.completing_nodes)
            job.prolog_nodes = self._moved(job.prolog_nodes)
        if job.steps:
            moved = {number: self._step(step) for number, step in job.steps.items()}
            job.steps = {number: step for number, step in moved.items() if step is not None}

    def _allocation(self, allocation: Allocation) -> Allocation | None:
        nodes = self._moved(allocation.nodes)
        if (
            self._are_gone(allocation.nodes)
            or nodeset.first(nodes) != self._now[allocation.first_node]
        ):
            return None
        groups = tuple(
            structs.replace(group, nodes=self._moved(group.nodes)) for group in allocation.groups
        )
        return structs.replace(allocation, nodes=nodes, groups=groups)

    def _step(self, step: Step) -> Step | None:
        """None if a node of it is gone: then its job is lost."""
        places = []
        for place in step.places:
            node = self._now[place.node]
            if node is None:
                return None
            places.append(place._replace(node=node))
        step.places, step.open_nodes = places, self._moved(step.open_nodes)
        return step

    def _known(self, names: str) -> int:
        index_of = self._core.tables.nodes.index_of
        found = (index_of.get(name) for name in hostlist.expand(names)) if names else ()
        return nodeset.from_positions([index for index in found if index is not None])

    def _moved(self, nodes: int) -> int:
        moved = 0
        for index in nodeset.indices(nodes):
            if (now := self._now[index]) is not None:
                moved |= 1 << now
        return moved

    def _are_gone(self, nodes: int) -> bool:
        return any(self._now[index] is None for index in nodeset.indices(nodes))
