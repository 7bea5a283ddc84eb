"""The contract for plug-ins: what a policy has that says nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from controller_harness import Harness
from scheduling_harness import World, node, table_of, tables_of

from understudy.controller.jobs.start import Planning
from understudy.controller.scheduling.api import Note, Planner, SchedulingPolicy
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.select.linear import SelectLinear
from understudy.controller.scheduling.slurm.backfill import Backfill
from understudy.controller.scheduling.slurm.builtin import Builtin
from understudy.controller.scheduling.textbook.easy import Easy
from understudy.controller.scheduling.textbook.fcfs import Fcfs
from understudy.controller.tables.job import Job
from understudy.controller.tables.partition import Partition
from understudy.controller.tables.reservation import Reservation, ReservationTable
from understudy.controller.tables.topology import Tree
from understudy.model.conf_companions import SwitchConf
from understudy.protocol.messages import GetStatistics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from understudy.controller.tables.tables import Tables


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


class Kept(Job):
    """A job that nothing may change while `is_kept`."""

    is_kept: ClassVar[bool] = False

    def __setattr__(self, name: str, value: object) -> None:
        assert not Kept.is_kept, f"a policy changes a job's {name}"
        super().__setattr__(name, value)


class Watched(World):
    """A world in which a policy changes jobs through its planner alone."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        for name in (each for each in vars(Planner) if not each.startswith("_")):
            setattr(self, name, self._as_planner(getattr(self, name)))
        self._decide, self.policy.run = self.policy.run, self._watch

    def submit(self, **fields: Any) -> Job:
        job = super().submit(**fields)
        job.__class__ = Kept
        return job

    def preempt(self, job: Job, victims: Any, now: float) -> bool:
        return False

    def relent(self, job: Job, now: float) -> None:
        pass

    def _as_planner(self, method: Any) -> Any:
        def act(*arguments: Any) -> Any:
            was_kept, Kept.is_kept = Kept.is_kept, False
            try:
                return method(*arguments)
            finally:
                Kept.is_kept = was_kept

        return act

    def _watch(self, now: float) -> Iterator[float | None]:
        Kept.is_kept = True
        try:
            yield from self._decide(now)
        finally:
            Kept.is_kept = False


@pytest.mark.parametrize("policy", [Builtin, Backfill, Easy, Fcfs])
@pytest.mark.parametrize("selector", [SelectConsTres, SelectLinear])
def test_no_policy_and_no_selector_changes_a_job(policy: Any, selector: Any) -> None:
    world = Watched(varied(), policy, selector())
    world.policy.note(Note.START, 0.0)
    wishes: list[dict[str, Any]] = [
        {"features": "a", "prefer": "b"},
        {"switches": 1, "min_nodes": 3},
        {"partitions": ("whole", "main")},
        {"time_min_s": 60},
        {"reservation": "r"},
        {"min_nodes": 7},
        {"deadline": 900.0},
    ]
    for number in range(28):
        world.submit(
            at=20 * number,
            run_s=300 + 50 * (number % 5),
            limit_s=1000,
            cpus=1 + number % 9,
            **wishes[number % len(wishes)],
        )
    world.run(until=20_000)
    assert len(world.starts) > 5


def varied() -> Tables:
    """Eight nodes on two leaf switches, with two features, two partitions and reserved cores."""
    names = {f"n{i}": i for i in range(8)}
    tables = tables_of(
        table_of([node(i, cores=4, features="ab"[i // 4]) for i in range(8)]),
        [
            Partition("main", nodes=0xFF, is_default=True),
            Partition("whole", nodes=0xFF, oversubscribe="EXCLUSIVE", priority_tier=2),
        ],
    )
    tables.nodes.tree = Tree.of(
        [
            SwitchConf("s1", [*names][:4], [], 1, "", 0),
            SwitchConf("s2", [*names][4:], [], 1, "", 0),
            SwitchConf("top", [], ["s1", "s2"], 1, "", 0),
        ],
        names,
    )
    own = Reservation("r", 1, 0, 50_000, nodes=1, cores={0: 0b0011}, user_ids=(1000,))
    tables.reservations = ReservationTable({"r": own})
    return tables
