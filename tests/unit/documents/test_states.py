"""The commands' own table of states says what the vocabulary says; and texts of states, times and
sizes are Slurm's.

Covers: commands/shared/texts, model/states.
"""

from __future__ import annotations

import pytest

from understudy.commands.shared import texts
from understudy.documents import states
from understudy.documents.states import (
    job_state,
    job_state_code,
    job_state_from,
    node_state,
    node_state_code,
    node_state_complete,
)
from understudy.model.states import JOB_STATE_CODE, JobFlag, JobState, NodeFlag, NodeState


def test_the_numbers_are_those_of_the_vocabulary() -> None:
    assert [(name, code) for name, code in states.JOB_STATES] == [
        (state.name, JOB_STATE_CODE[state]) for state in JobState
    ]
    assert {bit for bit, _, _ in states.JOB_FLAGS if bit} | {JobFlag.LAUNCH_FAILED} == {
        flag for flag in JobFlag if flag
    }
    assert [name for name, _ in states.NODE_STATES] == [state.name.lower() for state in NodeState]
    assert {bit for bit, _ in states.NODE_FLAGS} == {
        flag for flag in NodeFlag if flag and flag is not NodeFlag.POWER_DRAIN
    }


def test_a_flag_is_shown_in_place_of_the_base_state() -> None:
    assert (job_state(1, 0), job_state_code(1, 0)) == ("RUNNING", "R")
    assert (job_state(3, JobFlag.COMPLETING), job_state_code(3, JobFlag.COMPLETING)) == (
        "COMPLETING",
        "CG",
    )
    assert job_state_code(1, JobFlag.CONFIGURING) == "CF"


@pytest.mark.parametrize(
    ("text", "found"),
    [("pd", (0, 0)), ("RUNNING", (1, 0)), ("CG", (-1, 0x8000)), ("OOM", (11, 0)), ("nosuch", None)],
)
def test_users_name_states_in_full_or_short_and_any_case(
    text: str, found: tuple[int, int] | None
) -> None:
    assert job_state_from(text) == found


@pytest.mark.parametrize(
    ("state", "flags", "short", "long", "complete"),
    [
        (NodeState.IDLE, 0, "idle", "idle", "IDLE"),
        (NodeState.MIXED, 0, "mix", "mixed", "MIXED"),
        (NodeState.IDLE, NodeFlag.NO_RESPOND, "idle*", "idle*", "IDLE+NOT_RESPONDING"),
        (NodeState.DOWN, NodeFlag.NO_RESPOND, "down*", "down*", "DOWN+NOT_RESPONDING"),
        (NodeState.IDLE, NodeFlag.DRAIN, "drain", "drained", "IDLE+DRAIN"),
        (
            NodeState.UNKNOWN,
            NodeFlag.DRAIN | NodeFlag.INVALID_REG,
            "inval",
            "inval",
            "UNKNOWN+DRAIN+INVALID_REG",
        ),
        (NodeState.ALLOCATED, NodeFlag.DRAIN, "drng", "draining", "ALLOCATED+DRAIN"),
        (
            NodeState.IDLE,
            NodeFlag.DRAIN | NodeFlag.COMPLETING,
            "drng",
            "draining",
            "IDLE+DRAIN+COMPLETING",
        ),
        (NodeState.IDLE, NodeFlag.COMPLETING, "comp", "completing", "IDLE+COMPLETING"),
        (NodeState.IDLE, NodeFlag.FAIL, "fail", "fail", "IDLE+FAIL"),
        (NodeState.ALLOCATED, NodeFlag.FAIL, "failg", "failing", "ALLOCATED+FAIL"),
        (
            NodeState.IDLE,
            NodeFlag.MAINT | NodeFlag.RESERVED,
            "maint",
            "maint",
            "IDLE+MAINTENANCE+RESERVED",
        ),
        (NodeState.IDLE, NodeFlag.PLANNED, "plnd", "planned", "IDLE+PLANNED"),
    ],
)
def test_node_states_read_as_slurms(
    state: int, flags: int, short: str, long: str, complete: str
) -> None:
    assert (
        node_state_code(state, flags),
        node_state(state, flags),
        node_state_complete(state, flags),
    ) == (short, long, complete)


@pytest.mark.parametrize(
    ("seconds", "short", "full"),
    [
        (5, "0:05", "00:00:05"),
        (1800, "30:00", "00:30:00"),
        (3600, "1:00:00", "01:00:00"),
        (172805, "2-00:00:05", "2-00:00:05"),
        (-3, "0:00", "00:00:00"),
    ],
)
def test_durations_have_two_forms(seconds: int, short: str, full: str) -> None:
    assert (texts.duration(seconds), texts.full_duration(seconds)) == (short, full)


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0"), (500, "500M"), (4000, "4000M"), (4096, "4G"), (1536, "1.50G"), (1 << 20, "1T")],
)
def test_sizes_go_to_a_larger_unit_where_it_divides(amount: int, text: str) -> None:
    assert texts.megabytes(amount) == text


def test_sizes_stay_in_their_unit_when_asked_to() -> None:
    texts.convert_units(convert=False)
    try:
        assert (texts.megabytes(4096), texts.thousands(2048)) == ("4096M", "2048")
    finally:
        texts.convert_units(convert=True)
    assert texts.thousands(2048) == "2K"


def test_time_stamps_follow_slurm_time_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_TIME_FORMAT", "%Y")
    assert texts.timestamp(2_064_700_000) == "2035"
    monkeypatch.setenv("SLURM_TIME_FORMAT", "relative")
    assert texts.timestamp(2_064_700_000).endswith("2035")
    assert texts.timestamp(None, "Unknown") == "Unknown"


def test_a_node_that_is_to_boot_and_one_that_boots() -> None:
    requested, issued = int(NodeFlag.REBOOT_REQUESTED), int(NodeFlag.REBOOT_ISSUED)
    drain = int(NodeFlag.DRAIN)
    assert states.node_state_code(states.IDLE, requested | drain) == "boot"
    assert states.node_state_code(states.ALLOCATED, requested) == "alloc@"
    assert states.node_state(states.DOWN, issued | drain) == "reboot^"
    assert states.node_state_complete(states.DOWN, issued | drain) == "DOWN+DRAIN+REBOOT_ISSUED"
    assert (
        states.node_state_complete(states.IDLE, requested | drain) == "IDLE+DRAIN+REBOOT_REQUESTED"
    )
    assert states.node_matches(states.DOWN, issued, "reboot^")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("d", "down"),
        ("dr", "drain"),
        ("DRAI", "drain"),
        ("id", "idle"),
        ("resv", "resv"),
        ("reb", "reboot"),
    ],
)
def test_node_states_may_be_cut_short(text: str, name: str) -> None:
    assert states.node_state_named(text) == name


@pytest.mark.parametrize("text", ["", "bogus", "idle+", "failing", "power_up", "reboot_issued"])
def test_what_is_no_node_state_is_refused(text: str) -> None:
    with pytest.raises(KeyError):
        states.node_state_named(text)


def test_idle_nodes_may_be_drained_or_reserved_and_allocated_ones_mixed() -> None:
    reserved, maint, drain = int(NodeFlag.RESERVED), int(NodeFlag.MAINT), int(NodeFlag.DRAIN)
    assert states.node_matches(states.IDLE, 0, "idle")
    assert states.node_matches(states.IDLE, reserved | maint, "idle")
    assert states.node_matches(states.IDLE, reserved, "idle")
    assert states.node_matches(states.IDLE, drain, "idle")
    assert states.node_matches(states.IDLE, int(NodeFlag.FAIL), "idle")
    assert states.node_matches(states.MIXED, drain, "alloc")
    assert states.node_matches(states.MIXED, 0, "mix")
    assert not states.node_matches(states.MIXED, drain, "mix")


def test_flags_are_named_in_slurms_order_and_power_is_not_shown_of_a_failing_node() -> None:
    flags = states.NODE_FAILING | states.POWERED_DOWN
    assert (states.node_state_flags(states.IDLE, flags), node_state(states.IDLE, flags)) == (
        "IDLE+FAIL+POWERED_DOWN",
        "fail",
    )
    flags = states.NODE_DRAIN | states.REBOOT_REQUESTED | states.NO_RESPOND
    assert (
        states.node_state_flags(states.MIXED, flags) == "MIXED+DRAIN+REBOOT_REQUESTED+"
        "NOT_RESPONDING"
    )
    assert node_state_complete(states.MIXED, flags).startswith("ALLOCATED+DRAIN")
    assert node_state_code(states.DOWN, states.REBOOT_REQUESTED) == "boot"
