"""What a comparison leaves and says.

Covers: experiments/outcomes/tables, experiments/outcomes/write.
"""

import csv
import json
from html.parser import HTMLParser

import pytest
from outcomes_harness import written

from understudy.experiments.outcomes import tables
from understudy.experiments.outcomes.compare import compare
from understudy.experiments.outcomes.page import page
from understudy.experiments.outcomes.write import write_comparison
from understudy.experiments.records import JobRecord

VOID = {"meta", "line", "path", "br"}


@pytest.fixture
def comparison(tmp_path):
    first = [
        JobRecord(n, n, n + 10, n + 99, "COMPLETED", n, "n1", 60, f"j<{n}>", user=f"u&{n % 2}")
        for n in range(1, 7)
    ]
    second = [
        JobRecord(n, n, n + 10 * n, n + 99 * n, "COMPLETED", n, "n1", 60, f"j<{n}>")
        for n in range(1, 6)
    ]
    runs = [
        written(tmp_path / "a.csv", first), written(tmp_path / "b.csv", second),
        written(tmp_path / "c.csv", first[:1]),
    ]  # fmt: skip
    return compare(runs)


class Checked(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.links = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(comparison):
    text = page(comparison)
    checked = Checked()
    checked.feed(text)
    assert (checked.open, checked.links) == ([], [])
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    assert "j&lt;2&gt;" in text
    assert "j<2>" not in text
    assert "B against A" in text
    assert "C against A" in text


def test_there_is_a_line_for_each_job_and_a_column_for_each_run(comparison, tmp_path):
    write_comparison(tmp_path / "out", comparison)
    text = (tmp_path / "out" / "compare.csv").read_text()
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["id"] for row in rows] == [f"j<{n}>" for n in range(1, 7)]
    assert [row["longer_B"] for row in rows] == ["0", "10", "20", "30", "40", ""]
    assert [row["start_C"] for row in rows] == ["11", "", "", "", "", ""]


def test_the_json_has_all_figures(comparison, tmp_path):
    write_comparison(tmp_path / "out", comparison)
    found = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert found["against"][0]["wait"]["difference"]["mean"] == 20.0
    assert [run["letter"] for run in found["runs"]] == ["A", "B", "C"]
    assert found["against"][1]["not_in_this"]["count"] == 5


def test_a_comparison_replaces_an_earlier_one(comparison, tmp_path):
    for _ in range(2):
        write_comparison(tmp_path / "out", comparison)
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["compare.csv", "compare.html", "compare.json"]


def test_sentences_say_who_and_how_many(comparison):
    told = tables.sentences(comparison.against[0], "A")
    assert "5 jobs are in both; 5 started in both, 1 of them at the same time" in told
    assert "4 wait longer in B, 0 shorter, 1 as long" in told
    assert "1 job in A only: j<6>" in told
    assert any(
        line.startswith("users that wait longer in all by most: u&1 +1 min") for line in told
    )


def test_figures_stand_beside_their_differences(comparison):
    table = tables.figures(comparison)
    assert table.head == ("", "A", "B", "C", "B \N{MINUS SIGN} A", "C \N{MINUS SIGN} A")
    assert ("mean wait", "10 s", "30 s", "10 s", "+20 s", "0") in table.rows


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0"), (None, tables.NONE), (90, "+1.5 min"), (-90, "\N{MINUS SIGN}1.5 min")],
)
def test_differences_have_their_sign(seconds, text):
    assert tables.signed(seconds) == text


def test_more_groups_than_are_shown_are_counted(comparison):
    (size, *_) = tables.by_way(comparison.against[0], "A", 2)
    assert (size.title, len(size.rows), size.more) == ("By size", 2, 2)
