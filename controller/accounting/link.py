"""The controller's line to the accounting daemon: what it may do comes from there, what happened
goes there.

Place: the edge. It fetches associations at the start and takes over what changes, and tells of
every job that was submitted, started or ended. While the daemon is away the controller works on
with what it knows, and records wait in the queue.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from understudy.controller.accounting import known
from understudy.controller.accounting.records import (
    Kept,
    blocking_reason,
    is_between_runs,
    job_record,
    job_texts,
    node_event,
    reservation_changes,
    reservation_record,
    resized_records,
    signature,
    step_records,
    unusable,
)
from understudy.controller.facts.tres import NodeBills
from understudy.controller.later import Later
from understudy.controller.pending.access import accounting_has_changed
from understudy.controller.ports import NoJournal
from understudy.controller.priority.tres import totals
from understudy.controller.scheduling.api import Note
from understudy.model import nodeset
from understudy.model.reservations import TIME_FLOAT
from understudy.model.states import NodeFlag, NodeState
from understudy.model.tres import split_name
from understudy.protocol.messages import (
    AccountingRecords,
    Associations,
    AssociationsChanged,
    EventRecord,
    Failure,
    GetAssociations,
    JobRecord,
    Message,
    Ok,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.controller.accounting.queue import QueueFile, Record, RecordQueue
    from understudy.controller.core.core import Core
    from understudy.controller.ports import Journal, TimerHandle, Wire
    from understudy.controller.tables.job import Job
    from understudy.protocol.messages import ReservationRecord

log = logging.getLogger("understudy.controller.accounting.link")
PEER: Final = "accounting"
RETRY_S: Final = 10.0  # observed at 22.05.8: its accounting agent tries again after as long
# ours: daemons of one cluster start side by side, and the controller is quicker
FIRST_RETRY_S: Final = 0.1
BATCH: Final = 1000
# ours: under virtual time records are told so late: each message has its price there
GATHER_S: Final = 10.0
_ANSWER_S: Final = 60.0  # ours: until a message counts as lost
# ours: so long after the controller's start virtual time goes on for accounting to appear
START_S: Final = 60.0
COLD_START: Final = "cold-start"


class NotingJournal:
    """A journal that also says which jobs and nodes have changed."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.note_nodes: Callable[[int], None] = lambda _nodes: None
        self.note_reservation: Callable[[str], None] = lambda _name: None
        # who is told of jobs, in order: the journal itself first, if it keeps any
        self.listeners: list[Callable[[int], None]] = []
        if not isinstance(journal, NoJournal):
            self.listeners.append(journal.job)

    def job(self, job_id: int) -> None:
        """A job's record was added, changed or forgotten."""
        for listener in self.listeners:
            listener(job_id)

    def nodes(self, nodes: int) -> None:
        """The states of the nodes (a bitmap) have changed."""
        self._journal.nodes(nodes)
        self.note_nodes(nodes)

    def partition(self, name: str) -> None:
        """A partition was added, changed or deleted."""
        self._journal.partition(name)

    def reservation(self, name: str) -> None:
        """A reservation was added, changed or deleted."""
        self._journal.reservation(name)
        self.note_reservation(name)

    def document(self, name: str) -> None:
        """Something that is saved as a whole has changed."""
        self._journal.document(name)

    def submission(self, user_id: int, token: str) -> None:
        """A submission was noted under its token, or forgotten."""
        self._journal.submission(user_id, token)


class AccountingLink:
    """Fetches, takes over, tells. `soon` calls after what is being handled now; `saved`: None if
    the queue need not survive the process.
    """

    def __init__(
        self,
        core: Core,
        wire: Wire,
        queue: RecordQueue,
        saved: QueueFile | None,
        *,
        cluster: str,
        host: str,
        port: int,
        kept: Kept,
        slurm_user: int = 0,
        soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._core, self._wire, self._queue, self._saved, self._soon = (
            core,
            wire,
            queue,
            saved,
            soon,
        )
        self._cluster, self._host, self._port = cluster, host, port
        self._since = core.time.now()
        self.kept, self._slurm_user = kept, slurm_user
        self._recorded: dict[int, tuple[object, ...]] = {}
        self._blocked: dict[int, str] = {}  # by job id: for what else than its turn it has waited
        # by node index: what accounting was told of nodes that cannot be used
        self._out: dict[int, tuple[int, str, int]] = {}
        self._reservations: dict[str, ReservationRecord] = {}  # by name: what accounting has
        self._must_tell_reservations = True
        self._changed: dict[int, None] = {}
        self._ready: list[Record] = []
        self._when_recorded: list[Callable[[], None]] = []
        self._timer: TimerHandle | None = None
        self._is_sending = self._is_fetching = self._is_closed = False
        self._awaiting: list[Later] = []
        self._retry_s = FIRST_RETRY_S
        if saved is not None:
            queue.restore(saved.read())
        core.take_associations = self._take_over
        core.when_recorded = self.when_recorded
        core.when_resized = self._end_part

    @property
    def waiting(self) -> int:
        """How many records wait to be told."""
        return len(self._queue)

    def start(self, address: str) -> None:
        """Ask for associations, and tell what is left in the queue."""
        self._wire.add_peer(PEER, address)
        self._forget_undone()
        if self._core.associations.number:  # as it was saved; accounting may be away
            accounting_has_changed(self._core)
        self._note_cold_start()
        for each in self._core.tables.reservations:
            if not each.flags & TIME_FLOAT:
                self._reservations[each.name] = reservation_record(self._core, each)
        self._fetch()

    def _forget_undone(self) -> None:
        """An earlier controller may have put into the queue what it could not save itself: jobs
        and runs that never were. Nobody has been told of them.
        """
        waiting = self._queue.batch(len(self._queue))
        newest = max(
            (job.submit_time for job in self._core.tables.jobs.values() if not job.restarts),
            default=0,
        )
        gone = [number for number, record in waiting if self._is_undone(record, newest)]
        if gone and self._saved is not None:
            self._queue.taken(gone)
            self._saved.write([], gone)

    def _is_undone(self, record: Record, newest: int) -> bool:
        if type(record) is not JobRecord:
            return False
        core = self._core
        job = core.tables.jobs.get(record.job_id)
        if job is None:
            # Numbers that come next, submitted no sooner than the newest that is known: those of
            # jobs that are long over may have begun again at the first.
            ahead = record.job_id - core.next_job_id
            span = core.settings.max_job_id - core.settings.first_job_id
            return 0 <= ahead <= span // 2 and record.submit_time >= newest
        return (record.restarts, record.submit_time) > (job.restarts, job.submit_time)

    def _note_cold_start(self) -> None:
        """Nodes of which nothing is known yet, as no controller has been here before, cannot be
        used until their daemons have registered.
        """
        if self._core.time.is_virtual:
            return
        core, now, bills = self._core, int(self._core.time.now()), NodeBills(self._core)
        for index, node in enumerate(core.tables.nodes.nodes):
            if node.state is NodeState.UNKNOWN and not node.flags & ~NodeFlag.NO_RESPOND:
                event = unusable(
                    core, bills, node, now, int(NodeState.UNKNOWN), COLD_START, self._slurm_user
                )
                self._out[index] = (event.state, event.reason, event.user_id or 0)
                self._ready.append(event)
        if self._ready:
            self._soon(self._record)

    # --- associations -----------------------------------------------------------------------------

    def _fetch(self) -> None:
        if self._is_fetching:
            return
        self._is_fetching = True
        nodes = self._core.tables.nodes.nodes
        bills = NodeBills(self._core)
        tres = {
            "cpu": sum(node.effective_cpus for node in nodes),
            "mem": sum(node.memory_mb for node in nodes),
            "node": len(nodes),
            "billing": sum(bills.of(node) for node in nodes),
        }
        there = totals(self._core.names.all, self._core.tables.nodes)
        for name in self._core.settings.tracked_tres:
            kind, own = split_name(name)
            tres[name] = (
                self._core.settings.licenses.get(own, 0)
                if kind == "license"
                else self._core.tables.burst_buffers.total_mebibytes
                if kind == "bb"
                else int(there.get(name, 0))
            )
        names = self._core.names.to_expression(self._core.names.all)
        self._wire.send(
            PEER,
            GetAssociations(self._cluster, self._host, self._port, names, tres),
            self._fetched,
            _ANSWER_S,
        )

    def _again(
        self, delay_s: float, matters: Callable[[], bool], action: Callable[[], None]
    ) -> TimerHandle:
        """Try again later."""
        core = self._core
        if core.time.is_virtual:
            return core.periodically(core.time.now() + delay_s, matters, action)
        return core.after_wait(delay_s, action)

    def _fetched(self, answer: Message) -> None:
        self._is_fetching = False
        if not isinstance(answer, Associations):
            log.warning(
                "no associations from accounting: %s",
                answer.text if isinstance(answer, Failure) else answer,
            )
            self._again(
                self._retry_s,
                lambda: self._core.start_time > self._core.time.now() - START_S,
                self._fetch,
            )
            self._retry_s = min(2 * self._retry_s, RETRY_S)
            return
        self._retry_s = FIRST_RETRY_S
        known.take(self._core, answer)
        log.info(
            "accounting has %d associations and %d qualities of service",
            len(answer.associations),
            len(answer.qos),
        )
        if self._must_tell_reservations:  # whose they are is known only now
            self._must_tell_reservations = False
            for name in list(self._reservations):
                self._reservations[name] = reservation_record(
                    self._core, self._core.tables.reservations.by_name[name]
                )
            self._add(list(self._reservations.values()))
        self._have_changed()
        waiting, self._awaiting = self._awaiting, []
        for later in waiting:
            later.give(Ok())
        self._send()

    def _take_over(self, message: AssociationsChanged) -> Message | Later:
        """Accounting tells of a change."""
        state = self._core.associations
        if message.number != state.number + 1:
            later = Later()
            self._awaiting.append(later)
            self._fetch()
            return later
        state.apply(
            message.number,
            associations=message.associations,
            removed_associations=message.removed_associations,
            qos=message.qos,
            removed_qos=message.removed_qos,
            users=message.users,
            removed_users=message.removed_users,
            wckeys=message.wckeys,
            tres=message.tres,
        )
        if message.has_moved:
            self._core.federation = message.federation
        if message.licenses is not None:
            self._take_licenses(message.licenses)
        if message.unused_associations or message.unused_qos:
            self._forget_use(message.unused_associations, message.unused_qos)
        self._have_changed()
        return Ok()

    def _take_licenses(self, licenses: dict[str, int]) -> None:
        self._core.remote_licenses = licenses
        self._core.count_licenses()

    def _forget_use(self, numbers: list[int], qos: list[str]) -> None:
        """What these associations, with all below them, and qualities of service have used counts
        no longer.
        """
        children = self._core.associations.children
        below: dict[int, None] = {}
        ahead = list(numbers)
        while ahead:
            number = ahead.pop()
            below[number] = None
            ahead += [each.id for each in children.get(number, [])]
        self._core.priorities.forget(list(below))
        if self._core.job_limits is not None:
            self._core.job_limits.forget_use(numbers, list(below), qos)

    def _have_changed(self) -> None:
        self._core.journal.document(known.SAVED_AS)
        accounting_has_changed(self._core)
        self._core.changed(Note.CHANGE, self._core.time.now())
        self._core.after_event()

    # --- records ----------------------------------------------------------------------------------

    def note(self, job_id: int) -> None:
        """The job's record was added, changed or forgotten."""
        if not self._core.settings.enforced.jobs:
            return
        job = self._core.tables.jobs.get(job_id)
        if not self._changed and not self._ready:
            self._soon(self._record)
        # a requeue may make it a pending one before anybody looks
        if job is not None and job.is_finished:
            self._record_job(job)
        else:
            self._changed[job_id] = None

    def note_nodes(self, nodes: int) -> None:
        """The states of the nodes (a bitmap) have changed."""
        now, bills = self._core.time.now(), NodeBills(self._core)
        listed = self._core.tables.nodes.nodes
        was_idle = not self._changed and not self._ready
        for index in nodeset.indices(nodes):
            node = listed[index]
            event = node_event(self._core, bills, node, now)
            if event is None:
                if self._out.pop(index, None) is not None:
                    self._ready.append(EventRecord(node.name, int(now), int(now)))
            elif self._out.get(index) != (told := (event.state, event.reason, event.user_id or 0)):
                self._out[index] = told
                self._ready.append(event)
        if was_idle and self._ready:
            self._soon(self._record)

    def note_reservation(self, name: str) -> None:
        """The reservation was added, changed or deleted."""
        reservation = self._core.tables.reservations.by_name.get(name)
        records = reservation_changes(
            self._core, self._reservations.get(name), reservation, int(self._core.time.now())
        )
        if reservation is None:
            self._reservations.pop(name, None)
        elif records:
            self._reservations[name] = records[-1]
        self._add(records)

    def _add(self, records: Sequence[Record]) -> None:
        if records and not self._changed and not self._ready:
            self._soon(self._record)
        self._ready += records

    def _record_job(self, job: Job) -> None:
        reason = blocking_reason(job)
        if reason:
            self._blocked[job.job_id] = reason
        if is_between_runs(job):
            return
        new = signature(job)
        if self._recorded.get(job.job_id) == new:
            return
        if job.job_id not in self._recorded:
            self._ready += job_texts(self._core, job, self.kept).values()
        self._recorded[job.job_id] = new
        self._ready.append(
            job_record(self._core, job, self.kept, self._blocked.get(job.job_id, ""))
        )
        has_steps = job.allocation is not None and not job.is_wanted_again
        if has_steps and self._core.settings.enforced.steps:
            self._ready += step_records(self._core, job, self.kept)

    def _end_part(self, job: Job) -> None:
        """The job is about to shrink to fewer nodes: its record ends, and another begins."""
        if not self._core.settings.enforced.jobs:
            return
        if not self._changed and not self._ready:
            self._soon(self._record)
        self._record_job(job)  # in case that it is not on record yet
        self._ready += resized_records(self._core, job, self.kept, int(self._core.time.now()))

    def _record(self) -> None:
        """Put what has changed into the queue."""
        if self._is_closed:  # a leader that has stepped down goes on for a moment
            return
        changed, self._changed = self._changed, {}
        for job_id in changed:
            job = self._core.tables.jobs.get(job_id)
            if job is None:
                self._recorded.pop(job_id, None)
                self._blocked.pop(job_id, None)
            else:
                self._record_job(job)
        records, self._ready = self._ready, []
        if not records:
            self._check_recorded()
            return
        added, dropped = self._queue.add(records)
        if self._saved is not None:
            self._saved.write(added, dropped)
        # with a timer accounting is away
        if self._when_recorded or (self._timer is None and not self._core.time.is_virtual):
            self._send()
        elif self._timer is None and not self._is_sending:
            self._timer = self._core.time.call_at(self._core.time.now() + GATHER_S, self._send)

    def when_recorded(self, action: Callable[[], None]) -> None:
        """Act as soon as accounting knows all that has happened so far, or does not answer."""
        self._when_recorded.append(action)
        self._record()
        self._send()
        if not self._is_sending:  # nothing to tell, or nobody who could be told
            self._let_go()

    def _check_recorded(self) -> None:
        if not self._queue and not self._is_sending:
            self._let_go()

    def _let_go(self) -> None:
        waiting, self._when_recorded = self._when_recorded, []
        for action in waiting:
            action()

    def _send(self) -> None:
        """Tell accounting the first part of the queue, unless it has something to answer to."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch = self._queue.batch(BATCH)
        if self._is_sending or not batch or not self._core.associations.number:
            return
        self._is_sending = True
        numbers = [number for number, _ in batch]
        records = [record for _, record in batch]
        message = AccountingRecords(self._cluster, records, self._since, numbers[-1])
        self._wire.send(PEER, message, lambda answer: self._sent(numbers, answer), _ANSWER_S)

    def _sent(self, numbers: list[int], answer: Message) -> None:
        self._is_sending = False
        if self._is_closed:  # who comes next tells it once more, as after a crash
            return
        if isinstance(answer, Failure):
            log.warning(
                "accounting has not taken %d records, %d wait: %s",
                len(numbers),
                len(self._queue),
                answer.text,
            )
            self._let_go()
            self._timer = self._again(RETRY_S, lambda: False, self._send)  # it may be gone for good
            return
        self._queue.taken(numbers)
        if self._saved is not None:
            self._saved.write((), numbers)
        self._check_recorded()
        self._send()

    def close(self) -> None:
        """Close the queue's file."""
        self._record()
        self._is_closed = True
        if self._saved is not None:
            self._saved.close()
