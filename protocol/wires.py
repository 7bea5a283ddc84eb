"""The connections of one daemon, those that it opened and those that it accepted, and the loop that
serves them.

Place: under the messenger, which asks, and its reception, which is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from understudy.protocol.connection import Traffic

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from understudy.protocol.connection import Connection

# Under virtual time a daemon's messages are read when the clock says that there are some. What
# proves that it holds the key is a frame of its own: empty, sealed.
PROOF: Final = b""
PROOF_BYTES: Final = 20  # four of length, sixteen of the seal
_HANDSHAKE_S: Final = 10.0  # ours: until a peer has said who it is


class VirtualLoop(Protocol):
    """What is needed of a loop under virtual time (clock.virtual_loop)."""

    now_us: int
    authority: Any

    def post(
        self, deliver_us: int, sender: str, sequence: int, deliver: Callable[..., None], *args: Any
    ) -> None: ...
    def run_outside(self, callback: Callable[..., None], *args: Any) -> None: ...
    def hold(self) -> Any: ...
    def call_later_real(
        self, delay_s: float, callback: Callable[..., object], *args: Any
    ) -> Any: ...


class Wires:
    """The connections that are open. `virtual`: the loop, if its time is virtual."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.virtual: VirtualLoop | None = loop if hasattr(loop, "now_us") else None  # type: ignore[assignment]
        # after so many real seconds, whatever time the loop has
        self.later: Callable[..., asyncio.TimerHandle] = getattr(
            loop, "call_later_real", loop.call_later
        )
        self.open: dict[Connection, None] = {}
        self.traffic = Traffic()  # of all connections

    @property
    def authority(self) -> Any:
        """Who grants this process its virtual time, if somebody does."""
        return None if self.virtual is None else self.virtual.authority

    def forget(self, connection: Connection) -> None:
        """It is closed."""
        self.open.pop(connection, None)
        if self.authority is not None:
            self.authority.remove_peer(connection.fd)

    def close_unless(
        self, connection: Connection, is_done: Callable[[], bool], reason: str
    ) -> asyncio.TimerHandle:
        """Close the connection if `is_done` does not hold after some real seconds: whoever connects
        must prove itself in time.
        """

        def check() -> None:
            if not is_done():
                connection.close(reason)

        return self.later(_HANDSHAKE_S, check)
