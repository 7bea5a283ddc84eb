"""`scontrol show config`: the lines that 22.05 prints, in its order, from a configuration.

Place: a part of understudy.model.conf. Compared with 22.05.8's output for a bare and for a full
configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.model import conf_cgroup_show, conf_values, times
from understudy.model.conf_keys import GLOBAL_KEYS, Kind
from understudy.model.debug_flags import FLAG_NAMES
from understudy.model.prolog_flags import WORDS as PROLOG_WORDS
from understudy.model.prolog_flags import prolog_words

if TYPE_CHECKING:
    from understudy.model.conf import SlurmConfig

# Lines in their order, name:style. Styles: a unit behind a number; otherwise see _render. Without a
# style: the text, "(null)" where there is none.
_LINES: Final = """
AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageHost
AccountingStorageExternalHost AccountingStorageParameters AccountingStoragePort
AccountingStorageTRES:tres AccountingStorageType AccountingStorageUser AccountingStoreFlags
AcctGatherEnergyType AcctGatherFilesystemType AcctGatherInterconnectType AcctGatherNodeFreq:sec
AcctGatherProfileType AllowSpecResourcesUsage:yes AuthAltTypes AuthAltParameters AuthInfo AuthType
BatchStartTimeout:sec BcastExclude BcastParameters BOOT_TIME:running BurstBufferType
CliFilterPlugins ClusterName:lower CommunicationParameters CompleteWait:sec CoreSpecPlugin
CpuFreqDef:capital CpuFreqGovernors CredType DebugFlags:flags DefMemPerNode:memory
DependencyParameters DisableRootJobs:yes EioTimeout EnforcePartLimits:limits Epilog
EpilogMsgTime:usec EpilogSlurmctld ExtSensorsType ExtSensorsFreq:sec
FairShareDampeningFactor:multifactor FederationParameters FirstJobId GetEnvTimeout:sec GresTypes
GpuFreqDef GroupUpdateForce GroupUpdateTime:sec HASH_VAL:running HealthCheckInterval:sec
HealthCheckNodeState:health HealthCheckProgram InactiveLimit:sec InteractiveStepOptions
JobAcctGatherFrequency JobAcctGatherType JobAcctGatherParams JobCompHost JobCompLoc JobCompPort
JobCompType JobCompUser JobContainerType JobCredentialPrivateKey JobCredentialPublicCertificate
JobDefaults:defaults JobFileAppend JobRequeue JobSubmitPlugins KillOnBadExit KillWait:sec
LaunchParameters LaunchType Licenses LogTimeFormat MailDomain MailProg MaxArraySize MaxDBDMsgs
MaxJobCount MaxJobId MaxMemPerNode:memory MaxNodeCount:nodes MaxStepCount MaxTasksPerNode MCSPlugin
MCSParameters MessageTimeout:sec MinJobAge:sec MpiDefault MpiParams MULTIPLE_SLURMD:running
NEXT_JOB_ID:running NodeFeaturesPlugins OverTimeLimit:min PluginDir PlugStackConfig PowerParameters
PowerPlugin:empty PreemptMode:preempt PreemptType PreemptExemptTime:duration PrEpParameters
PrEpPlugins PriorityParameters PrioritySiteFactorParameters PrioritySiteFactorPlugin
PriorityDecayHalfLife:multifactor PriorityCalcPeriod:multifactor PriorityFavorSmall:multifactor
PriorityFlags:priority PriorityMaxAge:multifactor PriorityUsageResetPeriod:multifactor
PriorityType PriorityWeightAge:multifactor PriorityWeightAssoc:multifactor
PriorityWeightFairShare:multifactor PriorityWeightJobSize:multifactor
PriorityWeightPartition:multifactor PriorityWeightQOS:multifactor PriorityWeightTRES:multifactor
PrivateData:private ProctrackType Prolog PrologEpilogTimeout PrologSlurmctld PrologFlags:prolog
PropagatePrioProcess PropagateResourceLimits:propagate PropagateResourceLimitsExcept RebootProgram
ReconfigFlags RequeueExit RequeueExitHold ResumeFailProgram ResumeProgram ResumeRate:nodes/min
ResumeTimeout:sec ResvEpilog ResvOverRun:min ResvProlog ReturnToService RoutePlugin
SchedulerParameters SchedulerTimeSlice:sec SchedulerType ScronParameters SelectType
SelectTypeParameters:select SlurmUser:user SlurmctldAddr SlurmctldDebug SlurmctldHost:hosts
SlurmctldLogFile SlurmctldPort SlurmctldSyslogDebug SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg
SlurmctldTimeout:sec SlurmctldParameters SlurmdDebug SlurmdLogFile SlurmdParameters SlurmdPidFile
SlurmdPort SlurmdSpoolDir SlurmdSyslogDebug SlurmdTimeout:sec SlurmdUser:user SlurmSchedLogFile
SlurmSchedLogLevel SlurmctldPidFile SlurmctldPlugstack SLURM_CONF:running SLURM_VERSION:running
SrunEpilog SrunPortRange SrunProlog StateSaveLocation SuspendExcNodes SuspendExcParts SuspendProgram
SuspendRate:nodes/min SuspendTime:suspend SuspendTimeout:sec SwitchParameters SwitchType TaskEpilog
TaskPlugin TaskPluginParam:task TaskProlog TCPTimeout:sec TmpFS TopologyParam TopologyPlugin
TrackWCKey:yes TreeWidth UsePam:yes UnkillableStepProgram UnkillableStepTimeout:sec
VSizeFactor:percent WaitTime:sec X11Parameters
"""

_UNITS: Final = frozenset({"sec", "min", "usec", "nodes/min", "percent"})
_NULL: Final = "(null)"
_TRES: Final = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
# in their order, as they are shown
_PRIVATE: Final = (
    *("accounts", "cloud", "events", "jobs", "nodes", "partitions", "reservations", "usage"),
    "users",
)
_PRIORITY_FLAGS: Final = (
    *("ACCRUE_ALWAYS", "SMALL_RELATIVE_TO_TIME", "CALCULATE_RUNNING", "DEPTH_OBLIVIOUS"),
    *("NO_FAIR_TREE", "INCR_ONLY", "MAX_TRES", "NO_NORMAL_ALL"),
)
_SELECT_PARAMETERS: Final = (
    *("OTHER_CONS_RES", "OTHER_CONS_TRES", "CR_ONE_TASK_PER_CORE", "CR_CORE_DEFAULT_DIST_BLOCK"),
    *("CR_LLN", "CR_PACK_NODES"),
)
_HEALTH_ORDER: Final = ("CYCLE", "ALLOC", "IDLE", "MIXED", "NONDRAINED_IDLE", "ANY")


def show(
    config: SlurmConfig,
    *,
    boot_time: str = "N/A",
    next_job_id: str = "",
    slurm_version: str = "22.05.8",
    user_id_of: str = "0",
    host: str = "",
) -> list[tuple[str, str]]:
    """Names and values in their order.

    boot_time, next_job_id, slurm_version: as the running controller knows them; the next job id is
    FirstJobId if it is not said. user_id_of: the number of SlurmUser and SlurmdUser where the file
    names them; root is 0. host: shown as SlurmctldHost[0] if the file names none.
    """
    running = {
        "BOOT_TIME": boot_time,
        "HASH_VAL": "Match",
        "MULTIPLE_SLURMD": "Yes",
        "NEXT_JOB_ID": next_job_id or config.text("FirstJobId"),
        "SLURM_CONF": config.path,
        "SLURM_VERSION": slurm_version,
    }
    shown: list[tuple[str, str]] = []
    for entry in _LINES.split():
        name, _, style = entry.partition(":")
        if style == "running":
            shown.append((name, running[name]))
        elif style == "hosts":
            hosts = config.controllers or [(host, "")]
            shown += [
                (f"SlurmctldHost[{index}]", f"{each}({address})" if address else each)
                for index, (each, address) in enumerate(hosts)
            ]
        elif style == "memory":
            shown.append(_memory(config, name))
        elif style == "defaults":
            parts = [
                f"{key}={config.text(key)}"
                for key in ("DefCpuPerGPU", "DefMemPerGPU")
                if config.is_set(key)
            ]
            shown.append((name, ",".join(parts) or _NULL))
        elif style == "multifactor":
            if config.text("PriorityType") == "priority/multifactor":
                shown.append((name, _priority(config, name)))
        elif style == "priority":
            if config.text("PriorityType") == "priority/multifactor":
                shown.append((name, _priority_flags(config)))
        elif style == "select":
            text = _select_parameters(config)
            if text:
                shown.append((name, text))
        elif style == "user":
            user = config.text(name)
            shown.append((name, f"{user}({'0' if user == 'root' else user_id_of})"))
        else:
            shown.append((name, _worked_out(config, name) or _render(config, name, style)))
    return shown + conf_cgroup_show.show(config)


def _worked_out(config: SlurmConfig, name: str) -> str:
    """What follows from other keys, or nothing."""
    if name == "AccountingStorageUser" and config.text("AccountingStorageType").endswith("dbd"):
        return "N/A"  # slurmdbd.conf says it
    uses_dbd = config.text("AccountingStorageType").endswith("dbd")
    if name == "MaxDBDMsgs" and not config.number(name) and uses_dbd:
        return str(max(10_000, 2 * (config.number("MaxJobCount") or 0) + 4 * len(config.nodes)))
    return ""


def _render(config: SlurmConfig, name: str, style: str) -> str:
    text = config.text(name)
    if style in _UNITS:
        number = config.number(name)
        return "UNLIMITED" if number is None else f"{number} {style}"
    match style:
        case "yes":
            return "Yes" if config.boolean(name) else "No"
        case "limits":
            return conf_values.part_limits(text)
        case "capital":
            return text.capitalize()
        case "duration":
            return times.format_duration(config.seconds(name))
        case "suspend":
            seconds = config.seconds(name)
            return "INFINITE" if seconds is None else f"{seconds} sec"
        case "empty":
            return text
        case "task":
            return _task_parameters(text)
        case "nodes":
            return text or str(len(config.nodes))
        case "tres":
            return ",".join(
                [*_TRES, *(word for word in config.words(name) if word.lower() not in _TRES)]
            )
        case "lower":
            return text.lower()
        case "flags" | "private" | "prolog" | "health":
            return _words(config, name, style)
        case "preempt":
            return conf_values.shown_preempt_mode(config.text(name))
        case "propagate":
            # One of the two keys rules: with exceptions named there is no list.
            return (
                _NULL
                if config.is_set("PropagateResourceLimitsExcept") and not config.is_set(name)
                else text
            )
    if (
        name == "CommunicationParameters"
        and "noinaddrany" in (word.lower() for word in config.words("TopologyParam"))
        and not text
    ):
        return "NoInAddrAny"
    if GLOBAL_KEYS[name.lower()].kind in (Kind.SHORT, Kind.LONG):
        number = config.number(name)
        return "UNLIMITED" if number is None else str(number)
    if GLOBAL_KEYS[name.lower()].kind is Kind.LEVEL and text:
        return conf_values.level(name, text)
    return text or _NULL


def _words(config: SlurmConfig, name: str, style: str) -> str:
    """Several words, in the order in which Slurm prints them."""
    words = config.words(name)
    match style:
        case "flags":
            known = [FLAG_NAMES.get(word.lower(), word) for word in words]
            return ",".join(_in_order(known, tuple(FLAG_NAMES.values()))) or _NULL
        case "private":
            known = [word.lower() for word in words]
            shown = _PRIVATE if "all" in known else _in_order(known, _PRIVATE)
            return ",".join(shown) or config.text(name)
        case "prolog":
            flags = prolog_words(config.text(name))
            return ",".join(word for word in PROLOG_WORDS if word.lower() in flags) or _NULL
    return ",".join(_in_order([word.upper() for word in words], _HEALTH_ORDER))


def _task_parameters(text: str) -> str:
    """Verbosity first, then what is bound; all in lower case."""
    words = [word for word in text.lower().split(",") if word]
    return (
        ",".join(sorted(words, key=lambda word: word not in ("quiet", "verbose"))) or "(null type)"
    )


def _in_order(words: list[str], order: tuple[str, ...]) -> list[str]:
    """The words, each once, in that order; those that are not in it first."""
    kept = dict.fromkeys(words)
    return [
        *(word for word in kept if word not in order),
        *(word for word in order if word in kept),
    ]


def _priority_flags(config: SlurmConfig) -> str:
    """Fair tree is the default and has no name; of what is not to be normalized all is shown."""
    words = {word.upper() for word in config.words("PriorityFlags")} - {"FAIR_TREE"}
    if "DEPTH_OBLIVIOUS" in words:
        words.add("NO_FAIR_TREE")
    words = {"NO_NORMAL_ALL" if word.startswith("NO_NORMAL_") else word for word in words}
    return ",".join(_in_order(sorted(words), _PRIORITY_FLAGS))


def _select_parameters(config: SlurmConfig) -> str:
    """What is consumed, and then the others; "" where no such line is shown."""
    words = [word.upper() for word in config.words("SelectTypeParameters")]
    if not words and config.text("SelectType") in ("select/cons_tres", "select/cons_res"):
        return "CR_CORE_MEMORY"
    return ",".join(_in_order(words, _SELECT_PARAMETERS))


def _memory(config: SlurmConfig, name: str) -> tuple[str, str]:
    """DefMemPerNode or its per-CPU form, whichever is set; 0 is a bound of CPUs alone."""
    per_cpu = name.replace("Node", "CPU")
    if config.is_set(per_cpu) and (number := config.number(per_cpu)) is not None:
        return per_cpu, str(number)
    number = config.number(name)
    return name, "UNLIMITED" if not number else str(number)


def _priority(config: SlurmConfig, name: str) -> str:
    kind = GLOBAL_KEYS[name.lower()].kind
    if kind is Kind.MINUTES:
        return times.format_duration(config.seconds(name))
    if kind is Kind.BOOLEAN:
        return "Yes" if config.boolean(name) else "No"
    return config.text(name) or _NULL
