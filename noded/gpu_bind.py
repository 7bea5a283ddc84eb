"""Which of a step's GPUs on a node each of its tasks sees.

Place: a part of a step's process (`taskd.py`). Pure. Follows: srun(1) --gpu-bind. The numbers of
`map_gpu` and `mask_gpu` are those of the node's devices, as where no cgroup hides the others. Where
a node has one task, that one sees all.
"""

from __future__ import annotations

from understudy.model.environment import TASK_HOST, told


def gpus_of(binding: str, devices: list[int], local: int, tasks: int) -> list[int] | None:
    """The devices of a node's task so many, of so many there; empty: it is bound to none that the
    step has. None: GPUs are not shown to it.
    """
    kind, _, values = words_of(binding).partition(":")
    if tasks < 2 or not devices:
        return devices
    if kind == "none":
        return None
    if kind == "single":
        return [devices[local // max(_number(values), 1) % len(devices)]]
    if kind == "per_task":
        count = max(_number(values), 1)
        return devices[local * count : (local + 1) * count]
    if kind in ("map_gpu", "mask_gpu"):
        base = 16 if kind == "mask_gpu" else 10
        found = [
            int(number, base) for number, times in _repeated(values, base) for _ in range(times)
        ]
        if not found:
            return []
        wanted = found[local % len(found)]
        return [
            device
            for device in devices
            if (wanted >> device & 1 if kind == "mask_gpu" else wanted == device)
        ]
    return devices


def gpu_variables(
    binding: str, devices: list[int], seen: list[int] | None, tasks: int
) -> dict[str, str]:
    """What a task is told; where it is bound to none of the step's devices, it has the first."""
    if not devices:
        return {}
    mine = None if seen is None else ",".join(map(str, seen or devices[:1]))
    bound = f"gpu:{binding}" if binding and tasks > 1 else None
    return told(TASK_HOST, {"tres_bind": bound, "devices": mine, "whole_devices": mine})


def words_of(binding: str) -> str:
    """Without how much is to be said of it."""
    return binding.removeprefix("verbose,").removeprefix("v,")


def _repeated(values: str, base: int) -> list[tuple[str, int]]:
    """`0*2,1`: each number and how many times it is there. What is no number is left out."""
    found = []
    for word in values.split(","):
        number, _, times = word.partition("*")
        digits = number.lower().removeprefix("0x") if base == 16 else number
        if digits and all(each in "0123456789abcdef"[:base] for each in digits):
            found.append((digits, _number(times) or 1))
    return found


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
