"""A cluster with faults for the length of one run, in this process.

Place: as `understudy.tool.cluster.cluster_run.in_one_process`, which has clusters without faults.
Here daemons believe in real time, so something is always left to do, and a run whose jobs wait for
ever has to be noticed by looking.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from understudy.clock.logs import Logs
from understudy.clock.timekeeper import Timekeeper
from understudy.clock.virtual_loop import VirtualEventLoop
from understudy.tool.cluster.cluster_run import NAME, Ending, OneProcess, Participant, run_loop
from understudy.tool.faults.cluster import FaultyCluster
from understudy.tool.faults.inject import Injector, Places

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from pathlib import Path

    from understudy.controller.edge.main import Controller
    from understudy.experiments.faults import Fault
    from understudy.model.cluster import Cluster
    from understudy.model.conf import SlurmConfig
    from understudy.noded.core import Key
    from understudy.protocol.messages import Message

_Result = TypeVar("_Result")
_LOOK_S: Final = 86_400.0  # ours: between two looks at whether anything has changed
_STILL: Final = 14  # ours: looks, until jobs that wait are taken to wait for ever


@dataclass(slots=True)
class Faults:
    """What is to go wrong with a run, and what is told of it. `watch` is called with each
    controller that starts, `heard` of each request (receiver, sender, message), `started` of each
    script that begins.
    """

    planned: Sequence[Fault]
    # more, in order of time
    endless: Iterator[Fault] = field(default_factory=lambda: iter(()))
    seed: int = 0
    watch: Callable[[Controller], None] = lambda _controller: None
    heard: Callable[[str, str, Message], None] = lambda _to, _sender, _message: None
    started: Callable[[Key], None] = lambda _key: None
    injector: Injector | None = None  # while it runs, and afterwards
    cluster: FaultyCluster | None = None

    def figures(self) -> dict[str, int]:
        """What has gone wrong: how many faults of each kind have begun, what links did to messages,
        how often daemons ended by themselves, and how often another controller began to lead.
        """
        if self.injector is None or self.cluster is None:
            return {}
        network = self.cluster.network
        takeovers = len(self.cluster.takeovers) - 1  # the first lead was nobody else's
        return {
            **{f"faults_{kind}": count for kind, count in sorted(self.injector.counts.items())},
            "messages_lost": network.lost,
            "messages_duplicated": network.duplicated,
            "messages_overtaken": network.overtaken,
            "daemons_ended": self.cluster.ended,
            **({"takeovers": takeovers} if self.cluster.cluster.backups else {}),
        }


def in_faulty_process(
    cluster: Cluster,
    run_dir: Path,
    config: SlurmConfig,
    faults: Faults,
    work: Callable[[Participant], Awaitable[_Result]],
    watch: Callable[[OneProcess], None] = lambda _made: None,
) -> _Result:
    """Run with the faults; what came of them is in `faults` afterwards. `watch` is told what there
    is before anything happens.

    Raises:
        ScenarioError: a fault names what is not there.
        LaunchError: the run ended early.
    """
    with (run_dir / "logs" / "replay.log").open("a") as log:
        loop = VirtualEventLoop()
        logs = Logs(Timekeeper(loop, cluster.epoch).now, fixed=cluster.log_level, stream=log)
        ending = Ending(loop, run_dir)
        faulty = FaultyCluster(
            loop, cluster, run_dir, faults.seed, ending.end, faults.watch, faults.heard
        )
        faulty.on_start = faults.started
        injector = Injector(faulty, Places(cluster, config), cluster.zero)
        faults.injector, faults.cluster = injector, faulty
        made = OneProcess(loop, cluster, ending, logs)
        made.on_move = partial(_move, made, faulty)
        watch(made)
        messenger = faulty.client(NAME, cluster.user_id)
        faulty.on_runs = messenger.tell

        async def start_and_work(participant: Participant) -> _Result:
            injector.plan(faults.planned)
            injector.go_along(faults.endless)
            await faulty.start_all()
            try:
                return await work(participant)
            finally:
                await faulty.close()

        participant = Participant(
            loop, messenger, faulty.time_of_clients(), cluster, partial(_look_for_stall, faulty)
        )
        return run_loop(loop, participant, ending.unless_lost(start_and_work))


def _move(made: OneProcess, faulty: FaultyCluster, run_dir: Path) -> None:
    """In a fork: those who live now, and those who come, use another run directory."""
    faulty.run_dir = run_dir
    made.daemons, made.controller = list(faulty.daemons.values()), faulty.controller


def _look_for_stall(faulty: FaultyCluster, react: Callable[[str], None]) -> None:
    """Have `react` called when for long nothing has run, come or gone."""
    still, seen = 0, None

    def look() -> None:
        nonlocal still, seen
        now = _what_there_is(faulty)
        still = still + 1 if now is not None and now == seen else 0
        seen = now
        if still >= _STILL:
            react("nobody has anything left to do")
        else:
            faulty.loop.call_later(_LOOK_S, look)

    faulty.loop.call_later(_LOOK_S, look)


def _what_there_is(faulty: FaultyCluster) -> Any:
    """What would change if jobs ran or came; None while some do, or nobody knows."""
    if faulty.controller is None:
        return None
    core = faulty.controller.core
    if core.tables.running or core.completing:
        return None
    return core.next_job_id, sorted(core.tables.pending)
