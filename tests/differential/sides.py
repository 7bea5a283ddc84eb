"""Two clusters of one configuration beside each other, real Slurm and ours, and sequences run on
both. Jobs of both really run; both have accounting.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ports import reserved

from differential.compare import OVERHEARD, STATE, Difference, Observation, compare, own_rules
from differential.real_slurm import RealSlurm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from differential.sequence import Step

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
CLUSTER = "conform"
LIMIT_S = 25
MOST_READ = 1_000_000  # octets; some commands of Slurm ask for ever where the input is at its end
FIRST_JOB = 7301
JOB = re.compile(r"(?<![\w.])7[3-4]\d\d(?!\d)")
AT_A_TIME = 6  # commands that change nothing are typed together
SETTLE_S = 4.0
# What the kit's runner has, so that a find can be kept as one of its scenarios.
CONF = """ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=600,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
FirstJobId=7301
KillWait=2
MinJobAge=3600
"""
OWN_CONF = """Licenses=matlab:4
NodeName=n[1-4] CPUs=4 RealMemory=4000 Feature=f1 State=UNKNOWN
PartitionName=debug Nodes=n[1-4] Default=YES MaxTime=60 State=UP
PartitionName=batch Nodes=n[1-2] MaxTime=600 State=UP
"""
OUR_HEAD = """ClusterName={cluster}
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={port}
SlurmdPort={node_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd_port}
"""
RECORDS = "sacct -n -a -P -D -o jobid,state"
RECORDED_S = 8.0  # Slurm's database hears of jobs that wait some four seconds after they came
SNAPSHOT = "squeue -h -a -S i -o '%i %T %r'"
# daemons say again that they are there, reservations begin
SNAPSHOT_OF_NODES = f"{SNAPSHOT}; sinfo -h -N -S N,R -o '%N %R %T'"
UNSETTLED = re.compile(r"COMPLETING|CONFIGURING|PENDING None|\*|unknown|comp$", re.MULTILINE)
SHOWN = (
    "scontrol show job -d",
    "squeue -a -h -S i -o '%i %j %u %a %P %T %D %C %m %l %r %N %q %Q'",
    "sinfo -N -S N,P -o '%N %P %T %c %m %f %w %E'",
    "scontrol show partition",
    "scontrol show reservation",
)
SHOWN_ACCOUNTS = (
    "sacctmgr -nP show account format=account,descr,org",
    "sacctmgr -nP show user withassoc",
    "sacctmgr -nP show qos",
)
MARK = "; echo =====; "  # between what show commands print
BASELINE = (
    "scontrol show partition; scontrol show reservation; sacctmgr -nP show assoc tree; "
    "sacctmgr -nP show qos; sinfo -h -N -S N,P -o '%N %P %T %c %m %f %w %G'"
)
# Prints the last job's number; fails where something stays.
CLEAN = (
    'for t in 1 2 3 4 5 6 7 8; do j=$(squeue -h -a -o %A | sort -u); [ -z "$j" ] && break; '
    "[ $t = 1 ] && scancel $j; sleep 0.$t; done; "
    'squeue -h -a -t all -o %A | sort -n | tail -1; [ -z "$j" ]'
)
# what a command line touches, and what puts it back
CLEAN_MORE = {
    "reservation": "scontrol show reservation -o | "
    "sed -n 's/ReservationName=\\([^ ]*\\).*/\\1/p' | xargs -r -n1 scontrol delete reservation",
    "node": "scontrol update nodename=n[1-4] state=resume reason= weight=1 "
    "features=f1 activefeatures=f1 comment= extra= cpubind=off gres=",
    "partition": "for p in p1 p2; do scontrol delete partitionname=$p; done; "
    "scontrol update partitionname=debug state=up maxtime=60 maxnodes=unlimited minnodes=0 "
    "hidden=no priority=1 defaulttime=none allowgroups=all; "
    "scontrol update partitionname=batch state=up maxtime=600 default=no maxnodes=unlimited "
    "hidden=no priority=1 defaulttime=none allowgroups=all",
    "sacctmgr": "sacctmgr -i delete user daemon,bin,sys; sacctmgr -i delete account a1,a2; "
    "sacctmgr -i delete qos q1,q2",
}


def kit() -> Any:
    """The runner of the conformance kit, whose rules for what changes are used here."""
    path = ROOT / "tests" / "conformance" / "conform"
    loader = importlib.machinery.SourceFileLoader("conformance_kit", str(path))
    spec = importlib.util.spec_from_loader("conformance_kit", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class Side:
    """A cluster to type command lines at."""

    def __init__(self, name: str, work: Path, environment: dict[str, str], bins: list[str]) -> None:
        self.name, self.work, self.environment = name, work, environment
        self.numbers: dict[str, str] = {}
        self.first = FIRST_JOB
        self.submitted: list[int] = []
        self.normal = kit().Normal(str(work), bins, environment["SLURM_CONF"])
        self.mutate: Callable[[Step, str, str, int | str], tuple[str, str, int | str]] | None = None

    def shell(
        self, line: str, user: str = "", env: dict[str, str] | None = None, limit_s: float = LIMIT_S
    ) -> tuple[str, str, int | str]:
        who = user or "root"
        environment = self.environment | {"USER": who, "LOGNAME": who} | (env or {})
        process = subprocess.Popen(
            ["bash", "-c", line], env=environment, cwd=self.work, user=who,
            group=pwd.getpwnam(who).pw_gid, extra_groups=[], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        code: int | str
        try:
            out, err = process.communicate(timeout=limit_s)
            code = process.returncode
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            out, err = process.communicate()
            code = "timeout"
        texts = [each[:MOST_READ].decode(errors="replace") for each in (out, err)]
        return texts[0], texts[1], code

    def begin(self, first: int) -> None:
        """A new sequence, whose first job will have this number."""
        self.numbers.clear()
        self.submitted = []
        self.first = first
        self.normal.base, self.normal.rebased = 10**9, True  # they are counted here

    def type(self, step: Step) -> Observation:
        out, err, code = self.raw(step)
        return self.seen(out, err, code, step.run)

    def raw(self, step: Step) -> tuple[str, str, int | str]:
        """What the step printed, and its exit code."""
        if step.script:
            path = self.work / "job.sh"
            path.write_text(step.script)
            path.chmod(0o755)
        out, err, code = self.shell(step.filled(self.numbers), step.user, dict(step.env))
        if self.mutate is not None:
            out, err, code = self.mutate(step, out, err, code)
        if step.command == "sbatch" and (match := re.search(r"job (\d+)", out)):
            self.submitted.append(int(match[1]))
            if step.saves:
                self.numbers[step.saves] = match[1]
        return out, err, code

    def seen(self, out: str, err: str, code: int | str, line: str) -> Observation:
        command = line.split(maxsplit=1)[0]
        both = [
            own_rules(
                self.normal("\n".join(self.without_earlier(text)), (), (), line).split("\n"),
                command,
            )
            for text in (JOB.sub(self.label, text) for text in (out, err))
        ]
        errors = [text for text in both[1] if text and not OVERHEARD.search(text)]
        return Observation(code, both[0], errors)

    def label(self, match: re.Match[str]) -> str:
        """A job's number as that of its submission: what is refused may have used one up."""
        number = int(match[0])
        before = [each for each in self.submitted if each <= number]
        if not before:
            return f"J000+{number - self.first}" if number >= self.first else match[0]
        behind = number - before[-1]
        return f"J{len(before):03d}" + (f"+{behind}" if behind else "")

    def _is_earlier(self, block: str) -> bool:
        match = re.match(r"\s*JobId=(\d+)", block)
        return match is not None and FIRST_JOB <= int(match[1]) < self.first

    def without_earlier(self, text: str) -> list[str]:
        """The lines that are not of a job of an earlier sequence, nor of its block of lines."""
        if "\n\n" in text:
            text = "\n\n".join(each for each in text.split("\n\n") if not self._is_earlier(each))
        return [
            line
            for line in text.rstrip("\n").split("\n")
            if not any(FIRST_JOB <= int(word[0]) < self.first for word in JOB.finditer(line))
        ]

    def state(self, line: str) -> Observation:
        out, err, code = self.shell(line)
        if self.mutate is not None:
            out, err, code = self.mutate_state(line, out, err, code)
        blocks = [block for block in out.split("\n\n") if not self._is_earlier(block)]
        out = "\n".join(blocks)
        return self.seen(out, err, code, line)

    def mutate_state(
        self, line: str, out: str, err: str, code: int | str
    ) -> tuple[str, str, int | str]:
        from differential.sequence import Step

        assert self.mutate is not None
        return self.mutate(Step(run=f"state: {line}"), out, err, code)


class Pair:
    """Both sides, at the same place."""

    def __init__(self, folder: Path, *, own_conf: str = OWN_CONF) -> None:
        self.folder, self.conf = folder, CONF + own_conf
        self.real = RealSlurm(folder / "slurm", self.conf, accounting=True, cluster=CLUSTER)
        self.pool = ThreadPoolExecutor(2)
        self.typists = ThreadPoolExecutor(2 * AT_A_TIME)
        self.sides: list[Side] = []
        self.baseline: list[str] = []
        self.next_job = [FIRST_JOB, FIRST_JOB]
        self.restarts = 0

    @contextlib.contextmanager
    def up(self) -> Iterator[Pair]:
        self.folder.chmod(0o755)
        self.real.folder.mkdir()
        ours = self.folder / "ours"
        (ours / "w").mkdir(parents=True)
        (ours / "w").chmod(0o777)
        with reserved(3) as ports, self.real.up():
            self.our_conf = ours / "slurm.conf"
            head = OUR_HEAD.format(
                cluster=CLUSTER, host=socket.gethostname().partition(".")[0], folder=ours,
                port=ports[0], node_port=ports[1], dbd_port=ports[2],
            )  # fmt: skip
            self.our_conf.write_text(head + self.conf)
            common = {"HOME": "/root", "SHELL": "/bin/bash", "LC_ALL": "C", "TZ": "UTC"}
            path = f"{BIN}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
            places = {"SLURM_CONF": str(self.our_conf), "UNDERSTUDY_REGISTRY": str(ours / "reg")}
            self.our_environment = common | places | {"PATH": path}
            theirs = common | {"SLURM_CONF": self.real.environment["SLURM_CONF"]}
            theirs["PATH"] = "/usr/bin:/bin:/usr/sbin:/sbin"
            self.sides = [
                Side("Slurm", self.real.folder / "home", theirs, ["/usr/bin"]),
                Side("ours", ours / "w", self.our_environment, [str(BIN)]),
            ]
            os.environ["TZ"] = "UTC"
            time.tzset()
            try:
                self._up_ours()
                self._take_baseline()
                yield self
            finally:
                self._understudy("down", check=False)

    def _understudy(self, *words: str, check: bool = True) -> None:
        more = ("--zygote",) if words[0] == "up" else ()
        subprocess.run(
            [str(BIN / "understudy"), *words, "--run-dir", f"{self.folder}/ours/run", *more],
            check=check, capture_output=True, env=self.our_environment, timeout=120,
        )  # fmt: skip

    def both(self, act: Callable[[Side], Any]) -> list[Any]:
        return list(self.pool.map(act, self.sides))

    def restart(self) -> None:
        """Both as new: no job, nothing in accounting."""
        self.restarts += 1
        list(self.pool.map(lambda each: each(), [self._restart_real, self._restart_ours]))
        self.next_job = [FIRST_JOB, FIRST_JOB]
        self._take_baseline()

    def _restart_real(self) -> None:
        real = self.real
        for name in [*real.nodes, "slurmctld", "slurmdbd"]:
            daemon = real.daemons.pop(name, None)
            if daemon is not None:
                daemon.terminate()
                try:
                    daemon.wait(15)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()
        shutil.rmtree(real.folder / "state", ignore_errors=True)
        (real.folder / "state").mkdir(exist_ok=True)
        subprocess.run(
            ["mariadb", "--no-defaults", f"--socket={real.folder}/sql.sock", "-u", "root", "-e",
             "DROP DATABASE IF EXISTS slurm_acct"], check=True, capture_output=True,
        )  # fmt: skip
        real.start_dbd([])
        real.start_controller()
        real.wait_for_nodes()

    def _restart_ours(self) -> None:
        self._understudy("down", check=False)
        shutil.rmtree(self.folder / "ours" / "run", ignore_errors=True)
        self._up_ours()

    def _up_ours(self) -> None:
        self._understudy("up", "--conf", str(self.our_conf), "--executor", "real", "--clean")

    def _take_baseline(self) -> None:
        self.settle()
        self.baseline = [self._look(side, BASELINE) for side in self.sides]

    def _of_now(self, side: Side, line: str) -> str:
        text = "\n".join(side.without_earlier(self._look(side, line)))
        return JOB.sub(side.label, text)

    @staticmethod
    def _look(side: Side, line: str) -> str:
        return side.shell(line)[0]

    def settle(self, line: str = SNAPSHOT, patience_s: float = SETTLE_S) -> None:
        """Until both show the same and nothing is on its way, or the patience is over."""
        end, pause = time.monotonic() + patience_s, 0.1
        while time.monotonic() < end:
            one, other = self.both(lambda side: self._of_now(side, line))
            if one == other and not UNSETTLED.search(one):
                return
            time.sleep(pause)
            pause *= 1.6

    def play(self, steps: list[Step], *, goes_on: bool = False) -> list[Difference]:
        """Run the steps on both, clean up, and say where they differ. What a command prints may
        differ and the rest be worth while; what it does may not, unless it `goes_on`.
        """
        for side, first in zip(self.sides, self.next_job, strict=True):
            side.begin(first)
        try:
            return self._play(steps, goes_on=goes_on)
        finally:
            self._reset(steps)

    def _play(self, steps: list[Step], *, goes_on: bool) -> list[Difference]:
        differences: list[Difference] = []
        number = 0
        while number < len(steps):
            together = self._together(steps, number)
            if any(step.command == "sacct" for step in together):
                self.settle(RECORDS, RECORDED_S)
            for step, slurm, ours in self._type(together):
                found = compare(slurm, ours, number, step.run)
                if found is not None:
                    differences.append(found)
                if step.changes and not goes_on and bool(slurm.exit) != bool(ours.exit):
                    return differences  # they are no longer in one state
                number += 1
            if step.changes and step.settles and slurm.exit == 0:
                touches_nodes = re.search(r"node|res", step.run, re.IGNORECASE)
                self.settle(SNAPSHOT_OF_NODES if touches_nodes else SNAPSHOT)
        if any(step.changes for step in steps):
            self.settle(SNAPSHOT_OF_NODES)  # what is refused may have changed a part
            accounts = any(step.command == "sacctmgr" for step in steps)
            line = MARK.join(SHOWN_ACCOUNTS if accounts else SHOWN)
            slurm, ours = self.both(lambda side: side.state(line))
            found = compare(slurm, ours, len(steps), line, STATE)
            differences += [found] if found is not None else []
        return differences

    @staticmethod
    def _together(steps: list[Step], begin: int) -> list[Step]:
        """One step that changes something, or all up to the next such one."""
        end = begin + 1
        if not steps[begin].changes:
            while end < len(steps) and not steps[end].changes:
                end += 1
        return steps[begin:end]

    def _type(self, steps: list[Step]) -> list[tuple[Step, Observation, Observation]]:
        given = [[self.typists.submit(side.type, step) for side in self.sides] for step in steps]
        return [
            (step, slurm.result(), ours.result())
            for step, (slurm, ours) in zip(steps, given, strict=True)
        ]

    def _reset(self, steps: list[Step]) -> None:
        if not any(step.changes for step in steps):
            return
        changing = [step.run for step in steps if step.changes]
        text = "\n".join(
            run for run in changing if run.startswith(("scontrol", "sacctmgr"))
        ).lower()
        if re.search(r"\breconf|\breboot", text):
            text += " ".join(CLEAN_MORE)
        touched = [line for word, line in CLEAN_MORE.items() if word in text]
        line = f"{{ {'; '.join(touched)}; }} >&2; {CLEAN}" if touched else CLEAN
        ended = self.both(lambda side: side.shell(line, limit_s=40))
        last = [str(out).split()[-1:] for out, _, _ in ended]
        self.next_job = [int(each[0]) + 1 if each else FIRST_JOB for each in last]
        same = max(self.next_job) < FIRST_JOB + 150
        same = same and all(code == 0 for _, _, code in ended)
        if touched and same:
            same = self.baseline == self.both(lambda side: self._look(side, BASELINE))
        if not same:
            self.restart()
