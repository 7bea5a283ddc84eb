"""What a priority plug-in is given and what it must do: the contract for `PriorityType`.

Entry point group `understudy.priorities`: a class called with (tables, options, accounts, start
time). A plug-in does no I/O and gets the time handed to it.

A site factor (`PrioritySiteFactorPlugin=site_factor/NAME`) is an entry point of the group
`understudy.site_factors`: a class called with PrioritySiteFactorParameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.controller.priority.options import PriorityOptions
    from understudy.controller.tables.job import Job

MOST: Final = 0xFFFFFFFF - 1


def cut(total: float) -> int:
    """A priority: cut to a whole number, at least 1 (0 would mean held)."""
    return min(max(int(total), 1), MOST)


class Share(NamedTuple):
    """An association as fair share sees it. `shares` None: fairshare=parent. `parent_id` 0: the
    root.
    """

    association_id: int
    parent_id: int
    account: str
    user: str  # "" for an account's own association
    shares: int | None = 1
    priority: int = 0
    partition: str = ""


class QosFacts(NamedTuple):
    """What a QOS says on priorities."""

    priority: int = 0
    usage_factor: float = 1.0


class Accounts(Protocol):
    """The associations and QOS that the controller knows."""

    @property
    def version(self) -> int:
        """Raised with every change."""

    def shares(self) -> Sequence[Share]:
        """All associations, parents before their children."""

    def association_of(self, job: Job) -> int:
        """The id of the job's association, 0 if it has none."""

    def qos_of(self, job: Job) -> QosFacts | None:
        """The job's QOS, None if it has none."""

    def highest_qos_priority(self) -> int:
        """The largest priority of any QOS."""


class NoAccounts:
    """A cluster without accounting."""

    version = 0

    def shares(self) -> Sequence[Share]:
        return ()

    def association_of(self, job: Job) -> int:
        del job
        return 0

    def qos_of(self, job: Job) -> QosFacts | None:
        del job
        return None

    def highest_qos_priority(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Factors:
    """What a job's priority is made of: each factor between 0 and 1 (unless PriorityFlags say
    otherwise) and what it contributes, weighted.

    `time`: when they were calculated. `tres`: contributions by TRES name, `normal_tres` without
    their weights.
    """

    time: int
    age: float
    association: float
    fair_share: float
    job_size: float
    partition: float
    qos: float
    weighted_age: float
    weighted_association: float
    weighted_fair_share: float
    weighted_job_size: float
    weighted_partition: float
    weighted_qos: float
    tres: dict[str, float] = field(default_factory=dict)
    normal_tres: dict[str, float] = field(default_factory=dict)
    site: int = 0
    nice: int = 0

    @property
    def total(self) -> int:
        """The priority that they make."""
        weighted = (
            self.weighted_age
            + self.weighted_association
            + self.weighted_fair_share
            + self.weighted_job_size
        )
        weighted += self.weighted_partition + self.weighted_qos + sum(self.tres.values())
        return cut(weighted + self.site - self.nice)


class Standing(NamedTuple):
    """An association in fair share: its part of the shares, its use and its part of that, among its
    siblings (`is_tree`) or of the whole.

    `normal_usage` None: no period has ended since the association was made. `effective_usage` None:
    nobody has asked for it in this period. Both with classic fair share, the first with Fair Tree,
    too. `level_shares`: of all siblings.
    """

    share: Share
    normal_shares: float
    raw_usage: float
    normal_usage: float | None
    effective_usage: float | None
    factor: float
    level_fair_share: float
    is_tree: bool
    level_shares: int


class SiteFactor(Protocol):
    """A site's own share of the priorities."""

    def factor(self, job: Job, now: float) -> int:
        """What is added to the job's priority; asked at submission and in every period."""


class PriorityPlugin(Protocol):
    """A `PriorityType`."""

    name: str
    last: int  # saved and given back after a restart; 0 if there is nothing to save

    def assign(self, job: Job, now: float) -> int:
        """The priority of a job that becomes ready for the queue now: never 0. Sets
        `job.partition_priorities`, too, where they differ.
        """

    def changed(self, job: Job, now: float, *, is_moved: bool = False) -> None:
        """Something of a pending job was changed; `is_moved`: its partitions, too."""

    def started(self, job: Job, now: float) -> None:
        """The job uses its allocation from now on."""

    def ended(self, job: Job, now: float) -> None:
        """The job uses nothing any more."""

    def next_calculation(self, now: float) -> float | None:
        """When `calculate` is to be called next, None for never."""

    @property
    def longest_age_s(self) -> int:
        """How long priorities grow with the time that a job waits (PriorityMaxAge)."""

    def calculate(self, now: float) -> bool:
        """Calculate the priorities of all pending jobs again. Whether one has changed."""

    @property
    def usage_time(self) -> int:
        """As of when `usage` is, 0 if none is counted; what is saved is saved again when this has
        changed.
        """

    def usage(self) -> dict[int, float]:
        """Use by association id, for the saved state."""

    def restore(self, time: int, use: dict[int, float]) -> None:
        """What `usage` said before a restart."""

    def forget(self, association_ids: list[int]) -> None:
        """What jobs of these associations have used so far counts no longer."""

    def factors(self, job: Job, partition: str = "") -> Factors | None:
        """What the job's priority is made of in a partition ("": where it is shown), None where
        that has no meaning.
        """

    def reconfigure(self, options: PriorityOptions, now: float) -> None:
        """slurm.conf was read again; priorities change with the next calculation."""

    def standings(self, now: float, *, asks: bool = True) -> list[Standing]:
        """Each association in fair share as of the last period's end, parents before their
        children. `asks`: what is not worked out yet, is.
        """

    @property
    def includes_running(self) -> bool:
        """Whether the priorities of running jobs are calculated, too."""

    @property
    def includes_ineligible(self) -> bool:
        """Whether those of jobs that may not start yet grow, too."""

    def weights(self) -> dict[str, float]:
        """The weights of the factors by their names in `Factors`, and of resources by theirs."""
