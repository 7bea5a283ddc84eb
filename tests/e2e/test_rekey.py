"""Keys are changed while real daemons, jobs and steps run.

Covers: tool/understudy/rekey, clock/daemon.
"""

import pytest
from real_cluster import RealCluster


@pytest.fixture
def cluster(tmp_path):
    cluster = RealCluster(tmp_path, noded=2)
    cluster.up()
    yield cluster
    cluster.down()


def test_jobs_and_steps_run_on_while_all_keys_are_changed(cluster):
    step = cluster.start(
        "srun", "-N4", "bash", "-c", "until [ -e go ]; do sleep 0.1; done; echo ok"
    )
    job = cluster.script("until [ -e go ]; do sleep 0.1; done", "-N1", "--overcommit")
    cluster.until(lambda: "R" in cluster.run("squeue", "-h", "-s", "-o", "%i R").stdout)
    folder = cluster.run_dir / "keys"
    keys = {path.name: path.read_bytes() for path in folder.glob("[!.]*")}
    result = cluster.run("understudy", "rekey", "--run-dir", cluster.run_dir, "--keep", 0)
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.removeprefix("New keys: ").strip().split(", ")) == [
        "agent", "controller", "noded0", "noded1",
    ]  # fmt: skip
    assert all((folder / name).read_bytes() != content for name, content in keys.items())
    # daemons have seen it, and let those go whose keys are none any more
    logs = (cluster.run_dir / "logs").glob
    cluster.until(lambda: any("has been changed" in log.read_text() for log in logs("*.log")))
    # one that knows its steps again though their credentials were signed with the former key
    cluster.kill_daemon("noded1")
    cluster.start_daemon("noded1")
    (cluster.home / "go").touch()
    assert cluster.ended(job) == "COMPLETED"
    out, errors = step.communicate(timeout=90)
    assert out.split() == ["ok"] * 4, errors
    assert step.returncode == 0
    assert cluster.run("srun", "-N4", "true").returncode == 0


def test_a_daemon_that_has_no_key_is_named(cluster):
    result = cluster.run("understudy", "rekey", "--run-dir", cluster.run_dir, "noded7")
    assert result.returncode == 1
    assert result.stderr.startswith("understudy rekey: error: 'noded7' has no key in ")


def test_who_no_longer_waits_leaves_no_old_key_behind(cluster):
    before = (cluster.run_dir / "keys" / "noded0").read_bytes()
    rekey = cluster.start("understudy", "rekey", "--run-dir", cluster.run_dir, "noded0")
    assert rekey.stdout.readline().startswith("New keys are in use; old ones are good for 120 s")
    rekey.terminate()
    assert rekey.communicate(timeout=30)[0] == "New keys: noded0\n"
    assert rekey.returncode == 0
    after = (cluster.run_dir / "keys" / "noded0").read_bytes()
    assert len(after) == len(before)
    assert after != before
