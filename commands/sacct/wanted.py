"""Which jobs sacct is asked for: how the values of its options are read.

Place: under sacct, before anything is asked of accounting but for the known QOS and the time.
"""

import os
import re
import time

from understudy.commands.sacct.choice import JobName, Wanted
from understudy.commands.shared.accounting_client import Table
from understudy.commands.shared.context import Context
from understudy.commands.shared.past_times import midnight, past_time
from understudy.documents.states import REQUEUE, RESIZING, job_state_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.commands.shared.options import Option

_REVOKED = 0x100000  # asked for, though no job is ever in that state
_LEADING_NUMBER = re.compile(r"[0-9]+")
_MOST_OF_RANGE = 0x7FFFFFFF
# what follows a second dash is not looked at
_NUMBERS = re.compile(r"\s*([+-]?[0-9]+[km]?)?(?:-\s*(\+?[0-9]+[km]?)(?:-.*)?)?", re.IGNORECASE)
SPECIAL_STEPS = {"extern": -2, "batch": -1, "interactive": -1}


class BadRequestError(Exception):
    """What was asked for cannot be; the message has been printed."""


def read_in_order(given: "list[tuple[Option, str | None]]", context: Context) -> bool:
    """Say what is wrong with a value as soon as it is read. Whether --version ends the command."""
    looked_at = Wanted()
    nodes: str | None = None
    for option, text in given:
        name = option.dest
        if name == "version":
            return True
        if name == "nodelist" and nodes is not None:
            context.error(f"Already asked for nodes '{nodes}'")
        elif name == "nodelist":
            nodes = text or ""
        elif name == "file" and not os.path.isfile(text or ""):
            context.complain(f"{text} is not a valid file")
            raise BadRequestError
        _read_value(looked_at, name, text, time.time, context)
    return False


def _read_value(
    wanted: Wanted, name: str, text: "str | None", now: "Callable[[], float]", context: Context
) -> None:
    if name in _READERS:
        unsaid = "yes" if name == "whole_hetjob" else ""
        _READERS[name](wanted, unsaid if text is None else text, context)
    elif name in {"starttime", "endtime"} and text:
        _time(text, now(), context)
    elif name in {"timelimit_min", "timelimit_max"}:
        _minutes(text, context)


def has_jobs(options: "dict[str, str | None]") -> bool:
    """Whether -j names any."""
    return bool((options.get("jobs") or "").strip(","))


def read_wanted(options: "dict[str, str | None]", context: Context, table: Table) -> Wanted:
    """What was asked for. Of several wrong values the one that was given first is told of."""
    wanted = Wanted()
    wanted.duplicates = "duplicates" in options
    for name, text in options.items():
        _read_value(wanted, name, text, lambda: _now(table), context)
    # who names nodes means all users
    if "users" not in options and not (
        {"allusers", "nodelist"}.intersection(options) or has_jobs(options) or not os.getuid()
    ):
        wanted.users = {os.getuid()}
    least, most = (_minutes(options.get(f"timelimit_{end}"), context) for end in ("min", "max"))
    if options.get("timelimit_min"):
        wanted.limits = (least or 0, most if most is not None else least or 0)
    _read_window(wanted, options, context, table)
    if "qos" in options:
        found = _qos(options["qos"] or "", context, table)
        wanted.qos = found or {""} if found or wanted.jobs is None else None
    return wanted


def _listed(attribute: str, *, lower: bool = False) -> "Callable[[Wanted, str, Context], None]":
    """A list of words; with `lower`, capital letters do not matter."""

    def read(wanted: Wanted, text: str, _context: Context) -> None:
        words = (text.lower() if lower else text).split(",")
        setattr(wanted, attribute, set(filter(None, words) if attribute == "accounts" else words))

    return read


def _read_flags(wanted: Wanted, text: str, context: Context) -> None:
    wanted.flags = {_flag(word, context) for word in text.split(",") if word}


def _read_associations(wanted: Wanted, text: str, _context: Context) -> None:
    """Of each word the number that it begins with."""
    wanted.associations = {
        int(number[0]) if (number := _LEADING_NUMBER.match(word.strip())) else 0
        for word in text.split(",")
    }


def _read_reasons(wanted: Wanted, text: str, context: Context) -> None:
    from understudy.commands.sacct.reasons import known_reasons

    known = known_reasons()
    found = set()
    for word in filter(None, text.split(",")):
        if word.lower() not in known:
            context.complain(f"sacct: fatal: unrecognized job reason value '{word}'")
            raise BadRequestError
        found.add(known[word.lower()])
    wanted.reasons = found or None


def _read_hosts(wanted: Wanted, text: str, _context: Context) -> None:
    from understudy.model.hostlist import expand

    try:
        wanted.node_names = set(expand(text))
    except ValueError:
        wanted.node_names = set()


def _read_jobs(wanted: Wanted, text: str, context: Context) -> None:
    named = [job_name(word, context) for word in text.split(",") if word]
    wanted.jobs = [each for each in named if each.job] or None  # 0 is none


def _read_states(wanted: Wanted, text: str, context: Context) -> None:
    wanted.states = {_state(word, context): None for word in text.split(",") if word} or None


def _read_whole(wanted: Wanted, text: str, context: Context) -> None:
    if text not in {"yes", "no"}:
        context.error(f'Invalid --whole-hetjob value "{text}". Valid values: [yes|no].')
        raise BadRequestError
    wanted.whole = text != "no"


def _read_nodes(wanted: Wanted, text: str, context: Context) -> None:
    wanted.nodes = _range(text, "node", context)


def _read_cpus(wanted: Wanted, text: str, context: Context) -> None:
    wanted.cpus = _range(text, "cpu", context)


def _read_units(_wanted: Wanted, text: str, context: Context) -> None:
    unit = text[:1]
    if unit.upper() not in {"K", "M", "G", "T", "P"}:
        context.error(
            f"Invalid unit type '{unit}'. Possible options are 'KMGTP'"
            if unit
            else "Invalid unit type '"
        )
        context.fatal("Invalid unit type")
        raise BadRequestError


def _read_groups(wanted: Wanted, text: str, context: Context) -> None:
    wanted.groups = {_group(word, context) for word in text.split(",")}


def _read_users(wanted: Wanted, text: str, context: Context) -> None:
    if not text:
        raise BadRequestError
    import pwd

    found = set()
    for word in filter(None, text.split(",")):
        try:
            found.add(
                pwd.getpwuid(int(word)).pw_uid if word.isdigit() else pwd.getpwnam(word).pw_uid
            )
        except (KeyError, OverflowError):
            context.error(f"Invalid user id: {word}")
            raise BadRequestError from None
    wanted.users = found


_READERS: "dict[str, Callable[[Wanted, str, Context], None]]" = {
    "accounts": _listed("accounts", lower=True),
    "associations": _read_associations,
    "constraints": _listed("constraints"),
    "flags": _read_flags,
    "groups": _read_groups,
    "jobs": _read_jobs,
    "name": _listed("names"),
    "ncpus": _read_cpus,
    "nnodes": _read_nodes,
    "nodelist": _read_hosts,
    "partition": _listed("partitions", lower=True),
    "reason": _read_reasons,
    "state": _read_states,
    "units": _read_units,
    "users": _read_users,
    "wckeys": _listed("wckeys"),
    "whole_hetjob": _read_whole,
}


def _now(table: Table) -> float:
    if not table.now:
        table.rows("tres", ["id"], {"ids": [0]})
    return table.now


def _read_window(
    wanted: Wanted, options: "dict[str, str | None]", context: Context, table: Table
) -> None:
    """-S and -E, and what holds without them: sacct(1) "DEFAULT TIME WINDOW"."""
    now = _now(table)
    start, end = options.get("starttime"), options.get("endtime")
    if start:
        wanted.start = _time(start, now, context)
    elif wanted.jobs is None:
        wanted.start = int(now) if wanted.states is not None else midnight(now)
    if end:
        wanted.end = _time(end, now, context)
    elif wanted.states is not None:
        wanted.end = wanted.start if start else int(now)
    elif wanted.jobs is None:
        wanted.end = int(now)
    last = int(now) if wanted.end is None else wanted.end
    if last < wanted.start:
        from understudy.commands.shared.texts import timestamp

        context.error(
            f"Start time ({timestamp(wanted.start)}) requested is after end time "
            f"({timestamp(last)})."
        )
        raise BadRequestError


def _time(text: str, now: float, context: Context) -> int:
    try:
        return past_time(text, now)
    except ValueError:
        from understudy.model.moments import not_understood_from

        context.complain(f"Invalid time specification (pos={not_understood_from(text)}): {text}")
        raise BadRequestError from None


def _flag(word: str, context: Context) -> str:
    for flag in ("SchedSubmit", "SchedMain", "SchedBackfill", "StartRecieved", "None"):
        if flag.lower() == word.lower():
            return flag
    context.error(f"str_2_job_flags: Invalid job flag {word}")
    raise BadRequestError


def _range(text: "str | None", what: str, context: Context) -> "tuple[int, int] | None":
    if text is None:
        return None
    found = _NUMBERS.fullmatch(text)
    least, most = (_with_unit(each) for each in found.groups()[:2]) if found else (-1, None)
    if least is None:
        return 1, _MOST_OF_RANGE  # no number: all that ran
    if least < 0 or (most is not None and most <= 0):
        context.error(f'Invalid numeric value "{text}" for requested {what} range.')
        raise BadRequestError
    too_big = next((each for each in (least, most or 0) if each > _MOST_OF_RANGE), None)
    if too_big is not None:
        context.error(f"Numeric argument ({too_big}) to big for requested {what} range.")
        raise BadRequestError
    return (least, least if most is None else most) if least else None


def _with_unit(text: "str | None") -> "int | None":
    """`2`, `2k`, `2m`; None for no text."""
    if not text:
        return None
    number = text.rstrip("kKmM")
    return int(number) << {"": 0, "k": 10, "m": 20}[text[len(number) :].lower()]


def _minutes(text: "str | None", context: Context) -> "int | None":
    from understudy.model.times import parse_limit

    try:
        seconds = None if text is None else parse_limit(text)
        if seconds == 0:
            raise ValueError
    except ValueError:
        context.fatal("Invalid time limit specification")
        raise BadRequestError from None
    return None if seconds is None else -(-seconds // 60)


def job_name(word: str, context: Context) -> JobName:
    """`17`, `17.batch`, `17_3`, `17_3.0`, `17+1`."""
    job, dot, step = word.partition(".")
    job, plus, offset = job.partition("+")
    number, underscore, task = job.partition("_")
    if match := _LEADING_NUMBER.match(number):
        number = match[0]  # what follows it is not looked at
    wrong = (
        "job/step"
        if not number.isdigit()
        else "job array element"
        if underscore and not task.isdigit()
        else "hetjob offset"
        if plus and not offset.isdigit()
        else ""
    )
    wrong = wrong or ("step" if dot and not (step.isdigit() or step in SPECIAL_STEPS) else "")
    if wrong:
        context.fatal(f"Bad {wrong} specified: {word if wrong == 'job/step' else number}")
        raise BadRequestError
    return JobName(
        int(number), int(task) if task else None, step, int(offset) if offset.isdigit() else None
    )


def _group(word: str, context: Context) -> int:
    if not word:
        raise BadRequestError
    import grp

    if word.isdigit():
        return int(word)
    try:
        return grp.getgrnam(word).gr_gid
    except KeyError:
        context.error(f"Invalid group id: {word}")
        raise BadRequestError from None


def _qos(text: str, context: Context, table: Table) -> "set[str]":
    known = [row["name"] for row in table.rows("qos", ["name"])]
    by_lower = {name.lower(): name for name in known}
    found = set()
    for word in filter(None, text.split(",")):
        name = by_lower.get(word.lower())
        if name is None:
            context.error(f"You gave a bad qos '{word}'. Valid QOS's are {','.join(known)}")
            context.complain("sacct: fatal: problem processing qos list")
            raise BadRequestError
        found.add(name)
    if text and not found:
        context.error("You gave me an empty qos list")
        context.complain("sacct: fatal: problem processing qos list")
        raise BadRequestError
    return found


def _state(word: str, context: Context) -> int:
    found = job_state_from(word)
    if found is None:
        context.complain(f"sacct: fatal: unrecognized job state value '{word}'")
        raise BadRequestError
    base, flag = found
    if word.upper() in {"RV", "REVOKED"}:
        return _REVOKED
    if base < 0 and flag not in {REQUEUE, RESIZING}:
        context.fatal(f"job state {word} is not supported / accounted")
        raise BadRequestError
    return base if base >= 0 else flag or REQUEUE
