"""Expected starts under sched/builtin."""

from __future__ import annotations

from scheduling_harness import World, table

from understudy.controller.scheduling.api import Note
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.slurm.builtin import Builtin


def waiting(parameters: dict[str, str] | None = None) -> World:
    """Three of four nodes are busy for an hour; a job of four waits, and behind it a short one for
    which there would be room.
    """
    w = World(table(4), Builtin, SelectConsTres(frozenset({"CR_CPU"})), parameters, check=True)
    w.policy.note(Note.START, 0.0)
    w.submit(at=5, cpus=3, run_s=3600, limit_s=3600)
    w.submit(at=10, cpus=4, run_s=600, limit_s=600)
    w.submit(at=11, cpus=1, run_s=60, limit_s=60)
    w.run(until=100)
    return w


def test_nobody_is_expected_to_start_before_those_ahead_of_him() -> None:
    w = waiting()
    jobs = w.tables.jobs
    assert jobs[2].expected_start is None
    w.policy.complete_plan(100.0)
    assert [jobs[i].expected_start for i in (2, 3)] == [3606, 4200]
    assert (jobs[2].expected_nodes, jobs[3].last_scheduler) == (0, "")
    assert w.starts == {1: 6}
    w.run()
    assert w.starts[2] < w.starts[3]


def test_it_is_made_anew_at_the_interval() -> None:
    w = waiting({"bf_interval": "60"})
    job = w.tables.jobs[2]
    w.policy.complete_plan(100.0)
    w.tables.running[1].time_limit_s = 1800
    w.tables.version += 1
    w.tables.held_version += 1
    w.policy.complete_plan(159.0)
    assert job.expected_start == 3606
    w.policy.complete_plan(160.0)
    assert job.expected_start == 1806


def test_there_is_none_without_an_interval() -> None:
    w = waiting({"bf_interval": "-1"})
    w.policy.complete_plan(100.0)
    assert w.tables.jobs[2].expected_start is None
