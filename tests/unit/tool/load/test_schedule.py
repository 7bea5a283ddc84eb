"""When which request of a load is due."""

import pytest

from understudy.tool.load.plan import Plan, Stream
from understudy.tool.load.schedule import Names, requests

NODES = ["n1", "n2", "n3"]


def schedule(*streams, duration=100.0, seed=1, **settings):
    return requests(
        Plan("p", streams, duration=duration, seed=seed), Names(NODES, "batch"), **settings
    )


def test_the_same_seed_is_the_same_load_and_another_is_not():
    stream = Stream("a", "sbatch -N{nodes} -w {node}", 5, nodes=(1, 2, 4))
    assert schedule(stream) == schedule(stream)
    assert schedule(stream) != schedule(stream, seed=2)


def test_processes_share_the_load():
    streams = (Stream("a", "squeue", 5), Stream("b", "sbatch", 2, burst=3))
    shares = [schedule(*streams, share=share, shares=3) for share in range(3)]
    assert sorted(each for share in shares for each in share) == sorted(schedule(*streams))
    assert all(share == sorted(share, key=lambda each: each.due) for share in shares)


@pytest.mark.parametrize("arrivals", ["poisson", "even", "day"])
@pytest.mark.parametrize("burst", [1, 10])
def test_the_rate_is_kept_on_average(arrivals, burst):
    stream = Stream("a", "squeue", 10, burst=burst, arrivals=arrivals)
    found = schedule(stream, duration=2000.0)
    assert len(found) == pytest.approx(20_000, rel=0.15)
    assert all(0 <= each.due <= 2000 for each in found)


def test_by_day_there_is_more_than_by_night():
    found = schedule(Stream("a", "squeue", 100, arrivals="day"), duration=100.0)
    day = sum(25 <= each.due < 75 for each in found)
    assert day > 2 * (len(found) - day)


def test_even_requests_are_as_far_apart_as_their_rate_says():
    found = schedule(Stream("a", "squeue", 2, arrivals="even"), duration=3.0)
    assert [each.due for each in found] == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]


def test_a_burst_is_due_at_once():
    found = schedule(Stream("a", "sbatch", 5, burst=10, arrivals="even"), duration=4.0)
    assert [each.due for each in found] == [2.0] * 10 + [4.0] * 10


def test_a_stream_has_its_times_and_its_count():
    assert [each.due for each in schedule(Stream("a", "sbatch", count=3, begin=5.0))] == [5.0] * 3
    found = schedule(Stream("a", "squeue", 10, begin=20.0, until=30.0))
    assert found[0].due >= 20
    assert found[-1].due <= 30
    assert len(schedule(Stream("a", "squeue", 10, count=7))) == 7


def test_what_is_drawn_is_put_in_but_for_the_job():
    line = "x -N{nodes} {job} {number} {account} {partition}"
    (only,) = schedule(Stream("a", line, count=1, accounts=2, nodes=(0,)))
    assert only.line == "x -N3 {job} 0 load1 batch"
    assert {each.line for each in schedule(Stream("a", "x {node}", count=50))} == {
        f"x {node}" for node in NODES
    }


def test_users_take_turns():
    plan = Plan("p", (Stream("a", "sbatch --uid={user}", count=4, users=2),))
    lines = [each.line for each in requests(plan, Names(NODES, users=["ann", "bob", "cid"]))]
    assert lines == ["sbatch --uid=ann", "sbatch --uid=bob"] * 2


def test_what_follows_is_of_the_same_draw_and_comes_after_the_end_too():
    stream = Stream("a", "down {node}", 1, then="up {node}", after=2.0)
    found = schedule(stream, duration=50.0)
    assert any(each.due > 50 for each in found)
    down, up = ([each for each in found if each.line.startswith(word)] for word in ("d", "u"))
    assert [each.number for each in up] == [each.number for each in down]
    assert all(each.follows for each in up)
    assert not any(each.follows for each in down)
    assert [(each.due, each.line[3:]) for each in up] == [
        (each.due + 2.0, each.line[5:]) for each in down
    ]


def test_jobs_run_as_long_as_said_or_until_all_end():
    runs = [each.run for each in schedule(Stream("a", "sbatch", 5, run=(2.0, 3.0)))]
    assert 2.0 <= min(runs) < max(runs) <= 3.0
    for each in schedule(Stream("a", "sbatch", 5, ends_at=90.0)):
        assert each.run == pytest.approx(max(90.0 - each.due, 0.0), abs=0.001)
