"""A look at the memory of jobs is one at all processes of the host: it is taken for those who are
still there when it is due.
"""

import asyncio
import os

import pytest

from understudy.clock.virtual_loop import VirtualEventLoop
from understudy.noded import usage
from understudy.noded.usage import MemoryWatch, Watched


def test_jobs_that_have_ended_by_then_cost_no_look(monkeypatch):
    looks = []
    scan = usage._scan
    monkeypatch.setattr(
        usage, "_scan", lambda: looks.append(asyncio.get_running_loop().time()) or scan()
    )

    async def watched():
        watch = MemoryWatch(30.0, enforces=False)
        for _ in range(10):
            short = Watched(os.getpid())
            watch.add(short)
            await asyncio.sleep(usage.FIRST_LOOK_S / 2)
            watch.remove(short)
        assert looks == []
        begun = asyncio.get_running_loop().time()
        watch.add(Watched(os.getppid()))
        await asyncio.sleep(2 * usage.FIRST_LOOK_S)
        watch.close()
        return begun

    with asyncio.Runner(loop_factory=VirtualEventLoop) as runner:
        begun = runner.run(watched())
    assert looks == [pytest.approx(begun + usage.FIRST_LOOK_S)]


async def test_all_that_is_watched_is_seen_in_one_look(monkeypatch):
    monkeypatch.setattr(usage, "FIRST_LOOK_S", 0.01)
    tasks = [
        await asyncio.create_subprocess_exec(
            "sleep", "60", env={"SLURM_PROCID": number, "SLURM_NODEID": "1"}
        )
        for number in ("3", "4")
    ]
    orphan = await asyncio.create_subprocess_exec("sleep", "60", env={})
    watch = MemoryWatch(0.05, enforces=False)
    both = [Watched(os.getpid()), Watched(os.getpid())]
    for each in both:
        watch.add(each)
    while both[0].usage().get("tasks") != 2:  # noqa: ASYNC110  nobody tells of a look
        await asyncio.sleep(0.01)
    watch.close()
    for process in (*tasks, orphan):
        process.kill()
        await process.wait()
    used = both[0].usage()
    assert used == both[1].usage()
    assert (used["tasks"], used["max_rss_node"]) == (2, 1)
    assert used["max_rss_task"] in {3, 4}
    assert used["sum_rss"] >= 2 * used["min_rss"] > 1 << 19
    assert used["max_vmsize"] > used["max_rss"]
