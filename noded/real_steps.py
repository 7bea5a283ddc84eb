"""Steps of real jobs: tasks as child processes, as the user, their streams carried to srun. Real time only.

Place: the step runner (see executor.py) beside the real executor. A step has one small process of its own between the daemon and its tasks
(`taskd.py`); a socket leads there, with orders one way and the step's end the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import marshal
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from understudy.model.hostlist import expand

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable

    from understudy.noded.executor import OnStepEnded
    from understudy.noded.steps import StepKey
    from understudy.protocol.messages import LaunchTasks

_TASKD: Final = Path(__file__).with_name("taskd.py")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICK_US: Final = 1_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class _Running:
    process: subprocess.Popen[bytes]
    control: socket.socket
    said: bytes = b""
    asking: list[Callable[[list[list[object]]], None]] = field(default_factory=list)
    result: tuple[int, int, dict[str, int]] | None = None


class RealSteps:
    """Runs steps."""

    def __init__(
        self, on_ended: OnStepEnded, log: logging.Logger, *, conf: str, kill_wait_s: float, task_prolog: str = "", task_epilog: str = ""
    ) -> None:
        self._on_ended, self._log, self._conf, self._kill_wait_s = on_ended, log, conf, kill_wait_s
        self._task_prolog, self._task_epilog = task_prolog, task_epilog
        self._loop = asyncio.get_running_loop()
        self._steps: dict[StepKey, _Running] = {}
        self._host = socket.gethostname().partition(".")[0]

    def start(self, launch: LaunchTasks, nodes: str, user_id: int, group_id: int) -> None:
        step = launch.job_id, launch.restart, launch.step_id
        ours, theirs = socket.socketpair()
        try:
            if os.geteuid() not in (0, user_id):
                raise PermissionError(f"this daemon runs as user {os.geteuid()} and cannot run jobs of user {user_id}")
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_TASKD)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=None,
                cwd="/",
                env={"LC_ALL": "C", "TZ": os.environ.get("TZ", "")} if "TZ" in os.environ else {"LC_ALL": "C"},
                start_new_session=True,
            )
        except OSError as error:
            self._log.error("step %d.%d could not be launched: %s", step[0], step[2], error)
            ours.close()
            theirs.close()
            self._loop.call_soon(self._on_ended, step, 1, 0, {})
            return
        theirs.close()
        order = marshal.dumps(self._order(launch, nodes, user_id, group_id))
        ours.sendall(len(order).to_bytes(4, "big") + order)
        ours.setblocking(False)
        self._steps[step] = _Running(process, ours)
        self._loop.add_reader(ours.fileno(), self._hear, step)

    def _order(self, launch: LaunchTasks, nodes: str, user_id: int, group_id: int) -> dict[str, Any]:
        own = dict.fromkeys(expand(nodes))
        given = dict(entry.partition("=")[::2] for entry in launch.environment)
        parts = []
        for number, name in enumerate(expand(launch.nodes)):
            if name in own:
                tasks = launch.tasks[number]
                parts.append(
                    {
                        "id": number,
                        "name": name,
                        "tasks": tasks,
                        "environment": {
                            "SLURMD_NODENAME": name,
                            "SLURM_CPUS_ON_NODE": str(launch.cpus[number]),
                            "SLURM_GTIDS": ",".join(map(str, tasks)),
                            "SLURM_NODEID": str(number),
                            "SLURM_TOPOLOGY_ADDR": name,
                            "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
                            "SLURM_CONF": self._conf,
                        },
                    }
                )
        programs = {number: command for numbers, command in launch.programs for number in numbers}
        return {
            "job": launch.job_id,
            "step": launch.step_id,
            "uid": user_id,
            "gid": group_id,
            "user": launch.user,
            "umask": launch.umask,
            "work_dir": launch.work_dir,
            "nodes": parts,
            "environment": given,
            "arguments": launch.arguments,
            "programs": programs,
            "io_address": launch.io_address,
            "io_key": launch.io_key,
            "std_in": launch.std_in,
            "std_out": launch.std_out,
            "std_err": launch.std_err,
            "append": launch.append,
            "unbuffered": launch.unbuffered,
            "stdin_task": launch.stdin_task,
            "end_time": launch.end_time,
            "kill_wait_s": self._kill_wait_s,
            "task_prolog": launch.task_prolog or self._task_prolog,
            "task_epilog": launch.task_epilog or self._task_epilog,
            "pty": launch.pty,
            "mpi": launch.mpi,
            "job_name": launch.job_name,
            "array_job": given.get("SLURM_ARRAY_JOB_ID", ""),
            "array_task": given.get("SLURM_ARRAY_TASK_ID", ""),
            "host": self._host,
            "size": sum(map(len, launch.tasks)),
            "layout": launch.tasks,
        }

    def signal(self, step: StepKey, number: int, *, ends: bool) -> None:
        self._tell(step, f"{'end' if ends else 'signal'} {number}")

    def end(self, step: StepKey) -> None:
        self._tell(step, "kill")

    def attach(self, step: StepKey, address: str, key: bytes) -> None:
        self._tell(step, f"attach {key.hex()} {address}")

    def statistics(self, step: StepKey, answer: Callable[[list[list[object]]], None]) -> None:
        running = self._steps.get(step)
        if running is None:
            answer([])
        else:
            running.asking.append(answer)
            self._tell(step, "stat")

    def close(self) -> None:
        for running in self._steps.values():
            self._loop.remove_reader(running.control.fileno())
            with contextlib.suppress(OSError):
                running.control.sendall(b"signal 9\n")
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.process.wait(2)
            running.process.kill()
            running.process.wait()
            running.control.close()
        self._steps.clear()

    def _tell(self, step: StepKey, line: str) -> None:
        running = self._steps.get(step)
        if running is not None:
            with contextlib.suppress(OSError):
                running.control.sendall(line.encode() + b"\n")

    def _hear(self, step: StepKey) -> None:
        running = self._steps[step]
        try:
            data = running.control.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *lines, running.said = (running.said + data).split(b"\n")
        for line in lines:
            word, _, rest = line.decode(errors="replace").partition(" ")
            if word == "error":
                self._log.error("step %d.%d: %s", step[0], step[2], rest)
            elif word == "ended":
                running.result = _result(rest)
            elif word == "stat" and running.asking:
                running.asking.pop(0)(_usage(rest))
        if not data or running.result is not None:
            self._loop.remove_reader(running.control.fileno())
            running.control.close()
            del self._steps[step]
            for answer in running.asking:
                answer([])
            code, number, usage = running.result or (0, int(signal.SIGKILL), {})
            self._loop.run_in_executor(None, running.process.wait)
            self._on_ended(step, code, number, usage)


def _result(text: str) -> tuple[int, int, dict[str, int]] | None:
    code, _, rest = text.partition(" ")
    number, _, rest = rest.partition(" ")
    try:
        usage = {name: int(value) for name, _, value in (word.partition("=") for word in rest.split())}
        return min(max(int(code), 0), 255), min(max(int(number), 0), 64), usage
    except ValueError:
        return None


def _usage(text: str) -> list[list[object]]:
    """What the processes of each task use now, as /proc says."""
    found: list[list[object]] = []
    for word in text.split():
        number, node, pid = word.split(":")
        try:
            fields = Path(f"/proc/{int(pid)}/stat").read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        read = written = 0
        with contextlib.suppress(OSError, ValueError):
            counts = dict(line.split(": ") for line in Path(f"/proc/{int(pid)}/io").read_text().splitlines())
            read, written = int(counts["read_bytes"]), int(counts["write_bytes"])
        cpu_us = (int(fields[11]) + int(fields[12])) * _TICK_US
        found.append([int(number), node, int(pid), cpu_us, int(fields[21]) * _PAGE, int(fields[20]), int(fields[9]), read, written])
    return found
