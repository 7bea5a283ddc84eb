"""Generic resources of the nodes: which devices there are, where they are, how many of them are free.

Place: the controller's core, no I/O; a part of the node table, which alone takes and gives back. Nodes that are alike share one tuple of
`DeviceGroup`s. Counts are vectors with one entry a node; which device belongs to whom is a bit mask a node and name, looked at only for the
nodes that a job gets.

A cluster without generic resources has no such table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from understudy.controller.gres_layout import Layouts


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """Devices of a node that are alike. `first`: the number of the first of them among all of that name on the node."""

    name: str
    type: str
    count: int
    first: int = 0
    has_files: bool = False  # they are told apart, and shown by their numbers
    is_consumed: bool = True
    cores: int = 0  # bit mask of the cores near them; 0: all

    @property
    def devices(self) -> int:
        """Bit mask of their numbers; 0 where they are only counted."""
        return ((1 << self.count) - 1) << self.first if self.has_files else 0


class Held(NamedTuple):
    """What a job holds of one name and type on a node. `devices` is a bit mask, 0 where they are only counted."""

    name: str
    type: str
    amount: int
    devices: int


Layout = tuple[DeviceGroup, ...]


def keys_of(name: str, kind: str) -> tuple[str, ...]:
    """The keys of the counts to which a device of the name and type belongs."""
    return (name, f"{name}:{kind}") if kind else (name,)


@dataclass(slots=True, eq=False)
class GresTable:
    """Counts by `name` and `name:type`."""

    names: tuple[str, ...]  # GresTypes, in their order
    layouts: list[Layout]
    configured: Layouts | None = None  # for what an administrator says later
    total: dict[str, NDArray[np.int64]] = field(init=False)
    free: dict[str, NDArray[np.int64]] = field(init=False)
    used_devices: dict[str, list[int]] = field(init=False)
    has_cores: bool = field(init=False)  # some devices are nearer to some cores

    def __post_init__(self) -> None:
        self.used_devices = {name: [0] * len(self.layouts) for name in self.names}
        self._count()
        self.free = {key: vector.copy() for key, vector in self.total.items()}

    def _count(self) -> None:
        counts: dict[str, list[int]] = {}
        for index, layout in enumerate(self.layouts):
            for group in layout:
                for key in keys_of(group.name, group.type):
                    counts.setdefault(key, [0] * len(self.layouts))[index] += group.count
        self.total = {key: np.array(values, dtype=np.int64) for key, values in counts.items()}
        self.has_cores = any(group.cores for layout in set(self.layouts) for group in layout)

    def set_layout(self, index: int, layout: Layout) -> None:
        """A node has other resources from now on; what jobs hold there stays theirs."""
        for name in self.names:
            self.used_devices.setdefault(name, [0] * len(self.layouts))
        before = self.total
        self.layouts[index] = layout
        self._count()
        nothing = np.zeros(len(self.layouts), dtype=np.int64)
        self.free = {key: vector - (before.get(key, nothing) - self.free.get(key, nothing)) for key, vector in self.total.items()}

    def take(self, nodes: Iterable[int], held: tuple[Held, ...]) -> None:
        """A job takes the same on each of the nodes (indices)."""
        for index in nodes:
            for name, _, _, devices in held:
                used = self.used_devices.setdefault(name, [0] * len(self.layouts))  # GresTypes may have lost it since the job started
                assert not used[index] & devices, f"devices of {name} given twice"
                used[index] |= devices
        self._add(nodes, held, -1)

    def give_back(self, nodes: Iterable[int], held: tuple[Held, ...]) -> None:
        """The reverse of `take`."""
        for index in nodes:
            for name, _, _, devices in held:
                self.used_devices[name][index] &= ~devices
        self._add(nodes, held, 1)

    def _add(self, nodes: Iterable[int], held: tuple[Held, ...], sign: int) -> None:
        at = list(nodes)
        for name, kind, count, _ in held:
            for key in keys_of(name, kind):
                if key in self.free:
                    self.free[key][at] += sign * count
