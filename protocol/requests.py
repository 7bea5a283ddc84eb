"""Who asks, and what wants an answer: what a daemon's handler gets to see of a connection.

Place: under the messenger and its reception; handlers take and answer these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from understudy.auth.keys import is_central
from understudy.model.cluster import is_controller

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from understudy.protocol.connection import Connection
    from understudy.protocol.messages import Message


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end of a connection, authenticated. A daemon has a key of its own, which
    proves its name; commands act for a user. Of a node daemon, the user is what it says, and gives
    it no rights.
    """

    name: str
    user_id: int
    group_id: int
    is_daemon: bool
    # worked out once, as it is asked of each request: whether it is a node daemon, a controller
    is_node: bool = field(init=False, repr=False, compare=False)
    is_controller: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "is_node", self.is_daemon and not is_central(self.name))
        put(self, "is_controller", self.is_daemon and is_controller(self.name))


class Accepted:
    """The state of an accepted connection."""

    __slots__ = (
        "addressee",
        "deadline",
        "is_participant",
        "key",
        "peer",
        "proven",
        "proven_by",
        "respond",
        "respond_failures",
    )

    def __init__(self, key: int | str) -> None:
        self.key = key  # the user, or the host
        self.deadline: asyncio.TimerHandle | None = None  # of its proof
        self.peer: Peer | None = None
        self.addressee = ""
        self.is_participant = False
        self.proven = False
        self.proven_by = ("", b"")  # whose key it is, and the key; "": the kernel's word
        self.respond: Callable[[int, Message], None] | None = None
        self.respond_failures: Callable[[int, Message], None] | None = None


class Request:
    """A message that wants one answer."""

    __slots__ = ("_answer", "_connection", "_number", "message", "sender")

    def __init__(
        self,
        message: Message,
        sender: Peer,
        number: int,
        answer: Callable[[int, Message], None],
        connection: Connection | None = None,
    ) -> None:
        self.message, self.sender, self._number, self._connection = (
            message,
            sender,
            number,
            connection,
        )
        self._answer: Callable[[int, Message], None] | None = answer

    def is_gone(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self._connection is not None and self._connection.closed

    @property
    def addressee(self) -> str:
        """The node for which the connection is, of those that share an address; "": the daemon."""
        accepted = None if self._connection is None else self._connection.tag
        return accepted.addressee if isinstance(accepted, Accepted) else ""

    def break_off(self) -> None:
        """Close the connection in place of an answer, as who dies does."""
        self._answer = None
        if self._connection is not None:
            self._connection.close()

    def reply_part(self, part: Message) -> None:
        """A part of the answer; the last one is for `reply`. Only commands take answers in
        parts.
        """
        assert self._answer is not None
        self._answer(self._number, part)

    def reply(self, answer: Message) -> None:
        """Answer, once."""
        send = self._answer
        assert send is not None, (
            f"{type(self.message).__name__} of {self.sender.name} was answered twice"
        )
        self._answer = None
        send(self._number, answer)
