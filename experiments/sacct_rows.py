"""What `sacct -P`, `--parsable` and `--parsable2` write, with whatever columns in whatever order,
as records.

Place: a reader of histories; line by line, so that a file of any length fits. Follows: sacct(1).
sacct does not quote: a bar or a new line within a submission line, a comment or a name makes a row
of more or fewer fields than the header has. Such a row is put together again where that is possible
in one way that makes sense; columns that are no free text tell. Where several ways make as much
sense, it is named and not read, unless they differ in comments, names and submission lines alone; a
submission line in doubt is not used.
"""

from __future__ import annotations

import re
from operator import add, getitem, itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from understudy.experiments import sacct_words as words
from understudy.experiments.past import Count, HistoryError, PastJob
from understudy.experiments.past_options import NO_CHOICES, Choices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    _Worth = tuple[int, ...]  # as of `_worth`

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
# columns without which a row can be used
_MAY_BE_OPEN: Final = ("submitline", "jobname", "comment")
_WORDS: Final = re.compile(r"\S*")
_NUMBER: Final = re.compile(r"[\d.]*[KMGTPE]?")
_TIME: Final = re.compile(r"(\d+-)?[\d:.]*|INVALID")
_CODE: Final = re.compile(r"(\d+:\d+)?")
_TRES: Final = re.compile(r"([^\s=,]+=[^\s=,]*(,(?!$)|$))*")
# What columns look like that are not read, or as what they are: for rows of which it is not sure
# what stands where.
_SHAPES: Final[dict[str, re.Pattern[str]]] = {
    **dict.fromkeys(
        (
            "account",
            "cluster",
            "flags",
            "group",
            "partition",
            "qos",
            "reqgres",
            "reservation",
            "user",
            "wckey",
        ),
        _WORDS,
    ),
    **dict.fromkeys(
        (
            "associd",
            "consumedenergy",
            "consumedenergyraw",
            "cputimeraw",
            "dbindex",
            "ntasks",
            "plannedcpuraw",
        ),
        _NUMBER,
    ),
    **dict.fromkeys(("priority", "qosraw", "reservationid", "resvcpuraw", "wckeyid"), _NUMBER),
    **dict.fromkeys(
        (
            "avecpu",
            "cputime",
            "mincpu",
            "planned",
            "plannedcpu",
            "reserved",
            "resvcpu",
            "systemcpu",
            "totalcpu",
            "usercpu",
        ),
        _TIME,
    ),
    **dict.fromkeys(("alloctres", "reqtres"), _TRES),
    **dict.fromkeys(("derivedexitcode", "exitcode"), _CODE),
    "nodelist": re.compile(r"\S*|none assigned", re.IGNORECASE),
    "reqmem": re.compile(r"[\d.]*[KMGTPE]?[cn]?", re.IGNORECASE),
    **dict.fromkeys(("container", "workdir"), re.compile(r"(/.*)?", re.DOTALL)),
}
_COMMANDS: Final = ("sbatch", "srun", "salloc")
_LONG_AGO: Final = 500_000_000  # before Slurm
_FEATURES: Final = re.compile(r"[\w(\[]([\w.+*&|,:()\[\]-]*[\w)\]])?")
_MAX_JOINED: Final = 50  # lines of one row, and fields too many in it
STEPS: Final = "steps"
AGAIN: Final = "the header again"
FURTHER: Final = "further lines of a submission line or comment"
OTHER_CLUSTER: Final = "of other clusters"
REVOKED: Final = "siblings in a federation that were revoked"
REFUSED: Final = "refused when it was submitted, or requeued before it ran: without nodes"
_TELL_NODES: Final = ("node_list", "alloc_tres")
_NOTHING: Final = (0,) * 6  # of what `_worth` tells
_SURE: Final = 2  # of these, the first so many say how it was
_LIKELY: Final = 3  # and so many how it was most likely
_SHOWN: Final = 40  # characters of a text


def _state(text: str) -> str:
    return words.state(text)


def _text(text: str) -> str:
    return text


def _listed(text: str) -> str:
    return "" if text.lower() in words.NONE_ASSIGNED else text


# Column: the record's field, and how its text is read. Where several say the same, the first that
# is there counts.
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
# values of a column that are remembered: neighbouring jobs have the same ones
_KEPT: Final = 10_000


class _Read(dict[str, Any]):
    """A column's values by the texts for them, each of which is read once while it is
    remembered.
    """

    def __init__(self, read: Callable[[str], Any]) -> None:
        super().__init__()
        self.reads = read

    def __missing__(self, text: str) -> Any:
        value = self.reads(text)
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
        if "eligible" not in places and "submit" in places:  # that it was held nobody says then
            places["eligible"] = places["submit"]
            reads.append(times)
        self.fields, self.reads = tuple(places), tuple(reads)
        # of fewer than two it would give no tuple; what is too much is not read
        self.texts = itemgetter(*places.values(), 0, 0)
        self.exit, self.exit_code = place.get("exitcode", -1), _Read(words.exit_code)
        self.checks = {
            place[column]: _Read(read)
            for column, _, read in _FIELDS
            if read not in (_text, _listed) and column in place
        }
        self.shapes = {place[name]: shape for name, shape in _SHAPES.items() if name in place}
        self.times = {place[name] for name in _TIMES if name in place}
        self.submit = place.get("submit", -1)
        self.used = {*places.values(), self.job, self.cluster, self.exit}
        self.may_be_open = {place[name] for name in _MAY_BE_OPEN if name in place}
        self.has = places.keys()


def header(line: str) -> tuple[list[str], str, bool] | None:
    """The columns' names, what parts them, and whether it ends the line, too (--parsable); None if
    this is no header.
    """
    text = line.rstrip("\r\n")
    parts = _WORD.findall(text)
    if not parts or not text.startswith(parts[0]):
        return None
    if len(parts) == 1:
        return (parts, "|", text.endswith("|")) if text.rstrip("|") == parts[0] else None
    delimiter = text[len(parts[0]) : text.index(parts[1], len(parts[0]))]
    if (
        not delimiter
        or re.search(r"[\w]", delimiter)
        or (delimiter.isspace() and delimiter != "\t")
    ):
        return None
    names = text.split(delimiter)
    ends = names[-1] == ""
    if ends:
        names.pop()
    if all(_WORD.fullmatch(name.partition("%")[0].strip()) for name in names):
        return [name.partition("%")[0] for name in names], delimiter, ends
    return None


def read_rows(
    lines: Iterable[str], counts: Count, choices: Choices = NO_CHOICES
) -> Iterator[PastJob]:
    """Each record of the lines. `counts`: what is not used.

    Raises:
        HistoryError: it is no output of sacct, or with `counts.strict` at the first line that
        cannot be used.
    """
    numbered = enumerate(lines, 1)
    layout = (
        _Columns(choices.columns.split(","), "|", ends=True)
        if choices.columns
        else _find_header(numbered, counts)
    )
    if layout.job < 0:
        raise HistoryError(
            f"{counts.source}: no column JobID among {', '.join(layout.names)}: sacct "
            "needs it in --format"
        )
    if "submit" not in layout.has and "start" not in layout.has:
        raise HistoryError(
            f"{counts.source}: neither a column Submit nor Start: sacct needs it in --format"
        )
    clusters: set[str] = set()
    for number, fields in _rows(numbered, layout, counts):
        job = fields[layout.job]
        if "." in job:
            counts.left_out[STEPS] += 1
            continue
        if layout.cluster >= 0 and fields[layout.cluster]:
            name = fields[layout.cluster]
            if choices.cluster and name != choices.cluster:
                counts.left_out[OTHER_CLUSTER] += 1
                continue
            clusters.add(name)
            if len(clusters) > 1:
                raise HistoryError(
                    f"{counts.source} line {number}: jobs of several clusters "
                    f"({', '.join(sorted(clusters))}): choose one with --cluster"
                )
        try:
            record = _record(number, fields, layout)
        except ValueError as error:
            counts.bad_line(number, str(error))
            continue
        if record.state == "REVOKED":
            counts.left_out[REVOKED] += 1
            continue
        if record.was_refused and not layout.has.isdisjoint(_TELL_NODES):
            counts.left_out[REFUSED] += 1
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
                raise HistoryError(
                    f"{counts.source} line {number}: columns that are cut to a width: run "
                    "sacct with -P"
                )
            raise HistoryError(
                f"{counts.source} line {number}: no header of sacct -P (a job's line, where "
                "--noheader was given: name the columns with --format)"
            )
        names, delimiter, ends = found
        return _Columns(names, delimiter, ends=ends)
    raise HistoryError(f"{counts.source}: empty")


def _rows(
    numbered: Iterator[tuple[int, str]], layout: _Columns, counts: Count
) -> Iterator[tuple[int, list[str]]]:
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


def _put_together(
    lines: list[tuple[int, str]], layout: _Columns, counts: Count, *, is_behind_row: bool
) -> Iterator[tuple[int, list[str]]]:
    """Rows of one line or several, such that fewest lines are left, and of those ways the one that
    makes most rows. The others are counted.
    """
    parted = [_parted(line, layout) for _, line in lines]
    begins = [_begins_row(fields, layout) for fields in parted]
    # from the end: lines left, rows (less is more), lines of the next row
    best: list[tuple[int, int, int, _Fit | None]] = [(0, 0, 0, None)]
    for first in reversed(range(len(lines))):
        left, rows, _, _ = best[-1]
        found: tuple[int, int, int, _Fit | None] = (left + 1, rows, 1, None)
        for count in range(1, len(lines) - first + 1):
            if count > 1 and (begins[first + count - 1] or not layout.free):
                break
            left, rows, _, _ = best[-count]
            if (left, rows - 1) < found[:2]:
                whole = _fit(
                    _parted("\n".join(line for _, line in lines[first : first + count]), layout),
                    layout,
                )
                if whole is not None:
                    found = left, rows - 1, count, whole
        best.append(found)
    at = 0
    while at < len(lines):
        _, _, count, row = best[len(lines) - at]
        if row is None:
            _leave_out(
                lines[at][0],
                parted[at],
                layout,
                counts,
                is_further=is_behind_row and not begins[at],
            )
        elif row.open.keys() - layout.may_be_open:
            counts.bad_line(lines[at][0], _several_ways(row, len(parted[at]), layout))
        else:
            for place in row.doubtful:
                taken = (
                    "the columns are taken alone"
                    if place == layout.submit_line and place in row.open
                    else "the likelier is taken"
                )
                counts.notes[
                    f"bars that may belong to {layout.names[place]} or to another text: {taken}"
                ] += 1
            yield (
                lines[at][0],
                [
                    "" if place == layout.submit_line and place in row.open else text
                    for place, text in enumerate(row.fields)
                ],
            )
        is_behind_row = is_behind_row or row is not None
        at += count


def _begins_row(fields: list[str], layout: _Columns) -> bool:
    """Whether a line begins with what a row begins with."""
    if (
        len(fields) <= layout.job
        or len(fields) == 1
        or JOB_ID.fullmatch(fields[layout.job]) is None
    ):
        return False
    try:
        for place, read in layout.checks.items():
            if place < len(fields) - 1:
                read[fields[place]]
    except ValueError:
        return False
    return True


def _leave_out(
    number: int, fields: list[str], layout: _Columns, counts: Count, *, is_further: bool
) -> None:
    found, width = len(fields), layout.width
    if found > width:
        counts.bad_line(
            number,
            f"{found} fields where the header has {width}, and no free text in which the "
            "others could be",
        )
    elif found == width:
        counts.bad_line(number, f"{fields[layout.job][:40]!r} is no job's id")
    elif is_further and width - 1 in layout.free:
        counts.left_out[FURTHER] += 1
    else:
        counts.bad_line(number, f"{found} fields where the header has {width}")


class _Fit(NamedTuple):
    """A row put together. `open`: columns to which another way, for which as much speaks, gives
    another text; by place, with that text. `doubtful`: those, and the others to which another way
    would give another text that is only less likely.
    """

    fields: tuple[str, ...]
    open: dict[int, str]
    doubtful: dict[int, str]


class _Step(NamedTuple):
    """One way to go on with a column's text: how many of the fields too many are used before it and
    after, and what speaks for all up to there.
    """

    used: int
    worth: _Worth
    after: int
    total: _Worth
    text: str


def _fit(fields: list[str], layout: _Columns) -> _Fit | None:
    """The row with the fields that are too many joined where there is free text, so that the other
    columns make sense; the best of several ways.
    """
    spare = len(fields) - layout.width
    if not 0 <= spare <= _MAX_JOINED or not _may_fit(fields, layout, spare):
        return None
    # by how many of those too many are used
    best: dict[int, tuple[_Worth, tuple[str, ...]]] = {0: (_NOTHING, ())}
    steps: list[list[_Step]] = []  # of each column
    whole = layout.delimiter.join(fields)
    for place in range(layout.width):
        longer: dict[int, tuple[_Worth, tuple[str, ...]]] = {}
        steps.append([])
        for used, (worth, row) in best.items():
            for more in range(spare - used + 1 if place in layout.free else 1):
                text = layout.delimiter.join(fields[place + used : place + used + more + 1])
                adds = _worth(place, text, more, whole, layout)
                if adds is None:
                    continue
                total = tuple(map(add, worth, adds))
                steps[-1].append(_Step(used, worth, used + more, total, text))
                if used + more not in longer or longer[used + more][0] < total:
                    longer[used + more] = total, (*row, text)
        best = longer
    if spare not in best:
        return None
    worth, row = best[spare]
    doubtful = _other_ways(row, steps, worth[:_SURE], spare, layout)
    still_open = _other_ways(row, steps, worth[:_LIKELY], spare, layout) if doubtful else {}
    if layout.job in doubtful:  # a step's would not be missed
        still_open[layout.job] = doubtful[layout.job]
    is_step = "." in row[layout.job] and layout.job not in still_open
    return _Fit(row, {}, {}) if is_step else _Fit(row, still_open, doubtful)


def _other_ways(
    row: tuple[str, ...], steps: list[list[_Step]], worth: _Worth, spare: int, layout: _Columns
) -> dict[int, str]:
    """The columns to which other ways that are worth as much, as far as is asked, give other texts,
    and one of those texts for each.
    """
    # what must speak for all that comes before, by how many of those too many are used there
    needed = {spare: worth}
    found: dict[int, str] = {}
    for place in reversed(range(layout.width)):
        as_good = [
            step for step in steps[place] if needed.get(step.after) == step.total[: len(worth)]
        ]
        found.update(
            (place, step.text)
            for step in as_good
            if place in layout.used and step.text != row[place]
        )
        needed = {step.used: step.worth[: len(worth)] for step in as_good}
    return found


def _several_ways(fit: _Fit, count: int, layout: _Columns) -> str:
    """What is said of a row that is not read."""
    place = min(fit.open.keys() - layout.may_be_open)
    one, other = (
        text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        for text in (fit.fields[place], fit.open[place])
    )
    return (
        f"{count} fields where the header has {layout.width}, and several ways to join "
        f"them: {layout.names[place]} may be {one!r} or {other!r}"
    )


def _may_fit(fields: list[str], layout: _Columns, spare: int) -> bool:
    """Whether there is any way: quick, since most lines that are no row have none."""
    shifts = {0}  # how many of those too many may be used before the column
    for place in range(layout.width):
        if place in layout.free:
            shifts = set(range(min(shifts), spare + 1))
        elif place == layout.job or place in layout.checks:
            shifts = {
                shift
                for shift in shifts
                if _worth(place, fields[place + shift], 0, "", layout) is not None
            }
            if not shifts:
                return False
    return spare in shifts


def _worth(place: int, text: str, more: int, whole: str, layout: _Columns) -> _Worth | None:
    """What speaks for a column's text of which `more` delimiters are a part, the most important
    first; None: it makes no sense.

    For sure: texts that are read, and such as are an option in the submission line, too. Likely: a
    text does not begin or end with a delimiter. For a guess: texts that are not empty, as sacct
    leaves few so; few columns with delimiters, and those in which they are most often.
    """
    if place == layout.job:
        return _NOTHING if JOB_ID.fullmatch(text) else None
    shape = layout.shapes.get(place)
    if shape is not None and not shape.fullmatch(text):
        return None
    read = layout.checks.get(place)
    if read is not None:
        try:
            value = read[text]
        except ValueError:
            return None
        is_known = value is not None
        if (read.reads is words.count and text and not is_known) or (
            place == layout.submit and not is_known
        ):
            return None
        if is_known and place in layout.times and value < _LONG_AGO:
            return None
        return (int(bool(text) and is_known), 0, 0, int(bool(text)), 0, 0)
    # it begins with the command's name
    if place == layout.submit_line and text.startswith((layout.delimiter, " ")):
        return None
    if place != layout.constraints and not more:
        return _NOTHING
    word = re.escape(text) + rf"(?=\s|{re.escape(layout.delimiter)}|$)"
    if place == layout.constraints:
        if not _is_feature_list(text):
            return None
        is_option = (
            bool(text) and re.search(rf"\s(-C\s?|--constraint[= ]){word}", whole) is not None
        )
        return (0, int(is_option), 0, 0, -int(more > 0), -layout.free[place] if more else 0)
    if place == layout.submit_line and not _begins_with_command(text, layout.delimiter):
        return None
    is_ragged = text.startswith(layout.delimiter) or text.endswith(layout.delimiter)
    is_option = not is_ragged and re.search(rf"[\s=]{word}", whole) is not None
    return (0, int(is_option), -int(is_ragged), 0, -1, -layout.free[place])


def _begins_with_command(text: str, delimiter: str) -> bool:
    word = text.split(maxsplit=1)[0]
    return delimiter not in word and any(command in word for command in _COMMANDS)


def _is_feature_list(text: str) -> bool:
    return not text or (
        _FEATURES.fullmatch(text) is not None
        and text.count("[") == text.count("]")
        and text.count("(") == text.count(")")
    )


def _record(number: int, fields: list[str], layout: _Columns) -> PastJob:
    values = dict(zip(layout.fields, map(getitem, layout.reads, layout.texts(fields)), strict=True))
    values.setdefault("state", "COMPLETED")
    if layout.exit >= 0:
        values["exit_code"], values["signal"] = layout.exit_code[fields[layout.exit]]
    record = PastJob(number, fields[layout.job], **values)
    if record.submit is None and record.start is None:
        raise ValueError("neither a submit nor a start time")
    return record
