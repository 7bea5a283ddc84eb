"""Buckets of tokens. Figures are those of slurm.conf(5), rl_enable."""

from __future__ import annotations

from understudy.controller.edge.rate_limit import Buckets, RateLimit


def test_words_of_slurm_conf() -> None:
    assert RateLimit.of(["rl_bucket_size=5"]) is None
    assert RateLimit.of(["RL_Enable"]) == RateLimit(30, 2, 1, 8192, 0)
    words = "rl_enable rl_bucket_size=50 rl_refill_rate=10 rl_refill_period=2 rl_table_size=9"
    assert RateLimit.of([*words.split(), "rl_log_freq=-1"]) == RateLimit(50, 10, 2, 9, -1)
    wrong = "rl_enable rl_bucket_size=0 rl_refill_rate=-1 rl_refill_period=x rl_table_size"
    assert RateLimit.of(wrong.split()) == RateLimit()


def test_a_burst_empties_the_bucket_and_each_period_brings_some_tokens() -> None:
    buckets = Buckets(RateLimit(bucket_size=3, refill_rate=2, refill_period_s=5))
    assert [buckets.take(7, 100.0) for _ in range(4)] == [True, True, True, False]
    assert not buckets.take(7, 104.9), "the period is not over"
    assert [buckets.take(7, 105.0) for _ in range(3)] == [True, True, False]
    assert [buckets.take(7, 1000.0) for _ in range(4)] == [True, True, True, False]


def test_full_buckets_make_place_and_who_finds_none_is_not_limited() -> None:
    buckets = Buckets(RateLimit(bucket_size=1, table_size=2))
    assert buckets.take(1, 0.0)
    assert buckets.take(2, 0.0)
    assert all(buckets.take(3, 0.0) for _ in range(5)), "no place"
    assert not buckets.take(1, 0.0)
    assert [buckets.take(3, 1.0) for _ in range(2)] == [True, False], "two were full again"


def test_the_log_tells_of_a_user_as_often_as_it_is_to() -> None:
    def told(log_freq_s: int) -> list[bool]:
        buckets = Buckets(RateLimit(bucket_size=1, refill_period_s=100, log_freq_s=log_freq_s))
        buckets.take(1, 0.0)
        return [buckets.is_told_of(1, now) for now in (0.0, 1.0, 9.0, 10.0)]

    assert told(0) == [True] * 4
    assert told(10) == [True, False, False, True]
    assert told(-1) == [False] * 4
