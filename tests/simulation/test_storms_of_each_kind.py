"""Under a storm of each kind nothing that was acknowledged is lost, every request is answered, and
what the storm took is given back: later ones leave no more objects than earlier ones.

Kinds that need processes are in tests/e2e/test_load.py, in real time.
"""

import asyncio
import gc
import re

import pytest

from understudy.protocol import messenger as messenger_module
from understudy.protocol.messages import CancelJobs, Query
from understudy.tool.cluster import launch
from understudy.tool.cluster.cluster_run import NAME, in_one_process
from understudy.tool.load.kinds import kinds, plan_of
from understudy.tool.load.plan import PlanError
from understudy.tool.load.schedule import Names, requests
from understudy.tool.load.target import conf_of
from understudy.tool.load.virtual import Messages, check_virtual
from understudy.tool.load.worker import Sender

ROUNDS = 5
AGE_S = 10  # MinJobAge
SPARE = 400  # objects, of three rounds together: far less than one a request


def virtual_kinds():
    for kind in kinds():
        try:
            check_virtual(plan_of(kind))
        except PlanError:
            continue
        yield kind


@pytest.mark.parametrize("kind", list(virtual_kinds()))
def test_a_storm_of_each_kind_leaves_nothing_behind(tmp_path, kind, monkeypatch):
    # messages that might still fail are kept in lots of so many
    monkeypatch.setattr(messenger_module, "_TOLD_LOOKED_AT", 8)
    plan = plan_of(kind, rate=20 if kind != "arrays" else 400, duration=8, nodes=16)
    conf = tmp_path / "slurm.conf"
    conf.write_text(re.sub(r"MinJobAge=\d+", f"MinJobAge={AGE_S}", conf_of(plan)))
    run_dir = tmp_path / "run"
    cluster = launch.prepare(
        run_dir, conf, time="virtual", tcp="never", state="memory", log_level="error",
        participants=[NAME],
    )  # fmt: skip

    async def storm(participant):
        messenger = participant.messenger
        driver = Messages(messenger)
        todo = requests(plan, Names([f"n{number}" for number in range(1, 17)], "debug"))
        sender = Sender(plan, driver, 1.0, clock=participant.loop.time)
        await sender.run(todo, participant.loop.time(), asyncio.Event())
        told = sender.report()
        assert sum(each["sent"] for each in told["streams"].values()) == len(todo)
        for each in told["streams"].values():
            assert each["answered"] == each["sent"]
            assert not each["errors"]
        known = await messenger.call("controller", Query("jobs", ["job_id", "array_job_id"]))
        assert set(told["jobs"]) <= {number for row in known.rows for number in row}
        assert told["jobs"]
        await messenger.call("controller", CancelJobs([str(each) for each in told["jobs"]]))
        await asyncio.sleep(AGE_S + 120)
        # under virtual time old jobs are forgotten when another ends
        assert (await driver.send("sbatch --time=1", 1.0, 60.0)).job_id
        await asyncio.sleep(AGE_S)
        return len((await messenger.call("controller", Query("jobs", ["job_id"]))).rows)

    async def storms(participant):
        await asyncio.sleep(5)
        left = []
        for _ in range(ROUNDS):
            assert await storm(participant) == 1
            gc.collect()
            left.append(len(gc.get_objects()))
        return left

    left = in_one_process(cluster, run_dir, storms)
    assert left[-1] - left[1] < SPARE, left
