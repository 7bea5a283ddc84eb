"""A batch script: reading it, and the `#SBATCH` (and `#PBS`) lines at its top.

Place: under sbatch; no I/O but reading the script. Follows sbatch(1): directives count up to the first line neither empty nor a comment; words
are split at blanks, quotes and backslashes keep them together, ` #` begins a comment.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


class ScriptError(Exception):
    """A script that sbatch refuses. `lines` are its complaints; `is_fatal`: as a fatal error; `exit_code`."""

    def __init__(self, *lines: str, is_fatal: bool = False, exit_code: int = 1) -> None:
        self.lines = lines
        self.is_fatal = is_fatal
        self.exit_code = exit_code
        super().__init__(*lines)


def find_script(name: str, path: str | None) -> str:
    """Where the script is: as named if there is a slash in the name, else here, else in PATH.

    Raises:
        ScriptError: nowhere.
    """
    if "/" in name:
        if os.path.exists(name):
            return name
    else:
        for folder in [os.getcwd(), *(path or "").split(":")]:
            candidate = os.path.join(folder, name)
            if folder and os.path.isfile(candidate):
                return candidate
    raise ScriptError(f"Unable to open file {name}")


def read_script(name: str | None, stdin: "TextIO", path: str | None = None) -> tuple[str, str]:
    """(where it is, its text); from standard input without a name.

    Raises:
        ScriptError: it cannot be read, is empty or is no script.
    """
    where = ""
    if name is None:
        text = stdin.read()
    elif os.path.isdir(name):
        raise ScriptError("Batch script is empty!")
    else:
        where = find_script(name, path)
        try:
            with open(where, encoding="utf-8", errors="surrogateescape", newline="") as file:
                text = file.read()
        except OSError:
            raise ScriptError(f"Unable to open file {name}") from None
    if not text.strip():
        raise ScriptError("Batch script is empty!" if not text else "Batch script contains only whitespace!")
    if not text.startswith("#!"):
        raise ScriptError(
            "This does not look like a batch script.  The first",
            "line must start with #! followed by the path to an interpreter.",
            "For instance: #!/bin/sh",
        )
    if "\0" in text:
        raise ScriptError("The Slurm controller does not allow scripts that", "contain a NULL character '\\0'.")
    if "\r\n" in text:
        raise ScriptError("Batch script contains DOS line breaks (\\r\\n)", "instead of expected UNIX line breaks (\\n).")
    return where, text


def directives(text: str, where: str, marker: str = "#SBATCH") -> list[list[str]]:
    """The words of each directive line.

    Raises:
        ScriptError: a quote without an end.
    """
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(marker):
            found.append(_split(line[len(marker) :], f"{where or 'stdin'}: line {number}: "))
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return found


def _split(line: str, where: str) -> list[str]:
    words: list[str] = []
    at, end = 0, len(line)
    while at < end:
        begin = at
        while at < end and line[at].isspace():
            at += 1
        if at == end or line[at] == "#":
            break
        word = ""
        while at < end and not line[at].isspace():
            letter = line[at]
            if letter in "'\"":
                close = line.find(letter, at + 1)
                if close < 0:
                    raise ScriptError(f"{where}Unmatched `{letter}` in [{line[begin:]}]", is_fatal=True)
                word += line[at + 1 : close]
                at = close + 1
            elif letter == "\\" and at + 1 < end:
                word += line[at + 1]
                at += 2
            else:
                word += letter
                at += 1
        words.append(word)
    return words


_PBS_OPTIONS = {"A": "account", "e": "error", "N": "job-name", "o": "output", "q": "partition", "a": "begin", "p": "nice", "W": "", "h": "hold"}


def pbs_options(text: str, where: str) -> list[tuple[str, str | None]]:
    """What `#PBS` lines ask for, as (sbatch's long option, value): those that both systems know.

    Raises:
        ScriptError: a quote without an end.
    """
    found: list[tuple[str, str | None]] = []
    for words in directives(text, where, "#PBS"):
        rest = list(words)
        while rest:
            word = rest.pop(0)
            letter = word[1:2]
            if not word.startswith("-") or not letter:
                continue
            if letter == "h":
                found.append(("hold", None))
                continue
            value = word[2:] or (rest.pop(0) if rest else "")
            if letter == "l":
                found += _pbs_resources(value)
            elif _PBS_OPTIONS.get(letter):
                found.append((_PBS_OPTIONS[letter], value))
    return found


def _pbs_resources(text: str) -> list[tuple[str, str | None]]:
    """`nodes=2:ppn=4,walltime=1:00:00,mem=4gb`."""
    found: list[tuple[str, str | None]] = []
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name == "nodes":
            count, *properties = value.split(":")
            found.append(("nodes" if count.isdigit() else "nodelist", count))
            found += [("ntasks-per-node", each[4:]) for each in properties if each.startswith("ppn=")]
        elif name in {"walltime", "cput"}:
            found.append(("time", value))
        elif name in {"mem", "pmem"}:
            found.append(("mem" if name == "mem" else "mem-per-cpu", value.rstrip("bB")))
        elif name in {"ncpus", "mppwidth"}:
            found.append(("ntasks" if name == "mppwidth" else "mincpus", value))
    return found
