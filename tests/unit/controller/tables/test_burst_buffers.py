"""Pools of burst-buffer space, and what is had of them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from scheduling_harness import make_job

from understudy.controller.tables.burst_buffers import (
    BufferState,
    BurstBuffers,
    Pool,
    Readiness,
)
from understudy.model.burst_buffers import read_datawarp, read_lua

GIB = 1 << 30


def lua(*lines, job_id=1, **fields):
    job = make_job(job_id, **fields)
    job.burst_buffer = read_lua(lines, ["a", "b"])
    return job


def warp(*lines, job_id=1, **fields):
    job = make_job(job_id, **fields)
    job.burst_buffer = read_datawarp(lines, ["a", "b"], "a")
    return job


def table(kind="lua"):
    return BurstBuffers(kind, {"a": Pool("a", 10 * GIB, GIB), "b": Pool("b", 10)})


def test_a_request_is_rounded_up_to_the_granularity_once():
    job = lua(
        "#BB_LUA pool=a capacity=1500MB", "#BB_LUA pool=b capacity=3", "#BB_LUA pool=a capacity=1"
    )
    assert table().wanted(job) == {"a": 2 * GIB, "b": 3}
    assert table().wanted(make_job()) == {}


def test_space_is_taken_and_given_back():
    buffers, job = table(), lua("#BB_LUA pool=a capacity=6G")
    other = lua("#BB_LUA pool=a capacity=5G", job_id=2)
    assert buffers.fits(job)
    buffers.take(job, BufferState.STAGING_IN, 5.0)
    assert (buffers.pools["a"].free, buffers.fits(other)) == (4 * GIB, False)
    buffers.give_back(job)
    assert (buffers.pools["a"].free, buffers.fits(other)) == (10 * GIB, True)


@pytest.mark.parametrize(
    ("state", "readiness"),
    [
        (BufferState.STAGING_IN, Readiness.STAGING),
        (BufferState.STAGED_IN, Readiness.READY),
        (BufferState.POST_RUN, Readiness.WAITING),
        (BufferState.TEARDOWN, Readiness.WAITING),
    ],
)
def test_a_job_may_start_when_its_buffer_is_staged_in(state, readiness):
    buffers, job = table(), lua("#BB_LUA pool=a capacity=6G")
    assert buffers.readiness(job) is Readiness.WAITING
    buffers.take(job, state, 0.0)
    assert buffers.readiness(job) is readiness
    assert buffers.readiness(make_job(7)) is Readiness.READY


def test_space_is_expected_when_the_first_in_the_way_ends():
    buffers, first = table(), lua("#BB_LUA pool=a capacity=6G")
    job = lua("#BB_LUA pool=a capacity=6G", job_id=2)
    assert buffers.expected(job, {}, 100) == 100
    buffers.take(first, BufferState.RUNNING, 0.0)
    assert buffers.expected(job, {1: first}, 100) == 3700
    first.end_time = 900
    assert buffers.expected(job, {1: first}, 100) == 900
    first.end_time = 9000
    assert buffers.expected(job, {1: first}, 100) == 3700
    first.end_time = 50
    assert buffers.expected(job, {1: first}, 100) == 101
    huge = lua("#BB_LUA pool=a capacity=60G", job_id=3)
    assert buffers.exceeds(huge)
    assert buffers.expected(huge, {}, 100) == 100 + 365 * 86400


def test_a_persistent_buffer_has_space_until_it_is_destroyed():
    buffers = table("datawarp")
    job = warp("#BB create_persistent name=kept capacity=4G")
    assert buffers.wanted(job) == {"a": 4 * GIB}
    buffers.take(job, BufferState.STAGING_IN, 0.0)
    assert buffers.pools["a"].used == 4 * GIB
    buffers.give_back(job)
    assert buffers.pools["a"].used == 4 * GIB
    again = warp("#BB create_persistent name=kept capacity=4G", job_id=2)
    assert buffers.wanted(again) == {}
    user = warp("#DW persistentdw name=kept", job_id=3)
    assert not buffers.fits(user)
    buffers.persistent["kept"].state = BufferState.ALLOCATED
    assert buffers.fits(user)
    buffers.take(user, BufferState.RUNNING, 0.0)
    gone = warp("#BB destroy_persistent name=kept", job_id=4)
    assert not buffers.fits(gone)
    buffers.give_back(user)
    assert buffers.fits(gone)
    buffers.destroy("kept")
    assert buffers.pools["a"].used == 0


def test_swap_is_for_each_node():
    job = warp("#DW swap 2", min_nodes=3)
    assert table("datawarp").wanted(job) == {"a": 6 * GIB}


def test_what_is_reserved_is_for_jobs_of_the_reservation():
    buffers = table()
    buffers.reserved = {"r": {"a": 8 * GIB}}
    outside = lua("#BB_LUA pool=a capacity=4G")
    inside = lua("#BB_LUA pool=a capacity=4G", job_id=2, reservation="r")
    assert (buffers.fits(outside), buffers.fits(inside)) == (False, True)
    buffers.take(inside, BufferState.RUNNING, 0.0)
    assert buffers.held_back("a", "") == 4 * GIB
    small = lua("#BB_LUA pool=a capacity=2G", job_id=3)
    assert buffers.fits(small)


def test_what_is_shown_of_a_job_without_a_buffer_says_whether_it_is_over():
    buffers, job = table(), lua("#BB_LUA pool=a capacity=4G")
    assert buffers.state_of(job) == "pending"
    assert buffers.state_of(make_job(9)) == ""
    over = SimpleNamespace(burst_buffer=job.burst_buffer, job_id=5, is_finished=True, restarts=0)
    assert buffers.state_of(over) == "complete"


def test_burst_buffers_that_are_off_are_false():
    assert not BurstBuffers()
    assert table()
