"""Calls one function of a site's burst_buffer.lua, in a process of its own, and tells what it said.

Place: the edge's, beside `burst_buffer_lua.py`, which starts it: `python -m ... SCRIPT FUNCTION
ARGUMENT ...`, all arguments texts, as Slurm hands them over. The answer is one JSON object on
standard output; whatever else the script prints, and its log lines, go to standard error. It knows
nothing of the controller, so that it is up soon. It needs the extra `lua`.

Follows Slurm's guide to burst buffers, and what 22.05.8, which has Lua 5.1, was seen to make of
what a script returns.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Final

from lupa import lua51

from understudy.model.times import parse_limit

FUNCTIONS: Final = (  # a script has them all
    "slurm_bb_job_process",
    "slurm_bb_pools",
    "slurm_bb_job_teardown",
    "slurm_bb_setup",
    "slurm_bb_data_in",
    "slurm_bb_real_size",
    "slurm_bb_paths",
    "slurm_bb_pre_run",
    "slurm_bb_post_run",
    "slurm_bb_data_out",
    "slurm_bb_get_status",
)
ERROR: Final = -1
_LEVELS: Final = {
    "error": "error",
    "log": "info",
    "log_error": "error",
    "log_info": "info",
    "log_verbose": "debug",
    "log_debug": "debug",
    "log_debug2": "debug",
    "log_debug3": "debug",
    "log_debug4": "debug",
}
_NUMBERS: Final = {
    "SUCCESS": 0,
    "ERROR": ERROR,
    "FAILURE": ERROR,
    "INFINITE": 0xFFFFFFFF,
    "NO_VAL": 0xFFFFFFFE,
    "NO_VAL16": 0xFFFE,
    "NO_VAL8": 0xFE,
}
# how a log function puts its text together, and how many values a function gives: Lua's own
_PREPARE: Final = """
local tell, levels, numbers, minutes = ...
slurm = {time_str2mins = minutes}
for name, number in pairs(numbers) do slurm[name] = number end
for name, level in pairs(levels) do
  slurm[name] = function(...) tell(level, string.format(...)) end
end
"""
_CALL: Final = """
local function counted(...) return {count = select("#", ...), ...} end
return function(name, ...) return counted(_G[name](...)) end
"""


def tell(level: str, text: str) -> None:
    """A line for the controller's log."""
    sys.stderr.write(f"{'' if level == 'info' else f'{level}: '}{text}\n")
    sys.stderr.flush()


def _minutes(text: str) -> int:
    try:
        seconds = parse_limit(text)
    except ValueError:
        return _NUMBERS["NO_VAL"]
    return _NUMBERS["INFINITE"] if seconds is None else -(-seconds // 60)


def called(path: str, function: str, arguments: list[str]) -> tuple[int, str | None]:
    """The function's return code and what it says beside; what keeps it from running is logged."""
    # bytes as they are, whatever they are encoded in
    lua: Any = lua51.LuaRuntime(encoding="latin-1", register_eval=False, register_builtins=False)
    levels, numbers = lua.table_from(_LEVELS), lua.table_from(_NUMBERS)
    try:
        lua.execute(_PREPARE, _told, levels, numbers, _minutes)
        with open(path, "rb") as file:
            lua.execute(_without_first_line(file.read()), name=f"@{path}")
        missing = [name for name in FUNCTIONS if lua.eval(f"type({name})") != "function"]
        for name in missing:
            tell("error", f"{path}: missing required function {name}")
        if missing:
            return ERROR, None
        found = lua.execute(_CALL)(function, *(os.fsencode(each) for each in arguments))
    except (lua51.LuaError, OSError) as error:
        tell("error", f"{path}: {_text(str(error)).partition(chr(10))[0]}")
        return ERROR, None
    return _understood(found, function)


def _without_first_line(script: bytes) -> bytes:
    """As Lua reads a file: a first line that begins with # is none of it."""
    first, newline, rest = script.partition(b"\n")
    return newline + rest if first.startswith(b"#") else script


def _told(level: str, text: str) -> None:
    tell(level, f"lua: {_text(text)}")


def _text(said: str) -> str:
    """What came out of Lua byte by byte."""
    return said.encode("latin-1", errors="replace").decode(errors="replace")


def _understood(found: Any, function: str) -> tuple[int, str | None]:
    count, code, said = found["count"], found[1], found[2]
    if not count:
        return 0, None
    if count > 1 and not isinstance(said, str | int | float):
        tell(
            "error", f"Cannot handle non-string as second return value for lua function {function}."
        )
        return ERROR, None
    text = None if said is None else _text(f"{said:.14g}" if isinstance(said, float) else str(said))
    try:
        return int(float(code)), text
    except (TypeError, ValueError):
        tell("error", f"{function} returned a non-numeric return code, returning error")
        return ERROR, text


def main() -> None:
    """See the module's docstring."""
    path, function, *arguments = sys.argv[1:]
    with os.fdopen(os.dup(1), "w") as answer:
        os.dup2(2, 1)  # a script's print is no answer
        json.dump(called(path, function, arguments), answer)


if __name__ == "__main__":
    main()
