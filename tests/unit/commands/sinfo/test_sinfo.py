"""sinfo: what it prints for given records.

Covers: commands/sinfo/fields.
"""

from __future__ import annotations

import json

import pytest
from fake_controller import FakeClient, record, run_command

from understudy.commands.shared.client import RefusedError
from understudy.commands.shared.texts import timestamp
from understudy.commands.sinfo.fields import FIELDS
from understudy.commands.sinfo.sinfo import Group, sinfo
from understudy.model.records import NODES, PARTITIONS

IDLE, ALLOCATED, MIXED, DOWN = 2, 3, 5, 1
DRAIN, FAIL, MAINT, RESERVED, NO_RESPOND = 0x200, 0x2000, 0x8000, 0x100000, 0x800


def node(index: int, name: str, state: int = IDLE, **values: object) -> dict[str, object]:
    ordinary = {
        "hostname": name,
        "cpus": 4,
        "sockets": 4,
        "cores_per_socket": 1,
        "threads_per_core": 1,
        "memory_mb": 4000,
        "weight": 1,
    }
    ordinary |= {"idle_cpus": 4, "version": "22.05.8"}
    return record("nodes", index=index, name=name, state=state, **{**ordinary, **values})


def partition(name: str, runs: list[list[int]], **values: object) -> dict[str, object]:
    ordinary = {
        "state": "UP",
        "oversubscribe": "NO",
        "preempt_mode": "OFF",
        "priority_tier": 1,
        "priority_job_factor": 1,
        "alloc_nodes": "ALL",
    }
    return record("partitions", name=name, node_indices=runs, **{**ordinary, **values})


def states_cluster() -> FakeClient:
    """Ten nodes, each in another state."""
    nodes = [
        node(0, "n1", MIXED, alloc_cpus=1, idle_cpus=3),
        node(1, "n2", ALLOCATED, alloc_cpus=4, idle_cpus=0),
        node(
            2,
            "n3",
            MIXED,
            flags=DRAIN,
            reason="bad disk",
            reason_user="root",
            alloc_cpus=1,
            idle_cpus=0,
            other_cpus=3,
        ),
        node(
            3,
            "n4",
            IDLE,
            flags=DRAIN,
            reason="check",
            reason_user="root",
            idle_cpus=0,
            other_cpus=4,
        ),
        node(4, "n5", DOWN, reason="broken", reason_user="root", idle_cpus=0, other_cpus=4),
        node(5, "n6", IDLE, flags=FAIL, reason="failing", reason_user="root"),
        node(6, "n7"),
        node(7, "n8", IDLE, flags=RESERVED),
        node(8, "n9", IDLE, flags=RESERVED | MAINT),
        node(9, "n10"),
    ]
    return FakeClient(nodes=nodes, partitions=[partition("debug", [[0, 10]], is_default=True)])


def formats_cluster() -> FakeClient:
    nodes = [
        node(
            i,
            f"n{i + 1}",
            features=["fast", "ib"],
            active_features=["fast", "ib"],
            tmp_disk_mb=1000,
            weight=5,
        )
        for i in range(4)
    ]
    nodes += [
        node(
            4 + i,
            f"m{i + 1}",
            features=["big"],
            cpus=8,
            sockets=2,
            cores_per_socket=2,
            threads_per_core=2,
            memory_mb=8000,
            idle_cpus=8,
        )
        for i in range(2)
    ]
    partitions = [
        partition("debug", [[0, 4]], is_default=True, max_time_s=1800, default_time_s=600),
        partition(
            "big",
            [[4, 2]],
            max_time_s=172800,
            max_nodes=2,
            priority_tier=3,
            oversubscribe="FORCE:2",
        ),
    ]
    return FakeClient(nodes=nodes, partitions=partitions)


def test_a_cluster_that_is_asked_for_is_named_over_the_listing() -> None:
    client = states_cluster()
    client.has_accounting = True
    assert run_command(sinfo, "-M", "test", "-o", "%P", client=client).lines[:2] == [
        "CLUSTER: test",
        "PARTITION",
    ]
    refused = run_command(sinfo, "-M", "far", client=client)
    assert (refused.code, refused.err.splitlines()[0]) == (
        1,
        "sinfo: error: No cluster 'far' known by database.",
    )


def test_every_column_of_every_field_is_one_of_its_table() -> None:
    for field in FIELDS.fields:
        if field.merge == "group":
            assert all(hasattr(Group, column) for column in field.columns), field.header
        else:
            assert (
                set(field.columns) <= (PARTITIONS if field.merge == "partition" else NODES).keys()
            ), field.header


def test_the_default_listing_orders_states_as_slurm_does() -> None:
    assert run_command(sinfo, client=states_cluster()).lines == [
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST",
        "debug*       up   infinite      1  maint n9",
        "debug*       up   infinite      1   fail n6",
        "debug*       up   infinite      1   drng n3",
        "debug*       up   infinite      1  drain n4",
        "debug*       up   infinite      1   resv n8",
        "debug*       up   infinite      1    mix n1",
        "debug*       up   infinite      1  alloc n2",
        "debug*       up   infinite      2   idle n[7,10]",
        "debug*       up   infinite      1   down n5",
    ]


def test_node_format_has_one_line_a_node_in_the_order_of_names() -> None:
    lines = run_command(sinfo, "-N", client=states_cluster()).lines
    assert lines[:2] == ["NODELIST   NODES PARTITION STATE ", "n1             1    debug* mix   "]
    assert lines[-1] == "n10            1    debug* idle  "


def test_reasons_are_listed_for_nodes_out_of_service() -> None:
    assert run_command(sinfo, "-R", "-o", "%E|%u|%U|%N", client=states_cluster()).lines == [
        "REASON|USER|USER|NODELIST",
        "failing|root|root(0)|n6",
        "bad disk|root|root(0)|n3",
        "check|root|root(0)|n4",
        "broken|root|root(0)|n5",
    ]


def test_counts_are_by_use() -> None:
    assert run_command(sinfo, "-h", "-o", "%A %F %C", client=states_cluster()).lines == [
        "3/5 3/5/2/10 6/23/11/40"
    ]


def test_summary_has_one_line_a_partition() -> None:
    assert run_command(sinfo, "-s", client=states_cluster()).lines == [
        "PARTITION AVAIL  TIMELIMIT   NODES(A/I/O/T) NODELIST",
        "debug*       up   infinite         3/5/2/10 n[1-10]",
    ]


def test_complete_states_name_all_flags() -> None:
    lines = run_command(
        sinfo, "-N", "-h", "-O", "nodelist:6,statecomplete:30", client=states_cluster()
    ).lines
    assert [line.split()[1] for line in lines] == [
        "mixed", "allocated", "allocated+drain", "idle+drain", "down", "idle+fail", "idle",
        "idle+reserved", "idle+maintenance+reserved", "idle",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "nodes"),
    [
        (["-t", "idle"], "n[4,6-10]"),
        (["-t", "drained"], "n4"),
        (["-t", "draining"], "n3"),
        (["-t", "drain"], "n[3-4]"),
        (["-t", "alloc,mix"], "n[1-3]"),
        (["-t", "mix&drain"], None),
        (["-t", "drain&idle,alloc"], None),
        (["-n", "n[1-2]"], "n[1-2]"),
        (["-p", "nosuch"], None),
        (["-d"], None),
    ],
)
def test_filters_keep_the_nodes_they_name(arguments: list[str], nodes: str | None) -> None:
    assert run_command(sinfo, "-h", "-o", "%N", *arguments, client=states_cluster()).lines == (
        [] if nodes is None else [nodes]
    )


@pytest.mark.parametrize(
    ("letter", "lines"),
    [
        ("a", ["AVAIL", "up"]),
        ("b", ["ACTIVE_FEATURES", "fast,ib", "(null)"]),
        ("B", ["MAX_CPUS_PER_NODE", "UNLIMITED"]),
        ("c", ["CPUS", "4+"]),
        ("d", ["TMP_DISK", "0+"]),
        ("D", ["NODES", "6"]),
        ("E", ["REASON", "none"]),
        ("f", ["AVAIL_FEATURES", "fast,ib", "big"]),
        ("g", ["GROUPS", "all"]),
        ("h", ["OVERSUBSCRIBE", "NO", "FORCE:2"]),
        ("H", ["TIMESTAMP", "Unknown"]),
        ("l", ["TIMELIMIT", "30:00", "2-00:00:00"]),
        ("L", ["DEFAULTTIME", "10:00", "n/a"]),
        ("m", ["MEMORY", "4000+"]),
        ("n", ["HOSTNAMES", "n1", "n2", "n3", "n4", "m1", "m2"]),
        ("N", ["NODELIST", "m[1-2],n[1-4]"]),
        ("p", ["PRIO_TIER", "1", "3"]),
        ("P", ["PARTITION", "debug*", "big"]),
        ("s", ["JOB_SIZE", "1-infinite", "1-2"]),
        ("u", ["USER", "Unknown"]),
        ("V", ["CLUSTER", "N/A"]),
        ("z", ["S:C:T", "2+:1+:1+"]),
    ],
)
def test_letters_print_what_slurm_prints(letter: str, lines: list[str]) -> None:
    assert run_command(sinfo, "-o", f"%{letter}", client=formats_cluster()).lines == lines


def test_exact_splits_lines_that_differ_in_configuration() -> None:
    assert run_command(sinfo, "-e", "-h", "-o", "%c %N", client=formats_cluster()).lines == [
        "4 n[1-4]",
        "8 m[1-2]",
    ]


def test_an_unknown_letter_is_printed_as_it_stands() -> None:
    result = run_command(sinfo, "-h", "-o", "%i", client=formats_cluster())
    assert (result.lines, result.err) == (["%i"], "Invalid node format specification: i\n")


def test_all_fields_are_forty_two() -> None:
    assert (
        len(run_command(sinfo, "-h", "-o", "%all", client=formats_cluster()).lines[0].split("|"))
        == 42
    )


def test_partitions_without_nodes_are_shown() -> None:
    client = FakeClient(
        nodes=[node(0, "n1")], partitions=[partition("debug", [[0, 1]]), partition("empty", [])]
    )
    assert (
        run_command(sinfo, "-h", client=client).lines[1]
        == "empty        up   infinite      0    n/a "
    )
    assert (
        run_command(sinfo, "-h", "-s", client=client).lines[1]
        == "empty        up   infinite          0/0/0/0 "
    )
    shown = run_command(sinfo, "-h", "-o", "%R|%b|%f|%G|%E|%H|%u|%U|%v|", client=client).lines[1]
    assert shown == "empty|(null)|(null)|(null)|none|Unknown|root|root(0)|N/A|"
    assert len(run_command(sinfo, "-h", "-o", "%a %l %D", client=client).lines) == 1, (
        "its line needs its name"
    )


def test_long_listing_has_a_date_line_and_cuts_wide_texts() -> None:
    client = FakeClient(
        nodes=[node(0, "n1")],
        partitions=[partition("excl", [[0, 1]], oversubscribe="EXCLUSIVE", allow_groups=["root"])],
    )
    lines = run_command(sinfo, "-l", client=client).lines
    assert (
        lines[1] == "PARTITION AVAIL  TIMELIMIT   JOB_SIZE ROOT OVERSUBS     GROUPS  NODES       "
        "STATE NODELIST"
    )
    assert (
        lines[2] == "excl         up   infinite 1-infinite   no EXCLUSIV       root      1        "
        "idle n1"
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["--nosuch"],
            "sinfo: unrecognized option '--nosuch'\nTry \"sinfo --help\" for more information\n",
        ),
        (["-i", "abc"], "sinfo: error: Error: invalid entry for --iterate=abc\n"),
        (["-i", "abc", "-t", "x", "-1"], "sinfo: error: Error: invalid entry for --iterate=abc\n"),
        (
            ["-M", "far"],
            (
                "sinfo: error: Problem talking to database\n"
                "sinfo: error: 'far' can't be reached now, or it is an invalid entry for "
                "--cluster."
                "  Use 'sacctmgr list clusters' to see available clusters.\n"
            ),
        ),
        (
            ["-o"],
            (
                "sinfo: option requires an argument -- 'o'\n"
                'Try "sinfo --help" for more information\n'
            ),
        ),
    ],
)
def test_mistakes_are_answered_in_slurms_words(arguments: list[str], error: str) -> None:
    result = run_command(sinfo, *arguments, client=formats_cluster())
    assert (result.code, result.err) == (1, error)


def test_contrary_variables_are_complained_of_before_the_line_is_read() -> None:
    environ = {"SINFO_ALL": "1", "SINFO_PARTITION": "debug"}
    result = run_command(sinfo, "-V", client=formats_cluster(), environ=environ)
    assert (result.code, result.lines) == (1, [])
    assert result.err.startswith("sinfo: error: Conflicting options, SINFO_ALL and SINFO_PART")


@pytest.mark.parametrize("more", [[], ["-t", ""], ["-t", "idle"], ["-1"], ["-o", "%P", "-l"]])
def test_an_unknown_state_is_answered_with_all_states(more: list[str]) -> None:
    result = run_command(sinfo, "-t", "idle,bogus", *more, client=formats_cluster())
    assert result.code == 1
    assert result.err.startswith(
        'sinfo: error: Bad state string: "bogus"\nsinfo: error: valid states: unknown,down,idle,'
    )


def test_a_controller_that_cannot_be_reached_is_said_so() -> None:
    client = formats_cluster()
    client.answers["Query"] = RefusedError(
        1005, "Unable to contact slurm controller (connect failure)"
    )
    result = run_command(sinfo, client=client)
    assert (result.code, result.err) == (
        1,
        "slurm_load_partitions: Unable to contact slurm controller (connect failure)\n",
    )


def test_reservations_have_a_line_each() -> None:
    far = record("reservations", name="far", start_time=2051222400, end_time=2051226000, nodes="n1")
    long = record(
        "reservations",
        name="averylongreservationname",
        start_time=2053900800,
        end_time=2054073600,
        nodes="n[1-3]",
        is_active=True,
    )
    both = FakeClient(reservations=[far, long])
    lines = run_command(sinfo, "-T", client=both).lines
    assert [line.split() for line in lines[1:]] == [
        ["far", "INACTIVE", timestamp(2051222400), timestamp(2051226000), "01:00:00", "n1"],
        [
            "averylongreservationname",
            "ACTIVE",
            timestamp(2053900800),
            timestamp(2054073600),
            "2-00:00:00",
            "n[1-3]",
        ],
    ]
    assert (
        lines[0]
        == "RESV_NAME                    STATE           START_TIME             END_TIME     "
        "DURATION  NODELIST"
    )
    assert lines[1].startswith("far                       INACTIVE  20")
    assert (
        run_command(sinfo, "-T", "-h", client=both).lines[0].startswith("far        INACTIVE  20")
    )
    assert run_command(sinfo, "-T", client=FakeClient()).out == "No reservations in the system\n"


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        # a partition without nodes has no line of its own if nothing of it is shown
        (["-o", "%c"], 1),
        (["-p", ""], 0),
        (["-n", "n[1", "-o", "%N"], 0),
        (["-S", "?", "-o", "%D"], 1),
    ],
)
def test_what_names_nothing_shows_nothing_and_is_no_error(arguments: list[str], lines: int) -> None:
    partitions = [
        record("partitions", name="debug", state="UP", node_indices=[[0, 1]]),
        record("partitions", name="empty", state="UP", node_indices=[]),
    ]
    client = FakeClient(partitions=partitions, nodes=[record("nodes", index=0, name="n1", state=2)])
    result = run_command(sinfo, "-h", *arguments, client=client)
    assert (result.code, len(result.lines), result.err) == (0, lines, "")


def test_one_line_for_each_node_and_partition_even_if_no_partition_is_shown() -> None:
    partitions = [
        record("partitions", name=name, state="UP", node_indices=[[0, 1]]) for name in ("a", "b")
    ]
    client = FakeClient(
        partitions=partitions, nodes=[record("nodes", index=0, name="n1", state=1, reason="x")]
    )
    assert run_command(sinfo, "-h", "-N", "-o", "%N", client=client).lines == ["n1", "n1"]
    assert run_command(sinfo, "-h", "-RN", client=client).lines[0].split() == [
        "n1",
        "1",
        "a",
        "down",
    ]


def test_a_cut_partition_keeps_the_star_of_the_default_one_and_a_negative_width_hides_a_field() -> (
    None
):
    client = FakeClient(
        partitions=[
            record("partitions", name="debug", is_default=True, state="UP", node_indices=[])
        ]
    )
    assert run_command(sinfo, "-h", "-o", "%4P|", client=client).lines == ["deb*|"]
    assert run_command(sinfo, "-h", "-O", "partition:-4,nodes:1", client=client).lines == ["0"]


def test_a_format_and_the_long_listing_go_not_together() -> None:
    said = (
        "sinfo: fatal: Options -o(--format) and -l(--long) are mutually exclusive. Please "
        "remove one and retry.\n"
    )
    for option in (["-o", "%P"], ["-O", "partition"]):
        outcome = run_command(sinfo, "-l", *option, client=states_cluster())
        assert (outcome.code, outcome.out, outcome.err) == (1, "", said)


def test_of_two_formats_the_last_one_counts_and_is_read_by_names() -> None:
    assert run_command(
        sinfo, "-h", "-o", "%P", "-O", "nodes:3,cpus", client=states_cluster()
    ).out.startswith("10 ")
    assert (
        "Invalid job format specification: %P"
        in run_command(sinfo, "-O", "nodes", "-o", "%P", client=states_cluster()).err
    )


@pytest.mark.parametrize("option", ["-R", "-N", "-s"])
def test_other_listings_have_formats_of_their_own(option: str) -> None:
    plain = run_command(sinfo, option, client=states_cluster()).out
    assert (
        run_command(sinfo, option, client=states_cluster(), environ={"SINFO_FORMAT": "%P"}).out
        == plain
    )


def test_without_a_controller_the_document_says_so() -> None:
    client = states_cluster()
    client.answers["Query"] = RefusedError(
        1005, "Unable to contact slurm controller (connect failure)"
    )
    outcome = run_command(sinfo, "--json", client=client)
    document = json.loads(outcome.out)
    assert (outcome.code, document["errors"], document["nodes"]) == (
        0,
        [{"error": "Unspecified error", "errno": -1}],
        [],
    )


def test_verbose_names_the_options_and_what_the_format_needs() -> None:
    said = run_command(sinfo, "-v", client=states_cluster()).lines
    assert said[:5] == [
        "-" * 29,
        "dead        = false",
        "exact       = 0",
        "filtering   = false",
        "format      = " + _DEFAULT,
    ]
    assert {
        "part_field  = true",
        "node_field  = false",
        "nodes       = n/a",
        "states      = (null)",
        "verbose     = 1",
    } <= set(said)
    assert {
        "default_time_flag =false",
        "state_flag      = true",
        "priority_tier_flag   = false",
        "oversubscribe_flag      = false",
    } <= set(said)
    # under an empty line and the date
    assert said.index("PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST") == 18 + 1 + 29 + 1 + 2
    asked = set(
        run_command(
            sinfo, "-vv", "-h", "-R", "-p", "debug", "-o", "%E %c", client=states_cluster()
        ).lines
    )
    assert {
        "filtering   = true",
        "format      = %E %c",
        "no_header   = true",
        "part_field  = false",
        "states      = down",
        "verbose     = 2",
    } <= asked
    assert {
        "all_flag        = true",
        "cpus_flag       = true",
        "reason_flag     = true",
        "state_flag      = false",
    } <= asked


_DEFAULT = "partition:9 ,available:.5 ,time:.10 ,nodes:.6 ,statecompact:.6 ,nodelist:0"


def test_all_partitions_and_some_are_not_asked_for_together() -> None:
    refused = run_command(sinfo, "-a", "-p", "debug", client=states_cluster())
    assert (refused.code, refused.err) == (
        1,
        (
            "sinfo: error: Conflicting options, -a and -p, specified. Please choose one or the "
            "other.\n"
        ),
    )
    refused = run_command(
        sinfo, client=states_cluster(), environ={"SINFO_ALL": "1", "SINFO_PARTITION": "debug"}
    )
    assert "SINFO_ALL and SINFO_PARTITION" in refused.err
    assert run_command(
        sinfo, "-h", "-a", "-o", "%R", client=formats_cluster(), environ={"SINFO_PARTITION": "big"}
    ).lines == ["debug", "big"]


def test_in_a_federation_the_cluster_is_named() -> None:
    client = states_cluster()
    plain = run_command(sinfo, "--federation", client=client).lines
    client.tables["federation"] = [record("federation", cluster="lo")]
    assert plain == run_command(sinfo, "--federation", "--local", client=client).lines
    said = run_command(sinfo, "--federation", client=client).lines
    assert said[0] == "PARTITION CLUSTER  AVAIL  TIMELIMIT  NODES  STATE NODELIST"
    assert said[1] == "debug*    lo          up   infinite      1  maint n9"
    assert run_command(sinfo, "-h", "-o", "%V", client=client).lines[0] == "N/A"


def test_headings_of_nodes_are_not_cut_where_they_stand_at_the_right() -> None:
    said = run_command(sinfo, "-o", "%.3N|%3N|%.3n|%.3P", client=states_cluster())
    assert said.lines[0] == "NODELIST|NOD|HOSTNAMES|PAR"
