"""Counts in sentences. Pure."""


def many(count: int, noun: str) -> str:
    """`1 job`, `1,200 jobs`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
