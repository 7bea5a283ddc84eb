"""The process between the node daemon and a batch script: becomes the user, opens the files, runs the script, writes down how it ended.

Place: started by `real.py` as a program of its own, one for each running script, so that a script outlives the node daemon and its exit status is
not lost. It imports next to nothing, to start in few milliseconds and stay small.

All processes of the script stay below it (`family.py`), and it ends when they have. In the job's spool directory it writes `pid` (the script's) and,
at the end, `exit` ("CODE SIGNAL"). On its standard output, a pipe while the daemon lives, it says the same, what went wrong, and `left` when there
are processes that it may not kill. SIGUSR1 has it write into the job's stderr that the job was cancelled, SIGUSR2 that it was for the time limit;
SIGTERM has it end the script by force.
"""

from __future__ import annotations

import os
import signal
import time

from understudy.noded import family

SETUP_FAILED = 53  # the "signal" that Slurm reports for a script whose files cannot be opened


def main(spool: str, node: str, job: str, user: str, uid: str, gid: str, umask: str, append: str, work_dir: str, *rest: str) -> int:
    """See above. All that is to be known comes as arguments; the environment is the script's."""
    std_in, std_out, std_err, script, *arguments = rest
    family.adopt_orphans()
    os.umask(int(umask, 8))
    try:
        if os.geteuid() == 0:
            os.initgroups(user, int(gid))
            os.setgid(int(gid))
            os.setuid(int(uid))
        directory = enter(work_dir)
        files = open_files(std_in, std_out, std_err, append=append == "1")
    except OSError as error:
        say(f"error {error.strerror}: {error.filename or user}")
        write(spool, "exit", f"0 {SETUP_FAILED}")
        return 0

    def complain(text: str) -> None:
        with Quietly():
            os.write(files[2], f"slurmstepd-{node}: error: {text}\n".encode())

    if directory:
        complain(directory)

    def cancelled(number: int, _frame: object) -> None:
        why = " DUE TO TIME LIMIT" if number == signal.SIGUSR2 else ""
        complain(f"*** JOB {job} ON {node} CANCELLED AT {time.strftime('%Y-%m-%dT%H:%M:%S')}{why} ***")

    signal.signal(signal.SIGUSR1, cancelled)
    signal.signal(signal.SIGUSR2, cancelled)
    signal.signal(signal.SIGTERM, lambda _number, _frame: family.send(os.getpid(), signal.SIGKILL))
    ready, release = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(release)
        os.read(ready, 1)  # the parent has written the pid down
        become(script, arguments, files, complain)
    os.close(ready)
    with Quietly():
        os.setpgid(child, child)
    write(spool, "pid", str(child))
    say(f"pid {child}")
    os.close(release)
    status = 0
    while True:  # the script's orphans end here, too
        pid, ended = os.wait()
        if pid == child:
            status = ended
            break
    family.end(lambda: say("left"), lambda _pid, _status, _usage: None)
    code = os.waitstatus_to_exitcode(status)
    write(spool, "exit", f"{max(code, 0)} {max(-code, 0)}")
    return 0


def enter(work_dir: str) -> str:
    """Change to the directory, or else to /tmp. What is to be said about it."""
    try:
        os.chdir(work_dir)
    except OSError as error:
        os.chdir("/tmp")  # noqa: S108  as Slurm does
        return f"couldn't chdir to `{work_dir}': {error.strerror}: going to /tmp instead"
    return ""


def open_files(std_in: str, std_out: str, std_err: str, *, append: bool) -> tuple[int, int, int]:
    """The script's descriptors 0, 1 and 2."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_APPEND if append else os.O_TRUNC)
    inward = os.open(std_in, os.O_RDONLY | os.O_CLOEXEC)
    outward = os.open(std_out, flags, 0o666)
    return inward, outward, outward if std_err == std_out else os.open(std_err, flags, 0o666)


def become(script: str, arguments: list[str], files: tuple[int, int, int], complain: object) -> None:
    """Turn this process, the child, into the script. Does not return."""
    code = 1
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.environ["SLURM_TASK_PID"] = str(os.getpid())
        os.environ["PWD"] = os.getcwd()
        for target, source in enumerate(files):
            os.dup2(source, target)
        os.execve(script, [script, *arguments], os.environ)  # noqa: S606
    except OSError as error:
        code = error.errno or 1
        interpreter = bad_interpreter(script)
        complain(f"execve(): {f'bad interpreter({interpreter})' if interpreter else script}: {error.strerror}")  # type: ignore[operator]
    finally:
        os._exit(code)


def bad_interpreter(script: str) -> str:
    """The interpreter that the script's first line names, if it is not there."""
    with Quietly(), open(script, "rb") as file:
        line = file.readline(1024).decode(errors="replace").strip()
        words = line[2:].split() if line.startswith("#!") else []
        if words and not os.path.exists(words[0]):
            return words[0]
    return ""


class Quietly:
    """An OSError is no matter here."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, OSError)


def say(text: str) -> None:
    """Tell the daemon, if it is there."""
    with Quietly():
        os.write(1, f"{text}\n".encode())


def write(spool: str, name: str, text: str) -> None:
    """Write a file of the spool directory as a whole."""
    path = f"{spool}/{name}"
    with open(path + ".new", "w") as file:
        file.write(text + "\n")
    os.rename(path + ".new", path)
