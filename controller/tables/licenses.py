"""Licences: what a cluster has of them, and what the running jobs have taken.

Place: tables, pure. Follows slurm.conf(5) Licenses and sbatch(1) --licenses: `matlab:2,ansys`
takes both (`;` means the same). A job has its licences from its start to its end; its epilog does
not need them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

REASON = "Licenses"


@lru_cache(maxsize=1024)  # a job's are asked for again and again, and many ask for the same
def read_licenses(text: str) -> tuple[tuple[str, int], ...]:
    """(name, count) each. There is no choice of licences: 22.05.8 refuses `a|b`.

    Raises:
        ValueError: it is not such a list.
    """
    found = []
    for part in text.replace(";", ",").split(","):
        name, colon, count = part.strip().partition(":")
        if not name or "|" in part or (colon and not count.isdecimal()):
            raise ValueError(text)
        found.append((name, int(count or 1)))
    return tuple(found)


@dataclass(slots=True, eq=False)
class LicensePool:
    """`totals` are the configured licences, `used` those that jobs have now."""

    totals: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    # by job id
    _held: dict[int, tuple[tuple[str, int], ...]] = field(default_factory=dict)

    def are_free(self, text: str, held_back: Mapping[str, int] | None = None) -> bool:
        """Whether a job that asks for this could have it now; `held_back`: licences that are
        reserved for others.
        """
        return not text or self._grant(text, held_back) is not None

    def take(self, job_id: int, text: str) -> None:
        """The job runs: it has its licences, also where (after a change of the configuration) there
        are not so many.
        """
        if not text:
            return
        granted = self._grant(text) or read_licenses(text)
        self._held[job_id] = granted
        for name, count in granted:
            self.used[name] = self.used.get(name, 0) + count

    def give_back(self, job_id: int) -> None:
        """The job has ended."""
        for name, count in self._held.pop(job_id, ()):
            self.used[name] -= count

    def held(self, job_id: int, name: str) -> int:
        """How many of that name the job has."""
        return sum(count for each, count in self._held.get(job_id, ()) if each == name)

    def _grant(
        self, text: str, held_back: Mapping[str, int] | None = None
    ) -> tuple[tuple[str, int], ...] | None:
        held_back = held_back or {}
        wanted: dict[str, int] = {}
        for name, count in read_licenses(text):
            wanted[name] = wanted.get(name, 0) + count
        return (
            tuple(wanted.items())
            if all(
                count <= self._free(name) - held_back.get(name, 0) for name, count in wanted.items()
            )
            else None
        )

    def _free(self, name: str) -> int:
        return self.totals.get(name, 0) - self.used.get(name, 0)
