"""The sub-commands of `understudy`: clusters up and down, replays, the clock, checks of
configurations.

Place: the outermost layer. Each sub-command is a module `understudy_NAME.py` beside this one; this
file only puts them under their names. What they need is imported when they run, so that `understudy
--help` answers at once.
"""

from __future__ import annotations

import typer

from understudy.tool.understudy import clock as understudy_clock
from understudy.tool.understudy import cluster as understudy_cluster
from understudy.tool.understudy import conf as understudy_conf
from understudy.tool.understudy import fanout as understudy_fanout
from understudy.tool.understudy import hosts_commands as understudy_hosts
from understudy.tool.understudy import import_history as understudy_import
from understudy.tool.understudy import load as understudy_load
from understudy.tool.understudy import manual as understudy_manual
from understudy.tool.understudy import replay as understudy_replay

app = typer.Typer(
    name="understudy",
    help="Stand-in for a Slurm cluster: real daemons, messages and commands; emulated nodes "
    "and, when wanted, emulated time.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("up")(understudy_cluster.up)
app.command("down")(understudy_cluster.down)
app.command("status")(understudy_cluster.status)
app.command("prepare")(understudy_hosts.prepare)
app.command("daemon")(understudy_hosts.daemon)
app.command("replay")(understudy_replay.replay)
app.command("fanout")(understudy_fanout.fanout)
app.command("load")(understudy_load.load)
app.command("import")(understudy_import.import_)
app.command("man")(understudy_manual.man)
app.command("completion")(understudy_manual.completion)
app.add_typer(understudy_clock.app, name="clock")
app.add_typer(understudy_conf.app, name="conf")


@app.command("version")
def version() -> None:
    """Print Understudy's version and that of the Slurm whose behaviour it follows."""
    import understudy
    from understudy.documents.documents import VERSION

    typer.echo(f"understudy {understudy.__version__} (after Slurm {VERSION})")
