"""After storms of submissions, queries and cancellations nothing of them is left in the daemons'
memory once MinJobAge is over: later ones leave no more objects than earlier ones.
"""

import asyncio
import gc

import pytest

from understudy.auth.keys import create_keys
from understudy.clock.daemon import Daemon
from understudy.clock.timekeeper import Timekeeper
from understudy.clock.virtual_loop import VirtualEventLoop
from understudy.controller.edge.main import start as start_controller
from understudy.experiments.replay_conf import replay_conf
from understudy.model.cluster import Cluster, NodeDaemon
from understudy.noded.main import start as start_noded
from understudy.protocol.messages import (
    CancelJobs,
    Emulation,
    JobSpec,
    Query,
    Rows,
    SubmitJob,
    Submitted,
)
from understudy.protocol.messenger import MemoryNetwork, Messenger
from understudy.tool.faults.lives import is_daemon

JOBS = 200
ROUNDS = 8
SPARE = 200  # objects, of all rounds together: far less than one a job
COLUMNS = ["job_id", "state", "reason", "nodes", "user_id"]


@pytest.mark.parametrize("state", ["memory", "disk"])
def test_what_a_storm_took_is_given_back_when_its_jobs_are_forgotten(tmp_path, state):
    create_keys(tmp_path / "keys", ["controller", "noded0"])
    (tmp_path / "state").mkdir()
    conf = replay_conf(16, 4, "backfill").replace("MinJobAge=0", "")
    (tmp_path / "slurm.conf").write_text(f"{conf}MinJobAge=10\n")
    cluster = Cluster(
        "storms",
        str(tmp_path / "slurm.conf"),
        time="virtual",
        epoch=946_684_800.0,
        key_folder=str(tmp_path / "keys"),
        nodeds=[NodeDaemon("noded0", "", "n[1-16]")],
        state=state,
    )
    loop = VirtualEventLoop()
    network = MemoryNetwork()
    time = Timekeeper(loop, cluster.epoch)

    def messenger(name):
        return Messenger(name, loop, None, network=network, is_daemon=is_daemon(name))

    async def storm(controller, client):
        async def submit(number):
            spec = JobSpec(name=f"job {number}", num_tasks=1 + number % 8, time_limit_s=60)
            answer = await client.call("controller", SubmitJob(spec, "", Emulation(5.0)))
            assert isinstance(answer, Submitted), answer

        async def ask():
            answer = await client.call("controller", Query("jobs", COLUMNS))
            assert isinstance(answer, Rows), answer

        await asyncio.gather(
            *(submit(number) for number in range(JOBS)), *(ask() for _ in range(JOBS // 4))
        )
        assert len(controller.core.tables.jobs) >= JOBS
        await client.call("controller", CancelJobs([], where={"name": ["job 7", "job 199"]}))
        await asyncio.sleep(600.0)
        await submit(JOBS)  # under virtual time old jobs are forgotten when another ends
        await asyncio.sleep(60.0)
        assert len(controller.core.tables.jobs) == 1

    async def run():
        controller = await start_controller(
            Daemon("controller", cluster, tmp_path, messenger("controller"), time)
        )
        await start_noded(Daemon("noded0", cluster, tmp_path, messenger("noded0"), time))
        client, kept = messenger("client"), []
        for _ in range(ROUNDS):
            await storm(controller, client)
            gc.collect()
            kept.append(len(gc.get_objects()))
        return kept

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        kept = runner.run(run())
    half = ROUNDS // 2  # messages that might still fail are kept in lots
    assert max(kept[half:]) - max(kept[:half]) < SPARE, kept
