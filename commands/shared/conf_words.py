"""What is wrong with a slurm.conf, in the words of Slurm's commands.

Place: under locate.py, imported only for a file that no daemon has read as it is now. Follows: the
errors of 22.05.8's commands, which read the file before anything else. What only daemons look at,
as nodes of partitions, keeps no command from working.
"""

from __future__ import annotations

from understudy.model.conf import read
from understudy.model.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.model.conf_scan import Finding

_OF_ALL = frozenset({"missing_include", "parse_error", "unknown_key", "misplaced_key"})
_NEEDED = frozenset({"ClusterName", "SlurmctldHost"})
# keys whose values all look at, not the controller alone
_VALUES = frozenset(
    [
        "AccountingStorageEnforce",
        "DebugFlags",
        "EnforcePartLimits",
        "FirstJobId",
        "MaxDBDMsgs",
        "MaxJobCount",
        "PreemptMode",
        "PriorityUsageResetPeriod",
        "PrologFlags",
        "PropagateResourceLimits",
        "PropagateResourceLimitsExcept",
        "SelectTypeParameters",
        "SlurmSchedLogLevel",
        "TaskPluginParam",
    ]
)
_OF_CONTROLLER = ("Bad value for ", "Invalid SelectType", "CR_")
_LINES = frozenset({"nodename", "partitionname", "nodeset", "downnodes", "frontendname"})


def complaint(conf: str) -> str:
    """The errors, a line each; "" for a file that serves."""
    try:
        config = read(conf)
    except ConfigError as error:
        return str(error)
    for finding in config.errors:
        if not _is_looked_at(finding):
            continue
        if finding.kind == "parse_error":
            return f'Parse error in file {finding.file} line {finding.line}: "{finding.text}"'
        if finding.kind in ("unknown_key", "misplaced_key"):
            line = next(
                (
                    each
                    for each in config.lines
                    if (each.file, each.line) == (finding.file, finding.line)
                ),
                None,
            )
            text = f"Parsing error at unrecognized key: {finding.text}"
            if line is None or line.key not in _LINES:
                return f"_parse_next_key: {text}"
            given = next(
                (
                    f" {written}={value}"
                    for written, (_, value) in zip(line.written, line.pairs, strict=True)
                    if written == finding.text
                ),
                "",
            )
            return f'{text}\nParse error in file {finding.file} line {finding.line}: "{given}"'
        return finding.message.replace(f'value "{finding.text}"', f"value ({finding.text})")
    return ""


def _is_looked_at(finding: Finding) -> bool:
    """Whether commands end with it as well, not the controller alone."""
    if finding.kind in _OF_ALL:
        return True
    if finding.kind == "missing_key":
        return finding.key in _NEEDED
    if finding.kind not in ("bad_value", "unknown_word"):
        return False
    return "is not a valid" in finding.message or (
        finding.key in _VALUES
        and not finding.message.startswith(_OF_CONTROLLER)
        and not (finding.key == "PreemptMode" and finding.message.startswith("Bad value"))
    )
