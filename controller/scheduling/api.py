"""What a scheduling policy is given and what it may do: the contract for plug-ins.

A policy reads the tables, puts an `Ask` to the selector, and has the planner start what comes of
it; the planner applies, and may refuse. What is to be remembered of a job the planner records: a
policy changes no job. It does no I/O, never awaits, and gets the time handed to it. Long passes
yield between jobs, so that the edge can let requests in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Protocol, TypeAlias

from understudy.controller.scheduling.cycles import Cycles
from understudy.model.scheduler_parameters import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from understudy.controller.scheduling.select.free import Free
    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition
    from understudy.controller.tables.tables import Tables


class Note(StrEnum):
    """What has happened, as a policy is told of it."""

    START = "start"  # the controller is up
    SUBMIT = "submit"  # jobs have been added at the end of `pending`, and nothing else
    FREE = "free"  # resources came back: the last epilog of a job is done
    # the same of a job that was ended from outside, whose nodes say so themselves: Slurm's main
    # scheduler runs at once
    CLEANED = "cleaned"
    # the same of some of a job's nodes, while others are not clean yet; FREE or CLEANED comes with
    # the last of them. No run is asked for
    PARTLY_FREE = "partly free"
    # anything else that matters to a pending job: an update, a hold or release, a requeue, a
    # pending job cancelled, a node or partition changed, a time limit changed
    CHANGE = "change"
    # a dependency is met, a begin time has come: Slurm finds out when it next builds its queue, for
    # which nobody asks
    MET = "met"
    # nodes were switched off or on: the backfill scheduler sees it at its next pass, and the main
    # one when it looks anyway
    POWERED = "powered"
    # priorities of pending jobs were calculated again; no job could start for that reason alone
    PRIORITY = "priority"
    # jobs that share cores have changed places: nobody else's have come free
    TURN = "turn"


# what is about jobs that wait alone: nothing is free sooner or later than before
OF_WAITING: Final = frozenset((Note.SUBMIT, Note.MET, Note.PRIORITY))


class Ask(NamedTuple):
    """What a policy asks a selector, and has the planner start: a job in one of its partitions, on
    some of the nodes there.
    """

    job: Job
    partition: Partition
    usable: int  # the nodes to choose from, a bitmap
    prefers: bool = False  # with the features that it prefers, in place of those that it requires
    most_nodes: int | None = None  # no more than that, whatever job, partition and limits allow
    blocked_cores: Mapping[int, int] | None = None  # masks by node: it may not have these
    reservation: str = ""  # the name of the one in which it is to run
    switches: int = 0  # leaf switches that its nodes may be on, 0 for any number
    time_limit_s: int | None = None  # what it gets if it starts; None: what it has


class Selector(ABC):
    """Chooses nodes (`SelectType`). Entry point group `understudy.selectors`: a class called with
    the words of SelectTypeParameters, in upper case.
    """

    # words of SelectTypeParameters that only it reads; what nobody names is complained about
    parameter_words: ClassVar[tuple[str, ...]] = ()

    whole_nodes = False  # no two jobs share a node
    # GPUs are counted also for each task, each socket and the whole job; False: --gres alone
    counts_gpus = True
    consumes_memory = True  # memory is a thing that is used up
    # a job can start only where as many CPUs are free as it needs, and on no node that is full
    needs_free_cpus = False

    def __init__(self, parameters: frozenset[str] = frozenset()) -> None:
        self.parameters = parameters

    @abstractmethod
    def select(self, ask: Ask, tables: Tables) -> Allocation | None:
        """The nodes and CPUs for the job with what is free now, or None."""

    @abstractmethod
    def nodes_if_empty(self, ask: Ask, tables: Tables) -> int | None:
        """The nodes (bitmap) that the job would get if all of them were up and empty, or None."""

    @abstractmethod
    def will_run(
        self, ask: Ask, tables: Tables, now: int, until: int | None = None
    ) -> tuple[int, int] | None:
        """(earliest start in seconds, bitmap of nodes) if the running jobs end at their limits, or
        None.

        A start after `until` is of no use to who asks; None will do.
        """

    def could_ever_run(self, ask: Ask, tables: Tables) -> bool:
        """Whether the nodes could hold the job if all were up and empty."""
        return self.nodes_if_empty(ask, tables) is not None

    # Who looks for jobs to preempt asks about states of the cluster that are not the present one.
    # A selector that cannot say has nobody preempted.

    def choose_in(self, ask: Ask, tables: Tables, free: Free) -> int | None:
        """The nodes (bitmap) that the job would get in that state, or None."""
        del ask, tables, free
        return None

    def select_in(self, ask: Ask, tables: Tables, free: Free) -> Allocation | None:
        """What the job would hold in that state, on the nodes that `choose_in` names."""
        del ask, tables, free
        return None

    def serving(self, ask: Ask, tables: Tables, free: Free) -> int:
        """Those of the nodes that would do for the job in that state, each looked at alone."""
        del ask, tables, free
        return 0

    def expect(
        self,
        *,
        overrun_s: int,
        linear_window_s: int = 0,
        packs_serial: bool = False,
        spares_idle: bool = False,
    ) -> None:
        """What slurm.conf says beside SelectTypeParameters, also when it has been read again.

        `overrun_s`: how long jobs past their limit may still take. `linear_window_s`: by how much
        windows of `will_run` grow (bf_window_linear; 0: they double). `packs_serial`: jobs of one
        CPU go to the last nodes (pack_serial_at_end). `spares_idle`: for starts in the future,
        nodes that are in use come before idle ones (bf_busy_nodes).
        """
        del overrun_s, linear_window_s, packs_serial, spares_idle


class Planner(Protocol):
    """How a policy acts. The controller implements it."""

    def start(self, ask: Ask, allocation: Allocation, now: float) -> bool:
        """Start the job with what a selector gave for the ask. False if the controller refuses
        (something changed); the tables are then as before.

        Of a job array's record, which stands for several tasks, one task is started: as a job of
        its own, the last in `Tables.running`; the record stays pending with the others, unless it
        was the last. For policies with `exact_limits` every task has its own record.
        """

    def preempt(self, job: Job, victims: Sequence[Job], now: float) -> bool:
        """Have the victims make room for the job. Whether they have done so at once, as suspended
        ones do.
        """

    def relent(self, job: Job, now: float) -> None:
        """There is no place for the job all the same: those whom it has suspended go on."""

    def start_together(self, plans: Sequence[tuple[Ask, Allocation]], now: float) -> bool:
        """Start all components of a heterogeneous job, the leader first. False if the controller
        refuses one of them; then none has started.
        """

    def give_up(self, job: Job, now: float) -> None:
        """End a pending job that cannot be over by its deadline any more."""

    def explain(self, job: Job, reason: str, detail: str = "") -> None:
        """Record why a pending job does not start now."""

    def promise(self, job: Job, start: int | None, nodes: int) -> None:
        """Record the expected start and nodes of a pending job (None: no promise)."""

    def stage_in(self, job: Job, now: float) -> bool:
        """Have the job's burst buffer staged in, for a policy that `stages_buffers`. False: it has
        one already, or there is no space.
        """

    def stage_expected(self, now: float) -> None:
        """The same for all that are expected to start soon, in the order of that."""

    def tried(self, job: Job, scheduler: str) -> None:
        """Record which of the policy's schedulers has looked for nodes for the job."""

    def await_switches(self, job: Job, now: int) -> None:
        """Record that from now on the job waits for few leaf switches (--switches)."""

    def ask_for_whole_nodes(self, job: Job) -> None:
        """Have the job share nodes with nobody from now on, wherever it is looked for."""


class SchedulingPolicy(ABC):
    """A `SchedulerType`. Entry point group `understudy.schedulers`: a class called with (tables,
    selector, planner, parameters).

    `parameters` are SchedulerParameters split at commas, keys in lower case, "" for bare words.
    """

    name: str
    # words of SchedulerParameters that only it reads; what nobody names is complained about
    parameter_words: ClassVar[tuple[str, ...]] = ()
    exact_limits = False  # time limits to the second, enforced by the node daemon
    # it has buffers staged in for jobs before they start, and starts those that are; False: jobs
    # have their burst buffers from start to end, and the planner refuses who would find no space
    stages_buffers = False
    # in the middle of a pass that waits while there are many requests (max_rpc_cnt)
    gives_way = False
    # set by who runs it: promises that decide nothing need not be made before `complete_plan`
    plans_when_asked = False

    def __init__(
        self, tables: Tables, selector: Selector, planner: Planner, parameters: PolicyParameters
    ) -> None:
        self.tables, self.selector, self.planner = tables, selector, planner
        self.parameters = parameters
        # for sdiag: the policy counts with `ran`, who runs it adds how long that took
        self.main_cycles, self.backfill_cycles = Cycles(), Cycles()
        # what else it counts, by name (`largest_front`), for sdiag; set to nought by `sdiag -r`
        self.figures: dict[str, int] = {}

    @classmethod
    def check_parameters(cls, parameters: PolicyParameters) -> None:
        """Whether the values of `parameter_words` can be read; `understudy conf check` asks, with
        one word at a time.

        Raises:
            ConfigError: a value that cannot; it says what is allowed.
        """
        del parameters

    @classmethod
    def check_cluster(cls, tables: Tables, parameters: PolicyParameters) -> None:
        """Whether all the values together mean something in a cluster with these nodes, licences
        and burst buffers; asked by `understudy conf check` and `scontrol reconfigure`.

        Raises:
            ConfigError: as `check_parameters`.
        """
        del tables, parameters

    @abstractmethod
    def note(self, what: Note, now: float) -> None:
        """Something happened. The first call, whatever it says, also marks the controller's start,
        from which phases are counted.
        """

    @abstractmethod
    def next_run(self) -> float | None:
        """When `run` should be called next (seconds of the cluster's clock), or None when there is
        nothing to do.
        """

    @abstractmethod
    def run(self, now: float) -> Iterator[float | None]:
        """One pass. Yields between jobs: None, or the time at which it wants to go on."""

    def reconfigure(self, parameters: PolicyParameters) -> None:
        """slurm.conf has been read again; also who may preempt whom may be another."""
        self.parameters = parameters

    def complete_plan(self, now: float) -> None:
        """Make the promises that nobody has asked for so far, as of now; start nothing. Somebody
        wants to see them.
        """
        del now

    @property
    def longest_switch_wait_s(self) -> int:
        """How long a job waits for few leaf switches at most (max_switch_wait)."""
        return number(self.parameters, "max_switch_wait", 300)


PolicyParameters: TypeAlias = "Mapping[str, str]"
