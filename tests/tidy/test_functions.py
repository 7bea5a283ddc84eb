"""A function fits on a screen, and its ways through it into a head. Those that do not yet are named
here; the list only shrinks.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_LINES = 70
MOST_WAYS = 20  # McCabe's count
LONG = {
    "benchmarks/__main__ bench_clusters",
    "commands/sacct/sacct _show_completions",
    "commands/sacctmgr/show _rows",
    "commands/scontrol/records node_lines",
    "commands/scontrol/update_job update_jobs",
    "commands/sdiag report",
    "commands/sinfo/sinfo _load",
    "commands/sinfo/sinfo sinfo",
    "commands/sreport/sreport _reservations",
    "commands/srun/environment environment_of",
    "controller/accounting/records job_record",
    "controller/edge/build build_settings",
    "controller/edge/main Controller.__init__",
    "controller/enforcement/line LineMaker.add_qos",
    "controller/jobs/take_in build_job",
    "controller/requests/steps create_step",
    "controller/saved/records encode_job",
    "controller/saved/store Store.read",
    "controller/scheduling/select/cons_tres SelectConsTres._capacity",
    "controller/scheduling/select/cons_tres SelectConsTres._choose_any_kind",
    "controller/scheduling/select/gres choose_for_job",
    "controller/scheduling/slurm/backfill_pass BackfillPass._try",
    "controller/scheduling/slurm/backfill_pass BackfillPass.run",
    "controller/scheduling/slurm/main_pass MainPass.run",
    "documents/accounting _job",
    "documents/jobs job_record",
    "experiments/simulator_events _submit",
    "experiments/swf parse_swf",
    "experiments/swf_rows _record",
    "model/conf _check_together",
    "model/conf_partitions _read",
    "noded/real RealExecutor._spawn",
    "noded/real_steps RealSteps._order",
    "noded/stepd main",
    "tests/crash/kill_controller run",
    "tests/e2e/test_hosts test_daemons_that_are_started_one_by_one_are_a_cluster",
    "tests/simulation/clusters Simulation._judge",
    "tests/simulation/fuzz _Run._judge",
    "tests/simulation/fuzz _Run.go",
    "tests/simulation/schedules _Drawing._accounting",
    "tests/simulation/schedules _Drawing._conf",
    "tests/simulation/schedules _Drawing._event",
    "tests/simulation/schedules _Drawing._job",
    "tests/simulation/schedules _Drawing._reservations",
    "tests/simulation/site_confs _kinds",
    "tests/simulation/site_confs write_site",
    "tests/simulation/test_node_daemons_in_virtual_time replay",
    "tests/unit/model/test_site_configurations facts",
    "tool/cluster/launch prepare",
    "tool/replay/scenarios replay_scenario",
    "tool/replay/traces replay",
    "tool/understudy/cluster up",
    "tool/understudy/import_history import_",
    "tool/understudy/replay replay",
}
BRANCHING = {
    "controller/scheduling/select/cons_tres SelectConsTres._choose_any_kind",
    "controller/scheduling/slurm/backfill_pass BackfillPass._try",
    "controller/scheduling/slurm/backfill_pass BackfillPass.run",
    "controller/scheduling/slurm/main_pass MainPass.run",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def named(tree: ast.AST, within: str = "") -> Iterator[tuple[str, Function]]:
    """All functions with their names: `Class.method`, `function.inner`."""
    for node in ast.iter_child_nodes(tree):
        name = within
        if isinstance(node, ast.ClassDef | Function):
            name = f"{within}.{node.name}".lstrip(".")
        if isinstance(node, Function):
            yield name, node
        yield from named(node, name)


def ways(function: Function) -> int:
    """McCabe's count without the operators inside conditions."""
    branches = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case)
    return 1 + sum(isinstance(node, branches) for node in ast.walk(function))


def functions() -> Iterator[tuple[str, Function]]:
    rooms = [path.parent for path in ROOT.glob("*/__init__.py")]
    for room in (*rooms, ROOT / "tests", ROOT / "benchmarks"):
        for path in sorted(room.rglob("*.py")):
            if "migrations" not in path.parts:  # they are never changed
                file = path.relative_to(ROOT).with_suffix("")
                for name, function in named(ast.parse(path.read_text())):
                    yield f"{file} {name}", function


def test_functions_fit_on_a_screen():
    found = {
        name for name, each in functions() if (each.end_lineno or 0) - each.lineno >= MOST_LINES
    }
    assert sorted(found - LONG) == [], "too long"
    assert sorted(LONG - found) == [], "not long any more: take it off the list"


def test_functions_have_few_ways_through_them():
    found = {name for name, each in functions() if ways(each) > MOST_WAYS}
    assert sorted(found - BRANCHING) == [], "too many ways"
    assert sorted(BRANCHING - found) == [], "simple by now: take it off the list"


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("pass", 1),
        ("if a: pass", 2),
        ("if a: pass\n elif b: pass", 3),
        ("for a in b:\n  while c: pass", 3),
        ("try: pass\n except A: pass\n except B: pass", 3),
        ("match a:\n  case 1: pass\n  case _: pass", 3),
        ("return [a for a in b if c or d]", 1),
    ],
)
def test_ways_are_counted_as_mccabe_does(body, count):
    (tree,) = ast.parse(f"def f():\n {body}").body
    assert isinstance(tree, ast.FunctionDef)
    assert ways(tree) == count
