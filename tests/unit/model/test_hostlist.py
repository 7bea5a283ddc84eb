"""Host list expressions, compared with what scontrol 22.05 answers."""

import pytest

from understudy.model import bits, hostlist
from understudy.model.hostlist import NodeNames, UnknownHostError


@pytest.mark.parametrize(
    ("names", "in_order", "in_sorted_order"),
    [
        ("n1,n2,n3,n4,n7,m01", "n[1-4,7],m01", "m01,n[1-4,7]"),
        ("n1,n10,n2,n3,m1", "n[1,10,2-3],m1", "m1,n[1-3,10]"),
        ("n01,n1,n2,n02", "n[01,1-2,02]", "n[1-2,01-02]"),
        ("n7,n4,n1", "n[7,4,1]", "n[1,4,7]"),
        ("a1b,a2b,a3b", "a1b,a2b,a3b", "a1b,a2b,a3b"),
        ("rack0n01,rack0n02,rack1n01", "rack0n[01-02],rack1n01", "rack0n[01-02],rack1n01"),
        (
            "rack10n1,rack2n1,rack2n3,rack10n2",
            "rack10n1,rack2n[1,3],rack10n2",
            "rack2n[1,3],rack10n[1-2]",
        ),
        ("a1,b,a2", "a1,b,a2", "a[1-2],b"),
        ("n9,n10,n11", "n[9-11]", "n[9-11]"),
        ("n099,n100,n101", "n[099-101]", "n[099-101]"),
        ("n08,n09,n10,n011", "n[08-10,011]", "n[08-10,011]"),
        ("n10,n2,n02,n010,n100,n9", "n[10,2,02,010,100,9]", "n[2,9,02,10,010,100]"),
        ("n1,n1,n2", "n[1,1-2]", "n[1,1-2]"),
        ("n3,n1,n2,n3", "n[3,1-3]", "n[1-3,3]"),
        ("1,2,3", "[1-3]", "[1-3]"),
        ("tux2,tux,tux1", "tux2,tux,tux1", "tux,tux[1-2]"),
        ("n00,n0,n000", "n[00,0,000]", "n[0,00,000]"),
        ("N2,n1,N1", "N2,n1,N1", "N[1-2],n1"),
        ("n-1,n1,n.1,n0", "n-1,n1,n.1,n0", "n[0-1],n-1,n.1"),
        ("B1,a1,_1,-1,.1", "B1,a1,_1,-1,.1", "-1,.1,B1,_1,a1"),
    ],
)
def test_names_are_compressed_as_scontrol_prints_them(
    names: str, in_order: str, in_sorted_order: str
) -> None:
    assert hostlist.compress(names.split(","), sort=False) == in_order
    assert hostlist.compress(names.split(",")) == in_sorted_order


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("", ""),
        ("n1", "n1"),
        ("n[1,3-5,07]", "n1 n3 n4 n5 n07"),
        ("n[01-3]", "n01 n02 n03"),
        ("n[1-03]", "n1 n2 n3"),
        ("n[098-102]", "n098 n099 n100 n101 n102"),
        ("[1-3]", "1 2 3"),
        ("n[1-3,2]", "n1 n2 n3 n2"),
        ("rack[0-1]n[00-01]", "rack0n00 rack0n01 rack1n00 rack1n01"),
        ("n[1-3]m[1-2],x", "n1m1 n1m2 n2m1 n2m2 n3m1 n3m2 x"),
        ("[1-2][1-2][1-2]", "111 112 211 212 121 122 221 222"),
        ("a,,b", "a b"),
        (" a\tb\n[1-2]", "a b 1 2"),
        ("n1-3", "n1-3"),
        ("n[1-2]-ib,m[1-2]x[1-2]y", "n1-ib n2-ib m1x1y m1x2y m2x1y m2x2y"),
    ],
)
def test_expressions_expand_as_scontrol_does(expression: str, names: str) -> None:
    assert hostlist.expand(expression) == names.split()
    assert hostlist.count(expression) == len(names.split())


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("n[3-1]", "Invalid range: '3-1'"),
        ("n[]", "Invalid range: ''"),
        ("n[a]", "Invalid range: 'a'"),
        ("n[1-2,]", "Invalid range: ''"),
        ("n[1--2]", "Invalid range: '1--2'"),
        ("n[0x1]", "Invalid range: '0x1'"),
        ("n[1-99999999999999999999]", "Invalid range"),
        ("n[1-65537]", "Too many hosts in range '1-65537'"),
        ("n[1-65536]m[0-9]", "Too many hosts"),
        ("n[1-3", "unbalanced '['"),
        ("n1-3]", "unbalanced ']'"),
        ("n[[1-3]]", "unbalanced '['"),
    ],
)
def test_what_is_no_host_list_is_refused_with_the_reason(expression: str, complaint: str) -> None:
    for function in (hostlist.expand, hostlist.count, NodeNames(["n1"]).to_bitmap):
        with pytest.raises(ValueError, match=complaint.replace("[", r"\[").replace("]", r"\]")):
            function(expression)


def test_the_largest_range_is_taken() -> None:
    assert len(hostlist.expand("n[1-65536]")) == hostlist.count("n[1-65536]") == 65536


def test_what_is_written_of_more_names_than_a_range_may_have_can_be_read_again() -> None:
    names = [f"n{number}" for number in range(1, 2 * hostlist.RANGE_LIMIT + 2)]
    written = "n[1-65536,65537-131072,131073]"
    assert hostlist.compress(names) == hostlist.compress(names, sort=False) == written
    assert NodeNames(names).to_expression((1 << len(names)) - 1) == written
    assert hostlist.expand(written) == names
    assert hostlist.compress(names, widest=3 * hostlist.RANGE_LIMIT) == "n[1-131073]"


def test_a_number_too_long_to_be_one_is_text() -> None:
    names = ["x" + "1" * 5000, "x" + "1" * 4999 + "2"]
    assert hostlist.compress(names) == ",".join(names)


def test_node_sets_are_written_as_sorted_ranges_whatever_the_order_of_the_table() -> None:
    table = NodeNames(["n4", "n1", "m2", "n3", "login", "n2", "m1"])
    assert table.to_expression(table.all) == "login,m[1-2],n[1-4]"
    assert table.to_expression(0b1011) == "n[1,3-4]"
    assert table.to_bitmap("n[1-4]") == 0b0101011
    assert table.to_bitmap("login,m1") == 0b1010000


def test_a_consecutive_table_answers_from_ranges() -> None:
    table = NodeNames(hostlist.expand("n[1-16384]"))
    chosen = bits.span(2, 5) | bits.span(9000, 1) | bits.span(9998, 11)
    assert table.to_expression(chosen) == "n[3-7,9001,9999-10009]"
    assert table.to_bitmap("n[3-7,9001,9999-10009]") == chosen
    assert table.to_bitmap("n7") == 1 << 6
    assert len(table) == 16384


def test_padded_and_unpadded_names_of_one_prefix_stay_apart() -> None:
    table = NodeNames(["n8", "n9", "n10", "n08", "n09", "n010"])
    assert table.to_expression(table.all) == hostlist.compress(table.names) == "n[8-9,08-10,010]"
    assert (
        NodeNames(["n98", "n99", "n001", "n100"]).to_expression(0b1011)
        == hostlist.compress(["n98", "n99", "n100"])
        == "n[98-100]"
    )
    assert table.to_bitmap("n[08-09]") == 0b011000


@pytest.mark.parametrize("expression", ["n5", "n[1-5]", "n[1-2],x", "n[1-2]m[1-2]", "n01"])
def test_a_name_outside_the_table_is_named(expression: str) -> None:
    with pytest.raises(UnknownHostError, match=r"Invalid node name (n5|x|n1m1|n01)$"):
        NodeNames(["n1", "n2", "n3", "n4"]).to_bitmap(expression)


def test_a_name_given_twice_makes_no_table() -> None:
    with pytest.raises(ValueError, match="twice"):
        NodeNames(["a", "a"])


def test_answers_stay_right_when_the_memory_of_recent_ones_is_full() -> None:
    table = NodeNames(hostlist.expand("n[1-100]"))
    for _ in range(2):
        for low in range(60):
            for length in range(1, 40):
                bitmap = bits.span(low, length)
                expression = f"n[{low + 1}-{low + length}]" if length > 1 else f"n{low + 1}"
                assert table.to_expression(bitmap) == expression
                assert table.to_bitmap(expression) == bitmap


def test_versions_are_in_the_order_of_the_c_library():
    in_order = [
        "B1",
        "a1b",
        "a9",
        "a10",
        "ab1",
        "b2",
        "b12",
        "c007",
        "c009",
        "c10",
        "n-1",
        "n08",
        "n1",
        "n2",
        "n10",
        "n_2",
        "node",
        "r1n2",
        "r1n10",
        "r2n1",
    ]
    assert _as_versions(in_order) == in_order
    fractions = ["v000", "v00", "v01", "v010", "v010b", "v09", "v0", "v0b", "v1", "v9", "v10"]
    assert _as_versions(fractions) == fractions


def _as_versions(names: list[str]) -> list[str]:
    keys = dict(zip(names, hostlist.version_keys(names), strict=True))
    return sorted(sorted(names), key=keys.__getitem__)


def test_a_short_text_cannot_ask_for_names_of_gigabytes():
    with pytest.raises(ValueError, match="Too long names in xxx"):
        hostlist.expand("x" * 70_000 + "[1-65000]")
    assert len(hostlist.expand("x" * 1000 + "[1-65000]")) == 65_000


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1, "n1"),
        (2, "n[1-2]"),
        (65_536, "n[1-65536]"),
        (65_537, "n[1-65536,65537]"),
        (262_144, "n[1-65536,65537-131072,131073-196608,196609-262144]"),
    ],
)
def test_names_from_one_on_can_be_read_again(count: int, text: str) -> None:
    assert hostlist.numbered("n", count) == text
    assert len(hostlist.expand(text)) == count
