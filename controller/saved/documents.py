"""What is saved as a whole because there is little of it, or because it seldom changes: triggers,
crontabs, burst buffers, the order of the nodes, what accounting has told.

Place: saved, between the store and the modules that own these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.accounting import known
from understudy.controller.jobs import buffers, crontabs
from understudy.controller.notices import event_triggers
from understudy.controller.saved import node_order

if TYPE_CHECKING:
    from understudy.controller.core.core import Core


def encode(core: Core, name: str) -> bytes | None:
    """The document as it is now; None: there is none any more."""
    if name.startswith(buffers.SAVED_AS):
        return buffers.encode(core, name)
    if name == known.SAVED_AS:
        return known.encode(core)
    return (
        event_triggers.encode(core)
        if name == event_triggers.SAVED_AS
        else crontabs.encode(core, name)
    )


def decode(core: Core, name: str, record: bytes) -> None:
    """Take over a document as it was saved."""
    if name.startswith(buffers.SAVED_AS):
        buffers.decode(core, record)
    elif name == known.SAVED_AS:
        known.decode(core, record)
    elif name == event_triggers.SAVED_AS:
        event_triggers.decode(core, record)
    elif name == node_order.SAVED_AS:
        pass  # the store itself reads and writes it
    else:
        crontabs.decode(core, name, record)
