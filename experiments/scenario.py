"""Scenario folders: a workload, what the administrator does meanwhile, and the configuration, as files that people can write.

Place: reads files into values; what is done with them is in understudy.commands.scenario_run. The format is documented in docs/scenarios.md.

FOLDER/
    slurm.conf       the configuration, or the part of it that matters; gres.conf and topology.conf beside it
    workload.jsonl   the submissions, one JSON object a line
    events.jsonl     optional: commands of the administrator
    sacctmgr.txt     optional: accounting set-up, arguments of `sacctmgr -i`, one command a line
    about.json       optional: name, title, horizon
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_Line = TypeVar("_Line")

ISSUED_AFTER_S: Final = 0.2  # a line's `at` is a whole second; what happens then is issued a little later, as a person's command would be
CONTROLLER_LEAD_S: Final = 24.5  # the controller starts this long before the scenario's zero: its periods count from there
FIRST_USER_ID: Final = 7101
GROUP_ID: Final = 7100
UNKNOWN_JOB: Final = 999_999

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


class ScenarioError(ValueError):
    """A scenario folder that cannot be used; says which file and line."""


@dataclass(frozen=True, slots=True)
class Submission:
    """One line of workload.jsonl. Times in seconds after the scenario's zero."""

    id: str
    at: float
    user: str
    run: float | dict[int, float]  # seconds; for an array's tasks by task number
    exit: int = 0
    name: str = ""
    options: tuple[str, ...] = ()

    def run_of(self, task: int | None) -> float:
        """How long the job, or one task of the array, really runs."""
        return self.run.get(task or 0, 0.0) if isinstance(self.run, dict) else self.run


@dataclass(frozen=True, slots=True)
class Event:
    """One line of events.jsonl."""

    at: float
    command: tuple[str, ...]


@dataclass(slots=True)
class Scenario:
    """A scenario as read."""

    name: str
    folder: Path
    conf: str
    submissions: list[Submission]
    events: list[Event] = field(default_factory=list)
    accounting: list[str] = field(default_factory=list)
    horizon_s: float = float("inf")
    title: str = ""

    @property
    def users(self) -> dict[str, int]:
        """The users who submit, with numbers of their own."""
        return {name: FIRST_USER_ID + number for number, name in enumerate(sorted({each.user for each in self.submissions}, key=_by_number))}


def _by_number(name: str) -> tuple[str, int]:
    head = name.rstrip("0123456789")
    return head, int(name[len(head) :] or 0)


def read_scenario(folder: Path) -> Scenario:
    """Read a folder.

    Raises:
        ScenarioError: a file is missing or malformed.
    """
    try:
        conf = (folder / "slurm.conf").read_text()
    except OSError as error:
        raise ScenarioError(f"{folder / 'slurm.conf'}: {error.strerror}") from error
    about = json.loads((folder / "about.json").read_text()) if (folder / "about.json").exists() else {}
    accounting = (folder / "sacctmgr.txt").read_text().splitlines() if (folder / "sacctmgr.txt").exists() else []
    return Scenario(
        name=about.get("name", folder.resolve().name),
        folder=folder,
        conf=complete_conf(conf, accounting=bool(accounting)) + ("\nFrontendName=localhost\n" if about.get("front_end", True) else ""),
        submissions=_lines(folder / "workload.jsonl", _submission, needed=True),
        events=_lines(folder / "events.jsonl", _event),
        accounting=[line for line in accounting if line.strip() and not line.startswith("#")],
        horizon_s=float(about.get("horizon", "inf")),
        title=about.get("title", ""),
    )


def complete_conf(conf: str, *, accounting: bool = False) -> str:
    """The configuration with what it need not say. `accounting`: there is something for the accounting daemon to keep."""
    said = {match[1].lower() for match in re.finditer(r"^\s*(\w+)\s*=", conf, re.MULTILINE)}
    wanted = BASE_CONF | ({"AccountingStorageType": "accounting_storage/slurmdbd"} if accounting else {})
    base = [f"{key}={value}" for key, value in wanted.items() if key.lower() not in said]
    return "\n".join([*base, conf])


def _lines(path: Path, read: Callable[[Mapping[str, Any]], _Line], *, needed: bool = False) -> list[_Line]:
    if not path.exists() and not needed:
        return []
    found = []
    try:
        text = path.read_text()
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from error
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found.append(read(json.loads(line)))
        except KeyError as error:
            raise ScenarioError(f"{path} line {number}: {error} is missing") from error
        except (ValueError, TypeError) as error:
            raise ScenarioError(f"{path} line {number}: {error}") from error
    return found


def _submission(line: Mapping[str, Any]) -> Submission:
    run = line["run"]
    return Submission(
        id=str(line["id"]),
        at=float(line["at"]),
        user=str(line["user"]),
        run={int(task): float(seconds) for task, seconds in run.items()} if isinstance(run, dict) else float(run),
        exit=int(line.get("exit", 0)),
        name=str(line.get("name", "")),
        options=tuple(str(word) for word in line.get("options", ())),
    )


def _event(line: Mapping[str, Any]) -> Event:
    return Event(at=float(line["at"]), command=tuple(str(word) for word in line["cmd"]))


def with_job_ids(word: str, ids: Mapping[str, int]) -> str:
    """`{j012}` becomes the job id that submission got."""
    return re.sub(r"\{(\w+)\}", lambda match: str(ids.get(match[1], UNKNOWN_JOB)), word)
