"""What `sacct -P`, `--parsable` and `--parsable2` write, with whatever columns in whatever order, as records.

Place: a reader of histories; line by line, so that a file of any length fits. Follows: sacct(1). sacct does not quote: a bar or a new line within a
submission line, a comment or a name makes a row of more or fewer fields than the header has. Such a row is put together again where that is
possible in one way that makes sense; columns that are no free text tell.
"""

from __future__ import annotations

import re
from operator import add, getitem, itemgetter
from typing import TYPE_CHECKING, Any, Final

from understudy.experiments import sacct_words as words
from understudy.experiments.past import Count, HistoryError, PastJob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    _Worth = tuple[int, ...]

JOB_ID: Final = re.compile(r"\d+(_(\d+|\[[^\]]*\]?)|\+\d+|\.\S+)*")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_FREE: Final = (
    "submitline",
    "constraints",
    "comment",
    "systemcomment",
    "admincomment",
    "jobname",
    "workdir",
    "container",
    "extra",
)  # likeliest first
_FEATURES: Final = re.compile(r"[\w(\[][\w.+*&|,:()\[\]-]*[\w)\]]")
_MAX_JOINED: Final = 50  # lines of one row, and fields too many in it
STEPS: Final = "steps"
AGAIN: Final = "the header again"
FURTHER: Final = "further lines of a submission line or comment"
OTHER_CLUSTER: Final = "of other clusters"
REVOKED: Final = "siblings in a federation that were revoked"
NEEDED: Final = ("jobid",)


def _state(text: str) -> str:
    return words.state(text)


def _text(text: str) -> str:
    return text


def _listed(text: str) -> str:
    return "" if text.lower() in words.NONE_ASSIGNED else text


# Column: the record's field, and how its text is read. Where several say the same, the first that is there counts.
_FIELDS: Final[tuple[tuple[str, str, Callable[[str], Any]], ...]] = (
    ("state", "state", _state),
    ("submit", "submit", words.instant),
    ("eligible", "eligible", words.instant),
    ("start", "start", words.instant),
    ("end", "end", words.instant),
    ("elapsedraw", "elapsed", words.duration),
    ("elapsed", "elapsed", words.duration),
    ("suspended", "suspended", lambda text: words.duration(text) or 0),
    ("timelimitraw", "limit_min", lambda text: words.limit(text, in_minutes=True)),
    ("timelimit", "limit_min", lambda text: words.limit(text, in_minutes=False)),
    ("jobname", "name", _text),
    ("user", "user", _text),
    ("uid", "uid", words.count),
    ("group", "group", _text),
    ("gid", "gid", words.count),
    ("account", "account", _text),
    ("partition", "partition", _text),
    ("qos", "qos", _text),
    ("allocnodes", "nodes", words.count),
    ("nnodes", "nodes", words.count),
    ("alloccpus", "cpus", words.count),
    ("ncpus", "cpus", words.count),
    ("reqnodes", "min_nodes", words.count),
    ("reqcpus", "req_cpus", words.count),
    ("reqmem", "memory", _text),
    ("reqtres", "req_tres", _text),
    ("alloctres", "alloc_tres", _text),
    ("reqgres", "req_gres", _text),
    ("constraints", "constraints", _text),
    ("reservation", "reservation", _text),
    ("nodelist", "node_list", _listed),
    ("wckey", "wckey", lambda text: text.lstrip("*")),
    ("comment", "comment", _text),
    ("submitline", "submit_line", _text),
    ("flags", "flags", _text),
)
_TIMES: Final = ("submit", "eligible", "start", "end")
_KEPT: Final = 10_000  # values of a column that are remembered: neighbouring jobs have the same ones


class _Read(dict[str, Any]):
    """A column's values by the texts for them, each of which is read once while it is remembered."""

    def __init__(self, read: Callable[[str], Any]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, text: str) -> Any:
        value = self._read(text)
        if len(self) >= _KEPT:
            self.clear()
        self[text] = value
        return value


class _Columns:
    """A header: where each column is."""

    def __init__(self, names: Sequence[str], delimiter: str, *, ends: bool = False) -> None:
        self.ends = ends  # each line ends with a delimiter, as --parsable has it
        self.names = [name.strip().lower() for name in names]
        self.delimiter = delimiter
        self.width = len(self.names)
        place = {name: number for number, name in reversed(list(enumerate(self.names))) if name}
        self.job = place.get("jobid", place.get("jobidraw", -1))
        self.cluster = place.get("cluster", -1)
        self.end, self.submit_line = place.get("end", -1), place.get("submitline", -1)
        self.free = {place[name]: rank for rank, name in enumerate(_FREE) if name in place}
        self.constraints = place.get("constraints", -1)
        times = _Read(words.instant)  # most jobs are eligible when they are submitted
        places: dict[str, int] = {}
        reads: list[_Read] = []
        for column, field, read in _FIELDS:
            if column in place and field not in places:
                places[field] = place[column]
                reads.append(times if field in _TIMES else _Read(read))
        self.fields, self.reads = tuple(places), tuple(reads)
        self.texts = itemgetter(*places.values(), 0, 0)  # of fewer than two it would give no tuple; what is too much is not read
        self.exit, self.exit_code = place.get("exitcode", -1), _Read(words.exit_code)
        self.checks = {place[column]: _Read(read) for column, _, read in _FIELDS if read not in (_text, _listed) and column in place}
        self.has = places.keys()


def header(line: str) -> tuple[list[str], str, bool] | None:
    """The columns' names, what parts them, and whether it ends the line, too (--parsable); None if this is no header."""
    text = line.rstrip("\r\n")
    parts = _WORD.findall(text)
    if not parts or not text.startswith(parts[0]):
        return None
    if len(parts) == 1:
        return (parts, "|", text.endswith("|")) if text.rstrip("|") == parts[0] else None
    delimiter = text[len(parts[0]) : text.index(parts[1], len(parts[0]))]
    if not delimiter or re.search(r"[\w]", delimiter) or (delimiter.isspace() and delimiter != "\t"):
        return None
    names = text.split(delimiter)
    ends = names[-1] == ""
    if ends:
        names.pop()
    if all(_WORD.fullmatch(name.partition("%")[0].strip()) for name in names):
        return [name.partition("%")[0] for name in names], delimiter, ends
    return None


def read_rows(lines: Iterable[str], counts: Count, *, columns: str = "", cluster: str = "") -> Iterator[PastJob]:
    """Each record of the lines.

    Args:
        lines: of the file.
        counts: of what is not used.
        columns: their names at commas, where the file has no header (`--noheader`).
        cluster: the one whose jobs are wanted, where there are several.

    Raises:
        HistoryError: it is no output of sacct, or with `counts.strict` at the first line that cannot be used.
    """
    numbered = enumerate(lines, 1)
    layout = _Columns(columns.split(","), "|", ends=True) if columns else _find_header(numbered, counts)
    if layout.job < 0:
        raise HistoryError(f"{counts.source}: no column JobID among {', '.join(layout.names)}: sacct needs it in --format")
    if "submit" not in layout.has and "start" not in layout.has:
        raise HistoryError(f"{counts.source}: neither a column Submit nor Start: sacct needs it in --format")
    clusters: set[str] = set()
    for number, fields in _rows(numbered, layout, counts):
        job = fields[layout.job]
        if "." in job:
            counts.left_out[STEPS] += 1
            continue
        if layout.cluster >= 0 and fields[layout.cluster]:
            name = fields[layout.cluster]
            if cluster and name != cluster:
                counts.left_out[OTHER_CLUSTER] += 1
                continue
            clusters.add(name)
            if len(clusters) > 1:
                raise HistoryError(
                    f"{counts.source} line {number}: jobs of several clusters ({', '.join(sorted(clusters))}): choose one with --cluster"
                )
        try:
            record = _record(number, fields, layout)
        except ValueError as error:
            counts.bad_line(number, str(error))
            continue
        if record.state == "REVOKED":
            counts.left_out[REVOKED] += 1
            continue
        yield record


def _find_header(numbered: Iterator[tuple[int, str]], counts: Count) -> _Columns:
    for number, line in numbered:
        counts.lines += 1
        if not line.strip():
            continue
        found = header(line)
        if found is None:
            if re.match(r"\s*JobID\s", line, re.IGNORECASE):
                raise HistoryError(f"{counts.source} line {number}: columns that are cut to a width: run sacct with -P")
            raise HistoryError(
                f"{counts.source} line {number}: no header of sacct -P (a job's line, where --noheader was given: name the columns with --format)"
            )
        names, delimiter, ends = found
        return _Columns(names, delimiter, ends=ends)
    raise HistoryError(f"{counts.source}: empty")


def _rows(numbered: Iterator[tuple[int, str]], layout: _Columns, counts: Count) -> Iterator[tuple[int, list[str]]]:
    """Rows of as many fields as there are columns."""
    width, job_at = layout.width, layout.job
    is_job = JOB_ID.fullmatch
    is_behind_row = False
    others: list[tuple[int, str]] = []  # lines that are no row by themselves, until one is
    for number, raw in numbered:
        counts.lines += 1
        line = raw.rstrip("\r\n")
        fields = _parted(line, layout)
        is_row = len(fields) == width and is_job(fields[job_at]) is not None
        if others and (is_row or len(others) == _MAX_JOINED):
            yield from _put_together(others, layout, counts, is_behind_row=is_behind_row)
            others = []
        if is_row:
            is_behind_row = True
            yield number, fields
        elif [name.strip().lower().partition("%")[0] for name in fields] == layout.names:
            counts.left_out[AGAIN] += 1
        elif others or line.strip():
            others.append((number, line))
    yield from _put_together(others, layout, counts, is_behind_row=is_behind_row)


def _parted(text: str, layout: _Columns) -> list[str]:
    fields = text.split(layout.delimiter)
    if len(fields) > layout.width and not fields[-1] and layout.ends:
        fields.pop()
    return fields


def _put_together(lines: list[tuple[int, str]], layout: _Columns, counts: Count, *, is_behind_row: bool) -> Iterator[tuple[int, list[str]]]:
    """Rows of one line or several, such that fewest lines are left, and of those ways the one that makes most rows. The others are counted."""
    parted = [_parted(line, layout) for _, line in lines]
    begins = [_begins_row(fields, layout) for fields in parted]
    best: list[tuple[int, int, int, list[str] | None]] = [(0, 0, 0, None)]  # from the end: lines left, rows (less is more), lines of the next row
    for first in reversed(range(len(lines))):
        left, rows, _, _ = best[-1]
        found: tuple[int, int, int, list[str] | None] = (left + 1, rows, 1, None)
        for count in range(1, len(lines) - first + 1):
            if count > 1 and (begins[first + count - 1] or not layout.free):
                break
            left, rows, _, _ = best[-count]
            if (left, rows - 1) < found[:2]:
                whole = _fit(_parted("\n".join(line for _, line in lines[first : first + count]), layout), layout)
                if whole is not None:
                    found = left, rows - 1, count, whole
        best.append(found)
    at = 0
    while at < len(lines):
        _, _, count, row = best[len(lines) - at]
        if row is None:
            _leave_out(lines[at][0], parted[at], layout, counts, is_further=is_behind_row and not begins[at])
        else:
            yield lines[at][0], row
        is_behind_row = is_behind_row or row is not None
        at += count


def _begins_row(fields: list[str], layout: _Columns) -> bool:
    """Whether a line begins with what a row begins with."""
    if len(fields) <= layout.job or len(fields) == 1 or JOB_ID.fullmatch(fields[layout.job]) is None:
        return False
    try:
        for place, read in layout.checks.items():
            if place < len(fields) - 1:
                read[fields[place]]
    except ValueError:
        return False
    return True


def _leave_out(number: int, fields: list[str], layout: _Columns, counts: Count, *, is_further: bool) -> None:
    found, width = len(fields), layout.width
    if found > width:
        counts.bad_line(number, f"{found} fields where the header has {width}, and no free text in which the others could be")
    elif found == width:
        counts.bad_line(number, f"{fields[layout.job][:40]!r} is no job's id")
    elif is_further and width - 1 in layout.free:
        counts.left_out[FURTHER] += 1
    else:
        counts.bad_line(number, f"{found} fields where the header has {width}")


def _fit(fields: list[str], layout: _Columns) -> list[str] | None:
    """The row with the fields that are too many joined where there is free text, so that the other columns make sense; the best of several ways."""
    spare = len(fields) - layout.width
    if not 0 <= spare <= _MAX_JOINED or not _may_fit(fields, layout, spare):
        return None
    best: dict[int, tuple[_Worth, tuple[str, ...]]] = {0: ((0,) * 6, ())}  # by how many of those too many are used
    whole = layout.delimiter.join(fields)
    for place in range(layout.width):
        longer: dict[int, tuple[_Worth, tuple[str, ...]]] = {}
        for used, (worth, row) in best.items():
            for more in range(spare - used + 1 if place in layout.free else 1):
                text = layout.delimiter.join(fields[place + used : place + used + more + 1])
                adds = _worth(place, text, more, whole, layout)
                if adds is None:
                    continue
                total = tuple(map(add, worth, adds))
                if used + more not in longer or longer[used + more][0] < total:
                    longer[used + more] = total, (*row, text)
        best = longer
    return list(best[spare][1]) if spare in best else None


def _may_fit(fields: list[str], layout: _Columns, spare: int) -> bool:
    """Whether there is any way: quick, since most lines that are no row have none."""
    shifts = {0}  # how many of those too many may be used before the column
    for place in range(layout.width):
        if place in layout.free:
            shifts = set(range(min(shifts), spare + 1))
        elif place == layout.job or place in layout.checks:
            shifts = {shift for shift in shifts if _worth(place, fields[place + shift], 0, "", layout) is not None}
            if not shifts:
                return False
    return spare in shifts


def _worth(place: int, text: str, more: int, whole: str, layout: _Columns) -> _Worth | None:
    """What speaks for a column's text of which `more` delimiters are a part, the most important first; None: it makes no sense.

    Texts that are read, and those that are not empty: sacct leaves few so. A text with a delimiter that is there twice (an option, and in the
    submission line); one that neither begins nor ends with it. Few columns with delimiters, and the likeliest.
    """
    if place == layout.job:
        return (0,) * 6 if JOB_ID.fullmatch(text) else None
    read = layout.checks.get(place)
    if read is not None:
        try:
            value = read[text]
        except ValueError:
            return None
        return (int(bool(text) and value is not None), int(bool(text)), 0, 0, 0, 0)
    if place == layout.submit_line and text.startswith((layout.delimiter, " ")):  # it begins with the command's name
        return None
    if not more:
        return (0,) * 6
    if place == layout.constraints and not _FEATURES.fullmatch(text):
        return None
    is_ragged = text.startswith(layout.delimiter) or text.endswith(layout.delimiter)
    return (0, 0, int(not is_ragged and whole.count(text) > 1), -int(is_ragged), -1, -layout.free[place])


def _record(number: int, fields: list[str], layout: _Columns) -> PastJob:
    values = dict(zip(layout.fields, map(getitem, layout.reads, layout.texts(fields)), strict=True))
    values.setdefault("state", "COMPLETED")
    if layout.exit >= 0:
        values["exit_code"], values["signal"] = layout.exit_code[fields[layout.exit]]
    record = PastJob(number, fields[layout.job], **values)
    if record.submit is None and record.start is None:
        raise ValueError("neither a submit nor a start time")
    return record
