"""The page on messages down trees of sockets."""

import re

import pytest

from understudy.experiments.fan_out_page import FanOutRow, fan_out_page


def row(nodes, width, levels=2, seconds=0.5, **more):
    fields = {
        "slowest_s": 2 * seconds, "hop_s": 0.01, "sender_cpu_s": 0.003, "sender_messages": width,
        "sender_bytes": 4096.0, "cpu_s": 0.1, "repeated": 0.0,
    }  # fmt: skip
    return FanOutRow(nodes=nodes, width=width, levels=levels, seconds=seconds, **fields | more)


ROWS = [row(64, 2, 6), row(4096, 2, 12, 3.0), row(64, 0, 1), row(4096, 0, 1, 1.0)]


def test_the_model_is_a_hop_a_level():
    assert row(64, 2, 6).model_s == pytest.approx(0.06)


def test_each_measurement_is_a_dot_and_a_line_of_the_table_and_each_width_has_a_model():
    page = fan_out_page(ROWS, [("CPUs", "2 <of> them")])
    assert page.count("<circle") == 3 * len(ROWS)
    assert len(re.findall("<tr><td>[0-9,]+</td><td>(2|flat)</td>", page)) == len(ROWS)
    assert len(re.findall('class="w[01] model"', page)) == 2
    assert "4,096 nodes, width flat: 1,000.0 milliseconds" in page
    assert "2 &lt;of&gt; them" in page


def test_one_size_alone_is_a_page_too():
    assert "<circle" in fan_out_page([row(1, 2, 1)], [])
