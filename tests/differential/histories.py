"""Histories by seed: a day's worth of odd submissions run on real Slurm with accounting, what
sacct and sacctmgr tell of it is imported, and the replay under the same configuration must start
each job that ran.

    make differential-histories WHAT="--seed 1 --count 8 --at-once 8"
"""

from __future__ import annotations

import argparse
import csv
import random
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from differential.real_slurm import RealSlurm, end_on_sigterm, missing
from differential.sides import BIN, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

JOBS = 70
LIMIT_S = 100.0
HEAD = """ClusterName=c
SlurmctldHost=localhost
AccountingStorageType=accounting_storage/slurmdbd
"""
CONF = """GresTypes=gpu,scratch
AccountingStorageTRES=gres/gpu,gres/gpu:a100,license/matlab
{policy}
{select}
{preemption}
PriorityType=priority/multifactor
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
EnforcePartLimits={limits}
AccountingStorageEnforce=associations,limits,qos
Licenses=matlab:4
{memory}
{more}
NodeName=n[1-4] {node} Gres=gpu:a100:2,scratch:10G Feature=f1,f2 State=UNKNOWN
NodeName=n[5-6] {node} Feature=f1 State=UNKNOWN
PartitionName=debug Nodes=n[1-6] Default=YES MaxTime=60 {debug} State=UP
PartitionName=batch Nodes=n[1-2] MaxTime=600 DefaultTime=5 PriorityTier=5 {batch} State=UP
PartitionName=ex Nodes=n[5-6] MaxTime=600 OverSubscribe=EXCLUSIVE State=UP
"""
GRES = """NodeName=n[1-4] Name=gpu Type=a100 File=/dev/tty[1-2]
NodeName=n[1-4] Name=scratch Count=10G
"""
TOPOLOGY = """SwitchName=s1 Nodes=n[1-3]
SwitchName=s2 Nodes=n[4-6]
SwitchName=top Switches=s[1-2]
"""
NODES = (
    "CPUs=4 RealMemory=4000",
    "CPUs=8 Sockets=1 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=8000",
    "CPUs=4 Sockets=2 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=4000 Weight=2",
)
SELECTS = (
    *(
        f"SelectType=select/cons_tres\nSelectTypeParameters={what}"
        for what in ("CR_Core_Memory", "CR_CPU_Memory", "CR_Core", "CR_Socket_Memory")
    ),
    "SelectType=select/linear",
)
POLICIES = (
    *(
        f"SchedulerType=sched/backfill\nSchedulerParameters=bf_interval=5{more}"
        for more in ("", "", ",bf_continue,bf_max_job_user=4", ",assoc_limit_stop,defer")
    ),
    "SchedulerType=sched/builtin",
)
PREEMPTIONS = (
    *("", "", ""),
    "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE",
    "PreemptType=preempt/qos\nPreemptMode=CANCEL",
    "PreemptType=preempt/qos\nPreemptMode=REQUEUE",
    "PreemptType=preempt/partition_prio\nPreemptMode=SUSPEND,GANG",
)
LIMITS = ("ALL", "ALL", "ANY", "NO")
DEBUG = ("", "", "OverSubscribe=FORCE:2", "OverSubscribe=YES:2", "LLN=YES", "DefMemPerCPU=200")
BATCH = (
    "",
    "",
    "GraceTime=2 PriorityJobFactor=10",
    "DenyQos=q2 MaxMemPerNode=3000",
    "RootOnly=YES",
    "MaxNodes=1",
    "MaxCPUsPerNode=2",
    "AllowAccounts=a1",
    "ExclusiveUser=YES",
    "MinNodes=2",
)
MEMORY = (
    "",
    "DefMemPerCPU=300",
    "DefMemPerNode=1000",
    "DefMemPerCPU=500\nMaxMemPerCPU=900",
)
MORE = (  # each with a chance of three in ten
    "JobRequeue=0",
    "OverTimeLimit=1",
    "PriorityFlags=SMALL_RELATIVE_TO_TIME,CALCULATE_RUNNING\nPriorityWeightJobSize=1000",
    "PriorityWeightTRES=cpu=100,mem=10\nPriorityWeightAge=500\nPriorityWeightPartition=1000",
    "TopologyPlugin=topology/tree",
    "MaxArraySize=8",
    "KillWait=1",
    "PreemptExemptTime=3",
    "SchedulerTimeSlice=5",
    "RequeueExit=3",
    "JobCompType=jobcomp/none\nCompleteWait=2",
)
# Of each line one is drawn, with `-` nothing.
OPTIONS = (
    "-n1; -n2; -n3; -n7; -N2; -N3 -n5; -n2 -c2; -c3; -N1-3 -n4; -n4 --ntasks-per-node=2; -N6",
    "-; -; --mem=300; --mem-per-cpu=150; --mem=0; --mem=1G",
    (
        "-; -; --exclusive; --exclusive=user; -s; --hint=nomultithread; --contiguous; "
        "--spread-job; --switches=1"
    ),
    "-; -p batch; -p ex; -p debug,batch; -p batch,ex",
    "-; -t 1; -t 5; -t 50; -t 90 -p batch; --time-min=1 -t 9",
    (
        "-; -; -L matlab; -L matlab:3; -C f2; --prefer=f2; -C 'f1|f2'; -C 'f1&f2'; "
        "-C [f1*1&f2*1] -N2; -x n1"
    ),
    "-; -; -A a1; -A a2; -A a1 -q q1; -A a2 -q q2",
    "-; -; -; --array=1-4; --array=0-9:3%2; -H; -b now+15; --nice=5; --requeue; --reservation=res1",
    "-; -; -; -d singleton; -d afterany:PREVIOUS; -d afternotok:PREVIOUS; --deadline=now+7days",
    (
        "-; -; -; -; -; --gres=gpu:1; --gres=gpu:a100:1; --gres=gpu; -G1; -G2; --gpus=a100:1; "
        "--gpus-per-node=1; --gpus-per-task=1; --gres=scratch:1G; -G1 --mem-per-gpu=100; "
        "-G2 --cpus-per-gpu=1; --gres=gpu:2,scratch:2; --gpus-per-node=2 -N2 --gpu-bind=closest"
    ),
    "-; -; -; --comment='x y|z'; -J 'a b'; -J same; --wckey=k; -w n2",
)
COMPONENTS = (": -n1 -p debug", ": -n2 -p debug,batch", ": -n1 : -N1 -p debug", ": --prefer=f2 -n1")
COMMANDS = (
    *("true", "sleep 1", "sleep 2", "sleep 4", "sleep 6", "exit 3", "kill -9 $$"),
    *("srun true; sleep 1", "srun -n1 sleep 2"),
)
# How probable after each submission, and what. No dump tells of nodes down, or of limits lifted.
DEEDS = (
    (0.1, "scancel {one}"),
    (0.08, "scontrol requeue {one}"),
    (0.03, "scontrol requeuehold {one}"),
    (0.05, "scontrol update jobid={last} timelimit=3"),
    (0.03, "scontrol update jobid={one} partition=batch"),
    (0.03, "scontrol suspend {one}"),
    (0.06, "squeue -h -t S -o %A | xargs -rn1 scontrol resume"),
    (0.04, "squeue -h -t PD -o '%A %r' | grep Held | cut -d' ' -f1 | xargs -rn1 scontrol release"),
)
ACCOUNTS = (
    "sacctmgr -i add account a1 a2; sacctmgr -i add qos q1 priority=5; "
    "sacctmgr -i modify account a1 set qos+=q1; sacctmgr -i add user root account=a1,a2; "
    "sacctmgr -i modify qos q1 set maxtrespu=cpu=6 maxjobspu=5 flags=denyonlimit; sacctmgr -i "
    "add qos q2 priority=100 maxwall=5 grptres=gres/gpu=3 preempt=q1; "
    "sacctmgr -i modify account a2 set qos+=q2 grptres=cpu=8; "
    "sacctmgr -i modify user root set qos+=q1,q2; scontrol create reservation "
    "reservationname=res1 starttime=now duration=60 users=root nodes=n4"
)
KEPT = [
    "JobID",
    "Submit",
    "Start",
    "End",
    "State",
    "Timelimit",
    "Partition",
    "User",
    "Account",
    "QOS",
    "NodeList",
    "AllocTRES",
]  # without them too much is unknown
DUMPS = (
    "sacct -a -D -P --format=ALL -S now-1hour > {0}/jobs.txt; "
    "sacct -a --json -S now-1hour > {0}/jobs.json; sacctmgr dump c file={0}/accounts.cfg; "
    "sacctmgr show qos -P > {0}/qos.txt; sacctmgr show reservation -P > {0}/reservations.txt"
)


def record(seed: int, folder: Path) -> None:
    """Run it on real Slurm; the dumps are in the folder then."""
    draw = random.Random(seed)
    conf = CONF.format(
        node=draw.choice(NODES),
        select=draw.choice(SELECTS),
        memory=draw.choice(MEMORY),
        policy=draw.choice(POLICIES),
        preemption=draw.choice(PREEMPTIONS),
        limits=draw.choice(LIMITS),
        debug=draw.choice(DEBUG),
        batch=draw.choice(BATCH),
        more="\n".join(line for line in MORE if draw.random() < 0.3),
    )
    (folder / "slurm.conf").write_text(HEAD + conf)
    files = {"gres.conf": GRES, "topology.conf": TOPOLOGY}
    for name, text in files.items():
        (folder / name).write_text(text)
    with tempfile.TemporaryDirectory(prefix="dh") as place:
        Path(place).chmod(0o755)
        real = RealSlurm(Path(place) / "s", conf, accounting=True, cluster="c", files=files)
        real.folder.mkdir()
        with real.up():

            def run(*words: str) -> str:
                environment = real.environment | {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
                return subprocess.run(
                    words, env=environment | {"HOME": "/root"}, cwd=place, check=False,
                    capture_output=True, text=True, timeout=120,
                ).stdout  # fmt: skip

            run("bash", "-c", ACCOUNTS)
            submit_all(draw, run, Path(place) / "job.sh", conf)
            end = time.monotonic() + LIMIT_S
            while run("squeue", "-h", "-t", "PD,R").strip() and time.monotonic() < end:
                time.sleep(3)
                if time.monotonic() > end - 30:
                    run("bash", "-c", "scancel -t PD $(squeue -h -t PD -o %A | head -3)")
            time.sleep(2)
            run("bash", "-c", DUMPS.format(folder))


def without_luck(said: list[str], conf: str) -> list[str]:
    """The options without those with which it depends on what else runs whether Slurm ever starts
    the job.
    """
    words, out = " ".join(said), set()
    # asks for whole nodes once it was looked for in ex, and waits for ever where these are not to
    # be had: MaxCPUsPerNode, the CPUs of an account or of a user
    if "MaxCPUsPerNode" in conf or "-A a2" in words or "-q q1" in words:
        out.add("-p batch,ex")
    # may be on more nodes than GrpTRES allows, and with whole sockets has more CPUs
    if "-A a2" in words:
        out |= {"-N1-3 -n4", "--spread-job"} | ({"-N3 -n5"} if "CR_Socket" in conf else set())
    # all GPUs of the nodes count, and q2 has three
    if "-q q2" in words:
        out.add("--exclusive")
    # a wish for what is nowhere is judged later for who is held, or waits for others
    is_wish = "--prefer=f2" in said
    return [
        text for text in said if text not in out and not (is_wish and text.startswith(("-H", "-d")))
    ]


def submit_all(draw: random.Random, run: Callable[..., str], script: Path, conf: str) -> None:
    """Submissions that Slurm takes, by `--wrap` and as scripts, and what is done to them then."""
    previous, taken = "1", 0
    while taken < JOBS:
        drawn = [draw.choice(line.split("; ")) for line in OPTIONS]
        said = [text.replace("PREVIOUS", previous) for text in drawn if text != "-"]
        said = without_luck(said, conf)
        command = draw.choice(COMMANDS)
        if draw.random() < 0.4:
            lines = [f"#SBATCH {text}" for text in said]
            script.write_text("\n".join(["#!/bin/bash", *lines, command, ""]))
            answer = run("sbatch", str(script))
        else:
            # of a component nodes are kept for ever, as in Slurm, if it has met GrpTRES, or the
            # other is never looked at, as others of the user come before it
            meets = any(text.startswith("-A") for text in said) or "bf_max_job_user" in conf
            more = draw.choice(COMPONENTS).split() if draw.random() < 0.06 and not meets else []
            answer = run("sbatch", *shlex.split(" ".join(said)), *more, "--wrap", command)
        if "Submitted" in answer:
            previous, taken = answer.split()[-1], taken + 1
        for chance, deed in DEEDS:
            if draw.random() < chance:
                one = str(draw.randint(1, int(previous)))
                run("bash", "-c", deed.format(one=one, last=previous))


def write_some_columns(seed: int, folder: Path) -> None:
    """What sacct would have written with other columns, in another order and parted by something
    else, of the jobs without their steps or with them.
    """
    draw = random.Random(seed)
    with (folder / "jobs.txt").open() as file:
        head, *rows = csv.reader(file, delimiter="|", quoting=csv.QUOTE_NONE)
    names = KEPT + [name for name in head if name not in KEPT and draw.random() < 0.4]
    draw.shuffle(names)
    places = [head.index(name) for name in names]
    if draw.random() < 0.3:
        rows = [row for row in rows if "." not in row[head.index("JobID")]]
    chosen = [names, *([row[place] for place in places] for row in rows if len(row) == len(head))]
    marks = [mark for mark in "|;\t" if not any(mark in text for row in chosen for text in row)]
    mark = draw.choice(marks)
    end = draw.choice(("", mark))
    (folder / "some.txt").write_text("".join(f"{mark.join(row)}{end}\n" for row in chosen))


def judge(folder: Path, dump: str) -> list[str]:
    """What ran on real Slurm and did not start here, with what was asked for."""
    history, run = folder / f"history-{dump}", folder / f"run-{dump}"
    tables = ("accounts.cfg", "qos.txt", "reservations.txt")
    for words in (
        ["import", str(folder / dump), "--out", str(history), "--conf", str(folder / "slurm.conf"),
         *(word for name in tables for word in ("--accounts", str(folder / name))),
         "--create-accounts"],
        ["replay", str(history), "--out", str(run)],
    ):  # fmt: skip
        done = subprocess.run(
            [str(BIN / "understudy"), *words], check=False, capture_output=True, text=True
        )
        if not (run if words[0] == "replay" else history).is_dir():
            return [
                f"{words[0]} ended with {done.returncode}: {(done.stdout + done.stderr)[-300:]}"
            ]
    with (history / "past.csv").open() as past, (run / "jobs.csv").open() as jobs:
        ran = {row["id"] for row in csv.DictReader(past) if row["start"]}
        return [
            f"{row['id']}: {row['state']}, {row['reason']}"
            for row in csv.DictReader(jobs)
            if row["id"] in ran and not row["start"]
        ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="differential.histories")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--folder", type=Path, default=ROOT / "build/differential/histories")
    options = parser.parse_args()
    if why := missing():
        print(f"nothing to compare with: {why}")
        return 0
    end_on_sigterm()
    folders = {
        seed: options.folder / str(seed)
        for seed in range(options.seed, options.seed + options.count)
    }
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(options.at_once) as pool:
        list(pool.map(record, folders, folders.values()))
    lost = 0
    for seed, folder in folders.items():
        write_some_columns(seed, folder)
        for dump in ("jobs.txt", "jobs.json", "some.txt"):
            found = judge(folder, dump)
            lost += len(found)
            print("\n    ".join([f"seed {seed}, {dump}: {len(found)} did not start", *found]))
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
