"""srun and a cluster of emulated nodes in one virtual loop: allocation, step, launch down the tree,
streams, ends; daemons may die meanwhile.

`Srun` asks what srun asks, in its order, and takes the frames that node daemons send. The
controller and the node daemons are the real ones.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import random
from typing import TYPE_CHECKING, Any

from understudy.auth.keys import create_keys
from understudy.clock.daemon import Daemon
from understudy.clock.virtual_loop import VirtualEventLoop
from understudy.controller.edge.main import start as start_controller
from understudy.controller.edge.validate import validate
from understudy.model.cluster import Cluster, NodeDaemon
from understudy.model.hostlist import expand
from understudy.noded.main import start as start_noded
from understudy.protocol.messages import (
    Allocated,
    AllocateJob,
    AwaitJob,
    CancelJobs,
    CompleteJob,
    CreateStep,
    Failure,
    JobSpec,
    LaunchTasks,
    Message,
    StepCreated,
    StepSpec,
)
from understudy.protocol.task_frames import DONE, EXITED, HEAD, HELLO, STDOUT, first_of
from understudy.protocol.tree import ForwardTree, Target
from understudy.tool.faults.lives import CountedTime, FailingNetwork, Life, MortalMessenger

if TYPE_CHECKING:
    from pathlib import Path

EPOCH = 1_000_000.0
WIDTH = 32
CONF = """
ClusterName=steps
SlurmctldHost=localhost
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
TreeWidth={width}
SlurmdTimeout=30
ReturnToService=1
MinJobAge=0
NodeName=n[1-{nodes}] CPUs=4 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Pipe:
    """What a node daemon writes to srun. What it still holds when its daemon dies has arrived all
    the same.
    """

    def __init__(self, srun: Srun, daemon: str) -> None:
        self.srun, self.daemon = srun, daemon
        self.held = bytearray()

    def write(self, data: bytes) -> None:
        self.held += data
        while (frame := first_of(self.held)) is not None:
            del self.held[: HEAD + len(frame[2])]
            self.srun.take(self.daemon, *frame)

    def close(self) -> None:
        self.srun.closed.append(self.daemon)


class Srun:
    """One srun: `outputs` are the lines of its tasks, `exits` how each ended, `failed` the nodes on
    which the launch failed.
    """

    def __init__(
        self, cluster: StepCluster, number: int, nodes: int, tasks: int, command: list[str]
    ) -> None:
        self.cluster, self.number, self.nodes, self.tasks, self.command = (
            cluster,
            number,
            nodes,
            tasks,
            command,
        )
        self.messenger = cluster.messenger(f"srun{number}", user_id=1000)
        self.key = number.to_bytes(4, "big")
        self.job_id = 0
        self.step: StepCreated | None = None
        self.heard_of: list[str] = []
        self.closed: list[str] = []
        self.outputs: dict[int, bytes] = {}
        self.exits: dict[int, int] = {}
        self.failed: list[str] = []
        self.done = 0
        self.is_over = False
        self.fan_out = 0
        self.problems: list[str] = []
        cluster.sruns[f"srun{number}"] = self

    def start(self) -> None:
        spec = JobSpec(
            name=f"s{self.number}",
            min_nodes=self.nodes,
            max_nodes=self.nodes,
            num_tasks=self.tasks,
            time_limit_s=3600,
        )
        self.messenger.send(
            "controller", AllocateJob(spec, user_id=1000, group_id=1000), self.allocated
        )

    def allocated(self, answer: Message) -> None:
        assert isinstance(answer, Allocated), answer
        self.job_id = answer.job_id
        if answer.is_running:
            self.messenger.send(
                "controller",
                CreateStep(
                    self.job_id, StepSpec(name="x", num_tasks=self.tasks, min_nodes=self.nodes)
                ),
                self.created,
            )
            self.messenger.send(
                "controller", AwaitJob(self.job_id, until_end=True), self.job_ended, 1e6
            )
        elif not answer.state:
            self.messenger.send("controller", AwaitJob(self.job_id), self.allocated, 1e6)
        else:
            self.is_over = True

    def created(self, answer: Message) -> None:
        if isinstance(answer, Failure):  # the job has lost a node before
            self.end()
            return
        assert isinstance(answer, StepCreated), answer
        self.step = answer
        message = LaunchTasks(
            answer.credential, answer.job_id, answer.restart, answer.step_id, answer.nodes,
            answer.tasks, answer.cpus, "ann", self.command,
            [], "/", 0o022, self.messenger.name, self.key,
        )  # fmt: skip
        targets = [Target(name, tuple(expand(nodes))) for name, _, nodes in answer.daemons]
        tree = ForwardTree(message, targets, WIDTH, 10.0)

        def go(sends: list[Any]) -> None:
            for send in sends:
                self.messenger.send(
                    send.peer,
                    send.message,
                    lambda reply, hop=send.hop: heard(hop, reply),
                    send.timeout_s,
                )

        def heard(hop: int, reply: Message) -> None:
            go(tree.answered(hop, reply))
            if tree.result is not None and not self.failed:
                self.failed = [
                    node for each in tree.result.replies if each.code for node in expand(each.nodes)
                ]
                if self.failed:
                    self.messenger.send(
                        "controller", CancelJobs([f"{self.job_id}.{answer.step_id}"])
                    )

        first = tree.start()
        self.fan_out = len(first)
        go(first)

    def take(self, daemon: str, kind: int, task: int, body: bytes) -> None:
        if kind == HELLO:
            if body != self.key or daemon in self.heard_of:
                self.problems.append(f"{daemon} says hello twice, or with another key")
            self.heard_of.append(daemon)
        elif kind == STDOUT:
            if task in self.outputs:
                self.problems.append(f"the output of task {task} is there twice")
            self.outputs[task] = body
        elif kind == EXITED:
            status, _, numbers = body.partition(b" ")
            for number in map(int, numbers.split(b",")):
                if number in self.exits:
                    self.problems.append(f"task {number} ended twice")
                self.exits[number] = int(status)
        elif kind == DONE:
            self.done += 1
            assert self.step is not None
            if self.done == len(self.step.daemons) or (
                self.failed and self.done == len(self.heard_of)
            ):
                self.end()

    def end(self) -> None:
        self.messenger.send(
            "controller",
            CompleteJob(self.job_id, max(self.exits.values(), default=0) >> 8),
            lambda _answer: None,
        )

    def job_ended(self, _answer: Message) -> None:
        self.is_over = True


class StepCluster:
    """A controller and many daemons of few nodes each."""

    def __init__(self, folder: Path, *, daemons: int, nodes_each: int, seed: int = 0) -> None:
        create_keys(folder / "keys", ["controller", *(f"noded{i}" for i in range(daemons))])
        count = daemons * nodes_each
        (folder / "slurm.conf").write_text(CONF.format(nodes=count, width=WIDTH))
        for name in ("state", "spool"):
            (folder / name).mkdir()
        self.folder, self.rng = folder, random.Random(seed)
        nodeds = [
            NodeDaemon(f"noded{i}", "", f"n[{i * nodes_each + 1}-{(i + 1) * nodes_each}]")
            for i in range(daemons)
        ]
        self.cluster = Cluster(
            "steps", str(folder / "slurm.conf"), time="virtual", epoch=EPOCH,
            key_folder=str(folder / "keys"), nodeds=nodeds, state="memory",
            default_run_s=5.0, user_id=0,
        )  # fmt: skip
        self.loop = VirtualEventLoop()
        self.network = FailingNetwork()
        self.digest = hashlib.sha256()
        self.lives: dict[str, Life] = {}
        self.daemons: dict[str, Daemon] = {}
        self.front_ends: dict[str, Any] = {}
        self.sruns: dict[str, Srun] = {}
        self.dead: list[str] = []

    def messenger(self, name: str, user_id: int = 0) -> MortalMessenger:
        life = self.lives[name] = Life(len(self.lives) + 1)
        return MortalMessenger(
            name, self.loop, self.network, life, user_id=user_id, heard=self._heard
        )

    def _heard(self, receiver: str, sender: str, message: Message) -> None:
        self.digest.update(
            f"{self.loop.now_us} {sender}>{receiver} {type(message).__name__}\n".encode()
        )

    def time(self, name: str) -> CountedTime:
        return CountedTime(self.loop, EPOCH, self.lives[name], seems_real=True)

    async def up(self) -> None:
        messenger = self.messenger("controller")
        self.controller = await start_controller(
            Daemon("controller", self.cluster, self.folder, messenger, self.time("controller"))
        )
        # a turn ends by the machine's time, which is not the same from run to run
        self.controller.server.turn_s = math.inf
        for noded in self.cluster.nodeds:
            messenger = self.messenger(noded.name)
            daemon = self.daemons[noded.name] = Daemon(
                noded.name, self.cluster, self.folder, messenger, self.time(noded.name)
            )
            front_end = self.front_ends[noded.name] = await start_noded(daemon)
            front_end.step_runner.open = self._opener(noded.name)
        await asyncio.sleep(5)

    def _opener(self, daemon: str) -> Any:
        async def opened(address: str) -> Pipe:
            if daemon in self.dead:
                raise OSError(os.strerror(111))
            return Pipe(self.sruns[address], daemon)

        return opened

    def kill(self, daemon: str) -> None:
        if daemon in self.dead:
            return
        self.dead.append(daemon)
        messenger = self.daemons[daemon].messenger
        assert isinstance(messenger, MortalMessenger)
        messenger.die()

    def run(self, scenario: Any) -> Any:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            return runner.run(scenario)

    def check(self) -> list[str]:
        """What is not as it should be when all is over."""
        validate(self.controller.core)
        problems = [problem for srun in self.sruns.values() for problem in srun.problems]
        core = self.controller.core
        there = core.tables.nodes.up_nodes.bit_count()
        # too many nodes are lost
        waits = {
            srun.job_id
            for srun in self.sruns.values()
            if srun.nodes > there and srun.job_id in core.tables.pending
        }
        problems += [
            f"{name} is not over"
            for name, srun in self.sruns.items()
            if not srun.is_over and srun.job_id not in waits
        ]
        problems += [
            f"job {job.job_id} is left: {job.state.name}" for job in core.tables.running.values()
        ]
        problems += [f"job {job.job_id} is completing" for job in core.completing.values()]
        for name, front_end in self.front_ends.items():
            if name not in self.dead and (
                front_end.core.jobs or front_end.core.steps.by_job or front_end.step_runner._steps
            ):
                problems.append(f"{name} still has a job or a step")
        return problems
