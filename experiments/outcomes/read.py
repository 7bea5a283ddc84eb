"""What became of the jobs of a run, read back from whatever holds it.

Place: below `compare` and `why`; reads files. Of the kinds that there are, each becomes the same
records, in seconds from the zero of its trace:

    run        the folder that `understudy replay --out` writes, its jobs.csv or its jobs.parquet
    history    the folder that `understudy import` writes, or its past.csv
    answers    a file as `understudy replay --answers` takes it, jobs by their places
    recording  a file as real Slurm is recorded with, runN.jsonl, or the result.jsonl of a scenario
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from understudy.experiments import answers
from understudy.experiments.outcomes.recorded import SUFFIX, read_recording
from understudy.experiments.records import JobRecord
from understudy.experiments.run_tables import (
    JOBS,
    RunError,
    read_content,
    read_object,
    read_records,
)
from understudy.experiments.stories import STORIES, KeptStories, Story

PAST: Final = "past.csv"
ATTEMPTS: Final = "attempts.csv"


@dataclass(slots=True, eq=False)
class Run:
    """One run, its jobs in the order of their numbers."""

    path: Path  # as it was named
    kind: str  # run, history, answers, recording
    records: list[JobRecord]
    attempts: list[JobRecord] = field(default_factory=list)  # earlier runs of requeued jobs
    config: dict[str, Any] = field(default_factory=dict)  # config.json; {} where there is none
    utilization: float | None = None  # 0 to 1, where somebody has worked it out
    folder: Path | None = None
    _stories: KeptStories | dict[tuple[str, int], Story] | None = None

    @property
    def zero(self) -> float | None:
        """Second 0, in seconds since the epoch, where the run says so."""
        zero = self.config.get("zero")
        return float(zero) if isinstance(zero, int | float) else None

    @property
    def is_named(self) -> bool:
        """Whether its jobs have ids of the trace's, beside their places."""
        return any(record.id for record in self.records)

    def story(self, record: JobRecord) -> Story:
        """What the run tells of a record; one that is empty where it tells nothing.

        Raises:
            StoriesError: the file of stories is damaged.
        """
        if self._stories is None and self.folder is not None and (self.folder / STORIES).exists():
            self._stories = KeptStories(self.folder / STORIES)
        stories, key = self._stories, (record.id, record.submit)
        found = (
            None
            if stories is None
            else stories.get(key)
            if isinstance(stories, dict)
            else stories.find(*key)
        )
        return Story(record.id, record.submit) if found is None else found


def read_run(path: str | Path) -> Run:
    """The run that is there.

    Raises:
        RunError: it is none, or is damaged.
        OSError: a file cannot be read.
    """
    path = Path(path)
    if not path.is_dir():
        return _of_file(path)
    for name, kind in ((JOBS, "run"), (PAST, "history"), ("jobs.parquet", "run")):
        if (path / name).exists():
            run = Run(path, kind, _records(path / name), folder=path)
            break
    else:
        hint = ""
        if (path / "workload.jsonl").exists():
            hint = "; it is a scenario, which `understudy replay` runs"
            if recordings := sorted(each.name for each in path.glob("run*.jsonl")):
                hint += f"; its recordings are {', '.join(recordings)}"
        raise RunError(f"{path}: no run: it has neither {JOBS} nor {PAST}{hint}")
    if run.kind == "history":
        run.config = read_object(path / "about.json")
        return run
    if (path / ATTEMPTS).exists():
        run.attempts = _records(path / ATTEMPTS, has_runs=True)
    run.config = read_object(path / "config.json")
    found = read_object(path / "summary.json").get("utilization")
    run.utilization = float(found) if isinstance(found, int | float) else None
    return run


def _of_file(path: Path) -> Run:
    content = read_content(path)
    head = content[: content.find(b"\n")].decode("utf-8", "replace").strip()
    if tuple(head.split(",")) == answers.FIELDS:
        return Run(path, "answers", _of_answers(path))
    if path.name.removesuffix(".gz").endswith(SUFFIX):
        recorded = read_recording(path, content)
        stories = {(each.id, each.submit): each for each in recorded.stories}
        header = recorded.header
        config = {"scenario": header.get("workload"), "zero": header.get("t0")}
        if header.get("program"):
            config["recorded_of"] = header["program"]
        return Run(
            path,
            "recording",
            recorded.records,
            recorded.attempts,
            config=config,
            _stories=stories,
        )
    kind = "history" if path.name.startswith("past") else "run"
    return Run(path, kind, _records(path, content))


def _of_answers(path: Path) -> list[JobRecord]:
    try:
        found = answers.read_answers(path)
    except answers.AnswersError as error:
        raise RunError(str(error)) from None
    return [
        JobRecord(job, each.submit, each.start, each.end, "COMPLETED", each.procs, "", each.req)
        for job, each in sorted(found.items())
    ]


def _records(
    path: Path, content: bytes | None = None, *, has_runs: bool = False
) -> list[JobRecord]:
    """In the order of their jobs. While a run goes on its jobs.csv has a line for each run of a
    job: the last counts, unless `has_runs`.
    """
    ordered = sorted(read_records(path, content), key=_order)
    if has_runs:
        return ordered
    last = {(record.job, record.id): record for record in ordered}
    return ordered if len(last) == len(ordered) else list(last.values())


def _order(record: JobRecord) -> tuple[Any, ...]:
    start, end = record.start, record.end
    return (
        record.job,
        record.id,
        record.submit,
        -1 if start is None else start,
        -1 if end is None else end,
        record.state,
    )
