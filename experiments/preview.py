"""A preview of a run before it begins: the machine, what is asked of it, and which jobs cannot run.

Place: pure; the questions are put to the controller by understudy.tool.replay.check, and no rule of
it stands here.

    preview = Preview(nodes=100, cpus=1600, without_effect=["SlurmdLogFile"])
    preview.add("17", submit_s=0.0, work=3600.0, cpus=16, answer=...)  # each job, with what the
                                                                    # controller said of its like
    preview.line()  # for the head of a run
    preview.text()  # for `--check`
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from understudy.model.nouns import many

if TYPE_CHECKING:
    from collections.abc import Mapping

# beyond it a machine falls ever further behind: it was hardly the one on which the jobs ran
HIGH_LOAD: Final = 1.5
_NAMED_JOBS: Final = 8
_NAMED_KEYS: Final = 6
_NAMED_REASONS: Final = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """What the controller says of a job: `refused` in its words, else `stuck` for this reason, else
    it can start.
    """

    refused: str = ""
    stuck: str = ""
    cpus: int = 0  # that it asks for
    tasks: int = 1  # of an array

    @property
    def can_run(self) -> bool:
        return not self.refused and not self.stuck


@dataclass(slots=True)
class Preview:
    """What is known of a run. `refused` and `stuck`: a reason to the jobs that have it, in their
    order.
    """

    nodes: int
    cpus: int
    without_effect: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what else is worth a line
    # where no job can run in the partition that they go to: why not in the one that comes nearest
    elsewhere: str = ""
    jobs: int = 0
    refused: dict[str, list[str]] = field(default_factory=dict)
    stuck: dict[str, list[str]] = field(default_factory=dict)
    work: float = 0.0  # CPU seconds
    too_wide: list[str] = field(default_factory=list)
    widest: int = 0
    _first: float = float("inf")
    _last: float = 0.0

    def add(self, name: str, submit_s: float, run_s: float, cpus: int, answer: Answer) -> None:
        """Count a job. `run_s`: of all tasks of an array together."""
        self.jobs += 1
        self.work += run_s * cpus
        end_s = submit_s + run_s / max(answer.tasks, 1)
        self._first = min(self._first, submit_s)
        self._last = max(self._last, end_s)
        self.widest = max(self.widest, cpus)
        if cpus > self.cpus:
            self.too_wide.append(name)
        if answer.refused:
            self.refused.setdefault(answer.refused, []).append(name)
        elif answer.stuck:
            self.stuck.setdefault(answer.stuck, []).append(name)

    @property
    def runnable(self) -> int:
        """Jobs of which nothing is known that keeps them from running."""
        return self.jobs - _count(self.refused) - _count(self.stuck)

    @property
    def load(self) -> float | None:
        """CPU time asked for, over what the machine has from the first submission until the last
        job could be over at the earliest.
        """
        span = self._last - self._first
        return self.work / (self.cpus * span) if self.jobs and span > 0 and self.cpus else None

    @property
    def warnings(self) -> list[str]:
        """What should not pass without a line of its own."""
        found = list(self.notes)
        if self.too_wide:
            found.append(
                f"{many(len(self.too_wide), 'job')} wider than the machine's {self.cpus:,} "
                f"CPUs (the widest has {self.widest:,}, "
                f"the first is job {self.too_wide[0]}): is it the right machine?"
            )
        if self.load is not None and self.load > HIGH_LOAD:
            found.append(
                f"the offered load is {self.load:.2f}: the machine cannot keep up with "
                "the jobs; is it the right machine?"
            )
        return found

    def line(self) -> str:
        """All in one line."""
        parts = [self._machine()]
        for what, found in (("would be refused", self.refused), ("can never start", self.stuck)):
            if found:
                shown = [
                    f"{len(jobs):,} {reason}" for reason, jobs in _most(found)[:_NAMED_REASONS]
                ]
                more = ", ..." if len(found) > _NAMED_REASONS else ""
                parts.append(
                    f"{_count(found):,} of {many(self.jobs, 'job')} {what} "
                    f"({', '.join(shown)}{more})"
                )
        if self.elsewhere:
            parts.append(self.elsewhere)
        if not self.refused and not self.stuck:
            parts.append(f"all {self.jobs:,} jobs can run")
        if self.without_effect:
            more = (
                f" and {len(self.without_effect) - _NAMED_KEYS} more (--check names them)"
                if len(self.without_effect) > _NAMED_KEYS
                else ""
            )
            parts.append(
                f"without effect here: {', '.join(self.without_effect[:_NAMED_KEYS])}{more}"
            )
        return "; ".join(parts)

    def text(self) -> str:
        """The same at length, for who asked for nothing else."""
        lines = [self._machine(), f"{self.runnable:,} of {many(self.jobs, 'job')} can run"]
        for what, found in (("would be refused", self.refused), ("can never start", self.stuck)):
            for reason, jobs in _most(found):
                shown = ", ".join(jobs[:_NAMED_JOBS]) + (", ..." if len(jobs) > _NAMED_JOBS else "")
                lines.append(f"{many(len(jobs), 'job')} {what}: {reason} (job {shown})")
        lines += [self.elsewhere] if self.elsewhere else []
        lines += [f"warning: {text}" for text in self.warnings]
        if self.without_effect:
            lines.append(
                f"keys of the configuration without effect here: {', '.join(self.without_effect)}"
            )
        return "\n".join(lines)

    def _machine(self) -> str:
        load = "all jobs at once" if self.load is None else f"offered load {self.load:.2f}"
        return f"{many(self.nodes, 'node')}, {many(self.cpus, 'CPU')}, {load}"


def _count(found: Mapping[str, list[str]]) -> int:
    return sum(map(len, found.values()))


def _most(found: Mapping[str, list[str]]) -> list[tuple[str, list[str]]]:
    """The reasons by the number of jobs."""
    return sorted(found.items(), key=lambda each: -len(each[1]))
