"""What slurm.conf says that concerns node daemons whose jobs really run.

Place: read once by the node daemon's main; a `cgroup.conf` beside it says whether memory is
constrained. Follows: slurm.conf(5), cgroup.conf(5).
"""

from __future__ import annotations

import glob
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from understudy.model.conf_companions import read_topology
from understudy.model.conf_scan import scan
from understudy.model.environment import LIMITS
from understudy.model.prolog_flags import prolog_words

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KILL_JOB: Final = "kill job"  # JobAcctGatherParams=OverMemoryKill: the whole job is killed
KILL_LARGEST: Final = "kill largest"  # ConstrainRAMSpace: as the kernel does, the largest process
_DEFAULT_GATHER_S: Final = 30


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Programs are paths, "" for none; times in seconds."""

    kill_wait_s: float = 30.0
    prolog: tuple[str, ...] = ()
    epilog: tuple[str, ...] = ()
    program_limit_s: float = 0.0  # for prolog and epilog; 0: none
    is_serial: bool = False  # prologs and epilogs one at a time on each node (PrologFlags=Serial)
    # the prolog, at the allocation (PrologFlags=Alloc and what implies it)
    begins_early: bool = False
    task_prolog: str = ""
    task_epilog: str = ""
    # limits of processes that go from the submitter to the job
    propagated: frozenset[str] = frozenset(LIMITS)
    binds: bool = False  # tasks to CPUs, where srun asks for it
    gather_s: int = 0  # how often the use of memory is looked at; 0: never
    over_memory: str = ""  # what becomes of jobs that use more than they asked for
    health_program: str = ""
    login_limit_s: float = 120.0  # how long a user's login may take (GetEnvTimeout)
    # of each node and switch the switch that it is on (topology/tree)
    above: Mapping[str, str] = field(default_factory=dict)

    def topology_address(self, node: str) -> tuple[str, str]:
        """SLURM_TOPOLOGY_ADDR and its pattern: the switches from the top down to the node."""
        path = [node]
        while (switch := self.above.get(path[0], "")) and switch not in path:
            path.insert(0, switch)
        return ".".join(path), ".".join([*("switch" for _ in path[1:]), "node"])


def read_settings(conf: Path) -> NodeSettings:
    """The settings; of a key that is given twice the last value, as Slurm takes it. A file that
    cannot be read says nothing.
    """
    values = _values(conf)
    if not values:
        return NodeSettings()
    is_gathered = not values.get("jobacctgathertype", "jobacct_gather/none").endswith("/none")
    over_memory = ""
    if "overmemorykill" in values.get("jobacctgatherparams", "").lower():
        over_memory = KILL_JOB
    elif "cgroup" in values.get("taskplugin", "") and _values(conf.parent / "cgroup.conf").get(
        "constrainramspace", ""
    ).lower() in (
        "yes",
        "true",
        "1",
    ):
        over_memory = KILL_LARGEST
    limit_s = _number(values.get("prologepilogtimeout", ""), 0)
    prolog_flags = prolog_words(values.get("prologflags", ""))
    return NodeSettings(
        kill_wait_s=float(_number(values.get("killwait", ""), 30)),
        prolog=_programs(values.get("prolog", "")),
        epilog=_programs(values.get("epilog", "")),
        program_limit_s=0.0 if limit_s == 0xFFFE else float(limit_s),
        is_serial="serial" in prolog_flags,
        begins_early="alloc" in prolog_flags,
        task_prolog=values.get("taskprolog", ""),
        binds="affinity" in values.get("taskplugin", ""),
        task_epilog=values.get("taskepilog", ""),
        propagated=_propagated(
            values.get("propagateresourcelimits", "ALL"),
            values.get("propagateresourcelimitsexcept", ""),
        ),
        gather_s=_frequency(values.get("jobacctgatherfrequency", "")) if is_gathered else 0,
        over_memory=over_memory,
        health_program=values.get("healthcheckprogram", ""),
        login_limit_s=float(_number(values.get("getenvtimeout", ""), 2)) or 2.0,
        above=_above(conf.parent / "topology.conf")
        if values.get("topologyplugin", "").endswith("tree")
        else {},
    )


def read_log_keys(conf: Path) -> tuple[str, str]:
    """SlurmdDebug and LogTimeFormat."""
    values = _values(conf)
    return values.get("slurmddebug", "info"), values.get("logtimeformat", "iso8601_ms")


def _above(path: Path) -> dict[str, str]:
    try:
        switches = read_topology(scan(str(path)), lambda _: None)
    except OSError:
        return {}
    return {
        below: switch.name for switch in switches for below in (*switch.nodes, *switch.switches)
    }


def _values(conf: Path) -> dict[str, str]:
    try:
        lines = scan(str(conf)).lines
    except OSError:
        return {}
    return {
        key: value
        for line in lines
        for key, value in line.pairs
        if line.key not in ("nodename", "partitionname")
    }


def _number(text: str, default: int) -> int:
    return int(text) if text.isdecimal() else default


def _frequency(text: str) -> int:
    """`30`, or `task=30,energy=5`."""
    for word in text.split(","):
        kind, equals, seconds = word.rpartition("=")
        if seconds.isdecimal() and (not equals or kind.strip().lower() == "task"):
            return int(seconds)
    return _DEFAULT_GATHER_S


def _programs(pattern: str) -> tuple[str, ...]:
    """Prolog and Epilog may be patterns: all that match, in order."""
    if not pattern or not glob.has_magic(pattern):
        return (pattern,) if pattern else ()
    return tuple(sorted(glob.glob(pattern)))


def _propagated(all_of: str, all_but: str) -> frozenset[str]:
    """PropagateResourceLimits and PropagateResourceLimitsExcept."""
    everything = frozenset(LIMITS)
    if all_but:
        return everything - _limits(all_but)
    return everything if "ALL" in _limits(all_of) else everything & _limits(all_of)


def _limits(text: str) -> frozenset[str]:
    return frozenset(text.upper().replace("RLIMIT_", "").split(","))
