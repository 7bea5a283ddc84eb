"""A year on 16,384 nodes, and three futures of one bad Tuesday in it.

    python examples/experiments/tuesday/tuesday.py [--form FORM] [--out FOLDER] [--jobs N]

The year is examples/year.swf.gz, each job 64 times as wide, but for at most three quarters of the
machine of examples/16k.conf: 65,536 CPUs at an offered load of 0.64. Each Monday a rack of 128
nodes is drained for two days, each node fails every forty years in the mean and is back after
eight hours, and each quarter has twelve hours of maintenance. On a Tuesday in October, day 302, at
ten o'clock, in one of the busiest weeks, the cooling of 2,048 nodes fails; what then might be done
is in futures.toml. Forms: `year` is all of it, `week` the eight days around the Tuesday alone, and
`short`, if none is said, the same on a machine and with jobs of a sixteenth.

OUT/scenario is the scenario, OUT/original and the folders beside it are the runs.
"""

from __future__ import annotations

import argparse
import csv
import json
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from understudy.experiments.formats import read_trace
from understudy.experiments.futures import read_futures
from understudy.experiments.node_failures import Model
from understudy.tool.replay.branch import BranchOutcome, BranchRequest, branch
from understudy.tool.replay.request import ReplayRequest

EXAMPLES = Path(__file__).parents[2]
DAY = 86_400
HOUR = 3_600
ZERO = 1_861_920_000  # Monday, 2029-01-01 00:00 UTC
TUESDAY = 302 * DAY + 10 * HOUR
MAINTENANCE = (40 * DAY, 131 * DAY, 222 * DAY, 313 * DAY)
WEEK = 7 * DAY


@dataclass(frozen=True)
class Form:
    """`first`: the first second of the year that is run; `last`: until then jobs come."""

    nodes: int
    times: int  # as wide as in the trace
    first: int
    last: int


FORMS = {
    "short": Form(1_024, 4, 299 * DAY, 307 * DAY),
    "week": Form(16_384, 64, 299 * DAY, 307 * DAY),
    "year": Form(16_384, 64, 0, 365 * DAY),
}


def scenario(form: Form, folder: Path) -> None:
    """Write the year, or its part, as a scenario folder."""
    folder.mkdir(parents=True, exist_ok=True)
    widest = form.nodes * 4 * 3 // 4  # CPUs; a job of all waits until no node is down or drained
    conf = (EXAMPLES / "16k.conf").read_text().replace("n[1-16384]", f"n[1-{form.nodes}]")
    (folder / "slurm.conf").write_text(conf)
    jobs = [
        {
            "id": f"j{job.id}",
            "at": job.submit - form.first,
            "user": "ada",
            "run": job.raw_run,
            "options": [
                f"--ntasks={min(job.procs * form.times, widest)}",
                f"--time={-(-job.req // 60)}",
            ],
        }
        for job in read_trace(EXAMPLES / "year.swf.gz").jobs
        if form.first <= job.submit < form.last
    ]
    _write(folder / "workload.jsonl", jobs)
    _write(folder / "events.jsonl", sorted(_events(form), key=lambda event: event["at"]))
    about = {"name": "tuesday", "title": "A year with a bad Tuesday", "zero": ZERO + form.first}
    (folder / "about.json").write_text(json.dumps(about | {"front_end": False}) + "\n")


def _write(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _events(form: Form) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []

    def update(at: float, nodes: str, state: str, reason: str, after_s: float = 0.0) -> None:
        """So long after what happened at `at`, if that belongs to the part that is run."""
        if form.first <= at < form.last:
            words = ["scontrol", "update", f"NodeName={nodes}", f"State={state}"]
            said = [f"Reason={reason}"] if reason else []
            events.append({"at": at - form.first + after_s, "cmd": [*words, *said]})

    rack = form.nodes // 128
    for week in range(52):
        nodes = f"n[{week * rack + 1}-{(week + 1) * rack}]"
        update(week * WEEK + 8 * HOUR, nodes, "DRAIN", "inspection")
        update(week * WEEK + 8 * HOUR, nodes, "RESUME", "", 48 * HOUR)
    names = [f"n{number}" for number in range(1, form.nodes + 1)]
    model = Model.read("exponential:mtbf=14610d,repair=8h,repairs=lognormal")
    for fault in model.failures(names, {}, seed=1):
        if fault.at > form.last:
            break
        # drained as well: ReturnToService=2 would have it back as soon as it answers
        update(fault.at, fault.of, "DOWN", "failed")
        update(fault.at, fault.of, "DRAIN", "failed", 1)
        update(fault.at, fault.of, "RESUME", "", fault.lasts_s)
    for number, at in enumerate(MAINTENANCE, 1):
        announced = max(at - 30 * DAY, form.first)
        if announced <= at and at >= form.first and announced < form.last:
            start = f"StartTime=@{at - form.first}"
            words = ["scontrol", "create", "reservation", f"ReservationName=maint{number}", start]
            rest = ["Duration=12:00:00", "Nodes=ALL", "Users=root", "Flags=MAINT,IGNORE_JOBS"]
            events.append({"at": announced - form.first, "cmd": [*words, *rest]})
    return events


def run(form: Form, out: Path, most: int | None = None) -> BranchOutcome:
    """Write the scenario, run it to the Tuesday, and its futures from there."""
    scenario(form, out / "scenario")
    eighth, at = form.nodes // 8, TUESDAY - form.first
    text = (Path(__file__).parent / "futures.toml").read_text()
    text = text.replace("NODES", f"n[1-{eighth}]")
    alternatives = out / "futures.toml"
    alternatives.write_text(text.replace("TONIGHT", f"@{at + 8 * HOUR}"))
    return branch(
        BranchRequest(
            ReplayRequest(out / "scenario", out, one_process=True),
            at=(str(at),),
            futures=read_futures(alternatives),
            out=out,
            most=most,
        ),
        lambda line: print(line, flush=True),
    )


def table(form: Form, outcome: BranchOutcome) -> str:
    """What became of the jobs that were submitted in the week from the Tuesday on, by future."""
    heads = (
        "future",
        "mean wait, the next week",
        "CPU hours of jobs that ended in it",
        "requeued runs",
        "CPU hours lost",
        "mean wait, all",
    )
    lines = [f"| {' | '.join(heads)} |", "| --- |" + " ---: |" * (len(heads) - 1)]
    at = TUESDAY - form.first
    for each in (outcome.original, *outcome.futures):
        if each.error:
            lines.append(f"| {each.name} | {each.error} | | | | |")
            continue
        with (each.folder / "jobs.csv").open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["end"]]
        waits = [int(row["wait"]) for row in rows if at <= int(row["submit"]) < at + WEEK]
        done = sum(
            int(row["run"]) * int(row["cpus"]) / HOUR
            for row in rows
            if at <= int(row["end"]) < at + WEEK
        )
        lost = each.summary["lost_cpu_seconds"] / HOUR
        lines.append(
            f"| {each.name} | {fmean(waits):,.0f} s | {done:,.0f} "
            f"| {each.summary['requeued_runs']:,} | {lost:,.0f} "
            f"| {each.summary['mean_wait']:,.0f} s |"
        )
    return "\n".join(lines)


def main() -> int:
    """Run it, and print the table. The exit code is that of `understudy branch`."""
    parser = argparse.ArgumentParser(description="Three futures of one bad Tuesday.")
    parser.add_argument("--form", choices=FORMS, default="short", help="how much of it")
    parser.add_argument("--out", type=Path, default=Path("runs/tuesday"))
    parser.add_argument("--jobs", type=int, help="futures that go on at once")
    arguments = parser.parse_args()
    form = FORMS[arguments.form]
    outcome = run(form, arguments.out, arguments.jobs)
    print(table(form, outcome))
    return outcome.code


if __name__ == "__main__":
    raise SystemExit(main())
