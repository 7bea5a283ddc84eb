"""A submission line as accounting keeps it, read as the command read it.

Place: under `understudy import`; pure. The line's words are parted by blanks and nothing is quoted
any more: where an option's value had blanks, its rest looks like the script's name. What comes
behind is looked through for options with a `=` that were not given before. The text of `--wrap` may
have options of the same names: nothing behind it counts if it launches tasks (`srun --ntasks=1`).
"""

from __future__ import annotations

import re
from typing import Final

from understudy.commands.shared.options import Option, OptionError, OptionTable
from understudy.commands.submission.option_table import OPTIONS as SBATCH

_Said = dict[str, str | None]
_COMMANDS: Final = ("sbatch", "srun", "salloc")
# words of a burst buffer's directive behind the first
_OF_BUFFER: Final = re.compile(
    r"[a-z_]+=\S+|jobdw|persistentdw|create_persistent|destroy_persistent|stage_in|stage_out"
)
_FREE_TEXT: Final = ("comment", "job_name", "wrap", "admin_comment", "mail_user")
_LAUNCHER: Final = re.compile(r"(?:^|[ =/;&|(])(?:srun|mpirun|mpiexec)(?= |$)")


def read_submit_line(text: str) -> list[_Said] | None:
    """The options of each component by their names in sbatch's table; None: no line of a command
    that submits jobs, or none that it would take.
    """
    words = _joined(text.split())
    if not words:
        return None
    program = words[0].rpartition("/")[2]
    if program not in _COMMANDS:
        return None
    table = _table(program)
    groups: list[_Said] = []
    rest = [":", *words[1:]]
    while rest[:1] == [":"]:
        try:
            given, rest = _parse(table, rest[1:])
        except OptionError:
            return None
        groups.append(
            {option.dest: value for option, value in given if option.long in SBATCH.by_long}
        )
    return groups


def _joined(words: list[str]) -> list[str]:
    """The line has lost its quotes: what follows in --bb's directive belongs to it."""
    found: list[str] = []
    is_buffer = False
    for word in words:
        if is_buffer and _OF_BUFFER.fullmatch(word):
            found[-1] += f" {word}"
        else:
            is_buffer = word.startswith("--bb=") or found[-1:] == ["--bb"]
            found.append(word)
    return found


def _table(program: str) -> OptionTable:
    if program == "sbatch":
        return SBATCH
    if program == "srun":
        from understudy.commands.srun.srun_options import OPTIONS as SRUN

        return SRUN
    from understudy.commands.salloc import OPTIONS as SALLOC

    return SALLOC


def _parse(
    table: OptionTable, words: list[str]
) -> tuple[list[tuple[Option, str | None]], list[str]]:
    end = words.index(":") if ":" in words else len(words)
    wrap = next((at for at, word in enumerate(words[:end]) if _is_wrap(word)), None)
    if wrap is None:
        given, rest = table.parse(words, permute=False)
    else:
        first = wrap + 1 + (words[wrap] == "--wrap")
        given, rest = table.parse(words[:first], permute=False)
        rest += words[first:]
    if given and given[-1][0].dest in _FREE_TEXT and rest[:1] != [":"]:
        more = {} if _LAUNCHER.search(" ".join(words)) else _behind(table, rest)
        given += [each for each in more.values() if each[0] not in dict(given)]
        rest = rest[rest.index(":") :] if ":" in rest else rest
    return given, rest


def _is_wrap(word: str) -> bool:
    return word == "--wrap" or word.startswith("--wrap=")


def _behind(table: OptionTable, words: list[str]) -> dict[str, tuple[Option, str]]:
    """Options with a `=` among words that belong to a text, or stand behind it."""
    found = {}
    for word in words[: words.index(":") if ":" in words else None]:
        name, equals, value = word.removeprefix("--").partition("=")
        if word.startswith("--") and equals and name in table.by_long:
            found[name] = (table.by_long[name], value)
    return found
