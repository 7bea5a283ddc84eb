"""Finds scheduling policies and selectors by the names that slurm.conf gives:
`SchedulerType=sched/NAME`, `SelectType=select/NAME`.

Place: scheduling. Plug-ins are entry points of the groups below and may live in any installed
distribution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from understudy.controller.offers import offered
from understudy.model.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.scheduling.api import (
        Planner,
        PolicyParameters,
        SchedulingPolicy,
        Selector,
    )
    from understudy.controller.tables.tables import Tables
    from understudy.model.conf import SlurmConfig

SCHEDULERS: Final = "understudy.schedulers"
SELECTORS: Final = "understudy.selectors"
ALIASES: Final = {"cons_res": "cons_tres"}


def _load(group: str, key: str, prefix: str, value: str) -> Any:
    kind, _, name = value.strip().lower().rpartition("/")
    found = offered(group)
    point = found.get(ALIASES.get(name, name))
    if point is None or kind not in ("", prefix):
        known = ", ".join(f"{prefix}/{each}" for each in sorted(found))
        raise ConfigError(f"{key}={value} is not known; there are {known}")
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{key}={value} cannot be loaded from {point.value}: {error}") from error


def scheduler(
    scheduler_type: str,
) -> Callable[[Tables, Selector, Planner, PolicyParameters], SchedulingPolicy]:
    """The class of a policy, from SchedulerType (`sched/easy`; `easy` alone will do).

    Raises:
        ConfigError: nobody offers it, or it cannot be imported.
    """
    return cast(
        "Callable[[Tables, Selector, Planner, PolicyParameters], SchedulingPolicy]",
        _load(SCHEDULERS, "SchedulerType", "sched", scheduler_type),
    )


def selector(select_type: str, parameters: frozenset[str] = frozenset()) -> Selector:
    """A selector, from SelectType (`select/cons_tres`) and the words of SelectTypeParameters.

    Raises:
        ConfigError: nobody offers it, or it cannot be imported.
    """
    made = _load(SELECTORS, "SelectType", "select", select_type)(
        frozenset(word.upper() for word in parameters)
    )
    return cast("Selector", made)


def declared_words(config: SlurmConfig) -> dict[str, frozenset[str]]:
    """The words of SchedulerParameters and SelectTypeParameters that the configured policy and
    selector read beyond Slurm's (`parameter_words`).

    Raises:
        ConfigError: nobody offers them.
    """
    policy = _load(SCHEDULERS, "SchedulerType", "sched", config.text("SchedulerType"))
    choice = _load(SELECTORS, "SelectType", "select", config.text("SelectType"))
    offered = {"schedulerparameters": policy, "selecttypeparameters": choice}
    return {
        key: frozenset(word.lower() for word in getattr(each, "parameter_words", ()))
        for key, each in offered.items()
    }


def policy_parameters(scheduler_parameters: str) -> dict[str, str]:
    """SchedulerParameters as policies get them: split at commas, keys in lower case, "" for bare
    words.
    """
    found: dict[str, str] = {}
    for word in scheduler_parameters.split(","):
        # some sites write `SchedulerParameters==bf_continue`, which Slurm takes
        key, _, value = word.strip().lstrip("=").partition("=")
        if key:
            found[key.lower()] = value
    return found
