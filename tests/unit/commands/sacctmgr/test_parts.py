"""What users and accounts are themselves is changed first, then their associations' limits: what
sacctmgr says of both is 22.05.8's.
"""

import pytest
from accounting_harness import House

_NO_EFFECT = (
    "sacctmgr: accounting_storage/slurmdbd: acct_storage_p_modify_users: Request didn't affect "
    "anything or your user doesn't have privilege to perform this action\n"
)
_WHERE = " There was a problem with your 'where' options.\n"
_USER_LINE = (
    " Modified user associations...\n  C = conform    A = a                    U = bin      \n"
)
_ACCOUNT_LINE = " Modified account associations...\n  C = conform    A = a of root\n"
_NOTHING = " Nothing modified\n"


@pytest.fixture
def house():
    house = House()
    house.do("add account a,b", "add user bin account=a", "add user daemon account=a,b")
    yield house
    house.store.close()


@pytest.mark.parametrize(
    ("line", "code", "out", "err"),
    [
        ("user bin set adminlevel=x maxjobs=2", 1, _NOTHING + _USER_LINE, _NO_EFFECT),
        ("user nosuch set adminlevel=none maxjobs=2", 1, _NOTHING * 2, ""),
        ("user nosuch set adminlevel=x defaultaccount=a", 1, _NOTHING, ""),
        ("user bin where cluster=no set adminlevel=none maxjobs=2", 1,
         " Modified users...\n  bin\n" + _NOTHING, ""),
        ("user bin where account=no set adminlevel=none maxjobs=2", 0,
         " Modified users...\n  bin\n" + _USER_LINE, ""),
        ("user where account=no set adminlevel=none", 1, "", _WHERE),
        ("user where adminlevel=none set maxjobs=2", 1, "", _WHERE),
        ("user where cluster=conform set adminlevel=none", 1, _NOTHING, _NO_EFFECT),
        ("user bin where qos=normal set maxjobs=2", 1, _NOTHING, ""),
        ("user bin set parent=x", 0, _USER_LINE, ""),
        ("user bin,daemon set newname=x", 1, "",
         ("sacctmgr: error: Can only change one at a time\n"
         " Error with request: Can only change one at a time\n"
         " If you are changing a users name you can only specify 1 user at a time.\n")),
        ("user bin set newname=daemon", 1, _NOTHING,
         _NO_EFFECT.partition("Request")[0] + "No error\n"),
        ("user bin set defaultaccount= maxjobs=2", 1, _USER_LINE,
         ("sacctmgr: error: You can not remove the default account of a user\n"
         " Error with request: You can not remove the default account of a user\n")),
        ("user bin where cluster=no set defaultaccount=a", 1,
         (" Can't modify because these users aren't associated with new default account 'a'...\n"
         "  U = bin C = no\n"), ""),
        ("account a where cluster=no set description=x maxjobs=2", 1,
         " Modified accounts...\n  a\n" + _NOTHING, ""),
        ("account no set description=x maxjobs=2", 1, _NOTHING * 2, ""),
        ("account a where description=no set description=x fairshare=2", 1,
         _NOTHING + _ACCOUNT_LINE, ""),
        ("account where parent=root set description=x", 1, "", _WHERE),
        ("account where description=a set maxjobs=2", 1, "", _WHERE),
        ("account a where user=bin set maxjobs=2", 0, _ACCOUNT_LINE.partition("\n")[0] + "\n"
         + _USER_LINE.partition("\n")[2], ""),
        ("account a where qos=normal set maxjobs=2", 1, _NOTHING,
         "sacctmgr: accounting_storage/slurmdbd: acct_storage_p_modify_assocs: No error\n"),
        ("account a set cluster=x", 1, "", " Can't modify the cluster of an account\n"),
        ("account a set acct=x", 1, "", " Can't modify the name of an account\n"),
        ("cluster set parent=x", 1,
         " Setting\n  Default Limits:\n  Parent        = x\n Nothing modified\n", ""),
        ("cluster set cluster=x", 1, "", " You didn't give me anything to set\n"),
        ("user set where=1 maxjobs=2", 1, "",
         (" Unknown condition: where=1\n Use keyword 'set' to modify value\n"
         " Unknown condition: maxjobs=2\n Use keyword 'set' to modify value\n")),
        ("job set x", 1, "", " Bad format on x: End your option with an '=' sign\n"),
        ("user bin set qos=normal qos=normal", 1, "",
         ("sacctmgr: error: You gave me an empty qos list\n Unknown option: qos=normal\n"
         " Use keyword 'where' to modify condition\n")),
    ],
)  # fmt: skip
def test_each_part_is_told_for_itself(house, line, code, out, err):
    said = house.sacctmgr(f"-i modify {line}")
    assert (said.code, said.out, said.err) == (code, out, err)


def test_nobody_s_default_changes_where_one_of_them_is_a_stranger(house):
    said = house.sacctmgr("-i modify user bin,daemon set defaultaccount=b adminlevel=operator")
    assert (said.code, said.out) == (
        1,
        (
            " Can't modify because these users aren't associated with new default account 'b'...\n"
            "  U = bin C = conform\n"
        ),
    )
    assert house.show("user format=user,defaultaccount,admin")[:2] == [
        "bin|a|None",
        "daemon|a|None",
    ]


def test_both_parts_are_asked_about_once(house):
    said = house.sacctmgr("modify user bin set adminlevel=operator maxjobs=2", stdin="y\n")
    assert said.out.count("Would you like to commit") == 1
    assert house.show("user bin withassoc format=admin,maxjobs") == ["Operator|2"]


def test_what_is_inherited_chooses_nobody_who_is_deleted(house):
    assert house.sacctmgr("-i delete user where qos=normal").out == " Nothing deleted\n"
    assert "bin" in house.show("user format=user")


@pytest.mark.parametrize(
    ("line", "err"),
    [
        ("user qos=normal qos=normal",
         ("sacctmgr: error: You gave me an empty qos list\n Unknown condition: qos=normal\n"
         " Use keyword 'set' to modify value\n")),
        ("qos preemptmode=x preemptmode=cancel",
         ("sacctmgr: error: Unknown preempt_mode given 'x'\n"
         " Bad Preempt Mode given: preemptmode=x\n Bad Preempt Mode given: preemptmode=cancel\n")),
        ("event state=idle,X",
         ("Invalid state: X\n"
         "Valid node states are: DRAIN FAIL UNKNOWN DOWN IDLE ALLOCATED ? MIXED FUTURE \n"
         "sacctmgr: fatal: unrecognized job state value\n")),
    ],
)  # fmt: skip
def test_conditions_that_cannot_be(house, line, err):
    assert house.sacctmgr(f"show {line}").err == err


def test_what_is_there_needs_no_parent(house):
    assert house.sacctmgr("-i add account a parent=no").out == " Nothing new added.\n"
    assert "'no' doesn't exist" in house.sacctmgr("-i add account a,c parent=no").err


def test_words_that_stand_alone_are_types_of_resources_and_one_cluster_of_lost_jobs(house):
    assert house.show("tres cpu,mem format=type") == ["cpu", "mem"]
    assert house.sacctmgr("show runawayjobs a b").err == (
        "sacctmgr: error: You can only fix runaway jobs on one cluster at a time.\n"
    )
