"""Task distributions: what the values of --distribution mean, and how records show them."""

from __future__ import annotations

import re

import pytest

from understudy.model.distribution import BadPlaneError, canonical, shown


@pytest.mark.parametrize(
    ("text", "meant", "in_records"),
    [
        ("block", "block", "Block"),
        ("Cyclic", "cyclic", "Cyclic"),
        ("*", "block", "Block"),
        ("block:*", "block:cyclic", "BCyclic"),
        ("*:*:fcyclic", "block:cyclic:fcyclic", "BCyclicFCyclic"),
        ("cyclic:block:cyclic", "cyclic:block:cyclic", "CBlockCyclic"),
        ("block:", "block", "Block"),
        (":block", "block:block", "BBlock"),
        ("Pack", "pack", "Pack"),
        ("*,Pack", "block,pack", "Block,Pack"),
        ("block:block:fcyclic,NoPack", "block:block:fcyclic,nopack", "BBlockFCyclic,NoPack"),
        ("plane=2", "plane=2", "Plane"),
        ("arbitrary", "arbitrary", "arbitrary task distribution"),
    ],
)
def test_stars_and_capitals_are_gone(text: str, meant: str, in_records: str) -> None:
    assert canonical(text) == meant
    assert shown(meant) == in_records


@pytest.mark.parametrize(
    "text",
    [
        "",
        "foo",
        "block:foo",
        "arbitrary:block",
        "block,foo",
        ",pack",
        "block,pack,nopack",
        "fcyclic",
        "block:block:block:block",
    ],
)
def test_others_mean_nothing(text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        canonical(text)


@pytest.mark.parametrize(
    "text", ["plane", "plane=", "plane=0", "plane=-1", "plane=2:block", "plane=2,pack"]
)
def test_a_plane_needs_a_size(text: str) -> None:
    with pytest.raises(BadPlaneError):
        canonical(text)
