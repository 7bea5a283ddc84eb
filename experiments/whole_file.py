"""Files that are written whole or not at all.

Place: under all that writes results and traces.
"""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write the file whole or not at all; an earlier one is replaced, also where a link leads to
    it. Devices and pipes are written as they are.

    Raises:
        OSError: it cannot be written; no part of it is left.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:  # an interrupt may come at any time
        temporary.unlink(missing_ok=True)
