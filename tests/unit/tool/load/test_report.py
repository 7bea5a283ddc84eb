"""What a load tells.

Covers: tool/load/report, tool/load/run, tool/load/samples, tool/load/target, tool/understudy/load.
"""

import json
import os

import pytest
from typer.testing import CliRunner

from understudy.tool.cluster.processes import Process, identify
from understudy.tool.load.kinds import plan_of
from understudy.tool.load.measure import Tally, histogram, record
from understudy.tool.load.plan import Plan
from understudy.tool.load.report import (
    _answered,
    controller_figures,
    live_line,
    page,
    table,
    verdict,
)
from understudy.tool.load.run import Course, daemons_of, exit_code
from understudy.tool.load.samples import Sampler, process_use, slurm_numbers
from understudy.tool.load.target import Target, TargetError, conf_of, slurm_cluster
from understudy.tool.load.verify import Found
from understudy.tool.understudy.app import app_with


def told(*latencies_s, errors=(), jobs=()):
    tally = Tally(sent=len(latencies_s), answered=len(latencies_s), acknowledged=len(jobs))
    late = histogram()
    for each in latencies_s:
        record(tally.latencies, each)
        record(late, 0.0001)
    tally.errors.update(errors)
    return {
        "streams": {"sbatch": tally.packed()},
        "late": late.encode().decode(),
        "jobs": list(jobs),
        "waiting": 1,
        "cpu": 0.5,
    }


def result(tmp_path, course, *, lost=(), **changes):
    from understudy.tool.load.run import figures

    found = {
        **figures(course, 2.0, Found(set(lost), set())),
        "not_asked": "",
        "driver": "understudy",
        "cluster": "a <cluster>",
        "nodes": 3,
        "daemons": {
            "controller": {"cpu_s": 1.0, "mb_before": 60.0, "mb_peak": 90.0, "mb_after": 61.0}
        },
        "machine": {"cpus": 2, "cpu": "x", "memory_mb": 100, "load_before": 0.5},
        "plan": {"seed": 1},
        "over_time": course.seconds,
        "samples": [
            {"at": 0.0, "daemons": {"controller": {"cpu_s": 1.0, "mb": 60.0}}, "pending": 3},
            {"at": 1.0, "daemons": {"controller": {"cpu_s": 1.5, "mb": 70.0}}, "pending": 4},
        ],
        **changes,
    }
    return found | {"exit_code": exit_code(found)}


@pytest.fixture
def course():
    found = Course(plan_of("submissions"))
    found.take(0, told(0.01, 0.02, jobs=(1, 2)))
    found.take(1, told(0.04, jobs=(3,)))
    found.end_second()
    return found


def test_processes_add_up(course):
    (second,) = course.seconds
    assert second["waiting"] == 2
    assert second["streams"]["sbatch"]["answered"] == 3
    assert second["streams"]["sbatch"]["max_ms"] == pytest.approx(40, rel=0.002)
    assert course.streams["sbatch"].percentile_ms(50) == pytest.approx(20, rel=0.002)
    assert course.jobs == [1, 2, 3]
    course.end_second()
    assert course.seconds[1]["streams"] == {}


def test_a_load_without_losses_and_errors_is_a_success(course, tmp_path):
    found = result(tmp_path, course)
    assert (found["exit_code"], found["acknowledged"]) == (0, 3)
    assert "3 jobs were acknowledged, 0 of them are lost" in table(found)
    assert not found["sent_late"]["fell_behind"]


def test_a_lost_job_an_error_and_an_interruption_have_codes_of_their_own(course, tmp_path):
    course.interrupted_by = 2
    assert result(tmp_path, course)["exit_code"] == 130
    course.take(0, told(0.01, errors=["out of order"]))
    assert result(tmp_path, course)["exit_code"] == 4
    lost = result(tmp_path, course, lost=[2])
    assert (lost["exit_code"], lost["lost_jobs"]) == (3, [2])
    assert "error: sbatch: out of order (1 times)" in verdict(lost)


def test_a_cluster_that_answers_nobody_in_the_end_is_a_failure(course, tmp_path):
    found = result(tmp_path, course, not_asked="Socket timed out")
    assert found["exit_code"] == 1
    assert "could not be asked for them: Socket timed out" in table(found)


def test_a_sender_that_falls_behind_says_so(course, tmp_path):
    record(course.late, 3.0)
    found = result(tmp_path, course)
    assert found["sent_late"]["fell_behind"]
    assert "fell behind" in table(found)


def test_the_page_needs_nothing_else_and_escapes_what_it_is_told(course, tmp_path):
    found = json.loads(json.dumps(result(tmp_path, course)))
    text = page(found)
    assert "a &lt;cluster&gt;" in text
    assert "<cluster>" not in text
    assert "http" not in text
    assert text.count("<svg") == 7  # answered, two of latency, unanswered, jobs, CPU, memory
    other = page(found, {**found, "cluster": "Slurm 22.05.8"})
    assert "sbatch: Slurm 22.05.8" in other


def test_two_loads_are_on_one_page_in_every_part_of_it(course, tmp_path):
    here = json.loads(json.dumps(result(tmp_path, course)))
    course.take(0, told(0.01, errors=["too late"]))
    course.end_second()
    there = json.loads(json.dumps(result(tmp_path, course)))
    text = page(here, there)
    assert text.count("a &lt;cluster&gt; (beside)") > 10
    assert "too late" in text
    assert text.count("<svg") == page(here).count("<svg")
    named = page(here, {**there, "cluster": "Slurm 22.05.8"})
    assert "sbatch: Slurm 22.05.8" in named
    assert "(beside)" not in named


def test_greatest_values_from_before_the_load_are_told_as_such(course, tmp_path):
    def figures(before, after):
        samples = [
            {"at": at, "daemons": {}, "connections": 1, "lock_longest_queue": 2} | loop
            for at, loop in ((0, {"loop_longest_us": before}), (1, {"loop_longest_us": after}))
        ]
        found = controller_figures(result(tmp_path, course, samples=samples))
        return found["loop late by at most, ms"], found["... at once, at most"]

    assert figures(5000, 9000) == ("9.0", "no more than 2")
    assert figures(5000, 5000) == ("no more than 5.0", "no more than 2")


def test_a_sender_that_died_and_jobs_that_are_forgotten_are_told(course, tmp_path):
    course.broken.append("sending process 1: it ended with -9")
    found = result(tmp_path, course, forgotten=2)
    assert found["exit_code"] == 1
    text = table(found)
    assert "sending process 1: it ended with -9: what it sent since" in text
    assert "2 of them were seen to end, and forgotten by the controller" in text


def test_in_virtual_time_pictures_are_over_the_clusters(course, tmp_path):
    course.take(0, told(*[0.01] * 300))
    course.end_second(at=course.seconds[0]["at"] + 100.0)
    found = result(tmp_path, course, is_virtual=True)
    assert "seconds of the cluster&#x27;s time since" in page(found)
    (rates,) = _answered(found).values()
    assert rates[1][1] == pytest.approx(3.0)
    assert "cluster&#x27;s time" not in page(result(tmp_path, course))


def test_the_live_line_tells_of_the_last_second(course):
    sampler = Sampler(target(), 0.0)
    sampler.samples.append({"pending": 5, "daemons": {"controller": {"mb": 77.0}}})
    line = live_line(course, sampler)
    assert "answered      3/s" in line
    assert "pending       5" in line
    assert "77 MB" in line


def target(**settings):
    from pathlib import Path

    return Target("understudy", Path("/nowhere"), {}, ["n1"], **settings)


def test_a_process_tells_its_use_until_it_is_another():
    mine = identify("me", os.getpid())
    cpu, megabytes = process_use(mine)
    assert cpu > 0
    assert megabytes > 1
    assert process_use(Process("me", mine.pid, mine.start_time + 1)) is None
    assert Sampler(target(daemons=[mine]), 0.0).uses()["me"]["mb"] == pytest.approx(
        megabytes, rel=0.5
    )


def test_memory_is_told_before_at_most_and_afterwards():
    sampler = Sampler(target(), 0.0)
    sampler.samples = [{"daemons": {"c": {"cpu_s": 2.0, "mb": mb}}} for mb in (50.0, 99.0, 70.0)]
    use = [{"c": {"cpu_s": cpu, "mb": mb}} for cpu, mb in ((1.0, 40.0), (3.0, 60.0), (3.0, 41.0))]
    assert daemons_of(sampler, *use) == {
        "c": {"cpu_s": 2.0, "mb_before": 40.0, "mb_peak": 99.0, "mb_after": 41.0}
    }


def test_numbers_of_slurms_sdiag_have_our_names():
    text = "Agent queue size:     3\nAgent count: 1\nJobs pending:   17\nJobs running: 4\nX: 9\n"
    assert slurm_numbers(text) == {"agent_queue": 3, "agents": 1, "pending": 17, "running": 4}


def test_a_cluster_for_a_load_forgets_jobs_only_if_accounting_keeps_them():
    assert "MinJobAge=86400\n" in conf_of(Plan("p", ()))
    text = conf_of(Plan("p", (), accounting=True, nodes=3, conf="KillWait=2\n"))
    assert "MinJobAge=2\n" in text
    assert "\nKillWait=2\nNodeName=n[1-3] " in text


def test_real_slurm_must_be_there(tmp_path):
    with pytest.raises(TargetError, match="no sbatch"):
        slurm_cluster(None, str(tmp_path))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "either a file or --kind"),
        (["x.toml", "--kind", "queries"], "either a file or --kind"),
        (["x.toml"], "x.toml: No such file"),
        (["--kind", "storm"], "one of submissions"),
        (["--kind", "queries", "--driver", "car"], "--driver car: one of understudy,"),
        (["--kind", "queries", "--processes", "4", "--connections", "3"], "fewer than processes"),
        (["--kind", "queries", "--time", "slow"], "--time slow: expected real,"),
        (["--kind", "launches", "--time", "virtual"], "srun does more than ask"),
        (["--kind", "queries", "--time", "virtual", "--driver", "commands"], "is started for it"),
        (["--kind", "queries", "--driver", "slurm", "--nodes", "3"], "--nodes: the cluster is"),
        (["--kind", "queries", "--cluster", "x", "--accounting"], "--accounting: the cluster is"),
        (["--kind", "queries", "--running", "--executor", "real"], "--executor: the cluster is"),
        (["--kind", "queries", "--executor", "maybe"], "--executor maybe"),
        (["--kind", "queries", "--beside", "/nowhere"], "/nowhere/load.json"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(words, text):
    done = CliRunner().invoke(app_with("load"), ["load", *words])
    assert done.exit_code == 2
    assert text in done.output
