"""The steps that a node daemon runs: by job, with those of the nodes that are its own. No I/O.

Place: a part of the node daemon's core (`core.py`), which decides what is done about them.
"""

from __future__ import annotations

from typing import TypeAlias

StepKey: TypeAlias = "tuple[int, int, int]"  # job id, restart count, step id


class NodeSteps:
    """Steps whose tasks run here."""

    def __init__(self) -> None:
        self.by_job: dict[tuple[int, int], dict[StepKey, tuple[str, int]]] = {}

    def __contains__(self, step: StepKey) -> bool:
        return step in self.by_job.get(step[:2], ())

    def of(self, job: tuple[int, int]) -> list[StepKey]:
        """The steps of a job's run."""
        return list(self.by_job.get(job, ()))

    def nodes_of(self, step: StepKey) -> str:
        """The own nodes on which the step runs."""
        return self.by_job[step[:2]][step][0]

    def add(self, step: StepKey, nodes: str, user_id: int) -> None:
        self.by_job.setdefault(step[:2], {})[step] = nodes, user_id

    def remove(self, step: StepKey) -> str:
        """The step has ended; the nodes on which it ran."""
        steps = self.by_job[step[:2]]
        nodes, _ = steps.pop(step)
        if not steps:
            del self.by_job[step[:2]]
        return nodes
