"""sprio and sshare: what they print. The lines are those of 22.05.8 for the same jobs and
associations.

Covers: commands/sshare, controller/views/priorities.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from controller_harness import START, Harness, make_tables
from fake_controller import FakeClient, record, run_command

from understudy.commands.shared.client import RefusedError
from understudy.commands.sprio import sprio
from understudy.commands.sshare import sshare
from understudy.controller.priority.accounts import AccountsOf
from understudy.controller.priority.basic import BasicPriority
from understudy.controller.priority.multifactor import MultifactorPriority
from understudy.controller.priority.options import PriorityOptions
from understudy.controller.views.priorities import priority_rows, share_rows
from understudy.model.associations import SHARES_OF_PARENT, Association, AssociationState
from understudy.model.records import accepts, columns

CONFIG = [
    record("config", name="PriorityType", value="priority/multifactor"),
    record("config", name="PriorityWeightTRES", value="CPU=200,Mem=300"),
]
WEIGHTS = {
    "age": 1000,
    "association": 0,
    "fair_share": 10000,
    "job_size": 1000,
    "partition": 1000,
    "qos": 2000,
    "cpu": 200,
    "mem": 300,
}
TITLE = (
    "          JOBID PARTITION   PRIORITY       SITE        AGE  FAIRSHARE    JOBSIZE  "
    "PARTITION        QOS                 TRES"
)


def waiting(job_id, priority, **values):
    known = {
        "partition": "debug",
        "user_name": "root",
        "weighted_fair_share": 2000.0,
        "normal_fair_share": 0.2,
    }
    known |= {
        "weighted_job_size": 218.75,
        "normal_job_size": 0.21875,
        "weighted_partition": 100.0,
        "normal_partition": 0.1,
    }
    known |= {
        "weighted_tres": [["cpu", 37.5], ["mem", 75.0]],
        "normal_tres": [["cpu", 0.1875], ["mem", 0.25]],
    }
    return record("priorities", job_id=job_id, priority=priority, **{**known, **values})


def priorities(*rows):
    weights = [
        record("priority_weights", name=name, weight=float(weight))
        for name, weight in WEIGHTS.items()
    ]
    return FakeClient(config=CONFIG, priorities=list(rows), priority_weights=weights)


def test_contributions_are_rounded():
    said = run_command(sprio, client=priorities(waiting(7333, 2431)))
    assert said.lines == [
        TITLE,
        (
            "           7333 debug           2431          0          0       2000        219     "
            "   100          0        cpu=38,mem=75"
        ),
    ]


def test_the_long_format_has_users_associations_and_nice_values():
    said = run_command(sprio, "-l", "-h", client=priorities(waiting(7333, 2431, nice=20)))
    expected = (
        "           7333 debug         root       2431          0          0          0       "
        "2000        219        100          0          20"
    )
    assert said.lines == [expected + "        cpu=38,mem=75"]


def test_factors_without_their_weights():
    said = run_command(sprio, "-n", client=priorities(waiting(7329, 3075, site=644)))
    assert said.lines == [
        (
            "          JOBID PARTITION PRIORITY   AGE        FAIRSHARE  JOBSIZE    PARTITION  QOS "
            "       TRES                "
        ),
        (
            "           7329 debug     0.00000071 0.0000000  0.2000000  0.2187500  0.1000000  "
            "0.0000000  cpu=0.19,mem=0.25   "
        ),
    ]


def test_a_priority_is_not_cut_before_it_is_made_a_fraction_unless_it_was_set():
    client = priorities(waiting(1, 2431), waiting(2, 5000, is_set=True))
    assert run_command(sprio, "-h", "-o", "%i %y", client=client).lines == [
        f"1 {2431.25 / 0xFFFFFFFF:.14f}",
        f"2 {5000:.14f}",
    ]


def test_weights():
    assert run_command(sprio, "-w", client=priorities()).lines == [
        TITLE,
        (
            "        Weights                               1       1000      10000       1000     "
            "  1000       2000      CPU=200,Mem=300"
        ),
    ]
    assert run_command(sprio, "-w", "-n", "-h", client=priorities()).lines == [
        (
            "        Weights                      1000       10000      1000       1000       "
            "2000                           "
        )
    ]


@pytest.mark.parametrize(
    ("weights", "options", "letters"),
    [
        ({"age": 9, "cpu": 1}, [], "JOBID PARTITION PRIORITY SITE AGE TRES"),
        ({"age": 9, "cpu": 0}, ["-u", "1"], "JOBID PARTITION USER PRIORITY SITE AGE"),
        ({"association": 1, "qos": 3}, ["-n"], "JOBID PARTITION PRIORITY ASSOC QOS"),
        (
            {},
            ["-l"],
            (
                "JOBID PARTITION USER PRIORITY SITE AGE ASSOC FAIRSHARE JOBSIZE PARTITION QOS "
                "NICE TRES"
            ),
        ),
        ({}, ["-o", ""], ""),
    ],
)
def test_parts_without_a_weight_are_not_shown_unless_all_are(weights, options, letters):
    client = priorities(waiting(7333, 2431, user_id=1))
    client.tables["priority_weights"] = [
        record("priority_weights", name=name, weight=float(weight))
        for name, weight in weights.items()
    ]
    assert run_command(sprio, *options, client=client).lines[0].split() == letters.split()


def test_an_empty_list_of_jobs_means_all():
    assert run_command(sprio, "-h", "-o", "%i", "-j", client=priorities(waiting(1, 10))).lines == [
        "1"
    ]


def test_jobs_are_chosen_and_sorted():
    client = priorities(waiting(1, 10), waiting(2, 30, user_id=1), waiting(3, 20, partition="long"))
    assert run_command(sprio, "-h", "-o", "%i", "-S", "-y", client=client).lines == ["2", "3", "1"]
    assert run_command(sprio, "-h", "-o", "%i", "-u", "1", client=client).lines == ["2"]
    assert run_command(sprio, "-h", "-o", "%i", "-p", "long", client=client).lines == ["3"]
    assert run_command(sprio, "-h", "-o", "%i", "-j", "1,3", client=client).lines == ["1", "3"]
    assert run_command(sprio, "-j", "99", client=client).lines == [
        "Unable to find jobs matching user/id(s) specified"
    ]


def test_other_plugins_have_nothing_to_show():
    client = FakeClient(config=[record("config", name="PriorityType", value="priority/basic")])
    said = run_command(sprio, client=client)
    assert (said.code, said.out) == (1, "")
    assert (
        said.err == "You are not running a supported priority plugin\n(priority/basic).\n"
        "Only 'priority/multifactor' is supported.\n"
    )
    said = run_command(sprio, "-j", "1,abc", client=client)
    assert (said.code, said.err) == (1, "sprio: error: Invalid job id: abc\n")
    said = run_command(sprio, "-u", "nosuchuser", "-j", "abc", client=client)
    assert said.err.split() == (
        [
            "sprio:",
            "error:",
            "Invalid",
            "user:",
            "nosuchuser",
            "sprio:",
            "error:",
            "Invalid",
            "job",
            "id:",
            "abc",
        ]
    )


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [(sprio, 1, "slurm_load_ctl_conf error"), (sshare, 255, "Couldn't get shares from controller")],
)
def test_a_controller_that_does_not_answer_is_an_error(command, code, text):
    client = FakeClient()
    client.answers["Query"] = RefusedError(
        1005, "Unable to contact slurm controller (connect failure)"
    )
    said = run_command(command, client=client)
    assert (said.code, said.out, said.err) == (
        code,
        "",
        f"{text}: Unable to contact slurm controller (connect failure)\n",
    )


def test_an_unknown_letter_is_named_and_prints_nothing():
    said = run_command(sprio, "-h", "-o", "%i %x", client=priorities(waiting(1, 10)))
    assert (said.lines, said.err) == (["1 "], "sprio: error: Invalid job format specification: x\n")


def test_a_task_of_an_array_is_a_job_where_it_is_there():
    task = record("jobs", job_id=7, array_job_id=5, array_task_id=2)
    plugin = record("config", name="PriorityType", value="priority/basic")
    client = FakeClient(config=[plugin], jobs=[task])
    assert run_command(sprio, "-j", "5_2", client=client).err.startswith("You are not running")
    for word in ("5_3", "5_", "5_x", "5_2+1"):
        said = run_command(sprio, "-j", word, client=client)
        assert said.err == f"sprio: error: Invalid job id: {word}\n"


def test_a_job_that_is_no_number_is_refused():
    said = run_command(sprio, "-j", "1,abc", client=priorities(waiting(1, 10)))
    assert (said.code, said.lines, said.err) == (1, [], "sprio: error: Invalid job id: abc\n")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("-j 1_99 more", "sprio: error: Invalid job id: 1_99\n"),
        ("-j 0", "sprio: error: Invalid job id: 0\n"),
        ("-j abc -u nosuch", "{user}sprio: error: Invalid job id: abc\n"),
        ("-u nosuch more", "{user}sprio: error: Unrecognized option: more\n"),
        ("-j 1_2 -l -o %i -u nosuch", "{user}sprio: fatal: Options -o(--format) and -l(--long)"),
        ("-u 3999999", "sprio: error: Invalid user: 3999999\n\n"),
    ],
)
def test_users_are_looked_at_first_then_jobs_then_other_words(line, error):
    said = run_command(sprio, *line.split(), client=priorities(waiting(1, 10)))
    error = error.format(user="sprio: error: Invalid user: nosuch\n\n")
    assert said.err.startswith(error)
    assert said.err == error or "-u 3" in line or "-l" in line


def test_words_get_the_usage_and_verbose_tells_what_was_asked_for():
    said = run_command(sprio, "foo", client=priorities(waiting(1, 10)))
    assert (said.code, said.lines[0]) == (
        1,
        "Usage: sprio [-j jid[s]] [-u user_name[s]] [-o format] [-p partitions]",
    )
    assert run_command(sprio, "-v", "-h", "-o", "%i", client=priorities(waiting(1, 10))).lines[
        1:3
    ] == ["format     = %i", "job_flag   = 0"]


# --- from the controller --------------------------------------------------------------------------

USE = {"root": 444.0, "bin": 39.0, "daemon": 46.0}


@pytest.fixture
def core():
    """The tree of the recorded sshare, with its use: root uses its own account, bin chem, daemon
    opt.
    """
    tables = make_tables()
    core = Harness(tables).core
    rows = [
        Association(1, "conform", "root", position=0),
        Association(2, "conform", "root", "root", parent_id=1),
        Association(3, "conform", "phys", parent_id=1, position=1),
        Association(4, "conform", "chem", parent_id=1, position=2),
        Association(5, "conform", "opt", parent_id=3, position=3),
        Association(6, "conform", "phys", "daemon", parent_id=3, position=1),
        Association(7, "conform", "phys", "root", parent_id=3, position=2),
        Association(8, "conform", "opt", "daemon", parent_id=5),
        Association(9, "conform", "chem", "bin", parent_id=4),
    ]
    core.associations = AssociationState("conform", 1, associations=rows)
    options = PriorityOptions(
        weight_fair_share=10000, weight_job_size=1000, tres_weights={"cpu": 200.0}
    )
    plugin = MultifactorPriority(
        tables, options, AccountsOf(lambda: core.associations, core.users.user_name), START
    )
    place = plugin.tree.place_of
    plugin.ledger.use[[place[2], place[9], place[8]]] = USE["root"], USE["bin"], USE["daemon"]
    plugin.fair_share = plugin._fair_share()
    core.priorities = plugin
    return core


def shares(core):
    return FakeClient(config=CONFIG, shares=share_rows(core, START))


def test_shares_and_use_of_a_tree(core):
    said = run_command(sshare, "-a", client=shares(core))
    assert said.lines == [
        (
            "Account                    User  RawShares  NormShares    RawUsage  EffectvUsage  "
            "FairShare "
        ),
        (
            "-------------------- ---------- ---------- ----------- ----------- ------------- "
            "---------- "
        ),
        (
            "root                                          0.000000         529      1.000000     "
            "       "
        ),
        (
            " root                      root          1    0.333333         444      0.839319   "
            "0.200000 "
        ),
        (
            " chem                                    1    0.333333          39      0.073724     "
            "       "
        ),
        (
            "  chem                      bin          1    1.000000          39      1.000000   "
            "1.000000 "
        ),
        (
            " phys                                    1    0.333333          46      0.086957     "
            "       "
        ),
        (
            "  phys                   daemon          1    0.333333           0      0.000000   "
            "0.800000 "
        ),
        (
            "  phys                     root          1    0.333333           0      0.000000   "
            "0.800000 "
        ),
        (
            "  opt                                    1    0.333333          46      1.000000     "
            "       "
        ),
        (
            "   opt                   daemon          1    1.000000          46      1.000000   "
            "0.400000 "
        ),
    ]


def test_level_fair_share_is_shares_over_use(core):
    said = run_command(
        sshare, "-a", "-n", "-P", "-o", "account,user,levelfs,normusage", client=shares(core)
    )
    assert said.lines[:4] == [
        "root|||",
        " root|root|0.397147|0.839319",
        " chem||4.521368|0.073724",
        "  chem|bin|1.000000|0.073724",
    ]
    assert said.lines[5] == "  phys|daemon|inf|0.000000"


def test_formats_that_are_given_one_after_the_other_are_joined(core):
    line = ["-n", "-P", "-o", "account", "--format=user", "-A", "phys", "-u", "daemon"]
    assert run_command(sshare, *line, client=shares(core)).lines[-1] == " phys|daemon"
    line = ["-n", "-o", "user%5,account", "-o", "user%8", "-A", "chem", "-u", "bin"]
    # a field has one width
    assert run_command(sshare, *line, client=shares(core)).lines[-1].split("chem")[0] == (
        "     bin  "
    )


def test_accounts_and_users_are_chosen(core):
    client = shares(core)
    only = "account,user"
    assert run_command(sshare, "-n", "-P", "-o", only, "-u", "bin", client=client).lines == [
        "root|",
        " chem|",
        "  chem|bin",
        " phys|",
        "  opt|",
    ]
    assert run_command(sshare, "-n", "-P", "-o", only, "-a", "-A", "phys", client=client).lines == [
        "phys|",
        " phys|daemon",
        " phys|root",
    ]
    assert run_command(
        sshare, "-n", "-P", "-o", only, "-U", "-u", "daemon", client=client
    ).lines == ["phys|daemon", "opt|daemon"]
    assert (
        run_command(sshare, "-o", "foo", client=client).err
        == "sshare: error: Invalid field requested: "
        '"foo"\n'
    )


def test_of_users_and_all_the_last_one_counts_and_a_number_of_nobody_ends_it(core):
    client = shares(core)

    def users(*words):
        lines = run_command(sshare, "-n", "-P", "-o", "user", *words, client=client).lines
        return sorted({line.strip() for line in lines if line.strip()})

    everybody = users("-a")
    assert {"bin", "daemon", "root"} <= set(everybody)
    assert users("-u", "nosuch", "-a") == everybody
    assert users("-a", "-u", "BIN") == ["bin"]
    assert run_command(sshare, "-n", "-a", "-A", "", client=client).out == ""
    assert users("-u", "") == users() != users("-u", "nosuch")
    assert users("-u", ",") == users("-a", "-u", "") == users()
    said = run_command(sshare, "-u", "bin,3999999", client=client)
    assert (said.code, said.out, said.err) == (1, "", "Invalid user id: 3999999\n")


def test_without_fair_tree_shares_are_of_the_whole(core):
    core.priorities.reconfigure(
        replace(core.priorities.options, flags=frozenset({"NO_FAIR_TREE"})), START
    )
    rows = {(row["account"], row["user"]): row for row in share_rows(core, START)}
    assert rows["opt", "daemon"]["normal_shares"] == pytest.approx(1 / 9)
    assert not rows["opt", "daemon"]["is_tree"]
    assert np.isfinite(rows["opt", "daemon"]["fair_share"])


def test_where_priorities_know_no_shares_associations_are_shown_bare(core):
    core.priorities = BasicPriority(core.tables)
    said = run_command(sshare, "-a", "-n", "-P", client=FakeClient(shares=share_rows(core, START)))
    assert said.lines[:4] == [
        "root||||0|0.000000|",
        " root|root|1||0|0.000000|0.000000",
        " chem||1||0|0.000000|",
        "  chem|bin|1||0|0.000000|0.000000",
    ]


def test_waiting_jobs_have_a_row_for_each_partition(core):
    plugin = core.priorities
    harness = Harness(core.tables)
    harness.core.priorities, harness.core.associations = plugin, core.associations
    harness.submit(min_nodes=4, exclusive=True)
    blocked = harness.submit(partition="main,small")
    harness.submit(hold=True)
    rows = priority_rows(harness.core, START)
    assert [(row["job_id"], row["partition"]) for row in rows] == [
        (blocked.job_id, "main"),
        (blocked.job_id, "small"),
    ]
    assert rows[0]["weighted_job_size"] == pytest.approx(1000 * (1 / 4 + 1 / 16) / 2)
    (name, weighted), (_, normal) = rows[0]["weighted_tres"][0], rows[0]["normal_tres"][0]
    assert (name, weighted) == ("cpu", pytest.approx(200 * normal))


def test_all_columns_hold_what_their_tables_say(core):
    harness = Harness(core.tables)
    harness.core.priorities, harness.core.associations = core.priorities, core.associations
    harness.submit(min_nodes=4, exclusive=True)
    harness.submit(priority=5000)
    harness.submit()
    for table in ("priorities", "priority_weights", "shares"):
        rows = harness.query(table, *columns(table))
        assert rows
        assert all(
            accepts(table, name, value)
            for row in rows
            for name, value in zip(columns(table), row, strict=True)
        )


def test_what_no_period_has_seen_yet_has_no_normal_use(core):
    shares(core)
    rows = [
        *core.associations.associations.values(),
        Association(10, "conform", "chem", "sys", parent_id=4),
        Association(11, "conform", "new", parent_id=1),
    ]
    rows.append(Association(12, "conform", "new", "bin", parent_id=11, shares=SHARES_OF_PARENT))
    core.associations = AssociationState("conform", 2, associations=rows)
    columns = (
        "-a",
        "-n",
        "-P",
        "-o",
        "account,user,normshares,normusage,effectvusage,fairshare,levelfs",
    )
    new = [
        line
        for line in run_command(sshare, *columns, client=shares(core)).lines
        if "sys" in line or "new" in line
    ]
    assert new == [
        "  chem|sys|0.500000||0.000000|0.000000|0.000000",
        " new||0.250000||0.000000||0.000000",
        "  new|bin|0.250000||0.000000|0.000000|",
    ]


def test_an_order_by_a_field_that_there_is_not_is_refused():
    outcome = run_command(sprio, "-S", "zz", client=priorities(waiting(1, 10)))
    assert (outcome.code, outcome.out, outcome.err) == (
        1,
        "",
        "sprio: error: Invalid sort specification: z\n",
    )


@pytest.mark.parametrize("is_tree", [True, False])
def test_the_long_form_has_the_level_of_a_fair_tree_whoever_is_asked_for(is_tree):
    root = record("shares", account="root", association_id=1, is_tree=is_tree)
    said = run_command(sshare, "-l", "-A", "nosuch", client=FakeClient(shares=[root]))
    assert "FairShare" in said.out.split()
    assert ("LevelFS" in said.out.split()) == is_tree


def test_root_has_a_level_where_no_plugin_counts_shares():
    root = record(
        "shares", account="root", association_id=1, is_tree=True, normal_shares=None,
        level_fair_share=0.0,
    )  # fmt: skip
    assert (
        "0.000000"
        in run_command(sshare, "-h", "-o", "levelfs", client=FakeClient(shares=[root])).out
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--jobs=7333", "7334_9"], "sprio: error: Invalid job id: 7334_9\n"),  # the latter counts
        (["--job", "7333", "7334", "x"], "sprio: error: Unrecognized option: 7334\n"),
        (["-j", "7333", "7334"], "sprio: error: Unrecognized option: 7334\n"),
        (["x"], "sprio: error: Unrecognized option: x\n"),
        (
            ["-o", "%i", "-l", "x"],
            "sprio: fatal: Options -o(--format) and -l(--long) are mutually ",
        ),
    ],
)
def test_what_is_too_much_is_said(words: list[str], said: str) -> None:
    answer = run_command(sprio, *words, client=priorities(waiting(7333, 2431)))
    assert answer.code == 1
    assert answer.err.startswith(said)
