"""sched/shortest: the job with the shortest time limit goes first, until another has waited too
long (SchedulerParameters=shortest_patience=SECONDS, a day if nothing is said).

A job that has lost its patience comes before all that have not, and nobody passes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.scheduling.textbook.pools import TextbookPolicy
from understudy.model.scheduler_parameters import number

if TYPE_CHECKING:
    from understudy.controller.scheduling.slurm.queue import Record

DAY_S = 86_400


class Shortest(TextbookPolicy):
    """A pass a second at most, over each partition's queue."""

    name = "shortest"
    parameter_words = ("shortest_patience",)

    def decide(self, added: list[Record] | None, freed: bool, second: int, now: float) -> None:
        """Start what fits, in order."""
        del added, freed
        patient_until = second - number(self.parameters, "shortest_patience", DAY_S)

        def rank(record: Record) -> tuple[bool, float]:
            is_patient = record.job.submit_time > patient_until
            return is_patient, record.limit_s if is_patient else record.job.submit_time

        for name, records in self.queue.in_turn():
            nodes = self.usable(self.tables.partitions[name])
            free = self.free_processors(nodes)
            records[:] = [record for record in records if record.job.is_pending]
            for record in sorted(records, key=rank):
                taken = self.start(record, nodes, now) if record.cpus <= free else 0
                free -= taken
                if not taken:
                    self.explain(record, "Resources")
                    if record.job.submit_time <= patient_until:
                        break
