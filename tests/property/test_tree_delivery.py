"""Whole trees with dead, hanging and half-answering heads anywhere: every node is reported exactly
once, and living ones are reached.
"""

import random
from collections import Counter

from hypothesis import example, given, settings
from hypothesis import strategies as st

from understudy.model.hostlist import compress, expand
from understudy.protocol.messages import Failure, Forward, Message, NodeReplies, NodeReply, Ping
from understudy.protocol.tree import ForwardTree, Routes, Send, budget_s, merged


class Site:
    """All node daemons at once, each doing with a Forward what a daemon does, in zero time. Pending
    messages are answered in any order.
    """

    def __init__(
        self, daemon_of: dict[str, str], dead: dict[str, int], mute: set[str], order: random.Random
    ) -> None:
        self.routes, self.dead, self.mute, self.order = Routes(daemon_of), dead, mute, order
        self.reached: Counter[str] = Counter()
        self.widest = 0

    def run(self, tree: ForwardTree, sends: list[Send]) -> NodeReplies:
        pending = list(sends)
        while pending:
            self.widest = max(self.widest, len(pending))
            send = pending.pop(self.order.randrange(len(pending)))
            pending += tree.answered(send.hop, self.receive(send.peer, send.message))
        assert tree.result is not None
        return tree.result

    def receive(self, daemon: str, message: Forward) -> Message:
        if daemon in self.dead:
            return Failure(self.dead[daemon], "dead")
        nodes = expand(message.nodes)
        targets, strangers = self.routes.targets(nodes)
        assert not strangers
        own = next(target for target in targets if target.peer == daemon)
        assert own is targets[0], "the head of a part comes first"
        self.reached.update(own.nodes)
        tree = ForwardTree(message.inner, targets[1:], message.width, message.timeout_s)
        below = self.run(tree, tree.start())
        if daemon in self.mute:  # it forgets to say anything about itself
            return below
        return NodeReplies([NodeReply(compress(own.nodes), 0, ""), *below.replies])


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(1, 400),
    width=st.sampled_from([1, 2, 3, 32]),
    per_daemon=st.sampled_from([1, 2, 7, 400]),
    dead_share=st.sampled_from([0.0, 0.1, 0.6, 1.0]),
    mute_share=st.sampled_from([0.0, 0.2]),
    seed=st.integers(0, 2**32),
)
@example(count=16384, width=32, per_daemon=1, dead_share=0.0, mute_share=0.0, seed=1)
@example(count=16384, width=32, per_daemon=16384, dead_share=0.0, mute_share=0.0, seed=1)
@example(count=4096, width=32, per_daemon=1, dead_share=0.3, mute_share=0.1, seed=2)
def test_every_node_is_reported_exactly_once_and_every_living_one_is_reached(
    count, width, per_daemon, dead_share, mute_share, seed
):
    order = random.Random(seed)
    width = max(width, 2) if count > 200 else width  # a chain is as deep as it is long
    nodes = [f"n{i}" for i in range(count)]
    daemon_of = {node: f"d{i // per_daemon}" for i, node in enumerate(nodes)}
    daemons = sorted(set(daemon_of.values()))
    dead = {
        daemon: order.choice([1005, 1006, 5004])
        for daemon in daemons
        if order.random() < dead_share
    }
    mute = {daemon for daemon in daemons if order.random() < mute_share}
    site = Site(daemon_of, dead, mute, order)
    targets, _ = site.routes.targets(nodes)
    tree = ForwardTree(Ping(), targets, width, 10.0)
    replies = site.run(tree, tree.start())

    reported = [node for reply in replies.replies for node in expand(reply.nodes)]
    assert sorted(reported) == sorted(nodes)
    code_of = {node: reply.code for reply in replies.replies for node in expand(reply.nodes)}
    for node in nodes:
        daemon = daemon_of[node]
        if daemon in dead:
            assert code_of[node] in (1005, 1006, 5004)
            assert not site.reached[node]
        else:
            assert site.reached[node] == 1
            assert (code_of[node] == 0) is (daemon not in mute)
    assert site.widest <= width


@given(
    st.dictionaries(
        st.integers(0, 50).map(lambda i: f"n{i}"),
        st.tuples(st.sampled_from([0, 1005, 2017]), st.sampled_from(["", "text"])),
        max_size=30,
    )
)
def test_merging_loses_no_answer(outcomes):
    replies = merged(outcomes).replies
    assert {
        node: (reply.code, reply.text) for reply in replies for node in expand(reply.nodes)
    } == outcomes
    assert len(replies) == len(set(outcomes.values()))


@given(st.integers(1, 20000), st.sampled_from([1, 2, 32]), st.floats(0.1, 60))
def test_a_forwarder_always_gives_up_later_than_its_children(size, width, timeout_s):
    child = -(-(size - 1) // width)
    if child:
        assert budget_s(child, width, timeout_s) < budget_s(size, width, timeout_s)
