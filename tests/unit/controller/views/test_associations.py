"""`scontrol show assoc_mgr`: what the controller tells of users, associations and QOS, and how it
is printed.

Covers: commands/scontrol/assoc_mgr.
"""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from controller_harness import OTHER, Harness
from enforcement_harness import House

from understudy.commands.scontrol.scontrol import scontrol
from understudy.commands.shared.context import Context
from understudy.model.associations import AccountingUser, Tres
from understudy.model.records import accepts, columns


def house() -> House:
    h = House()
    h.core.associations.apply(
        2,
        users=[
            AccountingUser("ann"),
            AccountingUser("bob", "Operator", creation_time=int(h.time.now()) + 1),
        ],
        tres=[
            Tres(number, name)
            for number, name in ((1, "cpu"), (2, "mem"), (4, "node"), (5, "billing"))
        ],
    )
    h.set_association(
        2, grp_jobs=9, grp_tres={"cpu": 12}, max_jobs=4, max_tres_per_job={"cpu": 8}, shares=5
    )
    h.set_qos(
        "q",
        max_jobs_per_user=3,
        max_tres_per_user={"cpu": 6},
        usage_factor=2.0,
        preempt_mode="requeue",
        min_tres_per_job={"cpu": 1},
    )
    return h


class Client:
    """Asks a harness as commands ask a controller."""

    def __init__(self, h: Harness) -> None:
        self.h = h
        self.cluster_name, self.has_accounting = "c", True

    def query(
        self, table: str, wanted: list[str], where: dict[str, list[Any]] | None = None, **_: Any
    ) -> Any:
        return Answer(wanted, self.h.query(table, *wanted, **(where or {})))


class Answer:
    def __init__(self, wanted: list[str], rows: list[list[Any]]) -> None:
        self.wanted, self.rows = wanted, rows

    def dicts(self) -> list[dict[str, Any]]:
        return [dict(zip(self.wanted, row, strict=True)) for row in self.rows]


def shown(h: Harness, *words: str) -> str:
    out = StringIO()
    assert (
        scontrol(
            [*words], Context("scontrol", client=Client(h), environ={}, stdout=out, stderr=out)
        )
        == 0
    )
    return out.getvalue()


def block(text: str, first: str) -> list[str]:
    """The lines of the record that begins so."""
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(first))
    end = next(
        (number for number in range(at + 1, len(lines)) if not lines[number].startswith(" ")),
        len(lines),
    )
    return [line.strip() for line in lines[at:end]]


@pytest.mark.parametrize("table", ["cached_users", "cached_associations", "cached_qos"])
def test_every_column_holds_what_its_table_says(table: str) -> None:
    h = house()
    h.submit(qos="q", account="lower")
    for row in h.query(table, *columns(table)):
        for column, value in zip(columns(table), row, strict=True):
            assert accepts(table, column, value), f"{table}.{column} is {value!r}"


def test_an_association_is_shown_with_what_it_inherits_and_what_its_jobs_have() -> None:
    h = house()
    for _ in range(2):
        h.submit(account="lower", qos="q", num_tasks=2, time_limit_s=600, mem_per_node_mb=100)
    h.submit(OTHER, account="lower", num_tasks=1, time_limit_s=600, hold=True)
    h.run(5)
    lines = block(shown(h, "show", "assoc_mgr"), "ClusterName=c Account=lower UserName=ann(1000)")
    assert lines[1].startswith("SharesRaw/Norm/Level/Factor=1/")
    assert lines[3] == "ParentAccount= Lft=10 DefAssoc=Yes"
    assert lines[4:7] == [
        "GrpJobs=N(2) GrpJobsAccrue=N(0)",
        "GrpSubmitJobs=N(2) GrpWall=N(0.00)",
        "GrpTRES=cpu=N(4),mem=N(200),node=N(1),billing=N(4)",  # both jobs share a node
    ]
    # UsageFactor 2
    assert lines[8] == "GrpTRESRunMins=cpu=N(80),mem=N(4000),node=N(40),billing=N(80)"
    assert lines[9:11] == [
        "MaxJobs=4(2) MaxJobsAccrue= MaxSubmitJobs= MaxWallPJ=",
        "MaxTRESPJ=cpu=8",
    ]
    upper = block(shown(h, "show", "assoc_mgr"), "ClusterName=c Account=upper UserName= ")
    assert upper[3] == "ParentAccount=root(1) Lft=6 DefAssoc=No"
    assert upper[4] == "GrpJobs=9(2) GrpJobsAccrue=N(0)"
    assert upper[5].startswith("GrpSubmitJobs=N(3)")
    assert upper[6].startswith("GrpTRES=cpu=12(4),")


def test_what_was_used_is_counted_in_real_time_though_nobody_limits_it() -> None:
    h = house()
    h.submit(account="lower", qos="q", num_tasks=3, time_limit_s=6000)
    h.run(600)
    lines = block(shown(h, "show", "assoc_mgr"), "QOS=q(2)")
    minutes = int(lines[4].partition("GrpTRESMins=cpu=N(")[2].partition(")")[0])
    assert 3 * 2 * 8 < minutes <= 3 * 2 * 10
    assert float(lines[1].removeprefix("UsageRaw=")) // 60 == minutes


def test_a_qos_is_shown_with_users_and_accounts_within_it() -> None:
    h = house()
    h.submit(account="lower", qos="q", num_tasks=2, time_limit_s=600, mem_per_node_mb=100)
    h.run(5)
    lines = block(shown(h, "show", "assoc_mgr", "flags=qos"), "QOS=q(2)")
    assert lines[-12:-7] == [
        "MinPrioThresh=",
        "MinTRESPJ=cpu=1",
        "PreemptMode=REQUEUE",
        "Priority=0",
        "Account Limits",
    ]
    assert lines[-7:-4] == [
        "lower",
        "MaxJobsPA=N(1) MaxJobsAccruePA=N(0) MaxSubmitJobsPA=N(1)",
        "MaxTRESPA=cpu=N(2),mem=N(100),node=N(1),billing=N(2)",
    ]
    assert "MaxJobsPU=3(1) MaxJobsAccruePU=N(0) MaxSubmitJobsPU=N(1)" in lines
    assert "MaxTRESPU=cpu=6(2),mem=N(100),node=N(1),billing=N(2)" in lines
    assert block(shown(h, "show", "assoc_mgr", "qos=part"), "QOS=part(4)")[-4:] == [
        "Account Limits",
        "No Accounts",
        "User Limits",
        "No Users",
    ]


def test_users_are_shown_as_accounting_told_of_them() -> None:
    text = shown(house(), "show", "assoc_mgr", "flags=users")
    assert text == (
        "Current Association Manager state\n\nUser Records\n\n"
        "UserName=ann(1000) DefAccount=lower DefWckey= AdminLevel=None\n"
        "UserName=bob(1001) DefAccount=lower DefWckey=(null) AdminLevel=Operator\n"
    )


@pytest.mark.parametrize(
    ("words", "accounts"),
    [
        (["accounts=lower"], ["lower", "lower(ann)", "lower(bob)"]),
        (["users=ann"], ["root", "other", "upper", "lower", "lower(ann)"]),
        (["u=bob", "a=other"], ["other", "other(bob)"]),
        (["users=nosuch", "accounts=nosuch"], []),
    ],
)
def test_records_are_chosen_by_name(words: list[str], accounts: list[str]) -> None:
    lines = shown(house(), "-o", "show", "assoc_mgr", "flags=assoc", *words).splitlines()
    found = []
    for line in lines[2:]:
        fields = dict(field.partition("=")[::2] for field in line.split(" ") if "=" in field)
        user = fields["UserName"].partition("(")[0]
        found.append(f"{fields['Account']}({user})" if user else fields["Account"])
    assert found == accounts
    assert lines[1] == (
        "Association Records" if accounts else "No associations currently cached in Slurm."
    )


@pytest.mark.parametrize(
    ("word", "code", "said"),
    [
        ("users=", 0, "No value given for option users="),
        ("nosuch", 0, "No value given for option nosuch"),
        ("nosuch=1", 1, "invalid entity: nosuch=1 for keyword:show assoc_mgr"),
        ("flags=q", 0, "invalid flag 'q', valid options are 'Assoc, QOS, and/or Users'"),
    ],
)
def test_words_that_make_no_sense(word: str, code: int, said: str) -> None:
    errors = StringIO()
    context = Context(
        "scontrol", client=Client(house()), environ={}, stdout=StringIO(), stderr=errors
    )
    assert scontrol(["show", "assoc_mgr", word], context) == code
    assert errors.getvalue() == said + "\n"
