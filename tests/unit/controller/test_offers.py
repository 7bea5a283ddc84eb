"""Plug-ins of other distributions are found by their entry points."""

from pathlib import Path

import pytest

from understudy.controller.offers import offered

GROUP = "understudy.job_submit"


def install(site: Path, name: str) -> None:
    about = site / f"{name}-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {name}:Rules\n")


def test_what_is_installed_while_the_program_runs_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "first_rules")
    assert "first_rules" in offered(GROUP)
    assert "second_rules" not in offered(GROUP)
    install(tmp_path, "second_rules")
    assert {"first_rules", "second_rules"} <= set(offered(GROUP))
    assert "easy" in offered("understudy.schedulers")
