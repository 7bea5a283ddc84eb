"""sinfo --json and --yaml: all nodes as the document of Slurm's openapi/v0.0.38, whatever the other
options say.

Place: documents; pure.
"""

from understudy.documents.states import NODE_FLAGS, NODE_STATES, UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Row = dict[str, Any]

_NO_VALUE = 4294967294
_NAMES = """
arch bcast_address boards boot_time comment cores_per_socket cpu_load extra free_memory_mb cpus
last_busy features active_features gres gres_drain gres_used mcs_label name next_state address
hostname state flags os owner partitions port memory_mb reason reason_time reason_user
slurmd_start_time sockets threads_per_core tmp_disk_mb weight tres_configured version
alloc_memory_mb alloc_cpus tres_allocated
"""
COLUMNS = _NAMES.split()


def node_record(row: "Row") -> "Row":
    """A node's part of the document."""
    load, free = row["cpu_load"], row["free_memory_mb"]
    used = row["tres_allocated"]
    return {
        "architecture": row["arch"],
        "burstbuffer_network_address": row["bcast_address"],
        "boards": row["boards"],
        "boot_time": row["boot_time"] or 0,
        "comment": row["comment"],
        "cores": row["cores_per_socket"],
        "cpu_binding": 0,
        "cpu_load": _NO_VALUE if load is None else round(load * 100),
        "extra": row["extra"],
        "free_memory": -2 if free is None else free,
        "cpus": row["cpus"],
        "last_busy": row["last_busy"] or 0,
        "features": ",".join(row["features"]),
        "active_features": ",".join(row["active_features"]),
        "gres": row["gres"],
        "gres_drained": row["gres_drain"] or "N/A",
        "gres_used": row["gres_used"],
        "mcs_label": row["mcs_label"],
        "name": row["name"],
        "next_state_after_reboot": "invalid"
        if row["next_state"] == UNKNOWN
        else NODE_STATES[row["next_state"]][0],
        "address": row["address"],
        "hostname": row["hostname"],
        "state": NODE_STATES[row["state"]][0],
        "state_flags": [name for bit, name in NODE_FLAGS if row["flags"] & bit],
        "next_state_after_reboot_flags": [],
        "operating_system": row["os"],
        "owner": row["owner"],
        "partitions": row["partitions"],
        "port": row["port"],
        "real_memory": row["memory_mb"],
        "reason": row["reason"],
        "reason_changed_at": row["reason_time"] or 0,
        "reason_set_by_user": row["reason_user"] or None,
        "slurmd_start_time": row["slurmd_start_time"] or 0,
        "sockets": row["sockets"],
        "threads": row["threads_per_core"],
        "temporary_disk": row["tmp_disk_mb"],
        "weight": row["weight"],
        "tres": row["tres_configured"],
        "slurmd_version": row["version"],
        "alloc_memory": row["alloc_memory_mb"],
        "alloc_cpus": row["alloc_cpus"],
        "idle_cpus": row["cpus"] - row["alloc_cpus"],
        "tres_used": used or None,
        "tres_weighted": float(row["alloc_cpus"]),
    }
