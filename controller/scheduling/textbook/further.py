"""What jobs hold beside processors, as the textbook policies count it: licences, space in burst
buffers, memory, devices, local disks.

Place: scheduling, pure. Each is one scalar amount in a pool, as processors are; on which nodes it
is does not matter to who plans with it, though it does to the selector, who may refuse.

SchedulerParameters=further_resources=NAME+NAME... says which count, in the words of
AccountingStorageTRES:

    license, license/NAME    all licences of slurm.conf and accounting, or that one
    mem                      memory that jobs ask for, MB
    gres/gpu, gres/NAME      devices of that name
    fs/disk                  local disks (TmpDisk, --tmp), MB
    bb, bb/POOL              space of all pools of burst buffers, or of that one
    none                     nothing

All licences and burst buffers count if nothing is said. A new kind is a class beside these, and a
line in `_KINDS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final

from understudy.controller.tables.burst_buffers import NO_SPACE
from understudy.controller.tables.gres_texts import counts_of
from understudy.controller.tables.licenses import REASON as LICENSES
from understudy.controller.tables.licenses import read_licenses
from understudy.controller.tables.shape import memory_of
from understudy.model import nodeset
from understudy.model.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition
    from understudy.controller.tables.tables import Tables

KEY: Final = "further_resources"
_DEFAULT: Final = "license+bb"


class Further(ABC):
    """One kind of thing that is counted beside processors. `nodes` are a pool's, as a bitmap;
    what does not belong to nodes, as licences, is the same for all of them.
    """

    reason: ClassVar[str] = "Resources"  # of a job for which only this is not enough

    def __init__(self, tables: Tables, kind: str, name: str = "") -> None:
        self.tables, self.of_kind = tables, name
        self.name = f"{kind}/{name}" if name else kind  # as in AccountingStorageTRES

    @abstractmethod
    def capacity(self, nodes: int) -> int:
        """What there is in all."""

    def left_to_jobs(self, nodes: int) -> int:
        """What of it is free once all that run have ended."""
        return self.capacity(nodes)

    @abstractmethod
    def free(self, nodes: int) -> int:
        """What nobody holds now; less than nothing where there has become less than is held."""

    @abstractmethod
    def of(self, job: Job, partition: Partition) -> int:
        """What a pending job asks for."""

    @abstractmethod
    def held(self, job: Job, nodes: int) -> int:
        """What a running job holds, of those nodes."""


class License(Further):
    """`Licenses=bb:1000`, `-L bb:400`."""

    reason = LICENSES

    def capacity(self, nodes: int) -> int:
        del nodes
        return self.tables.licenses.totals.get(self.of_kind, 0)

    def free(self, nodes: int) -> int:
        return self.capacity(nodes) - self.tables.licenses.used.get(self.of_kind, 0)

    def of(self, job: Job, partition: Partition) -> int:
        del partition
        text = job.spec.licenses
        if not text:
            return 0
        return sum(count for name, count in read_licenses(text) if name == self.of_kind)

    def held(self, job: Job, nodes: int) -> int:
        del nodes
        return self.tables.licenses.held(job.job_id, self.of_kind)


class BurstBuffer(Further):
    """`Pools=NAME:SIZE` of burst_buffer.conf, `--bb`. A persistent one that a job makes is its."""

    reason = NO_SPACE

    def capacity(self, nodes: int) -> int:
        del nodes
        return self.tables.burst_buffers.pools[self.of_kind].total

    def left_to_jobs(self, nodes: int) -> int:
        made = self.tables.burst_buffers.persistent.values()
        return self.capacity(nodes) - sum(each.space.get(self.of_kind, 0) for each in made)

    def free(self, nodes: int) -> int:
        del nodes
        return self.tables.burst_buffers.pools[self.of_kind].free

    def of(self, job: Job, partition: Partition) -> int:
        del partition
        return self.tables.burst_buffers.wanted(job).get(self.of_kind, 0)

    def held(self, job: Job, nodes: int) -> int:
        del nodes
        buffer = self.tables.burst_buffers.buffers.get(job.job_id)
        return 0 if buffer is None else buffer.space.get(self.of_kind, 0)


class Memory(Further):
    """In MB. A job that says nothing of memory, nor its partition, asks for none. Nobody holds any
    where the selector gives none out: then nobody lacks it.
    """

    is_consumed = True

    def capacity(self, nodes: int) -> int:
        return _sum(self.tables.nodes.memory, nodes)

    def free(self, nodes: int) -> int:
        return _sum(self.tables.nodes.free_memory, nodes)

    def of(self, job: Job, partition: Partition) -> int:
        if not self.is_consumed:
            return 0
        each_node, each_cpu = memory_of(job, partition)
        return each_cpu * job.min_cpus if each_cpu is not None else (each_node or 0) * job.min_nodes

    def held(self, job: Job, nodes: int) -> int:
        if job.allocation is None or not self.is_consumed:
            return 0
        return sum(
            group.memory_mb * (group.nodes & nodes).bit_count() for group in job.allocation.groups
        )


class Gres(Further):
    """Devices of a name, `gpu`, or of a name and type, `gpu:a100`."""

    def capacity(self, nodes: int) -> int:
        gres = self.tables.nodes.gres
        return 0 if gres is None else _sum(gres.total.get(self.of_kind), nodes)

    def free(self, nodes: int) -> int:
        return _sum(self.tables.nodes.free_gres(self.of_kind), nodes)

    def of(self, job: Job, partition: Partition) -> int:
        del partition
        return counts_of(job).get(f"gres/{self.of_kind}", 0)

    def held(self, job: Job, nodes: int) -> int:
        if job.allocation is None:
            return 0
        name, _, kind = self.of_kind.partition(":")
        return sum(
            each.amount * (group.nodes & nodes).bit_count()
            for group in job.allocation.groups
            for each in group.gres
            if each.name == name and kind in ("", each.type)
        )


class LocalDisk(Further):
    """TmpDisk of the nodes, in MB. Slurm has jobs share it; here what a job asked for is its."""

    def capacity(self, nodes: int) -> int:
        return _sum(self.tables.nodes.tmp_disk, nodes)

    def free(self, nodes: int) -> int:
        return self.capacity(nodes) - sum(
            self.held(job, nodes) for job in self.tables.running.values()
        )

    def of(self, job: Job, partition: Partition) -> int:
        del partition
        return (job.spec.tmp_disk_mb or 0) * job.min_nodes

    def held(self, job: Job, nodes: int) -> int:
        each = job.spec.tmp_disk_mb
        return each * (job.allocation.nodes & nodes).bit_count() if each and job.allocation else 0


def _sum(vector: NDArray[np.int64] | None, nodes: int) -> int:
    return 0 if vector is None else int(vector[nodeset.to_flags(nodes, len(vector))].sum())


def _licenses(tables: Tables, name: str) -> Iterator[Further]:
    # one of a name that nobody knows may come with accounting
    for each in [name] if name else tables.licenses.totals:
        yield License(tables, "license", each)


def _burst_buffers(tables: Tables, name: str) -> Iterator[Further]:
    pools = tables.burst_buffers.pools
    for each in [name] if name else pools:
        if each not in pools:
            raise ConfigError(f"SchedulerParameters {KEY}=bb/{each}: there is no such pool")
        yield BurstBuffer(tables, "bb", each)


def _gres(tables: Tables, name: str) -> Iterator[Further]:
    gres = tables.nodes.gres
    if gres is None or name.partition(":")[0] not in gres.names:
        raise ConfigError(f"SchedulerParameters {KEY}=gres/{name}: GresTypes names no such devices")
    yield Gres(tables, "gres", name)


_KINDS: Final[Mapping[str, Callable[[Tables, str], Iterator[Further]]]] = {
    "license": _licenses,
    "mem": lambda tables, _: iter([Memory(tables, "mem")]),
    "gres": _gres,
    "fs": lambda tables, _: iter([LocalDisk(tables, "fs", "disk")]),
    "bb": _burst_buffers,
}
_NAMED: Final = {
    "license": None,
    "bb": None,
    "mem": False,
    "gres": True,
    "fs": True,
}  # None: either


def named_kinds(parameters: Mapping[str, str], key: str = KEY) -> list[tuple[str, str]]:
    """(kind, name) of the resources that a word of SchedulerParameters names, as
    `("license", "bb")`.

    Raises:
        ConfigError: a word that names none.
    """
    text = parameters.get(key, "") or _DEFAULT
    found = []
    for word in text.split("+"):
        kind, slash, name = word.strip().partition("/")
        kind = kind.lower()
        if (kind, name) == ("none", "") and text.strip().lower() == "none":
            continue
        wants_name = _NAMED.get(kind, True)
        if (
            kind not in _KINDS
            or (slash and not name)
            or (wants_name is not None and wants_name != bool(name))
            or (kind == "fs" and name != "disk")
        ):
            raise ConfigError(
                f"SchedulerParameters {key}={text}: {word.strip()!r} is none of license, "
                "license/NAME, mem, gres/NAME, fs/disk, bb, bb/POOL, none"
            )
        found.append((kind, name))
    return found


def further_resources(
    tables: Tables, parameters: Mapping[str, str], *, consumes_memory: bool = True
) -> tuple[Further, ...]:
    """Those that count, as there are now; each once. `consumes_memory`: the selector does.

    Raises:
        ConfigError: a word that names none.
    """
    found: dict[str, Further] = {}
    for kind, name in named_kinds(parameters):
        for each in _KINDS[kind](tables, name):
            if isinstance(each, Memory):
                each.is_consumed = consumes_memory
            found.setdefault(each.name, each)
    return tuple(found.values())
