"""State on disk: a controller that is killed at any instant comes back with all that it
acknowledged.

Covers: controller/edge/validate, controller/saved/records, controller/saved/recover.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from controller_harness import (
    OTHER,
    ROOT,
    USER,
    FakeSender,
    FakeTime,
    FakeWire,
    Harness,
    make_tables,
)

from understudy.controller.edge.validate import validate
from understudy.controller.requests.node_news import register_nodes
from understudy.controller.saved.records import (
    StateError,
    decode_job,
    decode_node,
    encode_job,
    encode_node,
)
from understudy.controller.saved.recover import recover
from understudy.controller.saved.store import Commits, Dirty, HeldWire, Store
from understudy.model.states import JobState, NodeFlag, NodeState
from understudy.protocol.messages import (
    AllocateJob,
    ChangeNodeTable,
    JobSpec,
    LaunchBatch,
    Ok,
    RegisterNodes,
    ReservationChanged,
    SignalJob,
    SubmitJob,
    TerminateJob,
    UpdatePartition,
    UpdateReservation,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from understudy.controller.tables.job import Job


class Disk:
    """A harness with a store; `save` commits, `crash` forgets what was not committed and comes
    back.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.time = FakeTime()
        self.h = self._begin()

    def _begin(self, *, register: bool = True, in_full: bool = False) -> Harness:
        self.dirty = Dirty()
        self.store = Store(self.path)
        self.h = Harness(journal=self.dirty, time=self.time, register=False)
        jobs = self.store.read(self.h.core, in_full=in_full)
        self.dirty.scripts_are_saved(set(self.h.core.scripts))
        recover(self.h.core, jobs)
        if register:
            self.h.register("noded0")
        validate(self.h.core)
        return self.h

    def save(self) -> None:
        self.store.write(self.dirty.take(self.h.core))

    def crash(self, *, running: list[int] | None = None, in_full: bool = False) -> Harness:
        self.store.close()
        h = self._begin(register=False, in_full=in_full)
        if running is not None:
            h.register(
                "noded0", [(job_id, h.core.tables.jobs[job_id].restarts) for job_id in running]
            )
        return h


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "state")


@pytest.mark.parametrize("is_allocation", [False, True])
def test_a_submission_that_comes_again_after_a_crash_is_the_same_job(
    disk: Disk, *, is_allocation: bool
) -> None:
    spec = JobSpec(name="j", work_dir="/home/ann")
    message = (
        AllocateJob(spec, token="t") if is_allocation else SubmitJob(spec, "#!/bin/sh\n", token="t")
    )
    job_id = disk.h.ask(message, USER).job_id
    disk.save()
    h = disk.crash()
    assert h.ask(message, USER).job_id == job_id
    assert h.ask(message, OTHER).job_id == job_id + 1  # another user's token
    assert h.ask(msgspec.structs.replace(message, token=""), USER).job_id == job_id + 2
    assert len(h.core.tables.jobs) == 3
    disk.save()
    assert disk.crash().ask(message, OTHER).job_id == job_id + 1


def test_submissions_that_are_forgotten_leave_the_disk(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.controller.tables.submissions.MOST", 2)
    spec = JobSpec(name="j", work_dir="/home/ann")
    for token in ("a", "b", "c"):
        disk.h.ask(SubmitJob(spec, "#!/bin/sh\n", token=token), USER)
        disk.save()
    known = disk.crash().core.submissions
    found = [known.job_of(USER.user_id, token) for token in ("a", "b", "c")]
    assert found == [None, 2, 3]


def test_a_database_that_is_damaged_where_it_is_read_is_refused(disk: Disk) -> None:
    for _ in range(60):
        disk.h.submit(comment="c" * 1000)
    disk.save()
    disk.store.close()
    file = disk.path / "state.sqlite"
    octets = bytearray(file.read_bytes())
    octets[-4 * 4096 :] = b"\xff" * 4 * 4096  # tables, not the head
    file.write_bytes(octets)
    with pytest.raises(StateError, match=r"state\.sqlite"):
        disk._begin()
    disk.store.close()


def same(one: Job, other: Job) -> bool:
    return encode_job(one) == encode_job(other)


def test_every_field_of_a_job_survives(disk: Disk) -> None:
    h = disk.h
    first = h.submit(min_nodes=2, features="fast", comment="c", kill_signal=10)
    jobs = [
        first,
        h.submit(dependency=f"afterok:{first.job_id}?singleton"),
        h.submit(hold=True, excluded_nodes="n1"),
        h.submit(begin_time=2e9),
    ]
    first.as_preferred = True
    first.last_tres = "cpu=1"
    for job in jobs:
        again = decode_job(encode_job(job))
        assert same(job, again)
        for name in (
            "allocation",
            "dependency",
            "state",
            "flags",
            "spec",
            "emulation",
            "excluded_nodes",
            "begin_time",
            "priority",
            "as_preferred",
            "last_tres",
        ):
            assert getattr(again, name) == getattr(job, name), name


def test_a_job_that_an_older_program_saved_has_its_texts_in_fields(disk: Disk) -> None:
    job = disk.h.submit(hold=True)
    job.spec = msgspec.structs.replace(job.spec, extra={"hint": "multithread"})
    spec = decode_job(encode_job(job)).spec
    assert (spec.hint, spec.extra) == ("multithread", {})


def test_damaged_and_future_records_are_refused(disk: Disk, tmp_path: Path) -> None:
    with pytest.raises(StateError):
        decode_job(b"\x00\x01")
    record = encode_job(disk.h.submit())
    assert record[3] == 1  # array header of three bytes, then the version
    with pytest.raises(StateError, match="version 9"):
        decode_job(record[:3] + b"\x09" + record[4:])
    (tmp_path / "state2").mkdir()
    (tmp_path / "state2" / "state.sqlite").write_bytes(
        b"no database at all, but long enough to be one" * 100
    )
    with pytest.raises(StateError):
        Store(tmp_path / "state2")


def test_whatever_octet_of_a_record_is_wrong_it_is_read_or_said_to_be_damaged(disk: Disk) -> None:
    h = disk.h
    job = h.submit(min_nodes=2, features="fast", dependency="", kill_signal=10)
    node = h.core.tables.nodes.nodes[0]
    for record, read in (
        (encode_job(job), decode_job),
        (encode_node(node), lambda octets: decode_node(octets, node)),
    ):
        damaged = 0
        for place in range(len(record)):
            for octet in (0x00, 0x7F, 0x80, 0xC0, 0xFF, record[place] ^ 1):
                try:
                    read(record[:place] + bytes((octet,)) + record[place + 1 :])
                except StateError:
                    damaged += 1
        assert damaged


def test_a_database_of_a_later_version_is_refused(tmp_path: Path) -> None:
    Store(tmp_path).close()
    database = sqlite3.connect(tmp_path / "state.sqlite")
    database.execute("PRAGMA user_version=99")
    database.close()
    with pytest.raises(StateError, match="version 99"):
        Store(tmp_path)


def test_pending_held_and_dependent_jobs_come_back(disk: Disk) -> None:
    h = disk.h
    running = h.submit(exclusive=True, min_nodes=4)
    held, dependent, later = (
        h.submit(hold=True),
        h.submit(dependency=f"afterok:{running.job_id}"),
        h.submit(begin_time=h.time.now() + 500),
    )
    h.acknowledge()
    disk.save()
    h = disk.crash(running=[running.job_id])
    table = h.core.tables.jobs
    assert all(same(table[job.job_id], job) for job in (held, dependent, later))
    assert h.core.scripts[held.job_id] == "#!/bin/sh\n"
    h.complete(table[running.job_id])
    assert table[dependent.job_id].is_running
    h.control("release", table[held.job_id])
    assert table[held.job_id].is_running
    h.acknowledge()
    h.run(501)
    assert table[later.job_id].is_running
    assert h.submit().job_id == later.job_id + 1


def test_what_was_not_saved_is_gone_and_its_job_id_is_given_again(disk: Disk) -> None:
    disk.h.submit()
    disk.save()
    disk.h.submit()
    h = disk.crash()
    assert list(h.core.tables.jobs) == [1]


def test_running_jobs_go_on_and_their_end_is_taken_when_it_is_reported_again(disk: Disk) -> None:
    job = disk.h.submit(time_limit_s=600, num_tasks=3)
    disk.h.acknowledge()
    disk.save()
    h = disk.crash(running=[job.job_id])
    assert not h.sent(LaunchBatch)
    again = h.core.tables.jobs[job.job_id]
    assert (again.is_running, again.node_list, h.core.tables.nodes.free_cpus[0]) == (True, "n1", 1)
    h.finish(again)
    assert again.state is JobState.COMPLETED


def test_time_limits_hold_after_coming_back(disk: Disk) -> None:
    job = disk.h.submit(time_limit_s=60)
    disk.h.acknowledge()
    disk.save()
    h = disk.crash(running=[job.job_id])
    h.run(100)
    assert h.core.tables.jobs[job.job_id].state is JobState.TIMEOUT


def test_a_job_that_was_warned_before_a_crash_is_not_warned_again(disk: Disk) -> None:
    job = disk.h.submit(
        time_limit_s=600, kill_signal=10, kill_signal_before_s=60, kill_signal_batch=True
    )
    disk.h.acknowledge()
    disk.save()
    disk.h.run(540)
    disk.save()
    h = disk.crash(running=[job.job_id])
    h.run(40)
    assert h.core.tables.jobs[job.job_id].is_running
    assert not h.sent(SignalJob)


def test_a_launch_that_may_not_have_arrived_is_sent_again(disk: Disk) -> None:
    job = disk.h.submit()
    disk.save()
    h = disk.crash(running=[])
    (launch,) = h.launches()
    assert (launch.job_id, launch.restart) == (job.job_id, 0)


def test_a_job_that_arrived_and_is_missing_was_lost_if_its_daemon_was_restarted(disk: Disk) -> None:
    job = disk.h.submit()
    disk.h.acknowledge()
    disk.save()
    disk.time.jump(50)
    h = disk.crash()
    h.ask(
        RegisterNodes("noded0", "unix:/x", "n[1-4]", 0.0, h.time.now() - 10, []),
        FakeSender("noded0", 0, 0, is_daemon=True),
    )
    h.find()
    again = h.core.tables.jobs[job.job_id]
    assert (again.state, again.is_completing) == (JobState.PENDING, True)
    h.epilog(again)
    assert again.restarts == 1


def test_a_job_that_began_in_the_second_in_which_its_daemon_was_restarted_is_lost_if_it_is_missing(
    disk: Disk,
) -> None:
    job = disk.h.submit()
    disk.h.acknowledge()
    disk.save()
    h = disk.crash()
    h.ask(
        RegisterNodes("noded0", "unix:/x", "n[1-4]", 0.0, float(job.start_time or 0) + 0.5, []),
        FakeSender("noded0", 0, 0, is_daemon=True),
    )
    h.find()
    assert h.core.tables.jobs[job.job_id].state is JobState.PENDING


def test_a_job_is_not_lost_by_a_daemon_that_was_restarted_in_its_second_and_has_it(
    disk: Disk,
) -> None:
    job = disk.h.submit()
    disk.h.acknowledge()
    disk.save()
    h = disk.crash()
    h.ask(
        RegisterNodes("noded0", "unix:/x", "n[1-4]", 0.0, float(job.start_time or 0) + 0.5, []),
        FakeSender("noded0", 0, 0, is_daemon=True),
    )
    h.find(job)
    assert h.core.tables.jobs[job.job_id].is_running


def test_a_job_whose_end_is_on_its_way_is_left_alone(disk: Disk) -> None:
    job = disk.h.submit()
    disk.h.acknowledge()
    disk.save()
    h = disk.crash(running=[])
    h.find(job)
    assert not h.wire.sent
    assert h.core.tables.jobs[job.job_id].is_running


def test_jobs_that_were_never_acknowledged_are_ended_by_their_daemon(disk: Disk) -> None:
    disk.h.submit()
    h = disk.crash()
    assert h.register("noded0", [(1, 0)]).unknown_jobs == [(1, 0)]


def test_completing_jobs_are_terminated_again(disk: Disk) -> None:
    job = disk.h.submit(min_nodes=2)
    disk.h.acknowledge()
    disk.h.cancel(job)
    disk.save()
    h = disk.crash(running=[])
    (sent,) = h.sent(TerminateJob)
    assert sent.message == TerminateJob(job.job_id, 0, "n[1-2]", lingers=True)
    h.epilog(h.core.tables.jobs[job.job_id])
    assert h.core.tables.nodes.idle_nodes == 0b1111


def test_nodes_that_a_completing_job_has_given_back_belong_to_whoever_is_there_now(
    disk: Disk,
) -> None:
    h = disk.h
    first = h.submit(min_nodes=4, exclusive=True)
    h.acknowledge()
    disk.save()
    h.finish(first)
    h.epilog(first, "n[1-3]")
    second = h.submit(min_nodes=2, exclusive=True)
    assert second.is_running
    disk.save()
    h = disk.crash(running=[second.job_id])
    validate(h.core)
    assert [h.core.tables.jobs[job.job_id].completing_nodes for job in (first, second)] == [
        0b1000,
        0,
    ]
    h.complete(h.core.tables.jobs[second.job_id])
    h.epilog(h.core.tables.jobs[first.job_id], "n4")
    assert h.core.tables.nodes.idle_nodes == 0b1111


def test_so_do_those_on_which_it_shared_cores(disk: Disk) -> None:
    h = disk.h
    h.core.tables.partitions["main"].oversubscribe = "FORCE:2"
    second = h.submit(min_nodes=2, begin_time=h.time.now() + 100)
    first = h.submit(min_nodes=4)
    assert first.allocation is not None
    assert first.allocation.is_shared
    h.acknowledge()
    h.finish(first)
    h.epilog(first, "n[1-3]")
    h.core.tables.partitions["main"].oversubscribe = "NO"
    h.run(101)
    assert second.is_running
    disk.save()
    h = disk.crash(running=[second.job_id])
    validate(h.core)
    h.complete(h.core.tables.jobs[second.job_id])
    h.epilog(h.core.tables.jobs[first.job_id], "n4")
    assert h.core.tables.nodes.idle_nodes == 0b1111


def test_jobs_that_run_side_by_side_on_the_same_cores_do_so_after_a_restart(disk: Disk) -> None:
    h = disk.h
    h.core.tables.partitions["main"].oversubscribe = "FORCE:2"
    jobs = [h.submit(min_nodes=4, num_tasks=16, mem_per_node_mb=100) for _ in range(2)]
    h.acknowledge()
    assert all(job.is_running for job in jobs)
    disk.save()
    h = disk.crash(running=[job.job_id for job in jobs])
    h.core.tables.partitions["main"].oversubscribe = "FORCE:2"
    validate(h.core)
    first, second = (h.core.tables.jobs[job.job_id] for job in jobs)
    assert first.held is None
    assert second.held is None
    h.complete(first)
    third = h.submit(min_nodes=4, num_tasks=16, mem_per_node_mb=100)
    assert third.is_running
    validate(h.core)


def _change(h: Harness) -> None:
    h.update_nodes(
        "n2",
        state="drain",
        reason="disk",
        weight="5",
        comment="hm",
        features="x,y",
        activefeatures="x",
    )
    h.ask(UpdatePartition("create", "new", {"nodes": "n[2-3]", "maxtime": "10"}), ROOT)
    h.ask(UpdatePartition("delete", "small", {}), ROOT)
    h.ask(UpdatePartition("update", "main", {"maxtime": "7"}), ROOT)


def test_what_slurm_conf_says_of_nodes_and_partitions_wins_over_the_saved_state(disk: Disk) -> None:
    _change(disk.h)
    disk.save()
    h = disk.crash()
    node = h.core.tables.nodes.nodes[1]
    assert (node.flags, node.reason, node.weight, node.comment, node.features) == (
        NodeFlag.DRAIN,
        "disk",
        1,
        "hm",
        ("fast",),
    )
    assert h.core.tables.nodes.up_nodes == 0b1101
    assert list(h.core.tables.partitions) == ["main", "small"]
    assert h.core.tables.partitions["main"].max_time_s == 86400
    disk.save()
    h = disk.crash(in_full=True)
    assert (h.core.tables.nodes.nodes[1].features, list(h.core.tables.partitions)) == (
        ("fast",),
        ["main", "small"],
    ), "what was lost once stays lost"


def test_a_node_that_was_deleted_by_hand_is_there_again_if_slurm_conf_has_it(disk: Disk) -> None:
    assert disk.h.ask(ChangeNodeTable("delete", "n4"), ROOT) == Ok()
    assert disk.h.core.tables.nodes.nodes[3].state is NodeState.FUTURE
    disk.save()
    h = disk.crash(running=[])
    assert h.core.tables.nodes.nodes[3].state is NodeState.IDLE


def test_a_start_in_full_has_features_and_partitions_as_they_were_left(disk: Disk) -> None:
    _change(disk.h)
    disk.save()
    h = disk.crash(in_full=True)
    node = h.core.tables.nodes.nodes[1]
    assert (node.flags, node.reason, node.weight, node.features, node.active_features) == (
        NodeFlag.DRAIN,
        "disk",
        1,
        ("x", "y"),
        ("x",),
    )
    assert list(h.core.tables.partitions) == ["main", "new"]
    assert (h.core.tables.partitions["new"].nodes, h.core.tables.partitions["new"].max_time_s) == (
        0b110,
        600,
    )
    assert h.core.tables.partitions["main"].max_time_s == 420


def test_a_partition_that_is_not_in_slurm_conf_is_kept_for_its_jobs(disk: Disk) -> None:
    disk.h.ask(UpdatePartition("create", "new", {"nodes": "n[2-3]", "maxtime": "10"}), ROOT)
    job = disk.h.submit(partition="new")
    disk.save()
    h = disk.crash()
    assert (h.core.tables.jobs[job.job_id].partitions, list(h.core.tables.partitions)) == (
        ("new",),
        ["main", "small", "new"],
    )


def test_forgotten_jobs_are_forgotten_on_disk(disk: Disk) -> None:
    job = disk.h.submit()
    disk.h.complete(job)
    disk.save()
    del disk.h.core.tables.jobs[job.job_id]
    disk.dirty.job(job.job_id)
    disk.save()
    h = disk.crash()
    assert not h.core.tables.jobs
    assert not h.core.scripts


def test_a_job_on_nodes_that_are_no_longer_configured_is_lost(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    job = disk.h.submit(required_nodes="n4", requeue=False)
    other = disk.h.submit(excluded_nodes="n[1-2,4]")
    assert other.is_running
    disk.save()
    disk.store.close()
    h = Harness(make_tables(2), register=False, time=disk.time)
    recover(h.core, Store(tmp_path).read(h.core))
    validate(h.core)
    assert h.core.tables.jobs[job.job_id].state is JobState.NODE_FAIL
    assert h.core.tables.jobs[other.job_id].is_pending


def test_a_job_that_had_ended_on_nodes_that_are_no_longer_configured_does_not_run_again(
    tmp_path: Path,
) -> None:
    disk = Disk(tmp_path)
    job = disk.h.submit(required_nodes="n4")
    disk.h.acknowledge()
    disk.h.finish(job)
    assert job.is_completing
    disk.save()
    disk.store.close()
    h = Harness(make_tables(2), register=False, time=disk.time)
    recover(h.core, Store(tmp_path).read(h.core))
    validate(h.core)
    assert h.core.tables.jobs[job.job_id].state is JobState.COMPLETED


@pytest.mark.parametrize("killed_after", range(12))
def test_killed_after_any_commit_the_controller_comes_back_to_the_same_end(
    tmp_path: Path, killed_after: int
) -> None:
    """A life of three jobs, each step committed; the controller dies after one of the commits, and
    the rest of the world goes on.
    """
    disk = Disk(tmp_path)
    steps: list[Callable[[], Any]] = [
        lambda: disk.h.submit(num_tasks=16, name="a"),
        lambda: disk.h.submit(name="b"),
        lambda: disk.h.submit(name="c", dependency="afterok:2"),
        lambda: disk.h.acknowledge(None),
        lambda: disk.h.finish(disk.h.core.tables.jobs[1]),
        lambda: disk.h.acknowledge(None),
        lambda: disk.h.epilog(disk.h.core.tables.jobs[1]),
        lambda: disk.h.acknowledge(None),
        lambda: disk.h.finish(disk.h.core.tables.jobs[2]),
        lambda: disk.h.epilog(disk.h.core.tables.jobs[2]),
        lambda: disk.h.finish(disk.h.core.tables.jobs[3]),
        lambda: disk.h.epilog(disk.h.core.tables.jobs[3]),
    ]
    for number, step in enumerate(steps):
        step()
        disk.save()
        if number == killed_after:
            running = [
                job.job_id
                for job in disk.h.core.tables.jobs.values()
                if job.is_running and job.launch_acknowledged
            ]
            acknowledged = {
                job_id: encode_job(job) for job_id, job in disk.h.core.tables.jobs.items()
            }
            disk.crash(running=running)
            assert list(disk.h.core.tables.jobs) == list(acknowledged)
    jobs = disk.h.core.tables.jobs
    assert [(job.job_id, job.state, job.restarts) for job in jobs.values()] == [
        (n, JobState.COMPLETED, 0) for n in (1, 2, 3)
    ]
    assert not disk.h.core.completing


# --- group commit ---------------------------------------------------------------------------------


class Writer:
    """Commits whose writing the test finishes."""

    def __init__(self, path: Path) -> None:
        self.dirty, self.store = Dirty(), Store(path)
        self.wire = FakeWire()
        self.h = Harness(journal=self.dirty)
        self.writing: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []
        self.soon: list[Callable[[], None]] = []
        self.failures: list[BaseException] = []
        self.commits = Commits(
            self.h.core,
            self.dirty,
            self.store,
            run=lambda write, done: self.writing.append((write, done)),
            soon=self.soon.append,
            failed=self.failures.append,
        )
        self.settle()

    def turn(self) -> None:
        """One turn of the loop."""
        waiting, self.soon[:] = list(self.soon), []
        for call in waiting:
            call()

    def finish(self, error: BaseException | None = None) -> None:
        write, done = self.writing.pop(0)
        if error is None:
            write()
        done(error)

    def settle(self) -> None:
        self.commits.due()
        while self.soon or self.writing:
            self.turn()
            if self.writing:
                self.finish()


def test_answers_leave_after_the_transaction_that_holds_what_they_tell(tmp_path: Path) -> None:
    w = Writer(tmp_path)
    told: list[str] = []
    w.h.submit()
    w.commits.after(lambda: told.append("first"))
    w.turn()
    assert len(w.writing) == 1
    w.h.submit()
    w.commits.after(lambda: told.append("second"))
    w.turn()
    assert (told, len(w.writing)) == ([], 1)
    w.finish()
    assert told == ["first"]
    w.turn()
    w.finish()
    assert told == ["first", "second"]


def test_one_transaction_serves_all_that_came_before_it(tmp_path: Path) -> None:
    w = Writer(tmp_path)
    before, told = w.commits.written, []
    for number in range(100):
        w.h.submit(hold=True)
        w.commits.after(lambda number=number: told.append(number))  # type: ignore[misc]
    w.settle()
    assert told == list(range(100))
    assert w.commits.written == before + 1


def test_messages_leave_in_order_and_only_when_their_cause_is_on_disk(tmp_path: Path) -> None:
    w = Writer(tmp_path)
    wire = HeldWire(w.wire)
    wire.commits = w.commits
    wire.send("noded0", Ok())
    assert len(w.wire.sent) == 1, "nothing has changed"
    w.h.submit()
    wire.send("noded0", TerminateJob(1, 0))
    wire.send("noded0", TerminateJob(2, 0))
    assert len(w.wire.sent) == 1
    w.settle()
    assert [sent.message for sent in w.wire.sent[1:]] == [TerminateJob(1, 0), TerminateJob(2, 0)]


def test_nobody_is_told_what_could_not_be_written(tmp_path: Path) -> None:
    w = Writer(tmp_path)
    told: list[str] = []
    w.h.submit()
    w.commits.after(lambda: told.append("x"))
    w.turn()
    w.finish(OSError("disk full"))
    w.turn()
    assert (told, len(w.failures)) == ([], 1)


def test_the_end_waits_until_all_is_written(tmp_path: Path) -> None:
    w = Writer(tmp_path)
    ended: list[bool] = []
    w.h.submit()
    w.commits.due()
    w.commits.when_idle(lambda: ended.append(True))
    assert not ended
    w.settle()
    assert ended == [True]


def test_registration_is_handled_without_a_policy_run_when_nothing_changes(disk: Disk) -> None:
    version = disk.h.core.tables.version
    register_nodes(
        disk.h.core,
        RegisterNodes("noded0", "unix:/x", "n[1-4]", 0.0, 1.0),
        FakeSender("noded0", 0, 0, is_daemon=True),
    )
    assert disk.h.core.tables.version == version


def test_an_array_comes_back_with_its_tasks_and_its_limit(disk: Disk) -> None:
    h = disk.h
    array = h.submit(array="1-6%2").job_id
    h.acknowledge()
    disk.save()
    h = disk.crash(running=sorted(job_id for job_id in h.core.tables.running))
    record = h.core.tables.jobs[array]
    assert record.array is not None
    assert (record.array.limit, record.array.running, record.array.count, record.array_tasks) == (
        2,
        2,
        6,
        0b1111000,
    )
    assert sorted(record.array.records) == [array, array + 1, array + 2]
    assert all(job.array is record.array for job in record.array.records.values())
    h.complete(h.core.tables.jobs[array + 1])
    assert h.core.job(f"{array}_3").is_running


def test_reservations_come_back_with_their_cores_and_jobs(disk: Disk) -> None:
    h = disk.h
    start = {"starttime": str(int(h.time.now())), "duration": "60", "users": "ann"}
    for name, changes in (
        ("a", {"nodes": "n2", "corecnt": "2"}),
        ("b", {"nodes": "n[3-4]", "flags": "maint,daily"}),
        ("gone", {"nodes": "n1"}),
    ):
        assert h.ask(
            UpdateReservation("create", name, start | changes), ROOT
        ) == ReservationChanged(name)
    job = h.submit(reservation="b", required_nodes="n3")
    assert (job.is_running, job.used_reservation) == (True, "b")
    assert h.ask(UpdateReservation("delete", "gone", {}), ROOT) == Ok()
    before = {
        each.name: (
            each.nodes,
            each.cores,
            each.flags,
            each.start_time,
            each.end_time,
            each.user_ids,
        )
        for each in h.core.tables.reservations
    }
    h.acknowledge()
    disk.save()
    h = disk.crash(running=[job.job_id])
    table = h.core.tables.reservations
    assert {
        each.name: (
            each.nodes,
            each.cores,
            each.flags,
            each.start_time,
            each.end_time,
            each.user_ids,
        )
        for each in table
    } == before
    assert table.next_id == 4
    assert h.core.tables.jobs[job.job_id].used_reservation == "b"
    assert h.ask(UpdateReservation("delete", "a", {}), ROOT) == Ok()
    disk.save()
    assert list(disk.crash().core.tables.reservations.by_name) == ["b"]


def test_nothing_is_written_or_told_once_a_write_has_failed_or_all_is_closed(disk: Disk) -> None:
    for end in ("failed", "closed"):
        told: list[str] = []
        failures: list[BaseException] = []
        writes: list[object] = []
        error = OSError("full") if end == "failed" else None
        commits = Commits(
            disk.h.core,
            disk.dirty,
            disk.store,
            run=lambda write, done, error=error, writes=writes: (  # type: ignore[misc]
                writes.append(write),
                done(error),
            ),
            soon=lambda call: call(),
            failed=failures.append,
        )
        disk.h.submit()
        commits.after(lambda told=told: told.append("first"))  # type: ignore[misc]
        if end == "closed":
            commits.close()
        assert (len(failures), told) == ((1, []) if error else (0, ["first"]))
        disk.h.submit()
        commits.after(lambda told=told: told.append("second"))  # type: ignore[misc]
        commits.when_idle(lambda told=told: told.append("idle"))  # type: ignore[misc]
        assert len(writes) == 1
        assert told[-1] == "idle"
        assert "second" not in told
        disk.h = disk.crash()
