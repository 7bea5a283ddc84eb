"""Finds scheduling policies and selectors by the names that slurm.conf gives:
`SchedulerType=sched/NAME`, `SelectType=select/NAME`.

Place: scheduling. Plug-ins are entry points of the groups below and may live in any installed
distribution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from understudy.controller.offers import offered
from understudy.controller.scheduling.api import SchedulingPolicy, Selector
from understudy.model.errors import ConfigError

if TYPE_CHECKING:
    from understudy.controller.tables.tables import Tables
    from understudy.model.conf import SlurmConfig

SCHEDULERS: Final = "understudy.schedulers"
SELECTORS: Final = "understudy.selectors"


def _load(group: str, key: str, prefix: str, value: str, base: type) -> Any:
    kind, _, name = value.strip().lower().rpartition("/")
    found = offered(group)
    point = found.get(name)
    if point is None or kind not in ("", prefix):
        known = ", ".join(f"{prefix}/{each}" for each in sorted(found))
        raise ConfigError(f"{key}={value} is not known; there are {known}")
    try:
        loaded = point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{key}={value} cannot be loaded from {point.value}: {error}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        raise ConfigError(
            f"{key}={value}: {point.value} is no class derived from "
            f"{base.__module__}.{base.__qualname__}"
        )
    return loaded


def scheduler(scheduler_type: str) -> type[SchedulingPolicy]:
    """The class of a policy, from SchedulerType (`sched/easy`; `easy` alone will do).

    Raises:
        ConfigError: nobody offers it, it cannot be imported, or it is no policy.
    """
    return cast(
        "type[SchedulingPolicy]",
        _load(SCHEDULERS, "SchedulerType", "sched", scheduler_type, SchedulingPolicy),
    )


def selector(select_type: str, parameters: frozenset[str] = frozenset()) -> Selector:
    """A selector, from SelectType (`select/cons_tres`) and the words of SelectTypeParameters.

    Raises:
        ConfigError: nobody offers it, it cannot be imported, or it is no selector.
    """
    made = _load(SELECTORS, "SelectType", "select", select_type, Selector)
    return cast("Selector", made(frozenset(word.upper() for word in parameters)))


def declared_words(config: SlurmConfig) -> dict[str, frozenset[str]]:
    """The words of SchedulerParameters and SelectTypeParameters that the configured policy and
    selector read beyond Slurm's (`parameter_words`).

    Raises:
        ConfigError: nobody offers them.
    """
    policy = scheduler(config.text("SchedulerType"))
    choice = _load(SELECTORS, "SelectType", "select", config.text("SelectType"), Selector)
    return {
        "schedulerparameters": frozenset(word.lower() for word in policy.parameter_words),
        "selecttypeparameters": frozenset(word.lower() for word in choice.parameter_words),
    }


def wrong_values(config: SlurmConfig) -> list[tuple[str, str]]:
    """(word, what is wrong with its value) of the words of SchedulerParameters that the configured
    policy alone reads. It would not start with them.

    Raises:
        ConfigError: nobody offers the policy.
    """
    policy = scheduler(config.text("SchedulerType"))
    found = []
    for word, value in own_parameters(config).items():
        try:
            policy.check_parameters({word: value})
        except ConfigError as error:
            found.append((word, str(error)))
    return found


def own_parameters(config: SlurmConfig) -> dict[str, str]:
    """Those words of SchedulerParameters that the configured policy alone reads.

    Raises:
        ConfigError: nobody offers the policy.
    """
    own = {word.lower() for word in scheduler(config.text("SchedulerType")).parameter_words}
    given = policy_parameters(config.text("SchedulerParameters"))
    return {word: value for word, value in given.items() if word in own}


def wrong_in_cluster(config: SlurmConfig, tables: Tables) -> tuple[str, str] | None:
    """As `wrong_values`, the first of what cannot be known without the cluster's nodes, licences
    and burst buffers.

    Raises:
        ConfigError: nobody offers the policy.
    """
    policy, own = scheduler(config.text("SchedulerType")), own_parameters(config)
    try:
        policy.check_cluster(tables, policy_parameters(config.text("SchedulerParameters")))
    except ConfigError as error:
        text = str(error)
        return next((word for word in own if f" {word}=" in text), ""), text
    return None


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
