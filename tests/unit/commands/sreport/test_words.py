"""sreport's words: each report's own conditions and fields, with as many letters as it takes."""

import pytest

from understudy.commands.sreport.words import condition, field, is_order, reservation_flags


def test_each_report_has_conditions_of_its_own():
    assert condition("user", "TopUsage", "u") == "users"
    assert condition("user", "TopUsage", "wckeys") is None
    assert condition("cluster", "Utilization", "users") is None
    assert condition("cluster", "AccountUtilizationByUser", "users") == "users"
    assert condition("cluster", "WCKeyUtilizationByUser", "users") is None
    assert condition("cluster", "WCKeyUtilizationByUser", "user") == "users"
    assert condition("reservation", "Utilization", "flag") == "flags"


def test_a_condition_may_be_cut_short_as_far_as_its_report_allows():
    assert condition("job", "SizesByAccount", "f") is None
    assert condition("job", "SizesByAccount", "FO") == "format"
    assert condition("job", "SizesByAccount", "gr") == "grouping"
    assert condition("user", "TopUsage", "a") is None
    assert condition("user", "TopUsage", "acct") == "accounts"


def test_fields_are_those_of_the_kind_of_report():
    assert field("cluster", "c") is None
    assert field("cluster", "reserved") == "planned"
    assert field("user", "c") == "cluster"
    assert field("user", "down") is None
    assert field("reservation", "tres") == "trestime"
    assert field("job", "used") is None


def test_users_are_sorted_by_name_or_time():
    assert is_order("n")
    assert is_order("TIME")
    assert not any(map(is_order, ("", "t", "names", "user")))


def test_flags_of_reservations_are_named_as_they_are_kept():
    assert reservation_flags(["maint", "DAILY"]) == {"MAINT", "DAILY"}
    assert reservation_flags([]) == set()
    with pytest.raises(ValueError, match="nosuch"):
        reservation_flags(["nosuch"])
