"""What must hold of any trace and any schedule."""

from hypothesis import given
from hypothesis import strategies as st

from understudy.experiments.swf import parse_swf

LARGEST = 10**6
columns = st.lists(st.integers(-1, LARGEST), min_size=18, max_size=18)


@given(st.lists(st.text(alphabet=st.characters(blacklist_characters="\n"), max_size=60)))
def test_no_text_breaks_the_reader(lines):
    trace = parse_swf(lines)
    assert trace.bad_line_count <= len(lines)


@given(st.lists(columns))
def test_every_line_is_a_job_or_counted_and_normal_form_is_kept_when_read_again(rows):
    trace = parse_swf([" ".join(map(str, row)) for row in rows])
    assert len(trace.jobs) + trace.dropped.total() == len(rows)
    assert all(1 <= job.run <= job.req and job.procs >= 1 for job in trace.jobs)
    again = parse_swf(
        [
            f"{j.id} {j.submit} -1 {j.run} {j.procs} -1 -1 {j.procs} {j.req}" + " -1" * 9
            for j in trace.jobs
        ]
    ).jobs
    assert [(j.id, j.submit, j.run, j.procs, j.req) for j in again] == [
        (j.id, j.submit, j.run, j.procs, j.req) for j in trace.jobs
    ]
