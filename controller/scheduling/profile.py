"""What is free when: the availability profile on which policies plan.

Place: scheduling, pure. Knows amounts, nodes and time; no jobs, no queue, no order, no rounding:
those are the policies'.

A profile is a step function of time. Step i holds from times[i] to times[i + 1], the last one to
the profile's end; in it `amounts[i]` of each resource are free (one int,
understudy.controller.scheduling.resources) and the nodes of the bitmap `nodes[i]`. Either may be
left out: backfill's plan is of nodes alone, a textbook's of amounts alone. Intervals are half open,
times whole seconds; at or behind the end nothing is known and nothing can be taken.

Invariants: times ascend; neighbours differ in something, so equal profiles have equal steps, and
there are at most two steps more for each reservation; no amount is below nothing or above the
total, no node is taken twice (`close` alone asks for nodes that may be taken already).

Cost, with s steps of which c lie in the interval asked for:

    earliest          O(s), each step looked at once at most; of long jobs far fewer (below)
    reserve, release  O(log s + c), and two insertions into lists, which move s pointers
    least, common     O(log s + c)
    copy              O(s), some 10 ns a step: less than the planning of one job

`earliest` looks at the last step of a candidate's interval first, and goes back from there; where
one has not enough, it goes on behind that step, as Boyer and Moore (1977) do with letters. What
lies in front of it need not be looked at.

Prior art: the profile of Mu'alem and Feitelson (IEEE TPDS 12, 2001), in which conservative
backfilling looks for the first place with enough processors and then takes them; the lists of jobs
and gaps of planning schedulers (Chlumsky and Klusacek's in TORQUE), whose gaps are `steps`, made
one where they are equal; the plan of processors and burst buffer that Kopanski and Rzadca (Euro-Par
2021) make of each order that they try; and the list of times and free nodes of Slurm's backfill, of
which bf_node_space_size bounds the steps: that, and times rounded to bf_resolution, is how
understudy.controller.scheduling.slurm.plan uses this one. Trees find a place in O(log s), but for
reservations ahead of time Burchard (IEEE TKDE 17, 2005) found arrays far better. What would change
that here are plans of ten thousand jobs that each pass makes anew.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

from understudy.controller.scheduling.resources import NONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from understudy.controller.scheduling.resources import Resources

FOREVER: Final = 1 << 62  # seconds; also the length of a job without a time limit


class Step(NamedTuple):
    """What is free from `start` to `end`: a gap in the plan, if it is anything."""

    start: int
    end: int
    amounts: int
    nodes: int


class Profile:
    """Steps [times[i], times[i + 1]); the last ends at `end`."""

    __slots__ = ("_gains", "amounts", "end", "nodes", "resources", "times")

    def __init__(
        self,
        start: int,
        resources: Resources = NONE,
        amounts: int | None = None,
        nodes: int = 0,
        end: int = FOREVER,
    ) -> None:
        """`amounts` and `nodes` are free from `start` on; None: all that there is."""
        self.resources = resources
        self.end = end
        self.times = [start]
        self.amounts = [resources.totals if amounts is None else amounts]
        self.nodes = [nodes]
        # nodes that are free in the next step but not in this one; None: not known
        self._gains: list[int | None] = [None]

    @classmethod
    def with_ends(
        cls,
        start: int,
        ends: Iterable[tuple[int, int, int]],
        resources: Resources = NONE,
        amounts: int = 0,
        nodes: int = 0,
    ) -> Profile:
        """What is free at `start`, and what running jobs give back: (expected end, amounts, nodes)
        of each. Who is overdue is expected to end in the next second.
        """
        profile = cls(start, resources, amounts, nodes)
        for when, freed, freed_nodes in sorted(ends):  # each then changes the last step alone
            profile.release(max(when, start + 1), FOREVER, freed, freed_nodes)
        return profile

    def copy(self) -> Profile:
        """Another with the same steps; what happens to one does not happen to the other."""
        other = Profile.__new__(Profile)
        other.resources, other.end = self.resources, self.end
        other.times, other.amounts = self.times.copy(), self.amounts.copy()
        other.nodes, other._gains = self.nodes.copy(), self._gains.copy()
        return other

    def __len__(self) -> int:
        return len(self.times)

    # --- what is free -----------------------------------------------------------------------------

    def steps(self) -> Iterator[Step]:
        """One after the other."""
        ends = [*self.times[1:], self.end]
        return map(Step, self.times, ends, self.amounts, self.nodes)

    def gaps(self, amounts: int = 0, nodes: int = 0) -> Iterator[tuple[int, int]]:
        """The longest stretches [start, end) in which so much and all of these nodes are free."""
        guards = self.resources.guards
        start: int | None = None
        for step in self.steps():
            fits = (step.amounts - amounts) & guards == guards and not nodes & ~step.nodes
            if fits and start is None:
                start = step.start
            elif not fits and start is not None:
                yield start, step.start
                start = None
        if start is not None:
            yield start, self.end

    def least(self, start: int, end: int) -> int:
        """The amounts that are free during all of [start, end)."""
        first, behind = self._touched(start, end)
        found, least = self.amounts[first], self.resources.least
        for i in range(first + 1, behind):
            found = least(found, self.amounts[i])
        return found

    def common(self, start: int, end: int) -> int:
        """The nodes that are free during all of [start, end)."""
        first, behind = self._touched(start, end)
        nodes = self.nodes
        found = nodes[first]
        for i in range(first + 1, behind):
            found &= nodes[i]
        return found

    def earliest(
        self, amounts: int, length: int, start: int, count: int = 0, among: int = -1
    ) -> int | None:
        """The first instant from `start` on from which so much is free for that length of time, and
        with it `count` of the nodes `among`, the same ones all the time. None: never.
        """
        if not count:
            return self._earliest(amounts, length, start)
        window = self.window(length, among)
        candidate: int | None = start
        while candidate is not None:
            candidate = self._earliest(amounts, length, candidate)
            if candidate is None:
                break
            common, later = window.at(candidate)
            if common.bit_count() >= count:
                break
            candidate = later
        return candidate

    def _earliest(self, amounts: int, length: int, start: int) -> int | None:
        times, free, guards = self.times, self.amounts, self.resources.guards
        if start >= self.end:
            return None
        last = len(times) - 1
        i = max(bisect_right(times, start) - 1, 0)
        known = i - 1  # the steps from i to this one have enough
        while True:
            end = start + length
            j = i if i == last or times[i + 1] >= end else bisect_left(times, end, i + 1) - 1
            for k in range(j, known, -1):
                if (free[k] - amounts) & guards != guards:
                    break
            else:
                return start
            if k == last:
                return None
            i, known = k + 1, j
            start = times[i]

    def window(self, length: int, among: int) -> Window:
        """For looks at one start after the other, at nodes alone. Valid until the next change."""
        return Window(self, length, among)

    def gains(self, i: int) -> int:
        """The nodes that are free in step i + 1 but not in step i."""
        found = self._gains[i]
        if found is None:
            found = self._gains[i] = self.nodes[i + 1] & ~self.nodes[i]
        return found

    # --- changes ----------------------------------------------------------------------------------

    def reserve(self, start: int, end: int, amounts: int = 0, nodes: int = 0) -> None:
        """Take what is free during all of [start, end), as `earliest` has found."""
        first, behind = self._cut(start, end)
        if amounts:
            free, guards = self.amounts, self.resources.guards
            for i in range(first, behind):
                left = free[i] - amounts
                assert left & guards == guards, "not enough is free"
                free[i] = left
        if nodes:
            for i in range(first, behind):
                assert not nodes & ~self.nodes[i], "a node is not free"
                self.nodes[i] &= ~nodes
            self._forget_gains(first, behind)
        self._merge(behind)
        self._merge(first)

    def release(self, start: int, end: int, amounts: int = 0, nodes: int = 0) -> None:
        """Give back during [start, end) what was reserved, or is in use until then."""
        first, behind = self._cut(start, end)
        if amounts:
            free, guards, totals = self.amounts, self.resources.guards, self.resources.totals
            for i in range(first, behind):
                free[i] += amounts
                assert (totals - (free[i] ^ guards)) & guards == guards, "more than there is"
        if nodes:
            for i in range(first, behind):
                assert not nodes & self.nodes[i], "a node is free already"
                self.nodes[i] |= nodes
            self._forget_gains(first, behind)
        self._merge(behind)
        self._merge(first)

    def close(self, start: int, end: int, nodes: int) -> None:
        """Take nodes out during [start, end), also those that are not free."""
        first, behind = self._cut(start, end)
        others, free = ~nodes, self.nodes
        for i in range(first, behind):
            free[i] &= others
        self._forget_gains(first, behind)
        for i in range(behind, first - 1, -1):  # what differed in these nodes alone is equal now
            self._merge(i)

    def _touched(self, start: int, end: int) -> tuple[int, int]:
        """The first step of the interval, and the one behind its last."""
        first = max(bisect_right(self.times, start) - 1, 0)
        return first, bisect_left(self.times, end, first + 1)

    def _cut(self, start: int, end: int) -> tuple[int, int]:
        """As `_touched`, with a step that begins at the start, and one at the end."""
        assert start <= end
        return self._cut_at(start), self._cut_at(end)

    def _cut_at(self, when: int) -> int:
        """Let a step begin at that time; its number."""
        times = self.times
        i = bisect_left(times, when)
        if i == 0 or (i < len(times) and times[i] == when):
            return i
        if when >= self.end:
            return len(times)
        times.insert(i, when)
        self.amounts.insert(i, self.amounts[i - 1])
        self.nodes.insert(i, self.nodes[i - 1])
        self._gains.insert(i, self._gains[i - 1])
        self._gains[i - 1] = 0
        return i

    def _merge(self, i: int) -> None:
        """Make one of step i and the one before it, if they are equal."""
        if (
            0 < i < len(self.times)
            and self.amounts[i] == self.amounts[i - 1]
            and self.nodes[i] == self.nodes[i - 1]
        ):
            del self.times[i], self.amounts[i], self.nodes[i], self._gains[i - 1]

    def _forget_gains(self, first: int, behind: int) -> None:
        first = max(first - 1, 0)
        self._gains[first:behind] = [None] * (behind - first)


class Window:
    """An interval of fixed length that moves on over the steps and says which nodes are free during
    all of it, each step looked at about twice in all.

    The steps up to `_middle` are there as what is common to each of them and all behind it, so that
    dropping one in front costs nothing; those from there to `_behind` as what is common to all.
    """

    def __init__(self, profile: Profile, length: int, among: int) -> None:
        self.profile, self.length, self.among = profile, length, among
        self._middle = self._behind = self._growth = 0
        self._suffixes: list[int] = []
        self._rest = among

    def at(self, start: int) -> tuple[int, int | None]:
        """(those of the nodes that are free from `start` on, the end of the first step behind which
        more of them are free). Starts must not go back.

        An interval that begins before that end cannot have more of them: in front of it, too, they
        only become fewer. At or behind the profile's end all are free.
        """
        profile, among = self.profile, self.among
        if start >= profile.end:
            return among, None
        times, nodes = profile.times, profile.nodes
        i = max(bisect_right(times, start) - 1, 0)
        behind = bisect_left(times, start + self.length, i + 1)
        if i >= self._middle:
            common, suffixes = among, []
            for k in range(behind - 1, i - 1, -1):
                common &= nodes[k]
                suffixes.append(common)
            self._middle, self._suffixes, self._rest = behind, suffixes, among
        else:
            rest = self._rest
            for k in range(self._behind, behind):
                rest &= nodes[k]
            self._rest = rest
        self._behind = behind
        # The suffixes are there from the last step to the first.
        return self._suffixes[self._middle - 1 - i] & self._rest, self._later(i)

    def _later(self, i: int) -> int | None:
        profile, among = self.profile, self.among
        growth = max(self._growth, i)
        last = len(profile.times) - 1
        while growth < last:
            if profile.gains(growth) & among:
                self._growth = growth
                return profile.times[growth + 1]
            growth += 1
        self._growth = growth
        return None
