"""Feature expressions of `--constraint`: which nodes they allow.

Place: scheduling, pure. Follows sbatch(1) --constraint: `&` and `|` from left to right, parentheses, and `[a|b]`, of which one alternative must
hold for all nodes of the job, tried in order; or counts, `a*2&b*1`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from understudy.model.errors import SlurmError

if TYPE_CHECKING:
    from collections.abc import Callable

INVALID_FEATURE: Final = 2029
_NAME: Final = re.compile(r"[^&|()\[\]*\s]+")
_TOKEN: Final = re.compile(r"\s*([&|()\[\]]|[^&|()\[\]\s]+)\s*")


def feature_sets(expression: str, having: Callable[[str], int], all_nodes: int) -> tuple[int, ...]:
    """Bitmaps of nodes of which one must hold the whole job, in the order in which to try them. `having` gives the nodes with a feature.

    Raises:
        SlurmError: it is not such an expression. For counts (`a*2`) there is `counted_features`.
    """
    if not expression:
        return (all_nodes,)
    tokens = _TOKEN.findall(expression)
    reader = _Reader(tokens, having, expression)
    sets = reader.terms(closing="")
    if reader.at != len(tokens):
        raise SlurmError(INVALID_FEATURE)
    return tuple(nodes & all_nodes for nodes in sets)


def counted_features(expression: str, having: Callable[[str], int], all_nodes: int) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Of `a*2&b*1`, also in brackets: the nodes that the job may have, and how many it must have of which. What has no count is asked of all nodes.

    Raises:
        SlurmError: it is not such an expression.
    """
    counted: list[tuple[int, int]] = []
    for part in expression.strip().removeprefix("[").removesuffix("]").split("&"):
        name, star, count = part.strip().partition("*")
        if not _NAME.fullmatch(name) or (star and not (count.isdecimal() and int(count))):
            raise SlurmError(INVALID_FEATURE)
        if star:
            counted.append((having(name), int(count)))
        else:
            all_nodes &= having(name)
    return all_nodes, tuple((nodes & all_nodes, count) for nodes, count in counted)


class _Reader:
    """Recursive descent. A value is a tuple of alternatives; most have one."""

    def __init__(self, tokens: list[str], having: Callable[[str], int], expression: str) -> None:
        if "*" in expression or "".join(tokens) != "".join(expression.split()):
            raise SlurmError(INVALID_FEATURE)
        self.tokens, self.having, self.at = tokens, having, 0

    def next(self) -> str:
        if self.at >= len(self.tokens):
            raise SlurmError(INVALID_FEATURE)
        self.at += 1
        return self.tokens[self.at - 1]

    def terms(self, closing: str) -> tuple[int, ...]:
        value = self.term()
        while self.at < len(self.tokens) and self.tokens[self.at] != closing:
            operator = self.next()
            right = self.term()
            if operator == "&":
                value = tuple(a & b for a in value for b in right)
            elif operator == "|":
                value = tuple(a | b for a in value for b in right)
            else:
                raise SlurmError(INVALID_FEATURE)
        return value

    def term(self) -> tuple[int, ...]:
        word = self.next()
        if word == "(":
            value = self.terms(closing=")")
            if self.next() != ")":
                raise SlurmError(INVALID_FEATURE)
            return value
        if word == "[":
            alternatives = list(self.term())
            while (word := self.next()) == "|":
                alternatives += self.term()
            if word != "]":
                raise SlurmError(INVALID_FEATURE)
            return tuple(alternatives)
        if word in "&|)]":
            raise SlurmError(INVALID_FEATURE)
        return (self.having(word),)
