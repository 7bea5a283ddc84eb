"""Runs to compare, drawn and on disk."""

import csv
import io

from hypothesis import strategies as st

from understudy.experiments.records import FIELDS, JobRecord


@st.composite
def records(draw, *, most=12, starts=None):
    """Of a few jobs, with ids of their own."""
    found = []
    for job in range(1, draw(st.integers(1, most)) + 1):
        submit = draw(st.integers(0, 100))
        wait = draw(st.none() | st.integers(0, 1000)) if starts is None else starts
        start = None if wait is None else submit + wait
        end = None if start is None else draw(st.none() | st.integers(start, start + 500))
        found.append(
            JobRecord(
                job,
                submit,
                start,
                end,
                "PENDING" if start is None else "COMPLETED",
                draw(st.sampled_from([1, 2, 3, 64])),
                "",
                60,
                f"j{job}",
                user=draw(st.sampled_from(["ada", "bob"])),
                partition=draw(st.sampled_from(["main", "gpu", "main,gpu"])),
                priority=draw(st.integers(0, 5)),
            )
        )
    return found


@st.composite
def two_runs(draw):
    """The same jobs twice, some missing in either, with other waits."""
    first = draw(records())
    second = []
    for record in first:
        wait = draw(st.none() | st.integers(0, 1000))
        start = None if wait is None else record.submit + wait
        end = None if start is None else start + draw(st.integers(0, 500))
        second.append(
            JobRecord(
                record.job, record.submit, start, end, "COMPLETED", record.cpus, "", 60, record.id,
                user=record.user, partition=record.partition,
            )
        )  # fmt: skip
    kept = [draw(st.booleans()) for _ in second]
    return first, [each for each, is_kept in zip(second, kept, strict=True) if is_kept] or second


def text_of(found):
    """jobs.csv."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    writer.writerows([getattr(record, name) for name in FIELDS] for record in found)
    return out.getvalue()


def written(path, found):
    """The path, with jobs.csv in it."""
    path.write_text(text_of(found))
    return path
