"""squeue --steps: the steps of running jobs. Follows squeue(1) -s of 22.05.

Place: under squeue, which reads the options.
"""

from understudy.commands.shared.fields import Field, FieldTable, header_line, lines, needed_columns
from understudy.commands.shared.texts import date_line, duration, or_null, timestamp
from understudy.commands.squeue.sort import sort_letters
from understudy.documents.job_texts import step_id_text
from understudy.documents.states import job_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.commands.shared.context import Context
    from understudy.commands.squeue.filter import Filter

_WITHOUT_CPUS = {"batch", "extern", "interactive"}
SORT_COLUMNS = {
    "i": "job_id",
    "j": "name",
    "N": "nodes",
    "P": "partition",
    "u": "user_name",
    "U": "user_id",
    "M": "run_time_s",
    "S": "start_time",
}
STEP_FORMAT = "%.15i %.8j %.9P %.8u %.9M %N"
_ID = "job_id array_job_id array_task_id step"


def _plain(value: "Any") -> str:
    return str(value)


def _limit(seconds: int | None) -> str:
    return "UNLIMITED" if seconds is None else duration(seconds)


def _null() -> str:
    return or_null("")


STEP_FIELDS = FieldTable(
    [
        Field("A", "numtasks", "TASKS", "num_tasks", _plain),
        Field("b", "gres tres-per-node", "TRES_PER_JOB", "tres_per_node", or_null),
        Field("i", "stepid", "STEPID", _ID, step_id_text),
        Field("j", "stepname", "NAME", "name", _plain),
        Field("l", "timelimit", "TIME_LIMIT", "time_limit_s", _limit),
        Field("M", "timeused", "TIME", "run_time_s", duration, whole="text"),
        Field("N", "nodes", "NODELIST", "nodes", _plain, whole="all"),
        Field("P", "partition", "PARTITION", "partition", _plain),
        Field("S", "starttime", "START_TIME", "start_time", timestamp),
        Field("u", "username", "USER", "user_name", _plain),
        Field("U", "userid", "UID", "user_id", _plain),
        # without a letter
        Field("", "arrayjobid", "ARRAY_JOB_ID", "array_job_id", _plain),
        Field(
            "",
            "arraytaskid",
            "ARRAY_TASK_ID",
            "array_task_id",
            lambda task: "N/A" if task is None else str(task),
        ),
        Field("", "cluster", "CLUSTER", "cluster", _plain),
        Field("", "container", "CONTAINER", "", _null),
        Field("", "cpufreq", "CPU_FREQ", "", lambda: "0-0:0"),
        Field("", "cpus-per-tres", "CPUS_PER_TRES", "cpus_per_tres", or_null),
        Field("", "jobid", "JOB_ID", "job_id", _plain),
        Field("", "mem-per-tres", "MEM_PER_TRES", "memory_per_tres", or_null),
        Field("", "network", "NETWORK", "", _null),
        Field(
            "",
            "numcpus",
            "NUM_CPUS",
            "step cpus",
            lambda step, cpus: "0" if step in _WITHOUT_CPUS else str(cpus),
        ),
        Field("", "resvports", "RESERVED_PORTS", "", _null),
        Field("", "stepstate", "STATE", "state", lambda state: job_state(state, 0)),
        Field("", "tres-bind", "TRES_BIND", "tres_bind", or_null),
        Field("", "tres-freq", "TRES_FREQ", "tres_freq", or_null),
        Field("", "tres-per-job tres-per-step", "TRES_PER_STEP", "tres_per_step", or_null),
        Field("", "tres-per-socket", "TRES_PER_SOCKET", "tres_per_socket", or_null),
        Field("", "tres-per-task", "TRES_PER_TASK", "tres_per_task", or_null),
    ]
)
# What %all stands for, each with a "|" behind it.
_ALL = "%b|%i|%j|%l|%u|%A|%M|%N|%P|%S|%U|"


class BadStepError(Exception):
    """What is no number of a step; the text is what it says."""


def read_steps(text: str) -> "list[tuple[str, str]]":
    """The steps of a list.

    Raises:
        BadStepError: it names what is no step.
    """
    return [_step(word) for word in text.split(",") if word]


def show_steps(options: "dict[str, str | None]", chosen: "Filter", context: "Context") -> int:
    """One listing.

    Raises:
        BadStepError: --steps names what is no step.
    """
    wanted = None if options["steps"] is None else read_steps(options["steps"])

    def unknown(name: str) -> None:
        context.error(f"Invalid job step format specification: {name}")

    if options.get("long_format") is not None and "format" not in options:
        cells = STEP_FIELDS.parse_long(options["long_format"] or "", unknown)
    else:
        template = options.get("format")
        cells = STEP_FIELDS.parse_short(
            STEP_FORMAT if template is None else _ALL if template == "%all" else template, unknown
        )
    names = needed_columns(
        cells,
        ["job_id", "array_job_id", "array_task_id", "step", "user_id", *SORT_COLUMNS.values()],
    )
    answer = context.client.query("steps", names)
    steps = answer.dicts()
    if "noheader" not in options and not options.keys().isdisjoint({"long", "iterate", "verbose"}):
        context.print(date_line(answer.now))
    if "verbose" in options:
        context.print(f"last_update_time={int(answer.now)} records={len(steps)}")
    jobs = {word.partition("_")[0] for word in (options.get("jobs") or "").split(",") if word}
    shown = []
    for step in steps:
        own = {
            str(step["job_id"]),
            str(step["array_job_id"]),
            f"{step['array_job_id']}_{step['array_task_id']}",
        }
        if jobs and jobs.isdisjoint(own):
            continue
        if wanted is not None and not any(
            job in own and number == step["step"] for job, number in wanted
        ):
            continue
        if chosen.users is not None and step["user_id"] not in chosen.users:
            continue
        if not chosen.has_texts({**step, "name": None}):  # the job's name is not the step's
            continue
        if chosen.nodes is not None:
            from understudy.model.hostlist import expand

            if chosen.nodes.isdisjoint(expand(step["nodes"])):
                continue
        shown.append(step)
    _sort(shown, "P,i" if options.get("sort") is None else options["sort"] or "", context)
    if "noheader" not in options:
        context.print_cluster()
        context.print(header_line(cells))
    if shown:
        made = lines(cells, lambda name: [step[name] for step in shown], len(shown))
        context.print("\n".join(made))
    return 0


def _step(word: str) -> tuple[str, str]:
    """(job, step) of `17.0`, `17_3.batch`.

    Raises:
        BadStepError: it names no step.
    """
    parts = [part for part in word.split(".") if part]
    if len(parts) < 2:
        raise BadStepError(f"{''.join(parts)}.??")
    job, number = parts[:2]
    if not job[:1].isdigit() or not job.strip("0"):
        raise BadStepError(word)
    return job, number if number.isdigit() else ""


def _sort(steps: "list[dict[str, Any]]", keys: str, context: "Context") -> None:
    steps.sort(
        key=lambda step: (step["array_job_id"] or step["job_id"], step["array_task_id"] or 0)
    )
    for letter, descending in reversed(sort_letters(keys)):
        if letter == "b":
            context.complain(f"{context.program}: Invalid sort specification: b")
        column = SORT_COLUMNS.get(letter)
        if column is not None:
            steps.sort(key=lambda step: step[column], reverse=descending)
