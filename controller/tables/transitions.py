"""What the table of a state machine is made of: a base state, the flags beside it, and what an
event makes of them.

Place: tables, pure. `job_states.py`, `node_states.py` and `step_states.py` are the machines;
docs/states.md is drawn from them. It must not know whose states these are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

State = TypeVar("State", bound=IntEnum)
Flags = TypeVar("Flags", bound=IntFlag)


class InvalidTransition(AssertionError):  # noqa: N818 - a bug, not an error that somebody handles
    """An event that cannot happen now: a bug. Carries the story of the job, node or step."""


def tell(
    kind: str, name: object, state: IntEnum, flags: IntFlag, log: Sequence[tuple[float, str]]
) -> str:
    """The story of a job or node: what it is, and what has happened to it, by time."""
    beside = f"|{flags.name}" if flags else ""
    return f"{kind} {name} {state.name}{beside}: " + "; ".join(f"{t:.3f} {what}" for t, what in log)


@dataclass(frozen=True, slots=True)
class Change(Generic[State, Flags]):
    """The base state that follows, and the flags: those that come, those that go, those of which
    one must be there for the event to happen, those of which none may be.
    """

    state: State
    gains: Flags | None = None
    loses: Flags | None = None
    needs: Flags | None = None
    bars: Flags | None = None
    _known: dict[Flags, Flags | None] = field(default_factory=dict, compare=False, repr=False)

    def after(self, flags: Flags) -> Flags | None:
        """What it makes of the flags, None if they do not let the event happen: worked out once,
        as arithmetic with flags is slow.
        """
        try:
            return self._known[flags]
        except KeyError:
            known = self._known[flags] = self.flags_after(flags) if self.may_happen(flags) else None
            return known

    def may_happen(self, flags: Flags) -> bool:
        """Whether the flags let the event happen."""
        return (self.needs is None or bool(flags & self.needs)) and (
            self.bars is None or not flags & self.bars
        )

    def flags_after(self, flags: Flags) -> Flags:
        """What it makes of the flags."""
        if self.loses is not None:
            flags = flags & ~self.loses
        return flags if self.gains is None else flags | self.gains
