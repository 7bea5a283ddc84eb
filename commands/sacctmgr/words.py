"""The words after `sacctmgr add | modify | delete | show ENTITY`: how they are taken apart, and how
the values of keys are read.

Place: under sacctmgr, pure. Which keys there are is in `keys`. Values become the fields of
understudy.model.associations and .qos. Follows sacctmgr(1) and what 22.05.8 answers.
"""

import re

from understudy.commands.sacctmgr.keys import Key
from understudy.model import tres

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_DECIMALS = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|$", re.IGNORECASE)
_DIGITS = re.compile(r"\s*[+-]?\d+|$")
_PARTS_OF_LIST = re.compile(r"[^,\[]*\[[^\]]*\]|[^,]+")
PARENT_SHARES = 0x7FFFFFFF  # Fairshare=parent
QOS_FLAGS = (
    *(
        "DenyOnLimit",
        "EnforceUsageThreshold",
        "NoReserve",
        "PartitionMaxNodes",
        "PartitionMinNodes",
        "OverPartQOS",
        "PartitionTimeLimit",
    ),
    *("RequiresReservation", "NoDecay", "UsageFactorSafe"),
)
_ACTIONS = (
    *(
        "Add Accounts",
        "Add Account Coord",
        "Add Associations",
        "Add Clusters",
        "Add Federations",
        "Add Resources",
        "Add QOS",
    ),
    *(
        "Add TRES",
        "Add Users",
        "Add WCKeys",
        "Get Problems",
        "Modify Accounts",
        "Modify Associations",
        "Modify Clusters",
    ),
    *(
        "Modify Federations",
        "Modify Job",
        "Modify Resources",
        "Modify QOS",
        "Modify Users",
        "Modify WCKeys",
        "Remove Accounts",
        "Remove Account Coords",
    ),
    *(
        "Remove Associations",
        "Remove Clusters",
        "Remove Federations",
        "Remove Resources",
        "Remove QOS",
        "Remove Users",
    ),
    "Remove WCKeys",
)
_PREEMPT_MODES = ("cluster", "cancel", "requeue", "suspend", "off", "gang", "within")


class ValueRefusedError(Exception):
    """A value that cannot be. The text has been shaped as Slurm says it; `is_error`: with the
    program's name before it; `to_stdout`: there.
    """

    def __init__(self, text: str, *, is_error: bool = False, to_stdout: bool = False) -> None:
        self.text, self.is_error, self.to_stdout = text, is_error, to_stdout
        super().__init__(text)


def split_word(word: str) -> "tuple[str, str, str]":
    """Key, operator (`=`, `+=`, `-=`, "" for a word that stands alone) and value. Quotes around the
    value go, and so does a second `=`.
    """
    key, equals, value = word.partition("=")
    if not equals:
        return "", "", word
    operator = "="
    if key[-1:] in {"+", "-"}:
        operator, key = key[-1] + "=", key[:-1]
    return key, operator, unquoted(value.removeprefix("="))


def unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0] else text


def names_in(text: str, *, lower: bool = True) -> "list[str]":
    """A list with commas, `a[1-3]` in it as well; an empty name where there is none. Behind a
    quotation mark in front it ends at the next one; others become backticks.

    Raises:
        ValueRefusedError: brackets that enclose no numbers.
    """
    text = text.lower() if lower else text
    if text[:1] in {"'", '"'}:
        text = text[1:].partition(text[0])[0]
    found: list[str] = []
    for part in _PARTS_OF_LIST.findall(text.replace("'", "`").replace('"', "`")):
        found += _numbered(part) if part.endswith("]") and "[" in part else [part]
    return found or [""]


def _numbered(part: str) -> "list[str]":
    from understudy.model.hostlist import expand

    try:
        return list(expand(part))
    except ValueError:
        wrong = part.partition("[")[2].removesuffix("]")
        raise ValueRefusedError(
            f"_parse_single_range: Invalid range: `{wrong}'", is_error=True
        ) from None


class Vocabulary:
    """What values may name: resources and qualities of service that accounting knows, asked for
    when first needed.
    """

    def __init__(self, tres_numbers: "Any", qos_names: "Any", read_time: "Any") -> None:
        self._tres, self._qos, self.read_time = tres_numbers, qos_names, read_time

    def tres_numbers(self) -> "dict[str, int]":
        numbers: dict[str, int] = self._tres()
        return numbers

    def qos_names(self) -> "list[str]":
        names: list[str] = self._qos()
        return names


_ALL_ONES = 0xFFFFFFFF
_LARGEST = (1 << 64) - 1  # for which larger ones are taken


def number(label: str, text: str) -> "int | None":
    """A limit of 32 bits, whatever follows its digits; None for all of them set, as in -1; 0 for no
    text at all.

    Raises:
        ValueRefusedError: not a number.
    """
    digits = _DIGITS.match(text)
    if digits is None:
        raise ValueRefusedError(f"Invalid value for {label} ({text})", is_error=True)
    value = int(digits[0] or 0)
    is_none = value < 0 or value == _ALL_ONES or value >= _LARGEST
    return None if is_none else value & _ALL_ONES


def minutes(label: str, text: str, word: str) -> "int | None":
    """A wall time, in minutes, seconds rounded up; None for -1.

    Raises:
        ValueRefusedError: not a time.
    """
    from understudy.model.times import parse_limit

    if text == "-1":
        return None
    try:
        seconds = parse_limit(text)
    except ValueError:
        what = "format" if label == "PreemptExemptTime" else "time format"
        raise ValueRefusedError(f" Bad {label} {what}: {word}") from None
    return None if seconds is None else -(-seconds // 60)


_LABELS = {
    "GrpCPUs": "GrpCpus",
    "MaxJobsPerUser": "MaxJobsPU",
    "MaxJobsPerAccount": "MaxJobsPA",
    "MaxSubmitJobsPerUser": "MaxSubmitJobsPU",
    "MaxSubmitJobsPerAccount": "MaxSubmitJobsPA",
    "Count": "count",
    "MaxWallDurationPerJob": "MaxWall",
    "MaxTRESPerJob": "MaxTRES",
    "MinPrioThres": "MinPrioThreshold",
}


def read_value(
    key: Key,
    operator: str,
    text: str,
    word: str,
    words: Vocabulary,
    complain: "Callable[[str], None]",
) -> "Any":
    """The value of a key in `set`; what is passed over in it is complained of.

    Raises:
        ValueRefusedError: with what to say.
    """
    label = _LABELS.get(key.name, key.name)
    kind = key.kind
    if kind == "number":
        return number(label, text)
    if kind == "minutes":
        return minutes(label, text, word)
    if kind == "exempt":
        value = minutes(label, text, word)
        return None if value is None else value * 60
    if kind == "shares":
        return PARENT_SHARES if text.lower() == "parent" else number("FairShare", text)
    if kind.startswith("tres:"):
        value = number(label, text)
        return {kind.removeprefix("tres:"): -1 if value is None else value}
    if kind == "tres":
        return _tres(word.partition("=")[2].removeprefix("="), words, complain)
    if kind == "factor":
        return _factor(label, text)
    if kind == "level":
        return level(text)
    if kind in {"qos", "preempt"}:
        return _qos_names(operator, text, words)
    if kind == "default_qos":
        return _default_qos(text, words)
    if kind == "flags":
        return _flags(operator, text)
    if kind == "mode":
        if text.lower() in {"", "off"}:  # which is the cluster's own mode
            return "cluster"
        modes = text.lower().split(",")
        if any(mode not in _PREEMPT_MODES or mode == "off" for mode in modes):
            raise ValueRefusedError(f" Bad Preempt Mode given: {word}")
        return ",".join(sorted(modes, key=lambda mode: mode != "within"))
    if kind in _READERS:
        return _READERS[kind](operator, text)
    if kind == "raw_usage":
        if number(label, text):
            raise ValueRefusedError("Raw usage can only be set to 0 (zero)", is_error=True)
        return 0
    return text if kind == "text" else text.lower()


def _classification(_operator: str, text: str) -> str:
    for name in ("Capability", "Capacity", "Capapacity"):
        if text and name.lower().startswith(text.lower()):
            return name
    raise ValueRefusedError("")


def _fed_state(_operator: str, text: str) -> str:
    for name in ("ACTIVE", "INACTIVE", "DRAIN+REMOVE", "DRAIN"):
        if text.upper() == name:
            return name
    raise ValueRefusedError(f"Invalid FedState {text}.")


def _signed(operator: str, text: str) -> "list[str]":
    """Names that replace what there is; with `+=` or `-=`, or a sign of their own, that come or
    go.
    """
    sign = operator[0] if operator in {"+=", "-="} else ""
    return [sign + name for name in names_in(text) if name]


def _license(_operator: str, text: str) -> str:
    if text and "license".startswith(text.lower()):
        return "License"
    raise ValueRefusedError(f" Unknown resource type: '{text}'  Valid resources is License.")


def _no_flags(_operator: str, text: str) -> "Any":
    raise ValueRefusedError(
        f" Unknown Server Resource flag used in:\n  '{text}'\n"
        " Valid Server Resource flags are\n '(null)'",
        to_stdout=True,
    )


_READERS = {
    "classification": _classification,
    "fed_state": _fed_state,
    "license": _license,
    "no_flags": _no_flags,
    "signed": _signed,
}


def _tres(text: str, words: Vocabulary, complain: "Callable[[str], None]") -> "dict[str, int]":
    if not text:
        raise ValueRefusedError("")
    try:
        return tres.parse(text, words.tres_numbers(), complain)
    except tres.TresError as error:
        raise ValueRefusedError(f"slurmdb_format_tres_str: {error}", is_error=True) from None


def _factor(label: str, text: str) -> "float | None":
    digits = _DECIMALS.match(text)
    if digits is None:
        raise ValueRefusedError(f"Invalid value for {label} ({text})", is_error=True)
    value = float(digits[0] or 0)
    return None if value < 0 else value


def level(text: str) -> str:
    """An administrator's level from its first letter; "" for none of them."""
    return {"n": "None", "o": "Operator", "a": "Administrator", "s": "Administrator"}.get(
        text[:1].lower(), ""
    )


def _qos_names(operator: str, text: str, words: Vocabulary) -> "list[str]":
    """Names with + or - where they are to be added or taken away; [] for all that is inherited."""
    names = [name for name in unquoted(text.lower()).split(",") if name]
    if text and not names:
        raise ValueRefusedError("You gave me an empty qos list", is_error=True)
    known = words.qos_names() if names else []
    by_lower = {each.lower(): each for each in known}
    found = []
    for name in names:
        sign = name[0] if name[0] in "+-" else operator[:-1]
        bare = name[1:] if name[0] in "+-" else name
        if bare not in by_lower:
            raise ValueRefusedError(
                f"You gave a bad qos '{bare}'. Valid QOS's are {','.join(known)}", is_error=True
            )
        found.append(sign + by_lower[bare])
    if len({each[0] in "+-" for each in found}) > 1:
        raise ValueRefusedError(
            "You can't set qos equal to something and then add or subtract from it "
            "in the same line",
            is_error=True,
        )
    return found


def nothing_new(kind: str, former: "list[Any]", found: "list[Any]") -> "ValueRefusedError | None":
    """What is wrong with a list of qualities of service that says what earlier ones have said."""
    if kind not in {"known_qos", "qos", "preempt"} or not found or not set(found) <= set(former):
        return None
    return ValueRefusedError("You gave me an empty qos list", is_error=True)


def _default_qos(text: str, words: Vocabulary) -> "str | None":
    if text == "-1":
        return None
    by_lower = {each.lower(): each for each in words.qos_names()}
    if text.lower() not in by_lower:
        raise ValueRefusedError(
            f"You gave a bad default qos '{text}'.  Use 'list qos' to get complete list."
        )
    return by_lower[text.lower()]


def _flags(operator: str, text: str) -> "list[str] | None":
    if text == "-1":
        return None
    sign = operator[0] if operator in {"+=", "-="} else ""
    known = {flag.lower(): flag for flag in QOS_FLAGS}
    found = []
    for word in text.split(","):
        flag = known.get(word.lstrip("+-").lower())
        if flag is not None:
            found.append(sign + flag)
    if not found:
        raise ValueRefusedError(
            f" Unknown QOS flag used in:\n  '{text}'\n Valid QOS flags are\n"
            f"  '{','.join(QOS_FLAGS)}'",
            to_stdout=True,
        )
    return found


# What a number in `where` is of.
_NUMBERS_OF = {
    "numbers": "AssocId",
    "qos_numbers": "QOS ID",
    "wckey_numbers": "WCKeyID",
    "transaction_numbers": "Transaction ID",
    "resource_numbers": "RES ID",
}
_CLASSES = ("capability", "capacity", "capapacity")


def read_condition(key: Key, text: str, words: Vocabulary, word: str = "") -> "list[Any]":
    """The values of a key in `where`.

    Raises:
        ValueRefusedError: with what to say.
    """
    if key.kind in _NUMBERS_OF or key.kind in {"any_numbers", "cpus"}:
        return _numbers_in(key, text)
    if key.kind == "classes":
        return [name for name in names_in(text) if name in _CLASSES]
    if key.kind == "known_qos":
        return _qos_names("=", text, words) or [""]
    if key.kind == "levels":
        return [level(text)] if level(text) else []
    if key.kind == "modes":
        for mode in text.lower().split(",") if text else ():
            if mode not in _PREEMPT_MODES:
                raise ValueRefusedError(
                    f"sacctmgr: error: Unknown preempt_mode given '{mode}'\n"
                    f" Bad Preempt Mode given: {word}"
                )
        return [mode for mode in text.lower().split(",") if mode not in {"", "off"}]
    if key.kind == "event":
        for name in ("cluster", "node"):
            if text and name.startswith(text.lower()):
                return [name]
        raise ValueRefusedError(
            f" Unknown event type: '{text}'  Valid events are Cluster and Node."
        )
    if key.kind == "action":
        action = next((each for each in _ACTIONS if each.lower() == text.lower()), None)
        if action is None:
            raise ValueRefusedError(f"You gave a bad action '{text}'.", is_error=True)
        return [action]
    if key.kind == "open":
        strange = next((name for name in text.split(",") if name.lower() not in {"open", ""}), None)
        if strange is not None:
            raise ValueRefusedError(f"Unknown condition flag {strange}", is_error=True)
        return ["open"] if text else []
    if key.kind in _CONDITIONS:
        return _CONDITIONS[key.kind](text)
    if key.kind == "time":
        try:
            return [words.read_time(text)] if text else []
        except ValueError:
            from understudy.model.moments import not_understood_from

            raise ValueRefusedError(
                f"Invalid time specification (pos={not_understood_from(text)}): {text}"
            ) from None
    if key.kind == "nodes":
        return names_in(text, lower=False) if "[" not in text else names_in(text)
    return names_in(text, lower=key.kind == "names")


def _numbers_in(key: Key, text: str) -> "list[Any]":
    parts = text.split(",")
    if key.kind == "any_numbers":
        found = [_DIGITS.match(part) for part in parts]
        return [int(digits[0] or 0) if digits is not None else 0 for digits in found]
    if key.kind == "cpus":
        value = number(key.name, text)
        return [_ALL_ONES if value is None else value]
    return [number(_NUMBERS_OF[key.kind], part) for part in parts]


def _known_users(text: str) -> "list[str]":
    """Names of users, or their numbers."""
    import pwd

    for name in text.split(","):
        try:
            if not name.isdigit():
                pwd.getpwnam(name)
        except KeyError:
            raise ValueRefusedError(f"Invalid user id: {name}", is_error=True) from None
    return text.split(",")


_NODE_STATES = ("DRAIN", "FAIL", "UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "?", "MIXED", "FUTURE")


def _node_states(text: str) -> "list[str]":
    """Names of states that an event may have, of which three letters are enough."""
    given = [name for name in text.split(",") if name]
    names = [name.upper() for name in given]
    for name, as_given in zip(names, given, strict=True):
        if name != "?" and not any(
            len(name) > 2 and state.startswith(name) for state in (*_NODE_STATES, "REBOOT")
        ):
            valid = " ".join(_NODE_STATES)
            raise ValueRefusedError(
                f"Invalid state: {as_given}\nValid node states are: {valid} \n"
                "sacctmgr: fatal: unrecognized job state value"
            )
    return names or [""]


_CONDITIONS: "dict[str, Callable[[str], list[str]]]" = {
    "users": _known_users,
    "states": _node_states,
    "jobs": lambda text: text.split(","),
}


def text_of_limit(field: str, value: "Any") -> str:
    """A limit's value as sacctmgr prints it: "" for none."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return tres.text_of({name: amount for name, amount in value.items() if amount >= 0})
    if field in {"grp_wall", "max_wall"}:
        return wall_text(value * 60)
    if field == "preempt_exempt_time_s":
        return wall_text(value)
    if field == "shares":
        return "parent" if value == PARENT_SHARES else str(value)
    if isinstance(value, float):
        return f"{value:.6f}"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def wall_text(seconds: int) -> str:
    """`01:00:00`, `1-00:00:00`."""
    from understudy.commands.shared.texts import full_duration

    return full_duration(seconds)
