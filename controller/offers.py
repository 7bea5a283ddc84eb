"""Which plug-ins installed distributions offer: entry points by group.

Place: the controller, under its registries. Each distribution's file has to be read to know; that
is done again only when one has come or gone.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints


def offered(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name."""
    folders = (Path(each or ".") for each in sys.path)
    return {
        point.name: point
        for point in _read(
            tuple((str(each), each.stat().st_mtime_ns) for each in folders if each.exists())
        ).select(group=group)
    }


@lru_cache(maxsize=1)
def _read(_folders: tuple[tuple[str, int], ...]) -> EntryPoints:
    return cast("EntryPoints", entry_points())
