"""A batch script: reading it, and the `#SBATCH` (`#PBS`, `#BSUB`) lines at its top.

Place: under sbatch; no I/O but reading the script. Follows sbatch(1): directives count up to the
first line neither empty nor a comment; words are split at blanks, quotes keep them together, `#`
begins a comment.
"""

import os

from understudy.commands.shared.options import NONE, REQUIRED, Option, OptionError, OptionTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


class ScriptError(Exception):
    """A script that sbatch refuses. `lines` are its complaints; `is_fatal`: as a fatal error;
    `exit_code`.
    """

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
        raise ScriptError(
            "Batch script is empty!" if not text else "Batch script contains only whitespace!"
        )
    if not text.startswith("#!"):
        raise ScriptError(
            "This does not look like a batch script.  The first",
            "line must start with #! followed by the path to an interpreter.",
            "For instance: #!/bin/sh",
        )
    if "\0" in text:
        raise ScriptError(
            "The Slurm controller does not allow scripts that", "contain a NULL character '\\0'."
        )
    if "\r\n" in text:
        raise ScriptError(
            "Batch script contains DOS line breaks (\\r\\n)",
            "instead of expected UNIX line breaks (\\n).",
        )
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
    """The words of a line. A backslash takes the next letter as it stands, but no blank: before one
    it ends the word, and alone it ends the line.
    """
    line = line.lstrip()
    words: list[str] = []
    at, end = 0, len(line)
    while at < end:
        begin = at
        while at < end and line[at].isspace():
            at += 1
        word, quote, is_word = "", "", False
        while at < end and (quote or (not line[at].isspace() and line[at] != "#")):
            letter = line[at]
            at += 1
            if letter == "\\":
                if at == end or line[at].isspace():
                    break
                letter = line[at]
                at += 1
            elif letter == quote or (not quote and letter in "'\""):
                quote, is_word = "" if quote else letter, True
                continue
            word += letter
        if quote:
            raise ScriptError(f"{where}Unmatched `{quote}` in [{line[begin:]}]", is_fatal=True)
        if not word and not is_word:
            break
        words.append(word)
        if line[at : at + 1] == "#":
            break
    return words


class OtherScriptError(Exception):
    """A line for another system that is not understood. `lines` are what is said, the last one as
    an error.
    """

    def __init__(self, *lines: str) -> None:
        self.lines = lines
        super().__init__(*lines)


def _table(letters: str) -> OptionTable:
    """Options of one letter, those before a colon with an argument."""
    return OptionTable(
        [
            Option("", letter, REQUIRED if letters[at + 1 : at + 2] == ":" else NONE, "")
            for at, letter in enumerate(letters)
            if letter != ":"
        ]
    )


# What sbatch knows of qsub's and bsub's options. Those that have a name here mean the same as
# sbatch's.
_PBS = _table("a:A:c:C:e:hIj:J:k:l:m:M:N:o:p:q:r:S:t:u:v:VW:z")
_PBS_NAMES = {
    "A": "account",
    "a": "begin",
    "e": "error",
    "h": "hold",
    "J": "array",
    "M": "mail-user",
    "N": "job-name",
    "o": "output",
    "p": "nice",
    "q": "partition",
    "t": "array",
}
_LSF = _table("c:e:J:m:M:n:o:q:W:x")
_LSF_NAMES = {
    "c": "chdir",
    "e": "error",
    "J": "job-name",
    "o": "output",
    "q": "partition",
    "W": "time",
    "x": "exclusive",
}
_MAIL = {"a": "FAIL", "b": "BEGIN", "e": "END", "n": "NONE"}
_PBS_RESOURCES = {
    "walltime": "time",
    "cput": "time",
    "pcput": "time",
    "mem": "mem",
    "ncpus": "mincpus",
    "file": "tmp",
    "nice": "nice",
    "mppnodes": "nodelist",
    "naccelerators": "gpus-per-node",
}


def other_options(text: str, where: str) -> list[tuple[str, str | None]]:
    """What `#PBS` and `#BSUB` lines ask for, as (sbatch's long option, value). sbatch's own lines
    count less.

    Raises:
        ScriptError: a quote without an end.
        OtherScriptError: an option that sbatch does not know.
    """
    found: list[tuple[str, str | None]] = []
    for marker, table, names in (("#PBS", _PBS, _PBS_NAMES), ("#BSUB", _LSF, _LSF_NAMES)):
        for words in directives(text, where, marker):
            try:
                given, operands = table.parse(words)
            except OptionError as error:
                raise OtherScriptError(
                    str(error), "Unrecognized command line parameter ?"
                ) from None
            if operands:
                raise OtherScriptError(f"Invalid argument: {operands[0]}")
            for option, value in given:
                if option.short in names:
                    found.append((names[option.short], value))
                elif marker == "#PBS":
                    found += _of_pbs(option.short, value or "")
                else:
                    found += _of_lsf(option.short, value or "")
    return found


def _of_lsf(letter: str, value: str) -> list[tuple[str, str | None]]:
    if letter == "n":  # at least, at most
        return [("ntasks", value.rpartition(",")[2])]
    if letter == "M":
        return [("mem", f"{value}K" if value.isdigit() else value)]
    return [("nodelist", ",".join(value.split()))] if letter == "m" else []


def _of_pbs(letter: str, value: str) -> list[tuple[str, str | None]]:
    if letter == "m":
        return [("mail-type", ",".join(filter(None, map(_MAIL.get, value))))]
    if letter == "W":
        name, _, jobs = value.partition("=")
        return [("dependency", jobs)] if name == "depend" else []
    found: list[tuple[str, str | None]] = []
    for part in value.split(",") if letter == "l" else ():
        name, _, amount = part.partition("=")
        if name in {"nodes", "select"}:
            found += _pbs_nodes(amount)
        elif name in _PBS_RESOURCES:
            found.append(
                (_PBS_RESOURCES[name], amount.rstrip("bB") if name in {"mem", "file"} else amount)
            )
    return found


def _pbs_nodes(text: str) -> list[tuple[str, str | None]]:
    """`2:ppn=4`, `n1+n2`, `2:ncpus=2:mpiprocs=2:mem=1gb`."""
    count, tasks = "", 0
    names: list[str] = []
    found: list[tuple[str, str | None]] = []
    for part in text.split(":"):
        name, equals, amount = part.partition("=")
        if name in {"ppn", "mpiprocs"}:
            tasks = int(amount) if amount.isdigit() else 0
        elif equals:
            found += [(_PBS_RESOURCES[name], amount.rstrip("bB"))] if name in _PBS_RESOURCES else []
        elif part.isdigit():
            count = part
        else:
            names += part.split("+")
    if count:
        found.append(("nodes", count))
    if names:
        found.append(("nodelist", ",".join(names)))
    if tasks:
        found.append(("ntasks", str(tasks * int(count or 1))))
    return found
