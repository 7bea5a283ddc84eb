"""The machine on which schedules were recorded, as its file says.

Covers: model/cadence.
"""

import tomllib
from pathlib import Path

from understudy.experiments import recorded_machine as module
from understudy.experiments.recorded_machine import recorded_machine
from understudy.model.cadence import Cadence
from understudy.model.cluster import Cluster


def values(table: dict, path: str = ""):
    """Each entry with its name."""
    for name, each in table.items():
        if "value" in each:
            yield path + name, each
        else:
            yield from values(each, f"{path}{name}.")


def test_each_value_says_where_it_comes_from():
    read = tomllib.loads(Path(module.__file__).with_suffix(".toml").read_text())
    found = dict(values(read))
    assert len(found) > 8
    for name, each in found.items():
        assert sorted(each) == ["source", "value"], name
        assert len(each["source"]) > 20, name


def test_what_daemons_need_goes_with_the_cluster(tmp_path):
    machine = recorded_machine()
    Cluster("recorded", "slurm.conf", **machine.cluster).save(tmp_path)
    read = Cluster.load(tmp_path)
    assert read.cadence == machine.cadence
    assert read.job_overhead_s == machine.job_overhead_s > 0


def test_no_other_cluster_has_it(tmp_path):
    Cluster("any", "slurm.conf").save(tmp_path)
    read = Cluster.load(tmp_path)
    assert read.cadence == Cadence()
    assert not any((read.job_overhead_s, read.job_launch_s, read.epilog_s, read.kill_s))
