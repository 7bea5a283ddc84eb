"""Whole clusters under faults: the random configurations, jobs and administrators of `fuzz.py`, and
beside them nodes, daemons, links and disks that fail. First all that must hold is looked at after
each step; then everything heals, and it must converge.

    python tests/simulation/chaos.py --count 500 [--first 1] [--twice]      many
    python tests/simulation/chaos.py --seed 17 [--shrink] [--keep FOLDER] [--trace]

A failure names its seed and the command that shows it again. `--twice` runs each seed twice and
stops at the first difference between the two.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from simulation.fuzz import (
    Outcome,
    Run,
    ScheduleFailed,
    kind_of,
    node_names,
    run_schedule,
    shrink,
)
from simulation.schedules import Schedule
from simulation.schedules import draw as draw_schedule

from understudy.auth.keys import create_keys
from understudy.experiments.random_faults import random_faults
from understudy.model.cluster import CONTROLLER, Backup, backup_name
from understudy.model.conf import load
from understudy.model.errors import ConfigError
from understudy.tool.faults.cluster import FaultyCluster
from understudy.tool.faults.inject import Injector, Places
from understudy.tool.faults.safety import Safety

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.clock.virtual_loop import VirtualEventLoop
    from understudy.controller.edge.main import Controller
    from understudy.protocol.messages import Message

JOBS = 20
MOST_FAULTS = 12
WITH_BACKUP = 0.3  # so many have a backup controller
HEALED_S = 700.0  # SlurmdTimeout, and the longest pause between two attempts, are over
COMMAND = "python tests/simulation/chaos.py --seed {}"


@dataclass
class ChaosOutcome(Outcome):
    """Beside it: the faults that began, by kind, how often the disk was read back, and all that
    anybody was asked, in order, and who led when.
    """

    faults: Counter[str] = field(default_factory=Counter)
    read_back: int = 0
    heard: list[str] = field(default_factory=list)
    leaders: list[tuple[float, str]] = field(default_factory=list)  # when who began to lead


class ChaosRun(Run):
    """One schedule with faults through one cluster whose nodes each have a daemon."""

    STATE = "disk"
    command = COMMAND

    def __init__(
        self,
        schedule: Schedule,
        folder: Path,
        trace: Callable[[str], None] | None,
        loop: VirtualEventLoop,
    ) -> None:
        schedule = replace(schedule, node_daemons=1 << 20, front_end=False)
        super().__init__(schedule, folder, trace, loop)
        backups = backups_of(schedule)
        self.cluster.controller_unix = CONTROLLER
        self.cluster.backups = [Backup(name, name, unix=name) for name in backups]
        create_keys(folder / "keys", backups)
        self.outcome: ChaosOutcome = ChaosOutcome()
        self.config = load(folder / "slurm.conf")
        self.safety = Safety(self.fail, self._acknowledged, forgets=self._forgets)
        self.faulty = FaultyCluster(
            self.loop, self.cluster, folder, schedule.seed, self.fail, self._watch, self._heard
        )
        self.faulty.on_start = self.safety.started
        self.network = self.faulty.network
        self.time = self.faulty.time_of_clients()
        self.root, self.client = self.faulty.client("root", 0), self.faulty.client("replay", 0)
        self.faulty.on_runs = self.client.tell
        self.injector = Injector(self.faulty, Places(self.cluster, self.config), self.cluster.zero)

    @property
    def _forgets(self) -> bool:
        return "MinJobAge=0" not in "\n".join(self.schedule.conf)

    def _acknowledged(self) -> list[int]:
        return list(self.run.ids.values()) if self.run is not None else []

    def _heard(self, receiver: str, sender: str, message: Message) -> None:
        entry = f"{self.loop.now_us / 1e6:.6f} {sender} > {receiver}: {message}"
        self.outcome.heard.append(entry)
        self._trace(entry)

    def _watch(self, controller: Controller) -> None:
        self.core = controller.core
        self.safety.watch(controller)

    async def _start(self) -> None:
        if self.schedule.accounting:
            self._make_database()
        self.injector.plan(self.scenario.faults)
        await self.faulty.start_all()

    async def _heal(self) -> None:
        self.injector.heal()
        await self._sleep(HEALED_S)
        await super()._heal()

    def _judge(self, run: object) -> None:
        super()._judge(run)
        self.safety.judge(self.faulty)
        self.outcome.steps, self.outcome.read_back = self.safety.steps, self.safety.read_back
        self.outcome.faults = self.injector.counts
        zero = self.cluster.zero
        self.outcome.leaders = [(at - zero, name) for at, name in self.faulty.takeovers]

    async def _close(self) -> None:
        await self.faulty.close()


def backups_of(schedule: Schedule) -> list[str]:
    """The names of its backup controllers."""
    hosts = [line for line in schedule.conf if line.startswith("SlurmctldHost=")]
    return [backup_name(number) for number in range(1, len(hosts))]


def draw(seed: int, jobs: int = JOBS) -> Schedule:
    """The same for the same seed."""
    schedule = draw_schedule(seed, jobs)
    rng = random.Random(f"faults {seed}")
    nodes = node_names(schedule)
    others = random.Random(f"controllers {seed}")
    if others.random() < WITH_BACKUP:
        timeout_s = others.choice((20, 120))
        more = ("SlurmctldHost=first", "SlurmctldHost=second", f"SlurmctldTimeout={timeout_s}")
        schedule = replace(schedule, conf=(*more, *schedule.conf))
    racks = [
        word.split("=")[1]
        for line in schedule.topology
        for word in line.split()
        if word.startswith("SwitchName=")
    ]
    faults = random_faults(
        rng,
        rng.randint(1, MOST_FAULTS),
        schedule.span_s,
        nodes,
        racks=racks,
        accounting=bool(schedule.accounting),
        backups=backups_of(schedule),
    )
    events = [*schedule.events, *(fault.as_line() for fault in faults)]
    return replace(schedule, events=tuple(sorted(events, key=lambda each: float(str(each["at"])))))


def run_chaos(schedule: Schedule, trace: Callable[[str], None] | None = None) -> ChaosOutcome:
    """As `run_schedule`."""
    outcome = run_schedule(schedule, trace, ChaosRun)
    assert isinstance(outcome, ChaosOutcome)
    return outcome


def check_determinism(schedule: Schedule, first: ChaosOutcome) -> None:
    """Raise ScheduleFailed at the first difference between this run and another one."""
    second = run_chaos(schedule)
    for number, (one, other) in enumerate(zip_longest(first.heard, second.heard)):
        if one != other:
            raise ScheduleFailed(
                schedule, f"two runs differ at message {number}:\n    {one}\n    {other}", COMMAND
            )
    if first.hash != second.hash:
        raise ScheduleFailed(schedule, "two runs end differently", COMMAND)


def main() -> int:
    """Run the seeds; 1 if one of them fails."""
    parser = argparse.ArgumentParser(description="Whole clusters under faults, in virtual time.")
    parser.add_argument("--seed", type=int, help="this one only")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=JOBS, help="submissions of each")
    parser.add_argument("--twice", action="store_true", help="each seed twice: the same to the end")
    parser.add_argument("--trace", action="store_true", help="print every message")
    parser.add_argument("--shrink", action="store_true", help="make what fails smaller")
    parser.add_argument("--keep", type=Path, help="write what fails as a scenario folder")
    arguments = parser.parse_args()
    seeds = (
        [arguments.seed]
        if arguments.seed is not None
        else range(arguments.first, arguments.first + arguments.count)
    )
    trace = partial(print, file=sys.stdout)  # commands have another one
    failed: dict[int, str] = {}
    ends: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    steps = read_back = 0
    began = time.monotonic()
    for seed in seeds:
        schedule = draw(seed, arguments.jobs)
        try:
            outcome = run_chaos(schedule, trace if arguments.trace else None)
            if arguments.twice:
                check_determinism(schedule, outcome)
        except (ScheduleFailed, ConfigError) as failure:
            problem = getattr(failure, "problem", str(failure))
            print(failure, flush=True)
            if arguments.shrink:
                schedule, problem = shrink(schedule, problem, ChaosRun)
                parts = (schedule.conf, schedule.accounting, schedule.jobs, schedule.events)
                print(f"seed {seed}, smaller: {problem}", *sum(parts, ()), sep="\n    ")
            if arguments.keep:
                schedule.write(arguments.keep)
            failed[seed] = problem
            continue
        ends += outcome.ends
        faults += outcome.faults
        steps += outcome.steps
        read_back += outcome.read_back
    for seed, problem in failed.items():
        print(f"seed {seed}: {kind_of('at: ' + problem.partition(': ')[2])}")
    print(
        f"{len(seeds)} seeds, {steps:,} steps, {read_back:,} times read back in "
        f"{time.monotonic() - began:.1f} s: faults {dict(faults)}; jobs {dict(ends)}; "
        f"failed: {len(failed)}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
