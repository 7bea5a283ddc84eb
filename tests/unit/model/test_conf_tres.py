"""Trackable resources that slurm.conf names, each as slurmctld 22.05.8 took it."""

import pytest

from understudy.model.conf import read_text

HEAD = "ClusterName=c\nSlurmctldHost=localhost\nNodeName=n1 CPUs=4\n"
DATABASE = "AccountingStorageType=accounting_storage/slurmdbd\n"
ACCEPTABLE = "Billing,CPU,Energy,FS/,Gres/,IC/,License/,Mem,Node,Pages,VMem"


def refused(lines: str, billing: str = "") -> list[str]:
    weights = f' TRESBillingWeights="{billing}"' if billing else ""
    text = f"{HEAD}{lines}\nPartitionName=p Nodes=n1{weights}\n"
    return [error.message for error in read_text(text).errors]


@pytest.mark.parametrize("word", ["gres/gpu", "license/x", "bb/x", "ic/ofed", "fs/lustre"])
def test_what_slurm_does_not_track_by_itself_needs_slurmdbd(word: str) -> None:
    assert refused(f"AccountingStorageTRES=cpu,{word}") == [
        (
            f"slurmdbd is required to run with TRES {word}. Either setup slurmdbd or remove this "
            "TRES from your configuration."
        )
    ]
    assert refused(f"{DATABASE}AccountingStorageTRES=cpu,{word}") == []


@pytest.mark.parametrize("word", ["cpu", "CPU,Mem", "fs/disk", "vmem,pages", "billing"])
def test_what_slurm_tracks_by_itself_may_be_named(word: str) -> None:
    assert refused(f"AccountingStorageTRES={word}") == []


@pytest.mark.parametrize("word", ["xyz", "gres", "license", "node=3", "foo/bar", "cpu/x"])
@pytest.mark.parametrize("database", ["", DATABASE])
def test_what_is_no_trackable_resource_is_refused(word: str, database: str) -> None:
    assert refused(f"{database}AccountingStorageTRES={word}") == [
        f"Unknown tres type '{word}', acceptable types are {ACCEPTABLE}"
    ]


def test_weights_are_of_resources_that_are_tracked() -> None:
    tracked = f"{DATABASE}AccountingStorageTRES=gres/gpu,license/foo"
    assert refused(tracked, "CPU=1.0,Mem=0.25G,GRES/GPU=2.0,License/Foo=1") == []
    said = (
        "failed to parse tres weights str 'cpu=1,gres/gpu:a=3': "
        "TRES weight 'gres:gpu:a' is not a configured TRES type."
    )
    assert refused(tracked, "cpu=1,gres/gpu:a=3") == [said]
    assert refused("Licenses=foo:3", "license/foo=3") == [
        (
            "failed to parse tres weights str 'license/foo=3': "
            "TRES weight 'license:foo' is not a configured TRES type."
        )
    ]


def test_weights_of_priorities_count_where_these_priorities_do() -> None:
    multifactor = "PriorityType=priority/multifactor\n"
    assert refused("PriorityWeightTRES=cpu=100,xyz=3") == []
    assert refused(f"{multifactor}PriorityWeightTRES=CPU=3,Mem=0.25G") == []
    assert refused(f"{multifactor}PriorityWeightTRES=cpu=100,xyz=3") == [
        (
            "failed to parse tres weights str 'cpu=100,xyz=3': "
            "TRES weight 'xyz' is not a configured TRES type."
        )
    ]


def test_a_partitions_weights_are_complained_of_at_its_line() -> None:
    config = read_text(f"{HEAD}PartitionName=p Nodes=n1\nPartitionName=q TRESBillingWeights=x=1\n")
    assert [(error.line, error.key) for error in config.errors] == [(5, "TRESBillingWeights")]
