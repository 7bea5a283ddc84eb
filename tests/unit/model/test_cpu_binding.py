"""CpuBind of nodes and partitions: which words it takes, and how they are shown."""

from __future__ import annotations

import pytest

from understudy.model.cpu_binding import cpu_binding


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no", "none"),
        ("Socket", "sockets"),
        ("ldoms", "ldoms"),
        ("off", ""),
        ("v", "verbose"),
        ("cores,VERBOSE", "verbose,cores"),
        ("v;core", "verbose,cores"),
        ("v,off,v", "verbose,off"),
        ("thread,", "threads"),
        ("", "before"),
        (",", "before"),
    ],
)
def test_one_binding_may_be_verbose_and_nothing_leaves_what_was(text: str, shown: str) -> None:
    assert cpu_binding(text, "before") == shown


@pytest.mark.parametrize("text", ["x", "n", "quiet", "none,none", "cores,off", "v,x", " core", "0"])
def test_several_bindings_and_other_words_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=text):
        cpu_binding(text)
