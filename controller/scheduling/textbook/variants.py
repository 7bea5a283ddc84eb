"""sched/easy-bb, easy-nobb, sjf-bb, filler: backfilling where jobs hold burst buffers, or anything
else, beside their processors.

Place: scheduling, pure; textbook policies for research (see
understudy.controller.scheduling.textbook.pools), each a style of
understudy.controller.scheduling.textbook.backfilling. They are the policies with which Kopanski and
Rzadca (Euro-Par 2021) compare plans.

SchedulerParameters=reservation_depth=N: so many of the first that cannot start have a promise, not
the head alone (`filler` makes none).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from understudy.controller.scheduling.textbook.backfilling import EASY, Backfilling, Style
from understudy.controller.scheduling.textbook.pools import TextbookPolicy
from understudy.controller.scheduling.textbook.words import whole

if TYPE_CHECKING:
    from understudy.controller.scheduling.api import Planner, PolicyParameters, Selector
    from understudy.controller.scheduling.slurm.queue import Record
    from understudy.controller.tables.tables import Tables

_DEPTH: Final = "reservation_depth"


class EasyBb(TextbookPolicy):
    """EASY: what is kept for the head is everything that it needs."""

    name = "easy-bb"
    parameter_words = (*TextbookPolicy.parameter_words, _DEPTH)
    style: ClassVar[Style] = EASY

    def __init__(
        self, tables: Tables, selector: Selector, planner: Planner, parameters: PolicyParameters
    ) -> None:
        super().__init__(tables, selector, planner, parameters)
        self.backfilling = Backfilling(self, self._styled(parameters))

    def reconfigure(self, parameters: PolicyParameters) -> None:
        """As in `SchedulingPolicy`."""
        style = self._styled(parameters)
        super().reconfigure(parameters)
        self.backfilling = Backfilling(self, style)

    @classmethod
    def check_parameters(cls, parameters: PolicyParameters) -> None:
        """As in `SchedulingPolicy`."""
        super().check_parameters(parameters)
        cls._styled(parameters)

    @classmethod
    def _styled(cls, parameters: PolicyParameters) -> Style:
        return cls.style._replace(depth=whole(parameters, _DEPTH, 1, least=1))

    def decide(self, added: list[Record] | None, freed: bool, second: int, now: float) -> None:
        """One pass over each pool."""
        self.backfilling.decide(added, freed, second, now)


class EasyNobb(EasyBb):
    """EASY as it was before there were burst buffers: only processors are kept for the head, and
    the rest must merely be free for whoever starts.
    """

    name = "easy-nobb"
    style = EASY._replace(counts_further=False)


class SjfBb(EasyBb):
    """As easy-bb, but behind the head those with the shortest limits are asked first."""

    name = "sjf-bb"
    style = EASY._replace(shortest_first=True)


class Filler(EasyBb):
    """Whoever fits now starts, in the order of the queue; nothing is kept for anybody."""

    name = "filler"
    parameter_words = TextbookPolicy.parameter_words
    style = EASY._replace(promises=False)

    @classmethod
    def _styled(cls, parameters: PolicyParameters) -> Style:
        del parameters
        return cls.style
