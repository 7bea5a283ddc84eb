"""Nodes that are hops of their own: a tree of them over sockets, with links that lose messages and
heads that die with one. Nothing is lost, and every node is accounted for.

Covers: noded/merged_reports, noded/registration.
"""

import asyncio
import logging
import time
from collections import Counter
from functools import partial

import pytest
from key_harness import keys_of
from tests.harness.controller_harness import FakeTime
from tests.unit.protocol.test_messenger import until

from understudy.auth.credential import Signer, Verifier
from understudy.clock.timekeeper import Timekeeper
from understudy.controller.core.fan_out import FanOut
from understudy.model.cluster import NodeDaemon
from understudy.model.hostlist import compress, expand
from understudy.noded.faults import Fault, FaultTable
from understudy.noded.hop_nodes import HopNodes
from understudy.noded.leader import FollowedLeader
from understudy.protocol.hops import HopLinks
from understudy.protocol.messages import (
    BatchComplete,
    Emulation,
    EpilogComplete,
    Failure,
    FindJobs,
    JobsFound,
    LaunchBatch,
    LaunchTasks,
    Ok,
    Ping,
    Reconfigure,
    Registered,
    RegisterNodes,
    Shutdown,
    SignalJob,
    SignalTasks,
    StatTasks,
    StepComplete,
    TaskStatistics,
    TerminateJob,
)
from understudy.protocol.messenger import Messenger
from understudy.protocol.mishaps import Mishaps


class Site:
    """Two processes of nodes n0 to n39, as far as one loop can have them, and a controller that
    takes note of what it hears.
    """

    def __init__(self, folder, *, width=2, timeout_s=20.0, per_process=20, **mishaps):
        self.loop = asyncio.get_running_loop()
        self.names = [f"n{i}" for i in range(2 * per_process)]
        self.daemons = [
            NodeDaemon(
                f"noded{i}",
                f"unix:{folder}/{i}",
                compress(self.names[i * per_process : (i + 1) * per_process]),
            )
            for i in range(2)
        ]
        self.mishaps = Mishaps(5, **mishaps)
        self.faults = FaultTable()
        self.stops, self.heard, self.unknown = 0, [], []
        self.controller = Messenger("controller", self.loop, keys_of("controller"))
        self.controller.listen([f"unix:{folder}/c"])
        self.controller.set_handler(self.hear)
        self.controller.hops = HopLinks(
            self.loop, keys_of("controller"), self.daemons, self.mishaps
        )
        self.time = FakeTime(0.0)
        sign = partial(Signer(keys_of("controller")).order, time.time)
        self.fan_out = FanOut(
            self.controller, self.time, width=width, timeout_s=timeout_s, sign=sign
        )
        self.processes, self.links = [], []
        for each in self.daemons:
            messenger = Messenger(each.name, self.loop, keys_of(each.name))
            messenger.listen([each.address])
            messenger.add_peer("controller", f"unix:{folder}/c")
            links = HopLinks(self.loop, keys_of(each.name), self.daemons, self.mishaps)
            nodes = HopNodes(
                each,
                messenger,
                links,
                Timekeeper(self.loop, None),
                logging.getLogger("test"),
                boot_time=0.0,
                mishaps=self.mishaps,
                faults=self.faults,
                step_verifier=Verifier(keys_of("noded0")),
                stop=self.stop,
                leader=FollowedLeader({}, messenger, logging.getLogger("test")),
            )
            self.controller.add_peer(each.name, each.address)
            self.processes.append(nodes)
            self.links.append((messenger, links))
            nodes.start()

    def stop(self):
        self.stops += 1

    def hear(self, request):
        self.heard.append(request.message)
        if isinstance(request.message, RegisterNodes):
            return Registered(self.unknown)
        return Ok()

    def of(self, kind):
        return [message for message in self.heard if isinstance(message, kind)]

    @property
    def free(self):
        """How often each node's epilog has been heard of."""
        return Counter(node for each in self.of(EpilogComplete) for node in expand(each.nodes))

    async def codes(self, message, *, nodes=None, rounds=1):
        """What each node answers."""
        found = []
        self.fan_out.send(nodes or self.names, message, rounds=rounds, done=found.append)
        while not found:
            await asyncio.sleep(0)
            self.time.run_until(self.time.now() + 100)  # pauses between rounds are over at once
        return found[0]

    def close(self):
        self.controller.hops.close()
        for nodes, (messenger, links) in zip(self.processes, self.links, strict=True):
            links.close()
            nodes.close()
            messenger.close()
        self.controller.close()


@pytest.fixture
async def make(tmp_path):
    made = []

    def build(**options):
        made.append(Site(tmp_path, **options))
        return made[0]

    yield build
    made[0].close()


@pytest.mark.parametrize("width", [1, 2, 32, 40])
async def test_a_tree_of_any_width_reaches_each_node_once_over_connections_of_its_own(make, width):
    site = make(width=width, per_process=20 if width > 1 else 5)
    assert await site.codes(TerminateJob(1, 0)) == dict.fromkeys(site.names, 0)
    hops = [site.controller.hops, *(links for _, links in site.links)]
    assert site.controller.hops.sent == min(width, len(site.names))
    assert sum(links.sent for links in hops) == len(site.names)
    await until(lambda: len(site.free) == len(site.names))
    assert set(site.free.values()) == {1}


async def test_what_nodes_of_a_process_report_at_once_is_one_message(make):
    site = make(width=40)
    await site.codes(TerminateJob(1, 0))
    await until(lambda: len(site.free) == 40)
    assert len(site.of(EpilogComplete)) < 10


async def test_a_process_registers_once_with_all_its_nodes_and_again_when_the_controller_is_lost(
    make,
):
    site = make()
    await until(lambda: len(site.of(RegisterNodes)) == 2)
    assert sorted((each.daemon, each.nodes) for each in site.of(RegisterNodes)) == [
        ("noded0", "n[0-19]"),
        ("noded1", "n[20-39]"),
    ]
    site.unknown = [(7, 0)]
    site.controller.send("n21", launch(7, "n[21-22]"))
    await until(lambda: (7, 0) in site.processes[1].nodes["n21"].core.jobs)
    for nodes in site.processes:
        nodes._lost("controller")
    await until(lambda: len(site.of(RegisterNodes)) == 4)
    assert sorted(each.running_jobs for each in site.of(RegisterNodes)[2:]) == [[], [(7, 0)]]
    await until(lambda: (7, 0) not in site.processes[1].nodes["n21"].core.jobs)  # it was unknown


def launch(job, nodes, run_s=1e6):
    return LaunchBatch(job, 0, nodes, 0, b"", 1000, 1000, Emulation(run_s))


async def test_a_job_is_launched_on_its_first_node_signalled_and_ended_on_all(make):
    site = make()
    heard = []
    site.controller.send("n3", launch(1, "n[3-30]"), heard.append)
    await until(lambda: heard)
    assert heard == [Ok()]
    job = [f"n{i}" for i in range(3, 31)]
    codes = await site.codes(SignalJob(1, 0, 18, False), nodes=job)
    assert codes == {node: 0 if node == "n3" else 2017 for node in job}
    assert await site.codes(TerminateJob(1, 0), nodes=job) == dict.fromkeys(job, 0)
    await until(lambda: sorted(site.free, key=job.index) == job)


async def test_what_is_not_for_a_node_is_the_processs(make):
    site = make()
    call = site.controller.call
    site.controller.send("n3", launch(1, "n[3-30]"))
    await until(lambda: (1, 0) in site.processes[0].nodes["n3"].core.jobs)
    assert await call("noded0", FindJobs([(1, 0), (2, 0)])) == JobsFound([(1, 0)])
    assert await call("noded1", FindJobs([(1, 0), (2, 0)])) == JobsFound([])
    assert await call("noded0", Ping()) == Ok()
    assert await call("noded0", Shutdown()) == Ok()
    assert site.stops == 1


async def test_each_node_is_told_to_reconfigure_and_the_process_does_it_once(make):
    site = make()
    await until(lambda: len(site.of(RegisterNodes)) == 2)
    times = Counter()
    for nodes in site.processes:
        nodes.reconfigure = lambda name=nodes.name: times.update([name])
    await site.codes(Reconfigure(), nodes=site.names[:10])
    await until(lambda: times)
    assert times["noded1"] == 0
    await until(lambda: len(site.of(RegisterNodes)) == 2 + times["noded0"])
    assert times["noded0"] < 5


def step(nodes="n[0-39]", run="1"):
    credential = Signer(keys_of("controller")).sign_step(3, 0, 1, nodes, 1000, 1000, 10**10)
    return LaunchTasks(
        credential, 3, 0, 1, nodes, [[i] for i in range(40)], [1] * 40, "user",
        ["sleep", run], [f"UNDERSTUDY_RUN_S={run}"], "/", 0o22, "", b"", "", "", "",
    )  # fmt: skip


async def test_a_step_is_launched_on_each_node_and_its_end_reported_of_each(make):
    site = make()
    assert await site.codes(step(run="100000")) == dict.fromkeys(site.names, 0)
    assert all(
        (3, 0, 1) in each.core.steps for nodes in site.processes for each in nodes.nodes.values()
    )
    stat = StatTasks(
        Signer(keys_of("controller")).sign_step(3, 0, 1, "n[0-39]", 1000, 1000, 10**10), 3, 0, 1
    )
    assert isinstance(await site.controller.call("noded1", stat), TaskStatistics)
    assert await site.codes(SignalTasks(3, 0, 1, 9, True)) == dict.fromkeys(site.names, 0)
    await until(
        lambda: (
            sorted(node for each in site.of(StepComplete) for node in expand(each.nodes))
            == sorted(site.names)
        )
    )


async def test_nodes_that_are_silent_are_reported_and_those_below_them_reached(make):
    site = make(timeout_s=0.05)
    site.faults.put(["n0", "n1", "n30"], Fault(silent=True))
    codes = await site.codes(Ping(), rounds=8)
    assert {node for node, code in codes.items() if code} == {"n0", "n1", "n30"}
    assert {code for code in codes.values() if code} == {5004}


async def test_a_process_that_is_gone_takes_its_nodes_with_it_and_no_others(make):
    site = make()
    messenger, _ = site.links[0]
    messenger.close()
    codes = await site.codes(Ping())
    assert {node for node, code in codes.items() if code} == set(site.names[:20])
    assert set(codes.values()) <= {0, 1005, 1006}


async def test_heads_that_die_with_the_message_in_their_hands_lose_none_of_it(make):
    site = make(width=3, deaths=0.5)
    assert await site.codes(TerminateJob(1, 0), rounds=None) == dict.fromkeys(site.names, 0)
    assert site.fan_out.repeated > 0
    await until(lambda: len(site.free) == len(site.names))


async def test_a_head_that_dies_is_attributed_to_itself_alone(make):
    site = make(width=2, deaths=0.5)
    site.processes[1].nodes["n20"].mishaps = Mishaps()
    tree = []
    site.fan_out.send(site.names, Ping(), rounds=1, done=tree.append)
    await until(lambda: tree)
    dead = {node for node, code in tree[0].items() if code}
    assert dead
    assert {code for code in tree[0].values() if code} == {1006}
    died = {
        each.name
        for nodes in site.processes
        for each in nodes.nodes.values()
        if any(
            each.mishaps.hands_on(each.name, number, 2) is not None
            for number in range(1, each._handed_on + 1)
        )
    }
    assert dead <= died


async def test_links_that_lose_messages_and_answers_lose_no_node(make):
    site = make(width=4, timeout_s=0.05, loss=0.1, latency_s=0.001)
    assert await site.codes(TerminateJob(1, 0), rounds=None) == dict.fromkeys(site.names, 0)
    await until(lambda: len(site.free) == len(site.names))


async def test_an_unknown_node_is_refused(make, tmp_path):
    site = make()
    strange = NodeDaemon("noded0", site.daemons[0].address, "n99")
    links = HopLinks(site.loop, keys_of("noded1"), [strange])
    answer = site.loop.create_future()
    links.send("n1", "n99", Ping(), answer.set_result, 10.0)
    assert await answer == Failure(2018, "Invalid node name specified")


async def test_a_batch_script_ends_by_itself_and_is_reported(make):
    site = make()
    site.controller.send("n3", launch(1, "n[3-4]", run_s=0.0))
    await until(lambda: site.of(BatchComplete))
    assert [(each.job_id, each.node) for each in site.of(BatchComplete)] == [(1, "n3")]
