"""Events files of the Slurm simulator: `-dt SECONDS -e submit_batch_job | OPTIONS SCRIPT`.

Place: a reader of histories; pure. Follows: the tutorials of the simulator of the University at
Buffalo. The options are sbatch's; further ones are `-sim-walltime SECONDS` (0 or less: the job runs
until its limit ends it), `-cancel-in SECONDS` after the submission, `-jid NUMBER`.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, Final

from understudy.experiments.past_options import UNUSED, Mapped
from understudy.experiments.past_scenario import BEYOND_LIMIT_S, UNKNOWN_RUN_S, PastScenario
from understudy.model.times import parse_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from understudy.experiments.past import Count

    ReadLine = Callable[[str], list[dict[str, str | None]] | None]

_LINE: Final = re.compile(r"\s*(.*?)\|(.*)", re.DOTALL)
_OWN: Final = ("-sim-walltime", "-cancel-in", "-jid", "--sim-walltime", "--cancel-in", "--jid")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")


def read_events(
    lines: Iterable[str],
    counts: Count,
    read_line: ReadLine,
    zero: int,
    mapped: Mapped | None = None,
) -> PastScenario:
    """The scenario of an events file. `read_line` reads `sbatch OPTIONS`; `zero` is the instant of
    second 0.

    Raises:
        HistoryError: with `counts.strict`, at the first line that cannot be used.
    """
    scenario = PastScenario(zero)
    ids: dict[str, str] = {}  # job number of the simulator: submission
    mapped = mapped or Mapped()
    for number, line in enumerate(lines, 1):
        counts.lines += 1
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            kind, at, words = _event(text)
            if kind != "submit_batch_job":
                raise ValueError(f"the event {kind[:40]!r} is none that is known")
            _submit(number, at, words, scenario, ids, read_line, mapped, counts)
        except ValueError as error:
            counts.bad_line(number, str(error))
    order = sorted(
        range(len(scenario.workload)), key=lambda place: (scenario.workload[place]["at"], place)
    )
    scenario.workload = [scenario.workload[place] for place in order]
    scenario.events.sort(key=lambda event: event["at"])
    scenario.until = max(
        (int(each["at"]) for each in (*scenario.workload, *scenario.events)), default=0
    )
    return scenario


def _event(text: str) -> tuple[str, float, list[str]]:
    match = _LINE.fullmatch(text)
    if match is None:
        raise ValueError("no `|` between the event and its options")
    head, tail = match[1].split(), match[2]
    found = dict(zip(head[::2], head[1::2], strict=False))
    if "-dt" not in found or not _NUMBER.fullmatch(found["-dt"]):
        raise ValueError("no time (-dt SECONDS)")
    if "-e" not in found:
        raise ValueError("no event (-e NAME)")
    try:
        return found["-e"], float(found["-dt"]), shlex.split(tail)
    except ValueError as error:
        raise ValueError(f"{error}: {tail.strip()[:60]!r}") from None


def _submit(
    number: int,
    at: float,
    words: list[str],
    scenario: PastScenario,
    ids: dict[str, str],
    read_line: ReadLine,
    mapped: Mapped,
    counts: Count,
) -> None:
    own, plain = _parted(words)
    groups = read_line(" ".join(["sbatch", *(word.replace(" ", "_") for word in plain)]))
    if not groups:
        raise ValueError(f"options that sbatch does not take: {' '.join(plain)[:80]!r}")
    said = groups[0]
    name = said.get("job_name") or f"job_{number}"
    tail = re.search(r"(\d+)$", own.get("jid") or name)
    identity = tail[1] if tail and tail[1] not in ids else f"line{number}"
    if tail:
        ids[tail[1]] = identity
    run = _run_time(own, said.get("time"), counts)
    user = mapped.one("user", said.get("uid") or "user1")
    line: dict[str, Any] = {
        "id": identity,
        "at": at,
        "user": user,
        "run": run,
        "name": name,
        "options": _options(said, mapped, ids),
    }
    scenario.workload.append(line)
    scenario.users.setdefault(user, {})
    account, qos = (
        mapped.one("account", said.get("account") or ""),
        mapped.one("qos", said.get("qos") or ""),
    )
    if account:
        scenario.associations[user, account] = None
    if qos:
        scenario.qos.setdefault(qos, {})[user, account] = None
    partition = mapped.partition or mapped.listed("partition", said.get("partition") or "")
    for each in partition.split(",") if partition else ():
        scenario.partitions[each] = scenario.partitions.get(each, 0) + 1
    if "cancel-in" in own and float(own["cancel-in"]) >= 0:
        scenario.events.append(
            {"at": at + float(own["cancel-in"]) + 0.5, "cmd": ["scancel", "{" + identity + "}"]}
        )


def _parted(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """(the simulator's own options without their hyphens, those of sbatch)."""
    own: dict[str, str] = {}
    plain: list[str] = []
    position = 0
    while position < len(words):
        name, equals, value = words[position].partition("=")
        if name in _OWN:
            if not equals:
                position += 1
                value = words[position] if position < len(words) else ""
            own[name.lstrip("-")] = value
        else:
            plain.append(words[position])
        position += 1
    for name, value in own.items():
        if not _NUMBER.fullmatch(value):
            raise ValueError(f"-{name} needs a number, not {value[:40]!r}")
    return own, plain


def _run_time(own: dict[str, str], limit: str | None, counts: Count) -> float:
    """Seconds; of a job that is to end at its limit a little more than that."""
    limit_s = parse_limit(limit or "UNLIMITED")
    run = float(own.get("sim-walltime", "0"))
    if run > 0:
        return run
    if limit_s is not None:
        return limit_s + BEYOND_LIMIT_S
    counts.notes["neither run time nor limit: an hour is taken"] += 1
    return UNKNOWN_RUN_S


def _options(said: dict[str, str | None], mapped: Mapped, ids: dict[str, str]) -> list[str]:
    """As a scenario has them, with the names that users asked for."""
    options = []
    for key, typed in said.items():
        if key in UNUSED:
            continue
        told = _mapped(key, typed, mapped, ids)
        if told != "" or not typed:
            options.append(f"--{key.replace('_', '-')}" + ("" if told is None else f"={told}"))
    if mapped.partition:
        options = [option for option in options if not option.startswith("--partition=")] + [
            f"--partition={mapped.partition}"
        ]
    return options


def _mapped(key: str, value: str | None, mapped: Mapped, ids: dict[str, str]) -> str | None:
    if not value:
        return value
    if key in ("partition", "account", "qos", "reservation"):
        return mapped.listed(key, value)
    if key == "constraint":
        return mapped.words("feature", value)
    if key == "gres":
        return mapped.words("gres", value)
    if key == "dependency":
        return re.sub(
            r"(?<=:)(\d+)",
            lambda match: "{" + ids[match[1]] + "}" if match[1] in ids else match[1],
            value,
        )
    return value
