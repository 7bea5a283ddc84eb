"""What `understudy chaos` does: faults at random in a cluster with a load, while all that must hold
is looked at after each step; then everything heals, and it must converge.

Place: beside scenarios.py, whose runs these are. A campaign is drawn as a scenario folder first, so
that what fails can be kept, looked at and made smaller.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import random
import shutil
import traceback
from collections import Counter
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from understudy.experiments.random_faults import random_faults
from understudy.experiments.replay_conf import replay_conf
from understudy.experiments.shrinking import without_needless
from understudy.experiments.synthetic import synthetic
from understudy.model.cluster import backup_name
from understudy.model.conf import read
from understudy.model.states import NodeState
from understudy.tool.cluster.launch import LaunchError
from understudy.tool.faults.run import in_faulty_process
from understudy.tool.faults.safety import Safety
from understudy.tool.replay.folder import replay_dir
from understudy.tool.replay.request import ReplayRequest
from understudy.tool.replay.scenarios import ScenarioRun, prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from understudy.protocol.messages import Message
    from understudy.tool.cluster.cluster_run import Participant
    from understudy.tool.replay.scenarios import Prepared

JOBS_AN_HOUR: Final = 6
LOAD: Final = 0.6  # of the machine, so that the queue is empty again soon after all has healed
HEALED_S: Final = 700.0  # ours: SlurmdTimeout and the longest pause between attempts are over
PATIENCE_S: Final = 4 * 86_400.0  # ours: within that all jobs have ended after the healing
_USERS: Final = 5
_FILES: Final = ("gres.conf", "topology.conf", "burst_buffer.conf")


class CampaignFailedError(Exception):
    """Something that must hold does not; the text says what, and when."""


@dataclass(frozen=True, slots=True)
class ChaosRequest:
    """What the user asked for. `faults`: how many an hour, in the mean."""

    out: Path
    seed: int = 1
    hours: float = 24.0
    conf: Path | None = None
    nodes: int = 8
    cpus: int = 4
    scheduler: str = ""
    faults: float = 2.0
    scenario: Path | None = None  # a campaign that has been drawn already


@dataclass(slots=True)
class CampaignOutcome:
    """What a campaign that went well has shown. `heard`: every message, in order."""

    steps: int = 0
    read_back: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    faults: dict[str, int] = field(default_factory=dict)
    heard: list[str] = field(default_factory=list)


def draw(request: ChaosRequest, folder: Path) -> None:
    """Write the campaign of the seed as a scenario folder.

    Raises:
        ConfigError: the configuration cannot be used.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = (
        replay_conf(request.nodes, request.cpus, request.scheduler or "backfill", jobs=100_000)
        if request.conf is None
        else request.conf.read_text(errors="surrogateescape")
    )
    # a replay's own configuration has nobody notice that a node is silent
    (folder / "slurm.conf").write_text(text.replace("SlurmdTimeout=0\n", ""))
    for name in _FILES:
        if request.conf is not None and (beside := request.conf.parent / name).exists():
            shutil.copyfile(beside, folder / name)
    config = read(folder / "slurm.conf")
    nodes = [node.name for node in config.nodes]
    cpus = max(node.cpus for node in config.nodes)
    jobs = synthetic(
        max(1, round(request.hours * JOBS_AN_HOUR)),
        len(nodes),
        max(cpus, 2),
        request.hours,
        request.seed,
        load=LOAD,
        users=_USERS,
        groups=1,
        queues=1,
    )
    lines: list[dict[str, Any]] = [
        {
            "id": f"j{job.id}",
            "at": job.submit,
            "user": f"u{job.user}",
            "run": job.run,
            "options": [f"--ntasks={job.procs}", f"--time={max(1, job.req // 60)}"],
        }
        for job in jobs
    ]
    faults = random_faults(
        random.Random(f"campaign {request.seed}"),  # noqa: S311
        max(1, round(request.hours * request.faults)),
        request.hours * 3600,
        nodes,
        racks=[switch.name for switch in config.topology],
        accounting=config.text("AccountingStorageType").endswith("slurmdbd"),
        backups=[backup_name(number) for number in range(1, len(config.controllers))],
    )
    _write(folder, lines, [fault.as_line() for fault in faults])
    about = {"name": f"seed-{request.seed}", "front_end": False}
    (folder / "about.json").write_text(json.dumps(about) + "\n")


def _write(folder: Path, jobs: Sequence[dict[str, Any]], events: Sequence[dict[str, Any]]) -> None:
    for name, lines in (("workload", jobs), ("events", events)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))


def run(scenario: Path, seed: int) -> CampaignOutcome:
    """Run a campaign's scenario folder once.

    Raises:
        CampaignFailedError: what must hold does not.
        ScenarioError, ConfigError, LaunchError: the folder cannot be used.
    """
    request = ReplayRequest(scenario, scenario, seed=seed, is_campaign=True)
    with replay_dir(None) as folder:
        campaign = _Campaign(prepare(request, folder.path))
        return campaign.run(folder.path)


def first_difference(one: CampaignOutcome, other: CampaignOutcome) -> str:
    """Where two runs differ; "" if they do not."""
    for number, (this, that) in enumerate(zip_longest(one.heard, other.heard)):
        if this != that:
            return f"message {number}:\n    {this}\n    {that}"
    return "" if one.ends == other.ends else f"the ends: {one.ends}, {other.ends}"


def shrink(scenario: Path, seed: int, problem: str) -> str:
    """Leave out faults and jobs while it still fails in the same way, and write the folder anew.
    How it fails then.
    """
    parts = {
        name: tuple(map(json.loads, (scenario / f"{name}.jsonl").read_text().splitlines()))
        for name in ("events", "workload")
    }

    def still_fails() -> bool:
        nonlocal problem
        _write(scenario, parts["workload"], parts["events"])
        try:
            run(scenario, seed)
        except CampaignFailedError as failure:
            if _kind(str(failure)) == _kind(problem):
                problem = str(failure)
                return True
        except LaunchError:
            pass
        return False

    for name in ("events", "workload"):

        def fails_with(items: tuple[dict[str, Any], ...], name: str = name) -> bool:
            before, parts[name] = parts[name], items
            fails = still_fails()
            if not fails:
                parts[name] = before
            return fails

        without_needless(parts[name], fails_with)
    _write(scenario, parts["workload"], parts["events"])
    return problem


def _kind(problem: str) -> str:
    """What has failed, without when and to whom."""
    text = problem.partition(": ")[2].splitlines()[0]
    return "".join(letter for letter in text if not letter.isdigit())[:60]


class _Campaign:
    """One run."""

    def __init__(self, prepared: Prepared) -> None:
        assert prepared.faults is not None
        self._prepared, self._faults = prepared, prepared.faults
        self._run = ScenarioRun(
            prepared.scenario, prepared.cluster.zero, prepared.run_conf.config, is_check=False
        )
        forgets = prepared.run_conf.config.count("MinJobAge") > 0
        safety = Safety(self._fail, lambda: list(self._run.ids.values()), forgets=forgets)
        self._safety = safety
        faults = prepared.faults
        faults.watch, faults.started, faults.heard = safety.watch, safety.started, self._heard
        self._outcome = CampaignOutcome()
        self._problem = self._run_dir = ""
        self._task: asyncio.Task[Any] | None = None
        self._now: Callable[[], float] = lambda: 0.0  # seconds after the zero

    def run(self, run_dir: Path) -> CampaignOutcome:
        prepared, self._run_dir = self._prepared, str(run_dir)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                in_faulty_process(
                    prepared.cluster, run_dir, prepared.run_conf.config, self._faults, self._go
                )
        except LaunchError as error:
            self._problem = self._problem or f"at {self._now():.3f}: {error}"
        except asyncio.CancelledError:
            if not self._problem:
                raise
        except Exception as error:
            where = traceback.format_exc(limit=-3)
            raise CampaignFailedError(f"at {self._now():.3f}: {error!r}\n{where}") from error
        if self._problem:
            raise CampaignFailedError(self._problem)
        self._outcome.steps, self._outcome.read_back = self._safety.steps, self._safety.read_back
        self._outcome.faults = self._faults.figures()
        self._outcome.ends = Counter(str(each["state"]) for each in self._run.results())
        return self._outcome

    def _heard(self, receiver: str, sender: str, message: Message) -> None:
        told = str(message).replace(self._run_dir, "RUN_DIR")
        self._outcome.heard.append(f"{self._now():.6f} {sender} > {receiver}: {told}")

    def _fail(self, problem: str) -> None:
        if not self._problem:
            self._problem = f"at {self._now():.3f}: {problem}"
            if self._task is not None:
                self._task.cancel()

    async def _go(self, participant: Participant) -> None:
        self._task = asyncio.current_task()
        time, zero = participant.time, self._prepared.cluster.zero
        self._now = lambda: time.now() - zero
        scenario = self._prepared.scenario
        last = max(
            [0.0, *(each.at for each in scenario.faults), *(e.at for e in scenario.submissions)]
        )
        injector = self._faults.injector
        assert injector is not None
        time.call_at(zero + last + 1.0, injector.heal)
        late = time.call_at(
            zero + last + PATIENCE_S,
            self._fail,
            f"jobs have not ended {PATIENCE_S / 86_400:.0f} days after all has healed",
        )
        await self._run.go(participant)
        late.cancel()
        if self._run.error:
            self._fail(self._run.error)
        settled: asyncio.Future[None] = participant.loop.create_future()
        due = max(time.now(), zero + last) + HEALED_S
        time.call_at(due, settled.set_result, None)
        await settled
        self._judge()

    def _judge(self) -> None:
        cluster = self._faults.cluster
        assert cluster is not None
        self._safety.judge(cluster)
        if cluster.controller is None:
            return
        core = cluster.controller.core
        for node in core.tables.nodes.nodes:
            if node.state is not NodeState.IDLE or node.flags:
                self._fail(f"node {node.name} is {node.state.name} {node.flags!r} in the end")
        if core.tables.running or core.tables.pending or core.completing:
            self._fail("jobs are left in the end")


def drawn(request: ChaosRequest) -> Path:
    """The folder of the campaign, which is drawn if it has not been.

    Raises:
        ConfigError, OSError: the configuration cannot be used, or the folder not be written.
    """
    if request.scenario is not None:
        return request.scenario
    folder = request.out / "scenario"
    draw(request, folder)
    return folder


def figures(outcome: CampaignOutcome) -> dict[str, int]:
    """The counts of a campaign that went well."""
    return {
        "steps": outcome.steps,
        "read_back": outcome.read_back,
        "messages": len(outcome.heard),
        **{f"jobs_{state}": count for state, count in sorted(outcome.ends.items())},
        **outcome.faults,
    }
