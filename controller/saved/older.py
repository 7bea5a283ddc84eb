"""Records as older programs wrote them, with what has moved since in its place.

Place: saved, under `records`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from understudy.model.switches import read_switches
from understudy.model.times import leading_number

if TYPE_CHECKING:
    from understudy.protocol.messages import JobSpec

# Fields of a specification that were texts of `extra` once: by what name.
_FLAGS: Final = ("spread_job", "use_min_nodes", "extra_node_info")
_NUMBERS: Final = ("sockets_per_node", "cores_per_socket", "site_factor")
_WERE_TEXTS: Final = {
    **{name: name for name in (*_FLAGS, *_NUMBERS, "switches", "hint", "kill_on_invalid_dep")},
    "exclusive_for": "exclusive",
    "batch_features": "batch",
}


def current(spec: JobSpec) -> JobSpec:
    """The specification with all that decides in fields."""
    found: dict[str, Any] = {
        field: spec.extra[text] for field, text in _WERE_TEXTS.items() if text in spec.extra
    }
    if not found:
        return spec
    for field in found.keys() & _FLAGS:
        found[field] = True
    for field in found.keys() & _NUMBERS:
        found[field] = leading_number(found[field])
    if "kill_on_invalid_dep" in found:
        found["kill_on_invalid_dep"] = found["kill_on_invalid_dep"] == "yes"
    if "switches" in found:
        found["switches"], found["switches_wait_s"] = read_switches(found["switches"])
    texts = set(_WERE_TEXTS.values())
    extra = {name: text for name, text in spec.extra.items() if name not in texts}
    return msgspec.structs.replace(spec, extra=extra, **found)
