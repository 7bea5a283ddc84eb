"""Schedules by seed are compared by what two recordings agree on, and the first difference is told
first."""

from __future__ import annotations

from typing import Any

import pytest

from differential.schedules import differences

Jobs = dict[str, dict[str, Any]]


def job(start: int | None, end: int | None, nodes: str = "n1", **more: Any) -> dict[str, Any]:
    return {"state": "COMPLETED", "submit": 0, "start": start, "end": end, "nodes": nodes} | more


RECORDED: Jobs = {"a": job(3, 13), "b": job(20, 30, "n[1-2]"), "c": job(40, 50, "n2")}


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        ({}, []),
        ({"a": job(5, 15), "c": job(41, 51, "n2")}, []),
        ({"a": job(9, 19)}, ["a starts at 3, ours at 9"]),
        ({"b": job(20, 36, "n[1-2]")}, ["b ends at 30, ours at 36"]),
        ({"c": job(40, 50)}, ["c is on n2, ours on n1"]),
        ({"c": job(40, 50, "n2", state="TIMEOUT")}, ["c COMPLETED, ours TIMEOUT "]),
        ({"c": job(70, 80, "n2"), "a": job(30, 40)}, ["a starts at 3, ours at 30", "c starts"]),
        ({"b": job(None, None, "", state="PENDING", reason="Priority")}, ["b COMPLETED, ours wai"]),
    ],
)
def test_the_first_job_that_differs_comes_first(ours: Jobs, said: list[str]) -> None:
    found, repeatable = differences(RECORDED, RECORDED, RECORDED | ours)
    assert repeatable == 3
    told = [f"{name} {what}" for _, name, what in found]
    assert [text.startswith(each) for text, each in zip(told, said, strict=True)] == [True] * len(
        said
    )


def test_what_recordings_do_not_agree_on_is_not_compared() -> None:
    second = RECORDED | {"a": job(9, 19), "b": job(20, 30, "n[2-3]")}
    ours = RECORDED | {"a": job(70, 80), "b": job(20, 30, "n[3-4]")}
    assert differences(RECORDED, second, ours) == ([], 2)


def test_refused_jobs_are_compared_too() -> None:
    refused = {"state": "REJECTED", "message": "no"}
    failed = job(None, None, "", state="FAILED", reason="BadConstraints")
    assert differences({"a": refused}, {"a": failed}, {"a": refused}) == ([], 1)
    assert differences({"a": refused}, {"a": refused}, {"a": failed}) == ([], 1)
    found, _ = differences({"a": refused}, {"a": refused}, {"a": job(3, 13)})
    assert [what for _, _, what in found] == ["refused, ours COMPLETED "]
