"""Which reasons sacct knows: those of 22.05, and no others."""

from __future__ import annotations

from understudy.commands.sacct.reasons import known_reasons


def test_regular_and_irregular_words_are_those_that_22_05_takes() -> None:
    known = known_reasons()
    for name in ("AssocGrpMemLimit", "AssocMaxMemPerJob", "QOSMaxMemoryPerUser", "AssocGrpBB"):
        assert known[name.lower()] == name
    for name in ("AssocGrpMem", "AssocMaxMemoryPerJob", "QOSMaxBBMinutesPerJob", "QOSMaxMemPerJob"):
        assert name.lower() not in known
    assert len(known) == 196
