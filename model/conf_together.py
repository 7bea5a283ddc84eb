"""Values of slurm.conf that are right one by one and wrong together: slurmctld 22.05.8 does not
start with them.

Place: the vocabulary, between the words of each key (understudy.model.conf_words) and the verdict.
Words of other versions are passed over: what they mean beside others is not known.

Follows: slurm.conf(5) PreemptMode, PreemptType, SelectTypeParameters, Licenses, and what slurmctld
22.05.8 logs before it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.model.conf_words import WORDS
from understudy.model.licenses import configured_licenses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from understudy.model.conf import SlurmConfig
    from understudy.model.conf_partitions import PartitionConf

_UNITS: Final = frozenset(
    ("CR_CPU", "CR_CPU_MEMORY", "CR_CORE", "CR_CORE_MEMORY", "CR_SOCKET", "CR_SOCKET_MEMORY")
)
_ADDITIONS: Final = frozenset(("GANG", "WITHIN"))  # to a mode of preemption
_UNITS_OF_PARTITIONS: Final = frozenset(
    ("CR_CORE", "CR_CORE_MEMORY", "CR_SOCKET", "CR_SOCKET_MEMORY")
)
_MODES: Final = WORDS["preemptmode"]
_SELECTS: Final = WORDS["selecttypeparameters"]
_PREEMPTING: Final = ("preempt/partition_prio", "preempt/qos")
_SUSPENDS: Final = frozenset(("SUSPEND", "ON"))


def contradictions(config: SlurmConfig) -> Iterator[tuple[str, str, PartitionConf | None]]:
    """For each contradiction a key, what slurmctld says to it, and the partition if it is one's."""
    for key, message in (_preemption(config), _selection(config), _licenses(config)):
        if message:
            yield key, message, None
    for partition in config.partitions:
        modes = partition.settings.get("preemptmode", "")
        if not _can_be_read(modes):
            yield "PreemptMode", f'Bad value "{modes}" for PreemptMode', partition
        text = partition.settings.get("selecttypeparameters", "")
        words = _words(text)
        is_known = all(word.lower() in _SELECTS.acts | _SELECTS.idle for word in words)
        if (
            words
            and not _SELECTS.foreign.intersection(map(str.lower, words))
            and not (is_known and len(_UNITS_OF_PARTITIONS & set(words)) == 1)
        ):
            yield "SelectTypeParameters", f"Bad value for SelectTypeParameters: {text}", partition


def _words(text: str) -> list[str]:
    return [word for word in (part.strip().upper() for part in text.split(",")) if word]


def _can_be_read(modes: str) -> bool:
    """Whether a PreemptMode has one mode at most, and one of the words that go with it."""
    words = _words(modes)
    if any(word.lower() in _MODES.foreign for word in words):
        return True
    own = [word for word in words if word not in _ADDITIONS]
    return (
        all(word.lower() in _MODES.acts for word in own)
        and len(own) <= 1
        and not set(words) >= _ADDITIONS
    )


def _preemption(config: SlurmConfig) -> tuple[str, str]:
    text, kind = config.text("PreemptMode"), config.text("PreemptType")
    words = _words(text)
    if not all(word.lower() in _MODES.acts for word in words):
        return "", ""
    if not _can_be_read(text):
        return "PreemptMode", f"PreemptMode={text} invalid"
    additions = _ADDITIONS.intersection(words)
    if not additions and not _SUSPENDS.isdisjoint(words):
        return "PreemptMode", "PreemptMode=SUSPEND requires GANG too"
    preempts = not set(words) <= {*_ADDITIONS, "OFF"}
    if (
        (preempts or "WITHIN" in additions)
        if kind == "preempt/none"
        else (not preempts and kind in _PREEMPTING)
    ):
        key = "PreemptMode" if config.is_set("PreemptMode") else "PreemptType"
        return key, f"PreemptType and PreemptMode values incompatible: {kind}, {text}"
    return "", ""


def _selection(config: SlurmConfig) -> tuple[str, str]:
    key, selector = "SelectTypeParameters", config.text("SelectType").rpartition("/")[2].lower()
    text = config.text(key)
    words = _words(text)
    if selector not in ("linear", "cons_res", "cons_tres") or not all(
        word.lower() in _SELECTS.acts | _SELECTS.idle for word in words
    ):
        return "", ""
    units = [word for word in words if word in _UNITS]
    if len(units) + words.count("CR_MEMORY") > 1:
        return key, f"Bad SelectTypeParameter: {text}"
    if "CR_ONE_TASK_PER_CORE" in words and any(word.startswith("CR_CPU") for word in units):
        return (
            key,
            (
                "CR_ONE_TASK_PER_CORE is not compatible with CR_CPU*, please change to use "
                "CR_CORE* instead."
            ),
        )
    if selector == "linear" and units:
        return (
            key,
            (
                f"Invalid SelectTypeParameters for select/linear: {text}, it can't contain "
                "CR_(CPU|CORE|SOCKET)."
            ),
        )
    if selector != "linear" and not units and not set(words) <= {"CR_ALLOCATE_FULL_SOCKET"}:
        return key, f"Invalid SelectTypeParameters: {text}, You need at least CR_(CPU|CORE|SOCKET)*"
    return "", ""


def _licenses(config: SlurmConfig) -> tuple[str, str]:
    try:
        configured_licenses(config.text("Licenses"))
    except ValueError as error:
        return "Licenses", str(error)
    return "", ""
