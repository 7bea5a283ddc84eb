"""A message to a node over a connection of its own: whom it reaches, and what its sender hears when
it does not.
"""

import asyncio
import resource

import pytest
from key_harness import keys_of
from tests.unit.protocol.test_messenger import until

from understudy.auth.handshake import client_hello, read_addressee
from understudy.auth.keys import Keys, create_keys
from understudy.model.cluster import NodeDaemon
from understudy.protocol import addresses
from understudy.protocol.hops import HopLinks, raise_descriptor_limit
from understudy.protocol.messages import Failure, Ok, Ping
from understudy.protocol.messenger import Messenger
from understudy.protocol.mishaps import Mishaps


class House:
    """Nodes n0, n1 ... of one process, which say who was asked by whom."""

    def __init__(self, address, *, answers=True):
        self.messenger = Messenger("noded0", asyncio.get_running_loop(), keys_of("noded0"))
        self.messenger.listen([address])
        self.messenger.set_handler(self.handle)
        self.asked, self.requests, self.answers = [], [], answers

    def handle(self, request):
        self.asked.append((request.sender.name, request.addressee))
        self.requests.append(request)
        return Ok() if self.answers else None


@pytest.fixture
async def nodes(tmp_path):
    house = House(f"unix:{tmp_path}/s")
    yield house
    house.messenger.close()


def links_to(tmp_path, *, keys=None, **mishaps):
    daemons = [NodeDaemon("noded0", f"unix:{tmp_path}/s", "n[0-599]")]
    keys = keys or keys_of("noded1")
    return HopLinks(asyncio.get_running_loop(), keys, daemons, Mishaps(1, **mishaps))


async def ask(links, node="n1", sender="n0", timeout_s=20.0):
    answer = asyncio.get_running_loop().create_future()
    links.send(sender, node, Ping(), answer.set_result, timeout_s)
    return await answer


async def test_the_node_that_is_meant_is_asked_in_the_name_of_the_senders_daemon(nodes, tmp_path):
    links = links_to(tmp_path)
    assert await ask(links, "n7", "n3") == Ok()
    assert nodes.asked == [("noded1", "n7")]
    assert links.sent == 1
    assert not links.open


async def test_each_message_has_a_connection_of_its_own_which_is_closed_with_the_answer(
    nodes, tmp_path
):
    nodes.answers = False
    links = links_to(tmp_path)
    asked = [asyncio.ensure_future(ask(links, f"n{i}")) for i in range(600)]
    await until(lambda: len(nodes.requests) == 600)  # more than wait in a listener's queue
    assert nodes.messenger.connections == 600
    for request in nodes.requests:
        request.reply(Ok())
    assert await asyncio.gather(*asked) == [Ok()] * 600
    await until(lambda: not nodes.messenger.connections)


async def test_over_tcp(tmp_path):
    listener = addresses.listen("tcp:127.0.0.1:0")
    house = House(f"unix:{tmp_path}/s")
    house.messenger.accept_at(listener)
    links = HopLinks(
        asyncio.get_running_loop(),
        keys_of("noded1"),
        [NodeDaemon("noded0", f"tcp:127.0.0.1:{listener.getsockname()[1]}", "n1")],
    )
    assert await ask(links) == Ok()
    house.messenger.close()
    answer = await ask(links)
    assert isinstance(answer, Failure)
    assert answer.code in (1005, 1006)


async def test_nobody_there_is_no_connection(tmp_path):
    answer = await ask(links_to(tmp_path))
    assert isinstance(answer, Failure)
    assert (answer.code, answer.text) == (1005, "no connection with n1: No such file or directory")


async def test_who_dies_with_the_message_is_a_lost_connection(nodes, tmp_path):
    nodes.messenger.set_handler(lambda request: request.break_off())
    assert await ask(links_to(tmp_path)) == Failure(1006, "n1 closed the connection")


async def test_who_is_silent_has_not_answered_in_time_and_a_late_answer_changes_nothing(
    nodes, tmp_path
):
    nodes.answers = False
    links = links_to(tmp_path)
    assert await ask(links, timeout_s=0.05) == Failure(5004, "no answer of n1 in time")
    for request in nodes.requests:
        request.reply(Ok())
    assert not links.open


async def test_another_key_reaches_nobody(nodes, tmp_path):
    create_keys(tmp_path / "others", ["noded0", "noded1"])
    answer = await ask(links_to(tmp_path, keys=Keys("noded1", tmp_path / "others")))
    assert answer.code == 1006
    assert nodes.asked == []


async def test_who_answers_in_another_daemons_place_is_not_listened_to(tmp_path):
    keys_of("noded1")
    other = Messenger("noded2", asyncio.get_running_loop(), keys_of("noded2"))
    other.listen([f"unix:{tmp_path}/s"])
    assert await ask(links_to(tmp_path)) == Failure(1006, "'noded2' answers in place of noded0")
    other.close()


async def test_a_lost_message_does_not_arrive_and_a_lost_answer_is_not_heard(nodes, tmp_path):
    links = links_to(tmp_path, loss=0.5)
    answers = await asyncio.gather(*(ask(links, f"n{i}", "n0", 0.3) for i in range(40)))
    passages = [Mishaps(1, loss=0.5).passage("n0", f"n{i}", i + 1) for i in range(40)]
    assert sorted(node for _, node in nodes.asked) == sorted(
        f"n{i}" for i, passage in enumerate(passages) if not passage.is_lost
    )
    heard = [not (passage.is_lost or passage.answer_is_lost) for passage in passages]
    # on a busy machine one that was to be heard may come late
    assert all(
        wanted or isinstance(got, Failure) for wanted, got in zip(heard, answers, strict=True)
    )
    assert Ok() in answers
    assert {answer.code for answer in answers if isinstance(answer, Failure)} == {5004}


async def test_a_message_and_its_answer_take_the_links_latency(nodes, tmp_path):
    links, loop = links_to(tmp_path, latency_s=0.02), asyncio.get_running_loop()
    began = loop.time()
    assert await ask(links) == Ok()
    assert loop.time() - began >= 2 * Mishaps(1, latency_s=0.02).passage("n0", "n1", 1).delay_s


async def test_nothing_is_heard_after_the_end(nodes, tmp_path):
    nodes.answers = False
    links, heard = links_to(tmp_path), []
    links.send("n0", "n1", Ping(), heard.append, 10.0)
    await until(lambda: nodes.requests)
    links.close()
    await until(nodes.requests[0].is_gone)
    assert heard == []


def test_as_many_descriptors_as_may_be_are_used():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        assert raise_descriptor_limit() == hard
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_hello_names_whom_it_is_for_or_nobody():
    assert read_addressee(client_hello("a", 0, 0, is_daemon=True, addressee="n1")) == "n1"
    assert read_addressee(client_hello("a", 0, 0, is_daemon=True)) == ""
