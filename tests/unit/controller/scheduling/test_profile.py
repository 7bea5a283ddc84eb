import pytest

from understudy.controller.scheduling.profile import FOREVER, Profile
from understudy.controller.scheduling.resources import Resources

KINDS = Resources({"cpus": 4, "bb": 10})


def need(cpus=0, bb=0):
    return KINDS.need({"cpus": cpus, "bb": bb})


def shown(profile):
    return [(s.start, s.end, *KINDS.amounts(s.amounts).values()) for s in profile.steps()]


def test_a_reservation_cuts_steps_and_its_release_makes_one_of_them():
    profile = Profile(0, KINDS)
    profile.reserve(5, 9, need(3, 2))
    assert shown(profile) == [(0, 5, 4, 10), (5, 9, 1, 8), (9, FOREVER, 4, 10)]
    profile.release(5, 9, need(3, 2))
    assert shown(profile) == [(0, FOREVER, 4, 10)]


def test_equal_reservations_that_meet_are_one_step():
    profile = Profile(0, KINDS, nodes=0b11)
    profile.reserve(0, 5, need(1), nodes=0b01)
    profile.reserve(5, 9, need(1), nodes=0b01)
    assert [step[:2] for step in profile.steps()] == [(0, 9), (9, FOREVER)]


def test_what_running_jobs_give_back_is_free_behind_their_ends():
    ends = [(30, need(1, 4), 0), (20, need(2), 0), (5, need(1), 0), (30, 0, 0b10)]
    profile = Profile.with_ends(10, ends, KINDS, KINDS.free({"bb": 6}), nodes=0b01)
    assert shown(profile) == [
        (10, 11, 0, 6),  # the one of second 5 is overdue
        (11, 20, 1, 6),
        (20, 30, 3, 6),
        (30, FOREVER, 4, 10),
    ]
    assert profile.common(20, 40) == 0b01
    assert profile.common(30, 40) == 0b11


def test_the_earliest_start_is_where_all_resources_are_enough_all_the_time():
    profile = Profile(0, KINDS)
    profile.reserve(0, 10, need(3))
    profile.reserve(15, 20, need(bb=8))
    assert profile.earliest(need(1), 5, 0) == 0
    assert profile.earliest(need(2), 5, 0) == 10
    assert profile.earliest(need(2, 3), 5, 0) == 10
    assert profile.earliest(need(2, 3), 6, 0) == 20
    assert profile.earliest(need(1, 3), 15, 0) == 0
    assert profile.earliest(need(1, 3), 15, 1) == 20
    assert profile.earliest(need(), 5, 3) == 3


def test_what_is_more_than_there_is_never_starts():
    profile = Profile(0, KINDS, nodes=0b111)
    assert profile.earliest(need(5), 1, 0) is None
    assert profile.earliest(need(), 1, 0, count=4) is None
    assert profile.earliest(need(), 1, 0, count=1, among=0b1000) is None


def test_a_job_without_a_time_limit_starts_when_nothing_is_taken_behind_it():
    profile = Profile(0, KINDS)
    profile.reserve(50, 60, need(3))
    assert profile.earliest(need(2), FOREVER, 0) == 60
    profile.reserve(60, 60 + FOREVER, need(2))
    assert profile.earliest(need(3), 1, 55) is None


def test_nodes_must_be_the_same_ones_all_the_time():
    profile = Profile(0, KINDS, nodes=0b111)
    profile.reserve(0, 10, nodes=0b011)
    profile.reserve(10, 20, nodes=0b110)
    assert profile.earliest(need(), 10, 0, count=1) == 0
    assert profile.earliest(need(), 11, 0, count=1) == 10
    assert profile.earliest(need(), 11, 0, count=1, among=0b110) == 20
    assert profile.earliest(need(1), 5, 0, count=2) == 20
    profile.reserve(20, 30, need(4))
    assert profile.earliest(need(1), 5, 0, count=2) == 30


def test_free_during_an_interval_is_the_least_of_each_and_the_nodes_that_stay():
    profile = Profile(0, KINDS, nodes=0b111)
    profile.reserve(0, 10, need(3, 1), nodes=0b001)
    profile.reserve(10, 20, need(1, 9), nodes=0b010)
    assert KINDS.amounts(profile.least(5, 11)) == {"cpus": 1, "bb": 1}
    assert KINDS.amounts(profile.least(5, 10)) == {"cpus": 1, "bb": 9}
    assert profile.common(5, 11) == 0b100
    assert profile.common(5, 10) == 0b110
    assert profile.common(20, 21) == 0b111


def test_gaps_are_stretches_with_room_for_a_need():
    profile = Profile(0, KINDS, nodes=0b1)
    profile.reserve(5, 10, need(4))
    profile.reserve(10, 12, need(2, 9))
    profile.reserve(20, 30, nodes=0b1)
    assert list(profile.gaps(need(2))) == [(0, 5), (10, FOREVER)]
    assert list(profile.gaps(need(1, 2))) == [(0, 5), (12, FOREVER)]
    assert list(profile.gaps(need(1, 2), nodes=0b1)) == [(0, 5), (12, 20), (30, FOREVER)]


def test_nothing_is_known_behind_the_end():
    profile = Profile(0, KINDS, nodes=0b1, end=100)
    assert profile.earliest(need(1), 10, 99) == 99
    assert profile.earliest(need(1), 10, 100) is None
    profile.reserve(90, 200, need(4), nodes=0b1)
    profile.reserve(150, 200, need(4), nodes=0b1)
    assert [step[:2] for step in profile.steps()] == [(0, 90), (90, 100)]
    assert profile.earliest(need(1), 10, 0) == 0
    assert profile.earliest(need(1), 10, 85) is None


def test_what_is_before_the_first_step_is_past():
    profile = Profile(10, KINDS)
    profile.reserve(3, 12, need(1))
    profile.reserve(3, 7, need(4))
    assert shown(profile) == [(10, 12, 3, 10), (12, FOREVER, 4, 10)]


@pytest.mark.parametrize(
    "twice",
    [
        lambda profile: profile.reserve(8, 12, need(2)),
        lambda profile: profile.reserve(8, 12, nodes=0b01),
        lambda profile: profile.release(8, 12, need(4)),
        lambda profile: profile.release(8, 12, nodes=0b10),
        lambda profile: profile.release(8, 12, need(10**9)),
    ],
)
def test_nothing_is_taken_or_given_back_twice(twice):
    profile = Profile(0, KINDS, nodes=0b11)
    profile.reserve(5, 10, need(3), nodes=0b01)
    with pytest.raises(AssertionError):
        twice(profile)


def test_nodes_are_closed_whoever_has_them():
    profile = Profile(0, nodes=0b11)
    profile.reserve(5, 10, nodes=0b01)
    profile.close(0, 20, 0b01)
    assert [(s.start, s.nodes) for s in profile.steps()] == [(0, 0b10), (20, 0b11)]


def test_of_two_orders_each_is_planned_on_its_own_copy():
    """The example in which the sum of waits prefers to begin with the job of one processor, and the
    sum of their squares does not: a job of two processors and 2 of burst buffer runs until 10.
    """
    jobs = {2: (1, 10, need(3, 6)), 3: (2, 20, need(1, 6))}
    base = Profile.with_ends(2, [(10, need(2, 2), 0)], KINDS, KINDS.totals - need(2, 2))

    def planned(order):
        profile, starts = base.copy(), {}
        for job in order:
            _, length, amounts = jobs[job]
            starts[job] = start = profile.earliest(amounts, length, 2)
            profile.reserve(start, start + length, amounts)
        return starts

    assert planned([2, 3]) == {2: 10, 3: 20}
    assert planned([3, 2]) == {3: 2, 2: 22}
    assert len(base) == 2
