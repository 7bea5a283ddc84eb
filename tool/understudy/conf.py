"""`understudy conf`: looking at configurations without a cluster.

Place: a sub-command of `understudy`; what a configuration is worth is decided in
understudy.model.conf_check, which plug-ins there are in understudy.controller.edge.plugins.
"""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  typer reads the annotations when it runs
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True, help="Look at a slurm.conf.", pretty_exceptions_enable=False
)


@app.callback()
def conf() -> None:
    """Keep `conf check` two words: typer would fold an application of one command into `conf`."""


@app.command("check")
def check(
    file: Annotated[
        Path, typer.Argument(help="The slurm.conf; its companions are read from beside it.")
    ],
) -> None:
    """Say whether a slurm.conf can be used, and which of its keys have no effect here."""
    from understudy.controller.edge.plugins import plugin_findings, plugin_words
    from understudy.controller.jobs.site_rules import missing
    from understudy.model.conf import read
    from understudy.model.conf_check import run
    from understudy.model.errors import ConfigError

    try:
        text, code = run(file, plugin_words, plugin_findings)
    except ConfigError as error:
        typer.echo(f"understudy conf check: error: {error}", err=True)
        raise typer.Exit(1) from None
    for name in missing(read(file).words("JobSubmitPlugins")):
        typer.echo(f"JobSubmitPlugins={name}: nobody offers it here, so it has no effect")
    typer.echo(text, nl=False)
    raise typer.Exit(code)
