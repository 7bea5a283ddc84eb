"""What happens in a task's own process before it is the task: its streams, limits, CPUs and
prologs; then exec.

Place: a part of a step's process (`taskd.py`).
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # without enumerations, see forking.py
import os

from understudy.model.environment import TASK_HOST, told
from understudy.model.environment import binding as binding_variables
from understudy.noded import family
from understudy.noded.stepd import Quietly, set_limits
from understudy.noded.task_programs import run_prolog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.noded.task import Task


def environment_of(order: dict[str, Any], task: Task, more: dict[str, str]) -> dict[str, str]:
    node = task.node
    variables = dict(order["environment"])
    variables |= node["environment"]
    # the pid is for its epilog; the task's own is set where it is known
    facts = {
        "task_id": task.number,
        "local_id": task.local,
        "pid": os.getpid(),
        "mpi": order["mpi"],
    }
    return variables | told(TASK_HOST, facts) | more


def become(
    order: dict[str, Any],
    task: Task,
    variables: dict[str, str],
    files: tuple[int, int, int],
    *,
    is_terminal: bool,
) -> None:
    """Turn this process, a child, into the task. Does not return."""
    code = 1
    command = order["programs"].get(task.number, order["arguments"])
    try:
        if is_terminal:
            import fcntl  # noqa: PLC0415  few steps need it
            import termios  # noqa: PLC0415

            os.setsid()
            with Quietly():
                fcntl.ioctl(files[0], termios.TIOCSCTTY, 0)
        else:
            os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number in (
            signal.SIGCHLD,
            signal.SIGPIPE,
            signal.SIGXFSZ,
            signal.SIGINT,
            signal.SIGTERM,
        ):
            signal.signal(number, signal.SIG_DFL)
        family.listen()
        variables |= told(TASK_HOST, {"pid": os.getpid()})
        copies = [os.dup(each) for each in files]
        for target, source in enumerate(copies):
            os.dup2(source, target)
        for copy in copies:
            os.close(copy)
        set_limits(order["limits"])
        bind(order, task, variables)
        for program, whose, said in (
            (order["site_prolog"], "slurm", "TaskProlog"),
            (order["task_prolog"], "user", "--task-prolog"),
        ):
            if program:
                prolog(program, whose, said, task, variables)
        execute(command, variables)
    except OSError as error:
        code = error.errno or 1
        with Quietly():
            os.write(
                2,
                f"slurmstepd-{task.node['name']}: error: execve(): {command[0]}: "
                f"{error.strerror}\n".encode(),
            )
    finally:
        os._exit(code)


def bind(order: dict[str, Any], task: Task, variables: dict[str, str]) -> None:
    """Bind this process to CPUs as --cpu-bind says, and tell of it as Slurm's daemons do."""
    binding, each = order["cpu_bind"], int(order["environment"].get("SLURM_CPUS_PER_TASK", "1"))
    if not binding:
        return
    cpus = cpus_of(binding, task.local, each)
    is_bound = False
    if cpus:
        with Quietly():
            os.sched_setaffinity(0, cpus)
            is_bound = True
    kind = binding.partition(":")[0]
    masks = [mask_of(cpus_of(binding, local, each)) for local in range(len(task.node["tasks"]))]
    loud = variables.get("SLURM_CPU_BIND_VERBOSE", "quiet")
    if kind in ("threads", "cores"):
        variables |= binding_variables("CPU", loud, "mask_cpu:", ",".join(masks))
    if loud == "verbose":
        what = {"none": "NONE", "rank": "RANK", "map_cpu": "MAP "}.get(kind, "MASK")
        where = f"{task.node['name']}, task {task.number:2d} {task.local:2d} [{os.getpid()}]"
        how = f"mask {masks[task.local]}" + (" set" if is_bound else " set FAILED" if cpus else "")
        with Quietly():
            os.write(2, f"cpu-bind={what} - {where}: {how}\n".encode())


def mask_of(cpus: set[int]) -> str:
    return hex(sum(1 << number for number in cpus))


def cpus_of(binding: str, local: int, each: int) -> set[int]:
    """The CPUs of a node's task so many, by --cpu-bind; none: it may have all. The kernel has the
    last word on which there are.
    """
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
    """exec, by way of PATH, else from the working directory; the error is the one that tells
    most.
    """
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


def prolog(program: str, whose: str, said: str, task: Task, variables: dict[str, str]) -> None:
    """TaskProlog, then --task-prolog: what it prints sets and unsets variables, or goes to its
    output. `whose`, `said`: what errors call it.
    """
    where = f"slurmstepd-{task.node['name']}: error:"
    wrong = ""
    if not program.startswith("/"):
        wrong = f"is not fully qualified pathname ({program})"
    elif not os.access(program, os.X_OK):
        why = os.strerror(2 if not os.path.exists(program) else 13)
        wrong = f"can not be executed ({program}) {why}"
    if wrong:
        for line in (
            f"run_command: {whose} task_prolog {wrong}",
            (
                f"{whose} task_prolog did not exit normally. reason: Run command failed - "
                "configuration error"
            ),
            f"{said} failed status=1",
        ):
            with Quietly():
                os.write(2, f"{where} {line}\n".encode())
        os._exit(1)
    code = run_prolog(program, variables)
    if code:
        with Quietly():
            os.write(2, f"{where} {said} failed status={code}\n".encode())
        os._exit(code if code > 0 else 1)
