"""A replay's command line that is wrong ends with 2, and says which option.

Covers: tool/understudy/app.
"""

import pytest
from typer.testing import CliRunner

from understudy.tool.cluster import launch
from understudy.tool.understudy.app import app_with

CONF = (
    "ClusterName=c\nSlurmctldHost=h\nNodeName=n[1-2] CPUs=4\n"
    "PartitionName=batch Nodes=ALL Default=YES\n"
)


@pytest.fixture
def replay(tmp_path, monkeypatch):
    class PreparedError(Exception):
        """The command line was taken."""

    def prepare(*_arguments, **_options):
        raise PreparedError

    monkeypatch.setattr(launch, "prepare", prepare)
    trace, conf = tmp_path / "one.swf", tmp_path / "slurm.conf"
    trace.write_text("; MaxProcs: 1\n1 0 -1 10 1 -1 -1 1 20 -1 1 1 1 -1 1 -1 -1 -1\n")
    conf.write_text(CONF)
    scenario = tmp_path / "scenario"
    scenario.mkdir()
    (scenario / "slurm.conf").write_text(CONF)
    (scenario / "workload.jsonl").write_text(
        '{"id": "a", "at": 0, "user": "u", "options": [], "run": 5}\n'
    )

    def run(*words):
        named = {"TRACE": trace, "SCENARIO": scenario, "CONF": conf}
        result = CliRunner().invoke(
            app_with("replay"),
            [
                "replay",
                *(str(named.get(word, word)) for word in words),
                "--out",
                str(tmp_path / "out"),
            ],
        )
        taken = isinstance(result.exception, PreparedError)
        return 0 if taken else result.exit_code, result.output

    return run


@pytest.mark.parametrize(
    "words",
    [
        ("TRACE", "--set", "nonsense"),
        ("TRACE", "--set", "SchedulerTyp=sched/builtin"),
        ("TRACE", "--set", "MaxJobCount=many"),
        ("TRACE", "--conf", "CONF", "--set", "EnforcePartLimits=maybe"),
        ("TRACE", "--conf", "CONF", "--set", "NodeName=n1 CPUs=8"),
        (
            "TRACE",
            "--conf",
            "CONF",
            "--set",
            "PreemptMode=CANCEL",
            "--set",
            "PreemptType=preempt/none",
        ),
        ("TRACE", "--conf", "CONF", "--set", "PriorityType=priority/nobody"),
        ("TRACE", "--scheduler", "nobody"),
        ("TRACE", "--conf", "CONF", "--scheduler", "nobody"),
        ("TRACE", "--conf", "CONF", "--nodes", "4"),
        ("TRACE", "--break", "soon"),
        ("TRACE", "--break", "1d", "--one-process"),
        ("SCENARIO", "--set", "nonsense"),
        ("SCENARIO", "--limit", "3"),
    ],
)
def test_a_command_line_that_is_wrong_ends_with_two(replay, words):
    code, said = replay(*words)
    assert (code, said.count("understudy replay: error: ")) == (2, 1), said


def test_a_file_that_slurm_would_not_start_with_is_no_fault_of_the_command_line(replay, tmp_path):
    (tmp_path / "slurm.conf").write_text(CONF + "SelectType=select/nobody\n")
    assert replay("TRACE", "--conf", "CONF", "--set", "MaxJobCount=7")[0] == 1
    (tmp_path / "scenario/slurm.conf").write_text(CONF + "NodeName=n1 CPUs=8\n")
    assert replay("SCENARIO", "--set", "MaxJobCount=7")[0] == 1


@pytest.mark.parametrize("words", [("TRACE", "--conf", "CONF"), ("SCENARIO",)])
def test_a_partition_that_set_makes_is_said_to_be_new(replay, words):
    code, said = replay(
        *words, "--set", "PartitionName=btach MaxTime=3", "--set", "PartitionName=batch MaxTime=3"
    )
    assert code == 0
    assert "PartitionName=btach is new" in said
    assert "PartitionName=batch is new" not in said
