"""The process between the node daemon and a step's tasks: becomes the user, starts the tasks,
carries their streams to srun, says how they ended.

Place: started by `real_steps.py` as a program of its own, one for each step and daemon. It imports
little of the house and of the library, to start in few milliseconds. Follows:
`../docs/adr/0011-the-streams-of-steps.md`, which has the frames between here and srun.

On descriptor 0 is a socket from the daemon: first the order (four bytes of length, then `marshal`),
then lines: `signal N`, `end N` (the same, and it ends the step), `kill` (end it gently, by force
after a while), `attach KEY ADDRESS`, `stat`. Back go lines: `error TEXT`, `begun` when the tasks
are started, `stat ...`, `left` when there are processes that it may not kill, and at last `ended
CODE SIGNAL NAME=VALUE...`, which is written into the file RESULT, too. A daemon that is started
again connects to the socket LISTENER. SIGTERM ends the step by force.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # without enumerations, see forking.py
import _socket
import marshal
import math
import os
import select
import sys
import time

from understudy.noded import family
from understudy.noded.gpu_bind import gpu_variables, gpus_of
from understudy.noded.stepd import Quietly, oom_text
from understudy.noded.task import Task, unregister
from understudy.noded.task_exec import become, environment_of
from understudy.noded.task_files import Files
from understudy.noded.task_output import Output
from understudy.noded.task_programs import USER_EPILOG_S, begin_epilog
from understudy.noded.task_readers import Readers
from understudy.protocol.endings import OUT_OF_MEMORY
from understudy.protocol.task_frames import (
    ABORT,
    ALL,
    DONE,
    EXITED,
    LOST,
    MESSAGE,
    MPI_ABORT,
    PMI,
    PMIX,
    STARTED,
    STDERR,
    STDIN,
    STDOUT,
    WINDOW,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LISTENER, RESULT = 3, 4  # descriptors
_GATHER_S = 0.1  # measured with 22.05.8: tasks that end within that time are told of together
_DRAIN_S = 1.0  # ours: how long the streams of processes that outlive their task are read
_CHUNK = 65536


class Step:
    """The tasks of a step on this daemon's nodes."""

    def __init__(self, order: dict[str, Any], control: _socket.socket) -> None:
        self.order, self.control = order, control
        self.tasks: list[Task] = []
        self.by_number: dict[int, Task] = {}
        self.said = b""
        self.poll = select.poll()
        self.readers = Readers(self.poll, order["nodes"][0]["id"])
        self.files = Files(order)
        self.output = Output(self.poll, self.readers, unbuffered=order["unbuffered"])
        self.ended: list[Task] = []  # not told of yet
        self.tell_at = self.kill_at = self.drain_until = 0.0
        self.usage = {"user_cpu_us": 0, "system_cpu_us": 0}
        self.is_ending = self.has_oom_news = False
        self.oom_kills = 0  # processes that were killed as the step used more memory than it has
        self.master = -1
        self.pmi: Any = None
        self.pmix: Any = None
        self.shared_host: Any = None

    # --- beginning --------------------------------------------------------------------------------

    def begin(self) -> None:
        order = self.order
        directory = ""
        # While this process may read its own folder; few steps need it.
        if order["mpi"] == "pmi2":
            from understudy.noded.pmi import Server  # noqa: PLC0415
        elif order["mpi"]:
            from understudy.noded.task_pmix import Pmix  # noqa: PLC0415

            self.pmix = Pmix(order, self.poll)
        if self.may_be_open_mpi():
            from understudy.noded.task_pmix import SharedHost  # noqa: PLC0415
        if order["pty"] is not None:
            import fcntl  # noqa: F401, PLC0415
            import termios  # noqa: F401, PLC0415
        os.umask(order["umask"])
        if os.geteuid() == 0:
            os.setgroups(order["groups"])
            os.setgid(order["gid"])
            os.setuid(order["uid"])
        try:
            os.chdir(order["work_dir"])
        except OSError as error:
            os.chdir("/tmp")  # noqa: S108  as Slurm does
            directory = (
                f"couldn't chdir to `{order['work_dir']}': {error.strerror}: going to /tmp instead"
            )
        if order["io_address"]:
            self.connect(order["io_address"], order["io_key"])
        first = order["nodes"][0]
        if self.may_be_open_mpi():
            self.shared_host = SharedHost(order)
        if directory:
            self.complain(first, directory)
            self.complain(first, directory)  # Slurm's says it twice
        wake_in, wake_out = os.pipe()
        os.set_blocking(wake_out, False)
        os.set_blocking(wake_in, False)
        signal.set_wakeup_fd(wake_out)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.signal(
            signal.SIGTERM, lambda _number, _frame: family.send(os.getpid(), signal.SIGKILL)
        )
        self.wake = wake_in
        self.poll.register(wake_in, select.POLLIN)
        self.control.setblocking(False)
        self.poll.register(self.control.fileno(), select.POLLIN)
        self.listener = _socket.socket(fileno=LISTENER)
        self.poll.register(LISTENER, select.POLLIN)
        if order["mpi"] == "pmi2":
            self.pmi = Server(order, self.exchange, lambda _code: self.mpi_abort(None))
        for node in order["nodes"]:
            for local, number in enumerate(node["tasks"]):
                task = Task(number, node, local)
                self.tasks.append(task)
                self.by_number[number] = task
        if self.can_open() and self.has_pmix():
            for task in self.tasks:
                self.start(task)
        self.readers.tell(
            STARTED,
            first["tasks"][0] if first["tasks"] else 0,
            " ".join(f"{task.number}:{task.pid}" for task in self.tasks).encode(),
        )

    def can_open(self) -> bool:
        """Open all files of tasks; without one of them no task is started, and none is to blame."""
        try:
            self.files.open_all(self.tasks)
        except OSError:
            self.fail("Slurmd could not connect IO")
            return False
        return True

    def may_be_open_mpi(self) -> bool:
        """Or one of its daemons, which mpirun starts."""
        return self.order["mpi"].startswith("pmix") or os.path.basename(
            "".join(self.order["arguments"][:1])
        ) in ("orted", "prted")

    def has_pmix(self) -> bool:
        """Wait for the servers that the tasks will talk to."""
        failures: dict[int, str] = self.pmix.begin() if self.pmix is not None else {}
        for node in self.order["nodes"]:
            if why := failures.get(node["id"]):
                self.complain(node, f" mpi/pmix: {why}")
        if failures:
            self.fail("Unspecified error")
        return not failures

    def fail(self, why: str) -> None:
        for task in self.tasks:
            self.readers.tell(
                MESSAGE,
                task.node["id"],
                f"srun: error: task {task.number} launch failed: {why}\n".encode(),
            )
            task.status = 0
            self.ended.append(task)
        self.tell_at = time.monotonic()

    def start(self, task: Task) -> None:
        order = self.order
        pipes: list[tuple[int, int]] = []
        wants_pty = order["pty"] is not None and task.number == 0
        slave = -1
        if wants_pty:
            self.master, slave = os.openpty()
            self.resize(*order["pty"])
            os.set_blocking(self.master, False)
            task.stdin = os.dup(self.master)
            inward = outward = errors = slave
            self.output.add(self.master, STDOUT, task)
        else:
            inward = self.stdin_of(task, pipes)
            outward = self.output_of(task, order["std_out"], STDOUT, pipes)
            errors = (
                self.output_of(task, order["std_err"], STDERR, pipes)
                if order["std_err"] or not order["std_out"]
                else outward
            )
        pmi_fd = self.pmi.open(task.number, self.poll) if self.pmi is not None else -1
        variables = self.environment_of(task)
        if order["gpu_bind"] and task.node["gpus"] and self.gpus_of(task) == []:
            what = (
                f"Bind request gpu:{order['gpu_bind']} does not specify any devices within "
                f"the allocation for task {task.local}."
            )
            self.complain(
                task.node, f"{what} Binding to the first device in the allocation instead."
            )
        if pmi_fd >= 0:
            os.set_inheritable(pmi_fd, True)
            variables["PMI_FD"] = str(pmi_fd)
        if order["task_epilog"] or order["site_epilog"]:
            task.errors = os.dup(errors)
        pid = family.fork()
        if pid == 0:
            become(order, task, variables, (inward, outward, errors), is_terminal=wants_pty)
        task.pid = pid
        if not wants_pty:
            with Quietly():
                os.setpgid(pid, pid)
        for ours, theirs in pipes:
            os.close(theirs)
            os.set_blocking(ours, False)
        if slave >= 0:
            os.close(slave)
        if pmi_fd >= 0:
            os.close(pmi_fd)

    def stdin_of(self, task: Task, pipes: list[tuple[int, int]]) -> int:
        order = self.order
        if order["std_in"]:
            return self.files.input_of(task)
        if order["stdin_task"] not in (-1, task.number) or not order["io_address"]:
            return self.files.open(os.devnull, os.O_RDONLY)
        theirs, ours = os.pipe()
        pipes.append((ours, theirs))
        task.stdin = ours
        return theirs

    def output_of(self, task: Task, pattern: str, kind: int, pipes: list[tuple[int, int]]) -> int:
        if pattern:
            return self.files.output_of(task, pattern)
        if not self.order["io_address"]:
            return self.files.open(os.devnull, os.O_WRONLY)
        ours, theirs = os.pipe()
        pipes.append((ours, theirs))
        self.output.add(ours, kind, task)
        return theirs

    def environment_of(self, task: Task) -> dict[str, str]:
        gpus = gpu_variables(
            self.order["gpu_bind"], task.node["gpus"], self.gpus_of(task), len(task.node["tasks"])
        )
        mpi: dict[str, str] = {}
        for each in (self.pmi, self.pmix):
            if each is not None:
                mpi |= each.environment(task.number)
        if self.shared_host is not None:
            mpi |= self.shared_host.environment(task.node["id"], self.order["environment"])
        return environment_of(self.order, task, gpus | mpi)

    def gpus_of(self, task: Task) -> list[int] | None:
        return gpus_of(
            self.order["gpu_bind"], task.node["gpus"], task.local, len(task.node["tasks"])
        )

    def resize(self, rows: int, columns: int) -> None:
        import fcntl  # noqa: PLC0415  few steps need it
        import termios  # noqa: PLC0415

        size = b"".join(number.to_bytes(2, sys.byteorder) for number in (rows, columns, 0, 0))
        with Quietly():
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    # --- to those who read ------------------------------------------------------------------------

    def connect(self, address: str, key: bytes) -> None:
        if problem := self.readers.connect(address, key):
            self.say(f"error {problem}")

    def complain(self, node: dict[str, Any], text: str) -> None:
        """A line on srun's stderr."""
        self.readers.tell(
            MESSAGE, node["id"], f"slurmstepd-{node['name']}: error: {text}\n".encode()
        )

    def say(self, text: str) -> None:
        """Tell the daemon, if it is there."""
        with Quietly():
            self.control.sendall(text.encode() + b"\n")

    # --- what comes -------------------------------------------------------------------------------

    def run(self) -> int:
        """Until all tasks have ended and their output has gone."""
        while True:
            if self.is_over():
                break
            for number, event in self.poll.poll(self.pause_ms()):
                if number == self.wake:
                    with Quietly():
                        os.read(number, 4096)
                    self.reap()
                elif number == self.control.fileno():
                    self.hear()
                elif number == LISTENER:
                    self.found_again()
                elif number in self.readers:
                    if event & select.POLLOUT:
                        self.readers.flush(number)
                    if event & ~select.POLLOUT and number in self.readers:
                        self.take(number)
                elif number in self.output:
                    self.output.read(number)
                elif self.pmi is not None and self.pmi.owns(number):
                    self.pmi.read(number, self.poll)
                elif self.pmix is not None and self.pmix.owns(number):
                    for frame in self.pmix.read(event):
                        self.hear_pmix(*frame)
                elif task := next((each for each in self.tasks if each.stdin == number), None):
                    task.write_stdin(self.poll)
            self.timers()
        self.finish()
        return 0

    def is_over(self) -> bool:
        if any(task.status is None for task in self.tasks) or self.ended:
            return False
        if not self.output:
            return self.readers.have_all
        if not self.drain_until:
            # what the tasks have left behind keeps the streams open
            family.send(os.getpid(), signal.SIGKILL)
            self.drain_until = time.monotonic() + _DRAIN_S
        return time.monotonic() >= self.drain_until

    def pause_ms(self) -> int | None:
        times = [when for when in (self.tell_at, self.kill_at, self.drain_until) if when]
        return max(int((min(times) - time.monotonic()) * 1000) + 1, 0) if times else None

    def timers(self) -> None:
        now = time.monotonic()
        if self.tell_at and (
            now >= self.tell_at or all(task.status is not None for task in self.tasks)
        ):
            self.tell_exits()
        if self.kill_at and now >= self.kill_at:
            self.kill_at = now + 1.0
            self.send_signal(signal.SIGKILL)

    def reap(self) -> None:
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.count(pid, status, used)
            for task in self.tasks:
                if task.pid == pid and task.status is None:
                    task.status = status
                    self.epilog(task)
                    self.ended.append(task)
                    task.close_stdin(self.poll)
                    self.tell_at = self.tell_at or time.monotonic() + _GATHER_S
                    break

    def count(self, _pid: int, _status: int, used: Any) -> None:
        """What a process has used that has ended: a task, or an orphan of one."""
        self.usage["user_cpu_us"] += int(used.ru_utime * 1e6)
        self.usage["system_cpu_us"] += int(used.ru_stime * 1e6)

    def epilog(self, task: Task) -> None:
        """--task-epilog, which has its time; then the site's."""
        for program, whose, said, limit_s in (
            (self.order["task_epilog"], "user", "TaskEpilog", USER_EPILOG_S),
            (self.order["site_epilog"], "slurm", "--task-epilog", None),
        ):
            if not program:
                continue
            status = -1
            if os.access(program, os.X_OK):
                status = self.wait_for_epilog(
                    begin_epilog(program, self.environment_of(task), task.errors), limit_s
                )
            else:
                self.complain(
                    task.node, f"Could not run {whose} task_epilog [{program}]: access denied"
                )
            if status:
                self.complain(task.node, f"{said} failed status={status}")
        if task.errors >= 0:
            os.close(task.errors)
            task.errors = -1

    def wait_for_epilog(self, pid: int, limit_s: float | None) -> int:
        """Its status as wait(2) has it. Orders to end the step are heeded meanwhile."""
        until = math.inf if limit_s is None else time.monotonic() + limit_s
        over = os.pidfd_open(pid)
        while True:
            poll = select.poll()
            poll.register(over, select.POLLIN)
            with Quietly():
                poll.register(self.control.fileno(), select.POLLIN)
            left_s = min(until, self.kill_at or math.inf) - time.monotonic()
            heard = {
                number
                for number, _ in poll.poll(
                    None if left_s == math.inf else max(left_s, 0) * 1000 + 1
                )
            }
            if over in heard:
                break
            if heard:
                self.hear()
            self.timers()
            if time.monotonic() >= until:
                until = math.inf
                with Quietly():
                    os.killpg(pid, signal.SIGKILL)
        os.close(over)
        with Quietly():
            return os.waitpid(pid, 0)[1]
        return 0

    def tell_exits(self) -> None:
        """Of each node the tasks that ended in the same way are one message, as with Slurm's
        daemons.
        """
        groups: dict[tuple[int, int], list[int]] = {}
        is_asked = self.pmix is not None and not self.is_ending
        for task in sorted(self.ended, key=lambda each: each.number):
            assert task.status is not None
            groups.setdefault(
                (task.node["id"], OUT_OF_MEMORY if self.has_oom_news else task.status), []
            ).append(task.number)
            if is_asked:
                self.pmix.ended(task)
        self.ended, self.tell_at, self.has_oom_news = [], 0.0, False
        self.output.drain_ended()
        for (node, status), numbers in groups.items():
            self.readers.tell(EXITED, node, f"{status} {','.join(map(str, numbers))}".encode())

    def take(self, descriptor: int) -> None:
        """Something from srun."""
        for kind, number, body in self.readers.take(descriptor):
            if kind == STDIN:
                for task in (
                    self.tasks
                    if number == ALL
                    else [self.by_number[number]]
                    if number in self.by_number
                    else []
                ):
                    task.give(body, self.poll)
            elif kind == WINDOW and self.master >= 0:
                rows, _, columns = body.partition(b" ")
                self.resize(int(rows), int(columns))
            elif kind == PMI and self.pmi is not None:
                self.pmi.exchanged(body)
            elif kind == PMIX and self.pmix is not None:
                self.pmix.put(PMIX, number, body)

    def hear(self) -> None:
        """Something from the daemon."""
        try:
            data = self.control.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:  # the daemon is gone; the step goes on
            self.poll.unregister(self.control.fileno())
            return
        self.obey(data)

    def obey(self, data: bytes) -> None:
        *lines, self.said = (self.said + data).split(b"\n")
        for line in lines:
            word, _, rest = line.decode().partition(" ")
            if word == "signal":
                self.send_signal(int(rest))
            elif word == "end":
                self.cancelled("")
                self.send_signal(int(rest))
            elif word == "kill":
                end = self.order["end_time"]
                why = rest or ("TIME LIMIT" if end is not None and time.time() >= end else "")
                self.cancelled(f" DUE TO {why}" if why else "")
                self.send_signal(signal.SIGCONT)
                self.send_signal(signal.SIGTERM)
                self.kill_at = self.kill_at or time.monotonic() + self.order["kill_wait_s"]
            elif word == "attach":
                key, _, address = rest.partition(" ")
                self.connect(address, bytes.fromhex(key))
            elif word == "oom":
                self.oom_kills += 1
                self.has_oom_news = True
            elif word == "say":
                self.complain(self.order["nodes"][0], rest)
            elif word == "stat":
                self.say(
                    "stat "
                    + " ".join(
                        f"{task.number}:{task.node['name']}:{task.pid}"
                        for task in self.tasks
                        if task.status is None
                    )
                )

    def cancelled(self, why: str) -> None:
        """Say once that the step is ended from outside; the first node speaks."""
        if self.is_ending:
            return
        self.is_ending = True
        self.readers.tell(ABORT, 0, b"")
        node = self.order["nodes"][0]
        if node["id"] == self.order["first_node"]:
            when = time.strftime("%Y-%m-%dT%H:%M:%S")
            self.complain(
                node,
                f"*** STEP {self.order['own_job']}.{self.order['step']} ON {node['name']} "
                f"CANCELLED AT {when}{why} ***",
            )

    def found_again(self) -> None:
        """A daemon that was started again."""
        try:
            descriptor, _ = self.listener._accept()  # type: ignore[attr-defined]
        except OSError:
            return
        unregister(self.poll, self.control.fileno())
        self.control.close()
        self.control, self.said = _socket.socket(fileno=descriptor), b""
        self.control.setblocking(False)
        self.poll.register(descriptor, select.POLLIN)
        self.say("begun")

    def send_signal(self, number: int) -> None:
        """To all processes of the step, where that matters, or to the tasks and what is in their
        process groups.
        """
        if number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGCONT):
            family.send(os.getpid(), number)
            return
        for task in self.tasks:
            if task.status is None and task.pid:
                with Quietly():
                    os.killpg(task.pid, number)

    def exchange(self, body: bytes) -> None:
        self.readers.tell(PMI, self.order["nodes"][0]["id"], body)

    def mpi_abort(self, code: int | None) -> None:
        """Have srun end the step, on all nodes."""
        self.readers.tell(
            MPI_ABORT, self.order["nodes"][0]["id"], b"" if code is None else str(code).encode()
        )

    def hear_pmix(self, kind: int, node: int, body: bytes) -> None:
        """Something from the servers of PMIx."""
        if kind == PMIX:
            self.readers.tell(PMIX, node, body)
        elif kind == MPI_ABORT:
            self.mpi_abort(int(body))
        elif kind == LOST and not self.is_ending:
            task = self.by_number[int(body)]
            if any(each.status is None for each in self.tasks if each.node is task.node):
                where = (
                    f"mpi/pmix_v4: _errhandler: {task.node['name']} [{node}]: pmixp_client_v2.c:211"
                )
                source = f"slurm.pmix.{self.order['job']}.{self.order['step']}:{task.number}"
                self.complain(
                    task.node, f" {where}: Error handler invoked: status = -61, source = [{source}]"
                )
                self.mpi_abort(None)

    def finish(self) -> None:
        family.end(lambda: self.say("left"), self.count)
        code = number = 0
        for task in self.tasks:
            assert task.status is not None
            result = os.waitstatus_to_exitcode(task.status)
            code = max(code, result)
            number = number or max(-result, 0)
        self.output.close()
        for each in (self.pmix, self.shared_host):
            if each is not None:
                each.close()
        if self.oom_kills:
            name = f"StepId={self.order['own_job']}.{self.order['step']}"
            self.complain(self.order["nodes"][0], oom_text(self.oom_kills, name))
        self.readers.tell(DONE, self.order["nodes"][0]["id"], b"")
        self.readers.close()
        self.over(
            f"ended {code} {number} "
            + " ".join(f"{name}={value}" for name, value in self.usage.items())
        )

    def over(self, text: str) -> None:
        """The last word to the daemon, or to the one that comes after it."""
        with Quietly():
            os.write(RESULT, text.encode() + b"\n")
        self.say(text)


def main() -> int:
    """See above."""
    family.adopt_orphans()
    control = _socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    received = b""
    while len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4], "big"):
        part = control.recv(1 << 20)
        if not part:
            return 1
        received += part
    length = int.from_bytes(received[:4], "big")
    step = Step(marshal.loads(received[4 : 4 + length]), control)  # noqa: S302  from the daemon that started us
    try:
        step.begin()
    except OSError as error:
        step.say(f"error {error.strerror}: {error.filename or ''}")
        step.over("ended 1 0")
        return 1
    step.say("begun")
    step.obey(received[4 + length :])  # came with the order
    return step.run()
