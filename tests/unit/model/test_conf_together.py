"""Values that are wrong together, each as slurmctld 22.05.8 took it: what it says before it ends,
and what it starts with.
"""

import pytest

from understudy.model.conf import read_text
from understudy.model.conf_check import GOES_ON

NODES = "ClusterName=c\nSlurmctldHost=localhost\nNodeName=n1 CPUs=4\n"
QOS = "PreemptType=preempt/qos\nPreemptMode=REQUEUE\n"


def refused(lines: str) -> list[str]:
    has_partition = "PartitionName" in lines
    return [
        error.message
        for error in read_text(
            NODES + ("" if has_partition else "PartitionName=p Nodes=n1\n") + lines + "\n"
        ).errors
    ]


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        *(
            ("qos", mode)
            for mode in (
                "CANCEL",
                "Requeue",
                "SUSPEND,GANG",
                "GANG,ON",
                "GANG,REQUEUE",
                "WITHIN,CANCEL",
                "SUSPEND,WITHIN",
                ",CANCEL,",
            )
        ),
        *(("partition_prio", mode) for mode in ("CANCEL", "GANG,GANG,CANCEL", "CANCEL,WITHIN")),
        *(("none", mode) for mode in ("OFF", "GANG", "off,gang")),
    ],
)
def test_a_mode_that_goes_with_the_type_is_taken(kind: str, mode: str) -> None:
    assert refused(f"PreemptType=preempt/{kind}\nPreemptMode={mode}") == []


@pytest.mark.parametrize("kind", ["none", "qos", "partition_prio"])
@pytest.mark.parametrize(
    "mode", ["REQUEUE,CANCEL", "GANG,WITHIN", "GANG,WITHIN,SUSPEND", "CANCEL,CANCEL", "OFF,CANCEL"]
)
def test_modes_that_do_not_go_together_are_refused_whatever_the_type(kind: str, mode: str) -> None:
    assert refused(f"PreemptType=preempt/{kind}\nPreemptMode={mode}") == [
        f"PreemptMode={mode} invalid"
    ]


@pytest.mark.parametrize("kind", ["none", "qos"])
def test_suspension_needs_gang_scheduling(kind: str) -> None:
    assert refused(f"PreemptType=preempt/{kind}\nPreemptMode=SUSPEND") == [
        "PreemptMode=SUSPEND requires GANG too"
    ]


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        *(
            ("none", mode)
            for mode in (
                "CANCEL",
                "REQUEUE",
                "SUSPEND,GANG",
                "GANG,REQUEUE",
                "WITHIN",
                "OFF,WITHIN",
            )
        ),
        *(("qos", mode) for mode in ("OFF", "GANG", "GANG,OFF", "WITHIN", "OFF,WITHIN")),
        ("partition_prio", "OFF"),
    ],
)
def test_a_type_without_its_mode_is_refused_and_the_reverse(kind: str, mode: str) -> None:
    said = [f"PreemptType and PreemptMode values incompatible: preempt/{kind}, {mode}"]
    assert refused(f"PreemptType=preempt/{kind}\nPreemptMode={mode}") == said
    if mode == "OFF":
        assert refused(f"PreemptType=preempt/{kind}") == said


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        *(
            ("linear", words)
            for words in (
                "CR_Memory",
                "CR_LLN",
                "CR_Memory,CR_LLN",
                "CR_ONE_TASK_PER_CORE",
                "CR_Pack_Nodes",
                "other_cons_tres",
            )
        ),
        *(
            ("cons_tres", words)
            for words in (
                "CR_CPU",
                "cr_core_memory",
                "CR_LLN,CR_Pack_Nodes,CR_Core",
                "CR_ALLOCATE_FULL_SOCKET",
            )
        ),
        *(
            ("cons_res", words)
            for words in (
                "CR_Socket_Memory",
                "CR_CORE,CR_ONE_TASK_PER_CORE",
                "other_cons_tres,CR_CPU_Memory",
            )
        ),
    ],
)
def test_units_that_go_with_the_selector_are_taken(selector: str, words: str) -> None:
    assert refused(f"SelectType=select/{selector}\nSelectTypeParameters={words}") == []


@pytest.mark.parametrize(
    "unit",
    [
        "CR_CPU",
        "CR_CPU_Memory",
        "CR_Core",
        "CR_Core_Memory",
        "CR_Socket",
        "CR_Socket_Memory",
        "other_cons_res,CR_Core",
    ],
)
def test_whole_nodes_have_no_unit(unit: str) -> None:
    assert refused(f"SelectTypeParameters={unit}") == [
        (
            f"Invalid SelectTypeParameters for select/linear: {unit}, it can't contain "
            "CR_(CPU|CORE|SOCKET)."
        )
    ]


@pytest.mark.parametrize("selector", ["cons_res", "cons_tres"])
@pytest.mark.parametrize(
    "words", ["CR_Memory", "CR_LLN", "CR_Memory,CR_LLN", "CR_Pack_Nodes", "other_cons_tres"]
)
def test_parts_of_nodes_need_a_unit_where_anything_is_said(selector: str, words: str) -> None:
    said = f"Invalid SelectTypeParameters: {words}, You need at least CR_(CPU|CORE|SOCKET)*"
    assert refused(f"SelectType=select/{selector}\nSelectTypeParameters={words}") == [said]
    assert refused(f"SelectType=select/{selector}") == []


@pytest.mark.parametrize("selector", ["linear", "cons_tres"])
@pytest.mark.parametrize("words", ["CR_CPU,CR_Core", "CR_Core,CR_Memory", "CR_Core,CR_Core"])
def test_there_is_one_unit(selector: str, words: str) -> None:
    assert refused(f"SelectType=select/{selector}\nSelectTypeParameters={words}") == [
        f"Bad SelectTypeParameter: {words}"
    ]


def test_a_task_for_each_core_needs_cores() -> None:
    (said,) = refused(
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_ONE_TASK_PER_CORE,CR_CPU"
    )
    assert (
        said == "CR_ONE_TASK_PER_CORE is not compatible with CR_CPU*, please change to use "
        "CR_CORE* instead."
    )


def test_words_of_another_version_and_plug_ins_of_others_are_left_alone() -> None:
    assert refused("SelectType=select/cons_tres\nSelectTypeParameters=LL_SHARED_GRES") == []
    assert refused("SelectType=select/mine\nSelectTypeParameters=CR_Memory,CR_Core") == []
    assert refused("PreemptType=preempt/partition_prio\nPreemptMode=CHECKPOINT") == []


@pytest.mark.parametrize("mode", ["bogus", "CANCEL,REQUEUE", "GANG,WITHIN"])
def test_a_partitions_mode_is_looked_at_with_its_line(mode: str) -> None:
    config = read_text(NODES + QOS + f"PartitionName=p Nodes=n1 PreemptMode={mode}\n")
    assert [(error.line, error.message) for error in config.errors] == [
        (6, f'Bad value "{mode}" for PreemptMode')
    ]


@pytest.mark.parametrize(
    "mode", ["OFF", "GANG", "WITHIN", "suspend", "CANCEL,WITHIN", "SUSPEND,GANG"]
)
def test_a_partitions_mode_need_not_go_with_the_clusters(mode: str) -> None:
    assert refused(QOS + f"PartitionName=p Nodes=n1 PreemptMode={mode}") == []


def test_a_partitions_unit_is_a_core_or_a_socket() -> None:
    for words in ("CR_CPU", "CR_Memory", "CR_LLN", "NONE", "bogus"):
        assert refused(f"PartitionName=p Nodes=n1 SelectTypeParameters={words}") == [
            f"Bad value for SelectTypeParameters: {words}"
        ]
    for words in ("CR_Core", "cr_core_memory", "CR_Socket", "CR_Socket_Memory", "CR_Core,CR_LLN"):
        assert refused(f"PartitionName=p Nodes=n1 SelectTypeParameters={words}") == []


@pytest.mark.parametrize(
    "text", ["foo:10:3", "foo:x", "foo:-1", "foo:3.5", "foo:5k", "bar,foo:10x"]
)
def test_licences_that_cannot_be_counted_are_refused(text: str) -> None:
    assert refused(f"Licenses={text}") == [f"Invalid configured licenses: {text}"]


@pytest.mark.parametrize("shared", ["mps", "shard"])
def test_shared_devices_need_gpus_and_the_selector_that_counts_them(shared: str) -> None:
    needs_gpus = "gres/'shared' requires that gres/gpu also be configured"
    for selector in ("linear", "cons_res", "cons_tres"):
        select = f"SelectType=select/{selector}\n"
        assert refused(f"{select}GresTypes={shared}") == [needs_gpus]
        assert refused(f"{select}GresTypes=gpu,{shared}") == (
            ["Use of shared gres requires the use of select/cons_tres"]
            if selector != "cons_tres"
            else []
        )


def test_a_log_of_the_scheduler_needs_a_file() -> None:
    assert refused("SlurmSchedLogLevel=1") == [
        "SlurmSchedLogLevel requires SlurmSchedLogFile value"
    ]
    assert refused("SlurmSchedLogLevel=0") == []
    assert refused("SlurmSchedLogLevel=3\nSlurmSchedLogFile=/tmp/sched.log") == []


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        (
            "CPUs=1 Sockets=1 CoresPerSocket=2",
            (
                "CPUs=1 doesn't match neither Sockets(1)*CoresPerSocket(2)=(2) nor "
                "Sockets(1)*CoresPerSocket(2)*ThreadsPerCore(1)=(2)"
            ),
        ),
        (
            "CPUs=2 Sockets=2 CoresPerSocket=2 ThreadsPerCore=2",
            (
                "CPUs=2 doesn't match neither Sockets(2)*CoresPerSocket(2)=(4) nor "
                "Sockets(2)*CoresPerSocket(2)*ThreadsPerCore(2)=(8)"
            ),
        ),
        ("CPUs=4 Sockets=2 CoresPerSocket=2 ThreadsPerCore=2", ""),
        ("CPUs=2 Sockets=2 CoresPerSocket=1 ThreadsPerCore=2", ""),
        ("CPUs=3 Sockets=2 CoresPerSocket=2", ""),  # reset
        ("CPUs=6", ""),
    ],
)
@pytest.mark.parametrize("selector", ["linear", "cons_res", "cons_tres"])
def test_cores_are_counted_where_they_are_given(selector: str, layout: str, said: str) -> None:
    text = f"SelectType=select/{selector}\nNodeName=x[1-2] {layout}"
    assert refused(text) == ([f"NodeName=x1 {said}"] if said and selector != "linear" else [])


def test_few_messages_for_slurmdbd_are_refused() -> None:
    for number in (0, 100, 9999):
        assert refused(f"MaxDBDMsgs={number}") == [
            f"MaxDBDMsgs value ({number}) needs to be greater than 10000"
        ]
    assert refused("MaxDBDMsgs=10000") == []


def test_what_slurmctld_says_and_goes_on_with_is_a_warning() -> None:
    config = read_text(
        NODES + "PartitionName=p Nodes=n1\nMaxArraySize=4000002\nJobCompType=filetxt\n"
        "SchedulerParameters=bf_interval=0\n"
    )
    assert not config.errors
    assert {finding.kind for finding in config.findings} <= GOES_ON
    assert sorted(finding.message for finding in config.findings) == [
        "Invalid SchedulerParameters bf_interval: 0",
        "MaxArraySize value (4000002) is greater than 4000001",
        "cannot find jobcomp plugin for filetxt: 22.05.8 goes on, and nothing is kept",
    ]
