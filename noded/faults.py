"""Faults of single nodes, as data: what a test or an experiment injects into the nodes for which a
daemon stands.

Place: read by the daemon's core, its edge and the emulated executor. An empty table costs one truth
test.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from understudy.model.hostlist import expand

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a node."""

    silent: bool = False  # neither answers nor reports
    epilog_s: float = 0.0  # its epilogs take this long
    launch_code: int = 0  # batch launches on it fail with this error number ...
    launch_text: str = ""  # ... and text
    times: float = 1.0  # jobs that start on it take so many times as long


@dataclass(slots=True)
class FaultTable:
    """The faults by node name."""

    by_node: dict[str, Fault] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.by_node)

    def put(self, nodes: Iterable[str], fault: Fault) -> None:
        """Give the nodes this fault in place of the one that they have."""
        for node in nodes:
            self.by_node[node] = fault

    def clear(self, nodes: Iterable[str] | None = None) -> None:
        """Heal the nodes (None: all)."""
        for node in list(self.by_node) if nodes is None else nodes:
            self.by_node.pop(node, None)

    def of(self, node: str) -> Fault:
        return self.by_node.get(node, HEALTHY)

    def slowness(self, nodes: str) -> float:
        """How many times as long as ever a job takes on the nodes (a host list expression): as long
        as on the slowest of them.
        """
        if not self.by_node:
            return 1.0
        return max((self.of(node).times for node in expand(nodes)), default=1.0)


HEALTHY = Fault()
