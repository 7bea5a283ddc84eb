"""A command line of srun or salloc as getopt_long goes through it: what is wrong in an option, or
answered by it, comes before what stands behind.

Place: under srun and salloc.
"""

from understudy.commands.shared.options import OptionError
from understudy.commands.submission.gres import gres_help

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.commands.shared.context import Context
    from understudy.commands.shared.options import Option, OptionTable

_ANSWERED = frozenset(("help", "usage", "version"))


def read_line(
    table: "OptionTable",
    arguments: "Sequence[str]",
    usage: str,
    look: "Callable[[Option, str | None], None]",
    context: "Context",
) -> "tuple[list[tuple[Option, str | None]], list[str]] | None":
    """The options with their values, and the operands; None: the line asked for help, which it got.
    `look` looks at one option; where the line is well and asks for nothing, none is looked at.

    Raises:
        OptionError: as getopt_long refuses.
        BadOptionError: of `look`.
    """
    refused = None
    operands: list[str] = []
    try:
        given, operands = table.parse(arguments, permute=False)
    except OptionError as error:
        given, refused = error.given, error
    if refused is None and not any(asks(option, value) for option, value in given):
        return given, operands
    for option, value in given:
        if answers(option, value, table, usage, context):
            return None
        look(option, value)
    assert refused is not None
    raise refused


def asks(option: "Option", value: str | None) -> bool:
    """Whether the option wants something told, and nothing run."""
    return option.dest in _ANSWERED or (option.dest == "gres" and value == "help")


def answers(
    option: "Option", value: str | None, table: "OptionTable", usage: str, context: "Context"
) -> bool:
    """Whether the option has been answered."""
    if not asks(option, value):
        return False
    if not context.tells(table, {option.dest}, usage):
        context.print(gres_help(context))
    return True
