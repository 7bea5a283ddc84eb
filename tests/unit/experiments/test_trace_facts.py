"""What a trace holds, and its picture. Covers: experiments/standing_alone."""

from xml.etree import ElementTree as ET

from understudy.experiments.trace import Trace, TraceJob
from understudy.experiments.trace_facts import facts, picture

JOBS = [TraceJob(n, (n - 1) * 100, 50, n, 100, 50, n, user=n % 2) for n in range(1, 5)]
HEADER = {"MaxNodes": "4", "MaxProcs": "8", "UnixStartTime": "0"}


def test_counts_and_load_are_right():
    found = facts(Trace(jobs=JOBS, header=HEADER))
    assert (found.jobs, found.span, found.processors, found.nodes) == (4, 300, 8, 4)
    assert found.load == 10 * 50 / (8 * 300)
    assert (found.serial, found.used) == (0.25, 0.5)
    assert found.kinds["users"] == 2
    assert found.quantiles["processors"][0] == 1
    assert found.quantiles["between submissions"] == (100.0,) * 6
    assert "1970-01-01 00:00:00" in found.text()


def test_what_nobody_says_is_said():
    text = facts(Trace(jobs=JOBS)).text()
    assert "nobody says how large" in text
    assert "nobody says when" in text
    assert "offered load           -" in text
    assert facts(Trace(jobs=JOBS), 5, 2).processors == 10
    assert facts(Trace()).text()


def test_the_picture_is_a_file_that_stands_alone():
    drawn = picture(Trace(jobs=JOBS), 8)
    root = ET.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(root.findall("{http://www.w3.org/2000/svg}svg")) == 2
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
    ET.fromstring(picture(Trace(jobs=JOBS[:1]), 0))
