"""scontrol update jobid=...: the keys that say which cores, sockets, tasks and devices of its nodes
a job wants.

Place: requests, under update_jobs. Follows: scontrol(1) "JOBS - SPECIFICATIONS FOR
UPDATE COMMAND", and what 22.05.8 answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from understudy.controller.facts.job import MIN_CPUS_NODE, min_cpus_node
from understudy.controller.jobs.checks import check_gpu_kinds, check_gres
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.gpu_options import is_gpu_binding, is_gpu_frequency
from understudy.model.gres import read_request
from understudy.model.switches import read_switches
from understudy.model.times import leading_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.requests.job_change import Change

_LARGEST_FACTOR: Final = 2_147_483_645


def _cpus_of_a_node(change: Change, text: str) -> None:
    change.need_pending()
    cpus = max(leading_number(text), 1)
    if "numcpus" not in change.asked:
        nodes = leading_number(change.asked.get("numnodes", str(change.job.min_nodes)))
        if not nodes:
            raise SlurmError(ErrorCode.INVALID_CPU_COUNT)
        change.job.min_cpus = cpus * nodes
    change.spec["min_cpus_node"] = cpus
    change.set_extra(MIN_CPUS_NODE, str(cpus))
    change.doubt_cpus()


def keep_min_cpus_node(change: Change) -> None:
    """The number of CPUs a node that was asked for is not worked out again when tasks, or CPUs of a
    task, change.
    """
    if MIN_CPUS_NODE not in change.spec.get("extra", {}):
        change.set_extra(MIN_CPUS_NODE, str(min_cpus_node(change.core, change.job, change.now)))


def _tasks_of_a_node(change: Change, text: str) -> None:
    change.need_pending()
    keep_min_cpus_node(change)
    change.spec["ntasks_per_node"] = leading_number(text) or None


def _threads(change: Change, text: str) -> None:
    change.need_pending()
    change.spec["threads_per_core"] = leading_number(text) or None


def _count(field: str) -> Callable[[Change, str], None]:
    def change_count(change: Change, text: str) -> None:
        change.need_pending()
        change.spec[field] = leading_number(text) if text else None

    return change_count


def _specialized(key: str) -> Callable[[Change, str], None]:
    """Cores or threads that are left to the system, where slurm.conf lets jobs choose."""

    def change_extra(change: Change, text: str) -> None:
        change.need_pending()
        allows = dict(change.core.show_configuration()).get("AllowSpecResourcesUsage", "").upper()
        if allows not in {"YES", "1"}:
            raise SlurmError(ErrorCode.ACCESS_DENIED)
        change.set_extra(key, "" if text == "-1" else text)

    return change_extra


def _reboot(change: Change, text: str) -> None:
    change.need_admin()
    change.need_pending()
    change.set_extra("reboot", "yes" if text.lower() in {"1", "yes"} else "")


def _switches(change: Change, text: str) -> None:
    """A number alone leaves the time as it is, which a job without a number has none of."""
    before = change.job.spec
    change.spec["switches"], wait_s = read_switches(text)
    if "@" in text:
        change.spec["switches_wait_s"] = wait_s
    elif before.switches is None and before.switches_wait_s is None:
        change.spec["switches_wait_s"] = 0


def _wait_for_switch(change: Change, text: str) -> None:
    change.spec["switches_wait_s"] = leading_number(text)


def _delay_boot(change: Change, text: str) -> None:
    change.set_extra("delay_boot", text)


def _site_factor(change: Change, text: str) -> None:
    change.need_admin()
    change.spec["site_factor"] = max(-_LARGEST_FACTOR, min(leading_number(text), _LARGEST_FACTOR))


def _reset_accrual(change: Change, _text: str) -> None:
    change.need_pending()
    change.job.accrue_time = int(change.now)


def _devices(field: str, *, is_memory: bool = False) -> Callable[[Change, str], None]:
    """`gpu:a100:2`, of whatever the field says; what the job asks for is looked at as a whole, as
    it is at its submission.
    """

    def change_devices(change: Change, text: str) -> None:
        change.need_pending()
        try:
            wants = read_request(text)
        except ValueError:
            raise SlurmError(ErrorCode.INVALID_TRES) from None
        if any(want.name not in change.core.settings.gres_types for want in wants):
            raise SlurmError(ErrorCode.INVALID_TRES)
        value = ",".join(f"gres:{want}" for want in wants) or text
        spec = msgspec.structs.replace(change.job.spec, **{**change.spec, field: value})
        check_gpu_kinds(change.core, spec)
        check_gres(change.core, spec)
        change.spec[field] = value
        if is_memory and value:
            change.spec |= {"mem_per_cpu_mb": None, "mem_per_node_mb": None}

    return change_devices


def _for_gpus(field: str, is_right: Callable[[str], bool]) -> Callable[[Change, str], None]:
    """`gpu:closest`, one of `closest` and its like for each kind of device; "" for nothing."""

    def change_words(change: Change, text: str) -> None:
        for each in text.split(";") if text else ():
            kind, _, words = each.partition(":")
            if kind != "gpu" or not is_right(words):
                raise SlurmError(ErrorCode.INVALID_TRES)
        change.set_extra(field, text)  # of a running job, too

    return change_words


LAYOUT_SETTERS: Final[dict[str, Callable[[Change, str], None]]] = {
    "corespec": _specialized("core_spec"),
    "cpuspertres": _devices("cpus_per_tres"),
    "delayboot": _delay_boot,
    "mempertres": _devices("mem_per_tres", is_memory=True),
    "mincpusnode": _cpus_of_a_node,
    "reboot": _reboot,
    "reqcores": _count("cores_per_socket"),
    "reqsockets": _count("sockets_per_node"),
    "reqthreads": _threads,
    "resetaccruetime": _reset_accrual,
    "sitefactor": _site_factor,
    "switches": _switches,
    "tasksnode": _tasks_of_a_node,
    "taskspernode": _tasks_of_a_node,
    "threadspec": _specialized("thread_spec"),
    "tresbind": _for_gpus("tres_bind", is_gpu_binding),
    "tresfreq": _for_gpus("tres_freq", is_gpu_frequency),
    "trespernode": _devices("gres"),
    "tresperjob": _devices("tres_per_job"),
    "trespersocket": _devices("tres_per_socket"),
    "trespertask": _devices("tres_per_task"),
    "wait-for-switch": _wait_for_switch,
}
