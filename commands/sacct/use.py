"""What steps have used, as sacct prints it, and the units of sizes. Follows sacct(1) of 22.05.

Place: commands alone; pure. What accounting keeps of it is said in `model/task_usage.py`.
"""

from understudy.commands.shared.texts import full_duration, thousands
from understudy.commands.shared.texts import megabytes as in_units
from understudy.documents.use import IN, OUT, amount_of, was_measured

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Row = dict[str, Any]
    Make = Callable[[Row], str]

_units: "tuple[str, bool]" = ("", True)


def set_units(unit: str, *, convert: bool) -> None:
    """In which unit sizes are printed (--units), or that they stay in megabytes (--noconvert)."""
    global _units
    _units = (unit, convert)


def size(megabytes: int) -> str:
    """An amount of memory: in the largest unit that divides it, or as --units and --noconvert
    say.
    """
    unit, convert = _units
    if unit and convert:
        power = "MGTP".find(unit)
        return f"{megabytes * 1024}K" if power < 0 else _fraction(megabytes / 1024**power, unit)
    if not convert:
        return f"{megabytes}M"
    return in_units(megabytes)


def _fraction(amount: float, unit: str) -> str:
    return f"{int(amount)}{unit}" if amount == int(amount) else f"{amount:.2f}{unit}"


def _whole(amount: int) -> str:
    """An amount in ones: plain, in the largest unit that divides it, or as --units and --noconvert
    say.
    """
    unit, convert = _units
    if unit and convert:
        return _fraction(amount / 1024 ** ("KMGTP".find(unit) + 1), unit)
    return thousands(amount) if convert else str(amount)


def _text(quantity: str, amount: int) -> str:
    return full_duration(amount // 1_000_000) if quantity == "cpu_us" else _whole(amount)


def of_tasks(which: str, quantity: str) -> "Make":
    def make(row: "Row") -> str:
        found = amount_of(row, which, quantity)
        if found is None:
            return ""
        return (
            str(found)
            if isinstance(found, str) or which.endswith("_task")
            else _text(quantity, found)
        )

    return make


def disk(which: str, quantity: str) -> "Make":
    """Always in megabytes, unless --units says otherwise."""

    def make(row: "Row") -> str:
        found = amount_of(row, which, quantity)
        unit = _units[0] or "M"
        return "" if found is None else f"{int(found) / 1024 ** ('KMGTP'.find(unit) + 1):.2f}{unit}"

    return make


def tres_in(which: str) -> "Make":
    return _tres(IN, which)


def tres_out(which: str) -> "Make":
    return _tres(OUT, which)


def _tres(names: "tuple[tuple[str, str], ...]", which: str) -> "Make":
    def make(row: "Row") -> str:
        return ",".join(f"{name}={text}" for name, text in _pairs(row, names, which))

    return make


def _pairs(
    row: "Row", names: "tuple[tuple[str, str], ...]", which: str
) -> "Iterator[tuple[str, str]]":
    """Energy is none's; of steps too short to be looked at it is all that is known."""
    measured = amount_of(row, "sum", "rss") is not None
    if not measured and (which not in {"ave", "sum"} or not was_measured(row)):
        return
    for name, quantity in names:
        if quantity and measured:
            yield name, of_tasks(which, quantity)(row)
        elif not quantity and which.endswith("_node"):
            yield name, str(amount_of(row, which, "read"))
        elif not quantity and not which.endswith("_task"):
            yield name, "0"
