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

    def run(self, name: str) -> tuple[int, int]:
        """(exit code, signal that ended the task with the highest)."""
        from understudy.model.hostlist import compress, expand

        shares: list[Share] = []
        for settings, allocation in self.parts:
            first = shares[0] if shares else None
            created = self.create(settings, allocation, name, None if first is None else first.step_id)
            shares.append(Share(created, settings, sum(len(share.tasks) for share in shares), sum(share.size for share in shares)))
        self.shares = shares
        mpi = self.settings.own.get("mpi", shares[0].mpi_default)
        if mpi != "none":
            from understudy.commands.mpi_types import check

            self.mpi = check(mpi, self.context)
        self.step_id, self.end_time, self.kill_wait_s = shares[0].step_id, shares[0].end_time, shares[0].kill_wait_s
        self.tasks = [tasks for share in shares for tasks in share.tasks]
        names = [name for share in shares for name in expand(share.nodes)]
        self.nodes = shares[0].nodes if len(shares) == 1 else compress(names, sort=False)
        daemons = [daemon for share in shares for daemon in share.daemons]
        for node, numbers in zip(names, self.tasks, strict=True):
            for each in numbers:
                self.node_of[each] = node
        self.size = len(self.node_of)
        host = "127.0.0.1" if all(address.startswith("unix:") or ":127." in address for _, address, _ in daemons) else os.uname().nodename
        self.io = StepIO(host, os.urandom(32), len(daemons))
        self.progress = Progress(self)
        self.io.on_frame = self.progress.take
        self.progress.catch_signals()
        prolog = self.settings.own.get("prolog", "none")
        environments = [environment_of(self, share.settings, shares[0].environment, names, host) for share in shares]
        task_environment = environments[0]
        if prolog.lower() not in {"none", ""} and (status := self.run_here(prolog, task_environment)):
            self.error(f"srun prolog failed rc = {status}. Aborting step.")
        self.streams = Streams(self, task_environment)
        if "bcast" in self.settings.own:
            self.copy_program(names)
        self.launch(environments, host)
        self.progress.follow()
        if self.terminal is not None:
            from understudy.commands.step_terminal import restore

            restore(self.terminal)
        epilog = self.settings.own.get("epilog", "none")
        if epilog.lower() != "none" and (status := self.run_here(epilog, task_environment)):
            self.error(f"srun epilog failed status={status}")
        if not self.owns_job and not self.is_free:  # a job's end is the step's, too
            self.progress.await_end()
        if self.progress.aborted_with is not None:
            return self.progress.aborted_with, 0
        return self.progress.highest, self.progress.ended_by

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

    def launch(self, environments: list[dict[str, str]], host: str) -> None:
        """Tell the node daemons: some of them, who tell the others."""
        umask = os.umask(0)
        os.umask(umask)
        pty = self.pty_size()
        layout = self.tasks if len(self.shares) > 1 else []
        for share, environment, remote in zip(self.shares, environments, self.streams.remote, strict=True):
            own = share.settings.own
            message = pack(
                "LaunchTasks", share.credential, share.job_id, share.restart, self.step_id, share.nodes, share.tasks, share.cpus, share.user,
                share.settings.command, [f"{name}={value}" for name, value in environment.items()], share.settings.work_dir, umask,
                f"tcp:{host}:{self.io.port}", self.io.key, remote["std_in"], remote["std_out"], remote["std_err"],
                own.get("open_mode", "").startswith("a"), self.end_time, own.get("task_prolog", ""), own.get("task_epilog", ""), self.programs, pty,
                self.mpi, environment.get("SLURM_JOB_NAME", ""), "unbuffered" in own or pty is not None,
                self.streams.stdin_task, share.first_node, layout, self.settings.cpu_bind,
                share.gpus, self.settings.gpu_bind, share.memory_mb,
            )  # fmt: skip
            self.note_failures(send_down(self.context.client, message, share.daemons, share.width, codes=True), share)
        if self.failure:
            self.error(f"Application launch failed: {self.failure}")
            if self.io.expected:
                self.progress.highest = 1
                self.progress.abort()
            else:
                self.progress.highest = self.failure_code % 256 or 1
                self.say("Job step aborted")
                self.progress.is_aborted = True
            self.progress.terminate(_signal.SIGKILL)
        self.streams.feed()

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
