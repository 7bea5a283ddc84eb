"""Trackable resources (TRES): what accounting counts and limits, by name: cpu, mem (MB), node,
billing, gres/gpu, license/matlab ...

Place: the vocabulary; pure. Amounts are a mapping of names to numbers, `{"cpu": 4, "mem": 1024}`;
in text `cpu=4,mem=1G`. Follows sacctmgr(1) and slurm.conf(5), AccountingStorageTRES. Commands use
it, so it imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Final

# Slurm numbers these 1 to 8
BASE: Final = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
FIRST_DYNAMIC_ID: Final = 1001  # from here on those that a site names in AccountingStorageTRES
IN_MEGABYTES: Final = frozenset(("mem", "vmem"))

_UNITS: Final = "KMGTP"
_MEGABYTE: Final = 1024 * 1024


class TresError(ValueError):
    """A text that names no amount of a trackable resource; says what was wrong in Slurm's words."""


def is_in_megabytes(name: str) -> bool:
    """Whether the amount of it is in MB: memory, and space of burst buffers."""
    return name in IN_MEGABYTES or name.startswith("bb/")


def split_name(name: str) -> tuple[str, str]:
    """The type and the name within it: `gres/gpu` is ("gres", "gpu"), `cpu` is ("cpu", "")."""
    kind, _, rest = name.partition("/")
    return kind, rest


def parse(text: str, known: Iterable[str]) -> dict[str, int]:
    """Read `cpu=4,mem=1G`. -1 stands for "no limit". Names may be in any case.

    Raises:
        TresError: an unknown name, or no amount.
    """
    names = {name.lower(): name for name in known}
    amounts: dict[str, int] = {}
    for part in text.split(","):
        if not part:
            continue
        name, equals, amount = part.partition("=")
        found = names.get(name.strip().lower())
        if not equals or (found is not None and not amount):
            raise TresError(f"no TRES id found for {name}")
        if found is None:
            raise TresError(f"no TRES known by type {name}")
        amounts[found] = parse_amount(found, amount)
    return amounts


def parse_amount(name: str, text: str) -> int:
    """Read one amount: a number with a unit or without; memory in MB unless a unit says otherwise.

    Raises:
        TresError: not a number, or an unknown unit.
    """
    text = text.strip()
    digits = text[: len(text) - len(text.lstrip("-0123456789"))]
    unit = text[len(digits) : len(digits) + 1].upper()
    if unit and unit not in _UNITS:
        raise TresError(f"Invalid unit type '{unit.lower()}'. Possible options are '{_UNITS}'")
    try:
        number = int(digits)
    except ValueError:
        raise TresError(f"Invalid TRES amount '{text}'") from None
    if number < 0:
        return -1
    if not unit:
        return number
    factor = 1 << 10 * (_UNITS.index(unit) + 1)
    return number * factor // _MEGABYTE if is_in_megabytes(name) else number * factor


def text_of(amounts: Mapping[str, int], order: Mapping[str, int] | None = None) -> str:
    """`cpu=4,mem=1G`: by name, as Slurm prints them, or by the numbers in `order`."""
    names = sorted(amounts, key=(lambda name: order.get(name, 0)) if order is not None else None)
    return ",".join([f"{name}={amount_text(name, amounts[name])}" for name in names])


def amount_text(name: str, amount: int) -> str:
    """One amount: memory with its unit, larger ones where they divide (`10G`, `1000M`), the others
    plain.
    """
    if not is_in_megabytes(name) or amount <= 0:
        return str(amount)
    unit = 1
    while amount >= 1024 and amount % 1024 == 0 and unit < len(_UNITS) - 1:
        amount //= 1024
        unit += 1
    return f"{amount}{_UNITS[unit]}"


def merged(base: Mapping[str, int], change: Mapping[str, int]) -> dict[str, int]:
    """The amounts after a change: names that it has are replaced, -1 takes one away."""
    result = {**base, **change}
    return {name: amount for name, amount in result.items() if amount >= 0}


def inherited(own: Mapping[str, int], parents: Mapping[str, int]) -> dict[str, int]:
    """A limit by resource where the parent's holds for the resources of which the child says
    nothing.
    """
    return {**parents, **own}


def numbered(extra: Iterable[str]) -> dict[str, int]:
    """Names to numbers: the base ones, then those of the site in the order given."""
    numbers = {name: number for number, name in enumerate(BASE, 1)}
    for name in extra:
        if name not in numbers:
            numbers[name] = max(FIRST_DYNAMIC_ID - 1, *numbers.values()) + 1
    return numbers
