"""Changes to a configuration for one run."""

import pytest

from understudy.model.conf import read_text
from understudy.model.conf_edit import EditError, edited, new_lines, read_edit

CONF = """ClusterName=c
SlurmctldHost=localhost
SchedulerParameters=bf_window=1440,defer \\
 # a comment
NodeName=n[1-4] CPUs=4 Feature=fast
NodeName=big CPUs=64
PartitionName=batch Nodes=ALL MaxTime=1:00:00 \\
   Shared=NO Default=YES
"""


def change(*settings: str, conf: str = CONF) -> str:
    return edited(conf, [read_edit(text) for text in settings])


def test_a_key_gets_another_value_in_the_files_place_of_it() -> None:
    text = change("schedulerparameters=bf_max_job_test=7")
    assert read_text(text).text("SchedulerParameters") == "bf_max_job_test=7"
    assert text.count("SchedulerParameters") == 1


def test_a_key_that_the_file_does_not_have_is_added() -> None:
    assert read_text(change("SchedulerType=sched/builtin")).text("SchedulerType") == "sched/builtin"


def test_a_key_without_a_value_goes_back_to_its_default() -> None:
    assert read_text(change("SchedulerParameters=")).is_set("SchedulerParameters") is False


def test_a_word_joins_a_list_and_takes_the_place_of_one_of_its_name() -> None:
    config = read_text(
        change("SchedulerParameters+=bf_window=2880", "SchedulerParameters+=bf_continue")
    )
    assert config.words("SchedulerParameters") == ["defer", "bf_window=2880", "bf_continue"]


def test_a_word_leaves_a_list() -> None:
    assert read_text(change("SchedulerParameters-=defer")).words("SchedulerParameters") == [
        "bf_window=1440"
    ]


def test_a_word_joins_the_default_of_a_list_but_not_the_word_none() -> None:
    assert read_text(change("AccountingStorageTRES+=gres/gpu")).words("AccountingStorageTRES")[
        -2:
    ] == ["pages", "gres/gpu"]
    assert read_text(change("PrivateData+=jobs")).words("PrivateData") == ["jobs"]


def test_a_partitions_line_gets_other_keys_and_keeps_the_rest() -> None:
    config = read_text(change("PartitionName=batch MaxTime=2-0 OverSubscribe=FORCE:2"))
    (partition,) = config.partitions
    assert (partition.max_time_s, partition.oversubscribe, partition.is_default) == (
        2 * 86_400,
        "FORCE:2",
        True,
    )
    assert not config.errors


def test_a_key_is_taken_off_a_line() -> None:
    (partition,) = read_text(change("PartitionName=batch MaxTime=")).partitions
    assert partition.max_time_s is None


def test_a_line_that_is_not_there_is_added() -> None:
    config = read_text(change("PartitionName=late Nodes=n1 MaxTime=10", "NodeName=n9 CPUs=2"))
    assert [partition.name for partition in config.partitions] == ["batch", "late"]
    assert config.nodes[config.index_of["n9"]].cpus == 2


def test_a_nodes_line_is_changed_by_the_expression_that_stands_on_it() -> None:
    config = read_text(change("NodeName=n[1-4] CPUs=8 Features=slow"))
    assert [(node.cpus, list(node.features)) for node in config.nodes if node.name == "n3"] == [
        (8, ["slow"])
    ]


def test_a_node_that_shares_its_line_with_others_cannot_be_changed_alone() -> None:
    with pytest.raises(EditError, match=r"nodes of it are on the line NodeName=n\[1-4\]"):
        change("NodeName=n2 CPUs=8")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "SchedulerParameter=x",
            "has no key SchedulerParameter .did you mean SchedulerParameters..",
        ),
        ("MaxJobCount=many", "MaxJobCount"),
        ("bf_window", "it reads KEY=VALUE"),
        ("SchedulerParameters+=", "no word is given"),
        ("PartitionName=batch MaxTim=3", "has no key MaxTim .did you mean MaxTime.."),
        ("PartitionName=batch oops", 'cannot read "oops"'),
        ("PartitionName+=batch", "is no list"),
        ("Prolog=a\nEpilog=b", "it reads"),
    ],
)
def test_what_is_no_change_is_refused_with_its_text(text: str, why: str) -> None:
    with pytest.raises(EditError, match=why):
        read_edit(text)


def test_comments_and_other_lines_stay_as_they_are() -> None:
    assert change("ClusterName=d").splitlines()[1:4] == CONF.splitlines()[2:5]


def test_a_file_without_a_newline_at_its_end_gets_the_line_behind_it() -> None:
    assert change("MaxJobCount=5", conf="ClusterName=c") == "ClusterName=c\nMaxJobCount=5\n"


def test_a_line_that_the_file_does_not_have_is_told_as_new_and_one_that_it_has_is_not() -> None:
    edits = [
        read_edit(text)
        for text in (
            "PartitionName=batch MaxTime=3",
            "partitionname=btach MaxTime=3",
            "NodeName=n9 CPUs=2",
            "MaxJobCount=7",
        )
    ]
    assert new_lines(CONF, edits) == ["PartitionName=btach", "NodeName=n9"]
