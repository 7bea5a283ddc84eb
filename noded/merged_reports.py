"""Reports of many nodes of one process, put together: what they have to say of one job or step
within a moment goes to the controller as one message.

Place: the node daemon's edge, where nodes are hops of their own (`hop_nodes.py`). Without it a job
over 16,384 nodes would end in as many messages; Slurm spreads these over time (EpilogMsgTime).
"""

from __future__ import annotations

from typing import Any, Final

from understudy.model.hostlist import compress
from understudy.noded.reports import ReportMessage, Reports
from understudy.protocol.messages import EpilogComplete, StepComplete

_MOMENT_S: Final = 0.02  # ours: how long the first waits for others


class MergedReports(Reports):
    """As `Reports`. What names a node that speaks, a failure, or what a step used, is not put
    together with anything.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._epilogs: dict[tuple[int, int], list[str]] = {}
        self._steps: dict[tuple[int, int, int, int, int], list[str]] = {}

    def send(self, message: ReportMessage, node: str) -> None:
        """Tell the controller, soon."""
        is_first = not self._epilogs and not self._steps
        if isinstance(message, EpilogComplete) and not node and not message.failed:
            self._epilogs.setdefault((message.job_id, message.restart), []).append(message.nodes)
        elif isinstance(message, StepComplete) and not (node or message.usage or message.fault):
            self._steps.setdefault(
                (
                    message.job_id,
                    message.restart,
                    message.step_id,
                    message.exit_code,
                    message.exit_signal,
                ),
                [],
            ).append(message.nodes)
        else:
            super().send(message, node)
            return
        if is_first:
            self._time.call_after_wait(_MOMENT_S, self._send_collected)

    def _send_collected(self) -> None:
        epilogs, self._epilogs = self._epilogs, {}
        steps, self._steps = self._steps, {}
        for (job_id, restart, step_id, exit_code, signal), nodes in steps.items():
            super().send(
                StepComplete(job_id, restart, step_id, compress(nodes), exit_code, signal), ""
            )
        for run, nodes in epilogs.items():
            super().send(EpilogComplete(*run, compress(nodes)), "")
