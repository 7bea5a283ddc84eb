"""Whether somebody offers the plug-ins that a configuration names, before anything is started with
it.

Place: the controller; over the registries of schedulers, selectors and priorities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.priority import registry as priorities
from understudy.controller.scheduling import registry as scheduling

if TYPE_CHECKING:
    from understudy.model.conf import SlurmConfig


def plugin_words(config: SlurmConfig) -> dict[str, frozenset[str]]:
    """The words that the configuration's plug-ins read beyond Slurm's, as
    understudy.model.conf_words takes them.

    Raises:
        ConfigError: nobody offers a plug-in that it names.
    """
    priorities.priority(config.text("PriorityType"))
    return scheduling.declared_words(config)
