"""The page on states is current, and draws what the tables say. Covers: tool/manual/state_page."""

from __future__ import annotations

from understudy.controller.tables.job_states import JobEvent
from understudy.controller.tables.transitions import Change
from understudy.model.states import JobFlag, JobState
from understudy.tool.manual.state_page import MACHINES, TARGET, diagram, page, rows


def test_the_page_of_states_is_current():
    assert TARGET.read_text() == page(), (
        "run `make states` (python -m understudy.tool.manual.state_page) and commit docs/states.md"
    )


def test_there_is_a_row_for_each_event_of_each_machine():
    for machine in MACHINES:
        named = {row.split(" | ")[0].removeprefix("| ") for row in rows(machine.table)}
        assert named == {event.value for _, event in machine.table}


def test_states_from_which_the_same_follows_are_drawn_as_one():
    jobs = diagram(MACHINES[0])
    assert [line.split()[-1] for line in jobs if "state " in line] == ["COMPLETED"]
    assert "    COMPLETED --> PENDING: requeued" in jobs


def test_what_an_event_does_alike_is_in_one_row_and_what_leaves_the_base_names_none():
    table = {
        (JobState.PENDING, JobEvent.STOPPED): Change(JobState.PENDING, gains=JobFlag.STOPPED),
        (JobState.RUNNING, JobEvent.STOPPED): Change(JobState.RUNNING, gains=JobFlag.STOPPED),
        (JobState.RUNNING, JobEvent.CANCELLED): Change(JobState.CANCELLED),
    }
    assert rows(table) == [
        "| stopped | PENDING, RUNNING |  | STOPPED |  |  |  |",
        "| cancelled | RUNNING | CANCELLED |  |  |  |  |",
    ]
