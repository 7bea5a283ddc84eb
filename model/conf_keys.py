"""Every key of slurm.conf: what kind of value it takes, its default in 22.05, whether it has an
effect here, and when it was one of Slurm's keys.

Place: the vocabulary; read by understudy.model.conf, which knows what to do with it. The column
`emulated` is what `understudy conf check` and the start-up message go by: set it when something
begins to honour the key.

Follows: slurm.conf(5) of 22.05; kinds and defaults as `scontrol` and `slurmctld` 22.05.8 take and
print them.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class Kind(Enum):
    """What a value must look like."""

    TEXT = "text"
    SHORT = "number up to 65535"
    LONG = "number"
    BOOLEAN = "yes or no"
    MINUTES = "time"  # in the syntax of time limits: a bare number is minutes
    DURATION = "time limit"
    SECONDS_OR_NONE = "seconds"  # anything that is no number is taken as none
    LEVEL = "log level"
    PORTS = "port or range of ports"
    PART_LIMITS = "no, any or all"
    DECIMAL = "decimal number"


class Era(Enum):
    """Whether today's manual knows the key."""

    CURRENT = "current"
    OLD = "old"  # of 22.05 or before, gone since
    NEW = "new"  # came after 22.05


TEXT, SHORT, LONG, BOOLEAN = Kind.TEXT, Kind.SHORT, Kind.LONG, Kind.BOOLEAN
MINUTES, DURATION, SECONDS_OR_NONE, LEVEL, PORTS, PART_LIMITS = (
    Kind.MINUTES,
    Kind.DURATION,
    Kind.SECONDS_OR_NONE,
    Kind.LEVEL,
    Kind.PORTS,
    Kind.PART_LIMITS,
)
OLD, NEW = Era.OLD, Era.NEW


class Key(NamedTuple):
    """One key. `default` is the text that stands for it where the file says nothing ("": none)."""

    name: str
    kind: Kind = Kind.TEXT
    default: str = ""
    emulated: bool = False
    era: Era = Era.CURRENT


_GLOBAL: Final = (
    Key("AccountingStorageBackupHost", TEXT),
    Key("AccountingStorageEnforce", TEXT, "none", emulated=True),
    Key("AccountingStorageExternalHost", TEXT),
    Key("AccountingStorageHost", TEXT, "localhost"),
    Key("AccountingStorageLoc", TEXT, era=OLD),
    Key("AccountingStorageParameters", TEXT),
    Key("AccountingStoragePass", TEXT),
    Key("AccountingStoragePort", SHORT, "0", emulated=True),
    Key(
        "AccountingStorageTRES",
        TEXT,
        "cpu,mem,energy,node,billing,fs/disk,vmem,pages",
        emulated=True,
    ),
    Key("AccountingStorageType", TEXT, "accounting_storage/none", emulated=True),
    Key("AccountingStorageUser", TEXT, "root", era=OLD),
    Key("AccountingStoreFlags", TEXT, emulated=True),
    Key("AccountingStoreJobComment", TEXT, era=OLD),
    Key("AcctGatherEnergyType", TEXT, "acct_gather_energy/none"),
    Key("AcctGatherFilesystemType", TEXT, "acct_gather_filesystem/none"),
    Key("AcctGatherInfinibandType", TEXT, era=OLD),
    Key("AcctGatherInterconnectType", TEXT, "acct_gather_interconnect/none"),
    Key("AcctGatherNodeFreq", SHORT, "0"),
    Key("AcctGatherProfileType", TEXT, "acct_gather_profile/none"),
    Key("AllowSpecResourcesUsage", BOOLEAN, "No"),
    Key("AuthAltParameters", TEXT),
    Key("AuthAltTypes", TEXT),
    Key("AuthInfo", TEXT, emulated=True),
    Key("AuthType", TEXT, "auth/munge"),
    Key("BackupAddr", TEXT, emulated=True, era=OLD),
    Key("BackupController", TEXT, emulated=True, era=OLD),
    Key("BatchStartTimeout", SHORT, "10"),
    Key("BcastExclude", TEXT, "/lib,/usr/lib,/lib64,/usr/lib64"),
    Key("BcastParameters", TEXT),
    Key("BurstBufferParameters", TEXT),
    Key("BurstBufferType", TEXT, emulated=True),
    Key("CacheGroups", TEXT, era=OLD),
    Key("CertgenParameters", TEXT, era=NEW),
    Key("CertgenType", TEXT, era=NEW),
    Key("CertmgrParameters", TEXT, era=NEW),
    Key("CertmgrType", TEXT, era=NEW),
    Key("CheckpointType", TEXT, era=OLD),
    Key("CliFilterParameters", TEXT, era=NEW),
    Key("CliFilterPlugins", TEXT),
    Key("ClusterName", TEXT, emulated=True),
    Key("CommunicationParameters", TEXT),
    Key("CompleteWait", SHORT, "0", emulated=True),
    Key("ControlAddr", TEXT, emulated=True, era=OLD),
    Key("ControlMachine", TEXT, emulated=True, era=OLD),
    Key("CoreSpecPlugin", TEXT, "core_spec/none", era=OLD),
    Key("CpuFreqDef", TEXT, "Unknown"),
    Key("CpuFreqGovernors", TEXT, "OnDemand,Performance,UserSpace"),
    Key("CredType", TEXT, "cred/munge"),
    Key("CryptoType", TEXT, era=OLD),
    Key("DataParserParameters", TEXT, era=NEW),
    Key("DebugFlags", TEXT),
    Key("DefaultStorageHost", TEXT, era=OLD),
    Key("DefaultStorageLoc", TEXT, era=OLD),
    Key("DefaultStoragePass", TEXT, era=OLD),
    Key("DefaultStoragePort", TEXT, era=OLD),
    Key("DefaultStorageType", TEXT, era=OLD),
    Key("DefaultStorageUser", TEXT, era=OLD),
    Key("DefCpuPerGPU", LONG, emulated=True),
    Key("DefMemPerCPU", LONG, emulated=True),
    Key("DefMemPerGPU", LONG, emulated=True),
    Key("DefMemPerNode", LONG, emulated=True),
    Key("DependencyParameters", TEXT, emulated=True),
    Key("DisableRootJobs", BOOLEAN, "No", emulated=True),
    Key("EioTimeout", SHORT, "60"),
    Key("EnforcePartLimits", PART_LIMITS, "NO", emulated=True),
    Key("Epilog", TEXT, emulated=True),
    Key("EpilogMsgTime", LONG, "2000"),
    Key("EpilogSlurmctld", TEXT, emulated=True),
    Key("EpilogTimeout", TEXT, era=NEW),
    Key("ExtSensorsFreq", SHORT, "0", era=OLD),
    Key("ExtSensorsType", TEXT, "ext_sensors/none", era=OLD),
    Key("FairShareDampeningFactor", SHORT, "1", emulated=True),
    Key("FastSchedule", SHORT, era=OLD),
    Key("FederationParameters", TEXT),
    Key("FirstJobId", LONG, "1", emulated=True),
    Key("GetEnvTimeout", SHORT, "2", era=OLD, emulated=True),
    Key("GpuFreqDef", TEXT, "high,memory=high"),
    Key("GresTypes", TEXT, emulated=True),
    Key("GroupUpdateForce", SHORT, "1"),
    Key("GroupUpdateTime", SHORT, "600"),
    Key("HashPlugin", TEXT, era=NEW),
    Key("HealthCheckInterval", SHORT, "0", emulated=True),
    Key("HealthCheckNodeState", TEXT, "ANY", emulated=True),
    Key("HealthCheckProgram", TEXT, emulated=True),
    Key("HttpParserType", TEXT, era=NEW),
    Key("InactiveLimit", SHORT, "0", emulated=True),
    Key("InteractiveStepOptions", TEXT, "--interactive --preserve-env --pty $SHELL"),
    Key("JobAcctGatherFrequency", TEXT, "30", emulated=True),
    Key("JobAcctGatherParams", TEXT, emulated=True),
    Key("JobAcctGatherType", TEXT, "jobacct_gather/none", emulated=True),
    Key("JobCheckpointDir", TEXT, era=OLD),
    Key("JobCompHost", TEXT, "localhost"),
    Key("JobCompLoc", TEXT, "/var/log/slurm_jobcomp.log", emulated=True),
    Key("JobCompParams", TEXT),
    Key("JobCompPass", TEXT),
    Key("JobCompPassScript", TEXT, era=NEW),
    Key("JobCompPort", LONG, "0"),
    Key("JobCompType", TEXT, "jobcomp/none", emulated=True),
    Key("JobCompUser", TEXT, "root"),
    Key("JobContainerType", TEXT, "job_container/none", era=OLD),
    Key("JobCredentialPrivateKey", TEXT, era=OLD),
    Key("JobCredentialPublicCertificate", TEXT, era=OLD),
    Key("JobFileAppend", SHORT, "0"),
    Key("JobRequeue", SHORT, "1", emulated=True),
    Key("JobSubmitPlugins", TEXT, emulated=True),
    Key("KeepAliveTime", LONG, era=OLD),
    Key("KillOnBadExit", SHORT, "0"),
    Key("KillTree", TEXT, era=OLD),
    Key("KillWait", SHORT, "30", emulated=True),
    Key("LaunchParameters", TEXT),
    Key("LaunchType", TEXT, "launch/slurm", era=OLD),
    Key("Licenses", TEXT, emulated=True),
    Key("LogTimeFormat", TEXT, "iso8601_ms", emulated=True),
    Key("MailDomain", TEXT, emulated=True),
    Key("MailProg", TEXT, "/bin/mail", emulated=True),
    Key("MaxArraySize", LONG, "1001", emulated=True),
    Key("MaxBatchRequeue", TEXT, era=NEW),
    Key("MaxDBDMsgs", LONG, "0"),
    Key("MaxJobCount", LONG, "10000", emulated=True),
    Key("MaxJobId", LONG, "67043328", emulated=True),
    Key("MaxMemPerCPU", LONG, emulated=True),
    Key("MaxMemPerNode", LONG, emulated=True),
    Key("MaxNodeCount", LONG, emulated=True),
    Key("MaxStepCount", LONG, "40000", emulated=True),
    Key("MaxTasksPerNode", SHORT, "512", emulated=True),
    Key("MCSParameters", TEXT),
    Key("MCSPlugin", TEXT, "mcs/none"),
    Key("MemLimitEnforce", TEXT, era=OLD),
    Key("MessageTimeout", SHORT, "10", emulated=True),
    Key("MetricsType", TEXT, era=NEW),
    Key("MinJobAge", LONG, "300", emulated=True),
    Key("MpichGmDirectSupport", TEXT, era=OLD),
    Key("MpiDefault", TEXT, "none", emulated=True),
    Key("MpiParams", TEXT, emulated=True),
    Key("NamespaceType", TEXT, era=NEW),
    Key("NodeFeaturesPlugins", TEXT),
    Key("OverTimeLimit", SHORT, "0", emulated=True),
    Key("PluginDir", TEXT, "/usr/lib/slurm"),
    Key("PlugStackConfig", TEXT),
    Key("PowerParameters", TEXT, era=OLD),
    Key("PowerPlugin", TEXT, era=OLD),
    Key("PreemptExemptTime", DURATION, "00:00:00", emulated=True),
    Key("PreemptMode", TEXT, "OFF", emulated=True),
    Key("PreemptParameters", TEXT, era=NEW),
    Key("PreemptType", TEXT, "preempt/none", emulated=True),
    Key("PrEpParameters", TEXT),
    Key("PrEpPlugins", TEXT, "prep/script"),
    Key("PriorityCalcPeriod", MINUTES, "5", emulated=True),
    Key("PriorityDecayHalfLife", MINUTES, "7-0", emulated=True),
    Key("PriorityFavorSmall", BOOLEAN, "No", emulated=True),
    Key("PriorityFlags", TEXT, emulated=True),
    Key("PriorityMaxAge", MINUTES, "7-0", emulated=True),
    Key("PriorityParameters", TEXT),
    Key("PrioritySiteFactorParameters", TEXT, emulated=True),
    Key("PrioritySiteFactorPlugin", TEXT, emulated=True),
    Key("PriorityType", TEXT, "priority/basic", emulated=True),
    Key("PriorityUsageResetPeriod", TEXT, "NONE", emulated=True),
    Key("PriorityWeightAge", LONG, "0", emulated=True),
    Key("PriorityWeightAssoc", LONG, "0", emulated=True),
    Key("PriorityWeightFairShare", LONG, "0", emulated=True),
    Key("PriorityWeightJobSize", LONG, "0", emulated=True),
    Key("PriorityWeightPartition", LONG, "0", emulated=True),
    Key("PriorityWeightQOS", LONG, "0", emulated=True),
    Key("PriorityWeightTRES", TEXT, emulated=True),
    Key("PrivateData", TEXT, "none", emulated=True),
    Key("ProctrackType", TEXT, "proctrack/cgroup"),
    Key("Prolog", TEXT, emulated=True),
    Key("PrologEpilogTimeout", SHORT, "65534", emulated=True),
    Key("PrologFlags", TEXT, emulated=True),
    Key("PrologSlurmctld", TEXT, emulated=True),
    Key("PrologTimeout", TEXT, era=NEW),
    Key("PropagatePrioProcess", SHORT, "0"),
    Key("PropagateResourceLimits", TEXT, "ALL", emulated=True),
    Key("PropagateResourceLimitsExcept", TEXT, emulated=True),
    Key("RebootProgram", TEXT),
    Key("ReconfigFlags", TEXT),
    Key("RequeueExit", TEXT, emulated=True),
    Key("RequeueExitHold", TEXT, emulated=True),
    Key("ResumeFailProgram", TEXT, emulated=True),
    Key("ResumeProgram", TEXT, emulated=True),
    Key("ResumeRate", SHORT, "300", emulated=True),
    Key("ResumeTimeout", SHORT, "60", emulated=True),
    Key("ResvEpilog", TEXT, emulated=True),
    Key("ResvOverRun", SHORT, "0", emulated=True),
    Key("ResvProlog", TEXT, emulated=True),
    Key("ReturnToService", SHORT, "0", emulated=True),
    Key("RoutePlugin", TEXT, "route/default", era=OLD),
    Key("SallocDefaultCommand", TEXT, era=OLD),
    Key("SbcastParameters", TEXT),
    Key("SchedulerAuth", TEXT, era=OLD),
    Key("SchedulerParameters", TEXT, emulated=True),
    Key("SchedulerPort", TEXT, era=OLD),
    Key("SchedulerRootFilter", TEXT, era=OLD),
    Key("SchedulerTimeSlice", SHORT, "30", emulated=True),
    Key("SchedulerType", TEXT, "sched/backfill", emulated=True),
    Key("ScronParameters", TEXT, emulated=True),
    Key("SelectType", TEXT, "select/linear", emulated=True),
    Key("SelectTypeParameters", TEXT, emulated=True),
    Key("SlurmctldAddr", TEXT, emulated=True),
    Key("SlurmctldDebug", LEVEL, "info", emulated=True),
    Key("SlurmctldHost", TEXT, emulated=True),
    Key("SlurmctldLogFile", TEXT),
    Key("SlurmctldParameters", TEXT, emulated=True),
    Key("SlurmctldPidFile", TEXT, "/var/run/slurmctld.pid", emulated=True),
    Key("SlurmctldPlugstack", TEXT),
    Key("SlurmctldPort", PORTS, "6817", emulated=True),
    Key("SlurmctldPrimaryOffProg", TEXT, emulated=True),
    Key("SlurmctldPrimaryOnProg", TEXT, emulated=True),
    Key("SlurmctldSyslogDebug", LEVEL),
    Key("SlurmctldTimeout", SHORT, "120", emulated=True),
    Key("SlurmdDebug", LEVEL, "info", emulated=True),
    Key("SlurmdLogFile", TEXT),
    Key("SlurmdParameters", TEXT),
    Key("SlurmdPidFile", TEXT, "/var/run/slurmd.pid", emulated=True),
    Key("SlurmdPort", LONG, "6818", emulated=True),
    Key("SlurmdSpoolDir", TEXT, "/var/spool/slurmd"),
    Key("SlurmdSyslogDebug", LEVEL),
    Key("SlurmdTimeout", SHORT, "300", emulated=True),
    Key("SlurmdUser", TEXT, "root"),
    Key("SlurmSchedLogFile", TEXT),
    Key("SlurmSchedLogLevel", SHORT, "0"),
    Key("SlurmUser", TEXT, "root", emulated=True),
    Key("SrunEpilog", TEXT),
    Key("SrunPortRange", TEXT, "0-0"),
    Key("SrunProlog", TEXT),
    Key("StateSaveLocation", TEXT, "/var/spool"),
    Key("SuspendExcNodes", TEXT, emulated=True),
    Key("SuspendExcParts", TEXT, emulated=True),
    Key("SuspendExcStates", TEXT, emulated=True, era=NEW),
    Key("SuspendProgram", TEXT, emulated=True),
    Key("SuspendRate", SHORT, "60", emulated=True),
    Key("SuspendTime", SECONDS_OR_NONE, "INFINITE", emulated=True),
    Key("SuspendTimeout", SHORT, "30", emulated=True),
    Key("SwitchParameters", TEXT),
    Key("SwitchType", TEXT, "switch/none"),
    Key("TaskEpilog", TEXT, emulated=True),
    Key("TaskPlugin", TEXT, "task/none", emulated=True),
    Key("TaskPluginParam", TEXT),
    Key("TaskProlog", TEXT, emulated=True),
    Key("TCPTimeout", SHORT, "2"),
    Key("TLSParameters", TEXT, era=NEW),
    Key("TLSType", TEXT, era=NEW),
    Key("TmpFS", TEXT, "/tmp"),  # noqa: S108 - the default, nothing is written there
    Key("TopologyParam", TEXT, emulated=True),
    Key("TopologyPlugin", TEXT, "topology/none", emulated=True),
    Key("TrackWCKey", BOOLEAN, "No", emulated=True),
    Key("TreeWidth", SHORT, "50", emulated=True),
    Key("UnkillableStepProgram", TEXT),
    Key("UnkillableStepTimeout", SHORT, "60"),
    Key("UrlParserType", TEXT, era=NEW),
    Key("UsePam", BOOLEAN, "No"),
    Key("UsePSS", TEXT, era=OLD),
    Key("VSizeFactor", SHORT, "0"),
    Key("WaitTime", SHORT, "0"),
    Key("X11Parameters", TEXT),
)

_NODE: Final = (
    Key("NodeName", emulated=True),
    Key("NodeHostname", emulated=True),
    Key("NodeAddr", emulated=True),
    Key("BcastAddr"),
    Key("Boards", SHORT, "1", emulated=True),
    Key("CoreSpecCount", SHORT, "0", emulated=True),
    Key("CoresPerSocket", SHORT, "1", emulated=True),
    Key("CpuBind"),
    Key("CPUs", SHORT, "", emulated=True),
    Key("CpuSpecList", emulated=True),
    Key("Features", emulated=True),
    Key("Feature", emulated=True),
    Key("Gres", emulated=True),
    Key("MemSpecLimit", LONG, "0", emulated=True),
    Key("Parameters", era=NEW),
    Key("Port", emulated=True),
    Key("Procs", SHORT, "", emulated=True),
    Key("RealMemory", LONG, "1", emulated=True),
    Key("Reason", emulated=True),
    Key("RestrictedCoresPerGPU", era=NEW),
    Key("Sockets", SHORT, "1", emulated=True),
    Key("SocketsPerBoard", SHORT, "", emulated=True),
    Key("State", TEXT, "UNKNOWN", emulated=True),
    Key("ThreadsPerCore", SHORT, "1", emulated=True),
    Key("TmpDisk", LONG, "0", emulated=True),
    Key("Topology", era=NEW),
    Key("TRESWeights"),
    Key("Weight", LONG, "1", emulated=True),
)

_PARTITION: Final = (
    Key("PartitionName", emulated=True),
    Key("AllocNodes", TEXT, "ALL"),
    Key("AllowAccounts", TEXT, "ALL", emulated=True),
    Key("AllowGroups", TEXT, "ALL", emulated=True),
    Key("AllowQos", TEXT, "ALL", emulated=True),
    Key("Alternate", emulated=True),
    Key("CpuBind"),
    Key("Default", BOOLEAN, "NO", emulated=True),
    Key("DefaultTime", DURATION, "", emulated=True),
    Key("DefCpuPerGPU", LONG, emulated=True),
    Key("DefMemPerCPU", LONG, "", emulated=True),
    Key("DefMemPerGPU", LONG, emulated=True),
    Key("DefMemPerNode", LONG, "", emulated=True),
    Key("DenyAccounts", emulated=True),
    Key("DenyQos", emulated=True),
    Key("DisableRootJobs", BOOLEAN, "", emulated=True),
    Key("ExclusiveTopo", BOOLEAN, "NO", era=NEW),
    Key("ExclusiveUser", BOOLEAN, "NO", emulated=True),
    Key("GraceTime", LONG, "0", emulated=True),
    Key("Hidden", BOOLEAN, "NO", emulated=True),
    Key("JobDefaults", era=NEW),
    Key("LLN", BOOLEAN, "NO", emulated=True),
    Key("MaxCPUsPerNode", LONG, "", emulated=True),
    Key("MaxCPUsPerSocket", LONG, era=NEW),
    Key("MaxMemPerCPU", LONG, "", emulated=True),
    Key("MaxMemPerNode", LONG, "", emulated=True),
    Key("MaxNodes", LONG, "UNLIMITED", emulated=True),
    Key("MaxTime", DURATION, "UNLIMITED", emulated=True),
    Key("MinNodes", LONG, "0", emulated=True),
    Key("Nodes", emulated=True),
    Key("OverSubscribe", TEXT, "NO", emulated=True),
    Key("OverTimeLimit", TEXT, "", emulated=True),
    Key("PowerDownOnIdle", BOOLEAN, "NO", era=NEW),
    Key("PreemptMode", emulated=True),
    Key("Priority", SHORT, "1", emulated=True),
    Key("PriorityJobFactor", SHORT, "1", emulated=True),
    Key("PriorityTier", SHORT, "1", emulated=True),
    Key("QOS", emulated=True),
    Key("ReqResv", BOOLEAN, "NO", emulated=True),
    Key("ResumeTimeout", SHORT, emulated=True),
    Key("RootOnly", BOOLEAN, "NO", emulated=True),
    Key("SelectTypeParameters", emulated=True),
    Key("Shared", TEXT, "NO", emulated=True, era=OLD),
    Key("State", TEXT, "UP", emulated=True),
    Key("SuspendTime", SECONDS_OR_NONE, emulated=True),
    Key("SuspendTimeout", SHORT, emulated=True),
    Key("Topology", era=NEW),
    Key("TRESBillingWeights", emulated=True),
)

_NODE_SET: Final = (
    Key("NodeSet", emulated=True),
    Key("Feature", emulated=True),
    Key("Nodes", emulated=True),
)

_DOWN_NODES: Final = (
    Key("DownNodes", emulated=True),
    Key("Reason", emulated=True),
    Key("State", emulated=True),
)

_FRONT_END: Final = (
    Key("FrontendName", emulated=True, era=OLD),
    Key("AllowGroups", era=OLD),
    Key("AllowUsers", era=OLD),
    Key("DenyGroups", era=OLD),
    Key("DenyUsers", era=OLD),
    Key("FrontendAddr", era=OLD),
    Key("Port", era=OLD),
    Key("Reason", era=OLD),
    Key("State", era=OLD),
)


def _by_name(keys: tuple[Key, ...]) -> dict[str, Key]:
    return {key.name.lower(): key for key in keys}


GLOBAL_KEYS: Final = _by_name(_GLOBAL)

# Lines that hold several pairs, by the key that begins them.
LINE_KEYS: Final[dict[str, dict[str, Key]]] = {
    "nodename": _by_name(_NODE),
    "partitionname": _by_name(_PARTITION),
    "nodeset": _by_name(_NODE_SET),
    "downnodes": _by_name(_DOWN_NODES),
    "frontendname": _by_name(_FRONT_END),
}

# Keys that may stand on several lines and add up.
REPEATABLE: Final = frozenset({"slurmctldhost", "include", *LINE_KEYS})

# Two keys that say the same; a line that gives one of them drops the other from the DEFAULT values.
PARTNERS: Final = {
    "feature": "features",
    "features": "feature",
    "procs": "cpus",
    "cpus": "procs",
    "shared": "oversubscribe",
    "oversubscribe": "shared",
}


def with_defaults(defaults: dict[str, str], given: dict[str, str]) -> dict[str, str]:
    """A line's settings over the DEFAULT ones."""
    if not defaults:
        return given
    return {key: value for key, value in defaults.items() if PARTNERS.get(key) not in given} | given
