"""Command lines are read as getopt_long reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.commands import scancel
from understudy.commands.scontrol import session as scontrol
from understudy.commands.shared.options import (
    NONE,
    OPTIONAL,
    REQUIRED,
    Option,
    OptionError,
    OptionTable,
)
from understudy.commands.sinfo import sinfo
from understudy.commands.squeue import squeue
from understudy.commands.submission import option_table as sbatch_options

TABLE = OptionTable(
    [
        Option("start", "", NONE, "", env="X_START"),
        Option("states", "t", REQUIRED, "LIST: states", env="X_STATES Y_STATES"),
        Option("jobs", "j", OPTIONAL, ""),
        Option("node", "", REQUIRED, "", dest="nodes"),
        Option("nodes", "w", REQUIRED, ""),
        Option("noheader", "h", NONE, "no header"),
        Option("all", "a", NONE, ""),
    ]
)


def read(*arguments: str, permute: bool = True) -> tuple[list[tuple[str, str | None]], list[str]]:
    given_options, operands = TABLE.parse(arguments, permute=permute)
    return [(option.dest, value) for option, value in given_options], operands


@pytest.mark.parametrize(
    ("arguments", "options", "operands"),
    [
        (["-ah"], [("all", None), ("noheader", None)], []),
        (["-aht", "R"], [("all", None), ("noheader", None), ("states", "R")], []),
        (["-tR"], [("states", "R")], []),
        (["--states=R"], [("states", "R")], []),
        (["--states", "R"], [("states", "R")], []),
        (["--states="], [("states", "")], []),
        (["-j", "5"], [("jobs", None)], ["5"]),
        (["-j5"], [("jobs", "5")], []),
        (["--nod=n1"], [("nodes", "n1")], []),
        (["--al"], [("all", None)], []),
        (["x", "-a", "y"], [("all", None)], ["x", "y"]),
        (["-a", "--", "-h"], [("all", None)], ["-h"]),
        (["-"], [], ["-"]),
    ],
)
def test_options_come_in_all_forms(
    arguments: list[str], options: list[tuple[str, str | None]], operands: list[str]
) -> None:
    assert read(*arguments) == (options, operands)


def test_without_permutation_the_first_operand_ends_the_options() -> None:
    assert read("-a", "script", "-h", permute=False) == ([("all", None)], ["script", "-h"])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--foo"], "unrecognized option '--foo'"),
        (["--foo=3"], "unrecognized option '--foo=3'"),
        (["-Z"], "invalid option -- 'Z'"),
        (["-t"], "option requires an argument -- 't'"),
        (["--states"], "option '--states' requires an argument"),
        (["--noheader=3"], "option '--noheader' doesn't allow an argument"),
        (["--st"], "option '--st' is ambiguous; possibilities: '--start' '--states'"),
    ],
)
def test_mistakes_are_named_as_getopt_names_them(arguments: list[str], error: str) -> None:
    with pytest.raises(OptionError) as raised:
        read(*arguments)
    assert str(raised.value) == error


def test_environment_variables_give_options_and_the_first_that_is_set_counts() -> None:
    environ = {"Y_STATES": "PD", "X_START": ""}
    assert [(option.dest, value) for option, value in TABLE.from_environment(environ)] == [
        ("start", ""),
        ("states", "PD"),
    ]


@pytest.mark.parametrize(
    "table",
    [squeue.OPTIONS, sinfo.OPTIONS, scancel.OPTIONS, scontrol.OPTIONS, sbatch_options.OPTIONS],
)
def test_no_table_has_a_letter_or_a_name_twice(table: OptionTable) -> None:
    letters = [option.short for option in table.options if option.short]
    names = [option.long for option in table.options]
    assert len(letters) == len(set(letters))
    assert len(names) == len(set(names))


@given(st.lists(st.text(alphabet="-=athjxyz19", max_size=8), max_size=6))
def test_any_command_line_is_either_read_or_refused_as_a_mistake(arguments: list[str]) -> None:
    try:
        options, operands = TABLE.parse(arguments)
    except OptionError:
        return
    assert len(options) + len(operands) <= sum(len(argument) for argument in arguments) + len(
        arguments
    )
