"""The contract for plug-ins: what a policy has that says nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.controller_harness import Harness

from understudy.controller.jobs.start import Planning
from understudy.controller.scheduling.api import Note, SchedulingPolicy
from understudy.protocol.messages import GetStatistics

if TYPE_CHECKING:
    from collections.abc import Iterator


class Idle(SchedulingPolicy):
    """Has passes, and starts nobody."""

    name = "idle"

    def note(self, what: Note, now: float) -> None:
        del what, now

    def next_run(self) -> float | None:
        return None

    def run(self, now: float) -> Iterator[float | None]:
        self.main_cycles.ran(len(self.tables.pending), 0, now)
        yield None


@pytest.fixture
def h() -> Harness:
    harness = Harness()
    core = harness.core
    core.policy = Idle(core.tables, core.selector, Planning(core), {})
    return harness


def test_a_policy_of_three_methods_has_all_that_the_controller_asks_for(h: Harness) -> None:
    policy = h.core.policy
    h.submit()
    assert list(policy.run(h.time.now())) == [None]
    (row,) = h.query("jobs", "expected_start", "switches_wait_s")
    assert row[0] is None
    numbers = h.ask(GetStatistics()).numbers
    assert (numbers["main_count"], numbers["main_depth"], numbers["backfill_count"]) == (1, 1, 0)
    policy.reconfigure({"my_depth": "7"})
    assert policy.parameters == {"my_depth": "7"}
    assert (policy.exact_limits, policy.gives_way, policy.parameter_words) == (False, False, ())


@pytest.mark.parametrize(("said", "shown"), [(None, 90), (600, 90), (60, 60)])
def test_a_wait_for_few_switches_is_shown_no_longer_than_it_lasts(
    h: Harness, said: int | None, shown: int
) -> None:
    h.core.policy.reconfigure({"max_switch_wait": "90"})
    h.submit(switches=2, switches_wait_s=said)
    assert h.query("jobs", "switches", "switches_wait_s") == [[2, shown]]
