"""The fields that a request may set, their types, and how a value is taken over: what a message
brings is checked here and nowhere else.

Place: the core of the accounting daemon, pure. Names are those of understudy.model.associations and
.qos.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from understudy.model import tres
from understudy.model.errors import SlurmError
from understudy.model.qos import FLAGS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from understudy.accounting.ledger import Ledger
    from understudy.model.associations import Association
    from understudy.model.qos import Qos

_NUMBERS: Final = frozenset(
    [
        "grp_jobs",
        "grp_jobs_accrue",
        "grp_submit_jobs",
        "grp_wall",
        "max_jobs",
        "max_jobs_accrue",
        "max_submit_jobs",
        "max_wall",
        "min_prio_threshold",
    ]
)
_TRES: Final = frozenset(
    [
        "grp_tres",
        "grp_tres_mins",
        "grp_tres_run_mins",
        "max_tres_per_job",
        "max_tres_per_node",
        "max_tres_mins_per_job",
    ]
)

_QOS_NUMBERS: Final = (_NUMBERS - {"max_jobs", "max_jobs_accrue", "max_submit_jobs"}) | frozenset(
    (
        *(
            "max_jobs_per_account",
            "max_jobs_per_user",
            "max_jobs_accrue_per_account",
            "max_jobs_accrue_per_user",
        ),
        *("max_submit_jobs_per_account", "max_submit_jobs_per_user", "preempt_exempt_time_s"),
    )
)
_QOS_TRES: Final = _TRES | {"max_tres_per_account", "max_tres_per_user", "min_tres_per_job"}
PREEMPT_MODES: Final = (
    "cluster",
    "cancel",
    "requeue",
    "suspend",
    "off",
    "gang",
    "suspend,gang",
    "gang,suspend",
)


def invalid(name: str, value: object) -> SlurmError:
    """The refusal of a value."""
    return SlurmError(-1, f"Invalid value for {name} ({value})")


def number(name: str, value: object) -> int | None:
    """A limit: a number from 0 on, or None."""
    if value is None or value == -1:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise invalid(name, value)
    return value


def association_changes(
    ledger: Ledger, values: Mapping[str, Any], before: Association
) -> dict[str, Any]:
    """The fields of an association after what a request sets.

    Raises:
        SlurmError: an unknown field, or a value that it cannot have.
    """
    changes: dict[str, Any] = {}
    for name, value in values.items():
        if name in _NUMBERS or name == "priority":
            changes[name] = number(name, value)
        elif name in _TRES:
            changes[name] = tres_limit(ledger, name, value, getattr(before, name))
        elif name == "shares":
            given = number(name, value)
            changes[name] = 1 if given is None else given
        elif name == "default_qos":
            changes[name] = known_qos(ledger, [value])[0] if value else None
        elif name == "qos":
            changes.update(qos_list(ledger, value, before))
        else:
            raise SlurmError(-1, f"an association has no {name}")
    return changes


def tres_limit(
    ledger: Ledger, name: str, value: object, before: Mapping[str, int]
) -> dict[str, int]:
    """The limit by resource after a change of some of them."""
    if value is None:
        return {}
    known = ledger.tres_numbers()
    if not isinstance(value, dict) or not all(
        key in known and isinstance(amount, int) for key, amount in value.items()
    ):
        raise invalid(name, value)
    return tres.merged(before, value)


def known_qos(ledger: Ledger, names: object) -> list[str]:
    """The names, all of which must be qualities of service."""
    known = {each.name for each in ledger.qos.values()}
    if not isinstance(names, list) or not all(
        isinstance(name, str) and name.lstrip("+-") in known for name in names
    ):
        raise invalid("qos", names)
    return names


def qos_list(ledger: Ledger, value: object, before: Association) -> dict[str, Any]:
    """An association's own list and its changes to what is inherited. An empty list: all is
    inherited.
    """
    names = known_qos(ledger, value)
    if not names:
        return {"qos": None, "delta_qos": ()}
    plain = [name for name in names if name[0] not in "+-"]
    signed = [name for name in names if name[0] in "+-"]
    if plain:
        return {"qos": changed_list(tuple(plain), signed), "delta_qos": ()}
    if before.qos is not None:
        return {"qos": changed_list(before.qos, signed), "delta_qos": ()}
    delta = {name[1:]: name for name in (*before.delta_qos, *signed)}
    return {"delta_qos": tuple(delta.values())}


def changed_list(before: tuple[str, ...], changes: list[str]) -> tuple[str, ...]:
    """A list of names after `+name` and `-name`; plain names replace it."""
    plain = [name for name in changes if name[:1] not in {"+", "-"}]
    kept = dict.fromkeys(plain or before)
    for change in changes:
        if change.startswith("+"):
            kept[change[1:]] = None
        elif change.startswith("-"):
            kept.pop(change[1:], None)
    return tuple(kept)


def qos_changes(ledger: Ledger, values: Mapping[str, Any], before: Qos) -> dict[str, Any]:
    """The fields of a quality of service after what a request sets.

    Raises:
        SlurmError: an unknown field, or a value that it cannot have.
    """
    changes: dict[str, Any] = {}
    for name, value in values.items():
        if name in _QOS_NUMBERS:
            changes[name] = number(name, value)
        elif name in _QOS_TRES:
            changes[name] = tres_limit(ledger, name, value, getattr(before, name))
        elif name in _OTHER_QOS_FIELDS:
            changes[name] = _OTHER_QOS_FIELDS[name](ledger, value, before)
        else:
            raise SlurmError(-1, f"a quality of service has no {name}")
    return changes


def _float(name: str, default: float | None) -> Callable[[Ledger, Any, Qos], float | None]:
    def read(_ledger: Ledger, value: Any, _before: Qos) -> float | None:
        if value is None or value == -1:
            return default
        if not isinstance(value, int | float) or not value >= 0:
            raise invalid(name, value)
        return float(value)

    return read


def _description(_ledger: Ledger, value: Any, _before: Qos) -> str:
    return str(value)


def _from_zero(_ledger: Ledger, value: Any, _before: Qos) -> int:
    return number("value", value) or 0


def _flags(_ledger: Ledger, value: Any, before: Qos) -> tuple[str, ...]:
    names = {flag.lower(): flag for flag in FLAGS}
    if value is None:
        return ()
    if not isinstance(value, list) or not all(
        isinstance(flag, str) and flag.lstrip("+-").lower() in names for flag in value
    ):
        raise invalid("Flags", value)
    signed = [
        (flag[0] if flag[0] in "+-" else "") + names[flag.lstrip("+-").lower()] for flag in value
    ]
    chosen = changed_list(before.flags, signed)
    return tuple(flag for flag in FLAGS if flag in chosen)


def _preempt(ledger: Ledger, value: Any, before: Qos) -> tuple[str, ...]:
    names = known_qos(ledger, value)
    return changed_list(before.preempt if any(name[0] in "+-" for name in names) else (), names)


def _preempt_mode(_ledger: Ledger, value: Any, _before: Qos) -> str:
    if str(value).removeprefix("within,") not in (*PREEMPT_MODES, "within"):
        raise invalid("PreemptMode", value)
    return str(value)


_OTHER_QOS_FIELDS: Final[dict[str, Callable[[Any, Any, Any], Any]]] = {
    "usage_factor": _float("UsageFactor", 1.0),
    "usage_threshold": _float("UsageThreshold", None),
    "limit_factor": _float("LimitFactor", None),
    "description": _description,
    "priority": _from_zero,
    "grace_time_s": _from_zero,
    "flags": _flags,
    "preempt": _preempt,
    "preempt_mode": _preempt_mode,
}
