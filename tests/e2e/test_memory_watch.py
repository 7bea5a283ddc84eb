"""One look at the processes of a host is taken for all jobs that are watched."""

import asyncio
import os

from understudy.noded import usage
from understudy.noded.usage import MemoryWatch, Watched


async def test_all_that_is_watched_is_seen_in_one_look(monkeypatch):
    monkeypatch.setattr(usage, "FIRST_SAMPLE_S", 0.01)
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
