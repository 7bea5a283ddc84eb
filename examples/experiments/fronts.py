"""Does BBSched's genetic search decide as the exact Pareto front does, in the same windows?

A comparison of schedules cannot tell: after one decision that differs all later windows are others.
So a replay with exact fronts is watched, and in every so many of its windows the search is asked,
too, with mutation of 5 % and of 0.05 % a bit. For each: whether the front, and the decision taken
from it, are those of the exact one, and how much of the exact front's hypervolume its has (nodes
and buffer in use as parts of the machine, above what is in use without the window).

    python examples/experiments/fronts.py --traces FOLDER [--full] [--seed N] [--page FILE]
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from understudy.controller.scheduling.chance import seeded
from understudy.controller.scheduling.textbook import bbsched
from understudy.controller.scheduling.textbook.deciding import Fullness, by_tradeoff
from understudy.controller.scheduling.textbook.genetic import Search, search
from understudy.experiments.comparison.cells import Drawn
from understudy.experiments.comparison.comparison import Workload
from understudy.experiments.comparison.workloads import make
from understudy.tool.replay.request import ReplayRequest
from understudy.tool.replay.traces import replay

if TYPE_CHECKING:
    from understudy.controller.scheduling.textbook.subsets import Solution, Window

MOST_SUBSETS = 200_000  # windows in which more fit are counted, and not looked at
SHORT_JOBS, EVERY = 1_000, 5
FULL_JOBS = 0  # all
SEARCHES = {"5 %": Search(), "0.05 %": Search(mutation=33)}  # chances of 65,536
CLASSES = ((2, 5), (6, 10), (11, 15), (16, 20))  # of numbers of candidates


def hypervolume(front: list[Solution], capacity: tuple[int, ...]) -> float:
    """What a front of two objectives dominates, as a part of the machine; it begins with most of
    the first.
    """
    area, reached = 0.0, 0
    for used, _ in front:
        area += used[0] / capacity[0] * (used[1] - reached) / capacity[1]
        reached = used[1]
    return area


@dataclass
class Seen:
    """Windows with so many candidates, by search: same fronts, same decisions, hypervolumes."""

    windows: int = 0
    fronts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    decisions: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    volumes: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


class Watched:
    """Takes the place of the step in which a window's front is found and decided on."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.windows = self.too_large = 0
        self.seen = {each: Seen() for each in CLASSES}

    def of_front(self, policy: bbsched.BBSched, window: Window, full: Fullness) -> int:
        """As the policy does it, with the exact front wherever that can be had."""
        front = window.front(MOST_SUBSETS)
        self.windows += 1
        if front is None:
            self.too_large += 1
            return by_tradeoff(
                search(window, policy.chance, SEARCHES["5 %"]), full, Fraction(2)
            ).chosen
        decision = by_tradeoff(front, full, Fraction(2))
        if self.windows % self.every == 0:
            self.look(window, full, front, decision)
        return decision.chosen

    def look(
        self, window: Window, full: Fullness, front: list[Solution], decision: Solution
    ) -> None:
        """Ask the searches, too."""
        place = next((each for each in CLASSES if each[0] <= len(window) <= each[1]), None)
        if place is None:
            return
        seen = self.seen[place]
        seen.windows += 1
        volume = hypervolume(front, full.capacity)
        for name, how in SEARCHES.items():
            found = search(window, seeded(self.windows), how)
            seen.fronts[name] += [used for used, _ in found] == [used for used, _ in front]
            seen.decisions[name] += by_tradeoff(found, full, Fraction(2)).used == decision.used
            if volume:
                seen.volumes[name].append(hypervolume(found, full.capacity) / volume)


def page(watched: Watched, jobs: int, seed: int, source_sha256: str) -> str:
    """Tables in Markdown."""
    heads = "candidates", "windows", "mutation", "same front", "same decision"
    heads += "hypervolume, mean", "hypervolume, least"
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    totals = dict.fromkeys(SEARCHES, 0)
    for (low, high), seen in watched.seen.items():
        if not seen.windows:
            continue
        for name in SEARCHES:
            totals[name] += seen.decisions[name]
            volumes = seen.volumes[name] or [1.0]
            lines.append(
                f"| {low} to {high} | {seen.windows:,} | {name} | "
                f"{seen.fronts[name] / seen.windows:.1%} | "
                f"{seen.decisions[name] / seen.windows:.1%} | {fmean(volumes):.4f} | "
                f"{min(volumes):.4f} |"
            )
    looked = sum(seen.windows for seen in watched.seen.values())
    told = [
        f"{name}: {count} of {looked} decisions are those of the exact front"
        + (f" ({count / looked:.1%})" if looked else "")
        for name, count in totals.items()
    ]
    volumes = [each for seen in watched.seen.values() for each in seen.volumes["5 %"]] or [1.0]
    holds = looked and totals["5 %"] / looked >= 0.95 and fmean(volumes) >= 0.99
    intro = __doc__.partition("\n\n")[2].partition("\n\n")[0].replace("\n", " ")
    where = (
        f"Theta S4 (`ALCF-Theta-2022.swf.gz` `{source_sha256[:12]}`), submissions times 0.8, "
        f"{jobs:,} jobs, seed {seed}, window 20, bound 50, population 20, 500 generations. "
        f"{watched.windows:,} windows had a candidate; in {watched.too_large:,} of them more than "
        f"{MOST_SUBSETS:,} subsets fit, so that the search decided; one in {watched.every} of the "
        "others was looked at if it had at least two candidates."
    )
    found = (
        f"Mutation of {'; of '.join(told)}. Looked for: at least 95 % of decisions and 0.99 of the "
        f"hypervolume with 5 %: **{'holds' if holds else 'does not hold'}**. Decisions are the "
        "same if they use the same nodes and buffer."
    )
    title = "# The genetic search in the windows of an exact BBSched"
    return "\n\n".join([title, intro, where, "\n".join(lines), found]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--traces", type=Path, default=Path("../shared/traces"))
    parser.add_argument("--full", action="store_true", help="the whole year")
    parser.add_argument("--jobs", type=int, help="so many instead")
    parser.add_argument("--every", type=int, default=EVERY, help="look at every so many windows")
    parser.add_argument("--seed", type=int, default=1, help="of the buffers")
    parser.add_argument("--page", type=Path, default=Path("runs/experiments/pages/fronts.md"))
    given = parser.parse_args()
    watched = Watched(given.every)

    def of_front(policy: bbsched.BBSched, window: Window, full: Fullness) -> int:
        return watched.of_front(policy, window, full)

    bbsched.BBSched._of_front = of_front
    theta = Workload("S4", "ALCF-Theta-2022.swf.gz", "theta-bb", scenario="S4", scale=0.8)
    jobs = (FULL_JOBS if given.full else SHORT_JOBS) if given.jobs is None else given.jobs
    with tempfile.TemporaryDirectory() as name:
        made = make(Drawn(theta, given.seed, 0, jobs), given.traces, Path(name))
        code = replay(
            ReplayRequest(
                trace=made.path,
                out=Path(name) / "out",
                nodes=made.processors,
                cpus=1,
                scheduler="bbsched",
                one_process=True,
                parameters="bbs_window=20,bbs_bound=50",
            )
        )
    if code not in (0, 4):
        raise SystemExit(code)
    given.page.parent.mkdir(parents=True, exist_ok=True)
    given.page.write_text(page(watched, made.jobs, given.seed, made.source_sha256))
    print(f"page {given.page}")


if __name__ == "__main__":
    main()
