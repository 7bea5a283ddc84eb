"""`understudy up --metrics`: every daemon answers as Prometheus expects, in all kinds of time."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

BIN = Path(sys.executable).parent
CONF = """
ClusterName=figures
SlurmctldHost=localhost
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/slurmdbd
NodeName=n[1-8] CPUs=4 RealMemory=16000 State=UNKNOWN
PartitionName=debug Nodes=n[1-8] Default=YES MaxTime=INFINITE State=UP
"""


class Site:
    def __init__(self, folder):
        self.folder, self.run_dir = folder, folder / "run"
        (folder / "slurm.conf").write_text(CONF)
        self.environment = os.environ | {
            "UNDERSTUDY_REGISTRY": str(folder / "registry"),
            "SLURM_CONF": str(self.run_dir / "slurm.conf"),
            "COLUMNS": "200",
        }

    def __call__(self, *words):
        words = [str(BIN / words[0]), *words[1:]]
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path)
    yield site
    if (site.run_dir / "controller.pid").exists():
        site("understudy", "down", "--run-dir", str(site.run_dir))


def up(site, *options):
    """The URL of each daemon, as `up` tells it."""
    conf = ("--conf", str(site.folder / "slurm.conf"))
    said = site("understudy", "up", *conf, "--run-dir", str(site.run_dir), "--port", "0", *options)
    return {name: url for url, name in re.findall(r"metrics +(\S+) +\((\w+)\)", said)}


def scrape(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        text = answer.read().decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.parametrize("time", ["real", "scaled:60", "virtual"])
def test_every_daemon_tells_its_figures(site, time):
    urls = up(site, "--metrics", "0", "--noded", "2", "--time", time)
    helpers = ["agent"] if time == "real" else ["agent", "clock"]
    assert list(urls) == ["controller", "accounting", "noded0", "noded1", *helpers]
    site("sbatch", "--hold", "-n3", "--output=/dev/null", "--wrap", "sleep 1000")
    found = scrape(urls["controller"])
    assert found["slurm_nodes_idle",] == 8
    assert found["slurm_cpus_total",] == 32
    assert found["slurm_queue_pending",] == 1
    assert found["slurm_partition_jobs_pending", "debug"] == 1
    assert found["slurm_rpc_stats", "REQUEST_SUBMIT_BATCH_JOB"] == 1
    for daemon, url in urls.items():
        assert scrape(url)["understudy_daemon_info", daemon] == 1
    assert scrape(urls["noded0"])["understudy_noded_nodes",] == 4
    assert scrape(urls["agent"])["understudy_agent_vouched_total",] >= 0
    if "clock" in urls:
        told = scrape(urls["clock"])
        assert told["understudy_clock_connections",] >= 4
        assert told["understudy_clock_participants",] == 4
        assert (told["understudy_clock_windows_total",] > 0) == (time == "virtual")
    assert any(
        name == "understudy_accounting_requests_total" for name, *_ in scrape(urls["accounting"])
    )


def test_nobody_listens_unless_asked(site):
    assert up(site) == {}
    assert json.loads((site.run_dir / "cluster.json").read_text())["metrics"] == {}


def test_the_dashboard_asks_for_figures_that_there_are(site):
    urls = up(site, "--metrics", "0")
    site("sbatch", "--account=physics", "-n3", "--output=/dev/null", "--wrap", "sleep 1000")
    told = {name for url in urls.values() for name, *_ in scrape(url)}
    board = json.loads((Path(__file__).parents[2] / "examples" / "grafana.json").read_text())
    asked = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\b(?:slurm|understudy|process)_\w+", target["expr"])
    }
    # no job waits or runs, as the account is not known: nothing by account or partition
    assert asked - told <= {"slurm_account_cpus_running", "slurm_partition_jobs_pending"}
