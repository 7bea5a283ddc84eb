"""How the tasks of a node, or of a partition's jobs, are bound where a job says nothing: CpuBind of
`scontrol update`.

Place: the vocabulary. Follows: scontrol(1) "CpuBind". It is kept and shown.
"""

from __future__ import annotations

import re
from typing import Final

SHOWN: Final = {
    "no": "none",
    "none": "none",
    "socket": "sockets",
    "sockets": "sockets",
    "ldom": "ldoms",
    "ldoms": "ldoms",
    "core": "cores",
    "cores": "cores",
    "thread": "threads",
    "threads": "threads",
    "off": "off",
}
_VERBOSE: Final = frozenset(("v", "verbose"))


def cpu_binding(text: str, before: str = "") -> str:
    """As it is shown, "" for off; that of before where the text has no word.

    Raises:
        ValueError: there is no such binding, or there are several.
    """
    words = [word for word in re.split("[,;]", text.lower()) if word]
    bindings = [word for word in words if word not in _VERBOSE]
    if len(bindings) > 1 or not SHOWN.keys() >= set(bindings):
        raise ValueError(text)
    if not words:
        return before
    shown = [SHOWN[word] for word in bindings]
    if len(bindings) < len(words):
        return ",".join(["verbose", *shown])
    return "" if shown == ["off"] else shown[0]
