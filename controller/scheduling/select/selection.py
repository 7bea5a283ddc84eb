"""What all selectors share: the three questions of `Selector`, asked of one choice of nodes in
different states of the cluster.

Place: scheduling, pure. A selector says which nodes it takes and how many tasks go to each
(`choose`), and what that holds (`hold`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import structs

from understudy.controller.scheduling.api import Selector
from understudy.controller.scheduling.select.free import (
    JOBS_IN_A_GROUP,
    KILL_WAIT_S,
    FreeState,
    StateWithout,
    Timeline,
    restricted,
)
from understudy.controller.scheduling.select.request import Requests
from understudy.controller.scheduling.select.rows import (
    count_cpus_left,
    nodes_of_another_kind,
    nodes_of_others,
    tiers,
    views,
)
from understudy.model import nodeset
from understudy.model.reservations import FLEX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from understudy.controller.scheduling.api import Ask
    from understudy.controller.scheduling.select.free import Free
    from understudy.controller.scheduling.select.request import Request
    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.node import NodeTable
    from understudy.controller.tables.partition import Partition
    from understudy.controller.tables.tables import Tables

    # Nodes (a bitmap) and the number of tasks on each of them.
    Choice = list[tuple[int, int]]


class ChoosingSelector(Selector):
    """A `Selector` on top of `choose` and `hold`."""

    needs_free_cpus = True
    # so many running jobs at most are taken to have ended at once, when a start in the future is
    # looked for
    most_in_group = JOBS_IN_A_GROUP

    def __init__(self, parameters: frozenset[str] = frozenset()) -> None:
        super().__init__(parameters)
        self.consumes_memory = any(
            word == "CR_MEMORY" or word.endswith("_MEMORY") for word in parameters
        )
        self.packs_serial = False
        self.spares_idle = False
        self._timeline: Timeline | None = None
        self._requests = Requests()
        self._asked: tuple[object, ...] = ()
        self._last_request: Request | None = None
        self._overrun_s = KILL_WAIT_S
        self._linear_window_s = 0

    def expect(
        self,
        *,
        overrun_s: int,
        linear_window_s: int = 0,
        packs_serial: bool = False,
        spares_idle: bool = False,
    ) -> None:
        """As in `Selector`. `spares_idle` matters to select/cons_tres alone."""
        self.packs_serial, self.spares_idle = packs_serial, spares_idle
        self._overrun_s, self._linear_window_s = overrun_s, linear_window_s
        self._timeline = None

    @abstractmethod
    def choose(
        self,
        request: Request,
        usable: int,
        table: NodeTable,
        free: Free,
        *,
        nodes_only: bool = False,
    ) -> Choice | None:
        """Nodes out of the bitmap `usable` (the request's allowed ones), with what is free in the
        state `free`.

        `nodes_only`: how many tasks go to each does not matter.
        """

    @abstractmethod
    def hold(self, request: Request, choice: Choice, table: NodeTable, free: Free) -> Allocation:
        """What a job with that choice, made in the state `free`, holds."""

    def select(self, ask: Ask, tables: Tables) -> Allocation | None:
        """The nodes and CPUs for the job with what is free now, or None."""
        table, usable = tables.nodes, ask.usable
        request = self._request(ask, tables)
        if request is None:
            return None
        _rank_nodes(request, ask, tables)
        is_alone = request.rows == 1 and not _overlays(tables)
        if is_alone and self.is_plain(request) and table.free_cpus_on(usable) < request.cpus:
            return None
        choice = self._choose_in(request, usable, tables, table)
        return None if choice is None else self._held(request, choice, ask.partition, tables, table)

    def _held(
        self, request: Request, choice: Choice, partition: Partition, tables: Tables, free: Free
    ) -> Allocation:
        allocation = self.hold(request, choice, tables.nodes, free)
        overlaid = _overlays(tables)
        if request.shared_in or request.owns or overlaid:
            shared_in = request.shared_in
            # not even higher jobs get such nodes
            gives_way = self.whole_nodes or partition.oversubscribe != "EXCLUSIVE"
            whole = allocation.whole and not shared_in and not (overlaid and gives_way)
            allocation = structs.replace(
                allocation, shared_in=shared_in, owned=request.owns, whole=whole, overlaid=overlaid
            )
        return allocation

    def choose_in(self, ask: Ask, tables: Tables, free: Free) -> int | None:
        """The nodes that the job would get in a state that is not the present one."""
        request = self._request(ask, tables)
        choice = None if request is None else self._choose_then(request, ask.usable, tables, free)
        return None if choice is None else _nodes(choice)

    def select_in(self, ask: Ask, tables: Tables, free: Free) -> Allocation | None:
        """What the job would hold in a state that is not the present one, on the nodes that
        `choose_in` names.
        """
        request = self._request(ask, tables)
        choice = None if request is None else self._choose_then(request, ask.usable, tables, free)
        return (
            None
            if request is None or choice is None
            else self._held(request, choice, ask.partition, tables, free)
        )

    def _choose_then(
        self, request: Request, usable: int, tables: Tables, free: Free
    ) -> Choice | None:
        if _overlays(tables):
            return self._choose_in(request, usable, tables, free)
        usable = self._allowed(request, usable, tables, free)
        return self._choose_any(
            request, usable, tables.nodes, restricted(free, tables.nodes, request.blocked_cores)
        )

    def serving(self, ask: Ask, tables: Tables, free: Free) -> int:
        """Those of the nodes that would do for the job in that state, each looked at alone."""
        request = self._request(ask, tables)
        if request is None:
            return 0
        usable = ask.usable & ~free.exclusive_nodes
        return nodeset.from_positions(
            node
            for allowed in request.choices
            for node in self._serving(request, usable & allowed, tables.nodes, free)
        )

    def _serving(self, request: Request, nodes: int, table: NodeTable, free: Free) -> Iterable[int]:
        """The indices of those of the nodes that have enough for one of the job's nodes."""
        del request, table, free
        return nodeset.indices(nodes)

    def nodes_if_empty(self, ask: Ask, tables: Tables) -> int | None:
        """The nodes that the job would get if all of them were up and empty."""
        table = tables.nodes
        request = self._request(ask, tables)
        if request is None:
            return None
        request.if_empty = True
        request.switches = 0  # it waits for few of them, and then takes more
        empty = FreeState.empty(table)
        count_cpus_left(request, tables, empty)
        choice = self._choose_any(request, ask.usable, table, empty, nodes_only=True)
        return None if choice is None else _nodes(choice)

    @abstractmethod
    def might(self, request: Request, nodes: int, table: NodeTable, free: Free) -> bool:
        """A quick check before many thorough ones. False: there is no choice in this state, nor in
        any in which less is free.
        """

    def will_run(
        self, ask: Ask, tables: Tables, now: int, until: int | None = None
    ) -> tuple[int, int] | None:
        """(earliest start in seconds, bitmap of nodes) if the running jobs end at their limits, or
        None, also if it is after `until`.

        A job that could run in place of others which it may preempt could run now.
        """
        table, usable = tables.nodes, ask.usable
        request = self._request_again(ask, tables)
        if request is None:
            return None
        _rank_nodes(request, ask, tables)
        timeline = self._timeline
        if timeline is None or timeline.tables is not tables:
            timeline = self._timeline = Timeline(
                tables,
                linear_window_s=self._linear_window_s,
                kill_wait_s=self._overrun_s,
                most_in_group=self.most_in_group,
            )
        count_cpus_left(request, tables, table)
        if (
            tables.preemption is not None
            and tables.preemption.is_on
            and self._choose_any(request, usable, table, table, nodes_only=True) is None
        ):
            order = tables.preemption.candidates(ask.job, ask.partition, now, looks_ahead=True)
            instead = (
                self.choose_in(ask, tables, StateWithout(tables, order, completing=False))
                if order
                else None
            )
            if instead is not None:
                return now, instead
        found: tuple[int, int] | None = None
        if request.counted:
            return self._will_run_counted(request, usable, table, timeline, now, until)
        if len(request.choices) == 1 and self._is_as_its_shape(request, tables):
            return timeline.once(
                request.shapes,
                usable,
                now,
                until,
                lambda: self._will_run_on(
                    request, usable & request.choices[0], table, timeline, now, until
                ),
            )
        for allowed in request.choices:
            alone = request if len(request.choices) == 1 else request.but(choices=(allowed,))
            earlier = self._will_run_on(alone, usable & allowed, table, timeline, now, until)
            if earlier is not None and (found is None or earlier[0] < found[0]):
                found = earlier
                until = found[0]
            if found is not None and found[0] <= now:
                break
        return found

    @staticmethod
    def _is_as_its_shape(request: Request, tables: Tables) -> bool:
        """Whether any other job that asks for the same would be given the same."""
        return not (
            request.shapes is None
            or request.owns
            or request.favoured
            or request.foremost
            or request.max_cpus_per_node is not None
            or tables.nodes.owned_nodes
            or tables.preemption is not None
        )

    def _request(self, ask: Ask, tables: Tables) -> Request | None:
        """The job's request, with no more nodes than limits of associations and qualities of
        service allow.
        """
        limits = tables.limits
        most_nodes = limits.most_nodes(ask.job, ask.partition) if limits.enforced else None
        request = self._requests.of(ask, tables.nodes, most_nodes)
        needs = None if request is None else request.gres
        if needs is not None and needs.memory_per_gpu_mb and not self.consumes_memory:
            assert request is not None
            request.gres = replace(needs, memory_per_gpu_mb=0)
        return request

    def _request_again(self, ask: Ask, tables: Tables) -> Request | None:
        """The job's request; a backfill pass asks several times in a row for the same."""
        if tables.reservations:  # each time with other cores blocked
            return self._request(ask, tables)
        asked = (
            ask.job,
            ask.partition,
            ask.prefers,
            ask.most_nodes,
            ask.switches,
            tables.nodes.generation,
            tables.version,
        )
        if asked != self._asked:
            self._asked, self._last_request = asked, self._request(ask, tables)
        return self._last_request

    def is_plain(self, request: Request) -> bool:
        """Whether nothing but free CPUs decides, so that where there are enough of them there is a
        choice.
        """
        del request
        return False

    def _will_run_counted(
        self,
        request: Request,
        usable: int,
        table: NodeTable,
        timeline: Timeline,
        now: int,
        until: int | None,
    ) -> tuple[int, int] | None:
        """As Slurm looks ahead: each counted feature on its own, for the whole job; the latest of
        the starts, with all the nodes.
        """
        start = nodes = 0
        for having, _ in request.counted:
            found = self._will_run_on(
                request.but(choices=(having,), counted=(), required=0),
                usable & having,
                table,
                timeline,
                now,
                until,
            )
            if found is None:
                return None
            start, nodes = max(start, found[0]), nodes | found[1]
        return start, nodes

    def _will_run_on(
        self,
        request: Request,
        usable: int,
        table: NodeTable,
        timeline: Timeline,
        now: int,
        until: int | None,
    ) -> tuple[int, int] | None:
        is_checked = self.is_plain(request)
        shares = request.rows > 1 or _overlays(timeline.tables)
        for start, state in timeline.states(usable, now, until, 0 if shares else request.cpus):
            request.spared = table.idle_nodes if self.spares_idle and start > now else 0
            choice = self._choose_in(request, usable, timeline.tables, state, nodes_only=True)
            if choice is not None:
                request.spared = 0  # the next question may be about now
                return start, _nodes(choice)
            if not is_checked and not shares:
                is_checked, request.spared = True, 0
                last = restricted(timeline.by(until), table, request.blocked_cores)
                if not any(
                    self.might(request, nodes, table, last)
                    for nodes in _offered(request, usable, last)
                ):
                    return None
        request.spared = 0
        return None

    def _choose_in(
        self, request: Request, usable: int, tables: Tables, free: Free, *, nodes_only: bool = False
    ) -> Choice | None:
        """As `_choose_any`, of nodes that are not another user's and of cores that may be
        shared.
        """
        table = tables.nodes
        usable = self._allowed(request, usable, tables, free)
        if request.rows == 1 and not _overlays(tables) and not self.whole_nodes:
            return self._choose_any(
                request,
                usable,
                table,
                restricted(free, table, request.blocked_cores),
                nodes_only=nodes_only,
            )
        for view in self._views(request, tables, free, for_will_run=nodes_only):
            choice = self._choose_any(
                request,
                usable,
                table,
                restricted(view, table, request.blocked_cores),
                nodes_only=nodes_only,
            )
            if choice is not None:
                request.view = view
                return choice
        return None

    def _allowed(self, request: Request, usable: int, tables: Tables, free: Free) -> int:
        """Those of the nodes that the job may have beside others in that state. How many CPUs of
        each is noted with the request.
        """
        if request.owns or tables.nodes.owned_nodes:
            usable &= ~nodes_of_others(request, tables)
        if not self.whole_nodes:
            usable &= ~nodes_of_another_kind(request, tables, free)
        if request.max_cpus_per_node is not None:
            count_cpus_left(request, tables, free)
        return usable

    def _views(
        self, request: Request, tables: Tables, free: Free, *, for_will_run: bool
    ) -> Iterator[Free]:
        """What is free for a job that preempts others, or shares its cores, or both: it shares only
        where preempting is not enough.

        `for_will_run`: the question is when it could run.
        """
        del for_will_run
        last = free
        for last in tiers(request, tables, free):
            yield last
        if request.rows > 1:
            yield from views(request, tables, last)

    def _choose_any(
        self,
        request: Request,
        usable: int,
        table: NodeTable,
        free: Free,
        *,
        nodes_only: bool = False,
    ) -> Choice | None:
        for nodes in _offered(request, usable, free):
            if request.counted:
                choice = self._choose_counted(request, nodes, table, free)
            else:
                choice = self.choose(request, nodes, table, free, nodes_only=nodes_only)
            if choice is not None:
                return choice
        return None

    def _choose_counted(
        self, request: Request, usable: int, table: NodeTable, free: Free
    ) -> Choice | None:
        """First so many nodes of each kind as are asked for, then the job on these and, where it
        needs more, on others.
        """
        chosen = request.required
        for having, count in request.counted:
            missing = count - (chosen & having).bit_count() if having & request.required else count
            if missing <= 0:
                continue
            each = request.tasks_per_node or 1
            part = request.but(
                tasks=missing * each,
                min_nodes=missing,
                wanted_nodes=missing,
                max_nodes=missing,
                required=0,
            )
            choice = self.choose(part, usable & having & ~chosen, table, free)
            if choice is None:
                return None
            chosen |= _nodes(choice)
        if chosen.bit_count() > request.max_nodes:
            return None
        least = max(request.min_nodes, chosen.bit_count())
        return self.choose(
            request.but(
                min_nodes=least,
                wanted_nodes=max(request.wanted_nodes, least),
                required=chosen,
            ),
            usable,
            table,
            free,
        )


def _rank_nodes(request: Request, ask: Ask, tables: Tables) -> None:
    """Which nodes come first: those of a FLEX reservation for its jobs, active or not yet, whatever
    their weight (so was 22.05.8 seen to choose).
    """
    if tables.limits.enforced:
        request.favoured = tables.limits.favoured_nodes(ask.job, ask.partition)
    own = tables.reservations.by_name.get(ask.reservation) if ask.reservation else None
    request.foremost = own.nodes if own is not None and own.flags & FLEX else 0


def _overlays(tables: Tables) -> bool:
    return tables.preemption is not None and tables.preemption.overlays


def _offered(request: Request, usable: int, free: Free) -> list[int]:
    """The sets of nodes to try, one after the other."""
    usable = nodeset.without(usable, free.full_nodes | free.exclusive_nodes)
    found, required, least = [], request.required, request.min_nodes
    for allowed in request.choices:
        nodes = usable & allowed
        if nodeset.are_among(required, nodes) and nodes.bit_count() >= least:
            found.append(nodes)
    return found


def _nodes(choice: Choice) -> int:
    nodes = 0
    for part, _ in choice:
        nodes |= part
    return nodes


def spread(nodes: int, tasks: int) -> Choice:
    """Tasks on nodes that have room for all of them: dealt out in turn."""
    count = nodes.bit_count()
    each, more = divmod(tasks, count)
    choice: Choice = []
    for size, on_each in ((more, each + 1), (count - more, each)):
        if size == count:
            return [(nodes, on_each)]
        if size:
            part = nodeset.lowest(nodes, size)
            nodes ^= part
            choice.append((part, on_each))
    return choice
