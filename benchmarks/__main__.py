"""`make bench`: the figures of the README, measured here and now.

Each is printed with its target and, where there is something to run beside it, as a ratio: machines
differ and are noisy. Nothing here is a test. Third-party traces are looked for in ../shared; what
is absent is said and left out.
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
        say(
            "KTH-SP2, sched/easy, one process per daemon",
            f"{many['jobs_per_second']:,.0f} jobs/s",
            "1,000 jobs/s",
        )
        one = replay(KTH, *options, "--one-process")
        say(
            "the same, all daemons in one process",
            f"{one['jobs_per_second']:,.0f} jobs/s",
            "3,000 jobs/s",
        )
        say("    the same schedule", str(one["schedule_sha256"] == many["schedule_sha256"]), "True")
    else:
        print(f"{KTH.name} is not in ../shared: left out")
    if THETA.exists():
        theta = replay(THETA, "--nodes", "4360", "--cpus", "1", "--scheduler", "easy")
        say(
            f"Theta 2022 (4,360 nodes, {theta['jobs']:,} jobs), sched/easy, processes",
            f"{theta['wall_seconds']:.1f} s",
            "20 s",
        )
    else:
        print(f"{THETA.name} is not in ../shared: left out")
    from understudy.experiments.swf import write_swf
    from understudy.experiments.synthetic import synthetic

    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "synthetic.swf"
        write_swf(trace, synthetic())
        backfill = replay(trace, "--nodes", "1000", "--cpus", "4", "--scheduler", "backfill")
    say(
        "3,000 jobs on 1,000 nodes x 4 CPUs over 48 h, sched/backfill",
        f"{backfill['speedup']:,.0f} x real time",
        "5,000 x",
    )


def bench_two_months(jobs: int = 50_000) -> None:
    """50,000 jobs of 500 users in 15 accounts with 19 QOS on 2,500 nodes over 60 days, load 0.9,
    with backfill and fair share.
    """
    from understudy.experiments.replay_conf import replay_conf
    from understudy.experiments.swf import write_swf
    from understudy.experiments.synthetic import synthetic

    users, accounts, qualities = 500, 15, 19
    priority = (
        "PriorityType=priority/multifactor\nPriorityWeightAge=1000\n"
        "PriorityWeightFairshare=10000\nPriorityWeightJobSize=1000\nPriorityWeightQOS=2000"
    )
    with tempfile.TemporaryDirectory() as folder:
        trace, conf, accounting = (
            Path(folder) / "two-months.swf",
            Path(folder) / "slurm.conf",
            Path(folder) / "sacctmgr.txt",
        )
        write_swf(
            trace,
            synthetic(
                jobs,
                2_500,
                4,
                hours=1440 * jobs / 50_000,
                load=0.9,
                users=users,
                groups=accounts,
                queues=qualities,
            ),
        )
        conf.write_text(
            replay_conf(2_500, 4, "backfill", jobs=jobs).replace(
                "PriorityType=priority/basic", priority
            )
        )
        lines = [f"add qos q{number} Priority={10 * number}" for number in range(1, qualities + 1)]
        lines += [f"add account a{number} Fairshare={number}" for number in range(1, accounts + 1)]
        for account in range(1, accounts + 1):
            members = ",".join(f"u{user}" for user in range(account, users + 1, accounts))
            lines.append(f"add user {members} Account=a{account} Fairshare=1")
        lines.append(
            "modify account set qos+="
            + ",".join(f"q{number}" for number in range(1, qualities + 1))
        )
        accounting.write_text("\n".join(lines) + "\n")
        done = replay(trace, "--conf", str(conf), "--accounting", str(accounting))
    what = (
        f"{jobs:,} jobs over {jobs * 60 / 50_000:.0f} days, 2,500 nodes, 500 users, "
        "backfill, fair share, processes"
    )
    say(what, f"{done['wall_seconds']:,.0f} s", "300 s")


def bench_backfill_pass() -> None:
    """What a pass over a long queue takes, and how long others wait for their answers while passes
    run, on a cluster in real time.
    """
    from benchmarks.scheduling import backfill_pass

    seconds, running, started, promised = backfill_pass(16_384, 500)
    what = f"backfill pass, 16,384 nodes, 500 pending, {running:,} running"
    say(what, f"{seconds:.2f} s ({started} started, {promised} promised)", "1 s")
    environment = dict(os.environ)
    environment.pop("SLURM_CONF", None)
    with tempfile.TemporaryDirectory() as folder:
        environment["UNDERSTUDY_REGISTRY"] = os.environ["UNDERSTUDY_REGISTRY"] = (
            folder + "/registry"
        )
        conf, run_dir = Path(folder) / "slurm.conf", Path(folder) / "run"
        conf.write_text(
            (ROOT / "examples" / "16k.conf").read_text() + "SchedulerParameters=bf_interval=1,"
            "bf_continue\n"
        )
        up = [
            str(BIN / "understudy"),
            "up",
            "--conf",
            str(conf),
            "--run-dir",
            str(run_dir),
            "--port",
            "0",
        ]
        subprocess.run(up, env=environment, stdout=subprocess.DEVNULL, check=True)
        try:
            waits = asked_while_backfilling(environment)
        finally:
            subprocess.run(
                [str(BIN / "understudy"), "down", "--run-dir", str(run_dir)],
                env=environment,
                stdout=subprocess.DEVNULL,
                check=True,
            )
    waits.sort()
    what = "the longest wait for an answer while passes run on that cluster"
    say(what, f"{waits[-1] * 1000:.0f} ms (median {waits[len(waits) // 2] * 1000:.1f})", "100 ms")


def asked_while_backfilling(environment: dict[str, str], seconds: float = 20.0) -> list[float]:
    """Seconds that each of many questions took while 500 jobs of all sizes wait behind jobs that
    fill the cluster.
    """
    import random

    from understudy.commands.shared.client import Client

    chance = random.Random(7)
    sizes = [(chance.randrange(1, 200), chance.randrange(60, 1440)) for _ in range(160)]
    sizes += [
        (min(int(chance.paretovariate(0.5)) * 2, 16_384), chance.randrange(10, 1440))
        for _ in range(500)
    ]
    for nodes, minutes in sizes:
        submit = [
            str(BIN / "sbatch"),
            f"-N{nodes}",
            f"-t{minutes}",
            "--output=/dev/null",
            "--wrap=:",
        ]
        subprocess.run(submit, env=environment, stdout=subprocess.DEVNULL, check=True)
    client = Client()
    waits, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        client.query("partitions", ["name"])
        waits.append(time.perf_counter() - began)
        time.sleep(0.005)
    return waits


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
        environment["UNDERSTUDY_REGISTRY"] = os.environ["UNDERSTUDY_REGISTRY"] = (
            folder + "/registry"
        )
        run_dir = Path(folder) / "big"
        began = time.perf_counter()
        up = [
            str(BIN / "understudy"),
            "up",
            "--conf",
            str(ROOT / "examples" / "16k.conf"),
            "--run-dir",
            str(run_dir),
            "--port",
            "0",
        ]
        subprocess.run(up, env=environment, stdout=subprocess.DEVNULL, check=True)
        idle = subprocess.run(
            [str(BIN / "sinfo"), "-h", "-t", "idle", "-o", "%D"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        say(
            f"16,384 nodes after `understudy up` ({idle.strip()} idle)",
            f"{time.perf_counter() - began:.1f} s",
            "5 s",
        )
        together = sum(
            resident_mb(int((run_dir / f"{name}.pid").read_text().split()[0]))
            for name in ("controller", "noded0")
        )
        say(
            "memory of controller + node daemon, 16,384 nodes, idle", f"{together:.0f} MB", "400 MB"
        )
        subprocess.run(
            [str(BIN / "understudy"), "down", "--run-dir", str(run_dir)],
            env=environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        run_dir = Path(folder) / "small"
        up = [
            str(BIN / "understudy"),
            "up",
            "--conf",
            str(ROOT / "examples" / "small.conf"),
            "--run-dir",
            str(run_dir),
            "--port",
            "0",
        ]
        subprocess.run(up, env=environment, stdout=subprocess.DEVNULL, check=True)
        bare = median_ms([sys.executable, "-I", "-c", "0"], environment)
        submit_held(run_dir, 100)
        for command in ("sinfo", "squeue"):
            took = median_ms([str(BIN / command)], environment)
            say(
                f"{command} on a small cluster with 100 jobs, whole command",
                f"{took:.0f} ms ({took / bare:.1f} x python)",
                "60 ms",
            )
        subprocess.run(
            [str(BIN / "understudy"), "down", "--run-dir", str(run_dir)],
            env=environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )


def submit_held(run_dir: Path, jobs: int, clients: int = 16) -> None:
    """Held jobs, by clients side by side: each waits until its job is on disk."""
    from threading import Thread

    from understudy.commands.shared.client import Client, pack_named
    from understudy.commands.shared.locate import Location, find

    os.environ["SLURM_CONF"] = str(run_dir / "slurm.conf")
    location: Location = find()
    del os.environ["SLURM_CONF"]
    spec = pack_named(
        "JobSpec",
        {"name": "wrap", "hold": True, "time_limit_s": 3600, "work_dir": "/tmp", "command": "wrap"},
    )

    def submit(count: int) -> None:
        client = Client(lambda: location)
        for _ in range(count):
            client.call("SubmitJob", spec, "#!/bin/sh\n")

    threads = [
        Thread(target=submit, args=(jobs // clients + (number < jobs % clients),))
        for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def bench_listings(jobs: int = 100_000) -> None:
    """Long listings, and how long others wait for their answers meanwhile."""
    from understudy.commands.shared.client import Client

    environment = dict(os.environ)
    environment.pop("SLURM_CONF", None)
    with tempfile.TemporaryDirectory() as folder:
        environment["UNDERSTUDY_REGISTRY"] = os.environ["UNDERSTUDY_REGISTRY"] = (
            folder + "/registry"
        )
        conf, run_dir = Path(folder) / "slurm.conf", Path(folder) / "run"
        conf.write_text((ROOT / "examples" / "16k.conf").read_text() + f"MaxJobCount={2 * jobs}\n")
        up = [
            str(BIN / "understudy"),
            "up",
            "--conf",
            str(conf),
            "--run-dir",
            str(run_dir),
            "--port",
            "0",
        ]
        subprocess.run(up, env=environment, stdout=subprocess.DEVNULL, check=True)
        try:
            say(
                "sinfo -N of 16,384 nodes",
                f"{median_ms([str(BIN / 'sinfo'), '-N'], environment, 5) / 1000:.2f} s",
                "1 s",
            )
            submit_held(run_dir, jobs)
            say(
                f"squeue of {jobs:,} jobs",
                f"{median_ms([str(BIN / 'squeue')], environment, 3) / 1000:.2f} s",
                "3 s",
            )
            client, waits = Client(), []
            listing = subprocess.Popen(
                [str(BIN / "squeue")], env=environment, stdout=subprocess.DEVNULL
            )
            while listing.poll() is None:
                began = time.perf_counter()
                client.query("partitions", ["name"])
                waits.append(time.perf_counter() - began)
                time.sleep(0.005)
            say(
                "the longest wait for another answer meanwhile",
                f"{max(waits) * 1000:.0f} ms",
                "100 ms",
            )
        finally:
            subprocess.run(
                [str(BIN / "understudy"), "down", "--run-dir", str(run_dir)],
                env=environment,
                stdout=subprocess.DEVNULL,
                check=True,
            )


def bench_profile() -> None:
    """What it costs to plan thousands of jobs, and orders of a few."""
    from benchmarks.profile import bench

    bench(say)


PARTS = {
    "replays": bench_replays,
    "months": bench_two_months,
    "pass": bench_backfill_pass,
    "profile": bench_profile,
    "clusters": bench_clusters,
    "listings": bench_listings,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="which (default: all)")
    for part in parser.parse_args().parts or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    main()
