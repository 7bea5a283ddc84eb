"""Cases that replay a trace: the whole command, from its start to the written report."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.sides import BUILD, ROOT, BenchError

if TYPE_CHECKING:
    from benchmarks.measure import Run

SHARED = ROOT.parent / "shared"
KTH = SHARED / "oracles" / "kth-sp2-normalised.swf.gz"
THETA = SHARED / "traces" / "ALCF-Theta-2022.swf.gz"
YEAR = ROOT / "examples" / "year.swf.gz"
SITE_CONF = Path(__file__).with_name("site.conf")


def replay(run: Run, trace: Path, *options: str) -> None:
    """Replay, and say what the schedule is."""
    if not trace.exists():
        raise BenchError(f"{trace.name} is not in ../shared")
    out = run.folder / "out"
    run.tree.understudy(run.folder, "replay", str(trace), "--out", str(out), *options)
    summary = json.loads((out / "summary.json").read_text())
    run.notes["schedule"] = summary["schedule_sha256"]
    run.notes["jobs"] = str(summary["jobs"])
    shutil.rmtree(out)


def kth(run: Run, *options: str) -> None:
    replay(run, KTH, "--nodes", "100", "--cpus", "1", "--scheduler", "easy", *options)


def kth_one(run: Run) -> None:
    kth(run, "--one-process")


def theta(run: Run) -> None:
    replay(run, THETA, "--nodes", "4360", "--cpus", "1", "--scheduler", "easy")


def year_of_a_site(run: Run) -> None:
    replay(run, YEAR, "--conf", str(SITE_CONF), "--one-process")


def two_days(run: Run) -> None:
    trace = generated("two-days")
    replay(run, trace, "--nodes", "1000", "--cpus", "4", "--scheduler", "backfill")


def two_months(run: Run) -> None:
    """Of 500 users in 15 accounts with 19 QOS on 2,500 nodes over 60 days, load 0.9."""
    from understudy.experiments.replay_conf import replay_conf

    users, accounts, qualities = 500, 15, 19
    shape = {"jobs": 50_000, "nodes": 2_500, "cpus": 4, "hours": 1440, "load": 0.9}
    shape |= {"users": users, "groups": accounts, "queues": qualities}
    trace = generated("two-months", **shape)
    priority = (
        "PriorityType=priority/multifactor\nPriorityWeightAge=1000\n"
        "PriorityWeightFairshare=10000\nPriorityWeightJobSize=1000\nPriorityWeightQOS=2000"
    )
    conf, accounting = run.folder / "slurm.conf", run.folder / "sacctmgr.txt"
    basic = replay_conf(2_500, 4, "backfill", jobs=50_000)
    conf.write_text(basic.replace("PriorityType=priority/basic", priority))
    lines = [f"add qos q{number} Priority={10 * number}" for number in range(1, qualities + 1)]
    lines += [f"add account a{number} Fairshare={number}" for number in range(1, accounts + 1)]
    for account in range(1, accounts + 1):
        members = ",".join(f"u{user}" for user in range(account, users + 1, accounts))
        lines.append(f"add user {members} Account=a{account} Fairshare=1")
    every = ",".join(f"q{number}" for number in range(1, qualities + 1))
    lines.append(f"modify account set qos+={every}")
    accounting.write_text("\n".join(lines) + "\n")
    with run.measured():
        replay(run, trace, "--conf", str(conf), "--accounting", str(accounting))


def growth(run: Run, sizes: list[tuple[int, int]]) -> None:
    """What a job costs on machines of several sizes, in queues of several lengths.

    `sizes` are (nodes, jobs). The start and the end of the command, as a replay of one job shows
    them, are taken off. A size that is refused is left out.
    """
    from benchmarks.measure import now, since

    for nodes, jobs in sizes:
        took = []
        for limit in (1, jobs):
            trace = generated(f"growth-{nodes}-{jobs}", jobs=jobs, nodes=nodes, cpus=1, load=0.7)
            options = ("--nodes", str(nodes), "--cpus", "1", "--scheduler", "easy")
            began = now()
            try:
                replay(run, trace, *options, "--one-process", "--limit", str(limit))
            except BenchError as error:
                run.notes[f"{nodes} nodes"] = str(error)
                break
            took.append(since(began)["cpu_s"])
        if len(took) < 2:
            continue
        run.figure(f"{nodes} nodes, {jobs} jobs", (took[1] - took[0]) / jobs * 1e6, "us a job")


def growth_nodes(run: Run) -> None:
    growth(run, [(2**power, 2_000) for power in range(10, 19, 2)])


def growth_jobs(run: Run) -> None:
    growth(run, [(1024, 10**power) for power in range(3, 7)])


def generated(name: str, **shape: float) -> Path:
    """A synthetic trace, kept in build/bench: the same for all sides."""
    from understudy.experiments.swf import write_swf
    from understudy.experiments.synthetic import synthetic

    path = BUILD / "traces" / f"{name}.swf.gz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        plain, packed = path.with_suffix(".part"), path.with_suffix(".packed")
        write_swf(plain, synthetic(**shape))  # type: ignore[arg-type]
        packed.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
        plain.unlink()
        packed.rename(path)
    return path
