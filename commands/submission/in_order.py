"""A command line of srun, salloc or sbatch as getopt_long goes through it: what is wrong in an
option, or answered by it, comes before what stands behind.

Place: under these three.
"""

from understudy.commands.submission.gres import gres_help

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from understudy.commands.shared.context import Context
    from understudy.commands.shared.options import Option, OptionError, OptionTable

    # the options with their values, the operands, and how getopt_long refuses
    Line: TypeAlias = tuple[Sequence[tuple[Option, str | None]], list[str], OptionError | None]

_ANSWERED = frozenset(("help", "usage", "version"))


def read_part(table: "OptionTable", words: "Sequence[str]", place: int) -> "Line":
    """One component's options and what stands behind them, or how it is refused: of those behind
    the first by the name of `:`, which getopt_long takes for the program.
    """
    line = table.read(words, permute=False)
    if place and line[2] is not None:
        line[2].program = ":"
    return line


def goes_on(
    table: "OptionTable",
    line: "Line",
    usage: str,
    look: "Callable[[Option, str | None], None]",
    context: "Context",
) -> bool:
    """Look at a line that the table has read. False: it asked for help, which it got. `look` looks
    at one option; where the line is well and asks for nothing, none is looked at.

    Raises:
        OptionError: as getopt_long refuses.
        BadOptionError: of `look`.
    """
    given, _, refused = line
    if refused is None and not any(asks(option, value) for option, value in given):
        return True
    for option, value in given:
        if answers(option, value, table, usage, context):
            return False
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
