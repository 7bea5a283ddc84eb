"""sched/fcfs: first come, first served. The head of the queue starts when it fits; nobody passes
it.

Place: scheduling, pure; a textbook policy for research (see
understudy.controller.scheduling.textbook.pools).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.scheduling.textbook.backfilling import Backfilling, Style
from understudy.controller.scheduling.textbook.pools import TextbookPolicy

if TYPE_CHECKING:
    from understudy.controller.scheduling.api import Planner, PolicyParameters, Selector
    from understudy.controller.scheduling.slurm.queue import Record
    from understudy.controller.tables.tables import Tables


class Fcfs(TextbookPolicy):
    """Looks at the head of each pool's queue only, so its cost does not grow with the queue."""

    name = "fcfs"

    def __init__(
        self, tables: Tables, selector: Selector, planner: Planner, parameters: PolicyParameters
    ) -> None:
        super().__init__(tables, selector, planner, parameters)
        self._with_further = Backfilling(self, Style(passes=False))

    def decide(self, added: list[Record] | None, freed: bool, second: int, now: float) -> None:
        """Start jobs from each pool's head on until one does not fit."""
        if self.further:
            self._with_further.decide(added, freed, second, now)
            return
        del added, freed, second
        for name, records in self.queue.in_turn():
            if not records:
                continue
            nodes = self.usable(self.tables.partitions[name])
            free = self.free_processors(nodes)
            passed = 0
            for record in records:
                if record.job.is_pending:
                    taken = self.start(record, nodes, now) if record.cpus <= free else 0
                    if not (taken or self.waits_alone(record)):
                        self.explain(record, "Resources")
                        break
                    free -= taken
                passed += 1
            del records[:passed]
