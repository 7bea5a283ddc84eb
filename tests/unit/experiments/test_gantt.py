"""Plans as pictures."""

import re
from xml.etree import ElementTree as ET

import pytest

from understudy.experiments.gantt import as_json, drawing, duration, page, plan_of
from understudy.model.states import JobState

# job_id name user_name state cpus nodes expected_nodes start_time expected_start time_limit_s
ROWS = [
    [1, "one", "u1", JobState.RUNNING, 2, "n[1-2]", "", 1000, None, 600],
    [2, "<two>", "u2", JobState.PENDING, 3, "", "n[1,3-4]", None, 1600, 60],
    [3, "three", "u2", JobState.PENDING, 4, "", "", None, 1660, None],
    [4, "four", "u2", JobState.PENDING, 9, "", "", None, None, 60],
]


@pytest.fixture
def plan():
    return plan_of(ROWS, at=100, zero=1000.0, nodes="n[1-4]")


def rectangles(text):
    """(class, height) of the jobs in an SVG."""
    return re.findall(r'<rect class="(job[^"]*)" .*?height="([\d.]+)"', text)


def test_a_plan_counts_from_its_zero_and_says_who_has_no_start(plan):
    assert [(job["id"], job["runs"], job["start"], job["end"]) for job in plan["jobs"]] == [
        (1, True, 0, 600),
        (2, False, 600, 660),
        (3, False, 660, 660 + 365 * 86_400),
    ]
    assert (plan["waiting"], plan["jobs"][1]["nodes"]) == (1, "n[1,3-4]")
    assert '"at": 100' in as_json(plan)


def test_neighbouring_nodes_are_one_bar_and_who_has_no_nodes_is_below(plan):
    drawn = drawing(plan)
    assert rectangles(drawn) == [
        ("job", "28.0"),
        ("job planned", "14.0"),
        ("job planned", "28.0"),
        ("job planned", "10.0"),
    ]
    assert "elsewhere" in drawn
    assert "job 2 (&lt;two&gt;) of u2: 3 CPUs, planned for 00:10:00" in drawn


def test_what_begins_behind_the_end_of_the_drawing_is_left_out(plan):
    assert len(rectangles(drawing(plan, ahead_s=300))) == 1


def test_the_drawing_and_the_page_are_whole(plan):
    ET.fromstring(drawing(plan))
    text = page(plan, "Plan of <run>")
    assert "1 job running, 2 planned (pale), 1 job without a planned start" in text
    assert "Plan of &lt;run&gt;" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_ticks_are_round_times_and_few(plan):
    for ahead in (600, 7_000, 90_000, 900_000, 40_000_000):
        told = re.findall(r'class="tick".*?<text[^>]*>([^<]*)<', drawing(plan, ahead_s=ahead))
        assert 1 <= len(told) <= 9
        assert all(each.endswith(":00") for each in told)


def test_a_bar_with_room_for_it_has_the_jobs_number(plan):
    drawn = drawing(plan, ahead_s=700)
    assert re.findall(r'<text class="id ([\w-]+)"[^>]*>(\d+)<', drawn) == [
        ("dark", "1"),
        ("on-pale", "2"),
        ("on-pale", "2"),
        ("on-pale", "3"),
    ]


def test_it_is_dark_for_who_wants_it_dark_alone_and_on_its_page(plan):
    assert "prefers-color-scheme: dark" in drawing(plan)
    head = page(plan, "x").partition("</head>")[0]
    assert "prefers-color-scheme: dark" in head


def test_an_empty_cluster_has_a_picture_too():
    ET.fromstring(drawing(plan_of([], at=0, zero=0.0, nodes="n1")))


def test_durations_are_as_slurm_writes_them_but_for_the_d():
    assert [duration(second) for second in (0, 3661, 90_000)] == [
        "00:00:00",
        "01:01:01",
        "1d01:00:00",
    ]
