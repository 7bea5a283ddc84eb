"""The controller tells accounting what happens: of jobs, of their runs and batch steps, of nodes
that cannot be used; in order, and all of it.

Covers: controller/accounting/records.
"""

from dataclasses import replace

import msgspec
import pytest
from controller_harness import ROOT, START, USER, FakeSender, FakeWire, Harness

from understudy.controller.accounting.link import (
    GATHER_S,
    PEER,
    RETRY_S,
    AccountingLink,
    NotingJournal,
)
from understudy.controller.accounting.queue import QueueFile, RecordQueue
from understudy.controller.accounting.records import REQUEUED, RESIZING, Kept
from understudy.controller.jobs.checks import check_licenses
from understudy.controller.jobs.resize import keep_number
from understudy.controller.ports import NoJournal
from understudy.controller.saved.database import open_database
from understudy.controller.tables.settings import Enforced
from understudy.model.errors import SlurmError
from understudy.model.states import JobState, NodeState
from understudy.protocol.messages import (
    AccountingRecords,
    AllocateJob,
    Associations,
    AssociationsChanged,
    AwaitRecorded,
    CancelJobs,
    CompleteJob,
    CreateStep,
    EventRecord,
    Failure,
    FederationPlace,
    GetAssociations,
    JobRecord,
    JobSpec,
    JobText,
    Ok,
    ReservationRecord,
    StepComplete,
    StepRecord,
    StepSpec,
    UpdateReservation,
)

GONE = Failure(1005, "no connection")


class Told:
    """A controller with a line to accounting, and what was told on it."""

    def __init__(
        self, *, is_virtual=False, kept=None, file=None, answers=True, before=lambda _core: None
    ):
        self.journal = NotingJournal(NoJournal())
        self.line = FakeWire()
        self.harness = Harness(journal=self.journal, is_virtual=is_virtual)
        self.soon = []
        self.file = file
        self.answers = answers
        link = {
            "cluster": "conform",
            "host": "127.0.0.1",
            "port": 6817,
            "kept": kept or Kept(),
            "soon": self.soon.append,
        }
        self.link = AccountingLink(self.harness.core, self.line, RecordQueue(), file, **link)
        self.journal.listeners.append(self.link.note)
        self.journal.note_nodes = self.link.note_nodes
        self.journal.note_reservation = self.link.note_reservation
        before(self.harness.core)
        self.link.start("unix:/accounting")
        self.records = []
        self.settle()

    def settle(self):
        """Let the link work, and accounting answer."""
        while self.soon or (self.answers and self.line.sent):
            while self.soon:
                self.soon.pop(0)()
            if self.answers and self.line.sent:
                sent = self.line.sent.pop(0)
                assert sent.peer == PEER
                if isinstance(sent.message, GetAssociations):
                    sent.answer(Associations("conform", 1, [], [], [], [], []))
                else:
                    self.records += sent.message.records
                    sent.answer(Ok())

    def of(self, kind):
        self.settle()
        return [record for record in self.records if type(record) is kind]


@pytest.fixture
def told():
    return Told()


def test_a_job_is_told_at_each_change_with_its_batch_step(told):
    h = told.harness
    job = h.submit(comment="why")
    told.settle()
    h.run(20)
    h.complete(job, code=3)
    first, *_, last = told.of(JobRecord)
    assert (first.state, first.name, first.comment, first.user, first.time_limit_min) == (
        JobState.RUNNING,
        "j",
        "",
        "ann",
        60,
    )
    assert (last.state, last.exit_code, last.end_time, last.node_count, last.killed_by) == (
        JobState.FAILED,
        3,
        int(START) + 20,
        1,
        None,
    )
    begun, ended = told.of(StepRecord)
    assert (begun.step, begun.state, begun.end_time, begun.nodes) == (
        "batch",
        JobState.RUNNING,
        None,
        "n1",
    )
    assert (ended.state, ended.exit_code, ended.exit_signal, ended.end_time) == (
        JobState.FAILED,
        3,
        0,
        int(START) + 20,
    )


def test_a_job_that_no_node_can_hold_is_on_record_as_refused(told):
    h = told.harness
    assert h.refused(cpus_per_task=5) == 2014
    (record,) = told.of(JobRecord)
    assert (record.state, record.exit_code, record.exit_signal, record.priority) == (
        JobState.FAILED,
        1,
        0,
        4294901759,  # as sacct of 22.05.8 shows it
    )
    assert record.eligible_time == record.start_time == record.end_time == int(START)
    assert told.of(StepRecord) == []


def test_scripts_and_environments_are_told_once_if_the_configuration_says_so():
    told = Told(kept=Kept(script=True, environment=True))
    job = told.harness.submit(environment=["A=1", "B="])
    told.harness.complete(job)
    texts = told.of(JobText)
    assert [each.text for each in texts] == ["#!/bin/sh\n", "A=1\nB=\n"]
    assert {(each.script, each.environment) for each in told.of(JobRecord)} == {
        tuple(each.key for each in texts)
    }
    assert not Told(kept=Kept()).of(JobText)


@pytest.mark.parametrize(("default_s", "minutes"), [(None, -1), (1800, 30)])
def test_jobs_that_wait_have_the_default_time_of_their_partition_on_record(
    told, default_s, minutes
):
    h = told.harness
    for partition in h.core.tables.partitions.values():
        partition.default_time_s = default_s
    h.submit(hold=True)
    assert [record.time_limit_min for record in told.of(JobRecord)] == [minutes]


def test_comments_are_kept_if_the_configuration_says_so():
    told = Told(kept=Kept(comment=True, wckeys=True, extern_step=True))
    job = told.harness.submit(comment="why", wckey="key")
    assert [(record.comment, record.wckey) for record in told.of(JobRecord)] == [("", "key")]
    told.harness.complete(job)
    assert told.of(JobRecord)[-1].comment == "why"
    assert [record.step for record in told.of(StepRecord)] == ["batch", "extern"] * 2


@pytest.mark.parametrize(
    ("words", "jobs", "steps"),
    [([], True, True), (["nosteps"], True, False), (["nojobs"], False, False)],
)
def test_jobs_and_steps_are_told_of_unless_the_configuration_forbids_it(told, words, jobs, steps):
    told.harness.core.settings = replace(told.harness.core.settings, enforced=Enforced.of(words))
    job = told.harness.submit()
    told.settle()
    told.harness.complete(job)
    assert (bool(told.of(JobRecord)), bool(told.of(StepRecord))) == (jobs, steps)


def test_who_cancels_is_on_record_and_a_job_that_never_ran_has_no_start(told):
    h = told.harness
    waiting = h.submit(hold=True)
    h.cancel(waiting, ROOT)
    running = h.submit()
    h.acknowledge()
    h.cancel(running)
    h.acknowledge()
    h.epilog(running)
    records = {record.job_id: record for record in told.of(JobRecord)}
    assert (
        records[waiting.job_id].killed_by,
        records[waiting.job_id].start_time,
        records[waiting.job_id].end_time,
    ) == (0, None, int(START))
    assert records[running.job_id].killed_by == 1000
    assert [(step.state, step.exit_signal) for step in told.of(StepRecord)][-1] == (
        JobState.CANCELLED,
        15,
    )


def test_a_closed_line_takes_no_more_though_something_still_changes(tmp_path):
    """A leader that has stepped down goes on for a moment, and its file is closed."""
    told = Told(file=QueueFile(open_database(tmp_path / "q.sqlite", "c", busy_s=1.0), 1))
    told.settle()
    told.harness.submit()
    told.link.close()
    told.harness.submit()
    told.settle()
    assert len(told.of(JobRecord)) == 1


def test_a_requeued_run_has_a_record_of_its_own(told):
    h = told.harness
    job = h.submit()
    h.acknowledge()
    told.settle()
    h.run(5)
    h.control("requeue", job)
    told.settle()
    h.acknowledge()
    h.epilog(job)
    runs = {}
    for record in told.of(JobRecord):
        runs[record.submit_time, record.restarts] = record
    (first, second) = (runs[key] for key in sorted(runs))
    assert (first.state, first.end_time, first.killed_by) == (REQUEUED, int(START) + 5, None)
    assert (second.state, second.submit_time, second.restarts, second.start_time) == (
        JobState.PENDING,
        int(START) + 5,
        1,
        None,
    )


def test_what_was_over_when_it_was_requeued_has_ended_then_and_its_steps_before():
    told = Told()
    h = told.harness
    job = h.submit()
    h.complete(job, 3)
    told.settle()
    h.run(5)
    h.control("requeuehold", job)
    told.settle()
    first = [each for each in told.of(JobRecord) if not each.restarts][-1]
    assert (first.state, first.end_time, first.exit_code) == (REQUEUED, int(START) + 5, 3)
    batch = [each for each in told.of(StepRecord) if not each.restarts][-1]
    assert (batch.state, batch.end_time) == (JobState.FAILED, int(START))


def test_a_failed_nodes_batch_step_has_no_exit_code(told):
    h = told.harness
    job = h.submit(requeue=False)
    h.acknowledge()
    h.update_nodes("n1", state="down", reason="smoke")
    assert job.state is JobState.NODE_FAIL
    last = told.of(StepRecord)[-1]
    assert (last.state, last.exit_code) == (JobState.CANCELLED, None)


def test_why_a_job_waited_stays_on_record_after_it_has_run(told):
    h = told.harness
    job = h.submit(hold=True)
    told.settle()
    h.control("release", job, ROOT)
    h.complete(job)
    reasons = [record.reason for record in told.of(JobRecord)]
    assert reasons[0] == reasons[-1] != "None"


def test_times_in_which_nodes_cannot_be_used_are_events(told):
    h = told.harness
    h.update_nodes("n[1-2]", state="drain", reason="disk")
    h.run(10)
    h.update_nodes("n1", state="down", reason="smoke")
    h.run(10)
    h.update_nodes("n[1-2]", state="resume")
    h.update_nodes("n3", weight="3")
    found = [
        (event.node, event.start_time - int(START), event.end_time, event.reason)
        for event in told.of(EventRecord)
    ]
    assert found == [
        ("n1", 0, None, "disk"),
        ("n2", 0, None, "disk"),
        ("n1", 10, None, "smoke"),
        ("n1", 20, int(START) + 20, ""),
        ("n2", 20, int(START) + 20, ""),
    ]
    assert told.of(EventRecord)[0].state == 0x202
    assert told.of(EventRecord)[0].tres["cpu"] == 4


def test_under_virtual_time_records_are_gathered_until_somebody_asks_for_all():
    told = Told(is_virtual=True)
    h = told.harness
    job = h.submit()
    assert told.of(JobRecord) == []
    h.run(GATHER_S)
    assert [record.state for record in told.of(JobRecord)] == [JobState.PENDING, JobState.RUNNING]
    h.complete(job)
    answer = h.ask(AwaitRecorded())
    assert answer.answer is None
    assert told.of(JobRecord)[-1].state == JobState.COMPLETED
    assert answer.answer == Ok()
    assert h.ask(AwaitRecorded()).answer == Ok()


def test_who_asks_for_all_is_answered_although_accounting_is_away():
    told = Told(is_virtual=True)
    told.answers = False
    told.harness.submit()
    answer = told.harness.ask(AwaitRecorded())
    told.settle()
    (sent,) = told.line.sent
    sent.answer(GONE)
    assert answer.answer == Ok()


def test_records_wait_on_disk_while_accounting_is_away_and_come_in_order_once(tmp_path):
    told = Told(file=QueueFile(open_database(tmp_path / "q.sqlite", "c", busy_s=1.0), 1))
    told.answers = False
    h = told.harness
    jobs = [h.submit(hold=True) for _ in range(3)]
    told.settle()
    told.line.sent.pop().answer(GONE)
    assert [record.job_id for _, record in told.file.read()] == [job.job_id for job in jobs]
    h.submit(hold=True)
    told.settle()
    assert told.line.sent == []
    told.answers = True
    h.run(RETRY_S)
    assert [record.job_id for record in told.of(JobRecord)] == [job.job_id for job in jobs] + [
        jobs[-1].job_id + 1
    ]
    assert told.file.read() == []
    told.file.close()


@pytest.mark.parametrize("others", [0, 50])
def test_what_a_controller_could_not_save_is_told_by_none_that_comes_back(tmp_path, others):
    """Its queue is on disk before its tables are; `others`: jobs of which not even that is."""
    told = Told(file=QueueFile(open_database(tmp_path / "q.sqlite", "c", busy_s=1.0), 1))
    told.answers = False
    jobs = [told.harness.submit(hold=True) for _ in range(2)]
    told.harness.core.next_job_id += others
    jobs.append(told.harness.submit(hold=True))
    told.settle()
    told.file.close()

    def come_back(core):
        """The first two are saved; of the second the last change is not, of the third nothing."""
        for job in jobs[:2]:
            core.tables.jobs[job.job_id] = job
        jobs[1].submit_time -= 5
        core.next_job_id = jobs[1].job_id + 1

    again = Told(
        file=QueueFile(open_database(tmp_path / "q.sqlite", "c", busy_s=1.0), 1), before=come_back
    )
    assert [record.job_id for record in again.of(JobRecord)] == [jobs[0].job_id]
    assert again.file.read() == []
    again.file.close()


def test_what_is_long_over_is_told_though_numbers_have_begun_again_at_the_first(tmp_path):
    told = Told(file=QueueFile(open_database(tmp_path / "q.sqlite", "c", busy_s=1.0), 1))
    told.answers = False
    old = told.harness.submit(hold=True)
    new = told.harness.submit(hold=True)
    told.settle()
    told.file.close()

    def come_back(core):
        new.submit_time += 1000
        new.job_id = 1
        core.tables.jobs[1] = new
        core.next_job_id = old.job_id - 5

    file = QueueFile(open_database(tmp_path / "q.sqlite", "c", busy_s=1.0), 1)
    assert old.job_id in [
        record.job_id for record in Told(file=file, before=come_back).of(JobRecord)
    ]
    file.close()


def test_a_batch_that_was_lost_on_the_way_is_told_again_as_it_was():
    told = Told()
    told.answers = False
    told.harness.submit(hold=True)
    told.settle()
    lost = told.line.sent.pop()
    lost.answer(GONE)
    told.harness.run(RETRY_S)
    (again,) = told.line.sent
    assert isinstance(again.message, AccountingRecords)
    assert again.message == lost.message


def test_nodes_that_register_again_are_no_event(told):
    told.harness.register("noded0")
    assert told.of(EventRecord) == []


def reserve(told, action, **changes):
    answer = told.harness.ask(
        UpdateReservation(action, "r", {key: str(value) for key, value in changes.items()}), ROOT
    )
    assert not isinstance(answer, Failure), answer


def spans(told):
    """Reservations as accounting has them: the last record of each id and start."""
    kept = {(each.id, each.start_time): each for each in told.of(ReservationRecord)}
    return [
        (each.start_time - int(START), each.end_time - int(START), each.nodes)
        for each in kept.values()
        if each.end_time > each.start_time
    ]


def test_a_reservation_is_on_record_with_what_changes_while_it_is_in_force(told):
    reserve(
        told,
        "create",
        starttime=int(START),
        duration=60,
        users="ann",
        nodes="n[1-2]",
        flags="ignore_jobs",
    )
    (record,) = told.of(ReservationRecord)
    assert (record.id, record.name, record.tres, record.flags) == (
        1,
        "r",
        {"cpu": 8},
        "IGNORE_JOBS,SPEC_NODES",
    )
    told.harness.run(100)
    reserve(told, "update", duration=30)
    assert spans(told) == [(0, 1800, "n[1-2]")]
    reserve(told, "update", nodes="n1")
    assert spans(told) == [(0, 100, "n[1-2]"), (100, 1800, "n1")]
    told.harness.run(100)
    reserve(told, "delete")
    assert spans(told) == [(0, 100, "n[1-2]"), (100, 200, "n1")]


def test_a_reservation_that_never_began_leaves_no_record(told):
    reserve(told, "create", starttime=int(START) + 500, duration=60, users="ann", nodes="n1")
    reserve(told, "update", starttime=int(START) + 900)
    assert spans(told) == [(900, 4500, "n1")]
    reserve(told, "delete")
    assert spans(told) == []


def test_a_job_is_on_record_with_its_reservation(told):
    reserve(told, "create", starttime=int(START), duration=600, users="ann", nodes="n1")
    told.harness.submit(reservation="r")
    assert [(each.reservation, each.reservation_id) for each in told.of(JobRecord)][-1] == ("r", 1)


def test_nodes_of_a_controller_that_knows_nothing_of_them_are_out_until_they_register():
    told = Told(before=lambda core: setattr(core.tables.nodes.nodes[1], "state", NodeState.UNKNOWN))
    node = told.harness.core.tables.nodes.nodes[1]
    assert [
        (each.node, each.end_time, each.reason, each.state) for each in told.of(EventRecord)
    ] == [(node.name, None, "cold-start", int(NodeState.UNKNOWN))]
    node.state = NodeState.IDLE
    told.journal.nodes(0b10)
    told.settle()
    assert [(each.node, each.reason) for each in told.of(EventRecord)][1:] == [(node.name, "")]


def test_a_cluster_s_part_of_shared_licences_is_for_its_jobs():
    told = Told()
    core = told.harness.core
    core.settings = replace(core.settings, licenses={"local": 1})
    core.take_associations(AssociationsChanged("conform", 2, licenses={"mat@srv": 5}))
    assert core.tables.licenses.totals == {"local": 1, "mat@srv": 5}
    job = told.harness.submit(licenses="mat@srv:2")
    assert job.is_running
    assert told.harness.query("licenses", "name", "total", "used", "is_remote") == [
        ["local", 1, 0, False],
        ["mat@srv", 5, 2, True],
    ]
    with pytest.raises(SlurmError):
        check_licenses(core, "mat:1")
    core.take_associations(AssociationsChanged("conform", 3))
    assert core.tables.licenses.totals["mat@srv"] == 5
    core.take_associations(AssociationsChanged("conform", 4, licenses={}))
    assert core.tables.licenses.totals == {"local": 1}


def test_jobs_of_a_federation_have_the_clusters_number_above_their_own():
    told = Told()
    core, place = (
        told.harness.core,
        FederationPlace("fed", "conform", "h", 6817, 3, "ACTIVE", ("a",)),
    )
    first = told.harness.submit().job_id
    core.take_associations(AssociationsChanged("conform", 2, federation=place, has_moved=True))
    job = told.harness.submit()
    assert job.job_id == (3 << 26) + first + 1
    assert told.harness.query("federation", "name", "number", "state", "features") == [
        ["fed", 3, "ACTIVE", ["a"]]
    ]
    core.take_associations(AssociationsChanged("conform", 3))
    core.take_associations(
        AssociationsChanged("conform", 4, federation=replace_state(place, "DRAIN"), has_moved=True)
    )
    with pytest.raises(AssertionError, match="submissions disabled"):
        told.harness.submit()
    core.take_associations(AssociationsChanged("conform", 5, has_moved=True))
    assert told.harness.submit().job_id == first + 2


def replace_state(place, state):
    return msgspec.structs.replace(place, state=state)


@pytest.mark.parametrize(("no_kill", "starts"), [(False, 0), (True, 5)])
def test_a_job_that_goes_on_with_fewer_nodes_has_a_record_for_each_part(told, no_kill, starts):
    h = told.harness
    job = h.submit(min_nodes=2, num_tasks=2, no_kill=no_kill)
    h.acknowledge()
    told.settle()
    h.run(5)
    keep_number(h.core, job, "1", h.core.time.now())
    told.settle()
    h.run(5)
    h.complete(job)
    runs = {}
    for record in told.of(JobRecord):
        runs[record.submit_time] = record
    begin = int(START)
    first, second = runs[begin], runs[begin + 5]
    assert (first.state, first.start_time, first.end_time, first.node_count) == (
        RESIZING,
        begin,
        begin + 5,
        2,
    )
    assert (second.state, second.start_time, second.end_time, second.node_count) == (
        JobState.COMPLETED,
        begin + starts,
        begin + 10,
        1,
    )
    assert second.eligible_time == begin + 5
    batch = told.of(StepRecord)[-1]  # it stays with the first part
    assert (batch.submit_time, batch.state, batch.end_time) == (begin, RESIZING, begin + 5)


NODED = FakeSender("noded0", 0, 0, is_daemon=True)


def test_what_starts_as_it_is_submitted_says_so_and_steps_have_no_memory_where_nobody_counts_it():
    told = Told(before=lambda core: setattr(core.selector, "consumes_memory", False))
    h = told.harness
    job = h.ask(AllocateJob(JobSpec(num_tasks=1)), USER).job_id
    h.ask(CreateStep(job, StepSpec(mem_per_node_mb=100)), USER)
    assert told.of(JobRecord)[-1].flags == "SchedSubmit,StartRecieved"
    assert told.of(StepRecord)[-1].tres_allocated == {"cpu": 1, "mem": 0, "node": 1}


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_steps_that_end_with_a_job_that_is_cancelled_do_not_count_for_its_derived_exit_code(
    told, is_cancelled
):
    h = told.harness
    job = h.ask(AllocateJob(JobSpec(num_tasks=1)), USER).job_id
    h.ask(CreateStep(job, StepSpec()), USER)
    h.ask(StepComplete(job, 0, 0, "n1", 3, 0), NODED)
    h.run(5)
    assert told.of(JobRecord)[-1].derived_exit_code == 0  # as long as it runs
    h.ask(CreateStep(job, StepSpec()), USER)
    if is_cancelled:
        h.ask(CancelJobs([str(job)]), USER)
    h.ask(StepComplete(job, 0, 1, "n1", 4, 0), NODED)
    if not is_cancelled:
        h.ask(CompleteJob(job, 0), USER)
    assert told.of(JobRecord)[-1].derived_exit_code == (3 if is_cancelled else 4)
