"""A step of srun: its parts from the controller, its launch, and what is done before and after.

Place: under srun, which says what is wanted; the node daemons run the tasks (see `../docs/adr/0011-the-streams-of-steps.md`).
"""

import _signal  # type: ignore[import-not-found]  # as in client.py
import os

from understudy.commands.client import pack
from understudy.commands.send_down import UNREACHABLE, send_down
from understudy.commands.srun_settings import StepError
from understudy.commands.step_create import Share, create_step
from understudy.commands.step_environment import environment_of
from understudy.commands.step_follow import Progress
from understudy.commands.step_io import StepIO
from understudy.commands.step_streams import Streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.commands.allocation import Allocation
    from understudy.commands.client import Context
    from understudy.commands.srun_settings import Settings

PROLOG_FAILED = 4022


class Step:
    """A step from its creation to its last task's end."""

    is_free = False  # of no job, so that the controller does not know it
    shares: "list[Share]"
    tasks: "list[list[int]]"
    step_id: int
    nodes: str
    end_time: "float | None"
    kill_wait_s: int
    io: StepIO
    progress: "Any"  # of step_follow and step_streams, which know the step
    streams: "Any"

    def __init__(
        self, parts: "list[tuple[Settings, Allocation]]", whole: "Allocation", programs: "list[Any]", context: "Context", *, owns_job: bool
    ) -> None:
        self.parts, self.whole, self.programs, self.context, self.owns_job = parts, whole, programs, context, owns_job
        self.settings, self.allocation = parts[0]
        self.job_id = whole.job_id
        self.node_of: dict[int, str] = {}
        self.size = 0
        self.mpi = ""
        self.first_of: dict[int, int] = {}
        self.terminal: Any = None
        self.failure, self.failure_code = "", 0  # why the launch has failed somewhere

    def say(self, text: str) -> None:
        self.context.stderr.write(f"srun: {text}\n")
        self.context.stderr.flush()

    def error(self, text: str) -> None:
        self.say(f"error: {text}")

    def create(self, settings: "Settings", allocation: "Allocation", name: str, step_id: int | None) -> "list[Any]":
        """The step, or its part in a component, as `StepCreated` has it."""
        return create_step(settings, allocation, name, step_id, self.context, owns_job=self.owns_job)

    def first_beside(self, number: int) -> int:
        """The first of the nodes that are the same daemon's as this one, all by their numbers in the step."""
        from understudy.model.hostlist import expand

        if not self.first_of:
            for share in self.shares:
                at = {name: share.first_node + place for place, name in enumerate(expand(share.nodes))}
                for _, _, nodes in share.daemons:
                    numbers = [at[name] for name in expand(nodes) if name in at]
                    self.first_of |= dict.fromkeys(numbers, min(numbers, default=0))
        return self.first_of[number]

    def run_here(self, program: str, environment: dict[str, str]) -> int:
        """A prolog or epilog of srun's own; its exit code."""
        if not os.access(program, os.X_OK):
            self.say(f"Access denied for {program}: {os.strerror(13 if os.path.exists(program) else 2)}")
            return 0
        wake = _signal.set_wakeup_fd(-1)
        pid = os.fork()
        if pid == 0:
            try:
                os.execve(program, [program], environment)  # noqa: S606
            finally:
                os._exit(127)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        _signal.set_wakeup_fd(wake)
        return status

    def copy_program(self, names: list[str]) -> None:
        """--bcast: the program goes to the nodes first, and is run from there."""
        from understudy.commands.sbcast import broadcast

        command = self.settings.command
        folders = self.context.environ.get("PATH", "").split(":")
        paths = [command[0]] if "/" in command[0] else [f"{folder or '.'}/{command[0]}" for folder in folders]
        source = next((path for path in paths if os.access(path, os.X_OK)), command[0])
        target = self.settings.own["bcast"] or f"{self.settings.work_dir}/slurm_bcast_{self.job_id}.{self.step_id}_{names[0]}"
        if target.endswith("/"):
            target += os.path.basename(source)
        if broadcast(source, target, self.job_id, self.context, force=True, preserve=True):
            raise StepError
        command[0] = target

    def note_failures(self, bad: list[str], share: Share) -> None:
        """Say where the launch failed; nobody waits for the daemons of those nodes."""
        from understudy.model.hostlist import expand

        lost: dict[str, None] = {}
        for entry in bad:
            code, _, rest = entry.partition(" ")
            nodes, _, text = rest.partition(": ")
            if int(code) == PROLOG_FAILED and self.owns_job:
                self.say(f"Prolog failure on node {nodes}")
            self.failure_code, self.failure = (1001, "Communication connection failure") if int(code) in UNREACHABLE else (int(code), text)
            for node in expand(nodes):
                self.error(f"Task launch for StepId={self.job_id}.{self.step_id} failed on node {node}: {self.failure}")
                lost[node] = None
        self.io.expected -= sum(any(node in lost for node in expand(nodes)) for _, _, nodes in share.daemons) if lost else 0

    def pty_size(self) -> "tuple[int, int] | None":
        if "pty" not in self.settings.own:
            return None
        if not os.isatty(0):
            self.error("ioctl(TIOCGWINSZ): Inappropriate ioctl for device")
            self.error("Not using a pseudo-terminal, disregarding --pty option")
            return None
        size = os.get_terminal_size(0)
        from understudy.commands.step_terminal import make_raw

        self.terminal = make_raw()
        _signal.signal(_signal.SIGWINCH, lambda _number, _frame: None)
        return size.lines, size.columns


def run(step: Step, name: str) -> tuple[int, int]:
    """(exit code, signal that ended the task with the highest)."""
    from understudy.model.hostlist import compress, expand

    shares: list[Share] = []
    for settings, allocation in step.parts:
        first = shares[0] if shares else None
        created = step.create(settings, allocation, name, None if first is None else first.step_id)
        shares.append(Share(created, settings, sum(len(share.tasks) for share in shares), sum(share.size for share in shares)))
    step.shares = shares
    mpi = step.settings.own.get("mpi", shares[0].mpi_default)
    if mpi != "none":
        from understudy.commands.mpi_types import check

        step.mpi = check(mpi, step.context)
    step.step_id, step.end_time, step.kill_wait_s = shares[0].step_id, shares[0].end_time, shares[0].kill_wait_s
    step.tasks = [tasks for share in shares for tasks in share.tasks]
    names = [name for share in shares for name in expand(share.nodes)]
    step.nodes = shares[0].nodes if len(shares) == 1 else compress(names, sort=False)
    daemons = [daemon for share in shares for daemon in share.daemons]
    for node, numbers in zip(names, step.tasks, strict=True):
        for each in numbers:
            step.node_of[each] = node
    step.size = len(step.node_of)
    host = "127.0.0.1" if all(address.startswith("unix:") or ":127." in address for _, address, _ in daemons) else os.uname().nodename
    step.io = StepIO(host, os.urandom(32), len(daemons))
    step.progress = Progress(step)
    step.io.on_frame = step.progress.take
    step.progress.catch_signals()
    prolog = step.settings.own.get("prolog", "none")
    environments = [environment_of(step, share.settings, shares[0].environment, names, host) for share in shares]
    task_environment = environments[0]
    if prolog.lower() not in {"none", ""} and (status := step.run_here(prolog, task_environment)):
        step.error(f"srun prolog failed rc = {status}. Aborting step.")
    step.streams = Streams(step, task_environment)
    if "bcast" in step.settings.own:
        step.copy_program(names)
    launch(step, environments, host)
    step.progress.follow()
    if step.terminal is not None:
        from understudy.commands.step_terminal import restore

        restore(step.terminal)
    epilog = step.settings.own.get("epilog", "none")
    if epilog.lower() != "none" and (status := step.run_here(epilog, task_environment)):
        step.error(f"srun epilog failed status={status}")
    if not step.owns_job and not step.is_free:  # a job's end is the step's, too
        step.progress.await_end()
    if step.progress.aborted_with is not None:
        return step.progress.aborted_with, 0
    return step.progress.highest, step.progress.ended_by


def launch(step: Step, environments: list[dict[str, str]], host: str) -> None:
    """Tell the node daemons: some of them, who tell the others."""
    umask = os.umask(0)
    os.umask(umask)
    pty = step.pty_size()
    layout = step.tasks if len(step.shares) > 1 else []
    for share, environment, remote in zip(step.shares, environments, step.streams.remote, strict=True):
        own = share.settings.own
        message = pack(
            "LaunchTasks", share.credential, share.job_id, share.restart, step.step_id, share.nodes, share.tasks, share.cpus, share.user,
            share.settings.command, [f"{name}={value}" for name, value in environment.items()], share.settings.work_dir, umask,
            f"tcp:{host}:{step.io.port}", step.io.key, remote["std_in"], remote["std_out"], remote["std_err"],
            own.get("open_mode", "").startswith("a"), step.end_time, own.get("task_prolog", ""), own.get("task_epilog", ""), step.programs, pty,
            step.mpi, environment.get("SLURM_JOB_NAME", ""), "unbuffered" in own or pty is not None,
            step.streams.stdin_task, share.first_node, layout, step.settings.cpu_bind,
            share.gpus, step.settings.gpu_bind, share.memory_mb,
        )  # fmt: skip
        step.note_failures(send_down(step.context.client, message, share.daemons, share.width, codes=True), share)
    if step.failure:
        step.error(f"Application launch failed: {step.failure}")
        if step.io.expected:
            step.progress.highest = 1
            step.progress.abort()
        else:
            step.progress.highest = step.failure_code % 256 or 1
            step.say("Job step aborted")
            step.progress.is_aborted = True
        step.progress.terminate(_signal.SIGKILL)
    step.streams.feed()
