"""The configuration that a trace alone is replayed under."""

import pytest

from understudy.experiments.replay_conf import replay_conf


def settings(text):
    return dict(line.split("=", 1) for line in text.splitlines())


def test_a_machine_of_equal_nodes_with_one_partition_without_limits():
    text = replay_conf(100, 4, "easy", jobs=28_481)
    said = settings(text)
    assert said["NodeName"] == "n[1-100] CPUs=4 State=UNKNOWN"
    assert said["PartitionName"] == "debug Nodes=n[1-100] Default=YES MaxTime=INFINITE State=UP"
    assert (said["SchedulerType"], said["SelectType"], said["SelectTypeParameters"]) == (
        "sched/easy",
        "select/cons_tres",
        "CR_CPU",
    )
    assert (said["SlurmdTimeout"], said["FirstJobId"]) == ("0", "1")
    assert int(said["MaxJobCount"]) > 28_481
    assert "MinJobAge" not in said, (
        "what became of a job is told when it ends; a year of finished jobs would only "
        "fill the controller's memory"
    )


def test_one_node_and_scheduler_parameters():
    said = settings(
        replay_conf(
            1, 8, "sched/backfill", parameters="bf_interval=10,bf_window=60", memory_mb=4000
        )
    )
    assert said["NodeName"] == "n1 CPUs=8 RealMemory=4000 State=UNKNOWN"
    assert said["SchedulerType"] == "sched/backfill"
    assert said["SchedulerParameters"] == "bf_interval=10,bf_window=60"


def test_more_jobs_than_slurm_has_numbers_for_by_default_raise_the_greatest_number():
    assert int(settings(replay_conf(1, 1, "easy", jobs=2_000_000))["MaxJobId"]) > 2_000_000


@pytest.mark.parametrize(
    "change",
    [{"nodes": 0}, {"cpus": 0}, {"parameters": "a\nNodeName=x"}, {"scheduler": "easy # x"}],
)
def test_what_would_break_the_file_is_refused(change):
    with pytest.raises(ValueError, match=r"a machine needs|one line"):
        replay_conf(**{"nodes": 1, "cpus": 1, "scheduler": "easy", **change})


def test_licences_are_a_line_of_it():
    made = settings(replay_conf(4, 1, "easy-bb", licenses=[("bb1", 10), ("bb2", 20)]))
    assert made["Licenses"] == "bb1:10,bb2:20"
    assert "Licenses" not in settings(replay_conf(4, 1, "easy-bb"))


def test_more_nodes_than_a_range_can_have_are_several_ranges():
    assert "NodeName=n[1-65536,65537-70000] CPUs=1 " in replay_conf(70_000, 1, "easy", jobs=1)
