"""A batch script: reading it, and the `#SBATCH` lines at its top.

Place: under sbatch; no I/O but reading the script. Follows sbatch(1): directives count up to the
first line neither empty nor a comment; words are split at blanks, quotes keep them together, `#`
begins a comment.
"""

import os

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
