"""What transactions say of records that are added or changed: the columns of Slurm's tables and
their values, as slurmdbd sets them.

Place: the core of the accounting daemon, pure. Follows what `sacctmgr show transactions` of 22.05
prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from understudy.model.qos import FLAGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from understudy.accounting.ledger import Ledger
    from understudy.model.associations import Association
    from understudy.model.qos import Qos

_GROUP: Final = ("grp_jobs", "grp_jobs_accrue", "grp_submit_jobs", "grp_wall")
_OWN: Final = (
    "max_jobs",
    "max_jobs_accrue",
    "min_prio_threshold",
    "max_submit_jobs",
    "max_wall",
    "priority",
)
_TRES: Final = (
    "grp_tres",
    "grp_tres_mins",
    "grp_tres_run_mins",
    "max_tres_per_job",
    "max_tres_per_node",
    "max_tres_mins_per_job",
)
_ORDER: Final = ("shares", *_GROUP, *_OWN, "default_qos", *_TRES, "qos")
_COLUMNS: Final = {
    "min_prio_threshold": "min_prio_thresh",
    "max_wall": "max_wall_pj",
    "max_tres_per_job": "max_tres_pj",
    "max_tres_per_node": "max_tres_pn",
    "max_tres_mins_per_job": "max_tres_mins_pj",
    "max_tres_per_account": "max_tres_pa",
    "max_tres_per_user": "max_tres_pu",
    "min_tres_per_job": "min_tres_pj",
    "default_qos": "def_qos_id",
    "max_jobs_per_account": "max_jobs_pa",
    "max_jobs_accrue_per_account": "max_jobs_accrue_pa",
    "max_jobs_accrue_per_user": "max_jobs_accrue_pu",
    "max_submit_jobs_per_account": "max_submit_jobs_pa",
    "grace_time_s": "grace_time",
    "preempt_exempt_time_s": "preempt_exempt_time",
    "usage_threshold": "usage_thres",
}
_QOS: Final = (
    *_GROUP,
    *(
        "max_jobs_per_account",
        "max_jobs_per_user",
        "max_jobs_accrue_per_account",
        "max_jobs_accrue_per_user",
        "min_prio_threshold",
    ),
    *(
        "max_submit_jobs_per_account",
        "max_submit_jobs_per_user",
        "max_wall",
        "preempt_exempt_time_s",
    ),
)
_QOS_ORDER: Final = (
    "description",
    "flags",
    "grace_time_s",
    *_QOS,
    "preempt",
    "preempt_mode",
    "priority",
    "usage_factor",
    "usage_threshold",
    "limit_factor",
)
_FLAG_BITS: Final = {
    name: 1 << at
    for at, name in enumerate(
        (
            *(
                "PartitionMinNodes",
                "PartitionMaxNodes",
                "PartitionTimeLimit",
                "EnforceUsageThreshold",
                "NoReserve",
                "RequiresReservation",
            ),
            *("DenyOnLimit", "OverPartQOS", "NoDecay", "UsageFactorSafe"),
        )
    )
}
_MODES: Final = {"cluster": 0, "off": 0, "suspend": 1, "requeue": 2, "cancel": 8, "gang": 0x8000}


def any_of(column: str, names: Iterable[str]) -> str:
    """`(column='this' || column='that')`."""
    return "(" + " || ".join(f"{column}='{name}'" for name in names) + ")"


def association_info(
    ledger: Ledger,
    association: Association,
    now: int,
    *,
    above: str = "",
    is_named_default: bool = False,
) -> str:
    """Of a new association; `above`: the account below which an account's is."""
    if association.user:
        place = [
            ("acct", association.account),
            ("user", association.user),
            ("`partition`", association.partition),
        ]
    else:
        place = [("acct", association.account), ("parent_acct", above), ("user", "")]
    values: list[tuple[str, Any]] = [
        ("mod_time", now),
        *place,
        ("shares", association.shares),
        *_limits(association, _GROUP),
    ]
    if is_named_default:
        values.append(("is_def", 1))
    values += _limits(association, _OWN)
    values.append(("def_qos_id", _qos_id(ledger, association.default_qos)))
    values += [
        (_COLUMNS.get(name, name), tres_text(ledger, getattr(association, name)))
        for name in _TRES
        if getattr(association, name)
    ]
    if association.qos is None:
        values += [("qos", ""), ("delta_qos", _list_text(ledger, association.delta_qos))]
    else:
        values.append(("qos", _list_text(ledger, association.qos)))
    return _text(values)


def cluster_info(ledger: Ledger, root: Association, now: int) -> str:
    """Of a new cluster, with the limits of its tree's root."""
    values: list[tuple[str, Any]] = [
        ("mod_time", now),
        ("shares", root.shares),
        *_limits(root, _GROUP),
        *_limits(root, _OWN),
    ]
    values += [
        ("def_qos_id", _qos_id(ledger, root.default_qos)),
        ("qos", _list_text(ledger, root.qos or ())),
    ]
    return _text([*values, ("federation", ""), ("fed_id", 0), ("fed_state", 0), ("features", "")])


def qos_info(ledger: Ledger, qos: Qos, now: int) -> str:
    """Of a new quality of service."""
    values: list[tuple[str, Any]] = [
        ("mod_time", now),
        ("description", qos.description),
        ("flags", flag_bits(qos.flags)),
    ]
    values.append(("grace_time", qos.grace_time_s))
    values += [(_qos_column(name), getattr(qos, name)) for name in _QOS]
    values += [
        ("preempt_mode", _mode(qos.preempt_mode)),
        ("priority", qos.priority),
        ("usage_factor", qos.usage_factor),
    ]
    values += [("usage_thres", qos.usage_threshold), ("limit_factor", qos.limit_factor)]
    if qos.preempt:
        values.append(("preempt", _list_text(ledger, qos.preempt)))
    return _text(values)


def changes_info(ledger: Ledger, records: Iterable[Association], values: Mapping[str, Any]) -> str:
    """Of associations whose limits are set: resources one by one, as they are then."""
    changed = list(records)
    found = []
    for name, value in sorted(
        values.items(), key=lambda each: _ORDER.index(each[0]) if each[0] in _ORDER else -1
    ):
        column = _COLUMNS.get(name, name)
        if name in _TRES:
            text = f"{column}"
            for each in changed:
                text = (
                    f"if (id_assoc={each.id}, '{tres_text(ledger, getattr(each, name))}', {text})"
                )
            found.append(f"{column} = {text}")
        elif name == "default_qos":
            found.append(f"{column}={_value(_qos_id(ledger, value))}")
        elif name == "qos":
            signed = [each for each in value or () if each[:1] in {"+", "-"}]
            found += [_signed_qos(each[0], _qos_id(ledger, each[1:]) or 0) for each in signed]
            if not signed:
                found.append(f"qos='{_list_text(ledger, value or ())}', delta_qos=''")
        elif name == "shares":
            found.append(f"shares={1 if value in {None, -1} else value}")
        else:
            found.append(f"{column}={_value(None if value == -1 else value)}")
    return ", ".join(found)


def _signed_qos(sign: str, number: int) -> str:
    """How one is added to a list in the table, or taken from it."""
    without = f"replace(qos, ',{number},', ',')"
    own = (
        f"replace(concat({without}, ',{number},'), ',,', ',')"
        if sign == "+"
        else f"replace({without}, ',,', ',')"
    )
    delta = f"replace(replace(delta_qos, ',+{number},', ','), ',-{number},', ',')"
    emptied = "qos=if (qos=',', '', qos), " if sign == "-" else ""
    return (
        f"qos=if (qos='', '', {own}), {emptied}delta_qos=if (qos='', "
        f"replace(concat({delta}, ',{sign}{number},'), ',,', ','), '')"
    )


def qos_changes_info(ledger: Ledger, chosen: Iterable[Qos], values: Mapping[str, Any]) -> str:
    """Of qualities of service that are changed."""
    changed = list(chosen)
    found = []
    for name, value in sorted(
        values.items(),
        key=lambda each: _QOS_ORDER.index(each[0]) if each[0] in _QOS_ORDER else len(_QOS_ORDER),
    ):
        column = _qos_column(name)
        if name == "flags":
            found += _flag_changes(value or [])
        elif name == "preempt":
            found.append(f"preempt='{_list_text(ledger, value or ())}'")
        elif name == "preempt_mode":
            found.append(f"preempt_mode={_mode(value)}")
        elif isinstance(value, dict):
            text = column
            for each in changed:
                text = f"if (id={each.id}, '{tres_text(ledger, getattr(each, name))}', {text})"
            found.append(f"{column} = {text}")
        else:
            number = (
                float(value)
                if name in {"usage_factor", "usage_threshold", "limit_factor"} and value is not None
                else value
            )
            found.append(f"{column}={_value(None if value == -1 else number)}")
    return ", ".join(found)


def _flag_changes(names: list[str]) -> list[str]:
    plain = [name for name in names if name[0] not in "+-"]
    if plain or not names:
        return [f"flags={flag_bits(plain)}"]
    more, less = (flag_bits(name[1:] for name in names if name[0] == sign) for sign in "+-")
    return [f"flags=(flags | {more})"] * bool(more) + [f"flags=(flags & ~{less})"] * bool(less)


def tres_text(ledger: Ledger, amounts: Mapping[str, int]) -> str:
    """Amounts by the numbers of their resources."""
    numbers = ledger.tres_numbers()
    return ",".join(
        f"{number}={amount}"
        for number, amount in sorted(
            (numbers.get(name, 0), amount) for name, amount in amounts.items()
        )
    )


def flag_bits(names: Iterable[str]) -> int:
    """The number of a quality of service's flags."""
    known = {name.lower(): name for name in FLAGS}
    return sum(_FLAG_BITS.get(known.get(name.lower(), ""), 0) for name in names)


def _limits(association: Association, names: Iterable[str]) -> list[tuple[str, Any]]:
    return [(_COLUMNS.get(name, name), getattr(association, name)) for name in names]


def _qos_column(name: str) -> str:
    return "max_wall_duration_per_job" if name == "max_wall" else _COLUMNS.get(name, name)


def _mode(text: str) -> int:
    return sum(_MODES.get(word, 0) for word in text.split(","))


def _qos_id(ledger: Ledger, name: str | None) -> int | None:
    qos = ledger.qos_named(name) if name else None
    return qos.id if qos is not None else None


def _list_text(ledger: Ledger, names: Iterable[str]) -> str:
    """`,1,3,`: qualities of service by number, changes with their signs."""
    numbers = []
    for name in names:
        sign = name[0] if name[:1] in {"+", "-"} else ""
        numbers.append(f"{sign}{_qos_id(ledger, name[len(sign) :]) or 0}")
    return f",{','.join(numbers)}," if numbers else ""


def _text(values: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in values)


def _value(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.6f}"
    return f"'{value}'" if isinstance(value, str) else str(value)
