"""Processes are known by pid and start time, and are ended with all that they started: with real
ones. Their pid files: tests/unit/tool/cluster/test_processes.py.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from understudy.tool.cluster.processes import (
    Process,
    descendants,
    end,
    heed_termination,
    identify,
)

OBEDIENT = "import signal; print(flush=True); signal.pause()"
STUBBORN = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); "
    "signal.pause()"
)
PARENT = """
import signal, subprocess, sys
child = subprocess.Popen(
    [sys.executable, "-S", "-c", "import signal; signal.pause()"], start_new_session=True
)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(child.pid, flush=True)
signal.pause()
"""


class Children:
    def __init__(self) -> None:
        self.started: list[subprocess.Popen[str]] = []
        self.first_line = ""

    def start(self, script: str) -> Process:
        child = subprocess.Popen(
            [sys.executable, "-S", "-c", script], stdout=subprocess.PIPE, text=True
        )
        self.started.append(child)
        assert child.stdout is not None
        self.first_line = child.stdout.readline()
        return identify("child", child.pid)


@pytest.fixture
def children() -> Iterator[Children]:
    children = Children()
    yield children
    for child in children.started:
        child.kill()
        child.communicate()


def test_a_process_is_running_until_it_is_ended(children):
    process = children.start(OBEDIENT)
    assert process.is_running
    assert end([process], patience_s=10) == []
    assert not process.is_running


def test_a_pid_that_another_process_has_now_is_not_the_one_meant(children):
    now = children.start(OBEDIENT)
    before = Process("child", now.pid, now.start_time - 1)
    assert not before.is_running
    assert not before.signal(signal.SIGKILL)
    assert now.is_running


def test_a_zombie_has_ended(children):
    process = children.start("print(flush=True)")
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not process.is_running


def test_who_does_not_end_when_asked_is_killed_and_named(children):
    obedient, stubborn = children.start(OBEDIENT), children.start(STUBBORN)
    assert end([obedient, stubborn], patience_s=0.05) == [stubborn]
    assert not stubborn.is_running


def test_what_a_killed_process_has_started_ends_with_it(children):
    parent = children.start(PARENT)
    child = identify("child", int(children.first_line))
    assert child in descendants([parent])
    end([parent], patience_s=0.05)
    assert not child.is_running


def test_nobody_can_be_identified_by_a_pid_that_is_free(children):
    process = children.start("print(flush=True)")
    children.started[0].wait()
    with pytest.raises(ProcessLookupError):
        identify("child", process.pid)


def test_a_command_that_is_told_to_end_unwinds_as_if_interrupted():
    before = signal.getsignal(signal.SIGTERM)
    try:
        heed_termination()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
