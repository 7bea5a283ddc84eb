"""The jobs that wait, as plans see them: on which nodes each may run, and pools of those who
compete.

Place: scheduling, pure. Each job has a set of nodes that would do for it, by its partitions, its
features, the nodes that it names or excludes. Jobs whose sets have nodes in common are in one pool;
within it the CPUs of each set are a resource of its own, and a job takes its CPUs out of every set
that contains its own. (So many jobs at once then fit as Hall's theorem of marriages asks of sets
that lie in each other or are disjoint. Of others it may be too many: the selector refuses one.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from understudy.controller.scheduling.select.request import Request, wants_whole_nodes
from understudy.controller.scheduling.slurm.main_pass import run_length
from understudy.model import nodeset

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from understudy.controller.scheduling.api import Selector
    from understudy.controller.scheduling.slurm.queue import Record
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.reservation import Reservation
    from understudy.controller.tables.tables import Tables


@dataclass(slots=True, eq=False)
class Waiting:
    """A job, or all components of a heterogeneous one, with its records in the queue's order.
    `nodes` (a bitmap) would do for it; `is_plain`: any CPUs on them would.
    """

    members: list[list[Record]]  # of each component
    nodes: int
    processors: int
    length_s: int
    is_plain: bool
    # jobs of another come before it, or behind it, in every order
    group: tuple[int, int]

    @property
    def job(self) -> Job:
        """Or the first component."""
        return self.members[0][0].job

    @property
    def jobs(self) -> list[Job]:
        """All components."""
        return [records[0].job for records in self.members]

    @property
    def choice(self) -> int:
        """How many nodes would do for it."""
        return self.nodes.bit_count()

    @property
    def submit(self) -> int:
        """The second in which it was submitted."""
        return int(self.job.submit_time)

    @property
    def reservation(self) -> Reservation | None:
        """The one in which it is to run."""
        return self.members[0][0].reservation


class Place(NamedTuple):
    """Where jobs compete: in a reservation ("": outside of all), on nodes."""

    reservation: str
    nodes: int


def is_plain(job: Job, tables: Tables, nodes: int) -> bool:
    """Whether the job can run wherever there are as many free CPUs."""
    spec, kind = job.spec, tables.nodes.kind_of(nodes)
    return not (
        (job.cpus_per_task > 1 and (kind is None or kind.cpus > 1))
        or (job.min_nodes > 1 and (kind is None or kind.cpus > 1))
        or job.max_nodes is not None
        or job.required_nodes
        or job.exclusive
        or job.memory_per_cpu_mb
        or job.memory_per_node_mb
        or spec.gres
        or spec.ntasks_per_node
        or spec.contiguous
        or spec.tmp_disk_mb
        or "*" in spec.features
        or spec.switches is not None
    )


def waiting_of(members: list[list[Record]], tables: Tables, selector: Selector) -> Waiting:
    """A job by its records, of which there is one at least for each component."""
    table = tables.nodes
    # a second at least, also of a limit that has been taken down to none
    everything, processors, length_s, plain = 0, 0, 1, len(members) == 1
    for records in members:
        here = 0
        for record in records:
            here |= _usable(record, tables)
        job, partition = records[0].job, records[0].partition
        cpus = max(record.cpus for record in records)
        if selector.whole_nodes or wants_whole_nodes(job, partition):
            kind = table.kind_of(here)
            each = kind.cpus if kind is not None else 1
            cpus = max(job.min_nodes, -(-cpus // each)) * each
        if job.required_nodes and (
            int(table.cpus[nodeset.to_flags(job.required_nodes, len(table.nodes))].sum()) >= cpus
            and job.required_nodes.bit_count() >= job.min_nodes
        ):
            here &= job.required_nodes  # it needs no other ones
        everything |= here
        processors += cpus
        length_s = max(length_s, *(run_length(job, record.partition) for record in records))
        plain = plain and is_plain(job, tables, here)
    job = members[0][0].job
    tier = max(record.partition.priority_tier for record in members[0])
    group = (tier, job.admin_priority or 0)
    return Waiting(members, everything, processors, length_s, plain, group)


def _usable(record: Record, tables: Tables) -> int:
    """The nodes that would do for the job, if they were free."""
    job, partition, table = record.job, record.partition, tables.nodes
    nodes = partition.nodes & table.up_nodes if partition.can_schedule else 0
    reservation = record.reservation
    if reservation is not None and reservation.binds_nodes:
        nodes &= reservation.nodes
    if job.spec.features or record.prefers or job.excluded_nodes:
        request = Request.of(record.ask(nodes), table)
        if request is None:
            return 0
        allowed = 0
        for each in request.choices:
            allowed |= each
        nodes &= allowed
    return nodes


@dataclass(slots=True, eq=False)
class Queue:
    """All that wait, by job, kept from pass to pass; `forget` when something else than submissions
    and ends has happened.
    """

    tables: Tables
    selector: Selector
    places: list[Place] = field(default_factory=list)
    homeless: list[Waiting] = field(default_factory=list)  # of the last pass: no node would do
    _known: dict[int, Waiting] = field(default_factory=dict)
    _place_of: dict[tuple[str, int], int] = field(default_factory=dict)

    def forget(self) -> None:
        """Make everything anew."""
        self.places = []
        self._known.clear()
        self._place_of.clear()

    def by_place(self, records: Iterable[Record], now: float) -> list[tuple[Place, list[Waiting]]]:
        """The jobs that may be planned, in the records' order, by where they compete."""
        waiting = list(self._waiting(records, now))
        keys = [(_name(each.reservation), each.nodes) for each in waiting]
        if any(key not in self._place_of for key in keys):
            self._group(keys)
        found: list[list[Waiting]] = [[] for _ in self.places]
        for key, each in zip(keys, waiting, strict=True):
            found[self._place_of[key]].append(each)
        return [(place, jobs) for place, jobs in zip(self.places, found, strict=True) if jobs]

    def _waiting(self, records: Iterable[Record], now: float) -> Iterable[Waiting]:
        own: dict[int, dict[int, list[Record]]] = {}
        tasks: dict[int, int] = {}  # of arrays that may not run all at once
        self.homeless = []
        for record in records:
            job = record.job
            if not job.is_pending or not job.is_eligible(now):
                continue
            key, array = job.job_id if job.het is None else job.het.job_id, job.array
            if array is not None and array.limit and key not in own:
                started = tasks.get(array.job_id, array.running)
                if started >= array.limit:
                    continue
                tasks[array.job_id] = started + 1
            own.setdefault(key, {}).setdefault(job.het_offset, []).append(record)
        for key, parts in own.items():
            known = self._known.get(key)
            if known is None:
                job = next(iter(parts.values()))[0].job
                if job.het is not None and len(parts) < len(job.het.components):
                    continue
                members = [parts[offset] for offset in sorted(parts)]
                known = self._known[key] = waiting_of(members, self.tables, self.selector)
            if known.nodes:
                yield known
            else:
                self.homeless.append(known)
        if len(self._known) > 2 * len(own) + 100:
            self._known = {key: each for key, each in self._known.items() if key in own}

    def _group(self, keys: Sequence[tuple[str, int]]) -> None:
        """Make one place of all that overlap."""
        places: list[Place] = []
        for name, own in dict.fromkeys([*self._place_of, *keys]):
            nodes = own
            overlapping = [each for each in places if each.reservation == name and each.nodes & own]
            for each in overlapping:
                nodes |= each.nodes
            first = places.index(overlapping[0]) if overlapping else len(places)
            places = [each for each in places if each not in overlapping]
            places.insert(first, Place(name, nodes))
        self.places = places
        self._place_of = {
            key: next(
                i
                for i, place in enumerate(places)
                if place.reservation == key[0] and place.nodes & key[1]
            )
            for key in dict.fromkeys([*self._place_of, *keys])
        }


def _name(reservation: Reservation | None) -> str:
    return "" if reservation is None else reservation.name
