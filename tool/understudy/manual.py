"""`understudy man` and `understudy completion`: what the commands' declarations say, for readers
and for shells.

Place: sub-commands of `understudy`; the texts are made in understudy.tool.manual.man_pages and
understudy.tool.manual.completions.
"""

from __future__ import annotations

from typing import Annotated

import typer


def man(
    name: Annotated[str, typer.Argument(help="The command; without one, all are named.")] = "",
) -> None:
    """Show a command's manual page."""
    from understudy.tool.manual.catalogue import COMMANDS, commands
    from understudy.tool.manual.man_pages import plain

    known = {command.name: command for command in commands()}
    if not name:
        for command in known.values():
            typer.echo(f"{command.name:<10} {command.summary}")
        return
    if name not in known:
        reason = "is not there yet" if name in COMMANDS else "is no command of this cluster"
        typer.echo(
            f"understudy man: error: {name} {reason}; there are {', '.join(known)}", err=True
        )
        raise typer.Exit(1)
    typer.echo(plain(known[name]), nl=False)


def completion(shell: Annotated[str, typer.Argument(help="bash, zsh or fish")]) -> None:
    """Print a script that completes the commands' options and values: source <(understudy
    completion bash).
    """
    from understudy.tool.manual.completions import SHELLS, script

    if shell not in SHELLS:
        typer.echo(
            f"understudy completion: error: {shell}: there are scripts for {', '.join(SHELLS)}",
            err=True,
        )
        raise typer.Exit(1)
    typer.echo(script(shell), nl=False)
