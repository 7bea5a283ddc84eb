"""An interruption ends a job that waits, however early it comes."""

import io
from types import SimpleNamespace

import pytest

from understudy.commands.submission.allocation import allocate
from understudy.commands.submission.job import Job


@pytest.mark.parametrize("at", ["Pending job allocation 7", "queued and waiting", "AwaitJob"])
def test_a_waiting_job_is_cancelled_whenever_its_command_is_interrupted(at):
    asked, said = [], []

    class Controller:
        def another(self):
            return self

        def call(self, name, *fields):
            asked.append((name, fields[0]))
            return [7, False, "", {}, 0, 0, b"", [], 0, [], False, "", False]

        submit = call

        def begin(self, name, *_fields):
            if name == at:
                raise KeyboardInterrupt

        def close(self): ...

    def complain(text):
        said.append(text)
        if at in text:
            raise KeyboardInterrupt

    context = SimpleNamespace(
        client=Controller(),
        program="salloc",
        complain=complain,
        error=complain,
        stderr=io.StringIO(),
    )
    with pytest.raises(KeyboardInterrupt):
        allocate(Job(0.0), 0, context, quiet=False)
    assert asked[1:] == [("CancelJobs", ["7"])]
    assert said[-1] == "salloc: Job allocation 7 has been revoked."
