"""The last submissions, by the token that their commands gave them: whoever lost the connection
before the answer came asks again, and gets the job that the first request made.

Place: a table; the store keeps it (see docs/adr/0034-commands-that-wait.md).
"""

from __future__ import annotations

from typing import Final

# ours: a command asks again as soon as a controller is there, so no more come between than arrive
# within a few seconds
MOST: Final = 16_384
LONGEST_TOKEN: Final = 64


class Submissions:
    """Who submitted under which token, oldest first; a token of one user says nothing of
    another's.
    """

    def __init__(self) -> None:
        self._jobs: dict[tuple[int, str], int] = {}

    def job_of(self, user_id: int, token: str) -> int | None:
        """The id of the job that was made of the submission; None if it never came."""
        return self._jobs.get((user_id, token)) if token else None

    def note(self, user_id: int, token: str, job_id: int) -> list[tuple[int, str]]:
        """The submission has become a job. Returns what has changed: it, and what is forgotten."""
        if not token or len(token) > LONGEST_TOKEN:
            return []
        self._jobs[user_id, token] = job_id
        changed = [(user_id, token)]
        while len(self._jobs) > MOST:
            oldest = next(iter(self._jobs))
            del self._jobs[oldest]
            changed.append(oldest)
        return changed

    def restore(self, user_id: int, token: str, job_id: int) -> None:
        """One that was saved."""
        self._jobs[user_id, token] = job_id
