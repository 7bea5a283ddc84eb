"""`understudy exec` and `understudy shell`: Slurm's commands on the PATH of one command, or of one
shell, which find this cluster and no other.

Place: sub-commands of `understudy`. The command takes the place of this process, so its exit code
and the signals that it gets are its own. A real Slurm on the same host is never shadowed elsewhere.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from understudy.tool.understudy.cluster import RunDir, choose_run_dir

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

# as of env(1) and a shell
_NOT_FOUND: Final = 127
_NOT_RUN: Final = 126


def exec_(
    words: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="What to run, and how.")],
    run_dir: RunDir = None,
) -> None:
    """Run one command in the surroundings of a cluster: `understudy exec -- squeue -l`.

    Exit codes: the command's own; 126 it cannot be run, 127 there is none; 1 there is no cluster.
    """
    _become("exec", words, run_dir, lambda _name: None)


def shell(run_dir: RunDir = None) -> None:
    """Start a shell ($SHELL) in which sbatch, squeue and the others speak to a cluster.

    Exit codes: the shell's own; 1 there is no cluster.
    """

    def tell(name: str) -> None:
        typer.echo(f"Slurm's commands speak to cluster {name} here; `exit` leaves it.", err=True)

    program = os.environ.get("SHELL") or "/bin/sh"
    _become("shell", [program], run_dir, tell, is_bash=Path(program).name == "bash")


def _become(
    command: str,
    words: list[str],
    run_dir: Path | None,
    tell: Callable[[str], None],
    *,
    is_bash: bool = False,
) -> NoReturn:
    from understudy.model.cluster import Cluster
    from understudy.tool.cluster.run_dir import LaunchError, running
    from understudy.tool.cluster.surroundings import start_file, surroundings
    from understudy.tool.understudy.cluster import fail

    run_dir = choose_run_dir(command, run_dir)
    try:
        cluster = Cluster.load(run_dir)
        if not running(run_dir):
            fail(command, f"no cluster runs in {run_dir}")
        environment = surroundings(run_dir, os.environ)
        if is_bash and (file := start_file(run_dir, environment)):
            words = [*words, "--rcfile", str(file)]
    except (OSError, ValueError, TypeError) as error:
        fail(command, f"{run_dir} is not a cluster's run directory: {error}")
    except LaunchError as error:
        fail(command, str(error))
    tell(cluster.name)
    try:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # which Python ignores, and would hand on
        os.execvpe(words[0], words, environment)  # noqa: S606  no shell is wanted
    except FileNotFoundError:
        typer.echo(f"understudy {command}: {words[0]}: no such command", err=True)
        raise typer.Exit(_NOT_FOUND) from None
    except OSError as error:
        typer.echo(f"understudy {command}: {words[0]}: {error.strerror}", err=True)
        raise typer.Exit(_NOT_RUN) from None
