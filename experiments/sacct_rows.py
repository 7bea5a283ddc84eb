"""What `sacct -P`, `--parsable` and `--parsable2` write, with whatever columns in whatever order, as records.

Place: a reader of histories; line by line, so that a file of any length fits. Follows: sacct(1). sacct does not quote: a bar or a new line within a
submission line, a comment or a name makes a row of more or fewer fields than the header has. Such a row is put together again where that is
possible in one way that makes sense; columns that are no free text tell.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import getitem, itemgetter
from typing import TYPE_CHECKING, Any, Final

from understudy.experiments import sacct_words as words
from understudy.experiments.past import Count, HistoryError, PastJob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

JOB_ID: Final = re.compile(r"\d+(_(\d+|\[[^\]]*\]?)|\+\d+|\.\S+)*")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_FREE: Final = ("submitline", "comment", "systemcomment", "admincomment", "jobname", "workdir", "container", "extra")  # likeliest first
_MAX_JOINED: Final = 50  # lines of one row
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
_STRICT: Final = (
    "state",
    "submit",
    "start",
    "end",
    "eligible",
    "elapsedraw",
    "elapsed",
    "timelimitraw",
    "timelimit",
)  # tell whether fields are in place


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
        self.free = [place[name] for name in _FREE if name in place]
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
        self.checks = [(place[column], read) for column, _, read in _FIELDS if column in _STRICT and column in place]
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
    delimiter, width, job_at = layout.delimiter, layout.width, layout.job
    is_job = JOB_ID.fullmatch
    is_last_free = width - 1 in layout.free
    open_row: _OpenRow | None = None
    is_behind_row = False
    for number, raw in numbered:
        counts.lines += 1
        line = raw.rstrip("\r\n")
        fields = line.split(delimiter)
        if open_row is not None:
            if not _begins_row(fields, layout) and open_row.lines < _MAX_JOINED:
                open_row.text, open_row.lines = f"{open_row.text}\n{line}", open_row.lines + 1
                continue
            row = open_row.close(layout, counts)
            open_row = None
            if row is not None:
                yield row
        if len(fields) > width and not fields[-1] and layout.ends:
            fields.pop()
        if len(fields) == width and is_job(fields[job_at]):
            is_behind_row = True
            yield number, fields
        elif not line.strip():
            continue
        elif [name.strip().lower().partition("%")[0] for name in fields[:width]] == layout.names:
            counts.left_out[AGAIN] += 1
        elif len(fields) > width:
            whole = _fit(fields, layout)
            if whole is None:
                counts.bad_line(number, f"{len(fields)} fields where the header has {width}, and no free text in which the others could be")
            else:
                is_behind_row = True
                yield number, whole
        elif len(fields) < width and _begins_row(fields, layout) and layout.free:
            open_row = _OpenRow(number, line)
        elif len(fields) < width and layout.free and is_behind_row and is_last_free:
            counts.left_out[FURTHER] += 1
        elif len(fields) < width:
            counts.bad_line(number, f"{len(fields)} fields where the header has {width}")
        else:
            counts.bad_line(number, f"{fields[job_at][:40]!r} is no job's id")
    if open_row is not None and (row := open_row.close(layout, counts)) is not None:
        yield row


@dataclass(slots=True)
class _OpenRow:
    """A row with too few fields: a new line is in it, and it goes on until a line begins as a row does."""

    number: int
    text: str
    lines: int = 1

    def close(self, layout: _Columns, counts: Count) -> tuple[int, list[str]] | None:
        """The row put together; None, and noted, if it is none."""
        fields = self.text.split(layout.delimiter)
        if layout.ends and not fields[-1]:
            fields.pop()
        whole = _fit(fields, layout)
        if whole is not None:
            return self.number, whole
        found = self.text.partition("\n")[0].count(layout.delimiter) + 1
        counts.bad_line(self.number, f"{found} fields where the header has {layout.width}")
        counts.bad_count += self.lines - 1
        return None


def _begins_row(fields: list[str], layout: _Columns) -> bool:
    """Whether a line begins with what a row begins with."""
    return len(fields) > layout.job and JOB_ID.fullmatch(fields[layout.job]) is not None and (layout.job > 0 or len(fields) > 1)


def _fit(fields: list[str], layout: _Columns) -> list[str] | None:
    """The row with the fields that are too many joined where there is free text, if the other columns then make sense."""
    if len(fields) < layout.width:
        return None
    sensible = (row for row in _joined(fields, layout) if _makes_sense(row, layout))
    return max(sensible, key=lambda row: _filled(row, layout), default=None)


def _joined(fields: list[str], layout: _Columns) -> Iterator[list[str]]:
    """Rows that the fields could be: one column of free text has all that are too many, or two share them."""
    spare, delimiter = len(fields) - layout.width, layout.delimiter

    def row(shares: dict[int, int]) -> list[str]:
        found, at = [], 0
        for place in range(layout.width):
            end = at + shares.get(place, 0) + 1
            found.append(delimiter.join(fields[at:end]))
            at = end
        return found

    if spare == 0:
        yield fields
        return
    for place in layout.free:
        yield row({place: spare})
    for first in layout.free:
        for second in layout.free:
            if first != second:
                for share in range(1, min(spare, _MAX_JOINED)):
                    yield row({first: spare - share, second: share})


def _filled(row: list[str], layout: _Columns) -> tuple[int, int]:
    """How many columns that are no free text say something, and how many are not empty: sacct leaves few of them so."""
    texts = [(row[place], read) for place, read in layout.checks if row[place]]
    return sum(1 for text, read in texts if read(text) is not None), len(texts)


def _makes_sense(row: list[str], layout: _Columns) -> bool:
    if JOB_ID.fullmatch(row[layout.job]) is None:
        return False
    if "." in row[layout.job]:
        return True
    if layout.submit_line >= 0 and row[layout.submit_line].startswith((layout.delimiter, " ")):  # it begins with the command's name
        return False
    try:
        for place, read in layout.checks:
            read(row[place])
    except ValueError:
        return False
    return True


def _record(number: int, fields: list[str], layout: _Columns) -> PastJob:
    values = dict(zip(layout.fields, map(getitem, layout.reads, layout.texts(fields)), strict=True))
    values.setdefault("state", "COMPLETED")
    if layout.exit >= 0:
        values["exit_code"], values["signal"] = layout.exit_code[fields[layout.exit]]
    record = PastJob(number, fields[layout.job], **values)
    if record.submit is None and record.start is None:
        raise ValueError("neither a submit nor a start time")
    return record
