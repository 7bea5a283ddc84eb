"""What was deleted: what stays on record, how it is shown, and how it comes back.

Covers: accounting/queries, commands/sacctmgr/cluster.
"""

import pytest
from accounting_harness import NOW, House

from understudy.commands.sreport.sreport import sreport
from understudy.model.states import JobState
from understudy.protocol.messages import AccountingRecords, JobRecord

DAY = 86400
PLACES = "assoc withdeleted format=id,account,user,lft,rgt"


@pytest.fixture
def house(tmp_path):
    house = House(f"sqlite:///{tmp_path / 'accounting.sqlite'}")
    house.do(
        "add account a",
        "add account b",
        "add user u account=a,b maxjobs=7 qos=normal",
        "add qos fast priority=3",
    )
    yield house
    house.store.close()


def job(house, account, user="u", *, state=JobState.COMPLETED, number=1, **fields):
    """Put a job of an association on record."""
    association = house.accounting.ledger.association("conform", account, user)
    known = {
        "job_id": number,
        "submit_time": NOW,
        "restarts": 0,
        "user": user,
        "user_id": 1001,
        "group_id": 100,
        "account": account,
    }
    known |= {"association_id": association.id, "state": int(state), "start_time": NOW}
    known["end_time"] = NOW + 9 if state >= JobState.COMPLETED else None
    house.tell(AccountingRecords("conform", [JobRecord(**{**known, **fields})]))


def test_what_is_deleted_within_a_day_and_had_no_jobs_is_forgotten(house):
    house.do("delete user u", "delete account b", "delete qos fast")
    assert house.show("user withdeleted format=user") == ["root"]
    assert house.show("account withdeleted format=account") == ["a", "root"]
    assert house.show("qos withdeleted format=name") == ["normal"]
    assert house.show(PLACES) == ["1|root||1|6", "2|root|root|4|5", "3|a||2|3"]


def test_what_had_jobs_is_kept_and_shown_without_limits_and_default(house):
    job(house, "a")
    house.do("delete user u")
    assert house.show("user format=user") == ["root"]
    assert house.show("user withdeleted format=user,defaultaccount,admin") == [
        "root|root|Administrator",
        "u||None",
    ]
    assert house.show("user u withdeleted withassoc format=user,account,maxjobs,qos") == [
        "u|b||normal",
        "u|a||normal",
    ]
    assert house.show("assoc format=account,user") == ["root|", "root|root", "a|", "b|"]


def test_what_is_older_than_a_day_is_kept_each_by_itself(house):
    house.now += DAY
    house.do(
        "add account c",
        "add user v account=b,c",
        "add user u account=c",
        "delete user u",
        "delete user v",
        "delete account b",
        "delete qos fast",
    )
    assert house.show("user withdeleted format=user") == ["root", "u"]
    assert house.show("account withdeleted format=account") == ["a", "b", "c", "root"]
    assert sorted(house.show("assoc withdeleted user=u format=account")) == ["a", "b"]
    assert house.show("qos withdeleted format=name,priority") == ["normal|0", "fast|3"]


def test_places_of_what_was_deleted_stay_in_the_tree(house):
    before = house.show("assoc format=id,account,user,lft,rgt")
    job(house, "a")
    house.do("delete user u")
    assert house.show(PLACES) == before
    assert house.show("assoc format=id,account,user,lft,rgt") == [
        line for line in before if "|u|" not in line
    ]


def test_what_is_added_again_has_its_number_and_time_of_making_and_nothing_else(house):
    job(house, "a", qos_id=2, qos="fast")
    before = house.show("assoc user=u format=id,account,lft,rgt")
    house.do("delete user u", "delete qos fast")
    house.now += 50
    house.do("add user u account=a,b", "add qos fast")
    assert house.show("assoc user=u format=id,account,lft,rgt") == before
    assert house.show("user u withassoc format=defaultaccount,account,maxjobs") == ["a|b|", "a|a|"]
    assert house.show("qos fast format=id,name,priority") == ["2|fast|0"]
    ledger = house.accounting.ledger
    assert (ledger.users["u"].creation_time, ledger.users["u"].mod_time) == (NOW, NOW + 50)
    assert ledger.qos[2].creation_time == NOW
    assert not ledger.deleted.users
    assert not ledger.deleted.associations


def test_an_account_added_again_below_another_takes_its_deleted_users_along(house):
    job(house, "b")
    house.do(
        "delete user u account=b", "delete account b", "add account b parent=a description=other"
    )
    assert house.show("assoc tree withdeleted format=account,user") == [
        "root|",
        " root|root",
        " a|",
        "  a|u",
        "  b|",
        "   b|u",
    ]
    assert house.show("account b format=account,description,org") == ["b|other|a"]


def test_what_was_deleted_is_there_after_a_restart(house):
    job(house, "a")
    house.do("delete user u")
    before = house.accounting.ledger
    house.reopen()
    assert house.accounting.ledger == before
    assert list(before.deleted.users) == ["u"]


def test_a_cluster_comes_back_with_its_tree(house):
    house.do(
        "add cluster old", "add account c cluster=old", "add user v account=c cluster=old maxjobs=2"
    )
    house.now += DAY
    house.do("add cluster young", "delete cluster old,young")
    assert house.show("cluster withdeleted format=cluster,rpc") == ["conform|9728", "old|0"]
    assert house.show("assoc withdeleted cluster=old format=account,user") == [
        "root|",
        "root|root",
        "c|",
        "c|v",
    ]
    assert "c|v" not in house.show("assoc withdeleted format=account,user")
    house.do("add cluster old")
    assert house.show("assoc cluster=old format=account,user,maxjobs") == [
        "root||",
        "root|root|",
        "c||",
        "c|v|",
    ]
    assert house.show("cluster old format=cluster,share,qos") == ["old|1|normal"]


def test_wckeys_are_kept_as_long_as_users_are(house):
    house.do("add user k account=a wckey=old")
    house.now += DAY
    house.do("add user k account=a wckey=young", "delete user k")
    assert house.show("wckey format=wckey,user") == []
    assert house.show("wckey withdeleted format=wckey,user") == ["old|k"]
    house.do("add user k account=a wckey=old")
    assert house.show("wckey format=id,wckey,user") == ["1|old|k"]


def test_nothing_that_has_unfinished_jobs_can_be_deleted(house):
    job(house, "a", state=JobState.RUNNING, number=7)
    job(house, "b", state=JobState.PENDING, number=8)
    head = " Error with request: Job(s) active, cancel job(s) before remove\n"
    lines = [
        "  JobID = 7          C = conform    A = a          U = u        \n",
        "  JobID = 8          C = conform    A = b          U = u        \n",
    ]
    for words, told in (
        ("delete user u account=b", lines[1:]),
        ("delete user u", lines),
        ("delete account b", lines[1:]),
        ("delete cluster conform", lines),
    ):
        for options in ("-i ", ""):
            said = house.sacctmgr(options + words)
            assert (said.code, said.out, said.err) == (1, "", head + "".join(told)), words
    job(house, "b", number=8)
    assert house.sacctmgr("-i delete user u account=b").code == 0


def test_usage_of_users_that_were_deleted_is_reported(house):
    job(
        house,
        "a",
        tres_allocated={"cpu": 4},
        start_time=NOW - 7200,
        end_time=NOW - 3600,
        submit_time=NOW - 7200,
        eligible_time=NOW - 7200,
    )
    house.now = NOW + 2 * DAY
    house.do("delete user u")
    said = house.run("sreport", sreport, "-n -P user top start=2023-11-14 end=2023-11-16")
    assert [line.split("|")[1:5] for line in said.out.splitlines() if "|u|" in line] == [
        ["u", "", "a", "240"]
    ]


def test_transactions_name_associations_that_were_deleted(house):
    job(house, "a")
    house.do("delete user u")
    assert "Add Associations|conform|a|u" in house.show(
        "transactions withassoc format=action,cluster,account,user"
    )
