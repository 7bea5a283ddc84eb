"""Whether somebody offers the plug-ins that a configuration names, before anything is started with
it.

Place: the controller; over the registries of schedulers, selectors and priorities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.edge.build import build_tables
from understudy.controller.priority import registry as priorities
from understudy.controller.scheduling import registry as scheduling
from understudy.model.conf_scan import ERROR
from understudy.model.conf_words import finding
from understudy.model.licenses import configured_licenses

if TYPE_CHECKING:
    from understudy.model.conf import SlurmConfig
    from understudy.model.conf_scan import Finding


def plugin_words(config: SlurmConfig) -> dict[str, frozenset[str]]:
    """The words that the configuration's plug-ins read beyond Slurm's, as
    understudy.model.conf_words takes them.

    Raises:
        ConfigError: nobody offers a plug-in that it names.
    """
    priorities.priority(config.text("PriorityType"))
    return scheduling.declared_words(config)


def plugin_findings(config: SlurmConfig) -> list[Finding]:
    """Errors: values that the configuration's policy cannot read.

    Raises:
        ConfigError: nobody offers a plug-in that it names.
    """
    return [
        finding(config, "schedulerparameters", word, "bad_value", ERROR, message)
        for word, message in wrong_parameters(config)
    ]


def wrong_parameters(config: SlurmConfig) -> list[tuple[str, str]]:
    """(word, what is wrong with its value) of the words of SchedulerParameters with which the
    configuration's policy would not start.

    Raises:
        ConfigError: nobody offers the policy.
    """
    found = scheduling.wrong_values(config)
    if found or not scheduling.own_parameters(config):
        return found
    tables, _ = build_tables(config)
    tables.licenses.totals = configured_licenses(config.text("Licenses"))
    wrong = scheduling.wrong_in_cluster(config, tables)
    return [] if wrong is None else [wrong]
