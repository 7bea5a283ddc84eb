"""Records wait for accounting: in order, bounded, and on disk."""

from understudy.controller.accounting.queue import QueueFile, RecordQueue
from understudy.controller.saved.database import open_database
from understudy.protocol.messages import JobRecord, StepRecord


def job(number):
    return JobRecord(number, 100, 0, "anna", 1, 1)


def step(number):
    return StepRecord(number, 100, 0, "0")


def test_records_leave_when_they_have_been_taken_and_not_before():
    queue = RecordQueue()
    queue.add([job(1), job(2), job(3)])
    numbers = [number for number, _ in queue.batch(2)]
    assert [record.job_id for _, record in queue.batch(2)] == [1, 2]
    queue.add([job(4)])
    queue.taken(numbers)
    assert [record.job_id for _, record in queue.batch(9)] == [3, 4]


def test_a_full_queue_drops_steps_first_and_then_what_is_new():
    queue = RecordQueue(most=3)
    queue.add([job(1), step(1), job(2)])
    added, dropped = queue.add([job(3)])
    assert ([record.job_id for _, record in added], dropped) == ([3], [2])
    added, dropped = queue.add([job(4)])
    assert added == []
    assert [record.job_id for _, record in queue.batch(9)] == [1, 2, 3]
    assert queue.dropped == 2


def test_the_queue_comes_back_from_disk_in_order(tmp_path):
    queue, file = (
        RecordQueue(),
        QueueFile(open_database(tmp_path / "q.sqlite", "c", busy_s=1.0), 1),
    )
    added, dropped = queue.add([job(1), step(1), job(2)])
    file.write(added, dropped)
    file.write([], [1])
    file.close()
    again, file = (
        RecordQueue(),
        QueueFile(open_database(tmp_path / "q.sqlite", "c", busy_s=1.0), 1),
    )
    again.restore(file.read())
    added, _ = again.add([job(3)])
    assert [record for _, record in again.batch(9)] == [step(1), job(2), job(3)]
    assert added[0][0] == 4
    file.close()


def test_what_was_dropped_is_taken_from_the_disk_too(tmp_path):
    queue, file = (
        RecordQueue(most=1),
        QueueFile(open_database(tmp_path / "q.sqlite", "c", busy_s=1.0), 1),
    )
    for record in (step(1), job(1)):
        file.write(*queue.add([record]))
    assert [record for _, record in file.read()] == [job(1)]
    file.close()
