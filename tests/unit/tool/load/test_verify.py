"""What became of the jobs that a load was told of.

Covers: tool/load/verify, tool/load/target.
"""

import math
from pathlib import Path

import pytest

from understudy.tool.load.target import SLURM, Target
from understudy.tool.load.verify import Found, Watch, missing

CONFIG = """Configuration data as of 2022-01-01T00:00:00
AccountingStorageType   = accounting_storage/{storage}
MinJobAge               = {age} sec
"""


class Told(Target):
    """A cluster of real Slurm's commands, of which `said` holds what they print."""

    def __init__(self, **said):
        super().__init__(SLURM, Path("/nowhere"), {}, ["n1"])
        self.said = said

    def command(self, *words, timeout_s=0.0):
        said = self.said[words[0]]
        return said.pop(0) if isinstance(said, list) else said


def test_a_job_in_the_table_or_in_accounting_is_there():
    target = Told(squeue="3 3 PENDING\n7 5 RUNNING\n", sacct="4|4\n6|5_2\n")
    target.has_accounting = True
    assert missing(target, [3, 4, 5, 6, 7]) == Found(set(), set())


def test_one_that_nobody_knows_is_lost_unless_it_was_seen_to_end():
    target = Told(squeue="3 3 PENDING\n")
    assert missing(target, [3, 4, 5], ended={5}) == Found({4}, {5})


def test_who_watches_sees_jobs_end_and_arrays_when_all_tasks_have():
    target = Told(
        squeue=[
            "1 1 RUNNING\n2 2 COMPLETED\n4 3 COMPLETED\n3 3 PENDING\n",
            "1 1 COMPLETING\n4 3 CANCELLED\n5 3 TIMEOUT\n",
        ]
    )
    watch = Watch(target, 10.0)
    watch.look()
    assert watch.ended == {2, 4}
    watch.look()
    assert watch.ended == {2, 3, 4, 5}


def test_a_watch_is_kept_only_where_jobs_are_forgotten_meanwhile():
    target = Told(squeue=["1 1 COMPLETED\n"] * 1000)
    target.forgets_after_s = 0.003
    for has_accounting, sees in ((True, set()), (False, {1})):
        target.has_accounting = has_accounting
        watch = Watch(target, 10.0)
        watch.start()
        while sees - watch.ended:
            watch.join(0.001)
        watch.finish()
        assert watch.ended == sees
    target.forgets_after_s = 86_400.0
    watch = Watch(target, 10.0)
    watch.start()
    watch.finish()
    assert watch.ended == set()


@pytest.mark.parametrize(
    ("partitions", "default"),
    [("debug\nbatch*\n", "batch"), ("only\n", "only"), ("", "")],
)
def test_a_target_is_asked_what_it_is_like(partitions, default):
    config = CONFIG.format(storage="none", age=77)
    target = Told(scontrol=config, sinfo=[partitions, "0/64/0/64\n"])
    target.learn()
    assert (target.has_accounting, target.forgets_after_s) == (False, 77.0)
    assert (target.partition, target.cpus) == (default, 64)
    target = Told(scontrol=CONFIG.format(storage="slurmdbd", age=2), sinfo=["a*\n", "0/1/0/1\n"])
    target.learn()
    assert target.has_accounting
    target = Told(scontrol=CONFIG.format(storage="none", age=0), sinfo=["a*\n", "0/1/0/1\n"])
    target.learn()
    assert target.forgets_after_s == math.inf  # never: nobody has to watch
