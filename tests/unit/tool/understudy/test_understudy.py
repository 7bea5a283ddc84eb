"""`understudy` while it is still being imported."""

import subprocess
import sys

import pytest

from understudy.tool.understudy.app import app_with

START = """
import signal, sys

moment, sys.argv = sys.argv[-1], ["understudy", "replay", "none.swf"]

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupts())
from understudy.tool.understudy.understudy import main
main()
"""


@pytest.mark.parametrize(
    "moment",
    ["typer", "understudy.tool.understudy.replay", "understudy.tool.replay.traces"],
)
def test_who_interrupts_it_then_gets_no_traceback(moment):
    found = subprocess.run(
        [sys.executable, "-c", START, moment],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (found.returncode, found.stderr) == (130, "")


def words_of(*words):
    return subprocess.run(
        [sys.executable, "-m", "understudy.tool.understudy.understudy", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_only_the_subcommand_that_is_named_is_made_but_help_and_mistakes_know_all():
    assert [each.name for each in app_with("down").registered_commands] == ["down", "version"]
    everything = app_with("dwon")
    names = {each.name for each in everything.registered_commands}
    names |= {each.name for each in everything.registered_groups}
    assert {"up", "down", "replay", "clock", "conf", "version"} < names
    assert "replay" in words_of("--help").stdout
    mistyped = words_of("dwon")
    assert mistyped.returncode == 2
    assert "down" in mistyped.stderr
    assert words_of("version").stdout.startswith("understudy ")
