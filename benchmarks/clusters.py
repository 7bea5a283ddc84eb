"""Cases at running clusters: what commands and connections get out of them."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from benchmarks.measure import resident_mb
from benchmarks.sides import DRIVER, ROOT, BenchError, Cluster, Tree

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.measure import Run

BIG = ROOT / "examples" / "16k.conf"
HELD = ("sbatch", "-H", "-o", "/dev/null", "-t", "60", "--wrap", "true")
MOST_WAIT_S = 600
IN_ALLOCATION = """
import subprocess, time
times = []
for _ in range(21):
    begin = time.perf_counter()
    subprocess.run(["srun", "-N1", "hostname"], stdout=subprocess.DEVNULL, check=True)
    times.append(time.perf_counter() - begin)
print(*times)
"""


def big_conf(folder: Path, nodes: int, more: str = "") -> Path:
    """examples/16k.conf with as many nodes."""
    from understudy.model.hostlist import numbered

    conf = folder / "slurm.conf"
    conf.write_text(BIG.read_text().replace("n[1-16384]", numbered("n", nodes)) + more)
    return conf


def up(run: Run, nodes: int) -> None:
    """From `understudy up` until sinfo says that all are idle."""
    conf = big_conf(run.folder, nodes)
    began = time.perf_counter()
    with run.tree.up(run.folder, conf) as cluster:
        while idle(cluster) < nodes:
            if time.perf_counter() - began > MOST_WAIT_S:
                raise BenchError(f"{idle(cluster)} nodes are idle after {MOST_WAIT_S} s")
        run.figure("until all are idle", time.perf_counter() - began, "s")
        pids = [
            int((run.folder / "run" / f"{name}.pid").read_text().split()[0])
            for name in ("controller", "noded0")
        ]
        run.figure("controller and node daemon, idle", resident_mb(pids), "MB")


def idle(cluster: Cluster) -> int:
    return int(cluster.run("sinfo", "-h", "-t", "idle", "-o", "%D").strip() or 0)


def up_16384(run: Run) -> None:
    up(run, 16_384)


def up_65536(run: Run) -> None:
    up(run, 65_536)


def up_262144(run: Run) -> None:
    up(run, 262_144)


def million_tasks(run: Run) -> None:
    """Ten arrays of 100,000 tasks each, of which 400 run at a time."""
    conf = big_conf(run.folder, 100)
    text = conf.read_text().replace("MaxJobCount=100000", "MaxJobCount=1100000")
    conf.write_text(f"{text}MaxArraySize=100001\n")
    line = "sbatch -o /dev/null -t 5 --array=0-99999 --wrap 'sleep 60'"
    with run.tree.up(run.folder, conf) as cluster:
        with run.measured():
            begin = time.perf_counter()
            cluster.run("bash", "-c", f"for i in {{1..10}}; do {line} || exit 1; done")
            run.figure("submitted", time.perf_counter() - begin, "s")
            run.figure("squeue", cluster.time_of("squeue")[0] * 1000, "ms")
            run.figure("squeue -r", cluster.time_of("squeue", "-r")[0], "s")
        pid = int((run.folder / "run" / "controller.pid").read_text().split()[0])
        run.figure("controller", resident_mb([pid]), "MB")


def commands(run: Run) -> None:
    """Whole commands at a small cluster with 100 jobs, and an interpreter that does nothing."""
    with run.tree.up(run.folder, ROOT / "examples" / "small.conf") as cluster:
        run.tree.drive(cluster, "submit", "100", "16", "hold")
        with run.measured():
            bare = cluster.time_of(str(run.tree.bin / "python"), "-I", "-c", "0", times=21)
            for name in ("sinfo", "squeue"):
                taken = statistics.median(cluster.time_of(name, times=21))
                run.figure(name, taken * 1000, "ms")
                run.figure(f"{name}, in bare interpreters", taken / statistics.median(bare), "")


def sbatch(run: Run, loops: int, each: int, *options: str) -> None:
    """Held jobs, so that nothing but their submission is measured."""
    line = " ".join(HELD)
    with run.side.cluster(run.folder, 4, options=options) as cluster:
        cluster.run(*HELD)
        with run.measured():
            begin = time.perf_counter()
            words = ["bash", "-c", f"for i in {{1..{each}}}; do {line} || exit 1; done"]
            procs = [
                subprocess.Popen(words, env=cluster.environment, stdout=subprocess.DEVNULL)
                for _ in range(loops)
            ]
            if any(proc.wait() for proc in procs):
                raise BenchError("sbatch failed")
            took = time.perf_counter() - begin
    run.figure("submitted", loops * each / took, "jobs/s")


def sbatch_1(run: Run) -> None:
    sbatch(run, 1, 300)


def sbatch_4(run: Run) -> None:
    sbatch(run, 4, 100)


def sbatch_1_by_zygote(run: Run) -> None:
    sbatch(run, 1, 300, "--zygote")


def sbatch_4_by_zygote(run: Run) -> None:
    sbatch(run, 4, 100, "--zygote")


def submit_64(run: Run) -> None:
    with run.tree.cluster(run.folder, 100) as cluster, run.measured():
        took = float(run.tree.drive(cluster, "submit", "10000", "64", "hold"))
        run.figure("submitted", 10_000 / took, "jobs/s")


def listings(run: Run) -> None:
    """At 16,384 nodes with 10,000 held jobs."""
    with run.side.cluster(run.folder, 16_384) as cluster:
        fill(run, cluster, 10_000)
        with run.measured():
            for what, words in {
                "squeue": ("squeue",),
                "sinfo": ("sinfo",),
                "sinfo -N": ("sinfo", "-N"),
                "scontrol show nodes": ("scontrol", "show", "nodes"),
                "scontrol show jobs": ("scontrol", "show", "jobs"),
            }.items():
                taken = cluster.time_of(*words, times=5)
                run.figure(what, statistics.median(taken) * 1000, "ms")


def fill(run: Run, cluster: Cluster, jobs: int) -> None:
    """Submit held jobs in the quickest way that the side has."""
    if isinstance(run.side, Tree):
        run.side.drive(cluster, "submit", str(jobs), "16", "hold")
    else:
        line = " ".join(HELD)
        cluster.run("bash", "-c", f"seq {jobs} | xargs -P4 -I@ {line}")


def long_listing(run: Run) -> None:
    """squeue of 100,000 jobs, and how long others wait for their answers meanwhile."""
    with run.tree.up(run.folder, big_conf(run.folder, 16_384, "MaxJobCount=200000\n")) as cluster:
        run.tree.drive(cluster, "submit", "100000", "16", "hold")
        with run.measured():
            run.figure("squeue", statistics.median(cluster.time_of("squeue", times=3)), "s")
            waits = sorted(map(float, run.tree.drive(cluster, "ask-while", "squeue").split()))
    run.figure("longest wait of another", waits[-1] * 1000, "ms")


def answers_while_backfilling(run: Run) -> None:
    """500 jobs of all sizes wait behind jobs that fill 16,384 nodes."""
    conf = big_conf(run.folder, 16_384, "SchedulerParameters=bf_interval=1,bf_continue\n")
    with run.tree.up(run.folder, conf) as cluster:
        run.tree.drive(cluster, "fill", "16384")
        with run.measured():
            waits = sorted(map(float, run.tree.drive(cluster, "ask", "20").split()))
    run.figure("median", statistics.median(waits) * 1000, "ms")
    run.figure("99.9th percentile", waits[int(len(waits) * 0.999)] * 1000, "ms")


def answers_in_a_storm(run: Run) -> None:
    """The same with 1,000 jobs that wait, while 1,000 held ones a second are submitted."""
    more = "SchedulerParameters=bf_interval=1,bf_continue\n"
    conf = big_conf(run.folder, 16_384, more)
    with run.tree.up(run.folder, conf) as cluster:
        run.tree.drive(cluster, "fill", "16384", "1000")
        words = [str(run.tree.bin / "python"), "-P", str(DRIVER), "storm", "1000", "20"]
        with run.measured():
            storm = subprocess.Popen(
                words, env=cluster.environment, stdout=subprocess.PIPE, text=True
            )
            waits = sorted(map(float, run.tree.drive(cluster, "ask", "20").split()))
            reached, _ = storm.communicate()
        if storm.returncode:
            raise BenchError("submissions failed")
    run.figure("submitted meanwhile", float(reached), "jobs/s")
    run.figure("median", statistics.median(waits) * 1000, "ms")
    run.figure("99.9th percentile", waits[int(len(waits) * 0.999)] * 1000, "ms")


def short_jobs(run: Run) -> None:
    """Submitted to completed. Emulated jobs that end at once, through 64 connections; at real Slurm
    `true`, through four loops of sbatch. On 1,600 CPUs, as Slurm's main loop gives CPUs that came
    back to others once a second.
    """
    with run.side.cluster(run.folder, 100, cpus=16) as cluster, run.measured():
        jobs = 5_000 if isinstance(run.side, Tree) else 500
        begin = time.perf_counter()
        if isinstance(run.side, Tree):
            run.side.drive(cluster, "submit", str(jobs), "64", "0")
        else:
            line = "sbatch -o /dev/null --wrap true"
            cluster.run("bash", "-c", f"seq {jobs} | xargs -P4 -I@ {line}")
        cluster.wait_until_done()
        run.figure("completed", jobs / (time.perf_counter() - begin), "jobs/s")


def real_jobs(run: Run) -> None:
    """500 jobs of `true` through sbatch that really run; four at a time, as a user's loop and its
    friends would.
    """
    with run.side.cluster(run.folder, 100, executor="real") as cluster, run.measured():
        begin = time.perf_counter()
        line = "sbatch -o /dev/null --wrap true"
        cluster.run("bash", "-c", f"seq 500 | xargs -P4 -I@ {line}")
        cluster.wait_until_done()
        run.figure("completed", 500 / (time.perf_counter() - begin), "jobs/s")


def one_wide_job(run: Run) -> None:
    with run.tree.cluster(run.folder, 16_384) as cluster:
        wide_jobs(run, cluster)


def one_wide_job_by_sockets(run: Run) -> None:
    hops = ("--hops", "sockets", "--hop-width", "32")
    with run.tree.up(run.folder, big_conf(run.folder, 16_384), *hops) as cluster:
        wide_jobs(run, cluster)


def wide_jobs(run: Run, cluster: Cluster) -> None:
    """Slurm starts batch jobs at the ticks of its main loop, and interactive ones at once: these
    say what a job over all nodes takes, the others how long Slurm has it wait on top.
    """
    with run.measured():
        times = [float(run.tree.drive(cluster, "one-interactive", "16384")) for _ in range(9)]
        run.figure("submitted to completed", statistics.median(times), "s")
        pairs = [run.tree.drive(cluster, "one", "16384").split() for _ in range(5)]
        for place, what in enumerate(("submitted", "started")):
            taken = statistics.median(float(pair[place]) for pair in pairs)
            run.figure(f"by sbatch, {what} to completed", taken, "s")


def step_launch(run: Run) -> None:
    with run.side.cluster(run.folder, 2, executor="real") as cluster, run.measured():
        words = ("salloc", "-Q", "-N1", sys.executable, "-c", IN_ALLOCATION)
        times = map(float, cluster.run(*words).split())
        run.figure("srun -N1 hostname", statistics.median(times) * 1000, "ms")


def wide_step(run: Run) -> None:
    """From the launch to the last exit."""
    with run.tree.cluster(run.folder, 2400) as cluster:
        cluster.run("bash", "-c", "salloc -Q -N2400 -n4800 --no-shell")
        job = cluster.run("squeue", "-h", "-o", "%i").strip()
        words = ("srun", f"--jobid={job}", "-N2400", "-n4800", "hostname")
        with run.measured():
            run.figure("srun", statistics.median(cluster.time_of(*words, times=3)), "s")
        lines = (run.folder / "printed").read_text().count("\n")
        if lines != 4800:
            raise BenchError(f"srun printed {lines} lines, not 4800")


def decisions(run: Run) -> None:
    """One module of this folder, run by the side's interpreter: it needs what is in it."""
    for module in ("scheduling", "planning"):
        printed = Cluster(run.folder, run.tree.environment(run.folder)).run(
            str(run.tree.bin / "python"), "-P", str(DRIVER.with_name(f"{module}.py"))
        )
        for line in printed.splitlines():
            what, value, unit = line.split("\t")
            run.figure(what, float(value), unit)
