"""Priorities that real Slurm gave, sample by sample, from the pure code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from understudy.controller.edge.build import build_tables
from understudy.controller.priority.api import QosFacts, Share
from understudy.controller.priority.multifactor import MultifactorPriority
from understudy.controller.priority.options import read_options
from understudy.controller.tables.allocation import Allocation, NodeShare
from understudy.controller.tables.job import Job
from understudy.controller.tables.shape import shape_of
from understudy.model.conf import read
from understudy.model.states import JobState
from understudy.protocol.messages import JobSpec

if TYPE_CHECKING:
    from understudy.controller.tables.tables import Tables

FOLDER = Path(__file__).resolve().parents[4].parent / "shared" / "fidelity"
ZERO = 1_600_000_000  # a recording's T0
LOOKED_S = 0.9  # the recorder's samples have whole seconds
COMPLETION_S = 0.07  # from the end of a script until real Slurm had booked it

pytestmark = pytest.mark.skipif(
    not FOLDER.exists(), reason="the recordings are not beside this repository (../shared/fidelity)"
)


class Accounts:
    """Associations and QOS from a set-up file of `sacctmgr` lines."""

    version = 1

    def __init__(self, path: Path) -> None:
        self.rows = [Share(1, 0, "root", ""), Share(2, 1, "root", "root")]
        self.qos = {"normal": QosFacts(0)}
        places = {("root", ""): 1}
        for line in path.read_text().splitlines() if path.exists() else ():
            words = line.split()
            keys = dict(word.lower().split("=", 1) for word in words if "=" in word)
            shares = int(keys.get("fairshare", "1"))
            if words[:2] == ["add", "account"]:
                places[words[2], ""] = len(self.rows) + 1
                self.rows.append(
                    Share(
                        len(self.rows) + 1,
                        places[keys.get("parent", "root"), ""],
                        words[2],
                        "",
                        shares,
                    )
                )
            elif words[:2] == ["add", "user"]:
                places[keys["account"], words[2]] = len(self.rows) + 1
                self.rows.append(
                    Share(
                        len(self.rows) + 1,
                        places[keys["account"], ""],
                        keys["account"],
                        words[2],
                        shares,
                    )
                )
            elif words[:2] == ["add", "qos"]:
                self.qos[words[2]] = QosFacts(int(keys["priority"]))
        self.places = places
        self.users: dict[int, str] = {}

    def shares(self) -> list[Share]:
        # Parents first: an account may be named after users of its parent.
        accounts = [share for share in self.rows if not share.user]
        return accounts + [share for share in self.rows if share.user]

    def association_of(self, job: Job) -> int:
        user = self.users[job.job_id]
        account = job.spec.account or next(
            (each.account for each in self.rows if each.user == user), ""
        )
        return self.places.get((account, user), 0)

    def qos_of(self, job: Job) -> QosFacts | None:
        return self.qos[job.spec.qos or "normal"]

    def highest_qos_priority(self) -> int:
        return max(each.priority for each in self.qos.values())


def spec_of(options: list[str], default_partition: str) -> JobSpec:
    values = dict(option.removeprefix("--").split("=", 1) for option in options if "=" in option)
    counts = {
        "nodes": "min_nodes",
        "ntasks": "num_tasks",
        "ntasks-per-node": "ntasks_per_node",
        "cpus-per-task": "cpus_per_task",
    }
    fields: dict[str, Any] = {
        field: int(values[option].partition("-")[0])
        for option, field in counts.items()
        if option in values
    }
    fields["nice"] = int(values.get("nice", "0"))  # the recorder submitted as an administrator
    texts = {key: values[key] for key in ("qos", "account") if key in values}
    return JobSpec(
        **fields,
        **texts,
        partition=values.get("partition", default_partition),
        time_limit_s=60 * int(values.get("time", 60)),
    )


def job_of(number: int, spec: JobSpec, submit: int) -> Job:
    names = tuple(spec.partition.split(","))
    job = Job(
        number,
        spec,
        0,
        0,
        submit,
        names,
        partition=names[0],
        **shape_of(spec, 0)._asdict(),
    )
    job.nice, job.time_limit_s = spec.nice, spec.time_limit_s
    job.eligible_time = submit
    return job


class Replay:
    """Feeds a recording's submissions, starts and ends to the plug-in, and looks at priorities when
    the recording did.
    """

    def __init__(self, workload: str, run: int) -> None:
        folder = FOLDER / workload
        config = read(folder / "slurm.conf")
        self.tables: Tables = build_tables(config)[0]
        header, *self.rows = (
            json.loads(line) for line in (folder / f"run{run}.jsonl").read_text().splitlines()
        )
        self.accounts = Accounts(folder / "sacctmgr.txt")
        self.plugin = MultifactorPriority(
            self.tables, read_options(config), self.accounts, ZERO + header["controller_start"]
        )
        submissions = [
            json.loads(line) for line in (folder / "workload.jsonl").read_text().splitlines()
        ]
        self.submissions = {each["id"]: each for each in submissions}
        default = config.default_partition
        self.specs = {
            each["id"]: spec_of(each["options"], default.name if default else "")
            for each in submissions
        }
        self.seen: list[tuple[str, float, int, int]] = []  # job, when, recorded, ours

    def run(self) -> None:
        events: list[tuple[float, int, str, dict[str, Any], int]] = []
        for row in self.rows:
            if row["state"] in ("REJECTED", "ARRAY_MASTER") or "_" in row["job"] or row["restarts"]:
                continue
            events.append(
                (max(self.submissions[row["job"]]["at"] + 0.2, row["submit"]), 1, "submit", row, 0)
            )
            events += [
                (when + LOOKED_S, 2, "look", row, priority)
                for when, _, priority in row.get("pending", ())
            ]
            if row["start"] is not None and row["end"] is not None:
                started = row["attempts"][-1]["at"]
                ended = started + self.submissions[row["job"]]["run"] + COMPLETION_S
                events += [
                    (started, 2, "look", row, row["priority"]),
                    (started, 3, "start", row, 0),
                ]
                events.append((min(max(ended, row["end"]), row["end"] + 0.99), 0, "end", row, 0))
        for when, _, what, row, recorded in sorted(
            events, key=lambda event: (event[0], event[1], event[3]["jobid"])
        ):
            self._calculate_until(ZERO + when)
            getattr(self, f"_{what}")(row, when, recorded)

    def _calculate_until(self, now: float) -> None:
        while (due := self.plugin.next_calculation(now - 1000)) is not None and due < now:
            self.plugin.calculate(due)

    def _submit(self, row: dict[str, Any], when: float, _recorded: int) -> None:
        job = job_of(row["jobid"], self.specs[row["job"]], ZERO + int(when))
        job.eligible_time = None if row["eligible"] is None else ZERO + row["eligible"]
        self.accounts.users[job.job_id] = row["user"]
        self.tables.jobs[job.job_id] = self.tables.pending[job.job_id] = job
        job.priority = self.plugin.assign(job, ZERO + when)

    def _look(self, row: dict[str, Any], when: float, recorded: int) -> None:
        job = self.tables.pending.get(row["jobid"])
        if job is not None:
            self.seen.append((row["job"], when, recorded, job.priority))

    def _start(self, row: dict[str, Any], when: float, _recorded: int) -> None:
        job = self.tables.pending.pop(row["jobid"])
        job.allocation = Allocation.of_shares([NodeShare(0, row["cpus"], 0, 0)])
        job.state, job.partition = JobState.RUNNING, row["partition"]
        self.tables.running[job.job_id] = job
        self.plugin.started(job, ZERO + when)

    def _end(self, row: dict[str, Any], when: float, _recorded: int) -> None:
        job = self.tables.running.pop(row["jobid"])
        self.plugin.ended(job, ZERO + when)


@pytest.mark.parametrize("run", [1, 2, 3])
@pytest.mark.parametrize(
    ("workload", "share"), [("ep-multifactor", 1.0), ("fairshare", 0.98), ("mixed-large", 1.0)]
)
def test_every_recorded_priority_is_reproduced(workload: str, share: float, run: int) -> None:
    replay = Replay(workload, run)
    replay.run()
    wrong = [each for each in replay.seen if each[2] != each[3]]
    assert len(replay.seen) > 100
    assert len(wrong) <= (1 - share) * len(replay.seen), wrong[:20]
