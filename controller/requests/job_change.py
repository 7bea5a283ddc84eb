"""One update of one job: what handlers of `scontrol update jobid=...` get to work with.

Place: requests, below update_jobs and update_job_layout, which have a function for
each key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from understudy.model.errors import ErrorCode, SlurmError

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job


class Change:
    """The job, and what is to become of its specification.

    `by_admin`: an operator asks, who may do more than the job's owner; `of_cluster`: even an
    administrator. `asked`: the whole line, in small letters and without signs. `complaint`: what is
    said when all is changed.
    """

    __slots__ = ("asked", "by_admin", "complaint", "core", "job", "now", "of_cluster", "spec")

    def __init__(
        self, core: Core, job: Job, now: float, *, by_admin: bool, of_cluster: bool
    ) -> None:
        self.core, self.job, self.now, self.by_admin, self.of_cluster = (
            core,
            job,
            now,
            by_admin,
            of_cluster,
        )
        self.spec: dict[str, Any] = {}  # fields of the job's spec to replace
        self.asked: dict[str, str] = {}
        self.complaint: ErrorCode | None = None

    def lift(self, what: str) -> None:
        """What an administrator sets, limits of associations and QOS do not matter to."""
        if self.by_admin and self.core.job_limits is not None and what not in self.job.lifted:
            self.job.lifted = (*self.job.lifted, what)

    def need_pending(self) -> None:
        if not self.job.is_pending:
            raise SlurmError(ErrorCode.NOT_PENDING)

    def need_admin(self) -> None:
        if not self.by_admin:
            raise SlurmError(ErrorCode.ACCESS_DENIED)

    def doubt_cpus(self) -> None:
        """More CPUs than its partition has in all: that is said, and stays asked for."""
        tables = self.core.tables
        partition = tables.partitions.get(self.job.partition)
        nodes = 0 if partition is None else partition.nodes
        total = sum((kind.nodes & nodes).bit_count() * kind.cpus for kind in tables.nodes.kinds)
        if self.job.min_cpus > total:
            self.complaint = ErrorCode.NOT_AVAILABLE_NOW

    def set_extra(self, key: str, text: str) -> None:
        """An option that is kept as text, "" for none."""
        extra = dict(self.spec.get("extra", self.job.spec.extra))
        if text:
            extra[key] = text
        else:
            extra.pop(key, None)
        self.spec["extra"] = extra
