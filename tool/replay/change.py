"""What makes a future another one: a changed configuration, commands, more jobs, failures, done to
a cluster at an instant of a run.

Place: under forks.py, in whose forks it works. Commands are the commands themselves (in_time.py).
Who submits the run's jobs (`Subject`) is asked to submit more.
"""

from __future__ import annotations

import contextlib
import math
import random
import shlex
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, Protocol

import msgspec

from understudy.commands.sacctmgr.sacctmgr import sacctmgr
from understudy.commands.sbatch import sbatch
from understudy.commands.scancel import scancel
from understudy.commands.scontrol.scontrol import scontrol
from understudy.experiments.formats import read_trace
from understudy.experiments.node_failures import FailuresError, Model
from understudy.model.conf import load
from understudy.model.conf_edit import EditError
from understudy.model.errors import ConfigError, SlurmError
from understudy.protocol.messages import Emulation, Message, SubmitJob
from understudy.tool.replay.conf import edits_of, made_conf
from understudy.tool.replay.in_time import run_command, submitted_as

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Sequence

    from understudy.commands.shared.context import Context
    from understudy.experiments.faults import Fault
    from understudy.experiments.futures import Deed, Future
    from understudy.experiments.trace import TraceJob
    from understudy.tool.cluster.cluster_run import OneProcess, Participant

COMMANDS: Final[dict[str, Callable[[list[str], Context], int]]] = {
    "scontrol": scontrol,
    "scancel": scancel,
    "sbatch": sbatch,
    "sacctmgr": sacctmgr,
}
SCRIPT: Final = "#!/bin/sh\n"
# what a controller reads when it begins, and leaves as it is when the file is read again
_AT_START: Final = (
    "PriorityType",
    "AccountingStorageType",
    "AccountingStorageEnforce",
    "AccountingStorageTRES",
    "JobCompType",
)
_UNLIMITED_S: Final = (
    3600.0  # ours: so long a job without a time limit runs if nobody says how long
)


class ChangeFailedError(Exception):
    """A change cannot be made; says which, and why in Slurm's words."""


class Subject(Protocol):
    """The run, as far as a change concerns it."""

    @property
    def participant(self) -> Participant: ...

    def words(self, words: Sequence[str]) -> list[str]:
        """A command's words with what the run knows put in: ids of its jobs, its instants."""

    def multiply(self, load: float, rng: random.Random) -> None:
        """Have jobs that are to come from now on come `load` times in the mean, as drawn."""

    def add_trace(self, jobs: Sequence[TraceJob]) -> None:
        """Submit these as well; their zero is now.

        Raises:
            ChangeFailedError: this kind of run cannot.
        """

    def tag(self, name: str) -> str:
        """By which a job that is submitted beside the run's own is told of; its name."""

    def expect(self, more: int) -> None:
        """The run is not over before that many things more, that are yet to be submitted, were; a
        negative number: so many have been.
        """


class Scene:
    """Where a change is made. `folder`: the future's own, for files; `give_up` is told why, and
    does not return.
    """

    def __init__(
        self, made: OneProcess, subject: Subject, folder: Path, give_up: Callable[[str], NoReturn]
    ) -> None:
        self.made, self.subject, self.folder, self.give_up = made, subject, folder, give_up
        self.tasks: set[asyncio.Task[None]] = set()

    @property
    def seconds(self) -> float:
        """After the run's zero."""
        cluster, loop = self.made.cluster, self.made.loop
        return loop.time() - (cluster.zero - cluster.epoch)


async def change(future: Future, scene: Scene) -> str:
    """Make the change, what of it comes now; have the rest made later. The text of slurm.conf, ""
    if it is as before.

    Raises:
        ChangeFailedError: it cannot be made.
    """
    text = await _configure(future.settings, scene) if future.settings else ""
    later = [deed for deed in future.deeds if deed.after_s]
    for deed in future.deeds:
        if not deed.after_s:
            await _do(deed, scene)
    scene.subject.expect(sum(deed.submits for deed in later))
    for deed in later:
        scene.made.loop.call_later(deed.after_s, _begin, deed, scene)
    if future.trace is not None:
        scene.subject.add_trace(_jobs_of(future.trace))
    if future.load != 1.0:
        # drawn apart, so that the same jobs come whatever else is done
        scene.subject.multiply(future.load, random.Random(f"load {future.seed}"))  # noqa: S311
    if future.failures:
        _fail_nodes(future, scene)
    return text


# --- the configuration --------------------------------------------------------------------------


async def _configure(settings: Sequence[str], scene: Scene) -> str:
    """Change slurm.conf, and have the controller read it again; another policy takes over at
    once.
    """
    cluster, controller = scene.made.cluster, scene.made.controller
    shown = " ".join(settings)
    if controller is None:
        raise ChangeFailedError(f"set {shown}: the controller is down at that instant")
    before = Path(cluster.conf)
    source = scene.folder / "source"
    shutil.copytree(before.parent, source)
    text = before.read_text(encoding="utf-8", errors="surrogateescape")
    try:
        conf = made_conf(text, source, edits_of(settings))
        cluster.conf, config = str(conf.path), load(conf.path)
        for key in _AT_START:
            if config.text(key) != controller.config.text(key):
                raise ChangeFailedError(f"set {shown}: {key}: taken over at the start alone")
        controller.exchange_policy(config)
    except (ConfigError, EditError) as error:
        raise ChangeFailedError(f"set {shown}: {error}") from None
    except SlurmError as error:
        raise ChangeFailedError(f"set {shown}: {error.text}") from None
    await _run(["scontrol", "reconfigure"], scene, f"set {shown}")
    return conf.text


# --- commands -----------------------------------------------------------------------------------


def _begin(deed: Deed, scene: Scene) -> None:
    """A command's time has come."""
    task = scene.made.loop.create_task(_do_later(deed, scene))
    scene.tasks.add(task)
    task.add_done_callback(scene.tasks.discard)


async def _do_later(deed: Deed, scene: Scene) -> None:
    try:
        await _do(deed, scene)
    except ChangeFailedError as error:
        scene.give_up(str(error))
    if deed.submits:
        scene.subject.expect(-1)


async def _do(deed: Deed, scene: Scene) -> None:
    await _run(list(deed.words), scene, str(deed), deed)


async def _run(words: list[str], scene: Scene, shown: str, deed: Deed | None = None) -> None:
    participant = scene.subject.participant
    words = scene.subject.words(words)
    change: Callable[[Message], Message] = _plain
    environ: dict[str, str] = {}
    if deed is not None and deed.submits:
        change = _submitter(deed, scene)
        environ = {"HOME": "/", "USER": deed.user or "root"}
    outcome = await run_command(
        participant.messenger,
        participant.cluster.name,
        words[0],
        COMMANDS[words[0]],
        # nobody is there to be asked
        ["-i", *words[1:]] if words[0] == "sacctmgr" else words[1:],
        stdin=SCRIPT if words[0] == "sbatch" else "",
        environ=environ,
        change=change,
    )
    if outcome.code:
        said = outcome.err.strip() or outcome.out.strip() or "failed"
        raise ChangeFailedError(f"{shown}: {said}")


def _plain(message: Message) -> Message:
    return message


def _submitter(deed: Deed, scene: Scene) -> Callable[[Message], Message]:
    """What makes of a submission one of the run's, that runs as long as it should."""
    cluster = scene.made.cluster
    user_id = cluster.users.get(deed.user, -1)
    if deed.user and user_id < 0:
        raise ChangeFailedError(f"{deed}: the cluster knows no user {deed.user}")

    def behaves(message: SubmitJob) -> SubmitJob:
        spec = message.spec
        run_s = deed.run_s or spec.time_limit_s or _UNLIMITED_S
        tag = scene.subject.tag(spec.name)
        return msgspec.structs.replace(message, emulation=Emulation(float(run_s), tag=tag))

    return submitted_as(user_id, user_id if deed.user else -1, behaves)


# --- more jobs ----------------------------------------------------------------------------------


def _jobs_of(path: Path) -> Sequence[TraceJob]:
    try:
        jobs = read_trace(path).jobs
    except (OSError, EOFError) as error:
        why = getattr(error, "strerror", None) or error
        raise ChangeFailedError(f"trace {path}: {why}") from None
    except ValueError as error:
        raise ChangeFailedError(f"trace {error}") from None
    if not jobs:
        raise ChangeFailedError(f"trace {path}: no job that can be submitted")
    return jobs


def copies(load: float, rng: random.Random) -> int:
    """How many times more than once one comes, `load - 1` in the mean."""
    whole = int(load) - 1
    return whole + (rng.random() < load - 1 - whole)


# --- failures -----------------------------------------------------------------------------------


def _fail_nodes(future: Future, scene: Scene) -> None:
    """From now on nodes fail and come back, as an administrator sets them DOWN, DRAIN and RESUME.
    Failures do not keep time going, repairs do: somebody may wait for the nodes.
    """
    controller = scene.made.controller
    config = load(scene.made.cluster.conf) if controller is None else controller.config
    racks = {node: switch.nodes for switch in config.topology for node in switch.nodes}
    nodes = [node.name for node in config.nodes]
    began = scene.made.loop.time()
    try:
        faults = Model.read(future.failures).failures(nodes, racks, future.seed)
        _await_failure(faults, began, scene)
    except FailuresError as error:
        raise ChangeFailedError(f"failures {future.failures}: {error}") from None


def _await_failure(faults: Iterator[Fault], began: float, scene: Scene) -> None:
    fault = next(faults, None)
    if fault is None:
        return
    scene.made.loop.call_periodically(
        began + fault.at, lambda: False, partial(_fail, fault, faults, began, scene)
    )


def _fail(fault: Fault, faults: Iterator[Fault], began: float, scene: Scene) -> None:
    # one that is down comes back by itself with ReturnToService=2, one that is drained does not
    _begin_updates(fault.of, ("DOWN", "DRAIN"), scene)
    if fault.lasts_s != math.inf:
        scene.made.loop.call_later(fault.lasts_s, _begin_updates, fault.of, ("RESUME",), scene)
    _await_failure(faults, began, scene)


def _begin_updates(nodes: str, states: Sequence[str], scene: Scene) -> None:
    task = scene.made.loop.create_task(_update(nodes, states, scene))
    scene.tasks.add(task)
    task.add_done_callback(scene.tasks.discard)


async def _update(nodes: str, states: Sequence[str], scene: Scene) -> None:
    for state in states:
        words = ["scontrol", "update", f"NodeName={nodes}", f"State={state}", "Reason=failed"]
        # somebody else has set the node up meanwhile
        with contextlib.suppress(ChangeFailedError):
            await _run(words, scene, shlex.join(words))
