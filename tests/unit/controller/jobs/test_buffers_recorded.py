"""What 22.05.8 with burst_buffer/lua showed of jobs, twice a second, beside what is shown here.

tests/recorded/buffers/lua.jsonl: a case a line; `seen` are [state, reason, state of the buffer] in
turn, "held" behind them where the priority was 0, and commands as "$ scancel --hurry". The script
of the site slept a second in each stage, or failed on purpose in the one that the case names. Two
commands stand behind the row of the state in which, by the end's time, they found the job.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from buffer_harness import BufferHarness
from controller_harness import ROOT

from understudy.model.states import JobFlag
from understudy.protocol.messages import CancelJobs, ControlJobs

PATH = Path(__file__).parents[3] / "recorded" / "buffers" / "lua.jsonl"
CASES = {case["case"]: case["seen"] for case in map(json.loads, PATH.read_text().splitlines())}
STAGES = {
    "setup": "setup", "datain": "data_in", "prerun": "pre_run", "postrun": "post_run",
    "dataout": "data_out", "teardown": "teardown",
}  # fmt: skip
# Named in docs/differences.md: rows that are not met, and one that is met as another.
NOT_MET = {
    ("rq", "COMPLETING", "burst_buffer/lua: Stage-out in progress"),
    ("cancel-postrun--hurry", "COMPLETED", "burst_buffer/lua: Stage-out in progress"),
    ("cancel-postrun--hurry", "COMPLETED", "None"),
    ("cancel-stageout--hurry", "COMPLETED", "burst_buffer/lua: Stage-out in progress"),
    ("cancel-stageout--hurry", "COMPLETED", "None"),
}
WAITS = ("None", "Resources", "BurstBufferResources", "BurstBufferStageIn")


def shown(house: BufferHarness, job) -> tuple[str, str, str]:
    flags = [
        name
        for name in ("COMPLETING", "STAGE_OUT", "CONFIGURING")
        if job.flags & JobFlag[name] and not (name == "COMPLETING" and job.is_running)
    ]
    state = flags[0] if flags else job.state.name
    return state, job.reason_detail or job.reason, str(house.table.state_of(job))


def step(house: BufferHarness, job, fails: str) -> None:
    """The next thing that happens to the job."""
    if job.is_completing:
        house.acknowledge()
        house.epilog(job)
    elif house.stage_of(job):
        name = house.stage_of(job)
        house.end_stage(job, "failed on purpose" if name == fails else "")
    elif job.is_running and not job.flags & JobFlag.CONFIGURING:
        house.acknowledge()
        house.finish(job)
    else:
        house.run(5)


def act(house: BufferHarness, job, command: str) -> None:
    words = command.split()
    if words[1] == "scancel":
        house.ask(CancelJobs([str(job.job_id)], hurry="--hurry" in words))
    else:
        house.ask(ControlJobs(words[2], [str(job.job_id)]), ROOT)


def is_met(row: list[str], now: tuple[str, str, str]) -> bool:
    if (row[0], row[2]) != (now[0], now[2]):
        return False
    waits = row[0] == "PENDING" and len(row) == 3 and row[1] in WAITS
    return row[1] == now[1] or (waits and now[1] in WAITS)


@pytest.mark.parametrize("case", [case for case in CASES if case != "fail-paths"])
def test_a_job_is_seen_as_it_was_in_slurm(case: str) -> None:
    kind, _, what = case.partition("-")
    fails = "pre_run" if case == "nr" else STAGES[what] if kind == "fail" else ""
    house = BufferHarness(nodes=1)
    other = house.submit(exclusive=True) if case == "held" else None
    job = house.ask_for(
        "#BB_LUA pool=fast capacity=1G", requeue=False if case == "nr" else None, exclusive=True
    )
    for row in CASES[case]:
        if row[0].startswith("$"):
            held_by_user = row[0] == "$ scontrol hold"
            act(house, job, row[0])
            assert not held_by_user or not job.priority
            if row[0] == "$ scontrol release" and other is not None:
                house.complete(other)
            continue
        if (case, row[0], row[1]) in NOT_MET:
            continue
        if row[0] == "PENDING" and row[1] == "JobHeldUser":
            row[1] = "JobHeldAdmin"  # root held it here
        for _ in range(30):
            if is_met(row, shown(house, job)):
                break
            step(house, job, fails)
        assert is_met(row, shown(house, job)), (row, shown(house, job), job.story)
        if len(row) == 4 and row[0] == "PENDING":
            assert job.priority == 0
