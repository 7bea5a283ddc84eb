"""`scontrol show burstbuffer`: what is printed of the row that the controller gives.

The lines of lua are those that 22.05.8 printed (see also
tests/unit/controller/jobs/test_buffers_kept.py).
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from understudy.commands.scontrol.burst_buffer import lines, show_burst_buffer

GIB = 1 << 30
ROW = {
    "name": "datawarp",
    "default_pool": "wlm",
    "granularity": GIB,
    "total": 10 * GIB,
    "used": 12 * GIB,
    "pools": [["wlm", GIB, 10 * GIB, 12 * GIB]],
    "flags": "EnablePersistent",
    "timeouts_s": [1, 2, 3, 4],
    "allow_users": "ann,bob",
    "deny_users": "",
    "get_sys_state": "/opt/dwcli",
    "get_sys_status": "",
    "buffers": [
        ["kept", 0, 0, None, 0, "wlm", 4 * GIB, "allocated", 7, "ann"],
        ["", 12, 10, 3, 0, "wlm", 8 * GIB, "allocated", 7, "ann"],
    ],
    "users": [["ann", 7, 12 * GIB]],
}


def session(rows, one_line=False):
    printed = []
    context = SimpleNamespace(
        client=SimpleNamespace(query=lambda _table, _columns: SimpleNamespace(rows=rows)),
        print=printed.append,
    )
    return SimpleNamespace(context=context, one_line=one_line, say=printed.append), printed


def test_all_that_can_be_there_is_shown(monkeypatch):
    monkeypatch.setattr("understudy.commands.scontrol.burst_buffer.timestamp", lambda _when: "T")
    space = "Granularity=1GiB TotalSpace=10GiB FreeSpace=0 UsedSpace=12GiB"
    assert lines(ROW) == [
        f"Name=datawarp DefaultPool=wlm {space}",
        f"PoolName[0]=wlm {space}",
        "Flags=EnablePersistent",
        "StageInTimeout=1 StageOutTimeout=2 ValidateTimeout=3 OtherTimeout=4",
        "AllowUsers=ann,bob",
        "GetSysState=/opt/dwcli",
        "GetSysStatus=(null)",
        "Allocated Buffers:",
        "  Name=kept CreateTime=T Pool=wlm Size=4GiB State=allocated UserID=ann(7)",
        "  JobID=10_3(12) CreateTime=T Pool=wlm Size=8GiB State=allocated UserID=ann(7)",
        "Per User Buffer Use:",
        "  UserID=ann(7) Used=12GiB",
    ]


@pytest.mark.parametrize(("one_line", "count"), [(False, 12), (True, 1)])
def test_lines_are_indented_or_one(one_line, count):
    made, printed = session([list(ROW.values())], one_line)
    assert show_burst_buffer(made, []) == 0
    assert len(printed[0].split("\n")) == count
    assert printed[0].startswith("Name=datawarp DefaultPool=wlm Granularity=1GiB")


def test_nothing_is_said_where_nothing_is_configured():
    made, printed = session([])
    assert show_burst_buffer(made, []) == 0
    assert printed == []  # as recorded of 22.05.8
