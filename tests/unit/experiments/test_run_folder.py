"""What a run leaves: tables, summary, report.

Covers: experiments/drawing, experiments/records, experiments/report.
"""

import csv
import hashlib
import json
import re
from html.parser import HTMLParser

import pyarrow.parquet as pq
import pytest

from understudy.experiments.drawing import duration, linear_axis, wait_axis
from understudy.experiments.lublin import generate
from understudy.experiments.metrics import summarize
from understudy.experiments.records import FIELDS as ALL_FIELDS
from understudy.experiments.records import REJECTED, JobRecord, canonical_lines
from understudy.experiments.report import Told, report
from understudy.experiments.run_folder import (
    JobsFile,
    read_run_folder,
    write_run_folder,
)

FIELDS = ["job", "submit", "start", "end", "state", "cpus", "nodes", "req_time"]
RECORDS = [
    JobRecord(1, 0, 0, 100, "COMPLETED", 2, "n[1-2]", 120),
    JobRecord(3, 20, None, None, REJECTED, 9, "", 60),
    JobRecord(2, 10, 100, 160, "TIMEOUT", 3, "n[1,3-4]", 60),
]


@pytest.fixture
def folder(tmp_path):
    page = write(tmp_path / "runs" / "A")
    assert page == tmp_path / "runs" / "A" / "report.html"
    return page.parent


def write(folder):
    return write_run_folder(
        folder,
        RECORDS,
        summarize(RECORDS, 4, 1.5),
        cpus=4,
        config={"scheduler": "easy", "nodes": 4},
        slurm_conf="NodeName=n[1-4]\n",
    )


def test_the_csv_has_the_records_in_job_order(folder):
    rows = list(csv.reader((folder / "jobs.csv").read_text().splitlines()))
    assert rows[0] == list(ALL_FIELDS)
    assert [row[:8] for row in rows] == [
        FIELDS,
        ["1", "0", "0", "100", "COMPLETED", "2", "n[1-2]", "120"],
        ["2", "10", "100", "160", "TIMEOUT", "3", "n[1,3-4]", "60"],
        ["3", "20", "", "", "REJECTED", "9", "", "60"],
    ]
    assert [row[8:10] for row in rows] == [["wait", "run"], ["0", "100"], ["90", "60"], ["", ""]]


def test_the_parquet_file_has_the_same_with_types(folder):
    table = pq.read_table(folder / "jobs.parquet")
    assert table.column_names == list(ALL_FIELDS)
    kinds = dict(zip(table.column_names, map(str, table.schema.types), strict=True))
    assert [kinds[name] for name in FIELDS] == ["int64"] * 4 + [
        "string",
        "int64",
        "string",
        "int64",
    ]
    assert [kinds[name] for name in ("wait", "run", "id", "eligible", "reason", "backfilled")] == [
        "int64",
        "int64",
        "string",
        "int64",
        "string",
        "bool",
    ]
    rows = [tuple(row.values()) for row in table.to_pylist()]
    assert rows == [
        tuple(getattr(r, f) for f in ALL_FIELDS) for r in sorted(RECORDS, key=lambda r: r.job)
    ]


def test_the_summary_has_figures_by_group(folder):
    by = json.loads((folder / "summary.json").read_text())["by"]
    assert [(group["name"], group["jobs"], group["ran"],
        group["wait_p99"]) for group in by["size"]] == [
        ("2", 1, 1, 0.0), ("3-4", 1, 1, 90.0), ("9-16", 1, 0, None),
    ]  # fmt: skip
    assert [(group["name"], group["jobs"], group["cpu_seconds"]) for group in by["user"]] == [
        ("", 3, 380)
    ]


def test_a_run_that_goes_on_has_its_jobs_on_disk_and_nothing_of_the_run_before(folder):
    file = JobsFile(folder)
    file.add(RECORDS[:1])
    assert (
        (folder / "jobs.csv")
        .read_text()
        .splitlines()[1]
        .startswith("1,0,0,100,COMPLETED,2,n[1-2],120,0,100,")
    )
    file.close()
    assert not (folder / "summary.json").exists()
    assert not (folder / "report.html").exists()


def test_the_summarys_hash_is_that_of_the_records(folder):
    summary = json.loads((folder / "summary.json").read_text())
    assert (
        summary["schedule_sha256"]
        == hashlib.sha256("".join(canonical_lines(RECORDS)).encode()).hexdigest()
    )
    assert (summary["jobs"], summary["makespan"], summary["wall_seconds"]) == (3, 160, 1.5)


def test_the_configuration_is_kept(folder):
    assert json.loads((folder / "config.json").read_text()) == {"scheduler": "easy", "nodes": 4}
    assert (folder / "slurm.conf").read_text() == "NodeName=n[1-4]\n"


def test_nothing_else_is_left_in_the_folder(folder):
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json",
        "jobs.csv",
        "jobs.parquet",
        "report.html",
        "slurm.conf",
        "summary.json",
    ]


def test_without_pyarrow_all_but_the_parquet_file_is_there_and_an_old_one_is_not(
    folder, monkeypatch
):
    monkeypatch.setattr("understudy.experiments.run_tables.find_spec", lambda _name: None)
    write(folder)
    assert sorted(path.suffix for path in folder.iterdir()) == [
        *(".conf", ".csv", ".html", ".json", ".json"),
    ]


class Page(HTMLParser):
    """Checks that elements are closed in order and collects what would be fetched."""

    VOID = ("meta", "br", "img", "link", "input")

    def __init__(self, text):
        super().__init__()
        self.open, self.fetched, self.tags = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.fetched += [
            value for name, value in attrs if name in ("src", "href", "action", "data")
        ]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_report_is_one_well_formed_file_that_fetches_nothing(folder):
    text = (folder / "report.html").read_text()
    page = Page(text)
    assert page.fetched == []
    assert not re.search(r"@import|url\(|\bfetch\(|XMLHttpRequest|<link", text)
    assert page.tags.count("svg") == 2
    assert {"gantts", "use", "queue", "waits", "heat"} <= set(re.findall(r'id="(\w+)"', text))
    assert "NodeName=n[1-4]" in text


def test_text_from_outside_cannot_become_markup():
    told = Told(
        RECORDS,
        summarize(RECORDS, 4, 1.0),
        4,
        title="<script>alert(1)</script>",
        config={"a<b": "</table>"},
        slurm_conf="</pre><b>",
    )
    for text in (report(told), report(told, told)):
        Page(text)
        assert "<script>alert" not in text
        assert "</pre><b>" not in text


def test_a_report_without_a_job_that_ran_says_so():
    text = report(Told([RECORDS[1]], summarize([RECORDS[1]], 4, 1.0), 4))
    Page(text)
    assert "No job ran" in text
    assert "mean wait" not in text.split("Key figures")[0]


def test_a_report_of_many_jobs_stays_small():
    jobs = generate(jobs=30_000, nodes=512, days=300, load=0.7, seed=1)
    records = [
        JobRecord(
            j.id,
            j.submit,
            j.submit + j.id % 5_000,
            j.submit + j.id % 5_000 + j.run,
            "COMPLETED",
            j.procs,
            "n1",
            j.req,
        )
        for j in jobs
    ]
    assert len(report(Told(records, summarize(records, 512, 30.0), 512))) < 800_000


def test_who_started_the_jobs_is_told_with_their_waits():
    records = [
        JobRecord(1, 0, 0, 50, "COMPLETED", 1, "n1", 9, scheduled_by="Main"),
        JobRecord(2, 0, 60, 210, "COMPLETED", 1, "n1", 9, scheduled_by="Backfill", backfilled=True),
    ]
    text = report(Told(records, summarize(records, 4, 1.0), 4))
    (section,) = re.findall(r"<h2>Who started the jobs</h2>.*?</section>", text, re.DOTALL)
    cells = re.findall(r"<td>([^<]*)</td>", section)
    assert cells[:7] == [
        "by the backfill scheduler", "1", "50.0 %", "75.0 %", "1 min", "1 min", "1 min",
    ]  # fmt: skip


def test_two_runs_have_their_figures_side_by_side():
    first, second = (
        Told(RECORDS, summarize(RECORDS, 4, s), 4, title=t) for s, t in ((1, "A"), (9, "B"))
    )
    text = report(first, second)
    Page(text)
    rows = re.findall(r"<tr><td>wall time</td><td>([^<]*)</td><td>([^<]*)</td></tr>", text)
    assert rows == [("1.00 s", "9.00 s")]


def test_a_folder_is_read_as_it_was_written(folder):
    told = read_run_folder(folder)
    assert told.records == sorted(RECORDS, key=lambda record: record.job)
    assert (told.cpus, told.config["nodes"], told.title) == (4, 4, "A")
    known = json.loads((folder / "summary.json").read_text())
    assert told.summary.schedule_sha256 == known["schedule_sha256"]
    assert told.summary.wall_seconds == known["wall_seconds"]


def test_jobs_csv_alone_is_enough_with_as_many_cpus_as_jobs_held(folder):
    for name in ("summary.json", "config.json", "slurm.conf"):
        (folder / name).unlink()
    told = read_run_folder(folder)
    assert (told.cpus, len(told.records), told.config) == (3, 3, {})


def test_a_run_of_nothing_is_read_as_well(tmp_path):
    (tmp_path / "jobs.csv").write_text("job,submit,start,end,state,cpus,nodes,req_time\n")
    told = read_run_folder(tmp_path)
    assert (told.records, told.cpus) == ([], 1)
    (tmp_path / "jobs.csv").write_text(
        "job,submit,start,end,state,cpus,nodes,req_time\n1,9,0,5,C,0,,-1\n"
    )
    assert "1 jobs on 1 CPUs" in report(read_run_folder(tmp_path))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("jobs.csv", "", "empty"),
        ("jobs.csv", "a,b\n1,2\n", "line 1: expected the columns of jobs.csv"),
        ("jobs.csv", "job,submit,start,end,state,cpus,nodes,req_time\n1,x,,,S,1,,1\n", "line 2: "),
        ("jobs.csv", "job,submit,start,end,state,cpus,nodes,req_time\n1,0\n", "line 2: 2 columns"),
        ("config.json", "{", "config.json: "),
        ("summary.json", "[]", "not an object"),
    ],
)
def test_what_is_no_run_is_said_with_file_and_line(folder, name, text, said):
    (folder / name).write_text(text)
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        read_run_folder(folder)
    assert str(folder / name) in str(caught.value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0"),
        (1, "1 s"),
        (45.25, "45.2 s"),
        (60, "1 min"),
        (5400, "1.5 h"),
        (86_400, "1 d"),
        (200_000, "2.3 d"),
        (1e9, "11,574 d"),
    ],
)
def test_durations_read_as_people_say_them(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize("largest", [1e-3, 0.7, 1, 99, 100, 101, 123_456])
def test_a_linear_axis_reaches_the_largest_value_with_a_handful_of_names(largest):
    axis = linear_axis(largest, "y")
    assert axis.ticks[-1][0] >= largest
    assert 3 <= len(axis.ticks) <= 12
    assert [axis.place(value) for value, _ in (axis.ticks[0], axis.ticks[-1])] == pytest.approx(
        [0, 1]
    )


def test_the_axis_of_waits_begins_at_zero_and_holds_the_longest():
    axis = wait_axis(1e6, "wait")
    assert axis.place(0) == 0
    assert 0.9 < axis.place(1e6) < 1


def test_what_is_written_goes_on_in_another_folder_with_what_there_is(tmp_path):
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    mine.mkdir()
    theirs.mkdir()
    (theirs / "summary.json").write_text("of an earlier run")
    file = JobsFile(mine)
    file.add(RECORDS[:1])
    before = (mine / "jobs.csv").read_text()
    file.move(theirs)
    file.add(RECORDS[:1])
    file.close()
    assert (mine / "jobs.csv").read_text() == before
    lines = (theirs / "jobs.csv").read_text().splitlines()
    assert lines == [*before.splitlines(), before.splitlines()[1]]
    assert not (theirs / "summary.json").exists()
