"""Schedulers and selectors are found by the names that slurm.conf says."""

from importlib.metadata import EntryPoint

import pytest

from understudy.controller.scheduling import registry
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.select.linear import SelectLinear
from understudy.controller.scheduling.slurm.backfill import Backfill
from understudy.controller.scheduling.textbook.easy import Easy
from understudy.model.errors import ConfigError


def test_policies_are_found_by_the_names_of_slurm_conf():
    assert registry.scheduler("sched/backfill") is Backfill
    assert registry.scheduler("SCHED/Easy") is Easy
    assert registry.scheduler("easy") is Easy


def test_selectors_are_made_with_their_parameters():
    made = registry.selector("select/cons_tres", frozenset({"cr_core_memory", "CR_LLN"}))
    assert isinstance(made, SelectConsTres)
    assert made.consumes_memory
    assert made.least_loaded
    assert isinstance(registry.selector("select/cons_res"), SelectConsTres)
    assert isinstance(registry.selector("select/linear"), SelectLinear)


@pytest.mark.parametrize("value", ["sched/bckfill", "select/easy", ""])
def test_an_unknown_policy_is_refused_with_the_known_ones(value):
    with pytest.raises(
        ConfigError,
        match=r"SchedulerType=.* is not known; there are .*sched/backfill, " r".*sched/easy",
    ):
        registry.scheduler(value)


@pytest.mark.parametrize("value", ["json:JSONDecoder", "json:dumps"])
def test_what_is_no_policy_is_refused(value, monkeypatch):
    point = EntryPoint("odd", value, registry.SCHEDULERS)
    monkeypatch.setattr(registry, "offered", lambda _group: {"odd": point})
    with pytest.raises(ConfigError, match=f"{value} is no class derived from .*SchedulingPolicy"):
        registry.scheduler("sched/odd")


def test_parameters_are_split_at_commas():
    assert registry.policy_parameters("bf_interval=60,DEFER, bf_continue") == {
        "bf_interval": "60",
        "defer": "",
        "bf_continue": "",
    }
