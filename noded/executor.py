"""What the node daemon wants of an executor: emulated.py and real.py each give one.

Place: the line between the daemon's edge and how scripts are run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.noded.core import Key, NodeJob
    from understudy.noded.steps import StepKey
    from understudy.protocol.messages import LaunchBatch, LaunchTasks


class OnEnded(Protocol):
    """Called at the end of each script that was started, once. `usage` and `fault` as in
    `BatchComplete`.
    """

    def __call__(
        self,
        key: Key,
        exit_code: int,
        signal: int,
        *,
        timed_out: bool,
        usage: dict[str, int] | None = None,
        fault: str = "",
    ) -> None: ...


class OnEpilogEnded(Protocol):
    """Called when the epilog has ended on all of `nodes`; `failed`: those on which it failed."""

    def __call__(self, job: NodeJob, nodes: str, failed: str = "") -> None: ...


class OnStepEnded(Protocol):
    """Called when all tasks of a step on a daemon's nodes have ended, once for each step that was
    started.
    """

    def __call__(
        self, step: StepKey, exit_code: int, signal: int, usage: dict[str, int], fault: str = ""
    ) -> None: ...


class StepRunner(Protocol):
    """Runs steps' tasks. Nothing here waits; ends are told through `OnStepEnded`, never from within
    `start`.
    """

    def start(self, launch: LaunchTasks, nodes: str, user_id: int, group_id: int) -> None:
        """Begin the tasks on these of the step's nodes."""

    def signal(self, step: StepKey, number: int, *, ends: bool) -> None:
        """Send a signal to the tasks; `ends`: those who read their output hear that the step is
        ended.
        """

    def end(self, step: StepKey, why: str = "") -> None:
        """End the tasks: gently first, by force after KillWait; `why` is for their output."""

    def attach(self, step: StepKey, address: str, key: bytes) -> None:
        """Send a copy of the tasks' output there, and take input from there."""

    def statistics(self, step: StepKey, answer: Callable[[list[list[object]]], None]) -> None:
        """Hand over what each task uses: see `TaskStatistics`."""

    def close(self) -> None:
        """The daemon ends, and all steps with it."""


class Executor(Protocol):
    """Runs batch scripts. Nothing here waits; ends are told through `OnEnded`, never from within
    `start`.
    """

    def start(self, launch: LaunchBatch) -> None:
        """Begin a script. One that cannot be begun ends at once, with what Slurm's would end."""

    def signal(self, key: Key, number: int, *, batch_only: bool) -> None:
        """Send a signal to all processes of a job, or to its script alone."""

    def notify(self, key: Key, text: str) -> None:
        """Write a line into the error output of a job's script."""

    def statistics(self, key: Key) -> list[list[object]]:
        """What the script uses, as in `TaskStatistics`."""

    def kill(self, key: Key, why: str = "") -> None:
        """End a job's script and all its processes: gently first, by force after KillWait; `why` is
        for its output.
        """

    @property
    def has_prolog(self) -> bool:
        """Whether anything has to be run on a node before a job may begin there."""

    def run_prolog(
        self,
        key: Key,
        nodes: str,
        program_environment: list[str],
        done: Callable[[dict[str, int]], None],
    ) -> None:
        """Run the prolog on the nodes, unless it has been run for the job there; `done` gets the
        exit codes of those that failed, by node.
        """

    def run_epilog(self, job: NodeJob, nodes: str, delay_s: float, done: OnEpilogEnded) -> None:
        """Run the epilog on the nodes, taking at least `delay_s`, then call `done`."""

    def forget(self, key: Key) -> None:
        """Nothing is left of the run: its files may go."""

    def close(self) -> None:
        """The daemon ends, and all jobs with it."""
