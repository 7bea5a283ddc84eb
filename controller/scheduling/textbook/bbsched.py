"""sched/bbsched: several resources are used well at once. Of the jobs at the front of the queue, a
window, those start together that fill the machine best; then EASY backfilling goes on with the
rest.

Place: scheduling, pure; a textbook policy for research (see
understudy.controller.scheduling.textbook.pools). After Fan, Lan and others, "Scheduling beyond CPUs
for HPC" (HPDC 2019). A pass, in each partition:

1. the pending jobs are sorted by the base order; the first `bbs_window` of them are the window;
2. jobs of the window that have been passed over in `bbs_bound` windows go to the front of the
   queue, and nothing is chosen in this pass;
3. candidates are the window's jobs that fit alone now; if there are none, nothing is chosen;
4. of the subsets of candidates that fit, those are on the Pareto front than which no other uses
   more of one resource without using less of another. It is found exactly where few enough subsets
   fit, else by a genetic search (understudy.controller.scheduling.textbook.genetic);
5. one of the front is chosen (understudy.controller.scheduling.textbook.deciding), its jobs start,
   and all others of the window have been passed over once more;
6. EASY with all resources over what is left of the queue, in the base order
   (understudy.controller.scheduling.textbook.backfilling).

Nothing is kept for the first job of the window: who is never chosen starts because of the bound.
`bbs_method` says how step 5, and step 4 for it, are done by methods to compare
with. The words of SchedulerParameters are in docs/research-policies.md.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from understudy.controller.scheduling.chance import seeded
from understudy.controller.scheduling.textbook.backfilling import CPU, Backfilling
from understudy.controller.scheduling.textbook.deciding import (
    Fullness,
    by_published_code,
    by_tradeoff,
    packed_like_bins,
    weights_in_units,
    weights_of_one,
)
from understudy.controller.scheduling.textbook.further import further_resources, named_kinds
from understudy.controller.scheduling.textbook.genetic import Search, search
from understudy.controller.scheduling.textbook.pools import TextbookPolicy
from understudy.controller.scheduling.textbook.subsets import Window
from understudy.controller.scheduling.textbook.words import choice, fraction, whole
from understudy.model.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from understudy.controller.scheduling.api import Planner, PolicyParameters, Selector
    from understudy.controller.scheduling.slurm.queue import Record
    from understudy.controller.scheduling.textbook.backfilling import Pool
    from understudy.controller.tables.tables import Tables

BBSCHED: Final = "bbsched"
BASELINE: Final = "baseline"
BIN_PACKING: Final = "bin_packing"
CONSTRAINED: Final = {"constrained_cpu": 0, "constrained_bb": 1}
# what the processors count, out of 1; the other objectives share the rest
WEIGHTED: Final = {
    "weighted": None,  # as much as each other, or bbs_weights
    "weighted_cpu": Fraction(8, 10),
    "weighted_bb": Fraction(2, 10),
}
METHODS: Final = (BBSCHED, BASELINE, *WEIGHTED, *CONSTRAINED, BIN_PACKING)
_WORDS: Final = (
    *("bbs_method", "bbs_window", "bbs_bound", "bbs_order", "bbs_objectives", "bbs_weights"),
    *("bbs_rule", "bbs_tradeoff", "bbs_preset", "bbs_exact", "bbs_population", "bbs_generations"),
    *("bbs_mutation", "bbs_seed"),
)
# a small mutation and no exact fronts, as in a search that is genetic alone
_PRESETS: Final[Mapping[str, Mapping[str, str]]] = {
    "default": {},
    "paper": {"bbs_mutation": "0.0005", "bbs_exact": "0"},
}


class Options(NamedTuple):
    """The words of SchedulerParameters."""

    method: str
    window: int
    bound: int
    order: str
    objectives: tuple[str, ...] | None  # None: all resources; processors are one always
    weights: tuple[Fraction, ...]
    rule: str
    tradeoff: Fraction | None  # None: as many as there are objectives
    exact: int  # no more subsets than that are looked at one by one
    search: Search
    seed: int

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        """Read them.

        Raises:
            ConfigError: one cannot be read; it is named.
        """
        preset = choice(given, "bbs_preset", "default", _PRESETS)
        words = {**_PRESETS[preset], **given}
        mutation = fraction(words, "bbs_mutation", "0.05")
        if mutation > 1:
            text = words["bbs_mutation"]
            raise ConfigError(f"SchedulerParameters bbs_mutation={text}: more than 1")
        return cls(
            choice(words, "bbs_method", BBSCHED, METHODS),
            whole(words, "bbs_window", 20, least=1, most=64),
            whole(words, "bbs_bound", 50, least=1),
            choice(words, "bbs_order", "fcfs", ("fcfs", "wfp")),
            tuple(
                f"{kind}/{name}" if name else kind
                for kind, name in named_kinds(words, "bbs_objectives")
            )
            if "bbs_objectives" in words
            else None,
            _weights(words),
            choice(words, "bbs_rule", "tradeoff", ("tradeoff", "code")),
            fraction(words, "bbs_tradeoff", "2") if "bbs_tradeoff" in words else None,
            whole(words, "bbs_exact", 20_000),
            Search(
                whole(words, "bbs_population", 20, least=2, most=10_000),
                whole(words, "bbs_generations", 500),
                round(mutation * 65_536),
            ),
            whole(words, "bbs_seed", 1),
        )


def _weights(words: Mapping[str, str]) -> tuple[Fraction, ...]:
    """bbs_weights; none if nothing is said.

    Raises:
        ConfigError: one of them is no number, or none counts anything.
    """
    text = words.get("bbs_weights")
    if text is None:
        return ()
    found = tuple(
        fraction({"bbs_weights": text}, "bbs_weights", "", each) for each in text.split("+")
    )
    if not any(found):
        raise ConfigError(f"SchedulerParameters bbs_weights={text}: one has to be more than 0")
    return found


def _objectives(options: Options, names: Sequence[str]) -> list[int]:
    """The places of the resources that are objectives; processors come first."""
    wanted = options.objectives
    return [
        k
        for k, name in enumerate(names)
        if wanted is None or name == CPU or name in wanted or name.split("/")[0] in wanted
    ]


def _options(tables: Tables, parameters: PolicyParameters) -> Options:
    """The words, which are right for what counts in this cluster.

    Raises:
        ConfigError: as `Options.of`; an objective is not counted; there are more or fewer weights
            than objectives.
    """
    options = Options.of(parameters)
    names = [CPU, *(each.name for each in further_resources(tables, parameters))]
    for wanted in options.objectives or ():
        if wanted not in (*names, *(name.split("/")[0] for name in names)):
            raise ConfigError(
                f"SchedulerParameters bbs_objectives={parameters['bbs_objectives']}: {wanted} is "
                f"not counted, {', '.join(names)} are (further_resources)"
            )
    counted = [names[k] for k in _objectives(options, names)]
    if options.weights and len(options.weights) != len(counted):
        raise ConfigError(
            f"SchedulerParameters bbs_weights={parameters['bbs_weights']}: "
            f"{len(options.weights)} for the {len(counted)} objectives {', '.join(counted)}"
        )
    return options


class BBSched(TextbookPolicy):
    """A window of the queue at a time."""

    name = "bbsched"
    parameter_words = (*TextbookPolicy.parameter_words, *_WORDS)

    def __init__(
        self, tables: Tables, selector: Selector, planner: Planner, parameters: PolicyParameters
    ) -> None:
        super().__init__(tables, selector, planner, parameters)
        self.options = _options(tables, parameters)
        self.chance = seeded(self.options.seed)
        self.backfilling = Backfilling(self)
        self.ages: Counter[int] = Counter()  # by job id: windows that have passed it over
        self.figures = dict.fromkeys(
            (
                *("windows", "candidates", "exact_fronts", "genetic_searches", "evaluations"),
                *("front_sizes", "largest_front", "last_front", "chosen_jobs", "passes_for_old"),
            ),
            0,
        )

    @classmethod
    def check_parameters(cls, parameters: PolicyParameters) -> None:
        """As in `SchedulingPolicy`."""
        super().check_parameters(parameters)
        Options.of(parameters)

    @classmethod
    def check_cluster(cls, tables: Tables, parameters: PolicyParameters) -> None:
        """As in `SchedulingPolicy`."""
        super().check_cluster(tables, parameters)
        _options(tables, parameters)

    def reconfigure(self, parameters: PolicyParameters) -> None:
        """As in `SchedulingPolicy`. Chance goes on where it was, unless there is another seed."""
        options = _options(self.tables, parameters)
        super().reconfigure(parameters)
        if options.seed != self.options.seed:
            self.chance = seeded(options.seed)
        self.options = options

    def decide(self, added: list[Record] | None, freed: bool, second: int, now: float) -> None:
        """One pass over each pool: a window, then backfilling."""
        del freed
        passes = self.backfilling
        if self.is_stale or not passes.pools:
            passes.rebuild()
            for job_id in [each for each in self.ages if each not in self.tables.pending]:
                del self.ages[job_id]
        for pool, records, _ in passes.take_in(added):
            if not records:
                continue
            passes.open(pool)
            if self.options.method == BASELINE and self.options.order == "fcfs":
                passes.review(pool, records, second, now)
                continue
            ordered = self._ordered(records, second)
            if self.options.method != BASELINE:
                ordered = self._choose(pool, ordered, now)
            if ordered != records:
                pool.waiting = None
            passes.review(pool, ordered, second, now)
            records[:] = [record for record in records if record.job.is_pending]
            if len(records) != len(ordered) or self.options.order != "fcfs":
                pool.waiting = None

    def _ordered(self, records: list[Record], second: int) -> list[Record]:
        """Who is pending, in the base order: first come first served, or WFP, Cobalt's order: wait
        over limit, cubed, times processors.
        """
        found = [record for record in records if record.job.is_pending]
        if self.options.order == "fcfs":
            return found

        def score(record: Record) -> float:
            wait = second - record.job.submit_time
            return (
                0.0 if record.limit_s == inf else (wait / max(record.limit_s, 1)) ** 3 * record.cpus
            )

        return sorted(found, key=score, reverse=True)

    def _choose(self, pool: Pool, ordered: list[Record], now: float) -> list[Record]:
        """Steps 2 to 5. The queue as it is then."""
        options, ages, figures = self.options, self.ages, self.figures
        window = ordered[: options.window]
        old = [record for record in window if ages[record.job.job_id] >= options.bound]
        if old:
            figures["passes_for_old"] += 1
            return [*old, *(record for record in ordered if record not in old)]
        candidates = [record for record in window if pool.fits(pool.amounts.need(record))]
        if not candidates:
            return ordered
        chosen = self._chosen(pool, candidates)
        started = [record for record in chosen if self.backfilling.start(pool, record, now)]
        figures["windows"] += 1
        figures["candidates"] += len(candidates)
        figures["chosen_jobs"] += len(started)
        for record in window:
            if record.job.is_pending:
                ages[record.job.job_id] += 1
            else:
                ages.pop(record.job.job_id, None)
        return [record for record in ordered if record.job.is_pending] if started else ordered

    def _chosen(self, pool: Pool, candidates: Sequence[Record]) -> list[Record]:
        """Steps 4 and 5: whose turn it is of the candidates, in the base order."""
        kinds, options = pool.amounts.kinds, self.options
        free = kinds.amounts(pool.free)
        names = list(free)
        objectives = _objectives(options, names)
        needs = [tuple(kinds.amounts(pool.amounts.need(each)).values()) for each in candidates]
        window = Window(needs, list(free.values()), objectives)
        capacity = tuple(pool.amounts.capacity[names[k]] for k in objectives)
        in_use = tuple(pool.amounts.capacity[names[k]] - free[names[k]] for k in objectives)
        if options.method == BBSCHED:
            mask = self._of_front(window, Fullness(capacity, in_use))
        elif options.method == BIN_PACKING:
            mask = packed_like_bins(window, list(pool.amounts.capacity.values()))
        else:
            mask = window.heaviest(self._weights(capacity)).chosen
        self.figures["evaluations"] += window.evaluations
        return [record for i, record in enumerate(candidates) if mask >> i & 1]

    def _of_front(self, window: Window, full: Fullness) -> int:
        options, figures = self.options, self.figures
        front = window.front(options.exact)
        if front is None:
            figures["genetic_searches"] += 1
            front = search(window, self.chance, options.search)
        else:
            figures["exact_fronts"] += 1
        figures["front_sizes"] += len(front)
        figures["last_front"] = len(front)
        figures["largest_front"] = max(figures["largest_front"], len(front))
        if options.rule == "code":
            return by_published_code(front, full).chosen
        factor = Fraction(len(full.capacity)) if options.tradeoff is None else options.tradeoff
        return by_tradeoff(front, full, factor).chosen

    def _weights(self, capacity: Sequence[int]) -> list[int]:
        method, count = self.options.method, len(capacity)
        if method in CONSTRAINED:
            return weights_of_one(min(CONSTRAINED[method], count - 1), capacity)
        of_processors = WEIGHTED[method]
        if of_processors is None:
            given = self.options.weights
            of_each = given if len(given) == count else (Fraction(1),) * count
        else:
            share = (1 - of_processors) / max(count - 1, 1)
            of_each = (of_processors, *[share] * (count - 1))
        return weights_in_units(of_each, capacity)
