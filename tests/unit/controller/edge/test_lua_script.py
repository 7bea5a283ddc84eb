"""What becomes of what a site's burst_buffer.lua returns, as 22.05.8 was seen to take it.

Covers: controller/edge/lua_script.
"""

from pathlib import Path

import pytest

from understudy.controller.edge.lua_script import FUNCTIONS, called

ALL = "\n".join(f"function {name}(...) return slurm.SUCCESS end" for name in FUNCTIONS)


def said(folder: Path, text: str, *arguments: str, function: str = "slurm_bb_setup"):
    script = folder / "burst_buffer.lua"
    script.write_text(f"{ALL}\n{text}\n")
    return called(str(script), function, list(arguments))


def test_a_function_gets_its_arguments_as_texts(tmp_path):
    body = 'return slurm.SUCCESS, select("#", ...) .. type((...)) .. table.concat({...}, "|")'
    text = f"function slurm_bb_setup(...) {body} end"
    assert said(tmp_path, text, "17", "1000", "(null)") == (0, "3string17|1000|(null)")


def test_bytes_that_are_no_utf_8_come_through(tmp_path):
    text = "function slurm_bb_setup(a) return #a == 2 and slurm.SUCCESS or slurm.ERROR, a end"
    assert said(tmp_path, text, "\udcff\udcfe")[0] == 0


@pytest.mark.parametrize(
    ("returns", "understood"),
    [
        ("", (0, None)),
        ("return slurm.SUCCESS", (0, None)),
        ('return slurm.ERROR, "no space"', (-1, "no space")),
        ('return 5, "five"', (5, "five")),
        ('return "0", "zero"', (0, "zero")),
        ("return slurm.SUCCESS, 55", (0, "55")),
        ("return 7, 3", (7, "3")),
    ],
)
def test_a_code_and_a_text_are_taken(tmp_path, returns, understood):
    assert said(tmp_path, f"function slurm_bb_setup() {returns} end") == understood


@pytest.mark.parametrize(
    ("text", "logged"),
    [
        (
            "function slurm_bb_setup() return slurm.SUCCESS, nil end",
            "Cannot handle non-string as second return value for lua function slurm_bb_setup.",
        ),
        (
            "function slurm_bb_setup() return slurm.SUCCESS, {} end",
            "Cannot handle non-string as second return value for lua function slurm_bb_setup.",
        ),
        (
            'function slurm_bb_setup() return "x" end',
            "slurm_bb_setup returned a non-numeric return code, returning error",
        ),
        ('function slurm_bb_setup() error("oh no") end', "burst_buffer.lua:12: oh no"),
        ("function slurm_bb_setup(", "expected near '<eof>'"),
        ("slurm_bb_setup = nil", "missing required function slurm_bb_setup"),
    ],
)
def test_what_cannot_be_used_is_a_failure_with_a_line_in_the_log(tmp_path, capsys, text, logged):
    assert said(tmp_path, text) == (-1, None)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert logged in lines[0]


def test_a_script_that_is_not_there_is_a_failure(tmp_path, capsys):
    path = str(tmp_path / "burst_buffer.lua")
    assert called(path, "slurm_bb_pools", []) == (-1, None)
    assert "No such file" in capsys.readouterr().err


def test_log_functions_write_a_line_each_with_its_level(tmp_path, capsys):
    text = """function slurm_bb_setup()
      slurm.log_info("%d of %s", 3, "x") slurm.log_error("bad") slurm.log_debug2("small")
      slurm.log("plain")
    end"""
    assert said(tmp_path, text) == (0, None)
    assert capsys.readouterr().err.splitlines() == [
        "lua: 3 of x",
        "error: lua: bad",
        "debug: lua: small",
        "lua: plain",
    ]


@pytest.mark.parametrize(("limit", "minutes"), [("1-2:30", 1590), ("90", 90), ("1:30:00", 90)])
def test_limits_are_minutes(tmp_path, limit, minutes):
    text = f'function slurm_bb_setup() return 0, slurm.time_str2mins("{limit}") end'
    assert said(tmp_path, text) == (0, str(minutes))


def test_a_first_line_for_the_shell_is_none_of_it(tmp_path):
    script = tmp_path / "burst_buffer.lua"
    script.write_text(f"#!/usr/bin/lua\n{ALL}\n")
    assert called(str(script), "slurm_bb_pools", []) == (0, None)
