"""sacct: what accounting knows of jobs and their steps. Follows sacct(1) of 22.05."""

import os
import re

from understudy.commands.sacct import fields as sacct_fields
from understudy.commands.sacct.choice import JobName, Wanted, chosen, is_named
from understudy.commands.sacct.use import set_units
from understudy.commands.shared.accounting_client import (
    DEBUG,
    DEBUG2,
    AccountingClient,
    NoAccountingError,
    Table,
    say_connected,
)
from understudy.commands.shared.client import Client, RefusedError
from understudy.commands.shared.context import Context, run
from understudy.commands.shared.options import (
    NONE,
    OPTIONAL,
    REQUIRED,
    Option,
    OptionError,
    OptionTable,
    last_values,
    let_last_parsable_count,
)
from understudy.commands.shared.past_times import midnight, past_time
from understudy.documents.documents import VERSION
from understudy.documents.states import (
    REQUEUE,
    RESIZING,
    RUNNING,
    SUSPENDED,
    job_state,
    job_state_from,
)
from understudy.documents.use import was_measured

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Row = dict[str, Any]

OPTIONS = OptionTable(
    [
        Option("allusers", "a", NONE, "jobs of all users"),
        Option("accounts", "A", REQUIRED, "LIST: only jobs of these accounts"),
        Option("batch-script", "B", NONE, "print the batch script of the jobs named with -j"),
        Option("brief", "b", NONE, "print job, state and exit code"),
        Option("completion", "c", NONE, "ask the job completion log"),
        Option("constraints", "C", REQUIRED, "LIST: only jobs that asked for these features"),
        Option("duplicates", "D", NONE, "all runs of a job, not the last alone"),
        Option("delimiter", "", REQUIRED, "TEXT: what separates fields with -p and -P"),
        Option("helpformat", "e", NONE, "print the names of fields"),
        Option("help-fields", "", NONE, "", dest="helpformat"),
        Option("endtime", "E", REQUIRED, "TIME: only jobs that were there before this"),
        Option("env-vars", "", NONE, "print the environment of the jobs named with -j"),
        Option(
            "federation",
            "",
            NONE,
            "accepted; this cluster is in no federation",
            env="SACCT_FEDERATION",
        ),
        Option("file", "f", REQUIRED, "FILE: read a job completion log"),
        Option("flags", "F", REQUIRED, "LIST: only jobs that were handled in these ways"),
        Option("gid", "g", REQUIRED, "LIST: only jobs of these groups", dest="groups"),
        Option("group", "", REQUIRED, "", dest="groups"),
        Option("help", "h", NONE, "print this text"),
        Option("nnodes", "i", REQUIRED, "MIN[-MAX]: only jobs with so many nodes"),
        Option("ncpus", "I", REQUIRED, "MIN[-MAX]: only jobs with so many CPUs"),
        Option("jobs", "j", REQUIRED, "JOB[.STEP],...: only these"),
        Option("json", "", NONE, "print JSON"),
        Option("timelimit-min", "k", REQUIRED, "TIME: only jobs with at least this limit"),
        Option("timelimit-max", "K", REQUIRED, "TIME: with -k, and at most this one"),
        Option("long", "l", NONE, "print many fields"),
        Option("allclusters", "L", NONE, "jobs of all clusters"),
        Option("local", "", NONE, "accepted; only this cluster is shown", env="SACCT_LOCAL"),
        Option("cluster", "", REQUIRED, "", dest="clusters"),
        Option("clusters", "M", REQUIRED, "LIST: only jobs of these clusters"),
        Option("noheader", "n", NONE, "print no header"),
        Option("noconvert", "", NONE, "leave sizes in the unit in which they are kept"),
        Option("node", "", REQUIRED, "", dest="nodelist"),
        Option("nodelist", "N", REQUIRED, "HOSTS: only jobs that ran on these nodes"),
        Option("name", "", REQUIRED, "LIST: only jobs of these names"),
        Option("format", "o", REQUIRED, "FIELDS: what to print", env="SACCT_FORMAT"),
        Option("fields", "", REQUIRED, "", dest="format"),
        Option("parsable", "p", NONE, "fields with a | behind each"),
        Option("parsable2", "P", NONE, "fields with a | between them"),
        Option("qos", "q", REQUIRED, "LIST: only jobs of these qualities of service"),
        Option("partition", "r", REQUIRED, "LIST: only jobs in these partitions"),
        Option("reason", "", REQUIRED, "LIST: only jobs that waited for these reasons"),
        Option("starttime", "S", REQUIRED, "TIME: only jobs that were there after this"),
        Option("state", "s", REQUIRED, "LIST: only jobs that were in these states"),
        Option("truncate", "T", NONE, "cut times to those of -S and -E"),
        Option("uid", "u", REQUIRED, "LIST: only jobs of these users", dest="users"),
        Option("user", "", REQUIRED, "", dest="users"),
        Option("units", "", REQUIRED, "K|M|G|T|P: the unit of sizes"),
        Option("usage", "U", NONE, "print a short help"),
        Option("use-local-uid", "", NONE, "user ids as this host knows them"),
        Option("verbose", "v", NONE, "say more"),
        Option("version", "V", NONE, "print the version"),
        Option("wckeys", "W", REQUIRED, "LIST: only jobs of these keys"),
        Option("yaml", "", NONE, "print YAML"),
        Option("whole-hetjob", "", OPTIONAL, "yes|no: all components of heterogeneous jobs"),
        Option("allocations", "X", NONE, "jobs without their steps"),
        Option("associations", "x", REQUIRED, "LIST: only jobs of these associations"),
    ]
)
_REVOKED = 0x100000  # asked for, though no job is ever in that state
_LISTS = {
    "accounts",
    "associations",
    "clusters",
    "flags",
    "format",
    "groups",
    "jobs",
    "name",
    "partition",
    "qos",
    "state",
    "users",
}
_JOB_COLUMNS = [
    "cluster",
    "job_id",
    "submit_time",
    "restarts",
    "user",
    "account",
    "partition",
    "qos",
    "wckey",
    "user_id",
    "group_id",
    "association_id",
    "state",
    "eligible_time",
    "start_time",
    "end_time",
    "suspended_s",
    "exit_code",
    "exit_signal",
    "derived_exit_code",
    "derived_exit_signal",
    "node_count",
    "time_limit_min",
    "priority",
    "killed_by",
    "array_job_id",
    "array_task_id",
    "group",
    "name",
    "reason",
    "nodes",
    "constraints",
    "work_dir",
    "submit_line",
    "comment",
    "admin_comment",
    "system_comment",
    "reservation",
    "flags",
    "array_tasks",
    "container",
    "tres_requested",
    "tres_allocated",
    "het_job_id",
    "het_offset",
    "reservation_id",
    "wckey_id",
    "qos_id",
]
_STEP_COLUMNS = [
    "cluster",
    "job_id",
    "submit_time",
    "restarts",
    "step",
    "state",
    "start_time",
    "end_time",
    "suspended_s",
    "exit_code",
    "exit_signal",
    "node_count",
    "tasks",
    "cpus",
    "killed_by",
    "name",
    "nodes",
    "layout",
    "submit_line",
    "tres_allocated",
    "user_cpu_us",
    "system_cpu_us",
    "usage",
]
_LEADING_NUMBER = re.compile(r"[0-9]+")
_MOST_OF_RANGE = 0x7FFFFFFF
# what follows a second dash is not looked at
_NUMBERS = re.compile(r"\s*([+-]?[0-9]+[km]?)?(?:-\s*(\+?[0-9]+[km]?)(?:-.*)?)?", re.IGNORECASE)
_SPECIAL_STEPS = {"extern": -2, "batch": -1, "interactive": -1}


class _BadRequestError(Exception):
    """What was asked for cannot be; the message has been printed."""


def sacct(arguments: "list[str]", context: Context) -> int:
    """The command. Returns the exit code."""
    try:
        given, words = OPTIONS.parse(arguments)
    except OptionError as error:
        _complain(error, context)
        return 1
    options = last_values([*OPTIONS.from_environment(context.environ), *given])
    let_last_parsable_count(given, options)
    if not _formats_agree(given, options, context):
        return 1
    if "verbose" in options:
        options["verbose"] = str(sum(option.dest == "verbose" for option, _ in given))
    for name in _LISTS & options.keys():  # one that is given again adds to the list
        options[name] = (
            ",".join([value for option, value in given if option.dest == name and value])
            or options[name]
        )
    if words and "usage" in options:
        return _refused_words(words, context)
    if "usage" in options:
        context.print("Usage: sacct [options]\n\tUse --help for help")
        return 0
    if "help" in options:
        context.help(OPTIONS)
        return 0
    if "version" in options:
        context.print(f"slurm {VERSION}")
        return 0
    if "helpformat" in options:
        context.stdout.write(sacct_fields.help_format())
        return 0
    try:
        if "completion" in options or "file" in options:
            if words:
                return _refused_words(words, context)
            return _show_completions(options, context)
        return _show(options, words, context)
    except _BadRequestError:
        return 1
    except NoAccountingError:
        context.complain("Slurm accounting storage is disabled")
        return 1
    except RefusedError as error:
        context.error(error.text)
        return 1


def _complain(error: OptionError, context: Context) -> None:
    """Of an option that is none; what is wrong with jobs before it is told first."""
    try:
        for option, value in error.given:
            for word in (value or "").split(",") if option.dest == "jobs" else ():
                if word:
                    _job(word, context)
    except _BadRequestError:
        return
    context.complain(f"sacct: {error}")


def _formats_agree(
    given: "list[tuple[Option, str | None]]", options: "dict[str, str | None]", context: Context
) -> bool:
    """Whether there is no --long beside --format. The environment's format is for neither."""
    if {"brief", "long"}.isdisjoint(options):
        return True
    if all(option.dest != "format" for option, _ in given):
        options.pop("format", None)
    elif "long" in options:
        context.fatal(
            "Options -o(--format) and -l(--long) are mutually exclusive. Please remove "
            "one and retry."
        )
        return False
    return True


_COMPLETION_FIELDS = {
    "jobid": ("JobID", "JobId"),
    "uid": ("UID", "UserId"),
    "user": ("User", "UserId"),
    "gid": ("GID", "GroupId"),
    "group": ("Group", "GroupId"),
    "jobname": ("JobName", "Name"),
    "partition": ("Partition", "Partition"),
    "state": ("State", "JobState"),
    "start": ("Start", "StartTime"),
    "end": ("End", "EndTime"),
    "timelimit": ("Timelimit", "TimeLimit"),
    "nodelist": ("NodeList", "NodeList"),
    "nnodes": ("NNodes", "NodeCnt"),
    "ncpus": ("NCPUS", "ProcCnt"),
    "workdir": ("WorkDir", "WorkDir"),
    "exitcode": ("ExitCode", "ExitCode"),
}
_COMPLETION_WIDTHS = {
    "jobid": 12,
    "uid": 6,
    "gid": 6,
    "nnodes": 8,
    "nodelist": 15,
    "start": 19,
    "end": 19,
}
_COMPLETION_LINE = re.compile(r"(\w+)=(.*?) (?=\w+=|$)")


def _show_completions(options: "dict[str, str | None]", context: Context) -> int:
    """What the job completion log says (jobcomp/filetxt)."""
    settings = {}
    if not options.get("file"):
        wanted = ["JobCompType", "JobCompLoc"]
        # of the controller, not of accounting
        settings = dict(Client().query("config", ["name", "value"], {"name": wanted}).rows)
        if settings.get("JobCompType") != "jobcomp/filetxt":
            context.complain("Slurm job completion is disabled")
            return 1
    names = [
        name
        for name in (
            options.get("format") or "jobid,uid,jobname,partition,nnodes,nodelist,state,end"
        )
        .lower()
        .split(",")
        if name
    ]
    for name in names:
        if name.partition("%")[0] not in _COMPLETION_FIELDS:
            context.error(f'Invalid field requested: "{name}"')
            return 1
    path = options.get("file") or settings["JobCompLoc"]
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            records = [dict(_COMPLETION_LINE.findall(line.rstrip("\n"))) for line in file]
    except OSError:
        context.complain(f"{path} is not a valid file")
        return 1
    for record in records:
        # which Slurm writes and does not know
        for key in ("ArrayJobId", "ArrayTaskId", "HetJobId", "HetJobOffset"):
            if key in record:
                context.error(f"Unknown type {key}: {record[key]}")
    chosen_jobs = {word for word in (options.get("jobs") or "").split(",") if word}
    if chosen_jobs:
        records = [record for record in records if record.get("JobId") in chosen_jobs]
    _print_completions(names, records, options, context)
    return 0


def _print_completions(
    names: list[str],
    records: "list[dict[str, str]]",
    options: "dict[str, str | None]",
    context: Context,
) -> None:
    parsable = "parsable" in options or "parsable2" in options
    rows = (
        []
        if "noheader" in options
        else [[_COMPLETION_FIELDS[name.partition("%")[0]][0] for name in names]]
    )
    rows += [
        [_completion_value(name.partition("%")[0], record) for name in names] for record in records
    ]
    if parsable:
        end = "|" if "parsable" in options else ""
        for row in rows:
            context.print("|".join(row) + end)
        return
    widths = [
        int(name.partition("%")[2].lstrip("-") or _COMPLETION_WIDTHS.get(name, 10))
        for name in names
    ]
    if "noheader" not in options:
        rows.insert(1, ["-" * width for width in widths])
    for row in rows:
        cells = zip(names, row, widths, strict=True)
        context.print(
            " ".join(
                f"{value[:width]:{'<' if name == 'jobid' else '>'}{width}}"
                for name, value, width in cells
            )
            + " "
        )


def _completion_value(name: str, record: "dict[str, str]") -> str:
    value = record.get(_COMPLETION_FIELDS[name][1], "")
    if name in {"user", "group"}:
        return value.partition("(")[0]
    if name in {"uid", "gid"}:
        return value.partition("(")[2].rstrip(")")
    return value


def _show(options: "dict[str, str | None]", words: "list[str]", context: Context) -> int:
    if "batch_script" in options and "env_vars" in options:
        context.fatal("Options --batch-script and --env-vars are mutually exclusive")
        return 1
    table = Table(context)
    wanted = _read_wanted(options, context, table)
    if words:
        return _refused_words(words, context)
    fields = _read_fields(options, context)
    _say_more(options, wanted, table.now, context)
    if "verbose" in options:
        say_connected(context, "sacct", int(options["verbose"] or 1))
        if int(options["verbose"] or 1) >= DEBUG2:
            _say_requested(options, wanted, context)
    conditions: dict[str, list[Any]] = {}
    clusters = options.get("clusters")
    if "allclusters" not in options and clusters != "all":
        conditions["clusters"] = clusters.split(",") if clusters else [context.client.cluster_name]
    if wanted.jobs is not None:
        conditions["jobs"] = sorted({each.job for each in wanted.jobs})
    if wanted.users is not None:
        conditions["user_ids"] = sorted(wanted.users)
    if wanted.accounts is not None:
        conditions["accounts"] = sorted(wanted.accounts)
    if wanted.start:
        conditions["after"] = [int(wanted.start)]
    # else a job counts that was to begin later
    if wanted.end is not None and wanted.states is None:
        conditions["before"] = [int(wanted.end)]
    jobs = chosen(table.rows("jobs", _JOB_COLUMNS, conditions), wanted)
    if "batch_script" in options or "env_vars" in options:
        return _scripts(jobs, options, context)
    rows = jobs if "allocations" in options else _with_steps(jobs, wanted, conditions, table)
    for row in rows:
        row["now"] = table.now
        if "truncate" in options:
            _truncate(row, wanted, table.now)
    if "json" in options or "yaml" in options:
        from understudy.documents.accounting import document, json_text, yaml_text

        numbers = {row["tres"]: row["id"] for row in table.rows("tres", ["tres", "id"])}
        context.stdout.write(
            (yaml_text if "yaml" in options else json_text)(document(rows, numbers))
        )
        return 0
    parsable = 2 if "parsable2" in options else 1 if "parsable" in options else 0
    out = sacct_fields.lines(
        fields,
        rows,
        header="noheader" not in options,
        parsable=parsable,
        delimiter=options.get("delimiter", "|") or "",
    )
    context.stdout.write("".join([line + "\n" for line in out]))
    return 0


def _refused_words(words: "list[str]", context: Context) -> int:
    context.error("Unknown arguments:")
    for word in words:
        context.error(f" {word}")
    return 1


def _scripts(jobs: "list[Row]", options: "dict[str, str | None]", context: Context) -> int:
    if "jobs" not in options:
        what = "scripts" if "batch_script" in options else "environment"
        context.fatal(
            f"When requesting job {what} you must also request specific jobs with the '-j' option."
        )
        return 1
    none = "NONE\n"
    column = "script" if "batch_script" in options else "environment"
    where = {
        "job_ids": sorted({job["job_id"] for job in jobs}),
        "clusters": sorted({job["cluster"] for job in jobs}),
    }
    answer = (
        context.client.call("AccountingQuery", "job_texts", [column], where, [])[0] if jobs else []
    )
    texts = {tuple(run): text for *run, text in answer}
    for job in jobs:
        text = texts.get((job["cluster"], job["job_id"], job["submit_time"], job["restarts"]))
        if text is None:  # somebody else's
            continue
        title = (
            f"{'Batch Script' if 'batch_script' in options else 'Environment used'} for "
            f"{sacct_fields.job_id(job)}"
        )
        context.print(
            f"{title}{' (must be batch to display)' if 'env_vars' in options else ''}\n"
            f"{'-' * 80}\n{text or none}"
        )
    return 0


def _read_fields(options: "dict[str, str | None]", context: Context) -> "list[sacct_fields.Field]":
    unit = (options.get("units") or "").upper()[:1]
    set_units(unit, convert=bool(unit) or "noconvert" not in options)
    lists = [options["format"]] if "format" in options else []
    lists += [sacct_fields.BRIEF] if "brief" in options else []
    lists += [sacct_fields.LONG] if "long" in options else []
    text = ",".join([each or "" for each in lists or [sacct_fields.DEFAULT]])
    try:
        return sacct_fields.fields_of(",".join(name.strip() for name in text.split(",")))
    except sacct_fields.UnknownFieldError as error:
        context.error(f'Invalid field requested: "{error}"')
        raise _BadRequestError from None


# --- what is wanted -------------------------------------------------------------------------------


def _read_wanted(options: "dict[str, str | None]", context: Context, table: Table) -> Wanted:
    """What was asked for. Of several wrong values the one that was given first is told of."""
    wanted = Wanted()
    wanted.duplicates = "duplicates" in options
    for name, text in options.items():
        if name in _READERS:
            unsaid = "yes" if name == "whole_hetjob" else ""
            _READERS[name](wanted, unsaid if text is None else text, context)
        elif name in {"starttime", "endtime"} and text:
            _time(text, _now(table), context)
        elif name in {"timelimit_min", "timelimit_max"}:
            _minutes(text, context)
    if "users" not in options and not (
        "allusers" in options or "jobs" in options or not os.getuid()
    ):
        wanted.users = {os.getuid()}
    if "qos" in options:
        found = _qos(options["qos"] or "", context, table)
        wanted.qos = found if found or wanted.jobs is None else None
    least, most = (_minutes(options.get(f"timelimit_{end}"), context) for end in ("min", "max"))
    if options.get("timelimit_min"):
        wanted.limits = (least or 0, most if most is not None else least or 0)
    _read_window(wanted, options, context, table)
    return wanted


def _listed(attribute: str, *, lower: bool = False) -> "Callable[[Wanted, str, Context], None]":
    """A list of words; with `lower`, capital letters do not matter."""

    def read(wanted: Wanted, text: str, _context: Context) -> None:
        setattr(wanted, attribute, set((text.lower() if lower else text).split(",")))

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
            raise _BadRequestError
        found.add(known[word.lower()])
    wanted.reasons = found or None


def _read_hosts(wanted: Wanted, text: str, _context: Context) -> None:
    from understudy.model.hostlist import expand

    try:
        wanted.node_names = set(expand(text))
    except ValueError:
        wanted.node_names = set()


def _read_jobs(wanted: Wanted, text: str, context: Context) -> None:
    named = [_job(word, context) for word in text.split(",") if word]
    wanted.jobs = [each for each in named if each.job] or None  # 0 is none


def _read_states(wanted: Wanted, text: str, context: Context) -> None:
    wanted.states = {_state(word, context): None for word in text.split(",") if word} or None


def _read_whole(wanted: Wanted, text: str, context: Context) -> None:
    if text not in {"yes", "no"}:
        context.error(f'Invalid --whole-hetjob value "{text}". Valid values: [yes|no].')
        raise _BadRequestError
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
        raise _BadRequestError


def _read_groups(wanted: Wanted, text: str, context: Context) -> None:
    wanted.groups = {_group(word, context) for word in text.split(",")}


def _read_users(wanted: Wanted, text: str, context: Context) -> None:
    if not text:
        raise _BadRequestError
    import pwd

    found = set()
    for word in filter(None, text.split(",")):
        try:
            found.add(
                pwd.getpwuid(int(word)).pw_uid if word.isdigit() else pwd.getpwnam(word).pw_uid
            )
        except (KeyError, OverflowError):
            context.error(f"Invalid user id: {word}")
            raise _BadRequestError from None
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
        raise _BadRequestError


def _say_more(
    options: "dict[str, str | None]", wanted: Wanted, now: float, context: Context
) -> None:
    """-v: what will be shown; -vv: the options."""
    if "verbose" not in options:
        return
    states = (
        ",".join(
            job_state(0, state) if state > 0xFF else job_state(state, 0)
            for state in wanted.states or ()
        )
        or "Eligible"
    )
    context.complain(
        f"sacct: Jobs {states} in the time window from {_moment(wanted.start)} to "
        f"{_moment(wanted.end or now)}"
    )
    if int(options["verbose"] or 1) < DEBUG:
        return
    shown = [
        ("completion", "yes" if "completion" in options or "file" in options else "no"),
        ("dup", "yes" if "duplicates" in options else "no"),
        (
            "field_list",
            "".join(f"{name}," for name in (options.get("format") or "").split(",") if name)
            or "(null)",
        ),
        ("help", "0"),
        ("no_steps", "yes" if "allocations" in options else "no"),
        ("whole_hetjob", options.get("whole_hetjob") or "(null)"),
    ]
    context.complain(
        "sacct: debug:  Options selected:\n"
        + "\n".join(f"\topt_{name}={value}" for name, value in shown)
    )


def _say_requested(options: "dict[str, str | None]", wanted: Wanted, context: Context) -> None:
    """-vvv: what was asked for."""
    clusters = (options.get("clusters") or context.client.cluster_name).split(",")
    lines = [f"Clusters requested:\t{','.join(clusters)}"]
    lines += (
        ["Userids requested:\tall"]
        if wanted.users is None
        else ["Userids requested:", *(f"\t: {user}" for user in wanted.users)]
    )
    if wanted.jobs is not None:
        lines += ["Jobs requested:", *(f"\t: {each.job}" for each in wanted.jobs)]
    for line in lines:
        context.complain(f"sacct: debug2: {line}")


def _moment(when: float) -> str:
    import time

    return time.ctime(when) if when else "Epoch 0"


def _time(text: str, now: float, context: Context) -> int:
    try:
        return past_time(text, now)
    except ValueError:
        from understudy.model.moments import not_understood_from

        context.complain(f"Invalid time specification (pos={not_understood_from(text)}): {text}")
        raise _BadRequestError from None


def _flag(word: str, context: Context) -> str:
    for flag in ("SchedSubmit", "SchedMain", "SchedBackfill", "StartRecieved", "None"):
        if flag.lower() == word.lower():
            return flag
    context.error(f"str_2_job_flags: Invalid job flag {word}")
    raise _BadRequestError


def _range(text: "str | None", what: str, context: Context) -> "tuple[int, int] | None":
    if text is None:
        return None
    found = _NUMBERS.fullmatch(text)
    least, most = (_with_unit(each) for each in found.groups()[:2]) if found else (-1, None)
    if least is None:
        return 1, _MOST_OF_RANGE  # no number: all that ran
    if least < 0 or (most is not None and most <= 0):
        context.error(f'Invalid numeric value "{text}" for requested {what} range.')
        raise _BadRequestError
    too_big = next((each for each in (least, most or 0) if each > _MOST_OF_RANGE), None)
    if too_big is not None:
        context.error(f"Numeric argument ({too_big}) to big for requested {what} range.")
        raise _BadRequestError
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
        raise _BadRequestError from None
    return None if seconds is None else -(-seconds // 60)


def _job(word: str, context: Context) -> JobName:
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
    wrong = wrong or ("step" if dot and not (step.isdigit() or step in _SPECIAL_STEPS) else "")
    if wrong:
        context.fatal(f"Bad {wrong} specified: {word if wrong == 'job/step' else number}")
        raise _BadRequestError
    return JobName(
        int(number), int(task) if task else None, step, int(offset) if offset.isdigit() else None
    )


def _group(word: str, context: Context) -> int:
    if not word:
        raise _BadRequestError
    import grp

    if word.isdigit():
        return int(word)
    try:
        return grp.getgrnam(word).gr_gid
    except KeyError:
        context.error(f"Invalid group id: {word}")
        raise _BadRequestError from None


def _qos(text: str, context: Context, table: Table) -> "set[str]":
    known = [row["name"] for row in table.rows("qos", ["name"])]
    by_lower = {name.lower(): name for name in known}
    found = set()
    for word in filter(None, text.split(",")):
        name = by_lower.get(word.lower())
        if name is None:
            context.error(f"You gave a bad qos '{word}'. Valid QOS's are {','.join(known)}")
            context.complain("sacct: fatal: problem processing qos list")
            raise _BadRequestError
        found.add(name)
    if text and not found:
        context.error("You gave me an empty qos list")
        context.complain("sacct: fatal: problem processing qos list")
        raise _BadRequestError
    return found


def _state(word: str, context: Context) -> int:
    found = job_state_from(word)
    if found is None:
        context.complain(f"sacct: fatal: unrecognized job state value '{word}'")
        raise _BadRequestError
    base, flag = found
    if word.upper() in {"RV", "REVOKED"}:
        return _REVOKED
    if base < 0 and flag not in {REQUEUE, RESIZING}:
        context.fatal(f"job state {word} is not supported / accounted")
        raise _BadRequestError
    return base if base >= 0 else flag or REQUEUE


# --- steps ----------------------------------------------------------------------------------------


def _with_steps(
    jobs: "list[Row]", wanted: Wanted, conditions: "dict[str, list[Any]]", table: Table
) -> "list[Row]":
    """The jobs, each with its steps behind it."""
    if not jobs:
        return jobs
    where = {
        "clusters": conditions.get("clusters", []),
        "job_ids": sorted({job["job_id"] for job in jobs}),
    }
    steps: dict[tuple[Any, ...], list[Row]] = {}
    for step in table.rows("steps", _STEP_COLUMNS, where):
        steps.setdefault(
            (step["cluster"], step["job_id"], step["submit_time"], step["restarts"]), []
        ).append(step)
    found = []
    for job in jobs:
        only = {each.step for each in wanted.jobs or () if is_named(job, each, wanted.whole)}
        if "" in only or not only:
            found.append(job)
            only = set()
        for step in sorted(
            steps.get((job["cluster"], job["job_id"], job["submit_time"], job["restarts"]), []),
            key=_step_place,
        ):
            if not only or step["step"] in only:
                step["job"] = job
                if job["state"] == SUSPENDED and step["state"] == RUNNING:
                    step["state"] = SUSPENDED
                found.append(step)
            for name in ("user_cpu_us", "system_cpu_us"):
                job[name] = job.get(name, 0) + (step[name] or 0)
            job["knows_energy"] = job.get("knows_energy") or was_measured(step)
    return found


def _step_place(step: "Row") -> "tuple[int, int]":
    name = step["step"]
    return (1, int(name)) if name.isdigit() else (0, -_SPECIAL_STEPS.get(name, 0))


def _truncate(row: "Row", wanted: Wanted, now: float) -> None:
    end = wanted.end if wanted.end is not None else now
    if row["start_time"] is not None:
        row["start_time"] = max(row["start_time"], int(wanted.start))
        row["end_time"] = int(end) if row["end_time"] is None else min(row["end_time"], int(end))


def main() -> int:
    """Run as a program; does not return."""
    return run("sacct", sacct, client=AccountingClient())


__all__ = ["main", "past_time", "sacct"]


if __name__ == "__main__":
    main()
