"""Burst buffers with a site's lua script, at real Slurm and at ours: what is refused, what is
taken, what is shown, line by line the same.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from differential.real_slurm import RealSlurm, missing

BIN = Path(sys.executable).parent
CONF = """
ClusterName=c
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
BurstBufferType=burst_buffer/lua
NodeName=n[1-2] CPUs=2
PartitionName=p Nodes=ALL Default=YES MaxTime=60
"""
OF_SLURM = """
SchedulerParameters=batch_sched_delay=0
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
"""
FILES = {
    "burst_buffer.conf": "Flags=TeardownFailure\nStageInTimeout=60\n",
    "burst_buffer.lua": """
function ok() return slurm.SUCCESS end
slurm_bb_job_process, slurm_bb_setup, slurm_bb_data_in, slurm_bb_real_size = ok, ok, ok, ok
slurm_bb_paths, slurm_bb_pre_run, slurm_bb_post_run, slurm_bb_data_out = ok, ok, ok, ok
slurm_bb_test_data_in, slurm_bb_test_data_out, slurm_bb_job_teardown = ok, ok, ok
function slurm_bb_pools()
  return slurm.SUCCESS, '{"pools":[{"id":"fast","quantity":100,"granularity":10},' ..
    '{"id":"slow","quantity":1000,"granularity":1}]}'
end
function slurm_bb_get_status(...) return slurm.SUCCESS, table.concat({...}, "-") .. "\\n" end
""",
    "lines": "#BB_LUA pool=slow capacity=7\n#BB_LUA pool=fast capacity=3\n",
}
HELD = "sbatch -o /dev/null -H --wrap true"
# ../shared/policies.md, section 2, as far as the script of a site can show it
CHECKS = [
    "scontrol show burstbuffer",
    "scontrol show bbstat a b",
    "scontrol show dwstat a",
    *(
        f"{HELD} --bb='#BB_LUA{words}'"
        for words in (
            "",
            " pool=fast",
            " pool=fast capacity=15",
            " pool=fast capacity=100001",
            " pool=fast capacity=1K",
            " pool=slow capacity=1KB",
            " pool=slow capacity=1KiB",
            " pool=slow capacity=2N",
            " pool=slow capacity=2node",
            " pool=slow capacity=2nodes",
            " pool=slow capacity=x",
            " pool=slow capacity=-1",
            " pool=none capacity=1",
            " pool=fast capacity=0",
            " capacity=5",
            " capacity=5 pool=slow",
            " POOL=fast CAPACITY=5",
            " pool=fast capacity=1 more=2",
        )
    ),
    f"{HELD} --bb='pool=fast capacity=5'",
    f"{HELD} --bb='#DW jobdw capacity=1'",
    f"{HELD} --bb='#BB create_persistent name=x capacity=1'",
    f"{HELD} --bbf=lines",
    f"{HELD} --bbf=nosuch",
    f"{HELD} --bbf=lines --bb='#BB_LUA pool=fast capacity=1'",
    f"{HELD} --array=1-3 --bb='#BB_LUA pool=fast capacity=1'",
    # a pass gives each task a record, held as it is
    "for i in $(seq 90); do squeue -h -O JobID:8 | grep -q '^21 ' && break; sleep 0.3; done",
    "squeue -h -o '%i %T %r' -O JobArrayID:8,State:10,Reason:22,BurstBuffer:60,BurstBufferState:12",
    "scontrol show job | grep -i '^ *burst'",
    "scontrol show burstbuffer",
    "squeue -h -o %i | xargs -n1 scancel",
    "squeue -h -t all -O JobArrayID:8,State:12,Reason:22,BurstBufferState:12",
    "sbatch -W -o /dev/null --bb='#BB_LUA pool=fast capacity=15' --wrap true",
    "for i in $(seq 90); do squeue -h -t SO | grep -q . || break; sleep 0.3; done",
    "squeue -h -t CD -O JobID:8,State:12,Reason:22,BurstBufferState:12",
    "scontrol show burstbuffer",
]


def results(environment: dict[str, str], folder: Path) -> dict[str, str]:
    """What each line printed, and its exit code, as a user who is not root."""
    found = {}
    for number, line in enumerate(CHECKS):
        done = subprocess.run(
            ["su", "nobody", "-s", "/bin/sh", "-c", f"cd {folder}; {line}"],
            env=environment, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        found[f"{number}: {line}"] = f"{done.stdout}{done.stderr}exit code {done.returncode}"
    return found


@pytest.mark.skipif(bool(missing()), reason=missing() or "real Slurm is there")
def test_burst_buffers_of_a_lua_script_are_as_slurms():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for place in ("slurm", "ours"):
            (folder / place).mkdir()
        (folder / "lines").write_text(FILES["lines"])
        slurm = RealSlurm(folder / "slurm", CONF + OF_SLURM, files=FILES)
        with slurm.up():
            real = results({**os.environ, **slurm.environment}, folder)
        for file, text in (FILES | {"slurm.conf": f"{CONF}SlurmctldHost=localhost\n"}).items():
            (folder / "ours" / file).write_text(text)
        run = ("--run-dir", folder / "run")
        here = {**os.environ, "UNDERSTUDY_REGISTRY": str(folder / "registry")}
        conf = ("--conf", folder / "ours" / "slurm.conf", "--port", "0", "--executor", "real")
        subprocess.run([BIN / "understudy", "up", *run, *conf], env=here, check=True)
        try:
            path = f"{BIN}:{os.environ['PATH']}"
            ours = results(
                here | {"SLURM_CONF": str(folder / "run" / "slurm.conf"), "PATH": path}, folder
            )
        finally:
            subprocess.run([BIN / "understudy", "down", *run], env=here, check=True)
    assert ours == real
