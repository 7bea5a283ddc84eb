"""AccountingStorageEnforce."""

import pytest

from understudy.controller.tables.settings import Enforced


@pytest.mark.parametrize(
    ("text", "on"),
    [
        ("", ""),
        ("none", ""),
        ("associations", "associations"),
        ("limits", "associations limits"),
        ("qos", "associations qos"),
        ("limits,qos", "associations limits qos"),
        ("safe", "associations limits safe"),
        ("wckeys", "associations wckeys"),
        ("ALL", "associations limits qos safe wckeys"),
    ],
)
def test_words_bring_others_with_them(text: str, on: str) -> None:
    enforced = Enforced.of(text.split(","))
    assert [
        name
        for name in ("associations", "limits", "qos", "safe", "wckeys")
        if getattr(enforced, name)
    ] == on.split()


def test_without_jobs_there_are_no_steps() -> None:
    assert (Enforced.of(["nosteps"]).jobs, Enforced.of(["nosteps"]).steps) == (True, False)
    assert (Enforced.of(["nojobs"]).jobs, Enforced.of(["nojobs"]).steps) == (False, False)
