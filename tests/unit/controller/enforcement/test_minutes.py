"""Minutes that jobs use up, of associations and qualities of service. As recorded from real Slurm
22.05.8.

Covers: controller/enforcement/use.
"""

from __future__ import annotations

from typing import Any

import pytest
from enforcement_harness import WAIT_S, House, submit, sums

from understudy.controller.edge.limits import make_limits
from understudy.controller.priority.options import PriorityOptions
from understudy.model.states import JobFlag


def test_minutes_of_running_jobs_become_less_with_the_periods() -> None:
    house = House()
    house.set_qos("q", grp_tres_run_mins={"cpu": 20})
    running = [submit(house, qos="q", num_tasks=2, time_limit_s=300) for _ in range(2)]
    waiting = submit(house, qos="q", num_tasks=1, time_limit_s=300)
    house.run(WAIT_S)
    assert all(job.is_running for job in running)
    assert waiting.reason == "QOSGrpCPURunMinutesLimit"
    house.run(180)
    assert waiting.is_running


def test_minutes_count_from_when_the_nodes_have_booted() -> None:
    """Slurm 22.05.8: what running jobs may use stays the same until then, and nothing is used."""
    house = House()
    house.set_qos("q", grp_tres_run_mins={"cpu": 20})
    job = submit(house, qos="q", num_tasks=4, time_limit_s=300)
    house.run(WAIT_S)
    house.acknowledge()
    job.flags |= JobFlag.CONFIGURING
    house.run(180)
    house.limits.advance(house.time.now())
    use = house.limits.of_qos["q"].whole
    assert (use.run_s["cpu"], use.used_s.get("cpu", 0)) == (4 * 300, 0)
    job.flags &= ~JobFlag.CONFIGURING
    job.start_time = int(house.time.now())
    house.run(120)
    house.limits.advance(house.time.now())
    counted = house.limits.last - job.start_time
    assert use.run_s["cpu"] == 4 * (300 - counted)
    assert use.used_s["cpu"] == pytest.approx(4 * counted, rel=0.01)


def test_with_priority_basic_nothing_counts_as_used() -> None:
    """So it was seen of 22.05.8, where the minutes that running jobs may use count."""
    house = House(counts_use=False)
    house.set_association(3, grp_tres_mins={"cpu": 1}, grp_tres_run_mins={"cpu": 100})
    first = submit(house, num_tasks=8, time_limit_s=600)
    house.run(50)
    house.acknowledge()
    second = submit(house, num_tasks=4, time_limit_s=600)
    house.run(50)
    assert first.is_running
    assert second.reason == "AssocGrpCPURunMinutesLimit"
    house.complete(first)
    house.run(50)
    assert second.is_running


def test_used_up_minutes_keep_jobs_waiting_until_they_have_decayed() -> None:

    house = House(options=PriorityOptions(calc_period_s=60, half_life_s=120))
    first = submit(house, num_tasks=8, time_limit_s=600)
    house.run(50)
    house.acknowledge()
    house.run(50)
    house.complete(first)
    house.set_association(3, grp_tres_mins={"cpu": 6})
    second = submit(house)
    house.run(WAIT_S)
    assert second.reason == "AssocGrpCPUMinutesLimit"
    house.run(240)
    assert second.is_running


@pytest.mark.parametrize("flags", [(), ("NoDecay",)])
def test_used_up_minutes_come_back_when_the_site_resets_use_unless_the_qos_keeps_them(
    flags: tuple[str, ...],
) -> None:
    house = House(options=PriorityOptions(calc_period_s=60, half_life_s=0))
    house.set_qos("q", flags=flags)
    first = submit(house, qos="q", num_tasks=8, time_limit_s=600)
    house.run(50)
    house.acknowledge()
    house.run(50)
    house.complete(first)
    house.set_qos("q", flags=flags, grp_tres_mins={"cpu": 6})
    second = submit(house, qos="q")
    house.run(240)
    assert second.reason == "QOSGrpCPUMinutesLimit"
    assert house.limits.of_association[3].used_s["cpu"] > 0
    house.limits.reconfigure(0, "NOW", 60, house.time.now())
    house.run(100)
    assert second.is_running is not bool(flags)
    house.limits.reconfigure(0, "DAILY", 60, house.time.now())
    house.limits.advance(house.time.now() + 2 * 86400)
    # of one CPU since the last midnight
    assert house.limits.of_association[3].used_s["cpu"] <= 86400


def test_safe_lets_only_those_start_that_can_end_within_the_limit() -> None:
    lax, safe = House(), House(enforce="safe,qos")
    for house in (lax, safe):
        house.set_qos("q", grp_tres_mins={"cpu": 10})
    jobs = [
        [submit(house, qos="q", num_tasks=2, time_limit_s=180) for _ in range(2)]
        for house in (lax, safe)
    ]
    for house in (lax, safe):
        house.run(WAIT_S)
    assert [[job.is_running for job in each] for each in jobs] == [[True, True], [True, False]]
    assert jobs[1][1].reason == "QOSGrpCPUMinutesLimit"


@pytest.mark.parametrize("limits", [{"grp_tres_mins": {"cpu": 4}}, {"grp_wall": 2}])
def test_running_jobs_end_when_the_minutes_are_used_up(limits: Any) -> None:
    house = House()
    house.set_qos("q", **limits)
    job, other = (
        submit(house, qos="q", num_tasks=2, time_limit_s=1800),
        submit(house, num_tasks=2, time_limit_s=1800),
    )
    house.run(100)
    assert job.is_running
    house.run(130)
    assert (job.state.name, job.reason) == ("TIMEOUT", "TimeLimit")
    assert other.is_running


def test_what_is_used_decays_by_the_seconds_that_are_counted_at_once() -> None:
    house = House(options=PriorityOptions(calc_period_s=60, half_life_s=300))
    house.set_qos("q", grp_wall=1000, grp_tres_mins={"cpu": 1000})
    house.set_qos("over", grp_tres_mins={"cpu": 1000}, usage_factor=2.0, flags=("NoDecay",))
    job, other = (
        submit(house, qos="q", num_tasks=2, time_limit_s=600),
        submit(house, qos="over", num_tasks=2, time_limit_s=600),
    )
    house.run(75)
    house.finish(job)
    house.finish(other)
    decay, start, end, last = 1 - 0.693 / 300, job.start_time, job.end_time, house.limits.last
    assert start is not None
    assert end is not None
    assert 0 < last - start < 60
    assert 0 < end - last < 60
    seconds = (last - start) * decay ** (last - start) + (end - last) * decay ** (end - last)
    whole, undecayed = house.limits.of_qos["q"].whole, house.limits.of_qos["over"].whole
    assert whole.used_s["cpu"] == pytest.approx(2 * seconds)
    assert whole.wall_s == pytest.approx(seconds)
    assert undecayed.used_s["cpu"] == 4 * (end - start)


def test_use_goes_on_after_a_restart() -> None:
    before, after = House(), House()
    before.set_association(4, grp_tres_mins={"cpu": 3})
    after.set_association(4, grp_tres_mins={"cpu": 3})
    job = submit(before, num_tasks=8, time_limit_s=600)
    before.run(50)
    before.finish(job)
    saved = before.limits.take_touched()
    assert before.limits.take_touched() == {}
    assert {key: round(used["cpu"]) for key, (_, used, _) in saved.items()}.keys() == {
        "a:4",
        "a:3",
        "a:2",
        "a:1",
        "q:normal",
    }
    after.limits.restore(saved)
    waiting = submit(after)
    after.run(WAIT_S)
    assert waiting.reason == "AssocGrpCPUMinutesLimit"


@pytest.mark.parametrize("could_save", [True, False])
def test_what_ran_while_the_controller_was_away_is_counted_when_it_is_back(
    *, could_save: bool
) -> None:
    house = House()
    house.set_association(4, grp_wall=1000)
    job = submit(house, time_limit_s=6000)
    house.run(200)
    saved = house.limits.take_touched()
    house.run(1000)
    assert job.is_running
    house.core.start_time = now = house.time.now()  # it has been away since it saved that
    again = make_limits(house.core, PriorityOptions(calc_period_s=60), counts_use=True)
    again.restore(saved if could_save else {})  # its disk may have been full all the while
    again.rebuild(now)
    assert job.start_time is not None
    assert again.of_association[4].wall_s == pytest.approx(now - job.start_time, abs=1, rel=0.01)


def test_use_that_is_forgotten_blocks_nobody() -> None:
    house = House()
    house.set_association(3, grp_tres_mins={"cpu": 3})
    job = submit(house, num_tasks=8, time_limit_s=600)
    house.run(50)
    house.finish(job)
    waiting = submit(house)
    house.run(WAIT_S)
    assert waiting.reason == "AssocGrpCPUMinutesLimit"
    assert house.limits.of_association[2].used_s["cpu"] > 0
    house.limits.forget_use([3], [3, 4, 5], [])
    house.set_association(6)
    house.run(WAIT_S)
    assert waiting.is_running
    assert [
        round(house.limits.of_association[number].used_s["cpu"]) for number in (1, 2, 3, 4)
    ] == [0, 0, 0, 0]
    assert house.limits.of_qos["normal"].whole.used_s["cpu"] > 0
    house.limits.forget_use([], [], ["normal"])
    assert house.limits.of_qos["normal"].whole.used_s["cpu"] == 0


def test_a_job_that_waits_for_its_nodes_to_boot_leaves_nothing_of_its_minutes_behind() -> None:
    house = House()
    house.set_qos("q", grp_tres_run_mins={"cpu": 100})
    job = submit(house, qos="q", num_tasks=2, time_limit_s=600)
    house.run(70)
    assert job.is_running
    job.start_time += 60  # the nodes are there, and its time begins
    house.finish(job)
    house.epilog(job)
    house.run(1)
    assert sums(house.limits) == {}
