"""Power saving as configured: which nodes are switched off after how long, and how fast.

Place: tables, pure; made from slurm.conf. Follows: slurm.conf(5) Suspend*, Resume*,
power_save_interval. Where several of a node's partitions have a time of their own, the longest
counts.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from understudy.model import hostlist, nodeset
from understudy.model.states import NodeFlag, NodeState

if TYPE_CHECKING:
    from understudy.controller.tables.node import Node
    from understudy.model.conf import SlurmConfig

_WORD: Final = re.compile(r"(?:[^\s,\[\]]|\[[^\[\]]*\])+")
_COUNTED: Final = re.compile(r"(.+):(\d+)")
_FLAGS: Final = {
    "CLOUD": NodeFlag.CLOUD,
    "DRAIN": NodeFlag.DRAIN,
    "FAIL": NodeFlag.FAIL,
    "NOT_RESPONDING": NodeFlag.NO_RESPOND,
}


@dataclass(frozen=True, slots=True)
class PowerPlan:
    """Times in seconds, one a node in index order; rates in nodes a minute, 0 for any number."""

    suspend_time_s: tuple[float, ...]  # infinite: never
    suspend_timeout_s: tuple[int, ...]
    resume_timeout_s: tuple[int, ...]
    suspend_rate: int = 60
    resume_rate: int = 300
    interval_s: int = 10  # between two checks if nothing happens to nodes
    exempt: int = 0  # bitmap: never switched off by themselves
    # (bitmap, how many usable ones of them stay on)
    exempt_counts: tuple[tuple[int, int], ...] = ()
    exempt_flags: NodeFlag = NodeFlag.NONE
    spares_down: bool = False
    suspend_program: str = ""
    resume_program: str = ""
    resume_fail_program: str = ""

    @classmethod
    def of(cls, config: SlurmConfig) -> PowerPlan | None:
        """None if no node is ever switched off: SuspendTime is infinite everywhere, or one of the
        two programs is not named.
        """
        if not (config.text("SuspendProgram") and config.text("ResumeProgram")):
            return None
        suspend = _per_node(config, "SuspendTime", _limit(config.text("SuspendTime")))
        in_cloud = any(node.state.upper() == "CLOUD" for node in config.nodes)
        if not in_cloud and all(time == math.inf for time in suspend):
            return None
        exempt, counts = 0, []
        for text in _WORD.findall(config.text("SuspendExcNodes")):
            counted = _COUNTED.fullmatch(text)
            nodes = nodeset.from_positions(
                config.index_of[name]
                for name in hostlist.expand(counted[1] if counted else text)
                if name in config.index_of
            )
            if counted:
                counts.append((nodes, int(counted[2])))
            else:
                exempt |= nodes
        spared = {
            name
            for part in config.partitions
            if part.name in config.words("SuspendExcParts")
            for name in part.nodes
        }
        states = {word.upper() for word in config.words("SuspendExcStates")}
        flags = NodeFlag.NONE
        for name in sorted(states & _FLAGS.keys()):
            flags |= _FLAGS[name]
        parameters = dict(
            word.lower().partition("=")[::2] for word in config.words("SlurmctldParameters")
        )
        interval = parameters.get("power_save_interval", "")
        return cls(
            suspend,
            tuple(
                int(time)
                for time in _per_node(config, "SuspendTimeout", config.count("SuspendTimeout"))
            ),
            tuple(
                int(time)
                for time in _per_node(config, "ResumeTimeout", config.count("ResumeTimeout"))
            ),
            config.count("SuspendRate"),
            config.count("ResumeRate"),
            max(int(interval), 1) if interval.isdecimal() else 10,
            exempt | nodeset.from_positions(config.index_of[name] for name in spared),
            tuple(counts),
            flags,
            "DOWN" in states,
            config.text("SuspendProgram"),
            config.text("ResumeProgram"),
            config.text("ResumeFailProgram"),
        )

    @property
    def mortal(self) -> int:
        """The nodes (a bitmap) that may be switched off when they are idle."""
        return (
            nodeset.from_positions(
                index for index, time in enumerate(self.suspend_time_s) if time != math.inf
            )
            & ~self.exempt
        )

    def spares(self, node: Node) -> bool:
        """Whether the node stays on for its state (SuspendExcStates)."""
        return bool(node.flags & self.exempt_flags) or (
            self.spares_down and node.state is NodeState.DOWN
        )

    def kept_on(self, usable: int) -> int:
        """Those of the usable nodes (a bitmap) that stay on because so many of a set shall."""
        kept = 0
        for nodes, count in self.exempt_counts:
            here = usable & nodes
            kept |= nodeset.lowest(here, count) if here.bit_count() > count else here
        return kept


def _per_node(config: SlurmConfig, key: str, cluster: float) -> tuple[float, ...]:
    times: dict[str, float] = {}
    for partition in config.partitions:
        text = partition.settings.get(key.lower())
        if text is not None:
            time = _limit(text)
            for name in partition.nodes:
                times[name] = max(time, times.get(name, time))
    return tuple(times.get(name, cluster) for name in config.node_names)


def _limit(text: str) -> float:
    return float(text) if text.isdecimal() else math.inf


@dataclass(slots=True)
class Pace:
    """How many nodes may be switched at once. What was switched is forgotten bit by bit: at each
    check a sixtieth of the rest for each second since the last one. Recorded from 22.05.8; with a
    check every 10 s and a rate of 7 it lets 7 go, then 1, 1, 2, 1, 1 ...
    """

    count: float = 0.0
    last: float = -math.inf

    def forget(self, now: float, interval_s: int) -> None:
        """Forget, as checks that had nothing to do would have."""
        passed = min(now - self.last, 3600.0)
        self.last = now
        checks, rest = divmod(round(passed), interval_s)
        self.count *= max(1 - interval_s / 60, 0.0) ** checks * max(1 - rest / 60, 0.0)

    def room(self, rate: int) -> float:
        """How many may be switched now; a rate of 0 is none."""
        return max(rate - math.floor(self.count + 0.5), 0) if rate else math.inf
