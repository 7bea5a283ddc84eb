"""Stories of jobs on disk. Covers: experiments/recording (what it writes of them)."""

import gzip

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.experiments.recording import Recording
from understudy.experiments.records import record_of
from understudy.experiments.stories import (
    STORIES,
    KeptStories,
    StoriesError,
    StoriesFile,
    Story,
)
from understudy.protocol.messages import JobRun

ZERO = 1_000_000
TIMES = st.integers(-(10**9), 10**9)
A_STORY = st.builds(
    Story,
    st.text(max_size=5),
    TIMES,
    st.lists(st.tuples(TIMES, st.text(max_size=9))),
    st.lists(st.tuples(TIMES, TIMES)),
    st.lists(st.tuples(TIMES, st.text(max_size=9), st.text(max_size=9))),
)


def run_of(tag, submit, start, **fields):
    blank = dict.fromkeys(JobRun.__struct_fields__[:-3], "")
    numbers = dict.fromkeys(
        ("job_id", "het_offset", "cpus", "node_count", "memory_mb", "priority", "exit_code",
         "exit_signal", "restarts", "preemptions", "promise_moves"), 0
    )  # fmt: skip
    times = {"submit": ZERO + submit, "start": ZERO + start, "end": ZERO + start + 9}
    nothing = dict.fromkeys(("eligible", "limit_s", "first_promise", "last_promise"))
    return JobRun(**{**blank, **numbers, **nothing, **times, "tag": tag, **fields})


def recorded(runs, **options):
    stories = []
    Recording(
        lambda told, task: record_of(told, ZERO, 1, task, name=f"n{told.tag}"),
        write_stories=stories.extend,
        **options,
    ).add(runs)
    return stories


def test_times_are_from_the_zero_and_names_those_of_the_trace():
    run = run_of(
        "7", 10, 60, reasons=[(ZERO + 10, "Priority")], promises=[(ZERO + 20, ZERO + 90)],
        events=[(ZERO + 65, "makes room", "8")],
    )  # fmt: skip
    (story,) = recorded([run], name_of=lambda tag: f"n{tag}")
    assert story == Story("n7", 10, [(10, "Priority")], [(20, 90)], [(65, "makes room", "n8")])


def test_of_a_job_of_which_there_is_nothing_to_tell_nothing_is_told():
    assert recorded([run_of("7", 10, 10)]) == []
    assert recorded([run_of("7", 10, 10, reasons=[(ZERO + 10, "None")])]) == []


def test_when_a_job_was_cancelled_before_it_started_is_told():
    run = run_of("7", 10, 10)
    told = msgspec.structs.replace(run, start=None, end=ZERO + 40, state="CANCELLED")
    (story,) = recorded([told])
    assert story == Story("n7", 10, events=[(40, "CANCELLED", "")])


def test_tasks_for_which_one_record_stands_have_stories_of_their_own():
    run = run_of("7", 10, 60, array_tasks="1-2", reasons=[(ZERO + 10, "Priority")])
    assert [story.id for story in recorded([run])] == ["n7_1", "n7_2"]


@given(st.lists(st.lists(A_STORY, max_size=3), max_size=3))
def test_what_is_written_in_parts_is_read_back(tmp_path_factory, parts):
    folder = tmp_path_factory.mktemp("stories")
    file = StoriesFile(folder)
    for part in parts:
        file.add(part)
    file.close()
    expected = {(each.id, each.submit): each for part in parts for each in part}
    kept = KeptStories(folder / STORIES)
    assert {key: kept.find(*key) for key in expected} == expected
    assert kept.find("none of these", 1) is None


@given(st.integers(0, 400))
def test_a_file_that_was_cut_short_has_what_was_whole(tmp_path_factory, length):
    folder = tmp_path_factory.mktemp("cut")
    file = StoriesFile(folder)
    for number in range(5):
        file.add([Story(str(number), 0, [(0, "Priority")])])
    file.close()
    path = folder / STORIES
    whole = path.read_bytes()
    path.write_bytes(whole[:length])
    kept = KeptStories(path)
    found = [number for number in range(5) if kept.find(str(number), 0) is not None]
    assert found == list(range(len(found)))
    assert len(found) == 5 or length < len(whole)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"no gzip", "damaged gzip file"),
        (gzip.compress(b'{"id":"1","submit":0}\n{"id":"2","submit":0,}\n', mtime=0), "line 2"),
        (gzip.compress(b"[]\n", mtime=0), "line 1"),
    ],
)
def test_a_file_that_is_something_else_is_named(tmp_path, content, why):
    path = tmp_path / STORIES
    path.write_bytes(content)
    with pytest.raises(StoriesError, match=f"{STORIES}.*{why}") as caught:
        KeptStories(path).find("2", 0)
    assert "\n" not in str(caught.value)
