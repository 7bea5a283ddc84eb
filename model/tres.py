"""Trackable resources (TRES): what accounting counts and limits, by name: cpu, mem (MB), node,
billing, gres/gpu, license/matlab ...

Place: the vocabulary; pure. Amounts are a mapping of names to numbers, `{"cpu": 4, "mem": 1024}`;
in text `cpu=4,mem=1G`. Follows sacctmgr(1) and slurm.conf(5), AccountingStorageTRES. Commands use
it, so it imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Final

# Slurm numbers these 1 to 8
BASE: Final = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
FIRST_DYNAMIC_ID: Final = 1001  # from here on those that a site names in AccountingStorageTRES
IN_MEGABYTES: Final = frozenset(("mem", "vmem"))

_UNITS: Final = "KMGTP"
_NO_LIMIT: Final = (0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFE)


class TresError(ValueError):
    """A text that names no amount of a trackable resource; says what was wrong in Slurm's words."""


def is_in_megabytes(name: str) -> bool:
    """Whether the amount of it is in MB: memory, and space of burst buffers."""
    return name in IN_MEGABYTES or name.startswith("bb/")


def split_name(name: str) -> tuple[str, str]:
    """The type and the name within it: `gres/gpu` is ("gres", "gpu"), `cpu` is ("cpu", "")."""
    kind, _, rest = name.partition("/")
    return kind, rest


def parse(
    text: str, known: Mapping[str, int], complain: Callable[[str], None] = lambda _text: None
) -> dict[str, int]:
    """Read `cpu=4,mem=1G`, or `1=4,2=1G`, by names and their numbers. -1 stands for "no limit".
    Names may be in any case and cut short; what is wrong with an amount is complained of, and the
    amount is what stands before it.

    Raises:
        TresError: an unknown resource.
    """
    amounts: dict[str, int] = {}
    rest: str | None = text.removeprefix(",")
    while rest is not None:
        name, rest = _resource(rest, known)
        amount, comma, behind = rest.partition(",")
        amounts[name] = _amount(name, amount, complain)
        rest = behind if comma else None
    return amounts


def _resource(text: str, known: Mapping[str, int]) -> tuple[str, str]:
    """Which resource a text begins with, by name or number, and what follows the `=`."""
    word, equals, rest = text.partition("=")
    digits = text[: len(text) - len(text.lstrip("0123456789"))]
    if digits:
        if not int(digits):
            raise TresError(f"cannot convert {text} to ID.")
        name = next((each for each, number in known.items() if number == int(digits)), None)
        if name is None:
            raise TresError(f"no TRES known by id {int(digits)}")
        if not equals:
            raise TresError("no value given as TRES type/id.")
        return name, rest
    if not equals:
        raise TresError(f"no TRES id found for {text}")
    by_number = sorted(known, key=known.__getitem__)
    name = next((each for each in by_number if each.lower().startswith(word.lower())), None)
    if name is None:
        raise TresError(f"no TRES known by type {word}")
    return name, rest


def _amount(name: str, text: str, complain: Callable[[str], None]) -> int:
    """One amount: a number with a unit or without; memory in MB unless a unit says otherwise. As
    in C, what is below zero is counted down from 2^64, and the last two of these are no limit.
    """
    text = text.lstrip()
    sign = text[:1] if text[:1] in {"+", "-"} else ""
    digits = text[len(sign) : len(text) - len(text[len(sign) :].lstrip("0123456789"))]
    unit = text[len(sign + digits) :][:1] if digits else text[:1]
    number = min(int(digits or 0), _NO_LIMIT[0])
    if sign == "-":
        number = -number & _NO_LIMIT[0]
    if unit and unit.upper() not in _UNITS:
        complain(f"Invalid unit type '{unit}'. Possible options are '{_UNITS}'")
    elif unit:
        number = number * _factor(name, unit.upper()) & _NO_LIMIT[0]
    return -1 if number in _NO_LIMIT else number


def _factor(name: str, unit: str) -> int:
    """What a unit makes of a number: 22.05 counts K of memory as MB, and T and P of others as 1."""
    power = _UNITS.index(unit)
    if is_in_megabytes(name):
        return 1 << 10 * max(power - 1, 0)
    return 1 << 10 * (power + 1) if power <= _UNITS.index("G") else 1


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
