"""What 22.05.8 does with keys that are not in today's manual, or came after 22.05: it reads them as
ever, goes on and says something, or does not start.

Place: the vocabulary; asked by understudy.model.conf and its companions, which take all of these
keys with a warning, as one wants to try a site's file whatever its age. Follows what slurmctld
22.05.8 logs.
"""

from __future__ import annotations

from typing import Final

from understudy.model.conf_keys import Era, Key
from understudy.model.conf_plugins import PLUGINS

_UNKNOWN: Final = "unrecognized key"
_FRONT_END: Final = (
    "Use of FrontendName in slurm.conf without Slurm being configured/built with the "
    "--enable-front-end option"
)
_FAST_SCHEDULE: Final = "The FastSchedule option has been removed."
# Keys with which it does not start, by what it says.
_STOPS: Final[dict[str, str]] = {
    "accountingstorageloc": "The AccountingStorageLoc option has been removed.",
    "accountingstorejobcomment": (
        "The AccountingStoreJobComment option has been removed, please use "
        "AccountingStoreFlags=job_comment option instead."
    ),
    "cachegroups": _UNKNOWN,
    "cgroupreleaseagentdir": "Support for CgroupReleaseAgentDir option has been removed.",
    "checkpointtype": _UNKNOWN,
    "defaultstoragehost": _UNKNOWN,
    "defaultstorageloc": _UNKNOWN,
    "defaultstoragepass": _UNKNOWN,
    "defaultstorageport": _UNKNOWN,
    "defaultstoragetype": _UNKNOWN,
    "defaultstorageuser": _UNKNOWN,
    "frontendname": _FRONT_END,
    "jobcheckpointdir": _UNKNOWN,
    "killtree": _UNKNOWN,
    "memlimitenforce": _UNKNOWN,
    "mpichgmdirectsupport": _UNKNOWN,
    "sallocdefaultcommand": (
        "SallocDefaultCommand has been removed. Please consider setting "
        "LaunchParameters=use_interactive_step instead."
    ),
    "schedulerport": _UNKNOWN,
    "schedulerrootfilter": _UNKNOWN,
    "taskaffinity": _UNKNOWN,
    "usepss": _UNKNOWN,
}
# Keys with which it goes on, by what it says.
_SAYS: Final[dict[str, str]] = {
    "alloweddevicesfile": (
        "AllowedDevicesFile option is obsolete, please remove it from your configuration."
    ),
    "keepalivetime": (
        "KeepAliveTime parameter has moved to CommunicationParameters. Please update your config."
    ),
    "schedulerauth": 'The option "SchedulerAuth" is defunct, see man slurm.conf.',
}
# Plug-ins by an older name of their key and kind: that of today.
_RENAMED: Final[dict[str, tuple[str, str]]] = {
    "acctgatherinfinibandtype": ("acct_gather_infiniband", "acctgatherinterconnecttype"),
    "cryptotype": ("crypto", "credtype"),
}


def remark(key: Key, written: str, value: str, *, line_key: str = "") -> str:
    """What there is to say of a key that is not of today, as it is written, with that value;
    `line_key`: the key that begins its line.
    """
    name = key.name.lower()
    if key.era is Era.NEW:
        return f"{written} is a key that came after 22.05: 22.05.8 stops there ({_UNKNOWN})"
    stops, says = _STOPS.get(name, ""), _SAYS.get(name, "")
    if line_key == "frontendname":
        stops = _FRONT_END
    elif name == "fastschedule":
        if value == "1":
            says = "Ignoring obsolete FastSchedule=1 option. Please remove from your configuration."
        else:
            stops = _FAST_SCHEDULE
    elif name in _RENAMED:
        stops = _missing_plugin(name, value)
    if stops:
        return f"{written} was a key before: 22.05.8 stops there ({stops})"
    if says:
        return f"{written} was a key before: 22.05.8 goes on without it ({says})"
    return f"{written} is not in today's manual: 22.05.8 still reads it"


def _missing_plugin(name: str, value: str) -> str:
    old, today = _RENAMED[name]
    kind, _, plugin = value.rpartition("/")
    plugins = PLUGINS[today]
    if kind in (old, plugins.kind) and plugin in plugins.names:
        return ""
    return f"cannot find {plugins.kind} plugin for {plugins.kind}/{plugin}"
