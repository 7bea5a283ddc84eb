"""The process management interface, as a task's library speaks it."""

from __future__ import annotations

import select
import socket

from understudy.noded.pmi import Server


class Part:
    """The server of one node daemon's tasks, and the tasks' ends."""

    def __init__(self, layout: list[list[int]], nodes: list[int]) -> None:
        self.sent: list[bytes] = []
        self.aborted: list[int] = []
        order = {
            "job": 7,
            "step": 0,
            "size": sum(map(len, layout)),
            "layout": layout,
            "nodes": [{"tasks": layout[at]} for at in nodes],
        }
        self.server = Server(order, self.sent.append, self.aborted.append)
        self.poll = select.poll()
        self.tasks = {
            rank: socket.socket(fileno=self.server.open(rank, self.poll))
            for at in nodes
            for rank in layout[at]
        }

    def ask(self, rank: int, text: bytes) -> bytes:
        self.tasks[rank].sendall(text)
        for descriptor, _ in self.poll.poll(1000):
            self.server.read(descriptor, self.poll)
        return self.answer(rank)

    def answer(self, rank: int) -> bytes:
        self.tasks[rank].setblocking(False)
        try:
            return self.tasks[rank].recv(4096)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        for task in self.tasks.values():
            task.close()
        for descriptor, _ in self.poll.poll(1000):
            self.server.read(descriptor, self.poll)


def framed(text: bytes) -> bytes:
    return b"%6d" % len(text) + text


def test_keys_are_seen_by_all_tasks_after_the_barrier() -> None:
    first, second = Part([[0], [1]], [0]), Part([[0], [1]], [1])
    assert (
        first.ask(0, b"cmd=init pmi_version=1 pmi_subversion=1\n")
        == b"cmd=response_to_init pmi_version=1 pmi_subversion=1 "
        b"rc=0\n"
    )
    second.ask(1, b"cmd=init pmi_version=1 pmi_subversion=1\n")
    assert (
        first.ask(0, b"cmd=put kvsname=7.0 key=a value=tcp://x=1\n")
        == b"cmd=put_result rc=0 msg=success\n"
    )
    assert first.ask(0, b"cmd=barrier_in\n") == b""
    assert second.ask(1, b"cmd=barrier_in\n") == b""
    merged = b"\n".join(first.sent + second.sent)
    first.server.exchanged(merged)
    second.server.exchanged(merged)
    assert first.answer(0) == b"cmd=barrier_out rc=0\n"
    assert second.answer(1) == b"cmd=barrier_out rc=0\n"
    assert (
        second.ask(1, b"cmd=get kvsname=7.0 key=a\n") == b"cmd=get_result rc=0 msg=success "
        b"value=tcp://x=1\n"
    )
    first.close()
    second.close()


def test_the_second_version_frames_its_messages() -> None:
    part = Part([[0, 1], [2, 3]], [0])
    part.ask(0, b"cmd=init pmi_version=2 pmi_subversion=0\n")
    answer = part.ask(0, framed(b"cmd=fullinit;pmijobid=7.0;pmirank=0;threaded=FALSE;"))
    assert answer[6:].startswith(b"cmd=fullinit-response;rc=0;pmi-version=2;")
    assert b"size=4;" in answer
    assert int(answer[:6]) == len(answer) - 6
    answer = part.ask(0, framed(b"cmd=info-getjobattr;key=PMI_process_mapping;"))
    assert b"value=(vector,(0,2,2));" in answer
    answer = part.ask(0, framed(b"cmd=kvs-get;jobid=7.0;srcid=-1;key=none;"))
    assert b"found=FALSE;" in answer
    part.close()


def test_an_abort_ends_the_step() -> None:
    part = Part([[0]], [0])
    part.ask(0, b"cmd=init pmi_version=1 pmi_subversion=1\n")
    part.ask(0, b"cmd=abort exitcode=5\n")
    assert part.aborted == [5]
    part.close()
