"""`understudy rekey`: new keys for daemons while the cluster runs.

Place: a sub-command of `understudy`; the words around understudy.auth.keys, which does the work.
"""

from __future__ import annotations

import signal
from pathlib import Path  # noqa: TC003  typer reads the annotations when it runs
from typing import Annotated

import typer

from understudy.tool.understudy.cluster import RunDir, choose_run_dir, fail

KEEP_S = 120  # slurm.conf(5), AuthInfo=cred_expire: what was signed before is good for as long


def rekey(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Daemons, as noded0; all that have keys if none is named."),
    ] = None,
    keep: Annotated[
        int,
        typer.Option(
            "--keep", min=0, help="Seconds for which the old keys are good, too; 0: they are known."
        ),
    ] = KEEP_S,
    run_dir: RunDir = None,
    site: Annotated[
        Path | None,
        typer.Option("--site", help="The site folder of a cluster of several hosts."),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option("--keys", help="Where its private keys are, as `understudy prepare` had it."),
    ] = None,
) -> None:
    """Change the keys of daemons. Nothing has to be started anew; jobs and steps run on."""
    from understudy.auth.handshake import AuthError
    from understudy.auth.keys import FORMER, PUBLIC, Change, read_public

    folder = (site or choose_run_dir("rekey", run_dir)) / "keys"
    try:
        ending = _held_back()
        known = [each for each in read_public(folder / PUBLIC) if not each.endswith(FORMER)]
        change = Change(folder, names or known, keys)
        change.begin()
        if keep:
            typer.echo(
                f"New keys are in use; old ones are good for {keep} s more, or until Ctrl-C."
            )
            signal.sigtimedwait(ending, keep)
        change.finish()
    except (AuthError, OSError) as error:
        fail("rekey", str(error))
    typer.echo(f"New keys: {', '.join(change.names)}")


def _held_back() -> list[signal.Signals]:
    """The signals that end a program are kept until they are asked for: who waits no longer must
    not leave old keys behind, or half of a change.
    """
    every = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heeded = [each for each in every if signal.getsignal(each) is not signal.SIG_IGN]
    signal.pthread_sigmask(signal.SIG_BLOCK, heeded)
    return heeded
