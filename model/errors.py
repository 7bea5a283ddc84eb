"""Errors that a user can cause, with Slurm's numbers and texts.

Place: raised by the controller's cores and by the readers of the model, carried in `Failure` messages, printed by commands.
"""

from typing import Final

ERROR_TEXT: Final[dict[int, str]] = {
    -1: "Unspecified error",
    1005: "Unable to contact slurm controller (connect failure)",
    1007: "Protocol authentication error",
    2000: "Invalid partition name specified",
    2001: "No partition specified or system default partition",
    2002: "Access/permission denied",
    2003: "User's group not permitted to use this partition",
    2004: "Requested nodes not in this partition",
    2005: "More processors requested than permitted",
    2006: "Node count specification invalid",
    2008: "Job size specification needs to be provided",
    2009: "Job script not specified",
    2010: "Invalid user id",
    2014: "Requested node configuration is not available",
    2015: "Requested partition configuration not available now",
    2016: "Requested nodes are busy",
    2017: "Invalid job id specified",
    2018: "Invalid node name specified",
    2020: "Job can not be altered now, try again later",
    2021: "Job/step already completing or completed",
    2023: "Task distribution specification invalid",
    2024: "Job is pending execution",
    2025: "Task count specification invalid",
    2026: "Invalid job credential",
    2028: "Invalid node state specified",
    2029: "Invalid feature specification",
    2045: "Invalid account or account/partition combination specified",
    2048: "Requested time limit is invalid (missing or exceeds some limit)",
}


class SlurmError(Exception):
    """A request that cannot be served. `code` is Slurm's error number, `text` what the user reads."""

    def __init__(self, code: int, text: str | None = None) -> None:
        self.code = code
        self.text = text if text is not None else ERROR_TEXT.get(code, f"Unknown error {code}")
        super().__init__(self.text)


class ConfigError(Exception):
    """A configuration file that cannot be used. Says where: `FILE line N: what`."""

    def __init__(self, message: str, file: str = "", line: int = 0) -> None:
        self.file, self.line, self.message = file, line, message
        where = f"{file} line {line}: " if line else f"{file}: " if file else ""
        super().__init__(where + message)
