"""In which order `scontrol update jobid=...` makes its changes, and what is left if one is wrong.

Place: requests, below update_jobs. Follows 22.05.8, as pairs of a right and a wrong value show it:
some keys are looked at together before anything is changed; of the others each is made in its turn,
and the first wrong one ends it.
"""

from __future__ import annotations

from typing import Final

_TOGETHER: Final = (
    *("partition", "reqnodelist", "nodelist", "reservationname", "account", "qos"),
    *("gres", "trespernode", "tresperjob", "trespersocket", "trespertask", "cpuspertres"),
    *("mempertres", "tresbind", "tresfreq", "licenses", "excnodelist", "excludednodelist"),
)
_IN_TURN: Final = (
    *("comment", "admincomment", "switches", "wait-for-switch", "cpuspertask", "numcpus"),
    *("mincpusnode", "numnodes", "numtasks"),
    *("timelimit", "timemin", "deadline", "endtime", "priority", "nice"),
    *("minmemorynode", "minmemorycpu", "mintmpdisknode", "requeue", "oversubscribe", "shared"),
    *("contiguous", "corespec", "threadspec", "reqsockets", "reqcores", "reqthreads", "delayboot"),
    *("features", "prefer", "clusterfeatures", "clusters", "jobname", "name"),
    *("starttime", "eligibletime"),
)
_PLACES: Final = {key: place for place, key in enumerate((*_TOGETHER, *_IN_TURN))}
FIRST_APPLIED: Final = len(_TOGETHER)
# What the first ones change of a job beside its specification.
LOOKED_AT_TOGETHER: Final = (
    *("partitions", "partition", "required_nodes", "excluded_nodes", "min_nodes"),
    *("time_limit_s", "spec", "qos_flags", "lifted"),
)


def place_of(key: str) -> int:
    """Its place; those that are made last, as they are written."""
    return _PLACES.get(key.lower().rstrip("+-"), len(_PLACES))
