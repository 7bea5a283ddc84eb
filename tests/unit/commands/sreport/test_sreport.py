"""sreport: the reports of 22.05.8 on the jobs of a real cluster, and what it refuses.

Covers: commands/sreport/figures.
"""

import pytest
from accounting_harness import House
from recorded_usage import DOWN, HOUR, JOBS

from understudy.accounting.core import Sender
from understudy.commands.sreport.figures import size_groups, text_of
from understudy.commands.sreport.sreport import sreport
from understudy.protocol.messages import AccountingRecords, EventRecord, GetAssociations, JobRecord

PERIOD = f"start=uts{HOUR} end=uts{HOUR + 7200}"
RULE = "-" * 80


@pytest.fixture(scope="module")
def house():
    house = House(clusters=())
    house.now = HOUR + 198
    size = {"cpu": 16, "mem": 16000, "node": 4, "billing": 16}
    house.accounting.handle(
        GetAssociations("conform", "127.0.0.1", 6817, "n[1-4]", size),
        Sender("controller", 0, is_daemon=True),
    )
    house.do("add account phys,chem", "add account opt parent=phys")
    house.do(
        "add user daemon account=opt defaultwckey=star", "add user bin account=chem defaultwckey=w1"
    )
    of = {
        (each.account, each.user): each.id for each in house.accounting.ledger.associations.values()
    }
    who = {2: ("root", "root", ""), 7: ("opt", "daemon", "star"), 8: ("chem", "bin", "w1")}
    records = []
    for number, job in enumerate(JOBS, 1):
        account, user, key = who[job["association_id"]]
        known = {
            "submit_time": HOUR,
            "restarts": 0,
            "user_id": 0,
            "group_id": 0,
            "wckey": key,
            "partition": "debug",
        }
        own = {"user": user, "account": account, "association_id": of[account, user]}
        records.append(JobRecord(job_id=number, **{**job, **known, **own}))
    records += [
        EventRecord(f"n{number}", each["start_time"], each["end_time"], 1, "x", 0, each["tres"])
        for number, each in enumerate(DOWN)
    ]
    house.tell(AccountingRecords("conform", records))
    house.now = HOUR + 7200 + 100
    yield house
    house.store.close()


def show(house, line):
    said = house.run("sreport", sreport, line)
    assert said.code == 0, said
    return said.out.splitlines()


def test_utilization_of_a_cluster(house):
    lines = show(house, f"cluster utilization {PERIOD}")
    assert lines[0] == lines[3] == RULE
    assert lines[1].startswith("Cluster Utilization ")
    assert lines[2] == "Usage reported in CPU Minutes"
    assert lines[4:] == [
        "  Cluster Allocate     Down PLND Dow     Idle  Planned Reported ",
        "--------- -------- -------- -------- -------- -------- -------- ",
        "  conform       18        0        0     1844        5     1867 ",
    ]


def test_figures_as_percentages_and_of_other_resources(house):
    lines = show(house, f"-t secper cluster utilization {PERIOD}")
    assert lines[-3:] == [
        (
            "  Cluster         Allocated              Down         PLND Down              Idle    "
            "       Planned          Reported "
        ),
        (
            "--------- ----------------- ----------------- ----------------- ----------------- "
            "----------------- ----------------- "
        ),
        (
            "  conform       1066(0.95%)         20(0.02%)          0(0.00%)    110646(98.76%)    "
            "    300(0.27%)    112032(97.25%) "
        ),
    ]
    assert show(house, f"-n -t percent cluster utilization {PERIOD}") == [
        "  conform    0.95%    0.02%    0.00%   98.76%    0.27%   97.25% "
    ]
    assert show(
        house, f"-n -P -T cpu,mem cluster utilization {PERIOD} format=cluster,overc,tresc,tresn"
    ) == [
        "conform|0|16|cpu",
        "conform|0|16000|mem",
    ]


def test_accounts_have_what_was_used_below_them(house):
    lines = show(house, f"-n -t sec cluster AccountUtilizationByUser {PERIOD} tree")
    assert lines == [
        "  conform root                                               1066        0 ",
        "  conform  root                     root            root      979        0 ",
        "  conform  chem                                                40        0 ",
        "  conform   chem                     bin             bin       40        0 ",
        "  conform  phys                                                47        0 ",
        "  conform   opt                                                47        0 ",
        "  conform    opt                  daemon          daemon       47        0 ",
    ]
    assert show(house, f"-n -P -t percent cluster accountutil {PERIOD} users=bin") == [
        "conform|chem|bin|bin|0.04%|0.00%"
    ]


def test_users_come_by_what_they_used(house):
    lines = show(house, f"-t sec user top {PERIOD}")
    assert lines[1].startswith("Top 10 Users ")
    assert lines[1].endswith(" (7200 secs)")
    assert lines[4:] == [
        "  Cluster     Login     Proper Name         Account     Used   Energy ",
        "--------- --------- --------------- --------------- -------- -------- ",
        "  conform      root            root            root      979        0 ",
        "  conform    daemon          daemon             opt       47        0 ",
        "  conform       bin             bin            chem       40        0 ",
    ]
    assert show(house, f"-n -P user top {PERIOD} topcount=1") == ["conform|root|root|root|16|0"]
    assert show(house, f"-n -P -t sec cluster UserUtilizationByAccount {PERIOD} accounts=opt") == [
        "conform|daemon|daemon|opt|47|0"
    ]


def test_keys(house):
    assert show(house, f"-n -P -t sec cluster WCKeyUtilizationByUser {PERIOD}") == [
        "conform|star|||47",
        "conform|star|daemon|daemon|47",
        "conform|w1|||40",
        "conform|w1|bin|bin|40",
    ]
    assert (
        show(house, f"-n -P -t sec cluster UserUtilizationByWckey {PERIOD}")[0]
        == "conform|daemon|daemon|star|47"
    )


def test_job_sizes(house):
    lines = show(house, f"-t sec job SizesByAccount {PERIOD} flatview grouping=2,4")
    assert lines[2] == "Time reported in Seconds"
    assert lines[4:] == [
        "  Cluster   Account      0-1 CPUs      2-3 CPUs     >= 4 CPUs % of cluster ",
        "--------- --------- ------------- ------------- ------------- ------------ ",
        "  conform      chem             0            40             0        3.75% ",
        "  conform       opt             7            40             0        4.41% ",
        "  conform      root           341            30           608       91.84% ",
    ]
    assert show(house, f"-n -P -t sec job SizesByAccount {PERIOD}") == [
        "conform|root|1066|0|0|0|0|100.00%"
    ]
    assert show(house, f"-n -P -t sec job SizesByAccount {PERIOD} accounts=phys") == [
        "conform|phys|47|0|0|0|0|100.00%"
    ]
    assert show(house, f"-n -P -t sec job SizesByAccount {PERIOD} acctasparent") == [
        "conform|chem|40|0|0|0|0|45.98%",
        "conform|phys|47|0|0|0|0|54.02%",
    ]
    assert show(house, f"-n -P job SizesByAccount {PERIOD} printjobcount") == [
        "conform|root|27|0|0|0|0|100.00%"
    ]
    assert show(house, f"-n -P -t sec job SizesByAccountAndWckey {PERIOD} accounts=chem") == [
        "conform|chem:w1|40|0|0|0|0|100.00%"
    ]


def test_another_cluster_has_nothing(house):
    assert show(house, f"-n -M nix cluster utilization {PERIOD}") == []


def test_yesterday_is_the_default_and_only_whole_hours_that_are_over_count(house):
    title = show(house, f"cluster utilization start=uts{HOUR} end=now")[1]
    assert title == show(house, f"cluster utilization {PERIOD}")[1]
    assert "T00:00:00 - " in show(house, "cluster utilization")[1]
    assert show(house, "cluster utilization")[1].endswith("T23:59:59")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (
            "cluster foo",
            (
                'Not valid report foo\nValid cluster reports are, "AccountUtilizationByUser", '
                '"UserUtilizationByAccount"'
            ),
        ),
        ("foo", "invalid keyword: foo\n"),
        ("cl u", "Not valid report u\n"),
        ("r util", "invalid keyword: r\n"),
        ("resv", "too few arguments for keyword:resv\n"),
        ("exit 1", "too many arguments for keyword:exit\n"),
        ("verbose x", "too many arguments for verbose keyword\n"),
        ("user", "too few arguments for keyword:user\n"),
        ("-T foo cluster utilization", "sreport: fatal: No valid TRES given\n"),
        (f"user top {PERIOD} topcount=x", "sreport: error: Invalid value for TopCount (x)\n"),
        (f"user top {PERIOD} format=foo", " Unknown field 'foo'\n"),
    ],
)
def test_wrong_requests(house, line, complaint):
    said = house.run("sreport", sreport, line)
    assert said.code == 1
    assert said.err.startswith(complaint)


def test_an_unknown_unit_is_named_and_times_that_are_none_leave_the_default(house):
    said = house.run("sreport", sreport, "-t bad cluster utilization start=foo")
    assert (said.code, said.err) == (
        0,
        "unknown time format badInvalid time specification (pos=0): foo\n",
    )
    assert "Usage reported in CPU Minutes" in said.out
    said = house.run("sreport", sreport, "-t bad cluster")
    assert said.err == "unknown time format badtoo few arguments for keyword:cluster\n"


def test_times_are_those_of_the_nearest_hour(house):
    for minutes, hours in ((29, 0), (30, 1)):
        said = house.run(
            "sreport", sreport, f"user top start=uts{HOUR + 60 * minutes} end=uts{HOUR + 7200}"
        )
        assert f"({7200 - 3600 * hours} secs)" in said.out


def test_a_format_may_widen_texts_but_not_amounts(house):
    lines = show(house, f"cluster utilization {PERIOD} format=cluster%12,allocated%20")
    assert lines[4] == "     Cluster Allocate "


def test_words_are_reports_by_their_beginnings(house):
    for words, title in (
        ("cl ut", "Cluster Utilization "),
        ("job s", "Job Sizes "),
        ("job sizesbyw", "Job Sizes by Wckey "),
        ("u t", "Top 10 Users "),
    ):
        assert show(house, f"{words} {PERIOD}")[1].startswith(title)


def test_an_unknown_condition_is_named_and_passed_over(house):
    said = house.run("sreport", sreport, f"cluster utilization {PERIOD} foo=1")
    assert said.err == " Unknown condition: foo=1\nUse keyword set to modify value\n"
    assert said.out.endswith("  conform       18        0        0     1844        5     1867 \n")


def test_reports_on_sizes_print_the_fields_asked_for_and_name_users_that_are_none(house):
    lines = show(house, f"-P job sizesbyaccount {PERIOD} format=account,cluster grouping=5")
    assert lines[4] == "Account|Cluster|0-4 CPUs|>= 5 CPUs|% of cluster"
    said = house.run("sreport", sreport, f"job sizesbyaccount {PERIOD} users=no_such_user")
    assert said.err == "sreport: error: Invalid user id: no_such_user\n"
    said = house.run(
        "sreport", sreport, f"job sizesbyaccount {PERIOD} grouping=individual partitions=none"
    )
    assert (said.code, said.out, said.err) == (
        1,
        "",
        " We need a grouping list to set up the print.\n",
    )
    said = house.run("sreport", sreport, f"cluster utilization {PERIOD} names=x")
    assert said.err == " Unknown condition: names=x\nUse keyword set to modify value\n"


def test_groups_of_sizes():
    assert [title for title, _, _ in size_groups(None, "CPUs", [], "cpu")] == [
        "0-49 CPUs",
        "50-249 CPUs",
        "250-499 CPUs",
        "500-999 CPUs",
        ">= 1000 CPUs",
    ]
    jobs = [{"tres_allocated": {"cpu": cpus}} for cpus in (4, 1, 4)]
    assert [title for title, _, _ in size_groups(["individual"], "CPUs", jobs, "cpu")] == [
        "1 CPUs",
        "4 CPUs",
    ]
    assert text_of(3600, 7200, 60, has_percent=True) == "60(50.00%)"
    assert text_of(0, 0, 0, has_percent=True) == "0.00%"


@pytest.mark.parametrize(
    ("given", "titles"),
    [
        (["x"], ["0-4294967295 CPUs"]),
        ([], ["0-4294967295 CPUs"]),
        (["10", "x", "5"], ["0-9 CPUs", "10-4294967295 CPUs", "0-4 CPUs", ">= 5 CPUs"]),
        (["ind"], []),
    ],
)
def test_groups_are_numbers_as_far_as_they_begin_with_one(given, titles):
    assert [title for title, _, _ in size_groups(given, "CPUs", [], "cpu")] == titles


def test_lists_that_are_given_twice_add_up_and_counts_are_read_as_far_as_they_go(house):
    said = house.run("sreport", sreport, f"job sizes {PERIOD} grouping=5 grouping=7,5")
    assert "0-4 CPUs      5-6 CPUs     >= 7 CPUs" in said.out
    said = house.run("sreport", sreport, f"user top {PERIOD} topcount=2x")
    assert (said.code, "Top 2 Users" in said.out) == (0, True)
