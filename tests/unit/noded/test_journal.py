"""What a node daemon finds again after it was killed."""

import os

from understudy.noded.journal import Journal
from understudy.protocol.messages import BatchComplete, EpilogComplete, LaunchBatch, TerminateJob

LAUNCH = LaunchBatch(7, 1, "n[0-3]", 100, b"x", 1, 1, script="#!/bin/sh\n")


def test_entries_are_found_again_until_they_are_struck_out(tmp_path):
    journal = Journal(tmp_path / "journal")
    entries = [
        BatchComplete(7, 1, 0, 0),
        EpilogComplete(7, 1, "n0"),
        EpilogComplete(7, 1, "n1"),
        LAUNCH,
        TerminateJob(7, 1),
    ]
    for entry in entries:
        journal.put(entry)
        journal.put(entry)
    found = Journal(tmp_path / "journal").read()
    assert sorted(map(repr, found)) == sorted(map(repr, entries))
    journal.remove(entries[0])
    journal.remove(entries[1])
    journal.remove(entries[1])
    journal.forget((7, 1))
    assert Journal(tmp_path / "journal").read() == [EpilogComplete(7, 1, "n1")]


def test_a_record_that_was_cut_off_is_none_and_the_next_takes_its_place(tmp_path):
    journal = Journal(tmp_path)
    journal.put(LAUNCH)
    whole = (tmp_path / "entries").read_bytes()
    journal.put(BatchComplete(7, 1, 0, 0))
    longer = (tmp_path / "entries").read_bytes()
    for length in range(len(whole), len(longer)):
        (tmp_path / "entries").write_bytes(longer[:length])
        again = Journal(tmp_path)
        assert again.read() == [LAUNCH]
        again.put(TerminateJob(7, 1))
        assert Journal(tmp_path).read() == [LAUNCH, TerminateJob(7, 1)]


def test_an_entry_that_is_written_again_is_the_later_one(tmp_path):
    journal = Journal(tmp_path)
    journal.put(BatchComplete(7, 1, 0, 0))
    journal.put(BatchComplete(7, 1, 3, 0))
    assert journal.read() == [BatchComplete(7, 1, 3, 0)]


def test_the_file_stays_small_however_much_is_struck_out(tmp_path):
    journal = Journal(tmp_path)
    stays = LaunchBatch(1, 0, "n0", 100, b"x", 1, 1, script="#!/bin/sh\nsleep 9\n")
    journal.put(stays)
    for job_id in range(2, 400):
        journal.put(LaunchBatch(job_id, 0, "n0", 100, b"x", 1, 1, script="x" * 10_000))
        journal.forget((job_id, 0))
        assert (tmp_path / "entries").stat().st_size < 1_200_000
    journal.put(TerminateJob(1, 0))
    assert Journal(tmp_path).read() == [stays, TerminateJob(1, 0)]
    assert [path.name for path in tmp_path.iterdir()] == ["entries"]
    assert (tmp_path / "entries").stat().st_mode & 0o777 == 0o600


def test_only_the_daemon_can_read_the_journal(tmp_path):
    Journal(tmp_path / "journal")
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o700


def test_what_finds_no_room_is_told_and_what_was_struck_out_meanwhile_does_not_come_back(
    tmp_path, monkeypatch
):
    journal = Journal(tmp_path)
    report = BatchComplete(1, 0, 0, 0)
    assert journal.put(report)
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:5]))
    assert not journal.put(BatchComplete(2, 0, 0, 0))
    journal.remove(report)
    monkeypatch.undo()
    assert Journal(tmp_path).read() == [report]
    assert journal.put(BatchComplete(3, 0, 0, 0))
    assert Journal(tmp_path).read() == [BatchComplete(3, 0, 0, 0)]
