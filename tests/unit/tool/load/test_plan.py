"""Plans of loads, from files and by their names.

Covers: tool/load/plan, tool/load/kinds.
"""

import pytest

from understudy.tool.load.kinds import kinds, plan_of
from understudy.tool.load.plan import Plan, PlanError, Stream, parse_plan, read_plan
from understudy.tool.load.run import as_table

FILE = """
duration = 20
seed = 7
processes = 2

[[stream]]
command = "sbatch --nodes={nodes}"
rate = 50
nodes = [1, 8]
run = 3

[[stream]]
name = "looks"
command = "squeue --job={job}"
rate = 0.5
arrivals = "even"
expected = ["Invalid job id"]
"""


def test_a_file_is_a_plan(tmp_path):
    path = tmp_path / "storm.toml"
    path.write_text(FILE)
    assert read_plan(path) == Plan(
        "storm",
        (
            Stream("sbatch --nodes=", "sbatch --nodes={nodes}", rate=50, nodes=(1, 8), run=(3, 3)),
            Stream(
                "looks",
                "squeue --job={job}",
                rate=0.5,
                arrivals="even",
                expected=("Invalid job id",),
            ),
        ),
        duration=20,
        seed=7,
        processes=2,
    )


def test_one_number_of_nodes_is_a_list():
    table = {"stream": [{"command": "sbatch", "rate": 1, "nodes": 0}]}
    assert parse_plan(table, "f", "f").streams[0].nodes == (0,)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"duratoin": 3}, "f: duratoin: no such key; there are accounting, conf,"),
        ({"duration": "long"}, "f: duration = 'long': a number of at least 0 is meant"),
        ({"duration": 0}, "f: duration = 0: at least 1"),
        ({"accounting": 1}, "f: accounting = 1: a true or false is meant"),
        ({"seed": True}, "f: seed = True: a number"),
        ({"seed": 1.5}, "f: seed = 1.5: a number"),
        ({"connections": 2, "processes": 3}, "f: connections = 2: fewer than processes"),
        ({"stream": []}, r"f: no \[\[stream\]\]"),
        ({"stream": [{"rate": 1}]}, "f: stream : command is missing"),
        ({"stream": [{"command": "a b {job}"}]}, "f: stream a b: neither rate nor count"),
        ({"stream": [{"command": "a", "rate": -1}]}, "f: stream a: rate = -1: a number"),
        ({"stream": [{"command": "a", "rate": 1, "burst": 0}]}, "f: stream a: burst = 0"),
        ({"stream": [{"command": "a", "rate": 1, "run": [3, 1]}]}, "f: stream a: run = "),
        ({"stream": [{"command": "a", "rate": 1, "nodes": []}]}, "f: stream a: nodes = "),
        ({"stream": [{"command": "a", "rate": 1, "arrivals": "x"}]}, "one of poisson, even, day"),
        ({"stream": [{"command": "a {x}", "rate": 1}]}, "in braces may stand nodes, job"),
        ({"stream": [{"command": "a", "rate": 1, "then": "'"}]}, "f: stream a: then = "),
        ({"stream": [{"command": "a", "rate": 1}] * 2}, "there are two of this name"),
        ({"stream": [{"command": "a", "rate": 1, "expected": [1]}]}, "expected = .*list of text"),
    ],
)
def test_what_cannot_be_meant_is_named(change, text):
    table = {"stream": [{"command": "squeue", "rate": 1}], **change}
    with pytest.raises(PlanError, match=text):
        parse_plan(table, "f", "f")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(PlanError, match=r"nothing\.toml: No such file"):
        read_plan(tmp_path / "nothing.toml")
    path = tmp_path / "bad.toml"
    path.write_text("duration = \n")
    with pytest.raises(PlanError, match=r"bad\.toml: .*line 1"):
        read_plan(path)
    path.write_text("duration = " + "[" * 9999)
    with pytest.raises(PlanError, match=r"bad\.toml: maximum recursion depth exceeded"):
        read_plan(path)


@pytest.mark.parametrize("kind", kinds())
def test_each_kind_could_be_a_file(kind):
    plan = plan_of(kind, rate=40, duration=12, nodes=16)
    assert parse_plan(as_table(plan), kind, kind) == plan


def test_a_kind_that_there_is_not_is_said():
    with pytest.raises(PlanError, match="--kind storm: one of submissions, bursts"):
        plan_of("storm")
