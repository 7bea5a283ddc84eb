"""The process between the node daemon and a batch script: becomes the user, opens the files, runs
the script, writes down how it ended.

Place: started by `real.py` as a program of its own, one for each running script, so that a script
outlives the node daemon and its exit status is not lost. It imports next to nothing, to start in
few milliseconds and stay small.

All processes of the script stay below it (`family.py`), and it ends when they have. In the job's
spool directory it writes `pid` (the script's) and, at the end, `exit` ("CODE SIGNAL USER-CPU
SYSTEM-CPU MEMORY", microseconds and bytes). On its standard output, a pipe while the daemon lives,
it says the same, what went wrong, and `left` when there are processes that it may not kill. SIGUSR1
has it write into the job's stderr that the job was cancelled, SIGUSR2 that it was for the time
limit, SIGHUP what stands in `notice.*` beside; SIGTERM has it end the script by force.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # without enumerations, see forking.py
import marshal
import os
import resource
import select
import time

from understudy.model.environment import HOST, told
from understudy.noded import family
from understudy.noded.task_programs import run_epilog, run_prolog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SETUP_FAILED = 53  # the "signal" that Slurm reports for a script whose files cannot be opened


def main() -> int:
    """See above. All that is to be known comes as a dictionary on descriptor 0 (`marshal`)."""
    with open(0, "rb", closefd=False) as file:
        order: dict[str, Any] = marshal.load(file)  # noqa: S302  from the daemon that started us
    spool, node, job = order["spool"], order["node"], order["job"]
    if not claim(order["claim"]):
        return 0
    family.adopt_orphans()
    os.umask(order["umask"])
    try:
        variables, directory, files = take_on(order)
    except OSError as error:
        say(f"error {error.strerror}: {error.filename or order['user']}")
        write(spool, "exit", f"0 {SETUP_FAILED}")
        return 0

    def complain(text: str) -> None:
        with Quietly():
            os.write(files[2], f"slurmstepd-{node}: error: {text}\n".encode())

    if order["refusal"]:
        with Quietly():
            os.write(files[2], f"{order['refusal']}\n".encode())
        write(spool, "exit", "0 0")
        return 0
    if directory:
        complain(directory)

    heed_signals(order, complain)
    variables["PWD"] = os.getcwd()
    child = family.fork()
    if child == 0:
        become(order, variables, files, complain)
    with Quietly():
        os.setpgid(child, child)
    say(f"pid {child}")
    status = 0
    while True:  # the script's orphans end here, too
        pid, ended = os.wait()
        if pid == child:
            status = ended
            break
    if order["task_epilog"]:
        failed = run_epilog(order["task_epilog"], variables, files[2])
        if failed:
            complain(f"--task-epilog failed status={failed}")
    family.end(lambda: say("left"), lambda _pid, _status, _usage: None)
    # the daemon has killed some of the script's processes
    with Quietly(), open(f"{spool}/oom", encoding="ascii") as kills:
        complain(oom_text(int(kills.read()), f"StepId={job}.batch"))
    code = os.waitstatus_to_exitcode(status)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    write(
        spool,
        "exit",
        f"{max(code, 0)} {max(-code, 0)} {int(used.ru_utime * 1e6)} {int(used.ru_stime * 1e6)}",
    )
    return 0


def claim(path: str) -> bool:
    """Write down who this is. False: somebody has begun already, for a daemon that was killed
    before it knew.
    """
    me = os.getpid()
    try:
        with open(f"/proc/{me}/stat", "rb") as file:
            started = file.read().rpartition(b")")[2].split()[19].decode()
        with open(f"{path}.{me}", "w", encoding="ascii") as file:
            file.write(f"{me} {started}\n")
        try:
            os.link(f"{path}.{me}", path)
        finally:
            os.unlink(f"{path}.{me}")
    except FileExistsError:
        return False
    except OSError as error:  # it cannot be found again, should the daemon be killed
        say(f"error {path} cannot be written: {error.strerror}")
    return True


def take_on(order: dict[str, Any]) -> tuple[dict[str, str], str, tuple[int, int, int]]:
    """Become the job's user, in its directory, within its limits. The script's variables, what is
    to be said about the directory, and the script's descriptors 0, 1 and 2.

    Raises:
        OSError: one of them cannot be had.
    """
    variables: dict[str, str] = order["environment"]
    if order["wants_login"]:
        variables = {
            **login_environment(order["user"], order["shell"], order["login_limit_s"]),
            **variables,
        }
    if os.geteuid() == 0:
        os.setgroups(order["groups"])
        os.setgid(order["gid"])
        set_limits(order["limits"])
        os.setuid(order["uid"])
    else:
        set_limits(order["limits"])
    directory = enter(order["work_dir"])
    files = open_files(order["std_in"], order["std_out"], order["std_err"], append=order["append"])
    return variables, directory, files


def heed_signals(order: dict[str, Any], complain: Callable[[str], None]) -> None:
    """SIGHUP: print the notices that lie in the spool folder; SIGUSR1, SIGUSR2: print that the job
    is cancelled, by a user or its limit; SIGTERM: end with all that the script has begun.
    """
    spool = order["spool"]

    def cancelled(number: int, _frame: object) -> None:
        why = " DUE TO TIME LIMIT" if number == signal.SIGUSR2 else ""
        complain(
            f"*** JOB {order['job']} ON {order['node']} CANCELLED AT "
            f"{time.strftime('%Y-%m-%dT%H:%M:%S')}{why} ***"
        )

    def heed_notices(_number: int, _frame: object) -> None:
        for name in sorted(each for each in os.listdir(spool) if each.startswith("notice.")):
            with Quietly(), open(f"{spool}/{name}", encoding="utf-8") as notice:
                # fails where another signal came in between and saw to it
                os.unlink(f"{spool}/{name}")
                complain(notice.read())

    signal.signal(signal.SIGHUP, heed_notices)
    signal.signal(signal.SIGUSR1, cancelled)
    signal.signal(signal.SIGUSR2, cancelled)
    signal.signal(signal.SIGTERM, lambda _number, _frame: family.send(os.getpid(), signal.SIGKILL))


def login_environment(user: str, shell: str, limit_s: float) -> dict[str, str]:
    """What the user's login sets. Nothing if it fails, or takes too long."""
    mark = "understudy-environment"
    # not the last, or else the shell becomes it and counts its level down
    command = f"/bin/echo; /bin/echo {mark}; env -0; :"
    words = (
        ["/bin/su", "-", user, "-c", command]
        if os.geteuid() == 0
        else [shell or "/bin/sh", "-l", "-c", command]
    )
    inward, outward = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(outward, 1)
            os.dup2(null, 2)
            os.execve(words[0], words, {"HOME": os.path.expanduser(f"~{user}"), "USER": user})  # noqa: S606
        except OSError:
            pass
        finally:
            os._exit(127)
    os.close(outward)
    text, until = b"", time.monotonic() + limit_s
    while select.select([inward], [], [], max(until - time.monotonic(), 0))[0]:
        data = os.read(inward, 65536)
        if not data:
            break
        text += data
    os.close(inward)
    with Quietly():
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    _, found, rest = text.decode(errors="surrogateescape").partition(f"\n{mark}\n")
    pairs = (entry.partition("=") for entry in rest.split("\0") if found and "=" in entry)
    return {name: value for name, _, value in pairs if name not in ("_", "OLDPWD", "PWD")}


def set_limits(limits: dict[str, int]) -> None:
    """The soft limits, as far as the hard ones allow."""
    for name, wanted in limits.items():
        number = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(number)[1]
        with Quietly():
            resource.setrlimit(number, (wanted if hard < 0 or 0 <= wanted <= hard else hard, hard))


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


def become(
    order: dict[str, Any],
    variables: dict[str, str],
    files: tuple[int, int, int],
    complain: Callable[[str], None],
) -> None:
    """Turn this process, the child, into the script. Does not return."""
    code = 1
    script = order["script"]
    try:
        os.setpgid(0, 0)
        for number in (
            signal.SIGHUP,
            signal.SIGTERM,
            signal.SIGUSR1,
            signal.SIGUSR2,
            signal.SIGPIPE,
            signal.SIGXFSZ,
        ):
            signal.signal(number, signal.SIG_DFL)
        family.listen()
        variables |= told(HOST, {"pid": os.getpid()})
        # before it can have done anything
        write(order["spool"], "pid", str(os.getpid()))
        for target, source in enumerate(files):
            os.dup2(source, target)
        if order["task_prolog"]:
            code = run_prolog(order["task_prolog"], variables)
            if code:
                complain(f"TaskProlog failed status={code}")
                return
            code = 1
        os.execve(script, [script, *order["arguments"]], variables)  # noqa: S606
    except OSError as error:
        code = error.errno or 1
        interpreter = bad_interpreter(script)
        complain(
            f"execve(): {f'bad interpreter({interpreter})' if interpreter else script}: "
            f"{error.strerror}"
        )
    finally:
        os._exit(code if code >= 0 else 1)


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


def oom_text(kills: int, name: str) -> str:
    return (
        f"Detected {kills} oom-kill event(s) in {name}. Some of your processes may have "
        "been killed by the cgroup out-of-memory handler."
    )


def say(text: str) -> None:
    """Tell the daemon, if it is there."""
    with Quietly():
        os.write(1, f"{text}\n".encode())


def write(spool: str, name: str, text: str) -> None:
    """Write a file of the spool directory as a whole; where there is no room for it, tell the
    daemon what would stand there.
    """
    path = f"{spool}/{name}"
    try:
        file = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        os.write(file, f"{text}\n".encode())
        os.close(file)
        os.rename(path + ".new", path)
    except OSError:
        say(f"{name} {text}")
