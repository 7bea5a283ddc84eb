"""Cells out of axes."""

import pytest

from understudy.experiments.sweep.cells import cells, key
from understudy.experiments.sweep.file import SweepError, read_sweep

BASE = """title = "t"
{head}
[workload]
model = {{ kind = "synthetic", jobs = 10 }}
[replay]
set = ["PriorityType=priority/basic"]
{replay}
[axes]
{axes}
"""


def made(tmp_path, axes, head="", replay=""):
    path = tmp_path / "sweep.toml"
    path.write_text(BASE.format(axes=axes, head=head, replay=replay))
    return cells(read_sweep(path))


def test_a_grid_has_all_choices_and_each_seed(tmp_path):
    axes = 'scheduler = ["easy", "fcfs"]\n"workload.thin" = [0.5, 1.0]'
    found = made(tmp_path, axes, "seeds = [1, 2]")
    assert [cell.number for cell in found] == list(range(1, 9))
    assert found[0].name == "scheduler=easy workload.thin=0.5 seed=1"
    assert [(c.replay.scheduler, c.workload.thin, c.seed) for c in found[:4]] == [
        ("easy", 0.5, 1),
        ("easy", 0.5, 2),
        ("easy", 1.0, 1),
        ("easy", 1.0, 2),
    ]


def test_a_list_takes_values_together(tmp_path):
    axes = 'scheduler = ["easy", "fcfs"]\n"workload.thin" = [0.5, 1.0]'
    found = made(tmp_path, axes, 'how = "list"')
    assert [(c.replay.scheduler, c.workload.thin) for c in found] == [("easy", 0.5), ("fcfs", 1.0)]


def test_a_sample_is_of_its_seed_and_within_its_ranges(tmp_path):
    axes = '"word.bf_interval" = { from = 10, to = 1000, log = true, whole = true }\n'
    axes += '"workload.load" = { from = 0.5, to = 1.5 }'
    one = made(tmp_path, axes, 'how = "sample"\nsamples = 20')
    assert one == made(tmp_path, axes, 'how = "sample"\nsamples = 20')
    assert one != made(tmp_path, axes, 'how = "sample"\nsamples = 20\nsample_seed = 2')
    assert len({cell.name for cell in one}) == 20
    for cell in one:
        assert isinstance(cell.values["word.bf_interval"], int)
        assert 10 <= cell.values["word.bf_interval"] <= 1000
        assert 0.5 <= cell.workload.load <= 1.5


def test_a_sample_of_few_choices_has_them_once(tmp_path):
    found = made(tmp_path, 'scheduler = ["easy", "fcfs"]', 'how = "sample"\nsamples = 9')
    assert sorted(cell.replay.scheduler for cell in found) == ["easy", "fcfs"]


def test_changes_come_behind_what_the_base_says(tmp_path):
    axes = """
"conf.PriorityWeightAge" = [7]
"word.defer" = [true]
"word.bf_interval" = [60]
sacctmgr = [["add account a1", "add account a2"]]
"model.load" = [0.9]
parameters = ["plan_seed={seed}"]
[[axes.policy]]
name = "one"
scheduler = "easy"
set = ["PriorityWeightQOS=3"]
workload = { perfect = true }
replay = { nodes = 5 }
"""
    (cell,) = made(tmp_path, axes, "seeds = [4]")
    assert cell.replay.set == (
        "PriorityType=priority/basic",
        "PriorityWeightAge=7",
        "PriorityWeightQOS=3",
        "SchedulerParameters+=bf_interval=60",
        "SchedulerParameters+=defer",
    )
    assert cell.replay.sacctmgr == ("add account a1", "add account a2")
    assert cell.replay.parameters == "plan_seed=4"
    assert (cell.replay.scheduler, cell.replay.nodes) == ("easy", 5)
    assert cell.workload.perfect
    assert cell.workload.model.load == 0.9
    assert cell.values["policy"] == "one"
    assert cell.values["sacctmgr"] == "add account a1; add account a2"


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ('scheduler = ["esay"]', "line 9: axes.scheduler: SchedulerType=esay is not known"),
        ('"word.bf_intervall" = [1]', "is bf_interval meant"),
        ('"word.bf_interval" = ["a\\nb"]', "line 9: axes.word.bf_interval"),
        (
            '"word.bf_interval" = [30, "soon"]',
            "Invalid SchedulerParameters bf_interval: 0: the def",
        ),
        ('parameters = ["bf_window=99999"]', "Invalid SchedulerParameters bf_window: 99999"),
        ('"replay.failures" = ["never"]', "axes.replay.failures: 'never' is none of exponential"),
        ('"replay.fault" = ["crash of=n1"]', "axes.replay.fault: at= is missing"),
        ('"workload.thin" = [2]', "axes.workload.thin: thin: Expected `float` <= 1.0"),
        ('"conf.MaxJobCout" = [1]', "did you mean MaxJobCount"),
        ('"conf.MaxJobCount" = ["many"]', "line 9: axes.conf.MaxJobCount"),
        ('"workload.lod" = [1]', "there is no 'lod'; there are trace"),
        ('"workload.load" = [-1]', "load: Expected `float` > 0"),
        ('"model.jobs" = [0]', "model.jobs: Expected `int` >= 1"),
        ('"replay.nods" = [1]', "there is no 'nods'"),
        ("color = [1]", "nothing is called so"),
        ("scheduler = []", "expected a list of values"),
        ('scheduler = ["easy", "easy"]', "a value is there twice"),
        ('"workload.load" = { from = 1, to = 2 }', "a range needs how = 'sample'"),
        ('"workload.load" = { form = 1, to = 2 }', "a range has from, to"),
        ("[[axes.policy]]\nset = []", "a variant needs a name"),
        ('[[axes.policy]]\nname = "x"\ncolor = 1', "a variant has no 'color'"),
        ('[[axes.policy]]\nname = "x"\nset = ["A"]', "axes.policy 'x': A: it reads KEY=VALUE"),
        ('[[axes.policy]]\nname = "x"\nconf = 1', "conf is a table"),
    ],
)
def test_an_axis_that_cannot_be_is_said_with_its_line(tmp_path, axes, said):
    with pytest.raises(SweepError) as raised:
        made(tmp_path, axes)
    assert said in str(raised.value)
    assert "line 9" in str(raised.value)


def test_what_is_wrong_with_the_replay_itself_is_not_blamed_on_an_axis(tmp_path):
    with pytest.raises(SweepError, match="line 5: replay: 'never' is none of exponential"):
        made(tmp_path, 'scheduler = ["easy"]', replay='failures = "never"')


def test_too_many_cells_are_refused_before_they_are_made(tmp_path):
    values = list(range(1, 400))
    axes = f'"conf.MaxJobCount" = {values}\n"conf.MinJobAge" = {values}'
    with pytest.raises(SweepError, match="take a sample"):
        made(tmp_path, axes)


def test_lists_of_different_lengths_do_not_go_together(tmp_path):
    with pytest.raises(SweepError, match=r"scheduler: 1, workload\.thin: 2"):
        made(tmp_path, 'scheduler = ["easy"]\n"workload.thin" = [0.5, 1.0]', 'how = "list"')


def test_a_range_must_have_room(tmp_path):
    for given, said in (
        ("from = 2, to = 1", "below to"),
        ("from = 0, to = 1, log = true", "above 0"),
    ):
        with pytest.raises(SweepError, match=said):
            made(tmp_path, f'"workload.load" = {{ {given} }}', 'how = "sample"')


def test_keys_tell_cells_apart_by_all_that_decides_them(tmp_path):
    one, other = made(tmp_path, 'scheduler = ["easy", "fcfs"]')
    keys = {
        key(one, {}, "1"),
        key(other, {}, "1"),
        key(one, {"conf": "abc"}, "1"),
        key(one, {}, "2"),
        key(one._replace(seed=9), {}, "1"),
        key(one._replace(execution=2), {}, "1"),
    }
    assert len(keys) == 6
    assert key(one._replace(number=5, values={}), {}, "1") == key(one, {}, "1")
