"""The words of sacct's columns."""

import pytest

from understudy.experiments import sacct_words as words
from understudy.experiments.past import PARTITION_LIMIT, UNLIMITED


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    words._starts.clear()
    yield
    monkeypatch.undo()
    time.tzset()
    words._starts.clear()


@pytest.mark.parametrize(
    "text",
    [
        *(
            "2023-11-14T22:13:20",
            "1700000000",
            "2023-11-14 22:13:20",
            "2023/11/14 22:13:20",
            "2023-11-14T22:13:20.7",
        ),
        *("2023-11-14T23:13:20+01:00", "2023-11-14T22:13:20Z", "20231114T221320"),
    ],
)
def test_an_instant_is_read_in_every_form_that_can_be_decided(text):
    assert words.instant(text) == 1_700_000_000


@pytest.mark.parametrize("text", ["Unknown", "None", "", "N/A", "0"])
def test_an_instant_that_is_not_known_is_none(text):
    assert words.instant(text) is None


@pytest.mark.parametrize(
    "text",
    ["22:13:20", "14 Nov 22:13", "2023-13-41T22:13:20", "2023-11-14T22:13:99", "yesterday", "-5"],
)
def test_an_instant_that_cannot_be_decided_is_refused(text):
    with pytest.raises(ValueError, match="is no time of sacct"):
        words.instant(text)


def test_durations_and_limits_are_read():
    assert [
        words.duration(text) for text in ("1-02:03:04", "02:03:04", "03:04", "00:00.500", "90")
    ] == [93784, 7384, 184, 0, 90]
    assert words.limit("1-00:00:00", in_minutes=False) == 1440
    assert words.limit("00:00:30", in_minutes=False) == 1
    assert words.limit("1440", in_minutes=True) == 1440
    assert {
        words.limit(text, in_minutes=kind)
        for text in ("UNLIMITED", "infinite")
        for kind in (True, False)
    } == {UNLIMITED}
    assert words.limit("Partition_Limit", in_minutes=False) == PARTITION_LIMIT
    for text in ("1:2:3:4", "soon"):
        with pytest.raises(ValueError, match="is no duration"):
            words.duration(text)


def test_states_are_read_in_all_their_forms():
    texts = ("COMPLETED", "CANCELLED by 1000", "CANCELLED+", "OUT_OF_ME+", "CD", "TO", "completed")
    assert [words.state(text) for text in texts] == [
        "COMPLETED",
        "CANCELLED",
        "CANCELLED",
        "OUT_OF_MEMORY",
        "COMPLETED",
        "TIMEOUT",
        "COMPLETED",
    ]
    with pytest.raises(ValueError, match="'DONE' is no state"):
        words.state("DONE")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4Gc", (4096, "c")),
        ("8Gn", (8192, "n")),
        ("1600M", (1600, "")),
        ("1.50G", (1536, "")),
        ("0n", (0, "n")),
        ("512K", (1, "")),
        ("1T", (1 << 20, "")),
    ],
)
def test_memory_is_read_with_what_it_is_for(text, expected):
    assert words.megabytes(text) == expected


def test_exit_codes_are_read():
    assert [words.exit_code(text) for text in ("3:0", "0:9", "0:125", "", "256:0")] == [
        (3, 0),
        (0, 9),
        (0, 0),
        (0, 0),
        (0, 0),
    ]
