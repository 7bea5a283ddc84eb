"""The figures of sreport: sums of usage, by association up the tree, and by the size of jobs.

Place: commands alone; pure.
"""

from understudy.model.times import leading_integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Row = dict[str, Any]

_ALL_ONES = 0xFFFFFFFF
DEFAULT_GROUPS = (50, 250, 500, 1000)


def add_up(rows: "Iterable[Row]", *by: str) -> "dict[Any, int]":
    """The sums of the amounts by these columns."""
    found: dict[Any, int] = {}
    for row in rows:
        key = tuple([row[name] for name in by])
        found[key] = found.get(key, 0) + row["amount"]
    return found


def text_of(seconds: int, total: int, unit_s: int, *, has_percent: bool) -> str:
    """An amount: `18`, `0.95%`, `18(0.95%)`. A unit of 0: the percentage alone."""
    percent = f"{100 * seconds / total if total else 0:.2f}%"
    if not unit_s:
        return percent
    number = f"{seconds / unit_s:.0f}"
    return f"{number}({percent})" if has_percent else number


class Tree:
    """Associations, and what is below each. They come parents first."""

    def __init__(self, associations: "list[Row]") -> None:
        self.associations = associations
        self._by_id = {(each["cluster"], each["id"]): each for each in associations}
        self._children: dict[tuple[str, int], list[Row]] = {}
        for each in associations:
            self._children.setdefault((each["cluster"], each["parent_id"]), []).append(each)
        self._sums: dict[tuple[str, int, str], int] = {}

    def places(self, accounts: "list[str] | None") -> "list[Row]":
        """All of them with their depth, or these accounts and what is below; of siblings users come
        first, each kind by name.
        """
        found: list[Row] = []
        roots = [
            each
            for each in self.associations
            if (each["cluster"], each["parent_id"]) not in self._by_id
        ]
        if accounts:
            roots = [
                each
                for each in self.associations
                if each["account"] in accounts and not each["user"]
            ]
        waiting = [(0, each) for each in reversed(roots)]
        seen = set()
        while waiting:
            depth, place = waiting.pop()
            if place["id"] in seen:
                continue
            seen.add(place["id"])
            found.append({**place, "depth": depth})
            below = self._children.get((place["cluster"], place["id"]), [])
            siblings = sorted(
                below,
                key=lambda each: (
                    not each["user"],
                    each["account"],
                    each["user"],
                    each["partition"],
                ),
            )
            waiting += [(depth + 1, each) for each in reversed(siblings)]
        return found

    def sums(self, amounts: "dict[Any, int]", place: "Row", tres: str) -> int:
        """What the association and all below it used."""
        key = (place["cluster"], place["id"], tres)
        known = self._sums.get(key)
        if known is None:
            known = amounts.get(key, 0) + sum(
                self.sums(amounts, each, tres) for each in self._children.get(key[:2], [])
            )
            self._sums[key] = known
        return known

    def namer(
        self, accounts: "list[str] | None", *, is_flat: bool, below: bool
    ) -> "Callable[[Row], str | None]":
        """Under which account a job is reported: its own, one of these above it, or the one next
        below; None for not at all.
        """
        tops = set(accounts or ["root"])

        def name_of(job: "Row") -> "str | None":
            place = self._by_id.get((job["cluster"], job["association_id"]))
            if is_flat:
                return job["account"] if not accounts or job["account"] in tops else None
            chain: list[str] = []
            while place is not None:
                if not chain or chain[-1] != place["account"]:
                    chain.append(place["account"])
                place = self._by_id.get((place["cluster"], place["parent_id"]))
            for at, account in enumerate(chain):
                if account in tops:
                    return (chain[at - 1] if at else None) if below else account
            return None

        return name_of


def size_groups(
    given: "list[str] | None", unit: str, jobs: "list[Row]", tres: str
) -> "list[tuple[str, int, int]]":
    """(title, from, to) of each group of sizes."""
    if given and "individual".startswith(given[0].lower()):
        sizes = sorted({_size(job, tres) for job in jobs} - {0})
        return [(f"{size} {unit}", size, size) for size in sizes]
    bounds = DEFAULT_GROUPS if given is None else [leading_integer(each) for each in given or ("",)]
    found, low = [], 0
    for bound in bounds:
        high = (bound - 1) & _ALL_ONES  # what is no number has no end
        found.append((f"{low}-{high} {unit}", low, high))
        low = bound & _ALL_ONES
    return [*found, (f">= {low} {unit}", low, 1 << 62)] if low else found


def _size(job: "Row", tres: str) -> int:
    return int((job["tres_allocated"] or {}).get(tres, 0))


def job_sizes(
    jobs: "list[Row]",
    subject: "Callable[[Row], str | None]",
    groups: "list[tuple[str, int, int]]",
    tres: str,
    start: int,
    end: int,
    *,
    counts_jobs: bool,
) -> "dict[tuple[str, str], list[int]]":
    """By (cluster, subject) what jobs of each size used in [start, end), or how many there were.
    Their sizes are in CPUs, whatever is added up.
    """
    found: dict[tuple[str, str], list[int]] = {}
    for job in jobs:
        name = subject(job)
        if job["start_time"] is None or name is None:
            continue
        until = end if job["end_time"] is None else min(job["end_time"], end)
        seconds = until - max(job["start_time"], start)
        if tres == "cpu":
            seconds -= job["suspended_s"] or 0
        if seconds <= 0:
            continue
        at = next(
            (at for at, (_, low, high) in enumerate(groups) if low <= _size(job, "cpu") <= high),
            None,
        )
        if at is not None:
            row = found.setdefault((job["cluster"], name), [0] * len(groups))
            row[at] += 1 if counts_jobs else seconds * _size(job, tres)
    return found
