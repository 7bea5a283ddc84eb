"""Feature expressions of `--constraint`: which nodes they allow.

Place: scheduling, pure. Follows sbatch(1) --constraint: `&` and `|` from left to right,
parentheses, and `[a|b]`, of which one alternative must hold for all nodes of the job, tried in
order; or counts, `a*2&b*1`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from understudy.model.errors import ErrorCode, SlurmError

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME: Final = re.compile(r"[^&|()\[\]*\s]+")
_BRACKET: Final = re.compile(r"\[([^\]]*)\]")
_PART: Final = re.compile(r"(?:\([^)]*\)|[^&()])+")  # between the & that are not in parentheses
_COUNT: Final = re.compile(r"\*(\d+)")
_ITEM: Final = r"[^&|()\[\]*,\s]+(?:\*0*[1-9]\d*)?"
_GROUP: Final = rf"\({_ITEM}(?:[&|,]{_ITEM})*\)(?:\*0*[1-9]\d*)?"
_TERM: Final = rf"(?:{_ITEM}|{_GROUP})"
_CHOICE: Final = rf"\[{_TERM}(?:[&|,]{_TERM})*\]"
_EXPRESSION: Final = re.compile(rf"(?:{_TERM}|{_CHOICE})(?:[&|,](?:{_TERM}|{_CHOICE}))*[&|]?\Z")
_TOKEN: Final = re.compile(r"\s*([&|()\[\]]|[^&|()\[\]\s]+)\s*")


def check_form(expression: str) -> None:
    """Refuse what is no expression when it is submitted. An operator at the end is taken.

    Raises:
        SlurmError: blanks, brackets that are not closed, empty or within others, counts beside
        alternatives, or `&` in brackets without counts.
    """
    if not _EXPRESSION.match(expression):
        raise SlurmError(ErrorCode.INVALID_FEATURE)
    for choice in _BRACKET.findall(expression):
        plain = re.sub(r"\([^)]*\)", "", choice)
        if ("|" if "*" in plain else "&") in plain.replace(",", "&"):
            raise SlurmError(ErrorCode.INVALID_FEATURE)


def feature_sets(expression: str, having: Callable[[str], int], all_nodes: int) -> tuple[int, ...]:
    """Bitmaps of nodes of which one must hold the whole job, in the order in which to try them.
    `having` gives the nodes with a feature.

    Raises:
        SlurmError: it is not such an expression. For counts (`a*2`) there is `counted_features`.
    """
    if not expression:
        return (all_nodes,)
    expression = expression.replace(",", "&")
    if expression[-1] in "&|":  # as check_form takes it
        expression = expression[:-1]
    tokens = _TOKEN.findall(expression)
    reader = _Reader(tokens, having, expression)
    sets = reader.terms(closing="")
    if reader.at != len(tokens):
        raise SlurmError(ErrorCode.INVALID_FEATURE)
    return tuple(nodes & all_nodes for nodes in sets)


def counted_features(
    expression: str, having: Callable[[str], int], all_nodes: int
) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Of `[a*2&b*1]` or `a*2&b`: the nodes that the job may have, and how many it must have of
    which.

    In brackets everything is counted, further nodes come from the same kinds, and what is said
    beside the brackets does not count. Without them one feature may be counted: the others are
    asked of all nodes, the counted one only of so many.

    Raises:
        SlurmError: it is not such an expression.
    """
    text = "".join(expression.split()).replace(",", "&")
    bracket = _BRACKET.search(text)
    counted: list[tuple[int, int]] = []
    common = all_nodes
    for part in _PART.findall(bracket[1] if bracket else text):
        what, star, count = part.rpartition("*")
        if not star and bracket:
            raise SlurmError(ErrorCode.INVALID_FEATURE)
        if star and not (count.isdecimal() and int(count)):
            raise SlurmError(ErrorCode.INVALID_FEATURE)
        nodes = feature_sets(what if star else part, having, all_nodes)[0]
        if star:
            counted.append((nodes, int(count)))
        else:
            common &= nodes
    if bracket:
        common = 0
        for nodes, _ in counted:
            common |= nodes
    elif len(counted) > 1:  # accepted, but never satisfied
        common = 0
    return common, tuple((nodes & common, count) for nodes, count in counted)


def counted_nodes(expression: str) -> int:
    """How many nodes an expression with counts asks for."""
    return sum(int(count) for count in _COUNT.findall(expression))


class _Reader:
    """Recursive descent. A value is a tuple of alternatives; most have one."""

    def __init__(self, tokens: list[str], having: Callable[[str], int], expression: str) -> None:
        if "*" in expression or "".join(tokens) != "".join(expression.split()):
            raise SlurmError(ErrorCode.INVALID_FEATURE)
        self.tokens, self.having, self.at = tokens, having, 0

    def next(self) -> str:
        if self.at >= len(self.tokens):
            raise SlurmError(ErrorCode.INVALID_FEATURE)
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
                raise SlurmError(ErrorCode.INVALID_FEATURE)
        return value

    def term(self) -> tuple[int, ...]:
        word = self.next()
        if word == "(":
            value = self.terms(closing=")")
            if self.next() != ")":
                raise SlurmError(ErrorCode.INVALID_FEATURE)
            return value
        if word == "[":
            alternatives = list(self.term())
            while (word := self.next()) == "|":
                alternatives += self.term()
            if word != "]":
                raise SlurmError(ErrorCode.INVALID_FEATURE)
            return tuple(alternatives)
        if word in "&|)]":
            raise SlurmError(ErrorCode.INVALID_FEATURE)
        return (self.having(word),)
