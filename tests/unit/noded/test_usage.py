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
            await asyncio.sleep(usage.FIRST_SAMPLE_S / 2)
            watch.remove(short)
        assert looks == []
        begun = asyncio.get_running_loop().time()
        watch.add(Watched(os.getppid()))
        await asyncio.sleep(2 * usage.FIRST_SAMPLE_S)
        watch.close()
        return begun

    with asyncio.Runner(loop_factory=VirtualEventLoop) as runner:
        begun = runner.run(watched())
    assert looks == [pytest.approx(begun + usage.FIRST_SAMPLE_S)]
