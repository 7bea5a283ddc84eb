"""PMIx between the nodes of a step, and which types srun takes.

Covers: commands/srun/mpi_types, noded/pmix_node, noded/pmixd.
"""

from __future__ import annotations

import _socket
import io
import select
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from understudy.commands.srun import mpi_types
from understudy.commands.srun.srun_settings import StepError
from understudy.noded import pmix_library
from understudy.noded.pmix_node import NOT_FOUND, SUCCESS, Node
from understudy.noded.pmixd import Pipe, new_folder, remove

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.commands.shared.context import Context

Told = list[tuple[int, bytes]]


class Step:
    """The nodes of a step, and what is on its way between them."""

    def __init__(self, layout: list[list[int]]) -> None:
        self.put: dict[int, bytes] = {}
        self.on_its_way: deque[tuple[int, bytes]] = deque()
        self.nodes = [Node(at, layout, self.send, self.look_up) for at in range(len(layout))]

    def send(self, to: int, body: bytes) -> None:
        self.on_its_way.append((to, body))

    def look_up(self, rank: int, then: Callable[[int, bytes], None]) -> None:
        then(SUCCESS, self.put[rank])

    def carry(self) -> None:
        while self.on_its_way:
            to, body = self.on_its_way.popleft()
            self.nodes[to].take(body)


def told(into: Told) -> Callable[[int, bytes], None]:
    return lambda status, data: into.append((status, data))


def test_a_fence_gives_all_nodes_what_all_have_put_when_the_last_has_come() -> None:
    step = Step([[0, 1], [2], [3]])
    heard: list[Told] = [[], [], []]
    step.nodes[2].fence(None, b"c\n", told(heard[2]))
    step.nodes[0].fence(None, b"a", told(heard[0]))
    step.carry()
    assert heard == [[], [], []]
    step.nodes[1].fence(None, b"", told(heard[1]))
    step.carry()
    assert heard == [[(SUCCESS, b"ac\n")]] * 3


def test_fences_of_some_tasks_and_of_all_do_not_meet() -> None:
    step = Step([[0], [1], [2]])
    some: Told = []
    everybody: Told = []
    step.nodes[0].fence(None, b"0", told(everybody))
    step.nodes[1].fence([2, 1], b"1", told(some))
    step.nodes[2].fence([1, 2], b"2", told(some))
    step.carry()
    assert some == [(SUCCESS, b"12")] * 2
    assert everybody == []


def test_fences_of_the_same_tasks_follow_each_other() -> None:
    step = Step([[0], [1]])
    heard: Told = []
    step.nodes[1].fence(None, b"first", told(heard))
    step.nodes[0].fence(None, b"", told(heard))
    step.nodes[0].fence(None, b"", told(heard))  # while the other is in the first
    step.carry()
    assert heard == [(SUCCESS, b"first")] * 2
    step.nodes[1].fence(None, b"second", told(heard))
    step.carry()
    assert heard[2:] == [(SUCCESS, b"second")] * 2


def test_a_task_of_another_node_is_asked_there() -> None:
    step = Step([[0], [1, 2]])
    step.put = {1: b"one\n", 2: b"two"}
    first: Told = []
    second: Told = []
    step.nodes[0].ask(2, told(second))
    step.nodes[0].ask(1, told(first))
    step.carry()
    assert (first, second) == ([(SUCCESS, b"one\n")], [(SUCCESS, b"two")])


def test_a_task_that_there_is_not_is_not_found() -> None:
    heard: Told = []
    Step([[0]]).nodes[0].ask(7, told(heard))
    assert heard == [(NOT_FOUND, b"")]


def test_what_is_for_a_process_that_is_gone_is_dropped() -> None:
    ours, theirs = _socket.socketpair()
    poll, another = select.poll(), select.poll()
    pipe = Pipe(ours, poll)
    theirs.close()
    assert list(pipe.take()) == []
    assert not pipe.is_open
    pipe.put(b"for nobody")
    pipe.watch(another)
    assert poll.poll(0) == another.poll(0) == []
    ours.close()


def test_a_folder_is_removed_with_what_others_have_put_into_it(tmp_path: Path) -> None:
    folder = new_folder({"folder": str(tmp_path), "uid": 7, "job": 3, "step": 0})
    inner = Path(folder, "0")
    inner.mkdir()
    (inner / "file").write_text("x")
    (inner / "link").symlink_to(tmp_path)
    remove(folder)
    assert list(tmp_path.iterdir()) == []


class Terminal:
    """What a command may say."""

    def __init__(self) -> None:
        self.text = io.StringIO()

    def error(self, text: str) -> None:
        self.text.write(text + "\n")


def complaint_of(kind: str) -> str:
    terminal: Context = Terminal()  # type: ignore[assignment]
    with pytest.raises(StepError):
        mpi_types.check(kind, terminal)
    return terminal.text.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_without_the_library_pmix_is_refused_as_by_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pmix_library, "NAME", "libpmix.so.none")
    assert complaint_of("pmix") == (
        " mpi/pmix_v4: init: (null) [0]: mpi_pmix.c:195: pmi/pmix: can not load PMIx library\n"
        "Couldn't load specified plugin name for mpi/pmix: Plugin init() callback failed\n"
        "MPI: Cannot create context for mpi/pmix\n"
        "MPI: Unable to load any plugin\n"
        "Invalid MPI type 'pmix', --mpi=list for acceptable types\n"
    )


@pytest.mark.parametrize("kind", ["", "pmix_v1", "PMI2"])
def test_other_types_are_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pmix_library, "NAME", "libpmix.so.none")
    assert complaint_of(kind).startswith(
        f"Couldn't find the specified plugin name for mpi/{kind} looking at all files\n"
    )


@pytest.mark.parametrize(("kind", "name"), [("none", ""), ("openmpi", ""), ("pmi2", "pmi2")])
def test_types_that_need_no_library(kind: str, name: str) -> None:
    terminal: Context = Terminal()  # type: ignore[assignment]
    assert mpi_types.check(kind, terminal) == name
