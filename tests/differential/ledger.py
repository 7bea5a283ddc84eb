"""What has been tried and found, kept from run to run: which seed comes next, how often each
command was typed, and the causes, each with its shortest sequence. Written anew as a whole and
renamed, so an interrupt loses nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from differential.compare import Difference
    from differential.sequence import Sequence, Step

OPEN, CLOSED, CHANCE = "open", "closed", "chance"


class Ledger:
    """The file of a folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ledger.json"
        self.next_seed = 1
        self.counts: dict[str, Counter[str]] = {
            name: Counter() for name in ("sequences", "differing", "typed", "differing_commands")
        }
        self.causes: dict[str, dict[str, Any]] = {}
        if self.path.exists():
            text = json.loads(self.path.read_text())
            self.next_seed, self.causes = text["next_seed"], text["causes"]
            self.counts = {name: Counter(each) for name, each in text["counts"].items()}

    def save(self) -> None:
        partial = self.path.with_suffix(".part")
        counts = {name: dict(each) for name, each in self.counts.items()}
        text = {"next_seed": self.next_seed, "counts": counts, "causes": self.causes}
        partial.write_text(json.dumps(text, indent=1))
        partial.rename(self.path)

    def tried(self, sequence: Sequence, differences: list[Difference]) -> None:
        """Count a sequence."""
        for area in sequence.areas:
            self.counts["sequences"][area] += 1
            self.counts["differing"][area] += bool(differences)
        for step in sequence.steps:
            self.counts["typed"][step.command] += 1
        for difference in differences:
            self.counts["differing_commands"][difference.run.split()[0]] += 1
        self.next_seed = sequence.seed + 1

    def take_in(self, other: Ledger) -> None:
        """Add what another has counted and found since it was given this one's causes."""
        for name, counter in other.counts.items():
            self.counts[name].update(counter)
        for signature, cause in other.causes.items():
            if signature in self.causes:
                self.causes[signature]["times"] += cause["times"]
            else:
                self.causes[signature] = cause
        self.next_seed = max(self.next_seed, other.next_seed)

    def again(self, signature: str) -> bool:
        """Whether the cause is known; then it was met once more."""
        if signature not in self.causes:
            return False
        self.causes[signature]["times"] += 1
        return True

    def found(
        self, signature: str, seed: int, areas: set[str], steps: list[Step], difference: Difference
    ) -> None:
        self.causes[signature] = {
            "status": OPEN, "times": 1, "seed": seed, "areas": sorted(areas),
            "run": difference.run, "lines": difference.lines(),
            "steps": [step.packed() for step in steps],
        }  # fmt: skip

    def statistics(self) -> str:
        """A table by area, one by command, and how many causes are open and closed."""
        counts = self.counts
        rows = [("area", "sequences", "differing")]
        rows += [
            (a, str(n), str(counts["differing"][a])) for a, n in sorted(counts["sequences"].items())
        ]
        rows += [("command", "typed", "differing")]
        rows += [
            (name, str(number), str(counts["differing_commands"][name]))
            for name, number in counts["typed"].most_common()
        ]
        states = Counter(cause["status"] for cause in self.causes.values())
        lines = [f"{name:14}{number:>10}{differing:>10}" for name, number, differing in rows]
        end = ", ".join(f"{states[each]} {each}" for each in (OPEN, CLOSED, CHANCE))
        return "\n".join([*lines, f"causes: {end}"])

    def listing(self, status: str = OPEN) -> str:
        """The causes of a status, those met most often first."""
        found = sorted(self.causes.items(), key=lambda each: -each[1]["times"])
        lines: list[str] = []
        for signature, cause in found:
            if cause["status"] != status:
                continue
            lines.append(f"{cause['times']:4} x {signature}")
            for step in cause["steps"]:
                env = " ".join(f"{name}={value}" for name, value in step.get("env", {}).items())
                who = f"({step['user']}) " if step.get("user") else ""
                lines.append(f"       {who}{env + ' ' if env else ''}{step['run']}")
                if step.get("script"):
                    lines += [f"         | {line}" for line in step["script"].splitlines()[1:]]
            lines.append(f"       differs: {cause['run']}")
            lines += [f"       {line[:150]}" for line in cause["lines"][:8]]
        return "\n".join(lines)
