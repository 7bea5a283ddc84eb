"""The commands that a user types one a line at sacctmgr or sreport.

Place: under those commands, loaded where none is on the command line.
"""

import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from understudy.commands.shared.context import Context


def typed(context: "Context", prompt: str) -> "Iterator[list[str]]":
    """The words of each line of stdin, until it ends; of `!!` those of the one before. Lines that
    are no terminal's are printed; what is empty or has an open quote is passed over.
    """
    last: list[str] = []
    while True:
        context.stdout.write(prompt)
        context.stdout.flush()
        line = context.stdin.readline()
        if not line:
            context.stdout.write("\n")
            return
        if not getattr(context.stdin, "isatty", bool)():
            context.stdout.write(line if line.endswith("\n") else line + "\n")
        try:
            words = shlex.split(line)
        except ValueError:
            continue
        last = last if words == ["!!"] else words or last
        if words and last:
            yield last
