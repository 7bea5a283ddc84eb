"""Writes examples/year.swf.gz and examples/year-easy.csv.gz: python tests/reference/make_year.py
[FOLDER].

The jobs come from the project's generator, the answers from the reference implementation beside
this file. The same program gives the same content.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

from understudy.experiments.lublin import generate
from understudy.experiments.swf import TraceJob, write_swf

sys.path.insert(0, str(Path(__file__).parent))
from textbook import Task, easy

JOBS, NODES, DAYS, LOAD, SEED = 30_000, 1_024, 365, 0.7, 2003
HEADER = {
    "Version": "2.2",
    "Computer": f"synthetic, {NODES} one-processor nodes",
    "Information": "Understudy's experiments/lublin.py, after Lublin and Feitelson (2003)",
    "Note": f"generate(jobs={JOBS}, nodes={NODES}, days={DAYS}, load={LOAD}, seed={SEED})",
    "UnixStartTime": "1704067200",
    "TimeZone": "0",
    "TimeZoneString": "UTC",
    "MaxJobs": str(JOBS),
    "MaxRecords": str(JOBS),
    "MaxNodes": str(NODES),
    "MaxProcs": str(NODES),
    "MaxQueues": "2",
    "Queue": "0 interactive\n1 batch",
}


def year() -> list[TraceJob]:
    return generate(JOBS, NODES, DAYS, LOAD, SEED)


def answers(jobs: list[TraceJob], processors: int) -> str:
    """The answers file's text: what EASY does with the jobs."""
    starts = easy(
        [Task(job.id, job.submit, job.run, job.procs, job.req) for job in jobs], processors
    )
    rows = [
        f"{job.id},{job.submit},{starts[job.id]},{starts[job.id] + job.run},{job.procs},{job.req}\n"
        for job in jobs
        if job.id in starts
    ]
    return "".join(["id,submit,start,end,procs,req\n", *rows])


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "examples"
    jobs = year()
    write_swf(folder / "year.swf.gz", jobs, HEADER)
    (folder / "year-easy.csv.gz").write_bytes(
        gzip.compress(answers(jobs, NODES).encode(), 9, mtime=0)
    )


if __name__ == "__main__":
    main()
