"""Prolog: once for each job on each of its nodes, before anything of the job begins there.

Place: the node daemon's edge, where jobs are real; the executor has scripts, steps and epilogs wait
for it. What has been done is noted in the spool, so that a daemon that is started again does not do
it twice. Follows: slurm.conf(5) Prolog, PrologFlags.

SPOOL/
    prolog.JOB.RESTART  the nodes on which it has ended well, a line each
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from understudy.noded.core import Key
    from understudy.noded.programs import Programs
    from understudy.noded.settings import NodeSettings


class Prologs:
    """Which have run, and who waits for them. `environment` makes that of a program from what the
    controller told, the node and the context.
    """

    def __init__(
        self,
        spool: Path,
        programs: Programs,
        settings: NodeSettings,
        environment: Callable[[list[str], str, str], Mapping[str, str]],
    ) -> None:
        self._spool, self._programs, self._settings, self._environment = (
            spool,
            programs,
            settings,
            environment,
        )
        self._loop = asyncio.get_running_loop()
        self._codes: dict[Key, dict[str, int | None]] = {}  # None: it runs
        self._waiting: dict[Key, list[tuple[Sequence[str], Callable[[dict[str, int]], None]]]] = {}

    def reconfigure(self, settings: NodeSettings) -> None:
        """Other settings hold for those that have not begun."""
        self._settings = settings

    def run(
        self,
        key: Key,
        nodes: Sequence[str],
        told: list[str],
        done: Callable[[dict[str, int]], None],
    ) -> None:
        """Run it on those of the nodes where it has not been run for the job; `done`, never called
        from within, when it has ended on all of them.
        """
        codes = self._codes.get(key)
        if codes is None:
            codes = self._codes[key] = dict.fromkeys(self._noted(key), 0)
        for node in nodes:
            if node not in codes:
                codes[node] = None
                self._programs.run(
                    self._settings.prolog,
                    self._environment(told, node, "prolog_slurmd"),
                    partial(self._ended, key, node),
                    limit_s=self._settings.program_limit_s,
                    lane=node if self._settings.is_serial else "",
                )
        self._waiting.setdefault(key, []).append((nodes, done))
        self._loop.call_soon(self._decide, key)

    def when_quiet(self, key: Key, done: Callable[[], None]) -> None:
        """Call `done` when none runs for the job any more; at once if none does."""
        running = [node for node, code in self._codes.get(key, {}).items() if code is None]
        if running:
            self.run(key, running, [], lambda _failed: done())
        else:
            done()

    def forget(self, key: Key) -> None:
        """Nothing is left of the job."""
        self._codes.pop(key, None)
        self._file(key).unlink(missing_ok=True)

    def _ended(self, key: Key, node: str, code: int) -> None:
        codes = self._codes.get(key)
        if codes is None:
            return
        codes[node] = code
        if code == 0 and self._settings.prolog:
            with self._file(key).open("a") as file:
                file.write(f"{node}\n")
        self._decide(key)

    def _decide(self, key: Key) -> None:
        """Tell those who wait for no more."""
        codes = self._codes.get(key, {})
        waiting, left = self._waiting.pop(key, []), []
        for nodes, done in waiting:
            found = {node: codes.get(node, 0) for node in nodes}
            if None in found.values():
                left.append((nodes, done))
            else:
                done({node: code for node, code in found.items() if code})
        if left:
            self._waiting[key] = left + self._waiting.get(key, [])

    def _noted(self, key: Key) -> list[str]:
        try:
            return self._file(key).read_text().split()
        except OSError:
            return []

    def _file(self, key: Key) -> Path:
        return self._spool / f"prolog.{key[0]}.{key[1]}"
