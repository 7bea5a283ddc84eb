"""The texts of many jobs at once, as `scontrol show jobs` prints them: most differ from many others
by names, paths and times alone, and the rest of the text is made once for all that are alike.

Place: under scontrol; pure, beside `records.py`, whose lines these are.
"""

from operator import itemgetter

from understudy.commands.scontrol.records import job_columns, job_lines, render
from understudy.commands.shared.texts import full_duration, timestamp
from understudy.documents.states import PENDING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COLUMNS = job_columns(details=False)
# what each job has of its own, and what its form therefore has places for
_OWN = [
    "job_id",
    "array_task_id",
    "name",
    "user_name",
    "user_id",
    "priority",
    "alloc_session_id",
    "nodes",
    "batch_host",
    "command",
    "work_dir",
    "std_in",
    "std_out",
    "std_err",
]
_OWN_TIMES = [
    "run_time_s",
    "submit_time",
    "eligible_time",
    "accrue_time",
    "start_time",
    "end_time",
    "last_sched_eval",
    "expected_start",
]
_TIMES = ["run", "submit", "eligible", "accrue", "start", "end", "evaluated"]
# whether there is any decides what else is shown
_MAYBE = ("array_task_id", "user_name", "batch_host", "command", "nodes")
_LIST = "record_flags"
_PLACE = "\0"  # which no value holds
_FEW = 1000  # forms for as many jobs as come: there may be none that are alike

_own = itemgetter(*map(COLUMNS.index, _OWN))
_own_times = itemgetter(*map(COLUMNS.index, _OWN_TIMES))
_state_and_limit = itemgetter(COLUMNS.index("state"), COLUMNS.index("time_limit_s"))
_maybe = itemgetter(*map(_OWN.index, _MAYBE))
_alike = itemgetter(
    *(at for at, name in enumerate(COLUMNS) if name not in {*_OWN, *_OWN_TIMES, _LIST})
)
_list_at = COLUMNS.index(_LIST)


class JobTexts:
    """Makes them, without details."""

    __slots__ = ("_durations", "_forms", "_one_line", "_rows", "_stamps")

    def __init__(self, *, one_line: bool) -> None:
        self._one_line = one_line
        self._rows = 0
        self._forms: dict[object, str] = {}
        self._stamps: dict[float | None, str] = {None: "Unknown"}
        self._durations: dict[int, str] = {}

    def text(self, row: "list[Any]") -> str:
        """As `render` makes it of a row of COLUMNS."""
        own = _own(row)
        task, *others = _maybe(own)
        key = (_alike(row), tuple(row[_list_at]), task is None, *(not text for text in others))
        self._rows += 1
        form = self._forms.get(key)
        if form is None:
            job = dict(zip(COLUMNS, row, strict=True))
            if len(self._forms) >= _FEW + self._rows // 10:
                return render(job_lines(job), one_line=self._one_line)
            form = self._forms[key] = self._form(job)
        return form.format(*own, *self._times(row))

    def _times(self, row: "list[Any]") -> "list[str]":
        """As `times_of` has them."""
        run, submit, eligible, accrue, start, end, evaluated, expected = _own_times(row)
        if start is None:
            state, limit = _state_and_limit(row)
            if state == PENDING and expected is not None:
                start = expected
                end = end if end is not None or limit is None else start + limit
        stamps = self._stamps
        times = []
        for when in (submit, eligible, accrue, start, end, evaluated):
            stamp = stamps.get(when)
            if stamp is None:
                stamp = stamps[when] = timestamp(when)
            times.append(stamp)
        duration = self._durations.get(run)
        if duration is None:
            duration = self._durations[run] = full_duration(run)
        return [duration, *times]

    def _form(self, job: "dict[str, Any]") -> str:
        """With a numbered place for each of the job's own."""
        for number, name in enumerate(_OWN):
            if name not in _MAYBE or job[name] not in (None, ""):
                job[name] = f"{_PLACE}{number}{_PLACE}"
        places = range(len(_OWN), len(_OWN) + len(_TIMES))
        times = {
            name: f"{_PLACE}{number}{_PLACE}" for name, number in zip(_TIMES, places, strict=True)
        }
        whole = render(job_lines(job, times=times), one_line=self._one_line)
        parts = whole.replace("{", "{{").replace("}", "}}").split(_PLACE)
        return "".join(f"{{{part}}}" if at % 2 else part for at, part in enumerate(parts))
