"""What a node daemon finds again after it was killed."""

from understudy.noded.journal import Journal
from understudy.protocol.messages import BatchComplete, EpilogComplete, LaunchBatch, TerminateJob

LAUNCH = LaunchBatch(7, 1, "n[0-3]", 100, b"x", 1, 1, script="#!/bin/sh\n")


def test_entries_are_found_again_until_they_are_struck_out(tmp_path):
    journal = Journal(tmp_path / "journal")
    entries = [BatchComplete(7, 1, 0, 0), EpilogComplete(7, 1, "n0"), EpilogComplete(7, 1, "n1"), LAUNCH, TerminateJob(7, 1)]
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


def test_half_written_and_foreign_files_are_left_alone(tmp_path):
    journal = Journal(tmp_path)
    journal.put(LAUNCH)
    (tmp_path / "BatchComplete.9.0.new").write_bytes(b"\x95*")
    (tmp_path / "README").write_text("hello")
    assert journal.read() == [LAUNCH]
    assert (tmp_path / "README").exists()


def test_only_the_daemon_can_read_the_journal(tmp_path):
    Journal(tmp_path / "journal")
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o700
