"""How command lines reach a cluster, and what their answers mean.

Covers: tool/load/drivers, tool/load/worker.
"""

import asyncio
import os
import stat

import pytest

from understudy.commands.shared.client import RefusedError
from understudy.protocol.wire_table import WIRE
from understudy.tool.load.drivers import Messages, Outcome, Processes, first_line, refusals_in
from understudy.tool.load.lines import script_of
from understudy.tool.load.plan import Plan, Stream
from understudy.tool.load.schedule import Names, requests
from understudy.tool.load.worker import Sender

NAMES = {tag: name for name, (tag, _, _) in WIRE.items()}


class FakePool:
    """A pool of one connection that answers by the message's name."""

    def __init__(self, **answers):
        self.answers, self.asked, self.free = answers, [], 1

    async def take(self):
        self.free -= 1
        return self

    def give_back(self, _connection):
        self.free += 1

    async def ask(self, message, _timeout_s):
        name = NAMES[message[0]]
        self.asked.append((name, message))
        answer = self.answers.get(name, ("Ok", []))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self): ...


@pytest.fixture
def commands(tmp_path):
    """A folder of commands that are shell scripts."""

    def make(**scripts):
        for name, text in scripts.items():
            path = tmp_path / name
            path.write_text("#!/bin/sh\n" + text)
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return Processes(tmp_path, dict(os.environ), tmp_path, most=4)

    return make


async def test_a_job_is_acknowledged_by_its_number(commands):
    pool = FakePool(SubmitJob=("Submitted", [17, ""]))
    driver = Messages(pool, commands(), 1.0)
    for run in (1, 2):
        assert await driver.send("sbatch -N1", run, 1.0) == Outcome((), 17)
    assert [message[2] for _, message in pool.asked] == [script_of(1), script_of(2)]
    assert pool.free == 1


async def test_refusals_are_told_by_their_texts(commands):
    pool = FakePool(
        CancelJobs=("JobResults", [[["17", 2021, "Job already done"], ["18", 0, ""]]]),
        ControlJobs=("Failure", [2017, "Invalid job id specified"]),
        GetStatistics=RefusedError(5004, "no answer in 1 s"),
    )
    driver = Messages(pool, commands(), 1.0)
    assert (await driver.send("scancel 17 18", 0, 1.0)).refusals == ("Job already done",)
    assert (await driver.send("scontrol hold 17", 0, 1.0)).refusals == ("Invalid job id specified",)
    assert (await driver.send("sdiag", 0, 1.0)).refusals == ("no answer in 1 s",)
    assert "keyword" in (await driver.send("scontrol conquer", 0, 1.0)).refusals[0]
    assert pool.free == 1
    assert refusals_in("Rows", [[], 0.0, 0.0, False]) == []


async def test_what_is_no_message_is_a_process(commands):
    pool = FakePool()
    driver = Messages(pool, commands(srun="exit 3"), 1.0)
    assert (await driver.send("srun true", 0, 5.0)).refusals == ("srun: exit code 3",)
    assert pool.asked == []


async def test_who_waits_for_a_connection_does_not_wait_for_ever(commands):
    pool = FakePool()

    async def never():
        await asyncio.Event().wait()

    pool.take = never
    outcome = await Messages(pool, commands(), 1.0).send("squeue", 0, 0.0)
    assert outcome.refusals == ("no connection was free for 0 s",)


async def test_a_submission_by_a_process(commands):
    driver = commands(sbatch='grep -q "sleep 4" && echo "Submitted batch job 23"')
    assert await driver.send("sbatch", 4, 10.0) == Outcome((), 23)


async def test_a_process_is_refused_by_what_it_says_first(commands):
    driver = commands(squeue="echo 'squeue: error: No such job' >&2; echo more >&2; exit 1")
    assert (await driver.send("squeue", 0, 10.0)).refusals == ("No such job",)
    assert first_line(b"", "nothing said") == "nothing said"


async def test_a_process_has_its_turn_in_time_or_never(commands):
    driver = commands(squeue="exit 0")
    driver._turn = asyncio.Semaphore(0)
    assert (await driver.send("squeue", 0, 0.0)).refusals == ("squeue was not begun for 0 s",)


async def test_a_process_that_does_not_end_is_ended(commands, tmp_path):
    driver = commands(squeue="echo $$ > pid; exec tail -f /dev/null")
    outcome = await driver.send("squeue", 0, 0.3)
    assert outcome.refusals == ("squeue has not ended after 0.3 s",)
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


# --- sending by a schedule ------------------------------------------------------------------------


class FakeDriver:
    """Answers at once, with job numbers from 1, but for lines that are refused."""

    def __init__(self, refusal=""):
        self.lines, self._refusal = [], refusal

    async def prepare(self): ...

    async def send(self, line, _run, _timeout_s):
        self.lines.append(line)
        if line.startswith("sbatch"):
            return Outcome((), len(self.lines))
        return Outcome((self._refusal,) if self._refusal else ())

    def close(self): ...


async def sent(plan, driver, *, late_s=0.0):
    """The sender after a load that is due at once, or was due so long ago."""
    now = 1000.0
    sender = Sender(plan, driver, 1.0, clock=lambda: now)
    begin = now - plan.duration - late_s
    await sender.run(requests(plan, Names(["n1"])), begin, asyncio.Event())
    return sender


async def test_latency_counts_from_when_a_request_was_due():
    plan = Plan("p", (Stream("a", "squeue", count=2),), duration=1.0)
    told = (await sent(plan, FakeDriver(), late_s=4.0)).report()
    from understudy.tool.load.measure import Tally

    tally = Tally.unpacked(told["streams"]["a"])
    assert (tally.sent, tally.answered) == (2, 2)
    assert tally.percentile_ms(50) == pytest.approx(5000, rel=0.002)


async def test_jobs_that_were_acknowledged_are_told_once_and_named_by_others():
    plan = Plan(
        "p",
        (Stream("jobs", "sbatch", count=3), Stream("ask", "squeue -j{job}", count=9, begin=0.5)),
        duration=1.0,
    )
    driver = FakeDriver()
    sender = await sent(plan, driver)
    assert sender.report()["jobs"] == [1, 2, 3]
    assert sender.report() | {"cpu": 0, "late": ""} == {
        "streams": {}, "late": "", "jobs": [], "waiting": 0, "cpu": 0
    }  # fmt: skip
    asked = set(driver.lines) - {"sbatch"}
    assert asked <= {"squeue -j1", "squeue -j2", "squeue -j3"}
    assert len(asked) > 1


async def test_a_refusal_that_belongs_to_the_load_is_no_error():
    streams = (
        Stream("mild", "squeue", count=1, expected=("Invalid",)),
        Stream("strict", "squeue", count=1),
        Stream("early", "scancel {job}", count=1),
    )
    told = (await sent(Plan("p", streams), FakeDriver("Invalid job"))).report()["streams"]
    assert told["mild"]["refusals"] == {"Invalid job": 1}
    assert told["strict"]["errors"] == {"Invalid job": 1}
    assert told["early"]["refusals"] == {"no job was known yet": 1}


async def test_nothing_is_sent_after_the_word_to_stop():
    plan = Plan("p", (Stream("a", "squeue", count=5, begin=10.0),), duration=20.0)
    stop = asyncio.Event()
    stop.set()
    driver = FakeDriver()
    sender = Sender(plan, driver, 1.0, clock=lambda: 0.0)
    await sender.run(requests(plan, Names(["n1"])), 0.0, stop)
    assert driver.lines == []
