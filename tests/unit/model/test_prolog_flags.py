"""PrologFlags."""

import pytest

from understudy.model.prolog_flags import prolog_words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("Alloc", "alloc"),
        ("contain", "alloc contain"),
        ("X11", "alloc contain x11"),
        ("NoHold, Serial", "alloc nohold serial"),
        ("Serial", "serial"),
        ("DeferBatch", "alloc deferbatch"),
    ],
)
def test_words_imply_others(text, expected):
    assert prolog_words(text) == set(expected.split())
