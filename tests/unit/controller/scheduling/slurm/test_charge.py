"""What passes cost, and what ends them."""

from controller_harness import START, Harness
from scheduling_harness import World, table

from understudy.controller.scheduling.api import Note
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.slurm.backfill import Backfill
from understudy.controller.scheduling.slurm.charge import Charge


def test_without_a_cost_no_time_passes():
    charge = Charge.of_backfill({})
    charge.begin(100.0)
    for _ in range(1000):
        charge.test()
        assert not charge.pause()
    assert charge.now == 100.0
    assert not charge.is_used_up


def test_a_pass_pauses_after_the_yield_interval_and_ends_after_its_time():
    charge = Charge.of_backfill({"understudy_cost_backfill_us": "1000000", "bf_max_time": "6"})
    charge.begin(100.0)
    charge.test()
    assert not charge.pause()
    charge.test()
    assert charge.pause()
    assert charge.now == 102.5
    charge.test()
    assert not charge.pause()
    charge.test()
    assert charge.pause()
    assert not charge.is_used_up
    charge.test()
    assert charge.is_used_up


def test_the_main_scheduler_stops_after_max_sched_time_and_never_yields():
    charge = Charge.of_main({"understudy_cost_main_us": "600000", "max_sched_time": "1"})
    charge.begin(0.0)
    charge.test()
    assert not charge.is_used_up
    charge.test()
    assert charge.is_used_up
    assert not charge.pause()


def waiting(parameters):
    """A job on all nodes for an hour and ten that wait; what of them the first backfill pass has
    looked at.
    """
    world = World(table(4), Backfill, SelectConsTres(frozenset({"CR_CPU"})), parameters)
    world.policy.note(Note.START, 0.0)
    world.submit(at=1, cpus=4, run_s=3600, limit_s=3600)
    for _ in range(10):
        world.submit(at=5, cpus=4, run_s=60, limit_s=60)
    world.run(until=29)
    pauses = [pause for pause in world.policy.run(31.0) if pause is not None]
    return pauses, [
        job_id
        for job_id, job in world.tables.jobs.items()
        if job.is_pending and job.expected_start is not None
    ]


def test_bf_max_time_ends_a_pass_that_costs_time():
    pauses, promised = waiting({"understudy_cost_backfill_us": "1000000", "bf_max_time": "5"})
    assert pauses == [33.5, 36.0, 37.0], "two pauses, and the end"
    assert promised == [2, 3, 4, 5, 6]
    assert waiting({})[0] == []
    assert len(waiting({})[1]) == 10


def test_a_pass_that_pauses_goes_on_when_it_wanted_and_others_are_let_in_meanwhile():
    h = Harness()
    went_on = []

    def run(now):
        yield now + 5
        went_on.append((h.time.now(), len(h.core.tables.pending)))

    policy = h.core.policy
    policy.due, policy.run = h.time.now() + 1, run
    h.passes.arm()
    h.run(2)
    h.submit(hold=True)
    assert not went_on
    h.run(10)
    assert went_on[0] == (START + 6, 1)
