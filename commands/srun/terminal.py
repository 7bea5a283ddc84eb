"""srun --pty: the terminal that the command stands in, as long as a task has it.

Place: under srun; loaded only with that option.
"""

import termios

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def make_raw() -> "list[Any]":
    """Hand on every key as it is. What the terminal was set to."""
    before = termios.tcgetattr(0)
    raw = termios.tcgetattr(0)
    raw[0] &= ~(termios.BRKINT | termios.ICRNL | termios.INPCK | termios.ISTRIP | termios.IXON)
    raw[1] &= ~termios.OPOST
    raw[2] = raw[2] & ~(termios.CSIZE | termios.PARENB) | termios.CS8
    raw[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
    termios.tcsetattr(0, termios.TCSAFLUSH, raw)
    return before


def restore(before: "list[Any]") -> None:
    termios.tcsetattr(0, termios.TCSADRAIN, before)
