"""A short form of tests/crash/kill_controller.py: the controller is killed while clients submit, and nothing acknowledged is lost or there twice."""

import importlib.util
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "crash" / "kill_controller.py"


def load():
    spec = importlib.util.spec_from_file_location("kill_controller", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_no_acknowledged_job_is_lost_or_there_twice_however_the_controller_is_killed(tmp_path):
    outcome = load().run(tmp_path / "run", kills=8, clients=4, seed=11, node_daemon_kills=1)
    assert outcome.violations == []
    assert outcome.kills == 8
    assert len(outcome.acknowledged) > 20
