"""`scontrol show config`: the lines of cgroup.conf, behind those of slurm.conf.

Place: a part of understudy.model.conf. Shown, with their defaults, where a plug-in of slurm.conf
uses control groups. Compared with 22.05.8's output. Follows cgroup.conf(5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.model import conf_values
from understudy.model.conf_companions import CGROUP_KEYS

if TYPE_CHECKING:
    from understudy.model.conf import SlurmConfig

TITLE: Final = "Cgroup Support Configuration:"
# Lines in their order, name:style
_LINES: Final = """
AllowedKmemSpace:bytes AllowedRAMSpace:percent AllowedSwapSpace:percent CgroupAutomount:yes
CgroupMountpoint CgroupPlugin ConstrainCores:yes ConstrainDevices:yes ConstrainKmemSpace:yes
ConstrainRAMSpace:yes ConstrainSwapSpace:yes IgnoreSystemd:yes IgnoreSystemdOnFailure:yes
MaxKmemPercent:percent MaxRAMPercent:percent MaxSwapPercent:percent MemorySwappiness
MinKmemSpace:megabytes MinRAMSpace:megabytes
"""
_USERS: Final = ("ProctrackType", "TaskPlugin", "JobAcctGatherType")


def show(config: SlurmConfig) -> list[tuple[str, str]]:
    """A title, and names and values in their order; nothing where nobody uses control groups."""
    used = [word for name in _USERS for word in config.words(name)]
    if not any(word.lower().endswith("/cgroup") for word in used):
        return []
    shown = [(TITLE, "")]
    for entry in _LINES.split():
        name, _, style = entry.partition(":")
        key = CGROUP_KEYS[name.lower()]
        text = config.cgroup.get(name.lower(), key.default)
        if name == "IgnoreSystemdOnFailure" and name.lower() not in config.cgroup:
            text = config.cgroup.get("ignoresystemd", key.default)
        shown.append((name, _render(name, text, style) if text else "(null)"))
    return shown


def _render(name: str, text: str, style: str) -> str:
    try:
        match style:
            case "yes":
                return "yes" if conf_values.boolean(name, text) else "no"
            case "percent":
                return f"{float(text):.1f}%"
            case "bytes":
                return f"{text} Bytes"
            case "megabytes":
                return f"{text} MB"
    except ValueError:
        return text
    return text
