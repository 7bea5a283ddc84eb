"""TaskProlog and TaskEpilog: programs of the site that run as the user, around a batch script.

Place: used by the processes between the node daemon and scripts or tasks (`stepd.py`,
`task_exec.py`), which start often; so it imports nothing of the house and next to nothing of the
library. Follows: slurm.conf(5) TaskProlog, TaskEpilog.
"""

from __future__ import annotations

import os

from understudy.model.environment import PROGRAM_HOST, told

NOT_RUN = 127
USER_EPILOG_S = 5.0  # then 22.05.8 was seen to kill it; for TaskEpilog it waits


def run_prolog(program: str, variables: dict[str, str]) -> int:
    """Run it in a child of this process, on whose standard output it may print; what it prints sets
    and unsets variables. Its exit code.
    """
    inward, outward = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(outward, 1)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 2)
        execute_program(program, variables | told(PROGRAM_HOST, {"context": "prolog_task"}))
    os.close(outward)
    text = b""
    while data := os.read(inward, 65536):
        text += data
    os.close(inward)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    take_over(text, variables)
    return code


def take_over(text: bytes, variables: dict[str, str]) -> None:
    """Do as what a prolog has printed says: set a variable, unset one, print something to the
    task's output.
    """
    for line in text.decode(errors="surrogateescape").split("\n"):
        word, _, rest = line.partition(" ")
        if word == "export" and "=" in rest:
            name, _, value = rest.partition("=")
            variables[name.strip()] = value
        elif word == "unset":
            variables.pop(rest.strip(), None)
        elif word == "print" and rest:
            os.write(1, rest.lstrip(" ").encode(errors="surrogateescape") + b"\n")


def run_epilog(program: str, variables: dict[str, str], error_output: int) -> int:
    """Run it in a child of this process, and wait for it. The status as wait(2) has it."""
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.dup2(error_output, 2)
        execute_program(program, variables | told(PROGRAM_HOST, {"context": "epilog_task"}))
    while True:
        found, status = os.wait()
        if found == pid:
            return status


def begin_epilog(program: str, variables: dict[str, str], error_output: int) -> int:
    """Run it in a child of this process, in a process group of its own. Its pid."""
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.dup2(error_output if error_output >= 0 else null, 2)
        execute_program(program, variables | told(PROGRAM_HOST, {"context": "epilog_task"}))
    return pid


def execute_program(program: str, variables: dict[str, str]) -> None:
    """exec, or else end as a shell would. Does not return."""
    try:
        os.execve(program, [program], variables)  # noqa: S606
    except OSError:
        pass
    finally:
        os._exit(NOT_RUN)
