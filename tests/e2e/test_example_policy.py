"""The policy of examples/policy is found and used once it is installed, and does what its own test
says.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "policy"


def test_a_policy_of_another_distribution_is_installed_and_used(tmp_path: Path) -> None:
    source, site = tmp_path / "source", tmp_path / "site"
    shutil.copytree(EXAMPLE, source)  # a build leaves files beside it
    installed = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"),
            *("--no-build-isolation", "--disable-pip-version-check", "--target", site, source),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert installed.returncode == 0, installed.stderr
    environment = {
        **os.environ,
        "PYTHONPATH": str(site),
        "UNDERSTUDY_REGISTRY": str(tmp_path / "registry"),
    }
    environment.pop("SLURM_CONF", None)
    tested = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", source),
            *("-p", "no:cacheprovider", source / "test_shortest.py"),
        ],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
