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
            "SelectType=select/nosuch is not known; there are select/cons_res, select/cons_tres",
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


@pytest.mark.parametrize(
    ("scheduler", "words", "said"),
    [
        ("bbsched", "defer,BBS_Window=90", "bbs_window=90: not a whole number from 1 to 64"),
        ("bbsched", "bbs_method=best", "bbs_method=best: there are bbsched, baseline"),
        ("plan", "plan_alpha=10", "plan_alpha=10: not a whole number from 1 to 9"),
        ("plan", "plan_search", "plan_search=: there are annealing, zheng, random, none"),
        ("easy-bb", "reservation_depth=0", "reservation_depth=0: not a whole number from 1 to"),
        ("easy", "further_resources=disk", "further_resources=disk: 'disk' is none of license"),
        ("easy", "further_resources=bb/", "further_resources=bb/: 'bb/' is none of license"),
        ("easy", "further_resources=bb/zz", "further_resources=bb/zz: there is no such pool"),
        ("bbsched", "bbs_weights=1+2", "bbs_weights=1+2: 2 for the 1 objectives cpu"),
        ("bbsched", "bbs_objectives=mem", "bbs_objectives=mem: mem is not counted, cpu are"),
        ("plan", "plan_keep=maybe", "plan_keep=maybe: yes or no"),
        ("plan", "plan_fairness=1e400", "plan_fairness=1e400: not a number from 0 to"),
    ],
)
def test_a_value_that_a_policy_cannot_read_is_an_error_with_its_line(
    tmp_path: Path, scheduler: str, words: str, said: str
) -> None:
    file = tmp_path / "slurm.conf"
    file.write_text(
        f"ClusterName=c\nSlurmctldHost=localhost\nSchedulerType=sched/{scheduler}\n"
        f"NodeName=n1\nPartitionName=p Nodes=ALL\nSchedulerParameters={words}\n"
    )
    result = CliRunner().invoke(app, ["check", str(file)])
    assert result.exit_code == 1
    assert f"error: {file} line 6: SchedulerParameters {said}" in result.output
    assert "1 error, 0 warnings" in result.output


def test_two_such_values_are_two_errors_and_another_policys_words_have_no_effect(
    tmp_path: Path,
) -> None:
    file = tmp_path / "slurm.conf"
    file.write_text(
        "ClusterName=c\nSlurmctldHost=localhost\nSchedulerType=sched/plan\n"
        "SchedulerParameters=plan_alpha=x,plan_window=-1,bbs_window=90\n"
        "NodeName=n1\nPartitionName=p Nodes=ALL\n"
    )
    result = CliRunner().invoke(app, ["check", str(file)])
    assert "plan_alpha=x: not a whole number" in result.output
    assert "plan_window=-1: not a whole number" in result.output
    assert "SchedulerParameters has no word bbs_window=90" in result.output
    assert "2 errors, 1 warning" in result.output
