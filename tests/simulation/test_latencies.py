"""Slow networks: a textbook's schedule is the same however long messages take, as long as the news
of a job's end comes before the middle of the second, where it decides: one message from a daemon
that has all nodes, three in turn where several have them.
"""

import asyncio
import random

import pytest
from tests.reference import textbook

from understudy.auth.keys import create_keys
from understudy.clock.daemon import Daemon
from understudy.clock.timekeeper import Timekeeper
from understudy.clock.virtual_loop import VirtualEventLoop
from understudy.controller.edge.main import start as start_controller
from understudy.experiments.lublin import generate
from understudy.experiments.replay import Replayer, ReplayOptions
from understudy.experiments.replay_conf import replay_conf
from understudy.model.cluster import Cluster, NodeDaemon
from understudy.noded.main import start as start_noded
from understudy.protocol.messenger import MemoryNetwork, Messenger

EPOCH = 946_684_800.0
NODES, CPUS = 37, 4


def replay(folder, jobs, policy, *, daemons=1, latency_s=0.001, link_latency=None):
    """The start of each job by its id."""
    create_keys(folder / "keys", ["controller", *(f"noded{i}" for i in range(daemons))])
    (folder / "slurm.conf").write_text(replay_conf(NODES, CPUS, policy, jobs=len(jobs)))
    bounds = [1 + NODES * part // daemons for part in range(daemons + 1)]
    cluster = Cluster(
        "replay",
        str(folder / "slurm.conf"),
        time="virtual",
        epoch=EPOCH,
        key_folder=str(folder / "keys"),
        nodeds=[
            NodeDaemon(f"noded{i}", "", f"n[{bounds[i]}-{bounds[i + 1] - 1}]")
            for i in range(daemons)
        ],
        state="memory",
    )
    loop = VirtualEventLoop()
    network = MemoryNetwork()
    time = Timekeeper(loop, EPOCH)

    def messenger(name):
        return Messenger(
            name, loop, None, latency_s=latency_s, link_latency=link_latency, network=network
        )

    async def run():
        await start_controller(Daemon("controller", cluster, folder, messenger("controller"), time))
        for noded in cluster.nodeds:
            await start_noded(Daemon(noded.name, cluster, folder, messenger(noded.name), time))
        ended = loop.create_future()
        Replayer(jobs, messenger("replay"), time, ReplayOptions(zero=EPOCH + 1.0)).start(
            ended.set_result
        )
        return await ended

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        outcome = runner.run(run())
    assert outcome.error == ""
    assert outcome.rejected == {}
    return {record.job: record.start for record in outcome.records}


@pytest.fixture(scope="module")
def jobs():
    return generate(jobs=300, nodes=NODES * CPUS, days=2, load=1.1, seed=11)


def expected(jobs, policy):
    return getattr(textbook, policy)(
        [textbook.Task(job.id, job.submit, job.run, job.procs, job.req) for job in jobs],
        NODES * CPUS,
    )


@pytest.mark.parametrize("policy", ["easy", "fcfs"])
@pytest.mark.parametrize(("latency_s", "daemons"), [(0.05, 1), (0.05, 4), (0.15, 3), (0.45, 1)])
def test_textbook_schedules_stand_slow_messages(tmp_path, jobs, policy, latency_s, daemons):
    assert replay(tmp_path, jobs, policy, daemons=daemons, latency_s=latency_s) == expected(
        jobs, policy
    )


@pytest.mark.parametrize("seed", range(4))
def test_textbook_schedules_stand_links_of_any_speed(tmp_path, jobs, seed):
    rng = random.Random(seed)
    names = ["controller", "replay", "noded0", "noded1", "noded2"]
    link_latency = {
        f"{one}>{other}": rng.choice((0.0, 0.0004, 0.03, 0.1))
        for one in names
        for other in names
        if one != other
    }
    policy = rng.choice(("easy", "fcfs"))
    found = replay(
        tmp_path,
        jobs,
        policy,
        daemons=3,
        latency_s=rng.choice((0.001, 0.05)),
        link_latency=link_latency,
    )
    assert found == expected(jobs, policy)


@pytest.mark.parametrize("policy", ["backfill", "builtin"])
def test_slurms_schedulers_see_every_job_end_although_messages_are_slow(tmp_path, jobs, policy):
    starts = replay(
        tmp_path, jobs, policy, daemons=2, latency_s=0.3, link_latency={"noded1>controller": 1.7}
    )
    assert all(
        start is not None and start >= job.submit
        for job, start in zip(jobs, starts.values(), strict=True)
    )
