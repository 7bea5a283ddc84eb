"""srun --mpi: which there are, which of them is meant, and why one is not to be had.

Place: under srun. What each does is in the node daemons: `pmi.py` speaks PMI-1 and PMI-2,
`pmixd.py` has libpmix speak PMIx. Follows: srun(1), --mpi.
"""

from understudy.commands.srun.srun_settings import StepError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.shared.context import Context

_NONE = {"none", "openmpi"}  # an old name for it
_KNOWN_VERSION = 4  # of PMIx in the Slurm that this follows, for hosts that have none
_LIST = "list"


def _pmix_version() -> tuple[int, bool]:
    """The version of PMIx; and whether its library is here."""
    from understudy.noded.pmix_library import LibraryError, version

    try:
        return version(), True
    except LibraryError:
        return _KNOWN_VERSION, False


def says_list(kind: str | None, context: "Context") -> bool:
    """--mpi=list."""
    if kind != _LIST:
        return False
    for line in (
        "MPI plugin types are...",
        "\tpmix",
        "\tnone",
        "\tpmi2",
        f"specific pmix plugin versions available: pmix_v{_pmix_version()[0]}",
    ):
        context.print(line)
    return True


def check(kind: str, context: "Context") -> str:
    """Its name for the node daemons, which is nothing where nothing is to be done. Complains of one
    that is not there.

    Raises:
        StepError: it is not.
    """
    if kind in _NONE:
        return ""
    if kind == "pmi2":
        return kind
    if kind.startswith("pmix"):
        version, is_here = _pmix_version()
        name = f"pmix_v{version}"
        if kind in ("pmix", name):
            if is_here:
                return kind
            context.error(
                f" mpi/{name}: init: (null) [0]: mpi_pmix.c:195: pmi/pmix: can not load "
                "PMIx library"
            )
            context.error(
                f"Couldn't load specified plugin name for mpi/{kind}: Plugin init() callback failed"
            )
            _complain(kind, context)
    context.error(f"Couldn't find the specified plugin name for mpi/{kind} looking at all files")
    context.error(f"cannot find mpi plugin for mpi/{kind}")
    _complain(kind, context)
    return ""


def _complain(kind: str, context: "Context") -> None:
    context.error(f"MPI: Cannot create context for mpi/{kind}")
    context.error("MPI: Unable to load any plugin")
    context.error(f"Invalid MPI type '{kind}', --mpi=list for acceptable types")
    raise StepError
