"""Locks under arbitrary sequences of requests: nobody conflicts, nobody is forgotten, nobody is
overtaken by one that conflicts with it.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from understudy.controller.core.locks import Locks, Mode, Needs

needs = st.builds(Needs, *[st.sampled_from(list(Mode))] * 4)


@given(st.lists(st.tuples(needs, st.integers(0, 3))))
def test_holders_never_conflict_and_all_are_served_in_an_order_that_respects_conflicts(
    steps: list[tuple[Needs, int]],
) -> None:
    locks = Locks()
    holding: list[tuple[int, Needs]] = []
    served: list[int] = []
    asked: dict[int, Needs] = {}

    def granted(number: int, wanted: Needs) -> None:
        assert not any(wanted.conflicts_with(other) for _, other in holding)
        for earlier, theirs in asked.items():
            assert not (
                earlier < number and earlier not in served and theirs.conflicts_with(wanted)
            ), "overtaken"
        holding.append((number, wanted))
        served.append(number)

    for number, (wanted, drops) in enumerate(steps):
        asked[number] = wanted
        locks.when_available(wanted, lambda number=number, wanted=wanted: granted(number, wanted))
        for _ in range(min(drops, len(holding))):
            locks.drop(holding.pop(0)[1])
    while holding:
        locks.drop(holding.pop(0)[1])
    assert sorted(served) == list(range(len(steps)))
    statistics = locks.statistics()
    assert statistics.waiting == 0
    assert statistics.granted_at_once + statistics.granted_after_waiting == len(steps)


@given(needs, needs)
def test_conflict_is_symmetric_and_means_that_one_of_both_writes(one: Needs, other: Needs) -> None:
    assert one.conflicts_with(other) == other.conflicts_with(one)
    assert one.conflicts_with(other) == any(
        {a, b} >= {Mode.WRITE, max(a, b)} and min(a, b) > 0 for a, b in zip(one, other, strict=True)
    )
