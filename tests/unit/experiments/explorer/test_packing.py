"""What is packed comes out again, whatever the jobs are like; and the node lists of it."""

import base64
import json
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.experiments.explorer import packing
from understudy.experiments.explorer.packing import Run, columns, pack
from understudy.experiments.records import JobRecord
from understudy.model.hostlist import compress, expand

NODES = [f"n{i}" for i in range(1, 40)]


def unpacked(text):
    return json.loads(zlib.decompress(base64.b64decode(text)))


def values(column, rows, others):
    """The decoder once more, in Python: decode.js does the same in the browser."""
    match column:
        case ["same", value]:
            return [value] * rows
        case ["plain" | "text", found]:
            return found
        case ["word", words, places]:
            return [words[at] for at in places]
        case ["delta", steps]:
            out = []
            for step in steps:
                out.append(step + (out[-1] if out else 0))
            return out
        case ["after", other, found]:
            return [
                None if value is None else value + (base or 0)
                for value, base in zip(found, others[other], strict=True)
            ]
    raise AssertionError(column)


def names(run):
    _, lists, places = run["columns"]["nodes"]
    found = []
    for each in lists:
        at, some = 0, []
        for gap, length in zip(each[::2], each[1::2], strict=True):
            some += run["nodes"][at + gap : at + gap + length]
            at += gap + length
        found.append(some)
    return [found[place] for place in places]


def rows_of(run):
    """Dictionaries with the fields of the records, node names as a list."""
    found = {}
    order = ["submit", "start", *run["columns"]]
    for name in dict.fromkeys(each for each in order if each in run["columns"]):
        if name != "nodes":
            found[name] = values(run["columns"][name], run["rows"], found)
    found["nodes"] = names(run)
    return [{name: column[i] for name, column in found.items()} for i in range(run["rows"])]


TIMES = st.one_of(st.none(), st.integers(-(10**6), 10**9))
TEXTS = st.one_of(st.sampled_from(["", "a", "b"]), st.text(max_size=8))
JOBS = st.builds(
    JobRecord,
    job=st.integers(0, 10**6),
    submit=st.integers(-(10**6), 10**9),
    start=TIMES,
    end=TIMES,
    state=st.sampled_from(["COMPLETED", "FAILED", "PENDING"]),
    cpus=st.integers(0, 10**6),
    nodes=st.sets(st.sampled_from([*NODES, "other", "gpu-7", "a1b"])).map(compress),
    req_time=st.integers(-1, 10**7),
    id=TEXTS,
    name=TEXTS,
    user=TEXTS,
    eligible=TIMES,
    priority=st.integers(0, 2**32),
    backfilled=st.booleans(),
    first_promise=TIMES,
    last_promise=TIMES,
)


@given(st.lists(JOBS, max_size=30), st.lists(JOBS, max_size=5))
def test_all_fields_of_all_jobs_come_out_again(jobs, attempts):
    (run,) = unpacked(pack([Run("A", jobs, 4, attempts, NODES)]))
    assert (run["jobs"], run["rows"]) == (len(jobs), len(jobs) + len(attempts))
    by_submit = lambda job: (job.submit, job.job)  # noqa: E731
    for told, job in zip(
        rows_of(run),
        [*sorted(jobs, key=by_submit), *sorted(attempts, key=by_submit)],
        strict=True,
    ):
        expected = {name: getattr(job, name) for name in JobRecord.__struct_fields__}
        assert sorted(told.pop("nodes")) == sorted(expand(expected.pop("nodes")))
        assert told == expected


@pytest.mark.parametrize(
    ("known", "expression"),
    [
        (["n1", "n2", "n3", "x", "n4"], "n[1-4]"),  # they do not stand side by side
        (["n01", "n02", "n1", "n2"], "n[01-02],n[1-2]"),
        ([f"r{r}n{n}" for r in (1, 2) for n in range(4)], "r[1-2]n[0-3]"),
        (["n1-ib", "n2-ib"], "n[1-2]-ib"),
        (["n3", "n2", "n1"], "n[1-3]"),
        (["n9", "n10", "n11"], "n[9-11],login"),
        ([], "n[1-3],m"),
    ],
)
def test_host_lists_of_all_kinds_name_their_nodes(known, expression):
    job = JobRecord(1, 0, 0, 9, "COMPLETED", 1, expression, 9)
    (run,) = unpacked(pack([Run("A", [job], 4, (), known)]))
    assert run["nodes"][: len(known)] == known
    assert sorted(names(run)[0]) == sorted(expand(expression))


def test_a_cluster_of_racks_is_a_few_numbers():
    job = JobRecord(1, 0, 0, 9, "COMPLETED", 1, "n[00001-16384]", 9)
    run = columns(Run("A", [job] * 3, 4, (), [f"n{i:05}" for i in range(1, 16_385)]))
    assert run["columns"]["nodes"] == ["nodes", [[0, 16_384]], [0, 0, 0]]
    assert run["closest"] == 1


def test_where_a_page_would_be_too_large_neighbours_are_joined_and_it_is_said(monkeypatch):
    jobs = [
        JobRecord(i, 0, 0, 9, "COMPLETED", 1, f"n[{i},{i + 2},{i + 15}]", 9) for i in (1, 10, 20)
    ]
    (run,) = unpacked(pack([Run("A", jobs, 4, (), NODES)]))
    assert (run["closest"], run["columns"]["nodes"][1][0]) == (1, [0, 1, 1, 1, 12, 1])
    monkeypatch.setattr(packing, "MOST_BYTES", 0)
    (run,) = unpacked(pack([Run("A", jobs, 4, (), NODES)]))
    assert (run["closest"], run["columns"]["nodes"][1][0]) == (8, [0, 3, 12, 1])


def test_no_more_is_joined_where_nothing_would_come_of_it(monkeypatch):
    monkeypatch.setattr(packing, "MOST_BYTES", 0)
    jobs = [JobRecord(i, 0, 0, 9, "COMPLETED", 1, "n[1,39]", 9) for i in range(3)]
    (run,) = unpacked(pack([Run("A", jobs, 4, (), NODES)]))
    assert run["closest"] == 1


def test_side_matters_are_left_out_of_long_runs(monkeypatch):
    monkeypatch.setattr(packing, "FULL_JOBS", 2)
    jobs = [JobRecord(i, 0, 0, 9, "COMPLETED", 1, "n1", 9) for i in range(3)]
    told = columns(Run("A", jobs, 4, (), NODES))["columns"]
    assert "priority" not in told
    assert {"submit", "user", "waited_for", "req_time", "first_promise"} <= set(told)


def test_what_the_calendar_and_the_half_life_are_is_told():
    run = replace(Run("A", [], 4), zero=17.0, half_life_s=60)
    told = columns(run)
    assert (told["zero"], told["halfLife"], told["rows"]) == (17.0, 60, 0)
