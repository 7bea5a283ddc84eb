"""sacctmgr adds, changes, shows and deletes resources and federations; the answers are those of
22.05.8.

Covers: accounting/change_federations, accounting/change_resources, commands/sacctmgr/federation.
"""

import pytest
from accounting_harness import House

from understudy.accounting.core import news


@pytest.fixture
def house():
    house = House()
    yield house
    house.store.close()


def test_a_resource_is_added_with_a_cluster_s_part(house):
    said = house.sacctmgr(
        "-i add resource name=nastran cluster=conform count=100 server=flex_host "
        "servertype=flexlm type=license percentallowed=50"
    )
    assert said.out == (
        " Adding Resource(s)\n  nastran@flex_host\n   Cluster - conform\t50%\n Settings\n"
        "  Name           = nastran\n"
        "  Server         = flex_host\n  Description    = nastran\n  ServerType     = flexlm\n"
        "  Count          = 100\n  Type           = License\n"
    )
    house.do("add resource matlab count=50 server=flex_host type=license")
    assert house.show("resource") == [
        "nastran|flex_host|License|100|50|flexlm",
        "matlab|flex_host|License|50|0|",
    ]
    assert house.show("resource withclusters") == [
        "nastran|flex_host|License|100|50|flexlm|conform|50"
    ]
    said = house.sacctmgr(
        "-i add resource matlab server=flex_host cluster=conform percentallowed=25"
    )
    assert said.out == (
        " Adding Resource(s)\n  matlab@flex_host\n   Cluster - conform\t25%\n Settings\n"
        "  Server         = flex_host\n  Type           = License\n"
    )
    said = house.sacctmgr(
        "-i add resource matlab server=flex_host cluster=conform percentallowed=25"
    )
    assert (said.code, said.out) == (1, " Nothing new added.\n")


@pytest.mark.parametrize(
    ("line", "err"),
    [
        ("", " Need name of resource to add.\n"),
        ("abaqus count=10", " Need to designate a resource type to initially add 'abaqus'.\n"),
        ("abaqus type=license", " Need to designate a resource count to initially add 'abaqus'.\n"),
        (
            "abaqus count=5 type=nosuch",
            " Unknown resource type: 'nosuch'  Valid resources is License.\n",
        ),
        (
            "abaqus count=5 type=license cluster=nosuch",
            (
                " This cluster 'nosuch' doesn't exist.\n"
                "        Contact your admin to add it to accounting.\n"
                " Need a valid cluster name to add a cluster resource.\n"
            ),
        ),
        (
            "abaqus count=5 type=license server=s cluster=conform percentallowed=120",
            (
                " Adding this 1 clusters to resource abaqus@s at 120% each , with 0% already "
                "used,  would go over 100%.  Please redo your math and"
                " resubmit.\n"
            ),
        ),
    ],
)
def test_resources_that_cannot_be_added(house, line, err):
    said = house.sacctmgr(f"-i add resource {line}")
    assert (said.code, said.err) == (1, err)


def test_resources_are_changed_and_deleted_whole_or_in_parts(house):
    house.do("add resource m count=10 server=s type=license cluster=conform percentallowed=50")
    assert house.sacctmgr("-i modify resource m set count=60").out.startswith(
        " Modified server resource ...\n  m@s\n"
    )
    said = house.sacctmgr("-i modify resource m cluster=conform set percentallowed=60")
    assert said.out == " Modified server resource ...\n  Cluster - conform\t- m@s\n"
    assert house.show("resource withclusters format=count,allowed") == ["60|60"]
    said = house.sacctmgr("-i modify resource m set percentallowed=5")
    assert (said.code, said.err) == (
        1,
        'Can\'t change "percentallowed" without specifying a cluster.\n',
    )
    assert house.sacctmgr("-i modify resource no set count=1").out == " Nothing modified\n"
    assert (
        house.sacctmgr("-i delete resource m cluster=conform").out == " Deleting resource(s)...\n"
        "  Cluster - conform\t- m@s\n"
    )
    assert house.sacctmgr("-i delete resource m").out == " Deleting resource(s)...\n  m@s\n"
    assert house.sacctmgr("-i delete resource m").out == " Nothing deleted\n"


def test_federations_have_clusters_with_numbers_and_states(house):
    said = house.sacctmgr("-i add federation fed2 clusters=conform")
    assert said.out == " Adding Federation(s)\n  fed2\n Settings\n  Cluster       = conform\n"
    house.do("add federation fed1")
    assert house.show("federation") == ["fed1||||", "fed2|conform|1||ACTIVE"]
    assert (
        house.sacctmgr("-i add federation fed2").out
        == " This federation fed2 already exists.  Not "
        "adding.\n"
    )
    assert (
        house.sacctmgr("-i add federation f clusters=no").err
        == " The cluster no doesn't exist. Please add "
        "first.\n"
    )
    said = house.sacctmgr("-i modify federation fed1 set clusters+=conform")
    assert said.out == " Setting\n  Cluster      += conform\n Modified federation...\n  fed1\n"
    assert said.err == " The cluster conform is assigned to federation fed2\n"
    said = house.sacctmgr("-i modify federation fed2 set clusters-=conform")
    assert (said.code, said.out, said.err) == (
        1,
        "Nothing to change\n",
        " The cluster conform isn't assigned to federation fed2\n",
    )
    house.do("modify federation fed1 set clusters=")
    assert house.show("federation") == ["fed1||||", "fed2||||"]
    assert house.sacctmgr("-i delete federation fed1").out == " Deleting federations...\n  fed1\n"


def test_a_cluster_has_features_and_a_state_in_its_federation(house):
    house.do(
        "add federation fed",
        "modify cluster conform set federation=fed features=a,b",
        "modify cluster conform set features-=a fedstate=drain",
    )
    assert house.show("cluster format=cluster,federation,features,fedstate,id") == [
        "conform|fed|b|DRAIN|1"
    ]
    assert house.show("cluster withfed format=fedstate") == ["DRAIN"]
    said = house.sacctmgr("-i modify cluster conform set features+=c")
    assert said.out == " Setting\n  Feature     += c\n Modified cluster...\n  conform\n"
    said = house.sacctmgr("-i modify cluster conform set fedstate=nosuch")
    assert (said.code, said.err) == (1, "Invalid FedState nosuch.\n")
    said = house.sacctmgr("-i modify cluster conform set classification=capa maxjobs=-1")
    assert said.out == (
        " Setting\n  Classification = Capability\n  Default Limits:\n  MaxJobs       = NONE\n"
        " Modified cluster defaults for associations...\n  C = conform    A = root\n"
        "  C = conform    A = root                 U = root     \n"
        " Modified cluster...\n  conform\n"
    )
    assert house.show("cluster where classification=capability format=cluster") == ["conform"]


def test_controllers_are_told_of_their_part_of_licences(house):
    house.do("add resource mat count=15 server=srv type=license cluster=conform percentallowed=50")
    house.do("add resource other count=15 server=srv type=license")
    assert house.register("conform").licenses == {"mat@srv": 7}
    before = house.accounting.ledger
    house.do("modify resource mat set count=30")
    assert news(before, house.accounting.ledger, "conform", 9).licenses == {"mat@srv": 15}
    assert news(house.accounting.ledger, house.accounting.ledger, "conform", 9).licenses is None
    house.do("delete resource mat")
    assert house.register("conform").licenses == {}


def test_controllers_are_told_of_their_federation(house):
    assert house.register("conform").federation is None
    before = house.accounting.ledger
    house.do("add federation fed clusters=conform")
    place = house.register("conform").federation
    assert (place.name, place.cluster, place.number, place.state) == ("fed", "conform", 1, "ACTIVE")
    told = news(before, house.accounting.ledger, "conform", 9)
    assert (told.has_moved, told.federation) == (True, place)
    assert not news(house.accounting.ledger, house.accounting.ledger, "conform", 9).has_moved
