"""`understudy` while it is still being imported."""

import subprocess
import sys

import pytest

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
    ["typer", "understudy.tool.understudy.hosts_commands", "understudy.tool.replay.traces"],
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
