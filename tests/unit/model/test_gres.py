"""Generic resources as text."""

import pytest

from understudy.model.gres import GresCount, mixes_types, read_configured, read_count, read_request


def test_a_node_line() -> None:
    assert read_configured("gpu:a100:4,gpu:2,tape,mem:no_consume:50G,"
        "bw:lustre:no_consume:4g(S:0-1)") == (
        GresCount("gpu", "a100", 4), GresCount("gpu", "", 2), GresCount("tape", "", 1),
        GresCount("mem", "", 50 << 30, is_consumed=False),
        GresCount("bw", "lustre", 4 << 30, is_consumed=False),
    )  # fmt: skip
    assert read_configured("") == ()


@pytest.mark.parametrize("text", ["gpu:a:b:2", "4", ":2"])
def test_what_is_no_node_line(text: str) -> None:
    with pytest.raises(ValueError, match=text):
        read_configured(text)


def test_a_request_counts_each_name_and_type_once() -> None:
    assert read_request("gres:gpu:a:1,gpu:a:2,gres/tape,nic=3") == (
        GresCount("gpu", "a", 2),
        GresCount("tape", "", 1),
        GresCount("nic", "", 3),
    )
    assert read_request("none") == read_request("gpu:0") == read_request("") == ()
    assert read_request("gpu:v100") == (GresCount("gpu", "v100", 1),)


def test_counts_have_suffixes_of_1024() -> None:
    assert [read_count(text) for text in ("3", "2k", "1M", "x", "")] == [
        3,
        2048,
        1 << 20,
        None,
        None,
    ]


def test_types_and_no_types_of_one_name_do_not_mix() -> None:
    assert mixes_types(read_request("gpu:1,gpu:a:2"))
    assert not mixes_types(read_request("gpu:b:1,gpu:a:2,tape:1"))
