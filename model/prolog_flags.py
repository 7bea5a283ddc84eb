"""PrologFlags: its words, and what they imply.

Place: the vocabulary; the controller, the node daemons and accounting read the key through this
module. Follows: slurm.conf(5) PrologFlags, and what `scontrol show config` of Slurm 22.05.8 makes
of it.
"""

from __future__ import annotations

from typing import Final

# in the order in which they are shown
WORDS: Final = ("Alloc", "Contain", "DeferBatch", "NoHold", "Serial", "X11")
_IMPLIED: Final = {
    "contain": ("alloc",),
    "deferbatch": ("alloc",),
    "nohold": ("alloc",),
    "x11": ("alloc", "contain"),
}


def prolog_words(text: str) -> frozenset[str]:
    """The words in small letters, with those that they imply."""
    given = {word.strip().lower() for word in text.split(",") if word.strip()}
    return frozenset(given.union(*(_IMPLIED.get(word, ()) for word in given)))
