"""sacct --json and --yaml: jobs and steps as the document of Slurm's dbv0.0.38.

Place: documents; pure.
"""

import json
import re

from understudy.documents.documents import VERSION
from understudy.documents.job_texts import elapsed, nodes
from understudy.documents.states import job_state
from understudy.documents.use import IN, OUT, amount_of, was_measured

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    Row = dict[str, Any]
    Numbers = Mapping[str, int]

_SCHEDULERS = {
    "SchedSubmit": "STARTED_ON_SUBMIT",
    "SchedMain": "STARTED_ON_SCHEDULE",
    "SchedBackfill": "STARTED_ON_BACKFILL",
}
# Of a step of srun that does not ask for a frequency: so 22.05.8 reads what is on record.
_GOVERNORS = ["Conservative", "Performance", "PowerSave", "OnDemand", "UserSpace"]
_NOTHING_FOUND = {
    "description": "Nothing found",
    "error_number": 9003,
    "error": "Nothing found with query",
    "source": "slurmdb_jobs_get",
}


def document(rows: "Iterable[Row]", numbers: "Numbers") -> "Row":
    """The document. Steps follow their jobs, as in the list of rows. `numbers`: those of the
    resources, by name.
    """
    jobs: list[Row] = []
    for row in rows:
        if "job" in row:
            if not jobs or jobs[-1]["job_id"] != row["job_id"]:
                jobs.append(_job(row["job"], numbers))
            jobs[-1]["steps"].append(_step(row, numbers))
        else:
            jobs.append(_job(row, numbers))
    jobs.sort(key=lambda job: job["job_id"])  # as they came on record
    major, minor, micro = VERSION.split(".")
    version = {"major": int(major), "micro": int(micro), "minor": int(minor)}
    plugin = {"type": "openapi/dbv0.0.38", "name": "Slurm OpenAPI DB v0.0.38"}
    errors = [] if jobs else [_NOTHING_FOUND]
    return {
        "meta": {"plugin": plugin, "Slurm": {"version": version, "release": VERSION}},
        "errors": errors,
        "jobs": jobs,
    }


def json_text(whole: "Row") -> str:
    """As Slurm writes JSON: slashes escaped, an empty list on two lines."""
    text = json.dumps(whole, indent=2, ensure_ascii=False).replace("/", "\\/")
    return re.sub(r'^( *)(.*[^"\w])\[\](,?)$', r"\1\2[\n\1]\3", text, flags=re.MULTILINE)


def yaml_text(whole: "Row") -> str:
    """As Slurm writes YAML: with the tag of each value."""
    return "\n".join(["%YAML 1.1", "--- !!map", *_yaml_members(whole, ""), "..."]) + "\n"


def _yaml_members(members: "Row", indent: str) -> "Iterator[str]":
    for name, value in members.items():
        yield from _yaml_value(f"{indent}!!str {name}:", value, indent)


def _yaml_value(head: str, value: "Any", indent: str) -> "Iterator[str]":
    if isinstance(value, dict):
        yield f"{head} !!map"
        yield from _yaml_members(value, indent + "  ")
    elif isinstance(value, list):
        yield f"{head} !!seq" + ("" if value else " []")
        for each in value:
            yield from _yaml_value(f"{indent}-", each, indent)
    elif value is None:
        yield f"{head} !!null null"
    elif isinstance(value, bool | int | float):
        yield (
            f"{head} !!{'bool' if isinstance(value, bool) else type(value).__name__} "
            f"{str(value).lower()}"
        )
    else:
        yield f"{head} !!str {_yaml_word(value)}".rstrip(" ")


def _yaml_word(text: str) -> str:
    """As it is, or in quotes where it would read as something else."""
    if text.isprintable() and not re.search(r"^[\s\-?:,\[\]{}#&*!|>'\"%@`]|: | #|[\s:]$", text):
        return text
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return json.dumps(text)


def _job(row: "Row", numbers: "Numbers") -> "Row":
    asked = row["tres_requested"] or {}
    held: dict[str, int | None] = (
        {"energy": None, **row["tres_allocated"]} if row["tres_allocated"] else {}
    )
    return {
        "account": row["account"],
        "comment": {
            "administrator": row["admin_comment"] or None,
            "job": row["comment"] or None,
            "system": row["system_comment"] or None,
        },
        "allocation_nodes": row["node_count"] or 0,
        "array": _array(row),
        "association": {
            "account": row["account"],
            "cluster": row["cluster"],
            "partition": None,
            "user": row["user"],
        },
        "cluster": row["cluster"],
        "constraints": row["constraints"],
        "container": row["container"] or None,
        "derived_exit_code": _exit(row["derived_exit_signal"]),
        "time": _times(
            row,
            eligible={"eligible": row["eligible_time"] or 0},
            submission={"submission": row["submit_time"]},
            limit={
                "limit": row["time_limit_min"]
                if row["time_limit_min"] is not None and row["time_limit_min"] >= 0
                else None
            },
        ),
        "exit_code": _exit(row["exit_signal"]),
        "flags": [
            word
            for flag in (row["flags"] or "").split(",")
            if flag in _SCHEDULERS
            for word in ("CLEAR_SCHEDULING", _SCHEDULERS[flag])
        ],
        "group": row["group"],
        "het": {
            "job_id": row["het_job_id"] or 0,
            "job_offset": row["het_offset"] if row["het_job_id"] else None,
        },
        "job_id": row["job_id"],
        "name": row["name"],
        "mcs": {"label": ""},
        "nodes": row["nodes"] or "None assigned",
        "partition": row["partition"],
        "priority": row["priority"],
        "qos": row["qos"],
        "required": {
            "CPUs": asked.get("cpu", 0),
            "memory": asked.get("mem", 0) // max(asked.get("node", 1), 1),
        },
        "kill_request_user": _killer(row),
        "reservation": {"id": row["reservation_id"] or 0, "name": row["reservation"] or 0},
        "state": {"current": _state(row["state"]), "reason": row["reason"]},
        "steps": [],
        "tres": {"allocated": _amounts(held, numbers), "requested": _amounts(asked, numbers)},
        "user": row["user"],
        "wckey": {"wckey": row["wckey"], "flags": []},
        "working_directory": row["work_dir"],
    }


def _array(row: "Row") -> "Row":
    return {
        "job_id": row["array_job_id"] or 0,
        "limits": {
            "max": {"running": {"tasks": int((row["array_tasks"] or "").partition("%")[2] or 0)}}
        },
        "task": _bitmap(row["array_tasks"]),
        "task_id": row["array_task_id"],
    }


def _step(row: "Row", numbers: "Numbers") -> "Row":
    name = row["step"]
    return {
        "nodes": {"list": _hosts(row["nodes"]), "count": nodes(row), "range": row["nodes"]},
        "tres": {
            "requested": _used(row, IN, numbers),
            "consumed": _used(row, OUT, numbers),
            "allocated": _amounts(row["tres_allocated"], numbers),
        },
        "time": _times(row),
        "exit_code": _exit(row["exit_signal"]),
        "tasks": {"count": row["tasks"]},
        "pid": None,
        "CPU": {"requested_frequency": {"min": None, "max": None}, "governor": list(_GOVERNORS)}
        if name.isdigit()
        else {"requested_frequency": {"min": 0, "max": 0}, "governor": []},
        "kill_request_user": _killer(row),
        "state": _state(row["state"]),
        "statistics": {"CPU": {"actual_frequency": 0}, "energy": {"consumed": 0}},
        "step": {
            "job_id": row["job_id"],
            "het": {"component": None},
            "id": int(name) if name.isdigit() else name,
            "name": row["name"],
        },
        "task": {"distribution": row["layout"]},
    }


def _exit(signal: "int | None") -> "Row":
    """A signal is told; of an exit code 22.05.8 says nothing."""
    import signal as signals

    if not signal:
        return {"status": "SUCCESS", "return_code": 0}
    try:
        name = signals.strsignal(signal)
    except ValueError:
        name = None
    return {
        "status": "SIGNALED",
        "return_code": None,
        "signal": {"signal_id": signal, "name": name or f"Unknown signal {signal}"},
    }


def _bitmap(tasks: "str | None") -> "str | None":
    """Those of an array that are left: `1-4%2` as `0x1E`."""
    found = 0
    for part in (tasks or "").partition("%")[0].split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        if first.isdigit():
            for task in range(int(first), int(last or first) + 1, int(step or 1)):
                found |= 1 << task
    return f"0x{found:X}" if found else None


def _times(
    row: "Row",
    eligible: "Row | None" = None,
    submission: "Row | None" = None,
    limit: "Row | None" = None,
) -> "Row":
    user, system = row.get("user_cpu_us") or 0, row.get("system_cpu_us") or 0
    return {
        "elapsed": elapsed(row),
        **(eligible or {}),
        "end": row["end_time"] or 0,
        "start": row["start_time"] or (None if row["end_time"] else 0),
        **(submission or {}),
        "suspended": row["suspended_s"] or 0,
        "system": _cpu(system),
        **(limit or {}),
        "total": _cpu(user + system),
        "user": _cpu(user),
    }


def _cpu(microseconds: int) -> "Row":
    return {"seconds": microseconds // 1_000_000, "microseconds": microseconds % 1_000_000}


def _amounts(
    amounts: "Mapping[str, int | None] | Mapping[str, int] | None", numbers: "Numbers"
) -> "list[Row]":
    found = []
    for full in sorted(amounts or {}, key=lambda full: numbers.get(full, 0)):
        kind, _, name = full.partition("/")
        found.append(
            {
                "type": kind,
                "name": name or None,
                "id": numbers.get(full, 0),
                "count": (amounts or {})[full],
            }
        )
    return found


def _used(row: "Row", names: "tuple[tuple[str, str], ...]", numbers: "Numbers") -> "Row":
    """What the tasks used: the most and the least of one, with the place; CPU time in
    milliseconds.
    """

    def count(which: str, quantity: str) -> int:
        found = int(amount_of(row, which, quantity) or 0) if quantity else 0
        return found // 1000 if quantity == "cpu_us" and not which.endswith("_task") else found

    measured = amount_of(row, "sum", "rss") is not None
    known = (
        names if measured else [pair for pair in names if not pair[1]] if was_measured(row) else []
    )
    found: Row = {"max": [], "min": []}
    for which in ("max", "min") if measured else ():
        found[which] = _amounts({name: count(which, quantity) for name, quantity in names}, numbers)
        by_name = dict(names)
        for entry in found[which]:
            quantity = by_name["/".join(filter(None, (entry["type"], entry["name"])))]
            entry["task"] = count(f"{which}_task", quantity)
            entry["node"] = amount_of(row, f"{which}_node", quantity or "read")
    for key, which in (("average", "ave"), ("total", "sum")):
        found[key] = _amounts({name: count(which, quantity) for name, quantity in known}, numbers)
    return found


def _hosts(expression: str) -> "list[str]":
    from understudy.model.hostlist import expand

    return expand(expression) if expression else []


def _killer(row: "Row") -> "str | None":
    import pwd

    if row.get("killed_by") is None:
        return None
    try:
        return pwd.getpwuid(row["killed_by"]).pw_name
    except KeyError:
        return str(row["killed_by"])


def _state(state: int) -> str:
    return job_state(0, state) if state > 0xFF else job_state(state, 0)
