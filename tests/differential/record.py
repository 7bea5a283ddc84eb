"""Runs a scenario (docs/scenarios.md) in real time on real Slurm and writes what it did, in the
form of the recordings that `make fidelity` compares with:

    python -m differential.record SCENARIO runN.jsonl [--seconds N] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from differential.real_slurm import RealSlurm, end_on_sigterm, make_users, missing

BASE_CONF = """
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
MinJobAge=86400
SlurmctldTimeout=300
SlurmdTimeout=300
SlurmdParameters=config_overrides
"""
LEAD_S = 24.55  # the controller starts so long before second 0
BEHIND_MINUTE_S = 22  # second 0 is so long behind a full minute
PHASE_S = 0.2
SAMPLE_S = 2.0
PATIENCE_S = 20.0  # with a command
OVER = {"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "PREEMPTED", "NODE_FAIL", "DEADLINE"}
NO_SUCH_JOB = "999999"
STARTED = re.compile(
    r"\[(\S+)\] sched(/backfill)?: (?:_start_job: )?(?:Allocate|Started) "
    r"JobId=(\w+)(?:\((\d+)\))?.*"
)


def lines_of(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def instant(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def script_of(job: dict[str, Any]) -> str:
    """What a submission runs: its seconds of sleep, by the number of its task in arrays."""
    run = job["run"]
    if not isinstance(run, dict):
        wait = f"sleep {run}"
    else:
        cases = " ".join(f"{task}) sleep {seconds};;" for task, seconds in run.items())
        wait = f'case "$SLURM_ARRAY_TASK_ID" in {cases} esac'
    return f"#!/bin/bash\n{wait}\nexit {job.get('exit', 0)}\n"


def records(text: str) -> list[dict[str, str]]:
    """The jobs of `scontrol -d -o show job`."""
    return [
        dict(word.split("=", 1) for word in line.split(" ") if "=" in word)
        for line in text.splitlines()
        if line.startswith("JobId=")
    ]


class Recorder:
    """One run of a scenario."""

    def __init__(self, scenario: Path, slurm: RealSlurm, zero: float, horizon_s: float) -> None:
        self.scenario, self.slurm, self.zero, self.horizon_s = scenario, slurm, zero, horizon_s
        self.ids: dict[str, str] = {}  # the submission's id: Slurm's
        self.refused: dict[str, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        self.pending: dict[str, list[list[Any]]] = {}
        self.alloc: dict[str, dict[str, str]] = {}
        self.late_max = 0.0
        self.last: list[dict[str, str]] = []

    def now(self) -> float:
        return time.time() - self.zero

    def follow(self) -> bool:
        """Issue all, sample meanwhile; whether every job was over before the horizon."""
        plan = [(event["at"], 0, event) for event in lines_of(self.scenario / "events.jsonl")]
        plan += [(job["at"], 1, job) for job in lines_of(self.scenario / "workload.jsonl")]
        plan.sort(key=lambda each: each[:2])
        next_sample = 0.0
        while self.now() < self.horizon_s:
            while plan and self.now() >= plan[0][0] + PHASE_S:
                _, kind, what = plan.pop(0)
                (self._submit if kind else self._event)(what)
            if self.now() >= next_sample:
                self.sample()
                next_sample = self.now() + SAMPLE_S
                if not plan and all(job["JobState"] in OVER for job in self.last):
                    return True
            due = plan[0][0] + PHASE_S if plan else next_sample
            time.sleep(max(0.0, min(due, next_sample) - self.now(), 0.005))
        return False

    def _filled(self, text: str) -> str:
        text = re.sub(r"\{(\w+)\}", lambda m: self.ids.get(m[1], NO_SUCH_JOB), text)

        def absolute(match: re.Match[str]) -> str:
            at = datetime.fromtimestamp(self.zero + float(match[1]), UTC)
            return at.strftime("%Y-%m-%dT%H:%M:%S")

        return re.sub(r"@(\d+)", absolute, text)

    def _submit(self, job: dict[str, Any]) -> None:
        self.late_max = max(self.late_max, self.now() - job["at"] - PHASE_S)
        script = self.slurm.folder / "home" / f"{job['id']}.sh"
        script.write_text(script_of(job))
        script.chmod(0o755)
        options = [
            self._filled(word) if "{" in word else word
            for word in ["--parsable", f"--job-name={job.get('name', job['id'])}", *job["options"]]
        ]
        places = [f"--chdir={script.parent}", "--output=/dev/null", "--error=/dev/null"]
        done = self.slurm.run("sbatch", *places, *options, str(script), user=job["user"])
        if done.returncode:
            message = done.stderr.strip().splitlines()[-1:]
            self.refused[job["id"]] = {
                "job": job["id"], "state": "REJECTED", "submit": int(self.now()),
                "message": "".join(message),
            }  # fmt: skip
            return
        self.ids[job["id"]] = done.stdout.strip().partition(";")[0]

    def _event(self, event: dict[str, Any]) -> None:
        words = [self._filled(word) for word in event["cmd"]]
        if words[0] == "sacctmgr":
            words.insert(1, "-i")
        try:
            done = self.slurm.run(*words, timeout_s=PATIENCE_S)
            rc, out = done.returncode, (done.stdout + done.stderr).strip()
        except subprocess.TimeoutExpired:  # as scancel --batch does that finds no script any more
            rc, out = -1, f"has not ended within {PATIENCE_S:g} s"
        self.events.append({"at": round(self.now(), 2), "cmd": words, "rc": rc, "out": out})

    def sample(self) -> None:
        at = round(self.now(), 1)
        self.last = records(self.slurm.run("scontrol", "-d", "-o", "show", "job").stdout)
        for job in self.last:
            key = self.name_of(job)
            if job["JobState"] == "PENDING":
                seen = self.pending.setdefault(key, [])
                if not seen or seen[-1][1:] != [job["Reason"], int(job["Priority"])]:
                    seen.append([at, job["Reason"], int(job["Priority"])])
            elif job.get("CPU_IDs"):
                self.alloc[key] = {job["Nodes"]: job["CPU_IDs"]}

    def name_of(self, job: dict[str, str]) -> str:
        """The submission's id, with `_TASK` for a task of an array."""
        number = job.get("ArrayJobId", job.get("HetJobId", job["JobId"]))
        name = next((each for each, known in self.ids.items() if known == number), job["JobName"])
        return f"{name}_{job['ArrayTaskId']}" if "ArrayTaskId" in job else name

    def result(self) -> list[dict[str, Any]]:
        """The jobs' lines, in the order of their numbers."""
        attempts = self._attempts()
        found = [
            self._line(job, attempts) for job in sorted(self.last, key=lambda j: int(j["JobId"]))
        ]
        return [*self.refused.values(), *found]

    def _line(self, job: dict[str, str], attempts: dict[str, list[Any]]) -> dict[str, Any]:
        key = self.name_of(job)

        def second(name: str) -> int | None:
            text = job.get(name, "Unknown")
            return None if not text[:1].isdigit() else int(instant(text) - self.zero)

        if "ArrayTaskId" in job and not job["ArrayTaskId"].isdigit():
            state: dict[str, Any] = {"job": key.rpartition("_")[0], "state": "ARRAY_MASTER"}
        else:
            pending = job["JobState"] == "PENDING"
            nodes = job.get("NodeList", "(null)")
            state = {
                "job": key, "state": job["JobState"], "submit": second("SubmitTime"),
                "eligible": second("EligibleTime"),
                "start": None if pending else second("StartTime"),
                "end": second("EndTime") if job["JobState"] in OVER else None,
                "nodes": "" if nodes == "(null)" else nodes, "cpus": int(job["NumCPUs"]),
                "alloc": self.alloc.get(key, {}), "priority": int(job["Priority"]),
                "reason": job["Reason"], "restarts": int(job["Restarts"]),
                "limit": job["TimeLimit"], "tres": job.get("TRES", ""),
                "attempts": attempts.get(job["JobId"], []),
            }  # fmt: skip
        return state | {"pending": self.pending.get(key, [])}

    def _attempts(self) -> dict[str, list[Any]]:
        """Every start, from the controller's log."""
        found: dict[str, list[Any]] = {}
        for line in (self.slurm.folder / "ctld.log").read_text(errors="replace").splitlines():
            match = STARTED.match(line)
            if match is None:
                continue
            nodes = re.search(r"(?:NodeList=| on )(\S+)", line)
            found.setdefault(match[4] or match[3], []).append({
                "at": round(instant(match[1]) - self.zero, 3),
                "nodes": nodes[1] if nodes else "",
                "by": "backfill" if match[2] else "sched",
            })  # fmt: skip
        return found


def record(scenario: Path, folder: Path, seconds: float | None = None) -> list[dict[str, Any]]:
    """The lines of a recording: a header, then the jobs."""
    about = (
        json.loads((scenario / "about.json").read_text())
        if (scenario / "about.json").exists()
        else {}
    )
    accounts = scenario / "sacctmgr.txt"
    words = (
        [shlex.split(line) for line in accounts.read_text().splitlines() if line.strip()]
        if accounts.exists()
        else []
    )
    files = {
        name: (scenario / name).read_text()
        for name in ("gres.conf", "topology.conf")
        if (scenario / name).exists()
    }
    conf = BASE_CONF + (scenario / "slurm.conf").read_text()
    horizon = seconds or float(about.get("horizon", 600))
    slurm = RealSlurm(folder, conf, files=files, accounting=True)
    with slurm.ready(accounts=words):
        zero = (time.time() + LEAD_S + 1) // 60 * 60 + BEHIND_MINUTE_S
        if zero - LEAD_S < time.time() + 0.5:
            zero += 60
        time.sleep(max(0.0, zero - LEAD_S - time.time()))
        begun = time.time() - zero
        slurm.start_controller()
        slurm.wait_for_nodes()
        idle = time.time() - zero
        recorder = Recorder(scenario, slurm, zero, horizon)
        time.sleep(max(0.0, -recorder.now()))
        finished = recorder.follow()
        recorder.sample()
        header = {
            "header": 1, "workload": about.get("name", scenario.name),
            "program": "slurm 22.05.8, one slurmd a node", "controller_start": round(begun, 3),
            "nodes_idle": round(idle, 2), "submit_phase": PHASE_S,
            "late_max": round(recorder.late_max, 2), "events": recorder.events,
            "finished": finished,
        }  # fmt: skip
        return [header, *recorder.result()]


def main() -> int:
    parser = argparse.ArgumentParser(prog="record")
    parser.add_argument("scenario", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, help="stop so long after second 0")
    parser.add_argument("--keep", type=Path, help="an empty folder for the cluster, kept")
    options = parser.parse_args()
    if why := missing():
        print(f"nothing to record: {why}")
        return 0
    make_users()
    end_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="rs") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        lines = record(options.scenario, folder, options.seconds)
    partial = options.out.with_name(options.out.name + ".part")
    partial.write_text("".join(json.dumps(line) + "\n" for line in lines))
    partial.rename(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
