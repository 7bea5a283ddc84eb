"""A process that sends its share of a load: `python -m understudy.tool.load.worker`, started by
run.py, which tells it by stdin what to do and reads from its stdout what became of it.

Place: tool/load. Lines of JSON. In: one that describes the work, one with the monotonic time at
which it begins, then lines with jobs that were acknowledged to others; the end of stdin means to
stop. Out: `{"ready": true}`, each second a `Tally` for each stream with the jobs that were
acknowledged, and the last with `"done": true`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from understudy.commands.shared.client import RefusedError
from understudy.commands.shared.locate import Location
from understudy.tool.load.connections import Connection, Pool
from understudy.tool.load.drivers import Messages, Outcome, Processes
from understudy.tool.load.measure import Tally, histogram, record
from understudy.tool.load.plan import parse_plan
from understudy.tool.load.schedule import Names, Request, requests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from understudy.tool.load.drivers import Driver
    from understudy.tool.load.plan import Plan, Stream

REPORT_S: Final = 1.0  # ours
INSTANT_S: Final = 1e-6  # ours: virtual time has no shorter one
_LONGEST_LINE: Final = 1 << 28  # bytes: it may hold the names of all nodes
NO_JOB: Final = "no job was known yet"


class Sender:
    """Sends requests when they are due and counts what became of them. `speed`: how much faster
    than real the cluster's time is. `stopwatch`: another clock by which answers are timed, from
    when a request leaves (under virtual time, where none leaves late).
    """

    def __init__(
        self,
        plan: Plan,
        driver: Driver,
        speed: float,
        clock: Callable[[], float] = time.monotonic,
        stopwatch: Callable[[], float] | None = None,
    ) -> None:
        self._plan, self._driver, self._speed, self._clock = plan, driver, speed, clock
        self._stopwatch = stopwatch or clock
        self._is_timed_apart = stopwatch is not None
        self._known: list[int] = []  # jobs, the latest last
        # of requests that another follows: the job that it went to, as soon as it is answered
        self._went_to: dict[tuple[int, int], asyncio.Future[int]] = {}
        self.waiting = 0
        self._fresh()

    def _fresh(self) -> None:
        self._tallies: dict[str, Tally] = {}
        self._jobs: list[int] = []  # that were acknowledged to it
        self._late = histogram()  # of the sending itself

    def report(self) -> dict[str, Any]:
        """What there is since the last report."""
        found = {
            "streams": {name: tally.packed() for name, tally in self._tallies.items()},
            "late": self._late.encode().decode(),
            "jobs": self._jobs,
            "waiting": self.waiting,
            "cpu": time.process_time(),
        }
        self._fresh()
        return found

    def hear(self, jobs: list[int]) -> None:
        """Jobs that were acknowledged to other processes."""
        self._known += jobs

    async def run(self, todo: list[Request], begin: float, stop: asyncio.Event) -> None:
        """Send all and wait until all are answered or have had their time. Once `stop` is set no
        more than what follows, and undoes, something that was sent.
        """
        async with asyncio.TaskGroup() as group:
            for request in todo:
                due = begin + request.due / self._speed
                while (left := due - self._clock()) > INSTANT_S and not stop.is_set():
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(stop.wait(), left)
                if stop.is_set():
                    if not request.follows or _pair(request) not in self._went_to:
                        continue
                    due = self._clock()
                record(self._late, self._clock() - due)
                group.create_task(self._send(request, due))
                if not request.follows and self._plan.streams[request.stream].then:
                    self._went_to[_pair(request)] = asyncio.get_running_loop().create_future()

    async def _send(self, request: Request, due: float) -> None:
        stream, job = self._plan.streams[request.stream], 0
        if request.follows:
            first = self._went_to[_pair(request)]
            if not first.done():
                await first
                due = self._clock()
            job = first.result()
            del self._went_to[_pair(request)]
        elif self._known:
            job = drawn(self._known, request.draw)
        self._tally(stream.name).sent += 1
        self.waiting += 1
        begin = self._stopwatch() if self._is_timed_apart else due
        if "{job}" in request.line and not job:
            outcome = Outcome((NO_JOB,))
        else:
            line = request.line.replace("{job}", str(job))
            outcome = await self._driver.send(line, request.run, self._plan.timeout)
        self.waiting -= 1
        self._count(stream, outcome, self._stopwatch() - begin)
        if not request.follows and stream.then:
            self._went_to[_pair(request)].set_result(outcome.job_id or job)

    def _count(self, stream: Stream, outcome: Outcome, took: float) -> None:
        tally = self._tally(stream.name)
        tally.answered += 1
        record(tally.latencies, took)
        if outcome.job_id:
            tally.acknowledged += 1
            self._jobs.append(outcome.job_id)
            self._known.append(outcome.job_id)
        for text in outcome.refusals:
            is_expected = text == NO_JOB or any(part in text for part in stream.expected)
            (tally.refusals if is_expected else tally.errors)[text] += 1

    def _tally(self, name: str) -> Tally:
        found = self._tallies.get(name)
        if found is None:  # an empty histogram takes as long as a request
            found = self._tallies[name] = Tally()
        return found


def drawn(jobs: list[int], draw: float) -> int:
    """One of the jobs, by a `draw` of at least 0 and less than 1: the last is as likely as the two
    before it together, and these as the four before them, as users ask for what they have just
    submitted.
    """
    return jobs[-min(int((len(jobs) + 1) ** draw), len(jobs))]


def _pair(request: Request) -> tuple[int, int]:
    return request.stream, request.number


def make_driver(work: Mapping[str, Any], plan: Plan) -> Driver:
    """The driver that the work asks for."""
    shares = work["shares"]
    most = max(1, plan.connections // shares)
    users = work["connect_as"]
    processes = Processes(
        Path(work["bin"]), {**os.environ, **work["environment"]}, Path(work["folder"]), most, users
    )
    if work["driver"] != "understudy":
        return processes
    location = Location(**work["location"])
    connections = [
        Connection(
            lambda: location,
            plan.timeout,
            over_tcp=work["tcp"],
            user=users[number % len(users)] if users else (),
        )
        for number in range(most)
    ]
    return Messages(Pool(connections), processes, plan.timeout)


async def _work() -> None:
    loop = asyncio.get_running_loop()
    told = asyncio.StreamReader(limit=_LONGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(told), sys.stdin)
    work = json.loads(await told.readline())
    plan = parse_plan(work["plan"], "the plan", work["name"])
    share, shares = work["share"], work["shares"]
    names = Names(work["nodes"], work["partition"], work["users"])
    todo = requests(plan, names, share, shares)
    driver = make_driver(work, plan)
    try:
        await driver.prepare()
    except RefusedError as error:
        _say({"failed": error.text})
        return
    _say({"ready": True, "requests": len(todo)})
    line = await told.readline()
    if not line:
        return
    begin = json.loads(line)["begin"]
    stop = asyncio.Event()
    sender = Sender(plan, driver, work["speed"])
    heeding = asyncio.create_task(_heed(told, sender, stop))
    sending = asyncio.create_task(sender.run(todo, begin, stop))
    stopping = asyncio.create_task(stop.wait())
    while not sending.done():
        waits_for = {sending} if stopping.done() else {sending, stopping}
        await asyncio.wait(waits_for, timeout=REPORT_S, return_when=asyncio.FIRST_COMPLETED)
        if stopping.done() and waits_for == {sending}:
            sending.cancel()  # it has had a moment for what was on its way
        _say(sender.report())
    stopping.cancel()
    heeding.cancel()
    driver.close()
    if not sending.cancelled():
        sending.result()
    _say({**sender.report(), "done": True})


async def _heed(told: asyncio.StreamReader, sender: Sender, stop: asyncio.Event) -> None:
    """Read what is told during the load, until stdin ends."""
    while line := await told.readline():
        sender.hear(json.loads(line)["jobs"])
    stop.set()


def _say(values: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Do the work that stdin describes."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(_work())


if __name__ == "__main__":
    main()
