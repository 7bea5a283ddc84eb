"""What `--export` leaves of the environment and `--propagate` of the limits, for sbatch and srun.

Place: beside the commands; imports next to nothing, as they have to start quickly. Follows
sbatch(1).
"""

from understudy.model.environment import LIMITS, RLIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def exported(
    environ: "Mapping[str, str]", wanted: "str | None", *, overwrites: bool = True
) -> dict[str, str]:
    """The variables that `wanted` names and those of Slurm. ALL or None for all, NONE or NIL for
    none, else names and `NAME=value` at commas. `overwrites`: a value that is given counts more
    than the environment's, where that goes along; so with sbatch, and not so with srun.
    """
    if wanted is None or wanted.upper() == "ALL":
        return dict(environ)
    chosen = {name: value for name, value in environ.items() if name.startswith("SLURM_")}
    if wanted.upper() in {"NONE", "NIL"}:
        return chosen
    for word in _words(wanted):
        name, equals, value = word.partition("=")
        if word.upper() == "ALL":
            chosen |= environ
        elif equals and (overwrites or name not in chosen):
            chosen[name] = value
        elif name in environ:
            chosen[name] = environ[name]
    return chosen


def _words(text: str) -> list[str]:
    """What stands between the commas. Those within quotation marks belong to a value, as do the
    marks.
    """
    words, mark = [""], ""
    for letter in text:
        if letter == "," and not mark:
            words.append("")
            continue
        if letter in "'\"" and mark in ("", letter):
            mark = "" if mark else letter
        words[-1] += letter
    return words


def submitter() -> "dict[str, object]":
    """The facts of where we are, as jobs are told of it."""
    import os

    umask = os.umask(0)
    os.umask(umask)
    return {
        "submit_dir": os.getcwd(),
        "submit_host": os.uname().nodename.partition(".")[0],
        "umask": f"{umask:04o}",
        "nice_of_process": 0,
    }


def limits(wanted: str | None) -> dict[str, str]:
    """The limits of our own processes, for those of the job or step: those wanted begin with U,
    others go on if slurm.conf has it so.
    """
    import resource

    names = {word.removeprefix("RLIMIT_") for word in (wanted or "ALL").upper().split(",")}
    if "NONE" in names:
        return {f"{RLIMIT}NONE": "U"}
    mark = "" if wanted is None else "U"
    return {
        f"{RLIMIT}{name}": f"{mark}{resource.getrlimit(number)[0]}"
        for name in LIMITS
        if "ALL" in names or name in names
        for number in [getattr(resource, f"RLIMIT_{name}")]
    }
