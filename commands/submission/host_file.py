"""Nodes from a file: SLURM_HOSTFILE and `--nodelist` with a path. Each entry of SLURM_HOSTFILE is
for one task.

Place: commands; loaded only where there is such a file. Follows: srun(1) and what the real commands
say.
"""

from understudy.commands.submission.job import BadOptionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.commands.submission.job import Job

_NO_NAMES = "Failure getting NodeNames from hostfile"


def entries(path: str) -> list[str]:
    """The names in the file, in order; `n1*3` stands for three of them.

    Raises:
        OSError: it cannot be read.
    """
    found: list[str] = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            for word in line.partition("#")[0].replace(",", " ").split():
                name, star, count = word.partition("*")
                found += [name] * int(count) if star and count.isdecimal() else [word]
    return found


def use_host_file(job: "Job", environ: "Mapping[str, str]", tasks: "int | None") -> None:
    """SLURM_HOSTFILE names nodes where --nodelist does not: one for each task, which are as many as
    the names where nobody said how many.

    Raises:
        BadOptionError: it cannot be read, or names too few.
    """
    path = environ.get("SLURM_HOSTFILE")
    if not path or job.spec.get("required_nodes"):
        return
    try:
        names = entries(path)
    except OSError as error:
        raise BadOptionError(
            _NO_NAMES,
            1,
            f"{{program}}: error: slurm_allocate_resources error opening file {path}, "
            f"{error.strerror}",
        ) from None
    if not names:
        raise BadOptionError(_NO_NAMES, 1, "{program}: error: Hostlist is empty!")
    if tasks is not None and tasks > len(names):
        raise BadOptionError(_NO_NAMES, 1, "{program}: error: Too few NodeNames in Slurm Hostfile")
    job.spec["required_nodes"] = ",".join(names[:tasks])
    job.spec["distribution"] = "arbitrary"
