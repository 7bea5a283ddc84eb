"""What accounting has told last, which is saved with the state: a controller that comes back while
accounting is away goes on enforcing it, as Slurm does with what it has cached.

Place: accounting; `link.py` hears of changes, `saved/` writes and reads the document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from understudy.model.associations import AssociationState, Tres
from understudy.protocol.messages import Associations

if TYPE_CHECKING:
    from understudy.controller.core.core import Core

SAVED_AS: Final = "associations"
_pack: Final = msgspec.msgpack.Encoder().encode
_unpack: Final = msgspec.msgpack.Decoder(Associations).decode


def take(core: Core, told: Associations) -> None:
    """Have the core know this, and nothing else, of accounting."""
    core.associations = AssociationState(
        told.cluster,
        told.number,
        associations=told.associations,
        qos=told.qos,
        users=told.users,
        wckeys=told.wckeys,
        tres=told.tres,
    )
    core.federation = told.federation
    core.remote_licenses = told.licenses
    core.count_licenses()


def encode(core: Core) -> bytes:
    """The document as it is now."""
    state = core.associations
    return _pack(
        Associations(
            state.cluster,
            state.number,
            list(state.associations.values()),
            list(state.qos.values()),
            list(state.users.values()),
            state.wckeys,
            [Tres(number, name) for name, number in state.tres.items()],
            core.federation,
            core.remote_licenses,
        )
    )


def decode(core: Core, record: bytes) -> None:
    """Take it over as it was saved."""
    take(core, _unpack(record))
