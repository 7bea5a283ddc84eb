"""The copy of a site's configuration that a run directory holds: slurm.conf with its includes put
in their places, and its companion files.

Place: made by tool/cluster/launch.py, and again by daemons that start and by a controller that is
reconfigured. Understands only what copying needs, which is `Include` and `ClusterName`; what the
file means, and whether it can be used, is for understudy.model.conf, which has read it before it is
copied. Follows: slurm.conf(5), "Include" and "INCLUDE MODIFIERS".

RUN_DIR/conf.read says which files have been read, and as what: a line `SIZE MTIME_NS PATH` each,
sources and copies. Whoever finds them so need not read them again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from understudy.model.burst_buffer_conf import LUA_SCRIPT
from understudy.model.conf_scan import include_candidates

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPANIONS: Final = (
    "gres.conf",
    "topology.conf",
    "cgroup.conf",
    "plugstack.conf",
    "job_container.conf",
    "acct_gather.conf",
    "burst_buffer.conf",
    LUA_SCRIPT,
)
MAX_DEPTH: Final = 16
READ: Final = "conf.read"


def copy_configuration(conf: Path, run_dir: Path) -> Path:
    """Write RUN_DIR/slurm.conf and the companions that lie beside `conf`; companions of an earlier
    configuration are removed.

    Returns:
        The copy's path. A configuration that already is the run directory's own stays as it is.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: includes without end.
    """
    copy, state = run_dir / "slurm.conf", _State()
    if not (copy.exists() and copy.samefile(conf)):
        _write(copy, inlined(conf, state))
        state.files.append(copy)
        for name in COMPANIONS:
            beside = conf.parent / name
            if beside.is_file():
                _write(run_dir / name, inlined(beside, state))
                state.files.append(run_dir / name)
            else:
                (run_dir / name).unlink(missing_ok=True)
    else:
        state.files += [
            copy,
            *(run_dir / name for name in COMPANIONS if (run_dir / name).is_file()),
        ]
    temporary = run_dir / f"{READ}.{os.getpid()}"
    _write(temporary, "".join(f"{_stamp(str(path.resolve()))}\n" for path in state.files))
    temporary.replace(run_dir / READ)
    return copy


def has_changed(conf: Path, run_dir: Path) -> bool:
    """Whether the configuration is another than what was copied: a file of it was written since,
    came or went. Never of the run directory's own.
    """
    try:
        lines = (run_dir / READ).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        lines = []
    if not conf.is_file() or (
        (run_dir / "slurm.conf").exists() and (run_dir / "slurm.conf").samefile(conf)
    ):
        return False
    own = str(run_dir.resolve()) + os.sep
    sources = {path: line for line in lines if not (path := line.split(" ", 2)[2]).startswith(own)}
    wanted = {
        str(conf.resolve()),
        *(
            str((conf.parent / name).resolve())
            for name in COMPANIONS
            if (conf.parent / name).is_file()
        ),
    }
    return not wanted <= sources.keys() or any(
        _stamp(path) != line for path, line in sources.items()
    )


def _stamp(path: str) -> str:
    """What tells a file from what it was."""
    try:
        found = os.stat(path)
    except OSError:
        return ""
    return f"{found.st_size} {found.st_mtime_ns} {path}"


def inlined(conf: Path, state: _State | None = None) -> str:
    """The file's text, each `Include` line replaced by the text of the file that it names; a script
    is as it is.
    """
    state = state or _State()
    if conf.name == LUA_SCRIPT:
        state.files.append(conf)
        return conf.read_text(encoding="utf-8", errors="surrogateescape")
    return "".join(_lines(conf, conf.parent, state, 0))


def _find(name: str, base: Path, folder: Path, cluster: str) -> Path | None:
    candidates = map(Path, include_candidates(name.strip('"'), str(base), str(folder), cluster))
    return next((path for path in candidates if path.is_file()), None)


def _write(path: Path, text: str) -> None:
    # sites' files are often Latin-1: their bytes stay what they were
    path.write_text(text, encoding="utf-8", errors="surrogateescape")


class _State:
    """What the lines so far have set: a `%c` in an include's name means the ClusterName above it.
    And the files that were read.
    """

    def __init__(self) -> None:
        self.cluster, self.files = "", list[Path]()


def _lines(file: Path, base: Path, state: _State, depth: int) -> Iterator[str]:
    if depth > MAX_DEPTH:
        raise ValueError(
            f"{file}: more than {MAX_DEPTH} files include each other; does one include itself?"
        )
    state.files.append(file)
    for line in file.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        words = line.partition("#")[0].split()
        if len(words) > 1 and words[0].lower() == "include":
            included = _find(words[1], base, file.parent, state.cluster)
            # the reader has said before what it makes of one that is missing
            if included is not None:
                yield f"# {line.strip()}\n"
                yield from _lines(included, base, state, depth + 1)
                continue
            line = f"# {line.strip()} (not found)"  # noqa: PLW2901
        key, _, value = line.partition("=")
        if key.strip().lower() == "clustername" and value.split():
            state.cluster = value.split()[0].strip('"')
        yield line + "\n"
