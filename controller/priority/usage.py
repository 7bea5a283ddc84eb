"""What associations have used, decaying: the record from which fair share is worked out.

Place: priority, pure. Once every period all use is multiplied by d^period, d = 1 -
0.693/half-life, and each running job adds what it used in the period, times d to the power of these
seconds. What a job uses between the end of the last period and its own end counts for nothing:
recordings of 22.05.8 show no other way to get their ranks. Nothing need be done in periods in which
nobody looks: running jobs that use the same in each of them form a geometric series, so any number
of periods is brought up to date in one step.

    advance(now)   count the periods that are over; to be called before each of
    begin(...)     a job runs from now on
    end(...)       it runs no more
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LN2: Final = 0.693  # as Slurm rounds it


class _Running(NamedTuple):
    place: int
    rate: float
    start: int


class Ledger:
    """Use by place in the association tree, of each association's own jobs. Times are whole
    seconds; periods end at `origin` + n * `period_s`.
    """

    def __init__(self, size: int, *, origin: int, period_s: int, half_life_s: int = 0) -> None:
        assert period_s > 0
        self.use = np.zeros(size)
        self.before = np.zeros(size)  # `use` before the last period that is counted
        self.period_s = period_s
        self.set_half_life(half_life_s)
        self.last = origin  # the end of the last period that is counted
        self._rates = np.zeros(size)  # what the jobs use a second that run since before `last`
        self._running: dict[int, _Running] = {}
        self._fresh: dict[int, _Running] = {}  # started after `last`

    def set_half_life(self, half_life_s: int) -> None:
        """How fast use is forgotten from now on; 0: not at all."""
        self.decay = 1.0 - LN2 / half_life_s if half_life_s > 0 else 1.0  # a second's factor

    def resize(self, size: int, moved: dict[int, int]) -> None:
        """The tree was built anew: `moved` tells the new place of each old one that is left."""
        use, before, rates = np.zeros(size), np.zeros(size), np.zeros(size)
        for old, new in moved.items():
            use[new], before[new], rates[new] = self.use[old], self.before[old], self._rates[old]
        self.use, self.before, self._rates = use, before, rates
        for jobs in (self._running, self._fresh):
            for job_id, job in list(jobs.items()):
                if job.place in moved:
                    jobs[job_id] = job._replace(place=moved[job.place])
                else:
                    del jobs[job_id]

    def begin(self, job_id: int, place: int, rate: float, now: int) -> None:
        """The job uses `rate` a second from now on."""
        assert job_id not in self._running, "a job begins once"
        self._fresh[job_id] = _Running(place, rate, now)

    def end(self, job_id: int) -> None:
        """The job uses nothing any more."""
        if self._fresh.pop(job_id, None) is not None:
            return
        job = self._running.pop(job_id, None)
        if job is not None:
            self._rates[job.place] -= job.rate
            if not self._running:
                self._rates[:] = 0.0  # nothing is left of differences by rounding

    def advance(self, now: int) -> None:
        """Count all periods that have ended by now."""
        periods = (now - self.last) // self.period_s
        if periods <= 0:
            return
        if periods > 1:
            self._count_first()
            self._count(periods - 2)
        self.before = self.use.copy()
        if periods > 1:
            self._count(1)
        else:
            self._count_first()

    def _count_first(self) -> None:
        """A period in which jobs began."""
        end = self.last + self.period_s
        self._count(1)
        for job_id, job in self._fresh.items():
            seconds = end - job.start
            self.use[job.place] += job.rate * seconds * self.decay**seconds
            self._rates[job.place] += job.rate
            self._running[job_id] = job
        self._fresh.clear()

    def _count(self, periods: int) -> None:
        """Periods in which none began."""
        factor = self.decay**self.period_s
        power = factor**periods
        terms = (1.0 - power) / (1.0 - factor) if factor != 1.0 else float(periods)
        self.use = self.use * power + self._rates * (self.period_s * factor * terms)
        self.last += periods * self.period_s

    def last_period(self) -> tuple[NDArray[np.float64], list[tuple[int, int, float]]]:
        """Use with the last period's decay and nothing else of it, and what each job that runs then
        added: (job, place, use).
        """
        added = []
        for job_id, job in sorted(self._running.items()):
            seconds = min(self.last - job.start, self.period_s)
            added.append((job_id, job.place, job.rate * seconds * self.decay**seconds))
        return self.before * self.decay**self.period_s, added

    def give(self, place: int, use: float) -> None:
        """Use that is known from elsewhere."""
        self.use[place] += use
        self.before[place] += use

    def forget(self, place: int) -> None:
        """One association's use begins anew."""
        self.use[place] = self.before[place] = 0.0

    def reset(self) -> None:
        """Forget all use."""
        self.use[:] = self.before[:] = 0.0
