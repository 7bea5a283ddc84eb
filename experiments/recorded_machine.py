"""The machine on which schedules of real Slurm were recorded: what a replay of a scenario emulates
beside Slurm itself.

Place: reads `recorded_machine.toml`, which says of each value where it comes from.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from understudy.model.cadence import Cadence


@dataclass(frozen=True, slots=True)
class RecordedMachine:
    """`zero`: a scenario's second 0, as an instant; `lead_s`: how long before it the controller
    starts; `issued_after_s`: how much later than its `at` something is issued. The others are those
    of `Cluster`.
    """

    zero: int
    lead_s: float
    issued_after_s: float
    cadence: Cadence
    job_overhead_s: float
    job_launch_s: float
    epilog_s: float
    kill_s: float

    @property
    def cluster(self) -> dict[str, Any]:
        """Fields of `Cluster`: what the daemons must know of the machine."""
        return {
            "cadence": self.cadence,
            "job_overhead_s": self.job_overhead_s,
            "job_launch_s": self.job_launch_s,
            "epilog_s": self.epilog_s,
            "kill_s": self.kill_s,
            "sleeps_while_stopped": True,  # its scripts are `sleep`
        }


@cache
def recorded_machine() -> RecordedMachine:
    """As the file says."""
    read = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    cadence = Cadence(**{name: each["value"] for name, each in read.pop("cadence").items()})
    return RecordedMachine(cadence=cadence, **{name: each["value"] for name, each in read.items()})
