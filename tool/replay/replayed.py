"""What a change asks of the replay of a trace (`change.Subject`).

Place: between change.py and the replay itself, which knows no future.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from understudy.tool.replay.change import copies

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from understudy.experiments.replay import Replayer
    from understudy.experiments.trace import TraceJob
    from understudy.tool.cluster.cluster_run import Participant


class TraceSubject:
    """A trace that is being replayed."""

    def __init__(self, participant: Participant, replayer: Replayer) -> None:
        self.participant, self._replayer = participant, replayer
        self.tag, self.expect = replayer.tag, replayer.expect

    def words(self, words: Sequence[str]) -> list[str]:
        """As they are: a trace's jobs have the cluster's numbers."""
        return list(words)

    def multiply(self, load: float, rng: random.Random) -> None:
        self._replayer.add(
            [job for job in self._replayer.coming() for _ in range(copies(load, rng))]
        )

    def add_trace(self, jobs: Sequence[TraceJob]) -> None:
        now = math.ceil(self.participant.time.now() - self._replayer.zero)
        self._replayer.add([msgspec.structs.replace(job, submit=job.submit + now) for job in jobs])
