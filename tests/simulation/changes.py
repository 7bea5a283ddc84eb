"""Whole clusters whose slurm.conf changes while jobs run: nodes and partitions come, go, and are
renamed, nodes become larger and smaller, values change, and the controller reads them with
`scontrol reconfigure` or at a restart; partitions and nodes are created and deleted by hand, too.

    python tests/simulation/changes.py [--first 1] [--count 50]
    python tests/simulation/changes.py --seed 17 --trace

All else is as in clusters.py: what is checked after each stimulus, and that all jobs come to an end
when the file is again what it was.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "harness")]

from simulation.clusters import ROOT, Simulation, SimulationFailed, simulate
from simulation.draw import Draw

from understudy.controller.facts.feasibility import could_ever_run
from understudy.protocol.messages import (
    CancelJobs,
    ChangeNodeTable,
    Reconfigure,
    UpdatePartition,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.protocol.messages import Message

CHANGES = 12  # of a simulation
OTHER = 0.4  # of the files have nodes of two sizes
SPARE = ("x1", "x2", "y7")  # names of nodes that come


class Changing(Simulation):
    """One cluster under one seed."""

    command = "python tests/simulation/changes.py --seed {} --trace"

    @staticmethod
    def drawn(seed: int) -> Draw:
        """A cluster that keeps its state on disk, and whose daemons may die."""
        draw = Draw.of(seed)
        draw.state, draw.seems_real, draw.nodes = "disk", True, min(draw.nodes, 13)
        draw.node_daemons = min(draw.node_daemons, draw.nodes)
        return draw

    def __init__(self, seed: int, folder: Path, trace: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, folder, trace)
        self.chance = random.Random(f"changes {seed}")
        self.sizes = random.Random(f"sizes {seed}")  # of nodes: all else is as without
        self.conf = self.draw.conf

    def _plan(self) -> None:
        super()._plan()
        for _ in range(CHANGES):
            self._after(self.chance.uniform(0.0, self.draw.span_s), self.change)

    def change(self) -> None:
        """One of all that an administrator may do."""
        chance = self.chance
        match chance.randrange(5):
            case 0:
                action = chance.choice(("create", "update", "delete"))
                changes = (
                    {"nodes": chance.choice(("n1", "ALL", "x1"))} if action != "delete" else {}
                )
                name = chance.choice(("half", "main", "new"))
                self.ask(ROOT, UpdatePartition(action, name, changes))
            case 1:
                action = chance.choice(("create", "delete"))
                node = f"n{chance.randint(1, self.draw.nodes)}"
                self.ask(ROOT, ChangeNodeTable(action, node, "CLOUD"))
            case _:
                self._write(self._another())
                if chance.random() < 0.7:
                    self.ask(ROOT, Reconfigure())
                if chance.random() < 0.7:
                    self.bounce("controller", chance.choice((0.01, 1.0, 30.0)))
                if chance.random() < 0.3:
                    self.bounce(f"noded{chance.randrange(self.draw.node_daemons)}", 1.0)

    def _write(self, conf: str) -> None:
        self._note(f"slurm.conf: {conf!r}")
        (self.folder / "slurm.conf").write_text(conf)

    def _another(self) -> str:
        """A slurm.conf that differs from the first one."""
        chance = self.chance
        names = [f"n{number}" for number in range(1, self.draw.nodes + 1)]
        for _ in range(chance.randrange(4)):
            at = chance.randrange(len(names))
            match chance.randrange(3):
                case 0 if len(names) > 1:
                    del names[at]
                case 1:
                    names[at] = f"m{at}"
                case _:
                    names.insert(at, chance.choice(SPARE))
        names = list(dict.fromkeys(names))
        if chance.random() < 0.2:
            chance.shuffle(names)
        half = names[: (len(names) + 1) // 2]
        lines = []
        for line in self.conf.splitlines():
            words = line.split()
            if words[0].startswith("NodeName="):
                words += chance.choice(([], [], ["Weight=7"], ["Feature=f"]))
                lines += self._nodes(names, words[1:])
                continue
            if words[0].startswith("PartitionName="):
                kind = chance.randrange(8)
                if kind == 0 and words[0] == "PartitionName=half":
                    continue
                if kind == 1:
                    words[0] += "2"
                its = half if "=half" in words[0] else names
                words[1] = f"Nodes={','.join(its)}"
                words += ["MaxTime=30"] if kind == 2 else ["State=DOWN"] if kind == 3 else []
                words = list({word.partition("=")[0]: word for word in words}.values())
            lines.append(" ".join(words))
        if chance.random() < 0.3:
            lines.append(f"PartitionName=new Nodes={names[-1]}")
        return "\n".join(lines) + "\n"

    def _nodes(self, names: list[str], words: list[str]) -> list[str]:
        """Lines for the nodes, of which some may be of other sizes than they were."""
        sizes, draw = self.sizes, self.draw
        others = [name for name in names if sizes.random() < 0.5] if sizes.random() < OTHER else []
        same = [name for name in names if name not in others]
        found = [" ".join((f"NodeName={','.join(same)}", *words))] if same else []
        if others:
            cpus = sizes.choice((1, max(1, draw.cpus // 2), draw.cpus, 2 * draw.cpus))
            given = {word.partition("=")[0]: word for word in words}
            given |= {
                "CPUs": f"CPUs={cpus}",
                "ThreadsPerCore": "ThreadsPerCore=1",
                "CoresPerSocket": f"CoresPerSocket={cpus}",
            }
            if "RealMemory" in given:
                memory = sizes.choice((draw.memory_mb // 2, draw.memory_mb, 2 * draw.memory_mb))
                given["RealMemory"] = f"RealMemory={max(1, memory)}"
            if sizes.random() < 0.3:
                given["Feature"] = f"Feature={sizes.choice(('f', 'g', 'f,g'))}"
            if sizes.random() < 0.3:
                found.insert(0, "GresTypes=gpu")
                given["Gres"] = f"Gres=gpu:{sizes.randint(1, 4)}"
            found.append(" ".join((f"NodeName={','.join(others)}", *given.values())))
        return found

    def _cancel_hopeless(self) -> None:
        """Jobs wait for partitions that are gone, or for as many nodes as there were once."""
        if self.controller is not None and not self.done.done():
            core = self.controller.core
            there = core.tables.partitions
            gone = [
                job.job_id
                for job in core.tables.pending.values()
                if not all(name in there for name in job.partitions)
                or not any(could_ever_run(core, job, there[name]) for name in job.partitions)
            ]
            self.resized -= set(gone)
            if gone:
                self.ask(ROOT, CancelJobs([str(job_id) for job_id in gone]))
        super()._cancel_hopeless()

    def _empty(self, answer: Message) -> None:
        """The judgement waits until nodes that were resumed have been heard of."""
        self._after(2.0, super()._empty, answer)

    def _heal(self) -> None:
        self._write(self.conf)
        self.kill("controller")
        for noded in self.cluster.nodeds:
            self.kill(noded.name)
        super()._heal()


def main() -> int:
    """The seeds; 1 if one of them fails."""
    parser = argparse.ArgumentParser(description="Clusters whose slurm.conf changes.")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--trace", action="store_true")
    asked = parser.parse_args()
    failed = []
    seeds = [asked.seed] if asked.seed else range(asked.first, asked.first + asked.count)
    for seed in seeds:
        try:
            simulate(seed, print if asked.trace else None, Changing)
        except SimulationFailed as failure:
            failed.append(seed)
            print(failure, flush=True)
    print(f"{len(seeds)} seeds, failed: {failed or 'none'}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
