"""The cases of `make bench` and what becomes of their figures. Nothing is measured here."""

import json

import pytest
from benchmarks import page, results
from benchmarks.cases import CASES


def record(cpu_s, failed="", **figures):
    return {
        "wall_s": 2 * cpu_s,
        "cpu_s": cpu_s,
        "largest_mb": 50,
        "figures": figures,
        "notes": {},
        "failed": failed,
    }


def case(*rounds, headline="CPU"):
    sides = list(rounds[0])
    return {
        "what": "a case",
        "target": "1 s",
        "headline": headline,
        "sides": sides,
        "rounds": list(rounds),
    }


def test_a_ratio_is_taken_within_a_round():
    rounds = [
        {"here": record(1.0), "old": record(2.0)},
        {"here": record(9.0), "old": record(10.0)},
        {"here": record(1.0), "old": record(1.0)},
    ]
    cpu = next(row for row in results.rows(rounds) if row.what == "CPU")
    assert cpu.median == 1.0
    (beside,) = cpu.beside
    assert (beside.side, beside.median, beside.ratios) == ("old", 2.0, [0.5, 0.9, 1.0])
    assert beside.text() == "0.90 x (0.50 to 1.00)"


def test_a_side_that_failed_has_no_ratio_and_is_named():
    rounds = [{"here": record(1.0), "old": record(0.1, failed="no such option")}]
    assert all(not row.beside for row in results.rows(rounds))
    assert results.failures(rounds * 2) == ["old: no such option"]


def test_nothing_is_said_where_this_tree_failed():
    assert results.rows([{"here": record(1.0, failed="broken"), "old": record(1.0)}]) == []


def test_a_table_has_the_last_words_of_what_failed():
    framed = "/a/b up: exit code 2: Usage\n╭─ Error ─╮\n│ No such option: --zygote │\n╰─────────╯\n"
    rounds = [
        {"here": record(1.0), "old": record(0.1, failed=framed)},
        {"here": record(1.0), "old": record(0.1, failed=framed.replace("/a/b", "/a/c"))},
    ]
    machine = dict.fromkeys(("cores", "memory_gb", "processor", "system", "python", "load"), 1)
    result = {"machine": machine, "commit": "c", "date": "d", "times": 2}
    text = results.table({**result, "cases": {"x": case(*rounds)}})
    (row,) = [line for line in text.splitlines() if "old: " in line and "beside" not in line]
    assert row == "| `x` | a case | old: No such option: --zygote |  |  |  |"
    replayed = "/a replay: exit code 1: 9 jobs\nreplay: error: it ended early\n30 jobs on 4 nodes"
    rounds = [{"here": record(1.0), "old": record(0.1, failed=replayed)}]
    text = results.table({**result, "cases": {"x": case(*rounds)}})
    assert "| old: replay: error: it ended early |" in text


def test_schedules_that_differ_are_told():
    one, other = record(1.0), record(1.0)
    one["notes"], other["notes"] = {"schedule": "a"}, {"schedule": "b"}
    assert results.schedules_differ([{"here": one, "old": other}])
    assert not results.schedules_differ([{"here": one, "old": record(1.0)}])
    assert "    the schedules differ" in results.printed(case({"here": one, "old": other}))


@pytest.mark.parametrize("name", CASES)
def test_a_case_has_a_short_name_and_says_what_it_is(name):
    assert len(name) <= 16
    assert CASES[name].what


def test_the_page_gets_the_table_and_the_picture(tmp_path):
    target = tmp_path / "performance.md"
    target.write_text(f"before\n{page.BEGIN}old\n{page.END}after\n")
    growing = record(1.0, **{f"{n} nodes, 5 jobs": [n / 10, "us a job"] for n in (1024, 4096)})
    result = {
        "commit": "1234567",
        "date": "2026-01-02",
        "times": 1,
        "machine": dict.fromkeys(
            ("processor", "cores", "memory_gb", "system", "python", "load"), "x"
        ),
        "cases": {
            "growth-nodes": case({"here": growing}),
            "up-16384": case({"here": record(3.0), "Slurm": record(4.0)}),
        },
    }
    page.write(target, json.loads(json.dumps(result)))
    text = target.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old\n" not in text
    assert "| `up-16384` | a case | CPU | 3 s | 4 s: 0.75 x | 1 s |" in text
    assert page.points(result["cases"]["growth-nodes"]) == [(1024, 102.4), (4096, 409.6)]
    assert "4,096</text>" in (tmp_path / "growth.svg").read_text()


def test_a_page_without_marks_is_left_alone(tmp_path):
    target = tmp_path / "page.md"
    target.write_text("text")
    with pytest.raises(SystemExit, match="there are no lines"):
        page.write(target)
    assert target.read_text() == "text"
