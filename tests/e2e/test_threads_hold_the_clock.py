"""Virtual time stands still while a thread works for the loop."""

import asyncio
import time

from understudy.clock.virtual_loop import VirtualEventLoop


def test_a_thread_holds_the_clock_while_it_works():
    async def main():
        loop = asyncio.get_running_loop()
        seen = []
        loop.call_later(5, lambda: seen.append("timer"))
        with loop.hold():
            await asyncio.to_thread(time.sleep, 0.05)
            seen.append(("thread done", loop.time()))
        await asyncio.sleep(10)
        return seen

    with asyncio.Runner(loop_factory=VirtualEventLoop) as runner:
        seen = runner.run(main())
    assert seen == [("thread done", 0.0), "timer"]
