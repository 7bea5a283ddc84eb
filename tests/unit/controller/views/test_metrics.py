"""The controller's figures for Prometheus beside what sinfo, squeue and sdiag tell of the same.

Covers: controller/views/metrics.
"""

from collections import Counter

import pytest
from controller_harness import OTHER, Harness, make_tables

from understudy.controller.views.metrics import SLICE, figures
from understudy.documents.states import node_state
from understudy.model.states import NodeState

# The beginnings by which exporters count the lines of `sinfo -o %T`.
WORDS = {
    "alloc": "alloc",
    "comp": "comp",
    "down": "down",
    "drain": "drain",
    "err": "err",
    "fail": "fail",
    "idle": "idle",
    "maint": "maint",
    "mix": "mix",
    "res": "resv",
}


def read(harness):
    """By name and labels."""
    return {
        (family.name, *labels): value
        for family in figures(harness.core)
        if family is not None
        for labels, value in family.samples.items()
    }


def test_nodes_are_counted_by_the_states_that_sinfo_shows():
    h = Harness(make_tables(8))
    h.submit(min_nodes=1, num_tasks=4, required_nodes="n1")
    h.submit(num_tasks=1, required_nodes="n2")
    h.run()
    h.update_nodes("n3", state="DRAIN", reason="test")
    h.update_nodes("n4", state="DOWN", reason="test")
    h.update_nodes("n5", state="FAIL", reason="test")
    h.core.tables.nodes.nodes[5].state = NodeState.ERROR
    rows = h.query("nodes", "state", "flags")
    shown = Counter(
        word
        for state, flags in rows
        for start, word in WORDS.items()
        if node_state(state, flags).startswith(start)
    )
    found = read(h)
    assert {word: found[f"slurm_nodes_{word}",] for word in WORDS.values()} == {
        word: shown[word] for word in WORDS.values()
    }
    assert shown == {"alloc": 1, "mix": 1, "drain": 1, "down": 1, "fail": 1, "err": 1, "idle": 2}
    assert found["slurm_nodes_total",] == 8


def test_cpus_are_those_of_the_nodes_of_the_whole_and_of_each_partition():
    h = Harness()
    h.submit(num_tasks=6)
    h.run()
    h.update_nodes("n4", state="DRAIN", reason="test")
    columns = ("alloc_cpus", "idle_cpus", "other_cpus", "cpus")
    shown = [sum(column) for column in zip(*h.query("nodes", *columns), strict=True)]
    assert shown == [6, 6, 4, 16]
    found, words = read(h), ("alloc", "idle", "other", "total")
    assert [found[f"slurm_cpus_{word}",] for word in words] == shown
    of_partition = ("allocated", "idle", "other", "total")
    assert [found[f"slurm_partition_cpus_{word}", "main"] for word in of_partition] == shown


def test_jobs_are_counted_by_state_and_by_whose_they_are():
    h = Harness()
    running = h.submit(num_tasks=16, account="physics")
    h.submit(account="physics", array="1-7")
    h.submit(sender=OTHER, dependency=f"afterok:{running.job_id}")
    h.run()
    found = read(h)
    assert found["slurm_queue_running",] == 1
    assert found["slurm_queue_pending",] == 8
    assert found["slurm_queue_pending_dependency",] == 1
    assert found["slurm_account_cpus_running", "physics"] == 16
    assert found["slurm_account_jobs_pending", "physics"] == 7
    other = h.core.users.user_name(OTHER.user_id)
    assert found["slurm_user_jobs_pending", other] == 1
    assert ("slurm_user_jobs_running", other) not in found
    assert found["slurm_partition_jobs_pending", "main"] == 8


def test_a_job_that_is_cleaned_up_is_completing():
    h = Harness()
    job = h.submit()
    h.run()
    h.finish(job)
    found = read(h)
    assert (found["slurm_queue_completing",], found["slurm_queue_completed",]) == (1, 0)
    h.epilog(job)
    assert read(h)["slurm_queue_completing",] == 0


def test_requests_and_cycles_are_those_of_sdiag():
    h = Harness()
    h.submit()
    h.core.counters.requests["REQUEST_PING", 1008] = [2, 30]
    h.core.policy.backfill_cycles.ran(10, 4, h.time.now())
    h.core.policy.backfill_cycles.took(250)
    h.core.policy.backfill_cycles.reset()
    h.core.policy.backfill_cycles.ran(20, 3, h.time.now())
    h.core.policy.backfill_cycles.took(50)
    h.core.counters.backed_off = 7
    found = read(h)
    assert found["slurm_rpc_stats", "REQUEST_PING"] == 2
    assert found["slurm_rpc_stats_avg_time", "REQUEST_PING"] == 15
    assert found["slurm_rpc_stats_total_time", "REQUEST_PING"] == 30
    assert found["slurm_scheduler_backfilled_jobs_since_start_total",] == 7
    assert found["slurm_scheduler_backfilled_jobs_since_cycle_total",] == 3
    assert found["slurm_scheduler_backfill_last_cycle",] == 50
    assert found["slurm_scheduler_backfill_depth_mean",] == 20
    assert found["understudy_jobs_submitted_total",] == h.core.counters.submitted
    assert found["understudy_requests_backed_off_total",] == 7


@pytest.mark.parametrize("jobs", [0, 1, SLICE, SLICE + 1, 3 * SLICE])
def test_others_have_the_loop_between_slices_of_jobs(jobs):
    h = Harness()
    one = h.submit(num_tasks=99)
    empty = sum(family is None for family in figures(h.core))
    h.core.tables.jobs.clear()
    h.core.tables.jobs.update(dict.fromkeys(range(jobs), one))
    pauses = sum(family is None for family in figures(h.core))
    assert pauses - empty == -(-jobs // SLICE) - 1


def test_a_job_that_goes_between_two_slices_does_no_harm():
    h = Harness()
    one = h.submit(num_tasks=99)
    h.core.tables.jobs.update(dict.fromkeys(range(100, 100 + 2 * SLICE), one))
    for family in figures(h.core):
        if family is None and len(h.core.tables.jobs) > 1:
            h.core.tables.jobs.popitem()
