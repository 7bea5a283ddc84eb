"""Trackable resources that slurm.conf names: those that accounting is to track, and those that have
a weight. slurmctld 22.05.8 does not start with one that it does not have.

Place: the vocabulary, between the words of each key and the verdict; asked by
understudy.model.conf_together. Follows slurm.conf(5) AccountingStorageTRES, TRESBillingWeights,
PriorityWeightTRES, and what slurmctld 22.05.8 logs before it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.model.tres import BASE, TresError
from understudy.model.tres_weights import read_weights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from understudy.model.conf import SlurmConfig
    from understudy.model.conf_partitions import PartitionConf

_KINDS: Final = ("bb/", "fs/", "gres/", "ic/", "license/")  # of which a site may have its own
_ACCEPTABLE: Final = "Billing,CPU,Energy,FS/,Gres/,IC/,License/,Mem,Node,Pages,VMem"


def contradictions_of_tres(
    config: SlurmConfig,
) -> Iterator[tuple[str, str, PartitionConf | None]]:
    """As understudy.model.conf_together.contradictions."""
    tracked = [word for word in config.words("AccountingStorageTRES") if word.lower() not in BASE]
    known = {*BASE, *(word.lower() for word in tracked)}
    unknown = next((word for word in tracked if not word.lower().startswith(_KINDS)), "")
    if unknown:
        message = f"Unknown tres type '{unknown}', acceptable types are {_ACCEPTABLE}"
        yield "AccountingStorageTRES", message, None
    elif tracked and config.text("AccountingStorageType") == "accounting_storage/none":
        message = (
            f"slurmdbd is required to run with TRES {tracked[0]}. Either setup slurmdbd or remove "
            "this TRES from your configuration."
        )
        yield "AccountingStorageTRES", message, None
    weights: list[tuple[str, str, PartitionConf | None]] = [
        ("TRESBillingWeights", each.tres_billing_weights, each) for each in config.partitions
    ]
    if config.text("PriorityType") == "priority/multifactor":
        weights.insert(0, ("PriorityWeightTRES", config.text("PriorityWeightTRES"), None))
    for key, text, partition in weights:
        try:
            read_weights(text, known)
        except TresError as error:
            yield key, f"failed to parse tres weights str '{text}': {error}", partition
