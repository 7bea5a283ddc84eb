"""Which of several controllers leads, as they say themselves: orders of the others are refused.

Place: the node daemon's edge. A controller that leads says so with the fencing number of its lease;
who says so with a lower one than another has lost its lease and does not know it yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.model.cluster import CONTROLLER
from understudy.protocol.messages import Failure, Message, Ok, Ping

if TYPE_CHECKING:
    import logging
    from collections.abc import Mapping

    from understudy.protocol.messages import Lead
    from understudy.protocol.messenger import Messenger
    from understudy.protocol.requests import Request

NOT_LEADING: Final = Failure(2027, "another controller leads the cluster")


class FollowedLeader:
    """Whom this node daemon follows. `controllers`: their addresses by name."""

    def __init__(
        self, controllers: Mapping[str, str], messenger: Messenger, log: logging.Logger
    ) -> None:
        self._controllers, self._messenger, self._log = controllers, messenger, log
        self._name, self._fence = "", 0  # "": nobody has said that he leads

    def refuses(self, request: Request) -> bool:
        """Whether the request is an order of a controller that does not lead."""
        sender = request.sender
        return (
            bool(self._name)
            and sender.is_daemon
            and sender.name != self._name
            and sender.name in self._controllers
            and not isinstance(request.message, Ping)
        )

    def follow(self, message: Lead, name: str) -> Message:
        """The controller of this name says that it leads; whether it is followed."""
        if message.fence < self._fence or name not in self._controllers:
            return NOT_LEADING
        if message.fence > self._fence:
            self._log.info("%s leads the cluster", name)
        self._name, self._fence = name, message.fence
        self._messenger.prefer(CONTROLLER, self._controllers[name])
        return Ok()
