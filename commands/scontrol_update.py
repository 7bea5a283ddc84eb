"""scontrol's update, create and delete, and what it does to jobs as a whole (hold, release, requeue ...). Follows scontrol(1) of 22.05.

Place: under scontrol. Keys may be written in any case and shortened as long as they say which; what is checked here is what Slurm's scontrol checks
before it asks the controller.
"""

from understudy.commands.client import Context, RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

JOB_KEYS = (
    "Account", "AdminComment", "ArrayTaskThrottle", "BurstBuffer", "ClusterFeatures", "Clusters", "Comment", "Contiguous", "CoreSpec",
    "CPUsPerTask", "CpusPerTres", "Deadline", "DelayBoot", "Dependency", "EligibleTime", "EndTime", "ExcNodeList", "Extra", "Features", "Gres",
    "JobName", "Licenses", "MailType", "MailUser", "MCSLabel", "MemPerTres", "MinCPUsNode", "MinMemoryCPU", "MinMemoryNode", "MinTmpDiskNode",
    "Name", "Nice", "NodeList", "NumCPUs", "NumNodes", "NumTasks", "OverSubscribe", "Partition", "Prefer", "Priority", "QOS", "Reboot",
    "ReqCores", "ReqNodeList", "ReqNodes", "ReqProcs", "ReqSockets", "ReqThreads", "Requeue", "ReservationName", "ResetAccrueTime", "Shared",
    "SiteFactor", "StartTime", "StdOut", "Switches", "SystemComment", "TasksPerNode", "ThreadSpec", "TimeLimit", "TimeMin", "TresBind",
    "TresFreq", "TresPerJob", "TresPerNode", "TresPerSocket", "TresPerTask", "UserID", "WCKey", "WorkDir",
)  # fmt: skip
NODE_KEYS = (
    "ActiveFeatures", "AvailableFeatures", "Comment", "CpuBind", "Extra", "Features", "Gres", "NodeAddr", "NodeHostName", "Reason", "ReasonUid",
    "ResumeAfter", "State", "Weight",
)  # fmt: skip
PARTITION_KEYS = (
    "AllocNodes", "AllowAccounts", "AllowGroups", "AllowQos", "Alternate", "Default", "DefaultTime", "DefMemPerCPU", "DefMemPerNode",
    "DenyAccounts", "DenyQos", "DisableRootJobs", "ExclusiveUser", "GraceTime", "Hidden", "JobDefaults", "LLN", "MaxCPUsPerNode",
    "MaxMemPerCPU", "MaxMemPerNode", "MaxNodes", "MaxTime", "MinNodes", "Nodes", "OverSubscribe", "OverTimeLimit", "PreemptMode", "Priority",
    "PriorityJobFactor", "PriorityTier", "QoS", "ReqResv", "RootOnly", "Shared", "State", "TresBillingWeights",
)  # fmt: skip
# Keys that one may write but that mean another.
_SAME_KEY = {"reqnodes": "numnodes", "reqprocs": "numcpus", "shared": "oversubscribe", "name": "jobname"}
NODE_STATES = (
    "DOWN", "DRAIN", "FAIL", "FUTURE", "IDLE", "NORESP", "NORESPOND", "POWER_DOWN", "POWER_DOWN_ASAP", "POWER_DOWN_FORCE", "POWER_UP", "RESUME",
    "UNDRAIN", "CANCEL_REBOOT",
)  # fmt: skip
_NEED_REASON = ("DOWN", "DRAIN", "FAIL")
_PARTITION_STATES = ("UP", "DOWN", "DRAIN", "INACTIVE")
# Actions whose refusal is said once per job and once more.
_JOB_BY_JOB = ("suspend", "resume")
INVALID_JOB = 2017
_SUSPENDS = ("hold", "uhold", "release")


class _RefusedInputError(Exception):
    """Input that makes no sense; what to say has been said."""


def _key(word: str, known: "Sequence[str]") -> str | None:
    """The full key in lower case: exact, or the first that begins so (three letters at least)."""
    lowered = word.lower()
    names = [name.lower() for name in known]
    if lowered in names:
        return lowered
    return next((name for name in names if len(lowered) > 2 and name.startswith(lowered)), None)


def _pairs(words: "Sequence[str]") -> list[tuple[str, str, str]]:
    """(key, sign, value) of `key=value`, `key+=value`, `key-=value` each; the value is None-like "" where there is no "="."""
    pairs = []
    for word in words:
        key, _, value = word.partition("=")
        sign = key[-1:] if key[-1:] in {"+", "-"} else ""
        pairs.append((key.rstrip("+-") if sign else key, sign, value))
    return pairs


def update(words: "Sequence[str]", context: Context) -> int:
    """`scontrol update ...`."""
    if not words:
        context.complain("too few arguments for update keyword")
        return 1
    if words[0].lower().startswith("res") or any(key.lower().startswith("reservationname") for key, _, _ in _pairs(words[:1])):
        from understudy.commands.scontrol_reservation import update as update_reservation

        return update_reservation(words, context)
    words = _entity_apart(words)
    first = [key.lower() for key, _, _ in _pairs(words)]
    try:
        if any(key in {"nodename", "nodenames", "node", "nodes"} for key in first[:1]) or "nodename" in first:
            return _update_nodes(words, context)
        if any(key.startswith("partition") for key in first[:1]) or ("partitionname" in first and "jobid" not in first):
            return _update_partition(words, context)
        if "jobid" in first or "job" in first[:1] or "jobname" in first[:1] or "name" in first[:1]:
            return _update_jobs(words, context)
    except _RefusedInputError:
        return 1
    except RefusedError as error:
        context.complain(f"slurm_update error: {error.text}")
        return 1
    context.complain("No valid entity in update command")
    context.complain('Input line must include "NodeName", "PartitionName", "Reservation", "JobId", or "SlurmctldDebug"')
    return 1


def _entity_apart(words: "Sequence[str]") -> list[str]:
    """`job 17 name=x` as `job=17 name=x`."""
    if len(words) > 1 and "=" not in words[0] and "=" not in words[1]:
        return [f"{words[0]}={words[1]}", *words[2:]]
    return list(words)


def _update_jobs(words: list[str], context: Context) -> int:
    jobs: list[str] = []
    names: list[str] = []
    changes: dict[str, str] = {}
    for position, (key, sign, value) in enumerate(_pairs(words)):
        lowered = key.lower()
        if lowered in {"jobid", "job"}:
            jobs += [job for job in value.split(",") if job]
        elif position == 0 and lowered in {"jobname", "name"}:
            names.append(value)
        elif lowered in {"userid", "uid"}:
            continue
        else:
            known = _key(key, JOB_KEYS)
            if known is None:
                context.complain(f"Update of this parameter is not supported: {words[position]}")
                context.complain("Request aborted")
                return 1
            if known == "timelimit":
                _check_limit(value, context)
            changes[_SAME_KEY.get(known, known) + sign] = value
    if not changes:
        context.complain("No changes specified")
        return 1
    if names and not jobs:
        found = context.client.query("jobs", ["job_id", "state"], {"name": names}).rows
        jobs = [str(job) for job, state in found if state < 3]
    return _say_results(context, context.client.call("UpdateJobs", jobs, changes)[0])


def _check_limit(value: str, context: Context) -> None:
    from understudy.model.times import parse_limit

    try:
        parse_limit(value)
    except ValueError:
        context.error("Invalid TimeLimit value")
        raise _RefusedInputError from None


def _say_results(context: Context, results: "list[tuple[str, int, str]]", *, action: str = "") -> int:
    code = 0
    for job, error, text in results:
        if error:
            is_unanswered = action in _JOB_BY_JOB and error == INVALID_JOB and job.isdigit()  # Slurm has no answer for jobs that it does not know
            context.complain(f"{'Unexpected message received' if is_unanswered else text} for job {job}")
            if action in _SUSPENDS:
                context.complain(f"slurm_suspend error: {text}")
            code = 1
    return code


def _update_nodes(words: list[str], context: Context) -> int:
    nodes = ""
    changes: dict[str, str] = {}
    for position, (key, sign, value) in enumerate(_pairs(words)):
        if key.lower() in {"nodename", "nodenames", "node", "nodes"}:
            nodes = value
            continue
        known = _key(key, NODE_KEYS)
        if known is None or sign:
            context.complain(f"Update of this parameter is not supported: {words[position]}")
            context.complain("Request aborted")
            return 1
        changes[known] = _node_state(value, words[position], context) if known == "state" else value
    if changes.get("state") in _NEED_REASON and not changes.get("reason"):
        context.complain("You must specify a reason when DOWNING or DRAINING a node. Request denied")
        return 1
    if not changes:
        context.complain("No changes specified")
        return 1
    context.client.call("UpdateNodes", nodes, changes)
    return 0


def _node_state(value: str, word: str, context: Context) -> str:
    wanted = value.upper()
    state = wanted if wanted in NODE_STATES else next((name for name in NODE_STATES if len(wanted) > 2 and name.startswith(wanted)), None)
    if state is None:
        context.complain(f"Invalid input: {word}")
        context.complain("Request aborted")
        context.complain("Valid states are: NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN")
        context.complain("Not all states are valid given a node's prior state")
        raise _RefusedInputError
    return state


def _partition_changes(words: list[str], context: Context) -> tuple[str, dict[str, str]]:
    name = ""
    changes: dict[str, str] = {}
    for position, (key, _, value) in enumerate(_pairs(words)):
        if key.lower() in {"partition", "partitionname"}:
            name = value
            continue
        known = _key(key, PARTITION_KEYS)
        word = words[position]
        if known is None:
            context.error(f"Update of this parameter is not supported: {word}\n")
            context.error("Request aborted")
            raise RefusedError(0, "No error")
        if known == "state" and value.upper() not in _PARTITION_STATES:
            context.error(f"Invalid input: {word}")
            context.error("Acceptable State values are UP, DOWN, DRAIN and INACTIVE")
            raise RefusedError(0, "No error")
        if known in {"maxtime", "defaulttime"} and value.lower() != "none":
            from understudy.model.times import parse_limit

            try:
                parse_limit(value)
            except ValueError:
                context.error(f"Invalid input {word}")
                raise RefusedError(0, "No error") from None
        changes[_SAME_KEY.get(known, known)] = value
    return name, changes


def _update_partition(words: list[str], context: Context) -> int:
    name, changes = _partition_changes(words, context)
    if not changes:
        context.complain("No changes specified")
        return 1
    context.client.call("UpdatePartition", "update", name, changes)
    return 0


def create(words: "Sequence[str]", context: Context) -> int:
    """`scontrol create partition=...`."""
    if not words:
        context.complain("too few arguments for create keyword")
        return 1
    if words[0].lower().startswith("res"):
        from understudy.commands.scontrol_reservation import create as create_reservation

        return create_reservation(words, context)
    if not words[0].lower().startswith("part"):
        context.error(f"Invalid creation entity: {words[0]}")
        return 1
    if "=" not in words[0]:
        if len(words) == 1 or "=" not in words[1] or not words[1].lower().startswith("part"):
            context.error(f"Invalid input: {words[0]}  Request aborted")
            return 1
        words = words[1:]
    try:
        name, changes = _partition_changes(list(words), context)
        context.client.call("UpdatePartition", "create", name, changes)
    except RefusedError as error:
        context.complain(f"Error creating the partition: {error.text}")
        return 1
    return 0


def delete(words: "Sequence[str]", context: Context) -> int:
    """`scontrol delete partition=...`."""
    pairs = _pairs(_entity_apart(words))
    if len(pairs) != 1 or not pairs[0][2]:
        context.error("Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'")
        return 1
    key, _, name = pairs[0]
    if len(key) > 2 and "reservationname".startswith(key.lower()):
        try:
            context.client.call("UpdateReservation", "delete", name, {})
        except RefusedError as error:
            context.complain(f"delete_reservation {key}={name}: {error.text}")
            return 1
        return 0
    if not key.lower().startswith("part"):
        context.complain(f"Invalid deletion entity {key}")
        return 1
    try:
        context.client.call("UpdatePartition", "delete", name, {})
    except RefusedError as error:
        context.complain(f"delete_partition {key}={name}: {error.text}")
        return 1
    return 0


def control(action: str, words: "Sequence[str]", context: Context) -> int:
    """`hold`, `release`, `requeue` and the like, for jobs by number or by name (`JobName=x`, or a word that is no number)."""
    if not words:
        context.complain(f"too few arguments for keyword:{action}")
        return 1
    jobs: list[str] = []
    names: list[str] = []
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key.lower() in {"jobname", "name"}:
            names.append(value)
            continue
        for each in (value if equals else word).split(","):
            if each:
                (jobs if each[0].isdigit() else names).append(each)
    code = 0
    try:
        if jobs:
            code = _say_results(context, context.client.call("ControlJobs", action, jobs)[0], action=action)
        if names:
            code |= _say_results(context, context.client.call("ControlJobs", action, [], {"name": names})[0], action=action)
    except RefusedError as error:
        context.complain(f"slurm_suspend error: {error.text}")
        return 1
    return code
