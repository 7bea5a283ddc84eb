"""What must hold of a cluster whatever its configuration, after every step:
controller/edge/validate.py, and what jobs hold told from themselves.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from understudy.controller.edge.validate import validate
from understudy.controller.jobs.gang import Gang
from understudy.controller.tables.licenses import read_licenses
from understudy.controller.tables.shared_cores import cores_of
from understudy.model.reservations import REPLACE
from understudy.model.states import JobState, NodeFlag, NodeState
from understudy.tool.faults.limits_held import LimitsHeld

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job


class Invariants:
    """Looks at one controller's tables, and remembers what it saw last."""

    def __init__(self, core: Core) -> None:
        self.core = core
        # a controller that has come back has jobs that another one has started
        self.seen = {job_id: (job.state, job.restarts) for job_id, job in core.tables.jobs.items()}
        self.limits = LimitsHeld(core)

    def check(self) -> None:
        """Raise AssertionError if something is not as it must be."""
        validate(self.core)
        self._devices()
        self._licenses()
        self._buffers()
        self._running()
        self._nodes()
        self._changes()
        self.limits.check()

    def _holders(self) -> list[tuple[Job, int]]:
        """(job, nodes that it still holds)."""
        found = []
        for listed in (self.core.tables.running, self.core.completing):
            for job in listed.values():
                assert job.holding is not None
                found.append(
                    (
                        job,
                        job.completing_nodes & job.holding.nodes
                        if job.is_completing
                        else job.holding.nodes,
                    )
                )
        return found

    def _devices(self) -> None:
        table = self.core.tables.nodes.gres
        if table is None:
            return
        used: Counter[tuple[str, int]] = Counter()
        devices: dict[tuple[str, int], int] = {}
        for job, held in self._holders():
            assert job.holding is not None
            for share in job.holding.shares:
                if not held >> share.node & 1:
                    continue
                for each in share.gres:
                    key = (each.name, share.node)
                    used[key] += each.amount
                    if (
                        each.devices
                        and not table.used_parts.get(each.name, [{}] * (share.node + 1))[share.node]
                    ):
                        assert not devices.get(key, 0) & each.devices, (
                            f"a device given twice: {key} {job.story}"
                        )
                        devices[key] = devices.get(key, 0) | each.devices
        for name in table.names:
            if name not in table.total or name in table.shared:
                continue
            for node, (total, free) in enumerate(
                zip(table.total[name].tolist(), table.free[name].tolist(), strict=True)
            ):
                taken = used.get((name, node), 0)
                assert free == total - taken, (
                    f"{name} on node {node}: {total} in all, {taken} with jobs, {free} free"
                )
                assert table.used_devices[name][node] & devices.get((name, node), 0) == devices.get(
                    (name, node), 0
                ), f"devices of {name} on node {node}"

    def _licenses(self) -> None:
        pool = self.core.tables.licenses
        used: Counter[str] = Counter()
        for job in self.core.tables.running.values():
            if job.spec.licenses:
                for name, count in read_licenses(job.spec.licenses):
                    used[name] += count
        for name in {*used, *pool.used}:
            assert used[name] == pool.used.get(name, 0), (
                f"licences {name}: jobs have {used[name]}, the pool says {pool.used.get(name, 0)}"
            )

    def _buffers(self) -> None:
        """No pool gives more than it has; who runs has what he asked for."""
        table = self.core.tables.burst_buffers
        for pool in table.pools.values():
            assert 0 <= pool.used <= pool.total, f"pool {pool.name}: {pool.used} of {pool.total}"
            assert pool.used % pool.granularity == 0, f"pool {pool.name}: {pool.used} given"
        for job in self.core.tables.running.values():
            if job.burst_buffer is not None:
                held = table.buffers[job.job_id].space
                for name, amount in job.burst_buffer.sizes:
                    assert held[name] >= amount, f"{held} of {amount} in {name}: {job.story}"

    def _running(self) -> None:
        """No core is under two jobs that really run, unless they agreed to share it side by side or
        an administrator resumed one of them.
        """
        core = self.core
        under: dict[tuple[str, int], int] = {}
        assert core.gang is None or isinstance(core.gang, Gang)
        lists = () if core.gang is None else core.gang.lists.values()
        # it is not their turn
        resumed = {each.job.job_id for members in lists for each in members if not each.runs}
        for job in core.tables.running.values():
            assert job.allocation is not None
            assert job.start_time is not None
            assert job.start_time <= core.time.now(), f"starts in the future: {job.story}"
            shared = job.allocation.shared_in
            if (
                job.state is JobState.SUSPENDED
                or job.job_id in core.crowded
                or job.job_id in resumed
                or (shared and core.gang is None)
            ):
                continue
            for node, mask in cores_of(job.allocation).items():
                assert not under.get((shared, node), 0) & mask, (
                    f"cores of node {node} under two jobs: {job.story}"
                )
                under[shared, node] = under.get((shared, node), 0) | mask

    def _nodes(self) -> None:
        table = self.core.tables.nodes
        for node in table.nodes:
            busy = table.job_count[node.index] > 0
            if (
                node.state in (NodeState.IDLE, NodeState.ALLOCATED)
                and not node.flags & NodeFlag.COMPLETING
            ):
                shown = node.state is NodeState.ALLOCATED
                assert not shown or busy, f"{node.name} is allocated, and no job is there"

    def _changes(self) -> None:
        """No run of a job comes back; who starts does so where he may."""
        tables = self.core.tables
        for job_id, job in tables.jobs.items():
            now = (job.state, job.restarts)
            before = self.seen.get(job_id)
            if before == now:
                continue
            self.seen[job_id] = now
            if before is not None:
                assert job.restarts >= before[1], (
                    f"restarts went back from {before[1]}: {job.story}"
                )
                over = (
                    before[0].is_finished
                    and not job.is_pending
                    and job.restarts == before[1]
                    and job.state is not before[0]
                )
                assert not over, f"was {before[0].name}: {job.story}"
            if job.state is JobState.RUNNING and (
                before is None or before[0] is JobState.PENDING or before[1] != job.restarts
            ):
                self._started(job)

    def _started(self, job: Job) -> None:
        core = self.core
        now = core.time.now()
        assert job.allocation is not None
        partition = core.tables.partitions[job.partition]
        assert not job.allocation.nodes & ~partition.nodes, f"outside of its partition: {job.story}"
        assert job.required_nodes & ~job.allocation.nodes == 0, (
            f"without nodes that it needs: {job.story}"
        )
        assert not job.allocation.nodes & job.excluded_nodes, (
            f"on nodes that it must not have: {job.story}"
        )
        assert not job.held_by, f"was held: {job.story}"
        # An administrator may give more than there are to one that runs, as in Slurm.
        pool = core.tables.licenses
        for name, _ in read_licenses(job.spec.licenses) if job.spec.licenses else ():
            assert pool.used[name] <= pool.totals.get(name, 0), (
                f"licences {name}: {pool.used[name]} of {pool.totals.get(name, 0)}: {job.story}"
            )
        devices = core.tables.nodes.gres
        for share in job.allocation.shares:
            for held in share.gres:
                left = (
                    devices.free.get(held.name)
                    if devices is not None and held.name not in devices.shared
                    else None
                )
                assert left is None or left[share.node] >= 0, (
                    f"{held.name} on node {share.node}: more given than there are: {job.story}"
                )
        for reservation in core.tables.reservations:
            if not reservation.is_active(now) or reservation.start(now) == int(now):
                continue
            if job.used_reservation == reservation.name:
                # one that has taken other nodes by now: those of its jobs are in use
                if reservation.binds_nodes and not reservation.flags & REPLACE:
                    assert not job.allocation.nodes & ~reservation.nodes, (
                        f"not on the nodes of {reservation.name}: {job.story}"
                    )
                continue
            own = core.tables.reservations.by_name.get(job.used_reservation)
            if own is not None or reservation.lets_overlap(job):
                continue
            if reservation.cores is None:
                assert not job.allocation.nodes & reservation.nodes, (
                    f"on nodes of {reservation.name}: {job.story}"
                )
                continue
            for node, mask in cores_of(job.allocation).items():
                assert not mask & reservation.cores.get(node, 0), (
                    f"on cores of {reservation.name}: {job.story}"
                )
