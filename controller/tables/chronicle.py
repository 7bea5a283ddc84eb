"""What befell a job since it was queued: the reasons for which it waited, the starts that it was
promised, and what was done to it while it ran.

Place: tables, pure. It is kept only while a replay follows the jobs, and told with the end of the
run; nothing is decided by it.
"""

from __future__ import annotations

from typing import Final

import msgspec

# ours: of more promises every other one is forgotten but the first and the last, so that one who
# is promised something else in each pass for a week takes no more
MOST_PROMISES: Final = 128
MOST_REASONS: Final = 128
MAKES_ROOM: Final = "makes room"  # for another job that preempts it


class Chronicle(msgspec.Struct, eq=False):
    """Each list is in the order of time; times are seconds since the epoch."""

    reasons: list[tuple[int, str]] = []  # from when it waited for what
    promises: list[tuple[int, int]] = []  # when it was promised which start
    events: list[tuple[int, str, str]] = []  # when, what, and who had to do with it

    def waits(self, since: float, reason: str, detail: str) -> None:
        """So it was from `since` on, until the next. Of what began in the same second the last
        counts: passes give a job one reason after the other.
        """
        text = f"{reason} ({detail})" if detail else reason
        reasons, second = self.reasons, int(since)
        if reasons and reasons[-1][0] == second:
            reasons.pop()
        if reasons and reasons[-1][1] == text:
            return
        reasons.append((second, text))
        if len(reasons) > MOST_REASONS:
            del reasons[1:-1:2]

    def promised(self, now: float, start: int) -> None:
        """From now on it is to start then."""
        promises = self.promises
        promises.append((int(now), start))
        if len(promises) > MOST_PROMISES:
            del promises[1:-1:2]

    def happened(self, now: float, what: str, who: str = "") -> None:
        """Something was done to it."""
        self.events.append((int(now), what, who))

    def copied(self) -> Chronicle:
        """That of a task which leaves its array: what befell the array befell it."""
        return Chronicle(self.reasons.copy(), self.promises.copy(), self.events.copy())
