"""srun's own options: what is refused, what is passed over with a warning."""

from __future__ import annotations

import pytest

from understudy.commands.srun.own_options import check_own, debug_notice, het_groups
from understudy.commands.submission.job import BadOptionError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("send_libs", "1"), ("send_libs", "true"), ("relative", "1k"), ("resv_ports", "x")),
        *(("immediate", "x"), ("threads", ""), ("jobid", "x")),
    ],
)
def test_a_wrong_value_is_refused(name: str, value: str) -> None:
    with pytest.raises(BadOptionError):
        check_own(name, value)


@pytest.mark.parametrize(
    ("name", "value", "warns"),
    [
        *(("send_libs", "Y", False), ("compress", "LZ4", False), ("compress", "zlib", True)),
        *(("relative", "", False), ("kill_on_bad_exit", "", False), ("label", "", False)),
    ],
)
def test_what_is_passed_over_is_said(name: str, value: str, warns: bool) -> None:
    assert bool(check_own(name, value)) == warns


def test_groups_are_numbers_and_ranges_in_brackets_or_not() -> None:
    assert het_groups("[0-1]") == [0, 1]
    assert het_groups(" 1,4-5") == [1, 4, 5]
    for text, word in (("1,,2", "`'"), ("1-x", "`1-x'"), ("-1", "`-1'"), ("3-1", "`3-1'")):
        with pytest.raises(BadOptionError) as caught:
            het_groups(text)
        assert caught.value.lines[0].endswith(word)
    with pytest.raises(BadOptionError) as caught:
        het_groups("200")
    assert not caught.value.lines


def test_a_level_of_messages_is_a_number_or_a_name_up_to_verbose() -> None:
    assert not any(map(debug_notice, ("0", "4", "4x", "0x9", "inFO", "quiet")))
    assert all(map(debug_notice, ("", "5", "-1", "debug", "x")))
