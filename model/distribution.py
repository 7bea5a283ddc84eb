"""Task distributions as options name them and as records show them.

Place: the vocabulary. Follows: srun(1) --distribution; what `scontrol show step` and sacct's Layout
print is not documented.
"""

from __future__ import annotations

_FIRST = frozenset(("block", "cyclic", "arbitrary"))
_INNER = frozenset(("block", "cyclic", "fcyclic"))
PACKINGS = frozenset(("pack", "nopack"))  # how many nodes are taken; they may stand alone
_SHOWN = {
    "fcyclic": "FCyclic",
    "pack": "Pack",
    "nopack": "NoPack",
    "arbitrary": "arbitrary task distribution",
}


class BadPlaneError(ValueError):
    """A plane without a size."""


def canonical(text: str) -> str:
    """The whole of what a value of --distribution means: small letters, words in place of stars.

    Raises:
        ValueError: it means nothing.
    """
    text = text.lower()
    if text.startswith("plane"):
        size = text.removeprefix("plane=")
        if not size.isdecimal() or not int(size):
            raise BadPlaneError(text)
        return f"plane={int(size)}"
    if text in PACKINGS:
        return text
    kinds, _, flag = text.partition(",")
    first, *others = kinds.split(":")
    first = {"*": "block", "": "block" if others else ""}.get(first, first)
    others = [{"*": "cyclic"}.get(word, word) for word in others if word]
    if (
        first not in _FIRST
        or len(others) > (0 if first == "arbitrary" else 2)
        or not _INNER.issuperset(others)
        or (flag and flag not in PACKINGS)
    ):
        raise ValueError(text)
    return ":".join([first, *others]) + (f",{flag}" if flag else "")


def shown(text: str) -> str:
    """A canonical distribution as records show it: `Block`, `BCyclic`, `CBlockFCyclic,NoPack`."""
    kinds, _, flag = text.partition(",")
    first, *others = kinds.partition("=")[0].split(":")
    words = [
        first[:1].upper() if others else _SHOWN.get(first, first.capitalize()),
        *(_SHOWN.get(word, word.capitalize()) for word in others),
    ]
    return "".join(words) + (f",{_SHOWN[flag]}" if flag else "")
