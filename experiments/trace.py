"""Workload traces: the model that all readers fill.

Place: where experiments begin; pure. Which reader reads which file is in `formats`.

A trace is jobs in normal form: processors, submit time, run time and requested time of each. What a
site's own history says beyond that (partitions, QOS, features, devices ...) does not fit into it:
`understudy import` makes a scenario of such a history, which has all options of each job.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

_UNUSED: Final = {
    "requested memory": "memory_kb",
    "user": "user",
    "group": "group",
    "executable": "executable",
    "queue": "queue",
    "partition": "partition",
    "preceding job": "preceding_job",
    "think time": "think_time",
}  # columns that normal form does not use, and the fields that have them


POOLS: Final = "BurstBuffer"  # the header's key
LARGEST: Final = 10**12  # a time or processor count beyond this is a broken number


class TraceError(ValueError):
    """A trace that cannot be read, or with `strict` a line of it. Says where."""


class TraceJob(msgspec.Struct, frozen=True, gc=False):
    """One job of a trace in normal form. Times in whole seconds; -1 is unknown.

    `run` is never longer than `req`; `raw_run` is what the trace says, so that a job which outlasts
    its limit can be seen to be ended by it.
    """

    id: int  # its place in the order (submit, original id), from 1
    submit: int  # since the trace's zero
    run: int
    procs: int
    req: int  # requested time: the limit
    raw_run: int
    original_id: int = -1
    memory_kb: int = -1  # requested, per processor
    status: int = -1
    user: int = -1
    group: int = -1
    executable: int = -1
    queue: int = -1
    partition: int = -1
    preceding_job: int = -1
    think_time: int = -1
    extra: tuple[str, ...] = ()  # columns after the 18th, as they are

    def units(self, pools: int) -> tuple[int, ...]:
        """What it asks of so many pools; what is not said, or unknown, is nothing."""
        said = [max(int(text), 0) for text in self.extra[:pools]]
        return (*said, *[0] * (pools - len(said)))


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no job: its number (from 1) and why."""

    number: int
    why: str


class Machine(NamedTuple):
    """The machine that a trace's header describes: equal nodes. `note` says where the header does
    not fit that, else "".
    """

    nodes: int
    cpus: int  # of each node
    note: str = ""


class Pool(NamedTuple):
    """Something that jobs hold units of from start to end."""

    name: str
    capacity: int


@dataclass(slots=True)
class Trace:
    """What a trace file holds, and what was left out."""

    jobs: list[TraceJob] = field(default_factory=list)
    # a key that is given more than once has one line for each
    header: dict[str, str] = field(default_factory=dict)
    bad_lines: list[BadLine] = field(default_factory=list)  # the first of them
    bad_line_count: int = 0
    dropped: Counter[str] = field(default_factory=Counter)  # reason: jobs
    zero: int = 0  # the file's submit time that is 0 in `jobs`

    @property
    def unix_start_time(self) -> int | None:
        return self._header_number("UnixStartTime")

    @property
    def max_nodes(self) -> int | None:
        return self._header_number("MaxNodes")

    @property
    def max_procs(self) -> int | None:
        return self._header_number("MaxProcs")

    @property
    def widest(self) -> int:
        """Processors of the largest job."""
        return max((job.procs for job in self.jobs), default=0)

    @property
    def unused(self) -> dict[str, int]:
        """Columns that say something of jobs and that normal form does not use, with the number of
        those jobs.

        A column that says the same of all jobs tells nothing that could be used.
        """
        counts = {}
        for name, field_name in _UNUSED.items():
            by_value = Counter(map(attrgetter(field_name), self.jobs))
            if len(by_value) > 1:
                counts[name] = sum(count for value, count in by_value.items() if value > 0)
        counts["columns behind the 18th"] = sum(map(bool, map(attrgetter("extra"), self.jobs)))
        return {name: count for name, count in counts.items() if count}

    @property
    def pools(self) -> tuple[Pool, ...]:
        """What jobs hold beside processors: `BurstBuffer: 480000` in the header, or several at
        commas, with the units of each job in column 19 and following. They are called `bb`, or
        `bb1`, `bb2` ...

        Raises:
            TraceError: the header's line is no such list.
        """
        text = self.header.get(POOLS, "")
        if not text.strip():
            return ()
        capacities = text.replace(";", ",").split(",")
        if not all(re.fullmatch(r"\s*\d{1,9}\s*", each) for each in capacities):
            raise TraceError(f"header {POOLS}: {text}: not capacities of at most 9 digits")
        return tuple(
            Pool(f"bb{i}" if len(capacities) > 1 else "bb", int(each))
            for i, each in enumerate(capacities, 1)
        )

    def machine(self, nodes: int | None = None, cpus: int | None = None) -> Machine:
        """The machine: what the user says of it (`nodes`, `cpus` of each), and the header for the
        rest.

        MaxNodes nodes share MaxProcs processors evenly; without MaxNodes each processor is a node.

        Raises:
            TraceError: neither says how large it was. A guess from the jobs would be a machine on
            which the largest waits until all others are gone.
        """
        if nodes is not None:
            return Machine(nodes, cpus or 1)
        procs, header_nodes = self.max_procs or 0, self.max_nodes or 0
        if not procs and not header_nodes:
            raise TraceError(
                "its header has neither MaxNodes nor MaxProcs, so nobody knows how large the "
                f"machine was (its largest job has {self.widest:,}"
                " processors): say it with --nodes and --cpus, or with --conf"
            )
        if cpus is not None:
            return Machine(-(-procs // cpus) if procs else header_nodes, cpus)
        if not header_nodes or not procs:
            return Machine(procs or header_nodes, 1)
        if procs < header_nodes:
            return Machine(
                header_nodes,
                1,
                f"the header has fewer processors ({procs:,}) than nodes "
                f"({header_nodes:,}): one CPU on each node",
            )
        each, rest = divmod(procs, header_nodes)
        if rest:
            said = (
                f"{procs:,} processors of the header are no multiple of its "
                f"{header_nodes:,} nodes: {each + 1} CPUs on each node"
            )
            return Machine(header_nodes, each + 1, said)
        return Machine(header_nodes, each)

    def _header_number(self, key: str) -> int | None:
        text = self.header.get(key, "").replace(",", "").split()
        return int(text[0]) if text and re.fullmatch(r"\d{1,15}", text[0]) else None
