"""Generic resources that a job asks for, by node, socket, task and job.

Place: scheduling, pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from understudy.model.gres import GresCount, is_unsaid, read_request

if TYPE_CHECKING:
    from understudy.controller.tables.job import Job


@dataclass(frozen=True, slots=True)
class GresNeeds:
    """What a job asks for. Names and types; counts by node, by task and for the whole job."""

    per_node: tuple[GresCount, ...] = ()
    per_task: tuple[GresCount, ...] = ()
    per_job: tuple[GresCount, ...] = ()
    cpus_per_gpu: int = 0
    memory_per_gpu_mb: int = 0
    binds: bool = False  # --gres-flags=enforce-binding: only cores near the devices
    ignores_cores: bool = False  # --gres-flags=disable-binding
    per_socket: tuple[GresCount, ...] = ()  # what of `per_node` was asked for by socket

    @classmethod
    def of(cls, job: Job) -> GresNeeds | None:
        """The job's needs; None if it asks for nothing. Its texts have been checked when it was
        submitted.
        """
        spec = job.spec
        if not (spec.gres or spec.tres_per_job or spec.tres_per_task or spec.tres_per_socket):
            return None
        per_node = read_request(spec.gres)
        sockets = 1 if spec.sockets_per_node is None else spec.sockets_per_node
        per_socket = tuple(
            GresCount(want.name, want.type, want.count * sockets)
            for want in read_request(spec.tres_per_socket)
        )
        per_node += per_socket
        needs = cls(
            per_node,
            read_request(spec.tres_per_task),
            read_request(spec.tres_per_job),
            # a default counts for nothing where tasks for each GPU were asked for (22.05.8)
            0
            if spec.ntasks_per_tres and is_unsaid(spec.cpus_per_tres)
            else _first_count(spec.cpus_per_tres),
            _first_count(spec.mem_per_tres),
            binds="enforce-binding" in spec.gres_flags,
            ignores_cores="disable-binding" in spec.gres_flags,
            per_socket=per_socket,
        )
        return needs if needs.wants else None

    @property
    def wants(self) -> tuple[GresCount, ...]:
        return self.per_node + self.per_task + self.per_job

    def most_on_node(self, want: GresCount) -> int:
        """How much of what the whole job wants one node gives at most: what each was asked for, if
        that was said.
        """
        return max(
            (
                each.count
                for each in self.per_node
                if (each.name, each.type) == (want.name, want.type)
            ),
            default=want.count,
        )

    def on_node(self, tasks: int) -> tuple[GresCount, ...]:
        """What a node with so many tasks must give, apart from its part of what is meant for the
        whole job.
        """
        return self.per_node + tuple(
            GresCount(want.name, want.type, want.count * tasks) for want in self.per_task
        )


def untyped_names(job: Job) -> frozenset[str]:
    """The names that the job asks for without a type."""
    needs = GresNeeds.of(job)
    return (
        frozenset()
        if needs is None
        else frozenset(want.name for want in needs.wants if not want.type)
    )


def _first_count(text: str) -> int:
    counts = read_request(text)
    return counts[0].count if counts else 0
