"""docs/states.md: the states of jobs, nodes and steps, drawn from their tables. `make states`
writes it; a test holds that it is current.

Place: the tool; run by developers. It must not know more of a state than the tables say.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from understudy.controller.tables import job_states, node_states, step_states
from understudy.model.states import JobState, NodeState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from enum import IntEnum, IntFlag, StrEnum

    from understudy.controller.tables.transitions import Change

    Table = Mapping[tuple[Any, Any], Change[Any, Any]]

TARGET = Path(__file__).resolve().parents[2] / "docs" / "states.md"
_HEAD = """# States

Written by `make states` from the tables in `controller/tables/`; not to be edited.

A state is a base with flags beside it. An event may happen in the bases that its rows name, if one
of the flags under "only with" is there (where any are named) and none of those under "not with";
flags go before others come. Where nothing is said of what it becomes the base stays. Anything else
that happens is a bug, and raises `InvalidTransition` with what happened before. In the diagrams
states are drawn as one where the same may follow; what leaves the base as it is is left out.
"""


class Machine(NamedTuple):
    """What the page says of one table. `first`: the base in which all begins."""

    title: str
    module: str
    about: str
    first: IntEnum
    table: Table


MACHINES = (
    Machine(
        "Jobs",
        "job_states",
        "What is shown of a job is its flag, if it has one that is shown, else its base.",
        JobState.PENDING,
        job_states.TRANSITIONS,
    ),
    Machine(
        "Nodes",
        "node_states",
        "ALLOCATED and MIXED, COMPLETING, MAINT, RESERVED and PLANNED are shown, but not kept:\n"
        "they follow from what is free, from jobs, reservations and plans. slurm.conf may begin\n"
        "with DOWN, FUTURE, or flags.",
        NodeState.UNKNOWN,
        node_states.TRANSITIONS,
    ),
    Machine(
        "Steps",
        "step_states",
        "Steps have no flags.",
        JobState.RUNNING,
        step_states.TRANSITIONS,
    ),
)


def page() -> str:
    """The whole page."""
    return _HEAD + "".join("\n" + section(machine) for machine in MACHINES)


def section(machine: Machine) -> str:
    """One machine: its diagram, and a row for each effect of an event."""
    return "\n".join(
        [
            f"## {machine.title}",
            "",
            f"`controller/tables/{machine.module}.py`.\n{machine.about}",
            "",
            "```mermaid",
            *diagram(machine),
            "```",
            "",
            "| event | in | becomes | flags that come | that go | only with | not with |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            *rows(machine.table),
            "",
        ]
    )


def diagram(machine: Machine) -> list[str]:
    """The lines of a Mermaid diagram of the base states."""
    groups = _alike(machine.table)
    group_of = {state: group for group in groups for state in group}
    arrows: dict[tuple[str, str], dict[str, None]] = {}
    for (state, event), change in machine.table.items():
        if change.state is not state:
            arrow = _id(group_of[state]), _id(group_of[change.state])
            arrows.setdefault(arrow, {})[event.value] = None
    return [
        "stateDiagram-v2",
        *(f'    state "{_names(group)}" as {_id(group)}' for group in groups if len(group) > 1),
        f"    [*] --> {_id(group_of[machine.first])}",
        *(f"    {a} --> {b}: {', '.join(events)}" for (a, b), events in arrows.items()),
    ]


def _alike(table: Table) -> list[tuple[IntEnum, ...]]:
    """States together from which the same events lead to the same."""
    follows: dict[IntEnum, dict[str, object]] = {change.state: {} for change in table.values()}
    for (state, event), change in table.items():
        follows.setdefault(state, {})[event] = "itself" if change.state is state else change.state
    groups: dict[frozenset[tuple[str, object]], list[IntEnum]] = {}
    for state, found in follows.items():
        groups.setdefault(frozenset(found.items()), []).append(state)
    return [tuple(sorted(group)) for group in groups.values()]


def rows(table: Table) -> list[str]:
    """A row for each event and what it does; states in which it does the same are in one row."""
    found: dict[tuple[StrEnum, IntEnum | None, tuple[str, ...]], list[IntEnum]] = {}
    for (state, event), change in table.items():
        flags = (change.gains, change.loses, change.needs, change.bars)
        cells = tuple("" if each is None else _flags(each) for each in flags)
        moves = any(
            other.state is change.state is not before
            for (before, what), other in table.items()
            if what is event
        )
        found.setdefault((event, change.state if moves else None, cells), []).append(state)
    return [
        f"| {event.value} | {_names(sorted(states))} | {'' if to is None else to.name} "
        f"| {' | '.join(cells)} |"
        for (event, to, cells), states in found.items()
    ]


def _flags(flags: IntFlag) -> str:
    every = list(type(flags))
    return "all" if list(flags) == every else ", ".join(str(each.name) for each in flags)


def _names(states: Iterable[IntEnum]) -> str:
    return ", ".join(state.name for state in states)


def _id(group: tuple[IntEnum, ...]) -> str:
    return group[0].name


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
