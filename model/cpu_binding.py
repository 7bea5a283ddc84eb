"""How the tasks of a node, or of a partition's jobs, are bound where a job says nothing: CpuBind of
`scontrol update`.

Place: the vocabulary. Follows: scontrol(1) "CpuBind". It is kept and shown.
"""

from __future__ import annotations

from typing import Final

SHOWN: Final = {
    "none": "none",
    "socket": "sockets",
    "ldom": "ldoms",
    "core": "cores",
    "thread": "threads",
    "off": "",
}


def cpu_binding(text: str) -> str:
    """As it is shown, "" for off.

    Raises:
        ValueError: there is no such binding.
    """
    lowered = text.lower()
    if lowered in SHOWN.values() and lowered:
        return lowered
    if lowered not in SHOWN:
        raise ValueError(text)
    return SHOWN[lowered]
