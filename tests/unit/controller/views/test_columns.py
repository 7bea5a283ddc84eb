"""Rows of many records: attributes, constants, and what has to be worked out."""

from __future__ import annotations

from types import SimpleNamespace

from understudy.controller.views.columns import Attribute, Constant, Extra, Unless, rows_of

RECORDS = [SimpleNamespace(name=f"n{at}", spec=SimpleNamespace(size=at)) for at in range(3)]


def test_rows_hold_the_columns_in_order() -> None:
    getters = [
        Constant("c"),
        Attribute("spec.size"),
        lambda context, record, now: (context, record.name, now),
        Attribute("name"),
    ]
    rows = rows_of(getters, RECORDS, "core", 7)
    assert rows == [["c", at, ("core", f"n{at}", 7), f"n{at}"] for at in range(3)]
    assert rows == [[getter("core", each, 7) for getter in getters] for each in RECORDS]


def test_without_columns_there_are_empty_rows_and_without_records_none() -> None:
    assert rows_of([], RECORDS, None) == [[], [], []]
    assert rows_of([Constant(1), Attribute("name")], [], None) == []


def test_a_word_of_extra_is_read_of_each_job_where_any_has_said_it() -> None:
    said = [{}, {"power": "level"}, {"other": "x"}]
    jobs = [SimpleNamespace(spec=SimpleNamespace(extra=each)) for each in said]
    getters = [Extra("power", lambda text: text or "none"), Extra("mcs", lambda text: text)]
    expected = [["none", None], ["level", None], ["none", None]]
    assert rows_of(getters, jobs, "core") == expected
    assert [[getter("core", job) for getter in getters] for job in jobs] == expected


def test_a_column_that_is_empty_for_all_of_a_batch_is_worked_out_for_none_of_them() -> None:
    asked: list[int] = []

    def doubled(context: str, record: SimpleNamespace, more: int) -> int:
        asked.append(record.held)
        return 2 * record.held + more

    getters = [Unless("held", None, 0, doubled), Unless("held", 3, "three", doubled)]
    records = [SimpleNamespace(held=each) for each in (None, 3, 4)]
    assert rows_of(getters[:1], [records[0]] * 2, "core", 1) == [[0], [0]]
    assert rows_of(getters[1:], [records[1]] * 2, "core", 1) == [["three"], ["three"]]
    assert asked == []
    assert rows_of(getters, records[1:], "core", 1) == [[7, "three"], [9, 9]]
    assert [[getter("core", each, 1) for getter in getters] for each in records[1:]] == [
        [7, "three"],
        [9, 9],
    ]
