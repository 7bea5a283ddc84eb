"""scontrol update jobid=...: the keys, and what of their values is looked at before the controller
is asked. Follows scontrol(1) of 22.05.

Place: under `update`. A value that makes no sense ends the command, with the words of
Slurm's; some are only left out, or read as 0.
"""

from understudy.commands.scontrol.words import (
    RefusedInputError,
    SilentlyDoneError,
    check_limit,
    full_key,
    jobs_in,
    pairs,
    say_results,
    say_unreachable,
)
from understudy.commands.shared.client import RefusedError
from understudy.documents.job_texts import task_numbers
from understudy.model.times import parse_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.commands.scontrol.session import Session
    from understudy.commands.shared.context import Context

# With how many letters of it must be written at least.
JOB_KEYS = (
    ("Account", 1),
    ("AdminComment", 6),
    ("ArrayTaskThrottle", 10),
    ("BurstBuffer", 1),
    ("ClusterFeatures", 8),
    ("Clusters", 8),
    ("Comment", 3),
    ("Contiguous", 3),
    ("CoreSpec", 4),
    ("CPUsPerTask", 9),
    ("CpusPerTres", 9),
    ("Dependency", 1),
    ("Deadline", 3),
    ("DelayBoot", 5),
    ("EligibleTime", 2),
    ("EndTime", 2),
    ("ExcNodeList", 3),
    ("Features", 1),
    ("Gres", 2),
    ("JobName", 4),
    ("Licenses", 1),
    ("MailType", 5),
    ("MailUser", 5),
    ("MemPerTres", 5),
    ("MinCPUsNode", 4),
    ("MinMemoryCPU", 10),
    ("MinMemoryNode", 10),
    ("MinTmpDiskNode", 5),
    ("Name", 2),
    ("Nice", 2),
    ("NodeList", 8),
    ("NumCPUs", 6),
    ("NumNodes", 8),
    ("NumTasks", 8),
    ("OverSubscribe", 2),
    ("Partition", 2),
    ("Priority", 2),
    ("Prefer", 3),
    ("QOS", 2),
    ("Reboot", 3),
    ("ReqCores", 4),
    ("ReqNodeList", 8),
    ("ReqNodes", 8),
    ("ReqProcs", 8),
    ("ReqSockets", 4),
    ("ReqThreads", 4),
    ("Requeue", 4),
    ("ReservationName", 3),
    ("ResetAccrueTime", 5),
    ("Shared", 2),
    ("SiteFactor", 5),
    ("StartTime", 2),
    ("StdOut", 6),
    ("Switches", 5),
    ("TasksPerNode", 2),
    ("ThreadSpec", 4),
    ("TimeLimit", 5),
    ("TimeMin", 5),
    ("TresBind", 5),
    ("TresFreq", 5),
    ("TresPerJob", 8),
    ("TresPerNode", 8),
    ("TresPerSocket", 8),
    ("TresPerTask", 8),
    ("UserID", 3),
    ("Wait-for-switch", 5),
    ("WCKey", 1),
    ("WorkDir", 2),
)
# Keys that one may write but that mean another.
_SAME_KEY = {
    "reqnodes": "numnodes",
    "reqprocs": "numtasks",
    "shared": "oversubscribe",
    "name": "jobname",
}
_NODES = frozenset(
    ("numnodes", "nodelist", "reqnodelist")
)  # keys that change which nodes a running job has
_NEED_NO_VALUE = {"nice", "resetaccruetime"}
_UNFINISHED = 3  # states below: pending, running, suspended
_MOST_NICE = 2_147_483_645
# from here on numbers mean something else, those of 16 bits and of 64 as well
_NO_COUNT, _NO_SHORT, _NO_LONG = 0xFFFFFFFE, 0xFFFE, 0xFFFFFFFFFFFFFFFE
_MOST_IN_RANGE = 2_147_483_647
_FACTORS = {"k": 1024, "m": 1024 * 1024}


def _joined(words: "Sequence[str]") -> "tuple[list[str], list[str]]":
    """`TimeLimit 7` as `TimeLimit=7`, and of each pair the word that a refusal shows."""
    found, shown = [], []
    left = iter(words)
    for word in left:
        value = None
        if "=" not in word and word.lower() not in _NEED_NO_VALUE:
            value = next(left, None)
        apart = " =" if word[-1:] in {"+", "-"} else "="  # no sign stands before a blank
        found.append(word if value is None else f"{word}{apart}{value}")
        shown.append(word if value is None else value)
    return found, shown


def update_jobs(words: "list[str]", session: "Session") -> int:
    """Change each job that is named by number, or all of a name."""
    context = session.context
    jobs: list[str] = []
    named: str | None = None  # all that was said of numbers
    name, user = "", ""
    changes: dict[str, str] = {}
    words, shown = _joined(words)
    for position, (key, sign, value) in enumerate(pairs(words)):
        lowered = key.lower()
        if "=" not in words[position] and lowered not in _NEED_NO_VALUE:
            context.complain(f"Invalid input: {words[position]}")
            context.complain("Request aborted")
            return 1
        if len(lowered) >= 3 and "jobid".startswith(lowered):
            jobs, named = jobs + jobs_in(value), value
            continue
        if position == 0 and len(lowered) > 3 and "jobname".startswith(lowered):
            name = value
            continue
        known = full_key(key, JOB_KEYS)
        if known is None or (known == "resetaccruetime" and "=" in words[position]):
            context.complain(f"Update of this parameter is not supported: {shown[position]}")
            context.complain("Request aborted")
            return 1
        if known == "userid":
            user = value
            if _user_number(value) is None:
                context.complain(f"Invalid UserID: {value}")
                context.complain("Request aborted")
                return 1
            continue
        check = _CHECKS.get(known)
        checked = value if check is None else check(value, context)
        if known == "timelimit" and not _may_be(sign + value, named, context):
            return 1
        if checked is not None:
            if known == "nice" and not value and "=" in words[position]:
                checked = "0"
            changes[_SAME_KEY.get(known, known) + sign] = checked
    if not changes or not (named is not None or name):
        context.complain("No changes specified")
        return 1
    is_resized = not _NODES.isdisjoint(key.rstrip("+-") for key in changes)
    if is_resized and named is not None and not _is_one_job(named, "Job resizing", context):
        return 1
    if not jobs and not name:
        return 0
    if name and not jobs:
        jobs = _jobs_of_name(name, user, context)
        if not jobs:
            return 1
    try:
        results = context.client.call("UpdateJobs", jobs, changes)[0]
    except RefusedError as error:
        return say_unreachable(session, jobs, error)
    code = say_results(session, results)
    if context.environ.get("SLURM_JOBID") and not code and is_resized:
        from understudy.commands.scontrol.resize_scripts import write_scripts

        for job in filter(str.isdigit, jobs):
            write_scripts(job, context)
    return code


def _jobs_of_name(name: str, user: str, context: "Context") -> list[str]:
    """Those of the name; none if there are none or nobody knows, which has been said then."""
    try:
        jobs = _named(name, user, context)
    except RefusedError as error:
        context.error(f"Could not load state information: {error.text}")
        return []
    if not jobs:
        context.error(f"No jobs with name '{name}'")
    return jobs


def _may_be(limit: str, named: "str | None", context: "Context") -> bool:
    """Whether a time limit that is more or less than the present one (`+5`, `-5`) can be worked
    out; if not, that is said.
    """
    if limit[:1] not in {"+", "-"}:
        return True
    if named is None:
        context.error("JobId must precede TimeLimit increment or decrement")
        return False
    if not _is_one_job(named, "TimeLimit increment/decrement", context):
        return False
    try:
        limits = _limits_of(named, context)
        step = parse_limit(limit[1:])
    except (RefusedError, ValueError):
        return True
    if not limits:  # of a task that its array has not nothing is said
        return False
    now = limits[0]
    if limit[0] == "+" or now is None or step is None or step <= now:
        return True
    context.error(
        f"TimeLimit decrement larger than current time limit ({step // 60} > {now // 60})"
    )
    return False


def _limits_of(named: str, context: "Context") -> "list[int | None]":
    """The time limit of a job or task, in seconds; none if there is no such task."""
    number, mark, task = named.partition("_")
    rows = context.client.query(
        "jobs",
        ["time_limit_s", "array_task_id", "array_task_expression"],
        {"array_job_id" if mark else "job_id": [int(number)]},
    ).rows
    return [
        limit
        for limit, own, others in rows
        if not mark or own == int(task) or int(task) in task_numbers(others)
    ]


def _is_one_job(text: str, what: str, context: "Context") -> bool:
    """Whether one job or task is named that is there: several, and whole arrays, are refused what
    goes by what the job has now. That is said then.
    """
    number, mark, task = text.partition("_")
    if (text and not number.isdigit()) or (mark and not task.isdigit()):
        context.error(f"Invalid job ID {text}")
        return False
    wanted = int(number or 0)
    try:
        known = context.client.query("jobs", ["job_id", "array_job_id"]).rows if wanted else []
        why = "Invalid job id specified"
    except RefusedError as error:
        known, why = [], error.text
    if not any(wanted in (job, array) for job, array in known):
        context.error(f"Could not load state information for job {text}: {why}")
        return False
    if not mark and any(array == wanted for _, array in known):
        context.error(f"{what} not supported for job arrays")
        return False
    return True


def _named(name: str, user: str, context: "Context") -> "list[str]":
    where: dict[str, list[object]] = {"name": [name]}
    number = _user_number(user)
    if number is not None:
        where["user_id"] = [number]
    return [
        str(job)
        for job, state in context.client.query("jobs", ["job_id", "state"], where).rows
        if state < _UNFINISHED
    ]


def _user_number(name: str) -> "int | None":
    import pwd

    if name.isdigit():
        return int(name)
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


# --- checks: the value to send, None to leave the key out -----------------------------------------


def _refuse(context: "Context", text: str) -> RefusedInputError:
    context.error(text)
    return RefusedInputError()


def _count(
    name: str, least: int = 0, below: int = _NO_COUNT, *, takes_minus_one: bool = False
) -> "Callable[[str, Context], str]":
    """A number, perhaps with a plus before it; nothing is 0."""

    def check(value: str, context: "Context") -> str:
        digits = value.removeprefix("+") or "0"
        if digits.isdigit() and least <= int(digits) < below and value != "+":
            return digits
        if takes_minus_one and value == "-1":
            return value
        raise _refuse(context, f"Invalid {name} value: {value}")

    return check


def _words(name: str, words: "tuple[str, ...]") -> "Callable[[str, Context], str]":
    def check(value: str, context: "Context") -> str:
        lowered = value.lower()
        digits = lowered.removeprefix("+")
        if not lowered or (digits.isdigit() and int(digits) < _NO_SHORT):
            return "yes" if int(digits or 0) else "no"
        found = next((word for word in words if word.startswith(lowered)), None)
        if found is None:
            raise _refuse(context, f"Invalid {name} value: {value}")
        return found

    return check


def _time(value: str, context: "Context") -> "str | None":
    """A point in time: one that is none is said, and left out."""
    import time

    from understudy.model.moments import not_understood_from, parse_time

    if not value:
        return None
    try:
        parse_time(value, time.time())
    except ValueError:
        context.complain(f"Invalid time specification (pos={not_understood_from(value)}): {value}")
        return None
    return value


def _end_time(value: str, context: "Context") -> str:
    """One that is none is a change, too, to nothing."""
    return _time(value, context) or ""


def _limit(name: str) -> "Callable[[str, Context], str]":
    def check(value: str, context: "Context") -> str:
        is_step = value[:1] in ("+", "-") and len(value) > 1  # more or less than it is now
        check_limit(value[1:] if is_step else value, context, name)
        return value

    return check


def _delay_boot(value: str, context: "Context") -> str:
    check_limit(value, context, "DelayBoot")
    return value


def _mail_types(value: str, context: "Context") -> str:
    from understudy.commands.submission.options import mail_types

    types = mail_types(value)
    if types is None:
        context.complain(f"Invalid MailType: {value}")
        raise RefusedInputError
    return types


def _nice(value: str, context: "Context") -> str:
    if not value:
        return "100"
    digits = value[1:] if value[:1] in {"+", "-"} else value
    if digits.isdigit() and int(digits) > _MOST_NICE:
        raise _refuse(context, f"Nice value out of range (+/- {_MOST_NICE}). Value ignored")
    return value


class _BadNumberError(Exception):
    """A number of a range that is none, or too large; the text says so, for {0}."""


def _in_range(text: str, whole: str) -> int:
    """`2`, `+2`, `1k`, `2m`."""
    factor = _FACTORS.get(text[-1:].lower(), 1)
    digits = text[:-1] if factor > 1 else text
    digits = digits.removeprefix("+") or ("0" if factor > 1 else "")
    if not digits.isdigit():
        raise _BadNumberError(f'Invalid numeric value "{whole}" for {{0}}.')
    if int(digits) * factor > _MOST_IN_RANGE:
        raise _BadNumberError(f"Numeric argument ({int(digits) * factor}) to big for {{0}}.")
    return int(digits) * factor


def _range_of(value: str) -> "tuple[int, int | None]":
    """`2` or `2-4`; nothing is any number."""
    if not value:
        return 1, _MOST_IN_RANGE
    least, dash, most = value.partition("-")
    return _in_range(least, value), _in_range(most, value) if dash else None


def _sent(least: int, most: "int | None") -> str:
    return str(least) if most is None else f"{least}-{most}"


def _cpu_count(value: str, context: "Context") -> str:
    try:
        least, most = _range_of(value)
    except _BadNumberError as error:
        context.error(str(error).format("NumCPUs"))
        least, most = 0, None
    if least < 1 or (most is not None and most < least):
        raise _refuse(context, f"Invalid NumCPUs value: {value}")
    return _sent(least, most)


def _node_count(value: str, context: "Context") -> "str | None":
    try:
        return _sent(*_range_of(value))
    except _BadNumberError as error:
        context.error(str(error).format("requested node count"))
        raise SilentlyDoneError from None


def _site_factor(value: str, context: "Context") -> str:
    digits = value[1:] if value[:1] in {"+", "-"} else value
    if digits.isdigit() and int(digits) > _MOST_NICE:
        raise _refuse(context, f"SiteFactor value out of range (+/- {_MOST_NICE}). Value ignored")
    return value


def _task_limit(value: str, context: "Context") -> str:
    digits = value.removeprefix("+")
    if (value[:1] == "-" and value[1:].strip("0")) or (
        digits.isdigit() and int(digits) >= _NO_COUNT
    ):
        raise _refuse(context, "Invalid ArrayTaskThrottle value")
    return value


def _gres(value: str, context: "Context") -> "str | None":
    if value.lower() == "help":
        context.print("Valid gres options are:")
        shown = dict(
            context.client.query("config", ["name", "value"], {"name": ["GresTypes"]}).rows
        )
        for name in shown.get("GresTypes", "(null)").split(","):
            if name != "(null)":
                context.print(f"{name}[[:type]:count]")
        return None
    return value


_YES_NO = ("yes", "no")
_CHECKS: "dict[str, Callable[[str, Context], str | None]]" = {
    "arraytaskthrottle": _task_limit,
    "contiguous": _words("Contiguous", _YES_NO),
    "corespec": _count("CoreSpec", below=_NO_SHORT, takes_minus_one=True),
    "cpuspertask": _count("CPUsPerTask", below=_NO_SHORT),
    "deadline": _time,
    "delayboot": _delay_boot,
    "eligibletime": _time,
    "endtime": _end_time,
    "gres": _gres,
    "mailtype": _mail_types,
    "mincpusnode": _count("MinCPUsNode", below=_NO_SHORT),
    "minmemorycpu": _count("MinMemoryCPU", below=_NO_LONG),
    "minmemorynode": _count("MinMemoryNode", below=_NO_LONG),
    "mintmpdisknode": _count("MinTmpDiskNode"),
    "nice": _nice,
    "numcpus": _cpu_count,
    "numnodes": _node_count,
    "numtasks": _count("NumTasks"),
    "oversubscribe": _words("OverSubscribe", _YES_NO),
    "priority": _count("Priority"),
    "reboot": _words("reboot", _YES_NO),
    "reqcores": _count("ReqCores", below=_NO_SHORT),
    "reqnodes": _node_count,
    "reqprocs": _count("NumTasks"),
    "reqsockets": _count("ReqSockets", below=_NO_SHORT),
    "reqthreads": _count("ReqThreads", below=_NO_SHORT),
    "requeue": _count("Requeue", below=_NO_SHORT),
    "shared": _words("OverSubscribe", _YES_NO),
    "sitefactor": _site_factor,
    "starttime": _time,
    "tasksnode": _count("TasksPerNode"),
    "taskspernode": _count("TasksPerNode"),
    "threadspec": _count("ThreadSpec", below=_NO_SHORT, takes_minus_one=True),
    "timelimit": _limit("TimeLimit"),
    "timemin": _limit("TimeMin"),
    "wait-for-switch": _count("wait-for-switch"),
}
