"""Answers that are given when something has happened.

Place: under the handlers of requests and what they wait for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.protocol.messages import Message


class Later:
    """An answer that will be given when something has happened."""

    __slots__ = ("_listener", "answer", "is_gone")

    def __init__(self) -> None:
        self.answer: Message | None = None
        self.is_gone: Callable[[], bool] = lambda: False  # whether nobody waits for it any more
        self._listener: Callable[[Message], None] | None = None

    def listen(self, listener: Callable[[Message], None]) -> None:
        """Hand the answer to `listener` when it is there."""
        if self.answer is not None:
            listener(self.answer)
        else:
            self._listener = listener

    def give(self, answer: Message) -> None:
        """The answer is there."""
        assert self.answer is None, "a request is answered once"
        self.answer = answer
        if self._listener is not None:
            self._listener(answer)
