"""A cluster in one process whose daemons can crash, come back, and stand still: each node has a
daemon of its own, and daemons believe in real time. The clock service is there by name alone: who
starts needs it, as in scaled time; who runs does not.

Place: started by `run.py`; who injects faults (`inject.py`) tells it what befalls whom. It decides
nothing. State that is on disk is there for the next life of a daemon, what was in memory is not.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from understudy.accounting.main import start as start_accounting
from understudy.clock.daemon import Daemon
from understudy.controller.edge.main import start as start_controller
from understudy.controller.edge.main import start_one_of_several
from understudy.controller.jobs.following import Following
from understudy.controller.saved.database import FILE_NAME, DatabaseError
from understudy.experiments.faults import ACCOUNTING, CLOCK, CONTROLLER
from understudy.model.cluster import is_controller
from understudy.noded.daemon import FrontEnd
from understudy.noded.faults import FaultTable
from understudy.noded.main import start as start_noded
from understudy.tool.faults.disk import DatabaseDisk, Disk, LeaseOnDisk
from understudy.tool.faults.lives import (
    CountedTime,
    FailingNetwork,
    Life,
    MortalMessenger,
    PatientMessenger,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from understudy.accounting.main import Server as AccountingServer
    from understudy.clock.virtual_loop import VirtualEventLoop
    from understudy.controller.edge.leadership import Leadership
    from understudy.controller.edge.main import Controller
    from understudy.model.cluster import Cluster
    from understudy.noded.core import Key
    from understudy.protocol.messages import JobRuns, LaunchBatch, Message


def _fence_of(controller: Controller) -> int:
    return controller.lease.fence if controller.lease is not None else 0


WRITE_S: Final = 0.004  # ours: what a write of the controller's state takes
_LOOK_S: Final = 5.0  # ours: as a look each quarter of a second makes days of virtual time long
_RETURN_S: Final = 10.0  # ours: a supervisor starts what has ended by itself again so much later
_Messenger = TypeVar("_Messenger", bound=MortalMessenger)


class MortalDaemon(Daemon):
    """A daemon of a faulty cluster; `ended`: it wants to end."""

    ended: Callable[[], None]

    def stop(self) -> None:
        is_news = not self.stopping.is_set()
        super().stop()
        if is_news:
            self.ended()


class FaultyCluster:
    """The daemons by name, those that are alive. `on_controller` is called with each controller
    that has been started, before anything happens to it; `on_failure` is told what must not be;
    `heard` of each request before it is handled: receiver, sender, message.
    """

    def __init__(
        self,
        loop: VirtualEventLoop,
        cluster: Cluster,
        run_dir: Path,
        seed: int,
        on_failure: Callable[[str], None],
        on_controller: Callable[[Controller], None] = lambda _controller: None,
        heard: Callable[[str, str, Message], None] = lambda _to, _sender, _message: None,
    ) -> None:
        self.loop, self.cluster, self.run_dir = loop, cluster, run_dir
        self.network = FailingNetwork(seed)
        self.network.controllers = {address: name for name, address in cluster.controllers.items()}
        self.disks = {  # of the controllers
            name: Disk(loop, WRITE_S, seed + number)
            for number, name in enumerate(cluster.controllers)
        }
        self.database_disk = DatabaseDisk(seed)
        self.nodes = FaultTable()  # what is wrong with nodes, for all node daemons
        self._leaderships: dict[str, Leadership] = {}
        self._under_way: set[asyncio.Task[None]] = set()  # some for ever, if who does it dies
        self._leases: dict[str, LeaseOnDisk] = {}  # of those that may lead
        self.leading: dict[str, Controller] = {}  # those that lead, or believe so
        self.takeovers: list[tuple[float, str]] = []  # when another began to lead, and who
        self.accounting: AccountingServer | None = None
        self.front_ends: dict[str, FrontEnd] = {}
        self.daemons: dict[str, Daemon] = {}
        self.on_runs: Callable[[JobRuns], None] = lambda _runs: None  # of a dead controller
        self.on_start: Callable[[Key], None] = lambda _key: None  # of a script on a node
        self._on_failure, self._on_controller, self._heard = on_failure, on_controller, heard
        self._lives: dict[str, Life] = {}
        self._count = 0
        self.kept_away: set[str] = set()  # daemons that nobody may start
        self.ended = 0  # daemons, by themselves
        self._boots: dict[str, float] = {}  # by node daemon: when its node has booted
        self._new_life(CLOCK)
        self._without_time: dict[str, None] = {}  # daemons that have yet to hear what time it is

    # --- who is there -----------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """All daemons, in the order in which they are started."""
        accounting = [ACCOUNTING] if self.cluster.keeps_accounting else []
        nodeds = (noded.name for noded in self.cluster.nodeds)
        return [*accounting, *self.cluster.controllers, *nodeds]

    @property
    def controller(self) -> Controller | None:
        """The controller that leads, or did so last and is alive."""
        return max(self.leading.values(), key=_fence_of, default=None)

    def is_alive(self, name: str) -> bool:
        return name in self._lives and self._lives[name].is_alive

    def client(self, name: str, user_id: int) -> PatientMessenger:
        """Of somebody outside the cluster, who waits for its daemons."""
        messenger = self._messenger(PatientMessenger, name, self._new_life(name), user_id)
        messenger.add_peer(CONTROLLER, *self.cluster.controllers.values())
        return messenger

    def time_of_clients(self) -> CountedTime:
        """Virtual: who uses the cluster knows that."""
        return CountedTime(
            self.loop, self.cluster.epoch, self._new_life("clients"), seems_real=False
        )

    def _new_life(self, name: str) -> Life:
        self._count += 1
        life = self._lives[name] = Life(self._count)
        return life

    def _messenger(self, kind: type[_Messenger], name: str, life: Life, user_id: int) -> _Messenger:
        return kind(
            name,
            self.loop,
            self.network,
            life,
            user_id=user_id,
            latency_s=self.cluster.latency_s,
            link_latency=self.cluster.link_latency,
            heard=self._heard,
        )

    # --- coming and going -------------------------------------------------------------------------

    async def start_all(self) -> None:
        """In the order in which they need each other."""
        for name in self.names:
            await self.start(name)

    async def start(self, name: str, *, is_first: bool = True) -> None:
        """Start the daemon, if it is not there, and nothing keeps it away. `is_first`: its process
        is new.
        """
        if self.is_alive(name) or name in self.kept_away:
            return
        if name == CLOCK:
            self._new_life(name)
            self._tell_time()
            return
        if not self._lives[CLOCK].answers:
            self._without_time[name] = None
            return
        life = self._new_life(name)
        time = CountedTime(self.loop, self.cluster.epoch, life, seems_real=True)
        messenger = self._messenger(MortalMessenger, name, life, self.cluster.user_id)
        daemon = MortalDaemon(name, self.cluster, self.run_dir, messenger, time)
        self.daemons[name] = daemon
        daemon.ended, daemon.is_first = partial(self._bounce, name, life), is_first
        if name == ACCOUNTING:
            self.accounting = await start_accounting(daemon)
            self.database_disk.attach(self.accounting.store.engine)
        elif is_controller(name):
            await self._start_controller(daemon, life)
        else:
            boot_time = self._boots.setdefault(name, time.now())
            front_end = await start_noded(daemon, faults=self.nodes, boot_time=boot_time)
            assert isinstance(front_end, FrontEnd)
            self.front_ends[name] = front_end
            self._tell_of_starts(front_end)

    async def _start_controller(self, daemon: MortalDaemon, life: Life) -> None:
        disk = self.disks[daemon.name]
        # turns that end by the machine's time would not be the same from run to run
        clock, write_elsewhere = self.loop.time, disk.writer(life)
        if not self.cluster.backups:
            self._leads(
                await start_controller(daemon, write_elsewhere=write_elsewhere, clock=clock)
            )
            return

        def lease_of(daemon: Daemon, timeout_s: float) -> LeaseOnDisk:
            place = daemon.run_dir / "state" / FILE_NAME
            lease = LeaseOnDisk(place, daemon.name, timeout_s, clock=daemon.time.wait_clock)
            lease.disk = disk
            self._leases[daemon.name] = lease
            return lease

        self._leaderships[daemon.name] = await start_one_of_several(
            daemon,
            write_elsewhere=write_elsewhere,
            clock=clock,
            lease_of=lease_of,
            elsewhere=disk.doer(life),
            look_s=_LOOK_S,
            leads=self._leads,
        )

    def _leads(self, controller: Controller) -> None:
        name = controller.daemon.name
        if self.takeovers:  # who follows jobs asks again, perhaps late, and is to hear of all
            controller.core.following = Following(controller.core)
        if not self.takeovers or self.takeovers[-1][1] != name:
            self.takeovers.append((controller.daemon.time.now(), name))
        self.leading[name] = controller
        self._on_controller(controller)

    def _tell_time(self) -> None:
        """The clock answers again: who waits for it can start."""
        waiting, self._without_time = self._without_time, {}
        for name in waiting:
            self.start_soon(name)

    def _tell_of_starts(self, front_end: FrontEnd) -> None:
        start = front_end.executor.start

        def told(launch: LaunchBatch) -> None:
            self.on_start((launch.job_id, launch.restart))
            start(launch)

        front_end.executor.start = told  # type: ignore[method-assign]

    def start_soon(self, name: str) -> None:
        """As `start`, from a callback."""
        self._watch(self.start(name), f"{name} does not start")

    def _watch(self, work: Coroutine[Any, Any, None], complaint: str) -> None:
        task = self.loop.create_task(work)
        self._under_way.add(task)

        def done(_task: object) -> None:
            self._under_way.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                self._on_failure(f"{complaint}: {error!r}")

        task.add_done_callback(done)

    def die(self, name: str, *, without_power: bool = False) -> None:
        """The daemon ends without having a word; `without_power`: so does its host."""
        if not self.is_alive(name):
            return
        if name == CLOCK:
            self._lives[name].is_alive = False
            return
        messenger = self.daemons.pop(name).messenger
        assert isinstance(messenger, MortalMessenger)
        messenger.die(silently=without_power)
        if without_power:
            self._boots.pop(name, None)
        if is_controller(name):
            if name in self._leaderships:
                self._leaderships.pop(name).break_off()
            if (controller := self.leading.pop(name, None)) is not None:
                self._clear_away(controller)
            elif name in self._leases:
                self._leases.pop(name).close()
        elif name == ACCOUNTING:
            if self.accounting is not None:
                self.accounting.store.close()
            self.accounting = None
        else:
            del self.front_ends[name]

    def _clear_away(self, controller: Controller) -> None:
        if controller.lease is not None:
            controller.lease.close()
        if controller.store is not None:
            controller.store.close()
        if controller.core.following is not None:
            self.on_runs(controller.core.following.take_all())

    def stand_still(self, name: str) -> None:
        self._lives[name].stand_still()

    def go_on(self, name: str) -> None:
        self._lives[name].go_on(self.loop)
        if name == CLOCK:
            self._tell_time()

    def _bounce(self, name: str, life: Life) -> None:
        """It has ended by itself, as when it cannot write its state: it is started again."""
        if not life.is_alive:
            return
        if self.cluster.backups and is_controller(name):
            self._watch(self._end_in_order(name, life), f"{name} does not end")
            return
        self.ended += 1
        self.loop.call_soon(self.die, name)
        self.loop.call_later(_RETURN_S, self.start_soon, name)

    async def _end_in_order(self, name: str, life: Life) -> None:
        """A controller of several gives the lead back, and may be begun again as a standby."""
        daemon = self.daemons[name]
        try:
            await daemon.close()
        except DatabaseError:
            if life.is_alive:
                raise
        if not life.is_alive:  # it was killed as it gave the lead back
            return
        self.die(name)
        if daemon.begins_again:
            await self.start(name, is_first=False)
        else:
            self.ended += 1
            self.loop.call_later(_RETURN_S, self.start_soon, name)

    async def close(self) -> None:
        """End all that are alive, in order."""
        for name in reversed(self.names):
            if self.is_alive(name):
                self.go_on(name)
                with contextlib.suppress(DatabaseError):  # it has died while it gave its lease back
                    await self.daemons[name].close()
                self._lives[name].is_alive = False
