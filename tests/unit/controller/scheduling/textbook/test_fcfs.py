"""First come, first served."""

from scheduling_harness import World, oracle, read_starts, read_swf, table

from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.select.linear import SelectLinear
from understudy.controller.scheduling.textbook.fcfs import Fcfs


def test_nobody_passes_the_head():
    w = World(table(4), Fcfs, SelectConsTres(frozenset({"CR_CPU"})), check=True)
    w.submit(at=0, cpus=3, run_s=100, limit_s=100)
    w.submit(at=1, cpus=2, run_s=10, limit_s=10)
    w.submit(at=2, cpus=1, run_s=1, limit_s=10)
    w.run()
    assert w.starts == {1: 0, 2: 100, 3: 100}
    assert w.tables.jobs[3].reason == "Priority"


def test_every_start_of_kth_sp2_is_the_textbooks():
    answers = read_starts(oracle("kth-sp2-fcfs.csv.gz"))
    w = World(table(100), Fcfs, SelectLinear())
    for _, submit, run, processors, limit in read_swf(oracle("kth-sp2-normalised.swf.gz")):
        w.submit(at=submit, run_s=run, limit_s=limit, cpus=processors)
    w.run()
    assert w.starts == answers
