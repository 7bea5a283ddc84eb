"""Short starters take the place of pip's, and find the house without `site`."""

import os
import subprocess
import sys
from pathlib import Path

from understudy.tool.cluster import starters

HOUSE = str(Path(starters.__file__).parents[3])


def test_starters_that_are_there_are_replaced_and_no_others(tmp_path):
    for name in ("sbatch", "understudy", "pip"):
        (tmp_path / name).write_text("as it was")
        (tmp_path / name).chmod(0o755)
    assert starters.write(tmp_path, sys.executable, [HOUSE]) == ["sbatch"]
    names = {path.name for path in tmp_path.iterdir()}
    assert names - {"understudy-starter"} == {"pip", "sbatch", "understudy"}
    assert (tmp_path / "understudy").read_text() == "as it was"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [tmp_path / "sbatch", "--version"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "slurm 22.05.8\n", "")


def test_a_starter_names_the_program_that_asks_a_zygote_where_there_is_one():
    target = "understudy.commands.sbatch:main"
    for native, first in (("", "#!/v/python -SP"), ("/v/starter", "#!/v/starter")):
        text = starters.starter("/v/python", [], target, native)
        assert text.splitlines()[0] == first
    assert starters.starter("/v/python", [], target, "/" + "x" * 200) == ""


def test_without_a_compiler_there_is_no_such_program(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert starters.compile_native(tmp_path, sys.executable) == ""
    (tmp_path / "cc").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "cc").chmod(0o755)
    assert starters.compile_native(tmp_path, sys.executable) == ""
    assert [path.name for path in tmp_path.iterdir()] == ["cc"]


def test_an_interpreter_that_no_first_line_can_name_leaves_pips_starter():
    assert starters.starter("/a b/python3", [], "understudy.commands.sbatch:main") == ""
    assert starters.starter("/" + "x" * 200, [], "understudy.commands.sbatch:main") == ""
    assert starters.starter("/usr/bin/python3", [], "understudy.commands.sbatch:main").startswith(
        "#!/usr/bin/python3 -SP\n"
    )
