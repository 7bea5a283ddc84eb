"""Whose request is next."""

from __future__ import annotations

from understudy.controller.edge.turns import Turns


def taken(turns: Turns[str]) -> list[str]:
    found = []
    while (request := turns.take()) is not None:
        found.append(request)
    return found


def test_users_take_turns_and_each_users_requests_keep_their_order() -> None:
    turns: Turns[str] = Turns()
    for party, request in [(1, "a1"), (1, "a2"), (1, "a3"), (2, "b1"), (3, "c1"), (2, "b2")]:
        turns.add(party, request)
    assert turns.waiting == 6
    assert taken(turns) == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert turns.waiting == 0


def test_who_comes_later_waits_for_one_of_each_other() -> None:
    turns: Turns[str] = Turns()
    for number in range(100):
        turns.add(1, f"a{number}")
    assert turns.take() == "a0"
    turns.add(2, "b")
    assert [turns.take(), turns.take()] == ["a1", "b"]


def test_who_has_a_request_in_hand_is_passed_over() -> None:
    turns: Turns[str] = Turns()
    turns.add(1, "a")
    turns.begin(1)
    assert turns.take() is None
    assert not turns.may_go(1)
    assert turns.may_go(2), "only one who is passed over waits"
    turns.add(2, "b")
    assert not turns.may_go(3)
    assert turns.take() == "b"
    turns.end(1)
    assert turns.length(1) == 1
    assert taken(turns) == ["a"]
    assert turns.may_go(1)


def test_the_next_of_a_party_may_be_taken_out_of_its_turn() -> None:
    turns: Turns[str] = Turns()
    for request in ("a1", "a1", "a2"):
        turns.add(1, request)
    assert turns.take_if(2, lambda _: True) is None
    assert turns.take_if(1, "a2".__eq__) is None
    assert turns.take_if(1, "a1".__eq__) == "a1"
    assert turns.waiting == 2
    assert taken(turns) == ["a1", "a2"]
    turns.add(1, "a3")
    assert turns.take_if(1, "a3".__eq__) == "a3"
    assert turns.may_go(2)
