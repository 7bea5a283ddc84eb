"""Options that are looked at where they stand: what is wrong in one is said before a later one is
read, and may end the command.

Place: commands alone.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.commands.shared.context import Context
    from understudy.commands.shared.options import Option, OptionTable


class EndedError(Exception):
    """The command line has ended the command; what there is to say has been said."""

    def __init__(self, code: int = 1) -> None:
        super().__init__()
        self.code = code


def read_in_order(
    table: "OptionTable",
    arguments: "Sequence[str]",
    usage: str,
    look: "Callable[[Option, str | None], None]",
    context: "Context",
) -> "tuple[list[tuple[Option, str | None]], list[str]]":
    """The options in their order with their values, each looked at, and the operands. Before the
    line the clusters are looked for that the environment names.

    Raises:
        EndedError: of an option; --help, --usage and --version are among them.
        OptionError: as getopt_long refuses, what stands before having been looked at.
    """
    named = [value for each, value in table.from_environment(context.environ) if _is_cluster(each)]
    if named and context.refuses_clusters(named[0], "SLURM_CLUSTERS"):
        raise EndedError
    given, operands, refused = table.read(arguments)
    for option, value in given:
        if context.tells(table, {option.dest}, usage):
            raise EndedError(0)
        if _is_cluster(option) and context.refuses_clusters(value):
            raise EndedError
        look(option, value)
    if refused is not None:
        raise refused
    return given, operands


def _is_cluster(option: "Option") -> bool:
    return option.dest == "clusters"
