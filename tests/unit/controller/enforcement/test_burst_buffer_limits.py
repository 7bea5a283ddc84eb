"""Space of burst buffers as a trackable resource: limits, billing, priorities and what is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from enforcement_harness import House
from scheduling_harness import make_job, node, table_of, tables_of

from understudy.controller.edge.reactions import connect
from understudy.controller.priority.accounts import AccountsOf
from understudy.controller.priority.multifactor import MultifactorPriority
from understudy.controller.priority.options import PriorityOptions
from understudy.controller.priority.tres import billing, billing_weights, tres_of
from understudy.controller.tables.burst_buffers import BurstBuffers, Pool
from understudy.model.associations import AssociationState
from understudy.model.burst_buffers import read_lua
from understudy.model.tres import amount_text, parse

GIB = 1 << 30
LINE = {"extra": {"bb": "#BB_LUA pool=fast capacity=1500MB"}}


def pools() -> BurstBuffers:
    return BurstBuffers("lua", {"fast": Pool("fast", 100 * GIB, GIB)})


@pytest.fixture
def house() -> House:
    made = House(tracked_tres=("bb/lua",))
    core = made.core
    core.tables.burst_buffers = pools()
    connect(core)
    core.run_stage = lambda _stage, done: core.at(made.time.now(), done, "")
    return made


def test_limits_count_mebibytes_of_requests(house: House) -> None:
    house.set_association(4, grp_tres={"bb/lua": 3000})
    first, second = (house.submit(**LINE) for _ in range(2))
    house.run(20)
    house.acknowledge()
    third = house.submit(**LINE)
    house.run(20)
    assert [job.is_running for job in (first, second, third)] == [True, True, False]
    assert third.reason == "AssocGrpBB"
    assert house.core.tables.burst_buffers.pools["fast"].used == 4 * GIB  # it keeps none for itself
    house.complete(first)
    house.run(120)
    assert third.is_running


def test_a_qos_bounds_what_a_job_may_ask_for(house: House) -> None:
    house.set_qos("q", max_tres_per_job={"bb/lua": 1000})
    job = house.submit(qos="q", **LINE)
    house.run(60)
    assert job.reason == "QOSMaxBBPerJob"
    assert not house.core.tables.burst_buffers.buffers


def test_it_is_shown_where_accounting_tracks_it(house: House) -> None:
    job = house.submit(**LINE)
    [[text]] = house.query("jobs", "tres_requested", job_id=[job.job_id])
    assert text.endswith(",bb/lua=1430M")
    house.core.settings = replace(house.core.settings, tracked_tres=())
    [[text]] = house.query("jobs", "tres_requested", job_id=[job.job_id])
    assert "bb/" not in text


def test_a_job_bills_by_the_mebibyte() -> None:
    job = make_job()
    job.burst_buffer = read_lua(["#BB_LUA pool=fast capacity=2G"], ["fast"])
    weights = billing_weights("CPU=1,BB/lua=0.5G")
    assert billing(tres_of(job), weights) == 2.0  # a CPU, and half of two GiB
    assert billing(tres_of(job), weights, takes_largest=True) == 2.0


def test_its_part_of_all_there_is_counts_for_the_priority() -> None:
    tables = tables_of(table_of([node(0)]))
    tables.burst_buffers = pools()
    options = PriorityOptions(tres_weights={"bb/lua": 1000.0})
    accounts = AccountsOf(AssociationState, str)
    priorities = MultifactorPriority(tables, options, accounts, 0.0)
    job = make_job()
    job.burst_buffer = read_lua(["#BB_LUA pool=fast capacity=25G"], ["fast"])
    assert (priorities.assign(job, 0.0), priorities.assign(make_job(2), 0.0)) == (250, 1)


def test_amounts_are_written_and_read_as_memory_is() -> None:
    assert amount_text("bb/lua", 2048) == "2G"
    assert parse("bb/lua=2G", {"bb/lua": 1001}) == {"bb/lua": 2048}
