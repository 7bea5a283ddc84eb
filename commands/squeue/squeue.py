"""squeue: the jobs in the queue. Follows squeue(1) of 22.05."""

import os
import time

from understudy.commands.shared import texts
from understudy.commands.shared.client import RefusedError
from understudy.commands.shared.context import Context, run
from understudy.commands.shared.fields import Cell, header_line, lines, needed_columns
from understudy.commands.shared.in_order import EndedError, read_in_order
from understudy.commands.shared.options import (
    NONE,
    OPTIONAL,
    REQUIRED,
    Option,
    OptionTable,
    is_written_out,
    last_values,
)
from understudy.commands.shared.texts import date_line
from understudy.commands.squeue.fields import FIELDS
from understudy.commands.squeue.filter import Filter
from understudy.commands.squeue.sort import (
    COLUMNS,
    DEFAULT_SORT,
    START_SORT,
    BadSortError,
    SortKey,
    as_kept,
    columns_of,
    read_sort,
    sort_jobs,
)
from understudy.commands.squeue.wanted import (
    LineReader,
    check_nodes,
    read_environment,
    read_filter,
    read_interval,
    read_jobs,
    read_steps,
)
from understudy.documents.job_texts import job_id_text, task_numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT_FORMAT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
LONG_FORMAT = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
START_FORMAT = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
OPTIONS = OptionTable(
    [
        Option(
            "accounts", "A", REQUIRED, "LIST: only jobs of these accounts", env="SQUEUE_ACCOUNT"
        ),
        Option("all", "a", NONE, "show jobs in hidden partitions, too", env="SQUEUE_ALL"),
        Option("array", "r", NONE, "one line for each task of a job array", env="SQUEUE_ARRAY"),
        Option(
            "array-unique",
            "",
            NONE,
            "one line for each pending job array",
            env="SQUEUE_ARRAY_UNIQUE",
        ),
        Option(
            "Format",
            "O",
            REQUIRED,
            "FIELDS: what to print, by names",
            env="SQUEUE_FORMAT2",
            dest="long_format",
        ),
        Option("format", "o", REQUIRED, "FORMAT: what to print, by letters", env="SQUEUE_FORMAT"),
        Option(
            "federation",
            "",
            NONE,
            "accepted; this cluster is in no federation",
            env="SQUEUE_FEDERATION",
        ),
        Option("help", "", NONE, "print this text"),
        Option("hide", "", NONE, "leave out jobs in hidden partitions (the default)"),
        Option("iterate", "i", REQUIRED, "SECONDS: repeat at this interval"),
        Option("jobs", "j", OPTIONAL, "LIST: only these jobs"),
        Option("json", "", NONE, "all jobs as JSON"),
        Option("local", "", NONE, "accepted; only this cluster is shown", env="SQUEUE_LOCAL"),
        Option("long", "l", NONE, "more about each job"),
        Option(
            "licenses",
            "L",
            REQUIRED,
            "LIST: only jobs that use these licences",
            env="SQUEUE_LICENSES",
        ),
        Option("cluster", "", REQUIRED, "", dest="clusters"),
        Option("clusters", "M", REQUIRED, "LIST: clusters to ask", env="SLURM_CLUSTERS"),
        Option("me", "", NONE, "only my own jobs"),
        Option("name", "n", REQUIRED, "LIST: only jobs of these names", env="SQUEUE_NAMES"),
        Option("noconvert", "", NONE, "leave sizes in the unit in which they are kept"),
        Option("node", "", REQUIRED, "", dest="nodelist"),
        Option("nodes", "", REQUIRED, "", dest="nodelist"),
        Option("nodelist", "w", REQUIRED, "HOSTS: only jobs on these nodes"),
        Option("noheader", "h", NONE, "no header line"),
        Option(
            "partitions",
            "p",
            REQUIRED,
            "LIST: only jobs in these partitions",
            env="SQUEUE_PARTITION",
            dest="partition",
        ),
        Option(
            "priority",
            "P",
            NONE,
            "pending jobs once for each of their partitions",
            env="SQUEUE_PRIORITY",
        ),
        Option(
            "qos", "q", REQUIRED, "LIST: only jobs of these qualities of service", env="SQUEUE_QOS"
        ),
        Option("reservation", "R", REQUIRED, "NAME: only jobs in this reservation"),
        Option("sib", "", NONE, "", dest="sibling"),
        Option(
            "sibling", "", NONE, "accepted; this cluster is in no federation", env="SQUEUE_SIBLING"
        ),
        Option(
            "sort",
            "S",
            REQUIRED,
            "FIELDS: order by these letters, - before one reverses it",
            env="SQUEUE_SORT",
        ),
        Option("start", "", NONE, "when pending jobs are expected to start"),
        Option("steps", "s", OPTIONAL, "LIST: job steps instead of jobs"),
        Option(
            "states",
            "t",
            REQUIRED,
            "LIST: only jobs in these states, or 'all'",
            env="SQUEUE_STATES",
        ),
        Option("usage", "", NONE, "print a short summary of the options"),
        Option("user", "u", REQUIRED, "LIST: only jobs of these users", env="SQUEUE_USERS"),
        Option("users", "", REQUIRED, "", dest="user"),
        Option("verbose", "v", NONE, "say more"),
        Option("version", "V", NONE, "print the version"),
        Option("yaml", "", NONE, "all jobs as YAML"),
    ]
)
USAGE = """Usage: squeue [-A account] [--clusters names] [-i seconds] [--job jobid]
              [-n name] [-o format] [-p partitions] [--qos qos]
              [--reservation reservation] [--sort fields] [--start]
              [--step step_id] [-t states] [-u user_name] [--usage]
              [-L licenses] [-w nodes] [--federation] [--local] [--sibling]
\t      [-ahjlrsv]"""


class UnknownJobError(Exception):
    """The one job that is asked for is not there; `now`: the cluster's time."""

    text = "Invalid job id specified"

    def __init__(self, now: float) -> None:
        self.now = now


def squeue(arguments: list[str], context: Context) -> int:
    """The command. Returns the exit code."""
    try:
        look = LineReader(context).look
        given, operands = read_in_order(OPTIONS, arguments, USAGE, look, context)
        environment = last_values(OPTIONS.from_environment(context.environ))
        line = last_values(given)
        options = _options(given, line, environment, operands, arguments, context)
        if operands:
            context.error(f"Unrecognized option: {operands[0]}")
            context.print(USAGE)
            return 1
        check_nodes(options.get("nodelist"), context)
        read_environment(line, environment, context)
        wanted = read_filter(options, context)
        interval = read_interval(options.get("iterate"), context)
        if "verbose" in options:
            from understudy.commands.shared.verbose import squeue_options

            times = sum(option.dest == "verbose" for option, _ in given)
            context.print(squeue_options(options, times, START_FORMAT, START_SORT))
        if "steps" in options and "json" not in options and "yaml" not in options:
            return _list_steps(options, wanted, interval, context)
        cells = _read_format(options, context)
    except EndedError as ended:
        return ended.code
    kind = "json" if "json" in options else "yaml" if "yaml" in options else ""
    if kind:
        return _write_document(kind, context)
    while True:
        try:
            _show(options, wanted, cells, context)
            code = 0
        except UnknownJobError as error:
            _say_date(options, error.now, context)
            context.complain(f"slurm_load_jobs error: {error.text}")
            code = 1
        except RefusedError as error:
            context.complain(f"slurm_load_jobs error: {error.text}")
            return 1
        except EndedError as ended:
            return ended.code
        if interval is None:
            return code
        context.stdout.flush()
        time.sleep(interval)
        context.print("")


def _options(
    given: "list[tuple[Option, str | None]]",
    line: "dict[str, str | None]",
    environment: "dict[str, str | None]",
    operands: list[str],
    arguments: list[str],
    context: Context,
) -> "dict[str, str | None]":
    """Which options count, of the line and the environment. Lists that stand apart from their
    option are taken from the operands.

    Raises:
        EndedError: some do not go together.
    """
    # these have formats of their own; and what the command line says wins over the other kind in
    # the environment
    if not line.keys().isdisjoint({"long", "start", "steps"}) or (
        ("format" in line) != ("long_format" in line)
    ):
        environment.pop("format", None)
        environment.pop("long_format", None)
    if {"format", "long"} <= line.keys():
        context.fatal(
            "Options -o(--format) and -l(--long) are mutually exclusive. Please remove "
            "one and retry."
        )
        raise EndedError
    for name in ("jobs", "steps"):  # one without a list forgets none that was given
        if name in line:
            lists = [text for option, text in given if option.dest == name and text is not None]
            line[name] = lists[-1] if lists else None
    options = {**environment, **line}
    texts.convert_units(convert="noconvert" not in options)
    # of two such options the first gets it; one that is written out, whatever it has
    for name in ("jobs", "steps"):
        if operands and name in line and (line[name] is None or is_written_out(name, arguments)):
            del options[name]  # it is looked at behind all options
            options[name] = operands.pop(0)
            (read_jobs if name == "jobs" else read_steps)(options[name], context)
            break
    if "user" in line and "me" in line:  # the later one counts
        order = [option.dest for option, _ in reversed(given)]
        del options[max(("user", "me"), key=order.index)]
    # it wins over the command line's, but for one that names partitions
    if "licenses" in environment:
        options["licenses"] = (
            line.get("licenses") if "partition" in options else environment["licenses"]
        )
    return options


def _write_document(kind: str, context: Context) -> int:
    """All jobs as JSON or YAML. That the controller did not answer, the document says."""
    from understudy.documents.documents import write_document
    from understudy.documents.jobs import COLUMNS as WHOLE
    from understudy.documents.jobs import job_record

    jobs: list[dict[str, Any]] = []
    cores_of: dict[str, int] = {}
    errors = []
    try:
        cores_of = dict(context.client.query("nodes", ["name", "cores_per_socket"]).rows)
        jobs = as_kept(context.client.query("jobs", WHOLE).dicts())
    except RefusedError:
        what = {
            "description": "Failed while looking for jobs",
            "error_number": -1,
            "error": "Unspecified error",
            "source": "slurm_load_jobs",
        }
        errors.append(what)
    write_document(
        kind, "jobs", (job_record(job, cores_of) for job in jobs), context.stdout.write, *errors
    )
    return 0


def _list_steps(
    options: "dict[str, str | None]", wanted: Filter, interval: int | None, context: Context
) -> int:
    from understudy.commands.squeue.steps import BadStepError, show_steps

    while True:
        try:
            code = show_steps(options, wanted, context)
        except BadStepError as error:
            context.error(f"Invalid job_step id: {error}")
            return 1
        except RefusedError as error:
            context.complain(f"slurm_get_job_steps error: {error.text}")
            return 1
        if interval is None:
            return code
        context.stdout.flush()
        time.sleep(interval)
        context.print("")


def _show(
    options: "dict[str, str | None]", wanted: Filter, cells: list[Cell], context: Context
) -> None:
    """One listing."""
    order = options.get("sort")
    if order is None:
        order = START_SORT if "start" in options else DEFAULT_SORT
    one_line_a_task = "array" in options
    names_tasks = wanted.jobs is not None and any(task is not None for _, task in wanted.jobs)
    also = [*wanted.columns(), *COLUMNS, *columns_of(order), *_JOINED_COLUMNS]
    names = needed_columns(cells, also)
    rows, now = _load(names, wanted, options, context)
    _say_date(options, now, context)
    if "verbose" in options:
        context.print(
            f"last_update_time={0 if wanted.names_one() else int(now)} records={len(rows)}"
        )
    jobs = wanted.kept([dict(zip(names, row, strict=True)) for row in rows])
    if "start" in options and "states" not in options:
        jobs = [job for job in jobs if job["state"] == 0]
    jobs = as_kept(jobs)
    if wanted.names_one():
        jobs = _as_found(jobs, wanted)
    if not (one_line_a_task or names_tasks):
        jobs = _with_tasks_together(jobs)
    if "priority" in options:
        jobs = [
            {**job, "partition": name}
            for job in jobs
            for name in (job["partition"].split(",") if job["state"] == 0 else [job["partition"]])
        ]
        # of the partitions, too, only those that are wanted
        jobs = wanted.kept(jobs)
    if "noheader" not in options:
        context.print_cluster()
        context.print(header_line(cells))
    sort_jobs(jobs, _read_sort(order, context))
    if one_line_a_task:
        jobs = [task for job in jobs for task in _split(job, wanted)]
    elif names_tasks:
        jobs = [_narrowed(job, wanted) if wanted.names_tasks_of(job) else job for job in jobs]
    if jobs:

        def values_of(name: str) -> "list[Any]":
            return [now] * len(jobs) if name == "@now" else [job[name] for job in jobs]

        context.print("\n".join(lines(cells, values_of, len(jobs))))


def _say_date(options: "dict[str, str | None]", now: float, context: Context) -> None:
    if "noheader" not in options and not options.keys().isdisjoint({"long", "iterate", "verbose"}):
        context.print(date_line(now))


def _as_found(jobs: "list[dict[str, Any]]", wanted: Filter) -> "list[dict[str, Any]]":
    """Of an array that is asked for by its number its own record, then the latest task first."""
    number, task = (wanted.jobs or [(0, None)])[0]
    if task is not None or not any(job["array_job_id"] == number for job in jobs):
        return jobs
    return sorted(jobs, key=lambda job: (job["job_id"] != number, -job["job_id"]))


def _load(
    names: list[str], wanted: Filter, options: "dict[str, str | None]", context: Context
) -> "tuple[list[list[Any]], float]":
    """The rows that may be wanted; where the command asks for few jobs, only those are sent."""
    all_partitions = not {"all", "partition"}.isdisjoint(options) or os.geteuid() == 0
    client = context.client
    if wanted.jobs is not None and len(wanted.jobs) == 1:
        number = wanted.jobs[0][0]
        answer = client.query("jobs", names, {"job_id": [number]})
        rows = answer.rows
        array = names.index("array_job_id")
        if rows and rows[0][names.index("het_job_id")] == number:
            rows = client.query("jobs", names, {"het_job_id": [number]}).rows
        elif not rows or rows[0][array]:
            identity = names.index("job_id")
            known = {row[identity] for row in rows}
            rows = rows + [
                row
                for row in client.query("jobs", names, {"array_job_id": [number]}).rows
                if row[identity] not in known
            ]
        if not rows:
            raise UnknownJobError(answer.now)
        return rows, answer.now
    where: dict[str, list[Any]] = {}
    if wanted.jobs is None and wanted.users is not None:
        where["user_id"] = list(wanted.users)
    answer = client.query("jobs", names, where, all_partitions=all_partitions)
    return answer.rows, answer.now


def _split(job: "dict[str, Any]", wanted: Filter) -> "list[dict[str, Any]]":
    """A pending array as its single tasks."""
    if not job["array_task_expression"]:
        return [job]
    tasks = _wanted_tasks(job, wanted)
    if ":" in job["array_task_expression"] and tasks == task_numbers(job["array_task_expression"]):
        del tasks[-1]  # which Slurm does not count where it writes the tasks as first-last:step
    return [_with_task(job, task) for task in tasks]


def _wanted_tasks(job: "dict[str, Any]", wanted: Filter) -> list[int]:
    tasks = task_numbers(job["array_task_expression"])
    if wanted.jobs is None:
        return tasks
    chosen = {
        task for number, task in wanted.jobs if number in (job["job_id"], job["array_job_id"])
    }
    return tasks if None in chosen else [task for task in tasks if task in chosen]


def _with_task(job: "dict[str, Any]", task: int) -> "dict[str, Any]":
    changes = {
        "array_job_id": job["array_job_id"] or job["job_id"],
        "array_task_id": task,
        "array_task_expression": "",
        "array_max_tasks": 0,
    }
    return {**job, **changes}


def _narrowed(job: "dict[str, Any]", wanted: Filter) -> "dict[str, Any]":
    """A pending array as the tasks of it that are asked for."""
    if not job["array_task_expression"]:
        return job
    tasks = _wanted_tasks(job, wanted)
    if len(tasks) == 1:
        return _with_task(job, tasks[0])
    return {**job, "array_task_expression": _ranges(tasks), "array_max_tasks": 0}


_JOINED_COLUMNS = (
    "name",
    "partition",
    "reason",
    "reason_detail",
    "array_task_id",
    "array_task_expression",
    "array_max_tasks",
)


def _with_tasks_together(jobs: "list[dict[str, Any]]") -> "list[dict[str, Any]]":
    """Waiting tasks with records of their own are listed with those of their array that have none,
    if they have its name and partition.
    """
    arrays = {
        job["array_job_id"]: job
        for job in jobs
        if job["array_task_expression"] and job["state"] == 0
    }
    if not arrays:
        return jobs
    joined: dict[int, list[dict[str, Any]]] = {}
    for job in sorted(jobs, key=lambda job: int(job["job_id"])):
        array = arrays.get(job["array_job_id"])
        if (
            array is None
            or job["state"]
            or job["array_task_id"] is None
            or job["name"] != array["name"]
            or job["partition"] != array["partition"]
        ):
            continue
        joined.setdefault(job["array_job_id"], []).append(job)
    gone = {job["job_id"] for tasks in joined.values() for job in tasks}
    return [
        _joined(job, joined.get(job["job_id"], [])) for job in jobs if job["job_id"] not in gone
    ]


def _joined(array: "dict[str, Any]", tasks: "list[dict[str, Any]]") -> "dict[str, Any]":
    if not tasks:
        return array
    numbers = sorted(
        [*task_numbers(array["array_task_expression"]), *(task["array_task_id"] for task in tasks)]
    )
    reasons = dict.fromkeys(job["reason_detail"] or job["reason"] for job in (array, *tasks))
    return {
        **array,
        "array_task_expression": _ranges(numbers),
        "array_max_tasks": 0,
        "reason_detail": ",".join(reasons),
    }


def _ranges(tasks: list[int]) -> str:
    parts: list[list[int]] = []
    for task in tasks:
        if parts and parts[-1][-1] == task - 1:
            parts[-1][1:] = [task]
        else:
            parts.append([task])
    return ",".join("-".join(map(str, part)) for part in parts)


def _read_format(options: "dict[str, str | None]", context: Context) -> list[Cell]:
    def unknown_letter(letter: str) -> None:
        context.error(f"Invalid job format specification: {letter}")

    def unknown_name(name: str) -> None:
        context.error(f"Invalid job format specification: {name}")

    long_format = options.get("long_format")
    if long_format is not None and options.keys().isdisjoint({"format", "start"}):
        return FIELDS.parse_long(long_format, unknown_name, negative_suffix=" ")
    if "SLURM_BITSTR_LEN" in os.environ:
        FIELDS.by_letter["i"].whole = "tasks"
    default = (
        START_FORMAT if "start" in options else LONG_FORMAT if "long" in options else DEFAULT_FORMAT
    )
    given = options.get("format")
    return FIELDS.parse_short(default if given is None else given, unknown_letter)


def _read_sort(order: str, context: Context) -> list[SortKey]:
    try:
        return read_sort(order, lambda text: context.complain(f"{context.program}: {text}"))
    except BadSortError as error:
        context.error(f"Invalid sort specification: {error}")
        raise EndedError from None


def main() -> int:
    """Run as a program; does not return."""
    return run("squeue", squeue)


__all__ = ["job_id_text", "main", "squeue"]


if __name__ == "__main__":
    main()
