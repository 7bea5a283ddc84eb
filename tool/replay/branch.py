"""What `understudy branch` does: a replay that runs to an instant, and goes on from there in
several futures, each of which leaves a run's folder.

Place: beside traces.py and scenarios.py, whose runs these are; forks.py has the copies.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from understudy.experiments.futures import ORIGINAL, FuturesError, check_names
from understudy.experiments.scenario import named_jobs, read_scenario
from understudy.tool.replay.conf import edits_of
from understudy.tool.replay.forks import Forks, FutureResult, Instant
from understudy.tool.replay.results import UsageError
from understudy.tool.replay.scenarios import replay_scenario
from understudy.tool.replay.traces import replay

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from understudy.experiments.futures import Future
    from understudy.tool.replay.request import ReplayRequest


@dataclass(frozen=True, slots=True)
class BranchRequest:
    """What the user asked for.

    `replay` is the run (its `out` is not used), `at` the instants at which it is forked (30d, or
    2000-01-31T12:00:00), `out` the folder in which each future has one by its name. `most`: how
    many go on at once; None: one for each CPU.
    """

    replay: ReplayRequest
    at: tuple[str, ...]
    futures: tuple[Future, ...]
    out: Path
    most: int | None = None


@dataclass(frozen=True, slots=True)
class BranchOutcome:
    """What came of it. `code`: of all together; `original` is the unchanged run, `futures` the
    others, instant by instant in the order in which they were asked for.
    """

    code: int
    original: FutureResult
    futures: list[FutureResult] = field(default_factory=list)

    @property
    def began_s(self) -> float | None:
        """Real seconds until all futures of an instant had begun, of the slowest instant; None if
        one has not.
        """
        times = [each.began_s for each in self.futures]
        return (
            max((each for each in times if each is not None), default=None)
            if all(each is not None for each in times)
            else None
        )


def branch(
    request: BranchRequest, say: Callable[[str], None] = lambda _line: None
) -> BranchOutcome:
    """Run it. `say` is given a line whenever something has come to an end.

    Raises:
        UsageError: what was asked for cannot be; nothing has been run, or the run was over before
            the instant came.
        ReplayError, ScenarioError, ConfigError, LaunchError, OSError: the run failed before it was
            forked.
        InterruptedRunError: somebody ended it.
    """
    _check(request)
    out = request.out / ORIGINAL
    forks = Forks(out, _instants(request), request.futures, request.most or _cpus(), say)
    run = replace(request.replay, out=out, one_process=True, forks=forks)
    code = replay_scenario(run) if run.trace.is_dir() else replay(run)
    (original,) = (each for each in forks.results if each.name == ORIGINAL)
    return BranchOutcome(code, original, [each for each in forks.results if each is not original])


def _instants(request: BranchRequest) -> list[Instant]:
    """With one instant its futures are beside the original, with several in a folder each."""
    if len(request.at) == 1:
        return [Instant(request.at[0], request.out)]
    names = [f"at-{text.strip().replace(':', '')}" for text in request.at]
    return [
        Instant(text, request.out / name, f"{name}/")
        for text, name in zip(request.at, names, strict=True)
    ]


def check_alternatives(at: Sequence[str], futures: Sequence[Future]) -> None:
    """Whether instants and futures can be used at all.

    Raises:
        UsageError: they cannot.
        EditError: a change of slurm.conf is none.
    """
    if twice := [text for text, count in Counter(at).items() if count > 1]:
        raise UsageError(f"--at {twice[0]}: given twice")
    if not futures:
        raise UsageError("what is to be done differently? A command behind --, or --file")
    try:
        check_names(futures)
    except FuturesError as error:
        raise UsageError(str(error)) from None
    for future in futures:
        edits_of(future.settings)
        if future.trace is not None and not future.trace.exists():
            raise UsageError(f"future {future.name}: trace {future.trace}: there is no such file")


def _check(request: BranchRequest) -> None:
    """Whether what was asked for goes together, before anything is run.

    Raises:
        UsageError: it does not.
        EditError: a change of slurm.conf is none.
        ScenarioError: the scenario is none.
    """
    run = request.replay
    if not request.at:
        raise UsageError("--at: when is the run to be forked?")
    check_alternatives(request.at, request.futures)
    for given, option in (
        (run.check, "--check"),
        (run.pause_at, "--break"),
        (run.answers, "--answers"),
    ):
        if given:
            raise UsageError(f"{option}: a run with it cannot be forked")
    if run.trace.is_dir():
        scenario = read_scenario(run.trace, needs_conf=run.conf is None, is_faulty=run.is_faulty)
        _check_names(request.futures, {each.id for each in scenario.submissions})
    for future in request.futures:
        if future.trace is not None and run.trace.is_dir():
            raise UsageError(
                f"future {future.name}: trace: a scenario's jobs have options and users, those of "
                "a trace have none"
            )
    try:
        request.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {request.out}: {error.strerror}") from None


def _check_names(futures: Sequence[Future], submissions: Collection[str]) -> None:
    """Whether the jobs of a scenario that commands name are there. In what sbatch is given, a
    script may have braces of its own.

    Raises:
        UsageError: one is not.
    """
    for future in futures:
        for deed in future.deeds:
            named = [name for word in deed.words for name in named_jobs(word)]
            if not deed.submits and (unknown := [n for n in named if n not in submissions]):
                raise UsageError(
                    f"future {future.name}: {deed}: the scenario has no submission {unknown[0]}"
                )


def _cpus() -> int:
    return len(os.sched_getaffinity(0))
