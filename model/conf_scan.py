"""From the text of slurm.conf and its companions to lines of key=value pairs; what cannot be read
becomes a finding, never an end.

Place: the lowest of the three layers that read configurations: lines (here), their meaning
(understudy.model.conf), the verdict (conf_check). It knows no key but `Include`.

How 22.05 reads, as observed: a `#` not behind a backslash starts a comment, also within quotes;
then a backslash at the line's end joins the next line; a key is letters, digits, `_` and `.`;
blanks may stand around `=`; a value is quoted or runs to the next blank; what does not fit is an
error that names the line.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from understudy.model import hostlist

if TYPE_CHECKING:
    from collections.abc import Callable

ERROR: Final = "error"
WARNING: Final = "warning"

_PAIR = re.compile(r"""\s*([A-Za-z0-9_.]+)\s*=\s*("[^"]*"(?=\s|$)|\S+)""")
_COMMENT = re.compile(r"(?<!\\)#.*", re.DOTALL)
_INCLUDE = re.compile(r"\s*include\s+(\S.*)", re.IGNORECASE | re.DOTALL)
_DEEPEST_INCLUDE: Final = 16
_LONGEST_TEXT: Final = 100


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a configuration that its owner should know. `severity` is "error" where Slurm
    would refuse the file, else "warning".

    kind: parse_error, missing_include, unknown_key, misplaced_key, bad_value, hostlist_error,
    duplicate_node, duplicate_partition, undefined_nodes,
        address_count_mismatch, missing_key, key_given_twice, repeated_key, old_key, new_key,
        reset_value, missing_file, idle_plugin.
    text: the offending text; `message`: what is wrong with it, for a reader; `key`: the key that it
    belongs to, if any.
    """

    kind: str
    severity: str
    file: str
    line: int
    text: str
    message: str
    key: str = ""

    def __str__(self) -> str:
        where = (
            f"{self.file} line {self.line}: "
            if self.line
            else f"{self.file}: "
            if self.file
            else ""
        )
        return f"{where}{self.message}"


@dataclass(slots=True)
class ConfLine:
    """One logical line: where it begins, and its pairs with keys in lower case."""

    file: str
    line: int
    pairs: list[tuple[str, str]]
    written: list[str]  # the keys as they are written

    @property
    def key(self) -> str:
        """The key that begins the line."""
        return self.pairs[0][0]

    @property
    def value(self) -> str:
        return self.pairs[0][1]


def expanded(
    line: ConfLine, key: str, expression: str, report: Callable[[Finding], None]
) -> list[str]:
    """The names of a host list; none, and a finding, if it cannot be read."""
    try:
        return hostlist.expand(expression)
    except ValueError as error:
        message = f"{key}={expression}: {error}"
        report(Finding("hostlist_error", ERROR, line.file, line.line, expression, message, key))
        return []


@dataclass(slots=True)
class Scan:
    """All lines of a file and of those that it includes, in their order."""

    path: str
    lines: list[ConfLine] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    files: list[str] = field(default_factory=list)  # in the order in which they were opened
    continued_lines: int = 0  # lines that go on with the next, however often


def logical_lines(text: str) -> tuple[list[tuple[int, str]], int]:
    """Lines without comments, continued ones joined, as (number of the first physical line, text);
    and how many of them were continued.
    """
    joined: list[tuple[int, str]] = []
    continued = 0
    start, parts = 0, ""
    for number, raw in enumerate(text.split("\n"), 1):
        line = _COMMENT.sub("", raw).replace("\\#", "#").rstrip() if "#" in raw else raw.rstrip()
        if not parts:
            start = number
        if line.endswith("\\"):
            continued += not parts
            # A line that holds the backslash alone still begins here.
            parts = parts + line[:-1] or " "
            continue
        whole = parts + line if parts else line
        parts = ""
        if whole and not whole.isspace():
            joined.append((start, whole))
    if parts and not parts.isspace():
        joined.append((start, parts))
    return joined, continued


def split_pairs(text: str) -> tuple[list[tuple[str, str]], str]:
    """The key=value pairs from the start of a line (keys as written, quotes taken off), and the
    rest that is none.
    """
    pairs = []
    at = 0
    while match := _PAIR.match(text, at):
        value = match[2]
        if len(value) > 1 and value[0] == value[-1] == '"':
            value = value[1:-1]
        pairs.append((match[1], value))
        at = match.end()
    return pairs, text[at:].strip()


def scan(path: str) -> Scan:
    """Read a configuration file with its includes.

    Raises:
        OSError: the file itself cannot be read; a missing include is a finding.
    """
    result = Scan(path)
    with open(path, "rb") as stream:
        text = stream.read()
    _scan_text(result, path, text, depth=0)
    return result


def scan_text(text: str, path: str = "slurm.conf") -> Scan:
    """The same for a text that is at hand; includes are looked for beside `path`."""
    result = Scan(path)
    _scan_text(result, path, text.encode("utf-8", "surrogateescape"), depth=0)
    return result


def _scan_text(result: Scan, path: str, data: bytes, depth: int) -> None:
    result.files.append(path)
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\0", " ")
    lines, continued = logical_lines(text)
    result.continued_lines += continued
    for number, line in lines:
        if match := _INCLUDE.match(line):
            _include(result, path, number, match[1].split()[0].strip('"') or ".", depth)
            continue
        pairs, rest = split_pairs(line)
        if rest:
            shown = rest[:_LONGEST_TEXT]
            behind = f" behind {pairs[0][0]}" if pairs else ""
            result.findings.append(
                Finding(
                    "parse_error",
                    ERROR,
                    path,
                    number,
                    shown,
                    f'cannot read "{shown}"{behind}',
                    pairs[0][0] if pairs else "",
                )
            )
        if pairs:
            written = [key for key, _ in pairs]
            result.lines.append(
                ConfLine(path, number, [(key.lower(), value) for key, value in pairs], written)
            )


def include_candidates(name: str, base: str, folder: str, cluster: str) -> list[str]:
    """Where an included file may be: at an absolute path, or beside slurm.conf (`base`); a site's
    files that were taken elsewhere together lie beside each other, and so an absolute path that is
    not there is looked for there, too. `folder`: the including file's; `cluster`: what %c means.
    """
    name = name.replace("%c", cluster)
    candidates = [os.path.join(base, name), os.path.join(folder, name)]
    if os.path.isabs(name):
        candidates += [
            os.path.join(base, os.path.basename(name)),
            os.path.join(folder, os.path.basename(name)),
        ]
    return list(dict.fromkeys(candidates))


def _cluster_name(result: Scan) -> str:
    return next(
        (
            value
            for line in reversed(result.lines)
            for key, value in line.pairs
            if key == "clustername"
        ),
        "",
    )


def _include(result: Scan, path: str, number: int, name: str, depth: int) -> None:
    """Read an included file."""
    cluster = _cluster_name(result) if "%c" in name else ""
    candidates = include_candidates(
        name, os.path.dirname(result.path), os.path.dirname(path), cluster
    )
    problem = "it includes itself" if depth >= _DEEPEST_INCLUDE else ""
    data = None
    for candidate in [] if problem else candidates:
        try:
            with open(candidate, "rb") as stream:
                data = stream.read()
        except (OSError, ValueError) as error:
            problem = problem or getattr(error, "strerror", None) or str(error)
        else:
            _scan_text(result, candidate, data, depth + 1)
            return
    result.findings.append(
        Finding(
            "missing_include",
            ERROR,
            path,
            number,
            name,
            f"cannot include {name}: {problem}",
            "Include",
        )
    )
