"""The flags of reservations: their names as users write them, and as `scontrol show reservation`
prints them.

Place: the vocabulary that the controller and the commands share; imports nothing heavy. Follows:
scontrol(1) "RESERVATIONS".
"""

from __future__ import annotations

from typing import Final

MAINT: Final = 0x1
FLEX: Final = 0x2
OVERLAP: Final = 0x4
IGNORE_JOBS: Final = 0x8
HOURLY: Final = 0x10
DAILY: Final = 0x20
WEEKDAY: Final = 0x40
WEEKEND: Final = 0x80
WEEKLY: Final = 0x100
SPEC_NODES: Final = 0x200  # the nodes were named
ALL_NODES: Final = 0x400
ANY_NODES: Final = 0x800
STATIC: Final = 0x1000
PART_NODES: Final = 0x2000
FIRST_CORES: Final = 0x4000
TIME_FLOAT: Final = 0x8000
REPLACE: Final = 0x10000
REPLACE_DOWN: Final = 0x20000
PURGE_COMP: Final = 0x40000
NO_HOLD_JOBS_AFTER: Final = 0x80000
MAGNETIC: Final = 0x100000

REPEATS: Final = HOURLY | DAILY | WEEKDAY | WEEKEND | WEEKLY

_SHOWN: Final = (
    (MAINT, "MAINT"),
    (FLEX, "FLEX"),
    (OVERLAP, "OVERLAP"),
    (IGNORE_JOBS, "IGNORE_JOBS"),
    (HOURLY, "HOURLY"),
    (DAILY, "DAILY"),
    (WEEKDAY, "WEEKDAY"),
    (WEEKEND, "WEEKEND"),
    (WEEKLY, "WEEKLY"),
    (SPEC_NODES, "SPEC_NODES"),
    (ALL_NODES, "ALL_NODES"),
    (ANY_NODES, "ANY_NODES"),
    (STATIC, "STATIC"),
    (PART_NODES, "PART_NODES"),
    (FIRST_CORES, "FIRST_CORES"),
    (TIME_FLOAT, "TIME_FLOAT"),
    (REPLACE, "REPLACE"),
    (REPLACE_DOWN, "REPLACE_DOWN"),
    (PURGE_COMP, "PURGE_COMP"),
    (NO_HOLD_JOBS_AFTER, "NO_HOLD_JOBS_AFTER_END"),
    (MAGNETIC, "MAGNETIC"),
)

# What may be written, and how many letters of it suffice.
_WRITTEN: Final = (
    ("MAINTENANCE", 3, MAINT),
    ("OVERLAP", 1, OVERLAP),
    ("FLEX", 1, FLEX),
    ("IGNORE_JOBS", 1, IGNORE_JOBS),
    ("HOURLY", 1, HOURLY),
    ("DAILY", 1, DAILY),
    ("WEEKDAY", 5, WEEKDAY),
    ("WEEKEND", 5, WEEKEND),
    ("WEEKLY", 5, WEEKLY),
    ("ANY_NODES", 1, ANY_NODES),
    ("LICENSE_ONLY", 1, ANY_NODES),
    ("STATIC_ALLOC", 1, STATIC),
    ("PART_NODES", 2, PART_NODES),
    ("PURGE_COMP", 2, PURGE_COMP),
    ("FIRST_CORES", 2, FIRST_CORES),
    ("TIME_FLOAT", 1, TIME_FLOAT),
    ("REPLACE_DOWN", 8, REPLACE_DOWN),
    ("REPLACE", 1, REPLACE),
    ("NO_HOLD_JOBS_AFTER_END", 1, NO_HOLD_JOBS_AFTER),
    ("MAGNETIC", 3, MAGNETIC),
)
# What `Flags-=` can take away from a reservation.
_REMOVABLE: Final = (
    MAINT
    | OVERLAP
    | FLEX
    | IGNORE_JOBS
    | REPEATS
    | ANY_NODES
    | STATIC
    | PART_NODES
    | PURGE_COMP
    | NO_HOLD_JOBS_AFTER
    | MAGNETIC
)


def read_flags(text: str) -> tuple[int, int, str]:
    """(flags to set, flags to take away, what PURGE_COMP= says) of a list; a flag with `-` before
    it is taken away.

    Raises:
        ValueError: with the word that is no flag, and all behind it.
    """
    wanted = unwanted = 0
    purge = ""
    words = text.split(",")
    for place, word in enumerate(words):
        name, _, value = word.lstrip("+-").upper().partition("=")
        flag = next(
            (bit for full, least, bit in _WRITTEN if len(name) >= least and full.startswith(name)),
            0,
        )
        is_removed = word.startswith("-")
        if not flag or (is_removed and not flag & _REMOVABLE):
            raise ValueError(",".join(words[place:]))
        if flag == PURGE_COMP and value:
            purge = value
        if is_removed:
            unwanted |= flag
        else:
            wanted |= flag
    return wanted, unwanted, purge


def flags_text(flags: int, purge_comp: str = "") -> str:
    """The flags as they are printed; `purge_comp` is the time that PURGE_COMP waits."""
    return ",".join(
        f"{name}={purge_comp}" if bit == PURGE_COMP and purge_comp else name
        for bit, name in _SHOWN
        if flags & bit
    )
