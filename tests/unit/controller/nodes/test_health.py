"""Whose health is looked at, and when. As Slurm 22.05.8 was seen to do."""

from __future__ import annotations

import pytest
from controller_harness import Harness, make_tables

from understudy.controller.nodes.health import start_checking
from understudy.controller.tables.settings import Settings
from understudy.model.states import NodeFlag
from understudy.protocol.messages import CheckHealth


class Site(Harness):
    """A cluster whose nodes are looked at every 30 s."""

    def __init__(self, states: str = "any", count: int = 4, **settings: object) -> None:
        known = {
            "min_job_age_s": 0,
            "emulates_jobs": False,
            "health_interval_s": 30,
            "health_states": frozenset(states.split(",")),
        }
        super().__init__(make_tables(count), settings=Settings(**(known | settings)))  # type: ignore[arg-type]
        start_checking(self.core)

    def asked(self) -> list[str]:
        """For which nodes it has been asked since the last time."""
        found = self.sent(CheckHealth)
        self.acknowledge()
        return [sent.message.nodes for sent in found if isinstance(sent.message, CheckHealth)]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ("any", "n[1-4]"),
        ("cycle", "n[1-4]"),
        ("idle", "n[3-4]"),
        ("alloc", "n1"),
        ("mixed", "n2"),
        ("cycle,idle,mixed", "n[2-4]"),
        ("alloc,any", "n[1-4]"),
    ],
)
def test_nodes_are_named_by_their_states(states: str, expected: str) -> None:
    site = Site(states)
    site.submit(required_nodes="n1", min_cpus_node=4)
    site.submit(required_nodes="n2")
    site.acknowledge()
    site.run(29)
    assert site.asked() == []
    site.run(1)
    assert site.asked() == [expected]
    site.run(30)
    assert site.asked() == [expected]


def test_who_does_not_respond_is_not_asked() -> None:
    site = Site()
    nodes = site.core.tables.nodes
    nodes.nodes[0].flags |= NodeFlag.NO_RESPOND
    nodes.set_availability(nodes.nodes[0])
    site.run(30)
    assert site.asked() == ["n[2-4]"]


def test_in_a_cycle_some_are_asked_every_second() -> None:
    site = Site("cycle", 25)
    site.run(30)
    assert site.asked() == ["n[1-10]"]
    site.run(1)
    assert site.asked() == ["n[11-20]"]
    site.run(1)
    assert site.asked() == ["n[21-25]"]
    site.run(29)
    assert site.asked() == []
    site.run(1)
    assert site.asked() == ["n[1-10]"]


def test_a_large_cluster_is_through_within_the_interval() -> None:
    site = Site("cycle", 600)
    site.run(30)
    assert site.asked() == ["n[1-20]"]


@pytest.mark.parametrize("settings", [{"health_interval_s": 0}, {"emulates_jobs": True}])
def test_without_a_program_or_real_jobs_nobody_is_asked(settings: dict[str, object]) -> None:
    site = Site(**settings)  # type: ignore[arg-type]
    site.run(100)
    assert site.asked() == []
