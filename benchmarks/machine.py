"""The machine's facts, which are kept with every figure."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path


def facts() -> dict[str, str | int | float]:
    """Processor, cores, memory in GB, kernel, Python; `load` is that of the last minute."""
    found = re.search(r"model name\s*: (.*)", _text("/proc/cpuinfo"))
    memory = re.search(r"MemTotal:\s*(\d+) kB", _text("/proc/meminfo"))
    return {
        "processor": found[1] if found else platform.machine(),
        "cores": os.cpu_count() or 0,
        "memory_gb": round(int(memory[1]) / 2**20, 1) if memory else 0,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": load(),
    }


def load() -> float:
    return round(os.getloadavg()[0], 2)


def counts_instructions() -> bool:
    """Whether `perf stat` can: in many virtual machines the processor does not tell."""
    perf = shutil.which("perf")
    if perf is None:
        return False
    words = [perf, "stat", "-x,", "-e", "instructions:u", "true"]
    told = subprocess.run(words, capture_output=True, text=True, check=False)
    return told.returncode == 0 and told.stderr.split(",")[0].isdigit()


def _text(path: str) -> str:
    return Path(path).read_text() if Path(path).exists() else ""
