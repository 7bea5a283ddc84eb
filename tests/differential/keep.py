"""A found difference as a scenario of the conformance kit, with what Slurm said as what is
expected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from differential.sequence import Step
from differential.sides import OWN_CONF, ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from differential.ledger import Ledger
    from differential.sides import Pair

CONFORMANCE = ROOT / "tests" / "conformance"
COUNT = "squeue -h -a -t all -o '%i %T' | sort"


def scenario_of(
    steps: list[Step], settled: dict[int, str], area: str, about: str
) -> dict[str, Any]:
    """The scenario's text; `settled` are the jobs behind steps that change something."""
    written: list[dict[str, Any]] = []
    for number, step in enumerate(steps):
        written.append(step.kept())
        if number in settled:
            written.append({"wait": COUNT, "match": settled[number]})
    head = {"area": area, "about": about, "accounting": True, "conf": OWN_CONF}
    return {**head, "steps": written}


def keep(
    pair: Pair, ledger: Ledger, signature: str, name: str, *, into: Path = CONFORMANCE
) -> None:
    """Play the cause's sequence on real Slurm and write `scenarios/` and `expected/`.

    Raises:
        SystemExit: no cause, or several, begin so.
    """
    found = [each for each in ledger.causes if each.startswith(signature)]
    if len(found) != 1:
        raise SystemExit(f"{len(found)} causes begin with {signature!r}")
    cause = ledger.causes[found[0]]
    steps = [Step.unpacked(each) for each in cause["steps"]]
    slurm = pair.sides[0]
    slurm.begin(pair.next_job[0])
    expected: list[dict[str, Any]] = []
    settled: dict[int, str] = {}
    for number, step in enumerate(steps):
        seen = slurm.type(step)
        expected.append({
            "run": step.run, "exit": seen.exit, "stdout": [each for each in seen.output if each],
            "stderr": seen.errors,
        })  # fmt: skip
        if step.changes and number + 1 < len(steps):
            pair.settle()
            states = [line.split()[-1] for line in slurm.shell(COUNT)[0].splitlines()]
            settled[number] = r"\n".join(rf"^\S+ {state}$" for state in states) or "^$"
    scenario = scenario_of(steps, settled, cause["areas"][0], found[0])
    text = yaml.safe_dump(scenario, sort_keys=False, width=1000)
    (into / "scenarios" / f"{name}.yaml").write_text(text)
    head = "# recorded from Slurm 22.05.8 by tests/differential\n"
    text = yaml.safe_dump({"scenario": name, "steps": expected}, sort_keys=False, width=100000)
    (into / "expected" / f"{name}.yaml").write_text(head + text)
