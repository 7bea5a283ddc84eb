"""Futures of a cluster that is running (`understudy branch` without a trace): its process forks,
and the copy is forked again as a replay's is.

Place: beside scenarios.py. The door is in the cluster's process, `LiveRun` and all below it in a
copy: there the clock, commands and the cluster's run directory are let go of, and time is granted
by nobody. The copy goes on to the instant (now, if none is named) and becomes the parent of all
futures (forks.py); the cluster itself has nothing to do with it any more.

    cluster's process
     |- copy              runs to the instant, forks, waits for all, tells who asked
         |- original      goes on unchanged
         |- 1, 2 ...      each makes its change and goes on
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import signal
import time as real_time
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

from understudy.clock.timers import NEVER
from understudy.controller.jobs.following import Following
from understudy.experiments.futures import ORIGINAL, Deed, Future
from understudy.experiments.recording import Follower, Recording
from understudy.experiments.records import JobRecord, record_of
from understudy.experiments.replay import ReplayOptions, submission
from understudy.experiments.run_folder import JobsFile
from understudy.model.conf_copy import copy_configuration
from understudy.protocol import addresses
from understudy.protocol.messages import AwaitEmpty, AwaitRecorded, Failure
from understudy.protocol.messenger import Messenger
from understudy.tool.cluster.clock_client import instant
from understudy.tool.cluster.cluster_run import NAME, Ending, OneProcess, Participant
from understudy.tool.replay.change import ChangeFailedError
from understudy.tool.replay.folder import replay_dir
from understudy.tool.replay.forks import Forks, FutureResult, Instant, told
from understudy.tool.replay.results import (
    FAILED,
    INTERRUPTED,
    RunResults,
    UsageError,
    exit_code,
    heeding_interrupts,
    raise_if_ended_early,
    write_results,
)

if TYPE_CHECKING:
    import random
    import socket
    from collections.abc import Iterator, Sequence

    from understudy.clock.daemon import Daemon
    from understudy.clock.logs import Logs
    from understudy.clock.virtual_loop import VirtualEventLoop
    from understudy.controller.edge.main import Controller
    from understudy.experiments.trace import TraceJob
    from understudy.model.cluster import Cluster
    from understudy.protocol.messages import JobRun, Message
    from understudy.protocol.messenger import MemoryNetwork

_LIMIT_STEP_S: Final = 60  # what sbatch rounds time limits up to


@dataclass(frozen=True, slots=True)
class LiveRequest:
    """What the user asked for: paths are absolute, `at` and `until` as on the command line, `cpus`
    those that the futures may use.
    """

    out: str
    futures: list[dict[str, Any]]
    at: list[str]
    until: str
    most: int
    cpus: list[int]

    @staticmethod
    def packed(future: Future) -> dict[str, Any]:
        """A future as it is sent."""
        return asdict(replace(future, trace=None)) | {
            "trace": None if future.trace is None else str(future.trace.absolute())
        }

    def unpacked(self) -> list[Future]:
        """The futures as they were."""
        return [
            Future(
                **each
                | {
                    "deeds": tuple(
                        Deed(**deed | {"words": tuple(deed["words"])}) for deed in each["deeds"]
                    ),
                    "settings": tuple(each["settings"]),
                    "trace": None if each["trace"] is None else Path(each["trace"]),
                }
            )
            for each in self.futures
        ]


@dataclass(slots=True)
class Living:
    """A running cluster whose daemons are all in this process."""

    loop: VirtualEventLoop
    network: MemoryNetwork
    logs: Logs
    daemons: list[Daemon]  # the controller's first
    controller: Controller

    @property
    def cluster(self) -> Cluster:
        return self.daemons[0].cluster


# --- the cluster's process ------------------------------------------------------------------------


class Door:
    """Where the cluster's process is asked to fork; the kernel lets nobody in but who runs it."""

    def __init__(self, living: Living) -> None:
        self._living = living
        before = os.umask(0o177)
        try:
            self._listener = addresses.listen(f"unix:{living.cluster.branch_socket}")
        finally:
            os.umask(before)
        self._listener.setblocking(False)
        living.loop.add_reader(self._listener.fileno(), self._accept)

    def close(self) -> None:
        """Open no more."""
        self._living.loop.remove_reader(self._listener.fileno())
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            channel, _ = self._listener.accept()
            channel.setblocking(False)
            self._living.loop.add_reader(channel.fileno(), self._read, channel, bytearray())

    def _read(self, channel: socket.socket, heard: bytearray) -> None:
        try:
            data = channel.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        heard += data
        if data and not heard.endswith(b"\n"):
            return
        self._living.loop.remove_reader(channel.fileno())
        channel.setblocking(True)
        try:
            request = msgspec.json.decode(bytes(heard), type=LiveRequest)
        except msgspec.MsgspecError as error:
            _end(channel, FAILED, f"malformed request: {error}")
            channel.close()
            return
        self._living.loop.run_outside(self._fork, channel, request)

    def _fork(self, channel: socket.socket, request: LiveRequest) -> None:
        """All of the cluster stands still. The copy is nobody's child, so nobody has to wait for
        it.
        """
        try:
            between = os.fork()
        except OSError as error:
            _end(channel, FAILED, f"the cluster could not be copied: {error.strerror}")
        else:
            if not between:
                self._become(channel, request)
                return
            os.waitpid(between, 0)
        channel.close()

    def _become(self, channel: socket.socket, request: LiveRequest) -> None:
        """Be the copy: returns into its loop."""
        try:
            if os.fork():
                os._exit(0)
            _let_go(self._living, channel, request.cpus)
            LiveRun(self._living, channel, request).begin()
        except BaseException as error:  # noqa: BLE001  nobody above is this process's
            code, why = told(error)
            _end(channel, code, why)
            os._exit(code)


def _let_go(living: Living, channel: socket.socket, cpus: Sequence[int]) -> None:
    """Part from the cluster: its clock, who speaks with it, its terminal and its CPU."""
    os.setsid()
    loop = living.loop
    loop.go_on_in_fork()
    link, loop.authority = loop.authority, None
    loop.window_end_us, loop.needed_us = NEVER, -1
    link.forsake()  # type: ignore[union-attr]
    for daemon in living.daemons:
        daemon.messenger.forsake()
    with open(os.devnull, "r+b") as nowhere:
        own = {loop.selector.fileno(), channel.fileno(), loop._ssock.fileno()}  # type: ignore[attr-defined]
        others = {key.fd for key in loop.selector.get_map().values()} - own
        for fd in others:  # the door, figures for Prometheus
            loop.remove_reader(fd)
            loop.remove_writer(fd)
        for fd in (0, 1, 2, *others):
            os.dup2(nowhere.fileno(), fd)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, cpus)


def _send(channel: socket.socket, what: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # who asked is gone
        channel.sendall(json.dumps(what).encode() + b"\n")


def _end(
    channel: socket.socket, code: int, error: str, results: Sequence[FutureResult] = ()
) -> None:
    """The last that is said."""
    told_of = [asdict(each) | {"folder": str(each.folder)} for each in results]
    _send(channel, {"code": code, "error": error, "results": told_of})


# --- a copy ---------------------------------------------------------------------------------------


class _LiveRecording(Recording):
    """Jobs by their own numbers: nobody has given them names."""

    def add(self, runs: Sequence[JobRun]) -> list[JobRecord]:
        return super().add([msgspec.structs.replace(each, tag=_own_name(each)) for each in runs])


def _own_name(told: JobRun) -> str:
    return str(told.array_job_id or told.het_job_id or told.job_id)


class LiveRun:
    """The cluster's further run, in the copy and in each future of it."""

    def __init__(self, living: Living, channel: socket.socket, request: LiveRequest) -> None:
        cluster = living.cluster
        self._living, self._channel, self._request = living, channel, request
        self._zero = cluster.zero or cluster.epoch
        self._recording = _LiveRecording(self._record)
        self._out = Path(request.out)
        self._forks = Forks(
            self._out / ORIGINAL,
            [],
            request.unpacked(),
            request.most,
            lambda line: _send(channel, {"say": line}),
        )
        self._forks.over = self._all_over
        self._forks.on_begun = self._begun
        self._loop, self._began = living.loop, real_time.perf_counter()
        messenger = Messenger(
            NAME,
            living.loop,
            None,
            user_id=os.getuid(),
            group_id=os.getgid(),
            latency_s=cluster.latency_s,
            link_latency=cluster.link_latency,
            network=living.network,
        )
        self.participant = Participant(
            living.loop,
            messenger,
            living.daemons[0].time,
            cluster,
            lambda react: setattr(living.loop, "on_stalled", react),
        )
        self._signal = 0
        self._error = ""
        self._rejected: list[str] = []
        self._expected = self._awaited = 0
        self._has_begun = False
        self._ended: asyncio.Future[str] = living.loop.create_future()
        self._closing = contextlib.ExitStack()
        self._task: asyncio.Task[None] | None = None

    # --- to the instant -------------------------------------------------------------------------

    def begin(self) -> None:
        """Take files and instants of its own, and go on in the loop that there is."""
        living, cluster = self._living, self._living.cluster
        self._forks.out.mkdir(parents=True, exist_ok=True)
        self._forks.place_at(self._instants())
        until = self._until()
        self._dir = self._closing.enter_context(replay_dir(self._forks.out))
        source = self._dir.path / "source"
        source.mkdir()
        for folder in (source, self._dir.path):
            copy_configuration(living.daemons[0].run_dir / "slurm.conf", folder)
        cluster.conf = str(source / "slurm.conf")
        for deed in (deed for future in self._request.unpacked() for deed in future.deeds):
            with contextlib.suppress(KeyError):  # the change will say so
                if deed.user not in cluster.users:
                    cluster.users[deed.user] = pwd.getpwnam(deed.user).pw_uid
        self._ending = Ending(living.loop, self._dir.path)
        for daemon in living.daemons:
            daemon.on_failure = partial(self._ending.end, f"{daemon.name} failed")
        core = living.controller.core
        # from now on: a message would come too late for what ends in between
        core.following = Following(core)
        living.controller.tell_nobody_outside()
        made = OneProcess(
            living.loop,
            cluster,
            self._ending,
            living.logs,
            living.daemons,
            living.controller,
        )
        made.move(self._dir.path)
        self._forks.follow(self)
        self._forks.heed(self._channel)
        self._loop.add_reader(self._channel.fileno(), os.kill, os.getpid(), signal.SIGTERM)
        _send(self._channel, {"pid": os.getpid()})
        self._forks.begin(made)
        self._task = self._loop.create_task(self._main(until))

    def _instants(self) -> list[Instant]:
        """When the copy is forked.

        Raises:
            UsageError: an instant that is none, or past.
        """
        now, out = self.participant.time.now(), self._out
        shown = real_time.strftime("%Y-%m-%dT%H:%M:%S", real_time.localtime(now))
        if not self._request.at:
            return [Instant(shown, out, at_us=self._loop.now_us)]
        found = []
        for text in self._request.at:
            when = self._when("--at", text)
            if when < now:
                raise UsageError(f"--at {text}: that is past: the cluster's time is {shown}")
            name = f"at-{text.strip().replace(':', '')}"
            several = len(self._request.at) > 1
            found.append(
                Instant(
                    text,
                    out / name if several else out,
                    f"{name}/" if several else "",
                    round((when - self._living.cluster.epoch) * 1e6),
                )
            )
        return found

    def _until(self) -> float | None:
        if not self._request.until:
            return None
        until = self._when("--until", self._request.until)
        last = max(each.at_us for each in self._instants()) / 1e6 + self._living.cluster.epoch
        if until <= last:
            raise UsageError(f"--until {self._request.until}: the futures begin later")
        return until

    def _when(self, option: str, text: str) -> float:
        try:
            return instant(text, self._zero)
        except ValueError as error:
            raise UsageError(f"{option} {error}") from None

    def _all_over(self) -> NoReturn:
        """In the parent of all futures, when they are over."""
        code, forks = self._forks.code(), self._forks
        self._dir.has_failed |= any(each.code == FAILED for each in forks.results)
        self._leave(code, INTERRUPTED if forks.signal else "")

    def _leave(self, code: int, error: str) -> NoReturn:
        """End the copy."""
        with contextlib.suppress(OSError):
            self._closing.close()
        _end(self._channel, code, error, self._forks.results)
        os._exit(code)

    # --- on ---------------------------------------------------------------------------------------

    async def _main(self, until: float | None) -> None:
        """The run and its results; nothing comes after it in this process."""
        code, error = 0, ""
        try:
            with contextlib.closing(JobsFile(self._forks.out)) as file:
                self._recording.write, self._recording.write_stories = file.add, file.add_stories
                self._forks.keep(file)
                with self._not_cancelled():
                    await self._ending.unless_lost(lambda _: self._go(until))(self.participant)
            code = self._write()
        except BaseException as raised:  # noqa: BLE001  nobody above is this process's
            code, error = told(raised)
        if self._forks.is_fork:
            self._forks.leave(code, error)
        self._dir.has_failed = True
        self._leave(code, error)

    @contextlib.contextmanager
    def _not_cancelled(self) -> Iterator[None]:
        """Who was asked to end, and could not say what became of all jobs in time, goes on with
        what is known.
        """
        try:
            yield
        except asyncio.CancelledError:
            if not self._signal:
                raise

    async def _go(self, until: float | None) -> None:
        """Until nothing is left to do, the horizon comes, or somebody ends it."""

        def end(why: str) -> None:
            if not self._ended.done():
                self._ended.set_result(why)

        def interrupted(number: int) -> None:
            self._signal = number
            end(INTERRUPTED)

        def abandon(_number: int) -> None:
            assert asking is not None
            asking.cancel()

        asking = asyncio.current_task()

        self.participant.on_stalled(lambda _why: end(""))
        with heeding_interrupts(self.participant, interrupted, abandon):
            follower = Follower(self.participant.messenger, self._recording, 0)
            follower.follow()
            if until is not None:
                self.participant.time.call_at(until, end, "")
            self._error = await self._ended
            if self.participant.cluster.keeps_accounting:
                await self.participant.messenger.call("controller", AwaitRecorded(), 600.0)
            told_all: asyncio.Future[str] = self._loop.create_future()
            follower.finish(told_all.set_result)
            self._error = self._error or await told_all

    def _begun(self) -> None:
        """What a future does differently is done."""
        self._loop.remove_reader(self._channel.fileno())  # the parent of all heeds it
        self._has_begun = True
        self._await_empty()

    def _give_up(self, why: str) -> None:
        if not self._ended.done():
            self._ended.set_result(why)

    def _await_empty(self) -> None:
        """Ask to be told when no job is left, unless more is to come."""
        if self._expected:
            return
        self._recording.await_end(self._give_up)
        self._awaited += 1
        number = self._awaited

        def answered(_answer: Message) -> None:
            if number == self._awaited and not (self._expected or self._ended.done()):
                self._ended.set_result("")

        self.participant.messenger.send("controller", AwaitEmpty(), answered, float("inf"))

    # --- what changes ask for ---------------------------------------------------------------------

    def words(self, words: Sequence[str]) -> list[str]:
        """As they are."""
        return list(words)

    def multiply(self, load: float, rng: random.Random) -> None:
        """Nobody knows what is still to come."""
        del rng
        raise ChangeFailedError(
            f"load {load:g}: nobody knows which jobs are to come to a running cluster; `trace` "
            "and `do` have more come"
        )

    def add_trace(self, jobs: Sequence[TraceJob]) -> None:
        """Submit them, their zero now."""
        options = ReplayOptions(limit_step_s=_LIMIT_STEP_S)
        for job in jobs:
            self.participant.messenger.send(
                "controller",
                submission(job, options),
                partial(self._refused, job.id),
                only_failures=True,
                ahead_s=float(job.submit),
            )
        self.expect(1)
        last = self.participant.time.now() + jobs[-1].submit
        self.participant.time.call_at(last, self.expect, -1)

    def _refused(self, job: int, answer: Message) -> None:
        text = answer.text if isinstance(answer, Failure) else "it was not answered"
        self._rejected.append(f"job {job} of the trace was refused: {text}")

    def tag(self, name: str) -> str:
        """Jobs have their numbers."""
        return name

    def expect(self, more: int) -> None:
        """So many submissions are yet to come, before which the run is not over; a negative number:
        so many have come.
        """
        self._expected += more
        if more < 0 and self._has_begun:
            self._await_empty()

    # --- results ----------------------------------------------------------------------------------

    def _record(self, told: JobRun, task: str) -> JobRecord:
        return record_of(told, int(self._zero), told.job_id, task)

    def _write(self) -> int:
        """The future's folder. The exit code.

        Raises:
            ReplayError: it ended early.
        """
        living, forks = self._living, self._forks
        config, numbers = living.controller.config, dict[str, int]()
        ordered = sorted(self._recording.last.items(), key=lambda each: (each[1].job, each[0][2]))
        records = []
        for number, (_, record) in enumerate(ordered, 1):
            numbers[record.id] = number
            records.append(msgspec.structs.replace(record, job=number))
        results = RunResults(
            records,
            [
                msgspec.structs.replace(each, job=numbers[each.id])
                for each in self._recording.attempts
            ],
            sum(node.cpus for node in config.nodes),
            real_time.perf_counter() - self._began,
            error=INTERRUPTED if self._signal else self._error,
            signal=self._signal,
            watched=self._recording.watched,
        )
        about = {
            "cluster": living.cluster.name,
            "zero": self._zero,
            "calendar": True,
            "scheduler": config.text("SchedulerType"),
            "daemons": "one process",
            **({"refused_of_the_trace": self._rejected} if self._rejected else {}),
            **forks.about(),
        }
        text = forks.slurm_conf or Path(living.cluster.conf).read_text(
            encoding="utf-8", errors="surrogateescape"
        )
        title = f"Cluster {living.cluster.name} from {', '.join(forks.branched_at)}"
        summary, _ = write_results(forks.out, results, about, text, title)
        raise_if_ended_early(results, forks.out)
        return exit_code(summary)
