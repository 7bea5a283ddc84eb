"""What `understudy conf check` says beyond what a file is worth by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from understudy.tool.understudy.conf import app

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("setting", "code", "said"),
    [
        ("SchedulerType=sched/builtin", 0, "0 errors"),
        (
            "SchedulerType=sched/nosuch",
            1,
            "SchedulerType=sched/nosuch is not known; there are sched/backfill",
        ),
        (
            "SelectType=select/nosuch",
            1,
            "SelectType=select/nosuch is not known; there are select/cons_tres",
        ),
    ],
)
def test_a_plugin_that_is_not_there_is_an_error(
    tmp_path: Path, setting: str, code: int, said: str
) -> None:
    file = tmp_path / "slurm.conf"
    file.write_text(
        f"ClusterName=c\nSlurmctldHost=localhost\n{setting}\nNodeName=n1\n"
        "PartitionName=p Nodes=ALL\n"
    )
    result = CliRunner().invoke(app, ["check", str(file)])
    assert result.exit_code == code
    assert said in result.output
