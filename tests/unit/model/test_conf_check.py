"""The report on a configuration, and `scontrol show config`.

Covers: commands/scontrol/config, model/conf_cgroup_show, model/conf_keys, model/conf_show,
model/nouns.
"""

import re
from pathlib import Path

import pytest

from understudy.model import burst_buffer_conf, conf, conf_check
from understudy.model.conf import read_text
from understudy.model.conf_check import not_emulated
from understudy.model.conf_keys import GLOBAL_KEYS
from understudy.model.errors import ConfigError

HEAD = "ClusterName=test\nSlurmctldHost=head\nNodeName=n[1-4] CPUs=2\nPartitionName=p Nodes=ALL\n"


def test_a_sound_file_has_a_summary_and_exit_code_0(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text(HEAD)
    assert conf_check.run(path) == (
        f"{path}: cluster test, 4 nodes, 8 CPUs, 1 partition; 0 errors, 0 warnings\n",
        0,
    )
    assert conf_check.check(path) == []


def test_errors_come_first_with_file_and_line_and_give_exit_code_1(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text(
        HEAD + "FastSchedule=1\nKillWait=x\nSrunEpilog=/bin/a\nNodeName=m Gres=gpu:1\n"
        "NodeName=m2 Gres=gpu:1\nGresTypes=gpu\n"
    )
    text, code = conf_check.run(path)
    assert code == 1
    assert text.splitlines() == [
        f'error: {path} line 6: KillWait value "x" is not a valid number',
        (
            f"warning: {path} line 5: FastSchedule was a key before: 22.05.8 goes on without it "
            "(Ignoring obsolete FastSchedule=1 option. Please remove from your configuration.)"
        ),
        "accepted, but without effect here: FastSchedule, SrunEpilog",
        f"{path}: cluster test, 6 nodes, 10 CPUs, 1 partition; 1 error, 1 warning",
    ]


@pytest.mark.parametrize(
    ("kind", "conf", "installed", "said"),
    [
        ("lua", "", True, "burst_buffer.lua runs where jobs really run "),
        ("lua", "", False, "burst_buffer.lua needs lupa, which is not installed: pip install "),
        ("lua", "Program=/x\n", False, "burst_buffer.lua is not run: burst_buffer.conf has a P"),
        ("datawarp", "", False, ""),
    ],
)
def test_what_becomes_of_a_sites_script_is_said(tmp_path, monkeypatch, kind, conf, installed, said):
    monkeypatch.setattr(burst_buffer_conf, "find_spec", lambda _name: installed or None)
    path = tmp_path / "slurm.conf"
    path.write_text(f"{HEAD}BurstBufferType=burst_buffer/{kind}\n")
    (tmp_path / "burst_buffer.conf").write_text(conf)
    (tmp_path / "burst_buffer.lua").write_text("")
    text, code = conf_check.run(path)
    *lines, _ = text.splitlines()
    assert ([line[: len(said)] for line in lines], code) == ([said] if said else [], 0)


def test_keys_set_to_their_default_do_not_count_as_without_effect() -> None:
    assert conf_check.not_emulated(
        conf.read_text(HEAD + "SwitchType=switch/none\nMCSParameters=x\n")
    ) == ["MCSParameters"]


@pytest.mark.parametrize(
    "setting",
    [
        "MaxArraySize=5000",
        "PreemptType=preempt/qos",
        "PreemptMode=REQUEUE",
        "Licenses=a:2",
        "SlurmUser=slurm",
    ],
)
def test_keys_that_the_controller_heeds_are_not_said_to_be_without_effect(setting: str) -> None:
    assert conf_check.not_emulated(conf.read_text(f"{HEAD}{setting}\n")) == []


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        conf_check.check(tmp_path / "slurm.conf")


def shown(text: str) -> dict[str, str]:
    return dict(conf.read_text(HEAD + text).show())


def test_a_bare_configuration_is_shown_with_slurm_s_defaults() -> None:
    lines = shown("ProctrackType=proctrack/linuxproc")
    assert len(lines) == 192  # as 22.05.8 prints
    assert lines["KillWait"] == "30 sec"
    assert lines["OverTimeLimit"] == "0 min"
    assert lines["ResumeRate"] == "300 nodes/min"
    assert lines["SuspendTime"] == "INFINITE"
    assert lines["DefMemPerNode"] == "UNLIMITED"
    assert lines["MaxNodeCount"] == "4"
    assert lines["TaskPluginParam"] == "(null type)"
    assert lines["PowerPlugin"] == ""
    assert lines["SlurmUser"] == "root(0)"
    assert lines["SlurmctldHost[0]"] == "head"
    assert lines["NEXT_JOB_ID"] == lines["FirstJobId"] == "1"
    assert lines["TreeWidth"] == "50"
    assert "SelectTypeParameters" not in lines
    assert not any(name.startswith("PriorityWeight") for name in lines)


@pytest.mark.parametrize(
    ("setting", "name", "value"),
    [
        ("DefMemPerCPU=1000", "DefMemPerCPU", "1000"),
        ("DefMemPerCPU=0", "DefMemPerCPU", "0"),
        ("DefMemPerNode=0", "DefMemPerNode", "UNLIMITED"),
        ("DefMemPerCPU=UNLIMITED", "DefMemPerNode", "UNLIMITED"),
        ("DebugFlags=selecttype,gres,backfill", "DebugFlags", "Backfill,Gres,SelectType"),
        ("PrivateData=Usage,jobs,accounts", "PrivateData", "accounts,jobs,usage"),
        ("PrivateData=none", "PrivateData", "none"),
        ("", "MaxDBDMsgs", "0"),
        ("AccountingStorageType=accounting_storage/slurmdbd", "MaxDBDMsgs", "20016"),
        ("HealthCheckNodeState=IDLE,CYCLE", "HealthCheckNodeState", "CYCLE,IDLE"),
        ("PrologFlags=serial,deferbatch,Contain", "PrologFlags", "Alloc,Contain,DeferBatch,Serial"),
        ("PreemptMode=suspend,gang", "PreemptMode", "GANG,SUSPEND"),
        ("PreemptExemptTime=1:00", "PreemptExemptTime", "00:01:00"),
        ("ResvOverRun=UNLIMITED", "ResvOverRun", "UNLIMITED"),
        (
            "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory,CR_LLN",
            "SelectTypeParameters",
            "CR_CORE_MEMORY,CR_LLN",
        ),
        ("SelectType=select/cons_tres", "SelectTypeParameters", "CR_CORE_MEMORY"),
        (
            (
                "SelectType=select/cons_tres\n"
                "SelectTypeParameters=CR_LLN,CR_ONE_TASK_PER_CORE,OTHER_CONS_TRES,CR_Core"
            ),
            "SelectTypeParameters",
            "CR_CORE,OTHER_CONS_TRES,CR_ONE_TASK_PER_CORE,CR_LLN",
        ),
        ("PriorityType=priority/multifactor", "PriorityFlags", ""),
        ("PriorityType=priority/multifactor\nPriorityFlags=FAIR_TREE", "PriorityFlags", ""),
        (
            (
                "PriorityType=priority/multifactor\n"
                "PriorityFlags=NO_NORMAL_QOS,MAX_TRES,DEPTH_OBLIVIOUS,ACCRUE_ALWAYS"
            ),
            "PriorityFlags",
            "ACCRUE_ALWAYS,DEPTH_OBLIVIOUS,NO_FAIR_TREE,MAX_TRES,NO_NORMAL_ALL",
        ),
        ("SlurmctldDebug=7", "SlurmctldDebug", "debug3"),
        ("TaskPluginParam=Cores,Verbose", "TaskPluginParam", "verbose,cores"),
        ("TrackWCKey=yes", "TrackWCKey", "Yes"),
        ("DefCpuPerGPU=2\nDefMemPerGPU=1000", "JobDefaults", "DefCpuPerGPU=2,DefMemPerGPU=1000"),
        ("PropagateResourceLimitsExcept=MEMLOCK", "PropagateResourceLimits", "(null)"),
        ("TopologyParam=NoInAddrAny", "CommunicationParameters", "NoInAddrAny"),
        (
            "PriorityType=priority/multifactor\nPriorityDecayHalfLife=14-0",
            "PriorityDecayHalfLife",
            "14-00:00:00",
        ),
        ("PriorityType=priority/multifactor", "PriorityCalcPeriod", "00:05:00"),
        ("EnforcePartLimits=all", "EnforcePartLimits", "ALL"),
        *(
            (f"EnforcePartLimits={word}", "EnforcePartLimits", "ANY")
            for word in ("YES", "True", "1", "UP", "Any")
        ),
        *(
            (f"EnforcePartLimits={word}", "EnforcePartLimits", "NO")
            for word in ("No", "False", "0", "DOWN")
        ),
        ("SuspendTime=300", "SuspendTime", "300 sec"),
        ("CpuFreqDef=performance", "CpuFreqDef", "Performance"),
        ("SlurmctldPort=27391-27393", "SlurmctldPort", "27391-27393"),
    ],
)
def test_values_are_shown_as_scontrol_prints_them(setting: str, name: str, value: str) -> None:
    assert shown(setting)[name] == value


def test_what_uses_control_groups_has_their_settings_shown_behind_a_title() -> None:
    config = conf.read_text(HEAD + "ProctrackType=proctrack/cgroup\n", "/etc/slurm.conf")
    config.cgroup |= {
        "allowedramspace": "90.5",
        "constraincores": "yes",
        "ignoresystemd": "yes",
        "allowedkmemspace": "1000",
    }
    lines = config.show()
    at = [name for name, _ in lines].index("Cgroup Support Configuration:")
    assert lines[at - 1][0] == "X11Parameters"
    assert lines[at + 1 : at + 5] == [
        ("AllowedKmemSpace", "1000 Bytes"),
        ("AllowedRAMSpace", "90.5%"),
        ("AllowedSwapSpace", "0.0%"),
        ("CgroupAutomount", "no"),
    ]
    last = dict(lines[at + 5 :])
    assert last["ConstrainCores"] == last["IgnoreSystemdOnFailure"] == "yes"
    assert (last["CgroupPlugin"], last["MinRAMSpace"]) == ("(null)", "30 MB")


def test_the_running_controller_adds_what_it_knows() -> None:
    config = conf.read_text(HEAD, "/etc/slurm/slurm.conf")
    lines = dict(config.show(boot_time="2026-11-21T09:36:14", next_job_id="17", host="vm"))
    assert (lines["BOOT_TIME"], lines["NEXT_JOB_ID"], lines["SLURM_CONF"]) == (
        "2026-11-21T09:36:14",
        "17",
        "/etc/slurm/slurm.conf",
    )


@pytest.mark.parametrize(
    "line",
    [
        (
            "PartitionName=q Nodes=n1 Alternate=p GraceTime=60 PreemptMode=off "
            "PriorityJobFactor=10 QOS=high"
        ),
        (
            "PartitionName=q Nodes=n1 ExclusiveUser=YES ReqResv=YES SelectTypeParameters=CR_Core "
            "TRESBillingWeights=CPU=2"
        ),
        "SlurmctldDebug=debug",
        "TaskPlugin=task/affinity",
    ],
)
def test_what_schedules_go_by_is_not_said_to_have_no_effect(line: str) -> None:
    assert (
        not_emulated(
            read_text(
                "ClusterName=c\nSlurmctldHost=localhost\nNodeName=n1\nPartitionName=p Nodes=n1\n"
                f"{line}\n"
            )
        )
        == []
    )


@pytest.mark.parametrize(
    "key", ["StateSaveLocation=/var/lib/slurm", "AccountingStorageHost=db", "BatchStartTimeout=60"]
)
def test_what_nobody_reads_is_said_to_have_no_effect(key: str) -> None:
    config = read_text(
        f"ClusterName=c\nSlurmctldHost=localhost\nNodeName=n1\nPartitionName=p Nodes=n1\n{key}\n"
    )
    assert not_emulated(config) == [key.partition("=")[0]]


def test_every_key_that_the_controller_reads_is_said_to_have_an_effect() -> None:
    """Found in the code: `config.text("Key")` and its like."""
    folder = Path(__file__).parents[3] / "controller"
    text = "\n".join(path.read_text() for path in folder.rglob("*.py"))
    read = set(re.findall(r'config\.(?:text|words|number|seconds|boolean|count)\("(\w+)"', text))
    assert len(read) > 60
    assert [key for key in sorted(read) if not GLOBAL_KEYS[key.lower()].emulated] == []


def test_what_is_worked_out_is_shown_as_such() -> None:
    lines = shown("AccountingStorageType=accounting_storage/slurmdbd\n")
    assert (lines["AccountingStorageUser"], lines["MaxDBDMsgs"]) == ("N/A", "20016")
    assert shown("MaxDBDMsgs=30000\n")["MaxDBDMsgs"] == "30000"
