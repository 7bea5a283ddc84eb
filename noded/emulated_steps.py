"""Steps of emulated jobs: no task is run; srun gets the streams and exits of tasks that behave as
their command line or environment says.

Place: a step runner (see executor.py). The frames are those of `task_frames.py`. How long a task
runs and how it ends is found as for a batch script (`emulated.py`), the command line being the
script. `hostname` and `echo` print what they would; others print nothing.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, Final

from understudy.model.hostlist import expand
from understudy.noded.emulated import STOPPING, emulation_of
from understudy.protocol import addresses
from understudy.protocol.messages import LaunchBatch
from understudy.protocol.task_frames import (
    ABORT,
    DONE,
    EXITED,
    HELLO,
    MESSAGE,
    STARTED,
    STDOUT,
    frame,
)

if TYPE_CHECKING:
    import asyncio
    import logging
    from collections.abc import Callable

    from understudy.clock.timekeeper import Timekeeper
    from understudy.noded.executor import OnStepEnded
    from understudy.noded.steps import StepKey
    from understudy.protocol.messages import LaunchTasks

_HARMLESS: Final = frozenset((0, signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH))


class _Step:
    def __init__(self, launch: LaunchTasks, nodes: list[tuple[int, str]]) -> None:
        self.launch, self.nodes = launch, nodes
        self.frames: list[bytes] = []
        self.writers: list[asyncio.WriteTransport] = []
        self.timer: asyncio.TimerHandle | None = None
        self.end, self.status = 0.0, 0  # when its tasks end by themselves, and with which status
        self.left_s: float | None = None  # how long they will still run, while they are stopped
        self.is_over = False


class EmulatedSteps:
    """Runs no steps."""

    def __init__(
        self, time: Timekeeper, default_run_s: float, on_ended: OnStepEnded, log: logging.Logger
    ) -> None:
        self._time, self._default_run_s, self._on_ended, self._log = (
            time,
            default_run_s,
            on_ended,
            log,
        )
        self._steps: dict[StepKey, _Step] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, launch: LaunchTasks, nodes: str, user_id: int, group_id: int) -> None:
        key = launch.job_id, launch.restart, launch.step_id
        own = dict.fromkeys(expand(nodes))
        step = self._steps[key] = _Step(
            launch,
            [(number, name) for number, name in enumerate(expand(launch.nodes)) if name in own],
        )
        if launch.io_address:
            self.attach(key, launch.io_address, launch.io_key)
        first = step.nodes[0][0]
        self._send(
            step,
            frame(
                STARTED,
                first,
                b" ".join(
                    b"%d:0" % task for number, _ in step.nodes for task in launch.tasks[number]
                ),
            ),
        )
        script = " ".join(launch.arguments)
        batch = LaunchBatch(
            launch.job_id,
            launch.restart,
            nodes,
            0,
            b"",
            user_id,
            group_id,
            script=script,
            environment=launch.environment,
        )
        behaviour = emulation_of(
            batch,
            self._default_run_s
            if launch.arguments[:1] not in (["true"], ["hostname"], ["echo"])
            else 0.0,
        )
        code = 1 if launch.arguments[:1] == ["false"] else behaviour.exit_code
        output = bytearray()
        for number, name in step.nodes:
            text = _says(launch.arguments, name)
            for task in launch.tasks[number]:
                if text:
                    output += frame(STDOUT, task, text)
        if output:
            self._send(step, bytes(output))
        step.status = behaviour.signal or code << 8
        self._run_on(key, step, behaviour.run_s)

    def _run_on(self, key: StepKey, step: _Step, left_s: float) -> None:
        step.left_s, step.end = None, self._time.now() + left_s
        step.timer = self._time.call_at(step.end, self._end, key, step.status)

    def signal(self, step: StepKey, number: int, *, ends: bool) -> None:
        running = self._steps.get(step)
        if running is None:
            return
        if ends:
            self._cancelled(running)
        if number in STOPPING:
            if running.left_s is None and running.timer is not None:
                running.timer.cancel()
                running.left_s = max(running.end - self._time.now(), 0.0)
        elif number == signal.SIGCONT:
            if running.left_s is not None:
                self._run_on(step, running, running.left_s)
        elif number not in _HARMLESS:
            self._end(step, number)

    def end(self, step: StepKey, why: str = "") -> None:  # noqa: ARG002
        self.signal(step, signal.SIGTERM, ends=True)

    def attach(self, step: StepKey, address: str, key: bytes) -> None:
        running = self._steps[step]
        task = self._time.loop.create_task(self._connect(running, address, key))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def open(self, address: str) -> asyncio.WriteTransport:
        """A way to who listens there.

        Raises:
            OSError: there is none.
        """
        import asyncio  # noqa: PLC0415 - for its class alone

        sock = await addresses.connect(self._time.loop, address)
        try:
            transport, _ = await self._time.loop.create_connection(asyncio.Protocol, sock=sock)
        except OSError:
            sock.close()
            raise
        return transport

    async def _connect(self, step: _Step, address: str, key: bytes) -> None:
        with self._time.hold():
            try:
                transport = await self.open(address)
            except OSError as error:
                self._log.warning("no connection with srun at %s: %s", address, error)
                return
            transport.write(frame(HELLO, step.nodes[0][0], key) + b"".join(step.frames))
            if step.is_over:
                transport.close()
            else:
                step.writers.append(transport)

    def statistics(self, step: StepKey, answer: Callable[[list[list[object]]], None]) -> None:
        running = self._steps.get(step)
        tasks: list[list[Any]] = []
        for number, name in running.nodes if running is not None else ():
            assert running is not None
            tasks += [[task, name, 0, 0, 0, 0, 0, 0, 0] for task in running.launch.tasks[number]]
        answer(tasks)

    def close(self) -> None:
        for step in self._steps.values():
            if step.timer is not None:
                step.timer.cancel()

    def _cancelled(self, step: _Step) -> None:
        self._send(step, frame(ABORT, 0, b""))
        number, name = step.nodes[0]
        if number == 0:
            import time  # noqa: PLC0415 - for its name of a moment alone

            when = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(self._time.now()))
            launch = step.launch
            text = (
                f"slurmstepd-{name}: error: *** STEP {launch.job_id}.{launch.step_id} ON "
                f"{name} CANCELLED AT {when} ***\n"
            )
            self._send(step, frame(MESSAGE, 0, text.encode()))

    def _send(self, step: _Step, data: bytes) -> None:
        step.frames.append(data)
        for writer in step.writers:
            writer.write(data)

    def _end(self, key: StepKey, status: int) -> None:
        step = self._steps.pop(key, None)
        if step is None:
            return
        if step.timer is not None:
            step.timer.cancel()
        exits = bytearray()
        for number, _ in step.nodes:
            tasks = step.launch.tasks[number]
            exits += frame(EXITED, tasks[0], f"{status} {','.join(map(str, tasks))}".encode())
        exits += frame(DONE, step.nodes[0][0], b"")
        self._send(step, bytes(exits))
        step.is_over = True
        for writer in step.writers:
            writer.close()
        self._on_ended(key, status >> 8, status & 0x7F, {})


def _says(arguments: list[str], node: str) -> bytes:
    name = arguments[0].rpartition("/")[2] if arguments else ""
    if name == "hostname":
        return f"{node}\n".encode()
    if name == "echo":
        return (" ".join(arguments[1:]) + "\n").encode()
    return b""
