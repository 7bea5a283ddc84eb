"""`understudy import`: its command line. What it does is in tool/replay/imports.py, which is
imported when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_Sources = Annotated[
    list[Path],
    typer.Argument(
        metavar="SOURCE...",
        help="Output of `sacct -P` (any columns) or `sacct --json`, a trace in the "
        "Standard Workload Format, an .events file of the Slurm "
        "simulator; gzip too. Several dumps are joined.",
    ),
]
_Out = Annotated[
    Path,
    typer.Option(help="The scenario's folder, or a trace if it ends with .swf or .swf.gz."),
]
_Conf = Annotated[
    Path | None,
    typer.Option(
        help="The site's slurm.conf: copied into the folder, and looked at for partitions."
    ),
]
_Accounts = Annotated[
    list[Path] | None,
    typer.Option(
        help="What `sacctmgr dump` wrote, or `sacctmgr show assoc|qos|reservation -P`. May "
        "be repeated."
    ),
]
_CreateAccounts = Annotated[
    bool,
    typer.Option(
        "--create-accounts",
        help="Make the users, accounts and QOS that jobs name and --accounts does not.",
    ),
]
_Maps = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="KIND:OLD=NEW",
        help="Call something else: partition, account, qos, user, node, feature, "
        "reservation, gres, license. An empty NEW leaves it out.",
    ),
]
_Partition = Annotated[str, typer.Option(help="The partition to which all jobs go.")]
_Cluster = Annotated[
    str, typer.Option(help="The cluster whose jobs are wanted, where there are several.")
]
_Columns = Annotated[
    str,
    typer.Option("--format", help="Names of the columns, at commas, where sacct wrote no header."),
]
_Since = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="TIME",
        help="Begin then, with the jobs that run (for the rest of their time) and wait.",
    ),
]
_Until = Annotated[str, typer.Option(metavar="TIME", help="Leave out what is submitted later.")]
_Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at the first line that cannot be used.")
]


def import_(
    sources: _Sources,
    out: _Out,
    conf: _Conf = None,
    accounts: _Accounts = None,
    create_accounts: _CreateAccounts = False,
    maps: _Maps = None,
    partition: _Partition = "",
    cluster: _Cluster = "",
    columns: _Columns = "",
    since: _Since = "",
    until: _Until = "",
    strict: _Strict = False,
) -> None:
    """Make a scenario, which `understudy replay` runs, of a site's own history."""
    from understudy.experiments.past import HistoryError, OptionError
    from understudy.model.errors import ConfigError
    from understudy.tool.replay.imports import ImportRequest, import_history
    from understudy.tool.replay.results import BAD_USAGE, FAILED

    request = ImportRequest(
        sources=tuple(sources),
        out=out,
        conf=conf,
        accounts=tuple(accounts or ()),
        create_accounts=create_accounts,
        strict=strict,
        maps=tuple(maps or ()),
        partition=partition,
        cluster=cluster,
        columns=columns,
        since=since,
        until=until,
        say=typer.echo,
    )
    try:
        code = import_history(request)
    except OSError as error:
        typer.echo(
            f"understudy import: error: {error.filename or ''}: {error.strerror or error}", err=True
        )
        raise typer.Exit(FAILED) from None
    except (HistoryError, ConfigError, ValueError) as error:
        typer.echo(f"understudy import: error: {error}", err=True)
        raise typer.Exit(BAD_USAGE if isinstance(error, OptionError) else FAILED) from None
    raise typer.Exit(code)
