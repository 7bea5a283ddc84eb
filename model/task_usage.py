"""What the tasks of a step have used, in the names in which node daemons tell it, the controller
adds it up, and accounting keeps it.

Place: the vocabulary. Of each quantity there are the sum over all tasks, and the least and the most
that one of them used, with the task's number and its node's place among those of the step:
`sum_rss`, `max_rss`, `max_rss_task`, `max_rss_node`, `min_rss` ...; `tasks` says how many were
looked at. Follows: sacct(1) TRESUsageInMax and its kin.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

QUANTITIES = ("cpu_us", "rss", "vmsize", "pages", "read", "written")
_PLACE = ("", "_task", "_node")


def summed_up(tasks: "Sequence[tuple[int, int, Sequence[int]]]") -> "dict[str, int]":
    """Of tasks, each with number, node, and amounts in the order of QUANTITIES. Of those that used
    the same, the first counts.
    """
    if not tasks:
        return {}
    found = {"tasks": len({number for number, _, _ in tasks})}
    for at, name in enumerate(QUANTITIES):
        found[f"sum_{name}"] = sum(amounts[at] for _, _, amounts in tasks)
        for which, chosen in (
            ("max", max(tasks, key=lambda task: task[2][at])),
            ("min", min(tasks, key=lambda task: task[2][at])),
        ):
            found |= zip(
                (f"{which}_{name}{end}" for end in _PLACE),
                (chosen[2][at], chosen[0], chosen[1]),
                strict=True,
            )
    return found


def merge(whole: "dict[str, int]", part: "Mapping[str, int]") -> None:
    """Add what other tasks of the same step have used."""
    for name, amount in part.items():
        if not name.startswith(("max_", "min_")):
            whole[name] = whole.get(name, 0) + amount
    for name in QUANTITIES:
        for which, is_beyond in (("max", int.__gt__), ("min", int.__lt__)):
            key = f"{which}_{name}"
            if key in part and (key not in whole or is_beyond(part[key], whole[key])):
                for end in _PLACE:
                    whole[key + end] = part[key + end]
