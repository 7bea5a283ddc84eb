"""A found difference as a scenario of the conformance kit, with what Slurm said as what is
expected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from differential.sequence import Step
from differential.sides import FIRST_JOB, MARK, OWN_CONF, ROOT, kit

if TYPE_CHECKING:
    from pathlib import Path

    from differential.ledger import Ledger
    from differential.sides import Pair

CONFORMANCE = ROOT / "tests" / "conformance"
COUNT = "squeue -h -a -t all -o '%i %T' | sort"


def steps_of(cause: dict[str, Any]) -> list[Step]:
    """The cause's steps; where the state differed, what shows it, too."""
    steps = [Step.unpacked(each) for each in cause["steps"]]
    return steps + [Step(run=line) for line in cause["run"].split(MARK) if MARK in cause["run"]]


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
    """Play the cause's sequence on real Slurm, which has had no job yet, and write `scenarios/` and
    `expected/`.

    Raises:
        SystemExit: no cause, or several, begin so.
    """
    found = [each for each in ledger.causes if each.startswith(signature)]
    if len(found) != 1:
        raise SystemExit(f"{len(found)} causes begin with {signature!r}")
    cause = ledger.causes[found[0]]
    record(pair, steps_of(cause), cause["areas"][0], f"found by search: {found[0]}", name, into)


def record(
    pair: Pair, steps: list[Step], area: str, about: str, name: str, into: Path = CONFORMANCE
) -> None:
    """Play the steps on real Slurm, which has had no job yet, and write `scenarios/` and
    `expected/`.
    """
    slurm = pair.sides[0]
    slurm.begin(FIRST_JOB)
    normal = kit().Normal(str(slurm.work), ["/usr/bin"], slurm.environment["SLURM_CONF"])
    normal.job(FIRST_JOB)
    expected: list[dict[str, Any]] = []
    settled: dict[int, str] = {}
    for number, step in enumerate(steps):
        out, err, code = slurm.raw(step)
        shown = [normal(text, (), (), step.run).split("\n") for text in (out, err)]
        lines = [each[:-1] if each[-1] == "" else each for each in shown]
        expected.append({"run": step.run, "exit": code, "stdout": lines[0], "stderr": lines[1]})
        if step.changes and number + 1 < len(steps):
            pair.settle()
            states = [line.split()[-1] for line in slurm.shell(COUNT)[0].splitlines()]
            settled[number] = r"\n".join(rf"^\S+ {state}$" for state in states) or "^$"
    scenario = scenario_of(steps, settled, area, about)
    text = yaml.safe_dump(scenario, sort_keys=False, width=1000)
    (into / "scenarios" / f"{name}.yaml").write_text(text)
    head = "# recorded from Slurm 22.05.8 by tests/differential\n"
    text = yaml.safe_dump({"scenario": name, "steps": expected}, sort_keys=False, width=100000)
    (into / "expected" / f"{name}.yaml").write_text(head + text)
