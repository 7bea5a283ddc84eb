"""What may befall a hop: latency and loss on its link, and the death of who should hand it on. All
of it is drawn from a seed.

Place: under `hops.py`, which delays and loses, and the node daemon's edge, which dies. Pure: the
same seed, names and number give the same, in whichever process they are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

_SPREAD = 1.0  # ours: a link's latency is between half of the mean and one and a half


class Passage(NamedTuple):
    """One message and its answer over one link."""

    delay_s: float  # each way
    is_lost: bool
    answer_is_lost: bool


SAFE = Passage(0.0, is_lost=False, answer_is_lost=False)


@dataclass(frozen=True, slots=True)
class Mishaps:
    """`latency_s`: the mean of the links' latencies; each link keeps its own. `loss`: the
    probability with which a message, and likewise an answer, is lost. `deaths`: with which a node
    that is to hand a message on dies with it in its hands.
    """

    seed: int = 0
    latency_s: float = 0.0
    loss: float = 0.0
    deaths: float = 0.0

    def passage(self, sender: str, receiver: str, number: int) -> Passage:
        """Of the sender's message with this number."""
        if not self.latency_s and not self.loss:
            return SAFE
        own, _ = self._draw(f"link {sender}>{receiver}")
        first, second = self._draw(f"message {sender}>{receiver} {number}")
        return Passage(
            self.latency_s * (1 - _SPREAD / 2 + _SPREAD * own),
            first < self.loss,
            second < self.loss,
        )

    def hands_on(self, node: str, number: int, heads: int) -> int | None:
        """To how many of its heads the node hands its message with this number before it dies; None
        if it lives.
        """
        if not self.deaths:
            return None
        dies, when = self._draw(f"death {node} {number}")
        return int(when * heads) if dies < self.deaths else None

    def _draw(self, what: str) -> tuple[float, float]:
        """Two numbers in [0, 1)."""
        digest = blake2b(f"{self.seed} {what}".encode(), digest_size=16).digest()
        return (
            int.from_bytes(digest[:8], "big") / 2**64,
            int.from_bytes(digest[8:], "big") / 2**64,
        )
