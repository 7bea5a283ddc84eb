"""Generic resources as text: what a node line has, what a job asks for.

Place: model, pure. Follows slurm.conf(5) Gres, gres.conf(5), sbatch(1) --gres and --gpus.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

GPU: Final = "gpu"
SHARED: Final = ("mps", "shard")  # parts of GPUs, which several jobs share
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_COUNT: Final = re.compile(r"(\d+)([KkMmGgTtPp]?)")
_NAME: Final = re.compile(r"[A-Za-z][\w.+/-]*")
_NO_CONSUME: Final = "no_consume"


@dataclass(frozen=True, slots=True)
class GresCount:
    """So many of a name and type; "" as type: of any."""

    name: str
    type: str
    count: int
    is_consumed: bool = True  # False: nodes have it, jobs ask for it, nobody uses it up

    def __str__(self) -> str:
        return f"{self.name}:{self.type}:{self.count}" if self.type else f"{self.name}:{self.count}"


class BadCountError(ValueError):
    """What begins as a number and is none, where a number may be: Slurm has an error of its own for
    it.
    """


def read_count(text: str) -> int | None:
    """`4`, `2k` (2048); None if it is no number."""
    match = _COUNT.fullmatch(text)
    return None if match is None else int(match[1]) * _UNITS[match[2].upper()]


def read_configured(text: str) -> tuple[GresCount, ...]:
    """`gpu:a100:4,gpu:2,mem:no_consume:50G`, also with `(S:0-1)` behind a word, in the order of the
    text.

    Raises:
        ValueError: a word that is none.
    """
    found: list[GresCount] = []
    for word in _words(text):
        bare = word.partition("(")[0]
        parts = bare.split(":")
        is_consumed = _NO_CONSUME not in parts[1:] and f"({_NO_CONSUME})" not in word
        parts = [part for part in parts if part != _NO_CONSUME]
        last = read_count(parts[-1]) if len(parts) > 1 else None
        if last is not None:
            parts.pop()
        if len(parts) > 2 or not all(_NAME.fullmatch(part) for part in parts[:1]):
            raise ValueError(word)
        count = 1 if last is None else last
        if count:
            found.append(
                GresCount(parts[0], parts[1] if len(parts) > 1 else "", count, is_consumed)
            )
    return tuple(found)


def read_request(text: str) -> tuple[GresCount, ...]:
    """`gres:gpu:a100:2,tape` as counts, each name and type once: the last word counts. `none` asks
    for nothing.

    Raises:
        ValueError: a word that is none, of kind BadCountError where its count is not.
    """
    found: dict[tuple[str, str], int] = {}
    for word in _words(text):
        if word.upper() in ("NONE", "0"):
            continue
        for prefix in ("gres:", "gres/"):
            word = word.removeprefix(prefix)  # noqa: PLW2901 - the same word without it
        parts = word.replace("=", ":").split(":")
        last = read_count(parts[-1]) if len(parts) > 1 else None
        if last is not None:
            parts.pop()
        if len(parts) > 2 or not all(
            _NAME.fullmatch(part) or ((index or last == 0) and part)  # of nothing, of any name
            for index, part in enumerate(parts)
        ):
            raise ValueError(word)
        if last is None and len(parts) > 1 and parts[1][0].isdecimal():
            raise BadCountError(word)
        key = (parts[0], parts[1] if len(parts) > 1 else "")
        found[key] = 1 if last is None else last
    return tuple(GresCount(name, kind, count) for (name, kind), count in found.items() if count)


def mixes_types(wants: tuple[GresCount, ...]) -> bool:
    """Whether one name is asked for with a type and without."""
    return any(a.name == b.name and bool(a.type) != bool(b.type) for a in wants for b in wants)


def _words(text: str) -> list[str]:
    return [
        word
        for word in (part.strip() for part in text.split(","))
        if word and word.lower() != "(null)"
    ]


def gpus_in(text: str) -> int:
    """How many GPUs a request asks for.

    Raises:
        ValueError: as `read_request`.
    """
    return sum(want.count for want in read_request(text) if want.name == GPU) if text else 0


def unsaid(count: int) -> str:
    """So many of GPUs, or for each of them, for which nobody asked: it follows from something else,
    and 22.05.8 writes it without the `gres:` of options.
    """
    return f"{GPU}:{count}"


def is_unsaid(text: str) -> bool:
    """Whether nobody asked for it."""
    return text.startswith(GPU)


def gpu_defaults(text: str) -> dict[str, int]:
    """`DefCpuPerGPU=2,DefMemPerGPU=100` as {"cpu": 2, "mem": 100}."""
    found: dict[str, int] = {}
    for word in _words(text):
        name, _, value = word.partition("=")
        key = {"defcpupergpu": "cpu", "defmempergpu": "mem"}.get(name.strip().lower())
        if key and value.strip().isdecimal():
            found[key] = int(value)
    return found
