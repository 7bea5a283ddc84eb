"""What was seen of a run beside its jobs: the states of nodes over time, and what was due to whom
by fair share.

Place: between a recording, which is told it, and the report. `nodes.csv` and `shares.csv` of a
run's folder are written and read here.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final, NamedTuple

from understudy.experiments.run_tables import RunError

if TYPE_CHECKING:
    from pathlib import Path

    from understudy.protocol.messages import JobRuns

NODES: Final = "nodes.csv"
SHARES: Final = "shares.csv"


class Nodes(NamedTuple):
    """From `at` on: how many nodes had jobs, and how many of the others were what."""

    at: int
    allocated: int
    down: int
    drained: int
    off: int  # powered down by the controller


class Share(NamedTuple):
    """Of the whole cluster what is due, 0 to 1; `user` "" for the account as a whole."""

    account: str
    user: str
    share: float


class Watched:
    """Times are the cluster's while a run goes on, and in seconds from its zero as read back."""

    def __init__(self) -> None:
        self.nodes: list[Nodes] = []
        self.shares: list[Share] = []

    def add(self, told: JobRuns) -> None:
        """What the controller told."""
        for line in told.nodes:
            if self.nodes and self.nodes[-1].at == line[0]:
                self.nodes.pop()  # it has changed since, within the second
            if not self.nodes or self.nodes[-1][1:] != line[1:]:
                self.nodes.append(Nodes(*line))
        if told.shares:
            self.shares = [Share(*each) for each in told.shares]

    def since(self, zero: float) -> Watched:
        """With times from there on."""
        found = Watched()
        began = int(zero)
        found.nodes = [Nodes(at - began, *counts) for at, *counts in self.nodes]
        found.shares = self.shares
        return found

    def files(self) -> dict[str, bytes]:
        """What is written, by file; of what nothing is known there is none."""
        return {
            name: _csv(kind._fields, rows)
            for name, kind, rows in ((NODES, Nodes, self.nodes), (SHARES, Share, self.shares))
            if rows
        }

    @classmethod
    def read(cls, folder: Path) -> Watched:
        """What a run's folder has.

        Raises:
            RunError: a damaged file; says which line.
        """
        found = cls()
        found.nodes = [Nodes(*map(int, row)) for row in _rows(folder / NODES, Nodes._fields, int)]
        found.shares = [
            Share(account, user, float(share))
            for account, user, share in _rows(folder / SHARES, Share._fields, None)
        ]
        return found


def _csv(names: tuple[str, ...], rows: list[Nodes] | list[Share]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue().encode()


def _rows(path: Path, names: tuple[str, ...], kind: type[int] | None) -> list[list[str]]:
    if not path.exists():
        return []
    found = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file)
            if tuple(next(reader, ())) != names:
                raise RunError(f"{path} line 1: expected {','.join(names)}")
            for row in reader:
                if len(row) != len(names):
                    raise ValueError(f"{len(row)} columns")
                for value in row if kind is int else row[-1:]:
                    float(value)
                found.append(row)
    except (ValueError, csv.Error) as error:
        if isinstance(error, RunError):
            raise
        raise RunError(f"{path} line {len(found) + 2}: {error}") from None
    return found
