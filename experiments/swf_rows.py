"""SWF both ways between traces and histories: each line as a record of a past job, with all its
columns; and a scenario as a trace.

Place: a reader of histories beside swf.py, which reads the same files into normal form. Pure.
Follows: the format's definition, version 2.2.

What becomes of the columns: job, submit and run time, allocated and requested processors, requested
time and memory, status (5 without a run: it was cancelled after its wait), user, group (the
account), queue (the QOS), partition, executable (the job's name), preceding job (a dependency). Not
used: used CPU time and memory, and think time, for which Slurm has no option.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from understudy.experiments.past import Count, PastJob
from understudy.experiments.past_options import NO_CHOICES, Choices
from understudy.experiments.swf import COLUMNS
from understudy.experiments.trace import TraceJob
from understudy.model.times import parse_limit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from understudy.experiments.past_options import Mapped
    from understudy.experiments.past_scenario import PastScenario

_NAMED: Final = re.compile(r";\s*(Partition|Queue|UnixStartTime)\s*:\s*(.*)", re.IGNORECASE)
_STATES: Final = {0: "FAILED", 1: "COMPLETED", 5: "CANCELLED"}
_DEFAULT_START: Final = 946_684_800  # 2000-01-01 UTC, for traces that do not say when they began


def read_swf_rows(
    lines: Iterable[str], counts: Count, choices: Choices = NO_CHOICES
) -> Iterator[PastJob]:
    """Each job of the lines.

    Raises:
        HistoryError: with `counts.strict`, at the first bad line.
    """
    names: dict[str, dict[int, str]] = {"partition": {}, "queue": {}}
    start = _DEFAULT_START
    for number, line in enumerate(lines, 1):
        counts.lines += 1
        fields = line.split()
        if not fields:
            continue
        if fields[0].startswith(";"):
            match = _NAMED.match(line.strip())
            if match and match[1].lower() == "unixstarttime":
                word = match[2].split()[:1]
                start = int(word[0]) if word and word[0].isdigit() and int(word[0]) else start
            elif match:
                place, _, name = match[2].strip().partition(" ")
                if place.isdigit() and name.strip():
                    names[match[1].lower()][int(place)] = re.sub(
                        r"\W+", "_", name.strip().split()[0]
                    )
            continue
        if len(fields) < COLUMNS:
            counts.bad_line(number, f"{len(fields)} columns where {COLUMNS} are expected")
            continue
        try:
            columns = [round(float(field)) for field in fields[:COLUMNS]]
        except (ValueError, OverflowError):
            bad = next(place for place, field in enumerate(fields, 1) if not _is_number(field))
            counts.bad_line(number, f"column {bad} is not a number: {fields[bad - 1][:40]!r}")
            continue
        record = _record(number, columns, start, names, choices.mapped, counts)
        if record is not None:
            yield record


def _is_number(text: str) -> bool:
    try:
        round(float(text))
    except (ValueError, OverflowError):
        return False
    return True


def _record(
    number: int,
    columns: list[int],
    start: int,
    names: dict[str, dict[int, str]],
    mapped: Mapped,
    counts: Count,
) -> PastJob | None:
    (
        job,
        submit,
        wait,
        run,
        allocated,
        cpu_time,
        used,
        requested,
        limit,
        memory,
        status,
        user,
        group,
        program,
        queue,
        partition,
        before,
        think,
    ) = columns
    procs = requested if requested > 0 else allocated
    if why := _unused(submit, procs, run, status):
        counts.left_out[why] += 1
        return None
    for name, value in (("used CPU time", cpu_time), ("used memory", used), ("think time", think)):
        if value > 0:
            counts.notes[f"{name}, which is not used"] += 1
    began = start + submit + max(0, wait)
    has_run = run > 0
    qos = ""
    if queue >= 0:
        qos = names["queue"].get(queue, f"q{queue}")
    state = _STATES.get(status, "COMPLETED")
    if has_run and limit > 0 and run >= limit and state != "COMPLETED":
        state = "TIMEOUT"
    return PastJob(
        number,
        str(job),
        state,
        submit=start + submit,
        eligible=start + submit,
        start=began if has_run else None,
        end=began + max(0, run),
        elapsed=max(0, run),
        exit_code=1 if state == "FAILED" else 0,
        limit_min=-(-limit // 60) if limit > 0 else None if not has_run else -(-run // 60),
        name=f"e{program}" if program >= 0 else "",
        user=f"u{user}" if user >= 0 else "unknown",
        account=f"a{group}" if group >= 0 else "",
        partition=_partition(partition, names, mapped, counts),
        qos=qos,
        cpus=procs,
        req_cpus=procs,
        min_nodes=None,
        req_tres=f"cpu={procs}"
        + (f",mem={max(1, -(-memory * procs // 1024))}M" if memory > 0 else ""),
        memory=f"{max(1, -(-memory // 1024))}Mc" if memory > 0 else "",
        submit_line=f"sbatch --ntasks={procs} --dependency=afterany:{before}"
        if before > 0
        else f"sbatch --ntasks={procs}",
    )


def _unused(submit: int, procs: int, run: int, status: int) -> str:
    """Why the line's job is left out; "" if it is not."""
    if submit < 0:
        return "no submit time"
    if procs < 1:
        return "no processors"
    if status in (2, 3, 4):
        return (
            "parts of jobs that were swapped out (status 2 to 4): the whole job has a "
            "line of its own"
        )
    return "no run time" if run <= 0 and status != 5 else ""


def _partition(number: int, names: dict[str, dict[int, str]], mapped: Mapped, counts: Count) -> str:
    """Its name by --map, or in the header; "" for the default one."""
    if number < 0:
        return ""
    name = names["partition"].get(number, "") or mapped.one("partition", str(number))
    if name == str(number) and not mapped.partition:
        counts.notes[
            "a partition's number for which the header has no name (--map "
            "partition:NUMBER=NAME): the default one"
        ] += 1
        return ""
    return name


def to_trace(scenario: PastScenario, counts: Count) -> tuple[list[TraceJob], dict[str, str]]:
    """The scenario's jobs as a trace and its header; each task of an array is a job. What SWF has
    no column for is counted.
    """
    numbers: dict[str, dict[str, int]] = {"user": {}, "account": {}, "qos": {}, "partition": {}}

    def number(kind: str, name: str) -> int:
        return numbers[kind].setdefault(name, len(numbers[kind]) + 1) if name else -1

    jobs: list[TraceJob] = []
    lost: dict[str, int] = {}
    cancelled = {event["cmd"][1] for event in scenario.events if event["cmd"][0] == "scancel"}
    for line in scenario.workload:
        given = dict(
            option[2:].partition("=")[::2] for option in line["options"] if option.startswith("--")
        )
        procs = int(given.get("ntasks") or 0) * int(given.get("cpus-per-task") or 1) or int(
            (given.get("nodes") or "1").partition("-")[0]
        )
        limit = parse_limit(given["time"]) if given.get("time") else None
        if "{" + line["id"] + "}" in cancelled:
            counts.left_out["cancelled before they ran"] += 1
            continue
        tasks = _count(given.get("array") or "0")
        runs = (
            list(line["run"].values()) if isinstance(line["run"], dict) else [line["run"]] * tasks
        )
        for name in given:
            if name not in (
                "ntasks",
                "cpus-per-task",
                "nodes",
                "time",
                "account",
                "qos",
                "partition",
                "array",
            ):
                lost[name] = lost.get(name, 0) + 1
        for run in runs:
            seconds = max(1, round(run))
            jobs.append(
                TraceJob(
                    len(jobs) + 1,
                    round(line["at"]),
                    min(seconds, limit) if limit else seconds,
                    procs,
                    limit or seconds,
                    seconds,
                    user=number("user", line["user"]),
                    group=number("account", given.get("account", "")),
                    queue=number("qos", given.get("qos", "")),
                    partition=number("partition", given.get("partition", "")),
                    status=1,
                )
            )
    for name, count in lost.items():
        counts.notes[f"--{name}, for which a trace has no column"] = count
    header = {"Version": "2.2", "UnixStartTime": str(scenario.zero)}
    for kind, title in (
        ("partition", "Partition"),
        ("qos", "Queue"),
        ("account", "Group"),
        ("user", "User"),
    ):
        if numbers[kind]:
            header[title] = "\n".join(f"{place} {name}" for name, place in numbers[kind].items())
    return jobs, header


def _count(expression: str) -> int:
    """Tasks of an array's expression, `1-5,9%2`, as past_scenario writes it."""
    spans = (part.partition("-") for part in expression.partition("%")[0].split(","))
    return sum(int(last or first) - int(first) + 1 for first, _, last in spans)
