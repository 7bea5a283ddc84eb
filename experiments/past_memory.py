"""The memory that a past job asked for: of each CPU or of each node, how much, and how that is told
from what it got.

Place: pure; past_options uses it. What accounting keeps is the amount of the whole job in most
versions, so whether it was asked for by CPU or by node is told by what more CPUs or nodes than were
asked for have brought with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from understudy.experiments.sacct_words import megabytes, tres, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.experiments.past import Count
    from understudy.experiments.past_options import Asked, Default

    Said = Mapping[str, str | None]


class Memory(NamedTuple):
    """So many megabytes of each CPU, or of each node."""

    mb: int
    is_of_cpus: bool

    @property
    def option(self) -> str:
        """As sbatch takes it."""
        return f"--mem-per-cpu={self.mb}M" if self.is_of_cpus else f"--mem={self.mb}M"


def memory_of(job: Asked, given: Said, default: Default) -> Memory | None:
    """What the columns tell; None: nothing, or the line (`given`) tells."""
    if any(name in given for name in ("mem", "mem_per_cpu", "mem_per_gpu")):
        return None
    wanted = tres(job.req_tres)
    size = megabytes(wanted.get("mem", "")) or megabytes(job.memory)
    old = megabytes(job.memory)
    if old is not None and old[1]:
        size = old
    got = megabytes(tres(job.alloc_tres).get("mem", "")) if job.has_run else None
    nodes = whole(wanted.get("node")) or job.min_nodes or job.nodes or 1
    cpus = whole(wanted.get("cpu")) or job.req_cpus or 0
    if size is None and got and job.nodes:  # no column tells what was asked for
        size, nodes, cpus = got, job.nodes, job.cpus or 0
    if size is None or (not size[0] and size[1] != "n"):
        return None
    amount, per = size
    if per:
        return Memory(amount, is_of_cpus=per == "c")
    if got and not wanted.get("node") and not job.min_nodes:
        nodes = _nodes_of_memory(job, amount, got[0]) or nodes
    is_whole = given.get("exclusive", "") is None
    if (
        cpus
        and amount % cpus == 0
        and _is_of_cpus(job, amount, nodes, cpus, default, is_whole=is_whole)
    ):
        return Memory(amount // cpus, is_of_cpus=True)
    return Memory(-(-amount // nodes), is_of_cpus=False)


def of_each_cpu(given: Said, memory: Memory | None, default: Default) -> int | None:
    """Megabytes of each CPU, where the line (`given`) or the columns (`memory`) tell of so many, or
    where neither says anything and the partition gives it so.
    """
    if given.get("mem_per_cpu"):
        size = megabytes(given["mem_per_cpu"] or "")
        return size[0] if size else None
    if memory is not None:
        return memory.mb if memory.is_of_cpus else None
    if "mem" in given or "mem_per_gpu" in given:
        return None
    return next((amount for amount, per in default.memory if per == "c"), None)


def as_it_got(job: Asked, counts: Count, default: Default) -> Asked:
    """Of a job without a submission line: as many processors as it got, where whole cores (sockets,
    nodes) do not tell why these were more than it asked for.
    """
    if (
        not job.has_run
        or not job.cpus
        or not job.req_cpus
        or job.cpus
        <= max(job.req_cpus, job.nodes or 1) + (default.unit_cpus - 1) * (job.nodes or 1)
        or job.cpus > default.most_cpus
    ):
        return job
    counts.notes[
        "more processors than it asked for, without a submission line to say why "
        "(--exclusive?): as many are asked for"
    ] += 1
    wanted, got = tres(job.req_tres), megabytes(tres(job.alloc_tres).get("mem", ""))
    memory, amount = job.memory, megabytes(wanted.get("mem", "") or job.memory)
    nodes = whole(wanted.get("node")) or job.min_nodes or 1
    if not got and amount and not amount[1]:  # which is not given: of so many it would be more
        memory = f"{-(-amount[0] // nodes)}Mn"
    if got and amount and not amount[1] and job.nodes:
        is_of_cpus = _is_of_cpus(job, amount[0], nodes, job.req_cpus, default)
        memory = f"{got[0] // job.cpus}Mc" if is_of_cpus else f"{got[0] // job.nodes}Mn"
    return job._replace(req_cpus=job.cpus, memory=memory)


def _nodes_of_memory(job: Asked, amount: int, got: int) -> int:
    """For how many nodes a job asked for `amount`, which got so much of more; 0: not known."""
    if not got or not job.nodes or got * (job.req_cpus or 0) == amount * (job.cpus or 0):
        return 0
    nodes, rest = divmod(amount * job.nodes, got)
    return nodes if not rest and nodes <= job.nodes else 0


def _is_of_cpus(
    job: Asked, amount: int, nodes: int, cpus: int, default: Default, *, is_whole: bool = False
) -> bool:
    """Whether memory was asked for each CPU: of more CPUs or nodes than the job asked for (whole
    cores, `--exclusive`) it got more accordingly. Where that is open it is as the configuration
    gives it to who asks for none, if that is as much; else of nodes if each has one CPU of the job,
    or all: of each CPU, whole nodes might be asked for more memory than they have.
    """
    if cpus < nodes:  # of which a partition gives more at least (MinNodes)
        return False
    got = megabytes(tres(job.alloc_tres).get("mem", ""))
    if got and job.has_run and job.nodes and job.cpus:
        is_of_nodes, is_of_cpus = (
            got[0] * nodes == amount * job.nodes,
            got[0] * cpus == amount * job.cpus,
        )
        if is_of_nodes != is_of_cpus:
            return is_of_cpus
        if not is_of_nodes and job.nodes > nodes:
            return True
    is_nodes_default, is_cpus_default = (
        any(kind == per and mb * number == amount for mb, per in default.memory)
        for kind, number in (("n", nodes), ("c", cpus))
    )
    if is_nodes_default != is_cpus_default:
        return is_cpus_default
    if cpus == nodes or (is_whole and nodes > 1 and not job.has_run):
        return False
    return nodes > 1 or not job.has_run
