"""Finds priority plug-ins and site factors by the names that slurm.conf gives:
`PriorityType=priority/NAME`.

Place: priority. Plug-ins are entry points and may live in any installed distribution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from understudy.controller.offers import offered
from understudy.model.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.priority.api import Accounts, PriorityPlugin, SiteFactor
    from understudy.controller.priority.options import PriorityOptions
    from understudy.controller.tables.tables import Tables

PRIORITIES: Final = "understudy.priorities"
SITE_FACTORS: Final = "understudy.site_factors"


def _load(group: str, key: str, prefix: str, value: str) -> Any:
    kind, _, name = value.strip().lower().rpartition("/")
    found = offered(group)
    point = found.get(name)
    if point is None or kind not in ("", prefix):
        known = ", ".join(f"{prefix}/{each}" for each in sorted(found)) or "none"
        raise ConfigError(f"{key}={value} is not known; there are {known}")
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{key}={value} cannot be loaded from {point.value}: {error}") from error


def priority(
    priority_type: str,
) -> Callable[[Tables, PriorityOptions, Accounts, float], PriorityPlugin]:
    """The class of a priority plug-in, from PriorityType.

    Raises:
        ConfigError: nobody offers it, or it cannot be imported.
    """
    found = _load(PRIORITIES, "PriorityType", "priority", priority_type)
    return cast("Callable[[Tables, PriorityOptions, Accounts, float], PriorityPlugin]", found)


def site_factor(name: str, parameters: str) -> SiteFactor | None:
    """The site's own factor, None without a name.

    Raises:
        ConfigError: nobody offers it, or it cannot be imported.
    """
    return (
        cast(
            "SiteFactor",
            _load(SITE_FACTORS, "PrioritySiteFactorPlugin", "site_factor", name)(parameters),
        )
        if name
        else None
    )
