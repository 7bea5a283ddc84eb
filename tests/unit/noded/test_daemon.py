"""The node daemon's edge, with time and messages in the test's hands.

Covers: noded/faults, noded/reports.
"""

import itertools
from functools import partial

import msgspec
import pytest
from key_harness import keys_of
from noded_harness import EPOCH, Harness, kind_controller

from understudy.auth.credential import Signer
from understudy.model.cluster import NodeDaemon
from understudy.model.hostlist import expand
from understudy.noded.faults import Fault
from understudy.protocol.messages import (
    BatchComplete,
    EpilogComplete,
    Failure,
    FindJobs,
    Forward,
    JobsFound,
    LaunchProlog,
    NodeReplies,
    NodeReply,
    Ok,
    Ping,
    Query,
    Reconfigure,
    Registered,
    RegisterNodes,
    Shutdown,
    SignalJob,
    TerminateJob,
)
from understudy.protocol.requests import Peer
from understudy.protocol.tree import ForwardTree, Routes

AWAY = Failure(1005, "Unable to contact slurm controller (connect failure)")


def forward(message, nodes, *, width=32, timeout_s=10.0):
    return Forward(msgspec.msgpack.encode(message), nodes, width, timeout_s)


# --- a job's life ---------------------------------------------------------------------------------


def test_a_job_from_launch_to_epilog():
    node = Harness()
    assert node.ask(node.launch(1, "n[0-3]", 10.0)) == Ok()
    node.time.advance(9.9)
    assert node.completions == []
    node.time.advance(0.1)
    assert node.completions == [BatchComplete(1, 0, 0, 0, False, "n0")]
    assert node.ask(TerminateJob(1, 0)) == Ok()
    assert node.epilogs == [EpilogComplete(1, 0, "n[0-3]")]
    assert len(node.front_end.reports) == 0


def test_one_timer_serves_all_jobs():
    node = Harness()
    for job_id in range(1, 50):
        node.ask(node.launch(job_id, "n0", 100.0 - job_id))
    assert node.time.timers == [EPOCH + 51.0]
    node.ask(SignalJob(49, 0, 9))
    assert node.time.timers == [EPOCH + 52.0]
    node.time.advance(200)
    assert [done.job_id for done in node.completions] == list(range(49, 0, -1))
    assert node.time.timers == []


def test_a_job_that_is_over_already_is_reported_after_the_answer_to_its_launch():
    node = Harness()
    assert node.ask(node.launch(1, "n0", 5.0, start_time=EPOCH - 50, exact_limit_s=60)) == Ok()
    assert node.completions == []
    node.time.advance(0)
    assert node.completions == [BatchComplete(1, 0, 0, 0, False, "n0")]


def test_an_exact_limit_is_reported_as_such():
    node = Harness()
    node.ask(node.launch(1, "n0", 61.0, exact_limit_s=60))
    node.time.advance(60)
    assert node.completions == [BatchComplete(1, 0, 0, 15, True, "n0")]


def test_the_answer_to_a_termination_is_sent_before_the_epilog_is_reported():
    node = Harness()
    node.ask(node.launch(1, "n0", 100.0))
    answers, seen = [], []

    def controller(peer, message):
        seen.append((message, list(answers)))
        return kind_controller(peer, message)

    node.messenger.answer = controller
    node.messenger.deliver(TerminateJob(1, 0), answers.append)
    assert seen == [(EpilogComplete(1, 0, "n0"), [Ok()])]


def test_a_terminated_job_is_not_reported_as_complete():
    node = Harness()
    node.ask(node.launch(1, "n0", 100.0))
    node.ask(TerminateJob(1, 0))
    node.time.advance(200)
    assert node.completions == []
    assert node.epilogs == [EpilogComplete(1, 0, "n0")]


def test_a_signal_ends_a_job_at_once():
    node = Harness()
    node.ask(node.launch(1, "n0", 100.0))
    assert node.ask(SignalJob(1, 0, 15)) == Ok()
    assert node.completions == [BatchComplete(1, 0, 0, 15, False, "n0")]


# --- who may ask ----------------------------------------------------------------------------------


def test_a_launch_without_a_good_credential_is_refused():
    node = Harness()
    launch = node.launch(1)
    forged = msgspec.structs.replace(launch, credential=launch.credential[:-1] + b"\x00")
    assert node.ask(forged).code == 2026
    assert len(node.executor.jobs) == 0


def test_a_launch_that_waited_for_the_daemon_to_come_back_is_still_good():
    node = Harness()
    launch = node.launch(1)
    node.time.advance(600)
    assert node.ask(launch) == Ok()
    assert len(node.executor.jobs) == 1


def test_what_was_sent_to_a_life_before_the_last_boot_is_not_launched_again():
    node = Harness()
    booted = int(node.time.now())
    assert node.ask(node.launch(1, boot_time=booted - 60)) is None
    assert len(node.executor.jobs) == 0
    # the times of one boot may differ by what telling the time takes
    assert node.ask(node.launch(1, boot_time=booted - 1)) == Ok()
    assert len(node.executor.jobs) == 1


def test_users_may_ping_and_nothing_else():
    node = Harness()
    user = Peer("squeue", 1000, 1000, is_daemon=False)
    assert node.ask(Ping(), user) == Ok()
    assert node.ask(TerminateJob(1, 0), user).code == 2002
    assert node.ask(forward(Ping(), "n0"), user).code == 2002
    assert node.ask(Shutdown(), user).code == 2002
    assert node.stops == 0


def test_another_node_daemon_hands_on_what_the_controller_has_signed_and_orders_nothing():
    node = Harness()
    assert node.ask(node.launch(1)) == Ok()
    other = Peer("noded1", 0, 0, is_daemon=True)
    end = TerminateJob(1, 0)
    inner = msgspec.msgpack.encode(end)
    stolen = Signer(keys_of("noded1")).order(node.time.now, inner)
    order = Signer(keys_of("controller")).order(node.time.now, inner)
    for message in (
        end,
        Shutdown(),
        node.launch(2),
        forward(end, "n0"),
        Forward(inner, "n0", 32, 10.0, stolen),
        Forward(msgspec.msgpack.encode(Shutdown()), "n0", 32, 10.0, order),
    ):
        assert node.ask(message, other).code == 2002
    assert len(node.executor.jobs) == 1
    assert node.stops == 0
    signed = Forward(inner, "n0", 32, 10.0, order)
    assert node.ask(signed, other) == NodeReplies([NodeReply("n0", 0, "")])
    assert len(node.executor.jobs) == 0


def test_an_order_that_is_of_no_job_is_obeyed_once():
    node = Harness()
    reads = []
    node.front_end.reconfigure = lambda: reads.append(1)
    other = Peer("noded1", 0, 0, is_daemon=True)
    signer = Signer(keys_of("controller"))
    inner = msgspec.msgpack.encode(Reconfigure())
    first, second = (signer.order(node.time.now, inner) for _ in range(2))
    assert first != second
    for order, code in ((first, 0), (first, 2002), (second, 0), (second, 2002)):
        answer = node.ask(Forward(inner, "n0", 32, 10.0, order), other)
        assert (answer.replies[0].code if code == 0 else answer.code) == code
    assert len(reads) == 2


def test_messages_that_are_not_for_node_daemons_are_refused():
    node = Harness()
    assert node.ask(Query("jobs", [])).code == 1000


def test_shutdown_ends_the_daemon():
    node = Harness()
    assert node.ask(Shutdown()) == Ok()
    assert node.stops == 1


# --- a controller that is away --------------------------------------------------------------------


def test_registration_is_repeated_until_it_is_acknowledged():
    node = Harness("n[0-7]", answer=lambda _peer, _message: AWAY)
    node.time.advance(200)
    times = [sent.at - EPOCH for sent in node.messenger.sent]
    pauses = [round(after - before, 3) for before, after in itertools.pairwise(times)]
    assert pauses == [0.062, 0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    assert not node.front_end.is_registered
    node.messenger.answer = kind_controller
    node.time.advance(60)
    assert node.front_end.is_registered
    count = len(node.messenger.sent)
    node.time.advance(10_000)
    assert len(node.messenger.sent) == count
    [first, *_] = node.messenger.messages(RegisterNodes)
    assert first == RegisterNodes("noded0", "unix:noded0.sock", "n[0-7]", EPOCH, EPOCH, [])


def test_reports_survive_a_long_absence_of_the_controller():
    node = Harness()
    node.messenger.answer = lambda _peer, _message: AWAY
    node.ask(node.launch(1, "n0", 10.0))
    node.ask(node.launch(2, "n1", 10.0))
    node.time.advance(11)
    node.ask(TerminateJob(2, 0))
    node.time.advance(3 * 86400)
    assert len(node.front_end.reports) == 3
    sent = len(node.messenger.sent)
    assert sent < 3 * (3 * 86400 / 60 + 10)
    node.messenger.answer = kind_controller
    node.time.advance(61)
    assert len(node.front_end.reports) == 0
    assert {type(each.message) for each in node.messenger.sent[sent:]} == {
        BatchComplete,
        EpilogComplete,
        RegisterNodes,
    }


def test_a_controller_that_was_away_is_told_again_who_is_there():
    node = Harness()
    assert len(node.messenger.messages(RegisterNodes)) == 1
    node.messenger.answer = lambda _peer, _message: AWAY
    node.ask(node.launch(1, "n0", 10.0))
    node.ask(node.launch(2, "n1", 10.0))
    node.time.advance(11)
    node.messenger.answer = kind_controller
    node.time.advance(60)
    assert [message.running_jobs for message in node.messenger.messages(RegisterNodes)] == [
        [],
        [(1, 0), (2, 0)],
    ]


def test_a_broken_connection_makes_it_register_again_although_nothing_is_to_be_reported():
    node = Harness()
    node.ask(node.launch(1, "n0", 100.0))
    node.messenger.answer = lambda _peer, _message: AWAY
    node.messenger.on_peer_lost("noded7")
    assert len(node.messenger.messages(RegisterNodes)) == 1
    node.messenger.on_peer_lost("controller")
    node.time.advance(5)
    node.messenger.answer = kind_controller
    node.time.advance(5)
    assert node.front_end.is_registered
    assert node.messenger.messages(RegisterNodes)[-1].running_jobs == [(1, 0)]


def test_once_registered_it_does_not_wait_with_what_the_controller_missed():
    node = Harness()
    node.ask(node.launch(1, "n0", 10.0))
    node.messenger.answer = lambda _peer, _message: AWAY
    node.time.advance(3600)
    node.messenger.answer = kind_controller
    node.ask(Reconfigure())  # what a controller sends that has just come back
    assert len(node.front_end.reports) == 0
    sent = len(node.messenger.sent)
    node.time.advance(3600)
    assert len(node.messenger.sent) == sent


def test_it_finds_jobs_that_it_runs_and_those_whose_end_it_has_yet_to_tell():
    node = Harness()
    node.ask(node.launch(1, "n0", 10.0))
    node.ask(node.launch(2, "n1", 100.0))
    node.messenger.answer = lambda _peer, _message: AWAY
    node.time.advance(50)
    assert node.ask(FindJobs([(1, 0), (1, 1), (2, 0), (3, 0)])) == JobsFound([(1, 0), (2, 0)])
    node.messenger.answer = kind_controller
    node.time.advance(60)
    assert node.ask(FindJobs([(2, 0), (3, 0)])) == JobsFound([(2, 0)])


def test_a_report_that_the_controller_refuses_is_not_repeated():
    node = Harness()
    node.messenger.answer = lambda _peer, _message: Failure(2017, "Invalid job id specified")
    node.ask(node.launch(1, "n0", 10.0))
    node.time.advance(1000)
    assert len(node.completions) == 1


def test_registration_names_the_jobs_and_the_controller_ends_those_that_it_does_not_know():
    node = Harness()
    node.ask(node.launch(1, "n0", 100.0))
    node.ask(node.launch(2, "n1", 100.0))
    node.messenger.answer = lambda peer, message: (
        Registered([(2, 0)])
        if isinstance(message, RegisterNodes)
        else kind_controller(peer, message)
    )
    assert node.ask(Reconfigure()) == Ok()
    assert node.messenger.messages(RegisterNodes)[-1].running_jobs == [(1, 0), (2, 0)]
    assert node.epilogs == [EpilogComplete(2, 0, "n1")]
    assert node.front_end.core.running_jobs == [(1, 0)]


# --- faults ---------------------------------------------------------------------------------------


def test_a_node_with_a_slow_epilog_is_freed_later():
    node = Harness()
    node.faults.put(["n2"], Fault(epilog_s=30.0))
    node.ask(node.launch(1, "n[1-2]", 5.0))
    node.time.advance(5)
    node.ask(TerminateJob(1, 0))
    assert node.epilogs == [EpilogComplete(1, 0, "n1")]
    node.time.advance(30)
    assert node.epilogs == [EpilogComplete(1, 0, "n1"), EpilogComplete(1, 0, "n2")]


def test_a_node_that_falls_silent_reports_when_it_is_heard_again():
    node = Harness()
    node.ask(node.launch(1, "n0", 5.0))
    node.faults.put(["n0"], Fault(silent=True))
    node.time.advance(100)
    assert node.completions == []
    assert node.ask(TerminateJob(1, 0)) is None
    node.faults.clear()
    node.time.advance(60)
    assert node.completions == [BatchComplete(1, 0, 0, 0, False, "n0")]


# --- forwarding -----------------------------------------------------------------------------------

THREE = {"noded0": "n[0-3]", "noded1": "n[4-7]", "noded2": "n[8-9]"}


def test_a_message_for_own_nodes_is_answered_at_once():
    node = Harness("n[0-16383]")
    assert node.ask(forward(Ping(), "n[0-16383]")) == NodeReplies([NodeReply("n[0-16383]", 0, "")])


def test_the_rest_is_forwarded_and_the_answers_are_merged():
    node = Harness(daemons=THREE)
    answers = node.ask_later(forward(TerminateJob(5, 0), "n[0-9]"))
    assert answers == []
    assert node.epilogs == [EpilogComplete(5, 0, "n[0-3]")]
    first, second = node.messenger.unanswered
    assert [(first.peer, first.message.nodes), (second.peer, second.message.nodes)] == [
        ("noded1", "n[4-7]"),
        ("noded2", "n[8-9]"),
    ]
    first.on_reply(NodeReplies([NodeReply("n[4-7]", 0, "")]))
    second.on_reply(Failure(1005, "refused"))
    assert answers == [
        NodeReplies([NodeReply("n[0-7]", 0, ""), NodeReply("n[8-9]", 1005, "refused")])
    ]
    node.time.advance(1000)
    assert len(answers) == 1


def test_what_does_not_answer_in_time_is_reported_before_the_sender_gives_up():
    node = Harness(daemons=THREE)
    answers = node.ask_later(forward(Ping(), "n[0-9]", timeout_s=10.0))
    node.time.advance(30)
    assert answers == [
        NodeReplies([NodeReply("n[0-3]", 0, ""), NodeReply("n[4-9]", 5004, "no answer in time")])
    ]


def test_a_failed_head_is_replaced_by_the_next_of_its_part():
    node = Harness(daemons=THREE)
    answers = node.ask_later(forward(Ping(), "n[0-9]", width=1))
    [head] = node.messenger.unanswered
    assert head.message.nodes == "n[4-9]"
    head.on_reply(Failure(1006, "lost"))
    replacement = node.messenger.unanswered[-1]
    assert (replacement.peer, replacement.message.nodes) == ("noded2", "n[8-9]")
    replacement.on_reply(NodeReplies([NodeReply("n[8-9]", 0, "")]))
    assert answers[0].replies == [NodeReply("n[0-3,8-9]", 0, ""), NodeReply("n[4-7]", 1006, "lost")]


def test_silent_nodes_are_reported_after_a_timeout_and_all_silent_ones_not_at_all():
    node = Harness()
    node.faults.put(["n1", "n2"], Fault(silent=True))
    answers = node.ask_later(forward(Ping(), "n[0-3]"))
    node.time.advance(9)
    assert answers == []
    node.time.advance(1)
    assert answers == [
        NodeReplies([NodeReply("n[0,3]", 0, ""), NodeReply("n[1-2]", 5004, "no answer in time")])
    ]
    none = node.ask_later(forward(Ping(), "n[1-2]"))
    node.time.advance(1000)
    assert none == []


def test_nodes_that_nobody_knows_are_reported():
    node = Harness()
    [replies] = node.ask_later(forward(Ping(), "x1,n0"))
    assert replies.replies == [
        NodeReply("x1", 2018, "Invalid node name specified"),
        NodeReply("n0", 0, ""),
    ]


def test_an_error_of_the_local_part_is_reported_for_each_node():
    node = Harness()
    [replies] = node.ask_later(forward(SignalJob(5, 0, 9), "n[0-1]"))
    assert replies.replies == [NodeReply("n[0-1]", 2017, "Invalid job id specified")]


@pytest.mark.parametrize(
    "message",
    [
        Forward(b"\xc1", "n0", 32, 10.0),
        forward(Ping(), "n[0-"),
        forward(forward(Ping(), "n0"), "n0"),
        msgspec.structs.replace(forward(Ping(), "n[0-7]"), width=0),
        msgspec.structs.replace(forward(Ping(), "n[0-7]"), timeout_s=float("nan")),
        msgspec.structs.replace(forward(Ping(), "n[0-7]"), timeout_s=1e300),
    ],
)
def test_nonsense_is_refused(message):
    assert Harness().ask(message).code == 1000


def test_a_host_list_that_is_none_is_refused_wherever_it_is():
    node = Harness(daemons={"noded0": "n[0-3]", "noded1": "n[4-7]"})
    assert node.ask(LaunchProlog(1, 0, "n[3-1]")).code == 1000
    inner = LaunchProlog(1, 0, "n[3-1]")
    answer = node.ask(forward(inner, "n0"))
    assert [(reply.nodes, reply.code) for reply in answer.replies] == [("n0", 1000)]


def test_a_tree_of_whole_daemons_reaches_every_node():
    daemons = {f"noded{i}": f"n[{i * 4}-{i * 4 + 3}]" for i in range(9)}
    network = {}
    for name in daemons:
        harness = Harness(name=name, daemons=daemons)
        network[name] = harness.messenger
        harness.messenger.network = network
    targets, _ = Routes.of(NodeDaemon(name, "", nodes) for name, nodes in daemons.items()).targets(
        [f"n{i}" for i in range(36)]
    )
    tree = ForwardTree(TerminateJob(3, 0), targets, 2, 10.0)
    for send in tree.start():
        network[send.peer].deliver(send.message, partial(tree.answered, send.hop))
    assert tree.result == NodeReplies([NodeReply("n[0-35]", 0, "")])
    hops = 2 + sum(len(messenger.messages(Forward)) for messenger in network.values())
    assert hops == 9
    freed = [
        node
        for messenger in network.values()
        for message in messenger.messages(EpilogComplete)
        for node in expand(message.nodes)
    ]
    assert sorted(freed) == sorted(f"n{i}" for i in range(36))
