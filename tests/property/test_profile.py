"""Availability profiles beside an array of instants, of which each is counted for itself."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from understudy.controller.scheduling.profile import FOREVER, Profile
from understudy.controller.scheduling.resources import Resources
from understudy.model import nodeset

TOTALS = {"cpus": 8, "bb": 5}
KINDS = Resources(TOTALS)
NODES = 0b1111
FIRST, INSTANTS = 100, 500  # from there on, more than all reservations together


class Instants:
    """What is free in each second."""

    def __init__(self):
        self.rows = [[*TOTALS.values(), NODES] for _ in range(INSTANTS)]

    def span(self, start, end):
        return self.rows[max(start - FIRST, 0) : max(end - FIRST, 0)]

    def fits(self, cpus, bb, start, end):
        return all(row[0] >= cpus and row[1] >= bb for row in self.span(start, end))

    def common(self, start, end):
        nodes = -1
        for row in self.span(start, end):
            nodes &= row[2]
        return nodes

    def earliest(self, cpus, bb, length, start, count, among):
        for when in range(start, FIRST + INSTANTS - length):
            nodes = self.common(when, when + length) & among
            if self.fits(cpus, bb, when, when + length) and nodes.bit_count() >= count:
                return when
        return None

    def reserve(self, start, end, cpus, bb, nodes):
        for row in self.span(start, end):
            row[0] -= cpus
            row[1] -= bb
            row[2] &= ~nodes

    def release(self, start, end, cpus, bb, nodes):
        for row in self.span(start, end):
            row[0] += cpus
            row[1] += bb
            row[2] |= nodes


def agree(profile, instants):
    """They say the same of each second, and the steps are as they must be."""
    steps = list(profile.steps())
    assert steps[0].start == FIRST
    assert steps[-1].end == FOREVER
    for step, following in pairwise(steps):
        assert step.start < step.end == following.start
        assert step[2:] != following[2:]
    for i in range(len(steps) - 1):
        assert profile.gains(i) == steps[i + 1].nodes & ~steps[i].nodes
    said = [
        [*KINDS.amounts(step.amounts).values(), step.nodes]
        for step in steps
        for _ in range(step.start, min(step.end, FIRST + INSTANTS))
    ]
    assert said == instants.rows
    assert all(0 <= row[0] <= TOTALS["cpus"] and 0 <= row[1] <= TOTALS["bb"] for row in said)


def need(cpus, bb):
    return KINDS.need({"cpus": cpus, "bb": bb})


jobs = st.tuples(
    st.integers(0, TOTALS["cpus"]),
    st.integers(0, TOTALS["bb"]),
    st.integers(1, 20),  # length
    st.integers(0, 30),  # asked from then on
    st.integers(0, 3),  # nodes
    st.integers(0, NODES),  # among these
)
many_jobs = st.lists(jobs, min_size=1, max_size=12)


def planned(profile, instants, drawn):
    """Each at its earliest start; the reservations."""
    made = []
    for cpus, bb, length, after, count, among in drawn:
        start = profile.earliest(need(cpus, bb), length, FIRST + after, count, among)
        assert start == instants.earliest(cpus, bb, length, FIRST + after, count, among)
        if start is None:
            continue
        nodes = nodeset.lowest(profile.common(start, start + length) & among, count)
        profile.reserve(start, start + length, need(cpus, bb), nodes)
        instants.reserve(start, start + length, cpus, bb, nodes)
        made.append((start, start + length, cpus, bb, nodes))
    return made


@given(many_jobs)
def test_each_job_gets_the_earliest_start_that_there_is(drawn):
    profile, instants = Profile(FIRST, KINDS, nodes=NODES), Instants()
    planned(profile, instants, drawn)
    agree(profile, instants)


@given(many_jobs, st.randoms(use_true_random=False))
def test_what_is_released_in_any_order_is_as_if_it_had_never_been_reserved(drawn, chance):
    profile, instants = Profile(FIRST, KINDS, nodes=NODES), Instants()
    made = planned(profile, instants, drawn)
    chance.shuffle(made)
    for start, end, cpus, bb, nodes in made:
        profile.release(start, end, need(cpus, bb), nodes)
        instants.release(start, end, cpus, bb, nodes)
        agree(profile, instants)
    assert len(profile) == 1


@given(many_jobs, st.integers(0, 12), many_jobs)
def test_copies_go_their_own_ways(drawn, taken, others):
    profile, instants = Profile(FIRST, KINDS, nodes=NODES), Instants()
    planned(profile, instants, drawn[:taken])
    copy, copied = profile.copy(), Instants()
    copied.rows = [row.copy() for row in instants.rows]
    planned(profile, instants, drawn[taken:])
    agree(copy, copied)
    planned(copy, copied, others)
    agree(copy, copied)
    agree(profile, instants)


@given(many_jobs, st.integers(0, 60), st.integers(1, 60))
def test_free_during_an_interval_is_what_is_free_in_each_of_its_seconds(drawn, start, length):
    profile, instants = Profile(FIRST, KINDS, nodes=NODES), Instants()
    planned(profile, instants, drawn)
    start += FIRST
    rows = instants.span(start, start + length)
    least = KINDS.amounts(profile.least(start, start + length))
    assert [*least.values()] == [min(row[0] for row in rows), min(row[1] for row in rows)]
    assert profile.common(start, start + length) == instants.common(start, start + length)


@given(many_jobs, st.integers(0, 8), st.integers(0, 5), st.integers(0, NODES))
def test_gaps_are_all_the_seconds_with_room_and_no_two_of_them_meet(drawn, cpus, bb, nodes):
    profile, instants = Profile(FIRST, KINDS, nodes=NODES), Instants()
    planned(profile, instants, drawn)
    gaps = list(profile.gaps(need(cpus, bb), nodes))
    assert all(end < start for (_, end), (start, _) in pairwise(gaps))
    inside = {t for start, end in gaps for t in range(start, min(end, FIRST + INSTANTS))}
    for second, row in enumerate(instants.rows, FIRST):
        fits = row[0] >= cpus and row[1] >= bb and not nodes & ~row[2]
        assert (second in inside) == fits


@given(
    st.lists(st.tuples(st.integers(-5, 40), st.integers(0, 2), st.integers(0, 1)), max_size=4),
    many_jobs,
)
def test_a_profile_made_of_running_jobs_is_one_with_their_reservations(running, drawn):
    """The same profile twice: of what is free now and comes back, and of what is all free and
    taken.
    """
    ends, profile, instants = [], Profile(FIRST, KINDS, nodes=NODES), Instants()
    for place, (left, cpus, bb) in enumerate(running):
        end, node = FIRST + max(left, 1), 1 << place
        ends.append((FIRST + left, need(cpus, bb), node))
        profile.reserve(FIRST, end, need(cpus, bb), node)
        instants.reserve(FIRST, end, cpus, bb, node)
    free, nodes = profile.least(FIRST, FIRST + 1), profile.common(FIRST, FIRST + 1)
    made = Profile.with_ends(FIRST, ends, KINDS, free, nodes)
    agree(made, instants)
    planned(made, instants, drawn)
    agree(made, instants)


@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 30), st.integers(0, NODES)), max_size=15),
    st.integers(1, 40),
    st.integers(0, NODES),
    st.lists(st.integers(0, 15), min_size=1, max_size=8),
)
def test_a_window_that_moves_on_sees_what_a_look_at_all_instants_sees(closed, length, nodes, moves):
    profile, instants = Profile(FIRST, KINDS, nodes=NODES), Instants()
    for begin, lasting, away in closed:
        profile.close(FIRST + begin, FIRST + begin + lasting, away)
        instants.reserve(FIRST + begin, FIRST + begin + lasting, 0, 0, away)
        agree(profile, instants)
        window, start = profile.window(length, nodes), FIRST
        for move in moves:
            start += move
            later = (
                second
                for second in range(start + 1, FIRST + INSTANTS)
                if instants.rows[second - FIRST][2] & ~instants.rows[second - 1 - FIRST][2] & nodes
            )
            common = instants.common(start, start + length) & nodes
            assert window.at(start) == (common, next(later, None))


amounts = st.integers(0, 2**40)
totals = st.dictionaries(st.sampled_from("abcd"), amounts, min_size=1)


@given(totals, st.data())
def test_packed_amounts_are_counted_as_if_each_were_for_itself(total, data):
    kinds = Resources(total)
    some = st.fixed_dictionaries({name: st.integers(0, most) for name, most in total.items()})
    one, other = data.draw(some), data.draw(some)
    needed = data.draw(st.fixed_dictionaries(dict.fromkeys(total, amounts)))
    free = kinds.free(one)
    assert kinds.amounts(free) == one
    assert kinds.fits(free, kinds.need(needed)) == all(one[n] >= needed[n] for n in total)
    least = kinds.least(free, kinds.free(other))
    assert least == kinds.free({n: min(one[n], other[n]) for n in total})
    if kinds.fits(free, kinds.need(needed)):
        left = kinds.amounts(free - kinds.need(needed))
        assert left == {n: one[n] - needed[n] for n in total}
