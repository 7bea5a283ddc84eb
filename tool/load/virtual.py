"""A load in virtual time: it takes part in the cluster's time as a replay does, sends each request
at the very instant at which it is due, and time passes as fast as the work that it makes.

Place: tool/load, beside `run.py`, whose figures these are. Here nothing is late, so what a request
took counts from when it left, in real seconds; and the same load is the same to the byte each time.
All daemons are in this process, as time would else be spent on turns between processes. Requests
go as messages between participants: a command that does more than ask cannot be had.
"""

from __future__ import annotations

import asyncio
import math
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from understudy.protocol.messages import (
    AccountingQuery,
    AnyMessage,
    CancelJobs,
    Failure,
    GetStatistics,
    Message,
    Query,
    Rows,
    Statistics,
)
from understudy.tool.cluster import launch
from understudy.tool.cluster.cluster_run import NAME, in_one_process
from understudy.tool.cluster.processes import identify
from understudy.tool.cluster.run_dir import exclusive
from understudy.tool.load.drivers import KeptLines, Outcome, refusals_in
from understudy.tool.load.lines import LineError, is_recordable
from understudy.tool.load.plan import PlanError
from understudy.tool.load.run import (
    Course,
    LoadError,
    as_result,
    daemons_of,
    figures,
    users_of,
)
from understudy.tool.load.samples import PERIOD_S, Sampler
from understudy.tool.load.schedule import Names, requests
from understudy.tool.load.target import UNDERSTUDY, Target, conf_of, machine
from understudy.tool.load.verify import Found
from understudy.tool.load.worker import Sender
from understudy.tool.replay.results import heeding_interrupts

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.protocol.messenger import Messenger
    from understudy.tool.cluster.cluster_run import Participant
    from understudy.tool.load.plan import Plan
    from understudy.tool.load.schedule import Request

VIRTUAL: Final = "virtual"
_TOGETHER: Final = "the daemons and the load"
_HEAD_START_S: Final = 5.0  # ours: of the cluster's time, until its nodes have registered
_SETTLING_S: Final = 60.0  # ours: of the cluster's time, until what was cancelled has ended
_AT_ONCE: Final = 1000  # ours: jobs in a question

_pack = msgspec.msgpack.Encoder().encode
_message_of = msgspec.msgpack.Decoder(AnyMessage).decode


def check_virtual(plan: Plan) -> None:
    """Refuse what cannot be had in virtual time.

    Raises:
        PlanError: a stream is of a command that does more than ask, or of another user.
    """
    if plan.connect_as:
        raise PlanError("--time virtual: connect_as needs connections, of which there are none")
    for stream in plan.streams:
        for line in filter(None, (stream.command, stream.then)):
            if not is_recordable(line):
                raise PlanError(
                    f"--time virtual: stream {stream.name}: {line.split(None, 1)[0]} does more "
                    "than ask, and takes real time: it needs real or scaled:N"
                )


@dataclass(slots=True)
class Messages:
    """A driver that sends as a participant."""

    messenger: Messenger
    _lines: KeptLines = field(default_factory=KeptLines)

    async def prepare(self) -> None: ...

    async def send(self, line: str, run: float, timeout_s: float) -> Outcome:
        try:
            messages = self._lines.messages(line, run)
        except LineError as error:
            return Outcome((str(error),))
        job_id, refusals = 0, []
        for packed in messages:
            answer = await self.messenger.call("controller", whole(packed), timeout_s)
            _tag, *fields = msgspec.to_builtins(answer)
            name = type(answer).__name__
            refusals += refusals_in(name, fields)
            if name == "Submitted":
                job_id = fields[0]
        return Outcome(tuple(refusals), job_id)

    def close(self) -> None: ...


def whole(packed: list[Any]) -> Message:
    """The message that a command would send; a listing comes in one piece."""
    message: Message = _message_of(_pack(packed))
    if isinstance(message, Query) and message.in_parts:
        return Query(message.table, message.columns, message.where, message.all_partitions)
    return message


def run_virtual(
    plan: Plan, *, leave: bool, progress: Callable[[Course, Sampler], None]
) -> dict[str, Any]:
    """Start a cluster, send the load, and say what came of it, as `run.run` does.

    Raises:
        LoadError, LaunchError, ConfigError: it could not be sent.
    """
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="understudy-load-") as folder:
        conf, run_dir = Path(folder) / "slurm.conf", Path(folder) / "run"
        conf.write_text(conf_of(plan))
        with exclusive(run_dir):
            cluster = launch.prepare(
                run_dir,
                conf,
                time=VIRTUAL,
                tcp="never",
                state="memory",  # as replays do: else time would stand while the disk works
                log_level="error",
                participants=[NAME],
            )
            load = _Load(plan, leave=leave, progress=progress)
            result = in_one_process(cluster, run_dir, load.work)
    return as_result({**result, "machine": facts})


class _Load:
    """One run of it."""

    def __init__(
        self, plan: Plan, *, leave: bool, progress: Callable[[Course, Sampler], None]
    ) -> None:
        self._plan = plan
        self._leaves, self._progress = leave, progress
        self.course = Course(plan)

    async def work(self, participant: Participant) -> dict[str, Any]:
        """Send all, and ask in the end whether all is there."""
        messenger = participant.messenger
        await asyncio.sleep(_HEAD_START_S)
        nodes = [row[0] for row in await _rows(messenger, "nodes", ["name"])]
        partitions = await _rows(messenger, "partitions", ["name", "is_default"])
        default = next((name for name, is_default in partitions if is_default), "")
        target = Target(UNDERSTUDY, Path(sys.executable).parent, {}, nodes)
        target.daemons = [identify(_TOGETHER, os.getpid())]
        todo = requests(self._plan, Names(nodes, default, users_of(self._plan)))
        self.course.begin = time.monotonic()
        sampler = Sampler(target, self.course.begin)
        before = sampler.uses()
        await self._send(participant, todo, sampler)
        elapsed = time.monotonic() - self.course.begin
        after = settled = sampler.uses()
        lost = await self._missing(participant)
        if not self._leaves:
            for part in _parts(self.course.jobs):
                await messenger.call("controller", CancelJobs([str(each) for each in part]), 600.0)
            await asyncio.sleep(_SETTLING_S)
            settled = sampler.uses()
        return {
            **figures(self.course, elapsed, Found(lost, set())),
            "not_asked": "",
            "is_virtual": True,
            "driver": UNDERSTUDY,
            "cluster": "understudy, emulated jobs, virtual time",
            "nodes": len(nodes),
            "daemons": daemons_of(sampler, before, after, settled),
            "plan": asdict(self._plan),
            "over_time": self.course.seconds,
            "samples": sampler.samples,
        }

    async def _send(self, participant: Participant, todo: list[Request], sampler: Sampler) -> None:
        """Send all, or what there is time for until a signal comes."""
        loop, messenger, stop = participant.loop, participant.messenger, asyncio.Event()

        def interrupted(number: int) -> None:
            self.course.interrupted_by = number
            stop.set()

        begin, told = loop.time(), time.monotonic()
        sender = Sender(
            self._plan, Messages(messenger), 1.0, clock=loop.time, stopwatch=time.monotonic
        )
        with heeding_interrupts(participant, interrupted, lambda _number: None):
            sending = asyncio.ensure_future(sender.run(todo, begin, stop))
            for second in range(1, math.ceil(self._plan.duration) + 1):
                await asyncio.wait({sending}, timeout=begin + second - loop.time())
                if stop.is_set():
                    break
                if not sending.done() and time.monotonic() - told >= PERIOD_S:
                    told = time.monotonic()
                    await self._tell(messenger, sender, sampler, loop.time() - begin)
            await sending
        await self._tell(messenger, sender, sampler, loop.time() - begin)

    async def _tell(
        self, messenger: Messenger, sender: Sender, sampler: Sampler, at: float
    ) -> None:
        """Take a sample of the controller, and tell how far it has come, `at` which second of the
        cluster's time.
        """
        asked = time.monotonic()
        answer = await messenger.call("controller", GetStatistics(), 600.0)
        sample: dict[str, Any] = {"at": round(at, 3), "real": round(asked - self.course.begin, 3)}
        if isinstance(answer, Statistics):
            sample.update(answer.numbers)
            sample["answered_ms"] = round((time.monotonic() - asked) * 1000, 3)
        sampler.samples.append({**sample, "daemons": sampler.uses()})
        self.course.take(0, sender.report())
        self.course.end_second(at)
        self._progress(self.course, sampler)

    async def _missing(self, participant: Participant) -> set[int]:
        """Those of the acknowledged jobs that nobody knows."""
        messenger = participant.messenger
        rows = await _rows(messenger, "jobs", ["job_id", "array_job_id"])
        left = set(self.course.jobs).difference(*rows)
        if left and participant.cluster.accounting_unix:
            await asyncio.sleep(_SETTLING_S)  # until accounting has heard of all
            for part in _parts(sorted(left)):
                columns = ["job_id", "array_job_id"]
                question = AccountingQuery("jobs", columns, {"jobs": list(part)}, [])
                answer = await messenger.call("accounting", question, 600.0)
                if isinstance(answer, Failure):
                    raise LoadError(f"accounting: {answer.text}")
                _tag, found, *_ = msgspec.to_builtins(answer)
                left = left.difference(*found)
        return left


async def _rows(messenger: Messenger, table: str, columns: list[str]) -> list[list[Any]]:
    answer = await messenger.call("controller", Query(table, columns), 600.0)
    if isinstance(answer, Failure):
        raise LoadError(answer.text)
    assert isinstance(answer, Rows)
    return answer.rows


def _parts(jobs: list[int]) -> list[list[int]]:
    return [jobs[start : start + _AT_ONCE] for start in range(0, len(jobs), _AT_ONCE)]
