"""Errors that a user can cause, with Slurm's numbers and texts.

Place: raised by the controller's cores and by the readers of the model, carried in `Failure`
messages, printed by commands.
"""

from enum import IntEnum
from typing import Final


class ErrorCode(IntEnum):
    """Those of Slurm's numbers that this program gives, too."""

    TRY_AGAIN = 11
    PERMISSION_DENIED = 13
    INVALID_PARTITION = 2000
    NO_PARTITION = 2001
    ACCESS_DENIED = 2002
    GROUP_NOT_PERMITTED = 2003
    TOO_MANY_CPUS = 2005
    INVALID_NODE_COUNT = 2006
    NO_SCRIPT = 2009
    INVALID_USER = 2010
    TOO_LONG = 2012
    NOT_TOP_PRIORITY = 2013
    NOT_AVAILABLE = 2014
    NOT_AVAILABLE_NOW = 2015
    NODES_BUSY = 2016
    INVALID_JOB = 2017
    INVALID_NODE = 2018
    IN_TRANSITION = 2020
    ALREADY_DONE = 2021
    INVALID_DISTRIBUTION = 2023
    JOB_PENDING = 2024
    INVALID_TASK_COUNT = 2025
    INVALID_NODE_STATE = 2028
    INVALID_FEATURE = 2029
    FEATURES_NOT_AVAILABLE = 2031
    RESTART_FOR_SCHEDULER = 2032
    RESTART_FOR_SELECT = 2033
    NOT_SUPPORTED = 2036
    DISABLED = 2037
    DEPENDENCY_PROBLEM = 2038
    HELD = 2042
    NO_MEMORY = 2044
    INVALID_ACCOUNT = 2045
    INVALID_LICENSES = 2048
    RESTART_FOR_NODES = 2049
    VIOLATES_POLICY = 2050
    INVALID_TIME_LIMIT = 2051
    RESERVATION_ACCESS_DENIED = 2052
    INVALID_RESERVATION = 2053
    INVALID_TIME = 2054
    RESERVATION_IN_USE = 2055
    INVALID_WCKEY = 2057
    RESERVATION_OVERLAPS = 2058
    TOO_MANY_PORTS = 2060
    INVALID_QOS = 2066
    NODE_NOT_AVAILABLE = 2068
    INVALID_CPU_COUNT = 2069
    PARTITION_NOT_AVAILABLE = 2070
    CIRCULAR_DEPENDENCY = 2071
    INVALID_GRES = 2072
    NOT_PENDING = 2073
    PARTITION_IN_USE = 2075
    TOO_MANY_STEPS = 2076
    SUSPENDED = 2077
    RESERVATION_WITHOUT_USERS = 2080
    INVALID_ARRAY = 2081
    DUPLICATE_RESERVATION = 2082
    FINISHED = 2084
    NOT_RUNNING = 2085
    NOT_SUSPENDED = 2087
    DUPLICATE_TRIGGER = 2089
    INTERNAL_ERROR = 2090
    RESTART_FOR_BURST_BUFFER = 2091
    BURST_BUFFER_DENIED = 2092
    BURST_BUFFER_INVALID = 2094
    NOT_PERSISTENT = 2095
    CRONTAB_JOB = 2096
    PARTITION_DOWN = 2101
    HAS_STARTED = 2104
    SUBMISSIONS_DISABLED = 2105
    NOT_LEADER = 2107
    NOT_WHOLE = 2108
    CORES_ARE_FIXED = 2109
    CORES_DO_NOT_MATCH = 2111
    INVALID_GROUP = 2113
    INVALID_BATCH_FEATURES = 2114
    INVALID_TRES = 2115
    INVALID_WEIGHTS = 2116
    INVALID_JOB_DEFAULTS = 2117
    MIXED_GRES = 2119
    UNSUPPORTED_GRES = 2122
    INVALID_NICE = 2123
    INVALID_TIME_MIN = 2124
    NOT_SKIPPABLE = 2128
    USERS_OR_GROUPS = 2129
    SEVERAL_PARTITIONS = 2130
    INVALID_PREFERENCE = 2133
    INSUFFICIENT = 2134


ERROR_TEXT: Final[dict[int, str]] = {
    -1: "Unspecified error",
    0: "No error",
    1000: "Unexpected message received",
    1001: "Communication connection failure",
    1002: "Message send failure",
    1003: "Message receive failure",
    1004: "Communication shutdown failure",
    1005: "Unable to contact slurm controller (connect failure)",
    1006: "Unable to contact slurm controller (receive failure)",
    1007: "Protocol authentication error",
    1008: "Insane message length",
    1009: "Invalid MPI plugin name",
    1010: "MPI plugin's pre-launch setup failed",
    1011: "Plugin initialization failed",
    1012: "Can't find an address, check slurm.conf",
    1013: "Unexpected missing socket error",
    2000: "Invalid partition name specified",
    2001: "No partition specified or system default partition",
    2002: "Access/permission denied",
    2003: "User's group not permitted to use this partition",
    2004: "Requested nodes not in this partition",
    2005: "More processors requested than permitted",
    2006: "Node count specification invalid",
    2007: "Unable to create job record, try again",
    2008: "Job size specification needs to be provided",
    2009: "Job script not specified",
    2010: "Invalid user id",
    2011: "Duplicate job id",
    2012: "Pathname of a file, directory or other parameter too long",
    2013: "Immediate execution impossible, insufficient priority",
    2014: "Requested node configuration is not available",
    2015: "Requested partition configuration not available now",
    2016: "Requested nodes are busy",
    2017: "Invalid job id specified",
    2018: "Invalid node name specified",
    2019: "I/O error writing script/environment to file",
    2020: "Job can not be altered now, try again later",
    2021: "Job/step already completing or completed",
    2022: "Error configuring interconnect",
    2023: "Task distribution specification invalid",
    2024: "Job is pending execution",
    2025: "Task count specification invalid",
    2026: "Error generating job credential",
    2027: "Slurm backup controller in standby mode",
    2028: "Invalid node state specified",
    2029: "Invalid feature specification",
    2030: "AuthType change requires restart of all Slurm daemons and commands to take effect",
    2031: "Active features not subset of available features",
    2032: "SchedulerType change requires restart of the slurmctld daemon to take effect",
    2033: "SelectType change requires restart of the slurmctld daemon to take effect",
    2034: "SwitchType change requires restart of all Slurm daemons and jobs to take effect",
    2035: "Immediate execution impossible, resources too fragmented for allocation",
    2036: "Requested operation not supported on this system",
    2037: "Requested operation is presently disabled",
    2038: "Job dependency problem",
    2039: "Only batch jobs are accepted or processed",
    2040: "Current SwitchType does not permit arbitrary task distribution",
    2041: "Requested more tasks than available processors",
    2042: "Job is in held state, pending scheduler release",
    2043: "CredType change requires restart of all Slurm daemons to take effect",
    2044: "Memory required by task is not available",
    2045: "Invalid account or account/partition combination specified",
    2046: "Invalid parent account specified",
    2047: "Account already child of parent account specified",
    2048: "Invalid license specification",
    2049: "The node configuration changes that were made require restart of the slurmctld "
    "daemon to take effect",
    2050: "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
    2051: "Requested time limit is invalid (missing or exceeds some limit)",
    2052: "Access denied to requested reservation",
    2053: "Requested reservation is invalid",
    2054: "Invalid time specified",
    2055: "Requested reservation is in use",
    2056: "Requested reservation not usable now",
    2057: "Invalid wckey specification",
    2058: "Requested reservation overlaps with another reservation",
    2059: "Required ports are in use",
    2060: "Requires more ports than can be reserved",
    2061: "PrologSlurmctld is still running",
    2062: "Job steps can not be run on this cluster",
    2063: "Invalid block state specified",
    2064: "Functionality not available with current block layout mode",
    2065: "Invalid block name specified",
    2066: "Invalid qos specification",
    2067: "QOS Preemption loop detected",
    2068: "Required node not available (down, drained or reserved)",
    2069: "CPU count specification invalid",
    2070: "Required partition not available (inactive or drain)",
    2071: "Circular job dependency",
    2072: "Invalid generic resource (gres) specification",
    2073: "Job is no longer pending execution",
    2074: "Requested account has breached requested QOS usage threshold",
    2075: "Partition is in use",
    2076: "Step limit reached for this job",
    2077: "Job is current suspended, requested operation disabled",
    2078: "Job can not start immediately",
    2079: "Switch resources currently not available",
    2080: "Reservation request lacks users, groups or accounts",
    2081: "Invalid job array specification",
    2082: "Duplicate reservation name",
    2083: "Job has already started",
    2084: "Job has already finished",
    2085: "Job is not running",
    2086: "Job is not pending nor running",
    2087: "Job is not suspended",
    2088: "Job is not finished",
    2089: "Duplicate event trigger",
    2090: "Slurm internal error, contact system administrator",
    2091: "BurstBufferType change requires restart of slurmctld daemon to take effect",
    2092: "Burst Buffer permission denied",
    2093: "Burst Buffer resource limit exceeded",
    2094: "Burst Buffer request invalid",
    2095: "Changes to job priority are not persistent, change nice instead",
    2096: "Cannot modify scrontab jobs through scontrol",
    2099: "Invalid mcs_label specified",
    2100: "Waiting for burst buffer",
    2101: "Partition in DOWN state",
    2102: "Duplicate generic resource (gres) specification",
    2103: "Job update not available right now, the DB index is being set, try again in a bit",
    2104: "Reservation already started",
    2105: "System submissions disabled",
    2106: "Job not heterogeneous job",
    2107: "Job not heterogeneous job leader",
    2108: "Operation not permitted on individual component of heterogeneous job",
    2109: "Core-based reservation can not be updated",
    2110: "Duplicate job step id",
    2111: "Core count for reservation node list is not consistent!",
    2112: "X11 forwarding not available",
    2113: "Invalid group id",
    2114: "Job --batch option is invalid or not a subset of --constraints",
    2115: "Invalid Trackable RESource (TRES) specification",
    2116: "Invalid TRESBillingWeights specification",
    2117: "Invalid JobDefaults specification",
    2118: "Job can not start due to maintenance reservation.",
    2119: "Invalid GRES specification (with and without type identification)",
    2120: "Reboot already in progress",
    2121: "Multiple KNL NUMA and/or MCDRAM constraints require use of a heterogeneous job",
    2122: "Requested GRES option unsupported by configured SelectType plugin",
    2123: "Invalid --nice value",
    2124: "Invalid time-min specification (exceeds job's time or other limits)",
    2125: "Immediate execution impossible. Individual job submission scheduling attempts deferred",
    2126: "ConfigLess mode is disabled in slurm configuration.",
    2127: "Environment is missing in job",
    2128: "Reservation given is not skipable, try deleting instead",
    2129: "Reservations can't have users and groups specified, only one or the other",
    2130: "Multiple partition job request not supported when a partition is set in the association",
    2131: "Controller is in standby mode, try a different controller",
    2132: "Cannot request more threads per core than the job allocation",
    2133: "Invalid preferred feature specification",
    2134: "Insufficient GRES available in allocation",
    3000: "Generic error",
    3001: "Bad argument",
    3002: "Not in task context",
    3003: "Environment variable exists",
    3004: "No such environment variable",
    3005: "Buffer too small",
    3006: "Valid only in remote context",
    3007: "Id/PID does not exist on this node",
    3008: "Lookup by PID requested, but no tasks running",
    3009: "Item not available from this callback",
    3010: "Valid only in local or allocator context",
    4000: "Pipe error on task spawn",
    4001: "Kill task failed",
    4003: "Invalid accounting frequency requested",
    4004: "Invalid job credential",
    4005: "User not found on host",
    4006: "Group ID not found on host",
    4007: "Job credential expired",
    4008: "Job credential revoked",
    4009: "Job credential replayed",
    4010: "Slurmd could not create a batch directory or file",
    4011: "Slurmd could not chown or chmod a batch directory",
    4012: "Slurmd could not create a batch script",
    4013: "Slurmd could not chown or chmod a batch script",
    4014: "Slurmd could not set up environment for batch job",
    4015: "Slurmd shared memory error",
    4016: "Slurmd could not set UID or GID",
    4017: "Slurmd could not set session ID",
    4018: "Slurmd could not spawn I/O thread",
    4019: "Slurmd could not fork job",
    4020: "Slurmd could not execve job",
    4021: "Slurmd could not connect IO",
    4022: "Job prolog failed",
    4023: "Job epilog failed",
    4024: "Session manager killed",
    4025: "Too many job steps on node",
    4026: "Job step already exists",
    4027: "Job step not running",
    4028: "Job step is suspended",
    4029: "Job step is not currently suspended",
    4030: "Unix socket name exceeded maximum length",
    5000: "Received zero length message",
    5001: "Received message length < 0",
    5002: "Failed to send entire message",
    5003: "Header lengths are longer than data received",
    5004: "Socket timed out on send/recv operation",
    5005: "Zero Bytes were transmitted or received",
    6000: "Invalid authentication credential",
    6001: "Failed to open authentication public key",
    6002: "Failed to connect to authentication agent",
    6004: "Bad argument to plugin function",
    6005: "Memory management error",
    6006: "Authentication credential invalid",
    6007: "Cannot unpack credential",
    6008: "Authentication does not apply to request",
    7000: "Unable to connect to database",
    7001: "Job(s) active, cancel job(s) before remove",
    7002: "Cluster deleted, commit/rollback immediately",
    7003: "Can only change one at a time",
    7004: "Unacceptable name given. (No '.' in name allowed)",
    7005: "You can not allocate more than 100% of a resource",
    7006: "Query result exceeds size limit",
    7007: "Too wide of a date range in query",
    7008: "Database connection reference is invalid",
    7009: "You can not remove the default account of a user",
    8000: "Time limit specification required, but not provided",
    8001: "Invalid KNL configuration (MCDRAM or NUMA option)",
    8002: "Plugin has invalid format or unable to be loaded",
    8003: "Plugin missing required symbol or function",
    9000: "Query empty or not RFC7320 compliant",
    9001: "Failure during parsing",
    9002: "Jobs description entry not found, empty or not dictionary or list",
    9003: "Nothing found with query",
    10000: "Container support is not configured",
}

# What `scontrol errnumstr` says beside: numbers that nothing here answers with, and what 1005 and
# 1006, here a controller that is not there, mean to Slurm.
OTHER_TEXT: Final[dict[int, str]] = {
    1005: "Incompatible versions of client and server code",
    1006: "I/O stream version number error",
    1800: "Unable to contact slurm controller (connect failure)",
    1801: "Unable to contact slurm controller (send failure)",
    1802: "Unable to contact slurm controller (receive failure)",
    1803: "Unable to contact slurm controller (shutdown failure)",
    1900: "Data has not changed since time specified",
    4031: "Container runtime not configured or invalid",
    4032: "Unable to satisfy cpu bind request",
    4033: "Unable to layout tasks on given cpus",
    7100: "Too many clusters in federation",
    7101: "Clusters can only be assigned to one federation",
    7102: "Invalid cluster feature specification",
    7103: "Not a valid federated job",
    7104: "Invalid cluster name",
    7105: "Job locked by another sibling",
    7106: "No eligible clusters for federated job",
}


class SlurmError(Exception):
    """A request that cannot be served. `code` is Slurm's error number, `text` what the user
    reads.
    """

    def __init__(self, code: int, text: str | None = None) -> None:
        self.code = int(code)
        self.text = text if text is not None else ERROR_TEXT.get(code, f"Unknown error {code}")
        super().__init__(self.text)


class ConfigError(Exception):
    """A configuration file that cannot be used. Says where: `FILE line N: what`."""

    def __init__(self, message: str, file: str = "", line: int = 0) -> None:
        self.file, self.line, self.message = file, line, message
        where = f"{file} line {line}: " if line else f"{file}: " if file else ""
        super().__init__(where + message)


_EXTRAS: Final = {"psycopg": "postgresql", "pymysql": "mariadb"}


def with_extra(error: Exception) -> str:
    """The error's text; of a module that is not installed, with the extra that has it."""
    extra = _EXTRAS.get(error.name or "") if isinstance(error, ImportError) else None
    return f"{error}: pip install 'understudy[{extra}]'" if extra else str(error)
