"""`understudy why`: the story of a job in a run.

Place: a sub-command of `understudy`; what is told is in understudy.experiments.outcomes.
"""

from __future__ import annotations

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from understudy.tool.understudy.cluster import fail

if TYPE_CHECKING:
    from understudy.experiments.outcomes.why import JobStory, Stories

_Run = Annotated[
    Path,
    typer.Argument(
        help="A folder of `understudy replay --out` or of `understudy import`, or its jobs.csv."
    ),
]
_Job = Annotated[
    str,
    typer.Argument(
        help="What the trace calls the job, else its place; 3_7 is task 7 of the array 3, 5+1 "
        "a component of 5; 3 and 5 are all of them."
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]
_MOST: Final = 3  # stories in full: of a large array a line for each task


def why(run: _Run, job: _Job, json: _Json = False) -> None:
    """Tell what became of a job, and why: for what it waited when, which starts it was promised,
    who passed it, when and where it ran.

    Exit codes: 0 it is told; 1 the run cannot be read, or has no such job; 2 the command line is
    wrong.
    """
    from understudy.experiments.outcomes.why import UnknownJobError
    from understudy.experiments.outcomes.why import why as story_of
    from understudy.experiments.run_tables import RunError
    from understudy.experiments.stories import StoriesError

    try:
        found = story_of(run, job)
    except (RunError, StoriesError, UnknownJobError) as error:
        fail("why", str(error))
    except OSError as error:
        fail("why", f"{error.filename or ''}: {error.strerror or error}")
    if json:
        told = {"zero": found.zero, "stories": [story.as_dict() for story in found.stories]}
        typer.echo(json_text.dumps(told, indent=1))
    elif len(found.stories) > _MOST:
        _list(found, run, job)
    else:
        for story in found.stories:
            _tell(story, found.zero)


def _tell(story: JobStory, zero: float | None) -> None:
    from understudy.experiments.outcomes.telling import lines
    from understudy.model.nouns import many
    from understudy.model.times import format_duration

    limit = "no limit" if story.req_time < 0 else f"limit {format_duration(story.req_time)}"
    facts = [
        *(f"{what} {value}" for what, value in _names(story) if value),
        many(story.cpus, "CPU"),
        limit,
    ]
    typer.echo(f"job {story.job}: {', '.join(facts)}")
    for number, fate in enumerate(story.fates, 1):
        if len(story.fates) > 1:
            typer.echo(f"run {number} of {len(story.fates)}")
        for line in lines(fate, zero):
            typer.echo(f"  {line}")


def _names(story: JobStory) -> list[tuple[str, str]]:
    return [
        ("name", "" if story.name == story.job else story.name),
        ("user", story.user),
        ("account", story.account),
        ("partition", story.partition),
        ("QOS", story.qos),
    ]


def _list(found: Stories, run: Path, job: str) -> None:
    """A line for each of many tasks."""
    from understudy.experiments.drawing import duration
    from understudy.experiments.outcomes.telling import instant

    typer.echo(f"job {job}: {len(found.stories):,} tasks or components")
    for story in found.stories:
        last = story.fates[-1]
        waited = "" if last.wait is None else f", after {duration(last.wait)}"
        reason = f" of {last.waited_for}" if last.waited_for and waited else ""
        typer.echo(
            f"  {story.job:12} started {instant(last.start, None)}{waited}{reason}: {last.state}"
        )
    typer.echo(f"understudy why {run} {found.stories[0].job} tells one")
