"""Generic resources of the nodes: which devices there are, where they are, how many of them are
free.

Place: tables, no I/O; a part of the node table, which alone takes and gives back.
Nodes that are alike share one tuple of `DeviceGroup`s. Counts are vectors with one entry a node;
which device belongs to whom is a bit mask a node and name, looked at only for the nodes that a job
gets.

A cluster without generic resources has no such table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from understudy.model import nodeset
from understudy.model.gres import GPU, SHARED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from understudy.model.gres import GresCount


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """Devices of a node that are alike. `first`: the number of the first of them among all of that
    name on the node.
    """

    name: str
    type: str
    count: int
    first: int = 0
    has_files: bool = False  # they are told apart, and shown by their numbers
    is_consumed: bool = True
    cores: int = 0  # bit mask of the cores near them; 0: all
    # into how many each GPU is divided, where the name stands for parts of GPUs
    parts: tuple[int, ...] = ()

    @property
    def devices(self) -> int:
        """Bit mask of their numbers; 0 where they are only counted."""
        return ((1 << self.count) - 1) << self.first if self.has_files else 0


class Held(NamedTuple):
    """What a job holds of one name and type on a node. `devices` is a bit mask, 0 where they are
    only counted; with parts of a GPU it is that GPU.
    """

    name: str
    type: str
    amount: int
    devices: int


Layout = tuple[DeviceGroup, ...]


class LayoutMaker(Protocol):
    """Knows gres.conf: what devices a node has of the Gres that is said of it (gres_layout.py)."""

    def of(self, name: str, text: str) -> Layout: ...

    def lack(self, name: str, text: str) -> str: ...

    def has_devices_for(self, name: str, words: tuple[GresCount, ...]) -> bool: ...


def keys_of(name: str, kind: str) -> tuple[str, ...]:
    """The keys of the counts to which a device of the name and type belongs."""
    return (name, f"{name}:{kind}") if kind else (name,)


@dataclass(slots=True, eq=False)
class GresTable:
    """Counts by `name` and `name:type`. Of a type no more is free than of its name: a job that
    started when the node had no types holds some of them, without saying which.
    """

    names: tuple[str, ...]  # GresTypes, in their order
    layouts: list[Layout]
    configured: LayoutMaker | None = None  # for what an administrator says later
    total: dict[str, NDArray[np.int64]] = field(init=False)
    free: dict[str, NDArray[np.int64]] = field(init=False)
    held: dict[str, NDArray[np.int64]] = field(init=False)  # by jobs; parts of GPUs are not counted
    used_devices: dict[str, list[int]] = field(init=False)  # by name; of parts of GPUs: the GPUs
    used_parts: dict[str, list[dict[int, int]]] = field(init=False)  # by name and node: of each GPU
    # names that stand for parts of GPUs; of these the part of one GPU is free that has most
    shared: tuple[str, ...] = field(init=False)
    has_cores: bool = field(init=False)  # some devices are nearer to some cores

    def __post_init__(self) -> None:
        self.held = {}
        self.used_devices = {name: [0] * len(self.layouts) for name in self.names}
        self.used_parts = {name: [{} for _ in self.layouts] for name in SHARED}
        self._count()
        self.free = {key: vector.copy() for key, vector in self.total.items()}
        self._find_room(range(len(self.layouts)))

    def _count(self) -> None:
        counts: dict[str, list[int]] = {}
        for index, layout in enumerate(self.layouts):
            for group in layout:
                for key in keys_of(group.name, group.type):
                    counts.setdefault(key, [0] * len(self.layouts))[index] += group.count
        self.total = {key: np.array(values, dtype=np.int64) for key, values in counts.items()}
        self.shared = tuple(
            name
            for name in SHARED
            if any(
                group.parts and group.name == name
                for layout in set(self.layouts)
                for group in layout
            )
        )
        self.has_cores = any(group.cores for layout in set(self.layouts) for group in layout)

    def set_layout(self, index: int, layout: Layout) -> None:
        """A node has other resources from now on; what jobs hold there stays theirs."""
        for name in self.names:
            self.used_devices.setdefault(name, [0] * len(self.layouts))
        self.layouts[index] = layout
        self._count()
        nothing = np.zeros(len(self.layouts), dtype=np.int64)
        # jobs may hold what no node is said to have any more
        self.total = dict.fromkeys(self.held, nothing) | self.total
        self.free = {key: vector.copy() for key, vector in self.total.items()}
        every = range(len(self.layouts))
        self._find_free(self.names, every)
        self._find_room(every)

    def beside(self, held: Iterable[tuple[int, tuple[Held, ...]]]) -> GresTable:
        """The same devices, of which only these are held, on these nodes (bitmaps)."""
        found = GresTable(self.names, self.layouts, self.configured)
        for nodes, each in held:
            found.take(nodeset.indices(nodes), each)
        return found

    def take(self, nodes: Iterable[int], held: tuple[Held, ...]) -> None:
        """A job takes the same on each of the nodes (indices)."""
        for index in nodes:
            for name, _, amount, devices in held:
                # GresTypes may have lost it since the job started
                used = self.used_devices.setdefault(name, [0] * len(self.layouts))
                if name in self.shared:
                    self._use_part(name, index, devices, amount)
                    continue
                assert not used[index] & devices, f"devices of {name} given twice"
                used[index] |= devices
        self._add(nodes, held, -1)

    def give_back(self, nodes: Iterable[int], held: tuple[Held, ...]) -> None:
        """The reverse of `take`."""
        for index in nodes:
            for name, _, amount, devices in held:
                if name in self.shared:
                    self._use_part(name, index, devices, -amount)
                else:
                    self.used_devices[name][index] &= ~devices
        self._add(nodes, held, 1)

    def _add(self, nodes: Iterable[int], held: tuple[Held, ...], sign: int) -> None:
        at = list(nodes)
        for name, kind, count, _ in held:
            if name in self.shared:
                continue
            for key in keys_of(name, kind):
                if key not in self.held:
                    self.held[key] = np.zeros(len(self.layouts), dtype=np.int64)
                self.held[key][at] -= sign * count
        self._find_free({each.name for each in held}, at)
        if self.shared:
            self._find_room(at)

    def _find_free(self, names: Collection[str], at: Sequence[int]) -> None:
        for key, total in self.total.items():
            name, _, kind = key.partition(":")
            if name not in names or name in self.shared:
                continue
            left = total[at] - self.held[key][at] if key in self.held else total[at]
            self.free[key][at] = np.minimum(left, self.free[name][at]) if kind else left

    def _use_part(self, name: str, index: int, devices: int, amount: int) -> None:
        parts = self.used_parts[name][index]
        gpu = devices.bit_length() - 1
        parts[gpu] = parts.get(gpu, 0) + amount
        if not parts[gpu]:
            del parts[gpu]
        self.used_devices[name][index] = sum(1 << each for each in parts)

    def _find_room(self, nodes: Iterable[int]) -> None:
        for name in self.shared:
            for index in nodes:
                for group in self.layouts[index]:
                    if group.name == name and group.parts:
                        most = max(self.room(group, index), default=0)
                        for key in keys_of(name, group.type):
                            self.free[key][index] = most

    def room(self, group: DeviceGroup, index: int) -> list[int]:
        """How many parts of each GPU a job could get on the node."""
        return room_in(
            group,
            self.used_parts[group.name][index],
            self.used_devices.get(GPU, [0] * (index + 1))[index],
        )


def room_in(group: DeviceGroup, used: Mapping[int, int], whole: int) -> list[int]:
    """The free parts of each GPU. `used`: parts in use; `whole`: GPUs that are given as such, which
    are not divided then; the reverse is not so, as 22.05 gives GPUs of which parts are in use.
    Where jobs have parts by `mps`, other GPUs of the node have none to give.
    """
    alone = group.name == "mps" and bool(used)
    return [
        0 if whole >> gpu & 1 or (alone and gpu not in used) else parts - used.get(gpu, 0)
        for gpu, parts in enumerate(group.parts)
    ]
