"""One run of sacctmgr: its options, and what the user is asked."""

import os
import time

from understudy.commands.shared.accounting_client import Table
from understudy.commands.shared.context import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from understudy.commands.sacctmgr.words import Vocabulary

_PATIENCE_S = 30  # for an answer


def _letters(stream: "TextIO") -> "Iterator[str]":
    """What is typed, letter by letter: each is an answer of its own, and at a terminal it needs no
    end of the line. The end of the input, or of the time, is a line's end.
    """
    if not stream.isatty():
        yield from stream.readline() or "\n"
        return
    import select
    import termios

    descriptor = stream.fileno()
    before = termios.tcgetattr(descriptor)
    now = [*before]
    now[3] &= ~termios.ICANON
    termios.tcsetattr(descriptor, termios.TCSANOW, now)
    try:
        end = time.monotonic() + _PATIENCE_S
        while select.select([descriptor], [], [], max(end - time.monotonic(), 0))[0]:
            yield os.read(descriptor, 1).decode("ascii", "replace") or "\n"
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
    yield "\n"


class Session:
    """One run of the command: its options and its connection."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.table = Table(context)
        self.asks = True
        self.header = True
        self.parsable = 0
        self.with_associations = False
        self.readonly = False
        self.code = 0
        self._words: Vocabulary | None = None

    @property
    def words(self) -> "Vocabulary":
        """What values may name."""
        if self._words is None:
            from understudy.commands.sacctmgr.words import Vocabulary

            self._words = Vocabulary(
                lambda: {row["tres"]: row["id"] for row in self.table.rows("tres", ["tres", "id"])},
                lambda: [row["name"] for row in self.table.rows("qos", ["name"])],
                self._read_time,
            )
        return self._words

    def is_operator(self) -> bool:
        """Whether the user runs accounting, or helps to."""
        return self.own_level() != "None"

    def is_administrator(self) -> bool:
        """Whether the user runs accounting, more than an operator."""
        return self.own_level() == "Administrator"

    def own_level(self) -> str:
        """The user's AdminLevel."""
        if os.getuid() == 0:
            return "Administrator"
        rows = self.table.rows("users", ["admin_level"], {"names": [self.own_name()]})
        return str(rows[0]["admin_level"]) if rows else "None"

    def own_name(self) -> str:
        """The user's name."""
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name

    def _read_time(self, text: str) -> int:
        from understudy.model.moments import parse_time

        if not self.table.now:
            self.table.rows("tres", ["id"], {"ids": [0]})
        return parse_time(text, self.table.now)

    def confirmed(
        self,
        question: str = "Would you like to commit changes? (You have 30 seconds to decide)",
        discarded: str = " Changes Discarded",
    ) -> bool:
        """Whether the user wants what has been printed."""
        if not self.asks:
            return True
        context = self.context
        context.stdout.write(f"{question}\n(N/y): ")
        context.stdout.flush()
        for letter in _letters(context.stdin):
            context.stdout.write("\n")
            if letter in "yY":
                return True
            if letter in "nN\n":
                break
            context.stdout.write("Y or N please\n(N/y): ")
        if discarded:
            context.print(discarded)
        return False
