"""The kinds of loads that have a name: `understudy load --kind NAME`.

Place: tool/load; plans as a file would describe them (docs/load-testing.md shows each as one).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from understudy.tool.load.plan import CPUS, DAY, EVEN, Plan, PlanError, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

# What a job may answer that has ended, or started, since somebody named it.
_OVER: Final = (
    "Invalid job id specified",
    "Job/step already completing or completed",
    "Job is no longer pending execution",
    "Job is pending execution",
    "Job has already finished",
)
_SUBMIT: Final = "sbatch --nodes={nodes} --time=60 --output=/dev/null"


@dataclass(frozen=True, slots=True)
class Size:
    """What the command line says of a kind, and the cluster's size. `rate`: requests a second, on
    average.
    """

    rate: float
    duration: float
    nodes: int
    cpus: int


def _submissions(size: Size) -> tuple[Stream, ...]:
    return (_jobs(size.rate),)


def _jobs(rate: float, **settings: object) -> Stream:
    values: dict[str, object] = {"nodes": (1, 1, 1, 2, 4), "run": (1.0, 10.0)} | settings
    return Stream("sbatch", _SUBMIT, rate, **values)  # type: ignore[arg-type]


def _bursts(size: Size) -> tuple[Stream, ...]:
    burst = max(1, round(size.rate * min(5.0, size.duration / 4)))
    return (_jobs(size.rate, burst=burst, arrivals=EVEN),)


def _arrays(size: Size) -> tuple[Stream, ...]:
    command = "sbatch --array=0-99 --nodes={nodes} --time=60 --output=/dev/null"
    return (Stream("sbatch --array", command, size.rate / 100, nodes=(1,), run=(1.0, 5.0)),)


def _queue(count: int) -> Stream:
    """Jobs for those who ask for jobs."""
    return Stream("a queue", _SUBMIT, count=count, nodes=(1, 2, 4, 8), run=(600.0, 3600.0))


def _queries(size: Size) -> tuple[Stream, ...]:
    shares = (
        ("squeue", "squeue", 0.2),
        ("squeue --job", "squeue --job={job}", 0.2),
        ("scontrol show job", "scontrol show job {job}", 0.2),
        ("sinfo", "sinfo", 0.2),
        ("sinfo -N", "sinfo -N -l", 0.05),
        ("scontrol show nodes", "scontrol show nodes", 0.05),
        ("scontrol show partitions", "scontrol show partitions", 0.05),
        ("sdiag", "sdiag", 0.05),
    )
    asked = (Stream(name, line, size.rate * share, begin=2.0) for name, line, share in shares)
    return (_queue(500), *asked)


def _mixed_day(size: Size) -> tuple[Stream, ...]:
    def asked(name: str, line: str, share: float, **settings: object) -> Stream:
        return Stream(name, line, size.rate * share, arrivals=DAY, **settings)  # type: ignore[arg-type]

    return (
        _jobs(size.rate * 0.2, arrivals=DAY, nodes=(1, 1, 2, 4, 8, 32), run=(1.0, 60.0)),
        asked("sbatch --array", _SUBMIT + " --array=0-9", 0.02, run=(1.0, 20.0)),
        asked("squeue", "squeue", 0.3),
        asked("scontrol show job", "scontrol show job {job}", 0.2, expected=_OVER),
        asked("sinfo", "sinfo", 0.15),
        asked("scancel", "scancel {job}", 0.05, expected=_OVER),
        asked("scontrol update job", "scontrol update jobid={job} nice=10", 0.04, expected=_OVER),
        asked("scontrol hold", "scontrol hold {job}", 0.02, expected=_OVER,
              then="scontrol release {job}", after=2.0),
        asked("sdiag", "sdiag", 0.02),
    )  # fmt: skip


def _mass_completion(size: Size) -> tuple[Stream, ...]:
    jobs = {"until": 0.4 * size.duration, "nodes": (1,), "ends_at": 0.7 * size.duration}
    return (
        # more than there are CPUs would wait, and end later
        _jobs(size.rate, count=size.cpus, **jobs),
        Stream("squeue", "squeue", 2.0),
        Stream("sinfo", "sinfo", 2.0),
    )


def _launches(size: Size) -> tuple[Stream, ...]:
    everywhere = "--nodes={nodes} --ntasks-per-node=1"
    return (
        Stream(
            "sbatch, all nodes",
            f"sbatch {everywhere} --time=60 --output=/dev/null",
            size.rate,
            nodes=(0,),
            run=(0.1, 0.1),
        ),
        Stream("srun, all nodes", f"srun {everywhere} --time=60 true", size.rate / 4, nodes=(0,)),
    )


def _signals(size: Size) -> tuple[Stream, ...]:
    jobs = Stream(
        "sbatch, all nodes",
        "sbatch --nodes={nodes} --ntasks-per-node=1 --time=60 --output=/dev/null",
        count=2,
        nodes=(0,),
        run=(600.0, 600.0),
    )
    return (
        jobs,
        Stream("scancel --signal", "scancel --signal=CONT {job}", size.rate, begin=3.0,
               expected=_OVER),
        Stream("scontrol suspend", "scontrol suspend {job}", size.rate / 10, begin=3.0,
               then="scontrol resume {job}", after=0.5,
               expected=(*_OVER, "Job is already suspended", "Job is not suspended",
                         "Job has already been suspended")),
    )  # fmt: skip


def _flapping(size: Size) -> tuple[Stream, ...]:
    return (
        _jobs(size.rate),
        Stream(
            "scontrol update node",
            "scontrol update nodename={node} state=down reason=load",
            max(1.0, size.nodes / 200),
            then="scontrol update nodename={node} state=resume",
            after=1.0,
            # it has come back already, as two streams of one node may cross
            expected=("Invalid node state specified",),
        ),
        Stream("sinfo", "sinfo", 2.0),
    )


def _reconfigure(size: Size) -> tuple[Stream, ...]:
    return (
        _jobs(size.rate),
        Stream("scontrol reconfigure", "scontrol reconfigure", 0.5, arrivals=EVEN),
        Stream("squeue", "squeue", 2.0),
    )


def _admin(size: Size) -> tuple[Stream, ...]:
    reservation = "reservationname=load{number}"
    return (
        _jobs(size.rate),
        Stream("scontrol update partition", "scontrol update partitionname={partition} maxtime=2-0",
               size.rate / 20),
        Stream("scontrol update node", "scontrol update nodename={node} weight=5", size.rate / 20),
        Stream("scontrol update job", "scontrol update jobid={job} timelimit=30", size.rate / 10,
               expected=_OVER),
        Stream("scontrol hold", "scontrol hold {job}", size.rate / 10, expected=_OVER,
               then="scontrol release {job}", after=1.0),
        Stream("scontrol requeue", "scontrol requeue {job}", size.rate / 20, expected=_OVER),
        Stream("scontrol create reservation",
               f"scontrol create reservation {reservation} starttime=now+1hour duration=10 "
               "nodecnt=1 user=root", 1.0,
               then=f"scontrol delete {reservation}", after=3.0,
               # where jobs have all nodes there is none, and nothing to delete
               expected=("Requested nodes are busy", "Requested reservation is invalid")),
        Stream("scontrol show config", "scontrol show config", 1.0),
    )  # fmt: skip


_KINDS: Final[dict[str, tuple[Callable[[Size], tuple[Stream, ...]], float, str]]] = {
    "submissions": (_submissions, 100.0, "jobs of one to four nodes, at any time"),
    "bursts": (_bursts, 100.0, "the same, all of five seconds at once"),
    "arrays": (_arrays, 1000.0, "the same as arrays of 100 tasks; the rate is of tasks"),
    "queries": (_queries, 100.0, "squeue, sinfo, scontrol show and sdiag at 500 jobs"),
    "mixed-day": (_mixed_day, 100.0, "all that users do, by day more than by night"),
    "mass-completion": (_mass_completion, 200.0, "jobs that all end in one second"),
    "launches": (_launches, 1.0, "jobs and steps over the whole machine"),
    "signals": (_signals, 20.0, "signals to, and suspensions of, jobs over the whole machine"),
    "flapping": (_flapping, 50.0, "submissions while nodes go down and come back"),
    "reconfigure": (_reconfigure, 50.0, "submissions while slurm.conf is read again and again"),
    "admin": (_admin, 50.0, "submissions while an administrator changes all that can be changed"),
}


def kinds() -> dict[str, str]:
    """What each kind is, by name."""
    return {name: f"{what} ({rate:g} a second)" for name, (_, rate, what) in _KINDS.items()}


def plan_of(
    kind: str,
    *,
    rate: float | None = None,
    duration: float = 30.0,
    nodes: int = 1000,
    cpus: int | None = None,
) -> Plan:
    """The plan of a kind, at a cluster of so many nodes, with so many CPUs in all: four each if
    nothing is said, as those have that are started for a load.

    Raises:
        PlanError: there is no such kind.
    """
    if kind not in _KINDS:
        raise PlanError(f"--kind {kind}: one of {', '.join(_KINDS)}")
    make, usual, _ = _KINDS[kind]
    most = nodes * CPUS if cpus is None else cpus
    streams = make(Size(usual if rate is None else rate, duration, nodes, most))
    return Plan(kind, streams, duration=duration, nodes=nodes)
