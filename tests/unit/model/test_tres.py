"""Trackable resources: texts and amounts."""

import pytest

from understudy.model import tres

NUMBERS = tres.numbered(())


def test_amounts_are_read_with_their_units():
    assert tres.parse("cpu=4,mem=10G,node=2", NUMBERS) == {"cpu": 4, "mem": 10240, "node": 2}
    assert tres.parse("CPU=2K,mem=500", NUMBERS) == {"cpu": 2048, "mem": 500}


def test_minus_one_stands_for_no_limit():
    assert tres.parse("cpu=-1", NUMBERS) == {"cpu": -1}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nosuch=3", "no TRES known by type nosuch"),
        ("cpu", "no TRES id found for cpu"),
        ("cpu=1,", "no TRES id found for "),
        ("999=1", "no TRES known by id 999"),
        ("0=1", "cannot convert 0=1 to ID."),
        ("5", "no value given as TRES type/id."),
    ],
)
def test_what_names_no_resource_is_refused(text, complaint):
    with pytest.raises(tres.TresError) as error:
        tres.parse(text, NUMBERS)
    assert str(error.value) == complaint


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("1=4,2=1G", {"cpu": 4, "mem": 1024}),
        ("c=4", {"cpu": 4}),
        (",cpu=+5", {"cpu": 5}),
        ("cpu=", {"cpu": 0}),
        ("cpu=99999999999999999999", {"cpu": -1}),
        ("cpu=-3", {"cpu": 2**64 - 3}),
        ("cpu=1T,mem=1K", {"cpu": 1, "mem": 1}),
    ],
)
def test_amounts_are_read_as_in_c(text, amounts):
    assert tres.parse(text, NUMBERS) == amounts


def test_what_is_wrong_with_an_amount_is_complained_of_and_passed_over():
    said = []
    assert tres.parse("cpu=3x,mem=y", NUMBERS, said.append) == {"cpu": 3, "mem": 0}
    assert said == [f"Invalid unit type '{each}'. Possible options are 'KMGTP'" for each in "xy"]


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
