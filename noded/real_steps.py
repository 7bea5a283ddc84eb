"""Steps of real jobs: tasks as child processes, as the user, their streams carried to srun. Real
time only.

Place: the step runner (see executor.py) beside the real executor. A step has one small process of
its own between the daemon and its tasks (`taskd.py`); a socket leads there, with orders one way and
the step's end the other. Steps outlive a daemon that is killed; the next one adopts them by what is
in the spool directory.

SPOOL/
    taskd.JOB.RESTART.STEP      pid and start time of the process in between
    step.JOB.RESTART.STEP.sock  where it listens for a daemon that is started again
    step.JOB.RESTART.STEP.end   how the step has ended
"""

from __future__ import annotations

import asyncio
import contextlib
import marshal
import os
import select
import signal
import socket
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from understudy.model.byte_texts import restored
from understudy.model.environment import TASK_HOST, read, told
from understudy.model.hostlist import expand
from understudy.noded import family
from understudy.noded.environment import limits_in, without_limits
from understudy.noded.forker import Forker
from understudy.noded.groups import groups_of
from understudy.noded.real import start_time
from understudy.noded.settings import KILL_JOB
from understudy.noded.usage import MemoryWatch, Watched, sample
from understudy.protocol import endings

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable
    from pathlib import Path

    from understudy.noded.executor import OnStepEnded
    from understudy.noded.settings import NodeSettings
    from understudy.noded.steps import StepKey
    from understudy.protocol.messages import LaunchTasks

_GPUS: Final = dict.fromkeys(("devices", "whole_devices", "gpus_on_node"), True)
_STOP_S: Final = 5.0  # ours: for processes to end before they are left behind
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICK_US: Final = 1_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class _Running:
    launch: LaunchTasks
    nodes: str
    pid: int
    control: socket.socket
    said: bytes = b""
    asking: list[Callable[[list[list[object]]], None]] = field(default_factory=list)
    result: tuple[int, int, dict[str, int]] | None = None
    memory: Watched | None = None
    lacks_memory: bool = False  # some tasks were killed as it used more than it has
    fault: str = ""
    has_begun: bool = False  # the process in between has started the tasks, and listens
    is_over: bool = False


class RealSteps:
    """Runs steps."""

    def __init__(
        self,
        spool: Path,
        on_ended: OnStepEnded,
        log: logging.Logger,
        *,
        conf: str,
        settings: NodeSettings,
        memory: MemoryWatch | None = None,
        forker: Forker | None = None,
    ) -> None:
        spool.mkdir(parents=True, exist_ok=True)
        self._spool = spool
        self._forker, self._settings = forker or Forker(), settings
        self._null = os.open(os.devnull, os.O_RDWR)
        self._on_ended, self._log, self._conf = on_ended, log, conf
        self._memory = memory
        self._loop = asyncio.get_running_loop()
        self._steps: dict[StepKey, _Running] = {}
        self._host = socket.gethostname().partition(".")[0]

    def reconfigure(self, settings: NodeSettings) -> None:
        """Other settings hold for steps that begin from now on."""
        self._settings = settings

    def start(self, launch: LaunchTasks, nodes: str, user_id: int, group_id: int) -> None:
        step = launch.job_id, launch.restart, launch.step_id
        ours, theirs = socket.socketpair()
        listener, result = socket.socket(socket.AF_UNIX), -1
        pmix: list[socket.socket] = []
        try:
            if os.geteuid() not in (0, user_id):
                raise PermissionError(
                    f"this daemon runs as user {os.geteuid()} and cannot run jobs of user {user_id}"
                )
            self._bind(listener, step)
            result = os.open(self._file(step, ".end"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            if launch.mpi.startswith("pmix"):
                pmix = list(socket.socketpair())
                self._forker.fork("pmixd", [pmix[1].fileno(), self._null])
            pid = self._forker.fork(
                "taskd",
                [
                    theirs.fileno(),
                    self._null,
                    listener.fileno(),
                    result,
                    *(each.fileno() for each in pmix[:1]),
                ],
            )
            self._pid_file(step).write_text(f"{pid} {start_time(pid)}\n")
            order = self._order(launch, nodes, user_id, group_id)
        except OSError as error:
            self._log.error("step %d.%d could not be launched: %s", step[0], step[2], error)
            ours.close()
            self._loop.call_soon(self._on_ended, step, 1, 0, {})
            return
        finally:
            for each in (theirs, listener, *pmix):
                each.close()
            if result >= 0:
                os.close(result)
        data = marshal.dumps(restored(order))
        ours.sendall(len(data).to_bytes(4, "big") + data)
        self._watch(step, _Running(launch, nodes, pid, ours))

    def adopt(self, launch: LaunchTasks, nodes: str) -> None:
        """Look after a step that an earlier daemon started; its end is reported even if it was long
        ago.
        """
        step = launch.job_id, launch.restart, launch.step_id
        control = socket.socket(socket.AF_UNIX)
        pid = 0
        with contextlib.suppress(OSError, ValueError):
            number, started = self._pid_file(step).read_text().split()
            if start_time(int(number)) == started:
                pid = int(number)
        with contextlib.suppress(OSError):
            self._at_socket(step, control.connect)
        # what is not connected is at its end at once
        self._watch(step, _Running(launch, nodes, pid, control))

    def _watch(self, step: StepKey, running: _Running) -> None:
        running.control.setblocking(False)
        self._steps[step] = running
        self._loop.add_reader(running.control.fileno(), self._hear, step)
        if self._memory is not None and running.pid:
            limit = memory_limit_mb(running.launch, running.nodes) << 20
            running.memory = Watched(
                running.pid,
                limit,
                lambda used, largest: self._over_memory(step, running, used, largest),
            )
            self._memory.add(running.memory)

    def _over_memory(self, step: StepKey, running: _Running, used: int, largest: int) -> None:
        name = f"StepId={step[0]}.{step[2]}"
        if self._settings.over_memory == KILL_JOB:
            self._forget_memory(running)
            running.fault = endings.KILLED
            self._tell(
                step,
                f"say {name} exceeded memory limit ({used} > "
                f"{running.memory.limit if running.memory else 0}), being killed",
            )
            self._tell(step, "say Exceeded job memory limit")
            self._tell(step, f"end {int(signal.SIGKILL)}")
            return
        running.lacks_memory = True
        self._tell(step, "oom")
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(largest, signal.SIGKILL)

    def _forget_memory(self, running: _Running) -> None:
        if self._memory is not None and running.memory is not None:
            self._memory.remove(running.memory)

    def _file(self, step: StepKey, end: str) -> Path:
        return self._spool / f"step.{step[0]}.{step[1]}.{step[2]}{end}"

    def _pid_file(self, step: StepKey) -> Path:
        return self._spool / f"taskd.{step[0]}.{step[1]}.{step[2]}"

    def _bind(self, listener: socket.socket, step: StepKey) -> None:
        self._file(step, ".sock").unlink(missing_ok=True)
        self._at_socket(step, listener.bind)
        listener.listen(1)

    def _at_socket(self, step: StepKey, call: Callable[[str], None]) -> None:
        """Call with a path to the step's socket that is short enough wherever the spool is."""
        folder = os.open(self._spool, os.O_RDONLY | os.O_DIRECTORY)
        try:
            call(f"/proc/self/fd/{folder}/{self._file(step, '.sock').name}")
        finally:
            os.close(folder)

    def _order(
        self, launch: LaunchTasks, nodes: str, user_id: int, group_id: int
    ) -> dict[str, Any]:
        own = dict.fromkeys(expand(nodes))
        given = read(launch.environment)
        for name in told(TASK_HOST, _GPUS) if launch.gpus else ():
            given.pop(name, None)  # the batch script's
        parts = []
        for number, name in enumerate(expand(launch.nodes)):
            if name in own:
                tasks = launch.tasks[number]
                parts.append(
                    {
                        "id": launch.first_node + number,
                        "name": name,
                        "tasks": tasks,
                        "gpus": launch.gpus[number][1] if launch.gpus else [],
                        "environment": told(TASK_HOST, self._facts(launch, number, name)),
                    }
                )
        programs = {number: command for numbers, command in launch.programs for number in numbers}
        return {
            # of a component, that of the whole
            "job": int(given.get("SLURM_JOB_ID", launch.job_id)),
            "own_job": launch.job_id,
            "step": launch.step_id,
            "first_node": launch.first_node,
            "uid": user_id,
            "gid": group_id,
            "groups": groups_of(user_id, group_id),
            "user": launch.user,
            "umask": launch.umask,
            "work_dir": launch.work_dir,
            "nodes": parts,
            "environment": without_limits(given),
            "limits": limits_in(given, self._settings.propagated),
            "cpu_bind": launch.cpu_bind if self._settings.binds else "",
            "gpu_bind": launch.gpu_bind,
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
            "kill_wait_s": self._settings.kill_wait_s,
            "site_prolog": self._settings.task_prolog,
            "site_epilog": self._settings.task_epilog,
            "task_prolog": launch.task_prolog,
            "task_epilog": launch.task_epilog,
            "pty": launch.pty,
            "mpi": launch.mpi,
            "job_name": launch.job_name,
            "array_job": given.get("SLURM_ARRAY_JOB_ID", ""),
            "array_task": given.get("SLURM_ARRAY_TASK_ID", ""),
            "host": self._host,
            "size": sum(map(len, launch.layout or launch.tasks)),
            "layout": launch.layout or launch.tasks,
            # of the whole, as the layout is
            "names": expand(given.get("SLURM_STEP_NODELIST", launch.nodes)),
        }

    def _facts(self, launch: LaunchTasks, number: int, node: str) -> dict[str, object]:
        """What the tasks on one of its nodes are told."""
        address, pattern = self._settings.topology_address(node)
        return {
            "node": node,
            "conf": self._conf,
            "cpus_on_node": launch.cpus[number],
            "gpus_on_node": launch.gpus[number][0] or None if launch.gpus else None,
            "tasks_on_node": ",".join(map(str, launch.tasks[number])),
            "node_id": launch.first_node + number,
            "address": address,
            "address_pattern": pattern,
        }

    def signal(self, step: StepKey, number: int, *, ends: bool) -> None:
        self._tell(step, f"{'end' if ends else 'signal'} {number}")
        if ends:
            self._loop.call_later(self._settings.kill_wait_s, self._end_unbegun, step)

    def end(self, step: StepKey, why: str = "") -> None:
        self._tell(step, f"kill {why}")
        self._loop.call_later(self._settings.kill_wait_s, self._end_unbegun, step)

    def _end_unbegun(self, step: StepKey) -> None:
        """What stands before the tasks does not come to an end, as where their output is a pipe
        that nobody reads.
        """
        running = self._steps.get(step)
        if running is not None and not running.has_begun and running.pid:
            family.send(running.pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(running.pid, signal.SIGKILL)

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
            if running.pid:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(running.pid, signal.SIGTERM)
        until = time.monotonic() + _STOP_S
        for running in self._steps.values():
            while (
                not running.is_over
                and select.select([running.control], [], [], max(until - time.monotonic(), 0))[0]
            ):
                with contextlib.suppress(OSError):
                    if running.control.recv(65536):
                        continue
                running.is_over = True
            if not running.is_over and running.pid:
                for pid in (*family.below(running.pid), running.pid):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
            running.control.close()
        self._steps.clear()
        self._forker.close()
        os.close(self._null)

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
            elif word == "begun":
                running.has_begun = True
            elif word == "ended":
                running.result = _result(rest)
            elif word == "stat" and running.asking:
                running.asking.pop(0)(_usage(running, rest))
            elif word == "left" and running.pid:
                family.send(running.pid, signal.SIGKILL)
        if not data or running.result is not None:
            self._loop.remove_reader(running.control.fileno())
            running.control.close()
            del self._steps[step]
            for answer in running.asking:
                answer([])
            with contextlib.suppress(OSError):
                running.result = running.result or _result(
                    self._file(step, ".end").read_text().partition(" ")[2]
                )
            if running.result is None:
                self._end_strays(step, running)
            for path in (self._pid_file(step), self._file(step, ".sock"), self._file(step, ".end")):
                path.unlink(missing_ok=True)
            code, number, usage = running.result or (0, int(signal.SIGKILL), {})
            self._forget_memory(running)
            if running.memory is not None:
                usage |= running.memory.usage()
            if running.lacks_memory:
                code, number = 0, endings.OUT_OF_MEMORY
            self._on_ended(step, code, number, usage, running.fault)

    def _end_strays(self, step: StepKey, running: _Running) -> None:
        """The process in between was killed, and nobody waits for the tasks."""
        given = read(running.launch.environment)
        for node in expand(running.nodes):
            mark = (
                f"SLURM_JOB_ID={given.get('SLURM_JOB_ID', step[0])}\0SLURM_STEP_ID="
                f"{step[2]}\0SLURM_CONF={self._conf}\0SLURMD_NODENAME={node}"
            )
            family.end_strays(mark.encode(), running.pid)


def memory_limit_mb(launch: LaunchTasks, nodes: str) -> int:
    """How much memory the step has on these of its nodes; 0: nobody said."""
    own = dict.fromkeys(expand(nodes))
    return sum(
        memory
        for name, memory in zip(expand(launch.nodes), launch.memory_mb, strict=False)
        if name in own
    )


def _result(text: str) -> tuple[int, int, dict[str, int]] | None:
    code, _, rest = text.partition(" ")
    number, _, rest = rest.partition(" ")
    try:
        usage = {
            name: int(value) for name, _, value in (word.partition("=") for word in rest.split())
        }
        return min(max(int(code), 0), 255), min(max(int(number), 0), 64), usage
    except ValueError:
        return None


def _usage(running: _Running, text: str) -> list[list[object]]:
    """What the processes of each task have used, as /proc says."""
    watched = running.memory or Watched(running.pid)
    sample(watched)
    found: list[list[object]] = []
    for word in text.split():
        number, node, pid = word.split(":")
        if pid.isdigit() and int(pid) in watched.tasks:
            found.append([int(number), node, int(pid), *watched.tasks[int(pid)].most])
    return found
