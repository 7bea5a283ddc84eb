"""The queue of pending jobs as schedulers see it."""

from scheduling_harness import make_job, table, tables_of

from understudy.controller.scheduling.slurm.queue import PendingQueue, slurm_order
from understudy.controller.tables.partition import Partition


def queue_of(*jobs, partitions):
    tables = tables_of(table(2), partitions)
    tables.pending.update({job.job_id: job for job in jobs})
    return PendingQueue(tables, slurm_order)


def test_a_job_waits_in_those_of_its_partitions_only_whose_limits_it_keeps():
    short, long = Partition("short", nodes=3, max_time_s=600), Partition("long", nodes=3)
    fits_both = make_job(1, limit_s=600, partitions=("short", "long"))
    fits_one = make_job(2, limit_s=6000, partitions=("short", "long"))
    queue = queue_of(fits_both, fits_one, partitions=[short, long])
    queue.refresh(0.0)
    assert [(record.job.job_id, record.partition.name) for record in queue.records] == [
        (1, "short"),
        (1, "long"),
        (2, "long"),
    ]


def test_of_its_partitions_of_a_tier_a_job_is_looked_at_first_in_the_one_that_it_names_first():
    partitions = [
        Partition("a", nodes=3),
        Partition("b", nodes=3),
        Partition("top", nodes=3, priority_tier=9),
    ]
    queue = queue_of(make_job(1, partitions=("b", "a", "top")), partitions=partitions)
    queue.refresh(0.0)
    assert [record.partition.name for record in queue.records] == ["top", "b", "a"]
