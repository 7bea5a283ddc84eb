"""To which jobs requests go: those that are known, the latest rather than the first, and what
follows a request to the same one, after its answer.

Covers: tool/load/worker, tool/load/schedule.
"""

import asyncio
from collections import Counter

import pytest

from understudy.tool.load.drivers import Outcome
from understudy.tool.load.measure import Tally
from understudy.tool.load.plan import Plan, Stream
from understudy.tool.load.schedule import Names, requests
from understudy.tool.load.worker import Sender, drawn

PLACES = Names(["n1", "n2"], "debug")


class SlowDriver:
    """Answers each line when the test says so; submissions with job numbers from 101."""

    def __init__(self):
        self.lines, self.answers = [], asyncio.Semaphore(0)
        self._last = 100

    async def prepare(self): ...

    async def send(self, line, _run, _timeout_s):
        self.lines.append(line)
        await self.answers.acquire()
        if not line.startswith("sbatch"):
            return Outcome()
        self._last += 1
        return Outcome((), self._last)

    def close(self): ...


async def settled():
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def begun():
    """Start a load all of which is due: its driver, its sender, what is to end, and its stop."""

    def begin(*streams, jobs=()):
        plan = Plan("p", streams, duration=10.0)
        driver, stop = SlowDriver(), asyncio.Event()
        sender = Sender(plan, driver, 1.0, clock=lambda: 1000.0)
        sender.hear(list(jobs))
        sending = asyncio.ensure_future(sender.run(requests(plan, PLACES), 0.0, stop))
        return driver, sender, sending, stop

    return begin


async def test_what_follows_goes_to_the_same_job_when_that_has_been_answered(begun):
    stream = Stream("hold", "hold {job}", count=3, then="release {job}", after=1.0)
    driver, _sender, sending, _stop = begun(stream, jobs=range(1, 1000))
    await settled()
    held = [line.split()[1] for line in driver.lines]
    assert len(set(held)) > 1
    assert driver.lines == [f"hold {job}" for job in held]
    for _ in range(3):
        driver.answers.release()
    await settled()
    assert driver.lines[3:] == [f"release {job}" for job in held]
    for _ in range(3):
        driver.answers.release()
    await sending


async def test_what_follows_a_submission_goes_to_its_own_job(begun):
    stream = Stream("jobs", "sbatch", count=2, then="scancel {job}", after=1.0)
    driver, _sender, sending, _stop = begun(stream, jobs=[7, 8, 9])
    for _ in range(4):
        driver.answers.release()
    await sending
    assert driver.lines[2:] == ["scancel 101", "scancel 102"]


async def test_what_follows_nothing_is_not_sent_to_another_job(begun):
    streams = (
        Stream("hold", "hold {job}", count=1, then="release {job}", after=2.0),
        Stream("jobs", "sbatch", count=1, begin=1.0),
    )
    driver, sender, sending, _stop = begun(*streams)
    driver.answers.release()
    await sending
    assert driver.lines == ["sbatch"]
    assert sender.report()["streams"]["hold"]["refusals"] == {"no job was known yet": 2}


async def test_what_waits_for_an_answer_is_late_by_its_own_time_alone(begun):
    now = 1000.0
    stream = Stream("down", "down", count=1, then="up", after=1.0)
    plan = Plan("p", (stream,), duration=10.0)
    driver = SlowDriver()
    sender = Sender(plan, driver, 1.0, clock=lambda: now)
    sending = asyncio.ensure_future(sender.run(requests(plan, PLACES), 990.0, asyncio.Event()))
    await settled()
    driver.answers.release()
    await settled()
    now += 0.5
    driver.answers.release()
    await sending
    latencies = Tally.unpacked(sender.report()["streams"]["down"]).latencies
    assert latencies.get_min_value() == pytest.approx(500_000, rel=0.01)
    assert latencies.get_max_value() == pytest.approx(10_000_000, rel=0.01)


async def test_jobs_of_other_processes_are_known_too(begun):
    driver, _sender, sending, _stop = begun(
        Stream("ask", "squeue -j{job}", count=40), jobs=[31, 32]
    )
    for _ in range(40):
        driver.answers.release()
    await sending
    assert set(driver.lines) == {"squeue -j31", "squeue -j32"}


async def test_what_has_been_done_is_undone_after_the_word_to_stop():
    plan = Plan(
        "p", (Stream("flap", "down {node}", 1, then="up {node}", after=60.0),), duration=100.0
    )
    driver, stop, now = SlowDriver(), asyncio.Event(), 0.0
    sender = Sender(plan, driver, 1.0, clock=lambda: now)
    todo = requests(plan, PLACES)
    now = todo[1].due + 0.001
    sending = asyncio.ensure_future(sender.run(todo, 0.0, stop))
    await settled()
    assert len(driver.lines) == 2
    stop.set()
    for _ in range(4):
        driver.answers.release()
    await sending
    assert [line.split()[0] for line in driver.lines] == ["down", "down", "up", "up"]
    assert Counter(line.split()[1] for line in driver.lines[2:]) == Counter(
        line.split()[1] for line in driver.lines[:2]
    )


def test_later_jobs_are_drawn_more_often():
    jobs = list(range(1, 1024))
    found = Counter(drawn(jobs, number / 10_000) for number in range(10_000))
    last, before = found[1023], sum(found[job] for job in (1021, 1022))
    assert last == pytest.approx(before, rel=0.01)
    assert set(found) <= set(jobs)
    assert min(found) < 10
    assert drawn([5], 0.999) == drawn([5], 0.0) == 5
    assert {drawn([5, 6], number / 100) for number in range(100)} == {5, 6}
