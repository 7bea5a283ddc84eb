"""Arbitrary texts as configurations: read, never broken."""

import re
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from understudy.model import conf, conf_check
from understudy.model.conf_keys import GLOBAL_KEYS, LINE_KEYS
from understudy.model.conf_scan import scan_text
from understudy.model.errors import ConfigError

keys = st.sampled_from(
    sorted(
        {key.name for key in GLOBAL_KEYS.values()}
        | {key.name for table in LINE_KEYS.values() for key in table.values()}
    )
)
values = st.one_of(
    st.sampled_from(
        [
            "",
            "n[1-3]",
            "n[1-",
            "ALL",
            "DEFAULT",
            "UNLIMITED",
            "-1",
            "1-0",
            "YES",
            "0",
            "4",
            "70000",
            "UP",
            "n1,n2",
            '"a b"',
            "FORCE:2",
            "x=y",
        ]
    ),
    st.text(max_size=8),
)
lines = st.lists(st.tuples(keys, values), min_size=1, max_size=4).map(
    lambda pairs: " ".join(f"{key}={value}" for key, value in pairs)
)
texts = st.lists(
    st.one_of(
        lines, st.text(max_size=20), st.sampled_from(["Include x", "\\", "#", "NodeName=n[1-3]"])
    ),
    max_size=12,
).map("\n".join)


@given(texts)
def test_any_text_is_read_and_reported_on(text: str) -> None:
    config = conf.read_text(text)
    assert conf_check.render(config).endswith("\n")
    assert all(
        partition_node in config.index_of
        for partition in config.partitions
        for partition_node in partition.nodes
    )
    assert [config.index_of[node.name] for node in config.nodes] == list(range(len(config.nodes)))
    config.show()
    for key in ("SlurmdTimeout", "KillWait", "OverTimeLimit"):
        seconds = config.seconds(key)
        assert seconds is None or seconds >= 0


@given(st.binary(max_size=200), texts)
def test_loading_arbitrary_files_raises_nothing_but_configuration_errors(
    raw: bytes, text: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "slurm.conf"
        path.write_bytes(text.encode("utf-8", "replace"))
        for companion in ("gres.conf", "topology.conf", "cgroup.conf"):
            (Path(folder) / companion).write_bytes(raw)
        try:
            conf.load(path)
        except ConfigError as error:
            assert error.message  # noqa: PT017 - the only exception that may come


@given(st.text(alphabet='aB="# \\\n1', max_size=60))
def test_lines_of_a_scan_hold_only_what_the_text_holds(text: str) -> None:
    found = scan_text(text)
    number_of_lines = text.count("\n") + 1
    assert all(1 <= line.line <= number_of_lines for line in found.lines)
    assert all(1 <= finding.line <= number_of_lines and finding.text for finding in found.findings)
    # Blanks and a comment may stand between a backslash and the end of its line, as slurmctld
    # 22.05.8 reads it.
    flat = [
        joined.replace("\\#", "#")
        for joined in (text.replace("\\\n", ""), re.sub(r"\\ *(?:#[^\n]*)?\n", "", text))
    ]
    assert all(
        any(value in each for each in flat) for line in found.lines for _, value in line.pairs
    )
