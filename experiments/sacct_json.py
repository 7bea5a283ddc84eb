"""What `sacct --json` writes, as records; job by job, so that a file of any length fits.

Place: a reader of histories. Follows: the documents of Slurm's data parsers from dbv0.0.36 (21.08)
to v0.0.42: numbers are plain, or objects with `set`, `infinite` and `number`; lists of states are
plain words or lists of them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from understudy.experiments.past import PARTITION_LIMIT, UNLIMITED, Count, HistoryError, PastJob
from understudy.experiments.past_options import NO_CHOICES, Choices
from understudy.experiments.sacct_rows import OTHER_CLUSTER, REFUSED, REVOKED, STEPS
from understudy.experiments.sacct_words import NONE_ASSIGNED, STATES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

_PART: Final = 1 << 20  # characters read at a time
# flags, and the words for them in sacct's column
_FLAGS: Final = {"STARTED_ON_SCHEDULE": "SchedMain", "STARTED_ON_BACKFILL": "SchedBackfill"}


def read_json(file: TextIO, counts: Count, choices: Choices = NO_CHOICES) -> Iterator[PastJob]:
    """Each record of the document.

    Raises:
        HistoryError: it is no such document; with `counts.strict` at the first job that cannot be
        used.
    """
    clusters: set[str] = set()
    for number, job in enumerate(_jobs(file, counts.source), 1):
        counts.lines += 1
        name = str(job.get("cluster") or "")
        if name and choices.cluster and name != choices.cluster:
            counts.left_out[OTHER_CLUSTER] += 1
            continue
        clusters.add(name)
        if len(clusters) > 1:
            raise HistoryError(
                f"{counts.source}: jobs of several clusters "
                f"({', '.join(sorted(clusters))}): choose one with --cluster"
            )
        try:
            counts.left_out[STEPS] += len(job.get("steps") or ())
            record = _record(number, job)
        except (TypeError, ValueError, OverflowError, KeyError, AttributeError) as error:
            counts.bad_line(0, f"job {number} of the list: {error}")
            continue
        if record.state == "REVOKED":
            counts.left_out[REVOKED] += 1
            continue
        if record.was_refused:
            counts.left_out[REFUSED] += 1
            continue
        yield record


def _jobs(file: TextIO, source: str) -> Iterator[dict[str, Any]]:
    """The objects of the list `jobs`, without the whole document in memory."""
    decoder = json.JSONDecoder()
    text, at = file.read(_PART), 0

    def more() -> bool:
        nonlocal text, at
        part = file.read(max(_PART, len(text) - at))
        text, at = text[at:] + part, 0
        return bool(part)

    while True:
        begin = text.find('"jobs"', at)
        after = text[begin + 6 :].lstrip() if begin >= 0 else ""
        if begin >= 0 and after[:1] == ":" and after[1:].lstrip()[:1] == "[":
            at = text.index("[", begin) + 1
            break
        at = max(0, len(text) - 64) if begin < 0 else begin
        if not more():
            raise HistoryError(f'{source}: no list "jobs": this is no output of sacct --json')
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if at == len(text):
            if more():
                continue
            raise HistoryError(f"{source}: the list of jobs has no end: the file is cut short")
        if text[at] == "]":
            return
        try:
            job, at = decoder.raw_decode(text, at)
        except RecursionError as error:
            raise HistoryError(f"{source}: damaged JSON: {error}") from None
        except ValueError as error:
            if more():
                continue
            raise HistoryError(f"{source}: damaged JSON: {error}") from None
        if not isinstance(job, dict):
            raise HistoryError(f"{source}: a job that is no object: {str(job)[:40]}")
        yield job


def _number(value: Any) -> int | None:
    """A number, plain or as an object; None: not set. UNLIMITED: without end."""
    if isinstance(value, dict):
        if value.get("infinite"):
            return UNLIMITED
        return int(value["number"]) if value.get("set") else None
    return None if value is None or value == "" else int(value)


def _word(value: Any) -> str:
    while isinstance(value, list):
        value = value[0] if value else ""
    return "" if value is None or value == 0 else str(value)


def _instant(times: dict[str, Any], key: str) -> int | None:
    found = _number(times.get(key))
    return found if found and found > 0 else None


def _exit(value: dict[str, Any] | None) -> tuple[int, int]:
    if not value:
        return 0, 0
    signal = value.get("signal") or {}
    number = _number(signal.get("signal_id", signal.get("id"))) or 0
    return (_number(value.get("return_code")) or 0) & 0xFF, number if number <= 64 else 0


def _amounts(listed: list[dict[str, Any]] | None) -> dict[str, int]:
    found = {}
    for each in listed or ():
        name = f"{each['type']}/{each['name']}" if each.get("name") else str(each["type"])
        amount = _number(each.get("count"))
        if amount is not None and amount >= 0:
            found[name] = amount
    return found


def _tres(amounts: dict[str, int]) -> str:
    return ",".join(
        f"{name}={amount}{'M' if name == 'mem' else ''}" for name, amount in amounts.items()
    )


def _record(number: int, job: dict[str, Any]) -> PastJob:
    times, array, het = job["time"], job.get("array") or {}, job.get("het") or {}
    state = _word((job.get("state") or {}).get("current")).upper()
    if state not in STATES:
        raise ValueError(f"{state[:40]!r} is no state of a job")
    asked, held = (
        _amounts((job.get("tres") or {}).get("requested")),
        _amounts((job.get("tres") or {}).get("allocated")),
    )
    code, signal = _exit(job.get("exit_code"))
    limit = _number(times.get("limit"))
    reservation = job.get("reservation") or {}
    nodes = _word(job.get("nodes"))
    submit, start = _instant(times, "submission"), _instant(times, "start")
    if submit is None and start is None:
        raise ValueError("neither a submit nor a start time")
    if limit is None:
        # of one that was requeued Slurm had forgotten the limit of its run by then
        has_own = held and start is not None and state != "REQUEUED"
        limit = UNLIMITED if has_own else PARTITION_LIMIT
    comment = job.get("comment")
    return PastJob(
        number,
        _job_id(job, array, het),
        state,
        submit=submit,
        eligible=_instant(times, "eligible"),
        start=start,
        end=_instant(times, "end"),
        elapsed=_number(times.get("elapsed")),
        suspended=_number(times.get("suspended")) or 0,
        exit_code=code,
        signal=signal,
        limit_min=limit,
        name=str(job.get("name") or ""),
        user=_word((job.get("association") or {}).get("user")) or _word(job.get("user")),
        group=_word(job.get("group")),
        account=_word(job.get("account")),
        partition=_word(job.get("partition")),
        qos=_word(job.get("qos")),
        nodes=_number(job.get("allocation_nodes")),
        cpus=held.get("cpu"),
        min_nodes=asked.get("node"),
        req_cpus=_number((job.get("required") or {}).get("CPUs")) or asked.get("cpu"),
        req_tres=_tres(asked),
        alloc_tres=_tres(held),
        constraints=_word(job.get("constraints")),
        # 22.05 writes a number that means nothing for the name.
        reservation=f"reservation{reservation['id']}"
        if reservation.get("id") and isinstance(reservation["name"], int)
        else _word(reservation.get("name")),
        node_list="" if nodes.lower() in NONE_ASSIGNED else nodes,
        wckey=_word((job.get("wckey") or {}).get("wckey")).lstrip("*"),
        comment=_word(comment.get("job")) if isinstance(comment, dict) else _word(comment),
        submit_line=_word(job.get("submit_line")),
        flags=",".join(_FLAGS[each] for each in job.get("flags") or () if each in _FLAGS),
    )


def _job_id(job: dict[str, Any], array: dict[str, Any], het: dict[str, Any]) -> str:
    """As the column JobID has it."""
    whole, task, leader, offset = (
        _number(array.get("job_id")),
        _number(array.get("task_id")),
        _number(het.get("job_id")),
        _number(het.get("job_offset")),
    )
    if whole and task is not None:
        return f"{whole}_{task}"
    if whole and array.get("task"):
        return f"{whole}_[{_tasks(str(array['task']))}]"
    if leader:
        return f"{leader}+{offset or 0}"
    return str(_number(job["job_id"]))


def _tasks(text: str) -> str:
    """The tasks of an array that wait: `0x1E`, a bit for each, or `1-4` as it is."""
    if not text.lower().startswith("0x"):
        return text
    bits = int(text.partition("%")[0], 16)
    return ",".join(str(task) for task in range(bits.bit_length()) if bits >> task & 1)
