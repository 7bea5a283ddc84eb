"""The emulated executor: scripts are not run; each ends at the time that its Emulation says.

Place: an executor of the node daemon (see executor.py). `EmulatedJobs` is pure: a heap of ends in
order of (time, job id); `EmulatedExecutor` ties it to the cluster's time with one timer for the
earliest, because a timer a job would cost the event loop more than all the rest of a job.

Where a job's behaviour comes from, first found first taken, for each of run time, exit code and
signal: the message's Emulation; lines `#UNDERSTUDY run=SECONDS exit=CODE signal=N` of the script;
UNDERSTUDY_RUN, UNDERSTUDY_EXIT and UNDERSTUDY_SIGNAL of its environment; literal `sleep N` commands
and a last line `exit N` of the script; the cluster's default.
"""

from __future__ import annotations

import heapq
import math
import re
import signal
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.protocol.messages import Emulation, LaunchBatch

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from understudy.clock.timekeeper import Timekeeper
    from understudy.noded.core import Key, NodeJob
    from understudy.noded.executor import OnEnded, OnEpilogEnded

# What a script that catches nothing survives, beside those that stop and continue it. SIGUSR1 and
# SIGUSR2 would end such a script, but nobody sends them to one that does not expect them.
_IGNORED: Final = frozenset(
    {0, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH}
)
STOPPING: Final = frozenset({signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})

# --- how a job behaves ----------------------------------------------------------------------------

_DIRECTIVE: Final = re.compile(r"^#UNDERSTUDY[ \t]+(.*)$", re.MULTILINE)
_SETTING: Final = re.compile(r"\b(run|exit|signal)=(\d+(?:\.\d*)?)")
_SLEEP: Final = re.compile(
    r"(?<![\w./-])(?:/usr)?(?:/bin/)?sleep((?:[ "
    r"\t]+(?:\d+\.?\d*|\.\d+)[smhd]?)+)(?![\w.])[ \t]*(&(?!&))?"
)
_EXIT: Final = re.compile(r"(?:^|[;&\s])exit[ \t]+(\d+)[ \t]*;?\s*\Z")
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def emulation_of(launch: LaunchBatch, default_run_s: float) -> Emulation:
    """How the job behaves."""
    if launch.emulation is not None:
        return launch.emulation
    said: dict[str, float] = {}
    commands = "\n".join(
        line for line in launch.script.splitlines() if not line.lstrip().startswith("#")
    )
    ending = _EXIT.search(commands.rstrip())
    if ending:
        said["exit"] = int(ending[1])
    # in the background, nobody waits for it
    naps = [match[1] for match in _SLEEP.finditer(commands) if not match[2]]
    if naps:
        said["run"] = sum(_nap_s(nap) for nap in naps)
    for source in (launch.spec.environment if launch.spec is not None else [], launch.environment):
        for entry in source:
            if entry.startswith("UNDERSTUDY_"):
                name, _, value = entry[len("UNDERSTUDY_") :].partition("=")
                said |= {
                    key: float(number)
                    for key, number in _SETTING.findall(f"{name.lower()}={value}")
                }
    for directive in _DIRECTIVE.findall(launch.script):
        said |= {key: float(number) for key, number in _SETTING.findall(directive)}
    return Emulation(
        said.get("run", default_run_s), int(said.get("exit", 0)) & 0xFF, int(said.get("signal", 0))
    )


def _nap_s(arguments: str) -> float:
    return sum(float(word.rstrip("smhd")) * _UNIT_S.get(word[-1], 1) for word in arguments.split())


# --- the heap of ends -----------------------------------------------------------------------------


class Ended(msgspec.Struct):
    """A job's end."""

    key: Key
    exit_code: int
    signal: int
    timed_out: bool = False
    fault: str = ""


class _Run(msgspec.Struct):
    """`script_end`: when the script ends by itself, never while it is stopped; `limit_end`: when
    its exact limit ends it all the same.
    """

    ended: Ended
    script_end: float
    limit_end: float
    end: float = 0.0  # the earlier of the two, but not in the past
    left_s: float = 0.0  # while stopped; the end itself for one that sleeps on
    is_stopped: bool = False


class EmulatedJobs:
    """The jobs that run, and when each ends. Times are seconds of the cluster's clock."""

    def __init__(
        self, default_run_s: float, overhead_s: float = 0.0, *, sleeps: bool = False
    ) -> None:
        self._sleeps = sleeps  # scripts are as `sleep`, whose time goes on while they are stopped
        self._default_run_s, self._overhead_s = default_run_s, overhead_s
        self._runs: dict[Key, _Run] = {}
        self._heap: list[tuple[float, Key]] = []

    def __len__(self) -> int:
        return len(self._runs)

    def start(self, launch: LaunchBatch, now: float, times: float = 1.0) -> None:
        """A job begins. `times`: its nodes are so many times as slow as ever."""
        emulation = emulation_of(launch, self._default_run_s)
        key = launch.job_id, launch.restart
        ended = Ended(key, emulation.exit_code, emulation.signal, fault=emulation.fault)
        run_s = emulation.run_s * times
        limit_s = launch.exact_limit_s
        if limit_s is None:
            run = _Run(ended, now + launch.begins_after_s + run_s + self._overhead_s, math.inf)
        else:
            run = _Run(ended, launch.start_time + run_s, launch.start_time + float(limit_s))
        self._runs[key] = run
        self._set_end(key, run, now)

    def _set_end(self, key: Key, run: _Run, now: float) -> None:
        run.end = end = max(now, min(run.script_end, run.limit_end))
        if end != math.inf:
            heapq.heappush(self._heap, (end, key))

    def next_end(self) -> float | None:
        """When the next job ends."""
        heap, runs = self._heap, self._runs
        while heap:
            end, key = heap[0]
            run = runs.get(key)
            if run is not None and run.end == end:
                return end
            heapq.heappop(heap)  # killed, stopped or put off meanwhile
        return None

    def due(self, now: float) -> list[Ended]:
        """Take out the jobs that have ended by now, in order of time, then of job id."""
        done = []
        while (end := self.next_end()) is not None and end <= now:
            _, key = heapq.heappop(self._heap)
            run = self._runs.pop(key)
            done.append(
                run.ended
                if run.script_end <= run.limit_end
                else Ended(key, 0, signal.SIGTERM, timed_out=True)
            )
        return done

    def kill(self, key: Key, number: int = signal.SIGTERM) -> Ended | None:
        """End a job by a signal. None if it is not there."""
        return Ended(key, 0, int(number)) if self._runs.pop(key, None) is not None else None

    def signal(self, key: Key, number: int, now: float) -> Ended | None:
        """Send a job a signal, which may end it."""
        run = self._runs.get(key)
        if run is None or number in _IGNORED:
            return None
        if number in STOPPING:
            if not run.is_stopped:
                run.is_stopped, run.left_s = (
                    True,
                    run.script_end if self._sleeps else max(0.0, run.script_end - now),
                )
                run.script_end = math.inf
                self._set_end(key, run, now)
            return None
        if number == signal.SIGCONT:
            if run.is_stopped:
                run.is_stopped, run.script_end = (
                    False,
                    max(run.left_s, now) if self._sleeps else now + run.left_s,
                )
                self._set_end(key, run, now)
            return None
        return self.kill(key, number)


class EmulatedExecutor:
    """Ends emulated jobs at the cluster's time.

    `overhead_s`: what a real job takes beside its run, until its end is known; `kill_s`: how long
    one that is signalled to end still runs; `epilog_s`: what cleaning up takes.
    """

    def __init__(
        self,
        time: Timekeeper,
        default_run_s: float,
        on_ended: OnEnded,
        *,
        overhead_s: float = 0.0,
        kill_s: float = 0.0,
        epilog_s: float = 0.0,
        sleeps: bool = False,
        slowness: Callable[[str], float] = lambda _nodes: 1.0,
    ) -> None:
        self._time, self._on_ended, self._kill_s, self._epilog_s = time, on_ended, kill_s, epilog_s
        self._slowness = slowness
        self.jobs = EmulatedJobs(default_run_s, overhead_s, sleeps=sleeps)
        self._timer: asyncio.TimerHandle | None = None
        self._armed: float | None = None

    def start(self, launch: LaunchBatch) -> None:
        self.jobs.start(launch, self._time.now(), self._slowness(launch.nodes))
        self._arm()

    def signal(self, key: Key, number: int, *, batch_only: bool) -> None:  # noqa: ARG002  an emulated job is its script alone
        ended = self.jobs.signal(key, number, self._time.now())
        self._arm()
        if ended is not None:
            self._on_ended(ended.key, ended.exit_code, ended.signal, timed_out=False)

    def notify(self, key: Key, text: str) -> None:
        """An emulated job has no output."""

    def statistics(self, key: Key) -> list[list[object]]:
        """Nothing runs."""
        del key
        return []

    def kill(self, key: Key, why: str = "") -> None:  # noqa: ARG002
        ended = self.jobs.kill(key)
        self._arm()
        if ended is not None and self._kill_s > 0:
            self._time.call_at(self._time.now() + self._kill_s, self._killed, ended)
        elif ended is not None:
            self._on_ended(ended.key, ended.exit_code, ended.signal, timed_out=False)

    def _killed(self, ended: Ended) -> None:
        self._on_ended(ended.key, ended.exit_code, ended.signal, timed_out=False)

    @property
    def has_prolog(self) -> bool:
        return False

    def run_prolog(
        self,
        key: Key,  # noqa: ARG002
        nodes: str,  # noqa: ARG002
        program_environment: list[str],  # noqa: ARG002
        done: Callable[[dict[str, int]], None],
    ) -> None:
        done({})

    def run_epilog(self, job: NodeJob, nodes: str, delay_s: float, done: OnEpilogEnded) -> None:
        delay_s = max(delay_s, self._epilog_s) + (self._kill_s if job.lingers else 0.0)
        if delay_s > 0:
            self._time.call_at(self._time.now() + delay_s, done, job, nodes)
        else:
            done(job, nodes)

    def forget(self, key: Key) -> None:
        """Nothing is kept of a job."""

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self) -> None:
        end = self.jobs.next_end()
        if end == self._armed:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._armed = end
        if end is not None:
            self._timer = self._time.call_at(end, self._wake, end)

    def _wake(self, end: float) -> None:
        self._timer = self._armed = None
        # The timer's time counts even if the clock's last digit says that it is not reached yet:
        # else the loop would spin.
        for ended in self.jobs.due(max(end, self._time.now())):
            self._on_ended(
                ended.key,
                ended.exit_code,
                ended.signal,
                timed_out=ended.timed_out,
                fault=ended.fault,
            )
        self._arm()
