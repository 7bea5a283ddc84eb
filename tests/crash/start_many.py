#!/usr/bin/env python3
"""Many clusters started beside each other: `understudy up` and `down`, and replays, all with
accounting, several at a time. Says what failed and ends with 1 then. The kinds take turns. Of the
kind `disturbed` are clusters that meet with something while they start or run: the command is ended
or killed, a second one comes, `down` comes too early, a daemon is killed. Afterwards nothing may be
left, and the next `up` must find all in order.

    tests/crash/start_many.py --count 200 --at-once 8 --kinds port,plain
"""

import argparse
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from understudy.tool.cluster.processes import daemons_of

BIN = Path(sys.executable).parent
CONF = """\
ClusterName=many
SlurmctldHost=localhost
SchedulerType=sched/backfill
SelectType=select/cons_tres
AccountingStorageType=accounting_storage/slurmdbd
NodeName=n[1-4] CPUs=4
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE
"""
TRACE = "".join(
    f"{number} {number} -1 10 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1\n" for number in range(1, 21)
)
LIMIT_S = 300.0

UP = {
    "port": ["--port", "0"],
    "plain": [],
    "scaled": ["--time", "scaled:10", "--port", "0"],
    "virtual": ["--time", "virtual", "--noded", "2"],
    "real": ["--executor", "real", "--port", "0"],
}
DISTURBANCES = (
    "end the command",
    "kill the command",
    "kill a daemon",
    "a second up",
    "an early down",
    "nothing",
)
REPLAY = {"replay": [], "one-process": ["--one-process"]}


class Many:
    """What is started, each in a folder of its own."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.conf = folder / "many.conf"
        self.conf.write_text(CONF)
        self.trace = folder / "many.swf"
        self.trace.write_text(TRACE)

    def run(self, number: int, kind: str) -> str:
        """One of them; what went wrong, "" if nothing did."""
        folder = self.folder / str(number)
        (folder / "tmp").mkdir(parents=True)
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("SLURM")
        }
        environment |= {
            "UNDERSTUDY_REGISTRY": str(folder / "registry"),
            "TMPDIR": str(folder / "tmp"),
        }

        def call(*words: object) -> str:
            done = subprocess.run(
                [str(BIN / str(words[0])), *map(str, words[1:])],
                env=environment,
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
            return (
                f"{' '.join(map(str, words))}: exit code {done.returncode}\n"
                f"{done.stdout}{done.stderr}"
                if done.returncode
                else ""
            )

        try:
            if kind == "disturbed":
                wrong = self.disturb(
                    random.Random(f"{self.seed} {number}"), folder / "run", environment, call
                )
            elif kind in REPLAY:
                words = (
                    "understudy",
                    "replay",
                    self.trace,
                    "--conf",
                    self.conf,
                    "--out",
                    folder / "out",
                    *REPLAY[kind],
                )
                wrong = call(*words)
            else:
                wrong = call(
                    "understudy", "up", "--conf", self.conf, "--run-dir", folder / "run", *UP[kind]
                )
                if not wrong:
                    commands = [
                        ("sacctmgr", "-i", "add", "account", "people"),
                        ("sbatch", "-o", os.devnull, "--wrap", "true"),
                        ("squeue",),
                    ]
                    wrong = next(filter(None, (call(*words) for words in commands)), "") + call(
                        "understudy", "down"
                    )
        except subprocess.TimeoutExpired as error:
            wrong = f"{error}\n"
        left = sorted(path.name for path in (folder / "tmp").iterdir())
        return wrong + (f"left in the temporary directory: {left}\n" if left else "")

    def disturb(
        self,
        random: random.Random,
        run_dir: Path,
        environment: dict[str, str],
        call: Callable[..., str],
    ) -> str:
        """Start a cluster, disturb it, and look whether all is well afterwards."""
        up = ("understudy", "up", "--conf", self.conf, "--run-dir", run_dir)
        kind, what, later_s = (
            random.choice(sorted(UP)),
            random.choice(DISTURBANCES),
            random.uniform(0, 3),
        )
        with subprocess.Popen(
            [BIN / up[0], *up[1:], *UP[kind]],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as command:
            time.sleep(later_s)
            if what == "end the command":
                command.terminate()
            elif what == "kill the command":
                command.kill()
            elif what == "kill a daemon" and (daemons := daemons_of(run_dir)):
                random.choice(daemons).signal(signal.SIGKILL)
            elif what == "a second up":
                call(*up, *UP[random.choice(sorted(UP))])
            elif what == "an early down":
                call("understudy", "down", "--run-dir", run_dir)
            command.wait(LIMIT_S)
        wrong = ""
        deadline = time.monotonic() + LIMIT_S
        while (
            (down := call("understudy", "down", "--run-dir", run_dir))
            and "no cluster runs" not in down
            and "there is no run directory" not in down
        ):
            if "another understudy command" not in down or time.monotonic() > deadline:
                wrong += down
                break
            time.sleep(0.1)
        wrong += "".join(f"{process} is left\n" for process in daemons_of(run_dir))
        wrong += call(*up, *UP[kind]) or call("squeue") or call("understudy", "down")
        wrong += "".join(f"{process} is left\n" for process in daemons_of(run_dir))
        return wrong and f"{kind}, {what} after {later_s:.2f} s:\n{wrong}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument(
        "--kinds",
        default=",".join([*UP, *REPLAY, "disturbed"]),
        help="at commas; the default has all",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the disturbances")
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    failures: Counter[str] = Counter()
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="many-") as folder,
        ThreadPoolExecutor(options.at_once) as pool,
    ):
        many = Many(Path(folder), options.seed)
        chosen = list(itertools.islice(itertools.cycle(kinds), options.count))
        for kind, wrong in zip(
            chosen, pool.map(many.run, range(options.count), chosen), strict=True
        ):
            if wrong:
                failures[kind] += 1
                print(f"--- {kind}\n{wrong}", flush=True)
    started = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(chosen).items()))
    failed = ", ".join(f"{count} {kind}" for kind, count in sorted(failures.items()))
    outcome = f"{failed} FAILED" if failed else "none failed"
    print(
        f"{options.count} started, {options.at_once} at a time ({started}), "
        f"{time.monotonic() - began:.0f} s: {outcome}"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
