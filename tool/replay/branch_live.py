"""What `understudy branch` does without a trace: it asks a running cluster's process for a copy of
itself, and hears what becomes of it.

Place: beside branch.py; live.py is the other end.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from understudy.experiments.futures import ORIGINAL
from understudy.model.cluster import Cluster
from understudy.tool.replay.branch import BranchOutcome, check_alternatives
from understudy.tool.replay.forks import FutureResult
from understudy.tool.replay.live import LiveRequest
from understudy.tool.replay.results import BAD_USAGE, InterruptedRunError, ReplayError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from understudy.experiments.futures import Future

_ENDING = (signal.SIGINT, signal.SIGTERM)


def branch_live(
    run_dir: Path,
    futures: Sequence[Future],
    out: Path,
    *,
    at: Sequence[str] = (),
    until: str = "",
    most: int | None = None,
    say: Callable[[str], None] = lambda _line: None,
) -> BranchOutcome:
    """Have the running cluster of a run directory go on in futures; see `branch`.

    Raises:
        UsageError: what was asked for cannot be, or the cluster cannot be forked.
        ReplayError, OSError: it failed before it was forked.
        InterruptedRunError: somebody ended it before.
    """
    check_alternatives(at, futures)
    try:
        cluster = Cluster.load(run_dir)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{run_dir} is not a cluster's run directory: {error}") from None
    if not cluster.one_process:
        raise UsageError(
            f"cluster {cluster.name} has a process for each daemon, which cannot be copied "
            "together: start it with `understudy up --time virtual --one-process`"
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {out}: {error.strerror}") from None
    cpus = sorted(os.sched_getaffinity(0))
    request = LiveRequest(
        str(out.resolve()),
        [LiveRequest.packed(future) for future in futures],
        list(at),
        until,
        most or len(cpus),
        cpus,
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        try:
            channel.connect(cluster.branch_socket)
            channel.sendall(msgspec.json.encode(request) + b"\n")
        except OSError as error:
            raise UsageError(
                f"cluster {cluster.name} in {run_dir} cannot be asked: {error.strerror}"
            ) from None
        told = _listen(channel, say)
    results = [FutureResult(**each | {"folder": Path(each["folder"])}) for each in told["results"]]
    original = [each for each in results if each.name == ORIGINAL]
    if not original:
        if told["code"] == BAD_USAGE:
            raise UsageError(told["error"])
        if told["code"] > 128:
            raise InterruptedRunError(told["error"], told["code"] - 128)
        raise ReplayError(told["error"])
    return BranchOutcome(
        told["code"], original[0], [each for each in results if each is not original[0]]
    )


def _listen(channel: socket.socket, say: Callable[[str], None]) -> dict[str, Any]:
    """What is said in the end; all before that is for people."""
    with channel.makefile("rb") as lines, _handing_on() as copies:
        for line in lines:
            told: dict[str, Any] = json.loads(line)
            if "code" in told:
                return told
            if "pid" in told:
                copies.append(told["pid"])
            else:
                say(told["say"])
    raise ReplayError("the copy of the cluster ended without a word")


@contextlib.contextmanager
def _handing_on() -> Iterator[list[int]]:
    """SIGINT and SIGTERM are for the copy, whose process number goes into the list."""
    copies: list[int] = []

    def handed_on(number: int, _frame: object) -> None:
        if not copies:
            raise KeyboardInterrupt(number)
        with contextlib.suppress(ProcessLookupError):
            os.kill(copies[0], number)

    before = {number: signal.signal(number, handed_on) for number in _ENDING}
    try:
        yield copies
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
