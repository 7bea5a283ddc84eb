"""smap: the map of nodes, and the tables below it.

Covers: commands/smap/view.
"""

from __future__ import annotations

from typing import Any

import pytest
from fake_controller import FakeClient, record, run_command

from understudy.commands.smap import smap as module
from understudy.commands.smap.smap import smap
from understudy.commands.smap.view import MARKS, jobs_view, map_lines

JOBS = [
    record(
        "jobs",
        job_id=7,
        name="run",
        user_name="ann",
        partition="debug",
        state=1,
        nodes="n[1-2]",
        node_count=2,
        run_time_s=65,
        priority=5,
    ),
    record(
        "jobs",
        job_id=8,
        name="wait",
        user_name="bob",
        partition="debug",
        state=0,
        reason="Resources",
        node_count=3,
        priority=9,
    ),
    record("jobs", job_id=9, name="done", state=3, nodes="n4"),
]
NODES = [
    record("nodes", name="n1", state=3),
    record("nodes", name="n2", state=5),
    record("nodes", name="n3", state=2),
    record("nodes", name="n4", state=2, flags=0x0200),
    record("nodes", name="n5", state=3),
]


@pytest.fixture
def client() -> FakeClient:
    partitions = [
        record(
            "partitions",
            name="debug",
            is_default=True,
            state="UP",
            total_nodes=5,
            nodes="n[1-5]",
            max_time_s=3600,
        )
    ]
    reservations = [
        record(
            "reservations",
            name="maint",
            start_time=0,
            end_time=60,
            nodes="n3",
            node_count=1,
            users=["root"],
            accounts=[],
        )
    ]
    return FakeClient(jobs=JOBS, nodes=NODES, partitions=partitions, reservations=reservations)


def test_running_jobs_are_marked_on_the_map_of_nodes_and_in_the_table(client: FakeClient) -> None:
    lines = run_command(smap, "-c", client=client).lines
    assert lines[1:] == [
        "AA.#@",
        "ID JOBID              PARTITION     USER      NAME ST       TIME NODES NODELIST",
        "A  7                      debug      ann       run  R       1:05     2 n[1-2]",
        "   8                      debug      bob      wait PD       0:00     3 (Resources)",
    ]


def test_partitions_and_reservations_have_their_own_tables(client: FakeClient) -> None:
    assert run_command(smap, "-h", "-Ds", client=client).lines == [
        "A      debug*     up     1:00:00      5 n[1-5]"
    ]
    assert run_command(smap, "-c", "-D", "r", client=client).lines[1] == "@@A#@"
    assert "users=root" in run_command(smap, "-h", "-D", "r", client=client).out


def test_only_what_is_on_the_named_nodes_is_shown(client: FakeClient) -> None:
    lines = run_command(smap, "-c", "-n", "n[2-3]", client=client).lines
    assert lines[1] == "A."
    assert len(lines) == 4


def test_a_map_is_broken_into_lines_and_marks_come_again_when_they_are_used_up() -> None:
    assert map_lines("abcde", 2) == ["ab", "cd", "e"]
    many = jobs_view(
        [
            record("jobs", job_id=number, state=1, nodes=f"n{number}")
            for number in range(1, len(MARKS) + 2)
        ]
    )
    assert [many.entries[0].mark, many.entries[-1].mark] == ["A", "A"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["-D", "x"], "Invalid display type: x"),
        (["-i", "0"], "Invalid interval: 0"),
        (["-n", "n["], "n["),
    ],
)
def test_mistakes_are_refused(client: FakeClient, arguments: list[str], error: str) -> None:
    outcome = run_command(smap, "-c", *arguments, client=client)
    assert (outcome.code, error in outcome.err) == (1, True)


class Window:
    """A screen of 8 lines of 80 characters that takes keys from a list."""

    def __init__(self, keys: str) -> None:
        self.keys = [ord(key) for key in keys]
        self.screen: dict[int, str] = {}
        self.screens: list[dict[int, str]] = []

    def getmaxyx(self) -> tuple[int, int]:
        return 8, 80

    def timeout(self, _ms: int) -> None:
        pass

    def erase(self) -> None:
        self.screen = {}

    def refresh(self) -> None:
        self.screens.append(self.screen)

    def getch(self) -> int:
        return self.keys.pop(0)

    def addstr(self, line: int, column: int, text: str, _attribute: int = 0) -> None:
        assert column + len(text) <= 80 - (line == 7)
        old = self.screen.get(line, "")
        self.screen[line] = old.ljust(column)[:column] + text


def test_keys_change_what_the_live_screen_shows(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    curses: Any = pytest.importorskip("curses")
    for name, value in (
        ("curs_set", lambda _n: None),
        ("has_colors", lambda: False),
        ("color_pair", lambda n: n),
    ):
        monkeypatch.setattr(curses, name, value)
    monkeypatch.setattr(curses, "wrapper", lambda run: run(window))
    window = Window("jsq")
    context = module.Context("smap", client=client, environ={})
    source = module._Source(context, hidden=False, only=None)
    assert module._live(source, "j", 0) == 0
    assert [screen[0].strip() for screen in window.screens] == ["AA.#@", "AA.#@", "AAAAA"]
    assert "run" in window.screens[0][3]
    assert "debug*" in window.screens[2][3]
