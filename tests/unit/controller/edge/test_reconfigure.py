"""scontrol reconfigure: what is taken over, what is refused; and what is said of
SchedulerParameters that are not taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from controller_harness import Harness
from scheduling_harness import make_job, table, tables_of

from understudy.controller.edge.build import build_tables
from understudy.controller.edge.reconfigure import take_over
from understudy.controller.jobs.gang import Gang, set_gang
from understudy.controller.rhythm import Rhythm
from understudy.controller.scheduling.api import Note
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.slurm.backfill import Backfill
from understudy.controller.tables.preemption import Preemption, Rules
from understudy.controller.tables.settings import Settings
from understudy.model.conf import load, read_text
from understudy.model.errors import SlurmError
from understudy.model.scheduler_parameters import complaints
from understudy.model.states import JobState

if TYPE_CHECKING:
    from pathlib import Path

PLAN = "SchedulerType=sched/plan\nSchedulerParameters=plan_alpha="
CONF = """ClusterName=c
SlurmctldHost=localhost
SchedulerType=sched/backfill
SelectType=select/cons_tres
NodeName=n[1-4] CPUs=4
PartitionName=main Nodes=n[1-4] Default=YES
"""


def changed(tmp_path: Path, old: str, new: str, conf: str = CONF) -> Harness:
    """A cluster that has read the file, and then a changed one."""
    path = tmp_path / "slurm.conf"
    path.write_text(conf)
    before = load(path)
    h = Harness(build_tables(before)[0])
    path.write_text(conf.replace(old, new))
    take_over(
        h.core, path, before, lambda config: Settings(complete_wait_s=config.count("CompleteWait"))
    )
    return h


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("sched/backfill", "sched/builtin", 2032),
        ("select/cons_tres", "select/linear", 2033),
        ("CPUs=4", "CPUs=8", 2049),
    ],
)
def test_what_needs_a_restart_is_refused_with_slurms_error(
    tmp_path: Path, old: str, new: str, code: int
) -> None:
    with pytest.raises(SlurmError) as raised:
        changed(tmp_path, old, new)
    assert raised.value.code == code


def test_words_with_which_the_policy_would_not_start_again_are_refused(tmp_path: Path) -> None:
    conf = CONF.replace("SchedulerType=sched/backfill", f"{PLAN}2")
    changed(tmp_path, "plan_alpha=2", "plan_alpha=3", conf)
    with pytest.raises(SlurmError, match="plan_alpha=x: not a whole number from 1 to 9"):
        changed(tmp_path, "plan_alpha=2", "plan_alpha=x", conf)
    with pytest.raises(SlurmError, match="further_resources=bb/zz: there is no such pool"):
        changed(tmp_path, "plan_alpha=2", "further_resources=bb/zz", conf)


def test_complete_wait_and_the_switches_are_taken_over(tmp_path: Path) -> None:
    (tmp_path / "topology.conf").write_text("SwitchName=s1 Nodes=n[1-4]\n")
    h = changed(
        tmp_path, "ClusterName=c\n", "ClusterName=c\nCompleteWait=7\nTopologyPlugin=topology/tree\n"
    )
    assert h.core.tables.complete_wait_s == 7
    assert h.core.tables.nodes.tree is not None


def test_a_policy_takes_over_parameters_and_preemption_and_keeps_its_phases() -> None:
    tables = tables_of(table(2))
    tables.rhythm = Rhythm(100.0)
    policy = Backfill(tables, SelectConsTres(), None, {})  # type: ignore[arg-type]
    tables.pending[1] = make_job(1)
    policy.note(Note.START, 100.0)
    before = policy.next_run()
    assert policy.backfill_trigger.next_run() == pytest.approx(130.57)
    tables.preemption = Preemption(
        tables.partitions,
        tables.running,
        Rules.read("preempt/partition_prio", "REQUEUE", None),
        {},
        lambda _job: None,
    )
    policy.reconfigure({"bf_interval": "5", "default_queue_depth": "7", "bf_max_job_test": "3"})
    assert policy.next_run() == before
    assert policy.backfill_trigger.next_run() == pytest.approx(130.57)
    assert (
        policy.trigger.depth,
        policy.backfill_trigger.interval_s,
        policy.backfill.max_tests,
    ) == (7, 5, 3)
    policy.queue.refresh(101.0)
    assert [record.job.job_id for record in policy.queue.records] == [1]


def test_time_slices_begin_and_end_with_the_preempt_mode() -> None:
    h = Harness()
    h.core.settings = Settings(preempt_mode="GANG", time_slice_s=12)
    set_gang(h.core)
    assert isinstance(h.core.gang, Gang)
    h.core.tables.partitions["main"].oversubscribe = "FORCE:2"
    jobs = [h.submit(required_nodes="n1", num_tasks=4, mem_per_cpu_mb=1) for _ in range(2)]
    h.acknowledge()
    assert jobs[1].state is JobState.SUSPENDED
    h.core.settings = Settings(preempt_mode="OFF")
    set_gang(h.core)
    assert h.core.gang is None
    assert jobs[1].is_running
    h.run(100)
    assert all(job.is_running for job in jobs)


def test_values_that_slurm_does_not_take_are_named_with_its_words() -> None:
    text = (
        "bf_interval=-5,sched_interval=x,default_queue_depth=-1,max_rpc_cnt=-3,bf_window=0,"
        "sched_min_interval=-1,bf_busy_nodes,nosuch=1,"
        "batch_sched_delay=-1,bf_resolution=5000,partition_job_depth=-1,"
        "sched_max_job_start=-1,bf_min_prio_reserve=x,bf_yield_interval=0,defer"
    )
    assert list(complaints(text)) == [
        "Invalid SchedulerParameters bf_interval: -5",
        "ignoring SchedulerParameters: default_queue_depth value of -1",
        "Invalid SchedulerParameters max_rpc_cnt: -3",
        "Invalid SchedulerParameters bf_window: 0",
        "Invalid sched_min_interval: -1",
        "Invalid batch_sched_delay: -1",
        "Invalid SchedulerParameters bf_resolution: 5000",
        "ignoring SchedulerParameters: partition_job_depth value of -1",
        "Invalid sched_max_job_start: -1",
        "Invalid SchedulerParameters bf_min_prio_reserve: 0",
        "Invalid backfill scheduler bf_yield_interval: 0",
    ]


def test_the_check_of_a_configuration_names_their_line() -> None:
    config = read_text(CONF + "SchedulerParameters=bf_window=0,bf_interval=20\n")
    found = [finding for finding in config.findings if finding.key == "SchedulerParameters"]
    assert [(finding.line, finding.message) for finding in found] == [
        (7, "Invalid SchedulerParameters bf_window: 0")
    ]
    assert not config.errors
