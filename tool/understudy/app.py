"""The sub-commands of `understudy`: clusters up and down, replays, the clock, checks of
configurations.

Place: the outermost layer. Each sub-command is in a module beside this one; this file only puts
them under their names. Only the one that was named is imported and made, and what it needs when it
runs, so that it starts as fast as if there were no others.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

import typer

# name -> module here and what is in it
_PLACES: Final = {
    "up": ("cluster", "up"),
    "down": ("cluster", "down"),
    "status": ("cluster", "status"),
    "exec": ("surrounded", "exec_"),
    "shell": ("surrounded", "shell"),
    "prepare": ("hosts_commands", "prepare"),
    "daemon": ("hosts_commands", "daemon"),
    "rekey": ("rekey", "rekey"),
    "replay": ("replay", "replay"),
    "branch": ("branch", "branch"),
    "chaos": ("chaos", "chaos"),
    "compare": ("compare", "compare"),
    "why": ("why", "why"),
    "fanout": ("fanout", "fanout"),
    "load": ("load", "load"),
    "import": ("import_history", "import_"),
    "generate": ("generate", "app"),
    "sweep": ("sweep", "sweep"),
    "trace": ("trace", "app"),
    "man": ("manual", "man"),
    "completion": ("manual", "completion"),
    "clock": ("clock", "app"),
    "gantt": ("gantt", "gantt"),
    "report": ("report", "report"),
    "conf": ("conf", "app"),
}


# click's, of some of them: what follows the command that `exec` runs belongs to it
_SETTINGS: Final = {"exec": {"allow_interspersed_args": False}}


def app_with(name: str = "") -> typer.Typer:
    """The application with the sub-command of that name; with all of them where none has it, as
    for `--help` and for what is mistyped.
    """
    app = typer.Typer(
        name="understudy",
        help="Stand-in for a Slurm cluster: real daemons, messages and commands; emulated nodes "
        "and, when wanted, emulated time.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    for each in (name,) if name in _PLACES else _PLACES:
        module, what = _PLACES[each]
        found = getattr(import_module(f"understudy.tool.understudy.{module}"), what)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=each)
        else:
            app.command(each, context_settings=_SETTINGS.get(each))(found)
    app.command("version")(version)
    return app


def version() -> None:
    """Print Understudy's version and that of the Slurm whose behaviour it follows."""
    import understudy
    from understudy.documents.documents import VERSION

    typer.echo(f"understudy {understudy.__version__} (after Slurm {VERSION})")
