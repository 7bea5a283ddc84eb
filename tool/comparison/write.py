"""Writes a comparison's page and its pictures.

Place: the edge of comparisons, after their cells have been run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.experiments.comparison.comparison import read_published
from understudy.experiments.comparison.page import page
from understudy.experiments.comparison.pictures import picture

if TYPE_CHECKING:
    from pathlib import Path

    from understudy.experiments.comparison.comparison import Comparison, PublishedTable
    from understudy.experiments.comparison.page import Run


def published_of(
    comparison: Comparison, folder: Path
) -> dict[str, list[tuple[str, PublishedTable]]]:
    """By workload. `folder`: that of the comparison's file.

    Raises:
        ComparisonError: as `read_published`.
    """
    found: dict[str, list[tuple[str, PublishedTable]]] = {}
    for beside in comparison.published:
        sourced = read_published(folder, beside)
        for workload in comparison.workloads:
            if beside.workload in ("", workload.name):
                found.setdefault(workload.name, []).append(sourced)
    return found


def write_page(
    name: str,
    comparison: Comparison,
    run: Run,
    published: dict[str, list[tuple[str, PublishedTable]]],
    folder: Path,
) -> Path:
    """FOLDER/NAME.md and FOLDER/NAME-1.svg ...; earlier ones are replaced. Returns the page's
    path.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, list[str]] = {}
    for old in folder.glob(f"{name}-[0-9]*.svg"):
        old.unlink()
    number = 0
    for asked in comparison.pictures:
        for workload in comparison.workloads:
            if asked.workload not in ("", workload.name):
                continue
            tables = [table for _, table in published.get(workload.name, [])]
            if text := picture(comparison, asked, workload.name, run.rows, tables):
                number += 1
                file = f"{name}-{number}.svg"
                (folder / file).write_text(text, "utf-8")
                drawn.setdefault(workload.name, []).append(file)
    path = folder / f"{name}.md"
    path.write_text(page(comparison, run, published, drawn), "utf-8")
    return path
