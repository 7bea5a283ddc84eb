"""squeue's output fields. Follows squeue(1) -o and -O of 22.05."""

from understudy.commands.shared.fields import Field, FieldTable
from understudy.commands.shared.texts import (
    duration,
    limit,
    megabytes,
    or_na,
    or_null,
    thousands,
    timestamp,
)
from understudy.documents.job_texts import job_id_text, reason_or_nodes, task_expression
from understudy.documents.states import PENDING, job_state, job_state_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PRIORITY_SCALE = 0xFFFFFFFF  # %p is the priority as a part of the greatest one


def _task_id(task_id: int | None, expression: str, most: int) -> str:
    if expression:
        return task_expression(expression, most)
    return "N/A" if task_id is None else str(task_id)


def _sct(sockets: int | None, cores: int | None, threads: int | None) -> str:
    return ":".join("*" if value is None else str(value) for value in (sockets, cores, threads))


def _star(value: int | None) -> str:
    return "*" if value is None else str(value)


def _number(value: int | None) -> str:
    return "N/A" if value is None else str(value)


def _zero(value: int | None) -> str:
    return str(value or 0)


def _yes(value: object) -> str:
    return "1" if value else "0"


def _plain(value: "Any") -> str:
    return str(value)


def _std_out(given: str, work_dir: str, job_id: int) -> str:
    return given or f"{work_dir.rstrip('/')}/slurm-{job_id}.out"  # of arrays, too


def _batch_host(host: str) -> str:
    return host or "n/a"


def _time_left(limit_s: int | None, used: int) -> str:
    if limit_s is None:
        return "UNLIMITED"
    return duration(limit_s - used) if limit_s >= used else "INVALID"


def _min_memory(amount: int | None) -> str:
    return megabytes(amount or 0)


def _fraction(priority: int) -> str:
    return f"{priority / PRIORITY_SCALE:.14f}"


def _start(state: int, start: int | None, expected: int | None) -> str:
    return timestamp(expected if start is None and state == PENDING else start)


def _end(end: int | None, limit_s: int | None, start: int | None, expected: int | None) -> str:
    return timestamp(end, "NONE" if limit_s is None and (start or expected) else "N/A")


def _pending_time(submitted: int, state: int, start: int | None, now: float) -> str:
    return str(max(int((now if state == PENDING or start is None else start) - submitted), 0))


_NA = "N/A"
_ID = (
    "job_id array_job_id array_task_id array_task_expression array_max_tasks het_job_id "
    "het_job_offset"
)


def _given(name: str) -> "Callable[[str, str], str]":
    """A text, Slurm's word for none where none was given."""

    def show(text: str, given_empty: str) -> str:
        return text if name in given_empty.split() else or_null(text)

    return show


FIELDS = FieldTable(
    [
        Field("a", "account", "ACCOUNT", "account given_empty", _given("account")),
        Field("A", "jobid", "JOBID", "job_id", _plain),
        Field("B", "batchhost", "EXEC_HOST", "batch_host", _batch_host),
        Field("c", "mincpus", "MIN_CPUS", "min_cpus_node", thousands),
        Field("C", "numcpus", "CPUS", "cpus", _plain),
        Field("d", "mintmpdisk", "MIN_TMP_DISK", "min_tmp_disk_mb", megabytes),
        Field("D", "numnodes", "NODES", "node_count", _plain),
        Field("e", "endtime", "END_TIME", "end_time time_limit_s start_time expected_start", _end),
        Field("E", "dependency", "DEPENDENCY", "dependency", or_null),
        Field("f", "feature", "FEATURES", "features", or_null),
        Field(
            "F",
            "arrayjobid",
            "ARRAY_JOB_ID",
            "job_id array_job_id",
            lambda job, array: str(array or job),
        ),
        Field("g", "groupname", "GROUP", "group_name", _plain),
        Field("G", "groupid", "GROUP", "group_id", _plain),
        Field("h", "oversubscribe shared", "OVER_SUBSCRIBE", "oversubscribe", _plain),
        Field("H", "sockets", "SOCKETS_PER_NODE", "sockets_per_node", _star),
        Field("i", "jobarrayid", "JOBID", _ID, job_id_text),
        Field("I", "cores", "CORES_PER_SOCKET", "cores_per_socket", _star),
        Field("j", "name", "NAME", "name", _plain),
        Field("J", "threads", "THREADS_PER_CORE", "threads_per_core", _star),
        Field("k", "comment", "COMMENT", "comment given_empty", _given("comment")),
        Field(
            "K",
            "arraytaskid",
            "ARRAY_TASK_ID",
            "array_task_id array_task_expression array_max_tasks",
            _task_id,
        ),
        Field("l", "timelimit", "TIME_LIMIT", "time_limit_s", limit, whole="text"),
        Field("L", "timeleft", "TIME_LEFT", "time_limit_s run_time_s", _time_left, whole="text"),
        Field("m", "minmemory", "MIN_MEMORY", "min_memory_mb", _min_memory),
        Field("M", "timeused", "TIME", "run_time_s", duration, whole="text"),
        Field("n", "reqnodes", "REQ_NODES", "required_nodes", _plain, whole="text"),
        Field("N", "nodelist", "NODELIST", "nodes", _plain, whole="all"),
        Field("o", "command", "COMMAND", "command", or_null),
        Field("O", "contiguous", "CONTIGUOUS", "contiguous", _yes),
        Field("p", "priority", "PRIORITY", "priority", _fraction),
        Field("P", "partition", "PARTITION", "partition", _plain),
        Field("q", "qos", "QOS", "qos given_empty", _given("qos")),
        Field("Q", "prioritylong", "PRIORITY", "priority", _plain),
        Field(
            "r", "reason", "REASON", "reason reason_detail", lambda reason, detail: detail or reason
        ),
        Field(
            "R",
            "reasonlist",
            "NODELIST(REASON)",
            "state nodes reason reason_detail",
            reason_or_nodes,
            whole="nodes",
        ),
        Field("s", "selectjobinfo", "", "", lambda: ""),
        Field("S", "starttime", "START_TIME", "state start_time expected_start", _start),
        Field("t", "statecompact", "ST", "state flags", job_state_code),
        Field("T", "state", "STATE", "state flags", job_state),
        Field("u", "username", "USER", "user_name", _plain),
        Field("U", "userid", "UID", "user_id", _plain),
        Field("v", "reservation", "RESERVATION", "reservation", or_null),
        Field("V", "submittime", "SUBMIT_TIME", "submit_time", timestamp),
        Field("w", "wckey", "WCKEY", "wckey", or_null),
        Field("W", "licenses", "LICENSES", "licenses", or_null),
        Field("x", "", "EXC_NODES", "excluded_nodes", _plain),
        Field(
            "X",
            "corespec",
            "CORE_SPEC",
            "core_spec thread_spec",
            lambda cores, threads: _number(cores if threads is None else threads),
        ),
        Field("y", "nice", "NICE", "nice", _plain),
        Field("Y", "schednodes", "SCHEDNODES", "expected_nodes", or_null, whole="all"),
        Field("z", "sct", "S:C:T", "sockets_per_node cores_per_socket threads_per_core", _sct),
        Field("Z", "workdir", "WORK_DIR", "work_dir", _plain),
        Field("b", "tres-per-node gres", "TRES_PER_NODE", "tres_per_node", or_na),
        # without a letter
        Field(
            "",
            "admin_comment",
            "ADMIN_COMMENT",
            "admin_comment given_empty",
            _given("admin_comment"),
        ),
        Field("", "accruetime", "ACCRUE_TIME", "accrue_time", timestamp),
        Field("", "allocnodes", "ALLOC_NODES", "alloc_node", _plain),
        Field("", "allocsid", "ALLOC_SID", "alloc_session_id", _plain),
        Field("", "associd", "ASSOC_ID", "association_id", _plain),
        Field("", "batchflag", "BATCH_FLAG", "batch", _yes),
        Field("", "boardspernode", "BOARDS_PER_NODE", "boards_per_node", _zero),
        Field("", "burstbuffer", "BURST_BUFFER", "burst_buffer", or_null),
        Field("", "burstbufferstate", "BURST_BUFFER_STATE", "burst_buffer_state", or_null),
        Field("", "cluster", "CLUSTER", "cluster", _plain),
        Field("", "clusterfeature", "CLUSTER_FEATURES", "cluster_features", or_null),
        Field("", "container", "CONTAINER", "container", or_null),
        Field("", "cpus-per-task cpuspertask", "CPUS_PER_TASK", "cpus_per_task", _plain),
        Field("", "cpus-per-tres", "CPUS_PER_TRES", "cpus_per_tres", or_na),
        Field("", "deadline", "DEADLINE", "deadline", timestamp),
        Field("", "delayboot", "DELAY_BOOT", "delay_boot_s", duration),
        Field(
            "",
            "derivedec",
            "DERIVED_EC",
            "derived_exit_code derived_exit_signal",
            lambda code, signal: str(code << 8 | signal),
        ),
        Field("", "eligibletime", "ELIGIBLE_TIME", "eligible_time", timestamp),
        Field(
            "",
            "exit_code",
            "EXIT_CODE",
            "exit_code exit_signal",
            lambda code, signal: str(code << 8 | signal),
        ),
        Field(
            "",
            "hetjobid packjobid",
            "HET_JOB_ID",
            "het_job_id",
            lambda job: str(job) if job else _NA,
        ),
        Field("", "hetjobidset packjobidset", "HET_JOB_ID_SET", "het_job_id_set", or_na),
        Field(
            "",
            "hetjoboffset packjoboffset",
            "HET_JOB_OFFSET",
            "het_job_id het_job_offset",
            lambda job, offset: str(offset) if job else _NA,
        ),
        Field("", "lastschedeval", "LAST_SCHED_EVAL", "last_sched_eval", timestamp),
        Field("", "maxcpus", "MAX_CPUS", "max_cpus cpus", lambda most, cpus: str(most or cpus)),
        Field(
            "",
            "maxnodes",
            "MAX_NODES",
            "max_nodes node_count",
            lambda most, nodes: str(most or nodes),
        ),
        Field("", "mcslabel", "MCSLABEL", "mcs_label", or_null),
        Field("", "mem-per-tres", "MEM_PER_TRES", "memory_per_tres", or_na),
        Field("", "mintime", "TIME_MIN", "time_min_s", lambda seconds: duration(seconds or 0)),
        Field("", "network", "NETWORK", "network", or_null),
        Field("", "ntperboard", "NTASKS_PER_BOARD", "ntasks_per_board", _plain),
        Field("", "ntpercore", "NTASKS_PER_CORE", "ntasks_per_core", _number),
        Field("", "ntpernode", "NTASKS_PER_NODE", "ntasks_per_node", _plain),
        Field("", "ntpersocket", "NTASKS_PER_SOCKET", "ntasks_per_socket", _number),
        Field("", "numtasks", "TASKS", "num_tasks", _plain),
        Field("", "origin", "ORIGIN", "", lambda: "NA"),
        Field("", "originraw", "ORIGIN_RAW", "", lambda: "NA"),
        Field(
            "", "pendingtime", "PENDING_TIME", "submit_time state start_time @now", _pending_time
        ),
        # ours, for policies that plan: --start shows the same as START_TIME and SCHEDNODES
        Field("", "plannednodes", "PLANNED_NODES", "expected_nodes", or_null, whole="all"),
        Field("", "plannedstart", "PLANNED_START", "expected_start", timestamp, whole="text"),
        Field("", "preempttime", "PREEMPT_TIME", "preempt_time", timestamp),
        Field("", "prefer", "PREFER", "prefer", or_null),
        Field("", "profile", "PROFILE", "profile", lambda profile: profile.title() or "NotSet"),
        Field("", "reboot", "REBOOT", "reboot", _yes),
        Field("", "reqswitch", "REQ_SWITCH", "switches", _zero),
        Field("", "requeue", "REQUEUE", "requeue", _yes),
        Field("", "resizetime", "RESIZE_TIME", "resize_time", timestamp, whole="text"),
        Field("", "restartcnt", "RESTART_COUNT", "restarts", _plain),
        Field("", "siblingsactive", "ACTIVE_SIBLINGS", "", lambda: "NA"),
        Field("", "siblingsactiveraw", "ACTIVE_SIBLINGS_RAW", "", lambda: "NA"),
        Field("", "siblingsviable", "VIABLE_SIBLINGS", "", lambda: "NA"),
        Field("", "siblingsviableraw", "VIALBLE_SIBLINGS_RAW", "", lambda: "NA"),
        Field("", "sperboard", "SOCKETS_PER_BOARD", "sockets_per_board", _zero),
        Field(
            "",
            "stderr",
            "STDERR",
            "raw_std_err raw_std_out work_dir job_id",
            lambda err, *out: err or _std_out(*out),
        ),
        Field("", "stdin", "STDIN", "raw_std_in", _plain),
        Field("", "stdout", "STDOUT", "raw_std_out work_dir job_id", _std_out),
        Field("", "system_comment", "SYSTEM_COMMENT", "system_comment", or_null),
        Field(
            "",
            "tres tres-alloc",
            "TRES_ALLOC",
            "tres_allocated tres_requested",
            lambda held, asked: held or asked,
        ),
        Field("", "tres-bind", "TRES_BIND", "tres_bind", or_na),
        Field("", "tres-freq", "TRES_FREQ", "tres_freq", or_na),
        Field("", "tres-per-job", "TRES_PER_JOB", "tres_per_job", or_na),
        Field("", "tres-per-socket", "TRES_PER_SOCKET", "tres_per_socket", or_na),
        Field("", "tres-per-task", "TRES_PER_TASK", "tres_per_task", or_na),
        Field("", "wait4switch", "WAIT4SWITCH", "switches_wait_s", duration),
    ]
)
