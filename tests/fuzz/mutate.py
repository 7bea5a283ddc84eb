"""Texts and bytes that are almost right."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

WORDS = (
    "", "0", "-1", "1", "4294967296", "99999999999999999999", "1e400", "nan", "-", ":", "=", ",",
    "[", "]", "n[1-3]", "n[", "n[3-1]", "n[1-99999999999]", "ALL", "UNLIMITED", "1:00:00", "1-",
    "1-0:0:0:0", "\0", "é", "\udc80", "ü" * 300, "a" * 5000, "*", "%", "%a", "\\", '"', "'", "#",
    "{", "}", "gpu:1", "gpu:a100:-1", "gpu", "1,2", "1-5%2", "1_2", "1+1", "1.0", "now+1hour",
    "afterok:1", "NONE", "(null)", "&", "|", "a&b|c", "x" * 70000,
)  # fmt: skip


def text(rng: random.Random, seeds: tuple[str, ...]) -> str:
    """One of the texts, changed in some places."""
    found = rng.choice(seeds)
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        at = rng.randrange(len(found) + 1)
        end = min(len(found), at + rng.choice((0, 1, 3, 20)))
        found = (
            found[:at]
            + rng.choice((*WORDS, found[at:end] * 2, chr(rng.randrange(128))))
            + (found[end:])
        )
    lines = found.split("\n")
    if len(lines) > 2 and rng.random() < 0.3:
        rng.shuffle(lines)
    return "\n".join(lines)


def octets(rng: random.Random, found: bytes) -> bytes:
    """The bytes, changed in some places; sometimes cut."""
    changed = bytearray(found)
    for _ in range(rng.choice((1, 1, 2, 8))):
        match rng.randrange(4):
            case 0 if changed:
                changed[rng.randrange(len(changed))] = rng.randrange(256)
            case 1 if changed:
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
            case 2:
                at = rng.randrange(len(changed) + 1)
                changed[at:at] = rng.randbytes(rng.choice((1, 4, 30)))
            case _:
                del changed[rng.randrange(len(changed) + 1) :]
    return bytes(changed)
