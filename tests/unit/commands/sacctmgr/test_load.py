"""sacctmgr load reads what sacctmgr dump wrote, and says what it changes as Slurm does.

Covers: commands/sacctmgr/dump.
"""

import pytest
from accounting_harness import House


@pytest.fixture
def house():
    house = House()
    yield house
    house.store.close()


FORM = "format=cluster,account,user,partition,share,maxjobs,grptres,grpwall,maxwall"


def test_what_was_dumped_is_nothing_new_and_makes_a_cluster_alike(house, tmp_path):
    house.do(
        "add account a1 description=first fairshare=10 maxjobs=5",
        "add account a2 parent=a1 grptres=cpu=10 grpwall=60 maxwall=30 qos=normal",
        "add user root account=a2",
        "add user daemon account=a1 admin=operator maxjobs=3",
        "add coordinator daemon account=a2",
        "add user bin account=a1 partition=debug fairshare=4",
    )
    file = tmp_path / "x.cfg"
    house.do(f"dump conform file={file}")
    assert house.sacctmgr(f"-i load {file}").out == "For cluster conform\n Nothing new added.\n"
    said = house.sacctmgr(f"-i load {file} cluster=other")
    assert said.code == 0
    assert said.err.startswith("sacctmgr: Done adding cluster in usec=")
    assert (
        " Changed Default Account       for User    daemon       (null) -> a1\n"
        "Account Associations\n" in said.out
    )
    rows = house.show(f"assoc cluster=conform {FORM}")
    assert house.show(f"assoc cluster=other {FORM}") == [
        row.replace("conform|", "other|") for row in rows
    ]
    house.do("delete user bin account=a1", f"load {file} clean")
    assert house.show(f"assoc cluster=conform {FORM}") == rows


def test_changes_are_told_and_made(house, tmp_path):
    house.do("add account a fairshare=10", "add user u account=a")
    file = tmp_path / "x.cfg"
    file.write_text(
        "# a comment\n\nCluster - 'conform'\nParent - 'root'\nAccount - 'a':Fairshare=11\n"
        "Account - n:Description='new one':MaxJobs=2\n"
        "Parent - n\nUser - u:DefaultAccount='n'\nUser - v\n"
    )
    told = house.sacctmgr(f"load {file}", stdin="n\n")
    assert " Changed fairshare             for Account a                10 -> 11\n" in told.out
    assert " Changed Default Account       for User    u                 a -> n\n" in told.out
    assert told.out.endswith("(N/y): \n Changes Discarded\n")
    assert house.show("assoc account=a user= format=share") == ["10"]
    house.do(f"load {file}")
    assert house.show("assoc account=a user= format=share") == ["11"]
    assert house.show("account n") == ["n|new one|n"]
    assert house.show("user u,v format=user,defaultaccount") == ["u|n", "v|n"]


@pytest.mark.parametrize(
    ("text", "out", "err"),
    [
        (
            "Account - 'n'\n",
            " Nothing new added.\n",
            " You need to specify a cluster name first with 'Cluster - $NAME' in your file\n",
        ),
        (
            "Cluster - 'conform'\nParent - 'no'\n",
            "For cluster conform\n Nothing new added.\n",
            (
                " line(2) You need to add this parent (no) as a child before you can add children "
                "to it.\n"
            ),
        ),
        (
            "Cluster - 'conform'\nParent - 'root'\nAccount - 'n':No=3\n",
            "For cluster conform\n",
            (
                " Unknown option: No=3\n Problem with line(3)\n"
                " Problem with requests: Unspecified error\n"
            ),
        ),
    ],
)
def test_files_that_cannot_be_taken(house, tmp_path, text, out, err):
    file = tmp_path / "x.cfg"
    file.write_text(text)
    said = house.sacctmgr(f"-i load {file}")
    assert (said.code, said.out, said.err) == (1, out, err)


def test_a_file_must_be_named_and_be_there(house):
    assert house.sacctmgr("load").err == " No filename given, specify one with file=''\n"
    assert (
        house.sacctmgr("load /no/file").err == ' Unable to read "/no/file": No such file or '
        "directory\n"
    )
    assert house.sacctmgr("-r load /no/file").err == "Can't run this command in readonly mode.\n"


def test_what_a_file_changes_of_users_and_clusters_that_are_there_is_told(house, tmp_path):
    house.do("add account a", "add user u account=a adminlevel=admin")
    file = tmp_path / "file"
    file.write_text(
        "Cluster - conform:MaxJobs=9\nParent - root\nAccount - a\nParent - a\n"
        "User - u:AdminLevel=Operator:Coordinator=a\n"
    )
    lines = house.sacctmgr(f"-i load {file}").out.splitlines()
    assert " Changed MaxJobs               for Cluster conform          -1 -> 9" in lines
    assert (
        " Changed Admin Level           for User    u          Administrator -> Operator" in lines
    )
    assert " Making User 'u' coordinator for account(s) a" in lines
    file.write_text("Cluster - conform:Foo=3\n")
    assert house.sacctmgr(f"-i load {file}").err.startswith(
        " Unknown option: Foo=3\n error: Problem with line(1)\n"
    )
