"""What a comparison is: workloads, policies, how much of them, what is shown and what is claimed. A
TOML file each, in examples/experiments/.

Place: the model of comparisons; reads their files and those of published numbers, and nothing else.
docs/experiments/README.md describes the format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeVar

import msgspec

from understudy.experiments.toml_lines import read_toml

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# how sure a published number is
PROVENANCE: Final = {
    "E": "exact, from the authors' text or the tables of their artefact",
    "V": "exact, from the coordinates of a vector figure",
    "G": "read from a picture, about 5 % either way",
    "A": "from a public abstract",
}
WHOLE: Final = 0  # the "part" that is all of a trace
_Content = TypeVar("_Content")
_Positive = Annotated[float, msgspec.Meta(gt=0)]
_Count = Annotated[int, msgspec.Meta(ge=0)]


class ComparisonError(ValueError):
    """A comparison that cannot be read or run. Says which file, and what in it."""


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the file: a word that it does not know is an error."""


class Workload(_Part, frozen=True):
    """Jobs and the machine for them. `kind` says how they are made of the trace (workloads.py)."""

    name: str
    trace: str  # name of a file; the folder is the user's
    kind: Literal["swf", "kth-bb", "theta-bb"] = "swf"
    # of swf: nodes of one processor; 0: as many as the trace's header says
    processors: _Count = 0
    scenario: str = ""  # of theta-bb: S1 .. S4
    scale: _Positive = 1.0  # what submit times are multiplied with
    # equal periods of submission: when the first begins and how long each is, seconds of the
    # normalised trace, before it is scaled
    parts_from: _Count = 0
    part_length: _Count = 0


class Policy(_Part, frozen=True):
    """What schedules. `{seed}` in `parameters` is that of the workload."""

    name: str
    scheduler: str
    parameters: str = ""


class Form(_Part, frozen=True):
    """How much is run: every seed with every part, at most `jobs` jobs of each (0: all)."""

    seeds: tuple[_Count, ...] = (1,)
    parts: tuple[_Count, ...] = (WHOLE,)  # numbers from 1 of the equal periods; 0: the whole
    jobs: _Count = 0
    policies: tuple[str, ...] = ()  # none: all
    workloads: tuple[str, ...] = ()  # none: all


class Claim(_Part, frozen=True):
    """What is looked for, so that the page can say whether it is so.

    The values are those of `figure` of the policy `of` in each cell, or its ratio to that of `to`
    in the cell with the same workload, seed and part; of several `to` the median is taken.
    """

    text: str
    of: str
    figure: str = "mean_wait"
    to: str | tuple[str, ...] = ()
    over: Literal["each", "mean", "median"] = "each"
    least: float | None = None
    most: float | None = None
    # a ranking, or a likeness, which an interval must carry: all of it is within the bounds
    ranks: bool = False
    same_schedule: bool = False  # as that of `to`, job by job, instead of a figure
    workload: str = ""  # none: each of them
    why: str = ""  # what explains it if it is not so

    @property
    def others(self) -> tuple[str, ...]:
        return (self.to,) if isinstance(self.to, str) else self.to


class Picture(_Part, frozen=True):
    """`levels`: a figure of each policy, a dot a cell. `ratios`: a box each of its ratios to the
    base's.
    """

    kind: Literal["levels", "ratios"]
    figure: str
    workload: str = ""  # none: one for each


class Beside(_Part, frozen=True):
    """A table of published numbers that is shown beside the workload's."""

    file: str
    table: str
    workload: str = ""  # none: each of them


class Comparison(_Part, frozen=True):
    """A file of examples/experiments/."""

    title: str
    asks: str
    base: str  # the policy to which ratios are taken
    workloads: tuple[Workload, ...]
    policies: tuple[Policy, ...]
    short: Form
    full: Form
    figures: tuple[str, ...]  # columns of the tables
    ratios: tuple[str, ...] = ("mean_wait", "mean_turnaround", "max_wait")
    claims: tuple[Claim, ...] = ()
    pictures: tuple[Picture, ...] = ()
    published: tuple[Beside, ...] = ()
    notes: tuple[str, ...] = ()


class PublishedRow(_Part, frozen=True):
    """A policy's numbers, each with its class of `PROVENANCE`."""

    policy: str
    figures: dict[str, tuple[float, str]] = {}
    # smallest, quartile, median, quartile, largest of the ratios to the table's base
    boxes: dict[str, tuple[tuple[float, float, float, float, float], str]] = {}


class PublishedTable(_Part, frozen=True):
    name: str
    what: str
    rows: tuple[PublishedRow, ...]
    base: str = ""  # of the boxes


class Published(_Part, frozen=True):
    """A file of published numbers."""

    source: str
    tables: tuple[PublishedTable, ...]


def read_comparison(path: Path, figures: Sequence[str]) -> Comparison:
    """Read a file and see that it fits together. `figures`: those that a cell has.

    Raises:
        ComparisonError: it cannot be read, or names what is not there.
    """
    comparison = _read(path, Comparison)
    for fault in (*_doubles(comparison), *_unknown(comparison, figures)):
        raise ComparisonError(f"{path}: {fault}")
    return comparison


def read_published(folder: Path, beside: Beside) -> tuple[str, PublishedTable]:
    """The source and the table.

    Raises:
        ComparisonError: there is no such file, no such table, or a class that nobody knows.
    """
    path = folder / beside.file
    found = _read(path, Published)
    table = next((each for each in found.tables if each.name == beside.table), None)
    if table is None:
        known = ", ".join(each.name for each in found.tables)
        raise ComparisonError(f"{path}: no table {beside.table!r}; there are {known}")
    for row in table.rows:
        for key, (_, sure) in (*row.figures.items(), *row.boxes.items()):
            if sure not in PROVENANCE:
                raise ComparisonError(
                    f"{path}: {table.name}, {row.policy}, {key}: class {sure!r} is none of "
                    f"{', '.join(PROVENANCE)}"
                )
    return found.source, table


def _read(path: Path, kind: type[_Content]) -> _Content:
    try:
        _, content = read_toml(path)
    except ValueError as error:
        raise ComparisonError(str(error)) from None
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise ComparisonError(f"{path}: {error}") from None


def _doubles(comparison: Comparison) -> list[str]:
    """Names that are given twice."""
    found = []
    for what, names in (
        ("policies", [each.name for each in comparison.policies]),
        ("workloads", [each.name for each in comparison.workloads]),
    ):
        found += [f"{what}: {name!r} is there twice" for name in names if names.count(name) > 1]
        found += [f"{what}: there are none"] * (not names)
    return found


def _unknown(comparison: Comparison, figures: Sequence[str]) -> list[str]:
    """Names that lead nowhere."""
    policies = [each.name for each in comparison.policies]
    workloads = ["", *(each.name for each in comparison.workloads)]
    asked = [("base", "policy", comparison.base, policies)]
    for name, form in (("short", comparison.short), ("full", comparison.full)):
        asked += [(name, "policy", each, policies) for each in form.policies]
        asked += [(name, "workload", each, workloads) for each in form.workloads]
    shown = (*comparison.figures, *comparison.ratios)
    asked += [("figures", "figure", each, list(figures)) for each in shown]
    for number, claim in enumerate(comparison.claims, 1):
        where = f"claim {number}"
        asked += [(where, "policy", each, policies) for each in (claim.of, *claim.others)]
        asked.append((where, "figure", claim.figure, list(figures)))
        asked.append((where, "workload", claim.workload, workloads))
    for picture in comparison.pictures:
        asked.append(("pictures", "figure", picture.figure, list(figures)))
        asked.append(("pictures", "workload", picture.workload, workloads))
    asked += [("published", "workload", each.workload, workloads) for each in comparison.published]
    return [
        f"{where}: no {what} {name!r}; there are {', '.join(filter(None, known))}"
        for where, what, name, known in asked
        if name not in known
    ]
