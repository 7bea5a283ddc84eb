"""The columns of the jobs table: one function each, from a job record to the value that
understudy.model.records describes.

Place: views; read by understudy.controller.views.query, which computes only the
columns that were asked for.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from understudy.controller.facts.job import (
    EXCLUDED_NODES,
    REQUIRED_NODES,
    cpus_shown,
    end_time,
    min_cpus_node,
    min_memory_mb,
    node_count,
    num_tasks,
    run_time_s,
    sixteen_bits,
    start_time,
    tres_allocated,
    tres_requested,
)
from understudy.controller.facts.streams import (
    in_work_dir,
    stands_for_one,
    std_err,
    std_in,
    std_out,
)
from understudy.controller.scheduling.select.request import sharing_rows
from understudy.controller.tables.gres_texts import allocated, share_text
from understudy.controller.tables.het_job import id_set
from understudy.controller.tables.preemption import OFF
from understudy.controller.views.columns import Attribute, Constant, Extra, Unless
from understudy.model import nodeset
from understudy.model.gres import is_unsaid
from understudy.model.noted import GIVEN_EMPTY, note, noted
from understudy.model.records import JOBS
from understudy.model.states import JobFlag, JobState
from understudy.model.task_numbers import format_tasks
from understudy.model.times import parse_limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import Node

# Slurm notes it when its main loop first sees the job, which is soon after its submission
NOT_YET_SEEN_S: Final = 3
_COMPLETING: Final = int(JobFlag.COMPLETING)


def state(_core: Core, job: Job, _now: float) -> int:
    return int(job.state)


def partition(_core: Core, job: Job, _now: float) -> str:
    return ",".join(job.partitions) if job.state is JobState.PENDING else job.partition


def flags(_core: Core, job: Job, _now: float) -> int:
    return int(job.flags)


def preemptable_time(core: Core, job: Job, _now: float) -> int | None:
    preemption = core.tables.preemption
    if (
        preemption is None
        or job.start_time is None
        or job.state is JobState.PENDING
        or preemption.mode_of(job) == OFF
    ):
        return None
    return job.start_time + preemption.exempt_s(job)


def accrue_time(_core: Core, job: Job, now: float) -> int | None:
    if not job.accrues:
        return None
    if job.accrue_time is not None:
        return job.accrue_time
    if job.eligible_time is None:
        return None
    if job.state is JobState.PENDING:
        if job.dependency is not None:
            return None
        is_held = job.priority == 0 and job.eligible_time <= now
        return None if is_held or now < job.submit_time + NOT_YET_SEEN_S else job.eligible_time
    return job.eligible_time


def time_limit(core: Core, job: Job, _now: float) -> int | None:
    """Until a scheduler looks at a job of several partitions, of which the first has no
    DefaultTime, it is bound by the most of the highest tier.
    """
    if (
        job.time_limit_is_set
        or len(job.partitions) == 1
        or not job.is_pending
        or job.last_scheduler
    ):
        return job.time_limit_s
    if job.is_held or job.dependency is not None or job.reason == "BeginTime":
        known = [
            where
            for name in job.spec.partition.split(",")
            if (where := core.tables.partitions.get(name)) is not None
        ]
        if known and known[0].default_time_s is None:
            return max(known, key=lambda where: where.priority_tier).max_time_s
    return job.time_limit_s


def node_shares(core: Core, job: Job, _now: float) -> list[Any]:
    assert job.allocation is not None
    table = core.tables.nodes.nodes
    return [
        [
            table[share.node].name,
            share.cpus,
            share.memory_mb,
            _ranges(share.cores),
            share_text(share.gres),
        ]
        for share in job.allocation.shares
    ]


def cpu_ids(core: Core, job: Job, _now: float) -> list[Any]:
    """The CPUs of the cores that it holds, of each node: all threads of a core, where they are
    CPUs.
    """
    assert job.allocation is not None
    found = []
    table = core.tables.nodes.nodes
    for share in job.allocation.shares:
        node = table[share.node]
        found.append(cpus_of(node, share.cores))
    return found


def cpus_of(node: Node, cores: int) -> str:
    """The CPUs of the cores, as `0-3,8`."""
    whole = (1 << node.cpus_of_core) - 1
    return _ranges(sum(whole << (number * node.cpus_of_core) for number in nodeset.indices(cores)))


def _ranges(mask: int) -> str:
    return ",".join(
        str(first) if length == 1 else f"{first}-{first + length - 1}"
        for first, length in nodeset.runs(mask)
    )


def batch_host(core: Core, job: Job, _now: float) -> str:
    assert job.allocation is not None
    return core.tables.nodes.nodes[job.allocation.first_node].name


def oversubscribe(core: Core, job: Job, _now: float) -> str:
    partition = core.tables.partitions.get(job.partition)
    if len(job.partitions) > 1 and job.is_pending:
        known = [
            where
            for name in job.partitions
            if (where := core.tables.partitions.get(name)) is not None
        ]
        # as submitted, which puts the highest tier first
        if known and job.spec.partition == ",".join(job.partitions):
            partition = max(known, key=lambda where: where.priority_tier)
    if job.exclusive or job.spec.oversubscribe:  # its own choice, whatever the partition's is
        return "NO" if job.exclusive else "YES"
    owns = job.spec.exclusive_for == "user"
    if partition is not None:
        if sharing_rows(partition, agrees=False) > 1:
            return "YES"
        if partition.oversubscribe == "EXCLUSIVE":
            return "NO"
        owns = owns or partition.exclusive_user
    if job.spec.exclusive_for == "mcs":
        return "MCS"
    return "USER" if owns else "OK"


def command(_core: Core, job: Job, _now: float) -> str:
    name = job.spec.command
    if name in ("", "(null)", "wrap"):
        return ""
    return " ".join([name, *job.spec.arguments])


def record_flags(_core: Core, job: Job, _now: float) -> list[str]:
    """What was said about the job, and what has become of it, in the order of Slurm's bits."""
    spec = job.spec
    found: list[str] = []
    if spec.kill_on_invalid_dep is not None:
        found.append("KILL_INV_DEP" if spec.kill_on_invalid_dep else "NO_KILL_INV_DEP")
    if "enforce-binding" in spec.gres_flags:
        found.append("GRES_ENFORCE_BIND")
    if spec.spread_job:
        found.append("SPREAD_JOB")
    if spec.use_min_nodes:
        found.append("USE_MIN_NODES")
    ran = job.allocation is not None
    if ran and job.state > JobState.SUSPENDED:
        found.append("TRES_STR_CALC")
    if spec.cpus_per_task is not None:
        found.append("JOB_CPUS_SET")
    if ran and job.state is JobState.RUNNING:
        found.append("JOB_WAS_RUNNING")
    if "disable-binding" in spec.gres_flags:
        found.append("GRES_DISABLE_BIND")
    if spec.mem_per_node_mb is not None or spec.mem_per_cpu_mb is not None:
        found.append("JOB_MEM_SET")
    return found


def _text(said: str | None) -> str:
    return said or ""


def _extra(key: str) -> Extra:
    return Extra(key, _text)


def _names(path: str) -> Unless:
    """The nodes of a bitmap, few jobs have any."""
    bitmap = attrgetter(path)
    return Unless(path, 0, "", lambda c, j, _n: c.names.to_expression(bitmap(j)))


def _asked_nodes(name: str) -> Unless:
    """The nodes of a bitmap; as said where slurm.conf has none of them any more."""
    both = (name, f"spec.{name}")
    bitmap, said = map(attrgetter, both)
    return Unless(
        both,
        (0, ""),
        "",
        lambda c, j, _n: c.names.to_expression(bitmap(j)) if bitmap(j) else said(j),
    )


def _delay_boot_s(said: str | None) -> int:
    try:
        return parse_limit(said or "0") or 0
    except ValueError:
        return 0


def _number(said: str | None) -> int | None:
    return int(said) if said is not None and said.isdecimal() else None


def _switches_wait_s(core: Core, job: Job, _now: float) -> int:
    """How long it waits for the few leaf switches that it wants to be on."""
    longest_s, wanted_s = core.policy.longest_switch_wait_s, job.spec.switches_wait_s
    return longest_s if wanted_s is None else min(wanted_s, longest_s)


def _tres_per_job(_core: Core, job: Job, _now: float) -> str:
    """GPUs that follow from tasks are not shown."""
    said = job.spec.tres_per_job
    return "" if job.spec.ntasks_per_tres and is_unsaid(said) else said


def _for_each(job: Job, said: str) -> str:
    """What a job has for each GPU; a default is not shown while it is held."""
    return "" if job.is_held and is_unsaid(said) else said


def _cron_spec(core: Core, job: Job, _now: float) -> str:
    entry = core.crontabs.entries.get(job.job_id)
    return "" if entry is None else entry.when


def _association_id(core: Core, job: Job, _now: float) -> int:
    known = core.associations
    account = job.spec.account
    found = account and known.find(account, core.users.user_name(job.user_id), job.partition)
    return found.id if found else 0


def _given_empty(core: Core, job: Job, _now: float) -> str:
    """Also a QOS that is not there, where accounting knows of others."""
    is_unknown = bool(core.associations.qos and not job.spec.qos)
    extra = job.spec.extra
    return note(extra, GIVEN_EMPTY, "qos", is_so=is_unknown or "qos" in noted(extra, GIVEN_EMPTY))


JOB_COLUMNS: Final[dict[str, Callable[[Core, Job, float], Any]]] = {
    "job_id": Attribute("job_id"),
    "array_job_id": Unless("array", None, 0, lambda _c, j, _n: j.array.job_id),
    "array_task_id": Unless(
        "array_task_id",
        None,
        None,
        lambda _c, j, _n: None if stands_for_one(j) else j.array_task_id,
    ),
    "array_task_expression": lambda _c, j, _n: (
        str(j.array_task_id) if stands_for_one(j) else format_tasks(j.array_tasks)
    ),
    "array_max_tasks": Unless("array", None, 0, lambda _c, j, _n: j.array.limit),
    "name": Attribute("spec.name"),
    "user_id": Attribute("user_id"),
    "user_name": lambda c, j, _n: c.users.user_name(j.user_id),
    "group_id": Attribute("group_id"),
    "group_name": lambda c, j, _n: c.users.group_name(j.group_id),
    "account": Attribute("spec.account"),
    # without accounting there is none
    "qos": lambda c, j, _n: j.spec.qos if c.associations.qos else "",
    "wckey": Attribute("spec.wckey"),
    "association_id": _association_id,
    "cluster": lambda c, _j, _n: c.settings.cluster_name,
    "state": state,
    "flags": flags,
    "reason": Attribute("reason"),
    "reason_detail": Attribute("reason_detail"),
    "exit_code": Attribute("exit_code"),
    "exit_signal": Attribute("exit_signal"),
    "derived_exit_code": Attribute("derived_exit_code"),
    "restarts": Attribute("restarts"),
    "requeue": Attribute("requeue"),
    "batch": lambda _c, j, _n: not j.interactive,
    "reboot": Extra("reboot", lambda said: said not in (None, "0", "no", "")),
    "priority": Attribute("priority"),
    "nice": Attribute("nice"),
    "dependency": Unless("dependency", None, "", lambda _c, j, _n: str(j.dependency)),
    "held_by": Attribute("held_by"),
    "submit_time": Attribute("submit_time"),
    "begin_time": Attribute("begin_time"),
    "eligible_time": Attribute("shown_eligible_time"),
    "accrue_time": accrue_time,
    "start_time": start_time,
    "end_time": end_time,
    "expected_start": Attribute("expected_start"),
    "expected_nodes": _names("expected_nodes"),
    "resize_time": Attribute("resize_time"),
    "preempt_time": Attribute("preempt_time"),
    "preemptable_time": preemptable_time,
    "suspend_time": Attribute("suspend_time"),
    "pre_suspend_s": Attribute("pre_suspend_s"),
    "deadline": Unless("spec.deadline", None, None, lambda _c, j, _n: int(j.spec.deadline)),
    "last_sched_eval": Attribute("last_sched_eval"),
    "last_scheduler": lambda _c, j, _n: (
        "Main" if j.last_scheduler == "Submit" else j.last_scheduler
    ),
    "time_limit_s": time_limit,
    "time_limit_is_set": Attribute("time_limit_is_set"),
    "time_min_s": Attribute("spec.time_min_s"),
    "run_time_s": run_time_s,
    "partition": partition,
    "nodes": Attribute("node_list"),
    "completing_nodes": _names("completing_nodes"),
    "batch_host": Unless("allocation", None, "", batch_host),
    "node_count": node_count,
    "cpus": cpus_shown,
    "node_shares": Unless("allocation", None, [], node_shares),
    "cpu_ids": Unless("allocation", None, [], cpu_ids),
    "het_job_id": Unless("het", None, 0, lambda _c, j, _n: j.het.job_id),
    "het_job_offset": Attribute("het_offset"),
    "het_job_id_set": Unless("het", None, "", lambda _c, j, _n: id_set(j)),
    "tres_requested": tres_requested,
    "tres_allocated": Unless(("allocation", "last_tres"), (None, ""), "", tres_allocated),
    "alloc_node": _extra("alloc_node"),
    "alloc_session_id": Extra("alloc_sid", lambda said: int(said or 0)),
    "reservation": lambda _c, j, _n: j.spec.reservation or j.used_reservation,
    "min_nodes": Attribute("min_nodes"),
    "max_nodes": lambda _c, j, _n: j.max_nodes or 0,
    "min_cpus": Attribute("min_cpus"),
    "num_tasks": num_tasks,
    "cpus_per_task": lambda _c, j, _n: sixteen_bits(j.cpus_per_task),
    "cpus_per_task_is_set": Unless("spec.cpus_per_task", None, False, lambda *_: True),
    # with --ntasks-per-gpu it follows from the GPUs of a node
    "ntasks_per_node": lambda _c, j, _n: (
        0 if j.spec.ntasks_per_tres else j.spec.ntasks_per_node or 0
    ),
    "ntasks_per_socket": Attribute("spec.ntasks_per_socket"),
    "ntasks_per_core": Attribute("spec.ntasks_per_core"),
    "ntasks_per_tres": Attribute("spec.ntasks_per_tres"),
    "sockets_per_node": Attribute("spec.sockets_per_node"),
    "cores_per_socket": Attribute("spec.cores_per_socket"),
    "threads_per_core": Attribute("spec.threads_per_core"),
    "min_cpus_node": min_cpus_node,
    "min_memory_mb": min_memory_mb,
    "min_memory_per_cpu": Unless("memory_per_cpu_mb", None, False, lambda *_: True),
    "min_tmp_disk_mb": lambda _c, j, _n: j.spec.tmp_disk_mb or 0,
    "features": Attribute("features"),
    "prefer": lambda _c, j, _n: "" if j.as_preferred else j.spec.prefer,
    # nodes that a running job was left with were not asked for
    "required_nodes": Unless("spec.required_nodes", "", "", _asked_nodes("required_nodes")),
    "excluded_nodes": _asked_nodes("excluded_nodes"),
    "required_nodes_said": Extra(REQUIRED_NODES, lambda said: said or ""),
    "excluded_nodes_said": Extra(EXCLUDED_NODES, lambda said: said or ""),
    "exclusive": Attribute("exclusive"),
    "oversubscribe": oversubscribe,
    "overcommit": Attribute("spec.overcommit"),
    "contiguous": Attribute("spec.contiguous"),
    "spread_job": Attribute("spec.spread_job"),
    "licenses": Attribute("spec.licenses"),
    "gres": Attribute("spec.gres"),
    "gres_allocated": Unless("allocation", None, "", lambda _c, j, _n: allocated(j)),
    "tres_per_job": Unless("spec.tres_per_job", "", "", _tres_per_job),
    "tres_per_node": Attribute("spec.gres"),
    "tres_per_socket": Attribute("spec.tres_per_socket"),
    "tres_per_task": Attribute("spec.tres_per_task"),
    "cpus_per_tres": Unless(
        "spec.cpus_per_tres", "", "", lambda _c, j, _n: _for_each(j, j.spec.cpus_per_tres)
    ),
    "memory_per_tres": Unless(
        "spec.mem_per_tres", "", "", lambda _c, j, _n: _for_each(j, j.spec.mem_per_tres)
    ),
    "distribution": Attribute("spec.distribution"),
    "no_kill": Attribute("spec.no_kill"),
    "command": command,
    "cron_spec": _cron_spec,
    "work_dir": Attribute("spec.work_dir"),
    "std_in": std_in,
    "std_out": std_out,
    "std_err": std_err,
    "delay_boot_s": Extra("delay_boot", _delay_boot_s),
    "burst_buffer": _extra("bb"),
    "burst_buffer_state": Unless(
        "burst_buffer", None, "", lambda c, j, _n: c.tables.burst_buffers.state_of(j)
    ),
    "max_cpus": lambda _c, j, _n: int(j.spec.extra.get("max_cpus") or 0) if j.is_pending else 0,
    "kill_on_invalid_dependency": Unless(
        "spec.kill_on_invalid_dep", None, None, lambda _c, j, _n: int(j.spec.kill_on_invalid_dep)
    ),
    "power_flags": Extra(
        "power", lambda said: "LEVEL" if "level" in (said or "").lower().split(",") else ""
    ),
    "cluster_features": _extra("cluster_constraint"),
    "batch_features": Attribute("spec.batch_features"),
    "raw_std_in": lambda _c, j, _n: in_work_dir(j, j.spec.std_in or "/dev/null"),
    "raw_std_out": lambda _c, j, _n: in_work_dir(j, j.spec.std_out),
    "raw_std_err": lambda _c, j, _n: in_work_dir(j, j.spec.std_err),
    "record_flags": record_flags,
    "comment": Attribute("spec.comment"),
    "given_empty": _given_empty,
    "admin_comment": Attribute("admin_comment"),
    "mail_type": Attribute("spec.mail_type"),
    "switches": Attribute("spec.switches"),
    "switches_wait_s": Unless("spec.switches", None, 0, _switches_wait_s),
    "mail_user": Attribute("spec.mail_user"),
    "submit_line": Attribute("spec.submit_line"),
}


# What is not emulated is shown as nobody having asked for it, or as the submitter gave it.
for _name, _column in JOBS.items():
    if _name in JOB_COLUMNS:
        continue
    if _column.kind is str:
        JOB_COLUMNS[_name] = _extra(_name)
    elif _column.optional:
        JOB_COLUMNS[_name] = Extra(_name, _number)
    elif _column.kind is list:
        JOB_COLUMNS[_name] = Constant([])
    else:
        JOB_COLUMNS[_name] = Constant(_column.kind())
