"""HealthCheckProgram: when the node daemons are asked to run it, and for which nodes. What it finds
it tells itself.

Place: nodes, where jobs are real; at their start the node daemons run it unasked.
Follows: slurm.conf(5) HealthCheckInterval, HealthCheckNodeState. With CYCLE not all nodes are asked
at once, but some every second; that these are ten at least, and that the interval counts from the
last of them, is what Slurm 22.05.8 was seen to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.model.states import NodeFlag, NodeState
from understudy.protocol.messages import CheckHealth

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.node import Node

ROUND_S: Final = 1.0  # observed at 22.05.8, see above
LEAST_A_ROUND: Final = 10
_WORDS: Final = {NodeState.ALLOCATED: "alloc", NodeState.IDLE: "idle", NodeState.MIXED: "mixed"}


def start_checking(core: Core) -> None:
    """Begin, if there is a program."""
    if core.settings.health_interval_s and not core.settings.emulates_jobs:
        core.at(core.time.now() + core.settings.health_interval_s, _check, core, 0)


def _check(core: Core, first: int) -> None:
    """Ask those of the nodes from this one on whose turn it is."""
    settings, nodes = core.settings, core.tables.nodes.nodes
    count = (
        max(LEAST_A_ROUND, -(-len(nodes) // max(settings.health_interval_s, 1)))
        if "cycle" in settings.health_states
        else len(nodes)
    )
    found = 0
    for node in nodes[first : first + count]:
        if is_meant(core, node):
            found |= 1 << node.index
    for daemon, part in core.parts(found):
        core.agents.send(
            daemon.name, CheckHealth(core.names.to_expression(part)), wanted=lambda: False
        )
    rest = first + count
    if rest < len(nodes):
        core.at(core.time.now() + ROUND_S, _check, core, rest)
    else:
        core.at(core.time.now() + (settings.health_interval_s or 60), _check, core, 0)


def is_meant(core: Core, node: Node) -> bool:
    """Whether HealthCheckNodeState means the node as it is now."""
    if node.flags & NodeFlag.NO_RESPOND or node.state in (NodeState.UNKNOWN, NodeState.FUTURE):
        return False
    states = core.settings.health_states - {"cycle"}
    return (
        not states or "any" in states or _WORDS.get(core.tables.nodes.shown_state(node)) in states
    )
