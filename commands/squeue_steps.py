"""squeue --steps: the steps of running jobs. Follows squeue(1) -s of 22.05.

Place: under squeue, which reads the options.
"""

from understudy.commands.fields import Field, FieldTable, header_line, lines, needed_columns
from understudy.commands.states import job_state
from understudy.commands.texts import duration, timestamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.commands.client import Context

STEP_FORMAT = "%.15i %.8j %.9P %.8u %.9M %N"
_ID = "job_id array_job_id array_task_id step"


def step_id_text(job_id: int, array_job_id: int, task_id: int | None, step: str) -> str:
    """`17.0`, `17_3.batch`."""
    return f"{array_job_id}_{task_id}.{step}" if array_job_id and task_id is not None else f"{job_id}.{step}"


def _plain(value: "Any") -> str:
    return str(value)


def _limit(seconds: int | None) -> str:
    return "UNLIMITED" if seconds is None else duration(seconds)


STEP_FIELDS = FieldTable(
    [
        Field("A", "numtasks", "TASKS", "num_tasks", _plain),
        Field("i", "stepid jobarrayid jobid", "STEPID", _ID, step_id_text),
        Field("j", "stepname name", "NAME", "name", _plain),
        Field("l", "timelimit", "TIME_LIMIT", "time_limit_s", _limit),
        Field("M", "timeused", "TIME", "run_time_s", duration),
        Field("N", "nodes nodelist", "NODELIST", "nodes", _plain),
        Field("P", "partition", "PARTITION", "partition", _plain),
        Field("S", "starttime", "START_TIME", "start_time", timestamp),
        Field("u", "username", "USER", "user_name", _plain),
        Field("U", "userid", "UID", "user_id", _plain),
        Field("b", "tres-per-node", "TRES_PER_NODE", "", lambda: "N/A"),
        Field("", "arrayjobid", "ARRAY_JOB_ID", "job_id array_job_id", lambda job, array: str(array or job)),
        Field("", "arraytaskid", "ARRAY_TASK_ID", "array_task_id", lambda task: "N/A" if task is None else str(task)),
        Field("", "cluster", "CLUSTER", "cluster", _plain),
        Field("", "numcpus", "CPUS", "cpus", _plain),
        Field("", "stepstate", "STATE", "state", lambda state: job_state(state, 0)),
        Field("", "tres tres-alloc", "TRES_ALLOC", "tres_allocated", _plain),
        Field("", "network", "NETWORK", "", lambda: ""),
        Field("", "resvports", "RESV_PORTS", "", lambda: ""),
        Field("", "container", "CONTAINER", "", lambda: ""),
    ]
)


def show_steps(
    options: "dict[str, str | None]", users: list[int] | None, texts: dict[str, set[str]], hosts: set[str] | None, context: "Context"
) -> int:
    """One listing."""

    def unknown(name: str) -> None:
        context.error(f"Invalid job step format specification: {name}")

    if options.get("long_format") is not None and "format" not in options:
        cells = STEP_FIELDS.parse_long(options["long_format"] or "", unknown)
    else:
        cells = STEP_FIELDS.parse_short(options.get("format") or STEP_FORMAT, unknown)
    names = needed_columns(cells, ["job_id", "array_job_id", "array_task_id", "step", "user_id", "name", "partition", "nodes"])
    steps = context.client.query("steps", names).dicts()
    wanted = [word for word in (options.get("steps") or "").split(",") if word]
    jobs = {word.partition("_")[0] for word in (options.get("jobs") or "").split(",") if word}
    shown = []
    for step in steps:
        own = {str(step["job_id"]), str(step["array_job_id"]), f"{step['array_job_id']}_{step['array_task_id']}"}
        if jobs and jobs.isdisjoint(own):
            continue
        if wanted and not any(_is(word, own, step["step"]) for word in wanted):
            continue
        if users is not None and step["user_id"] not in users:
            continue
        if any(column in step and step[column] not in values for column, values in texts.items()):
            continue
        if hosts is not None:
            from understudy.model.hostlist import expand

            if hosts.isdisjoint(expand(step["nodes"])):
                continue
        shown.append(step)
    _sort(shown, options.get("sort") or "i")
    if "noheader" not in options:
        context.print_cluster()
        context.print(header_line(cells))
    if shown:
        context.print("\n".join(lines(cells, names, [[step[name] for name in names] for step in shown])))
    return 0


def _is(word: str, own: set[str], step: str) -> bool:
    job, dot, number = word.partition(".")
    return job in own and (not dot or number == step)


def _sort(steps: "list[dict[str, Any]]", keys: str) -> None:
    columns = {"i": "job_id", "j": "name", "N": "nodes", "P": "partition", "u": "user_name", "U": "user_id", "M": "run_time_s", "S": "start_time"}
    for word in reversed(keys.split(",")):
        column = columns.get(word.lstrip("+-")[:1], "job_id")
        steps.sort(key=lambda step: step.get(column, 0), reverse=word.startswith("-"))
