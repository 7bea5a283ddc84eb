"""The shortest sequence that still shows a difference. Pure: the caller runs sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from differential.sequence import Step


def shrunk(
    steps: list[Step], shows: Callable[[list[Step]], bool], *, most_runs: int = 40
) -> list[Step]:
    """Steps that show it, from which no step and no word could be taken within so many runs.

    Whole halves go first, then single steps, then words, variables and lines of scripts.
    """
    left = most_runs

    def still(candidate: list[Step]) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and shows(candidate)

    size = max(1, len(steps) // 2)
    while size:
        at = 0
        while at < len(steps) and left > 0:
            candidate = steps[:at] + steps[at + size :]
            if candidate and still(candidate):
                steps = candidate
            else:
                at += size
        size //= 2
    again = True
    while again and left > 0:
        again = False
        for at, step in enumerate(steps):
            for smaller in step.smaller():
                candidate = [*steps[:at], smaller, *steps[at + 1 :]]
                if still(candidate):
                    steps, again = candidate, True
                    break
            if again:
                break
    return steps
