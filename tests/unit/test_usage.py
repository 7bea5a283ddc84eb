"""A look at the memory of jobs is one at all processes of the host: it is taken for those who are still there when it is due."""

import asyncio
import os

from understudy.noded import usage
from understudy.noded.usage import MemoryWatch, Watched


async def test_jobs_that_have_ended_by_then_cost_no_look(monkeypatch):
    looks = []
    scan = usage._scan
    monkeypatch.setattr(usage, "_scan", lambda: looks.append(asyncio.get_running_loop().time()) or scan())
    monkeypatch.setattr(usage, "FIRST_LOOK_S", 0.05)
    watch = MemoryWatch(30.0, enforces=False)
    for _ in range(10):
        short = Watched(os.getpid())
        watch.add(short)
        await asyncio.sleep(0.02)
        watch.remove(short)
    assert looks == []
    begun = asyncio.get_running_loop().time()
    watch.add(Watched(os.getppid()))
    await asyncio.sleep(0.2)
    watch.close()
    assert len(looks) == 1
    assert looks[0] >= begun + 0.045


async def test_all_that_is_watched_is_seen_in_one_look(monkeypatch):
    monkeypatch.setattr(usage, "FIRST_LOOK_S", 0.01)
    tasks = [await asyncio.create_subprocess_exec("sleep", "60", env={"SLURM_PROCID": number, "SLURM_NODEID": "1"}) for number in ("3", "4")]
    orphan = await asyncio.create_subprocess_exec("sleep", "60", env={})
    watch = MemoryWatch(0.05, enforces=False)
    both = [Watched(os.getpid()), Watched(os.getpid())]
    for each in both:
        watch.add(each)
    await asyncio.sleep(0.2)
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
