"""What one seed draws: the cluster, its time and messages, the jobs, and what goes wrong when. No
clusters here, only numbers.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, fields

EPOCH = 1_700_000_000.0


TEXTBOOK = (
    *("fcfs", "easy", "easy-bb", "easy-nobb", "sjf-bb", "filler", "conservative"),
    *("bbsched", "bbsched"),
)


@dataclass
class Draw:
    """All options of one simulation."""

    seed: int
    nodes: int = 0
    cpus: int = 0
    threads: int = 1
    memory_mb: int = 0
    scheduler: str = ""
    parameters: str = ""
    selector: str = ""
    selector_parameters: str = ""
    node_daemons: int = 1
    latency_s: float = 0.001
    link_latency: dict[str, float] = field(default_factory=dict)
    seems_real: bool = False  # daemons believe in real time: messages may get lost, daemons may die
    state: str = "memory"
    disk_s: float = 0.004
    jobs: int = 0
    span_s: int = 0
    longest_run_s: int = 0
    limits_matter: float = 0.0  # share of jobs that outlast their limit
    return_to_service: int = 2
    slurmd_timeout_s: int = 300
    min_job_age_s: int = 0
    requeue: bool = True
    credential_lifetime_s: int = 120
    meddling: int = 0  # cancels, holds, updates ... in all
    node_trouble: int = 0  # nodes set down, drained, resumed
    faults: int = 0  # noded/faults.py
    cuts: int = 0  # links that fail for a while
    node_daemon_deaths: int = 0
    controller_deaths: int = 0
    arrays: float = 0.0  # share of submissions
    licenses: int = 0
    priority: str = "basic"
    suspend_s: int = 0  # SuspendTime: idle nodes are switched off
    preempt: str = ""  # PreemptMode: jobs of the partition `half` come first
    rows: int = 0  # jobs that may share a core

    @classmethod
    def of(cls, seed: int) -> Draw:
        """The same for the same seed."""
        rng = random.Random(f"draw {seed}")
        self = cls(seed)
        self.nodes = rng.choice((1, 2, 3, 5, 8, 13, 37, 100))
        self.cpus = rng.choice((1, 1, 2, 4, 7, 16))
        self.threads = rng.choice((1, 1, 2)) if self.cpus % 2 == 0 else 1
        self.memory_mb = rng.choice((0, 4000))
        self.scheduler = rng.choice(("builtin", "backfill", "backfill", "fcfs", "easy"))
        if self.scheduler in ("fcfs", "easy"):
            _choose_textbook(self, random.Random(f"textbook {seed}"))
        if self.scheduler == "backfill":
            self.parameters = rng.choice(
                (
                    "",
                    "bf_interval=10",
                    "bf_continue,bf_window=2880,bf_resolution=600",
                    "defer,sched_interval=20",
                    "batch_sched_delay=0",
                )
            )
        self.selector = rng.choice(("cons_tres", "cons_tres", "linear"))
        if self.selector == "cons_tres":
            self.selector_parameters = rng.choice(
                ("CR_CPU", "CR_Core", "CR_CPU_Memory", "CR_Core_Memory", "CR_Core,CR_Pack_Nodes")
            )
        self.node_daemons = rng.randint(1, min(4, self.nodes))
        self.latency_s = rng.choice((0.001, 0.001, 0.0137, 0.05))
        if rng.random() < 0.3:
            for number in range(self.node_daemons):
                self.link_latency[f"controller>noded{number}"] = rng.choice((0.0, 0.002, 0.3))
                self.link_latency[f"noded{number}>controller"] = rng.choice((0.0, 0.01, 0.25))
        self.jobs = rng.choice((10, 30, 60, 100))
        self.span_s = rng.choice((60, 1000, 20_000))
        self.longest_run_s = rng.choice((20, 300, 3000))
        self.limits_matter = rng.choice((0.0, 0.1, 0.3))
        self.return_to_service = rng.choice((0, 1, 2))
        self.slurmd_timeout_s = rng.choice((60, 300))
        self.min_job_age_s = rng.choice((0, 0, 0, 300))
        self.requeue = rng.random() < 0.7
        self.credential_lifetime_s = rng.choice((5, 120))
        if rng.random() < 0.8:
            self.meddling = rng.randint(1, self.jobs)
        if rng.random() < 0.6:
            self.node_trouble = rng.randint(1, 12)
        if rng.random() < 0.6:
            self.seems_real = True
            self.faults = rng.choice((0, 0, 3, 8))
            self.cuts = rng.choice((0, 0, 2, 5))
            self.node_daemon_deaths = rng.choice((0, 0, 1, 4))
            if rng.random() < 0.6:
                self.state = "disk"
                self.disk_s = rng.choice((0.0, 0.004, 0.05))
                self.controller_deaths = rng.choice((0, 1, 3, 8))
        elif rng.random() < 0.2:
            self.state = "disk"
        if rng.random() < 0.4:
            self.arrays = rng.choice((0.1, 0.5))
        if rng.random() < 0.3:
            self.licenses = rng.randint(1, 5)
        if rng.random() < 0.3 and self.scheduler in ("builtin", "backfill"):
            self.priority = "multifactor"
        if rng.random() < 0.3 and self.scheduler in ("builtin", "backfill"):
            self.suspend_s = rng.choice((20, 100, 1000))
        if rng.random() < 0.4 and self.scheduler in ("builtin", "backfill"):
            self.preempt = rng.choice(("REQUEUE", "CANCEL", "SUSPEND,GANG", "GANG"))
            if self.selector == "cons_tres" and "GANG" in self.preempt:
                self.rows = rng.choice((0, 2, 3))
        return self

    @property
    def is_peaceful(self) -> bool:
        """Nothing is done to jobs or nodes but what the schedule does."""
        return not (
            self.preempt
            or self.suspend_s
            or self.meddling
            or self.node_trouble
            or self.faults
            or self.cuts
            or self.node_daemon_deaths
            or self.controller_deaths
        )

    @property
    def _sharing(self) -> str:
        return f" OverSubscribe=FORCE:{self.rows}" if self.rows else ""

    @property
    def conf(self) -> str:
        names = f"n[1-{self.nodes}]" if self.nodes > 1 else "n1"
        half = f"n[1-{(self.nodes + 1) // 2}]" if self.nodes > 1 else "n1"
        lines = [
            "ClusterName=simulation",
            "SlurmctldHost=localhost",
            f"SchedulerType=sched/{self.scheduler}",
            f"SchedulerParameters={self.parameters}" if self.parameters else "",
            f"SelectType=select/{self.selector}",
            f"SelectTypeParameters={self.selector_parameters}" if self.selector_parameters else "",
            f"ReturnToService={self.return_to_service}",
            f"SlurmdTimeout={self.slurmd_timeout_s}",
            f"MinJobAge={self.min_job_age_s}",
            f"JobRequeue={int(self.requeue)}",
            f"AuthInfo=cred_expire={self.credential_lifetime_s}",
            f"PriorityType=priority/{self.priority}",
            "PriorityWeightAge=1000\nPriorityWeightJobSize=500\nPriorityWeightPartition=100\n"
            "PriorityMaxAge=1-0"
            if self.priority != "basic"
            else "",
            f"Licenses=matlab:{self.licenses}" if self.licenses else "",
            "DefMemPerCPU=100" if self.memory_mb else "",
            f"NodeName={names} CPUs={self.cpus} ThreadsPerCore={self.threads} "
            f"CoresPerSocket={self.cpus // self.threads} Sockets=1"
            + (f" RealMemory={self.memory_mb}" if self.memory_mb else ""),
            f"SuspendTime={self.suspend_s}\nSuspendTimeout=10\nResumeTimeout=60\n"
            "SuspendProgram=/bin/true\nResumeProgram=/bin/true"
            if self.suspend_s
            else "",
            f"PreemptMode={self.preempt}\nSchedulerTimeSlice=20" if self.preempt else "",
            "PreemptType=preempt/partition_prio" if self.preempt not in ("", "GANG") else "",
            f"PartitionName=main Nodes={names} Default=YES MaxTime=INFINITE DefaultTime=60 State=UP"
            + self._sharing,
            f"PartitionName=half Nodes={half} MaxTime=120 State=UP"
            + (" PriorityTier=5" if self.preempt else "")
            + self._sharing
            if self.seed % 2
            else "",
        ]
        return "\n".join(line for line in lines if line) + "\n"

    def __str__(self) -> str:
        default = Draw(self.seed)
        return ", ".join(
            f"{each.name}={getattr(self, each.name)}"
            for each in fields(self)
            if getattr(self, each.name) != getattr(default, each.name)
        )


def _choose_textbook(draw: Draw, rng: random.Random) -> None:
    """One of the textbook policies, or sched/plan, from numbers of its own: all else is drawn as
    ever.
    """
    draw.scheduler = rng.choice((*TEXTBOOK, "plan", "plan"))
    words = [rng.choice(("", "further_resources=license+mem", "further_resources=none"))]
    if draw.scheduler in ("easy-bb", "easy-nobb", "sjf-bb"):
        words.append(rng.choice(("", "reservation_depth=3")))
    if draw.scheduler == "bbsched":
        words += [
            rng.choice(("", "bbs_window=5", "bbs_window=20,bbs_bound=3")),
            rng.choice(("", "bbs_order=wfp", "bbs_method=weighted", "bbs_method=bin_packing")),
            rng.choice(("", "bbs_exact=0,bbs_generations=20,bbs_population=8")),
        ]
    if draw.scheduler == "plan":  # which knows special wishes, too
        words += [
            rng.choice(
                ("", "", "plan_search=random", "plan_search=zheng,plan_moves=2", "plan_keep")
            ),
            rng.choice(("", "plan_alpha=1", "plan_depth=2", "plan_bound=3600", "plan_window=20")),
            rng.choice(("", "", "plan_order=priority", "plan_weight=processors", "plan_tests=3")),
            rng.choice(("plan_tries=2", "plan_tries=5")),
            "plan_steps=3",  # queues are as long as hundreds, and seconds are short
        ]
    draw.parameters = ",".join(filter(None, words))
