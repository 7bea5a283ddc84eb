"""`understudy import`: its command line. What it does is in import_run.py, which is imported when
it runs.
"""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer looks at it
from typing import Annotated

import typer


def import_(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE...",
            help="Output of `sacct -P` (any columns) or `sacct --json`, a trace in the "
            "Standard Workload Format, an .events file of the Slurm "
            "simulator; gzip too. Several dumps are joined.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(help="The scenario's folder, or a trace if it ends with .swf or .swf.gz."),
    ],
    conf: Annotated[
        Path | None,
        typer.Option(
            help="The site's slurm.conf: copied into the folder, and looked at for partitions."
        ),
    ] = None,
    accounts: Annotated[
        list[Path] | None,
        typer.Option(
            help="What `sacctmgr dump` wrote, or `sacctmgr show assoc|qos|reservation -P`. May "
            "be repeated."
        ),
    ] = None,
    create_accounts: Annotated[
        bool,
        typer.Option(
            "--create-accounts",
            help="Make the users, accounts and QOS that jobs name and --accounts does not.",
        ),
    ] = False,
    maps: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="KIND:OLD=NEW",
            help="Call something else: partition, account, qos, user, node, feature, "
            "reservation, gres, license. An empty NEW leaves it out.",
        ),
    ] = None,
    partition: Annotated[str, typer.Option(help="The partition to which all jobs go.")] = "",
    cluster: Annotated[
        str, typer.Option(help="The cluster whose jobs are wanted, where there are several.")
    ] = "",
    columns: Annotated[
        str,
        typer.Option(
            "--format", help="Names of the columns, at commas, where sacct wrote no header."
        ),
    ] = "",
    since: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Begin then, with the jobs that run (for the rest of their time) and wait.",
        ),
    ] = "",
    until: Annotated[
        str, typer.Option(metavar="TIME", help="Leave out what is submitted later.")
    ] = "",
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first line that cannot be used.")
    ] = False,
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
