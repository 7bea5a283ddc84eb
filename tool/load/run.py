"""A load from its plan to its result: processes that send, samples of the daemons meanwhile, and
afterwards the question whether all that was acknowledged is there.

Place: tool/load; what `understudy load` calls. It prints nothing: who calls is told of progress.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from understudy.commands.shared.client import RefusedError
from understudy.tool.load import verify
from understudy.tool.load.measure import (
    PERCENTILES,
    Tally,
    histogram,
    name_of,
    percentile_ms,
)
from understudy.tool.load.samples import Sampler
from understudy.tool.load.target import SLURM, TargetError, machine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hdrh.histogram import HdrHistogram

    from understudy.tool.load.plan import Plan
    from understudy.tool.load.target import Target

SILENT, BROKEN, LOST, WRONG = 1, 1, 3, 4  # exit codes
_HEAD_START_S: Final = 0.5  # ours: until all processes have heard when it begins
_OPENING_S: Final = 120.0  # ours: until all connections are open
_ENDING_S: Final = 10.0  # ours: for a process that has nothing left to send
_SETTLING_S: Final = 15.0  # ours: until what was cancelled has ended, and memory is given back
_FALLEN_BEHIND_MS: Final = (
    20.0  # ours: of the sending itself; then the figures are not the cluster's
)


@dataclass(slots=True)
class Course:
    """A load as far as it has come."""

    plan: Plan
    begin: float = 0.0  # monotonic
    streams: dict[str, Tally] = field(default_factory=dict)
    late: HdrHistogram = field(default_factory=histogram)
    jobs: list[int] = field(default_factory=list)
    seconds: list[dict[str, Any]] = field(default_factory=list)  # of each second, by stream
    waiting: dict[int, int] = field(default_factory=dict)  # by process
    cpu: dict[int, float] = field(default_factory=dict)
    finished: set[int] = field(default_factory=set)  # processes that have nothing left to do
    interrupted_by: int = 0  # a signal
    broken: list[str] = field(default_factory=list)  # of processes that ended before their time
    _second: dict[str, Tally] = field(default_factory=dict)

    def take(self, share: int, told: dict[str, Any]) -> None:
        """What a process has told."""
        for name, values in told["streams"].items():
            tally = Tally.unpacked(values)
            for known in (self.streams, self._second):
                if name in known:
                    known[name].add(tally)
                else:
                    known[name] = Tally.unpacked(values)
        self.late.decode_and_add(told["late"].encode())
        self.jobs += told["jobs"]
        self.waiting[share], self.cpu[share] = told["waiting"], told["cpu"]

    def end_second(self, at: float | None = None) -> None:
        """Keep what has come in since the last time as a point of the pictures, at so many seconds
        of the cluster's time if that is not the real one.
        """
        self.seconds.append(
            {
                "at": round(time.monotonic() - self.begin if at is None else at, 3),
                "waiting": sum(self.waiting.values()),
                "streams": {
                    name: {
                        "sent": tally.sent,
                        "answered": tally.answered,
                        "errors": sum(tally.errors.values()),
                        **{name_of(each): tally.percentile_ms(each) for each in PERCENTILES},
                    }
                    for name, tally in self._second.items()
                },
            }
        )
        self._second = {}


class LoadError(Exception):
    """The load could not be begun; the text is for the user."""


def run(
    plan: Plan,
    target: Target,
    folder: Path,
    *,
    tcp: bool = False,
    leave: bool = False,
    progress: Callable[[Course, Sampler], None],
) -> dict[str, Any]:
    """Send the load, and say what came of it (docs/load-testing.md names the fields).

    Args:
        plan: what is sent.
        target: where to.
        folder: where processes run, and leave what they write.
        tcp: whether connections go over TCP.
        leave: whether jobs that have not ended stay.
        progress: called each second.

    Raises:
        LoadError: it could not be begun.
    """
    facts = machine()
    course = Course(plan)
    watch = verify.Watch(target, plan.duration)
    sending = _Sending(_work(plan, target, folder, tcp=tcp), plan.processes)
    with contextlib.closing(sending):
        sending.await_ready()
        course.begin = time.monotonic() + _HEAD_START_S
        sampler = Sampler(target, course.begin)
        before = sampler.uses()
        sampler.start()
        watch.start()
        sending.begin(course.begin)
        try:
            _follow(course, sending, sampler, progress)
        except KeyboardInterrupt as error:
            course.interrupted_by = error.args[0] if error.args else signal.SIGINT
            sending.stop()
            _follow(course, sending, sampler, progress)
        finally:
            sampler.finish()
            watch.finish()
    elapsed = time.monotonic() - course.begin
    after = settled = sampler.uses()
    found = verify.Found(set(), set())
    silence = ""
    try:
        found = verify.missing(target, course.jobs, watch.ended)
        if not leave:
            settled = _settle(target, course.jobs, sampler)
    except (RefusedError, TargetError) as error:
        silence = getattr(error, "text", "") or str(error)
    result = {
        **figures(course, elapsed, found),
        "not_asked": silence,
        "driver": target.driver,
        "cluster": target.describes,
        "nodes": len(target.nodes),
        "daemons": daemons_of(sampler, before, after, settled),
        "machine": facts,
        "plan": asdict(plan),
        "over_time": course.seconds,
        "samples": sampler.samples,
    }
    return as_result(result)


def as_result(result: dict[str, Any]) -> dict[str, Any]:
    """With the exit code that follows from it."""
    result["exit_code"] = exit_code(result)
    return result


def figures(course: Course, elapsed: float, found: verify.Found) -> dict[str, Any]:
    """What the streams came to."""
    late_ms = percentile_ms(course.late, 99)
    return {
        "name": course.plan.name,
        "interrupted": course.interrupted_by,
        "seconds": round(elapsed, 3),
        "acknowledged": len(course.jobs),
        "lost": len(found.lost),
        "lost_jobs": sorted(found.lost)[:100],
        "forgotten": len(found.forgotten),
        "broken": course.broken,
        "sent_late": {
            "p50_ms": percentile_ms(course.late, 50),
            "p99_ms": late_ms,
            "max_ms": percentile_ms(course.late, 100),
            "fell_behind": late_ms > _FALLEN_BEHIND_MS,
            "cpu_s": round(sum(course.cpu.values()), 2),
        },
        "streams": {
            stream.name: course.streams.get(stream.name, Tally()).figures(elapsed)
            for stream in course.plan.streams
        },
    }


def daemons_of(
    sampler: Sampler,
    before: dict[str, dict[str, float]],
    after: dict[str, dict[str, float]],
    settled: dict[str, dict[str, float]],
) -> dict[str, dict[str, float]]:
    """Of each daemon the CPU time that the load took, and its memory over time."""
    found = {}
    for name, use in after.items():
        begin = before.get(name, use)
        seen = [each["daemons"][name]["mb"] for each in sampler.samples if name in each["daemons"]]
        found[name] = {
            "cpu_s": round(use["cpu_s"] - begin["cpu_s"], 2),
            "mb_before": begin["mb"],
            "mb_peak": max([*seen, use["mb"]]),
            "mb_after": settled.get(name, use)["mb"],
        }
    return found


def exit_code(result: dict[str, Any]) -> int:
    """0: all that was acknowledged is there, and nothing was refused that should not be."""
    if result["not_asked"]:
        return SILENT
    if result["lost"]:
        return LOST
    if result["broken"]:
        return BROKEN
    if any(each["errors"] for each in result["streams"].values()):
        return WRONG
    return 128 + result["interrupted"] if result["interrupted"] else 0


# --- the processes that send ----------------------------------------------------------------------


class _Sending:
    """The processes that send. What they tell comes into one queue, from a thread for each."""

    def __init__(self, work: dict[str, Any], shares: int) -> None:
        self.told: queue.SimpleQueue[tuple[int, dict[str, Any]]] = queue.SimpleQueue()
        self._processes: list[subprocess.Popen[str]] = []
        self._threads: list[threading.Thread] = []
        try:
            for share in range(shares):
                process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "understudy.tool.load.worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    start_new_session=True,  # Ctrl-C is for this process, which tells them
                )
                self._processes.append(process)
                thread = threading.Thread(target=self._listen, args=(share, process), daemon=True)
                self._threads.append(thread)
                thread.start()
                self._tell(process, {**work, "share": share})
        except BaseException:
            self.close()
            raise

    def _listen(self, share: int, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.told.put((share, json.loads(line)))
        self.told.put((share, {"failed": f"it ended with {process.wait()}"}))

    def await_ready(self) -> None:
        """Return when all connections are open.

        Raises:
            LoadError: they cannot be.
        """
        deadline = time.monotonic() + _OPENING_S
        for _ in self._processes:
            try:
                _, told = self.told.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise LoadError(f"the connections are not open after {_OPENING_S:g} s") from None
            if "failed" in told:
                raise LoadError(f"a sending process: {told['failed']}")

    def begin(self, begin: float) -> None:
        """Tell all when to begin."""
        for process in self._processes:
            self._tell(process, {"begin": begin})

    def share(self, source: int, jobs: list[int]) -> None:
        """Tell the others of jobs that were acknowledged to one."""
        for share, process in enumerate(self._processes):
            if jobs and share != source:
                self._tell(process, {"jobs": jobs})

    @staticmethod
    def _tell(process: subprocess.Popen[str], values: dict[str, Any]) -> None:
        assert process.stdin is not None
        # it has ended, of which its thread tells, or has been told to stop
        with contextlib.suppress(OSError, ValueError):
            process.stdin.write(json.dumps(values) + "\n")
            process.stdin.flush()

    def stop(self) -> None:
        """Have them send no more."""
        for process in self._processes:
            with contextlib.suppress(OSError):
                process.stdin.close()  # type: ignore[union-attr]

    def close(self) -> None:
        """End them."""
        self.stop()
        for process in self._processes:
            try:
                process.wait(_ENDING_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for thread in self._threads:
            thread.join()
        for process in self._processes:
            process.stdout.close()  # type: ignore[union-attr]


def _work(plan: Plan, target: Target, folder: Path, *, tcp: bool) -> dict[str, Any]:
    """What a sending process must know."""
    return {
        "name": plan.name,
        "plan": as_table(plan),
        "folder": str(folder),
        "tcp": tcp,
        "users": users_of(plan),
        "connect_as": _connect_as(plan, tcp=tcp),
        "shares": plan.processes,
        **target.work(),
    }


def as_table(plan: Plan) -> dict[str, Any]:
    """The plan as `parse_plan` reads it."""
    table = _with_lists(asdict(plan))
    del table["name"]
    streams = [_with_lists(each) for each in table.pop("streams")]
    return {**table, "stream": streams}


def _with_lists(table: dict[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in table.items()}


def users_of(plan: Plan) -> list[str]:
    """Users of this host for whom jobs are submitted, which root may."""
    if not any(stream.users for stream in plan.streams):
        return []
    import pwd

    if os.geteuid():
        raise LoadError("users: only root may submit for others")
    return [entry.pw_name for entry in sorted(pwd.getpwall(), key=lambda each: each.pw_uid)]


def _connect_as(plan: Plan, *, tcp: bool) -> list[tuple[int, int]]:
    """The numbers of the users as whom connections are opened, and of their groups."""
    import pwd

    if plan.connect_as and os.geteuid():
        raise LoadError("connect_as: only root may connect as others")
    if plan.connect_as and tcp:
        raise LoadError("connect_as: --tcp connects as the one who sends the load")
    found = []
    for name in plan.connect_as:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            raise LoadError(f"connect_as: there is no user {name}") from None
        found.append((entry.pw_uid, entry.pw_gid))
    return found


def _follow(
    course: Course,
    sending: _Sending,
    sampler: Sampler,
    progress: Callable[[Course, Sampler], None],
) -> None:
    """Read what the processes tell until all have said that they are done, or have ended without
    a word.
    """
    due = max(time.monotonic(), course.begin) + 1.0
    while len(course.finished) < course.plan.processes:
        with contextlib.suppress(queue.Empty):
            share, told = sending.told.get(timeout=max(0.0, due - time.monotonic()))
            if "failed" not in told:
                course.take(share, told)
                sending.share(share, told["jobs"])
            elif share not in course.finished:
                course.broken.append(f"sending process {share}: {told['failed']}")
            if told.get("done") or "failed" in told:
                course.finished.add(share)
        if time.monotonic() >= due:
            course.end_second()
            progress(course, sampler)
            due += 1.0
    course.end_second()
    progress(course, sampler)


def _settle(target: Target, jobs: list[int], sampler: Sampler) -> dict[str, dict[str, float]]:
    """End what has not ended, and wait as long as the daemons' memory becomes less; what they use
    then.
    """
    if target.driver == SLURM and not jobs:
        return sampler.uses()
    verify.cancel(target, jobs)
    deadline = time.monotonic() + _SETTLING_S
    least = sampler.uses()
    while time.monotonic() < deadline:
        time.sleep(1.0)
        now = sampler.uses()
        if sum(each["mb"] for each in now.values()) >= sum(each["mb"] for each in least.values()):
            break
        least = now
    return least
