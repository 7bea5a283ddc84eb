"""What is logged: levels, and the names of DebugFlags in the order in which they are shown.
Follows slurm.conf(5) of 22.05.

Place: the vocabulary of slurm.conf, of `scontrol show config` and of `scontrol setdebugflags`.
"""

from typing import Final

LEVELS: Final = (
    "quiet",
    "fatal",
    "error",
    "info",
    "verbose",
    "debug",
    "debug2",
    "debug3",
    "debug4",
    "debug5",
)
_FLAGS: Final = """
Accrue Agent AuditRPCs Backfill BackfillMap BurstBuffer Cgroup CPU_Bind CpuFrequency Data
DBD_Agent DB_Archive DB_Assoc DB_TRES DB_Job DB_QOS DB_Query DB_Reservation DB_Resource DB_Step
DB_Usage DB_WCKey Dependency Elasticsearch Energy ExtSensors Federation FrontEnd Gres Hetjob
Gang GLOB_SILENCE JobAccountGather JobComp JobContainer License Network NetworkRaw NodeFeatures
NO_CONF_HASH Power PowerSave Priority Profile Protocol Reservation Route Script SelectType Steps
Switch TimeCray TraceJobs Triggers WorkQueue
"""
FLAG_NAMES: Final = {name.lower(): name for name in _FLAGS.split()}


def changed_flags(flags: str, change: str) -> str:
    """A list of flags with those of `+a,b` added or of `-a,b` taken away, in the order in which
    they are shown.

    Raises:
        ValueError: there is no such flag.
    """
    words = [word.lower() for word in change[1:].split(",")]
    strange = [word for word in words if word not in FLAG_NAMES]
    if strange or change[0] not in "+-":
        raise ValueError(change)
    have = {word.lower() for word in flags.split(",") if word}
    kept = have | set(words) if change[0] == "+" else have - set(words)
    return ",".join(name for key, name in FLAG_NAMES.items() if key in kept)
