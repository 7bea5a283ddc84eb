"""Whether a submission is as it must be: lengths, words, generic resources, licences, limits, its
reservation; whether it can ever run.

Place: jobs; for `take_in.py`, and for changes of jobs. Follows: sbatch(1); slurm.conf(5)
EnforcePartLimits.
"""

from __future__ import annotations

import re
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from understudy.controller.core.lookups import check_features
from understudy.controller.facts.feasibility import is_too_large, partition_limit
from understudy.controller.scheduling.api import Ask
from understudy.controller.tables.licenses import read_licenses
from understudy.controller.tables.partition import (
    MEMORY_LIMIT,
    PARTITION_NODE_LIMIT,
    access_refused,
)
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.gpu_options import GpuOptions
from understudy.model.gres import GPU, SHARED, BadCountError, mixes_types, read_request
from understudy.model.noted import GIVEN_EMPTY, noted
from understudy.model.shape import described_threads
from understudy.protocol.messages import AllocateJob, SubmitJob

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition
    from understudy.protocol.messages import JobSpec

MAX_SCRIPT: Final = 4 * 1024 * 1024  # characters
MAX_TEXT: Final = 1024  # of a job's texts, as Slurm 22.05.8 was seen to take them
_MAX_PATH: Final = 4096
_TEXTS: Final = attrgetter(
    "account", "comment", "features", "licenses", "mail_user", "name", "partition", "qos", "wckey"
)
_STREAMS: Final = attrgetter("std_in", "std_out", "std_err")
_LIMIT_CODES: Final = {
    "PartitionTimeLimit": 2051,
    "PartitionNodeLimit": 2006,
    "PartitionCpuLimit": 2005,
    "MaxMemPerLimit": 2044,
    "AccountNotAllowed": 2045,
    "QOSNotAllowed": 2066,
}


def check_lengths(message: SubmitJob | AllocateJob) -> None:
    spec = message.spec
    folder = len(spec.work_dir)
    too_long = (
        max(map(len, _TEXTS(spec))) > MAX_TEXT
        or len(spec.extra.get("network", "")) > MAX_TEXT
        or folder > _MAX_PATH
        or any(
            len(path) + (0 if path.startswith("/") else folder + 1) > _MAX_PATH
            for path in _STREAMS(spec)
            if path
        )
        or (isinstance(message, SubmitJob) and len(message.script) > MAX_SCRIPT)
    )
    if too_long:
        raise SlurmError(ErrorCode.TOO_LONG)


def check_gpu_kinds(core: Core, spec: JobSpec) -> None:
    """Refuse GPUs for each task, each socket or the whole job, and CPUs and memory for each GPU,
    where nodes alone have them. Slurm's commands see to it before they ask the controller.
    """
    if core.selector.counts_gpus:
        return
    asked = (spec.tres_per_job, spec.tres_per_socket, spec.tres_per_task)
    if any(asked) or spec.cpus_per_tres or spec.mem_per_tres:
        raise SlurmError(ErrorCode.UNSUPPORTED_GRES)


def check_kinds(core: Core, spec: JobSpec) -> None:
    """Refuse generic resources that there are none of, before anything else is looked at."""
    check_gpu_kinds(core, spec)
    check_gres(core, spec)


def is_given_empty(spec: JobSpec, field: str) -> bool:
    """Whether an option was given for the text, and says nothing."""
    return field in noted(spec.extra, GIVEN_EMPTY)


def check_words(core: Core, spec: JobSpec) -> None:
    """Refuse features that no node has, and of a batch host those that the job does not ask for."""
    if is_given_empty(spec, "batch_features") and not (
        spec.features or is_given_empty(spec, "features")
    ):
        raise SlurmError(ErrorCode.INVALID_BATCH_FEATURES)
    if (wanted := spec.batch_features) and not set(wanted.split(",")) <= set(
        re.split(r"[&|,]", spec.features)
    ):
        raise SlurmError(ErrorCode.INVALID_BATCH_FEATURES)
    if spec.features:
        check_features(core, spec.features)
    if spec.prefer:
        check_features(core, spec.prefer, ErrorCode.INVALID_PREFERENCE)


def check_licenses(core: Core, text: str) -> None:
    """Refuse a licence that is not configured, or more of it than there is."""
    try:
        licenses = read_licenses(text)
    except ValueError:
        raise SlurmError(ErrorCode.INVALID_LICENSES) from None
    totals = core.tables.licenses.totals
    if any(name not in totals or count > totals[name] for name, count in licenses):
        raise SlurmError(ErrorCode.INVALID_LICENSES)


def no_gres(core: Core, error: ValueError) -> SlurmError:
    """Why a request is none: its count, if it is of a kind that the cluster has."""
    name = str(error).removeprefix("gres:").partition(":")[0]
    is_count = isinstance(error, BadCountError) and name in core.settings.gres_types
    return SlurmError(ErrorCode.INVALID_TRES if is_count else ErrorCode.INVALID_GRES)


def check_gres(core: Core, spec: JobSpec) -> None:
    """Refuse what is no generic resource of the cluster, and what contradicts itself."""
    if not (
        spec.gres
        or spec.tres_per_job
        or spec.tres_per_socket
        or spec.tres_per_task
        or spec.cpus_per_tres
        or spec.mem_per_tres
    ):
        return
    try:
        wants = [
            read_request(text)
            for text in (spec.gres, spec.tres_per_job, spec.tres_per_socket, spec.tres_per_task)
        ]
        others = read_request(spec.cpus_per_tres) + read_request(spec.mem_per_tres)
    except ValueError as error:
        raise no_gres(core, error) from None
    together = tuple(want for each in wants for want in each)
    if any(want.name not in core.settings.gres_types for want in together + others):
        raise SlurmError(ErrorCode.INVALID_GRES)
    names = {want.name for want in together}
    if GPU in names and not names.isdisjoint(SHARED):
        raise SlurmError(ErrorCode.INVALID_GRES)
    if mixes_types(together):
        raise SlurmError(ErrorCode.MIXED_GRES)
    if any(whole.count < (spec.min_nodes or 1) for whole in wants[1]):
        raise SlurmError(ErrorCode.INVALID_GRES)


def check_gpu_options(spec: JobSpec) -> None:
    """Refuse numbers of GPUs of one kind, as they were asked for, that do not go together."""
    texts = (spec.tres_per_job, spec.gres, spec.tres_per_socket, spec.tres_per_task)
    if not any(texts) and not spec.ntasks_per_tres:
        return
    wants = [[want for want in read_request(text) if want.name == GPU] for text in texts]
    for kind in sorted({want.type for each in wants for want in each}) or [""]:
        counts = [sum(want.count for want in each if want.type == kind) for each in wants]
        if _gpu_options(spec, *counts).conflict():
            raise SlurmError(ErrorCode.INVALID_GRES)


def _gpu_options(
    spec: JobSpec, per_job: int, per_node: int, per_socket: int, per_task: int
) -> GpuOptions:
    return GpuOptions(
        per_job=per_job,
        per_node=per_node,
        per_socket=per_socket,
        per_task=per_task,
        cpus_per_gpu=bool(spec.cpus_per_tres),
        tasks_per_gpu=spec.ntasks_per_tres or 0,
        min_nodes=spec.min_nodes or 0,
        max_nodes=spec.max_nodes or 0,
        num_tasks=spec.num_tasks or 0,
        cpus_per_task=spec.cpus_per_task or 0,
        tasks_per_node=spec.ntasks_per_node or 0,
        sockets_per_node=spec.sockets_per_node or 0,
        threads_per_node=described_threads(
            spec.sockets_per_node, spec.cores_per_socket, spec.threads_per_core
        )
        or 0,
    )


def enforce_limits(core: Core, job: Job, partitions: list[Partition]) -> None:
    """EnforcePartLimits: ALL of the partitions must allow the job, ANY one of them, or (NO) it is
    taken in and waits.
    """
    rule = core.settings.enforce_part_limits
    if rule == "NO":
        return
    broken = [_broken(core, job, partition) for partition in partitions]
    if not any(broken) or (rule == "ANY" and not all(broken)):
        return
    raise SlurmError(_LIMIT_CODES[next(filter(None, broken))])


def _broken(core: Core, job: Job, partition: Partition) -> str:
    """The partition's limit that the job breaks; that all of it has too few CPUs comes before that
    it has too few nodes, and memory last, unlike in what is told of a job that waits.
    """
    reason = partition_limit(core, job, partition)
    if reason == MEMORY_LIMIT:
        return access_refused(job, partition) or reason
    if reason not in ("", PARTITION_NODE_LIMIT):
        return reason
    if is_too_large(core, job, partition) and not job.spec.overcommit:
        return "PartitionCpuLimit"
    too_few = job.min_nodes > partition.nodes.bit_count()
    return reason or (PARTITION_NODE_LIMIT if too_few else "")


def fits_reservation(core: Core, job: Job, partition: Partition) -> bool:
    """Whether the nodes of one of the job's reservations, if it is bound to them, could hold it;
    one that has not begun is not asked.
    """
    own, now = core.tables.reservations.of(job), core.time.now()
    if any(not reservation.binds_nodes or not reservation.is_active(now) for reservation in own):
        return True
    return any(
        core.selector.could_ever_run(Ask(job, partition, partition.nodes & each.nodes), core.tables)
        for each in own
    )
