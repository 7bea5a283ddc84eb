"""HealthCheckProgram: run for nodes when the controller asks for it, and for all at the beginning.
What it finds it tells the controller itself.

Place: the node daemon's edge, where jobs are real. Follows: slurm.conf(5) HealthCheckProgram.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from understudy.model.environment import PROGRAM_HOST, told

if TYPE_CHECKING:
    import logging
    from collections.abc import Iterable

    from understudy.noded.programs import Programs
    from understudy.noded.settings import NodeSettings


class HealthCheck:
    """Runs the program; one that still runs is not started again."""

    def __init__(
        self, settings: NodeSettings, programs: Programs, conf: str, log: logging.Logger
    ) -> None:
        self._settings, self._programs, self._conf, self._log = settings, programs, conf, log
        self._running: set[str] = set()

    def reconfigure(self, settings: NodeSettings) -> None:
        """Other settings hold from now on."""
        self._settings = settings

    def check(self, nodes: Iterable[str]) -> None:
        """Run it for the nodes, if there is a program."""
        for node in nodes if self._settings.health_program else ():
            if node not in self._running:
                self._running.add(node)
                environment = {
                    "PATH": os.environ.get("PATH", ""),
                    **told(PROGRAM_HOST, {"conf": self._conf, "node": node}),
                }
                self._programs.run(
                    (self._settings.health_program,),
                    environment,
                    partial(self._checked, node),
                    limit_s=60.0,
                )

    def _checked(self, node: str, code: int) -> None:
        self._running.discard(node)
        if code:
            self._log.warning("the health check of %s ended with %d", node, code)
