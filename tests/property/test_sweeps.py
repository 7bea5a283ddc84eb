"""What must hold of any sweep."""

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.experiments.sweep.cells import cells, key
from understudy.experiments.sweep.file import read_sweep
from understudy.experiments.sweep.statistics import front

AXES = {
    "scheduler": ["easy", "fcfs", "backfill"],
    "word.bf_interval": [30, 60],
    "word.defer": [True, False],
    "conf.PriorityWeightAge": [0, 1000],
    "workload.load": [0.5, 0.9],
    "workload.perfect": [True, False],
    "sacctmgr": ["add account a", "add account b"],
}


def keys(path: Path, axes: list[str], how: str) -> list[str]:
    lines = [f"{json.dumps(axis)} = {json.dumps(AXES[axis])}" for axis in axes]
    head = f'title = "t"\nhow = "{how}"\nsamples = 7\nseeds = [1, 2]\n'
    path.write_text(f'{head}[workload]\ntrace = "t.swf"\n[axes]\n' + "\n".join(lines))
    return [key(cell, {}, "1") for cell in cells(read_sweep(path))]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(AXES)), min_size=1, max_size=4, unique=True),
    st.sampled_from(["grid", "sample"]),
    st.randoms(),
)
def test_the_order_of_axes_decides_nothing(tmp_path_factory, axes, how, chance):
    path = tmp_path_factory.mktemp("sweep") / "s.toml"
    before = keys(path, axes, how)
    other = list(axes)
    chance.shuffle(other)
    after = keys(path, other, how)
    assert sorted(before) == sorted(after)
    assert len(set(before)) == len(before)


points = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20)


@given(points, st.booleans(), st.booleans())
def test_the_front_beats_all_others_and_none_of_it_is_beaten(found, more_x, more_y):
    best = front(found, more_x=more_x, more_y=more_y)

    def beats(one, other):
        x = one[0] >= other[0] if more_x else one[0] <= other[0]
        y = one[1] >= other[1] if more_y else one[1] <= other[1]
        return x and y and one != other

    assert not any(beats(one, found[place]) for one in found for place in best)
    for point in found:
        assert any(found[place] == point or beats(found[place], point) for place in best)
