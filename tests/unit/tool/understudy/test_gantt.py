"""`understudy gantt` on a replay's folder."""

import pytest
import typer
from typer.testing import CliRunner

from understudy.experiments.gantt import as_json, plan_of
from understudy.tool.understudy.gantt import gantt


@pytest.fixture
def folder(tmp_path):
    for at in (100, 5000):
        plan = plan_of([], at=at, zero=0.0, nodes="n[1-4]")
        (tmp_path / f"plan-{at}.json").write_text(as_json(plan))
    return tmp_path


def run(*words):
    app = typer.Typer()
    app.command()(gantt)
    return CliRunner().invoke(app, [*map(str, words)])


def test_the_last_plan_is_drawn_or_the_last_until_an_instant(folder):
    result = run(folder)
    assert result.exit_code == 0, result.output
    assert "At 01:23:20:" in (folder / "plan-5000.html").read_text()
    assert run(folder, "--at", "1h").exit_code == 0
    assert "At 00:01:40:" in (folder / "plan-100.html").read_text()


def test_an_svg_is_written_where_the_name_says_so(folder, tmp_path):
    out = tmp_path / "a.svg"
    assert run(folder, "--out", out, "--ahead", "2h").exit_code == 0
    assert out.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--at", "1m"), "no plan until 60 s"),
        (("--at", "soon"), "--at 'soon' is no length of time"),
        (("--ahead", "x"), "--ahead"),
    ],
)
def test_what_is_not_there_or_not_understood_is_said(folder, words, text):
    result = run(folder, *words)
    assert result.exit_code == 1
    assert text in result.output


def test_a_folder_without_plans_says_how_to_record_them(tmp_path):
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "--plan-at" in result.output
