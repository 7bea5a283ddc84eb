"""A controller's core with burst buffers, whose stages the test ends by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controller_harness import Harness, make_tables

from understudy.controller.jobs.start import Planning
from understudy.controller.scheduling.slurm.backfill import Backfill
from understudy.controller.tables.burst_buffers import BurstBuffers, Pool
from understudy.controller.tables.settings import Settings
from understudy.model.burst_buffer_conf import BurstBufferConf

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.jobs.buffers import Stage
    from understudy.controller.tables.burst_buffers import Buffer
    from understudy.controller.tables.job import Job

GIB = 1 << 30


class BufferHarness(Harness):
    """`stages`: those that run, by job id. `stages_buffers`: under Slurm's backfill, else under a
    policy that stages nothing in.
    """

    def __init__(
        self,
        *pools: Pool,
        kind: str = "lua",
        stages_buffers: bool = True,
        conf: BurstBufferConf | None = None,
        nodes: int = 4,
        **settings: Any,
    ) -> None:
        self.stages: dict[int, tuple[Stage, Callable[[str], None]]] = {}
        tables = make_tables(nodes)
        given = pools or (Pool("fast", 10 * GIB, GIB), Pool("items", 10))
        tables.burst_buffers = BurstBuffers(kind, {pool.name: pool for pool in given})
        settings.setdefault("min_job_age_s", 0)
        super().__init__(
            tables, settings=Settings(burst_buffer=conf or BurstBufferConf(), **settings)
        )
        core = self.core
        core.run_stage = lambda stage, done: self.stages.update({stage.job.job_id: (stage, done)})
        if stages_buffers:
            core.policy = Backfill(tables, core.selector, Planning(core), {})

    @property
    def table(self) -> BurstBuffers:
        return self.core.tables.burst_buffers

    def ask_for(self, bb: str, **spec: Any) -> Job:
        """A job with such directive lines."""
        return self.submit(extra={"bb": bb}, **spec)

    def stage_of(self, job: Job) -> str:
        """The stage that runs for the job, "" if none does."""
        found = self.stages.get(job.job_id)
        return found[0].name if found else ""

    def end_stage(self, job: Job, message: str = "") -> None:
        """The stage that runs for the job ends."""
        _, done = self.stages.pop(job.job_id)
        done(message)
        self.run(0)

    def buffer(self, job: Job) -> Buffer | None:
        return self.table.buffers.get(job.job_id)

    def stage_in(self, job: Job) -> None:
        """All up to the start of the job, given that there are nodes for it."""
        self.run(60)
        for _ in ("setup", "data_in"):
            self.end_stage(job)
        self.run(60)

    def begin(self, job: Job) -> None:
        """All up to its script."""
        self.stage_in(job)
        self.end_stage(job)
        self.acknowledge()

    def tear_down(self, job: Job) -> None:
        """All behind it."""
        while self.stage_of(job):
            self.end_stage(job)
