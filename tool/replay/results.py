"""How a replay ends: what it leaves, says and returns, whether it went through or not.

Place: shared by replays of traces and of scenarios. Writes files, prints for people.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from understudy.experiments.metrics import CANCELLED, has_never_started, summarize
from understudy.experiments.records import REJECTED
from understudy.experiments.run_folder import NO_PARQUET, write_run_folder
from understudy.experiments.run_tables import has_parquet
from understudy.experiments.watched import Watched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from understudy.experiments.metrics import Summary
    from understudy.experiments.preview import Preview
    from understudy.experiments.records import JobRecord
    from understudy.tool.cluster.cluster_run import Participant

# the run could not be made, or did not come to its end; or its schedule is not the one expected
FAILED: Final = 1
BAD_USAGE: Final = 2  # the command line is wrong
REFUSED: Final = 3  # jobs were refused
NEVER_STARTED: Final = 4  # jobs were taken and did not start, or did not end
# ours, of real time: within that the cluster has to say what became of the jobs when a run is
# interrupted
GRACE_S: Final = 5.0
INTERRUPTED: Final = "interrupted"
EARLY: Final = "the run ended early: "
_SHOWN: Final = 5


class ReplayError(Exception):
    """The replay could not be run; the text is for the user."""


class UsageError(ReplayError):
    """The command line is wrong; the text names the option."""


class InterruptedRunError(ReplayError):
    """Somebody ended it. `number`: the signal."""

    def __init__(self, text: str, number: int) -> None:
        super().__init__(text)
        self.number = number


@dataclass(slots=True)
class RunResults:
    """What is known of a run. `error`: why it ended early, ""; `signal`: by which signal, 0."""

    records: list[JobRecord] = field(default_factory=list)
    attempts: list[JobRecord] = field(default_factory=list)
    cpus: int = 0  # the machine's
    wall_s: float = 0.0
    simulated_s: float | None = None
    error: str = ""
    signal: int = 0
    faults: dict[str, int] = field(default_factory=dict)  # what has gone wrong
    watched: Watched = field(default_factory=Watched)


@contextlib.contextmanager
def heeding_interrupts(
    participant: Participant, react: Callable[[int], None], abandon: Callable[[int], None]
) -> Iterator[None]:
    """SIGINT or SIGTERM calls `react` where the cluster can be asked, and `abandon` if that has not
    ended the run in time. A second one raises.
    """
    loop = participant.loop
    came: list[int] = []

    def asked(number: int) -> None:
        react(number)
        participant.resume()  # time may stand at a breakpoint, and answers take some

    def interrupted(number: int) -> None:
        loop.run_outside(asked, number)
        loop.call_later_real(GRACE_S, abandon, number)

    def heed(number: int, _frame: object) -> None:
        came.append(number)
        if len(came) > 1:
            raise KeyboardInterrupt(number)
        loop.call_soon_threadsafe(interrupted, number)

    before = {number: signal.signal(number, heed) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def write_results(
    out: Path, results: RunResults, config: Mapping[str, Any], slurm_conf: str, title: str
) -> tuple[Summary, Path]:
    """Write the run's folder, say what came of the jobs, and where the report is."""
    summary = summarize(
        results.records, results.cpus, results.wall_s, results.simulated_s, results.attempts
    )
    if results.error:
        config = {**config, "ended_early": results.error}
    config = {**config, **results.faults}
    report = write_run_folder(
        out,
        results.records,
        summary,
        cpus=results.cpus,
        config=config,
        slurm_conf=slurm_conf,
        title=title,
        attempts=results.attempts,
        watched=results.watched.since(config["zero"]),
    )
    print_jobs_without_a_run(results.records)
    if not has_parquet():
        print(NO_PARQUET, file=sys.stderr)
    print_summary(summary.as_dict())
    for name, count in results.faults.items():
        print(f"{name:22} {count:,}")
    return summary, report


def early_end(error: BaseException, number: int) -> tuple[str, int]:
    """Why the run ended early, and the signal by which, if it was one; `number`: one that has come
    before.
    """
    if not isinstance(error, KeyboardInterrupt):
        return str(error), number
    return INTERRUPTED, number or (error.args[0] if error.args else signal.SIGINT)


def raise_if_ended_early(results: RunResults, out: Path) -> None:
    """Say why the run ended early, and where its results are.

    Raises:
        ReplayError: it did.
    """
    if not results.error:
        return
    text = results.error if results.error.startswith(EARLY) else f"{EARLY}{results.error}"
    text += f"\nWhat became of the jobs by then, and the daemons' logs: {out}"
    raise InterruptedRunError(text, results.signal) if results.signal else ReplayError(text)


def exit_code(summary: Summary) -> int:
    """0 if all jobs ran, but for those that were cancelled before."""
    if summary.refused:
        return REFUSED
    return NEVER_STARTED if summary.never_started or summary.unfinished else 0


def foreseen_code(preview: Preview) -> int:
    """The exit code of a preview: what the run's would be, as far as it is known before."""
    if preview.refused:
        return REFUSED
    return NEVER_STARTED if preview.stuck else 0


def print_jobs_without_a_run(records: Sequence[JobRecord]) -> None:
    """How many jobs were refused and how many did not start, and why."""
    others = [record for record in records if record.start is None or record.end is None]
    refused = [record for record in others if record.state == REJECTED]
    waiting = [record for record in others if has_never_started(record)]
    cancelled = [record for record in others if record.start is None and record.state == CANCELLED]
    unfinished = [record for record in others if record.start is not None]
    for chosen, what in (
        (refused, "were refused"),
        (waiting, "never started"),
        (cancelled, "were cancelled before they started"),
        (unfinished, "have not ended"),
    ):
        if not chosen:
            continue
        print(f"{len(chosen):,} of {len(records):,} jobs {what}", file=sys.stderr)
        if chosen is cancelled:
            continue
        reasons = Counter(record.reason or record.state for record in chosen)
        first = {record.reason or record.state: record for record in reversed(chosen)}
        for reason, count in reasons.most_common(_SHOWN):
            print(f"    {count:,}: {reason}, as job {first[reason].id}", file=sys.stderr)
    if len(refused) == len(records) and records:
        print("all jobs were refused: there is no schedule", file=sys.stderr)


def print_summary(summary: dict[str, Any]) -> None:
    """The figures of a run, one a line."""
    for key, value in summary.items():
        if key == "schedule_sha256":
            continue
        of_how_many = (
            f" (of {summary['ran']:,} jobs)" if key == "mean_wait" and value is not None else ""
        )
        shown = (
            "-" if value is None else f"{value:,.3f}" if isinstance(value, float) else f"{value:,}"
        )
        print(f"{key:22} {shown}{of_how_many}")
    print(f"{'schedule_sha256':22} {summary['schedule_sha256']}", flush=True)
