"""The same load at real Slurm and at ours, on one page.

Covers: tool/load/target, tool/load/verify.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from differential.real_slurm import RealSlurm, missing

BIN = Path(sys.executable).parent
CONF = """
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
NodeName=n[1-2] CPUs=8 RealMemory=1000 State=UNKNOWN
PartitionName=batch Nodes=n[1-2] Default=YES State=UP
"""


@pytest.mark.skipif(bool(missing()), reason=missing() or "real Slurm is there")
def test_a_load_at_real_slurm_is_beside_ours(tmp_path):
    (tmp_path / "slurm").mkdir()
    slurm = RealSlurm(tmp_path / "slurm", CONF)
    environment = {**os.environ, "UNDERSTUDY_REGISTRY": str(tmp_path / "registry")}

    def load(*words):
        done = subprocess.run(
            [BIN / "understudy", "load", "--kind", "submissions", "--rate", "3", *words],
            env=environment, capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr

    with slurm.up():
        conf = slurm.environment["SLURM_CONF"]
        load("--duration", "3", "--driver", "slurm", "--conf", conf, "--out", tmp_path / "a")
    told = json.loads((tmp_path / "a" / "load.json").read_text())
    assert told["cluster"].startswith("Slurm 2")
    assert told["acknowledged"] == told["streams"]["sbatch"]["answered"] > 0
    assert told["lost"] == 0
    assert told["daemons"]["slurmctld"]["mb_peak"] > 0
    ours = ("--duration", "3", "--nodes", "2", "--driver", "commands", "--executor", "real")
    load(*ours, "--beside", tmp_path / "a", "--out", tmp_path / "b")
    page = (tmp_path / "b" / "load.html").read_text()
    assert f"sbatch: {told['cluster']}" in page
    assert "sbatch: understudy, real jobs, real time" in page
