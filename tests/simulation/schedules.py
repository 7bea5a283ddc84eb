"""What one seed of a fuzzed schedule draws: configuration, accounting, jobs and what administrators
do, as a scenario folder has them.

No clusters here, only texts. The pieces are independent, so that a failing schedule can be made
smaller by leaving some out.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

USERS = ("fu1", "fu2", "fu3", "fu4")
JOBS = 60
_ENFORCED = ("associations", "associations,qos", "limits,qos", "safe,qos", "limits")


@dataclass(frozen=True)
class Schedule:
    """One drawn schedule. `jobs` and `events` are lines of workload.jsonl and events.jsonl."""

    seed: int
    conf: tuple[str, ...] = ()
    gres: tuple[str, ...] = ()
    topology: tuple[str, ...] = ()
    burst_buffer: tuple[str, ...] = ()  # lines of burst_buffer.conf
    accounting: tuple[str, ...] = ()
    jobs: tuple[dict[str, object], ...] = ()
    events: tuple[dict[str, object], ...] = ()
    node_daemons: int = 1
    front_end: bool = True
    span_s: float = 0.0

    def write(self, folder: Path) -> None:
        """As a scenario folder."""
        folder.mkdir(parents=True, exist_ok=True)
        texts = {
            "slurm.conf": self.conf,
            "gres.conf": self.gres,
            "topology.conf": self.topology,
            "burst_buffer.conf": self.burst_buffer,
            "sacctmgr.txt": self.accounting,
        }
        for name, lines in texts.items():
            if lines:
                (folder / name).write_text("\n".join(lines) + "\n")
        (folder / "workload.jsonl").write_text("".join(json.dumps(job) + "\n" for job in self.jobs))
        (folder / "events.jsonl").write_text(
            "".join(json.dumps(event) + "\n" for event in self.events)
        )
        about = {
            "name": f"seed-{self.seed}",
            "horizon": self.span_s + 600,
            "front_end": self.front_end,
        }
        (folder / "about.json").write_text(json.dumps(about) + "\n")


def draw(seed: int, jobs: int = JOBS) -> Schedule:
    """The same for the same seed."""
    drawn = _Drawing(random.Random(f"schedule {seed}"), seed, jobs).draw()
    rng = random.Random(f"burst buffers {seed}")  # apart, so that all else is as it was
    return with_buffers(drawn, rng) if rng.random() <= 1 / 7 else drawn


def with_buffers(schedule: Schedule, rng: random.Random) -> Schedule:
    """The schedule with burst buffers."""
    kind = rng.choice(("lua", "lua", "datawarp"))
    pools = {"pa": rng.choice((10, 40)), "pb": rng.choice((4, 20))}
    file = [
        "Pools=" + ",".join(f"{name}:{size}" for name, size in pools.items()),
        f"Granularity={rng.choice((1, 1, 4))}",
        *(
            f"{stage}Time={rng.choice((0, 0, 1, 7, 30))}"
            for stage in ("Setup", "StageIn", "PreRun", "PostRun", "StageOut", "Teardown")
        ),
        f"OtherTimeout={rng.choice((40, 300))}",
        rng.choice(("", "Flags=TeardownFailure", "Flags=EnablePersistent")),
    ]
    persists = kind == "datawarp" and "Persistent" in file[-1]

    def asking(job: dict[str, object]) -> dict[str, object]:
        options = job["options"]
        assert isinstance(options, list)
        if rng.random() > 0.4:
            return job
        pool = rng.choice(tuple(pools))
        size = rng.choice((1, 2, 3, 5, rng.randint(1, pools[pool])))
        # a pre_run that fails would have its job requeued for ever
        more = rng.choice(("", "", "", " data_in=9", " post_run=20", " pre_run=3"))
        more = rng.choice((" fail=setup", " fail=data_out", " fail=teardown", *[more] * 12))
        if kind == "lua":
            line = f"#BB_LUA pool={pool} capacity={size}{more}"
        elif persists and rng.random() < 0.3:
            what = rng.choice(("create_persistent", "destroy_persistent"))
            line = f"#BB {what} name=p{rng.randint(1, 3)} capacity={size} pool={pool}"
        elif persists and rng.random() < 0.3:
            line = f"#DW persistentdw name=p{rng.randint(1, 3)}"
        else:
            line = f"#DW jobdw capacity={size} pool={pool}{more}"
        return job | {"options": [f"--bb={line}", *options]}

    jobs = tuple(asking(job) for job in schedule.jobs)
    hurried = [
        {
            "at": rng.uniform(0, schedule.span_s + 60),
            "cmd": ["scancel", "--hurry", f"{{{job['id']}}}"],
        }
        for job in jobs
        if rng.random() < 0.05
    ]
    events = sorted([*schedule.events, *hurried], key=lambda each: float(str(each["at"])))
    conf = (*schedule.conf, f"BurstBufferType=burst_buffer/{kind}")
    return replace(
        schedule, conf=conf, burst_buffer=tuple(filter(None, file)), jobs=jobs, events=tuple(events)
    )


@dataclass
class _Drawing:
    rng: random.Random
    seed: int
    count: int
    features: tuple[str, ...] = ()
    gres: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by name: its types
    devices: list[str] = field(default_factory=list)  # lines of gres.conf
    licenses: int = 0
    partitions: tuple[str, ...] = ()
    reservations: list[str] = field(default_factory=list)
    qos: tuple[str, ...] = ()
    limits: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def draw(self) -> Schedule:
        rng = self.rng
        self.nodes = rng.choice((1, 2, 4, 4, 6, 8, 8, 12))
        self.sockets, self.cores, self.threads = (
            rng.choice((1, 1, 2)),
            rng.choice((1, 2, 4, 4)),
            rng.choice((1, 1, 1, 2)),
        )
        self.cpus = self.sockets * self.cores * self.threads
        self.memory = rng.choice((1, 4000, 4000, 8000))
        self.is_linear = self.chance(0.2)
        self.by_memory = self.memory > 1 and self.chance(0.4)
        self.accounted = self.chance(0.4)
        self.preempts = rng.choice(
            (
                "",
                "",
                "partition_prio",
                "partition_prio",
                "qos" if self.accounted else "partition_prio",
            )
        )
        self.gang = self.chance(0.3)
        self.saves_power = self.chance(0.08)
        self.arrays = 0.3 if self.chance(0.15) else 0.08
        self.names = self.chance(0.2)  # that several jobs have
        # of heterogeneous jobs one may wait for ever, and with it all behind it
        self.teams = self.chance(0.3)
        self.span = float(rng.choice((60, 200, 400)))
        # Reservations of whole minutes need a while until they matter.
        schedule = Schedule(
            self.seed,
            span_s=self.span,
            front_end=not self.saves_power and self.chance(0.7),
            node_daemons=rng.randint(1, min(3, self.nodes)),
        )
        conf = self._conf()
        topology = self._topology()
        if topology:
            conf.append("TopologyPlugin=topology/tree")
        accounting = self._accounting() if self.accounted else []
        jobs = [self._job(number) for number in range(1, self.count + 1)]
        jobs.sort(key=lambda job: job["at"])  # type: ignore[arg-type,return-value]
        for number, job in enumerate(jobs, 1):
            job["id"] = f"j{number:03}"
        self._name_others(jobs)
        events = [
            event for event in (self._event() for _ in range(rng.choice((0, 5, 20, 40)))) if event
        ]
        events += self._reservations()
        if self.accounted and self.chance(0.3):
            events += [self._change_of_accounting() for _ in range(rng.choice((1, 3, 8)))]
        events.sort(key=lambda event: event["at"])  # type: ignore[arg-type,return-value]
        return replace(
            schedule,
            conf=tuple(line for line in conf if line),
            gres=tuple(self.devices),
            topology=tuple(topology),
            accounting=tuple(accounting),
            jobs=tuple(jobs),
            events=tuple(events),
        )

    # --- the configuration ------------------------------------------------------------------------

    def _range(self, first: int, last: int) -> str:
        return f"n[{first}-{last}]" if last > first else f"n{first}"

    def _some_nodes(self) -> str:
        first = self.rng.randint(1, self.nodes)
        return self._range(first, min(self.nodes, first + self.rng.choice((0, 0, 1, 3))))

    def _conf(self) -> list[str]:
        rng = self.rng
        self.backfills = self.chance(0.75)
        lines = [
            f"SchedulerType=sched/{'backfill' if self.backfills else 'builtin'}",
            f"SchedulerParameters={self._parameters()}",
        ]
        if self.is_linear:
            lines.append("SelectType=select/linear")
            lines.append("SelectTypeParameters=CR_Memory" if self.by_memory else "")
        else:
            kind = rng.choice(("CR_Core", "CR_Core", "CR_CPU", "CR_Socket")) + (
                "_Memory" if self.by_memory else ""
            )
            more = "".join(
                f",{word}"
                for word in ("CR_Pack_Nodes", "CR_LLN", "CR_ONE_TASK_PER_CORE")
                if self.chance(0.08)
            )
            if kind.startswith("CR_CPU"):
                more = more.replace(",CR_ONE_TASK_PER_CORE", "")  # with which Slurm does not start
            lines += ["SelectType=select/cons_tres", f"SelectTypeParameters={kind}{more}"]
        if self.by_memory:
            lines.append(
                rng.choice(
                    (
                        "DefMemPerCPU=100",
                        "DefMemPerNode=500",
                        "DefMemPerCPU=100\nMaxMemPerCPU=800",
                        "",
                    )
                )
            )
        lines += self._preemption()
        lines.append(f"MinJobAge={rng.choice((0, 0, 0, 30, 300))}")
        lines.append(f"CompleteWait={rng.choice((0, 0, 0, 5))}")
        lines.append(f"KillWait={rng.choice((5, 30))}")
        lines.append("AuthInfo=cred_expire=5")
        lines.append(
            rng.choice(
                (
                    "",
                    "",
                    "EnforcePartLimits=ALL",
                    "EnforcePartLimits=ANY",
                    "OverTimeLimit=1",
                    "JobRequeue=0",
                    "ResvOverRun=1",
                )
            )
        )
        if self.chance(0.4):
            lines.append("PriorityType=priority/multifactor")
            weights = ("Age", "JobSize", "Partition", "QOS", "FairShare")
            lines += [f"PriorityWeight{weight}={rng.choice((0, 100, 1000))}" for weight in weights]
            lines.append(f"PriorityMaxAge=0-0:{rng.choice((1, 10))}\nPriorityCalcPeriod=1")
            lines.append(
                rng.choice(
                    (
                        "",
                        "PriorityFlags=SMALL_RELATIVE_TO_TIME",
                        "PriorityFavorSmall=YES",
                        "PriorityFlags=MAX_TRES",
                    )
                )
            )
        if self.accounted:
            lines.append("AccountingStorageTRES=gres/gpu")
            lines.append(f"AccountingStorageEnforce={rng.choice(_ENFORCED)}")
        if self.chance(0.3):
            self.licenses = rng.randint(1, 4)
            lines.append(f"Licenses=lic:{self.licenses}")
        lines += ["RebootProgram=/bin/true"] if self.chance(0.2) else []
        if self.saves_power:
            lines.append(
                "SuspendTime=30\nSuspendTimeout=10\nResumeTimeout=40\n"
                "SuspendProgram=/bin/true\nResumeProgram=/bin/true"
            )
        return lines + self._nodes() + self._partitions()

    def _parameters(self) -> str:
        rng = self.rng
        words = [f"bf_interval={rng.choice((5, 10, 30))}", f"bf_resolution={rng.choice((1, 60))}"]
        more = (
            "bf_continue",
            "defer",
            "bf_max_job_test=5",
            "bf_max_job_user=3",
            "bf_max_job_part=5",
            "bf_max_job_start=2",
            "bf_one_resv_per_job",
            "bf_running_job_reserve",
            "bf_min_age_reserve=20",
            "bf_min_prio_reserve=100",
            "bf_window=60",
            "bf_busy_nodes",
            "pack_serial_at_end",
            "assoc_limit_stop",
            "partition_job_depth=3",
            "default_queue_depth=5",
            "sched_max_job_start=3",
            "sched_interval=20",
            "max_switch_wait=30",
            "preempt_reorder_count=3",
            "preempt_strict_order",
            "preempt_youngest_first",
            "batch_sched_delay=0",
            "sched_min_interval=2000000",
            "bf_hetjob_immediate",
            "bf_hetjob_prio=min",
            "bf_hetjob_prio=avg",
            "bf_hetjob_prio=max",
            "bf_allow_magnetic_slot",
            "bf_licenses",
            "nohold_on_prolog_fail",
            "Ignore_NUMA",
            "spec_cores_first",
            "kill_invalid_depend",
            "bf_max_job_array_resv=1",
            "max_rpc_cnt=1",
        )
        return ",".join([*words, *(word for word in more if self.chance(0.08))])

    def _preemption(self) -> list[str]:
        rng = self.rng
        lines = []
        if self.preempts:
            kinds = (
                ("CANCEL", "REQUEUE", "SUSPEND,GANG", "REQUEUE,GANG")
                if self.preempts != "qos"
                else ("CANCEL", "REQUEUE", "REQUEUE", "SUSPEND,GANG")
            )
            lines += [f"PreemptType=preempt/{self.preempts}", f"PreemptMode={rng.choice(kinds)}"]
            lines.append(
                f"PreemptExemptTime=00:00:{rng.choice((10, 40))}" if self.chance(0.2) else ""
            )
        elif self.gang:
            lines.append("PreemptMode=GANG")
        lines.append(f"SchedulerTimeSlice={rng.choice((5, 20))}")
        return lines

    def _nodes(self) -> list[str]:
        rng = self.rng
        size = f"Sockets={self.sockets} CoresPerSocket={self.cores} ThreadsPerCore={self.threads}"
        size = f"CPUs={self.cpus} " + (
            size if self.threads > 1 or self.sockets > 1 or self.chance(0.5) else ""
        )
        memory = f" RealMemory={self.memory}" if self.memory > 1 else ""
        if not self.is_linear and self.chance(0.3):
            self.gres = {"gpu": rng.choice(((), ("a",), ("a", "b"))), "tape": ()}
        if self.chance(0.3):
            self.features = ("big", "fast", "rack1")[: rng.randint(1, 3)]
        found = ["GresTypes=gpu,tape"] if self.gres else []
        first = 1
        while first <= self.nodes:
            last = self.nodes if self.chance(0.5) else rng.randint(first, self.nodes)
            line = f"NodeName={self._range(first, last)} {size}{memory}"
            if self.gres and self.chance(0.8):
                kinds = self.gres["gpu"]
                counts = [(kind, rng.randint(1, 4)) for kind in kinds or ("",)]
                gpus = [f"gpu:{kind}:{count}" if kind else f"gpu:{count}" for kind, count in counts]
                if self.chance(0.4):
                    self._files(self._range(first, last), counts)
                line += f" Gres={','.join([*gpus, *(['tape:2'] if self.chance(0.5) else [])])}"
            if self.features and self.chance(0.7):
                count = rng.randint(1, len(self.features))
                line += f" Feature={','.join(rng.sample(self.features, count))}"
            if self.chance(0.3):
                line += f" Weight={rng.choice((1, 5, 10))}"
            if self.chance(0.05) and self.sockets * self.cores > 1 and not self.is_linear:
                line += " CoreSpecCount=1"
            if self.chance(0.05) and self.memory > 1:
                line += " MemSpecLimit=1000"
            found.append(line)
            first = last + 1
        return found

    def _files(self, nodes: str, counts: list[tuple[str, int]]) -> None:
        """Lines of gres.conf: the GPUs are told apart, and may be nearer to some cores."""
        number = 0
        near = (
            f" Cores=0-{self.sockets * self.cores // 2 - 1}"
            if self.sockets * self.cores > 1 and self.chance(0.5)
            else ""
        )
        for kind, count in counts:
            files = (
                f"File=/dev/nvidia[{number}-{number + count - 1}]"
                if count > 1
                else f"File=/dev/nvidia{number}"
            )
            self.devices.append(
                f"NodeName={nodes} Name=gpu {f'Type={kind} ' if kind else ''}{files}{near}"
            )
            number += count

    def _partitions(self) -> list[str]:
        rng = self.rng
        self.partitions = ("low", "mid", "high")[
            : rng.choice((1, 2, 3, 3) if not self.preempts else (2, 3, 3))
        ]
        every = self._range(1, self.nodes)
        found = []
        for place, name in enumerate(self.partitions):
            nodes = (
                every
                if place == 0 or self.chance(0.7)
                else self._range(rng.randint(1, self.nodes), self.nodes)
            )
            line = (
                f"PartitionName={name} Nodes={nodes} "
                f"PriorityTier={(1, 5, 9)[place] if self.preempts or self.chance(0.3) else 1}"
            )
            line += " Default=YES" if place == 0 else ""
            shared = ("EXCLUSIVE", "FORCE:1", "FORCE:2", "FORCE:3", "YES:2", "YES:4", "NO")
            if self.chance(0.7 if self.gang or "partition" in self.preempts else 0.2):
                line += f" OverSubscribe={rng.choice(shared)}"
            if self.preempts == "partition_prio" and self.chance(0.6):
                modes = ("OFF", "CANCEL", "REQUEUE", "REQUEUE", "SUSPEND", "SUSPEND")
                line += f" PreemptMode={rng.choice(modes)}"
            if self.preempts and self.chance(0.4):
                line += f" GraceTime={rng.choice((5, 20))}"
            if self.chance(0.15):
                line += rng.choice(
                    (
                        " MaxTime=2",
                        " MaxNodes=2",
                        " MinNodes=2",
                        " MaxCPUsPerNode=2",
                        " DefaultTime=1",
                        " LLN=YES",
                        " ExclusiveUser=YES",
                    )
                )
            if self.accounted and self.chance(0.2):
                line += rng.choice(
                    (
                        " QOS=q1",
                        " QOS=q2",
                        " QOS=q3",
                        " AllowAccounts=a1",
                        " DenyQos=q1",
                        " AllowQos=normal,q2",
                        " TRESBillingWeights=CPU=2",
                    )
                )
            if self.chance(0.03):
                line += rng.choice(
                    (
                        " ReqResv=YES",
                        " DisableRootJobs=YES",
                        " AllocNodes=ALL",
                        " OverTimeLimit=1",
                        " MaxMemPerCPU=1000",
                    )
                )
            if self.by_memory and self.chance(0.15):
                line += rng.choice((" DefMemPerCPU=50", " MaxMemPerNode=3000"))
            if "MaxTime" not in line:
                line += " MaxTime=INFINITE"
            found.append(line + " State=UP")
        return found

    def _topology(self) -> list[str]:
        if self.nodes < 4 or not self.chance(0.15):
            return []
        half = self.nodes // 2
        leaves = [
            f"SwitchName=s1 Nodes={self._range(1, half)}",
            f"SwitchName=s2 Nodes={self._range(half + 1, self.nodes)}",
        ]
        return [*leaves, *(["SwitchName=top Switches=s[1-2]"] if self.chance(0.8) else [])]

    def _accounting(self) -> list[str]:
        rng = self.rng
        limits = (
            "GrpTRES=cpu={}",
            "GrpJobs={}",
            "MaxJobs={}",
            "GrpSubmitJobs=1{}",
            "MaxTRES=cpu={}",
            "GrpWall={}",
            "GrpTRES=node={}",
            "MaxWall={}",
            "GrpTRESRunMins=cpu={}",
            "MaxTRESMins=cpu=1{}",
            "GrpTRESMins=cpu={}",
            "MaxSubmitJobs=1{}",
            "MaxTRESPerNode=cpu={}",
            "GrpTRES=billing={}",
        )
        qos_limits = (
            *limits[:2],
            "MaxJobsPerUser={}",
            "MaxTRESPerUser=cpu={}",
            "MaxTRESPerJob=cpu={}",
            "MaxJobsPerAccount={}",
            "MinTRESPerJob=cpu=2",
            "GrpTRES=node={}",
            "MaxTRESPerUser=node={}",
            "GrpTRES=mem={}000",
            "MaxWall={}",
            "Flags=DenyOnLimit MaxTRESPerJob=node={}",
            "GrpWall={}",
            "MaxTRESPerAccount=cpu={}",
            "MaxSubmitJobsPerUser=1{}",
            "GrpTRESRunMins=cpu=1{}",
            "Flags=OverPartQOS MaxJobsPerUser={}",
            "Flags=NoReserve GrpTRES=cpu={}",
            "Flags=PartitionTimeLimit,PartitionMaxNodes,PartitionMinNodes GrpJobs={}",
            "MinPrioThres={}00",
            *(("GrpTRES=gres/gpu={}", "MaxTRESPerUser=gres/gpu={}") if self.gres else ()),
        )
        self.limits = limits[:5], qos_limits[:6]
        lines = []
        self.qos = ("q1", "q2", "q3")
        for place, name in enumerate(self.qos):
            line = f"add qos {name} Priority={rng.choice((0, 10, 100))}"
            for limit in rng.sample(qos_limits, rng.choice((0, 1, 2))):
                line += " " + limit.format(rng.randint(2, 9))
            if self.preempts == "qos" and place:
                line += f" Preempt={','.join(self.qos[:place])}"
            if self.preempts == "qos" and self.chance(0.5):
                modes = ("cancel", "requeue", "requeue", "suspend", "within")
                line += f" PreemptMode={rng.choice(modes)}"
            if self.preempts == "qos" and self.chance(0.3):
                line += f" GraceTime={rng.choice((5, 20))}"
            lines.append(line)
        for name in ("a1", "a2"):
            line = (
                f"add account {name} Description=d Organization=o Fairshare={rng.choice((1, 10))}"
            )
            lines.append(
                line
                + (" " + rng.choice(limits).format(rng.randint(3, 20)) if self.chance(0.4) else "")
            )
        for user in USERS:
            line = (
                f"add user {user} account={rng.choice(('a1', 'a2', 'a1,a2'))} "
                f"qos=normal,{','.join(self.qos)} defaultqos=normal"
            )
            lines.append(
                line
                + (" " + rng.choice(limits).format(rng.randint(1, 12)) if self.chance(0.3) else "")
            )
        return lines

    # --- jobs -------------------------------------------------------------------------------------

    def _when(self) -> float:
        """Half of what happens falls on full seconds, where races are."""
        at = self.rng.uniform(0.0, self.span)
        return float(int(at)) if self.chance(0.5) else round(at, 1)

    def _job(self, number: int) -> dict[str, object]:
        rng = self.rng
        run = (
            rng.choice((0, 1, 8, 20, 45, 90, 130)) + round(rng.random(), 1)
            if self.chance(0.8)
            else round(rng.uniform(0, 5), 2)
        )
        options: list[str] = []
        if len(self.partitions) > 1 and self.chance(0.8):
            some = rng.sample(self.partitions, rng.choice((1, 1, 1, min(2, len(self.partitions)))))
            options.append(f"--partition={','.join(some)}")
        match rng.randrange(6):
            case 0:
                options.append(f"--ntasks={rng.randint(1, self.nodes * self.cpus)}")
            case 1:
                options += [
                    f"--nodes={rng.randint(1, self.nodes)}",
                    f"--ntasks-per-node={rng.randint(1, self.cpus)}",
                ]
            case 2:
                options += [
                    f"--ntasks={rng.randint(1, 2 * self.cpus)}",
                    f"--cpus-per-task={rng.randint(1, self.cpus)}",
                ]
            case 3:
                least = rng.randint(1, self.nodes)
                options.append(f"--nodes={least}-{rng.randint(least, self.nodes)}")
            case 4:
                options.append(f"--nodes={rng.randint(1, self.nodes)}")
            case _:
                options.append(f"--ntasks={rng.choice((1, 1, 2, 4))}")
        options.append(
            rng.choice(
                (
                    "--time=1",
                    "--time=1",
                    "--time=2",
                    "--time=3",
                    "--time=5",
                    f"--time={rng.randint(1, 9)}",
                )
            )
        )
        wishes: list[tuple[float, str]] = [
            (0.06, "--exclusive"),
            (0.02, "--exclusive=user"),
            (0.08, "--oversubscribe"),
            (0.03, "--overcommit"),
            (0.05, "--hold"),
            (0.03, "--requeue"),
            (0.03, "--no-requeue"),
            (0.04, f"--begin=now+{rng.randint(1, 120)}"),
            (0.04, "--nice=50"),
            (0.03, f"--nodelist={self._some_nodes()}"),
            (0.04, f"--exclude={self._some_nodes()}"),
            (0.03, "--time-min=1"),
            (0.02, f"--deadline=now+{rng.randint(2, 12)}minutes"),
            (0.03, "--contiguous"),
            (0.02, "--mincpus=2"),
            (0.02, f"--signal=USR1@{rng.randint(1, 70)}"),
            (0.02, "--signal=R:USR1@10"),
            (0.02, "--spread-job"),
            (0.02, "--use-min-nodes"),
            (0.03, "--dependency=singleton"),
            (0.02, "--priority=1000"),
            (0.02, "--hint=nomultithread"),
            (0.02, "--threads-per-core=1"),
            (0.02, "--core-spec=1"),
            (0.02, "--ntasks-per-core=1"),
            (0.02, "--ntasks-per-socket=1"),
            (0.02, "--no-kill"),
            (0.02, "--delay-boot=10"),
            (0.02, "--reboot"),
            (0.04, f"--switches=1@00:{rng.choice(('10', '59'))}"),
            (0.02, "--wait-all-nodes=1"),
            (0.02, "--sockets-per-node=1"),
            (0.01, "--thread-spec=1"),
        ]
        options += [word for share, word in wishes if self.chance(share)]
        if self.memory > 1 and self.chance(0.3):
            word = rng.choice(
                (
                    "--mem=0",
                    f"--mem={rng.randint(1, self.memory)}",
                    f"--mem-per-cpu={rng.randint(1, 2 * self.memory // self.cpus)}",
                )
            )
            options.append(word)
        if self.gres and self.chance(0.5):
            options += self._devices()
        if self.features and self.chance(0.3):
            one, other = rng.choice(self.features), rng.choice(self.features)
            options.append(
                rng.choice(
                    (
                        f"--constraint={one}",
                        f"--constraint={one}&{other}",
                        f"--constraint={one}|{other}",
                        f"--prefer={one}",
                        f"--constraint=[{one}|{other}]",
                        f"--constraint=[{one}*1&{other}*1]",
                    )
                )
            )
        if self.licenses and self.chance(0.3):
            options.append(f"--licenses=lic:{rng.randint(1, self.licenses)}")
        if self.accounted:
            options += [f"--account={rng.choice(('a1', 'a2'))}"] if self.chance(0.3) else []
            options += [f"--qos={rng.choice(('normal', *self.qos))}"] if self.chance(0.7) else []
        job: dict[str, object] = {
            "id": "",
            "at": self._when(),
            "user": rng.choice(USERS),
            "run": run,
            "options": options,
        }
        if self.names and self.chance(0.5):
            job["name"] = rng.choice(("a", "b"))
            options += ["--dependency=singleton"] if self.chance(0.4) else []
        if self.chance(self.arrays):
            last = rng.randint(0, 7)
            options.append(
                f"--array={rng.randint(0, last)}-{last}" + rng.choice(("", "", "%1", "%2", ":2"))
            )
        elif self.backfills and self.teams and self.chance(0.05):
            for _ in range(rng.choice((1, 1, 2))):
                options += [
                    ":",
                    rng.choice(
                        (
                            f"--ntasks={rng.randint(1, self.cpus)}",
                            f"--nodes={rng.randint(1, self.nodes)}",
                        )
                    ),
                ]
                options += (
                    [f"--partition={rng.choice(self.partitions)}"] if self.chance(0.5) else []
                )
                options += (
                    [f"--qos={rng.choice(self.qos)}"] if self.qos and self.chance(0.3) else []
                )
        if self.chance(0.08):
            job["exit"] = 1
        return job

    def _devices(self) -> list[str]:
        rng = self.rng
        kinds = self.gres["gpu"]
        kind = f"{rng.choice(kinds)}:" if kinds and self.chance(0.5) else ""
        count = rng.randint(1, 3)
        return rng.choice(
            (
                [f"--gres=gpu:{kind}{count}"],
                [f"--gpus={kind}{count}"],
                [f"--gpus-per-node={kind}{count}"],
                [f"--gpus-per-task={kind}1", "--ntasks=2"],
                ["--gres=tape:1"],
                [f"--gres=gpu:{kind}1,tape:1"],
                [f"--gpus={count}", "--cpus-per-gpu=1"],
                ["--gpus=1", "--mem-per-gpu=100"],
                ["--gpus-per-socket=1", "--sockets-per-node=1"],
                [f"--gpus-per-node={count}", "--gres-flags=enforce-binding"],
            )
        )

    def _name_others(self, jobs: list[dict[str, object]]) -> None:
        """Dependencies on earlier jobs, and reservations."""
        rng = self.rng
        self.reservations = [
            f"r{number}" for number in range(1, 1 + rng.choice((0, 0, 0, 1, 2, 4)))
        ]
        for place, job in enumerate(jobs):
            options = job["options"]
            assert isinstance(options, list)
            if place and self.chance(0.06):
                other = f"{{{jobs[rng.randrange(place)]['id']}}}"
                kind = rng.choice(("afterany", "afterok", "afternotok", "after", "aftercorr"))
                options.insert(
                    0,
                    f"--dependency={kind}:{other}"
                    + (rng.choice((",", "?")) + f"afterany:{other}" if self.chance(0.2) else ""),
                )
            if self.reservations and self.chance(0.25):
                options.insert(0, f"--reservation={rng.choice(self.reservations)}")

    # --- administrators ---------------------------------------------------------------------------

    def _reservations(self) -> list[dict[str, object]]:
        rng = self.rng
        events: list[dict[str, object]] = []
        flags = (
            "MAINT",
            "IGNORE_JOBS",
            "OVERLAP",
            "FLEX",
            "MAGNETIC",
            "ANY_NODES",
            "SPEC_NODES",
            "PART_NODES",
            "NO_HOLD_JOBS_AFTER",
            "REPLACE",
            "REPLACE_DOWN",
            "STATIC_ALLOC",
            "PURGE_COMP",
            "TIME_FLOAT",
            "DAILY",
            "HOURLY",
        )
        for name in self.reservations:
            words = [
                f"ReservationName={name}",
                f"StartTime={rng.choice(('now', f'@{rng.randrange(0, 300)}'))}",
                f"Duration={rng.choice((1, 2, 5))}",
            ]
            words.append(
                rng.choice(
                    (
                        "Users=fu1",
                        "Users=fu1,fu2",
                        "Users=fu1,fu2,fu3,fu4",
                        "Users=-fu1",
                        "Users=root",
                        *(("Accounts=a1",) if self.accounted else ()),
                    )
                )
            )
            words.append(
                rng.choice(
                    (
                        f"Nodes={self._some_nodes()}",
                        f"NodeCnt={rng.randint(1, self.nodes)}",
                        f"CoreCnt={rng.randint(1, self.cpus)}",
                        "Nodes=ALL",
                        *(
                            (f"Licenses=lic:{rng.randint(1, self.licenses)}",)
                            if self.licenses
                            else ()
                        ),
                    )
                )
            )
            if "NodeCnt" in words[-1] or "CoreCnt" in words[-1] or self.chance(0.2):
                words.append(f"PartitionName={rng.choice(self.partitions)}")
            chosen = [flag for flag in flags if self.chance(0.08)]
            if "Licenses" in words[-1]:
                chosen.append("ANY_NODES")
            words += [f"Flags={','.join(chosen)}"] if chosen else []
            words += ["MaxStartDelay=10"] if self.chance(0.05) else []
            events.append(
                {
                    "at": round(rng.uniform(0, self.span / 2), 1),
                    "cmd": ["scontrol", "create", "reservation", *words],
                }
            )
            if self.chance(0.5):
                change = rng.choice(
                    (
                        ["update", f"ReservationName={name}", f"Duration={rng.choice((1, 3))}"],
                        ["delete", f"ReservationName={name}"],
                        [
                            "update",
                            f"ReservationName={name}",
                            f"Users={rng.choice(('+fu3', 'fu2'))}",
                        ],
                        [
                            "update",
                            f"ReservationName={name}",
                            f"NodeCnt={rng.randint(1, self.nodes)}",
                        ],
                        ["update", f"ReservationName={name}", "Flags+=IGNORE_JOBS"],
                        ["update", f"ReservationName={name}", f"Nodes={self._some_nodes()}"],
                        ["update", f"ReservationName={name}", "SKIP"],
                    )
                )
                events.append({"at": self._when(), "cmd": ["scontrol", *change]})
        return events

    def _change_of_accounting(self) -> dict[str, object]:
        rng = self.rng
        of_associations, of_qos = self.limits
        limit, other = (
            rng.choice(of_associations).format(rng.randint(1, 9)),
            rng.choice(of_qos).format(rng.randint(1, 9)),
        )
        limit, other = (
            re.sub(r"\d+$", "-1", each) if self.chance(0.3) else each for each in (limit, other)
        )
        words = rng.choice(
            (
                ["qos", rng.choice(self.qos), "set", other],
                ["qos", rng.choice(self.qos), "set", f"Priority={rng.choice((0, 50))}"],
                ["account", rng.choice(("a1", "a2")), "set", limit],
                ["user", rng.choice(USERS), "set", limit],
                [
                    "user",
                    rng.choice(USERS),
                    "set",
                    f"qos={rng.choice(('normal', 'normal,q1,q2,q3'))}",
                ],
                ["user", rng.choice(USERS), "set", "Fairshare=5"],
            )
        )
        return {"at": self._when(), "cmd": ["sacctmgr", "-i", "modify", *words]}

    def _event(self) -> dict[str, object]:
        rng = self.rng
        job = f"{{j{rng.randint(1, self.count):03}}}"
        one = f"JobId={job}" + (f"_{rng.randint(0, 4)}" if self.chance(0.1) else "")
        partition = f"PartitionName={rng.choice(self.partitions)}"
        nodes = self._some_nodes()
        update_job = (
            f"TimeLimit={rng.choice(('1', '5', '+1', '-1'))}",
            f"Priority={rng.choice((0, 1, 99999))}",
            f"NumNodes={rng.randint(1, self.nodes)}",
            "Nice=10",
            f"Partition={rng.choice(self.partitions)}",
            f"NumCPUs={rng.randint(1, self.nodes * self.cpus)}",
            f"StartTime=now+{rng.randint(1, 100)}",
            "Dependency=",
            f"ReqNodeList={nodes}",
            f"ExcNodeList={nodes}",
            "Requeue=0",
            f"MinMemoryNode={rng.randint(1, 4000)}",
            "Name=renamed",
            "OverSubscribe=yes",
            "ReservationName=r1",
            "Licenses=lic:1",
            "ArrayTaskThrottle=1",
            "Deadline=now+5minutes",
            "Contiguous=yes",
            "QOS=q1",
            "Account=a2",
            "NumTasks=2",
            "Partition=extra",
            "TimeMin=1",
            "EndTime=now+1minutes",
            f"MinCPUsNode={rng.randint(1, self.cpus)}",
            f"Features={rng.choice(self.features or ('none',))}",
            "Gres=gpu:1",
            "QOS=normal",
        )
        commands: list[tuple[int, list[str]]] = [
            (4, ["scancel", job]),
            (1, ["scancel", f"{job}_{rng.randint(0, 4)}"]),
            (1, ["scancel", "-s", rng.choice(("STOP", "CONT", "TERM", "KILL")), job]),
            (1, ["scancel", "-t", "PD", job]),
            (1, ["scancel", "-b", "-s", "USR1", job]),
            (3, ["scontrol", "hold", job]),
            (3, ["scontrol", "release", job]),
            (1, ["scontrol", "uhold", job]),
            (3, ["scontrol", "requeue", job]),
            (1, ["scontrol", "requeuehold", job]),
            (3, ["scontrol", "suspend", job]),
            (3, ["scontrol", "resume", job]),
            (1, ["scontrol", "top", job]),
            (6, ["scontrol", "update", one, rng.choice(update_job)]),
            (1, ["scontrol", "reconfigure"]),
            (2, ["scontrol", "update", f"NodeName={nodes}", "State=DOWN", "Reason=x"]),
            (2, ["scontrol", "update", f"NodeName={nodes}", "State=DRAIN", "Reason=x"]),
            (4, ["scontrol", "update", f"NodeName={nodes}", "State=RESUME"]),
            (1, ["scontrol", "update", f"NodeName={nodes}", f"Weight={rng.randint(1, 9)}"]),
            (
                1,
                [
                    "scontrol",
                    "update",
                    f"NodeName={nodes}",
                    rng.choice(
                        (
                            "State=FAIL",
                            "State=UNDRAIN",
                            "State=IDLE",
                            "State=POWER_DOWN",
                            "State=POWER_UP",
                        )
                    ),
                ],
            ),
            (
                1,
                [
                    "scontrol",
                    "reboot",
                    *rng.choice(((), ("ASAP",), ("ASAP", "nextstate=RESUME"))),
                    nodes,
                ],
            ),
            (1, ["scontrol", "cancel_reboot", nodes]),
            (
                1,
                [
                    "scontrol",
                    "create",
                    f"PartitionName={rng.choice(('extra', 'low'))}",
                    f"Nodes={nodes}",
                    "MaxTime=INFINITE",
                ],
            ),
            (1, ["scontrol", "delete", "PartitionName=extra"]),
            (
                1,
                [
                    "scontrol",
                    "update",
                    partition,
                    f"State={rng.choice(('UP', 'UP', 'DOWN', 'DRAIN', 'INACTIVE'))}",
                ],
            ),
            (
                1,
                [
                    "scontrol",
                    "update",
                    partition,
                    rng.choice(
                        (
                            "PriorityTier=7",
                            "MaxTime=2",
                            "MaxNodes=3",
                            "OverSubscribe=NO",
                            "OverSubscribe=FORCE:2",
                            "PreemptMode=REQUEUE",
                            "PreemptMode=SUSPEND",
                            "GraceTime=10",
                            f"Nodes={nodes}",
                            "MinNodes=2",
                            "MaxTime=INFINITE",
                            "ExclusiveUser=YES",
                            "OverSubscribe=EXCLUSIVE",
                            "QOS=q1",
                            "AllowAccounts=a1",
                        )
                    ),
                ],
            ),
        ]
        if self.gres:
            commands.append(
                (1, ["scontrol", "update", f"NodeName={nodes}", f"Gres=gpu:{rng.randint(0, 3)}"])
            )
        if self.features:
            commands.append(
                (
                    1,
                    [
                        "scontrol",
                        "update",
                        f"NodeName={nodes}",
                        f"Features={rng.choice(self.features)}",
                    ],
                )
            )
        weights, words = zip(*commands, strict=True)
        return {"at": self._when(), "cmd": rng.choices(words, weights)[0]}
