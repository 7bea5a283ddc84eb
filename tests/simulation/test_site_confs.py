"""Whatever a site's configuration says, a replay under it runs each job or says why not: generated
sites here, real ones where they are at hand.

Real sites' files are looked for in ../shared/slurm-confs, beside this repository; they are not a
part of it.
"""

import csv
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from simulation.site_confs import write_site

from understudy.controller.edge.plugins import plugin_words
from understudy.model.conf import read
from understudy.model.conf_check import run as check
from understudy.model.errors import ConfigError
from understudy.tool.replay.request import ReplayRequest
from understudy.tool.replay.traces import ReplayError, replay

GENERATED = int(os.environ.get("UNDERSTUDY_SITES", "20"))
SITES = Path(__file__).parents[2].parent / "shared" / "slurm-confs"
# each so-many-th of the real sites in many processes, too: that takes 4 s each
IN_MANY = 1 if "UNDERSTUDY_SITES" in os.environ else 8


def harmless(path: Path, jobs: int) -> Path:
    """Jobs of one CPU, each for some minutes."""
    rng = random.Random(7)
    at, lines = 0, ["; MaxProcs: 4"]
    for job in range(1, jobs + 1):
        at, run = at + rng.randint(0, 60), rng.randint(1, 600)
        lines.append(f"{job} {at} -1 {run} 1 -1 -1 1 {run + 60} -1 1 1 1 -1 1 -1 -1 -1")
    path.write_text("\n".join(lines) + "\n")
    return path


def is_accepted(conf: Path) -> bool:
    try:
        return check(conf, plugin_words)[1] == 0
    except ConfigError:
        return False


def replayed(
    conf: Path, trace: Path, out: Path, said: str, jobs: int, *, in_many: bool = False
) -> list[tuple[str, ...]]:
    """What became of the jobs. `said` tells why, where they did not all run."""
    error = ""
    if in_many:  # not in this process, which would stay on one CPU
        command = [
            str(Path(sys.executable).parent / "understudy"),
            "replay",
            str(trace),
            "--conf",
            str(conf),
            "--out",
            str(out),
        ]
        error = subprocess.run(
            command, capture_output=True, text=True, timeout=300, check=False
        ).stderr
    else:
        try:
            replay(ReplayRequest(trace, out, conf=conf, one_process=True))
        except ReplayError as failure:
            error = str(failure)
    assert (out / "jobs.csv").exists(), error
    with (out / "jobs.csv").open() as file:
        found = list(csv.DictReader(file))
    states = Counter(row["state"] for row in found)
    assert len(found) == jobs
    if states["COMPLETED"] != jobs:
        assert "can never start" in said or "would be refused" in said, (states, error)
    return [tuple(row.values()) for row in found]


def looked_at(conf: Path, trace: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> str:
    replay(ReplayRequest(trace, out, conf=conf, check=True))
    return capsys.readouterr().out


@pytest.mark.parametrize("seed", range(GENERATED))
def test_a_generated_site_replays_harmless_jobs_or_says_why_not(seed, tmp_path, capsys):
    conf = write_site(random.Random(seed), tmp_path / "site")
    if read(conf).errors:
        with pytest.raises(ConfigError):
            replay(
                ReplayRequest(
                    harmless(tmp_path / "some.swf", 3),
                    tmp_path / "out",
                    conf=conf,
                    one_process=True,
                )
            )
        return
    trace = harmless(tmp_path / "some.swf", 30)
    said = looked_at(conf, trace, tmp_path / "out", capsys)
    rows = replayed(conf, trace, tmp_path / "out", said, 30)
    if not seed % 10:
        assert replayed(conf, trace, tmp_path / "many", said, 30, in_many=True) == rows


def sites() -> list[Path]:
    return sorted(SITES.glob("*/slurm.conf"))


@pytest.mark.skipif(not sites(), reason=f"no real sites' files in {SITES}")
@pytest.mark.parametrize("conf", sites(), ids=lambda conf: conf.parent.name[:3])
def test_a_real_site_replays_harmless_jobs_or_says_why_not(conf, tmp_path, capsys):
    if not is_accepted(conf):
        with pytest.raises(ConfigError):
            replay(
                ReplayRequest(
                    harmless(tmp_path / "some.swf", 3),
                    tmp_path / "out",
                    conf=conf,
                    one_process=True,
                )
            )
        return
    trace = harmless(tmp_path / "some.swf", 100)
    said = looked_at(conf, trace, tmp_path / "out", capsys)
    rows = replayed(conf, trace, tmp_path / "out", said, 100)
    if not sites().index(conf) % IN_MANY:
        assert replayed(conf, trace, tmp_path / "many", said, 100, in_many=True) == rows
