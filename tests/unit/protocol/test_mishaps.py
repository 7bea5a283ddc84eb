"""What befalls a hop follows from the seed."""

from itertools import pairwise

import pytest

from understudy.protocol.mishaps import SAFE, Mishaps

LINKS = [(f"n{i}", f"n{j}") for i in range(40) for j in range(40)]


def test_nothing_befalls_where_nothing_is_asked_for():
    assert Mishaps(seed=3).passage("a", "b", 1) == SAFE
    assert Mishaps(seed=3).hands_on("a", 1, 8) is None


def test_the_same_seed_gives_the_same_and_another_one_other_mishaps():
    first, again, other = (
        [Mishaps(seed, 0.1, 0.5, 0.5).passage(a, b, 1) for a, b in LINKS] for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_a_link_keeps_its_latency_and_links_differ():
    mishaps = Mishaps(1, latency_s=0.1)
    assert len({mishaps.passage("a", "b", number).delay_s for number in range(9)}) == 1
    delays = sorted(mishaps.passage(a, b, 1).delay_s for a, b in LINKS)
    assert 0.05 <= delays[0] < delays[-1] < 0.15
    assert all(earlier < later for earlier, later in pairwise(delays))
    assert sum(delays) / len(delays) == pytest.approx(0.1, rel=0.03)


@pytest.mark.parametrize("loss", [0.0, 0.25, 1.0])
def test_messages_and_answers_are_lost_as_often_as_asked_for(loss):
    passages = [Mishaps(1, 0.001, loss).passage(a, b, 1) for a, b in LINKS]
    lost = [passage.is_lost for passage in passages]
    answers = [passage.answer_is_lost for passage in passages]
    for each in (lost, answers):
        assert sum(each) / len(each) == pytest.approx(loss, abs=0.04)
    if 0 < loss < 1:
        assert lost != answers


def test_a_head_that_dies_has_handed_the_message_to_some_of_those_below():
    mishaps = Mishaps(1, deaths=0.5)
    counts = [mishaps.hands_on("n1", number, 4) for number in range(2000)]
    died = [count for count in counts if count is not None]
    assert len(died) / len(counts) == pytest.approx(0.5, abs=0.04)
    assert set(died) == {0, 1, 2, 3}
