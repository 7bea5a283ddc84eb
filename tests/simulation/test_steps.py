"""Steps of emulated nodes under virtual time: launched down the tree, each output and each end told
once, whoever is lost meanwhile.

Covers: noded/emulated_steps, noded/steps.
"""

import asyncio

import pytest
from simulation.steps import WIDTH, Srun, StepCluster

from understudy.model.states import NodeState


def test_a_wide_step_is_launched_by_few_messages_of_srun_and_every_task_is_heard_once(tmp_path):
    cluster = StepCluster(tmp_path, daemons=150, nodes_each=1)

    async def scenario():
        await cluster.up()
        srun = Srun(cluster, 1, 150, 300, ["hostname"])
        srun.start()
        await asyncio.sleep(60)
        return srun

    srun = cluster.run(scenario())
    assert cluster.check() == []
    assert srun.fan_out == WIDTH
    assert len(srun.heard_of) == srun.done == 150
    assert srun.step is not None
    node_of = {
        task: f"n{at + 1}\n".encode() for at, tasks in enumerate(srun.step.tasks) for task in tasks
    }
    assert srun.outputs == node_of
    assert srun.exits == dict.fromkeys(range(300), 0)


def many(folder, seed, *, losses=0):
    """Sruns of many sizes at once, and daemons that die while their steps are launched."""
    cluster = StepCluster(folder, daemons=40, nodes_each=2, seed=seed)
    rng = cluster.rng

    async def scenario():
        await cluster.up()
        now = cluster.loop.time()
        for number in range(1, 16):
            nodes = rng.choice((1, 1, 2, 7, 40, 80))
            command = rng.choice((["hostname"], ["sleep", str(rng.randint(1, 9))], ["false"]))
            srun = Srun(cluster, number, nodes, nodes * rng.randint(1, 4), command)
            cluster.loop.call_at(now + rng.choice((0.0, 0.0, 5.0)) + rng.random() / 100, srun.start)
        for _ in range(losses):
            when = now + rng.choice((0.0, 5.0)) + rng.random() / 50
            cluster.loop.call_at(when, cluster.kill, f"noded{rng.randrange(40)}")
        await asyncio.sleep(1200)

    cluster.run(scenario())
    return cluster


@pytest.mark.parametrize("seed", range(4))
def test_steps_of_many_sruns_end_and_leave_nothing(tmp_path, seed):
    cluster = many(tmp_path, seed)
    assert cluster.check() == []
    for srun in cluster.sruns.values():
        assert sorted(srun.exits) == list(range(srun.tasks))
        assert set(srun.exits.values()) == ({256} if srun.command == ["false"] else {0})
        assert sorted(srun.outputs) == (
            list(range(srun.tasks)) if srun.command == ["hostname"] else []
        )
    assert all(node.state is NodeState.IDLE for node in cluster.controller.core.tables.nodes.nodes)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_left_where_daemons_are_lost_in_mid_launch(tmp_path, seed):
    cluster = many(tmp_path, seed, losses=1 + seed % 3)
    assert cluster.dead
    assert cluster.check() == [], f"seed {seed}"
    lost = {name for daemon in cluster.dead for name in cluster.front_ends[daemon].core.own.names}
    for node in cluster.controller.core.tables.nodes.nodes:
        assert node.state is (NodeState.DOWN if node.name in lost else NodeState.IDLE), (
            seed,
            node.name,
        )


def test_two_runs_with_losses_go_the_same_way(tmp_path):
    digests = []
    for run in ("one", "other"):
        (tmp_path / run).mkdir()
        digests.append(many(tmp_path / run, 5, losses=2).digest.hexdigest())
    assert digests[0] == digests[1]
