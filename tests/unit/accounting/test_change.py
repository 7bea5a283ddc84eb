"""Accounting's core: changes, what they lead to, who may make them, and what controllers hear of
them.

Covers: accounting/change_accounts, accounting/change_coordinators, accounting/change_users,
accounting/limits, accounting/transaction_texts, accounting/tree.
"""

import pytest
from accounting_harness import NOW, House

from understudy.accounting.core import Sender
from understudy.accounting.tree import Tree
from understudy.model.associations import AssociationState
from understudy.model.errors import SlurmError
from understudy.protocol.messages import (
    AccountingChange,
    AccountingRecords,
    AssociationsChanged,
    JobRecord,
    Shutdown,
)


@pytest.fixture
def house():
    house = House()
    yield house
    house.store.close()


def ask(house, action, entity, names=(), values=None, *, where=None, user_id=0, commit=True):
    message = AccountingChange(action, entity, list(names), values or {}, where or {}, commit)
    return house.accounting.handle(message, Sender("command", user_id, is_daemon=False))[0]


def effective(house, account, user="", partition=""):
    ledger = house.accounting.ledger
    return Tree(ledger).effective(ledger.association("conform", account, user, partition))


def test_a_new_cluster_has_a_root_with_the_user_root_in_it(house):
    assert house.show("assoc format=account,user,qos") == ["root||normal", "root|root|normal"]


def test_a_trial_changes_nothing(house):
    before = house.accounting.ledger
    answer = ask(house, "add", "account", ["a"], commit=False)
    assert answer.names == ["a"]
    assert house.accounting.ledger is before


def test_what_is_refused_half_way_leaves_nothing_behind(house):
    before = house.accounting.ledger
    with pytest.raises(SlurmError):
        ask(house, "add", "account", ["a", "b"], {"grp_jobs": "many"})
    assert house.accounting.ledger is before


def test_values_of_the_wrong_type_and_unknown_fields_are_refused(house):
    for values in (
        {"max_jobs": -3},
        {"grp_tres": {"nosuch": 1}},
        {"qos": ["nosuch"]},
        {"nosuch": 1},
        {"max_jobs": True},
    ):
        with pytest.raises(SlurmError):
            ask(house, "add", "account", ["a"], values)


def test_limits_of_users_are_inherited_until_somebody_says_otherwise(house):
    house.do(
        "add account a maxjobs=5 maxtres=cpu=9,node=3",
        "add account b parent=a",
        "add user u account=b maxtres=cpu=4",
    )
    assert effective(house, "b", "u").max_jobs == 5
    assert effective(house, "b", "u").max_tres_per_job == {"cpu": 4, "node": 3}
    house.do("modify account b set maxjobs=2")
    assert effective(house, "b", "u").max_jobs == 2
    house.do("modify account b set maxjobs=-1")
    assert effective(house, "b", "u").max_jobs == 5


def test_an_account_that_is_moved_takes_all_below_it_along(house):
    house.do(
        "add account a,b",
        "add account c parent=a",
        "add user u account=c",
        "modify account c set parent=b",
    )
    assert house.show("assoc tree format=account,user") == [
        "root|",
        " root|root",
        " a|",
        " b|",
        "  c|",
        "   c|u",
    ]


def test_an_account_moved_below_its_own_child_changes_places_with_it(house):
    house.do("add account a", "add account b parent=a", "modify account a set parent=b")
    assert house.show("assoc tree format=account") == ["root", " root", " b", "  a"]


def test_the_first_account_is_the_default_until_another_is_named(house):
    house.do("add account a,b", "add user u account=a", "add user u account=b")
    assert house.show("user u format=defaultaccount") == ["a"]
    house.do("modify user u set defaultaccount=b")
    assert house.show("user u format=defaultaccount") == ["b"]


def test_the_first_account_by_name_of_those_given_at_once_is_the_default(house):
    house.do("add account a,b,c", "add user u account=c,a,b")
    assert house.show("user u format=defaultaccount") == ["a"]


def test_an_account_stays_while_it_is_the_default_of_some_of_its_users_and_not_of_all(house):
    house.do(
        "add account a,b", "add user u account=a", "add user v account=b", "add user v account=a"
    )
    answer = ask(house, "delete", "account", where={"names": ["a"]})
    assert answer.problems == [("default_account", ["conform", "a", "u"])]
    house.do("modify user v set defaultaccount=a", "delete account a")


def test_a_quality_of_service_that_goes_is_missing_everywhere(house):
    house.do(
        "add qos q",
        "add account a qos=normal,q defaultqos=q",
        "add account b qos=+q",
        "add qos r preempt=q",
    )
    said = house.sacctmgr("-i delete qos q")
    assert (said.code, said.err.splitlines()[:2]) == (
        1,
        [
            " Associations listed below have these as their Default QOS.",
            "  DefQOS = q          C = conform    A = a                    ",
        ],
    )
    house.do("modify account a set defaultqos=-1", "delete qos q")
    assert effective(house, "a").qos == ("normal",)
    assert effective(house, "a").default_qos is None
    assert effective(house, "b").qos == ("normal",)
    assert house.accounting.ledger.qos_named("r").preempt == ()


def test_changes_of_inherited_qualities_follow_the_parents_list(house):
    house.do(
        "add qos q,r",
        "add account a",
        "add user u account=a",
        "modify user u set qos+=q",
        "modify account a set qos=normal,r",
    )
    assert effective(house, "a", "u").qos == ("normal", "r", "q")
    house.do("modify user u set qos-=normal")
    assert effective(house, "a", "u").qos == ("r", "q")
    house.do("modify user u set qos=")
    assert effective(house, "a", "u").qos == ("normal", "r")


def test_nobody_but_administrators_and_coordinators_changes_anything(house):
    house.do(
        "add account a,b",
        "add account c parent=a",
        "add user daemon account=a",
        "add coordinator account=a names=daemon",
        "add user x account=b",
    )
    with pytest.raises(SlurmError):
        ask(house, "add", "account", ["d"], user_id=1)
    with pytest.raises(SlurmError):
        ask(house, "add", "user", ["x"], {"accounts": ["b"]}, user_id=1)
    with pytest.raises(SlurmError):
        ask(
            house,
            "add",
            "user",
            ["x"],
            {"accounts": ["c"], "admin_level": "Administrator"},
            user_id=1,
        )
    assert ask(house, "add", "user", ["x"], {"accounts": ["c"]}, user_id=1).associations == [
        ("conform", "c", "", "x", "")
    ]
    with pytest.raises(SlurmError):
        ask(house, "add", "user", ["x"], {"accounts": ["c"]}, user_id=2)


@pytest.mark.parametrize(
    ("action", "entity", "names", "values"),
    [
        ("add", "cluster", ["x"], {}),
        ("delete", "cluster", ["conform"], {}),
        ("add", "qos", ["x"], {}),
        ("modify", "qos", ["normal"], {"priority": 3}),
        ("modify", "qos", ["normal"], {"raw_usage": 0}),
        ("delete", "qos", ["normal"], {}),
        ("add", "federation", ["x"], {}),
        ("delete", "resource", ["x"], {}),
    ],
)
def test_what_all_share_is_not_for_operators_to_change(house, action, entity, names, values):
    house.do("add account a", "add user daemon account=a adminlevel=operator")
    with pytest.raises(SlurmError, match="permission denied"):
        ask(house, action, entity, names, values, where={"names": names}, user_id=1)


def test_coordinators_choose_the_coordinators_of_their_accounts(house):
    house.do(
        "add account a",
        "add account b parent=a",
        "add account c",
        "add user daemon account=a",
        "add user bin account=b",
    )
    house.do("add coordinator names=daemon account=a")
    ask(house, "add", "coordinator", ["bin"], where={"accounts": ["b"]}, user_id=1)
    with pytest.raises(SlurmError):
        ask(house, "add", "coordinator", ["bin"], where={"accounts": ["a", "c"]}, user_id=1)
    assert house.accounting.ledger.users["bin"].coordinates == ("b",)
    with pytest.raises(SlurmError):
        ask(house, "delete", "coordinator", where={"names": ["daemon"]}, user_id=2)
    ask(house, "delete", "coordinator", where={"names": ["bin"]}, user_id=1)
    assert not house.accounting.ledger.users["bin"].coordinates


def test_who_coordinates_accounts_does_not_choose_his_own_default(house):
    house.do("add account a,b", "add user daemon account=a,b")
    own = (["daemon"], {"default_account": "b"})
    ask(house, "modify", "user", *own, where={"names": ["daemon"]}, user_id=1)
    house.do("add coordinator names=daemon account=a")
    with pytest.raises(SlurmError):
        ask(house, "modify", "user", *own, where={"names": ["daemon"]}, user_id=1)


def test_operators_make_nobody_an_administrator(house):
    house.do(
        "add account a",
        "add user daemon account=a adminlevel=operator",
        "add user bin account=a adminlevel=admin",
        "add user x account=a",
    )
    rise, x = {"admin_level": "Operator"}, {"names": ["x"]}
    with pytest.raises(SlurmError):
        ask(house, "modify", "user", [], rise, where=x, user_id=1)
    ask(house, "modify", "user", [], {"max_jobs": 3}, where=x, user_id=1)
    ask(house, "modify", "user", [], rise, where=x, user_id=2)
    assert house.accounting.ledger.users["x"].admin_level == "Operator"


def test_only_daemons_tell_of_jobs_and_only_the_superuser_ends_accounting(house):
    with pytest.raises(SlurmError):
        house.accounting.handle(
            AccountingRecords("conform", [JobRecord(1, NOW, 0, "u", 1, 1)]),
            Sender("command", 0, is_daemon=False),
        )
    with pytest.raises(SlurmError):
        house.accounting.handle(Shutdown(), Sender("command", 1, is_daemon=False))
    house.accounting.handle(Shutdown(), Sender("command", 0, is_daemon=False))
    assert house.stopped


def test_a_controller_that_follows_the_news_knows_what_a_new_one_is_told(house):
    first = house.register("conform")
    state = AssociationState(
        "conform",
        first.number,
        associations=first.associations,
        qos=first.qos,
        users=first.users,
        wckeys=first.wckeys,
    )
    lines = [
        "add qos q",
        "add account a,b qos=+q",
        "add user u account=a,b defaultwckey=k",
        "modify account a set parent=b maxjobs=3",
        "delete user u account=a",
        "delete qos q",
        "modify user u set newname=v",
        "delete account a",
    ]
    told = []
    handle = house.accounting.handle

    def listening(message, sender):
        answer, news = handle(message, sender)
        told.extend(each for peer, each in news if peer == "controller")
        return answer, news

    house.accounting.handle = listening
    house.do(*lines)
    for each in told:
        assert isinstance(each, AssociationsChanged)
        assert each.number == state.number + 1
        state.apply(
            each.number,
            associations=each.associations,
            removed_associations=each.removed_associations,
            qos=each.qos,
            removed_qos=each.removed_qos,
            users=each.users,
            removed_users=each.removed_users,
            wckeys=each.wckeys,
            tres=each.tres,
        )
    fresh = house.register("conform")
    assert state.number == fresh.number
    assert state.associations == {each.id: each for each in fresh.associations}
    assert state.qos == {each.name: each for each in fresh.qos}
    assert state.users == {each.name: each for each in fresh.users}
    assert state.wckeys == fresh.wckeys


def test_left_and_right_enclose_what_is_below(house):
    house.do("add account a,b", "add account c parent=a", "add user u account=c")
    rows = {
        tuple(line.split("|")[:2]): tuple(map(int, line.split("|")[2:]))
        for line in house.show("assoc format=account,user,lft,rgt")
    }
    assert rows["root", ""] == (1, 12)
    left, right = rows["a", ""]
    assert (
        left < rows["c", ""][0] < rows["c", "u"][0] < rows["c", "u"][1] < rows["c", ""][1] < right
    )


def test_coordinators_change_users_of_their_accounts_alone_and_accounts_below(house):
    house.do(
        "add account a",
        "add account c parent=a",
        "add user daemon account=a",
        "add coordinator account=a names=daemon",
        "add user x account=a,c",
    )
    allowed = (
        "modify user x set maxjobs=4",
        "modify account c set fairshare=4",
        "delete user x",
        "modify user daemon set defaultaccount=a",
    )
    for line in allowed:
        assert house.sacctmgr(f"-i {line}", user_id=1).code == 0, line
    house.do("add account b", "add user x account=a,b")
    for line in (
        "modify user x set maxjobs=4",
        "delete user x",
        "modify account a set fairshare=4",
        "delete account c",
    ):
        assert house.sacctmgr(f"-i {line}", user_id=1).err.endswith(
            " Error with request: Access/permission denied\n"
        ), line


def test_everybody_chooses_his_own_default_account(house):
    house.do("add account a,b", "add user bin account=a,b")
    assert house.sacctmgr("-i modify user bin set defaultaccount=b", user_id=2).code == 0
    assert house.show("user bin format=defaultaccount") == ["b"]
    assert house.sacctmgr("-i modify user bin set defaultaccount=b maxjobs=3", user_id=2).code == 1


def test_who_may_not_end_accounting_is_told(house):
    said = house.sacctmgr("shutdown", user_id=2)
    assert (said.code, said.err) == (1, " Problem shutting down server: Access/permission denied\n")
    assert not house.stopped
    house.do("shutdown")
    assert house.stopped
