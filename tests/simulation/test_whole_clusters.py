"""Whole clusters in virtual time, under all that can happen to them. More seeds by hand:
tests/simulation/run.py.

Covers: clock/daemon, controller/edge/main.
"""

import signal

import pytest
from simulation.clusters import Simulation, SimulationFailed, simulate
from simulation.draw import TEXTBOOK, Draw

SEEDS = [seed for seed in range(1, 28) if seed != 18]  # which takes seconds


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_tables_are_right_and_all_jobs_come_to_an_end(seed):
    outcome = simulate(seed)
    assert outcome.events > 0


@pytest.mark.parametrize("seed", [6, 9, 11])
def test_the_same_seed_goes_the_same_way_to_the_last_message(seed):
    first = simulate(seed)
    assert first.draw.seems_real
    assert simulate(seed).log == first.log


def test_the_seeds_here_draw_every_scheduler_and_every_trouble():
    draws = [Draw.of(seed) for seed in SEEDS]
    assert {draw.scheduler for draw in draws} == {"builtin", "backfill", "plan", *TEXTBOOK}
    assert {draw.selector for draw in draws} == {"linear", "cons_tres"}
    assert {draw.node_daemons for draw in draws} == {1, 2, 3, 4}
    for trouble in (
        "meddling",
        "node_trouble",
        "faults",
        "cuts",
        "node_daemon_deaths",
        "controller_deaths",
        "link_latency",
        "arrays",
        "licenses",
    ):
        assert any(getattr(draw, trouble) for draw in draws), trouble
    assert {draw.seems_real for draw in draws} == {True, False}


def test_a_failure_names_its_seed_and_the_command_that_shows_it_again(monkeypatch):
    def look(self):
        assert self.events < 50, "the sky is green"

    monkeypatch.setattr(Simulation, "_check_histories", look)
    with pytest.raises(SimulationFailed, match="the sky is green") as caught:
        simulate(3)
    assert "seed 3:" in str(caught.value)
    assert "python tests/simulation/run.py --seed 3 --trace" in str(caught.value)


def test_tables_that_contradict_each_other_are_noticed_at_once(monkeypatch):
    def lose_a_cpu(self):
        if self.events == 60:
            self.controller.core.tables.nodes.free_cpus[0] -= 1

    monkeypatch.setattr(Simulation, "_check_histories", lose_a_cpu)
    with pytest.raises(SimulationFailed, match="free CPUs"):
        simulate(3)


def test_the_alarm_is_off_afterwards():
    simulate(5)
    assert signal.alarm(0) == 0
