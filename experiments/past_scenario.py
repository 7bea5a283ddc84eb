"""A scenario made of past jobs: submissions with their options, and what was done to jobs while
they waited or ran.

Place: pure; readers of histories hand it records, `understudy import` writes what comes of it.
Submission lines are read by a function that is handed in, since the table of sbatch's options
belongs to the commands.

- Records of one array, of one heterogeneous job, and of the runs of one that was requeued, become
  one submission, at the time of the first.
- A job that was cancelled while it waited is cancelled at the same time; one that was cancelled
  while it ran is, after as long a run.
- A job that ran into its limit runs until the limit ends it. Where the history does not say how
  long a job would have run (it was preempted, its node failed, it runs or waits at the end), that
  is assumed and counted.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from understudy.experiments.past import UNLIMITED, Count, PastJob
from understudy.experiments.past_groups import (
    JOB_ID,
    RUNS,
    grouped,
    job_number,
    submit_time,
    window_advice,
)
from understudy.experiments.past_options import Mapped, Options
from understudy.model.hostlist import compress, expand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from understudy.experiments.past_groups import Group
    from understudy.experiments.past_options import Defaults

    ReadLine = Callable[[str], list[dict[str, str | None]] | None]

WAITING: Final = frozenset(("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"))
# how much longer than its limit a job would have run that ran into it
BEYOND_LIMIT_S: Final = 86_400
UNKNOWN_RUN_S: Final = 3_600  # a job of which neither run nor limit is known
CANCELLED_WHILE_PENDING: Final = frozenset(
    ("CANCELLED", "DEADLINE", "FAILED", "BOOT_FAIL", "NODE_FAIL")
)
# of the columns of jobs.csv those that a history knows
PAST_FIELDS: Final = (
    "job",
    "submit",
    "start",
    "end",
    "state",
    "cpus",
    "nodes",
    "req_time",
    "id",
    "name",
    "user",
    "account",
    "partition",
    "qos",
    "eligible",
    "node_count",
    "exit_code",
    "restarts",
)
_OF_LINES: Final = ("account", "partition", "qos", "reservation")
_THROTTLE: Final = re.compile(r"(?:--array[= ]|-a ?)\S*(%\d+)")
_DEPENDENCY_JOB: Final = re.compile(r"(\d+)(_\d+|_\*)?(\+\d+)?")


@dataclass(slots=True)
class PastScenario:
    """What is written: the objects of workload.jsonl and events.jsonl, the calendar's instant of
    second 0, and who is named.
    """

    zero: int
    workload: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    # name: uid, gid, group as far as known
    users: dict[str, dict[str, Any]] = field(default_factory=dict)
    # (user, account) in order
    associations: dict[tuple[str, str], None] = field(default_factory=dict)
    # name: who used it as whom
    qos: dict[str, dict[tuple[str, str], None]] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)  # name: submissions
    until: int = 0
    advice: str = ""
    # rows of PAST_FIELDS: what really became of each job, its tasks and components one by one
    past: list[tuple[Any, ...]] = field(default_factory=list)


def make_scenario(
    records: Iterable[PastJob],
    counts: Count,
    read_line: ReadLine,
    *,
    mapped: Mapped | None = None,
    since: int | None = None,
    until: int | None = None,
    reservations: Mapping[str, Sequence[tuple[int, int]]] | None = None,
    defaults: Defaults | None = None,
) -> PastScenario:
    """Make it.

    `since`: the scenario begins then, with the jobs that run and wait; `until`: later submissions
    are left out; `reservations`: when they began and ended, where that is known; `defaults`: of
    memory, where the configuration is known.
    """
    groups = grouped(records, counts)
    options = Options(mapped or Mapped(), counts, expand, defaults)
    maker = _Maker(counts, read_line, options, mapped or Mapped(), since, until, reservations or {})
    return maker.make(groups)


class _Maker:
    def __init__(
        self,
        counts: Count,
        read_line: ReadLine,
        options: Options,
        mapped: Mapped,
        since: int | None,
        until: int | None,
        reservations: Mapping[str, Sequence[tuple[int, int]]],
    ) -> None:
        self._counts, self._read_line, self._asked = counts, read_line, options
        self._mapped = mapped
        self._since, self._until = since, until
        self._times_of_reservations = reservations
        self._known: dict[str, int] = {}  # submission: its instant
        # submissions of which nobody knows how they would have ended
        self._ends_well_perhaps: set[str] = set()
        self._reserved: dict[str, list[tuple[PastJob, int]]] = defaultdict(list)
        self._zero = 0
        self._lines: dict[str, list[dict[str, str | None]] | None] = {}
        # who and where of a job, once noted: the user's name, the partitions
        self._noted: dict[tuple[Any, ...], tuple[str, list[str]]] = {}

    def make(self, groups: list[Group]) -> PastScenario:
        kept = [group for group in groups if self._wanted(group)]
        advice = "" if self._since is not None else window_advice(group.records for group in kept)
        first = min((submit_time(group.records[0]) for group in kept), default=0)
        self._zero = zero = first if self._since is None else self._since
        scenario = PastScenario(zero, advice=advice)
        # Who runs comes before who waits, and that before what is submitted.
        kept.sort(
            key=lambda group: (
                max(submit_time(group.records[0]), zero),
                not self._ran_at_zero(group),
                submit_time(group.records[0]),
                job_number(group.job),
            )
        )
        for group in kept:
            self._known[group.job] = submit_time(group.records[0])
            if any(_may_end_well(each) for each in group.last.values()):
                self._ends_well_perhaps.add(group.job)
        for group in kept:
            submission = self._submission(group, scenario)
            if submission is not None:
                scenario.workload.append(submission)
            group.records = []  # a long history's records and lines need not be there together
        self._reservations(scenario)
        scenario.events.sort(key=lambda event: event["at"])
        scenario.until = max(
            [
                *(int(line["at"]) for line in scenario.workload),
                *(int(event["at"]) for event in scenario.events),
            ],
            default=0,
        )
        return scenario

    def _wanted(self, group: Group) -> bool:
        counts = self._counts
        submit = submit_time(group.records[0])
        if self._until is not None and submit >= self._until:
            counts.left_out["submitted after --until"] += len(group.records)
            return False
        if self._since is not None:
            left = [
                record for record in group.records if record.end is None or record.end > self._since
            ]
            counts.left_out["ended before --from"] += len(group.records) - len(left)
            group.records = left
        return bool(group.records)

    def _ran_at_zero(self, group: Group) -> bool:
        return self._since is not None and any(
            self._left_by_zero(record) is not None for record in group.records
        )

    def _left_by_zero(self, record: PastJob) -> int | None:
        """Seconds that the job had run when the scenario begins; None if it did not run then."""
        if (
            self._since is None
            or not record.has_run
            or record.start is None
            or record.start >= self._since
        ):
            return None
        return self._since - record.start

    # --- one submission ---------------------------------------------------------------------------

    def _submission(self, group: Group, scenario: PastScenario) -> dict[str, Any] | None:
        records = group.records
        at = max(0, submit_time(records[0]) - self._zero)
        final = self._final_runs(group, scenario)
        first = final[0]
        groups = self._said(first)
        if groups is None and first.submit_line:
            self._counts.notes[
                "a submission line that no command of Slurm's takes: the columns are taken alone"
            ] += 1
        is_het = any("+" in record.job for record in final)
        if is_het:
            final.sort(key=lambda record: _component(record.job))
        if groups is not None:
            _fill(final, groups, is_het=is_het)
        if is_het:
            options: list[str] = []
            for place, record in enumerate(final):
                said = groups[place] if groups is not None and place < len(groups) else None
                options += [":"] if place else []
                options += self._options(group, record, said, len(final) > 1)
            line = self._line(group, scenario, at, final[0])
            self._behave(line, final, None, group, scenario)
        else:
            said = groups[0] if groups else None
            typed = said.get("array") if said else None
            options = _with_least_time(self._options(group, first, said, False), final, said)
            line = self._line(group, scenario, at, first)
            tasks = self._tasks(final, typed or "")
            if tasks is not None:
                options.insert(0, f"--array={tasks}")
            self._behave(line, final, tasks, group, scenario)
        if (
            (before := self._left_by_zero(first)) is not None
            and not is_het
            and "_" not in first.job
        ):
            options = self._goes_on(options, first, before)
        line["options"] = options
        self._happened(group, final, scenario)
        for record in final:
            if record.reservation and self._mapped.one("reservation", record.reservation):
                self._reserved[record.reservation].append((record, at))
        return line

    def _line(
        self, group: Group, scenario: PastScenario, at: int, record: PastJob
    ) -> dict[str, Any]:
        user, partitions = self._noted_of(record, scenario)
        for name in partitions:
            scenario.partitions[name] = scenario.partitions.get(name, 0) + 1
        line: dict[str, Any] = {"id": group.job, "at": at, "user": user, "run": 0}
        if record.name and record.name != group.job:
            line["name"] = record.name
        return line

    def _noted_of(self, record: PastJob, scenario: PastScenario) -> tuple[str, list[str]]:
        """The user's name and the partitions, noted in the scenario."""
        who = (
            record.user,
            record.uid,
            record.gid,
            record.group,
            record.account,
            record.qos,
            record.partition,
        )
        noted = self._noted.get(who)
        if noted is None:
            noted = self._noted[who] = self._note(record, scenario)
        return noted

    def _note(self, record: PastJob, scenario: PastScenario) -> tuple[str, list[str]]:
        """Note the user, the account and the QOS; the user's name and the partitions in the
        scenario.
        """
        user = self._user(record)
        about = scenario.users.setdefault(user, {})
        for key, value in (("uid", record.uid), ("gid", record.gid), ("group", record.group)):
            if value not in (None, "") and key not in about:
                about[key] = value
        account = self._mapped.one("account", record.account)
        if account:
            scenario.associations[user, account] = None
        qos = self._mapped.one("qos", record.qos)
        if qos:
            scenario.qos.setdefault(qos, {})[user, account] = None
        partition = self._mapped.partition or self._mapped.listed("partition", record.partition)
        return user, partition.split(",") if partition else []

    def _user(self, record: PastJob) -> str:
        """The user's name, or one for who has none in the history."""
        return self._mapped.one("user", record.user) or (
            f"uid{record.uid}" if record.uid is not None else "unknown"
        )

    def _final_runs(self, group: Group, scenario: PastScenario) -> list[PastJob]:
        """The last record of each task or component, in order. Earlier runs that a user ended are
        ended again.
        """
        last: dict[str, PastJob] = {}
        for record in group.records:
            before = last.get(record.job)
            if before is not None:
                self._earlier_run(group, before, record, scenario)
            last[record.job] = record
        return list(last.values())

    def _earlier_run(
        self, group: Group, run: PastJob, again: PastJob, scenario: PastScenario
    ) -> None:
        counts = self._counts
        if run.state == "RESIZING" or (
            run.end is not None
            and again.start == run.end
            and submit_time(run) == submit_time(again)
        ):
            counts.notes["the size changed while it ran: the last one is taken"] += 1
            again.start = run.start
            again.elapsed = (again.elapsed or again.ran_s) + run.ran_s
            return
        # of the submission; a requeued job is held back by Slurm itself
        again.eligible = run.eligible
        if run.state in ("PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED"):
            counts.notes[
                f"a run before the last ended {run.state}, which a replay does not repeat by itself"
            ] += 1
        elif run.end is not None:
            counts.notes["requeued by hand, which is repeated at its time"] += 1
            whose = (
                "{" + group.job + "}" + (run.job[run.job.index("_") :] if "_" in run.job else "")
            )
            scenario.events.append(
                {"at": max(0, run.end - self._zero) + 0.5, "cmd": ["scontrol", "requeue", whose]}
            )

    # --- what it asked for ------------------------------------------------------------------------

    def _said(self, record: PastJob) -> list[dict[str, str | None]] | None:
        if not record.submit_line:
            return None
        found = self._lines.get(record.submit_line)
        if found is None and record.submit_line not in self._lines:
            found = self._read_line(record.submit_line)
            if len(self._lines) > 10_000:  # most lines are typed again soon, or never
                self._lines.clear()
            self._lines[record.submit_line] = found
        return [dict(each) for each in found] if found is not None else None

    def _options(
        self, group: Group, record: PastJob, said: dict[str, str | None] | None, is_het: bool
    ) -> list[str]:
        before: list[str] = []
        if said is not None:
            said.pop("array", None)
            typed = said.pop("dependency", None)
            if typed:
                text = self._dependency(group, typed)
                if text:
                    before.append(f"--dependency={text}")
            is_held, begin = "hold" in said, said.pop("begin", None)
            said.pop("hold", None)
            if said.get("deadline") and self._since is not None:
                said.pop("deadline")
            later = self._begins_later(record)
            if is_held and (record.eligible is None or not later) and not record.has_run:
                before.append("--hold")
            elif later and (begin or is_held):
                before.append(f"--begin=now+{later}")
        elif (
            not record.submit_line
            and (later := self._begins_later(record))
            and "_" not in record.job
            and not is_het
        ):
            self._counts.notes[
                "eligible after it was submitted, without a submission line to say why: --begin"
            ] += 1
            before.append(f"--begin=now+{later}")
        elif (
            record.eligible is None
            and not record.has_run
            and record.state == "CANCELLED"
            and said is None
        ):
            before.append("--hold")
        return before + self._asked.of(record, said)

    def _begins_later(self, record: PastJob) -> int:
        """Seconds from its submission in the scenario until it is eligible."""
        if record.eligible is None or record.submit is None:
            return 0
        return (
            max(0, record.eligible - max(record.submit, self._zero))
            if record.eligible > record.submit + 1
            else 0
        )

    def _dependency(self, group: Group, text: str) -> str:
        """With ids of submissions for ids of jobs; conditions on jobs that the history does not
        have, or that are over by then, are left out.
        """
        mine = self._known[group.job]
        separator = "?" if "?" in text else ","
        kept = []
        for part in text.split(separator):
            kind, colon, listed = part.partition(":")
            if kind.isdigit():  # the old form without a kind
                kind, colon, listed = "afterany", ":", part
            if not colon:
                kept.append(part)
                continue
            jobs = []
            ids = {one.partition("+")[0].partition("_")[0] for one in listed.split(":")}
            if kind == "afternotok" and ids & self._ends_well_perhaps:
                kind = "afterany"  # if they run they end well, as nothing is known of them
            for one in listed.split(":"):
                job, plus, delay = one.partition("+")
                match = _DEPENDENCY_JOB.fullmatch(job)
                if match is None or self._known.get(match[1], mine + 1) > mine:
                    self._counts.notes[
                        "dependent on jobs that are not in the history, or over when it "
                        "begins: those conditions are left out"
                    ] += 1
                    continue
                task = match[2] or ""
                jobs.append("{" + match[1] + "}" + ("" if task == "_*" else task) + plus + delay)
            if jobs:
                kept.append(f"{kind}:{':'.join(jobs)}")
        return separator.join(kept)

    def _tasks(self, records: Sequence[PastJob], typed: str) -> str | None:
        """The array's expression; None if it is none. Its tasks are those that are on record, of
        those that were `typed`.
        """
        if not any("_" in record.job for record in records):
            return None
        numbers: set[int] = set()
        throttle = ""
        for record in records:
            match = JOB_ID.fullmatch(record.job)
            assert match is not None
            if match[2] is not None:
                numbers.add(int(match[2]))
            elif match[3] is not None:
                expression, percent, most = match[3].partition("%")
                throttle = throttle or percent + most
                numbers.update(self._task_numbers(expression))
        for line in () if throttle else dict.fromkeys(record.submit_line for record in records):
            found = _THROTTLE.search(line)
            throttle = throttle or (found[1] if found else "")
        missing = (
            len(set(self._task_numbers(typed.partition("%")[0])) - numbers)
            if typed and self._since is None
            else 0
        )
        if missing:
            self._counts.notes[
                "a task of an array that the submission line names and no record tells of "
                "(cancelled before its turn?): left out"
            ] += missing
        return _spans(sorted(numbers)) + (throttle if throttle != "%0" else "")

    def _task_numbers(self, expression: str, *, is_counted: bool = False) -> list[int]:
        """`is_counted`: what cannot be read has been counted before."""
        found: list[int] = []
        for part in expression.split(","):
            match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part)
            if match is None and is_counted:
                continue
            if match is None:
                self._counts.notes[
                    "waiting tasks whose numbers sacct cut short (SLURM_BITSTR_LEN=0 "
                    "shows all): those are left out"
                ] += 1
                continue
            found += range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1))
        return found

    # --- how it behaves ---------------------------------------------------------------------------

    def _behave(
        self,
        line: dict[str, Any],
        records: Sequence[PastJob],
        tasks: str | None,
        group: Group,
        scenario: PastScenario,
    ) -> None:
        if tasks is None:
            longest = max(records, key=lambda record: record.ran_s)
            line["run"] = self._run(longest)
            self._ending(
                line,
                next(
                    (
                        record
                        for record in records
                        if record.exit_code or record.signal or record.state != "COMPLETED"
                    ),
                    longest,
                ),
                None,
            )
            self._cancel(records[0], "{" + group.job + "}", scenario)
            return
        runs: dict[str, int] = {}
        matches = [JOB_ID.fullmatch(record.job) for record in records]
        # The record of the tasks that wait keeps the numbers of those that have begun since.
        alone = {match[2] for match in matches if match is not None}
        for record, match in zip(records, matches, strict=True):
            assert match is not None
            whose = "{" + group.job + "}_"
            if match[2] is not None:
                of, whose = [match[2]], whose + match[2]
            else:
                waiting = self._task_numbers((match[3] or "").partition("%")[0])
                of = [str(number) for number in waiting if str(number) not in alone]
                whose += f"[{_spans([int(number) for number in of])}]"
            run = self._run(record)
            for number in of:
                runs[number] = run
                self._ending(line, record, number)
            if of:
                self._cancel(record, whose, scenario)
        line["run"] = runs if len(set(runs.values())) > 1 else next(iter(runs.values()), 0)

    def _run(self, record: PastJob) -> int:
        counts = self._counts
        if record.suspended and record.has_run:
            counts.notes["suspended meanwhile, which a replay does not repeat by itself"] += 1
        before = self._left_by_zero(record) or 0
        limit = record.limit_min
        limit_s = limit * 60 if limit is not None and limit >= 0 else None
        if record.state in RUNS and record.end is None:
            counts.notes[
                "running when the history ends: for as long as it may, or an hour more"
            ] += 1
            return max(
                1, (limit_s if limit_s is not None else record.ran_s + UNKNOWN_RUN_S) - before
            )
        if not record.has_run:
            if record.state in WAITING:
                counts.notes[
                    "waiting when the history ends: to run for as long as it may, or an hour"
                ] += 1
            return limit_s if limit_s is not None else UNKNOWN_RUN_S
        if record.state == "TIMEOUT":
            return max(record.ran_s, limit_s or 0) - before + BEYOND_LIMIT_S
        if record.state in ("PREEMPTED", "NODE_FAIL", "BOOT_FAIL"):
            counts.notes[f"ended {record.state}: to run as long as it did then"] += 1
        if record.end is None and record.elapsed is None:
            counts.notes["no time to tell how long it ran: for as long as it may, or an hour"] += 1
            return max(1, (limit_s if limit_s is not None else UNKNOWN_RUN_S) - before)
        return max(0 if not before else 1, record.ran_s - before)

    def _ending(self, line: dict[str, Any], record: PastJob, task: str | None) -> None:
        """The exit code, and whether somebody or something ended it while it ran."""
        if record.state == "TIMEOUT" or not record.has_run:
            return
        if _is_requeued(record):  # by its exit code, which its next run need not have
            self._counts.notes["requeued when the history ends: its next run ends well"] += 1
            return
        ending: dict[str, Any] = {}
        if record.state == "CANCELLED":
            ending["ended"] = "cancelled"
        elif record.state == "OUT_OF_MEMORY":
            ending["ended"] = "memory"
        elif record.signal:
            ending["signal"] = record.signal
        if record.exit_code and record.state != "OUT_OF_MEMORY":
            ending["exit"] = record.exit_code
        elif record.state in ("FAILED", "NODE_FAIL", "BOOT_FAIL") and not record.signal:
            ending["exit"] = 1
        for key, value in ending.items():
            if task is None:
                line[key] = value
            else:
                line.setdefault(key, {})[task] = value

    def _cancel(self, record: PastJob, whose: str, scenario: PastScenario) -> None:
        if record.has_run or record.end is None or record.state not in CANCELLED_WHILE_PENDING:
            return
        if (
            record.state == "DEADLINE"
            and "--deadline" in record.submit_line
            and self._since is None
        ):
            return  # its own one ends it
        # Half a second later than accounting says in whole ones: who cancels in the second of the
        # submission comes behind it.
        event = {"at": max(0, record.end - self._zero) + 0.5, "cmd": ["scancel", whose]}
        if event not in scenario.events[-3:]:
            scenario.events.append(event)

    def _goes_on(self, options: list[str], record: PastJob, before: int) -> list[str]:
        """A job that ran when the scenario begins: on its nodes, for the rest of its time."""
        self._counts.notes[
            "running when the scenario begins: to start then on its nodes for the rest of its time"
        ] += 1
        dropped = (
            "--dependency",
            "--begin",
            "--nodes=",
            "--nodelist",
            "--time=",
            "--time-min",
            "--hold",
            "--deadline",
            "--switches",
            "--contiguous",
            "--exclude",
        )
        kept = [option for option in options if not option.startswith(dropped)]
        limit = record.limit_min
        if limit is not None and limit >= 0:
            kept.append(f"--time={max(1, -(-(limit * 60 - before) // 60))}")
        elif limit == UNLIMITED:
            kept.append("--time=UNLIMITED")
        if record.node_list:
            try:
                names = [
                    name
                    for name in (
                        self._mapped.one("node", host) for host in expand(record.node_list)
                    )
                    if name
                ]
            except ValueError:
                return kept
            kept += [f"--nodes={len(names)}", f"--nodelist={compress(names)}"]
        return kept

    # --- what really happened ---------------------------------------------------------------------

    def _happened(self, group: Group, final: Sequence[PastJob], scenario: PastScenario) -> None:
        """Note the last run of each task and component under the id that it has in a replay, in
        times of the scenario: who ran when that begins is submitted, and starts, then.
        """
        runs = Counter(record.job for record in group.records)
        for place, record in enumerate(final):
            match = JOB_ID.fullmatch(record.job)
            assert match is not None
            names = [group.job]
            if match[2] is not None:
                names = [f"{group.job}_{int(match[2])}"]
            elif match[3] is not None:
                tasks = self._task_numbers(match[3].partition("%")[0], is_counted=True)
                names = [f"{group.job}_{task}" for task in tasks]
            elif "+" in record.job and place:
                names = [f"{group.job}+{place}"]
            for name in names:
                row = self._past_row(record, name, runs[record.job] - 1, scenario)
                scenario.past.append((len(scenario.past) + 1, *row))

    def _past_row(
        self, record: PastJob, name: str, restarts: int, scenario: PastScenario
    ) -> tuple[Any, ...]:
        """PAST_FIELDS without the first."""
        user, partitions = self._noted_of(record, scenario)
        has_run, zero = record.has_run and record.start is not None, self._zero
        has_ended = has_run and record.end is not None
        limit = record.limit_min
        return (
            max(0, submit_time(record) - zero),
            max(0, (record.start or 0) - zero) if has_run else None,
            max(0, (record.end or 0) - zero) if has_ended else None,
            record.state,
            (record.cpus if has_run else record.req_cpus or record.cpus) or 0,
            record.node_list if has_run else "",
            -1 if limit is None or limit < 0 else limit * 60,
            name,
            record.name,
            user,
            self._mapped.one("account", record.account),
            ",".join(partitions),
            self._mapped.one("qos", record.qos),
            None if record.eligible is None else max(0, record.eligible - zero),
            (record.nodes or 0) if has_run else 0,
            f"{record.exit_code}:{record.signal}" if has_ended else "",
            restarts,
        )

    # --- reservations -----------------------------------------------------------------------------

    def _reservations(self, scenario: PastScenario) -> None:
        """Reservations that jobs used are made as far as the jobs tell of them: their users, their
        nodes. From when to when, where that is not known: from the first start until twice as long
        as the job that might have run longest, as one starts only where its limit ends before.
        """
        for name, uses in self._reserved.items():
            ran = [
                record
                for record, _ in uses
                if record.has_run and record.node_list and record.start is not None
            ]
            new = self._mapped.one("reservation", name)
            if not ran:
                self._counts.notes[
                    "a reservation in which no job ran: it is not made, and the option is left out"
                ] += len(uses)
                for line in scenario.workload:
                    line["options"] = [
                        option for option in line["options"] if option != f"--reservation={new}"
                    ]
                continue
            hosts: dict[str, None] = {}
            for record in ran:
                for host in expand(record.node_list):
                    if mapped := self._mapped.one("node", host):
                        hosts[mapped] = None
            began = min(record.start or 0 for record in ran)
            ended = max(
                max(record.end or 0, (record.start or 0) + self._run_limit(record))
                for record in ran
            )
            known = [
                each
                for each in self._times_of_reservations.get(name, ())
                if each[0] <= ended and each[1] >= began
            ]
            at = min(at for _, at in uses)
            if known:
                at = min(at, max(0, min(each[0] for each in known) - self._zero))
                began, ended = min(each[0] for each in known), max(each[1] for each in known)
            else:
                ended += ended - began
            start, end = max(at, began - self._zero), ended - self._zero
            users = dict.fromkeys(self._user(record) for record, _ in uses)
            words = [
                f"reservationname={new}",
                f"starttime=@{start}",
                f"endtime=@{max(end, start + 60)}",
                f"nodes={compress(list(hosts))}",
            ]
            words += [f"users={','.join(users)}", "flags=ignore_jobs,overlap"]
            scenario.events.append({"at": at, "cmd": ["scontrol", "create", "reservation", *words]})
            self._counts.notes["a reservation, which is made of what its jobs tell"] += len(uses)

    def _run_limit(self, record: PastJob) -> int:
        return (
            record.limit_min * 60
            if record.limit_min is not None and record.limit_min > 0
            else UNKNOWN_RUN_S
        )


def _fill(
    records: Sequence[PastJob], groups: Sequence[dict[str, str | None]], *, is_het: bool
) -> None:
    """What columns that the history does not have would say of where a job ran is what its
    submission line says.
    """
    for place, record in enumerate(records):
        said = groups[place if is_het else 0] if place < len(groups) or not is_het else {}
        for name in _OF_LINES:
            if not getattr(record, name) and said.get(name):
                setattr(record, name, said[name])


def _with_least_time(
    options: list[str], records: Sequence[PastJob], said: dict[str, str | None] | None
) -> list[str]:
    """Of an array without a submission line, of which backfill gave some tasks less time than
    others have: it was content with less (--time-min).
    """
    limits = [record.limit_min or 0 for record in records]
    if said is not None or min(limits) <= 0:
        return options
    least = min(
        (
            limit
            for limit, record in zip(limits, records, strict=True)
            if record.has_run and "SchedMain" not in record.flags
        ),
        default=max(limits),
    )
    if least == max(limits):
        return options
    kept = [option for option in options if not option.startswith("--time=")]
    return [*kept, f"--time={max(limits)}", f"--time-min={least}"]


def _is_requeued(record: PastJob) -> bool:
    """Whether the history ends, for the job, when its exit code has had it requeued."""
    return record.state == "REQUEUED" and record.has_run


def _may_end_well(record: PastJob) -> bool:
    """Whether it does so in a replay, if it runs, though in the history it did not."""
    return _is_requeued(record) or not record.has_run or record.state == "PREEMPTED"


def _component(job: str) -> int:
    return int(job.partition("+")[2] or 0)


def _spans(numbers: list[int]) -> str:
    """`1-4,7`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
