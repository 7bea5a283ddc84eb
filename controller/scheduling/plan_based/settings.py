"""Words of SchedulerParameters that sched/plan reads.

Place: scheduling, pure. All counts are of evaluations or of simulated seconds: how fast a machine
is decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from understudy.controller.scheduling.plan_based.sequence import OBJECTIVES, WAIT, Objective
from understudy.controller.scheduling.textbook.words import choice, fraction, switch, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

_BOUND_S: Final = (
    604_800  # ours: a week; the papers have no bound, and the longest waits of a month
)
ANNEALING, ZHENG, RANDOM, NONE = "annealing", "zheng", "random", "none"
PRIORITY, PROCESSORS = "priority", "processors"
WORDS: Final = (
    "plan_search",
    "plan_objective",
    "plan_alpha",
    "plan_weight",
    "plan_order",
    "plan_depth",
    "plan_keep",
    "plan_seed",
    "plan_steps",
    "plan_moves",
    "plan_interval",
    "plan_tries",
    "plan_fairness",
    "plan_window",
    "plan_bound",
    "plan_tests",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What an administrator has chosen; `of` has the defaults, those of Kopanski and Rzadca but for
    the bound.
    """

    search: str  # annealing, zheng, random or none
    objective: Objective
    weight: str  # of a wait: none, priority or processors
    by_priority: bool  # the queue's order is Slurm's
    depth: int  # so many jobs from the queue's head on are planned first
    keeps: bool  # the plan is kept from pass to pass
    seed: int
    steps: int  # temperatures
    moves: int  # at each of them
    interval_s: int  # between two random searches
    tries: int  # of a random search for each waiting job
    fairness: float
    window: int  # so many jobs are searched for a better order, 0: all
    bound_s: int  # who has waited as long is planned first, 0: nobody
    tests: int  # so many jobs with special wishes are looked for among nodes in a pass

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Settings:
        """From SchedulerParameters.

        Raises:
            ConfigError: a value that is none.
        """
        search = choice(parameters, "plan_search", ANNEALING, (ANNEALING, ZHENG, RANDOM, NONE))
        steps, moves = (88, 100) if search == ZHENG else (30, 6)
        return cls(
            search,
            Objective(
                choice(parameters, "plan_objective", WAIT, OBJECTIVES),
                whole(parameters, "plan_alpha", 2, least=1, most=9),
            ),
            choice(parameters, "plan_weight", NONE, (NONE, PRIORITY, PROCESSORS)),
            choice(parameters, "plan_order", "submit", ("submit", PRIORITY)) == PRIORITY,
            whole(parameters, "plan_depth", 0),
            switch(parameters, "plan_keep") or search == RANDOM,
            whole(parameters, "plan_seed", 1),
            whole(parameters, "plan_steps", steps),
            whole(parameters, "plan_moves", moves),
            whole(parameters, "plan_interval", 30, least=1),
            whole(parameters, "plan_tries", 40),
            float(fraction(parameters, "plan_fairness", "10")),
            whole(parameters, "plan_window", 0),
            whole(parameters, "plan_bound", _BOUND_S),
            whole(parameters, "plan_tests", 50),
        )
