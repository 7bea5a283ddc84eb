"""How many requests a user may make: a bucket of tokens each, of which a request takes one.

Place: the edge, under the server, which says who asks and when. Follows: slurm.conf(5) of 23.02,
SlurmctldParameters=rl_enable, and of 23.11, rl_log_freq; 22.05.8 has neither.

A user may make `rl_bucket_size` requests at once, and `rl_refill_rate` more in each
`rl_refill_period` of the cluster's time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from understudy.model.scheduler_parameters import number

if TYPE_CHECKING:
    from collections.abc import Iterable


class RateLimit(NamedTuple):
    """What slurm.conf asks for."""

    bucket_size: int = 30
    refill_rate: int = 2  # tokens
    refill_period_s: int = 1
    table_size: int = 8192  # users
    log_freq_s: int = 0  # between two lines about a user; 0: each is told of; -1: none

    @classmethod
    def of(cls, words: Iterable[str]) -> RateLimit | None:
        """As the words of SlurmctldParameters say; None without rl_enable. A number that cannot be
        meant is passed over.
        """
        given = dict(word.lower().partition("=")[::2] for word in words)
        if "rl_enable" not in given:
            return None
        least = 2**63  # rl_log_freq alone may be negative
        return cls(
            number(given, "rl_bucket_size", cls().bucket_size, least=1),
            number(given, "rl_refill_rate", cls().refill_rate, least=1),
            number(given, "rl_refill_period", cls().refill_period_s, least=1),
            number(given, "rl_table_size", cls().table_size, least=1),
            max(number(given, "rl_log_freq", cls().log_freq_s, least=-least), -1),
        )


class _Bucket:
    __slots__ = ("filled", "logged", "tokens")

    def __init__(self, tokens: int, filled: float) -> None:
        self.tokens, self.filled, self.logged = tokens, filled, -math.inf


class Buckets:
    """The users' buckets. Times are the cluster's, in seconds."""

    def __init__(self, limit: RateLimit) -> None:
        self.limit = limit
        self._of: dict[int, _Bucket] = {}

    def take(self, user_id: int, now: float) -> bool:
        """Take a token; False if there is none. Who finds no place in the table is not limited."""
        bucket = self._of.get(user_id)
        if bucket is None:
            if len(self._of) >= self.limit.table_size:
                self._forget_full(now)
            if len(self._of) >= self.limit.table_size:
                return True
            bucket = self._of[user_id] = _Bucket(self.limit.bucket_size, now)
        self._refill(bucket, now)
        if not bucket.tokens:
            return False
        bucket.tokens -= 1
        return True

    def is_told_of(self, user_id: int, now: float) -> bool:
        """Whether the log has a line about the user, who has just found no token."""
        seldom, bucket = self.limit.log_freq_s, self._of[user_id]
        if seldom < 0 or now < bucket.logged + seldom:
            return False
        bucket.logged = now
        return True

    def _refill(self, bucket: _Bucket, now: float) -> None:
        """Tokens come at the end of each period."""
        periods = int((now - bucket.filled) // self.limit.refill_period_s)
        if periods > 0:
            bucket.filled += periods * self.limit.refill_period_s
            bucket.tokens = min(
                bucket.tokens + periods * self.limit.refill_rate, self.limit.bucket_size
            )

    def _forget_full(self, now: float) -> None:
        """Users whose buckets are full again are as good as unknown."""
        for user_id, bucket in list(self._of.items()):
            self._refill(bucket, now)
            if bucket.tokens == self.limit.bucket_size:
                del self._of[user_id]
