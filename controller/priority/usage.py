"""What associations have used, decaying: the record on which fair share looks.

Place: the controller's core, pure. Once every period all use is multiplied by d^period, d = 1 - 0.693/half-life, and each running job adds what it
used in the period, times d to the power of these seconds. What a job uses between the end of the last period and its own end counts for nothing:
recordings of 22.05.8 show no other way to get their ranks. Nothing need be done in periods in which nobody looks: running jobs that use the same
in each of them form a geometric series, so any number of periods is brought up to date in one step.

    advance(now)   count the periods that are over; to be called before each of
    begin(...)     a job runs from now on
    end(...)       it runs no more
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

LN2: Final = 0.693  # as Slurm rounds it


class _Running(NamedTuple):
    place: int
    rate: float
    start: int


class Ledger:
    """Use by place in the association tree, of each association's own jobs. Times are whole seconds; periods end at `origin` + n * `period_s`."""

    def __init__(self, size: int, *, origin: int, period_s: int, half_life_s: int = 0) -> None:
        assert period_s > 0
        self.use = np.zeros(size)
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
        use, rates = np.zeros(size), np.zeros(size)
        for old, new in moved.items():
            use[new], rates[new] = self.use[old], self._rates[old]
        self.use, self._rates = use, rates
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
        period, factor = self.period_s, self.decay**self.period_s
        end = self.last + period
        self.use *= factor
        self.use += self._rates * (period * factor)
        for job_id, job in self._fresh.items():
            seconds = end - job.start
            self.use[job.place] += job.rate * seconds * self.decay**seconds
            self._rates[job.place] += job.rate
            self._running[job_id] = job
        self._fresh.clear()
        periods -= 1
        if periods:
            power = factor**periods
            terms = (1.0 - power) / (1.0 - factor) if factor != 1.0 else float(periods)
            self.use = self.use * power + self._rates * (period * factor * terms)
            end += periods * period
        self.last = end

    def reset(self) -> None:
        """Forget all use."""
        self.use[:] = 0.0
