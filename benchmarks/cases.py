"""All cases: what `make bench CASES="NAME ..."` takes, and the rows of docs/performance.md.

A target that names a commit is the ratio to it, measured beside it; one that names Slurm is that to
the real one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks import clusters, futures, replays

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.measure import Run


@dataclass(frozen=True)
class Case:
    """`how` measures; `headline` is the figure that the target is about: one that it gives, or the
    case's own `wall` or `CPU` seconds.
    """

    what: str
    target: str
    how: Callable[[Run], None]
    headline: str = "wall"
    beside_slurm: bool = False


EASY = "sched/easy, whole command"
CASES = {
    "kth-easy-one": Case(
        f"KTH-SP2, {EASY}, all daemons in one process", "0.33 x eb2e777", replays.kth_one
    ),
    "kth-easy-many": Case(f"KTH-SP2, {EASY}, a process each", "0.4 x eb2e777", replays.kth),
    "theta-easy": Case(
        f"Theta 2022, 4,360 nodes, {EASY}, a process each", "0.4 x eb2e777", replays.theta
    ),
    "two-days": Case(
        "3,000 jobs on 1,000 nodes of 4 CPUs over 48 h, sched/backfill", "", replays.two_days
    ),
    "two-months": Case(
        "50,000 jobs of 500 users on 2,500 nodes over 60 days, backfill, fair share",
        "0.4 x eb2e777",
        replays.two_months,
    ),
    "year-of-a-site": Case(
        "a year of 30,000 jobs, sched/backfill with a site's configuration, one process",
        "0.32 x eb2e777",
        replays.year_of_a_site,
        "CPU",
    ),
    "futures-20": Case(
        "20 futures of 1,024 nodes with 5,000 jobs, `understudy branch`",
        "2 s",
        futures.futures_20,
        "until all have begun",
    ),
    "growth-nodes": Case(
        "what a job costs, 1,024 to 262,144 nodes", "at most log n", replays.growth_nodes, "CPU"
    ),
    "growth-jobs": Case(
        "what a job costs, 1,000 to 1,000,000 jobs", "at most log n", replays.growth_jobs, "CPU"
    ),
    "up-16384": Case(
        "`understudy up`, 16,384 nodes", "1 s", clusters.up_16384, "until all are idle"
    ),
    "up-65536": Case("the same, 65,536 nodes", "2 s", clusters.up_65536, "until all are idle"),
    "up-262144": Case("the same, 262,144 nodes", "8 s", clusters.up_262144, "until all are idle"),
    "million-tasks": Case(
        "1,000,000 pending jobs in ten arrays", "", clusters.million_tasks, "squeue -r"
    ),
    "commands": Case("commands at a small cluster", "60 ms", clusters.commands, "squeue"),
    "sbatch-1": Case(
        "`sbatch` processes, one loop", "0.8 x Slurm", clusters.sbatch_1, "submitted", True
    ),
    "sbatch-4": Case(
        "`sbatch` processes, four loops", "0.8 x Slurm", clusters.sbatch_4, "submitted", True
    ),
    "sbatch-1-zygote": Case(
        "the same by a zygote, one loop",
        "0.8 x Slurm",
        clusters.sbatch_1_by_zygote,
        "submitted",
        True,
    ),
    "sbatch-4-zygote": Case(
        "the same by a zygote, four loops",
        "0.8 x Slurm",
        clusters.sbatch_4_by_zygote,
        "submitted",
        True,
    ),
    "submit-64": Case(
        "submissions through 64 connections, each on disk before its answer",
        "4,000 jobs/s",
        clusters.submit_64,
        "submitted",
    ),
    "listings": Case(
        "listings at 16,384 nodes and 10,000 jobs",
        "1 x Slurm",
        clusters.listings,
        "squeue",
        True,
    ),
    "long-listing": Case(
        "`squeue` of 100,000 jobs, and others meanwhile", "3 s", clusters.long_listing, "squeue"
    ),
    "backfill-answers": Case(
        "waits for answers while backfill runs over 500 jobs on 16,384 nodes",
        "50 ms",
        clusters.answers_while_backfilling,
        "99.9th percentile",
    ),
    "answers-in-storm": Case(
        "waits for answers while 1,000 jobs a second are submitted and backfill runs over 1,000",
        "50 ms",
        clusters.answers_in_a_storm,
        "99.9th percentile",
    ),
    "short-jobs": Case(
        "short emulated jobs, submitted to completed, state on disk",
        "20 x Slurm",
        clusters.short_jobs,
        "completed",
        True,
    ),
    "real-jobs": Case(
        "500 jobs of `true` through `sbatch` on 100 nodes, which really run",
        "1 x Slurm",
        clusters.real_jobs,
        "completed",
        True,
    ),
    "one-wide-job": Case(
        "one job over 16,384 nodes, hops in memory",
        "0.3 s",
        clusters.one_wide_job,
        "submitted to completed",
    ),
    "wide-job-sockets": Case(
        "one job over 16,384 nodes, hops through sockets, by a tree of width 32",
        "5 s",
        clusters.one_wide_job_by_sockets,
        "submitted to completed",
    ),
    "step-launch": Case(
        "`srun -N1 hostname` in an allocation",
        "2.5 x Slurm",
        clusters.step_launch,
        "srun -N1 hostname",
        True,
    ),
    "wide-step": Case(
        "`srun -N2400 -n4800 hostname` at emulated nodes", "2 s", clusters.wide_step, "srun"
    ),
    "decisions": Case("single decisions without daemons", "", clusters.decisions, "CPU"),
}
