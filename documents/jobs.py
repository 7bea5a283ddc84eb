"""squeue --json and --yaml: all jobs as the document of Slurm's openapi/v0.0.38, whatever the other
options say.

Place: documents; pure.
"""

from understudy.documents.job_texts import task_expression
from understudy.documents.states import job_state
from understudy.model.records import NO_TASKS
from understudy.model.times import YEAR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Row = dict[str, Any]

_NEGATIVE = 1 << 32  # numbers below zero are shown as unsigned ones of 32 bits
_SHARED = {"OK": None, "NO": "none", "YES": "shared", "USER": "user", "MCS": "mcs"}
_PROFILES = ("None", "Energy", "Task", "Lustre", "Network")
_FREQUENCIES = {"low": 0x80000001, "medium": 0x80000002, "high": 0x80000003, "highm1": 0x80000004}
_GOVERNORS = {
    "conservative": 0x88000000,
    "ondemand": 0x84000000,
    "performance": 0x82000000,
    "powersave": 0x81000000,
    "userspace": 0x90000000,
    "schedutil": 0xA0000000,
}
# What the document is made from.
_NAMES = """
account accrue_time admin_comment array_job_id array_task_id array_max_tasks
array_task_expression association_id batch batch_host record_flags burst_buffer
burst_buffer_state cluster cluster_features command comment container contiguous core_spec
thread_spec cores_per_socket tres_allocated cpu_freq cpus_per_task cpus_per_tres deadline
delay_boot_s dependency derived_exit_code derived_exit_signal eligible_time end_time
excluded_nodes exit_code exit_signal features group_id group_name job_id node_shares state flags
last_sched_eval licenses max_cpus max_nodes mcs_label memory_per_tres min_memory_mb
min_memory_per_cpu name nodes nice ntasks_per_core ntasks_per_node ntasks_per_socket
ntasks_per_board cpus node_count num_tasks het_job_id het_job_id_set het_job_offset partition
prefer min_cpus_node min_tmp_disk_mb pre_suspend_s preempt_time priority profile qos reboot
required_nodes requeue resize_time restarts reservation oversubscribe sockets_per_board
sockets_per_node start_time expected_start reason_detail reason raw_std_err raw_std_in
raw_std_out submit_time suspend_time system_comment time_limit_s time_min_s threads_per_core
tres_bind tres_freq tres_per_job tres_per_node tres_per_socket tres_per_task tres_requested
user_id user_name wckey work_dir
"""
COLUMNS = _NAMES.split()


def job_record(row: "Row", cores_of: "Mapping[str, int]") -> "Row":
    """A job's part of the document. `cores_of`: by node, the cores of each of its sockets."""
    pending, over = row["state"] == 0, row["state"] > 2
    held = bool(row["tres_allocated"])
    start = row["start_time"] or (row["expected_start"] if pending else None) or 0
    per_cpu, memory = row["min_memory_per_cpu"], row["min_memory_mb"] or None
    least, most, governor = _frequencies(row["cpu_freq"])
    limit = row["time_limit_s"]
    end = row["end_time"] or (start + YEAR if start and limit is None else 0)
    expression = row["array_task_expression"]
    record = {
        "account": row["account"],
        "accrue_time": row["accrue_time"] or 0,
        "admin_comment": row["admin_comment"],
        "array_job_id": row["array_job_id"],
        "array_task_id": row["array_task_id"],
        "array_max_tasks": row["array_max_tasks"],
        "array_task_string": task_expression(expression, row["array_max_tasks"])
        if expression
        else "",
        "association_id": row["association_id"],
        "batch_features": "",
        "batch_flag": row["batch"],
        "batch_host": row["batch_host"],
        "flags": row["record_flags"],
        "burst_buffer": row["burst_buffer"],
        "burst_buffer_state": row["burst_buffer_state"],
        "cluster": row["cluster"],
        "cluster_features": row["cluster_features"],
        "command": row["command"],
        "comment": row["comment"],
        "container": row["container"],
        "contiguous": row["contiguous"],
        "core_spec": row["core_spec"],
        "thread_spec": row["thread_spec"],
        "cores_per_socket": row["cores_per_socket"],
        "billable_tres": _billing(row["tres_allocated"]) if held else None,
        # So 22.05.8 names them: the least frequency under a misspelt name, and the CPUs of a task
        # only beside it.
        "cpus_per_task": None if least is None else row["cpus_per_task"],
        ("cpu_frequency_minimum" if least is None else "cpu_frequency_minumum"): least,
        "cpu_frequency_maximum": most,
        "cpu_frequency_governor": governor,
        "cpus_per_tres": row["cpus_per_tres"],
        "deadline": row["deadline"] or 0,
        "delay_boot": row["delay_boot_s"],
        "dependency": row["dependency"],
        "derived_exit_code": row["derived_exit_code"] << 8 | row["derived_exit_signal"],
        "eligible_time": row["eligible_time"] or 0,
        "end_time": end,
        "excluded_nodes": row["excluded_nodes"],
        "exit_code": row["exit_code"] << 8 | row["exit_signal"],
        "features": row["features"],
        "federation_origin": "",
        "federation_siblings_active": "",
        "federation_siblings_viable": "",
        "gres_detail": [share[4] for share in row["node_shares"] if share[4]] if not over else [],
        "group_id": row["group_id"],
        "group_name": row["group_name"],
        "job_id": row["job_id"],
        "job_resources": _resources(row, cores_of) if row["node_shares"] else None,
        "job_state": job_state(row["state"], row["flags"]),
        "last_sched_evaluation": row["last_sched_eval"] or 0,
        "licenses": row["licenses"],
        "max_cpus": row["max_cpus"],
        "max_nodes": 0 if held else row["max_nodes"],
        "mcs_label": row["mcs_label"],
        "memory_per_tres": row["memory_per_tres"],
        "name": row["name"],
        "nodes": row["nodes"],
        "nice": row["nice"] % _NEGATIVE or None,
        "tasks_per_core": row["ntasks_per_core"],
        "tasks_per_node": row["ntasks_per_node"],
        "tasks_per_socket": row["ntasks_per_socket"],
        "tasks_per_board": row["ntasks_per_board"],
        "cpus": None if over and not held else row["cpus"],
        "node_count": row["node_count"],
        "tasks": None if row["num_tasks"] == NO_TASKS else row["num_tasks"],
        "het_job_id": row["het_job_id"],
        "het_job_id_set": row["het_job_id_set"],
        "het_job_offset": row["het_job_offset"],
        "partition": row["partition"],
        "prefer": row["prefer"],
        "memory_per_node": None if per_cpu else memory,
        "memory_per_cpu": memory if per_cpu else None,
        "minimum_cpus_per_node": row["min_cpus_node"],
        "minimum_tmp_disk_per_node": row["min_tmp_disk_mb"],
        "preempt_time": row["preempt_time"] or 0,
        "pre_sus_time": row["pre_suspend_s"],
        "priority": row["priority"],
        "profile": _profile(row["profile"]),
        "qos": row["qos"],
        "reboot": row["reboot"],
        "required_nodes": row["required_nodes"],
        "requeue": row["requeue"],
        "resize_time": row["resize_time"] or 0,
        "restart_cnt": row["restarts"],
        "resv_name": row["reservation"],
        "shared": _SHARED.get(row["oversubscribe"]),
        "show_flags": ["SHOW_ALL", "SHOW_DETAIL", "SHOW_LOCAL"],
        "sockets_per_board": row["sockets_per_board"] or 0,
        "sockets_per_node": row["sockets_per_node"],
        "start_time": start,
        "state_description": row["reason_detail"],
        "state_reason": row["reason"],
        "standard_error": row["raw_std_err"],
        "standard_input": row["raw_std_in"],
        "standard_output": row["raw_std_out"],
        "submit_time": row["submit_time"],
        "suspend_time": row["suspend_time"] or 0,
        "system_comment": row["system_comment"],
        "time_limit": None if limit is None else limit // 60,
        "time_minimum": (row["time_min_s"] or 0) // 60,
        "threads_per_core": row["threads_per_core"],
        "tres_bind": row["tres_bind"],
        "tres_freq": row["tres_freq"],
        "tres_per_job": row["tres_per_job"],
        "tres_per_node": row["tres_per_node"],
        "tres_per_socket": row["tres_per_socket"],
        "tres_per_task": row["tres_per_task"],
        "tres_req_str": row["tres_requested"],
        "tres_alloc_str": row["tres_allocated"],
        "user_id": row["user_id"],
        "user_name": row["user_name"],
        "wckey": row["wckey"],
        "current_working_directory": row["work_dir"],
    }
    if record["job_resources"] is None:
        del record["job_resources"]
    return record


def _billing(tres: str) -> float:
    for part in tres.split(","):
        name, _, amount = part.partition("=")
        if name == "billing":
            return float(amount)
    return 0.0


def _resources(row: "Row", cores_of: "Mapping[str, int]") -> "Row":
    """Which cores of which nodes the job has or had."""
    nodes = []
    count = 0
    for name, _cpus, memory, cores, _gres in row["node_shares"]:
        sockets: Row = {}
        for number in _numbers(cores):
            socket, core = divmod(number, max(cores_of.get(name, 1), 1))
            sockets.setdefault(str(socket), {"cores": {}})["cores"][str(core)] = "allocated"
            count += 1
        nodes.append(
            {
                "sockets": sockets,
                "nodename": name,
                "cpus_used": 0,
                "memory_used": 0,
                "memory_allocated": memory,
            }
        )
    return {
        "nodes": row["nodes"],
        "allocated_cores": count,
        "allocated_hosts": len(nodes),
        "allocated_nodes": nodes,
    }


def _numbers(ranges: str) -> list[int]:
    numbers: list[int] = []
    for part in ranges.split(","):
        first, dash, last = part.partition("-")
        if first:
            numbers += range(int(first), int(last if dash else first) + 1)
    return numbers


def _profile(text: str) -> "list[str] | None":
    wanted = {word.strip().lower() for word in text.split(",")}
    if not text:
        return None
    if "all" in wanted:
        return list(_PROFILES[1:])
    return [name for name in _PROFILES if name.lower() in wanted]


def _frequencies(text: str) -> "tuple[int | None, int | None, int | None]":
    """The least and greatest frequency and the governor of --cpu-freq: `p1[-p2[:p3]]`."""
    span, _, governor = text.partition(":")
    first, _, second = span.partition("-")
    low, high = _frequency(first), _frequency(second)
    named = _GOVERNORS.get((governor or first).lower())
    if second:
        return low, high, named if governor else None
    return None, low, named


def _frequency(text: str) -> int | None:
    return int(text) if text.isdigit() else _FREQUENCIES.get(text.lower())
