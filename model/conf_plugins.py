"""Plug-ins that slurm.conf names and that nobody can add here: those of 22.05.8, and those of other
versions.

Place: the vocabulary. slurmctld does not start without a plug-in that it looks for; one that
another version had is a warning, as sites' files of any age are to be tried. Names are looked at to
the letter, as files are. Left out are keys with which slurmctld starts whatever they say
(ProctrackType, TaskPlugin ...; of JobCompType it says so), keys for plug-ins of the site's own
(JobSubmitPlugins, PrEpPlugins ...), and those whose plug-ins are looked for among what is
installed: SchedulerType, SelectType, PriorityType.

Follows: slurm.conf(5) of 22.05 and of other versions, and what slurmctld 22.05.8 logs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from understudy.model.conf_keys import GLOBAL_KEYS
from understudy.model.conf_scan import ERROR, WARNING, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from understudy.model.conf import SlurmConfig


class Plugins(NamedTuple):
    """The plug-ins of one kind, `kind/name`.

    `bare`: the name alone will do; `several`: the value may be a list.
    """

    kind: str
    names: frozenset[str]
    foreign: frozenset[str] = frozenset()
    bare: bool = False
    several: bool = False


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


PLUGINS: Final[dict[str, Plugins]] = {
    "accountingstoragetype": Plugins(
        "accounting_storage", _set("none slurmdbd"), _set("mysql pgsql filetxt")
    ),
    "acctgatherenergytype": Plugins(
        "acct_gather_energy",
        _set("none gpu ibmaem ipmi nvml pm_counters rapl rsmi xcc"),
        _set("cray cray_aries"),
        bare=True,
        several=True,
    ),
    "acctgatherfilesystemtype": Plugins("acct_gather_filesystem", _set("none lustre")),
    "acctgatherinterconnecttype": Plugins(
        "acct_gather_interconnect", _set("none ofed sysfs"), bare=True, several=True
    ),
    "acctgatherprofiletype": Plugins("acct_gather_profile", _set("none hdf5 influxdb")),
    "authalttypes": Plugins("auth", _set("jwt munge none"), _set("slurm"), several=True),
    "authtype": Plugins("auth", _set("jwt munge none"), _set("slurm authd")),
    "burstbuffertype": Plugins(
        "burst_buffer", _set("datawarp lua none"), _set("cray generic"), bare=True, several=True
    ),
    "credtype": Plugins("cred", _set("munge none"), _set("slurm")),
    "extsensorstype": Plugins("ext_sensors", _set("none rrd")),
    "jobacctgathertype": Plugins("jobacct_gather", _set("none cgroup linux"), _set("aix")),
    "mcsplugin": Plugins("mcs", _set("none account group user"), _set("label")),
    "nodefeaturesplugins": Plugins(
        "node_features", _set("helpers knl_cray knl_generic"), bare=True, several=True
    ),
    "powerplugin": Plugins("power", _set("none cray_aries"), _set("cray"), bare=True),
    "preempttype": Plugins("preempt", _set("none partition_prio qos"), _set("job_prio")),
    "switchtype": Plugins(
        "switch",
        _set("none cray_aries hpe_slingshot"),
        _set("cray elan federation generic nrt nvidia_imex"),
    ),
    "topologyplugin": Plugins(
        "topology", _set("none 3d_torus hypercube tree"), _set("block default flat node_rank")
    ),
}
_JOB_COMPLETIONS: Final = _set("none elasticsearch filetxt lua mysql script")


def findings(config: SlurmConfig) -> Iterator[Finding]:
    """What there is to say of plug-ins that 22.05.8 does not have."""
    for key, plugins in PLUGINS.items():
        value = config.values.get(key, "")
        for text in value.split(",") if plugins.several else [value]:
            kind, slash, name = text.strip().rpartition("/")
            if not name or (
                (kind == plugins.kind or (plugins.bare and not slash)) and name in plugins.names
            ):
                continue
            line = next(line for line in reversed(config.lines) if line.key == key)
            shown = GLOBAL_KEYS[key].name
            if name in plugins.foreign:
                message = (
                    f"{shown}: {text} is a plug-in of another version, without effect here: "
                    "22.05.8 stops there"
                )
                yield Finding("foreign_word", WARNING, line.file, line.line, value, message, shown)
            else:
                message = f"{shown}: cannot find {plugins.kind} plugin for {text}"
                yield Finding("bad_value", ERROR, line.file, line.line, value, message, shown)
    job_completion = config.text("JobCompType")
    kind, _, name = job_completion.rpartition("/")
    if kind != "jobcomp" or name not in _JOB_COMPLETIONS:
        line = next(line for line in reversed(config.lines) if line.key == "jobcomptype")
        message = (
            f"cannot find jobcomp plugin for {job_completion}: 22.05.8 goes on, and nothing is kept"
        )
        yield Finding(
            "idle_plugin",
            WARNING,
            line.file,
            line.line,
            job_completion,
            message,
            "JobCompType",
        )
