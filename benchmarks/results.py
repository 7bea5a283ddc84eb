"""From measurements to medians and ratios: what is printed, and the table of the page.

Pure. A round holds one measurement of each side, one after the other; a ratio is taken within a
round, so that what the machine does from hour to hour is in both of its parts.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]  # as benchmarks.measure prints it
_FRAME = "│╭╮╰╯─ "  # that typer puts around what is wrong
OWN = {
    "wall": ("wall_s", "s"),
    "CPU": ("cpu_s", "s"),
    "largest process": ("largest_mb", "MB"),
    "instructions": ("instructions_g", "G"),
}


@dataclass(frozen=True)
class Beside:
    """Another side: its median, and ours over its of each round."""

    side: str
    median: float
    ratios: list[float]

    def text(self) -> str:
        middle, low, high = statistics.median(self.ratios), min(self.ratios), max(self.ratios)
        spread = f" ({low:.2f} to {high:.2f})" if len(self.ratios) > 1 else ""
        return f"{middle:.2f} x{spread}"


@dataclass(frozen=True)
class Row:
    """One figure: the median here and beside."""

    what: str
    unit: str
    median: float
    beside: list[Beside]


def values(record: Record) -> dict[str, tuple[float, str]]:
    """All figures of a measurement with their units."""
    own = {what: (record[key], unit) for what, (key, unit) in OWN.items() if key in record}
    return own | {what: (value, unit) for what, (value, unit) in record["figures"].items()}


def rows(rounds: list[dict[str, Record]]) -> list[Row]:
    """What was measured here, in the order in which it was told, without rounds that failed."""
    good = [
        {side: values(record) for side, record in each.items() if not record["failed"]}
        for each in rounds
    ]
    good = [each for each in good if "here" in each]
    found = []
    for what, (_, unit) in good[0]["here"].items() if good else ():
        beside = []
        for side in dict.fromkeys(name for each in good for name in each if name != "here"):
            pairs = [
                (each["here"][what][0], each[side][what][0])
                for each in good
                if what in each.get(side, ())
            ]
            if pairs and all(other for _, other in pairs):
                median = statistics.median(other for _, other in pairs)
                beside.append(Beside(side, median, [ours / other for ours, other in pairs]))
        median = statistics.median(each["here"][what][0] for each in good)
        found.append(Row(what, unit, median, beside))
    return found


def failures(rounds: list[dict[str, Record]]) -> list[str]:
    """What went wrong, each once."""
    said = (
        f"{side}: {record['failed']}"
        for each in rounds
        for side, record in each.items()
        if record["failed"]
    )
    return list(dict.fromkeys(said))


def schedules_differ(rounds: list[dict[str, Record]]) -> bool:
    """Whether two replays of the case had different schedules."""
    found = {record["notes"].get("schedule") for each in rounds for record in each.values()} - {
        None
    }
    return len(found) > 1


def number(value: float) -> str:
    """With three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def printed(case: Record) -> list[str]:
    """The lines of one case."""
    lines = [
        f"    {row.what:34} {number(row.median):>9} {row.unit:9}"
        + "".join(f"   {b.side} {number(b.median)}: {b.text()}" for b in row.beside)
        for row in rows(case["rounds"])
    ]
    lines += [f"    {text}" for text in failures(case["rounds"])]
    if schedules_differ(case["rounds"]):
        lines.append("    the schedules differ")
    return lines


def table(result: Record) -> str:
    """The headlines in Markdown, with the machine's facts."""
    machine = result["machine"]
    size = f"{machine['cores']} cores, {machine['memory_gb']} GB"
    others = list(dict.fromkeys(s for c in result["cases"].values() for s in c["sides"][1:]))
    heads = ["case", "what", "", "here", *(f"beside {side}" for side in others), "to reach"]
    lines = [
        (
            f"Commit {result['commit']}, {result['date']}: {machine['processor']}, {size}, "
            f"{machine['system']}, Python {machine['python']}, load {machine['load']} before. "
            f"Medians of {result['times']}; ratios are of pairs, with the lowest and the highest."
        ),
        "",
        "| " + " | ".join(heads) + " |",
        "| " + " | ".join(["---"] * len(heads)) + " |",
    ]
    for name, case in result["cases"].items():
        for row in _shown(case):
            beside = {b.side: f"{number(b.median)} {row.unit}: {b.text()}" for b in row.beside}
            target = case["target"] if row.what == case["headline"] else ""
            cells = [f"`{name}`", case["what"], row.what, f"{number(row.median)} {row.unit}"]
            cells += [*(beside.get(side, "") for side in others), target]
            lines.append("| " + " | ".join(cell.strip() for cell in cells) + " |")
        for text in dict.fromkeys(map(_last_words, failures(case["rounds"]))):
            cells = [f"`{name}`", case["what"], text]
            lines.append("| " + " | ".join([*cells, "", *("" for _ in others), ""]) + " |")
    return "\n".join(lines) + "\n"


def _last_words(failure: str) -> str:
    """Whose failure it is, and the last error that was said, else the last line, without a frame
    around it.
    """
    side, _, _ = failure.partition(": ")
    lines = [line.strip(_FRAME) for line in failure.splitlines()]
    said = ([line for line in lines if "error: " in line] or [line for line in lines if line])[-1]
    said = said.removeprefix(f"{side}: ")
    return f"{side}: {said}".replace("|", "/")[:160]


def _shown(case: Record) -> list[Row]:
    """The headline and its CPU time; of a case that has more figures, these."""
    everything = rows(case["rounds"])
    own = [row for row in everything if row.what in OWN]
    return [row for row in everything if row.what not in OWN] + [
        row for row in own if row.what in {case["headline"], "CPU"}
    ]
