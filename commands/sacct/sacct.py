"""sacct: what accounting knows of jobs and their steps. Follows sacct(1) of 22.05."""

from understudy.commands.sacct import fields as sacct_fields
from understudy.commands.sacct.choice import Wanted, chosen, is_named
from understudy.commands.sacct.completions import show_completions
from understudy.commands.sacct.use import set_units
from understudy.commands.sacct.wanted import (
    SPECIAL_STEPS,
    BadRequestError,
    has_jobs,
    read_in_order,
    read_wanted,
)
from understudy.commands.shared.accounting_client import (
    DEBUG,
    DEBUG2,
    AccountingClient,
    NoAccountingError,
    Table,
    say_connected,
)
from understudy.commands.shared.client import RefusedError
from understudy.commands.shared.context import Context, run
from understudy.commands.shared.options import (
    NONE,
    OPTIONAL,
    REQUIRED,
    Option,
    OptionTable,
    last_values,
    let_last_parsable_count,
)
from understudy.documents.documents import VERSION
from understudy.documents.states import RUNNING, SUSPENDED, job_state
from understudy.documents.use import was_measured

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Row = dict[str, Any]

OPTIONS = OptionTable(
    [
        Option("allusers", "a", NONE, "jobs of all users"),
        Option("accounts", "A", REQUIRED, "LIST: only jobs of these accounts"),
        Option("allocations", "X", NONE, "jobs without their steps"),
        Option("allclusters", "L", NONE, "jobs of all clusters"),
        Option("associations", "x", REQUIRED, "LIST: only jobs of these associations"),
        Option("brief", "b", NONE, "print job, state and exit code"),
        Option("batch-script", "B", NONE, "print the batch script of the jobs named with -j"),
        Option("completion", "c", NONE, "ask the job completion log"),
        Option("constraints", "C", REQUIRED, "LIST: only jobs that asked for these features"),
        Option("delimiter", "", REQUIRED, "TEXT: what separates fields with -p and -P"),
        Option("duplicates", "D", NONE, "all runs of a job, not the last alone"),
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
        Option("name", "", REQUIRED, "LIST: only jobs of these names"),
        Option("nnodes", "i", REQUIRED, "MIN[-MAX]: only jobs with so many nodes"),
        Option("ncpus", "I", REQUIRED, "MIN[-MAX]: only jobs with so many CPUs"),
        Option("nodelist", "N", REQUIRED, "HOSTS: only jobs that ran on these nodes"),
        Option("noconvert", "", NONE, "leave sizes in the unit in which they are kept"),
        Option("noheader", "n", NONE, "print no header"),
        Option("jobs", "j", REQUIRED, "JOB[.STEP],...: only these"),
        Option("json", "", NONE, "print JSON"),
        Option("timelimit-min", "k", REQUIRED, "TIME: only jobs with at least this limit"),
        Option("timelimit-max", "K", REQUIRED, "TIME: with -k, and at most this one"),
        Option("local", "", NONE, "accepted; only this cluster is shown", env="SACCT_LOCAL"),
        Option("long", "l", NONE, "print many fields"),
        Option("cluster", "", REQUIRED, "", dest="clusters"),
        Option("clusters", "M", REQUIRED, "LIST: only jobs of these clusters"),
        Option("fields", "", REQUIRED, "", dest="format"),
        Option("format", "o", REQUIRED, "FIELDS: what to print", env="SACCT_FORMAT"),
        Option("parsable", "p", NONE, "fields with a | behind each"),
        Option("parsable2", "P", NONE, "fields with a | between them"),
        Option("qos", "q", REQUIRED, "LIST: only jobs of these qualities of service"),
        Option("partition", "r", REQUIRED, "LIST: only jobs in these partitions"),
        Option("reason", "", REQUIRED, "LIST: only jobs that waited for these reasons"),
        Option("state", "s", REQUIRED, "LIST: only jobs that were in these states"),
        Option("starttime", "S", REQUIRED, "TIME: only jobs that were there after this"),
        Option("", "t", NONE, "", dest="allocations"),  # what it was called once
        Option("truncate", "T", NONE, "cut times to those of -S and -E"),
        Option("units", "", REQUIRED, "K|M|G|T|P: the unit of sizes"),
        Option("uid", "u", REQUIRED, "LIST: only jobs of these users", dest="users"),
        Option("use-local-uid", "", NONE, "user ids as this host knows them"),
        Option("usage", "U", NONE, "print a short help"),
        Option("user", "", REQUIRED, "", dest="users"),
        Option("verbose", "v", NONE, "say more"),
        Option("version", "V", NONE, "print the version"),
        Option("wckeys", "W", REQUIRED, "LIST: only jobs of these keys"),
        Option("yaml", "", NONE, "print YAML"),
        Option("whole-hetjob", "", OPTIONAL, "yes|no: all components of heterogeneous jobs"),
    ]
)
_TOLD = {"usage", "help", "helpformat"}
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


def sacct(arguments: "list[str]", context: Context) -> int:
    """The command. Returns the exit code."""
    given, words, refused = OPTIONS.read(arguments)
    try:
        ends = read_in_order(given, context)
    except BadRequestError:
        return 1
    if ends:
        context.print(f"slurm {VERSION}")
        return 0
    if refused is not None:
        context.complain(f"sacct: {refused}")
        return 1
    options = last_values([*OPTIONS.from_environment(context.environ), *given])
    let_last_parsable_count(given, options)
    if not _formats_agree(given, options, context):
        return 1
    if "verbose" in options:
        options["verbose"] = str(sum(option.dest == "verbose" for option, _ in given))
    for name in _LISTS & options.keys():  # one that is given again adds to the list
        options[name] = (
            ",".join(
                [
                    value or ""
                    for option, value in given
                    if option.dest == name and (value or name == "format")
                ]
            )
            or options[name]
        )
    _keep_what_counts(given, options)
    if not _has_jobs_for_texts(options, context):
        return 1
    asked = [option.dest for option, _ in given if option.dest in _TOLD]
    if asked:
        return _tell(asked[-1], options, words, context)
    try:
        if "completion" in options or "file" in options:
            if words:
                return _refused_words(words, context)
            return show_completions(options, context)
        return _show(options, words, context)
    except BadRequestError:
        return 1
    except NoAccountingError:
        context.complain("Slurm accounting storage is disabled")
        return 1
    except RefusedError as error:
        context.error(error.text)
        return 1


def _keep_what_counts(
    given: "list[tuple[Option, str | None]]", options: "dict[str, str | None]"
) -> None:
    """Of several nodes the first, of -M and -L the last."""
    nodes = [value for option, value in given if option.dest == "nodelist"]
    if nodes:
        options["nodelist"] = nodes[0]
    clusters = [option.dest for option, _ in given if option.dest in {"clusters", "allclusters"}]
    if clusters:
        options.pop("allclusters" if clusters[-1] == "clusters" else "clusters", None)


def _has_jobs_for_texts(options: "dict[str, str | None]", context: Context) -> bool:
    """Whether jobs are named where their scripts or environments are asked for."""
    for name, what in (("env_vars", "environment"), ("batch_script", "scripts")):
        if name in options and not has_jobs(options):
            context.fatal(
                f"When requesting job {what} you must also request specific jobs with the '-j' "
                "option."
            )
            return False
    return True


def _tell(what: str, options: "dict[str, str | None]", words: "list[str]", context: Context) -> int:
    """--usage, --help or --helpformat, after what is wrong with fields and words."""
    try:
        _read_fields(options, context)
    except BadRequestError:
        return 1
    if words:
        return _refused_words(words, context)
    if what == "usage":
        context.print("Usage: sacct [options]\n\tUse --help for help")
    elif what == "help":
        context.help(OPTIONS)
    else:
        context.stdout.write(sacct_fields.help_format())
    return 0


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


def _show(options: "dict[str, str | None]", words: "list[str]", context: Context) -> int:
    if "batch_script" in options and "env_vars" in options:
        context.fatal("Options --batch-script and --env-vars are mutually exclusive")
        return 1
    table = Table(context)
    wanted = read_wanted(options, context, table)
    fields = _read_fields(options, context)
    if words:
        return _refused_words(words, context)
    _say_more(options, wanted, table.now, context)
    if "verbose" in options:
        say_connected(context, "sacct", int(options["verbose"] or 1))
        if int(options["verbose"] or 1) >= DEBUG2:
            _say_requested(options, wanted, context)
    conditions: dict[str, list[Any]] = {}
    clusters = options.get("clusters")
    if "allclusters" not in options and clusters != "all":
        conditions["clusters"] = (
            [context.client.cluster_name] if clusters is None else clusters.lower().split(",")
        )
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
        raise BadRequestError from None


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
    from understudy.commands.shared.texts import date_line

    return date_line(when) if when else "Epoch 0"


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
    return (1, int(name)) if name.isdigit() else (0, -SPECIAL_STEPS.get(name, 0))


def _truncate(row: "Row", wanted: Wanted, now: float) -> None:
    end = wanted.end if wanted.end is not None else now
    if row["start_time"] is not None:
        row["start_time"] = max(row["start_time"], int(wanted.start))
        row["end_time"] = int(end) if row["end_time"] is None else min(row["end_time"], int(end))


def main() -> int:
    """Run as a program; does not return."""
    return run("sacct", sacct, client=AccountingClient())


if __name__ == "__main__":
    main()
