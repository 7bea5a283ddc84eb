"""burst_buffer.conf: its values, and what is wrong with it, by file and line."""

from __future__ import annotations

import pytest

from understudy.model import conf as conf_module
from understudy.model.burst_buffer_conf import PoolConf, read_burst_buffer
from understudy.model.burst_buffers import DATAWARP, LUA
from understudy.model.conf_check import not_emulated
from understudy.model.conf_scan import scan_text

GIB = 1 << 30


def read(text):
    findings = []
    return read_burst_buffer(scan_text(text, "burst_buffer.conf"), findings.append), findings


def test_an_empty_file_has_the_defaults():
    conf, findings = read("")
    assert not findings
    assert conf.timeouts_s == {
        "StageInTimeout": 86400,
        "StageOutTimeout": 86400,
        "ValidateTimeout": 5,
        "OtherTimeout": 300,
    }
    assert (conf.directive, conf.shown_flags(DATAWARP), conf.pools) == (
        "BB_LUA",
        ("DisablePersistent",),
        (),
    )


def test_all_keys_are_read_in_any_case():
    conf, findings = read(
        "allowusers=ann,bob\nFLAGS=enablepersistent,TeardownFailure\nDirective=BURST\n"
        "DefaultPool=b\nStageInTimeout=40\nGranularity=1GiB\nPools=a:10500MiB,b:7:2,c:5:1\n"
        "SetupTime=1.5\nStageInRate=2\nProgram=/site/stage\nGetSysState=/s\nGetSysStatus=/t\n"
    )
    assert not findings
    assert conf.allow == ("ann", "bob")
    assert conf.shown_flags(DATAWARP) == ("EnablePersistent", "TeardownFailure")
    assert (conf.directive, conf.default_pool, conf.program) == ("BURST", "b", "/site/stage")
    assert conf.timeouts_s["StageInTimeout"] == 40
    assert conf.pools == (
        PoolConf("a", 10 * GIB, GIB),
        PoolConf("b", 6, 2),
        PoolConf("c", 5, 1),
    )
    assert conf.seconds == {"setup": 1.5}
    assert conf.rates == {"data_in": 2 << 20}


def test_users_that_are_denied_stand_at_colons():
    assert read("DenyUsers=ann:17\n")[0].deny == ("ann", "17")


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("\nNonsense=1\n", 2, "unrecognized key: Nonsense"),
        ("Flags=Odd\n", 1, "Odd is none of DisablePersistent"),
        ("StageInTimeout=soon\n", 1, "no number of seconds"),
        ("StageOutTimeout=2073601\n", 1, "at most 2073600"),
        ("SetupTime=-1\n", 1, "is no number"),
        ("Granularity=0\n", 1, "at least 1"),
        ("\n\nPools=a\n", 3, "NAME:TOTAL"),
        ("Pools=a:1,a:2\n", 1, "named twice"),
        ("Pools=a:much\n", 1, "is no size"),
        ("StageInRate=fast\n", 1, '"fast" is no number of 0 or more'),
        ("DefaultPool=c\nPools=b:1,a:1\n", 1, "DefaultPool=c: Pools has a, b"),
        ("Granularity=1GiB\nPools=a:10\n", 2, "less than its granularity"),
        ("AllowUsers=a\nDenyUsers=b\n", 2, "cannot both be given"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text, line, part):
    _, [finding] = read(text)
    assert (finding.file, finding.line) == ("burst_buffer.conf", line)
    assert part in finding.message


SLURM_CONF = "ClusterName=c\nSlurmctldHost=h\nNodeName=n1\nPartitionName=p Nodes=n1\n"


@pytest.mark.parametrize(
    ("value", "kind", "pools"),
    [("burst_buffer/lua", "lua", 1), ("burst_buffer/datawarp", "datawarp", 1), ("", "", 0)],
)
def test_the_file_is_read_where_burst_buffers_are_on(tmp_path, value, kind, pools):
    line = f"BurstBufferType={value}\n" if value else ""
    (tmp_path / "slurm.conf").write_text(SLURM_CONF + line)
    (tmp_path / "burst_buffer.conf").write_text("Pools=a:5\n")
    config = conf_module.load(tmp_path / "slurm.conf")
    assert (config.burst_buffer_kind, len(config.burst_buffer.pools)) == (kind, pools)
    assert not not_emulated(config)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", "DisablePersistent"),
        ("Flags=EnablePersistent,TeardownFailure\n", "DisablePersistent,TeardownFailure"),
        ("Flags=TeardownFailure,PrivateData,EmulateCray\n", "PrivateData,TeardownFailure"),
        ("Flags=EmulateCray\n", ""),
    ],
)
def test_flags_are_shown_as_slurm_shows_them_with_lua(text, shown):
    """As recorded from 22.05.8 with burst_buffer/lua."""
    conf, findings = read(text)
    assert not findings
    assert ",".join(conf.shown_flags(LUA)) == shown
