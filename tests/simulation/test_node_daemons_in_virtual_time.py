"""Node daemons on the virtual loop, all in one process: each job ends when it should, in one order
on every run and for any number of daemons.

Covers: clock/timekeeper.
"""

import random
from pathlib import Path

import pytest

from understudy.auth.credential import Signer
from understudy.auth.keys import Keys, create_keys
from understudy.clock.daemon import Daemon
from understudy.clock.timekeeper import Timekeeper
from understudy.clock.virtual_loop import VirtualEventLoop
from understudy.model.cluster import Cluster, NodeDaemon
from understudy.noded.main import start
from understudy.protocol.messages import (
    BatchComplete,
    Emulation,
    EpilogComplete,
    LaunchBatch,
    Ok,
    Registered,
    RegisterNodes,
    TerminateJob,
)
from understudy.protocol.messenger import MemoryNetwork, Messenger

EPOCH = 1_000_000.0
NODES = 64


def replay(tmp_path: Path, daemons: int, jobs: int, seed: int) -> list[tuple[float, object]]:
    """Launch random jobs on the nodes; what the controller hears about jobs, with the time."""
    per_daemon = NODES // daemons
    create_keys(tmp_path / "keys", ["controller", *(f"noded{i}" for i in range(daemons))])
    nodeds = [
        NodeDaemon(f"noded{i}", "", f"n[{i * per_daemon}-{(i + 1) * per_daemon - 1}]")
        for i in range(daemons)
    ]
    cluster = Cluster(
        "c",
        "slurm.conf",
        time="virtual",
        epoch=EPOCH,
        key_folder=str(tmp_path / "keys"),
        nodeds=nodeds,
    )
    loop = VirtualEventLoop()
    network = MemoryNetwork()
    clock = Timekeeper(loop, EPOCH)
    controller = Messenger("controller", loop, None, network=network)
    heard: list[tuple[float, object]] = []
    registered: list[str] = []
    left = {}
    finished = loop.create_future()
    rng = random.Random(seed)

    def handle(request):
        message = request.message
        if isinstance(message, RegisterNodes):
            registered.append(message.nodes)
            return Registered()
        heard.append((round(clock.now() - EPOCH, 6), message))
        if isinstance(message, BatchComplete):
            for i in range(daemons):
                controller.send(f"noded{i}", TerminateJob(message.job_id, 0, nodeds[i].nodes))
        if isinstance(message, EpilogComplete):
            left[message.job_id] -= 1
            if not left[message.job_id]:
                del left[message.job_id]
                if not left and not finished.done():
                    finished.set_result(None)
        return Ok()

    def submit(job_id, run_s):
        first = rng.randrange(NODES)
        now = int(clock.now())
        nodes = f"n{first}"
        message = LaunchBatch(
            job_id,
            0,
            nodes,
            now,
            Signer(Keys("controller", tmp_path / "keys")).sign(job_id, 0, nodes, 1, now),
            1,
            1,
            Emulation(run_s),
        )
        answers = []
        controller.send(f"noded{first // per_daemon}", message, answers.append)

    async def run():
        for noded in nodeds:
            daemon = Daemon(
                noded.name,
                cluster,
                tmp_path,
                Messenger(noded.name, loop, None, network=network),
                clock,
            )
            await start(daemon)
        for job_id in range(1, jobs + 1):
            left[job_id] = daemons
            clock.call_at(EPOCH + rng.randrange(500), submit, job_id, float(rng.randrange(100)))
        await finished

    controller.set_handler(handle)
    try:
        loop.run_until_complete(run())
    finally:
        loop.close()
    assert sorted(registered) == sorted(noded.nodes for noded in nodeds)
    return heard


@pytest.mark.parametrize("daemons", [1, 4])
def test_every_job_is_reported_once_and_frees_its_nodes_at_every_daemon(tmp_path, daemons):
    heard = replay(tmp_path, daemons, 300, 7)
    completions = [message.job_id for _, message in heard if isinstance(message, BatchComplete)]
    assert sorted(completions) == list(range(1, 301))
    assert sum(isinstance(message, EpilogComplete) for _, message in heard) == 300 * daemons


def test_two_runs_are_the_same_to_the_last_message(tmp_path):
    assert replay(tmp_path, 1, 200, 3) == replay(tmp_path, 1, 200, 3)


def test_jobs_end_at_the_same_instants_however_many_daemons_there_are(tmp_path):
    def ends(daemons):
        return sorted(
            (when, message.job_id)
            for when, message in replay(tmp_path, daemons, 200, 5)
            if isinstance(message, BatchComplete)
        )

    assert ends(1) == ends(4) == ends(16)
