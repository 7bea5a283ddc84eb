"""The generic resources of steps."""

import pytest

from understudy.controller.tables.gres import Held
from understudy.controller.tables.step import Place, Step
from understudy.controller.tables.step_gres import gpus_of, is_busy, share_out, used_of
from understudy.model.errors import SlurmError
from understudy.protocol.messages import StepSpec

THREE = (Held("gpu", "", 3, 0b1110),)
TYPED = (Held("gpu", "a", 1, 0b001), Held("gpu", "b", 2, 0b110))
COUNTED = (Held("tape", "", 2, 0),)


def devices(spec, tasks, held, used=None):
    return [gpus_of(gres)[1] for gres in share_out(spec, tasks, held, used or [() for _ in held])]


def code(spec, tasks, held, used=None):
    with pytest.raises(SlurmError) as raised:
        share_out(spec, tasks, held, used or [() for _ in held])
    return raised.value.code


def test_a_step_that_asks_for_nothing_has_all_that_its_job_has():
    assert devices(StepSpec(), [1], [THREE]) == [[1, 2, 3]]
    assert share_out(StepSpec(), [1], [COUNTED], [()]) == [COUNTED]
    assert share_out(StepSpec(), [1, 1], [(), ()], [(), ()]) == [(), ()]


def test_none_is_none():
    assert devices(StepSpec(gres=""), [1], [THREE]) == [[]]


def test_of_each_node_of_the_step_and_of_each_task():
    assert devices(StepSpec(gres="gres:gpu:2"), [1, 1], [THREE, THREE]) == [[1, 2], [1, 2]]
    assert devices(StepSpec(tres_per_step="gres:gpu:2"), [1, 1], [THREE, THREE]) == [[1], [1]]
    assert devices(StepSpec(tres_per_step="gres:gpu:5"), [1, 1], [THREE, THREE]) == [
        [1, 2, 3],
        [1, 2],
    ]
    assert devices(StepSpec(tres_per_task="gres:gpu:1"), [1, 3], [THREE, THREE]) == [[1], [1, 2, 3]]


def test_types_are_told_apart():
    assert devices(StepSpec(gres="gres:gpu:b:1"), [1], [TYPED]) == [[1]]
    assert devices(StepSpec(gres="gres:gpu:3"), [1], [TYPED]) == [[0, 1, 2]]
    assert code(StepSpec(gres="gres:gpu:c:1"), [1], [TYPED]) == 2072


def test_what_others_have_is_left_to_them():
    used = used_of([(Held("gpu", "", 1, 0b0010),)])
    assert devices(StepSpec(gres="gres:gpu:2"), [1], [THREE], [used]) == [[2, 3]]
    assert code(StepSpec(gres="gres:gpu:3"), [1], [THREE], [used]) == 2016
    assert code(StepSpec(), [1], [THREE], [used]) == 2016
    assert devices(StepSpec(overlap=True), [1], [THREE], [used]) == [[1, 2, 3]]
    assert code(StepSpec(gres="gres:tape:2"), [1], [COUNTED], [(Held("tape", "", 1, 0),)]) == 2016
    assert is_busy(StepSpec(), THREE, used)
    assert not is_busy(StepSpec(gres="gres:gpu:2"), THREE, used)
    assert not is_busy(StepSpec(overlap=True), THREE, used)


def test_more_than_there_is_can_never_be_had():
    assert code(StepSpec(gres="gres:gpu:4"), [1], [THREE]) == 2134
    assert code(StepSpec(tres_per_step="gres:gpu:7"), [1, 1], [THREE, THREE]) == 2072
    assert code(StepSpec(tres_per_task="gres:gpu:2"), [2], [THREE]) == 2134
    assert code(StepSpec(gres="gres:gpu:1"), [1], [()]) == 2072


def test_they_survive_in_the_saved_state():
    step = Step(3, "x", [Place(0, [0, 1], 2, 100, THREE), Place(1, [2], 1, 100)], "n[1-2]", 10)
    assert Step.unpack(step.pack()).places == step.places
    old = step.pack()
    old[2] = [place[:4] for place in old[2]]
    assert [place.gres for place in Step.unpack(old).places] == [(), ()]


PART = (Held("mps", "", 50, 0b0100),)


def test_parts_of_a_gpu_are_counted_and_not_told_apart():
    assert share_out(StepSpec(), [1], [PART], [()]) == [PART]
    assert share_out(StepSpec(gres="gres:mps:20"), [1], [PART], [()]) == [
        (Held("mps", "", 20, 0b0100),)
    ]
    used = used_of([(Held("mps", "", 20, 0b0100),)])
    assert share_out(StepSpec(gres="gres:mps:30"), [1], [PART], [used]) == [
        (Held("mps", "", 30, 0b0100),)
    ]
    assert code(StepSpec(gres="gres:mps:31"), [1], [PART], [used]) == 2016
    assert gpus_of(PART) == (1, [2])
