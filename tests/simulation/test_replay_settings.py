"""Options of `understudy replay` that change a configuration have their effect, or are refused:
none is passed over.

Covers: tool/replay/conf.
"""

import csv
import json

import pytest

from understudy.model.conf_edit import EditError
from understudy.tool.replay.request import ReplayRequest
from understudy.tool.replay.results import NEVER_STARTED, REFUSED
from understudy.tool.replay.scenarios import replay_scenario
from understudy.tool.replay.traces import ReplayError, replay

CONF = """ClusterName=site
SlurmctldHost=localhost
MinJobAge=0
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName=n[1-2] CPUs=2
PartitionName=all Nodes=ALL Default=YES
PartitionName=other Nodes=n1
"""


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "some.swf"
    path.write_text(
        "; MaxProcs: 4\n"
        + "".join(
            f"{job} {job} -1 100 2 -1 -1 2 200 -1 1 1 1 -1 1 -1 -1 -1\n" for job in range(1, 5)
        )
    )
    return path


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "slurm.conf").write_text(CONF)
    return folder / "slurm.conf"


def run(trace, conf, **more):
    out = trace.parent / f"out{len(list(trace.parent.iterdir()))}"
    assert replay(ReplayRequest(trace, out, conf=conf, one_process=True, **more)) == 0
    return out


def test_the_scheduler_and_its_parameters_act_beside_a_configuration(trace, site):
    out = run(trace, site, scheduler="backfill", parameters="bf_window=2880")
    lines = (out / "slurm.conf").read_text().splitlines()
    assert "SchedulerType=sched/backfill" in lines
    assert "SchedulerParameters=bf_window=2880" in lines


def test_what_is_set_is_in_the_folder_of_the_run_and_changes_the_schedule(trace, site):
    plain, changed = (
        run(trace, site),
        run(trace, site, settings=("NodeName=n[1-2] CPUs=1", "MaxJobCount=77")),
    )
    assert "NodeName=n[1-2] CPUs=1" in (changed / "report.html").read_text()
    assert "MaxJobCount=77" in (changed / "slurm.conf").read_text().splitlines()
    assert (plain / "jobs.csv").read_text() != (changed / "jobs.csv").read_text()
    assert site.read_text() == CONF


def test_jobs_go_to_the_partition_that_is_named(trace, site):
    rows = (run(trace, site, partition="other") / "jobs.csv").read_text().splitlines()
    assert len(rows) == 5
    assert all(",n1" in row and ",n2" not in row for row in rows[1:])


def test_companions_stay_beside_a_configuration_that_is_changed(trace, site):
    (site.parent / "gres.conf").write_text("NodeName=n1 Name=gpu File=/dev/nvidia[0-1]\n")
    run(trace, site, settings=("GresTypes=gpu", "NodeName=n[1-2] Gres="))


def test_nodes_beside_a_configuration_are_refused(trace, site):
    with pytest.raises(ReplayError, match="--nodes and --cpus say nothing beside --conf"):
        run(trace, site, nodes=4)
    with pytest.raises(ReplayError, match="--nodes and --cpus say nothing beside --conf"):
        run(trace, site, cpus=4)


def test_a_change_after_which_the_file_cannot_be_used_is_refused(trace, site):
    with pytest.raises(EditError, match="no key SchedulerTyp"):
        run(trace, site, settings=("SchedulerTyp=sched/builtin",))
    with pytest.raises(EditError, match="No jobs permitted"):
        run(trace, site, settings=("MaxJobCount=0",))


@pytest.mark.parametrize("option", ["nodes", "cpus", "limit", "partition"])
def test_a_scenario_refuses_options_of_traces(tmp_path, option):
    with pytest.raises(ReplayError, match=f"--{option} is for traces"):
        replay_scenario(ReplayRequest(tmp_path, tmp_path / "out", **{option: 3}))


def test_a_scenarios_configuration_can_be_changed(tmp_path):
    folder = tmp_path / "scenario"
    folder.mkdir()
    (folder / "slurm.conf").write_text(
        "NodeName=n[1-2] CPUs=2\nPartitionName=all Nodes=ALL Default=YES\n"
    )
    (folder / "workload.jsonl").write_text('{"id": "a", "at": 0, "user": "u1", "run": 10}\n')
    request = ReplayRequest(
        folder, tmp_path / "out", one_process=True, settings=("PartitionName=all State=DOWN",)
    )
    assert replay_scenario(request) == NEVER_STARTED
    (result,) = [
        json.loads(line)
        for line in (tmp_path / "out" / "result.jsonl").read_text().splitlines()[1:]
    ]
    assert (result["state"], result["reason"]) == ("PENDING", "PartitionDown")
    assert (
        "PartitionName=all Nodes=ALL Default=YES State=DOWN"
        in (tmp_path / "out" / "slurm.conf").read_text()
    )


def test_a_replay_does_not_write_into_the_sites_record_of_jobs(trace, site, tmp_path):
    record = tmp_path / "jobcomp.txt"
    run(trace, site, settings=("JobCompType=jobcomp/filetxt", f"JobCompLoc={record}"))
    assert not record.exists()


def test_a_limit_on_what_users_may_ask_changes_no_schedule(trace, site):
    word = "SlurmctldParameters=rl_enable,rl_bucket_size=1,rl_refill_period=1000"
    plain, limited = run(trace, site), run(trace, site, settings=(word,))
    assert word in (limited / "slurm.conf").read_text().splitlines()
    assert (plain / "jobs.csv").read_text() == (limited / "jobs.csv").read_text()


def rows(out):
    with (out / "jobs.csv").open() as file:
        return {int(row["job"]): row for row in csv.DictReader(file)}


@pytest.fixture
def buffered(tmp_path):
    """Two jobs that cannot hold their buffers at once, and one for which there is none."""
    path = tmp_path / "buffered.swf"
    path.write_text(
        "; MaxProcs: 4\n; BurstBuffer: 10, 3\n"
        + "".join(
            f"{job} {job} -1 100 1 -1 -1 1 200 -1 1 1 1 -1 1 -1 -1 -1 {units}\n"
            for job, units in ((1, "6 0"), (2, "5 0"), (3, "0 3"))
        )
    )
    return path


def test_units_of_a_trace_are_licences_of_the_configuration_that_is_made(buffered):
    out = buffered.parent / "out"
    assert replay(ReplayRequest(buffered, out, scheduler="easy-bb", one_process=True)) == 0
    assert "Licenses=bb1:10,bb2:3" in (out / "slurm.conf").read_text().splitlines()
    starts = {job: int(row["start"]) for job, row in rows(out).items()}
    assert starts == {1: 0, 2: 100, 3: 2}


def test_units_of_a_trace_are_not_used_where_the_site_has_no_such_licences(buffered, site, capsys):
    out = run(buffered, site)
    assert {job: int(row["start"]) for job, row in rows(out).items()}[2] < 100
    assert "it would be Licenses=bb1:10,bb2:3" in capsys.readouterr().err


def test_units_of_a_trace_are_used_where_the_site_has_such_licences(buffered, site):
    site.write_text(CONF + "Licenses=bb1:10,bb2:3\n")
    assert {job: int(row["start"]) for job, row in rows(run(buffered, site)).items()}[2] >= 100


def test_a_job_that_asks_for_more_than_there_is_is_refused_and_the_others_run(tmp_path):
    path = tmp_path / "much.swf"
    path.write_text(
        "; MaxProcs: 4\n; BurstBuffer: 10\n"
        "1 1 -1 100 1 -1 -1 1 200 -1 1 1 1 -1 1 -1 -1 -1 11\n"
        "2 2 -1 100 1 -1 -1 1 200 -1 1 1 1 -1 1 -1 -1 -1 10\n"
    )
    request = ReplayRequest(path, tmp_path / "out", scheduler="fcfs", one_process=True)
    assert replay(request) == REFUSED
    assert int(rows(tmp_path / "out")[2]["start"]) == 1
