"""What examples/ and docs/python.md have for who uses Understudy in Python and in continuous
integration does what it says: the notebook, the workflow, the shell script, the page's programs.
"""

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import understudy
from understudy.experiments.lublin import generate
from understudy.experiments.swf import write_swf

EXAMPLES = Path(__file__).parents[2] / "examples"
PAGE = (EXAMPLES.parent / "docs" / "python.md").read_text()
BIN = Path(sys.executable).parent


@pytest.fixture
def environment(tmp_path):
    """Of a host on which there is neither a Slurm nor a cluster; HOME is empty."""
    home = tmp_path / "home of ci"
    home.mkdir()
    return {
        "PATH": f"{BIN}:/usr/bin:/bin",
        "HOME": str(home),
        "XDG_STATE_HOME": f"{home}/.local/state",
        "UNDERSTUDY_REGISTRY": str(tmp_path / "registry"),
    }


def test_the_notebooks_cells_run_in_turn(monkeypatch):
    """As in a kernel of Jupyter's: one namespace, in the notebook's folder."""
    monkeypatch.chdir(EXAMPLES)
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text())
    names: dict[str, object] = {"__name__": "__main__"}
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    waits = list(names["waits"].values())
    # two run at once; then the small one, and all nodes are free when that ends
    assert [round(wait / 600) for wait in waits] == [0, 0, 1, 2]
    assert names["said"].startswith("from n1")
    means = {policy: each.summary["mean_wait"] for policy, each in names["results"].items()}
    assert means["easy"] < means["fcfs"]


def test_the_programs_of_the_page_run_in_turn(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sizes = {"MaxNodes": "16", "MaxProcs": "16"}
    write_swf("history.swf.gz", generate(60, 16, 1, 0.7, seed=1), sizes)
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", PAGE, re.MULTILINE)
    programs = [inspect.cleandoc(block) for block in blocks if "understudy." in block]
    assert len(programs) == 3
    names: dict[str, object] = {}
    for program in programs:
        exec(compile(program, "docs/python.md", "exec"), names)
    assert "JOBID PARTITION" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["Cluster", "replay", "compare", "why", "sweep"])
def test_what_is_called_takes_what_the_page_says(name):
    (said,) = re.findall(rf"`understudy\.{name}\((.*?)\)`", PAGE)
    said = said.replace("[run, run, ...]", "runs")
    taken = inspect.signature(getattr(understudy, name)).parameters.values()
    for each in taken:
        default = "" if each.default is each.empty else f"={each.default!r}"
        assert f"{each.name}{default}" in said.replace('"', "'").split(", ")
    assert len(taken) == len(said.replace("*, ", "").split(", "))


def test_the_steps_of_the_workflow_that_use_a_cluster_run(environment, tmp_path):
    workflow = yaml.safe_load((EXAMPLES / "workflow.yml").read_text())
    jobs = workflow["jobs"]
    assert {tuple(job["steps"][0].items()) for job in jobs.values()} == {
        *((("uses", "actions/checkout@v4"),),),
    }
    # as the runner does: a shell each, which ends at the first command that fails
    steps = [
        step["run"]
        for step in jobs["commands"]["steps"]
        if "run" in step and not step["run"].startswith("pip ")
    ]
    assert len(steps) == 3
    done = [
        subprocess.run(
            ["bash", "-e", "-c", step],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        for step in steps
    ]
    assert [each.returncode for each in done] == [0, 0, 0], done
    assert "4   idle n[1-4]" in done[0].stdout
    assert "Ended 3 daemons" in done[2].stdout


@pytest.mark.parametrize("code", [0, 5])
def test_the_shell_script_runs_a_command_at_a_cluster_and_ends_both(environment, tmp_path, code):
    script = f"sbatch --wait --wrap 'exit {code}'; code=$?; echo $SLURM_CONF; exit $code"
    done = subprocess.run(
        [EXAMPLES / "ci.sh", "sh", "-c", script],
        cwd=tmp_path,
        env={**environment, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == code, done.stderr
    submitted, conf = done.stdout.splitlines()
    assert submitted == "Submitted batch job 1"
    assert not os.path.exists(conf)
    assert ("controller.log" in done.stderr) is (code != 0)
