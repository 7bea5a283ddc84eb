"""A scheduler, selector or priority plug-in that fails ends a replay at once, in one process and in
many, with what was logged.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

UNDERSTUDY = str(Path(sys.executable).parent / "understudy")
JOB = "{0} {1} -1 100 1 -1 -1 1 200 -1 1 1 1 -1 1 -1 -1 -1\n"
PLUG_INS = """
from understudy.controller.priority.basic import BasicPriority
from understudy.controller.scheduling.slurm.backfill import Backfill
from understudy.controller.scheduling.select.cons_tres import SelectConsTres

class Policy(Backfill):
    def run(self, now):
        yield from super().run(now)
        if len(self.tables.jobs) > 1:
            raise ZeroDivisionError("of the plug-in")

class Selector(SelectConsTres):
    def select(self, ask, tables):
        if ask.job.job_id > 1:
            raise ZeroDivisionError("of the plug-in")
        return super().select(ask, tables)

class Priority(BasicPriority):
    def __init__(self, *arguments):
        super().__init__()
        self.given = 0

    def assign(self, job, now):
        self.given += 1
        if self.given > 1:
            raise ZeroDivisionError("of the plug-in")
        return super().assign(job, now)
"""
ENTRY_POINTS = """[understudy.schedulers]
faulty = faulty:Policy
[understudy.selectors]
faulty = faulty:Selector
[understudy.priorities]
faulty = faulty:Priority
"""


@pytest.mark.parametrize("arguments", [["--one-process"], []])
@pytest.mark.parametrize(
    "key", ["SchedulerType=sched", "SelectType=select", "PriorityType=priority"]
)
def test_a_plug_in_that_fails_ends_a_replay_with_its_last_lines_and_a_code(
    tmp_path, key, arguments
):
    site = tmp_path / "site"
    about = site / "faulty-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "faulty.py").write_text(PLUG_INS)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "tmp").mkdir()
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        f"ClusterName=c\nSlurmctldHost=localhost\n{key}/faulty\nNodeName=n[1-4]\n"
        "PartitionName=p Nodes=n[1-4] Default=YES\n"
    )
    trace = tmp_path / "three.swf"
    trace.write_text("".join(JOB.format(number, 1000 * number) for number in (1, 2, 3)))
    environment = {
        **os.environ,
        "PYTHONPATH": str(site),
        "TMPDIR": str(tmp_path / "tmp"),
        "UNDERSTUDY_REGISTRY": str(tmp_path / "registry"),
    }
    environment.pop("SLURM_CONF", None)
    command = [
        UNDERSTUDY,
        "replay",
        str(trace),
        "--conf",
        str(conf),
        "--out",
        str(tmp_path / "out"),
        *arguments,
    ]
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "the run ended early: controller" in ended.stderr
    assert "ZeroDivisionError: of the plug-in" in ended.stderr
