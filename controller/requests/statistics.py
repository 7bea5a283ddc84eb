"""What sdiag tells: jobs, the schedulers' cycles, requests by type and by user, since the start or
the last reset.

Place: requests. Follows: sdiag(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.model.errors import ErrorCode, SlurmError
from understudy.protocol.messages import GetStatistics, Message, Ok, Statistics

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender


def get_statistics(core: Core, message: GetStatistics, sender: Sender) -> Message:
    """Tell the counts, or with `reset` begin again."""
    counters, now = core.counters, core.time.now()
    main, backfill = core.policy.main_cycles, core.policy.backfill_cycles
    if message.reset:
        if not core.is_operator(sender.user_id):
            raise SlurmError(ErrorCode.ACCESS_DENIED)
        counters.reset(now)
        main.reset()
        backfill.reset()
        core.policy.figures.update(dict.fromkeys(core.policy.figures, 0))
        if core.pauses is not None:
            core.pauses.reset()
        return Ok()
    agents = core.agents.statistics()
    numbers = {
        "submitted": counters.submitted,
        "started": counters.started,
        "completed": counters.completed,
        "cancelled": counters.cancelled,
        "failed": counters.failed,
        "failures": counters.failures,
        "pending": sum(job.array_tasks.bit_count() or 1 for job in core.tables.pending.values()),
        "running": len(core.tables.running),
        "agent_queue": agents.queued,
        "agents": agents.in_flight,
        **core.measure_daemon(),
    }
    for name, cycles in (("main", main), ("backfill", backfill)):
        for key in (
            "count",
            "depth",
            "last_depth",
            "last_queue",
            "queue",
            "started",
            "started_before",
            "when",
            "last_us",
            "longest_us",
            "us",
        ):
            numbers[f"{name}_{key}"] = getattr(cycles, key)
    numbers |= {f"policy_{name}": number for name, number in core.policy.figures.items()}
    if core.pauses is not None:
        numbers |= core.pauses.numbers()
    requests = [
        (name, number, count, us) for (name, number), (count, us) in counters.requests.items()
    ]
    users = [
        (core.users.user_name(user), user, count, us)
        for user, (count, us) in counters.users.items()
    ]
    return Statistics(now, counters.since, numbers, requests, users)
