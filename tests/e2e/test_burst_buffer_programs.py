"""A site's program that runs the stages of burst buffers: how it ends, what it says, and that it
ends in time.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from understudy.clock.timekeeper import Timekeeper
from understudy.controller.edge.programs import Programs


def told(folder: Path, text: str, limit_s: int = 20) -> tuple[str | None, float]:
    """What the controller hears of a shell script, and after how long."""
    program = folder / "stage"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)

    async def run() -> tuple[str | None, float]:
        loop = asyncio.get_running_loop()
        programs = Programs(loop, Timekeeper(loop, 0.0), folder)
        heard = loop.create_future()
        began = time.monotonic()
        programs.run_told(
            [str(program), "setup", "17"], {"BB_POOL": "fast"}, "#BB_LUA\n", limit_s,
            heard.set_result,
        )  # fmt: skip
        said = await asyncio.wait_for(heard, 20)
        await programs.close()
        return said, time.monotonic() - began

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[ "$1 $2 $BB_POOL $(cat)" = "setup 17 fast #BB_LUA" ]', ""),
        ("echo no space; echo and more; exit 3", "no space"),
        ("echo to stderr >&2; exit 1", "to stderr"),
        ("exit 4", "exit code 4"),
        ("echo fine; exit 0", ""),
    ],
)
def test_exit_code_0_is_success_and_else_the_first_line_is_the_message(tmp_path, text, said):
    assert told(tmp_path, text)[0] == said


def test_a_program_that_takes_too_long_is_killed_with_all_that_it_started(tmp_path):
    said, took_s = told(tmp_path, "sleep 60 & echo $! > child; wait", limit_s=3)
    assert said is None
    assert took_s < 15
    child = int((tmp_path / "child").read_text())
    until = time.monotonic() + 10  # who is killed ends when it has its turn
    while _runs(child) and time.monotonic() < until:
        time.sleep(0.01)
    assert not _runs(child)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ('echo "$# words: $2"; echo more', "2 words: a b\nmore\n"),
        ("true", ""),
        ("echo half; exit 1", None),
        ("sleep 60", None),
    ],
)
def test_what_a_program_tells_is_all_that_it_printed_unless_it_fails(tmp_path, text, heard):
    program = tmp_path / "told"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)

    async def run(words: list[str]) -> str | None:
        loop = asyncio.get_running_loop()
        programs = Programs(loop, Timekeeper(loop, 0.0), tmp_path)
        found = loop.create_future()
        programs.run_asked(words, 20 if heard is not None else 2, found.set_result)
        said = await asyncio.wait_for(found, 20)
        await programs.close()
        return said

    assert asyncio.run(run([str(program), "get_status", "a b"])) == heard
    assert asyncio.run(run([str(tmp_path / "not there")])) is None


def test_a_program_that_is_not_there_says_so(tmp_path):
    async def run() -> str:
        loop = asyncio.get_running_loop()
        programs = Programs(loop, Timekeeper(loop, 0.0), tmp_path)
        heard = loop.create_future()
        programs.run_told(["/no/such", "setup", "1"], {}, "", 5, heard.set_result)
        return await asyncio.wait_for(heard, 20)

    assert asyncio.run(run()) == "/no/such: No such file or directory"
