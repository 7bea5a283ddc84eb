"""The configuration of one run: the site's slurm.conf and its companions, with the changes that the
user asked for, in a folder of the run's own.

Place: under traces.py and scenarios.py. What the text means is for understudy.model.conf,
what `--set` says for understudy.model.conf_edit. slurmdbd.conf stays behind: a run must neither
purge nor archive where the site does.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from understudy.controller.edge.plugins import plugin_words
from understudy.model.conf import SlurmConfig, read, read_text
from understudy.model.conf_copy import copy_configuration
from understudy.model.conf_edit import Edit, EditError, edited, new_lines, read_edit
from understudy.model.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class RunConf:
    """The file to start the cluster with, its text, and what it says."""

    path: Path
    text: str
    config: SlurmConfig


def edits_of(settings: Sequence[str], scheduler: str = "", parameters: str = "") -> list[Edit]:
    """The changes that `--scheduler`, `--parameters` and then `--set` ask for.

    Raises:
        EditError: one is none.
    """
    words = [
        *([f"SchedulerType=sched/{scheduler}"] if scheduler else []),
        *([f"SchedulerParameters={parameters}"] if parameters else []),
    ]
    return [read_edit(word) for word in (*words, *settings)]


def site_conf(
    conf: Path, folder: Path, edits: Sequence[Edit] = (), complete: Callable[[str], str] = str
) -> RunConf:
    """A copy of the site's files in `folder`, changed. `complete`: what is done to the text before.

    Raises:
        ConfigError: the file cannot be read, or Slurm would not start with it: with file and line
            of the site's own where that has the fault.
        EditError: a change cannot be made, or Slurm would not start with it.
    """
    _without_errors(read(conf))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        path = copy_configuration(conf, folder)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return made_conf(
        complete(path.read_text(encoding="utf-8", errors="surrogateescape")), folder, edits
    )


def made_conf(text: str, folder: Path, edits: Sequence[Edit] = ()) -> RunConf:
    """A text as the slurm.conf of `folder`, changed; its companions are there. Lines that `--set`
    adds are said.

    Raises:
        ConfigError: as `site_conf`.
        EditError: a change cannot be made, or Slurm would not start with it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    new = new_lines(text, edits)
    before, text, path = text, edited(text, edits), folder / "slurm.conf"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    shown = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        config = _without_errors(read(path))
    except ConfigError as error:
        if edits:
            _without_errors(read_text(before, str(path)))  # raises where they are not to blame
            raise EditError(
                "what --set, --scheduler and --parameters make of the configuration "
                f"cannot be used: {error.message}"
            ) from None
        raise
    for line in new:
        print(
            f"--set: {line} is new: the configuration had no such line", file=sys.stderr, flush=True
        )
    return RunConf(path, shown, config)


def _without_errors(config: SlurmConfig) -> SlurmConfig:
    for finding in config.errors:
        raise ConfigError(finding.message, finding.file, finding.line)
    plugin_words(config)
    return config
