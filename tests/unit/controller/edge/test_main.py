"""A controller's process that cannot begin says so in a line.

Covers: controller/edge/main.
"""

import os
import subprocess
import sys

from understudy.tool.cluster.launch import prepare

CONF = "ClusterName=c\nSlurmctldHost=here\nNodeName=n1 CPUs=1\nPartitionName=p Nodes=ALL\n"


def test_a_state_that_cannot_be_read_is_told_in_a_line(tmp_path):
    (tmp_path / "slurm.conf").write_text(CONF)
    run_dir = tmp_path / "run"
    prepare(run_dir, tmp_path / "slurm.conf", tcp="never")
    (run_dir / "state" / "state.sqlite").write_bytes(b"no database" * 1000)
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "understudy.controller", "--run-dir", str(run_dir)],
        env={**os.environ, "UNDERSTUDY_REGISTRY": str(tmp_path / "registry")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    lines = [line for line in ended.stderr.splitlines() if "understudy.controller:" in line]
    assert len(lines) == 1
    assert "state.sqlite: file is not a database" in lines[0]
    assert "Traceback" not in ended.stderr
