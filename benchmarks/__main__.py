"""`make bench`: the figures of the README, measured here and now.

Each is printed with its target and, where there is something to run beside it, as a ratio: machines differ and are noisy. Nothing here is a test.
Third-party traces are looked for in ../shared; what is absent is said and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
BIN = Path(sys.executable).parent
KTH = SHARED / "oracles" / "kth-sp2-normalised.swf.gz"
THETA = SHARED / "traces" / "ALCF-Theta-2022.swf.gz"


def say(what: str, value: str, target: str) -> None:
    print(f"{what:64} {value:>22}   target {target}", flush=True)


def replay(trace: Path, *options: str) -> dict:
    with tempfile.TemporaryDirectory() as out:
        command = [str(BIN / "understudy"), "replay", str(trace), "--out", out, *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return json.loads((Path(out) / "summary.json").read_text())


def bench_replays() -> None:
    if KTH.exists():
        options = ["--nodes", "100", "--cpus", "1", "--scheduler", "easy"]
        many = replay(KTH, *options)
        say("KTH-SP2, sched/easy, one process per daemon", f"{many['jobs_per_second']:,.0f} jobs/s", "1,000 jobs/s")
        one = replay(KTH, *options, "--one-process")
        say("the same, all daemons in one process", f"{one['jobs_per_second']:,.0f} jobs/s", "3,000 jobs/s")
        say("    the same schedule", str(one["schedule_sha256"] == many["schedule_sha256"]), "True")
    else:
        print(f"{KTH.name} is not in ../shared: left out")
    if THETA.exists():
        theta = replay(THETA, "--nodes", "4360", "--cpus", "1", "--scheduler", "easy")
        say(f"Theta 2022 (4,360 nodes, {theta['jobs']:,} jobs), sched/easy, processes", f"{theta['wall_seconds']:.1f} s", "20 s")
    else:
        print(f"{THETA.name} is not in ../shared: left out")
    from understudy.experiments.swf import write_swf
    from understudy.experiments.synthetic import synthetic

    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "synthetic.swf"
        write_swf(trace, synthetic())
        backfill = replay(trace, "--nodes", "1000", "--cpus", "4", "--scheduler", "backfill")
    say("3,000 jobs on 1,000 nodes x 4 CPUs over 48 h, sched/backfill", f"{backfill['speedup']:,.0f} x real time", "5,000 x")


def resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def median_ms(command: list[str], environment: dict[str, str], times: int = 21) -> float:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def bench_clusters() -> None:
    environment = dict(os.environ)
    environment.pop("SLURM_CONF", None)
    with tempfile.TemporaryDirectory() as folder:
        environment["UNDERSTUDY_REGISTRY"] = folder + "/registry"
        run_dir = Path(folder) / "big"
        began = time.perf_counter()
        up = [str(BIN / "understudy"), "up", "--conf", str(ROOT / "examples" / "16k.conf"), "--run-dir", str(run_dir), "--port", "0"]
        subprocess.run(up, env=environment, stdout=subprocess.DEVNULL, check=True)
        idle = subprocess.run(
            [str(BIN / "sinfo"), "-h", "-t", "idle", "-o", "%D"], env=environment, capture_output=True, text=True, check=True
        ).stdout
        say(f"16,384 nodes after `understudy up` ({idle.strip()} idle)", f"{time.perf_counter() - began:.1f} s", "5 s")
        together = sum(resident_mb(int((run_dir / f"{name}.pid").read_text().split()[0])) for name in ("controller", "noded0"))
        say("memory of controller + node daemon, 16,384 nodes, idle", f"{together:.0f} MB", "400 MB")
        subprocess.run([str(BIN / "understudy"), "down", "--run-dir", str(run_dir)], env=environment, stdout=subprocess.DEVNULL, check=True)
        run_dir = Path(folder) / "small"
        up = [str(BIN / "understudy"), "up", "--conf", str(ROOT / "examples" / "small.conf"), "--run-dir", str(run_dir), "--port", "0"]
        subprocess.run(up, env=environment, stdout=subprocess.DEVNULL, check=True)
        bare = median_ms([sys.executable, "-I", "-c", "0"], environment)
        for command in ("sinfo", "squeue"):
            took = median_ms([str(BIN / command)], environment)
            say(f"{command} on a small cluster, whole command", f"{took:.0f} ms ({took / bare:.1f} x python)", "80 ms")
        subprocess.run([str(BIN / "understudy"), "down", "--run-dir", str(run_dir)], env=environment, stdout=subprocess.DEVNULL, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("parts", nargs="*", choices=["replays", "clusters", []], help="which (default: all)")
    parts = parser.parse_args().parts or ["replays", "clusters"]
    if "replays" in parts:
        bench_replays()
    if "clusters" in parts:
        bench_clusters()


if __name__ == "__main__":
    main()
