"""The pytest plug-in in test runs of its own.

Covers: api/pytest_plugin.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from understudy.tool.cluster.processes import recorded


@pytest.fixture
def run(tmp_path):
    """Run pytest on a file with this text; the result. `wait=False`: the process."""

    def run(text, *options, ini="", wait=True, name="test_it.py"):
        (tmp_path / name).write_text(text)
        (tmp_path / "pytest.ini").write_text(f"[pytest]\n{ini}\n")
        # warnings of the plug-in are errors, too
        command = [sys.executable, "-W", "error", "-m", "pytest", "-p", "no:cacheprovider"]
        environment = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("SLURM", "PYTEST")) and key != "UNDERSTUDY_REGISTRY"
        }
        process = subprocess.Popen(
            [*command, "-p", "no:asyncio", "-rA", *options, name],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        if not wait:
            return process
        said, _ = process.communicate(timeout=400)
        return process.returncode, said

    return run


def test_tests_share_a_cluster_whose_commands_are_theirs_alone(run):
    code, said = run(
        """
import os, shutil, subprocess
import pytest

seen = []

@pytest.fixture(scope="module")
def job(slurm_cluster):
    return slurm_cluster.submit("echo out > $SLURM_SUBMIT_DIR/made")

def test_before():
    assert "SLURM_CONF" not in os.environ

def test_commands(slurm_cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen.append(slurm_cluster)
    assert shutil.which("sbatch") == f"{slurm_cluster.run_dir}/bin/sbatch"
    assert os.environ["SLURM_CONF"] == str(slurm_cluster.conf)
    subprocess.run(["sbatch", "--wait", "--wrap", "echo hello"], check=True)
    assert (tmp_path / "slurm-1.out").read_text() == "hello\\n"

def test_between():
    assert "SLURM_CONF" not in os.environ
    assert shutil.which("sbatch") is None or "understudy-" not in shutil.which("sbatch")

def test_the_same(slurm_cluster):
    assert slurm_cluster is seen[0]

def test_by_another_fixture(job):
    assert "slurm.conf" in os.environ["SLURM_CONF"]
    assert seen[0].wait(job).state == "COMPLETED"
"""
    )
    assert code == 0, said
    assert "5 passed" in said


def test_a_marker_asks_for_another_cluster_and_the_ini_file_for_another_scope(run):
    code, said = run(
        """
import subprocess
import pytest

seen = []

@pytest.mark.slurm_cluster(nodes=2, time="virtual", executor="emulated")
def test_virtual(slurm_cluster):
    seen.append(slurm_cluster.run_dir)
    assert len(slurm_cluster.nodes()) == 2
    assert slurm_cluster.wait(slurm_cluster.submit("sleep 86400")).state == "COMPLETED"

def test_plain(slurm_cluster):
    assert slurm_cluster.run_dir not in seen
    assert len(slurm_cluster.nodes()) == 1
    assert not seen[0].exists()
""",
        "--slurm-nodes=1",
        ini="slurm_scope = function\nslurm_executor = emulated",
    )
    assert code == 0, said
    assert "2 passed" in said
    assert "test_virtual" in said


def test_a_failure_shows_the_ends_of_the_daemons_logs(run):
    code, said = run(
        """
def test_fails(slurm_cluster):
    slurm_cluster.submit("true")
    assert slurm_cluster.jobs() == []
"""
    )
    assert code == 1, said
    assert "slurm_cluster: controller.log" in said


@pytest.mark.parametrize(
    ("options", "ini", "text", "why"),
    [
        (["--slurm-conf=none.conf"], "", "", "none.conf"),
        ([], "slurm_scope = century", "", "slurm_scope century: one of function"),
        ([], "slurm_nodes = few", "", "slurm_nodes few: a number"),
        ([], "slurm_time = fast", "", "expected real, virtual, or scaled:N"),
        (
            *([], "", "import pytest\npytestmark = pytest.mark.slurm_cluster(node=3)\n"),
            "it takes conf, executor, nodes, scope, settings, time, by name",
        ),
        (
            *([], "", "import pytest\npytestmark = pytest.mark.slurm_cluster(settings='A=1')\n"),
            "settings='A=1': a list is expected",
        ),
    ],
)
def test_what_cannot_be_is_said(run, options, ini, text, why):
    code, said = run(text + "def test_it(slurm_cluster): pass\n", *options, ini=ini)
    assert code != 0
    assert why in said, said
    assert "INTERNALERROR" not in said


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_cluster_is_gone_if_the_run_is_killed(run, tmp_path, number):
    process = run(
        """
import time
def test_it(slurm_cluster):
    with open("where", "w") as file:
        file.write(str(slurm_cluster.run_dir) + "\\n")
    time.sleep(600)
""",
        wait=False,
    )
    deadline = time.monotonic() + 120
    where = tmp_path / "where"
    while not (where.exists() and where.read_text().endswith("\n")):
        assert time.monotonic() < deadline, process.communicate()
        time.sleep(0.05)
    run_dir = Path(where.read_text().strip())
    daemons = recorded(run_dir)
    assert len(daemons) == 3
    process.send_signal(number)
    process.communicate(timeout=60)
    while run_dir.exists() or any(daemon.is_running for daemon in daemons):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_test_runs_side_by_side_have_clusters_of_their_own(run, tmp_path):
    """As the workers of pytest-xdist are: processes that begin together."""
    text = """
import subprocess
def test_it(slurm_cluster):
    assert slurm_cluster.submit("true") == 1
    assert subprocess.run(["squeue", "-h"], check=True).returncode == 0
"""
    both = [run(text, wait=False, name=f"test_{name}.py") for name in ("one", "other")]
    said = [process.communicate(timeout=400)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said


def test_a_run_that_does_not_use_it_imports_nothing_of_the_house(run):
    code, said = run(
        """
import sys
def test_it():
    found = {name for name in sys.modules if name.startswith("understudy")}
    assert found == {"understudy", "understudy.api", "understudy.api.pytest_plugin"}
"""
    )
    assert code == 0, said
