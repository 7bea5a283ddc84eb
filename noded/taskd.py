"""The process between the node daemon and a step's tasks: becomes the user, starts the tasks, carries their streams to srun, says how they ended.

Place: started by `real_steps.py` as a program of its own, one for each step and daemon. It imports little of the house and of the library, to start
in few milliseconds. Follows: `../docs/adr/0011-the-streams-of-steps.md`, which has the frames between here and srun.

On descriptor 0 is a socket from the daemon: first the order (four bytes of length, then `marshal`), then lines: `signal N`, `end N` (the same, and it
ends the step), `kill` (end it gently, by force after a while), `attach KEY ADDRESS`, `stat`. Back go lines: `error TEXT`, `stat ...`, `left` when
there are processes that it may not kill, and at last `ended CODE SIGNAL NAME=VALUE...`, which is written into the file RESULT, too. A daemon that
is started again connects to the socket LISTENER. SIGTERM ends the step by force.
"""

from __future__ import annotations

import _socket
import marshal
import os
import select
import signal
import sys
import time

from understudy.noded import family
from understudy.noded.stepd import set_limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HELLO, STDOUT, STDERR, STDIN, STARTED, EXITED, MESSAGE, ABORT, DONE, WINDOW, PMI = range(1, 12)
ALL = 0xFFFFFFFF
LISTENER, RESULT = 3, 4  # descriptors
_GATHER_S = 0.05  # tasks that end within that time are told of together
_DRAIN_S = 1.0  # how long the streams of processes that outlive their task are read
_MOST = 1 << 22  # bytes that wait for srun before the tasks are no longer read
_CHUNK = 65536


class Task:
    """A task of the step."""

    def __init__(self, number: int, node: dict[str, Any], local: int) -> None:
        self.number, self.node, self.local = number, node, local
        self.pid = 0
        self.status: int | None = None
        self.stdin = -1
        self.waiting = bytearray()  # for its stdin
        self.stdin_ends = False


class Stream:
    """A task's stdout or stderr on its way to srun, line by line unless it is unbuffered."""

    def __init__(self, kind: int, task: Task) -> None:
        self.kind, self.task, self.held = kind, task, b""


class Reader:
    """srun, or a sattach: who gets the output."""

    def __init__(self, sock: _socket.socket) -> None:
        self.sock, self.out, self.inward = sock, bytearray(), bytearray()


class Step:
    """The tasks of a step on this daemon's nodes."""

    def __init__(self, order: dict[str, Any], control: _socket.socket) -> None:
        self.order, self.control = order, control
        self.tasks: list[Task] = []
        self.by_number: dict[int, Task] = {}
        self.streams: dict[int, Stream] = {}
        self.readers: dict[int, Reader] = {}
        self.said = b""
        self.poll = select.poll()
        self.ended: list[Task] = []  # not told of yet
        self.tell_at = self.kill_at = self.drain_until = 0.0
        self.usage = {"user_cpu_us": 0, "system_cpu_us": 0, "max_rss": 0}
        self.is_ending = False
        self.master = -1
        self.pmi: Any = None

    # --- beginning -----------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        order = self.order
        self.files: dict[str, int] = {}
        directory = ""
        if order["mpi"] == "pmi2":  # while this process may read its own folder
            from understudy.noded.pmi import Server  # noqa: PLC0415  few steps need it
        if order["pty"] is not None:
            import fcntl  # noqa: F401, PLC0415
            import termios  # noqa: F401, PLC0415
        os.umask(order["umask"])
        if os.geteuid() == 0:
            os.initgroups(order["user"], order["gid"])
            os.setgid(order["gid"])
            os.setuid(order["uid"])
        try:
            os.chdir(order["work_dir"])
        except OSError as error:
            os.chdir("/tmp")  # noqa: S108  as Slurm does
            directory = f"couldn't chdir to `{order['work_dir']}': {error.strerror}: going to /tmp instead"
        if order["io_address"]:
            self.connect(order["io_address"], order["io_key"])
        first = order["nodes"][0]
        if directory:
            self.complain(first, directory)
            self.complain(first, directory)  # Slurm's says it twice
        wake_in, wake_out = os.pipe()
        os.set_blocking(wake_out, False)
        os.set_blocking(wake_in, False)
        signal.set_wakeup_fd(wake_out)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.signal(signal.SIGTERM, lambda _number, _frame: family.send(os.getpid(), signal.SIGKILL))
        self.wake = wake_in
        self.poll.register(wake_in, select.POLLIN)
        self.control.setblocking(False)
        self.poll.register(self.control.fileno(), select.POLLIN)
        self.listener = _socket.socket(fileno=LISTENER)
        self.poll.register(LISTENER, select.POLLIN)
        if order["mpi"] == "pmi2":
            self.pmi = Server(order, self.exchange, self.pmi_abort)
        for node in order["nodes"]:
            for local, number in enumerate(node["tasks"]):
                task = Task(number, node, local)
                self.tasks.append(task)
                self.by_number[number] = task
        if self.can_open():
            for task in self.tasks:
                self.start(task)
        self.tell(STARTED, first["tasks"][0] if first["tasks"] else 0, " ".join(f"{task.number}:{task.pid}" for task in self.tasks).encode())

    def can_open(self) -> bool:
        """Open all files of tasks; without one of them no task is started, and none is to blame."""
        order = self.order
        try:
            for task in self.tasks:
                if order["std_in"]:
                    os.close(self.open(expand(order["std_in"], order, task), os.O_RDONLY))
                for pattern in {order["std_out"], order["std_err"]} - {""}:
                    self.output(pattern, task)
        except OSError:
            for task in self.tasks:
                self.tell(MESSAGE, task.node["id"], f"srun: error: task {task.number} launch failed: Slurmd could not connect IO\n".encode())
                task.status = 0
                self.ended.append(task)
            self.tell_at = time.monotonic()
            return False
        return True

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
            self.streams[self.master] = Stream(STDOUT, task)
            self.poll.register(self.master, select.POLLIN)
        else:
            inward = self.stdin_of(task, pipes)
            outward = self.output_of(task, order["std_out"], STDOUT, pipes)
            errors = self.output_of(task, order["std_err"], STDERR, pipes) if order["std_err"] or not order["std_out"] else outward
        pmi_fd = self.pmi.open(task.number, self.poll) if self.pmi is not None else -1
        pid = os.fork()
        if pid == 0:
            become(self, task, (inward, outward, errors), pmi_fd, is_terminal=wants_pty)
        task.pid = pid
        if not wants_pty:
            quietly(os.setpgid, pid, pid)
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
            path = expand(order["std_in"], order, task)
            return self.open(path, os.O_RDONLY)
        if order["stdin_task"] not in (-1, task.number) or not order["io_address"]:
            return self.open(os.devnull, os.O_RDONLY)
        theirs, ours = os.pipe()
        pipes.append((ours, theirs))
        task.stdin = ours
        return theirs

    def output_of(self, task: Task, pattern: str, kind: int, pipes: list[tuple[int, int]]) -> int:
        if pattern:
            return self.output(pattern, task)
        if not self.order["io_address"]:
            return self.open(os.devnull, os.O_WRONLY)
        ours, theirs = os.pipe()
        pipes.append((ours, theirs))
        self.streams[ours] = Stream(kind, task)
        self.poll.register(ours, select.POLLIN)
        return theirs

    def output(self, pattern: str, task: Task) -> int:
        return self.open(expand(pattern, self.order, task), os.O_WRONLY | os.O_CREAT | (os.O_APPEND if self.order["append"] else os.O_TRUNC))

    def open(self, path: str, flags: int) -> int:
        found = self.files.get(path) if flags & os.O_WRONLY else None
        if found is None:
            found = os.open(path, flags | os.O_CLOEXEC, 0o666)
            if flags & os.O_WRONLY:
                self.files[path] = found
        return found

    def resize(self, rows: int, columns: int) -> None:
        import fcntl  # noqa: PLC0415  few steps need it
        import termios  # noqa: PLC0415

        size = b"".join(number.to_bytes(2, sys.byteorder) for number in (rows, columns, 0, 0))
        quietly(fcntl.ioctl, self.master, termios.TIOCSWINSZ, size)

    # --- to those who read ---------------------------------------------------------------------------------------------------

    def connect(self, address: str, key: bytes) -> None:
        kind, _, rest = address.partition(":")
        try:
            if kind == "unix":
                sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
                sock.connect(rest)
            else:
                host, _, port = rest.rpartition(":")
                sock = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
                sock.connect((host, int(port)))
                sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
        except OSError as error:
            self.say(f"error no connection with srun at {address}: {error.strerror}")
            return
        reader = Reader(sock)
        sock.setblocking(False)
        self.readers[sock.fileno()] = reader
        self.poll.register(sock.fileno(), select.POLLIN)
        self.put(reader, frame(HELLO, self.order["nodes"][0]["id"], key))

    def tell(self, kind: int, task: int, data: bytes) -> None:
        for reader in list(self.readers.values()):
            self.put(reader, frame(kind, task, data))

    def put(self, reader: Reader, data: bytes) -> None:
        if not reader.out:
            try:
                data = data[reader.sock.send(data, _socket.MSG_NOSIGNAL) :]
            except BlockingIOError:
                pass
            except OSError:
                self.drop(reader)
                return
        if data:
            reader.out += data
            self.poll.modify(reader.sock.fileno(), select.POLLIN | select.POLLOUT)

    def flush(self, reader: Reader) -> None:
        try:
            del reader.out[: reader.sock.send(reader.out, _socket.MSG_NOSIGNAL)]
        except BlockingIOError:
            return
        except OSError:
            self.drop(reader)
            return
        if not reader.out:
            self.poll.modify(reader.sock.fileno(), select.POLLIN)

    def drop(self, reader: Reader) -> None:
        number = reader.sock.fileno()
        if self.readers.pop(number, None) is not None:
            self.poll.unregister(number)
            reader.sock.close()

    def complain(self, node: dict[str, Any], text: str) -> None:
        """A line on srun's stderr."""
        self.tell(MESSAGE, node["id"], f"slurmstepd-{node['name']}: error: {text}\n".encode())

    def say(self, text: str) -> None:
        """Tell the daemon, if it is there."""
        quietly(self.control.sendall, text.encode() + b"\n")

    # --- what comes ----------------------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Until all tasks have ended and their output has gone."""
        while True:
            if self.is_over():
                break
            for number, event in self.poll.poll(self.pause_ms()):
                if number == self.wake:
                    quietly(os.read, number, 4096)
                    self.reap()
                elif number == self.control.fileno():
                    self.hear()
                elif number == LISTENER:
                    self.found_again()
                elif number in self.readers:
                    reader = self.readers[number]
                    if event & select.POLLOUT:
                        self.flush(reader)
                    if event & ~select.POLLOUT and number in self.readers:
                        self.take(reader)
                elif number in self.streams:
                    self.read(number)
                elif self.pmi is not None and self.pmi.owns(number):
                    self.pmi.read(number, self.poll)
                else:
                    self.write_stdin(number)
            self.timers()
        self.finish()
        return 0

    def is_over(self) -> bool:
        if any(task.status is None for task in self.tasks) or self.ended:
            return False
        if not self.streams:
            return not any(reader.out for reader in self.readers.values())
        if not self.drain_until:
            family.send(os.getpid(), signal.SIGKILL)  # what the tasks have left behind keeps the streams open
            self.drain_until = time.monotonic() + _DRAIN_S
        return time.monotonic() >= self.drain_until

    def pause_ms(self) -> int | None:
        times = [when for when in (self.tell_at, self.kill_at, self.drain_until) if when]
        return max(int((min(times) - time.monotonic()) * 1000) + 1, 0) if times else None

    def timers(self) -> None:
        now = time.monotonic()
        if self.tell_at and (now >= self.tell_at or all(task.status is not None for task in self.tasks)):
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
                    self.close_stdin(task)
                    self.tell_at = self.tell_at or time.monotonic() + _GATHER_S
                    break

    def count(self, _pid: int, _status: int, used: Any) -> None:
        """What a process has used that has ended: a task, or an orphan of one."""
        self.usage["user_cpu_us"] += int(used.ru_utime * 1e6)
        self.usage["system_cpu_us"] += int(used.ru_stime * 1e6)
        self.usage["max_rss"] = max(self.usage["max_rss"], used.ru_maxrss * 1024)

    def epilog(self, task: Task) -> None:
        program = self.order["task_epilog"] or ""
        if program and not os.access(program, os.X_OK):
            self.complain(task.node, f"Could not run user task_epilog [{program}]: access denied")
            self.complain(task.node, "TaskEpilog failed status=-1")
        elif program:
            pid = os.fork()
            if pid == 0:
                run_program(program, environment_of(self, task))
            quietly(os.waitpid, pid, 0)

    def tell_exits(self) -> None:
        """Of each node the tasks that ended in the same way are one message, as with Slurm's daemons."""
        groups: dict[tuple[int, int], list[int]] = {}
        for task in sorted(self.ended, key=lambda each: each.number):
            assert task.status is not None
            groups.setdefault((task.node["id"], task.status), []).append(task.number)
        self.ended, self.tell_at = [], 0.0
        self.drain_finished()
        for (node, status), numbers in groups.items():
            self.tell(EXITED, node, f"{status} {','.join(map(str, numbers))}".encode())

    def drain_finished(self) -> None:
        """What the tasks have written before they ended comes before the news of their ends."""
        for number in list(self.streams):
            if number in self.streams and self.streams[number].task.status is not None:
                while number in self.streams and self.read(number):
                    pass

    def read(self, number: int) -> bool:
        """Whether there may be more at once."""
        stream = self.streams[number]
        if any(len(reader.out) > _MOST for reader in self.readers.values()):
            time.sleep(0.01)  # srun is slower than its tasks
            return False
        try:
            data = os.read(number, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:  # a terminal that nobody has open any more
            data = b""
        if not data:
            if stream.held:
                self.tell(stream.kind, stream.task.number, stream.held)
            self.tell(stream.kind, stream.task.number, b"")
            self.poll.unregister(number)
            os.close(number)
            del self.streams[number]
            return False
        if not self.order["unbuffered"]:
            data = stream.held + data
            stream.held = b""
            at = data.rfind(b"\n") + 1
            if at < len(data) < _CHUNK:
                stream.held, data = data[at:], data[:at]
        if data:
            self.tell(stream.kind, stream.task.number, data)
        return True

    def take(self, reader: Reader) -> None:
        """Something from srun."""
        try:
            data = reader.sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.drop(reader)
            return
        reader.inward += data
        while len(reader.inward) >= 10:
            length = int.from_bytes(reader.inward[6:10], "big")
            if len(reader.inward) < 10 + length:
                break
            kind, number = int.from_bytes(reader.inward[:2], "big"), int.from_bytes(reader.inward[2:6], "big")
            body = bytes(reader.inward[10 : 10 + length])
            del reader.inward[: 10 + length]
            if kind == STDIN:
                for task in self.tasks if number == ALL else [self.by_number[number]] if number in self.by_number else []:
                    self.give(task, body)
            elif kind == WINDOW and self.master >= 0:
                rows, _, columns = body.partition(b" ")
                self.resize(int(rows), int(columns))
            elif kind == PMI and self.pmi is not None:
                self.pmi.exchanged(body)

    def give(self, task: Task, data: bytes) -> None:
        if task.stdin < 0:
            return
        if data:
            task.waiting += data
        else:
            task.stdin_ends = True
        self.write_stdin(task.stdin)

    def write_stdin(self, number: int) -> None:
        task = next((each for each in self.tasks if each.stdin == number), None)
        if task is None:
            return
        try:
            while task.waiting:
                del task.waiting[: os.write(number, task.waiting)]
        except BlockingIOError:
            self.poll.register(number, select.POLLOUT)
            return
        except OSError:
            task.waiting.clear()
            task.stdin_ends = True
        quietly(self.poll.unregister, number)
        if task.stdin_ends:
            self.close_stdin(task)

    def close_stdin(self, task: Task) -> None:
        if task.stdin >= 0:
            quietly(self.poll.unregister, task.stdin)
            os.close(task.stdin)
            task.stdin = -1

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
                self.cancelled(" DUE TO TIME LIMIT" if end is not None and time.time() >= end else "")
                self.send_signal(signal.SIGCONT)
                self.send_signal(signal.SIGTERM)
                self.kill_at = self.kill_at or time.monotonic() + self.order["kill_wait_s"]
            elif word == "attach":
                key, _, address = rest.partition(" ")
                self.connect(address, bytes.fromhex(key))
            elif word == "say":
                self.complain(self.order["nodes"][0], rest)
            elif word == "stat":
                self.say("stat " + " ".join(f"{task.number}:{task.node['name']}:{task.pid}" for task in self.tasks if task.status is None))

    def cancelled(self, why: str) -> None:
        """Say once that the step is ended from outside; the first node speaks."""
        if self.is_ending:
            return
        self.is_ending = True
        self.tell(ABORT, 0, b"")
        node = self.order["nodes"][0]
        if node["id"] == self.order["first_node"]:
            when = time.strftime("%Y-%m-%dT%H:%M:%S")
            self.complain(node, f"*** STEP {self.order['own_job']}.{self.order['step']} ON {node['name']} CANCELLED AT {when}{why} ***")

    def found_again(self) -> None:
        """A daemon that was started again."""
        try:
            descriptor, _ = self.listener._accept()  # type: ignore[attr-defined]
        except OSError:
            return
        quietly(self.poll.unregister, self.control.fileno())
        self.control.close()
        self.control, self.said = _socket.socket(fileno=descriptor), b""
        self.control.setblocking(False)
        self.poll.register(descriptor, select.POLLIN)

    def send_signal(self, number: int) -> None:
        """To all processes of the step, where that matters, or to the tasks and what is in their process groups."""
        if number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGCONT):
            family.send(os.getpid(), number)
            return
        for task in self.tasks:
            if task.status is None and task.pid:
                quietly(os.killpg, task.pid, number)

    def exchange(self, body: bytes) -> None:
        self.tell(PMI, self.order["nodes"][0]["id"], body)

    def pmi_abort(self, code: int) -> None:
        self.complain(self.order["nodes"][0], f"*** STEP {self.order['job']}.{self.order['step']} aborted by an MPI task with code {code} ***")
        self.send_signal(signal.SIGKILL)

    def finish(self) -> None:
        family.end(lambda: self.say("left"), self.count)
        code = number = 0
        for task in self.tasks:
            assert task.status is not None
            result = os.waitstatus_to_exitcode(task.status)
            code = max(code, result)
            number = number or max(-result, 0)
        for stream in self.streams.values():
            if stream.held:
                self.tell(stream.kind, stream.task.number, stream.held)
        self.tell(DONE, self.order["nodes"][0]["id"], b"")
        for reader in list(self.readers.values()):
            reader.sock.setblocking(True)
            quietly(reader.sock.sendall, reader.out)
            reader.sock.close()
        self.over(f"ended {code} {number} " + " ".join(f"{name}={value}" for name, value in self.usage.items()))

    def over(self, text: str) -> None:
        """The last word to the daemon, or to the one that comes after it."""
        quietly(os.write, RESULT, text.encode() + b"\n")
        self.say(text)


def environment_of(step: Step, task: Task) -> dict[str, str]:
    node, order = task.node, step.order
    variables = dict(order["environment"])
    variables |= node["environment"]
    variables |= {
        "SLURM_PROCID": str(task.number),
        "SLURM_LOCALID": str(task.local),
        "SLURM_TASK_PID": str(os.getpid()),
    }
    if step.pmi is not None:
        variables |= step.pmi.environment(task.number)
    return variables


def become(step: Step, task: Task, files: tuple[int, int, int], pmi_fd: int, *, is_terminal: bool) -> None:
    """Turn this process, a child, into the task. Does not return."""
    code = 1
    try:
        if is_terminal:
            import fcntl  # noqa: PLC0415  few steps need it
            import termios  # noqa: PLC0415

            os.setsid()
            quietly(fcntl.ioctl, files[0], termios.TIOCSCTTY, 0)
        else:
            os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        variables = environment_of(step, task)
        copies = [os.dup(each) for each in files]
        for target, source in enumerate(copies):
            os.dup2(source, target)
        for copy in copies:
            os.close(copy)
        if pmi_fd >= 0:
            os.set_inheritable(pmi_fd, True)
            variables["PMI_FD"] = str(pmi_fd)
        set_limits(step.order["limits"])
        if cpus := cpus_of(step.order["cpu_bind"], task.local, int(step.order["environment"].get("SLURM_CPUS_PER_TASK", "1"))):
            quietly(os.sched_setaffinity, 0, cpus)
        command = step.order["programs"].get(task.number, step.order["arguments"]) if step.order["programs"] else step.order["arguments"]
        if step.order["task_prolog"]:
            prolog(step, task, variables)
        execute(command, variables)
    except OSError as error:
        code = error.errno or 1
        name = step.order["programs"].get(task.number, step.order["arguments"])[0] if step.order["programs"] else step.order["arguments"][0]
        quietly(os.write, 2, f"slurmstepd-{task.node['name']}: error: execve(): {name}: {error.strerror}\n".encode())
    finally:
        os._exit(code)


def cpus_of(binding: str, local: int, each: int) -> set[int]:
    """The CPUs of a node's task so many, by --cpu-bind; none: it may have all. The kernel has the last word on which there are."""
    kind, _, values = binding.partition(":")
    words = [word for word in values.split(",") if word]
    if kind == "map_cpu" and words:
        return {int(words[local % len(words)], 0)}
    if kind == "mask_cpu" and words:
        mask = int(words[local % len(words)], 16)
        return {number for number in range(mask.bit_length()) if mask >> number & 1}
    if kind in ("rank", "threads", "cores"):
        return set(range(local * each, (local + 1) * each))
    return set()


def execute(command: list[str], variables: dict[str, str]) -> None:
    """exec, by way of PATH, else from the working directory; the error is the one that tells most."""
    name = command[0]
    if "/" in name:
        os.execve(name, command, variables)  # noqa: S606
    refused: OSError | None = None
    for folder in variables.get("PATH", "").split(":"):
        path = f"{folder or '.'}/{name}"
        if not os.access(path, os.X_OK):
            continue
        try:
            os.execve(path, command, variables)  # noqa: S606
        except OSError as error:
            refused = error
    if refused is not None:
        raise refused
    os.execve(name, command, variables)  # noqa: S606


def prolog(step: Step, task: Task, variables: dict[str, str]) -> None:
    """--task-prolog: what it prints sets and unsets variables, or goes to the task's output."""
    where = f"slurmstepd-{task.node['name']}: error:"
    if not os.access(step.order["task_prolog"], os.X_OK):
        why = os.strerror(2 if not os.path.exists(step.order["task_prolog"]) else 13)
        for line in (
            f"run_command: user task_prolog can not be executed ({step.order['task_prolog']}) {why}",
            "user task_prolog did not exit normally. reason: Run command failed - configuration error",
            "--task-prolog failed status=1",
        ):
            quietly(os.write, 2, f"{where} {line}\n".encode())
        os._exit(1)
    inward, outward = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(outward, 1)
        run_program(step.order["task_prolog"], variables)
    os.close(outward)
    text = b""
    while data := os.read(inward, _CHUNK):
        text += data
    os.close(inward)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status:
        quietly(os.write, 2, f"{where} --task-prolog failed status={status}\n".encode())
        os._exit(status if status > 0 else 1)
    for line in text.decode(errors="surrogateescape").split("\n"):
        word, _, rest = line.partition(" ")
        if word == "export" and "=" in rest:
            name, _, value = rest.partition("=")
            variables[name.strip()] = value
        elif word == "unset":
            variables.pop(rest.strip(), None)
        elif word == "print":
            quietly(os.write, 1, rest.encode(errors="surrogateescape") + b"\n")


def run_program(program: str, variables: dict[str, str]) -> None:
    """exec, or else end as a shell would. Does not return."""
    try:  # noqa: SIM105  contextlib costs time
        os.execve(program, [program], variables)  # noqa: S606
    except OSError:
        pass
    os._exit(127)


def expand(pattern: str, order: dict[str, Any], task: Task) -> str:
    """A file name with its patterns: srun(1), "IO Redirection"."""
    if pattern == "none":
        return os.devnull
    found = ""
    at = 0
    values = {
        "A": order["array_job"] or str(order["job"]),
        "a": order["array_task"] or "4294967294",
        "J": f"{order['job']}.{order['step']}",
        "j": str(order["job"]),
        "s": str(order["step"]),
        "N": order["host"],
        "n": str(task.node["id"]),
        "t": str(task.number),
        "u": order["user"],
        "x": order["job_name"],
    }
    if "\\" in pattern:
        return pattern.replace("\\", "")
    while at < len(pattern):
        letter = pattern[at]
        at += 1
        if letter != "%" or at == len(pattern):
            found += letter
            continue
        end = at
        while end < len(pattern) and pattern[end].isdigit():
            end += 1
        width, key = pattern[at:end], pattern[end : end + 1]
        if key == "%" and not width:
            found += "%"
        elif key in values:
            found += values[key].rjust(min(int(width or 0), 10), "0") if key in "Aajsnt" else values[key]
        else:
            found += "%" + width + key
        at = end + 1
    return found


def frame(kind: int, task: int, data: bytes) -> bytes:
    return kind.to_bytes(2, "big") + task.to_bytes(4, "big") + len(data).to_bytes(4, "big") + data


def quietly(call: Any, *arguments: Any) -> None:
    try:  # noqa: SIM105
        call(*arguments)
    except (OSError, KeyError):
        pass


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
    step.said = received[4 + length :]
    try:
        step.begin()
    except OSError as error:
        step.say(f"error {error.strerror}: {error.filename or ''}")
        step.over("ended 1 0")
        return 1
    return step.run()
