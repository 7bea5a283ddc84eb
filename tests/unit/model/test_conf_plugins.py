"""Plug-ins that slurm.conf names: those that slurmctld 22.05.8 looks for and does not find are
refused, those of other versions are not.

Covers: controller/edge/plugins.
"""

import pytest

from understudy.controller.edge.plugins import plugin_words
from understudy.model.conf import SlurmConfig, read_text
from understudy.model.conf_keys import GLOBAL_KEYS
from understudy.model.conf_plugins import PLUGINS
from understudy.model.errors import ConfigError

BASE = "ClusterName=c\nSlurmctldHost=localhost\nNodeName=n1\nPartitionName=p Nodes=n1\n"


def conf(line: str) -> SlurmConfig:
    return read_text(f"{BASE}{line}\n")


@pytest.mark.parametrize("key", sorted(PLUGINS))
def test_a_plug_in_that_nobody_knows_is_refused_with_its_line(key: str) -> None:
    name, kind = GLOBAL_KEYS[key].name, PLUGINS[key].kind
    for value in (f"{kind}/bogus", "bogus"):
        (error,) = conf(f"{name}={value}").errors
        assert (error.line, error.message) == (5, f"{name}: cannot find {kind} plugin for {value}")


@pytest.mark.parametrize("key", sorted(set(PLUGINS) - {"preempttype"}))
def test_plug_ins_of_this_version_are_taken(key: str) -> None:
    name, plugins = GLOBAL_KEYS[key].name, PLUGINS[key]
    for each in sorted(plugins.names):
        assert not {finding.kind for finding in conf(f"{name}={plugins.kind}/{each}").findings} & {
            "bad_value",
            "foreign_word",
        }
        assert bool(conf(f"{name}={each}").errors) != plugins.bare
    assert (
        bool(
            conf(
                f"{name}={','.join(f'{plugins.kind}/{each}' for each in sorted(plugins.names))}"
            ).errors
        )
        != plugins.several
    )


@pytest.mark.parametrize(
    "line",
    [
        "AccountingStorageType=accounting_storage/mysql",
        "SwitchType=switch/nrt",
        "TopologyPlugin=topology/block",
    ],
)
def test_a_plug_in_of_another_version_is_a_warning(line: str) -> None:
    config = conf(line)
    assert not config.errors
    assert [finding.kind for finding in config.findings] == ["foreign_word"]
    assert "is a plug-in of another version" in config.findings[0].message


@pytest.mark.parametrize(
    "line",
    ["JobCompType=jobcomp/None", "ProctrackType=proctrack/sgi_job", "TaskPlugin=affinity,cgroup"],
)
def test_plug_ins_without_which_slurmctld_starts_are_not_looked_for(line: str) -> None:
    assert not conf(line).errors


@pytest.mark.parametrize(
    "line", ["SchedulerType=sched/bogus", "SelectType=select/bogus", "PriorityType=priority/bogus"]
)
def test_a_plug_in_that_might_be_installed_and_is_not_is_named_before_anything_starts(
    line: str,
) -> None:
    with pytest.raises(ConfigError, match=f"{line} is not known; there are"):
        plugin_words(conf(line))
