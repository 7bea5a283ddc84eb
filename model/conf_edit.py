"""Changes to a slurm.conf for one run, as `--set` says them: a key gets another value, a list gains
or loses a word, a line of a node or a partition gets other keys.

    --set SchedulerType=sched/builtin          the key's value, whatever the file says; with nothing
                                               behind = its default
    --set SchedulerParameters+=bf_window=2880  the word joins the list; a word of the same name goes
    --set SchedulerParameters-=defer           the word leaves it
    --set "PartitionName=batch MaxTime=2-0"    the line of that name, which keeps its other keys;
                                               where there is none, a new line

Place: the vocabulary; text in, text out. What the result is worth is for understudy.model.conf.
Follows: slurm.conf(5).
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from understudy.model import conf_values
from understudy.model.conf_keys import GLOBAL_KEYS, LINE_KEYS, PARTNERS
from understudy.model.conf_scan import logical_lines, split_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FORM: Final = re.compile(r"\s*([A-Za-z0-9_]+)\s*([+-]?)=\s*(.*?)\s*", re.DOTALL)


class EditError(ValueError):
    """A change that cannot be made; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change. `pairs` are those of a line of a node or partition, the first of which names it;
    for a global key they are empty.
    """

    key: str  # in lower case
    sign: str  # "", "+" or "-"
    value: str
    pairs: tuple[tuple[str, str], ...] = ()


def read_edit(text: str) -> Edit:
    """Understand one change.

    Raises:
        EditError: it is none, or Slurm would not take it.
    """
    match = _FORM.fullmatch(text)
    if not match or any(character in text for character in "\n\r\\#"):
        raise EditError(
            f"--set {text}: it reads KEY=VALUE, KEY+=WORD, KEY-=WORD or "
            "'PartitionName=NAME KEY=VALUE ...'"
        )
    name, sign, value = match.groups()
    key = name.lower()
    if key in LINE_KEYS:
        return _read_line(text, key, sign)
    known = GLOBAL_KEYS.get(key)
    if known is None:
        raise EditError(
            f"--set {text}: slurm.conf has no key "
            f"{name}{_meant(name, [each.name for each in GLOBAL_KEYS.values()])}"
        )
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = value[1:-1]
    if sign:
        if not value:
            raise EditError(f"--set {text}: no word is given")
    elif value:
        try:
            conf_values.value_of(known, value)
        except ValueError as error:
            raise EditError(f"--set {text}: {error}") from None
    return Edit(key, sign, value)


def _read_line(text: str, key: str, sign: str) -> Edit:
    known = LINE_KEYS[key]
    kind = known[key].name
    if sign:
        raise EditError(
            f"--set {text}: a line of {kind} is no list; give the keys that change behind its name"
        )
    pairs, rest = split_pairs(text)
    removed = re.fullmatch(r"((?:[A-Za-z0-9_]+=\s*)*)", rest)  # `KEY=` takes the key off the line
    if rest and not removed:
        raise EditError(f'--set {text}: cannot read "{rest}"')
    pairs += [(word.rstrip("="), "") for word in rest.split()]
    for name, _ in pairs:
        if name.lower() not in known:
            raise EditError(
                f"--set {text}: a line of {kind} has no key "
                f"{name}{_meant(name, [each.name for each in known.values()])}"
            )
    return Edit(key, "", pairs[0][1], tuple(pairs))


def _meant(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name.lower(), [each.lower() for each in names], 1)
    return (
        f" (did you mean {next(each for each in names if each.lower() == close[0])}?)"
        if close
        else ""
    )


def edited(text: str, edits: Sequence[Edit]) -> str:
    """The configuration with the changes, made in their order.

    Raises:
        EditError: a node's name stands on a line together with others.
    """
    for edit in edits:
        text = _line_edited(text, edit) if edit.pairs else _global_edited(text, edit)
    return text


def new_lines(text: str, edits: Sequence[Edit]) -> list[str]:
    """The lines, as `PartitionName=batch`, that the changes add to the configuration because it has
    none of that name: a name may be mistyped.
    """
    have = {(pairs[0][0].lower(), pairs[0][1]) for _, pairs in _blocks(text) if pairs}
    missing = dict.fromkeys((edit.key, edit.value) for edit in edits if edit.pairs)
    return [
        f"{LINE_KEYS[key][key].name}={value}" for key, value in missing if (key, value) not in have
    ]


def _blocks(text: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The text in pieces of one logical line each, as they stand, with the pairs on them."""
    raw: list[str] = []
    for line in text.splitlines(keepends=True):
        raw.append(line)
        _, continued = logical_lines("".join(raw[-1:]).rstrip("\r\n"))
        if continued:
            continue
        lines, _ = logical_lines("".join(raw))
        yield "".join(raw), split_pairs(lines[0][1])[0] if lines else []
        raw = []
    if raw:
        yield (
            "".join(raw) + "\n",
            split_pairs(logical_lines("".join(raw))[0][0][1])[0]
            if logical_lines("".join(raw))[0]
            else [],
        )


def _global_edited(text: str, edit: Edit) -> str:
    key = GLOBAL_KEYS[edit.key]
    kept: list[str] = []
    value = "" if key.default.lower() == "none" else key.default
    for raw, pairs in _blocks(text):
        if pairs and pairs[0][0].lower() == edit.key:
            value = pairs[0][1]
        else:
            kept.append(raw)
    words = [word.strip() for word in value.split(",") if word.strip()]
    for word in edit.value.split(",") if edit.sign else []:
        name = word.partition("=")[0].strip().lower()
        words = [each for each in words if each.partition("=")[0].strip().lower() != name]
        if edit.sign == "+":
            words.append(word.strip())
    value = ",".join(words) if edit.sign else edit.value
    if kept and not kept[-1].endswith("\n"):
        kept.append("\n")
    return "".join([*kept, f"{key.name}={_quoted(value)}\n"] if value else kept)


def _line_edited(text: str, edit: Edit) -> str:
    known = LINE_KEYS[edit.key]
    parts: list[str] = []
    names: list[str] = []
    is_found = False
    for raw, pairs in _blocks(text):
        if not pairs or pairs[0][0].lower() != edit.key:
            parts.append(raw)
            continue
        names.append(pairs[0][1])
        if pairs[0][1] != edit.value:
            parts.append(raw)
            continue
        is_found = True
        parts.append(_line(_merged(pairs, edit.pairs)))
    if not is_found:
        _check_new(edit, names, known[edit.key].name)
        if parts and not parts[-1].endswith("\n"):
            parts.append("\n")
        parts.append(_line(_merged([], edit.pairs)))
    return "".join(parts)


def _check_new(edit: Edit, names: list[str], kind: str) -> None:
    """A node that has a line together with others cannot get one of its own.

    Raises:
        EditError: with the lines that there are.
    """
    if edit.key not in ("nodename", "downnodes"):
        return
    from understudy.model.hostlist import expand  # noqa: PLC0415 - only for this

    try:
        mine = set(expand(edit.value))
        shared = [
            name for name in names if name.upper() != "DEFAULT" and mine.intersection(expand(name))
        ]
    except ValueError as error:
        raise EditError(f"--set {kind}={edit.value}: {error}") from None
    if shared:
        raise EditError(
            f"--set {kind}={edit.value}: the file has no such line; nodes of it are on "
            f"the line {kind}={shared[0]}, which can be set"
        )


def _merged(
    pairs: Sequence[tuple[str, str]], changes: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    found = list(pairs)
    for name, value in changes:
        same = {name.lower(), PARTNERS.get(name.lower(), "")}
        place = next(
            (number for number, (each, _) in enumerate(found) if each.lower() in same), len(found)
        )
        found[place:] = [
            (name, value),
            *((each, old) for each, old in found[place:] if each.lower() not in same),
        ]
    return [(name, value) for name, value in found if value]


def _line(pairs: Sequence[tuple[str, str]]) -> str:
    return " ".join(f"{name}={_quoted(value)}" for name, value in pairs) + "\n"


def _quoted(value: str) -> str:
    return f'"{value}"' if any(character.isspace() for character in value) else value
