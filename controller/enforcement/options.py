"""AccountingStorageEnforce: what is enforced.

Place: the controller's core. Follows: slurm.conf(5): `limits`, `qos`, `safe` and `wckeys` each bring `associations` with them, `safe` also `limits`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Enforced:
    """What slurm.conf asks for."""

    associations: bool = False
    limits: bool = False
    qos: bool = False
    safe: bool = False
    wckeys: bool = False
    jobs: bool = True  # False (nojobs): accounting is told of no jobs
    steps: bool = True

    @classmethod
    def of(cls, words: Iterable[str]) -> Enforced:
        """Read the words of AccountingStorageEnforce, or its old numbers."""
        said = {word.strip().lower() for word in words}
        everything = "all" in said
        limits = everything or "limits" in said or "safe" in said or "2" in said
        qos, safe, wckeys = everything or "qos" in said, everything or "safe" in said, everything or "wckeys" in said or "wckey" in said
        without_jobs = "nojobs" in said
        return cls(
            associations=limits or qos or safe or wckeys or "1" in said or any(word.startswith("assoc") for word in said),
            limits=limits,
            qos=qos,
            safe=safe,
            wckeys=wckeys,
            jobs=not without_jobs,
            steps=not without_jobs and "nosteps" not in said,
        )
