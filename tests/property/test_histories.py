"""Whatever sacct wrote, in whatever columns, is read as it was; whatever else a file holds gives
errors and no exception; and what comes out is taken by sbatch.
"""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.commands.submission.job import Job
from understudy.commands.submission.option_table import OPTIONS
from understudy.commands.submission.options import apply
from understudy.experiments.past import Count, HistoryError, PastJob
from understudy.experiments.past_options import Mapped
from understudy.experiments.past_scenario import make_scenario
from understudy.experiments.sacct_rows import REFUSED, read_rows
from understudy.experiments.simulator_events import read_events
from understudy.experiments.swf_rows import read_swf_rows
from understudy.tool.replay.submit_line import read_submit_line

T = 1_700_000_000
_names = st.sampled_from(["ada", "bob", "x_1", "u-2"])
_plain = st.text(
    st.characters(
        codec="utf-8", exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="|"
    ),
    max_size=12,
).map(str.strip)
_free = _plain | st.sampled_from(["a|b", "x | y || z"])
_states = st.sampled_from(
    [
        "COMPLETED",
        "FAILED",
        "TIMEOUT",
        "CANCELLED",
        "OUT_OF_MEMORY",
        "NODE_FAIL",
        "PREEMPTED",
        "PENDING",
        "RUNNING",
        "REQUEUED",
    ]
)
_ids = st.tuples(st.integers(1, 9), st.sampled_from(["", "_1", "_2", "_[4-6%2]", "+0", "+1"])).map(
    lambda both: f"{both[0]}{both[1]}"
)
_lines = st.sampled_from(
    [
        *(
            "",
            "sbatch x.sh",
            "sbatch -n 4 -c 2 -p a,b -t 10 x",
            "srun -N 2 --pty bash",
            "sbatch -d afterok:1:2_1?any x",
            "sbatch -a 1-9%2 --begin=now+60 x",
        ),
        *(
            "sbatch -H --exclusive=user -w n[1-3] x",
            "sbatch -n 1 : -n 2 --gres=gpu:1 x",
            "sbatch --wrap=a b --mem=5G",
            "sbatch --wrap=a | b -C [a|b]",
            "python",
            "sbatch --nonsense x",
        ),
    ]
)


@st.composite
def _jobs(draw: st.DrawFn) -> PastJob:
    submit = draw(st.integers(0, 5000))
    start = draw(st.none() | st.integers(submit, 9000))
    end = None if start is None else draw(st.none() | st.integers(start, 20_000))
    return PastJob(
        1, draw(_ids), draw(_states), submit=T + submit,
        eligible=draw(st.none() | st.integers(T + submit, T + 9000)),
        start=None if start is None else T + start, end=None if end is None else T + end,
        exit_code=draw(st.integers(0, 255)),
        signal=draw(st.sampled_from([0, 9, 15])),
        limit_min=draw(st.sampled_from([None, -1, -2, 1, 60])), name=draw(_names | _free),
        user=draw(_names), account=draw(_names),
        partition=draw(st.sampled_from(["", "a", "b", "c"])),
        qos=draw(st.sampled_from(["", "high"])),
        nodes=draw(st.none() | st.integers(0, 9)), cpus=draw(st.none() | st.integers(0, 64)),
        min_nodes=draw(st.none() | st.integers(0, 9)),
        req_cpus=draw(st.none() | st.integers(0, 64)),
        memory=draw(st.sampled_from(["", "4Gc", "0n", "1600M", "1.5G"])),
        req_tres=draw(st.sampled_from(["", "cpu=4,mem=8G,node=2,gres/gpu=2,gres/gpu:a=2",
        "billing=3", "cpu=x,gres/gpu=3,node=2"])),
        constraints=draw(st.sampled_from(["", "a&b", "[a|b]", "a|b|c"])),
        reservation=draw(st.sampled_from(["", "r"])),
        node_list=draw(st.sampled_from(["", "n[1-2]", "n7"])), comment=draw(_free),
        submit_line=draw(_lines),
    )  # fmt: skip


def _instant(value: int | None) -> str:
    return "Unknown" if value is None else time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(value))


_COLUMNS = {
    "JobID": lambda job: job.job,
    "State": lambda job: job.state,
    "Submit": lambda job: _instant(job.submit),
    "Eligible": lambda job: _instant(job.eligible),
    "Start": lambda job: _instant(job.start),
    "End": lambda job: _instant(job.end),
    "ExitCode": lambda job: f"{job.exit_code}:{job.signal}",
    "TimelimitRaw": lambda job: {None: "", -1: "UNLIMITED", -2: "Partition_Limit"}.get(
        job.limit_min, str(job.limit_min)
    ),
    "User": lambda job: job.user,
    "Account": lambda job: job.account,
    "Partition": lambda job: job.partition,
    "QOS": lambda job: job.qos,
    "NNodes": lambda job: "" if job.nodes is None else str(job.nodes),
    "ReqCPUS": lambda job: "" if job.req_cpus is None else str(job.req_cpus),
    "ReqMem": lambda job: job.memory,
    "ReqTRES": lambda job: job.req_tres,
    "NodeList": lambda job: job.node_list or "None assigned",
    "SubmitLine": lambda job: job.submit_line,
    "Comment": lambda job: job.comment,
    "JobName": lambda job: job.name,
    "Constraints": lambda job: job.constraints,
    "WorkDir": lambda job: f"/home/{job.name}",
}
_FIELDS = {
    "ReqCPUS": "req_cpus",
    "ReqMem": "memory",
    "ReqTRES": "req_tres",
    "NodeList": "node_list",
    "NNodes": "nodes",
    "SubmitLine": "submit_line",
}
_FIELDS |= {"JobID": "job", "TimelimitRaw": "limit_min", "ExitCode": "exit_code", "JobName": "name"}


@settings(deadline=None, max_examples=50)
@given(
    st.lists(_jobs(), min_size=1, max_size=5),
    st.permutations(list(_COLUMNS)),
    st.integers(0, 18),
    st.booleans(),
)
def test_what_sacct_wrote_is_read_as_it_was_or_named(
    jobs: list[PastJob], order: list[str], left_out: int, ends: bool
) -> None:
    columns = [
        name
        for name in order
        if name in ("JobID", "State", "Submit") or order.index(name) >= left_out
    ]
    written = [
        "|".join(columns),
        *("|".join(_COLUMNS[name](job) for name in columns) for job in jobs),
    ]
    if ends:
        written = [line + "|" for line in written]
    counts = Count("x")
    found = {record.line: record for record in read_rows(written, counts)}
    refused = counts.left_out[REFUSED]
    assert len(found) + counts.bad_count + refused == len(jobs)
    assert refused <= sum(job.was_refused for job in jobs)
    for number, job in enumerate(jobs, 2):
        if number not in found and job.was_refused:
            continue
        record = found.get(number)
        if record is None:
            assert any("|" in _COLUMNS[name](job) for name in columns)
            assert any(
                line.startswith(f"x line {number}: ") and "several ways" in line
                for line in counts.bad
            )
            continue
        for name in columns:
            field = _FIELDS.get(name, name.lower())
            if name != "WorkDir" and getattr(record, field) != getattr(job, field):
                assert name in ("Comment", "JobName", "SubmitLine"), name
                assert any(note.startswith("bars that may belong") for note in counts.notes)
                assert name != "SubmitLine" or not record.submit_line


@settings(deadline=None, max_examples=50)
@given(st.lists(_jobs(), max_size=6), st.booleans(), st.sampled_from([None, T + 3000]))
def test_sbatch_takes_the_options_of_every_submission(
    jobs: list[PastJob], maps: bool, since: int | None
) -> None:
    mapped = (
        Mapped(
            {
                "partition": {"a": "z"},
                "node": {"n1": "m1"},
                "gres": {"gpu": "gpu"},
                "reservation": {"r": ""},
            }
        )
        if maps
        else Mapped()
    )
    counts = Count()
    made = make_scenario(jobs, counts, read_submit_line, mapped=mapped, since=since)
    assert not counts.bad
    for line in made.workload:
        assert line["at"] >= 0
        groups: list[list[str]] = [[]]
        for option in line["options"]:
            if option == ":":
                groups.append([])
            else:
                groups[-1].append(option)
        for group in groups:
            given, operands = OPTIONS.parse(group)
            assert not operands
            trial = Job(0.0)
            for option, value in given:
                if option.dest != "dependency":  # in which submissions stand for their numbers
                    apply(trial, option, value)
    names = {line["id"] for line in made.workload}
    for event in made.events:
        assert event["at"] >= 0
        for word in event["cmd"]:
            if word.startswith("{"):
                assert word[1:].partition("}")[0] in names


_text = st.text(st.characters(codec="utf-8"), max_size=60)
_odd = st.sampled_from(
    [
        "|",
        "1|",
        "JobID|Submit|State",
        "2023-11-14T22:13:20",
        "COMPLETED",
        "-dt 1 -e submit_batch_job | -n 1 a",
        "1 " * 18,
        ";",
        "\x00",
    ]
)


@given(st.lists(_text | _odd | st.lists(_odd, max_size=4).map("|".join), max_size=8), st.booleans())
def test_any_text_gives_errors_with_their_lines_and_no_exception(
    lines: list[str], strict: bool
) -> None:
    for read in (
        lambda counts: list(read_rows(lines, counts)),
        lambda counts: list(read_rows(["JobID|Submit|State|Comment", *lines], counts)),
        lambda counts: read_events(lines, counts, read_submit_line, 0),
        lambda counts: list(read_swf_rows(lines, counts)),
    ):
        counts = Count("x", strict=strict)
        said = ""
        try:
            read(counts)
        except HistoryError as error:
            said = str(error)
        assert not said or (said.startswith("x") and "\n" not in said)
