"""The generic resources of a step: which of its job's devices it has on each node.

Place: tables, pure; beside `step.py`, which lays the step out. Follows: srun(1)
--gres, --gpus and their kin. A step that asks for none has all of its job's, and no other step has
them meanwhile; with `--gres=none` it has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.tables.gres import Held
from understudy.model import nodeset
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.gres import GPU, SHARED, GresCount, read_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.protocol.messages import StepSpec

Gres = tuple[Held, ...]


def used_of(others: Sequence[Gres]) -> Gres:
    """What steps have together of a node's resources."""
    found: dict[tuple[str, str], Held] = {}
    for each in (held for gres in others for held in gres):
        before = found.get((each.name, each.type), Held(each.name, each.type, 0, 0))
        found[each.name, each.type] = Held(
            each.name, each.type, before.amount + each.amount, before.devices | each.devices
        )
    return tuple(found.values())


def is_busy(spec: StepSpec, held: Gres, used: Gres) -> bool:
    """Whether other steps have what the step wants of the node, so far as that does not hang on its
    tasks.
    """
    if spec.overlap or not held:
        return False
    try:
        take(_of_each_node(spec, held), held, used)
    except SlurmError as error:
        return error.code == ErrorCode.NODES_BUSY
    return False


def share_out(
    spec: StepSpec, tasks: Sequence[int], held: Sequence[Gres], used: Sequence[Gres]
) -> list[Gres]:
    """What the step gets on each of its nodes. `tasks`: how many it has there; `held` and `used`:
    what the job has there, and its other steps.

    Raises:
        SlurmError: it can never be had; with NODES_BUSY: not as long as other steps run.
    """
    if not any(held):
        if any(_read(text) for text in (spec.gres or "", spec.tres_per_step, spec.tres_per_task)):
            raise SlurmError(ErrorCode.INVALID_GRES)
        return [() for _ in held]
    left = {(want.name, want.type): want.count for want in _read(spec.tres_per_step)}
    if any(
        _sum(want.name, want.type, gres_of_all(held)) < want.count
        for want in _read(spec.tres_per_step)
    ):
        raise SlurmError(ErrorCode.INVALID_GRES)
    found = []
    for at, (count, gres, others) in enumerate(zip(tasks, held, used, strict=True)):
        busy = () if spec.overlap else others
        wants = _of_each_node(spec, gres)
        wants += tuple(
            GresCount(want.name, want.type, want.count * count)
            for want in _read(spec.tres_per_task)
        )
        # each node gives at least one, the first ones all that they can
        for (name, kind), amount in list(left.items()):
            here = min(max(amount - (len(held) - at - 1), 0), _sum(name, kind, gres))
            left[name, kind] -= here
            wants += (GresCount(name, kind, here),) if here else ()
        found.append(take(wants, gres, busy))
    if any(left.values()):
        raise SlurmError(ErrorCode.INSUFFICIENT)
    return found


def gres_of_all(held: Sequence[Gres]) -> Gres:
    return tuple(each for gres in held for each in gres)


def _of_each_node(spec: StepSpec, held: Gres) -> tuple[GresCount, ...]:
    """What the step wants of a node whatever its tasks are."""
    if spec.gres is not None:
        return _read(spec.gres)
    if spec.tres_per_step or spec.tres_per_task:
        return ()
    return tuple(GresCount(each.name, each.type, each.amount) for each in held)


def take(wants: Sequence[GresCount], held: Gres, used: Gres) -> Gres:
    """The first devices that are free.

    Raises:
        SlurmError: there are not enough, or with NODES_BUSY: not now.
    """
    found: dict[tuple[str, str], Held] = {}
    for want in wants:
        kinds = [each for each in held if each.name == want.name and want.type in ("", each.type)]
        if sum(each.amount for each in kinds) < want.count:
            raise SlurmError(ErrorCode.INSUFFICIENT if kinds else ErrorCode.INVALID_GRES)
        left = want.count
        for each in kinds:
            other = next(
                (one for one in used if (one.name, one.type) == (each.name, each.type)),
                Held(each.name, each.type, 0, 0),
            )
            # else they are counted, as are the parts of a GPU
            by_device = each.devices and each.name not in SHARED
            free = nodeset.indices(each.devices & ~other.devices) if by_device else []
            amount = min(left, len(free) if by_device else max(each.amount - other.amount, 0))
            if amount:
                devices = (
                    sum(1 << device for device in free[:amount]) if by_device else each.devices
                )
                found[each.name, each.type] = Held(each.name, each.type, amount, devices)
            left -= amount
        if left:
            raise SlurmError(ErrorCode.NODES_BUSY)
    return tuple(found.values())


def gpus_of(gres: Gres) -> tuple[int, list[int]]:
    """How many GPUs, and their numbers where they are told apart. Who has a part of one counts as
    who has it.
    """
    gpus = [each for each in gres if each.name == GPU or (each.name in SHARED and each.devices)]
    numbers = sorted(device for each in gpus for device in nodeset.indices(each.devices))
    return sum(1 if each.name in SHARED else each.amount for each in gpus), numbers


def too_many(spec: StepSpec, asked_by_job: str, held: Sequence[Gres]) -> str:
    """What Slurm says beforehand of a step that asks each node for more than its job has there; ""
    if it does not.
    """
    for want in _read(spec.gres or ""):
        most = max((_sum(want.name, want.type, gres) for gres in held), default=0)
        if most < want.count and most:
            asked = ",".join(word.removeprefix("gres:") for word in asked_by_job.split(",") if word)
            return (
                f"Step requested gres_per_node={want} is more than the job's gres_per_node={asked}"
            )
    return ""


def _sum(name: str, kind: str, held: Gres) -> int:
    return sum(each.amount for each in held if each.name == name and kind in ("", each.type))


def _read(text: str) -> tuple[GresCount, ...]:
    try:
        return read_request(text) if text else ()
    except ValueError:
        raise SlurmError(ErrorCode.INVALID_GRES) from None
