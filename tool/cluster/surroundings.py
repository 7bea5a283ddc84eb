"""What a program finds around it that is to speak to one cluster alone: Slurm's commands on its
PATH, and the variables that say which cluster is meant.

Place: beside launch.py; used by `understudy exec` and `shell` and by the API. It starts nothing and
changes no variable of this process. The commands are links in RUN_DIR/bin, so that the folder of an
interpreter (and its `python`) does not come to the front of somebody's PATH with them.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import sysconfig
from importlib.metadata import entry_points
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Final

from understudy.model.environment import VARIABLES
from understudy.tool.cluster.run_dir import LaunchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.model.cluster import Cluster

_REGISTRY: Final = "registry"  # of a cluster that is no user's last one, in its run directory
_OF_A_JOB: Final = ("SLURM_JOB", "SLURM_STEP", "SLURMD_")
_OTHERS: Final = ("SLURM_CLUSTERS", "SBATCH_CLUSTERS", "SLURM_WORKING_CLUSTER")


def registry_of(run_dir: Path) -> Path:
    """Where a cluster is registered that is to be found by those alone who are told of it."""
    return run_dir / _REGISTRY


def surroundings(run_dir: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a program that is to speak to the cluster in this run directory.

    What tells of a job of another cluster, in which this may run, is left out; variables that are
    options of commands (SBATCH_PARTITION, SQUEUE_FORMAT) stay.

    Raises:
        LaunchError: commands are missing, or the run directory cannot be on a PATH.
    """
    conf = str(run_dir / "slurm.conf")
    found = dict(environ)
    if found.get("SLURM_CONF") != conf:
        for name in environ:
            if (
                name in _OTHERS
                or name.startswith(_OF_A_JOB)
                or (name in VARIABLES and name.startswith("SLURM"))
            ):
                del found[name]
    folder = str(make_commands(run_dir))
    others = [each for each in found.get("PATH", os.defpath).split(os.pathsep) if each != folder]
    found["PATH"] = os.pathsep.join([folder, *others])
    found["SLURM_CONF"] = conf
    if registry_of(run_dir).is_dir():
        found["UNDERSTUDY_REGISTRY"] = str(registry_of(run_dir))
    return found


def start_file(run_dir: Path, environ: Mapping[str, str]) -> Path | None:
    """What bash is to read when it starts in these surroundings: the user's own file, which may set
    PATH anew, and then they once more. None where this user may not write it.
    """
    folder = environ["PATH"].partition(os.pathsep)[0]
    path = run_dir / "bin" / ".bashrc"
    lines = [
        "[ -f ~/.bashrc ] && . ~/.bashrc",
        f'case "$PATH:" in {shlex.quote(folder)}:*) ;; *) PATH={shlex.quote(folder)}:$PATH ;; esac',
        *(
            f"export {name}={shlex.quote(environ[name])}"
            for name in ("SLURM_CONF", "UNDERSTUDY_REGISTRY")
            if name in environ
        ),
    ]
    new = path.with_name(f".bashrc.{os.getpid()}")
    try:
        new.write_text("\n".join(lines) + "\n")
        new.replace(path)
    except OSError:
        return None
    return path


def make_commands(run_dir: Path) -> Path:
    """The folder in the run directory with links to Slurm's commands, and to `understudy`. Where
    this user may not make it, it is that in which the commands themselves are.

    Raises:
        LaunchError: they are not there, or the folder cannot be on a PATH.
    """
    folder = run_dir / "bin"
    if os.pathsep in str(folder):
        raise LaunchError(f"{run_dir}: a run directory with a colon in it cannot be on the PATH")
    found = commands()
    try:
        folder.mkdir(exist_ok=True)
        for name, path in found.items():
            _link(folder / name, path)
    except PermissionError:
        return next(iter(found.values())).parent
    return folder


def _link(link: Path, path: Path) -> None:
    """Whole at once: others may be starting commands."""
    if link.is_symlink() and link.readlink() == path:
        return
    new = link.with_name(f".{link.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    new.symlink_to(path)
    new.replace(link)


def commands() -> dict[str, Path]:
    """Where this installation's commands are, by name.

    Raises:
        LaunchError: they are nowhere.
    """
    names = [
        each.name
        for each in entry_points(group="console_scripts")
        if each.value.startswith("understudy.")
    ]
    # a virtual environment's own; of the interpreter; of a user who has no right to write there
    folders = [Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    with contextlib.suppress(KeyError):
        folders.append(Path(sysconfig.get_path("scripts", f"{os.name}_user")))
    for folder in folders:
        found = {name: folder / name for name in names if (folder / name).is_file()}
        if "squeue" in found:
            return found
    raise LaunchError(
        f"the commands (sbatch, squeue ...) are not installed beside {sys.executable}: "
        "install understudy with pip"
    )


def elsewhere(run_dir: Path, cluster: Cluster, environ: Mapping[str, str]) -> str:
    """What keeps `squeue`, as it would be typed now, from speaking to this cluster; "" if nothing
    does.
    """
    found = []
    conf = environ.get("SLURM_CONF", "")
    own = {(run_dir / "slurm.conf").resolve(), Path(cluster.conf).resolve()}
    if conf and Path(conf).resolve() not in own:
        found.append(f"SLURM_CONF is {conf}")
    first = which("squeue", path=environ.get("PATH", os.defpath))
    if first is None:
        found.append("squeue is not on the PATH")
    elif Path(first).resolve() != commands().get("squeue", Path()).resolve():
        found.append(f"another squeue comes first on the PATH ({first})")
    return " and ".join(found)
