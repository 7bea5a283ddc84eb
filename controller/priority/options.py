"""The Priority* parameters of slurm.conf, in the units in which they are used.

Place: priority. Follows: slurm.conf(5) PriorityType and what belongs to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from understudy.model.tres import TresError
from understudy.model.tres_weights import read_weights

if TYPE_CHECKING:
    from understudy.model.conf import SlurmConfig

_NO_NORMAL_ALL = frozenset({"NO_NORMAL_ASSOC", "NO_NORMAL_PART", "NO_NORMAL_QOS", "NO_NORMAL_TRES"})
_LONGEST_PERIOD_S = 300
FAIR_SHARE_FLAGS = frozenset({"NO_FAIR_TREE", "DEPTH_OBLIVIOUS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityOptions:
    """Times in seconds. `half_life_s` 0: usage does not decay. `tres_weights` by TRES name in lower
    case.
    """

    weight_age: int = 0
    weight_association: int = 0
    weight_fair_share: int = 0
    weight_job_size: int = 0
    weight_partition: int = 0
    weight_qos: int = 0
    tres_weights: dict[str, float] = field(default_factory=dict)
    max_age_s: int = 7 * 86400
    calc_period_s: int = _LONGEST_PERIOD_S
    half_life_s: int = 7 * 86400
    reset_period: str = "NONE"
    favors_small: bool = False
    dampening: float = 1.0
    flags: frozenset[str] = frozenset()
    site_factor: str = ""
    site_factor_parameters: str = ""

    def __contains__(self, flag: str) -> bool:
        return flag in self.flags

    @property
    def uses_fair_tree(self) -> bool:
        """The default; DEPTH_OBLIVIOUS is a form of the classic one."""
        return not self.flags & FAIR_SHARE_FLAGS


def read_options(config: SlurmConfig) -> PriorityOptions:
    """What the configuration says."""
    flags = frozenset(word.upper() for word in config.words("PriorityFlags"))
    if "NO_NORMAL_ALL" in flags:
        flags |= _NO_NORMAL_ALL
    half_life = config.seconds("PriorityDecayHalfLife")
    plugin = config.text("PrioritySiteFactorPlugin").rpartition("/")[2]
    return PriorityOptions(
        weight_age=config.count("PriorityWeightAge"),
        weight_association=config.count("PriorityWeightAssoc"),
        weight_fair_share=config.count("PriorityWeightFairShare"),
        weight_job_size=config.count("PriorityWeightJobSize"),
        weight_partition=config.count("PriorityWeightPartition"),
        weight_qos=config.count("PriorityWeightQOS"),
        tres_weights=_weights(config.text("PriorityWeightTRES")),
        max_age_s=config.seconds("PriorityMaxAge") or 0,
        calc_period_s=max(1, config.seconds("PriorityCalcPeriod") or _LONGEST_PERIOD_S),
        half_life_s=half_life or 0,
        reset_period=config.text("PriorityUsageResetPeriod").upper() or "NONE",
        favors_small=config.boolean("PriorityFavorSmall"),
        dampening=float(config.number("FairShareDampeningFactor") or 1),
        flags=flags,
        site_factor="" if plugin in ("", "none") else plugin,
        site_factor_parameters=config.text("PrioritySiteFactorParameters"),
    )


def _weights(text: str) -> dict[str, float]:
    """`CPU=1000,GRES/gpu=3000`. Whoever read the file has refused what cannot be read, where this
    priority is asked for.
    """
    try:
        return read_weights(text)
    except TresError:
        return {}
