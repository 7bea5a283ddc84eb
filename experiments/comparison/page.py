"""A comparison's page, in Markdown: what was run, tables beside published numbers, what agrees.

Place: after the cells have been run. Pure: rows in, text out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean
from typing import TYPE_CHECKING, Final

from understudy.experiments.comparison.cells import by_policy, ratios, values
from understudy.experiments.comparison.claims import NOT_RUN, judge
from understudy.experiments.comparison.comparison import PROVENANCE, WHOLE
from understudy.experiments.comparison.figures import shown, words
from understudy.experiments.comparison.spread import five, paired, ratio
from understudy.model.nouns import many

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from understudy.experiments.comparison.cells import Cell, Pair, Row
    from understudy.experiments.comparison.comparison import (
        Comparison,
        PublishedTable,
        Workload,
    )
    from understudy.experiments.comparison.workloads import Made

_DAY_S: Final = 86_400
_HASH_SHOWN: Final = 12
_LISTED: Final = 12


@dataclass(frozen=True, slots=True)
class Run:
    """What was run, and what of it came to something."""

    cells: Sequence[Cell]  # all that were asked for
    rows: Sequence[Row]
    made: Mapping[Pair, Made]
    command: str
    form: str  # short or full
    form_cells: int  # that it has, whatever was asked for

    @property
    def is_cut(self) -> bool:
        """Whether less than whole traces was asked for."""
        return any(cell.drawn.part != WHOLE or cell.drawn.jobs for cell in self.cells)

    @property
    def workloads(self) -> set[str]:
        """Names of those that were asked for."""
        return {cell.drawn.workload.name for cell in self.cells}

    @property
    def not_run(self) -> list[str]:
        done = {(row.policy, row.pair) for row in self.rows}
        return [cell.name for cell in self.cells if (cell.policy.name, cell.drawn.pair) not in done]


Sourced = tuple[str, "PublishedTable"]


def page(
    comparison: Comparison,
    run: Run,
    published: Mapping[str, Sequence[Sourced]],
    pictures: Mapping[str, Sequence[str]],
) -> str:
    """The text. `published` and `pictures` (names of files) are by workload."""
    parts = [f"# {comparison.title}", comparison.asks.strip(), *_what_was_run(comparison, run)]
    parts += _claims(comparison, run)
    for workload in comparison.workloads:
        found = by_policy(run.rows, workload.name)
        if not found:
            continue
        tables = published.get(workload.name, ())
        parts += [f"## {workload.name}", _figures(comparison, found, tables)]
        parts += _sources(tables)
        if run.is_cut and any(row.figures for _, table in tables for row in table.rows):
            parts.append(_CUT)
        if beside := _ratios(comparison, found, tables):
            parts += [_RATIOS.format(base=comparison.base), beside]
        parts += [f"![{name}]({name})" for name in pictures.get(workload.name, ())]
    if comparison.notes:
        notes = "\n".join(f"- {each}" for each in comparison.notes)
        parts += ["## What does not agree, and why", notes]
    return "\n\n".join(parts) + "\n"


_CUT: Final = (
    "What was published is of the whole log, what was run here of parts of it: ratios can be "
    "compared, seconds cannot."
)
_RATIOS: Final = (
    "Ratios to `{base}`, within pairs (the same workload, seed and part): geometric mean with "
    "Student's 95 % interval on the logarithms; quartiles; in how many pairs it is below 1; and "
    "how likely such a mean is if neither were better (all flips of signs)."
)


def _what_was_run(comparison: Comparison, run: Run) -> list[str]:
    """The circumstances: inputs with hashes, policies with parameters, what is missing."""
    workloads = ["| workload | trace (SHA-256) | jobs | processors | buffer | submitted | seeds |"]
    workloads.append("| --- | --- | --- | --- | --- | --- | --- |")
    for workload in comparison.workloads:
        pairs = sorted(pair for pair in run.made if pair.workload == workload.name)
        if pairs:
            workloads.append(_workload(workload, pairs, [run.made[pair] for pair in pairs]))
    policies = ["| policy | SchedulerType | SchedulerParameters |", "| --- | --- | --- |"]
    run_of = {row.policy for row in run.rows}
    policies += [
        f"| `{each.name}` | `sched/{each.scheduler}` | "
        f"{f'`{each.parameters}`' if each.parameters else '-'} |"
        for each in comparison.policies
        if each.name in run_of
    ]
    failed = [f"{row.policy} on {row.pair}: {row.failed}" for row in run.rows if row.failed]
    found = ["## What was run", f"    {run.command}", "\n".join(workloads), "\n".join(policies)]
    done = sum(not row.failed for row in run.rows)
    found.append(
        f"Of {many(len(run.cells), 'cell')} {done} were run; the {run.form} form as it is in the "
        f"file has {run.form_cells:,}. Each is a replay "
        "through a whole cluster; usage is measured from the first submission to the last, all "
        "else from the first submission to the last end."
    )
    if codes := Counter(row.code for row in run.rows if not row.failed):
        told = ", ".join(f"`{code}` ({many(count, 'cell')})" for code, count in codes.items())
        found.append(f"Hash of the scheduling code: {told}.")
    policies_asked = {cell.policy.name for cell in run.cells}
    aside = [each.name for each in comparison.policies if each.name not in policies_asked]
    aside += [each.name for each in comparison.workloads if each.name not in run.workloads]
    for what, names in (("Not asked for", aside), ("Not run", run.not_run), ("Failed", failed)):
        if names:
            more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            found.append(f"{what}: {'; '.join(names[:_LISTED])}{more}.")
    return found


def _workload(workload: Workload, pairs: Sequence[Pair], some: Sequence[Made]) -> str:
    """Its line of the table."""
    least, most = min(each.jobs for each in some), max(each.jobs for each in some)
    first, last = min(each.first_s for each in some), max(each.last_s for each in some)
    seeds = _ranges({pair.seed for pair in pairs})
    cut = {pair.part for pair in pairs} - {WHOLE}
    seeds += f"; parts {_ranges(cut)}" if cut else ""
    scale = f", times {workload.scale:g}" if workload.scale != 1 else ""
    return (
        f"| {workload.name} | `{workload.trace}` `{some[0].source_sha256[:_HASH_SHOWN]}` | "
        f"{least:,}{f' to {most:,}' if most > least else ''} | {some[0].processors:,} | "
        f"{f'{some[0].capacity:,}' if some[0].capacity else '-'} | "
        f"days {first / _DAY_S:.1f} to {last / _DAY_S:.1f}{scale} | {seeds} |"
    )


def _ranges(numbers: Collection[int]) -> str:
    """`1 to 3, 7`."""
    texts = []
    for _, run in groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0]):
        some = [number for _, number in run]
        texts.append(f"{some[0]} to {some[-1]}" if len(some) > 2 else ", ".join(map(str, some)))
    return ", ".join(texts)


def _claims(comparison: Comparison, run: Run) -> list[str]:
    rankings = sum(claim.ranks for claim in comparison.claims)
    verdicts = [
        judge(claim, run.rows, workload.name, rankings)
        for claim in comparison.claims
        for workload in comparison.workloads
        if claim.workload in ("", workload.name) and workload.name in run.workloads
    ]
    if not verdicts:
        return []
    is_one = len(comparison.workloads) == 1
    lines = ["| looked for | found | |", "| --- | --- | --- |"]
    for verdict in verdicts:
        where = "" if is_one else f" ({verdict.workload})"
        lines.append(
            f"| {verdict.claim.text}{where} | {verdict.found or '-'} | **{verdict.word}** |"
        )
    whys = [
        f"- *{verdict.claim.text}*: {verdict.claim.why}"
        for verdict in verdicts
        if verdict.claim.why and verdict.word not in ("holds", NOT_RUN)
    ]
    listed = "\n".join(dict.fromkeys(whys))
    return ["## What agrees", "\n".join(lines), *([listed] if listed else [])]


def _figures(
    comparison: Comparison,
    found: Mapping[str, Mapping[Pair, Row]],
    published: Sequence[Sourced],
) -> str:
    """A line for each policy, below it what was published of it."""
    heads = ["policy", "cells", *map(words, comparison.figures)]
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    for policy in comparison.policies:
        if policy.name not in found:
            continue
        rows = found[policy.name]
        texts = [_mean(values(rows, figure), figure) for figure in comparison.figures]
        lines.append(f"| `{policy.name}` | {len(rows)} | {' | '.join(texts)} |")
        for number, (_, table) in enumerate(published, 1):
            lines += [
                f"| *published ({number})* | | "
                + " | ".join(_published(row.figures, each) for each in comparison.figures)
                + " |"
                for row in table.rows
                if row.policy == policy.name and row.figures
            ]
    return "\n".join(lines)


def _mean(some: Sequence[float], figure: str) -> str:
    """The mean of the cells, and from where to where they go."""
    low, high = shown(figure, min(some)), shown(figure, max(some))
    mean = shown(figure, fmean(some))
    return mean if low == high else f"{mean} ({low} to {high})"


def _published(figures: Mapping[str, tuple[float, str]], figure: str) -> str:
    if figure not in figures:
        return ""
    value, sure = figures[figure]
    return f"*{shown(figure, value)}* {sure}"


def _ratios(
    comparison: Comparison,
    found: Mapping[str, Mapping[Pair, Row]],
    published: Sequence[Sourced],
) -> str:
    lines = [
        (
            "| policy | figure | mean (interval) | least / quartile / median / quartile / most | "
            "below 1 | chance |"
        ),
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        line
        for policy in comparison.policies
        if policy.name in found and policy.name != comparison.base
        for figure in comparison.ratios
        for line in _ratio_lines(comparison, found, policy.name, figure, published)
    ]
    return "\n".join(lines) if len(lines) > 2 else ""


def _ratio_lines(
    comparison: Comparison,
    found: Mapping[str, Mapping[Pair, Row]],
    policy: str,
    figure: str,
    published: Sequence[Sourced],
) -> Iterator[str]:
    some = ratios(found[policy], found.get(comparison.base, {}), figure)
    if not some:
        return
    of, box = paired(some), five(some)
    interval = "" if of.interval is None else f" ({' to '.join(map(ratio, of.interval))})"
    fives = " / ".join(
        f"{each:.2f}" for each in (box.least, box.first, box.median, box.third, box.most)
    )
    yield (
        f"| `{policy}` | {words(figure)} | {ratio(of.mean)}{interval} | "
        f"{fives if of.pairs > 1 else '-'} | {of.below} of {of.pairs} | "
        f"{f'{of.chance:.3f}' if of.pairs > 1 else '-'} |"
    )
    for number, (_, table) in enumerate(published, 1):
        for row in table.rows:
            if row.policy == policy and figure in row.boxes and table.base == comparison.base:
                theirs, sure = row.boxes[figure]
                yield (
                    f"| *published ({number})* | | | "
                    f"*{' / '.join(f'{each:.2f}' for each in theirs)}* {sure} | | |"
                )


def _sources(published: Sequence[Sourced]) -> list[str]:
    """What the published numbers are, and what the letters behind them mean."""
    if not published:
        return []
    classes = {
        sure
        for _, table in published
        for row in table.rows
        for _, sure in (*row.figures.values(), *row.boxes.values())
    }
    letters = "; ".join(f"{each}: {PROVENANCE[each]}" for each in sorted(classes))
    of_source: dict[str, list[str]] = {}
    for number, (source, table) in enumerate(published, 1):
        of_source.setdefault(source, []).append(f"({number}) {table.what}")
    told = [f"{source}: {' '.join(tables)}" for source, tables in of_source.items()]
    return [f"Published: {' '.join(told)} {letters}."]
