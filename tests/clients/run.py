"""`make clients`: third-party software that drives Slurm, at a cluster of ours whose jobs really
run.

The drivers are not part of this repository; where ../shared is absent, it says so and ends with 0.
They install what they drive with pip, into $CLIENTS_VENVS. Arguments are those of
../shared/clients/run_all, as `--only submitit,parsl`; `--bindir` says where the project's commands
are, if not beside the interpreter.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
KIT = HERE.parent.parent.parent / "shared" / "clients"
NODE_DAEMONS = 2  # so that steps span daemons


def main() -> int:
    if not KIT.exists():
        print("no ../shared/clients here: no clients to drive the cluster")
        return 0
    parser = argparse.ArgumentParser(prog="clients", add_help=False)
    parser.add_argument("--bindir", type=Path, default=Path(sys.executable).parent)
    options, rest = parser.parse_known_args()
    commands: Path = options.bindir
    with tempfile.TemporaryDirectory(prefix="clients-") as temporary:
        Path(temporary).chmod(0o755)
        # Some clients take SLURM_* out of their jobs' environment: commands find the cluster by the
        # registry.
        environment = {
            name: value for name, value in os.environ.items() if name != "SLURM_CONF"
        } | {"UNDERSTUDY_REGISTRY": f"{temporary}/registry"}
        cluster = [str(commands / "understudy")]
        up = [
            "up",
            "--conf",
            str(HERE / "slurm.conf"),
            "--run-dir",
            f"{temporary}/run",
            "--executor",
            "real",
        ]
        up += ["--noded", str(NODE_DAEMONS), "--port", "0"]
        if subprocess.run([*cluster, *up], env=environment, check=False).returncode:
            return 1
        try:
            # The virtual environment's own folder holds a python, too, which must not come before
            # that of a client's environment.
            bin_dir = Path(temporary) / "bin"
            bin_dir.mkdir()
            for command in commands.iterdir():
                if _is_ours(command):
                    (bin_dir / command.name).symlink_to(command)
            return subprocess.run(
                [sys.executable, str(KIT / "run_all"), "--bindir", str(bin_dir), *rest],
                env=environment,
                check=False,
            ).returncode
        finally:
            subprocess.run(
                [*cluster, "down", "--run-dir", f"{temporary}/run"], env=environment, check=False
            )


def _is_ours(command: Path) -> bool:
    """Whether it is one of the project's commands: a small script that imports the package."""
    return (
        command.is_file()
        and command.stat().st_size < 4096
        and b"understudy.commands" in command.read_bytes()
    )


if __name__ == "__main__":
    sys.exit(main())
