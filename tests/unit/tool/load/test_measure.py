"""Counts and latencies of a load."""

import json

import pytest

from understudy.tool.load.measure import Tally, record


def tally(*latencies_s, errors=()):
    found = Tally(sent=len(latencies_s), answered=len(latencies_s), acknowledged=1)
    for each in latencies_s:
        record(found.latencies, each)
    found.errors.update(errors)
    return found


def test_percentiles_are_those_of_the_latencies():
    figures = tally(*(each / 1000 for each in range(1, 1001))).figures(10.0)
    assert figures["p50_ms"] == pytest.approx(500, rel=0.002)
    assert figures["p99_9_ms"] == pytest.approx(999, rel=0.002)
    assert figures["max_ms"] == pytest.approx(1000, rel=0.002)
    assert figures["mean_ms"] == pytest.approx(500.5, rel=0.002)
    assert figures["per_second"] == 100.0


def test_what_is_beyond_the_scale_is_at_its_ends():
    ends = tally(0.0, 1e6)
    assert ends.percentile_ms(1) == 0.001
    assert ends.percentile_ms(100) == pytest.approx(3_600_000, rel=0.002)


def test_nothing_has_no_latency():
    figures = Tally().figures(0.0)
    assert (figures["p50_ms"], figures["mean_ms"], figures["per_second"]) == (0.0, 0.0, 0.0)


def test_parts_add_up_to_the_whole_also_by_way_of_json():
    parts = [tally(0.001, 0.5, errors=["no"]), tally(0.02, errors=["no", "never"]), Tally()]
    whole = Tally()
    for part in parts:
        whole.add(Tally.unpacked(json.loads(json.dumps(part.packed()))))
    expected = tally(0.001, 0.5, 0.02, errors=["no", "no", "never"])
    expected.acknowledged = 2
    assert whole.figures(1.0) == expected.figures(1.0)
