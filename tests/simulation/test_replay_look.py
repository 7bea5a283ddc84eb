"""Each run is looked at before it begins, by the controller's own rules, and `--check` does nothing
else.

Covers: tool/replay/check, tool/replay/scenario_check.
"""

import csv
from pathlib import Path

import pytest

from understudy.model.conf_edit import EditError
from understudy.tool.replay.request import ReplayRequest
from understudy.tool.replay.scenarios import replay_scenario
from understudy.tool.replay.traces import replay

CONF = """ClusterName=site
SlurmctldHost=localhost
MinJobAge=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
DisableRootJobs=YES
NodeName=n[1-4] CPUs=4
"""
OPEN = "PartitionName=all Nodes=ALL Default=YES MaxTime=1:00:00\n"


@pytest.fixture
def trace(tmp_path):
    """Jobs of 1 to 20 CPUs, every fourth for two hours."""
    path = tmp_path / "some.swf"
    lines = [
        f"{job} {job * 50} -1 100 {job} -1 -1 {job} {7200 if job % 4 == 0 else 600} -1 1 "
        "1 1 -1 1 -1 -1 -1\n"
        for job in range(1, 21)
    ]
    path.write_text("; MaxProcs: 16\n" + "".join(lines))
    return path


def run(trace: Path, lines: str, **more: object) -> tuple[int, Path]:
    conf, out = trace.parent / "slurm.conf", trace.parent / "out"
    conf.write_text(CONF + lines)
    return replay(ReplayRequest(trace, out, conf=conf, one_process=True, **more)), out  # type: ignore[arg-type]


def test_a_check_names_what_cannot_run_and_leaves_nothing_behind(trace, capsys):
    code, out = run(trace, OPEN, check=True)
    text = capsys.readouterr().out
    assert code == 4
    assert not out.exists()
    assert "4 nodes, 16 CPUs, offered load" in text
    assert "12 of 20 jobs can run" in text
    assert "4 jobs can never start: PartitionTimeLimit (job 4, 8, 12, 16)" in text
    assert "4 jobs can never start: PartitionConfig (job 17, 18, 19, 20)" in text
    assert "4 jobs wider than the machine's 16 CPUs" in text


def test_a_check_of_what_can_all_run_ends_with_0(trace, capsys):
    assert (
        run(
            trace,
            OPEN,
            check=True,
            settings=("PartitionName=all MaxTime=INFINITE", "NodeName=n[1-4] CPUs=8"),
        )[0]
        == 0
    )
    assert "20 of 20 jobs can run" in capsys.readouterr().out


def test_refusals_are_told_in_the_controllers_words(trace, capsys):
    assert run(trace, OPEN, check=True, settings=("EnforcePartLimits=ALL",))[0] == 3
    assert (
        "5 jobs would be refused: Requested time limit is invalid (missing or exceeds some "
        "limit)" in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    "partitions",
    [
        "PartitionName=a Nodes=ALL RootOnly=YES\nPartitionName=b Nodes=ALL\n",
        "PartitionName=a Nodes=ALL Default=YES RootOnly=YES\nPartitionName=b Nodes=ALL\n",
        (
            "PartitionName=a Nodes=ALL Default=YES ReqResv=YES\n"
            "PartitionName=b Nodes=ALL AllowGroups=chemists\n"
        ),
        "PartitionName=a Nodes=ALL Default=YES State=DOWN\nPartitionName=b Nodes=ALL Hidden=YES\n",
        "PartitionName=a Nodes=ALL Default=YES State=DRAIN\nPartitionName=b Nodes=ALL\n",
        "PartitionName=a Default=YES\nPartitionName=b Nodes=ALL\n",
    ],
)
def test_jobs_go_where_they_can_run_if_they_cannot_in_the_default_partition(
    trace, capsys, partitions
):
    code, out = run(trace, partitions, settings=("NodeName=n[1-4] CPUs=8",))
    said = capsys.readouterr()
    assert code == 0
    assert "they go to b (--partition names another)" in said.err
    assert "all 20 jobs can run" in said.out
    assert len((out / "jobs.csv").read_text().splitlines()) == 21


def test_a_partition_that_is_named_is_not_left(trace, capsys):
    run(
        trace,
        "PartitionName=a Nodes=ALL RootOnly=YES\nPartitionName=b Nodes=ALL\n",
        partition="a",
        check=True,
    )
    assert "20 jobs would be refused: Access/permission denied" in capsys.readouterr().out


def test_a_site_where_nothing_can_run_says_why_in_one_line(trace, capsys):
    run(trace, "PartitionName=a Nodes=ALL Default=YES State=INACTIVE\n", check=True)
    assert "0 of 20 jobs can run" in capsys.readouterr().out


NARROW = "PartitionName=narrow Nodes=ALL MaxNodes=1 MaxTime=1\n"


@pytest.mark.parametrize(
    ("partitions", "nearest"),
    [
        (
            "PartitionName=a Nodes=ALL RootOnly=YES\n",
            "the partition a comes nearest (Access/permission denied)",
        ),
        (
            "PartitionName=a Nodes=ALL RootOnly=YES\n" + NARROW,
            "the partition narrow comes nearest (PartitionTimeLimit)",
        ),
        (
            "PartitionName=a Nodes=ALL Default=YES RootOnly=YES\n" + NARROW,
            "the partition narrow comes nearest (PartitionTimeLimit)",
        ),
        ("PartitionName=a Nodes=ALL Default=YES RootOnly=YES\n", ""),
    ],
)
def test_where_nothing_can_run_the_line_tells_why_not_in_the_partition_that_comes_nearest(
    trace, capsys, partitions, nearest
):
    run(trace, partitions, settings=("EnforcePartLimits=NO",))
    line = next(
        line
        for line in capsys.readouterr().out.splitlines()
        if "20 of 20 jobs would be refused" in line
    )
    run(trace, partitions, settings=("EnforcePartLimits=NO",), check=True)
    text = capsys.readouterr().out.splitlines()
    if nearest:
        assert f"; {nearest}" in line
        assert nearest in text
    else:
        assert "nearest" not in line
        assert not any("nearest" in each for each in text)


def scenario(tmp_path: Path, submissions: list[str], events: str = "") -> Path:
    folder = tmp_path / "scenario"
    folder.mkdir()
    (folder / "slurm.conf").write_text(
        "NodeName=n[1-2] CPUs=2\nPartitionName=all Nodes=ALL Default=YES MaxTime=60\n"
    )
    lines = [
        f'{{"id": "j{number}", "at": {number}, "user": "u1", "run": 10, "options": {words}}}\n'
        for number, words in enumerate(submissions)
    ]
    (folder / "workload.jsonl").write_text("".join(lines))
    (folder / "events.jsonl").write_text(events)
    return folder


def test_a_scenario_is_looked_at_through_sbatch(tmp_path, capsys):
    folder = scenario(
        tmp_path,
        [
            "[]",
            '["-n9"]',
            '["-t", "2:00:00"]',
            '["--mem=lots"]',
            '["-p", "none"]',
            '["--dependency=afterok:{j0}"]',
            '["--array=1-3"]',
            '["-n9"]',
        ],
    )
    assert replay_scenario(ReplayRequest(folder, tmp_path / "out", check=True)) == 3
    text = capsys.readouterr().out
    assert not (tmp_path / "out").exists()
    assert "2 nodes, 4 CPUs" in text
    assert "3 of 8 jobs can run" in text
    assert "2 jobs can never start: PartitionConfig (job j1, j7)" in text
    assert "1 job can never start: PartitionTimeLimit (job j2)" in text
    assert "would be refused: sbatch: error: Invalid --mem specification (job j3)" in text
    assert "invalid partition specified: none" in text


def test_a_reservation_that_the_scenario_makes_keeps_no_job_from_being_looked_at(tmp_path, capsys):
    event = (
        '{"at": 1, "cmd": ["scontrol", "create", "reservation=mine", "users=u1", '
        '"nodes=n1", "starttime=now", "duration=60"]}\n'
    )
    folder = scenario(tmp_path, ['["--reservation=mine", "-t5"]', '["--reservation=other"]'], event)
    replay_scenario(ReplayRequest(folder, tmp_path / "out", check=True))
    text = capsys.readouterr().out
    assert "1 of 2 jobs can run" in text
    assert "would be refused: Requested reservation is invalid (job j1)" in text


def test_a_look_does_not_change_what_a_scenario_does(tmp_path, capsys):
    folder = scenario(tmp_path, ["[]", '["-n3"]', '["-n4", "-t5"]', '["--array=1-3"]'])
    assert replay_scenario(ReplayRequest(folder, tmp_path / "out", one_process=True)) == 0
    lines = (tmp_path / "out" / "result.jsonl").read_text().splitlines()[1:]
    assert len(lines) == 6
    assert all('"COMPLETED"' in line for line in lines)
    assert "all 4 jobs can run" in capsys.readouterr().out


def test_job_submit_plug_ins_that_nobody_offers_are_named(trace, capsys):
    run(trace, OPEN, check=True, settings=("JobSubmitPlugins=lua",))
    assert "without effect here: JobSubmitPlugins=lua" in capsys.readouterr().out


def test_a_node_with_a_cpu_a_socket_is_refused_where_cores_are_counted(trace):
    """CPUs= the sockets, which once ended the scheduler; slurmctld does not start with it."""
    node = "NodeName=n[1-4] CPUs=2 Sockets=2 CoresPerSocket=2 CoreSpecCount=1"
    with pytest.raises(EditError, match="CPUs=2 doesn't match neither"):
        run(trace, OPEN, settings=(node, "SelectTypeParameters=CR_Socket"), limit=3)


def test_a_check_leaves_no_folder_behind(trace, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = sorted(tmp_path.glob("understudy-*"))
    run(trace, OPEN, check=True)
    assert sorted(tmp_path.glob("understudy-*")) == before


@pytest.mark.parametrize("latency_s", [1.0, 5.0])
def test_a_look_over_a_slow_network_is_over_before_the_first_job_comes(trace, latency_s):
    code, out = run(
        trace,
        "PartitionName=all Nodes=ALL Default=YES\n",
        settings=("NodeName=n[1-4] CPUs=8",),
        latency_s=latency_s,
    )
    assert code == 0
    with (out / "jobs.csv").open() as file:
        submitted = [int(row["submit"]) for row in csv.DictReader(file)]
    assert submitted == [50 * number + int(latency_s) for number in range(20)]
