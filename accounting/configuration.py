"""What `sacctmgr show configuration` says of the accounting daemon: the keys of slurmdbd.conf, as
given or as they are without.

Place: accounting, pure. Follows slurmdbd.conf(5) of 22.05.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.model.dbd_conf import DbdConfig

_KEYS: Final = (  # name, value where none is given; Yes and No for those that are one or the other
    *(
        ("AllowNoDefAcct", "No"),
        ("ArchiveDir", "/tmp"),  # noqa: S108
        ("ArchiveEvents", "No"),
        ("ArchiveJobs", "No"),
        ("ArchiveResvs", "No"),
    ),
    *(
        ("ArchiveScript", ""),
        ("ArchiveSteps", "No"),
        ("ArchiveSuspend", "No"),
        ("ArchiveTXN", "No"),
        ("ArchiveUsage", "No"),
    ),
    *(
        ("AuthAltTypes", ""),
        ("AuthAltParameters", ""),
        ("AuthInfo", ""),
        ("AuthType", "auth/munge"),
        ("BOOT_TIME", ""),
        ("CommitDelay", "No"),
    ),
    *(
        ("CommunicationParameters", ""),
        ("DbdAddr", ""),
        ("DbdBackupHost", ""),
        ("DbdHost", "localhost"),
        ("DbdPort", "6819"),
        ("DebugFlags", ""),
    ),
    *(
        ("DebugLevel", "info"),
        ("DebugLevelSyslog", ""),
        ("DefaultQOS", ""),
        ("LogFile", ""),
        ("MaxQueryTimeRange", "UNLIMITED"),
    ),
    *(
        ("MessageTimeout", "10"),
        ("Parameters", ""),
        ("PidFile", "/var/run/slurmdbd.pid"),
        ("PluginDir", "/usr/lib/slurm"),
        ("PrivateData", "none"),
    ),
    *(
        (f"Purge{kind}After", "NONE")
        for kind in ("Event", "Job", "Resv", "Step", "Suspend", "TXN", "Usage")
    ),
    *(
        ("SLURMDBD_CONF", ""),
        ("SLURMDBD_VERSION", "22.05.8"),
        ("SlurmUser", "root"),
        ("StorageBackupHost", ""),
        ("StorageHost", "localhost"),
    ),
    *(
        ("StorageLoc", "slurm_acct_db"),
        ("StorageParameters", ""),
        ("StoragePort", "3306"),
        ("StorageType", "accounting_storage/mysql"),
    ),
    *(
        ("StorageUser", "root"),
        ("TCPTimeout", "2"),
        ("TrackWCKey", "No"),
        ("TrackSlurmctldDown", "No"),
    ),
)
_SECONDS: Final = frozenset(("MessageTimeout", "TCPTimeout"))


def configuration(dbd: DbdConfig, known: Mapping[str, str]) -> list[tuple[str, str]]:
    """Names and values, in Slurm's order. `known`: what the daemon knows better than its file."""
    found = []
    for name, default in _KEYS:
        value = known.get(name) or dbd.text(name) or default or "(null)"
        if default in {"Yes", "No"} and dbd.text(name):
            value = "Yes" if dbd.boolean(name) else "No"
        found.append((name, f"{value} secs" if name in _SECONDS else value))
    return found
