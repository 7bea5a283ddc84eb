"""The names of a batch job's output files: sbatch's patterns.

Place: used by the real executor. Pure. Follows: sbatch(1) "FILENAME PATTERN", and what Slurm
22.05.8 does where the page is silent: an unknown pattern stays as it is, a name (%x, %u, %N, %s)
ignores its width, %b is not known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from understudy.model.file_patterns import without_backslashes

NO_TASK: Final = 4294967294  # %a of a job that is not of an array
DEFAULT_PATTERN: Final = "slurm-%j.out"
DEFAULT_ARRAY_PATTERN: Final = "slurm-%A_%a.out"

_PATTERN: Final = re.compile(r"%(\d*)([AaJjNnstux%])")
_MAX_WIDTH: Final = 10


@dataclass(frozen=True, slots=True)
class Names:
    """What the patterns stand for."""

    job_id: int
    job_name: str
    user: str
    host: str  # the short name of the host on which the script runs
    array_job_id: int | None = None
    array_task_id: int | None = None


def expand(pattern: str, names: Names) -> str:
    """The file name. A backslash anywhere in the pattern switches the replacing off, and is left
    out but for one after it.
    """
    if "\\" in pattern:
        return without_backslashes(pattern)
    numbers = {
        "A": names.job_id if names.array_job_id is None else names.array_job_id,
        "a": NO_TASK if names.array_task_id is None else names.array_task_id,
        "J": names.job_id,
        "j": names.job_id,
        "n": 0,
        "t": 0,
    }
    texts = {"N": names.host, "s": "batch", "u": names.user, "x": names.job_name}

    def replacement(match: re.Match[str]) -> str:
        width, letter = match[1], match[2]
        if letter == "%":
            return match[0] if width else "%"
        if letter in texts:
            return texts[letter]
        padding = 0 if letter == "J" else min(int(width or 0), _MAX_WIDTH)  # %J is a text to Slurm
        return f"{numbers[letter]:0{padding}d}"

    return _PATTERN.sub(replacement, pattern)


def output_path(pattern: str, names: Names, work_dir: str) -> str:
    """The path of an output file, in `work_dir` if the pattern does not begin with a slash. "" is
    the default pattern.
    """
    if not pattern:
        pattern = DEFAULT_PATTERN if names.array_task_id is None else DEFAULT_ARRAY_PATTERN
    path = expand(pattern, names)
    return path if path.startswith("/") else f"{work_dir.rstrip('/')}/{path}"
