"""Trackable resources: texts and amounts."""

import pytest

from understudy.model import tres


def test_amounts_are_read_with_their_units():
    assert tres.parse("cpu=4,mem=10G,node=2", tres.BASE) == {"cpu": 4, "mem": 10240, "node": 2}
    assert tres.parse("CPU=2K,mem=500", tres.BASE) == {"cpu": 2048, "mem": 500}


def test_minus_one_stands_for_no_limit():
    assert tres.parse("cpu=-1", tres.BASE) == {"cpu": -1}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nosuch=3", "no TRES known by type nosuch"),
        ("cpu", "no TRES id found for cpu"),
        ("cpu=3x", "Invalid unit type 'x'. Possible options are 'KMGTP'"),
    ],
)
def test_what_names_no_resource_is_refused(text, complaint):
    with pytest.raises(tres.TresError) as error:
        tres.parse(text, tres.BASE)
    assert str(error.value) == complaint


def test_texts_are_sorted_and_memory_has_its_unit():
    assert tres.text_of({"node": 2, "mem": 10240, "cpu": 64}) == "cpu=64,mem=10G,node=2"
    assert tres.text_of({"mem": 4000}) == "mem=4000M"


def test_a_change_replaces_what_it_names_and_minus_one_removes():
    assert tres.merged({"cpu": 8, "node": 2}, {"cpu": -1, "mem": 100}) == {"node": 2, "mem": 100}


def test_resources_of_the_site_are_numbered_after_slurms_own():
    numbers = tres.numbered(["gres/gpu", "license/matlab"])
    assert numbers["cpu"] == 1
    assert numbers["pages"] == 8
    assert (numbers["gres/gpu"], numbers["license/matlab"]) == (1001, 1002)
