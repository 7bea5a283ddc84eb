"""sacctmgr says what 22.05.8's says, and the three kinds of answers come as there: on stdout, on
stderr, as the exit code.

Covers: accounting/change_jobs, accounting/change_qos, accounting/configuration,
commands/sacctmgr/account, commands/sacctmgr/answer, commands/sacctmgr/archive,
commands/sacctmgr/ask, commands/sacctmgr/change, commands/sacctmgr/coordinator,
commands/sacctmgr/fields, commands/sacctmgr/job, commands/sacctmgr/keys, commands/sacctmgr/qos,
commands/sacctmgr/raw_usage, commands/sacctmgr/request, commands/sacctmgr/session,
commands/sacctmgr/show, commands/sacctmgr/texts, commands/sacctmgr/user, commands/sacctmgr/words.
"""

import io
import os
import pty
import termios

import pytest
from accounting_harness import NOW, House, LocalClient
from fake_controller import FakeClient

from understudy.accounting import schema
from understudy.accounting.configuration import configuration
from understudy.commands.sacctmgr.session import Session
from understudy.commands.shared.context import Context
from understudy.model.dbd_conf import DbdConfig
from understudy.protocol.messages import (
    AccountingRecords,
    EventRecord,
    JobRecord,
    ReservationRecord,
)


@pytest.fixture
def house():
    house = House()
    yield house
    house.store.close()


@pytest.mark.parametrize(
    "command",
    ["-i add user x a[] fairshare=5", "-i add account a[]", "-i modify user a[] set fairshare=5",
     "-i delete user a[]", "show user a[]", "show user name=a[]"],
)  # fmt: skip
def test_brackets_that_enclose_no_numbers_are_said_in_a_line(house, command):
    said = house.sacctmgr(command)
    assert said.err == "sacctmgr: error: _parse_single_range: Invalid range: `'\n"


def test_a_bracket_that_is_left_open_is_a_part_of_the_name(house):
    assert house.sacctmgr("-nP show user a[").err == ""
    assert " a[1\n" in house.sacctmgr("-i add account a[1").out


def test_adding_an_account_tells_of_it_and_of_its_limits(house):
    said = house.sacctmgr(
        "-i add account x1 Fairshare=60 GrpTRES=cpu=64,mem=10G,node=2 GrpJobs=4 MaxJobs=2 "
        "grpwall=10:00 grptresrunmins=cpu=5 maxtrespernode=cpu=3"
        " maxsubmit=4 maxwall=2:00:00 priority=5 defaultqos=normal"
    )
    assert said.out == (
        " Adding Account(s)\n  x1\n Settings\n  Description     = Account Name\n"
        "  Organization    = Parent/Account Name\n Associations\n"
        "  A = x1         C = conform   \n Settings\n  Fairshare     = 60\n"
        "  GrpJobs       = 4\n  GrpTRES       = cpu=64,mem=10G,node=2\n"
        "  GrpTRESRunMins= cpu=5\n  GrpWall       = 00:10:00\n  MaxJobs       = 2\n"
        "  MaxSubmitJobs = 4\n  MaxTRESPerNode= cpu=3\n"
        "  MaxWall       = 02:00:00\n  Parent        = root\n  Priority      = 5\n"
        "  DefQOS        = normal\n"
    )
    assert (said.code, said.err) == (0, "")


def test_limits_are_zero_where_no_associations_are_asked_for(house):
    only = "format=maxwall,fairshare,maxjobs,id,maxtres,parentname"
    for entity in ("account", "user"):
        lines = house.sacctmgr(f"-nP show {entity} {only}").out.splitlines()
        assert set(lines) == {"00:00:00|0|0|0||"}


def test_a_second_account_of_the_name_is_nothing_new(house):
    house.do("add account a")
    said = house.sacctmgr("-i add account a")
    assert (said.code, said.out, said.err) == (1, " Nothing new added.\n", "")


def test_nothing_is_added_to_clusters_before_there_is_one(house):
    """22.05.8: a cluster is there once its controller has registered."""
    cluster = house.sacctmgr("-nP show cluster format=cluster").out.strip()
    house.do(f"delete cluster {cluster}")
    why = ", no cluster defined yet.\n Please contact your administrator.\n"
    for line, what in (
        ("-i add account people", "add accounts"),
        ("-i add user bob account=people", "add/modify users"),
    ):
        said = house.sacctmgr(line)
        assert (said.code, said.out, said.err) == (1, "", f"  Can't {what}{why}")


def test_adding_a_user_lists_associations_and_keys(house):
    house.do("add account x1")
    said = house.sacctmgr("-i add user fu8 account=x1 partition=debug,other defaultwckey=w1")
    assert said.out == (
        " Adding User(s)\n  fu8\n Settings =\n  Default WCKey   = w1\n Associations =\n"
        "  U = fu8       A = x1         C = conform    P = debug     \n"
        "  U = fu8       A = x1         C = conform    P = other     \n WCKeys =\n"
        "  U = fu8       W = w1         C = conform   \n"
        " Non Default Settings\n"
    )


def test_all_that_a_quality_of_service_may_have_is_taken_and_shown(house):
    said = house.sacctmgr(
        "-i add qos qall Description=dd GraceTime=10 GrpJobs=1 GrpJobsAccrue=2 "
        "GrpSubmitJobs=3 GrpTRES=cpu=4 GrpTRESMins=cpu=5 GrpTRESRunMins=cpu=6"
        " GrpWall=7 LimitFactor=1.5 MaxJobsAccruePA=1 MaxJobsAccruePU=2 MaxJobsPA=3 "
        "MaxJobsPU=4 MaxSubmitJobsPA=5 MaxSubmitJobsPU=6 MaxTRESMins=cpu=8"
        " MaxTRESPA=cpu=9 MaxTRES=cpu=10 MaxTRESPerNode=cpu=11 MaxTRESPU=cpu=12 MaxWall=13 "
        "MinPrioThres=14 MinTRES=cpu=1 Preempt=normal"
        " PreemptMode=requeue PreemptExemptTime=15 Priority=16 UsageFactor=1.7 "
        "UsageThreshold=0.3 Flags=NoReserve,DenyOnLimit"
    )
    assert said.out == (
        " Adding QOS(s)\n  qall\n Settings\n  Description    = dd\n"
        "  Flags                    = DenyOnLimit,NoReserve\n"
        "  GraceTime                = 10\n"
        "  GrpJobs                  = 1\n  GrpJobsAccrue            = 2\n"
        "  GrpSubmitJobs            = 3\n  GrpTRES                  = cpu=4\n"
        "  GrpTRESMins              = cpu=5\n  GrpTRESRunMins           = cpu=6\n"
        "  GrpWall                  = 00:07:00\n"
        "  MaxJobsAccruePerAccount  = 1\n  MaxJobsAccruePerUser     = 2\n"
        "  MaxJobsPerAccount        = 3\n  MaxJobsPerUser = 4\n"
        "  MaxSubmitJobsPerAccount  = 5\n  MaxSubmitJobsPerUser     = 6\n"
        "  MaxTRESPerAccount        = cpu=9\n  MaxTRESPerJob            = cpu=10\n"
        "  MaxTRESPerNode           = cpu=11\n  MaxTRESPerUser           = cpu=12\n"
        "  MinPrioThresh            = 14\n"
        "  MinTRESPerJob            = cpu=1\n  MaxTRESMins              = cpu=8\n"
        "  MaxWall                  = 00:13:00\n"
        "  Preempt                  = normal\n  PreemptMode              = REQUEUE\n"
        "  PreemptExemptTime        = 00:15:00\n"
        "  Priority                 = 16\n  UsageFactor              = 1.7000\n"
        "  UsageThreshold           = 0.3000\n"
        "  LimitFactor              = 1.5000\n"
    )
    assert house.show("qos qall") == [
        (
            "qall|16|00:00:10|normal|00:15:00|requeue|DenyOnLimit,NoReserve|0.300000|1.700000|"
            "cpu=4|cpu=5|cpu=6|1|3|00:07:00|cpu=10|cpu=11|cpu=8|00:13:00"
            "|cpu=12|4|6|cpu=9|3|5|cpu=1"
        )
    ]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (
            "add account x nosuch=3",
            " Unknown option: nosuch=3\n Use keyword 'where' to modify condition\n",
        ),
        (
            "add account x grptres=nosuch=3",
            (
                "sacctmgr: error: slurmdb_format_tres_str: no TRES known by type nosuch\n"
                " Unknown option: grptres=nosuch=3\n"
                " Use keyword 'where' to modify condition\n"
            ),
        ),
        (
            "add account x maxwall=abc",
            (
                " Bad MaxWall time format: maxwall=abc\n Unknown option: maxwall=abc\n"
                " Use keyword 'where' to modify condition\n"
            ),
        ),
        (
            "add account x maxjobs=abc",
            (
                "sacctmgr: error: Invalid value for MaxJobs (abc)\n Unknown option: maxjobs=abc\n"
                " Use keyword 'where' to modify condition\n"
            ),
        ),
        (
            "add account x cluster=nosuch",
            (
                " This cluster 'nosuch' doesn't exist.\n"
                "        Contact your admin to add it to accounting.\n"
            ),
        ),
        ("add user u", " Need name of account to add user to.\n"),
        (
            "add user u account=nosuch",
            (
                " This account 'nosuch' doesn't exist.\n"
                "        Contact your admin to add this account.\n"
                " No associations or wckeys created.\n"
            ),
        ),
        (
            "add qos q preempt=nosuch",
            "sacctmgr: error: You gave a bad qos 'nosuch'. Valid QOS's are normal\n",
        ),
        ("modify qos normal", " You didn't give me anything to set\n"),
        ("delete user", " No conditions given to remove, not executing.\n"),
        (
            "delete account root",
            " You are not allowed to remove the root account.\n Use remove cluster instead.\n",
        ),
        ("show assoc nosuch=3", " Unknown condition: nosuch=3\n"),
        ("show qos format=NoSuch", "Unknown field 'nosuch'\n"),
        ("show qos format=", "Unknown field ''\n"),
        ("show qos id=abc", "sacctmgr: error: Invalid value for QOS ID (abc)\n"),
        ("show assoc id=abc", "sacctmgr: error: Invalid value for AssocId (abc)\n"),
        ("modify account root set name=trunk", " Can't modify the name of an account\n"),
        ("nosuch", "invalid keyword: nosuch\n"),
    ],
)
def test_what_makes_no_sense_is_refused_in_slurms_words(house, line, complaint):
    said = house.sacctmgr("-i " + line)
    assert (said.code, said.out, said.err) == (1, "", complaint)


def test_who_says_no_changes_nothing(house):
    said = house.sacctmgr("add account a", stdin="n\n")
    assert said.code == 0
    assert said.out.endswith(
        "Would you like to commit changes? (You have 30 seconds to decide)\n(N/y): \n"
        " Changes Discarded\n"
    )
    assert house.show("account format=account") == ["root"]
    house.sacctmgr("add account a", stdin="y\n")
    assert house.show("account format=account") == ["a", "root"]


def test_a_change_lists_the_associations_to_which_it_makes_a_difference(house):
    house.do(
        "add account physics",
        "add account optics parent=physics",
        "add user u,v account=physics,optics",
        "modify user v set maxwall=5",
    )
    said = house.sacctmgr("-i modify account physics set grpjobs=3 maxwall=1-0 description=new")
    assert said.out.splitlines() == [
        " Modified accounts...",
        "  physics",
        " Modified account associations...",
        "  C = conform    A = physics of root",
        "  C = conform    A = physics              U = u        ",
        "  C = conform    A = optics               U = u        ",
    ]


def test_a_default_quality_of_service_must_be_within_reach(house):
    house.do("add qos q", "add account a", "add user u account=a")
    said = house.sacctmgr("-i modify user u set defaultqos=q")
    assert said.err == (
        " These associations don't have access to their default qos.\n"
        " Please give them access before they the default can be set to this.\n"
        "  DefQOS = q          C = conform    A = a                    U = u        \n"
    )
    assert house.show("assoc where user=u format=defaultqos") == [""]


def test_somebody_without_rights_is_told_so(house):
    house.do("add account a", "add user u account=a")
    said = house.sacctmgr("-i modify user u set maxjobs=3", user_id=2)
    assert said.code == 1
    assert (
        said.err == "sacctmgr: error: Your user doesn't have privilege to perform this action\n"
        " Error with request: Access/permission denied\n"
    )
    said = house.sacctmgr("-i add account b", user_id=2)
    assert (said.code, said.err) == (1, " Problem adding accounts: Access/permission denied\n")


def test_columns_are_as_wide_as_slurms_and_cut_with_a_plus(house):
    house.do("add account averylongaccountname")
    said = house.sacctmgr("show assoc format=account,user,grptres%-9,qos%6")
    assert said.out == (
        "   Account       User GrpTRES      QOS \n---------- ---------- --------- ------ \n"
        "      root                      normal \n"
        "      root       root           normal \naverylong+                      normal \n"
    )


def test_users_with_their_associations_have_a_row_for_each(house):
    house.do(
        "add account x1",
        "add account x2 parent=x1 maxtres=cpu=9,node=3",
        "add user u account=x1,x2 maxtres=cpu=4",
    )
    assert house.show("user u withassoc") == [
        "u|x1|None|conform|x1||1||||4||||normal|",
        "u|x1|None|conform|x2||1|||3|4||||normal|",
    ]


def test_commands_are_read_from_stdin_when_none_is_given(house):
    said = house.sacctmgr([], stdin="show account root format=account\nquit\n")
    assert (
        said.out == "sacctmgr: show account root format=account\n   Account \n---------- \n"
        "      root \nsacctmgr: quit\n"
    )


def test_transactions_say_who_did_what(house):
    house.do("add account a", "modify account a set maxjobs=1", "delete account a")
    actions = [
        line for line in house.show("transaction format=action,actor") if "Cluster" not in line
    ]
    assert actions == [
        "Add Associations|root",
        "Add Accounts|root",
        "Add Associations|root",
        "Modify Associations|root",
        "Remove Account Coords|root",
        "Remove Accounts|root",
    ]
    said = house.sacctmgr("show transaction action=add")
    assert (said.code, said.err) == (1, "sacctmgr: error: You gave a bad action 'add'.\n")


def test_transactions_name_the_columns_that_were_set(house):
    house.do(
        "add qos q priority=3",
        "add account a grptres=cpu=4,mem=1G qos=q",
        "modify account a set maxjobs=2 grptres=cpu=-1 qos+=normal",
    )
    house.do(
        "add user u account=a",
        "modify user u set adminlevel=operator",
        "modify qos q set flags+=NoReserve maxtrespu=cpu=2",
        "delete qos q",
    )
    shown = [line.split("|", 2) for line in house.show("transaction format=action,where,info")]
    said = {(action, where): info for action, where, info in shown}
    numbers = {
        each.account: number
        for number, each in house.accounting.ledger.associations.items()
        if not each.user
    }
    place = f"id_assoc={numbers['a']}"
    assert (
        "acct='a', parent_acct='root', user='', shares=1, grp_jobs=NULL"
        in said["Add Associations", place]
    )
    assert said["Add Associations", place].endswith(
        "def_qos_id=NULL, grp_tres='1=4,2=1024', qos=',2,'"
    )
    changed = said["Modify Associations", f"({place})"]
    assert changed.startswith(
        f"max_jobs=2, grp_tres = if ({place}, '2=1024', grp_tres), qos=if (qos='', '', "
        "replace(concat(replace(qos, ',1,', ',')"
    )
    assert said["Modify Users", "(name='u')"] == "admin_level=2"
    assert (
        said["Modify QOS", "(name='q')"] == "flags=(flags | 16), max_tres_pu = if (id=2, '1=2', "
        "max_tres_pu)"
    )
    assert [(action, where) for action, where, _ in shown][-1:] == [("Remove QOS", "id='2'")]


def test_a_dump_has_a_line_for_each_association(house, tmp_path):
    house.do(
        "add account a description=d organization=o grpjobs=3 maxwall=1-0",
        "add user u account=a fairshare=10 adminlevel=operator",
    )
    said = house.sacctmgr(f"dump conform file={tmp_path / 'dump'}")
    lines = [
        line for line in (tmp_path / "dump").read_text().splitlines() if not line.startswith("#")
    ]
    assert lines == [
        "Cluster - 'conform':Fairshare=1:QOS='normal'",
        "Parent - 'root'",
        "User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1",
        (
            "Account - 'a':Description='d':Organization='o':Fairshare=1:GrpJobs=3:"
            "MaxWallDurationPerJob=1440"
        ),
        "Parent - 'a'",
        "User - 'u':DefaultAccount='a':AdminLevel='Operator':Fairshare=10",
    ]
    assert said.err.splitlines() == [f"sacctmgr: {line}" for line in lines]


def test_a_dump_names_keys_parents_and_only_the_accounts_given_to_a_coordinator(house, tmp_path):
    house.do(
        "add account a",
        "add account b parent=a",
        "add user u account=b wckeys=k1,k2 fairshare=parent",
        "add coordinator account=a names=u",
    )
    house.sacctmgr(f"dump conform file={tmp_path / 'dump'}")
    last = (tmp_path / "dump").read_text().splitlines()[-1]
    assert (
        last == "User - 'u':DefaultAccount='b':DefaultWCKey='k1':Coordinator='a':WCKeys='k1,"
        "k2':Fairshare=2147483647"
    )


def test_events_are_chosen_by_state_reason_and_user(house):
    down = EventRecord("n1", NOW - 50, NOW - 40, 1, "smoke", 0, {"cpu": 4})
    drain = EventRecord("n2", NOW - 30, None, 0x202, "disk x", 1, {"cpu": 4})
    house.tell(AccountingRecords("conform", [down, drain]))
    form = "format=cluster,nodename,state,reason,user"
    assert house.show(f"event nodes=n1,n2 {form}") == [
        "conform|n1|DOWN|smoke|root(0)",
        "conform|n2|DRAIN|disk x|daemon(1)",
    ]
    assert house.show(f"event states=drain {form}") == ["conform|n2|DRAIN|disk x|daemon(1)"]
    assert house.show(f"event states=down {form}") == [], "that was"
    assert house.show(f"event states=down start=2020-01-01 {form}") == [
        "conform|n1|DOWN|smoke|root(0)"
    ]
    assert house.show(f"event reason=smoke {form}") == ["conform|n1|DOWN|smoke|root(0)"]
    assert house.show(f"event user=daemon {form}") == ["conform|n2|DRAIN|disk x|daemon(1)"]


def test_resources_of_events_are_a_nodes_without_itself_and_all_of_the_clusters(house):
    house.tell(
        AccountingRecords(
            "conform", [EventRecord("n1", NOW - 50, NOW - 40, 1, "smoke", 0, {"cpu": 4, "node": 1})]
        )
    )
    assert house.show("event nodes=n1 format=tres") == ["cpu=4"]
    for what in ("event event=cluster", "cluster"):
        (text,) = house.show(f"{what} format=tres")
        assert {"energy=0", "fs/disk=0", "pages=0", "vmem=0"} <= set(text.split(",")), what


def test_of_several_users_the_new_ones_come_first_and_all_are_told_of_in_their_order(house):
    for line in ("add account a", "add account b", "add user u1 account=a"):
        house.sacctmgr(f"-i {line}")
    told = house.sacctmgr("-i add user u1,u2 account=a,b").out.splitlines()
    assert [line.split()[2] for line in told if line.startswith("  U = ")] == ["u1", "u2", "u2"]
    numbers = {
        tuple(line.split("|")[:2]): int(line.split("|")[2])
        for line in house.show("assoc format=user,account,id")
    }
    assert numbers["u2", "a"] < numbers["u2", "b"] < numbers["u1", "b"]


def test_what_the_cluster_has_is_an_event_of_the_cluster(house):
    assert [line.split("|")[1:2] + line.split("|")[3:] for line in house.show("event")] == [
        ["", "Unknown", "", "Cluster Registered TRES", ""]
    ]


def test_there_are_no_federations_and_resources_and_no_archives(house):
    assert house.sacctmgr("show federation").out.splitlines() == [
        "Federation    Cluster ID             Features     FedState ",
        "---------- ---------- -- -------------------- ------------ ",
    ]
    assert house.sacctmgr("show resource").out.splitlines() == [
        "      Name     Server     Type  Count % Allocated ServerType ",
        "---------- ---------- -------- ------ ----------- ---------- ",
    ]
    said = house.sacctmgr("archive dump", stdin="n\n")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines()[-1] == " Changes Discarded"
    said = house.sacctmgr("archive dump directory=/no/such")
    assert (said.code, said.err.splitlines()[0]) == (
        1,
        " dump: Failed to stat /no/such: No such file or directory",
    )
    assert house.sacctmgr("archive dump nix=1").err == " Unknown condition: nix=1\n"
    said = house.sacctmgr("archive load /no/such")
    assert (said.code, said.err.splitlines()[:2]) == (
        1,
        [
            "sacctmgr: error: No archive file given to recover.",
            " Problem loading archive file: No such file or directory",
        ],
    )


def test_archives_need_ages_and_are_written_where_asked(house, tmp_path):
    house.tell(AccountingRecords("conform", [_job(1, end_time=NOW + 9, state=3)]))
    house.now = NOW + 90000
    problem = "sacctmgr: error: Error with request.\n Problem dumping archive: Unspecified error\n"
    done = "sacctmgr: accounting_storage/slurmdbd: jobacct_storage_p_archive: SUCCESS\n"
    strange = (
        " dump: Failed to stat /no/such: No such file or directory\n"
        " Note: For archive dump, the script must be on the calling host.\n"
    )
    junk = tmp_path / "junk"
    junk.write_text("junk\n")
    for words, code, err in (
        ("dump", 0, done),
        (f"dump directory={tmp_path} jobs", 1, problem),
        ("dump purgejobafter=soon", 1, "sacctmgr: error: Invalid purge string 'soon'\n"),
        ("dump script=/no/such", 1, strange),
        ("dump jobs purgejobafter=1hours directory=/proc", 1, problem),
        (
            "load",
            1,
            (
                "sacctmgr: error: Error with request.\n"
                " Problem loading archive file: Unspecified error\n"
            ),
        ),
        (
            f"load file={junk}",
            1,
            "sacctmgr: error: Error with request.\n Problem loading archive file: Bad address\n",
        ),
        ("load foo=1", 1, " Unknown option: foo=1\n"),
    ):
        said = house.sacctmgr(f"-i archive {words}")
        assert (said.code, said.out, said.err) == (code, "", err), words
    assert len(house.store.find(schema.jobs)) == 1
    house.do("archive dump purgejobafter=24hours")  # forgotten, without a file
    assert house.store.find(schema.jobs) == []


def _job(number, **fields):
    known = {
        "submit_time": NOW,
        "restarts": 0,
        "user": "daemon",
        "user_id": 1,
        "group_id": 1,
        "account": "root",
    }
    known |= {"partition": "debug", "qos": "normal", "name": "j", "association_id": 1}
    return JobRecord(
        **{
            "job_id": number,
            "eligible_time": NOW + 1,
            "start_time": NOW + 5,
            "state": 1,
            **known,
            **fields,
        }
    )


def _jobs(house, *names):
    return house.accounting.store.find(schema.jobs, columns=names, order=(schema.jobs.c.job_id,))


def test_what_is_on_record_of_jobs_may_be_changed_afterwards(house):
    house.tell(AccountingRecords("conform", [_job(7), _job(8, user="bin")]))
    said = house.sacctmgr(
        "-i modify job jobid=7 set comment=hi derivedexitcode=256 newwckey=k "
        "admincomment=a systemcomment=s"
    )
    assert (said.code, said.out.splitlines()[0], said.out.splitlines()[1][:20]) == (
        0,
        " Modified jobs...",
        "  7 submitted at 202",
    )
    assert _jobs(house, "comment", "derived_exit_code", "wckey", "admin_comment", "system_comment")[
        0
    ] == {
        "comment": "hi",
        "derived_exit_code": 1,
        "wckey": "k",
        "admin_comment": "a",
        "system_comment": "s",
    }
    assert _jobs(house, "comment")[1]["comment"] == ""


@pytest.mark.parametrize(
    ("named", "changed"),
    [
        ("7", [7, 8, 9]),  # all of an array
        ("8", [8]),
        ("7_2", [8]),
        ("7_1,7_9", [7]),
        ("20", [20, 21]),  # all of a heterogeneous job
        ("20+1", [21]),
        ("30.batch,31x", [30, 31]),
        ("30-31", [30]),
        ("7+0", []),
    ],
)
def test_jobs_to_change_may_be_tasks_components_or_wholes(house, named, changed):
    tasks = [_job(7 + at, array_job_id=7, array_task_id=at + 1) for at in range(3)]
    parts = [_job(20 + at, het_job_id=20, het_offset=at) for at in range(2)]
    house.tell(AccountingRecords("conform", [*tasks, *parts, _job(30), _job(31)]))
    house.sacctmgr(f"-i modify job jobid={named} set derivedec=0 Comment=Hi")
    assert [row["job_id"] for row in _jobs(house, "job_id", "comment") if row["comment"]] == changed
    assert {row["comment"] for row in _jobs(house, "comment")} <= {"", "hi"}


def test_users_may_comment_their_own_jobs_alone(house):
    house.tell(AccountingRecords("conform", [_job(7), _job(8, user="bin")]))
    assert house.sacctmgr("-i modify job jobid=7 set comment=mine", user_id=1).code == 0
    for line in ("jobid=8 set comment=x", "jobid=7 set admincomment=x"):
        assert house.sacctmgr(f"-i modify job {line}", user_id=1).code == 1
    assert [row["comment"] for row in _jobs(house, "comment")] == ["mine", ""]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (
            "jobid=99 set comment=x",
            (
                "sacctmgr: accounting_storage/slurmdbd: acct_storage_p_modify_job: Request "
                "didn't affect anything"
            ),
        ),
        ("jobid=abc set comment=x", "sacctmgr: fatal: Bad job/step specified: abc\n"),
        ("jobid=7_x set comment=x", "sacctmgr: fatal: Bad job array element specified: 7\n"),
        ("jobid=_1 set comment=x", "sacctmgr: fatal: Bad job/step specified: _1\n"),
        ("jobid=[7-8] set comment=x", "sacctmgr: fatal: Bad job/step specified: [7-8]\n"),
        ("jobid=, set comment=x", "Invalid job id(s) , specified\n"),
        ("7 set comment=x", " Unknown condition: 7\n Use keyword 'set' to modify value\n"),
        ("jobid=7", " You didn't give me anything to set\n"),
        ("jobid=7 set foo=1", " You didn't give me anything to set\n"),
    ],
)
def test_wrong_changes_of_jobs(house, line, complaint):
    said = house.sacctmgr(f"-i modify job {line}")
    assert said.code == 1
    assert said.err.startswith(complaint)


def test_jobs_that_the_controller_does_not_know_are_runaways_and_can_be_ended(house, monkeypatch):
    house.tell(AccountingRecords("conform", [_job(7), _job(8), _job(9, end_time=NOW + 9, state=3)]))
    monkeypatch.setattr(LocalClient, "controller_jobs", lambda _client: [8], raising=False)
    said = house.sacctmgr("show runawayjobs", stdin="n\n")
    assert said.out.splitlines()[0].startswith("NOTE: Runaway jobs are jobs")
    assert said.out.splitlines()[3].split()[:5] == ["7", "j", "debug", "conform", "RUNNING"]
    assert _jobs(house, "end_time")[0]["end_time"] is None
    house.sacctmgr("show runawayjobs", stdin="y\n")
    assert _jobs(house, "end_time", "state")[:2] == [
        {"end_time": NOW + 5, "state": 3},
        {"end_time": None, "state": 1},
    ]
    assert (
        house.sacctmgr("show runaway").out == "Runaway Jobs: No runaway jobs found on cluster "
        "conform\n"
    )


def test_a_question_takes_letter_by_letter_and_asks_again(house):
    house.do("add qos q")
    said = house.sacctmgr("modify qos q set priority=7", stdin="maybe\n")
    assert said.out.endswith("(N/y): \nY or N please\n(N/y): \nY or N please\n(N/y): \n")
    assert house.show("qos q format=priority") == ["7"]
    said = house.sacctmgr("modify qos q set priority=8", stdin="\n")
    assert said.out.endswith("(N/y): \n Changes Discarded\n")
    assert house.show("qos q format=priority") == ["7"]


@pytest.mark.parametrize(
    ("typed", "is_wanted", "asked"),
    [("y", True, 1), ("n", False, 1), ("\n", False, 1), ("xY", True, 2)],
)
def test_a_key_at_a_terminal_is_an_answer(typed, is_wanted, asked):
    keyboard, terminal = pty.openpty()
    out = io.StringIO()
    os.write(keyboard, typed.encode())
    with open(terminal, encoding="utf-8") as stdin:
        before = termios.tcgetattr(stdin)
        session = Session(Context("sacctmgr", client=FakeClient(), stdin=stdin, stdout=out))
        assert session.confirmed() == is_wanted
        assert termios.tcgetattr(stdin) == before
    os.close(keyboard)
    assert out.getvalue().count("(N/y)") == asked


def test_update_is_another_word_for_modify(house):
    house.do("add qos q", "update qos q set priority=7", "u qos q set grpjobs=3")
    assert house.show("qos q format=priority,grpjobs") == ["7|3"]


def test_conditions_on_associations_need_withassoc_or_an_answer(house):
    house.do("add account a,b", "add user u account=a")
    said = house.sacctmgr("-nP show user account=b format=user", stdin="y\n")
    assert said.out.startswith(
        "You requested options that are only valid when querying with the withassoc "
        "option.\nAre you sure"
    )
    assert said.out.endswith("(N/y): \nroot\nu\n")
    said = house.sacctmgr("-nP show user account=b format=user", stdin="n\n")
    assert (said.code, said.out.splitlines()[-1]) == (0, "Aborted")
    assert house.show("user account=a withassoc format=user,account,share,maxj") == [
        "root||0|0",
        "u|a|1|",
    ]


def test_numbers_end_where_their_digits_end(house):
    house.do("add account a maxjobs=3x fairshare=4y")
    assert house.show("assoc account=a format=maxjobs,share") == ["3|4"]
    said = house.sacctmgr("-i add qos q usagefactor=abc")
    assert (said.code, said.err) == (0, "sacctmgr: error: Invalid value for UsageFactor (abc)\n")


def test_a_quality_of_service_may_not_preempt_itself(house):
    house.do("add qos a,b", "modify qos a set preempt=b")
    said = house.sacctmgr("-i modify qos b set preempt=a")
    assert (said.code, said.err) == (
        1,
        (
            "sacctmgr: error: QOS Preemption loop detected\n"
            " Error with request: QOS Preemption loop detected\n"
        ),
    )
    assert house.show("qos b format=preempt") == [""]


def test_a_user_without_associations_goes_and_a_default_account_stays(house):
    house.do("add account a,b", "add user u account=a,b")
    said = house.sacctmgr("-i delete user where account=a,b")
    assert (said.code, said.err.splitlines()[0]) == (
        1,
        " Error with request: You can not remove the default account of a user",
    )
    house.do("delete user u account=b")
    said = house.sacctmgr("-i delete user u account=a")
    assert said.out.endswith(" Deleting users (No Associations)...\n  u\n")
    assert house.show("user u") == []


def test_a_tree_is_indented_and_to_the_left(house):
    house.do("add account a", "add account b parent=a")
    said = house.sacctmgr("show assoc tree format=account,share")
    assert said.out.splitlines()[-2:] == [
        " a                           1 ",
        "  b                          1 ",
    ]


def test_an_empty_user_means_accounts_alone(house):
    house.do("add account a", "add user u account=a")
    assert house.show("assoc user= format=account,user") == ["root|", "a|"]
    assert house.show("assoc parent=root format=account,user") == ["a|"]


def test_a_partition_s_association_added_later_is_no_default(house):
    house.do(
        "add account a", "add user u account=a partition=x,y", "add user u account=a partition=z"
    )
    assert house.show("assoc user=u onlydefaults format=partition") == ["x", "y"]


def test_nothing_is_changed_in_readonly_mode(house):
    said = house.sacctmgr("-r -i add account a")
    assert (said.code, said.err) == (1, "Can't run this command in readonly mode.\n")


def test_the_configuration_is_that_of_the_controller_and_of_accounting(house, monkeypatch):
    monkeypatch.setattr(
        LocalClient,
        "controller_config",
        lambda _client: {"TrackWCKey": "Yes", "SlurmUser": "root(0)"},
        raising=False,
    )
    dbd = DbdConfig("/etc/slurmdbd.conf", {"PurgeJobAfter": "12months", "TrackWCKey": "yes"})
    house.accounting._configuration = lambda: configuration(dbd, {"DbdHost": "here"})
    lines = house.sacctmgr("show config").out.splitlines()
    assert lines[2] == "AccountingStorageHost  = (null)"
    assert {
        "TrackWCKey             = Yes",
        "SlurmUserId            = root(0)",
        "PurgeJobAfter          = 12months",
    } <= set(lines)
    assert {
        "DbdHost                = here",
        "MessageTimeout         = 10 secs",
        "PurgeStepAfter         = NONE",
    } <= set(lines)
    assert lines.index("SlurmDBD configuration:") == 18


def test_transactions_name_their_associations(house):
    house.do("add account a", "add user u account=a")
    rows = house.show("transaction withassoc format=action,cluster,account,user")
    assert rows[-2:] == ["Add Users|||", "Add Associations|conform|a|u"]


def test_use_is_forgotten_by_the_controller(house):
    house.do("add account a", "add account b parent=a", "add user u account=b", "add qos q")
    told = []
    handle = house.accounting.handle

    def listening(message, sender):
        answer, news = handle(message, sender)
        told.extend(each for peer, each in news)
        return answer, news

    house.accounting.handle = listening
    said = house.sacctmgr("-i modify account b set rawusage=0")
    assert (said.code, said.out) == (
        0,
        "No cluster specified, resetting on local cluster conform\n",
    )
    number = int(house.show("assoc account=b user= format=id")[0])
    assert (told[-1].unused_associations, told[-1].unused_qos) == ([number], [])
    house.do(
        "modify user where name=u account=b cluster=conform set rawusage=0",
        "modify qos q set rawusage=0",
    )
    assert told[-2].unused_associations == [int(house.show("assoc user=u format=id")[0])]
    assert told[-1].unused_qos == ["q"]
    assert [each.number for each in told] == list(range(told[0].number, told[0].number + 3))
    assert (
        house.sacctmgr("-i modify user u set rawusage=0").err
        == "sacctmgr: error: An account must be "
        "specified\n"
    )
    assert (
        house.sacctmgr("-i modify account b set rawusage=5").err
        == "sacctmgr: error: Raw usage can only be set to 0 "
        "(zero)\n"
    )
    said = house.sacctmgr("-i modify user where name=u account=a cluster=conform set rawusage=0")
    assert (
        said.err
        == "sacctmgr: error: Failed to find cluster conform account a user u association in "
        "database\n"
    )
    assert house.sacctmgr("-i modify account b set rawusage=0", user_id=77).code == 1


def test_reservations_by_node_are_of_a_cluster(house):
    house.tell(
        AccountingRecords(
            "conform", [ReservationRecord(1, "r", int(NOW), int(NOW) + 60, nodes="n[1-2]")]
        )
    )
    said = house.sacctmgr("-n -P show reservation where node=n2 format=name", stdin="y\n")
    assert said.out == (
        "If requesting nodes you must also request the cluster.\n"
        "Would you like to use the local cluster of 'conform'? (You have 30 seconds to "
        "decide)\n(N/y): \nr\n"
    )
    assert house.show("reservation where node=n3 cluster=conform format=name") == []


def test_associations_of_one_user_are_listed_as_they_lie_in_the_tree(house):
    house.do(
        "add account physics",
        "add account optics parent=physics",
        "add account a1",
        "add user u account=physics",
        "add user u account=optics,a1",
    )
    assert house.show("assoc user=u format=account") == ["a1", "physics", "optics"]
    house.do("add user u account=a1 partition=x,y", "add user u account=a1 partition=b")
    assert house.show("assoc user=u account=a1 format=partition") == ["b", "x", "y", ""]


def test_runaway_jobs_are_for_operators_and_statistics_and_archives_for_administrators(
    house, monkeypatch
):
    monkeypatch.setattr("os.getuid", lambda: 1)
    assert (
        house.sacctmgr("show runaway").err
        == "sacctmgr: error: You must have an AdminLevel>=Operator to fix runaway "
        "jobs\n"
    )
    assert [house.sacctmgr(line).code for line in ("show stats", "clear stats")] == [1, 1]
    assert (
        house.sacctmgr("dump conform file=/dev/null").err
        == " Your user does not have sufficient privileges to dump "
        "clusters.\n"
    )
    house.do("add account a", "add user daemon account=a adminlevel=operator")
    lines = ("show stats", "clear stats", "-i archive dump", "dump conform file=/dev/null")
    assert [house.sacctmgr(line).code for line in lines] == [1, 1, 1, 1]
    house.do("modify user daemon set adminlevel=admin")
    assert [house.sacctmgr(line).code for line in lines] == [0, 0, 0, 0]


def test_statistics_count_requests_by_type_and_user_until_they_are_cleared(house):
    house.do("add account a", "add qos q")
    house.show("account")
    lines = house.sacctmgr("show stats").out.splitlines()
    assert lines[1].startswith("sacctmgr show stats output at ")
    assert lines[2].startswith("Data since                    ")
    assert lines[3] == "All statistics are in microseconds"
    counted = {
        line.split("count:")[0]: int(line.split("count:")[1].split()[0])
        for line in lines
        if "count:" in line
    }
    assert counted["\tDBD_ADD_QOS              ( 1447) "] >= 1
    assert counted["\tDBD_GET_ACCOUNTS         ( 1409) "] >= 1
    assert counted["\troot                (         0) "] >= 3
    assert "Internal DBD rollup" not in "\n".join(lines), "use has not been added up"
    assert house.sacctmgr("clear stats").code == 0
    assert "DBD_ADD_QOS" not in house.sacctmgr("show stats").out


def test_statistics_tell_when_use_was_added_up(house):
    house.accounting.roll_up()
    lines = house.sacctmgr("show stats").out.splitlines()
    at = next(
        number
        for number, line in enumerate(lines)
        if line.startswith("Internal DBD rollup last ran ")
    )
    assert [line.split(":")[0] for line in lines[at + 1 : at + 6]] == [
        "\tLast cycle",
        "\tMax cycle",
        "\tTotal time",
        "\tTotal cycles",
        "\tMean cycle",
    ]
    assert lines[at + 4] == "\tTotal cycles: 1"
