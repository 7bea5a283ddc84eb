"""Fuzzed clusters under each research policy: the configurations, jobs and administrators of
`schedules.py`, burst buffers in every second, with another SchedulerType.

    python tests/simulation/policies.py --count 20 [--first 1] [--policy plan-zheng] [--twice]
    python tests/simulation/policies.py --seed 17 --policy easy-bb [--shrink]

Beside what must hold in any fuzzed schedule (at no step is more given out than there is) nobody may
starve: when all is healed, everybody (under fcfs whoever is first in the queue) has been started
who can be, however empty the cluster is. `--twice` runs each once more, its nodes dealt otherwise,
for the same hash; what is printed at the end is one for all, the same under any PYTHONHASHSEED.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from simulation.fuzz import (
    Outcome,
    Run,
    ScheduleFailed,
    run_schedule,
    shrink,
)
from simulation.schedules import Schedule, draw, with_buffers

from understudy.controller.scheduling.textbook.bbsched import METHODS

# short searches: what is looked for is what must never happen, not a good schedule
_PLAN = "plan_steps=3,plan_moves=2,plan_tries=2"
_WINDOWS = "bbs_window=5,bbs_bound=3,bbs_generations=10,bbs_population=8"
POLICIES: dict[str, tuple[str, str]] = {
    **{
        name: (name, "")
        for name in ("fcfs", "easy", "easy-bb", "easy-nobb", "filler", "sjf-bb", "conservative")
    },
    "easy-bb-3": ("easy-bb", "reservation_depth=3"),
    **{f"bbsched-{method}": ("bbsched", f"{_WINDOWS},bbs_method={method}") for method in METHODS},
    "bbsched-genetic": ("bbsched", f"{_WINDOWS},bbs_exact=0"),
    "bbsched-wfp": ("bbsched", f"{_WINDOWS},bbs_order=wfp"),
    **{
        f"plan-{search}": ("plan", f"{_PLAN},plan_search={search}")
        for search in ("annealing", "zheng", "random", "none")
    },
    "plan-1": ("plan", f"{_PLAN},plan_alpha=1"),
    "plan-3": ("plan", f"{_PLAN},plan_alpha=3"),
    "plan-depth": ("plan", f"{_PLAN},plan_depth=1"),
    "plan-keep": ("plan", f"{_PLAN},plan_search=random,plan_keep"),
    "plan-priority": ("plan", f"{_PLAN},plan_order=priority"),
}

FURTHER = ("", "", "further_resources=none", "further_resources=license+bb+mem+fs/disk")


def under(policy: str, seed: int, jobs: int) -> Schedule:
    """The schedule of a seed under the policy; half of them have burst buffers."""
    schedule = draw(seed, jobs)
    rng = random.Random(f"policies {seed}")
    if not schedule.burst_buffer and rng.random() < 0.5:
        schedule = with_buffers(schedule, rng)
    kind, words = POLICIES[policy]
    left_out = ["SchedulerType=", "SchedulerParameters="]
    if rng.random() < 0.5:
        left_out.append("Preempt")
    kept = [line for line in schedule.conf if not line.startswith(tuple(left_out))]
    counted = rng.choice(FURTHER)
    if kind == "bbsched" and rng.random() < 0.2:
        counted = f"{counted},bbs_objectives=none"
    words = ",".join(filter(None, (words, counted)))
    conf = [f"SchedulerType=sched/{kind}", f"SchedulerParameters={words}", *kept]
    return replace(schedule, conf=tuple(line for line in conf if line != "SchedulerParameters="))


class PolicyRun(Run):
    """One schedule under a policy that is not Slurm's."""

    command = "python tests/simulation/policies.py --seed {}"

    def _judge_waiting(self) -> None:
        core = self.core
        assert core is not None
        now = self.time.now()
        waiting = sorted(
            (job for job in core.tables.pending.values() if job.is_eligible(now)),
            key=lambda job: (job.submit_time, job.job_id),
        )
        for job in core.tables.pending.values():
            self.outcome.waiting[job.reason] += 1
            if not job.reason:
                self.fail(f"waits without a reason: {job.story} {job.spec.submit_line}")
        # later on others may have their turn, too, who are planned behind what can never start
        strict = core.policy.name == "fcfs" or core.policy.next_run() is not None
        for job in waiting[:1] if strict else waiting:
            if job.het is not None and job is not waiting[0]:
                continue  # there may be no nodes for all of its components at once
            if core.tables.burst_buffers.fits(job) and self._could_start(job, job.partitions):
                self.fail(
                    f"waits for {job.reason} although the cluster is empty: "
                    f"{job.story} {job.spec.submit_line}"
                )


def run_under(policy: str, seed: int, jobs: int, *, daemons: int = 0) -> Outcome:
    """Run it, its nodes dealt to so many daemons (0: as drawn).

    Raises:
        ScheduleFailed: what must hold does not.
    """
    schedule = under(policy, seed, jobs)
    if daemons:
        schedule = replace(schedule, node_daemons=daemons)
    return run_schedule(schedule, make=PolicyRun)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=40)
    parser.add_argument("--policy", choices=POLICIES, action="append")
    parser.add_argument("--twice", action="store_true", help="and look for the same hash")
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds, then no more seeds")
    given = parser.parse_args()
    seeds = [given.seed] if given.seed else range(given.first, given.first + given.count)
    began, failed, runs = time.monotonic(), 0, 0
    ends, waiting, hashes = Counter[str](), Counter[str](), sha256()
    for seed in seeds:
        if time.monotonic() - began > given.limit:
            break
        for policy in given.policy or POLICIES:
            runs += 1
            try:
                outcome = run_under(policy, seed, given.jobs)
                ends += outcome.ends
                waiting += outcome.waiting
                hashes.update(outcome.hash.encode())
                again = run_under(policy, seed, given.jobs, daemons=2) if given.twice else outcome
                if again.hash != outcome.hash:
                    failed += 1
                    print(f"seed {seed}, {policy}: another schedule with 2 node daemons")
            except ScheduleFailed as failure:
                failed += 1
                print(f"{failure} --policy {policy}", flush=True)
                if given.shrink:
                    smaller, text = shrink(
                        under(policy, seed, given.jobs), failure.problem, PolicyRun
                    )
                    print("smaller:", text, *smaller.conf, *smaller.burst_buffer, *smaller.jobs,
                          *smaller.events, sep="\n    ")  # fmt: skip
    print(f"{runs} runs in {time.monotonic() - began:.0f} s: {dict(ends)}, waiting for "
          f"{dict(waiting)}; failed: {failed}; "
          f"{hashes.hexdigest()[:16]}")  # fmt: skip
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
