"""What a job's specification notes besides its values: names, in one text for each kind.

Place: the vocabulary; the commands that submit write it, the controller reads it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

GIVEN_EMPTY: Final = "given_empty"  # texts that were given, and are empty
NO_NODES: Final = "no_nodes"  # options that ask for no node or task: no node will do for the job


def noted(extra: Mapping[str, str], kind: str) -> list[str]:
    """The names of one kind."""
    return extra.get(kind, "").split()


def note(extra: Mapping[str, str], kind: str, name: str, *, is_so: bool) -> str:
    """The names of one kind with `name`, or without it; "": none."""
    return " ".join(sorted({*noted(extra, kind)} - {name} | ({name} if is_so else set())))
