"""What `--export` leaves of the environment, for sbatch and srun.

Place: pure, beside the commands; imports nothing, as they have to start quickly. Follows sbatch(1).
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def exported(environ: "Mapping[str, str]", wanted: "str | None") -> dict[str, str]:
    """The variables that `wanted` names and those of Slurm. ALL or None for all, NONE or NIL for none, else names and `NAME=value` at commas."""
    if wanted is None or wanted.upper() == "ALL":
        return dict(environ)
    chosen = {name: value for name, value in environ.items() if name.startswith("SLURM_")}
    if wanted.upper() in {"NONE", "NIL"}:
        return chosen
    for word in wanted.split(","):
        name, equals, value = word.partition("=")
        if word.upper() == "ALL":
            chosen |= environ
        elif equals:
            chosen[name] = value
        elif name in environ:
            chosen[name] = environ[name]
    return chosen
