import pytest

from understudy.controller.scheduling.resources import NONE, Resources

KINDS = Resources({"cpus": 96, "bb": 480_000, "licenses/matlab": 3})


def test_a_subtraction_takes_all_resources_at_once():
    need = KINDS.need({"cpus": 8, "bb": 20_000})
    assert KINDS.amounts(KINDS.totals - need) == {"cpus": 88, "bb": 460_000, "licenses/matlab": 3}
    assert KINDS.amount(KINDS.totals - need, "bb") == 460_000


def test_amounts_without_names_are_in_the_order_of_all():
    assert KINDS.packed([8, 20_000, 0]) == KINDS.need({"cpus": 8, "bb": 20_000})
    assert not KINDS.fits(KINDS.totals, KINDS.packed([0, 10**30, 0]))
    with pytest.raises(ValueError, match="argument"):
        KINDS.packed([8])


@pytest.mark.parametrize(
    ("need", "fits"),
    [
        ({}, True),
        ({"cpus": 96, "bb": 480_000, "licenses/matlab": 3}, True),
        ({"cpus": 97}, False),
        ({"cpus": 1, "licenses/matlab": 4}, False),
        ({"bb": 10**30}, False),
    ],
)
def test_it_fits_if_there_is_enough_of_each(need, fits):
    assert KINDS.fits(KINDS.totals, KINDS.need(need)) is fits


def test_more_than_there_is_never_fits_also_where_a_field_is_full_at_the_total():
    kinds = Resources({"a": 7, "b": 1})
    assert not kinds.fits(kinds.totals, kinds.need({"a": 8}))
    assert not kinds.fits(kinds.totals, kinds.need({"a": 1_000_000}))


def test_what_is_free_is_not_less_than_nothing():
    free = KINDS.free({"cpus": -3, "bb": 5})
    assert KINDS.amounts(free) == {"cpus": 0, "bb": 5, "licenses/matlab": 0}
    assert KINDS.fits(free, KINDS.need({"bb": 5}))


def test_of_two_amounts_the_smaller_of_each_resource():
    one, other = KINDS.free({"cpus": 4, "bb": 900}), KINDS.free({"cpus": 80, "bb": 7})
    assert KINDS.amounts(KINDS.least(one, other)) == {"cpus": 4, "bb": 7, "licenses/matlab": 0}
    assert KINDS.fits(KINDS.least(one, other), KINDS.need({"cpus": 4, "bb": 7}))


def test_a_resource_that_is_not_there_is_told_by_its_name():
    with pytest.raises(KeyError, match="gres/gpu"):
        KINDS.need({"gres/gpu": 1})


def test_no_resources_are_enough_for_nothing():
    assert NONE.fits(NONE.totals, NONE.need({}))
    assert NONE.amounts(NONE.least(NONE.totals, NONE.totals)) == {}


def test_what_is_short_is_named():
    kinds = Resources({"cpus": 8, "bb": 10})
    free = kinds.free({"cpus": 3, "bb": 4})
    assert kinds.short(free, kinds.need({"cpus": 4, "bb": 5})) == ["cpus", "bb"]
    assert kinds.short(free, kinds.need({"cpus": 3, "bb": 5})) == ["bb"]
    assert kinds.short(free, kinds.need({"cpus": 3})) == []
