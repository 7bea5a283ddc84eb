"""Slurm's words for tasks and how they ended.

Place: under srun; loaded only when there is something to say.
"""

from understudy.protocol.endings import OUT_OF_MEMORY

_SIGNAL_TEXTS = {
    1: "Hangup", 2: "Interrupt", 3: "Quit", 4: "Illegal instruction", 5: "Trace/breakpoint trap",
    6: "Aborted", 7: "Bus error",
    8: "Floating point exception", 9: "Killed", 10: "User defined signal 1",
    11: "Segmentation fault", 12: "User defined signal 2", 13: "Broken pipe",
    14: "Alarm clock", 15: "Terminated", 16: "Stack fault", 24: "CPU time limit exceeded",
    25: "File size limit exceeded", 31: "Bad system call",
    OUT_OF_MEMORY: "Out Of Memory",
}  # fmt: skip


def tasks_text(numbers: list[int]) -> str:
    """`task 3`, `tasks 0-3,7`."""
    return f"task{'s' if len(numbers) > 1 else ''} {ranges_text(numbers)}"


def ranges_text(numbers: list[int]) -> str:
    """`0-3,7`."""
    ranges: list[str] = []
    at = 0
    while at < len(numbers):
        end = at
        while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
            end += 1
        ranges.append(str(numbers[at]) if end == at else f"{numbers[at]}-{numbers[end]}")
        at = end + 1
    return ",".join(ranges)


def signal_text(signal: int, *, core: bool) -> str:
    text = (
        f"Real-time signal {signal - 34}"
        if 34 <= signal <= 64
        else _SIGNAL_TEXTS.get(signal, f"Unknown signal {signal}")
    )
    return text + (" (core dumped)" if core else "")
