"""What is sent to workers, and what they make of it. Covers: tool/sweep/work."""

import sys

import msgspec
import pytest

from understudy.experiments.sweep.file import SweepError, read_sweep
from understudy.experiments.swf import parse_swf
from understudy.tool.sweep import work
from understudy.tool.sweep.orders import plan
from understudy.tool.sweep.work import OtherVersionError, make_workload, run_cell

TRACE = "; MaxProcs: 8\n; MaxNodes: 8\n" + "\n".join(
    f"{n} {n * 60} -1 {100 + n} 2 -1 -1 2 300 -1 1 {n % 3} 1 1 1 1 -1 -1" for n in range(1, 21)
)
CONF = """ClusterName=c
SlurmctldHost=localhost
NodeName=n[1-4] CPUs=2
PartitionName=p Nodes=n[1-4] Default=YES
"""


def planned(tmp_path, workload, replay="", axes="", conf=CONF, **options):
    (tmp_path / "t.swf").write_text(TRACE)
    (tmp_path / "slurm.conf").write_text(conf)
    (tmp_path / "base.txt").write_text("add account a1")
    (tmp_path / "fail.csv").write_text("time\n")
    path = tmp_path / "sweep.toml"
    path.write_text(f'title = "t"\n[workload]\n{workload}\n[replay]\n{replay}\n[axes]\n{axes}\n')
    return plan(read_sweep(path), **options)


def made(found):
    (order,) = found.orders
    recipe = found.recipes[order.recipe]
    return make_workload(recipe, [found.sources[sha] for sha in recipe.sources])


def jobs(workload):
    (content,) = workload.files.values()
    return parse_swf(content.decode().split("\n")).jobs


def test_a_trace_that_is_not_changed_goes_as_it_is(tmp_path):
    workload = made(planned(tmp_path, 'trace = "t.swf"'))
    assert workload.files == {"t.swf": TRACE.encode()}


def test_all_changes_are_made(tmp_path):
    text = 'trace = "t.swf"\nleave_out = [0]\nbegin = "2m"\nend = "15m"\njobs = 8\nthin = 0.5\n'
    text += 'run_times = 2\ninterarrival = 0.5\nload = 0.9\nperfect = true\nshift = "-1h"'
    found = jobs(made(planned(tmp_path, text)))
    assert len(found) == 4
    assert all(job.req == job.run >= 200 and job.user != 0 for job in found)


def test_models_and_merged_traces_are_made(tmp_path):
    for kind in ("lublin", "synthetic"):
        rest = "jobs = 30, nodes = 9, users = 4, groups = 2, load = 0.5"
        text = f'model = {{ kind = "{kind}", {rest} }}'
        found = jobs(made(planned(tmp_path, text)))
        assert len(found) == 30
        assert {job.group for job in found} <= {1, 2}
    assert len(jobs(made(planned(tmp_path, 'traces = ["t.swf", "t.swf"]')))) == 40


def test_what_cannot_be_made_says_why(tmp_path):
    workload = made(planned(tmp_path, 'trace = "t.swf"\nbegin = "9d"'))
    assert "no job is submitted" in workload.error
    (order,) = planned(tmp_path, 'trace = "t.swf"\nbegin = "9d"').orders
    assert run_cell(order, workload).error == workload.error


def test_workloads_without_chance_are_made_once_for_all_seeds(tmp_path):
    (tmp_path / "sweep.toml").write_text("")
    for workload, count in (('trace = "t.swf"', 1), ('trace = "t.swf"\nthin = 0.5', 3)):
        found = planned(tmp_path, workload, axes="[short]\nseeds = [1, 2, 3]")
        path = tmp_path / "sweep.toml"
        found = plan(read_sweep(path, short=True))
        assert len(found.recipes) == count
        assert len({order.key for order in found.orders}) == 3


def test_options_and_files_are_those_of_a_replay(tmp_path):
    replay = 'nodes = 4\nscheduler = "easy"\nset = ["MaxJobCount=50"]\naccounting = "base.txt"\n'
    replay += 'sacctmgr = ["add account a2"]\nfailures = "trace:file=fail.csv"\nstrict = true\n'
    replay += "latency = 0.01\nfault = ['crash of=n1 at=60 for=600']"
    (order,) = planned(tmp_path, 'trace = "t.swf"', replay).orders
    text = " ".join(order.options)
    assert text == (
        "--seed 1 --nodes 4 --scheduler easy --latency 0.01 --set MaxJobCount=50 "
        "--fault crash of=n1 at=60 for=600 --failures trace:file=failures.csv "
        "--accounting sacctmgr.txt --strict"
    )
    assert order.files["sacctmgr.txt"] == b"add account a1\nadd account a2\n"
    assert order.files["failures.csv"] == b"time\n"
    placed = work._placed(order.options, tmp_path)
    assert f"trace:file={tmp_path}/failures.csv" in placed
    assert str(tmp_path / "sacctmgr.txt") in placed


def test_a_configuration_goes_along_and_says_how_large_the_machine_is(tmp_path):
    found = planned(tmp_path, 'trace = "t.swf"\nload = 0.9', 'conf = "slurm.conf"')
    (order,) = found.orders
    assert "conf/slurm.conf" in order.files
    assert found.recipes[order.recipe].processors == 8


def test_keys_follow_the_content_of_files(tmp_path):
    before = planned(tmp_path, 'trace = "t.swf"', 'accounting = "base.txt"').orders[0].key
    assert planned(tmp_path, 'trace = "t.swf"', 'accounting = "base.txt"').orders[0].key == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "u.swf").write_text(TRACE + "\n")
    found = planned(
        tmp_path, 'trace = "u.swf"', 'accounting = "base.txt"', traces=tmp_path / "other"
    )
    assert found.orders[0].key != before


@pytest.mark.parametrize(
    ("workload", "replay", "axes", "said"),
    [
        ('trace = "none.swf"', "", "", "line 3: none.swf: No such file"),
        ('trace = "t.swf"', "", '"workload.trace" = ["x.swf"]', "line 7: axes.workload.trace"),
        ('trace = "t.swf"\nbegin = "soon"', "", "", "line 4: begin: 'soon' is no time"),
        ('trace = "t.swf"', 'conf = "none.conf"', "", "line 5: none.conf: "),
        ('trace = "t.swf"', 'conf = "base.txt"', "", "line 5: base.txt: "),
        ('trace = "t.swf"', 'accounting = "none"', "", "line 5: none: No such file"),
        ('trace = "folder"\nthin = 0.5', "", "", "line 2: folder is a scenario"),
    ],
)
def test_what_is_not_there_is_said_with_its_line(tmp_path, workload, replay, axes, said):
    (tmp_path / "folder").mkdir(exist_ok=True)
    (tmp_path / "folder" / "workload.jsonl").write_text("")
    with pytest.raises(SweepError) as raised:
        planned(tmp_path, workload, replay, axes)
    assert said in str(raised.value)


def test_a_worker_of_another_version_refuses(tmp_path):
    found = planned(tmp_path, 'trace = "t.swf"')
    (order,) = found.orders
    with pytest.raises(OtherVersionError, match="1 was expected"):
        run_cell(msgspec.structs.replace(order, version="1"), made(found))


def test_the_folder_of_a_replay_comes_back_if_it_is_to_be_kept(tmp_path):
    found = planned(tmp_path, 'trace = "t.swf"')
    (order,) = found.orders
    assert run_cell(order, made(found), tmp_path).files == {}
    files = run_cell(msgspec.structs.replace(order, keeps_run=True), made(found), tmp_path).files
    assert files["jobs.csv"].count(b"COMPLETED") == 20
    assert {"config.json", "summary.json"} <= set(files)


def test_where_no_job_ran_the_cell_says_why(tmp_path):
    conf = CONF.replace("Default=YES", "Default=YES MaxTime=1") + "EnforcePartLimits=ALL\n"
    found = planned(tmp_path, 'trace = "t.swf"', 'conf = "slurm.conf"', conf=conf)
    (order,) = found.orders
    error = run_cell(order, made(found), tmp_path).error
    assert error.startswith("no job ran: Requested time limit is invalid")


def test_a_replay_that_fails_says_its_last_words(tmp_path, monkeypatch):
    found = planned(tmp_path, 'trace = "t.swf"', 'partition = "none"')
    (order,) = found.orders
    script = "import sys; print('understudy replay: error: no such partition'); sys.exit(1)"

    def start(_trace, _options, folder):
        with (folder / "replay.log").open("wb") as log:
            return work.subprocess.Popen(
                [sys.executable, "-c", script], stdin=work.subprocess.PIPE, stdout=log
            )

    monkeypatch.setattr(work, "start_replay", start)
    assert run_cell(order, made(found), tmp_path).error == "no such partition"
    unwanted = run_cell(order, made(found), tmp_path, lambda: False)
    assert unwanted.error
