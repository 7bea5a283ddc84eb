"""A step of srun: what is known of it from its creation to its last task's end.

Place: under srun; `launch.py` runs it.
"""

import _signal  # type: ignore[import-not-found]  # as in client.py
import os

from understudy.commands.srun.create import Share, create_step
from understudy.commands.srun.io import StepIO
from understudy.commands.srun.send_down import UNREACHABLE
from understudy.commands.srun.srun_settings import StepError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.commands.shared.context import Context
    from understudy.commands.srun.srun_settings import Settings
    from understudy.commands.submission.allocation import Allocation

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
        self,
        parts: "list[tuple[Settings, Allocation]]",
        whole: "Allocation",
        programs: "list[Any]",
        context: "Context",
        *,
        owns_job: bool,
    ) -> None:
        self.parts, self.whole, self.programs, self.context, self.owns_job = (
            parts,
            whole,
            programs,
            context,
            owns_job,
        )
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

    def by_node(self, numbers: list[int]) -> "dict[str, list[int]]":
        """These tasks, of one component, by node, and as they are numbered in the component."""
        first = max(
            (share.first_task for share in self.shares if share.first_task <= numbers[0]),
            default=0,
        )
        found: dict[str, list[int]] = {}
        for each in numbers:
            found.setdefault(self.node_of.get(each, "?"), []).append(each - first)
        return found

    def create(
        self, settings: "Settings", allocation: "Allocation", name: str, step_id: int | None
    ) -> "list[Any]":
        """The step, or its part in a component, as `StepCreated` has it."""
        return create_step(
            settings, allocation, name, step_id, self.context, owns_job=self.owns_job
        )

    def first_beside(self, number: int) -> int:
        """The first of the nodes that are the same daemon's as this one, all by their numbers in
        the step.
        """
        from understudy.model.hostlist import expand

        if not self.first_of:
            for share in self.shares:
                at = {
                    name: share.first_node + place for place, name in enumerate(expand(share.nodes))
                }
                for _, _, nodes in share.daemons:
                    numbers = [at[name] for name in expand(nodes) if name in at]
                    self.first_of |= dict.fromkeys(numbers, min(numbers, default=0))
        return self.first_of[number]

    def run_here(self, program: str, environment: dict[str, str]) -> int:
        """A prolog or epilog of srun's own; its exit code."""
        if not os.access(program, os.X_OK):
            self.say(
                f"Access denied for {program}: {os.strerror(13 if os.path.exists(program) else 2)}"
            )
            return 0
        wake = _signal.set_wakeup_fd(-1)
        pid = os.fork()
        if pid == 0:
            try:
                os.execve(program, [program, *self.settings.command], environment)  # noqa: S606
            finally:
                os._exit(127)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        _signal.set_wakeup_fd(wake)
        return status

    def copy_program(self, names: list[str]) -> None:
        """--bcast: the program goes to the nodes first, and is run from there."""
        from understudy.commands.srun.sbcast import broadcast

        command = self.settings.command
        folders = self.context.environ.get("PATH", "").split(":")
        paths = (
            [command[0]]
            if "/" in command[0]
            else [f"{folder or '.'}/{command[0]}" for folder in folders]
        )
        source = next((path for path in paths if os.access(path, os.X_OK)), command[0])
        target = (
            self.settings.own["bcast"]
            or f"{self.settings.work_dir}/slurm_bcast_{self.job_id}.{self.step_id}_{names[0]}"
        )
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
            self.failure_code, self.failure = (
                (1001, "Communication connection failure")
                if int(code) in UNREACHABLE
                else (int(code), text)
            )
            for node in expand(nodes):
                self.error(
                    f"Task launch for StepId={self.job_id}.{self.step_id} failed on node "
                    f"{node}: {self.failure}"
                )
                lost[node] = None
        self.io.expected -= (
            sum(any(node in lost for node in expand(nodes)) for _, _, nodes in share.daemons)
            if lost
            else 0
        )

    def pty_size(self) -> "tuple[int, int] | None":
        if "pty" not in self.settings.own:
            return None
        if not os.isatty(0):
            self.error("ioctl(TIOCGWINSZ): Inappropriate ioctl for device")
            self.error("Not using a pseudo-terminal, disregarding --pty option")
            return None
        size = os.get_terminal_size(0)
        from understudy.commands.srun.terminal import make_raw

        self.terminal = make_raw()
        _signal.signal(_signal.SIGWINCH, lambda _number, _frame: None)
        return size.lines, size.columns
