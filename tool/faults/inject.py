"""Faults done to a cluster at their time, and ended at theirs.

Place: between what is to go wrong (understudy.experiments.faults) and the cluster (`cluster.py`). A
daemon that several faults keep away or still comes back when the last of them is over.
"""

from __future__ import annotations

import math
from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING

from understudy.experiments.faults import (
    ACCOUNTING,
    BETWEEN,
    CLOCK,
    OF_CLOCK,
    Fault,
)
from understudy.experiments.scenario import ScenarioError
from understudy.model.hostlist import expand
from understudy.noded.faults import Fault as NodeFault
from understudy.tool.faults.cluster import WRITE_S
from understudy.tool.faults.lives import LinkFault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from understudy.model.cluster import Cluster
    from understudy.model.conf import SlurmConfig
    from understudy.model.conf_companions import SwitchConf
    from understudy.tool.faults.cluster import FaultyCluster
    from understudy.tool.faults.disk import DatabaseDisk, Disk


class Places:
    """What faults may name: daemons, nodes, and the switches of topology.conf."""

    def __init__(self, cluster: Cluster, config: SlurmConfig) -> None:
        accounting = [ACCOUNTING] if cluster.keeps_accounting else []
        self._daemons = [*cluster.controllers, *accounting]
        self._of_node = {
            node: noded.name for noded in cluster.nodeds for node in expand(noded.nodes)
        }
        self._switches = {switch.name: switch for switch in config.topology}

    @property
    def all(self) -> frozenset[str]:
        """All daemons."""
        return frozenset((*self._daemons, *self._of_node.values()))

    def has_power(self, name: str) -> bool:
        """Whether a daemon of this name can die without its host: those of nodes do so with it."""
        return name in self._daemons or name == CLOCK

    def nodes(self, fault: Fault) -> list[str]:
        """The nodes that the fault is of.

        Raises:
            ScenarioError: there are none of that name.
        """
        return [node for node in self._names(fault, fault.of) if node not in self._daemons]

    def daemons(self, fault: Fault, text: str) -> list[str]:
        """The daemons that `text` of the fault means, those of nodes too.

        Raises:
            ScenarioError: there are none of that name.
        """
        return [self._of_node.get(name, name) for name in self._names(fault, text)]

    def _names(self, fault: Fault, text: str) -> list[str]:
        found: dict[str, None] = {}
        try:
            names = expand(text)
        except ValueError as error:
            raise ScenarioError(f"fault {fault.kind} at {fault.at:g}: {error}") from None
        for name in names:
            if name in self._switches:
                found |= dict.fromkeys(self._below(self._switches[name]))
            elif name in self._of_node or name in self._daemons:
                found[name] = None
            elif name == CLOCK:
                if fault.kind not in OF_CLOCK:
                    only = " and ".join(OF_CLOCK)
                    raise ScenarioError(
                        f"fault {fault.kind} at {fault.at:g}: the clock can {only} only"
                    )
                found[name] = None
            else:
                raise ScenarioError(
                    f"fault {fault.kind} at {fault.at:g}: nothing here is called {name!r}: "
                    "no node, no switch, no daemon"
                )
        return list(found)

    def _below(self, switch: SwitchConf) -> Iterable[str]:
        yield from (node for node in switch.nodes if node in self._of_node)
        for name in switch.switches:
            if name in self._switches:
                yield from self._below(self._switches[name])


class Injector:
    """Has faults happen. `counts`: how many of each kind have begun."""

    def __init__(self, cluster: FaultyCluster, places: Places, zero: float) -> None:
        self._cluster, self._places, self._zero = cluster, places, zero
        self._loop = cluster.loop
        self._away: Counter[str] = Counter()  # by daemon: faults that keep it away
        self._still: Counter[str] = Counter()
        self._links: dict[int, list[LinkFault]] = {}  # by id() of the fault
        self._going_on: dict[int, Fault] = {}
        self._is_over = False
        self.counts: Counter[str] = Counter()

    def plan(self, faults: Sequence[Fault]) -> None:
        """Set the timers.

        Raises:
            ScenarioError: a fault names what is not there.
        """
        for fault in faults:
            self._check(fault)
        for fault in faults:
            self._set_timers(fault)

    def go_along(self, faults: Iterator[Fault]) -> None:
        """As `plan`, one after the other, for faults without end in order of time."""
        fault = next(faults, None)
        if fault is not None and not self._is_over:
            self._check(fault)
            self._set_timers(fault)
            self._loop.call_at(self._begin_of(fault), self.go_along, faults)

    def _begin_of(self, fault: Fault) -> float:
        return self._zero + fault.at - self._cluster.cluster.epoch

    def _set_timers(self, fault: Fault) -> None:
        begin = self._begin_of(fault)
        self._loop.call_at(begin, self._begin, fault)
        if fault.lasts_s != math.inf:
            self._loop.call_at(begin + fault.lasts_s, self._end, fault)

    def heal(self) -> None:
        """End all faults, and have no more begin."""
        self._is_over = True
        for fault in list(self._going_on.values()):
            self._end(fault)

    def _check(self, fault: Fault) -> None:
        if fault.kind == "slow":
            self._places.nodes(fault)
        else:
            self._places.daemons(fault, fault.of)
        if fault.to:
            self._places.daemons(fault, fault.to)

    def _begin(self, fault: Fault) -> None:
        if self._is_over:
            return
        self.counts[fault.kind] += 1
        self._going_on[id(fault)] = fault
        cluster = self._cluster
        if fault.kind in BETWEEN:
            self._links[id(fault)] = found = self._link_faults(fault)
            cluster.network.faults += found
        elif fault.kind == "crash":
            for name in self._places.daemons(fault, fault.of):
                self._away[name] += 1
                cluster.kept_away.add(name)
                cluster.die(name, without_power=not self._places.has_power(name))
        elif fault.kind == "stall":
            for name in self._places.daemons(fault, fault.of):
                self._still[name] += 1
                cluster.stand_still(name)
        else:
            self._set(fault)

    def _end(self, fault: Fault) -> None:
        if self._going_on.pop(id(fault), None) is None:
            return
        cluster = self._cluster
        if fault.kind in BETWEEN:
            for each in self._links.pop(id(fault)):
                cluster.network.faults.remove(each)
        elif fault.kind == "crash":
            for name in self._places.daemons(fault, fault.of):
                self._away[name] -= 1
                if not self._away[name]:
                    cluster.kept_away.discard(name)
                    cluster.start_soon(name)
        elif fault.kind == "stall":
            for name in self._places.daemons(fault, fault.of):
                self._still[name] -= 1
                if not self._still[name]:
                    cluster.go_on(name)
        else:
            self._set(fault)

    def _set(self, changed: Fault) -> None:
        """What the disk, or the nodes, are like now that the fault has begun or is over."""
        going_on = [each for each in self._going_on.values() if each.kind == changed.kind]
        disks: dict[str, Disk | DatabaseDisk] = {
            **self._cluster.disks,
            ACCOUNTING: self._cluster.database_disk,
        }
        table = self._cluster.nodes
        if changed.kind == "disk_full":
            for name, disk in disks.items():
                disk.is_full = any(each.of == name for each in going_on)
        elif changed.kind == "disk_slow":
            for name, of_controller in self._cluster.disks.items():
                seconds = (each.seconds for each in going_on if each.of == name)
                of_controller.seconds = max(seconds, default=WRITE_S)
        elif changed.kind == "fsync_fails":
            for name, disk in disks.items():
                disk.fails_to_sync = any(each.of == name for each in going_on)
        else:
            table.clear()
            for each in sorted(going_on, key=attrgetter("times")):
                table.put(self._places.nodes(each), NodeFault(times=each.times))

    def _link_faults(self, fault: Fault) -> list[LinkFault]:
        places = self._places
        here = frozenset(places.daemons(fault, fault.of))
        there = frozenset(places.daemons(fault, fault.to)) if fault.to else places.all - here
        ways = [(here, there)] if fault.one_way else [(here, there), (there, here)]
        return [
            LinkFault(
                senders,
                receivers,
                fault.latency_s,
                fault.loss,
                fault.duplicate,
                fault.reorder,
            )
            for senders, receivers in ways
        ]
