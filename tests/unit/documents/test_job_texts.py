"""Names of jobs, and their order."""

from __future__ import annotations

from understudy.documents.job_texts import in_places


def test_split_tasks_take_the_place_of_their_array() -> None:
    jobs = [[3, 3], [4, 0], [7, 3], [8, 3], [9, 0]]
    rows = in_places(jobs, ["job_id", "array_job_id"])
    assert rows == [[7, 3], [4, 0], [8, 3], [3, 3], [9, 0]]
