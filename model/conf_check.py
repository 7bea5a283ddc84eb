"""`understudy conf check FILE`: what is wrong with a configuration, and what of it has no effect
here.

Place: the verdict over understudy.model.conf; printed by commands, logged by the controller at its
start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.model import conf, conf_words
from understudy.model.conf_keys import GLOBAL_KEYS, LINE_KEYS
from understudy.model.conf_scan import ERROR, Finding
from understudy.model.nouns import many

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from understudy.model.conf import SlurmConfig

# Kinds of findings of which slurmctld's log tells as errors, before it goes on.
GOES_ON: Final = frozenset({"reset_value", "missing_file", "idle_plugin"})


def check(path: str | os.PathLike[str]) -> list[Finding]:
    """Everything that is noteworthy about a configuration: errors, then warnings, each in the order
    of the lines.

    Raises:
        ConfigError: the file itself cannot be read.
    """
    return _ordered(conf.read(path))


def _ordered(config: SlurmConfig) -> list[Finding]:
    return config.errors + [finding for finding in config.findings if finding.severity != ERROR]


def not_emulated(config: SlurmConfig) -> list[str]:
    """The keys that the file sets and that have no effect here, each once, as the manual spells
    them; those of other lines as `NodeName:Gres`.
    """
    found: dict[str, None] = {}
    for line in config.lines:
        known = LINE_KEYS.get(line.key, GLOBAL_KEYS)
        prefix = f"{known[line.key].name}:" if line.key in LINE_KEYS else ""
        for name, value in line.pairs:
            key = known.get(name)
            # A key set to what it is anyway changes nothing.
            if key is not None and not key.emulated and value.lower() != key.default.lower():
                found[key.name if name == line.key else prefix + key.name] = None
    return sorted([*found, *conf_words.idle_words(config)], key=str.lower)


def strange_words(config: SlurmConfig, declared: Mapping[str, frozenset[str]]) -> list[Finding]:
    """Words of lists that have no effect as nobody knows them; errors are among the configuration's
    findings. `declared`: as conf_words.findings.
    """
    return [
        finding for finding in conf_words.findings(config, declared) if finding.severity != ERROR
    ]


def render(config: SlurmConfig, declared: Mapping[str, frozenset[str]] | None = None) -> str:
    """The report for a reader."""
    findings = _ordered(config) + strange_words(config, declared or {})
    errors = len(config.errors)
    lines = [f"{finding.severity}: {finding}" for finding in findings]
    ignored = not_emulated(config)
    if ignored:
        lines.append(f"accepted, but without effect here: {', '.join(ignored)}")
    if config.burst_buffer.script:
        lines.append(config.burst_buffer.about_script)
    cpus = sum(node.cpus for node in config.nodes)
    lines.append(
        f"{config.path}: cluster {config.cluster_name or '(no name)'}, "
        f"{many(len(config.nodes), 'node')}, {many(cpus, 'CPU')}, "
        f"{many(len(config.partitions), 'partition')}; {many(errors, 'error')}, "
        f"{many(len(findings) - errors, 'warning')}"
    )
    return "\n".join(lines) + "\n"


def run(
    path: str | os.PathLike[str],
    declared_by: Callable[[SlurmConfig], Mapping[str, frozenset[str]]] | None = None,
    judged_by: Callable[[SlurmConfig], list[Finding]] | None = None,
) -> tuple[str, int]:
    """The report on a file and the command's exit code: 1 if Slurm would refuse the file.
    `declared_by`: the words that its plug-ins read; `judged_by`: what these say of the values.

    Raises:
        ConfigError: the file itself cannot be read.
    """
    config = conf.read(path)
    declared: Mapping[str, frozenset[str]] = {}
    if not config.errors:
        declared = declared_by(config) if declared_by is not None else {}
        config.findings += judged_by(config) if judged_by is not None else []
    return render(config, declared), 1 if config.errors else 0
