"""A cluster that nobody starts as a whole: each daemon by `understudy daemon`, speaking to the
others by TCP.

Covers: tool/understudy/hosts_commands.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ports import reserved

BIN = Path(sys.executable).parent
CONF = """
ClusterName=apart
SlurmctldHost=127.0.0.1
SlurmctldPort={port}
AuthInfo=socket={run}/agent.sock
NodeName=n[1-6] CPUs=2
PartitionName=p Nodes=ALL Default=YES
"""


@pytest.fixture
def ports():
    with reserved(4) as found:
        yield found


def test_daemons_that_are_started_one_by_one_are_a_cluster(tmp_path, ports):
    port, clock, first, second = ports
    run_dir, site = tmp_path / "run", tmp_path / "site"
    (tmp_path / "slurm.conf").write_text(CONF.format(port=port, run=run_dir))
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("SLURM")
    }
    environment |= {
        "SLURM_CONF": str(run_dir / "slurm.conf"),
        "UNDERSTUDY_REGISTRY": str(tmp_path / "registry"),
    }

    def run(*words):
        return subprocess.run(
            [str(BIN / words[0]), *map(str, words[1:])],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    prepared = run(
        *(
            "understudy",
            "prepare",
            "--conf",
            tmp_path / "slurm.conf",
            "--site",
            site,
            "--keys",
            tmp_path / "keys",
            "--run-dir",
            run_dir,
            "--time",
            "scaled:1",
        ),
        *(
            "--controller",
            "127.0.0.1",
            "--clock",
            f"127.0.0.1:{clock}",
            "--noded",
            f"127.0.0.1:{first}",
            "--noded",
            f"127.0.0.1:{second}",
        ),
    )
    assert prepared.returncode == 0, prepared.stderr
    with (tmp_path / "log").open("wb") as log:
        daemons = [
            subprocess.Popen(
                [
                    str(BIN / "understudy"),
                    "daemon",
                    name,
                    "--site",
                    str(site),
                    "--keys",
                    str(tmp_path / "keys" / name),
                    "--run-dir",
                    str(run_dir),
                ],
                env=environment,
                stderr=log,
                stdout=log,
            )
            for name in ("noded1", "controller", "agent", "clock", "noded0")
        ]
    try:
        deadline = time.monotonic() + 90
        while run("sinfo", "-h", "-t", "idle", "-o", "%D").stdout.strip() != "6":
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.1)
        result = run("srun", "-N6", "hostname")
        assert sorted(result.stdout.split()) == ["n1", "n2", "n3", "n4", "n5", "n6"], result.stderr
        assert run("understudy", "clock", "status").returncode == 0
        changed = run(
            "understudy", "rekey", "--site", site, "--keys", tmp_path / "keys", "--keep", 0
        )
        assert changed.returncode == 0, changed.stderr
        result = run("srun", "-N6", "hostname")
        assert sorted(result.stdout.split()) == ["n1", "n2", "n3", "n4", "n5", "n6"], result.stderr
    finally:
        # again and again: no signal that comes while a daemon ends may kill it
        deadline = time.monotonic() + 60
        alive = daemons
        while alive and time.monotonic() < deadline:
            for daemon in alive:
                daemon.terminate()
            alive = [daemon for daemon in alive if daemon.poll() is None]
            time.sleep(0.001)
        for daemon in daemons:
            assert daemon.wait(1) == 0, (daemon.args, (tmp_path / "log").read_text())
    assert "Traceback" not in (tmp_path / "log").read_text()
