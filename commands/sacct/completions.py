"""`sacct --completion` and `--file`: what the job completion log says (jobcomp/filetxt).

Place: under sacct; asks the controller where the log is, and accounting nothing.
"""

import re

from understudy.commands.shared.client import Client
from understudy.commands.shared.context import Context

_FIELDS = {
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
_WIDTHS = {
    "jobid": 12,
    "uid": 6,
    "gid": 6,
    "nnodes": 8,
    "nodelist": 15,
    "start": 19,
    "end": 19,
}
_LINE = re.compile(r"(\w+)=(.*?) (?=\w+=|$)")


def show_completions(options: "dict[str, str | None]", context: Context) -> int:
    """What the job completion log says (jobcomp/filetxt)."""
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
        if name.partition("%")[0] not in _FIELDS:
            context.error(f'Invalid field requested: "{name}"')
            return 1
    path = options.get("file") or settings["JobCompLoc"]
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            records = [dict(_LINE.findall(line.rstrip("\n"))) for line in file]
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
    _print(names, records, options, context)
    return 0


def _print(
    names: list[str],
    records: "list[dict[str, str]]",
    options: "dict[str, str | None]",
    context: Context,
) -> None:
    parsable = "parsable" in options or "parsable2" in options
    rows = [] if "noheader" in options else [[_FIELDS[name.partition("%")[0]][0] for name in names]]
    rows += [[_value(name.partition("%")[0], record) for name in names] for record in records]
    if parsable:
        end = "|" if "parsable" in options else ""
        for row in rows:
            context.print("|".join(row) + end)
        return
    widths = [int(name.partition("%")[2].lstrip("-") or _WIDTHS.get(name, 10)) for name in names]
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


def _value(name: str, record: "dict[str, str]") -> str:
    value = record.get(_FIELDS[name][1], "")
    if name in {"user", "group"}:
        return value.partition("(")[0]
    if name in {"uid", "gid"}:
        return value.partition("(")[2].rstrip(")")
    return value
