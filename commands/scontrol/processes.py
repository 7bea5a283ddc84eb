"""scontrol listpids, pidinfo and getent: the processes of job steps on a node of this host, and
whose they are. Follows scontrol(1) of 22.05.

Place: under scontrol. A process belongs to the job that its environment names; of those that one
may not look into, nothing is known.
"""

import os

from understudy.commands.shared.client import RefusedError
from understudy.commands.shared.texts import date_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.scontrol.session import Session

_HEADER = "PID      JOBID    STEPID   LOCALID GLOBALID"
_NO_NODE = "stepd_available: Couldn't find nodename"
_RUNNING = 1


class Process:
    """A process of a job step."""

    __slots__ = ("environment", "pid")

    def __init__(self, pid: int, environment: "dict[str, str]") -> None:
        self.pid, self.environment = pid, environment

    @property
    def job(self) -> str:
        return self.environment.get("SLURM_JOB_ID", "")

    @property
    def step(self) -> str:
        return self.environment.get("SLURM_STEP_ID", "batch")

    @property
    def is_task(self) -> bool:
        """Whether it is what was started, not a child of it."""
        return self.environment.get("SLURM_TASK_PID") == str(self.pid)


def processes(root: str = "/proc") -> "list[Process]":
    """All processes that belong to jobs."""
    numbers = sorted(int(name) for name in os.listdir(root) if name.isdigit())
    return [process for number in numbers if (process := read_process(number, root)) is not None]


def read_process(pid: int, root: str = "/proc") -> "Process | None":
    """The process, None if it belongs to no job."""
    try:
        with open(f"{root}/{pid}/environ", "rb") as file:
            words = file.read().decode(errors="surrogateescape").split("\0")
    except OSError:
        return None
    environment = dict(word.partition("=")[::2] for word in words if word.startswith("SLURM"))
    return (
        Process(pid, environment)
        if "SLURM_JOB_ID" in environment and "SLURMD_NODENAME" in environment
        else None
    )


def list_processes(session: "Session", words: "list[str]") -> int:
    """`listpids [JOB[.STEP] [NODE]]`."""
    context = session.context
    job, dot, step = (words[0] if words else "").partition(".")
    if job and job != "*" and not job.isdigit():
        context.complain(f'"{words[0]}" does not look like a jobid')
        return 1
    node = words[1] if len(words) > 1 else _own_node(session)
    context.print(_HEADER)
    if dot and not step.isdigit():
        context.complain(f'"{words[0]}" does not look like a stepid')
        return 0
    if not node:
        context.error(_NO_NODE)
    here = [each for each in (processes() if node else ()) if _is_here(each, session, node)]
    found = [each for each in here if job in {"", "*", each.job} and step in {"", each.step}]
    if not found:
        if job in {"", "*"}:
            context.complain("No job steps exist on this node.")
        elif here and not dot:
            context.complain(f"There are no steps for job {job} on node {node}.")
        else:
            context.complain(
                f"{f'StepId={job}.{step}' if dot else f'JobId={job}'} does not exist on "
                f"node {node or '(null)'}."
            )
        return 1
    for each in found:
        local, whole = (
            ("0", "0")
            if each.step == "batch"
            else (
                each.environment.get("SLURM_LOCALID", "-"),
                each.environment.get("SLURM_PROCID", "-"),
            )
        )
        if not each.is_task:
            local = whole = "-"
        context.print(f"{each.pid:<8} {each.job:<8} {each.step:<8} {local:<7} {whole}")
    return 0


def _is_here(process: Process, session: "Session", node: str) -> bool:
    """Whether it runs on the node, of this cluster: others may have nodes and jobs of the same
    names on this host.
    """
    found = process.environment
    return (
        found["SLURMD_NODENAME"] == node
        and found.get("SLURM_CLUSTER_NAME") == session.context.client.cluster_name
    )


def _own_node(session: "Session") -> str:
    """The node that is meant where none is named: SLURMD_NODENAME, or the one that has this host's
    name; "" for none.
    """
    named = session.context.environ.get("SLURMD_NODENAME", "")
    if named:
        return named
    host = os.uname().nodename.partition(".")[0]
    try:
        return (
            host if session.context.client.query("nodes", ["name"], {"name": [host]}).rows else ""
        )
    except RefusedError:
        return ""


def process_info(session: "Session", words: "list[str]") -> int:
    """`pidinfo PID`: the job of a process, and when that ends."""
    context = session.context
    if not words:
        context.complain("missing argument for keyword:pidinfo")
        return 1
    process = read_process(int(words[0])) if words[0].isdigit() else None
    if process is None:
        session.complain("Failed to locate job for requested pid")
        return 1
    try:
        answer = context.client.query("jobs", ["end_time"], {"job_id": [int(process.job)]})
    except RefusedError as error:
        context.complain(f"slurm_get_end_time error: {error.text}")
        return 1
    end = next((end for (end,) in answer.rows if end is not None), None)
    if end is None:
        context.complain("slurm_get_end_time error: Invalid job id specified")
        return 1
    context.print(f"Slurm JobId={process.job} ends at {date_line(end)}")
    context.print(f"Job remaining time is {max(int(end) - int(answer.now), 0)} seconds")
    return 0


def getent(session: "Session", words: "list[str]") -> int:
    """`getent [NODE]`: the users whose job steps run there, as lines of passwd."""
    import pwd

    context = session.context
    node = words[0] if words else _own_node(session)
    if not node:
        context.error(_NO_NODE)
        context.complain("No steps found on this node")
        return 0
    try:
        steps = context.client.query(
            "steps", ["job_id", "step", "user_id", "nodes"], {"state": [_RUNNING]}
        ).rows
    except RefusedError as error:
        context.complain(f"slurm_get_job_steps error: {error.text}")
        return 1
    from understudy.model.hostlist import expand

    for job, step, user, nodes in steps:
        if node not in expand(nodes):
            continue
        try:
            entry = ":".join(str(part) for part in pwd.getpwuid(user))
        except KeyError:
            entry = str(user)
        context.stdout.write(f"JobId={job}.{step}:\nUser:\n{entry}\nGroups:\n\n")
    return 0
