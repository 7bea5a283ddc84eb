"""`understudy conf`: looking at configurations without a cluster.

Place: a sub-command of `understudy`; what a configuration is worth is decided in understudy.model.conf_check,
which plug-ins there are in understudy.controller.scheduling.registry.
"""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  typer reads the annotations when it runs
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Look at a slurm.conf.", pretty_exceptions_enable=False)


@app.callback()
def conf() -> None:
    """Keep `conf check` two words: typer would fold an application of one command into `conf`."""


@app.command("check")
def check(file: Annotated[Path, typer.Argument(help="The slurm.conf; its companions are read from beside it.")]) -> None:
    """Say whether a slurm.conf can be used, and which of its keys have no effect here."""
    from understudy.model.conf_check import run
    from understudy.model.errors import ConfigError

    try:
        text, code = run(file)
        if not code:
            _known_plugins(file)
    except ConfigError as error:
        typer.echo(f"understudy conf check: error: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(text, nl=False)
    raise typer.Exit(code)


def _known_plugins(file: Path) -> None:
    """Look for the plug-ins that decide on schedules.

    Raises:
        ConfigError: the controller would end at its start, as one of them is not there.
    """
    from understudy.controller.scheduling.registry import scheduler, selector
    from understudy.model.conf import read

    config = read(file)
    scheduler(config.text("SchedulerType"))
    selector(config.text("SelectType"))
