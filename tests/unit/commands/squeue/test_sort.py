"""The order of squeue's jobs, as watched at 22.05.8."""

from __future__ import annotations

import pytest
from fake_controller import record

from understudy.commands.squeue.sort import BadSortError, as_kept, read_sort, sort_jobs


def job(job_id: int, **values: object) -> dict[str, object]:
    return record("jobs", job_id=job_id, **values)


def _say_nothing(text: str) -> None: ...


def order(jobs: list[dict[str, object]], keys: str) -> list[object]:
    jobs = as_kept(jobs)
    sort_jobs(jobs, read_sort(keys, _say_nothing))
    return [each["job_id"] for each in jobs]


def test_without_a_telling_key_the_latest_start_is_first_and_what_has_none_last() -> None:
    jobs = [
        job(1),
        job(2, state=1, start_time=100),
        job(3, expected_start=900),
        job(4),
        job(5, state=1, start_time=100),
    ]
    assert order(jobs, "u") == [3, 2, 5, 4, 1]


def test_tasks_take_the_place_that_the_record_of_their_array_had_when_they_were_split_off() -> None:
    jobs = [
        job(45, array_job_id=45, array_task_id=6),
        job(46),
        *[job(number, array_job_id=45, array_task_id=number) for number in (47, 48, 49)],
    ]
    assert [each["job_id"] for each in as_kept(jobs)] == [47, 46, 48, 49, 45]


def test_jobs_without_nodes_come_last_by_nodes_and_first_in_reverse() -> None:
    jobs = [
        job(1),
        job(2, state=1, start_time=5, nodes="n[2-3]"),
        job(3, state=1, start_time=6, nodes="n10"),
        job(4),
    ]
    assert order(jobs, "N") == [2, 3, 1, 4]
    assert order(jobs, "-N") == [4, 1, 3, 2]


def test_jobs_without_a_start_come_last_by_start_whichever_way() -> None:
    jobs = [job(1), job(2, state=1, start_time=5), job(3, state=1, start_time=6), job(4)]
    assert order(jobs, "S") == [2, 3, 1, 4]
    assert order(jobs, "-S") == [3, 2, 1, 4]


def test_keys_stand_one_behind_the_other_with_or_without_commas() -> None:
    jobs = [
        job(1, name="b", priority=1),
        job(2, name="a", priority=1),
        job(3, name="a", priority=2),
    ]
    assert order(jobs, "j,-p") == order(jobs, "j-p") == order(jobs, "+j,,-p") == [3, 2, 1]


def test_an_end_without_a_limit_is_later_than_any_and_no_end_sooner() -> None:
    jobs = [job(1, state=1, start_time=10, end_time=500), job(2, state=1, start_time=10), job(3)]
    assert order(jobs, "e") == [3, 1, 2]


@pytest.mark.parametrize("keys", ["!", "a", "Z", "i,k", "#"])
def test_a_letter_that_is_no_key_is_refused(keys: str) -> None:
    with pytest.raises(BadSortError):
        read_sort(keys, _say_nothing)


def test_keys_are_looked_at_from_the_last_one_on() -> None:
    said: list[str] = []
    with pytest.raises(BadSortError, match="o"):
        read_sort("kobi", said.append)
    assert said == ["Invalid sort specification: b"]


@pytest.mark.parametrize("key", ["b", "c", "f", "h", "n", "O"])
def test_some_keys_change_nothing(key: str) -> None:
    jobs = [job(1, min_cpus_node=5, features="b"), job(2, min_cpus_node=1, features="a")]
    assert order(jobs, key) == order(jobs, f"-{key}") == [2, 1]


@pytest.mark.parametrize("key", ["t", "T"])
def test_states_come_in_the_order_of_their_names(key: str) -> None:
    jobs = [
        job(1, state=0),
        job(2, state=1, start_time=5),
        job(3, state=5, start_time=4),
        job(4, state=3, start_time=3),
    ]
    assert order(jobs, key) == [4, 3, 1, 2]


def test_memory_that_nobody_asked_for_is_none() -> None:
    assert order([job(1, min_memory_mb=0), job(2), job(3, min_memory_mb=100)], "m") == [2, 1, 3]


def test_sockets_that_nobody_asked_for_come_last() -> None:
    assert order([job(1, sockets_per_node=2), job(2), job(3, sockets_per_node=10)], "z") == [
        1,
        3,
        2,
    ]


def test_a_key_tells_jobs_apart_only_where_they_differ_in_it() -> None:
    alike = [job(number, priority=5, partition="p") for number in (1, 2, 3)]
    assert order(alike, "P,-p") == order(alike, "p") == [3, 2, 1]
    alike[1]["priority"] = 7
    assert order(alike, "P,-p") == [2, 3, 1]
    assert order(alike, "p,P") == [3, 1, 2]
