"""sdiag: what the controller has done since it started, or since its statistics were reset. Follows
sdiag(1) of 22.05.
"""

import time

from understudy.commands.shared.client import RefusedError
from understudy.commands.shared.context import Context, run
from understudy.commands.shared.in_order import EndedError, read_in_order
from understudy.commands.shared.options import NONE, REQUIRED, Option, OptionTable
from understudy.commands.shared.requests import by_count, requests_and_users, when

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OPTIONS = OptionTable(
    [
        Option("all", "a", NONE, "print all statistics"),
        Option("reset", "r", NONE, "set the statistics to nought"),
        Option(
            "cluster",
            "M",
            REQUIRED,
            "NAME: cluster to ask",
            env="SLURM_CLUSTERS",
            dest="clusters",
        ),
        Option("sort-by-id", "i", NONE, "requests by their numbers"),
        Option("sort-by-time", "t", NONE, "requests by the time that they took in all"),
        Option("sort-by-time2", "T", NONE, "requests by the time that one took"),
        Option("help", "h", NONE, "print this text"),
        Option("usage", "", NONE, "print a short summary"),
        Option("version", "V", NONE, "print the version"),
    ]
)
_RULE = "*" * 55


def sdiag(arguments: list[str], context: Context) -> int:
    """The command. Returns the exit code."""
    usage = "Usage: sdiag [-M cluster] [-aritT]"
    try:
        given, _ = read_in_order(OPTIONS, arguments, usage, lambda *_: None, context)
    except EndedError as ended:
        return ended.code
    names = {option.dest for option, _ in given}
    # the last one counts
    if (
        next(
            (option.dest for option, _ in reversed(given) if option.dest in {"all", "reset"}), "all"
        )
        == "reset"
    ):
        try:
            context.client.call("GetStatistics", True)
        except RefusedError as error:
            context.complain(f"slurm_reset_statistics: {error.text}")
            return 255
        context.print("Reset scheduling statistics")
        return 0
    try:
        now, since, numbers, requests, users = context.client.call("GetStatistics")
    except RefusedError as error:
        context.complain(f"slurm_get_statistics: {error.text}")
        return 255
    order = next(
        (
            name
            for name in ("sort_by_id", "sort_by_time", "sort_by_time2")
            if name in names or name.replace("_", "-") in names
        ),
        "",
    )
    context.stdout.write(
        "\n".join(report(now, since, numbers, _sorted(requests, order), _sorted(users, order)))
        + "\n"
    )
    return 0


def _sorted(entries: "list[list[Any]]", order: str) -> "list[list[Any]]":
    if order == "sort_by_id":
        return sorted(entries, key=lambda entry: entry[1])
    if not order:
        return by_count(entries)
    by = {
        "sort_by_time": lambda entry: entry[3],
        "sort_by_time2": lambda entry: entry[3] // max(entry[2], 1),
    }
    return sorted(entries, key=by[order], reverse=True)


def report(
    now: float,
    since: float,
    numbers: dict[str, int],
    requests: "list[list[Any]]",
    users: "list[list[Any]]",
) -> list[str]:
    """The text line by line."""
    n = numbers
    lines = [
        _RULE,
        f"sdiag output at {when(now)}",
        f"Data since      {when(since)}",
        _RULE,
        "Server thread count:  1",
        f"Agent queue size:     {n['agent_queue']}",
        f"Agent count:          {n['agents']}",
        f"Agent thread count:   {n['agents']}",
        "DBD Agent queue size: 0",
        "",
        f"Jobs submitted: {n['submitted']}",
        f"Jobs started:   {n['started']}",
        f"Jobs completed: {n['completed']}",
        f"Jobs canceled:  {n['cancelled']}",
        f"Jobs failed:    {n['failed']}",
        # of this controller; real Slurm's would have died
        *([f"Exceptions:     {n['failures']}"] if n["failures"] else []),
        "",
        f"Job states ts:  {when(now)}",
        f"Jobs pending:   {n['pending']}",
        f"Jobs running:   {n['running']}",
        "",
        "Main schedule statistics (microseconds):",
        f"\tLast cycle:   {n['main_last_us']}",
        f"\tMax cycle:    {n['main_longest_us']}",
        f"\tTotal cycles: {n['main_count']}",
    ]
    cycles = n["main_count"]
    if cycles:
        lines += [
            f"\tMean cycle:   {n['main_us'] // cycles}",
            f"\tMean depth cycle:  {n['main_depth'] // cycles}",
        ]
        if now - since >= 60:
            lines.append(f"\tCycles per minute: {int(cycles // ((now - since) / 60))}")
    lines += [f"\tLast queue length: {n['main_last_queue']}", "", "Backfilling stats"]
    lines += _backfilling(n)
    lines += _policy(n)
    lines += ["", f"Latency for 1000 calls to gettimeofday(): {_latency_us()} microseconds"]
    lines += [*_pauses(n), ""]
    lines += requests_and_users(requests, users, (40, 16, 8))
    return [*lines, "", "Pending RPC statistics", "\tNo pending RPCs"]


def _backfilling(n: dict[str, int]) -> list[str]:
    cycles = n["backfill_count"]
    lines = [
        f"\tTotal backfilled jobs (since last slurm start): {n['backfill_started']}",
        (
            "\tTotal backfilled jobs (since last stats cycle start): "
            f"{n['backfill_started'] - n['backfill_started_before']}"
        ),
        "\tTotal backfilled heterogeneous job components: 0",
        f"\tTotal cycles: {cycles}",
        f"\tLast cycle when: {when(n['backfill_when']) if n['backfill_when'] else 'N/A'}",
        f"\tLast cycle: {n['backfill_last_us']}",
        f"\tMax cycle:  {n['backfill_longest_us']}",
    ]
    if cycles:
        lines.append(f"\tMean cycle: {n['backfill_us'] // cycles}")
    lines += [
        f"\tLast depth cycle: {n['backfill_last_depth']}",
        f"\tLast depth cycle (try sched): {n['backfill_last_depth']}",
    ]
    if cycles:
        mean = n["backfill_depth"] // cycles
        lines += [f"\tDepth Mean: {mean}", f"\tDepth Mean (try depth): {mean}"]
    lines.append(f"\tLast queue length: {n['backfill_last_queue']}")
    if cycles:
        lines.append(f"\tQueue length mean: {n['backfill_queue'] // cycles}")
    lines.append(f"\tLast table size: {int(n['backfill_last_queue'] > 0)}")
    if cycles:
        lines.append(f"\tMean table size: {int(n['backfill_queue'] > 0)}")
    return lines


def _policy(n: dict[str, int]) -> list[str]:
    """What a policy of one's own counts; Slurm's count nothing beside their cycles."""
    figures = [(name[7:], number) for name, number in n.items() if name.startswith("policy_")]
    if not figures:
        return []
    named = [f"\t{name.replace('_', ' ').capitalize()}: {number}" for name, number in figures]
    return ["", "Policy statistics", *named]


def _pauses(n: dict[str, int]) -> list[str]:
    """How long requests waited for the controller's event loop, and garbage collections: not in
    real Slurm, and not in virtual time, in which nobody waits.
    """
    if "loop_delays" not in n:
        return []
    return [
        f"\tLast loop delay: {n['loop_last_us']} microseconds",
        f"\tMax loop delay:  {n['loop_longest_us']}",
        f"\tMean loop delay: {n['loop_us'] // max(n['loop_delays'], 1)}",
        f"\tGarbage collections: {n['collections']}",
        f"\tMax collection:      {n['collections_longest_us']}",
        f"\tTotal collections:   {n['collections_us']}",
    ]


def _latency_us() -> int:
    begin = time.perf_counter_ns()
    for _ in range(1000):
        time.time()
    return (time.perf_counter_ns() - begin) // 1000


def main() -> int:
    """Run as a program; does not return."""
    return run("sdiag", sdiag)


if __name__ == "__main__":
    main()
