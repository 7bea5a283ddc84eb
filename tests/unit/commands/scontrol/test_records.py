"""Records as scontrol shows them: what is read of them, and many at once as one by one."""

from __future__ import annotations

from typing import Any

import pytest

from understudy.commands.scontrol.records import (
    NODE_COLUMNS,
    NodeTexts,
    job_columns,
    job_lines,
    node_lines,
    render,
)
from understudy.model.records import JOBS, NODES

SAMPLES: dict[type, Any] = {int: 3, str: "text", list: ["a", "b"], float: 1.5, bool: True}


def node(**values: Any) -> dict[str, Any]:
    """With a value in each column."""
    return {name: SAMPLES[column.kind] for name, column in NODES.items()} | values


class Noting(dict[str, Any]):
    """Notes which columns are read."""

    def __init__(self, record: dict[str, Any]) -> None:
        super().__init__(record)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)


def test_of_nodes_what_is_shown_is_asked_for_and_no_more() -> None:
    full = Noting(node())
    node_lines(full, details=True)
    assert full.read == set(NODE_COLUMNS)
    assert len(NODE_COLUMNS) == len(set(NODE_COLUMNS))


@pytest.mark.parametrize("one_line", [True, False])
@pytest.mark.parametrize("details", [True, False])
def test_nodes_that_are_alike_are_shown_as_each_would_be(*, details: bool, one_line: bool) -> None:
    nodes = [
        node(name="n1", address="10.0.0.1", hostname="h%s1"),
        node(name="n2", address="n%d", hostname="h2"),
        node(name="n3", comment="90 % full, %s", features=["a,b"]),
        node(name="n4", comment="90 % full, %s", features=["a", "b"], partitions=[]),
        node(name="n5", cpu_load=None, last_busy=None, reason_time=None, owner=None),
        node(name="n6", gres_used=""),
        node(name="n7", address="10.0.0.1", hostname="h1"),
    ]
    texts = NodeTexts(details=details, one_line=one_line)
    for each in nodes:
        row = [each[name] for name in NODE_COLUMNS]
        assert texts.text(row) == render(node_lines(each, details=details), one_line=one_line)


@pytest.mark.parametrize("details", [True, False])
def test_of_jobs_what_is_shown_is_asked_for_and_no_more(*, details: bool) -> None:
    every = {name: SAMPLES[column.kind] for name, column in JOBS.items()}
    every |= {"node_shares": [], "cpu_ids": [], "record_flags": [], "flags": 0, "cpu_freq": "1000"}
    read: set[str] = set()
    for changes in (
        {"state": 0, "start_time": None, "end_time": None, "mail_user": "", "tres_allocated": ""},
        {"state": 1, "array_task_id": None, "array_task_expression": "1-2", "reason_detail": ""},
    ):
        job = Noting(every | changes)
        job_lines(job, details=details)
        read |= job.read
    assert read == set(job_columns(details=details))
