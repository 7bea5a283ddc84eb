"""The wheel in an empty environment: what a user gets who types `pip install understudy`.

It is built of this tree, and installed from pip's index with all that it requires; where pip can
reach none, the test says so and is skipped.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from understudy.experiments.run_folder import NO_PARQUET

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.name for path in (ROOT / "src" / "understudy").iterdir() if path.is_symlink())
SMALL = ROOT / "examples" / "small.conf"
# measured: 170 MB, with bytecode (docs/adr/0044)
MOST_MB = 200
TRACE = "; MaxNodes: 2\n; MaxProcs: 2\n" + "".join(
    f"{number} {number} -1 60 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1\n" for number in (1, 2, 3)
)


def pip(python, *words, timeout_s=900):
    return subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of the commands of an environment that has the wheel and what it requires."""
    place = tmp_path_factory.mktemp("wheel")
    python = place / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True, timeout=300)
    probe = pip(python, "download", "--quiet", "--no-deps", "--dest", place / "probe", "mdurl")
    if probe.returncode:
        pytest.skip(f"pip reaches no index: {probe.stderr.strip().splitlines()[-1]}")
    source = place / "source"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, source / folder, ignore=ignored)
    shutil.copytree(ROOT / "src", source / "src", symlinks=True, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", place, source]
    built = subprocess.run(build, capture_output=True, text=True, check=False, timeout=300)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = place.glob("understudy-*.whl")
    done = pip(python, "install", "--quiet", wheel)
    assert done.returncode == 0, done.stderr
    return python.parent


@pytest.fixture
def run(installed, tmp_path):
    """Type a command, as a user does who has activated the environment."""

    def run(*words, code=0):
        done = subprocess.run(
            [shutil.which(words[0], path=str(installed)), *map(str, words[1:])],
            cwd=tmp_path,
            env={
                "PATH": f"{installed}:/usr/bin:/bin",
                "HOME": str(tmp_path),
                "UNDERSTUDY_REGISTRY": str(tmp_path / "registry"),
            },
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


def test_a_cluster_a_job_and_a_replay_need_nothing_else(run, tmp_path):
    try:
        up = run("understudy", "up", "--conf", SMALL, "--executor", "real")
        assert "small is up" in up.stdout
        run("sbatch", "--wait", "--output=out", "--wrap", "hostname")
        assert (tmp_path / "out").read_text().strip()
        assert run("squeue", "-h").stdout == ""
        said = run("understudy", "exec", "--", "sinfo", "-h", "-p", "debug", "-o", "%D")
        assert said.stdout.split() == ["8"]
    finally:
        run("understudy", "down")
    (tmp_path / "tiny.swf").write_text(TRACE)
    replayed = run("understudy", "replay", "tiny.swf", "--out", "runs")
    assert NO_PARQUET in replayed.stderr
    assert (tmp_path / "runs" / "jobs.csv").read_text().count("COMPLETED") == 3
    assert not (tmp_path / "runs" / "jobs.parquet").exists()
    program = (
        "import understudy\n"
        "with understudy.Cluster(nodes=1, time='virtual') as cluster:\n"
        "    print(cluster.wait(cluster.submit('sleep 86400')).state)\n"
    )
    assert run("python", "-c", program).stdout == "COMPLETED\n"


def test_what_few_need_is_not_there_and_is_named(run, installed):
    said = run("understudy", "load", "--kind", "squeue", code=1)
    assert "pip install 'understudy[load]'" in said.stderr
    (folder,) = installed.parent.glob("lib/python*/site-packages")
    there = {path.name for path in folder.iterdir()}
    assert not {"pyarrow", "hdrh", "pbr", "pytest"} & there
    sizes = subprocess.run(
        ["du", "-sm", "--exclude=pip*", "--exclude=setuptools*", "--exclude=_distutils*", folder],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(sizes.stdout.split()[0]) < MOST_MB
