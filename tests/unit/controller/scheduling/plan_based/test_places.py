"""When nodes will do, and which ones a plan would use."""

from scheduling_harness import World, node, table, table_of

from understudy.controller.scheduling.api import Ask
from understudy.controller.scheduling.plan_based.places import first_start
from understudy.controller.scheduling.plan_based.policy import PlanBased
from understudy.controller.scheduling.select.cons_tres import SelectConsTres

ANY_CPU = SelectConsTres(frozenset({"CR_CPU"}))


def test_the_first_start_is_exact_to_the_second():
    w = World(table(3, cores=2), PlanBased, ANY_CPU)
    for limit in (10, 17, 17):
        w.submit(at=0, run_s=limit, limit_s=limit, num_tasks=1, cpus_per_task=2)
    one = w.submit(at=1, run_s=5, limit_s=5, num_tasks=1, cpus_per_task=2)
    three = w.submit(at=1, run_s=5, limit_s=5, num_tasks=3, cpus_per_task=2)
    four = w.submit(at=1, run_s=5, limit_s=5, num_tasks=4, cpus_per_task=2)
    w.run(until=3)
    partition = w.tables.partitions["main"]

    def when(job, second=3):
        return first_start(ANY_CPU, Ask(job, partition, 0b111), w.tables, second)

    assert (when(one), when(three), when(four)) == (10, 17, None)
    assert when(one, second=12) == 13, "who is overdue is expected to end in the next second"


def test_each_job_is_shown_nodes_of_its_own_for_as_long_as_it_may_run():
    w = World(table_of([node(i, cores=2) for i in range(3)]), PlanBased, ANY_CPU)
    w.submit(at=0, run_s=10, limit_s=10, cpus=5)
    jobs = [w.submit(at=1, run_s=20, limit_s=20, cpus=cpus) for cpus in (3, 2, 4)]
    w.run(until=3)
    assert [(job.expected_start, job.expected_nodes) for job in jobs] == [
        (10, 0b011),
        (10, 0b110),
        (30, 0b011),
    ]
