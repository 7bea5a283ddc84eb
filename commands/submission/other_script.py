"""The `#PBS` and `#BSUB` lines of a batch script: what sbatch knows of qsub's and bsub's options.

Place: under sbatch, imported for scripts that have such lines; no I/O. Follows: what 22.05 does
with them.
"""

from understudy.commands.shared.options import NONE, REQUIRED, Option, OptionError, OptionTable
from understudy.commands.submission.batch_script import directives


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
