"""Times, durations, sizes and signals as 22.05's commands take and print them.

Covers: model/moments.
"""

import os
import time
from collections.abc import Iterator

import pytest

from understudy.model import moments, times

NOW = 1795253684  # 2026-11-21T09:34:44 UTC


@pytest.fixture(autouse=True)
def _utc() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.parametrize(
    ("text", "number", "rest"),
    [("", 0, ""), ("x", 0, "x"), ("5", 5, ""), ("5x", 5, "x"), ("-5", -5, ""), ("+5", 5, ""),
     (" 5", 5, ""), ("- 5", 0, "- 5"), ("5%7", 5, "%7"), ("--5", 0, "--5"), ("\u0665", 0, "\u0665"),
     ("4294967296", 1 << 32, "")],
)  # fmt: skip
def test_digits_count_until_something_else_follows(text, number, rest):
    assert times.split_number(text) == (number, rest)


@pytest.mark.parametrize(
    ("text", "number"),
    [("-5x", -5), ("2147483648", -(1 << 31)), ("4294967296", 0), ("99999999999", 1215752191),
     ("99999999999999999999", -1)],
)  # fmt: skip
def test_an_integer_of_c_has_32_bits(text, number):
    assert times.leading_integer(text) == number


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800),
        ("0", 0),
        ("90:30", 5430),
        ("0:30", 30),
        ("1:2:3", 3723),
        ("1-0", 86400),
        ("1-", 86400),
        ("1-2", 93600),
        ("1-2:3", 93780),
        ("1-2:3:4", 93784),
        ("99:99:99", 362439),
        ("2-25:61", 266460),
        ("UNLIMITED", None),
        ("infinite", None),
        ("-1", None),
    ],
)
def test_time_limits_are_read_in_all_six_forms(text: str, seconds: int | None) -> None:
    assert times.parse_limit(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "unlim",
        "1:2:3:4",
        "1-2:3:4:5",
        "1d",
        "5m",
        "-5",
        ":30",
        "1:",
        "1-2-",
        "1 2",
        "9999999999",
        "\u0661",
    ],
)
def test_other_texts_are_no_time_limits(text: str) -> None:
    with pytest.raises(ValueError, match="Invalid time limit"):
        times.parse_limit(text)


def test_limits_are_rounded_up_to_minutes() -> None:
    assert [times.whole_minutes(seconds) for seconds in (0, 1, 60, 61)] == [0, 60, 60, 120]


@pytest.mark.parametrize(
    ("seconds", "duration"),
    [
        (0, "00:00:00"),
        (59, "00:00:59"),
        (600, "00:10:00"),
        (3600, "01:00:00"),
        (86399, "23:59:59"),
        (93784, "1-02:03:04"),
        (36525 * 86400, "36525-00:00:00"),
        (None, "UNLIMITED"),
        (-1, "INVALID"),
    ],
)
def test_durations_are_printed_as_scontrol_does(seconds: int | None, duration: str) -> None:
    assert times.format_duration(seconds) == duration


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("now", "2026-11-21T09:34:44"),
        ("NOW", "2026-11-21T09:34:44"),
        ("now+60", "2026-11-21T09:35:44"),
        ("now+1hour", "2026-11-21T10:34:44"),
        ("now + 1 hour", "2026-11-21T10:34:44"),
        ("now+2days", "2026-11-23T09:34:44"),
        ("now+1week", "2026-11-28T09:34:44"),
        ("now-1hour", "2026-11-21T08:34:44"),
        ("16:00", "2026-11-21T16:00:00"),
        ("16:00:30", "2026-11-21T16:00:30"),
        ("4:30PM", "2026-11-21T16:30:00"),
        ("12:00AM", "2026-11-22T00:00:00"),
        ("12:30pm", "2026-11-21T12:30:00"),
        ("0:00", "2026-11-22T00:00:00"),
        ("midnight", "2026-11-22T00:00:00"),
        ("noon", "2026-11-21T12:00:00"),
        ("fika", "2026-11-21T15:00:00"),
        ("teatime", "2026-11-21T16:00:00"),
        ("today", "2026-11-21T00:00:00"),
        ("tomorrow", "2026-11-22T00:00:00"),
        ("2030-01-20", "2030-01-20T00:00:00"),
        ("2030-01-20T12:34", "2030-01-20T12:34:00"),
        ("2030-01-20T12:34:56", "2030-01-20T12:34:56"),
        ("012030", "2030-01-20T00:00:00"),
        ("01/20/30", "2030-01-20T00:00:00"),
        ("01.20.30", "2030-01-20T00:00:00"),
        ("01/20", "2027-01-20T00:00:00"),
        ("0120", "2027-01-20T00:00:00"),
        ("2030-01-20T12:00 13:00", "2030-01-20T13:00:00"),
        ("12/31", "2026-12-31T00:00:00"),
        ("1970-01-01-00:00:01", "1970-01-01T00:00:01"),
        ("12/01/26-10:00", "2026-12-01T10:00:00"),
        ("10:00 - 12/01", "2026-12-01T10:00:00"),
        ("10:00  AM-12/01", "2026-12-01T10:00:00"),
        ("TT10:00--T", "2026-11-21T10:00:00"),
        ("tomorrowT10:00", "2026-11-22T10:00:00"),
        ("2026-12-01-midnight", "2026-12-01T00:00:00"),
        ("NOON-12/01", "2026-12-01T12:00:00"),
        ("tOday", "2026-11-21T00:00:00"),
        ("2026-12-01 2026-12-02", "2026-12-02T00:00:00"),
        ("10:00 11:00", "2026-11-21T11:00:00"),
        ("today tomorrow", "2026-11-22T00:00:00"),
        ("2030-01-20 12:34", "2030-01-20T12:34:00"),
        ("12:34 2030-01-20", "2030-01-20T12:34:00"),
        ("16:00 tomorrow", "2026-11-22T16:00:00"),
        ("noon 01/20/30", "2030-01-20T12:00:00"),
        ("16:00 01/20", "2027-01-20T16:00:00"),
        ("uts1700000000", "2023-11-14T22:13:20"),
        ("2020-01-01", "2020-01-01T00:00:00"),
        ("2030-02-30", "2030-03-02T00:00:00"),
    ],
)
def test_points_in_time_are_read_as_sbatch_reads_begin(text: str, result: str) -> None:
    assert (
        time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(moments.parse_time(text, NOW))) == result
    )


@pytest.mark.parametrize(
    "text",
    [
        "", "now+5min", "now+1h", "now+1.5hours", "now+1x", "4PM", "12AM", "4 PM", "elevenses",
        "2030-1-2", "01/20/2030", "01202030",
        "tomorrow+1hour", "25:00", "10:61", "13:00PM", "16", "1700000000", "Today", "junk",
        "13/01/30", "00/01/30", "2030-01-20T25:00",
        "0000-01-01", "2026-11-22/10:00", "2026-11-22:10:00", "20261122-10:00", "10:00-AM",
        "TOMORROW", "2026-11-22T10",
    ],
)  # fmt: skip
def test_other_texts_are_no_points_in_time(text: str) -> None:
    with pytest.raises(ValueError, match="Invalid time specification"):
        moments.parse_time(text, NOW)


@pytest.mark.parametrize(
    ("text", "megabytes"),
    [
        ("4G", 4096),
        ("4g", 4096),
        ("4GB", 4096),
        ("1024", 1024),
        ("100K", 1),
        ("1025K", 2),
        ("1T", 1048576),
        ("2M", 2),
        ("100mb", 100),
        ("0", 0),
    ],
)
def test_memory_sizes_are_read_in_megabytes(text: str, megabytes: int) -> None:
    assert times.parse_memory(text) == megabytes


@pytest.mark.parametrize("text", ["", "1.5G", "1Ki", "1P", "3x", "-1", "G"])
def test_other_texts_are_no_memory_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="Invalid memory"):
        times.parse_memory(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("USR1", 10),
        ("SIGTERM", 15),
        ("9", 9),
        ("usr2", 12),
        ("SIGusr2", 12),
        ("65", 65),
        ("URG", 23),
    ],
)
def test_signals_are_read_by_name_or_number(text: str, number: int) -> None:
    assert times.parse_signal(text) == number


@pytest.mark.parametrize("text", ["FOO", "0", "", "SEGV", "-1", "SIG"])
def test_other_texts_are_no_signals(text: str) -> None:
    with pytest.raises(ValueError, match="Invalid signal"):
        times.parse_signal(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("USR1", (10, 60, False, False)),
        ("usr1@30", (10, 30, False, False)),
        ("B:TERM@60", (15, 60, True, False)),
        ("R:9", (9, 60, False, True)),
        ("BR:9@0", (9, 0, True, True)),
    ],
)
def test_the_signal_option_is_split(text: str, parts: tuple[int, int, bool, bool]) -> None:
    assert times.parse_signal_option(text) == parts


@pytest.mark.parametrize("text", ["HUP@70000", "X:9", ":9", "9@x", "B:"])
def test_other_signal_options_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Invalid signal"):
        times.parse_signal_option(text)
