"""Scenario folders: a workload, what the administrator does meanwhile, and the configuration, as
files that people can write.

Place: reads files into values; what is done with them is in understudy.tool.replay.scenarios. The
format is documented in docs/scenarios.md.

FOLDER/
    slurm.conf       the configuration, or the part of it that matters; gres.conf and topology.conf
                     beside it
    workload.jsonl   the submissions, one JSON object a line
    events.jsonl     optional: commands of the administrator, and faults
    sacctmgr.txt     optional: accounting set-up, arguments of `sacctmgr -i`, one command a line
    about.json       optional: name, title, horizon
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeVar

from understudy.experiments.faults import Fault, read_fault
from understudy.experiments.recorded_machine import recorded_machine
from understudy.model.conf_edit import Edit, edited

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_Line = TypeVar("_Line")
_Value = TypeVar("_Value")

FIRST_USER_ID: Final = 7101
GROUP_ID: Final = 7100
UNKNOWN_JOB: Final = 999_999
_NAMED: Final = re.compile(r"\{(\w+)\}")

# What a scenario's slurm.conf need not say.
BASE_CONF: Final = {
    "ClusterName": "scenario",
    "SlurmctldHost": "localhost",
    "ReturnToService": "2",
    "MinJobAge": "0",
    "SlurmctldTimeout": "300",
    "SlurmdTimeout": "0",
    "FirstJobId": "1",
}
FAULTS_SLURMD_TIMEOUT: Final = "300"  # slurm.conf(5): the default
_KEEPS_ACCOUNTS: Final = Edit("accountingstoragetype", "", "accounting_storage/slurmdbd")


class ScenarioError(ValueError):
    """A scenario folder that cannot be used; says which file and line."""


@dataclass(frozen=True, slots=True)
class SetUpCommand:
    """One line of accounting set-up: arguments of `sacctmgr -i`, and where they stand."""

    words: tuple[str, ...]
    place: str  # "FILE line N"


@dataclass(frozen=True, slots=True)
class Submission:
    """One line of workload.jsonl. Times in seconds after the scenario's zero."""

    id: str
    at: float
    user: str
    run: float | dict[int, float]  # seconds; for an array's tasks by task number
    exit: int | dict[int, int] = 0  # the exit code; the same
    signal: int | dict[int, int] = 0  # what ends it
    # "cancelled" by its user, or "memory": it used more than it had
    ended: str | dict[int, str] = ""
    name: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """One line of events.jsonl: a command."""

    at: float
    command: tuple[str, ...]


@dataclass(slots=True)
class Scenario:
    """A scenario as read."""

    name: str
    folder: Path
    conf: str  # "" where the folder has none
    submissions: list[Submission]
    events: list[Event] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    accounting: list[SetUpCommand] = field(default_factory=list)
    horizon_s: float = float("inf")
    title: str = ""
    zero: float | None = None  # the calendar's instant of second 0; None: any
    # how long before it the controller starts: its periods count from there
    lead_s: float = field(default_factory=lambda: recorded_machine().lead_s)
    # what is known of users: uid, gid, group
    owners: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def users(self) -> dict[str, int]:
        """The users who submit, with their numbers, or with numbers of their own where none are
        known.
        """
        names = sorted({each.user for each in self.submissions}, key=_by_number)
        known = {
            name: 0 if name == "root" else self.owners.get(name, {}).get("uid") for name in names
        }
        taken = {number for number in known.values() if number is not None}
        free = (number for number in count(FIRST_USER_ID) if number not in taken)
        return {
            name: number if number is not None else next(free) for name, number in known.items()
        }

    @property
    def groups(self) -> dict[str, int]:
        """Groups and their numbers."""
        known = {
            str(about["group"]): int(about["gid"])
            for about in self.owners.values()
            if "group" in about and "gid" in about
        }
        return {"users": GROUP_ID} | known

    def group_of(self, user: str) -> int:
        """The number of a user's group."""
        return int(self.owners.get(user, {}).get("gid", GROUP_ID))


def _by_number(name: str) -> tuple[str, int]:
    head = name.rstrip("0123456789")
    return head, int(name[len(head) :] or 0)


def read_scenario(folder: Path, *, needs_conf: bool = True, is_faulty: bool = False) -> Scenario:
    """Read a folder. `needs_conf`: no other configuration is at hand; `is_faulty`: there are faults
    beside the folder's own.

    Raises:
        ScenarioError: a file is missing or malformed.
    """
    try:
        conf = (
            (folder / "slurm.conf").read_text(errors="surrogateescape")
            if needs_conf or (folder / "slurm.conf").exists()
            else ""
        )
    except OSError as error:
        raise ScenarioError(
            f"{folder / 'slurm.conf'}: {error.strerror}; `--conf FILE` names another one"
        ) from error
    try:
        about = (
            json.loads((folder / "about.json").read_text())
            if (folder / "about.json").exists()
            else {}
        )
        zero, lead_s = about.get("zero"), float(about.get("lead", recorded_machine().lead_s))
        zero = None if zero is None else float(zero)
        owners = {str(name): dict(each) for name, each in about.get("users", {}).items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ScenarioError(f"{folder / 'about.json'}: {error}") from error
    accounting = read_set_up(folder / "sacctmgr.txt") if (folder / "sacctmgr.txt").exists() else []
    events = _lines(folder / "events.jsonl", _event)
    faults = [each for each in events if isinstance(each, Fault)]
    is_faulty = is_faulty or bool(faults)
    if conf:
        # where nodes fail each has a daemon of its own, whose silence counts
        base = BASE_CONF | {"SlurmdTimeout": FAULTS_SLURMD_TIMEOUT} if is_faulty else BASE_CONF
        conf = complete_conf(conf, accounting=bool(accounting), base=base) + (
            "\nFrontendName=localhost\n" if about.get("front_end", not is_faulty) else ""
        )
    return Scenario(
        name=about.get("name", folder.resolve().name),
        folder=folder,
        conf=conf,
        zero=zero,
        lead_s=lead_s,
        owners=owners,
        submissions=_lines(folder / "workload.jsonl", _submission, needed=True),
        events=[each for each in events if isinstance(each, Event)],
        faults=faults,
        accounting=accounting,
        horizon_s=float(about.get("horizon", "inf")),
        title=about.get("title", ""),
    )


def read_set_up(path: Path) -> list[SetUpCommand]:
    """Arguments of `sacctmgr -i`, one command a line.

    Raises:
        ScenarioError: the file or a line cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ScenarioError(
            f"{path}: it is not in UTF-8: {error.reason} at byte {error.start}"
        ) from error
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        place = f"{path} line {number}"
        try:
            found.append(SetUpCommand(tuple(shlex.split(line)), place))
        except ValueError as error:
            raise ScenarioError(f"{place}: {error}") from error
    return found


def complete_conf(
    conf: str, *, accounting: bool = False, base: Mapping[str, str] = BASE_CONF
) -> str:
    """The configuration with what it need not say. `accounting`: there is something for the
    accounting daemon to keep.
    """
    said = {match[1].lower() for match in re.finditer(r"^\s*(\w+)\s*=", conf, re.MULTILINE)}
    unsaid = [f"{key}={value}" for key, value in base.items() if key.lower() not in said]
    text = "\n".join([*unsaid, conf])
    # Many sites' files say "none": there would be no daemon to tell of the accounts.
    return edited(text, [_KEEPS_ACCOUNTS]) if accounting else text


def _lines(
    path: Path, read: Callable[[Mapping[str, Any]], _Line], *, needed: bool = False
) -> list[_Line]:
    if not path.exists() and not needed:
        return []
    found = []
    try:
        # and at no other character that ends lines: those may be in names
        lines = path.read_text().split("\n")
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(read(json.loads(line)))
        except KeyError as error:
            raise ScenarioError(f"{path} line {number}: {error} is missing") from error
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise ScenarioError(f"{path} line {number}: {error}") from error
    return found


def _submission(line: Mapping[str, Any]) -> Submission:
    return Submission(
        id=str(line["id"]),
        at=float(line["at"]),
        user=str(line["user"]),
        run=_each(line["run"], float),
        exit=_each(line.get("exit", 0), int),
        signal=_each(line.get("signal", 0), int),
        ended=_each(line.get("ended", ""), _ending),
        name=str(line.get("name", "")),
        options=tuple(str(word) for word in line.get("options", ())),
    )


def _each(value: Any, read: Callable[[Any], _Value]) -> _Value | dict[int, _Value]:
    """A value, or one for each task of an array."""
    return (
        {int(task): read(each) for task, each in value.items()}
        if isinstance(value, dict)
        else read(value)
    )


def _ending(value: object) -> str:
    if value not in ("", "cancelled", "memory"):
        raise ValueError(f"ended: {value!r} is neither cancelled nor memory")
    return str(value)


def _event(line: Mapping[str, Any]) -> Event | Fault:
    if "fault" in line:
        return read_fault(line)
    return Event(at=float(line["at"]), command=tuple(str(word) for word in line["cmd"]))


def named_jobs(word: str) -> list[str]:
    """The submissions that stand in it as `{j012}`."""
    return _NAMED.findall(word)


def with_job_ids(word: str, ids: Mapping[str, int]) -> str:
    """`{j012}` becomes the job id that submission got."""
    return _NAMED.sub(lambda match: str(ids.get(match[1], UNKNOWN_JOB)), word)
