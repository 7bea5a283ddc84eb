"""Values of slurm.conf that are right one by one and wrong together: slurmctld 22.05.8 does not
start with them.

Place: the vocabulary, between the words of each key (understudy.model.conf_words) and the verdict.
Words of other versions are passed over: what they mean beside others is not known.

Follows: slurm.conf(5) PreemptMode, PreemptType, SelectTypeParameters, Licenses, and what slurmctld
22.05.8 logs before it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.model.conf_scan import ERROR, Finding
from understudy.model.conf_tres import contradictions_of_tres
from understudy.model.conf_words import WORDS
from understudy.model.gres import GPU, SHARED
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
    for key, message in (
        _preemption(config),
        _selection(config),
        _licenses(config),
        _shared_gres(config),
        _scheduler_log(config),
    ):
        if message:
            yield key, message, None
    yield from contradictions_of_tres(config)
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


def _shared_gres(config: SlurmConfig) -> tuple[str, str]:
    types = config.words("GresTypes")
    if not any(each in SHARED for each in types):
        return "", ""
    if GPU not in types:
        return "GresTypes", "gres/'shared' requires that gres/gpu also be configured"
    if config.text("SelectType").lower() in ("select/linear", "select/cons_res"):
        return "GresTypes", "Use of shared gres requires the use of select/cons_tres"
    return "", ""


def _scheduler_log(config: SlurmConfig) -> tuple[str, str]:
    if config.boolean("SlurmSchedLogLevel") and not config.text("SlurmSchedLogFile"):
        return "SlurmSchedLogLevel", "SlurmSchedLogLevel requires SlurmSchedLogFile value"
    return "", ""


def cpus_without_cores(config: SlurmConfig) -> Iterator[Finding]:
    """Nodes, one of each line, with as many CPUs as sockets and more cores: no cores can be counted
    there.
    """
    if config.text("SelectType").lower() not in ("select/cons_res", "select/cons_tres"):
        return
    seen: set[tuple[str, int]] = set()
    for node in config.nodes:
        sockets, each, threads = node.sockets, node.cores_per_socket, node.threads_per_core
        cores = sockets * each
        if node.cpus in (cores, cores * threads) or (node.file, node.line) in seen:
            continue
        seen.add((node.file, node.line))
        product = f"Sockets({sockets})*CoresPerSocket({each})"
        message = (
            f"NodeName={node.name} CPUs={node.cpus} doesn't match neither {product}=({cores}) nor "
            f"{product}*ThreadsPerCore({threads})=({cores * threads})"
        )
        yield Finding("bad_value", ERROR, node.file, node.line, str(node.cpus), message, "CPUs")
