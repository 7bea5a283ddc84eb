"""A sequence of command lines: what both sides are given, as the scenarios of the conformance kit
have it (tests/conformance/README.md). Pure.

`@j1` in a command line is the number of the job that the step with `saves="j1"` submitted.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Step:
    """One command line, who types it, and the script `job.sh` that it may submit."""

    run: str
    user: str = ""
    env: tuple[tuple[str, str], ...] = ()
    script: str = ""
    saves: str = ""
    changes: bool = False  # what it leaves is compared
    settles: bool = True  # then the clusters are given time to become equal behind it

    @property
    def command(self) -> str:
        return self.run.split()[0]

    def filled(self, numbers: dict[str, str]) -> str:
        return re.sub(r"@(j\d+)", lambda match: numbers.get(match[1], "999999"), self.run)

    def kept(self) -> dict[str, Any]:
        """As a step of a scenario."""
        step: dict[str, Any] = {"run": self.run}
        if self.user:
            step["user"] = self.user
        if self.env:
            step["env"] = dict(self.env)
        if self.script:
            step["script"] = self.script
        if self.saves:
            step["save"] = self.saves
        return step

    def packed(self) -> dict[str, Any]:
        return self.kept() | {"changes": self.changes, "settles": self.settles}

    @staticmethod
    def unpacked(text: dict[str, Any]) -> Step:
        return Step(
            run=text["run"],
            user=text.get("user", ""),
            env=tuple(sorted(text.get("env", {}).items())),
            script=text.get("script", ""),
            saves=text.get("save", ""),
            changes=text.get("changes", False),
            settles=text.get("settles", True),
        )

    def smaller(self) -> list[Step]:
        """The same with a word, a variable, or a line of its script less."""
        words = shlex.split(self.run)
        found = [
            self._with(run=shlex.join([*words[:at], *words[at + 1 :]]).replace("'@", "@"))
            for at in range(1, len(words))
        ]
        found += [
            self._with(env=(*self.env[:at], *self.env[at + 1 :])) for at in range(len(self.env))
        ]
        lines = self.script.splitlines()
        found += [
            self._with(script="\n".join([*lines[:at], *lines[at + 1 :]]) + "\n")
            for at in range(1, len(lines))
            if lines[at].startswith("#SBATCH")
        ]
        return found

    def _with(self, **changed: Any) -> Step:
        return Step(**{name: getattr(self, name) for name in self.__dataclass_fields__} | changed)


def read_lines(text: str) -> list[Step]:
    """A step for each line; behind `!` one that changes something, behind `@daemon` one that this
    user types. The n-th `sbatch` that changes something is `@jn`.
    """
    steps: list[Step] = []
    jobs = 0
    for line in text.splitlines():
        rest = line.strip()
        if not rest or rest.startswith("#"):
            continue
        changes, rest = rest.startswith("!"), rest.removeprefix("!").lstrip()
        user = ""
        if rest.startswith("@"):
            user, _, rest = rest[1:].partition(" ")
        is_job = changes and rest.startswith("sbatch")
        jobs += is_job
        saves = f"j{jobs}" if is_job else ""
        steps.append(Step(rest, user=user, saves=saves, changes=changes, settles=changes))
    return steps


@dataclass
class Sequence:
    """Steps, and the seed and areas they were drawn with."""

    steps: list[Step]
    seed: int = 0
    areas: set[str] = field(default_factory=set)
