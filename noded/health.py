"""HealthCheckProgram: run for each node from time to time, and at the beginning. What it finds it tells the controller itself.

Place: the node daemon's edge, where jobs are real. Follows: slurm.conf(5) HealthCheckProgram, HealthCheckInterval, HealthCheckNodeState.
"""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING

from understudy.model.hostlist import expand

if TYPE_CHECKING:
    import logging

    from understudy.noded.core import NodeCore
    from understudy.noded.programs import Programs
    from understudy.noded.settings import NodeSettings


class HealthCheck:
    """Runs the program; one that still runs is not started again."""

    def __init__(self, settings: NodeSettings, core: NodeCore, programs: Programs, conf: str, log: logging.Logger) -> None:
        self._settings, self._core, self._programs, self._conf, self._log = settings, core, programs, conf, log
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._running: set[str] = set()

    def start(self) -> None:
        """Begin, if there is a program."""
        if self._settings.health_program and self._settings.health_interval_s:
            self._check()

    def close(self) -> None:
        """The daemon ends."""
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        self._timer = self._loop.call_later(self._settings.health_interval_s, self._check)
        for node in self._nodes():
            if node not in self._running:
                self._running.add(node)
                environment = {"PATH": os.environ.get("PATH", ""), "SLURM_CONF": self._conf, "SLURMD_NODENAME": node}
                self._programs.run((self._settings.health_program,), environment, partial(self._checked, node), limit_s=60.0)

    def _nodes(self) -> list[str]:
        nodes, states = list(self._core.own.names), self._settings.health_states
        if not states:
            return nodes
        busy = {node for job in self._core.jobs.values() for node in expand(job.nodes)}
        return [node for node in nodes if (node not in busy if states == {"idle"} else node in busy or "idle" in states)]

    def _checked(self, node: str, code: int) -> None:
        self._running.discard(node)
        if code:
            self._log.warning("the health check of %s ended with %d", node, code)
