"""Parts of the controller that not every cluster has, as what the others may ask of them.

Place: the controller's core names them; `jobs/gang`, `notices/mail`, `nodes/power` and
`jobs/following` are them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.controller.later import Later
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import Node
    from understudy.controller.tables.power_plan import PowerPlan
    from understudy.protocol.messages import FollowJobs, JobRuns, Message


class Gang(Protocol):
    """Time slices of jobs that share cores."""

    slice_s: int

    def add(self, job: Job, now: float) -> None: ...

    def add_running(self, job: Job) -> None: ...

    def has(self, job: Job) -> bool: ...

    def remove(self, job: Job, now: float) -> None: ...

    def end(self, now: float) -> None: ...

    def recover(self, now: float) -> None: ...


class Mailer(Protocol):
    """Tells users what became of their jobs."""

    def known(self, jobs: Iterable[Job]) -> None: ...

    def note(self, job_id: int) -> None: ...

    def staged_out(self, job: Job) -> None: ...

    def requeued(self, job: Job) -> None: ...

    def time_passes(self, job: Job, percent: float) -> None: ...


class Power(Protocol):
    """Switches nodes on and off."""

    def take_over(self, plan: PowerPlan) -> None: ...

    def follow(self, node: Node) -> None: ...

    def ask(self) -> None: ...

    def arm(self) -> None: ...

    def boot(self) -> None: ...

    def power_up(self, node: Node) -> None: ...

    def power_down(self, node: Node) -> None: ...

    def stay_off(self, node: Node) -> None: ...

    def recover(self, now: float) -> None: ...


class Following(Protocol):
    """Tells a replay of jobs that have ended."""

    def take_all(self) -> JobRuns: ...

    def ask(self, message: FollowJobs) -> Message | Later: ...

    def note(self, job: Job, now: float) -> None: ...

    def note_withdrawn(self, job: Job, tasks: int, now: float) -> None: ...

    def hand_over(self) -> None: ...

    def end(self) -> None: ...
