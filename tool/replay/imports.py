"""What `understudy import` does: a site's history into a scenario's folder, or an SWF trace.

Place: the edge that joins the readers of histories (experiments) with the table of sbatch's
options; reads and writes files, prints for people.
"""

from __future__ import annotations

import csv
import gc
import gzip
import json
import time
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Final, TextIO

import msgspec

from understudy.experiments.formats import (
    SACCT,
    SACCT_JSON,
    Format,
    format_of,
    read_head,
    reader,
)
from understudy.experiments.outcomes.read import PAST
from understudy.experiments.past import Count, HistoryError, OptionError, PastJob
from understudy.experiments.past_accounts import SiteAccounts
from understudy.experiments.past_options import KINDS, Choices, Mapped
from understudy.experiments.past_scenario import PAST_FIELDS, PastScenario, make_scenario
from understudy.experiments.recorded_machine import recorded_machine
from understudy.experiments.sacct_words import instant
from understudy.model.nouns import many
from understudy.tool.replay.submit_line import read_submit_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from understudy.experiments.past_options import Defaults
    from understudy.model.conf import SlurmConfig
    from understudy.model.conf_nodes import NodeConf
    from understudy.model.conf_partitions import PartitionConf

SET_UP_S: Final = 0.02  # ours: of virtual time, for each command of sacctmgr
_SIMULATOR_ZERO: Final = 1_640_995_200  # 2022-01-01 UTC: an events file has no calendar


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """What the user asked for."""

    sources: tuple[Path, ...]
    out: Path
    conf: Path | None = None
    accounts: tuple[Path, ...] = ()
    create_accounts: bool = False
    strict: bool = False
    maps: tuple[str, ...] = ()
    partition: str = ""
    cluster: str = ""
    columns: str = ""
    since: str = ""
    until: str = ""
    say: Callable[[str], None] = field(default=print)


def import_history(request: ImportRequest) -> int:
    """Read the sources and write the scenario; 0 if any job is in it.

    Raises:
        HistoryError, ConfigError, OSError: it cannot be done; says what and where. OptionError:
        since an option cannot be understood.
    """
    mapped = read_maps(request.maps, request.partition)
    since, until = (
        _instant(text, option)
        for text, option in ((request.since, "--from"), (request.until, "--until"))
    )
    config = _read_conf(request.conf)
    site = SiteAccounts()
    for path in request.accounts:
        site.read(_read_text(path), str(path))
    counts = Count(strict=request.strict)
    # nothing here refers to itself, and a million records are looked through again and again
    gc.disable()
    try:
        scenario = _read_sources(
            request, counts, mapped, since, until, site, _defaults(config, site)
        )
    finally:
        gc.enable()
    if not scenario.workload:
        _say_counts(request, counts, scenario)
        raise HistoryError(f"{', '.join(map(str, request.sources))}: no job that can be submitted")
    said = []
    if request.create_accounts:
        said = site.complete(scenario.associations, scenario.qos)
    commands = site.commands()
    if request.out.name.lower().endswith((".swf", ".swf.gz")):
        _write_trace(request, scenario, counts)
    else:
        _write_folder(request, scenario, commands)
    _say_counts(request, counts, scenario)
    for line in (*said, *([scenario.advice] if scenario.advice else [])):
        request.say(line)
    _say_missing(request, scenario, config, site)
    return 0


def read_maps(maps: Sequence[str], partition: str = "") -> Mapped:
    """`KIND:OLD=NEW` each.

    Raises:
        OptionError: one is not of that form.
    """
    names: dict[str, dict[str, str]] = {}
    for text in maps:
        kind, colon, pair = text.partition(":")
        old, equals, new = pair.partition("=")
        if not colon or not equals or kind not in KINDS or not old:
            raise OptionError(
                f"--map {text}: must be KIND:OLD=NEW, with KIND one of {', '.join(KINDS)}"
            )
        names.setdefault(kind, {})[old] = new
    return Mapped(names, partition)


def _instant(text: str, option: str) -> int | None:
    if not text:
        return None
    try:
        found = instant(text)
    except ValueError:
        found = None
    if found is None:
        raise OptionError(f"{option} {text}: no time, which is YYYY-MM-DD or YYYY-MM-DDTHH:MM:SS")
    return found


def _defaults(config: SlurmConfig | None, site: SiteAccounts) -> Defaults:
    """What memory jobs have that ask for none, or for all of their nodes (`--mem=0`), how many CPUs
    are given at a time, and whether accounts limit them.
    """
    from understudy.experiments.past_options import Default

    if config is None:
        return {}
    per_cpu, per_node = config.number("DefMemPerCPU"), config.number("DefMemPerNode")
    found = {}
    for partition in config.partitions:
        cpu, node = partition.default_memory_per_cpu_mb, partition.default_memory_per_node_mb
        if not cpu and not node:
            cpu, node = per_cpu, per_node
        nodes = [config.nodes[config.index_of[each]] for each in partition.nodes]
        amounts = {(each.memory_mb, "n") for each in nodes}
        amounts |= {(cpu, "c")} if cpu else {(node, "n")} if node else set()
        most = partition.max_cpus_per_node
        found[partition.name] = Default(
            frozenset(amounts),
            _unit_cpus(config, partition, nodes),
            sum(each.cpus if most is None else min(each.cpus, most) for each in nodes),
            site.limits_resources,
            _socket_cpus(config, partition, nodes),
            partition.max_memory_per_node_mb or config.number("MaxMemPerNode") or None,
        )
    return found


def _unit_cpus(config: SlurmConfig, partition: PartitionConf, nodes: list[NodeConf]) -> int:
    """CPUs that are given together: of a whole node or of a core."""
    is_linear = config.text("SelectType").lower().endswith("linear")
    if is_linear or partition.oversubscribe == "EXCLUSIVE" or _gives_sockets(config, partition):
        units = [each.cpus for each in nodes]  # of a socket, and of several sockets each
    else:
        units = [each.threads_per_core for each in nodes]
    return max([2, *units])


def _socket_cpus(config: SlurmConfig, partition: PartitionConf, nodes: list[NodeConf]) -> int:
    """CPUs of a socket that is given whole; 0 where none is, or nodes are of several kinds."""
    sizes = {each.cores_per_socket * each.threads_per_core for each in nodes}
    return sizes.pop() if len(sizes) == 1 and _gives_sockets(config, partition) else 0


def _gives_sockets(config: SlurmConfig, partition: PartitionConf) -> bool:
    words = partition.select_type_parameters or config.text("SelectTypeParameters")
    return "CR_SOCKET" in words.upper()


def _read_conf(conf: Path | None) -> SlurmConfig | None:
    if conf is None:
        return None
    from understudy.model.conf import read
    from understudy.model.errors import ConfigError

    config = read(conf)
    for finding in config.errors:
        raise ConfigError(finding.message, finding.file, finding.line)
    return config


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """The file as text, unpacked if it is compressed with gzip. Names may have any encoding: what
    is no UTF-8 is a question mark.
    """
    with path.open("rb") as raw:
        is_packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        binary = gzip.GzipFile(fileobj=raw) if is_packed else raw
        with TextIOWrapper(binary, encoding="utf-8", errors="replace", newline="\n") as file:  # type: ignore[type-var,unused-ignore]
            try:
                yield file
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise HistoryError(f"{path}: damaged gzip file: {error}") from error


def _read_text(path: Path) -> str:
    with opened(path) as file:
        return file.read()


def _read_sources(
    request: ImportRequest,
    counts: Count,
    mapped: Mapped,
    since: int | None,
    until: int | None,
    site: SiteAccounts,
    defaults: Defaults,
) -> PastScenario:
    kinds = {path: _kind(path, request) for path in request.sources}
    for path, kind in kinds.items():
        if kind.history:
            continue
        if not kind.scenario:
            raise HistoryError(f"{path}: this is {kind.name}, which can be replayed, not imported")
        if len(request.sources) > 1:
            raise HistoryError(f"{path}: {kind.name} is imported alone")
        counts.source = str(path)
        with opened(path) as file:
            made: PastScenario = reader(kind.scenario)(
                file, counts, read_submit_line, since or _SIMULATOR_ZERO, mapped
            )
            return made
    records = _records(request, kinds, counts, mapped)
    return make_scenario(
        records,
        counts,
        read_submit_line,
        mapped=mapped,
        since=since,
        until=until,
        reservations=site.reservations,
        defaults=defaults,
    )


def _records(
    request: ImportRequest, kinds: dict[Path, Format], counts: Count, mapped: Mapped
) -> Iterator[PastJob]:
    """The records of all sources. Dumps of neighbouring months have the jobs at their border
    twice.
    """
    choices = Choices(request.columns, request.cluster, mapped)
    seen: set[tuple[str, int | None, int | None]] = set()
    for path, kind in kinds.items():
        counts.source = str(path)
        with opened(path) as file:
            found: Iterator[PastJob] = reader(kind.history)(file, counts, choices)
            if len(kinds) == 1:
                yield from found
                continue
            for record in found:
                key = record.job, record.submit, record.start
                if key in seen:
                    counts.left_out["the same job in an earlier file"] += 1
                    continue
                seen.add(key)
                yield record


def _kind(path: Path, request: ImportRequest) -> Format:
    """Where columns are named, only a file's name says that it has none of sacct's rows."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise HistoryError(f"{path}: a pipe is read but once: write it to a file first")
    if not request.columns and not read_head(path).strip():
        raise HistoryError(f"{path}: empty")
    found = format_of(path, SACCT)
    return found if found is not SACCT_JSON or not request.columns else SACCT


# --- writing --------------------------------------------------------------------------------------


def _write_folder(request: ImportRequest, scenario: PastScenario, commands: list[str]) -> None:
    out = request.out
    out.mkdir(parents=True, exist_ok=True)
    if request.conf is not None:
        from understudy.model.conf_copy import copy_configuration

        copy_configuration(request.conf, out)
    for name, lines in (("workload.jsonl", scenario.workload), ("events.jsonl", scenario.events)):
        with (out / name).open("wb") as file:
            file.writelines(_json_line(line) for line in lines)
    _write_past(out / PAST, scenario)
    accounts = out / "sacctmgr.txt"
    if commands:
        accounts.write_text("\n".join(commands) + "\n")
    else:
        accounts.unlink(missing_ok=True)
    lead_s = recorded_machine().lead_s
    about: dict[str, Any] = {
        "title": f"History of {', '.join(path.name for path in request.sources)}",
        "zero": scenario.zero,
        "lead": max(lead_s, round(lead_s + len(commands) * SET_UP_S, 1)),
        "front_end": False,
        "users": {name: about for name, about in scenario.users.items() if about},
    }
    (out / "about.json").write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def _write_past(path: Path, scenario: PastScenario) -> None:
    """What really became of the jobs, for `understudy compare`; nothing where the source has no
    times of its own.
    """
    if not scenario.past:
        path.unlink(missing_ok=True)
        return
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(PAST_FIELDS)
        writer.writerows(scenario.past)


def _json_line(line: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.format(msgspec.json.encode(line), indent=0) + b"\n"
    except UnicodeEncodeError:
        # half a character from a document, or bytes of a command line that are no UTF-8
        return json.dumps(line, ensure_ascii=False).encode(errors="replace") + b"\n"


def _write_trace(request: ImportRequest, scenario: PastScenario, counts: Count) -> None:
    """An SWF trace: each job's processors, times, user, account, QOS and partition by numbers; all
    else is named as left out.
    """
    from understudy.experiments.swf import write_swf
    from understudy.experiments.swf_rows import to_trace

    jobs, header = to_trace(scenario, counts)
    request.out.parent.mkdir(parents=True, exist_ok=True)
    write_swf(request.out, jobs, header)


def _say_counts(request: ImportRequest, counts: Count, scenario: PastScenario) -> None:
    say = request.say
    for line in counts.bad:
        say(line)
    if counts.bad_count > len(counts.bad):
        say(f"{counts.bad_count:,} lines in all that cannot be used")
    for reason, count in counts.left_out.items():
        if count:
            say(f"{many(count, 'line')} left out: {reason}")
    for note, count in counts.notes.items():
        say(f"{many(count, 'job')}: {note}")
    if scenario.workload:
        begin = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(scenario.zero))
        say(
            f"{many(len(scenario.workload), 'submission')} of "
            f"{many(len(scenario.users), 'user')} and {many(len(scenario.events), 'command')} "
            "of "
            f"{many(counts.lines, 'line')}, from {begin} over {_span(scenario.until)}: "
            f"{request.out}"
        )


def _span(seconds: int) -> str:
    """`31.0 days`, `9.9 minutes`."""
    for size, noun in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{seconds / size:.1f} {noun}s"
    return many(seconds, "second")


def _say_missing(
    request: ImportRequest, scenario: PastScenario, config: SlurmConfig | None, site: SiteAccounts
) -> None:
    """What the history names and the configuration does not have: those submissions would be
    refused.
    """
    if config is not None:
        known = {partition.name for partition in config.partitions}
        for name, count in scenario.partitions.items():
            if name not in known:
                request.say(
                    f"{many(count, 'submission')} to the partition {name}, which "
                    f"{request.conf} does not have: "
                    f"--map partition:{name}=NEW, or --partition"
                )
    if request.accounts and not request.create_accounts:
        have = {(user, account) for user, account, _ in site.users}
        missing = [
            pair for pair in scenario.associations if pair not in have and pair != ("root", "root")
        ]
        if missing:
            shown = ", ".join(f"{user} in {account}" for user, account in missing[:5])
            request.say(
                f"{many(len(missing), 'association')} that jobs used and the accounts do "
                f"not have ({shown}): --create-accounts makes them"
            )
