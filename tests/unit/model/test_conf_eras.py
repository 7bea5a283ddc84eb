"""What is said of keys of other versions, and of words and plug-ins: whether 22.05.8 still reads
them.
"""

import pytest

from understudy.model.conf import read, read_text
from understudy.model.conf_check import not_emulated, strange_words

BASE = "ClusterName=c\nSlurmctldHost=localhost\nNodeName=n1\nPartitionName=p Nodes=n1\n"
READS = "is not in today's manual: 22.05.8 still reads it"
UNKNOWN = "was a key before: 22.05.8 stops there (unrecognized key)"


def said(lines: str) -> list[str]:
    config = read_text(f"{BASE}{lines}\n")
    assert not config.errors
    return [each.message for each in [*config.findings, *strange_words(config, {})]]


@pytest.mark.parametrize(
    "line",
    [
        "AccountingStorageUser=x",
        "ControlMachine=x",
        "ControlAddr=x",
        "CryptoType=crypto/munge",
        "GetEnvTimeout=2",
        "AcctGatherInfinibandType=acct_gather_infiniband/none",
        "LaunchType=launch/slurm",
        "PowerPlugin=power/none",
    ],
)
def test_keys_that_are_still_read(line: str) -> None:
    assert said(line) == [f"{line.partition('=')[0]} {READS}"]


def test_shared_is_still_read() -> None:
    assert said("PartitionName=q Nodes=n1 Shared=YES") == [f"Shared {READS}"]


@pytest.mark.parametrize(
    "key",
    ["CacheGroups", "SchedulerPort", "JobCheckpointDir", "CheckpointType", "UsePSS", "KillTree"],
)
def test_keys_that_are_not_known_any_more(key: str) -> None:
    assert said(f"{key}=0") == [f"{key} {UNKNOWN}"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("AccountingStorageLoc=x", "The AccountingStorageLoc option has been removed."),
        ("FastSchedule=0", "The FastSchedule option has been removed."),
        ("FastSchedule=2", "The FastSchedule option has been removed."),
        (
            "AccountingStoreJobComment=YES",
            (
                "The AccountingStoreJobComment option has been removed, please use "
                "AccountingStoreFlags=job_comment option instead."
            ),
        ),
        (
            "SallocDefaultCommand=x",
            (
                "SallocDefaultCommand has been removed. Please consider setting "
                "LaunchParameters=use_interactive_step instead."
            ),
        ),
        ("CryptoType=crypto/openssl", "cannot find cred plugin for cred/openssl"),
    ],
)
def test_keys_with_which_22_05_8_does_not_start(line: str, words: str) -> None:
    key = line.partition("=")[0]
    assert said(line) == [f"{key} was a key before: 22.05.8 stops there ({words})"]


def test_keys_without_which_22_05_8_goes_on() -> None:
    assert said("FastSchedule=1") == [
        (
            "FastSchedule was a key before: 22.05.8 goes on without it (Ignoring obsolete "
            "FastSchedule=1 option. Please remove from your configuration.)"
        )
    ]


def test_keys_that_came_later() -> None:
    assert said("HashPlugin=hash/k12") == [
        "HashPlugin is a key that came after 22.05: 22.05.8 stops there (unrecognized key)"
    ]


def test_words_of_other_versions_with_which_22_05_8_does_not_start() -> None:
    assert said("TaskPluginParam=Sched") == [
        (
            "TaskPluginParam: Sched is a word of another version, without effect here: 22.05.8 "
            "stops there (Bad TaskPluginParam: Sched)"
        )
    ]
    (message,) = said("SchedulerParameters=max_job_bf=300")
    assert "22.05.8 stops there (Invalid parameter max_job_bf." in message


def test_words_of_jobs_that_grow_and_of_limits_that_let_others_pass() -> None:
    assert said("SchedulerParameters=permit_job_expansion") == []
    assert not_emulated(read_text(f"{BASE}SchedulerParameters=permit_job_expansion\n")) == [
        "SchedulerParameters=permit_job_expansion"
    ]
    (message,) = said("SchedulerParameters=assoc_limit_continue")
    assert "22.05.8 passes over it, and goes on so" in message


def test_plug_ins_of_other_versions() -> None:
    (message,) = said("SwitchType=switch/nrt")
    assert message.endswith("without effect here: 22.05.8 stops there")


@pytest.mark.parametrize(
    ("line", "severity", "message"),
    [
        ("TaskAffinity=yes", "warning", f"TaskAffinity {UNKNOWN}"),
        (
            "CgroupReleaseAgentDir=/x",
            "warning",
            (
                "CgroupReleaseAgentDir was a key before: 22.05.8 stops there (Support for "
                "CgroupReleaseAgentDir option has been removed.)"
            ),
        ),
        (
            "SystemdTimeout=3",
            "warning",
            "SystemdTimeout is a key that came after 22.05: 22.05.8 stops there (unrecognized key)",
        ),
        ("Xyz=3", "error", "unrecognized key: Xyz"),
        ("ConstrainCores=maybe", "error", '"maybe" is not a valid option for "ConstrainCores"'),
        ("AllowedRAMSpace=100%", "error", "AllowedRAMSpace value (100%) is not a valid number"),
        ("MinRAMSpace=3.5", "error", "MinRAMSpace value (3.5) is not a valid number"),
        ("MemorySwappiness=-1", "error", "MemorySwappiness value (-1) is less than zero"),
        (
            "ConstrainCores=yes ConstrainDevices=yes",
            "error",
            'cannot read "ConstrainDevices" behind ConstrainCores',
        ),
    ],
)
def test_lines_of_cgroup_conf(tmp_path, line, severity, message):
    (tmp_path / "slurm.conf").write_text(BASE)
    (tmp_path / "cgroup.conf").write_text(f"{line}\n")
    found = read(tmp_path / "slurm.conf").findings
    assert [(each.severity, each.message) for each in found] == [(severity, message)]


def test_values_of_cgroup_conf_that_are_taken(tmp_path):
    (tmp_path / "slurm.conf").write_text(BASE)
    (tmp_path / "cgroup.conf").write_text(
        "AllowedRAMSpace=90.5\nMaxRAMPercent=1e2\nMaxSwapPercent=UNLIMITED\nMinRAMSpace=unlimited\n"
        "CgroupPlugin=cgroup/xyz\nConstrainCores=up\n"
    )
    config = read(tmp_path / "slurm.conf")
    assert not config.findings
    assert len(config.cgroup) == 6
