"""How scontrol prints whole records: jobs, nodes, partitions. Follows the output of scontrol(1)
"show" of 22.05, line by line.

Place: under scontrol; pure: records (columns of understudy.model.records by name) to lists of
lines. `render` puts lines together, as a block or, for --oneliner, on one line.
"""

from understudy.commands.shared.texts import (
    full_duration,
    full_limit,
    joined,
    megabytes,
    or_na,
    or_null,
    timestamp,
)
from understudy.documents.job_texts import step_id_text, task_expression
from understudy.documents.states import COMPLETED, PENDING, job_state, node_state_flags
from understudy.model import distribution
from understudy.model.records import NO_TASKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Record = dict[str, Any]

_NO_TASK = 4294967294  # an array whose tasks were all cancelled one by one
_INDENT = "   "
NO_END = 0xFFFFFFFF  # of a reservation without a length


def render(lines: list[str], *, one_line: bool) -> str:
    """The record as it is printed, a blank line behind it unless on one line."""
    return " ".join(lines) + "\n" if one_line else f"\n{_INDENT}".join(lines) + "\n\n"


def _star(value: int | None) -> str:
    return "*" if value is None else str(value)


def _yes(value: object) -> str:
    return "YES" if value else "NO"


def _bit(value: object) -> str:
    return "1" if value else "0"


def _range(least: int, most: int) -> str:
    return f"{min(least, most)}-{most}" if most else str(least)


def _preemption(job: "Record") -> list[str]:
    if job["preemptable_time"] is None:
        return []
    return [
        (
            f"PreemptEligibleTime={timestamp(job['preemptable_time'])} "
            f"PreemptTime={timestamp(job['preempt_time'], 'None')}"
        )
    ]


def _some(job: "Record", *columns: tuple[str, str]) -> list[str]:
    """`NAME=VALUE` of those (name, column) that have a value."""
    return [f"{name}={job[column]}" for name, column in columns if job[column]]


# What `job_lines` does not read, and what it reads for details alone.
_UNREAD = (
    "association_id begin_time cluster completing_nodes cpus_per_task_is_set "
    "distribution exclusive extra failed_node gres held_by kill_on_invalid_dependency min_cpus "
    "min_nodes no_kill overcommit profile raw_std_err raw_std_in raw_std_out "
    "spread_job state_description submit_line thread_spec time_limit_is_set wckey"
)
_UNREAD_OF_JOBS = frozenset(_UNREAD.split())
_DETAILS_OF_JOBS = frozenset(
    ("cpu_ids", "derived_exit_code", "derived_exit_signal", "gres_allocated", "node_shares")
)


def job_columns(*, details: bool) -> list[str]:
    """What `job_lines` reads."""
    from understudy.model.records import JOBS

    unread = _UNREAD_OF_JOBS if details else _UNREAD_OF_JOBS | _DETAILS_OF_JOBS
    return [name for name in JOBS if name not in unread]


def _named(job: "Record", column: str) -> str:
    """Nodes as an update named them, if one did."""
    nodes, said = job[column], job[f"{column}_said"]
    return or_null(said or nodes)


def job_lines(job: "Record", *, details: bool = False, times: "Record | None" = None) -> list[str]:
    """`show job`. `times`: those of `times_of`, where they are known."""
    lines = _who(job)
    if details:
        lines.append(f"DerivedExitCode={job['derived_exit_code']}:{job['derived_exit_signal']}")
    lines += [
        *_when(job, times or times_of(job)),
        *_where(job),
        *_size(job, details=details),
        *_needs(job),
    ]
    if job["cron_spec"]:
        lines.append(f'CronJob=Yes CrontabSpec="{job["cron_spec"]}"')
    empty = job["given_empty"].split()
    lines += [
        f"{name}={job[column]} "
        for name, column in (
            ("AdminComment", "admin_comment"),
            ("SystemComment", "system_comment"),
            ("Comment", "comment"),
        )
        if job[column] or column in empty
    ]
    if job["batch"]:
        lines += [f"StdErr={job['std_err']}", f"StdIn={job['std_in']}", f"StdOut={job['std_out']}"]
    if job["switches"] is not None:
        lines.append(f"Switches={job['switches']}@{full_duration(job['switches_wait_s'])}")
    lines += _some(job, ("BurstBuffer", "burst_buffer"), ("BurstBufferState", "burst_buffer_state"))
    if job["cpu_freq"]:
        lines.append(_frequencies(job["cpu_freq"]))
    lines.append(f"Power={job['power_flags']}")
    signs = "".join(word for flag, word in _FLAGS if flag in job["record_flags"])
    if signs:
        lines.append(signs)
    lines += _some(
        job,
        ("CpusPerTres", "cpus_per_tres"),
        ("MemPerTres", "memory_per_tres"),
        ("TresBind", "tres_bind"),
        ("TresFreq", "tres_freq"),
        ("TresPerJob", "tres_per_job"),
        ("TresPerNode", "tres_per_node"),
        ("TresPerSocket", "tres_per_socket"),
        ("TresPerTask", "tres_per_task"),
        ("NtasksPerTRES", "ntasks_per_tres"),
    )
    if job["mail_type"]:
        lines.append(
            f"MailUser={job['mail_user'] or job['user_name']} MailType={job['mail_type'] or 'NONE'}"
        )
    return [*lines, *_some(job, ("Container", "container")), ""]


def _who(job: "Record") -> list[str]:
    """Whose it is, and what it is at."""
    return [
        _identity(job),
        *([f"HetJobIdSet={job['het_job_id_set']}"] if job["het_job_id"] else []),
        (
            f"UserId={job['user_name']}({job['user_id']}) "
            f"GroupId={job['group_name']}({job['group_id']}) MCS_label={or_na(job['mcs_label'])}"
        ),
        (
            f"Priority={job['priority']} Nice={job['nice']} Account={or_null(job['account'])} "
            f"QOS={job['qos'] if 'qos' in job['given_empty'] else or_null(job['qos'])}"
        ),
        (
            f"JobState={job_state(job['state'], job['flags'])} Reason={_reason(job)} "
            f"Dependency={or_null(job['dependency'])}"
        ),
        (
            f"Requeue={_bit(job['requeue'])} Restarts={job['restarts']} "
            f"BatchFlag={_bit(job['batch'])} Reboot={_bit(job['reboot'])}"
            f" ExitCode={job['exit_code']}:{job['exit_signal']}"
        ),
    ]


def times_of(job: "Record") -> "Record":
    """Those times that differ from job to job, as `_when` shows them."""
    start, end = job["start_time"], job["end_time"]
    if job["state"] == PENDING and start is None:
        start = job["expected_start"]
        if start is not None and end is None and job["time_limit_s"] is not None:
            end = start + job["time_limit_s"]
    return {
        "run": full_duration(job["run_time_s"]),
        "submit": timestamp(job["submit_time"]),
        "eligible": timestamp(job["eligible_time"], "Unknown"),
        "accrue": timestamp(job["accrue_time"], "Unknown"),
        "start": timestamp(start, "Unknown"),
        "end": timestamp(end, "Unknown"),
        "evaluated": timestamp(job["last_sched_eval"], "Unknown"),
    }


def _when(job: "Record", times: "Record") -> list[str]:
    """Its limits and times."""
    return [
        (
            f"RunTime={times['run']} TimeLimit={_time_limit(job)} "
            f"TimeMin={full_limit(job['time_min_s'], 'N/A')}"
        ),
        f"SubmitTime={times['submit']} EligibleTime={times['eligible']}",
        f"AccrueTime={times['accrue']}",
        *([f"ResizeTime={timestamp(job['resize_time'])}"] if job["resize_time"] else []),
        (
            f"StartTime={times['start']} EndTime={times['end']} "
            f"Deadline={timestamp(job['deadline'])}"
        ),
        *_preemption(job),
        (
            f"SuspendTime={timestamp(job['suspend_time'], 'None')} "
            f"SecsPreSuspend={job['pre_suspend_s']}"
            f" LastSchedEval={times['evaluated']} "
            f"Scheduler={job['last_scheduler'] or 'Main'}"
        ),
    ]


def _where(job: "Record") -> list[str]:
    """Its partition and nodes."""
    pending = job["state"] == PENDING
    return [
        f"Partition={job['partition']} AllocNode:Sid={job['alloc_node']}:{job['alloc_session_id']}",
        (
            f"ReqNodeList={_named(job, 'required_nodes')} "
            f"ExcNodeList={_named(job, 'excluded_nodes')}"
        ),
        f"NodeList={job['nodes']}"
        + (f" SchedNodeList={job['expected_nodes']}" if pending and job["expected_nodes"] else ""),
        *_some(job, ("BatchHost", "batch_host"), ("BatchFeatures", "batch_features")),
    ]


def _size(job: "Record", *, details: bool) -> list[str]:
    """How much of what it has, or asks for; with `details` on which node which CPUs."""
    pending = job["state"] == PENDING
    never_ran = job["state"] >= COMPLETED and not job["nodes"]
    tasks = "N/A" if job["num_tasks"] == NO_TASKS else job["num_tasks"]
    cores, threads = _star(job["cores_per_socket"]), _star(job["threads_per_core"])
    # what has run before has the number of nodes that it had
    least, most = job["node_count"], job["max_nodes"]
    nodes = _range(least, most) if pending and not job["restarts"] else str(least)
    lines = [
        (
            f"NumNodes={nodes} NumCPUs={_range(job['cpus'], job['max_cpus'])} "
            f"NumTasks={tasks} CPUs/Task={job['cpus_per_task']}"
            f" ReqB:S:C:T={job['boards_per_node'] or 0}:{job['sockets_per_board'] or 0}:"
            f"{cores}:{threads}"
        ),
        f"TRES={job['tres_allocated'] or or_null(job['tres_requested'])}",
        (
            f"Socks/Node={_star(job['sockets_per_node'])} "
            f"NtasksPerN:B:S:C={job['ntasks_per_node']}:{job['ntasks_per_board']}"
            f":{_star(job['ntasks_per_socket'])}:{_star(job['ntasks_per_core'])} "
            f"CoreSpec={_star(job['core_spec'])}"
        ),
    ]
    if details and not pending and not never_ran:
        lines.append(f"JOB_GRES={or_null(job['gres_allocated'])}")
        lines += _shares(job["node_shares"], job["cpu_ids"])
    return lines


def _needs(job: "Record") -> list[str]:
    """What its nodes must have, and how it runs."""
    memory = (
        f"MinMemory{'CPU' if job['min_memory_per_cpu'] else 'Node'}="
        f"{megabytes(job['min_memory_mb'] or 0)}"
    )
    return [
        (
            f"MinCPUsNode={job['min_cpus_node']} {memory} "
            f"MinTmpDiskNode={megabytes(job['min_tmp_disk_mb'])}"
        ),
        f"Features={or_null(job['features'])} DelayBoot={full_duration(job['delay_boot_s'])}",
        *_some(
            job,
            ("ClusterFeatures", "cluster_features"),
            ("Prefer", "prefer"),
            ("Reservation", "reservation"),
        ),
        (
            f"OverSubscribe={job['oversubscribe']} Contiguous={_bit(job['contiguous'])} "
            f"Licenses={or_null(job['licenses'])}"
            f" Network={or_null(job['network'])}"
        ),
        f"Command={or_null(job['command'])}",
        f"WorkDir={job['work_dir']}",
    ]


# Slurm writes them one behind the other.
_FLAGS = (
    ("GRES_ENFORCE_BIND", "GresEnforceBind=Yes"),
    ("GRES_DISABLE_BIND", "GresEnforceBind=No"),
    ("KILL_INV_DEP", "KillOInInvalidDependent=Yes"),
    ("NO_KILL_INV_DEP", "KillOInInvalidDependent=No"),
    ("SPREAD_JOB", "SpreadJob=Yes"),
)
_GOVERNORS = {
    name.lower(): name
    for name in ("Conservative", "OnDemand", "Performance", "PowerSave", "SchedUtil", "UserSpace")
}


def _frequencies(text: str) -> str:
    """`1000-2000:ondemand`: the bounds and the governor, of which the first counts."""
    frequencies, _, governors = text.lower().partition(":")
    if frequencies in _GOVERNORS:
        frequencies, governors = "", frequencies
    least, _, most = frequencies.rpartition("-")
    parts = [f"CPU_min_freq={least.capitalize()} "] if least else []
    if most:
        parts.append(f"CPU_max_freq={most.capitalize()} ")
    if governors:
        parts.append(f"Governor={_GOVERNORS[governors.split(',')[0]]}")
    return "".join(parts)


def _identity(job: "Record") -> str:
    parts = [f"JobId={job['job_id']}"]
    if job["array_job_id"]:
        task = job["array_task_id"]
        expression = (
            task_expression(job["array_task_expression"], job["array_max_tasks"])
            if job["array_task_expression"]
            else ""
        )
        parts.append(
            f"ArrayJobId={job['array_job_id']} "
            f"ArrayTaskId={(expression or _NO_TASK) if task is None else task}"
        )
        if job["array_max_tasks"]:
            parts.append(f"ArrayTaskThrottle={job['array_max_tasks']}")
    if job["het_job_id"]:
        parts.append(f"HetJobId={job['het_job_id']} HetJobOffset={job['het_job_offset']}")
    return " ".join([*parts, f"JobName={job['name']}"])


def _reason(job: "Record") -> str:
    reason: str = job["reason_detail"] or job["reason"]
    return reason.replace(" ", "_")


def _time_limit(job: "Record") -> str:
    return full_limit(job["time_limit_s"])


def _shares(shares: "list[list[Any]]", cpu_ids: "list[str]") -> list[str]:
    """What a job holds node by node; nodes in a row that hold the same share a line."""
    grouped: list[tuple[list[str], list[Any]]] = []
    for (name, _cpus, memory, _cores, gres), cpus in zip(shares, cpu_ids, strict=True):
        rest = [memory, cpus, gres]
        if grouped and grouped[-1][1] == rest:
            grouped[-1][0].append(name)
        else:
            grouped.append(([name], rest))
    lines = []
    for names, (memory, cpus, gres) in grouped:
        expression = names[0]
        if len(names) > 1:
            from understudy.model.hostlist import compress

            expression = compress(names)
        lines.append(f"  Nodes={expression} CPU_IDs={cpus} Mem={memory} GRES={gres}")
    return lines


def _specialised(node: "Record") -> str:
    """What of the node is the system's."""
    parts = [
        f"{name}={node[column]}"
        for name, column in (
            ("CoreSpecCount", "core_spec_count"),
            ("CPUSpecList", "cpu_spec_list"),
            ("MemSpecLimit", "mem_spec_limit_mb"),
        )
        if node[column]
    ]
    return " ".join(parts) + (" " if node["core_spec_count"] else "")


def node_lines(node: "Record", *, details: bool = False) -> list[str]:
    """`show node`."""
    arch = f" Arch={node['arch']}" if node["arch"] else ""
    version = f"Version={node['version']}" if node["version"] else ""
    load = "N/A" if node["cpu_load"] is None else f"{node['cpu_load']:.2f}"
    free = "N/A" if node["free_memory_mb"] is None else node["free_memory_mb"]
    owner = "N/A" if node["owner"] is None else node["owner"]
    binding = f" CpuBind={node['cpu_bind']}" if node["cpu_bind"] else ""
    lines = [
        f"NodeName={node['name']}{arch}{binding} CoresPerSocket={node['cores_per_socket']} ",
        (
            f"CPUAlloc={node['alloc_cpus']} CPUEfctv={node['effective_cpus']} "
            f"CPUTot={node['cpus']} CPULoad={load}"
        ),
        f"AvailableFeatures={or_null(','.join(node['features']))}",
        f"ActiveFeatures={','.join(node['active_features']) if node['features'] else '(null)'}",
        f"Gres={or_null(node['gres'])}",
    ]
    if details and node["gres_drain"]:
        lines.append(f"GresDrain={node['gres_drain']}")
    if details and node["gres_used"]:
        lines.append(f"GresUsed={node['gres_used']}")
    port = "" if node["port"] == 6818 else f"Port={node['port']} "
    lines.append(f"NodeAddr={node['address']} NodeHostName={node['hostname']} {port}{version}")
    if node["os"]:
        lines.append(f"OS={node['os']} ")
    lines.append(
        f"RealMemory={node['memory_mb']} AllocMem={node['alloc_memory_mb']} FreeMem={free} "
        f"Sockets={node['sockets']} Boards={node['boards']}"
    )
    if specialised := _specialised(node):
        lines.append(specialised)
    lines += [
        (
            f"State={node_state_flags(node['state'], node['flags'])} "
            f"ThreadsPerCore={node['threads_per_core']} TmpDisk={node['tmp_disk_mb']}"
            f" Weight={node['weight']} Owner={owner} MCS_label={or_na(node['mcs_label'])}"
        ),
    ]
    if node["next_state"]:
        lines.append(f"NextState={'DOWN' if node['next_state'] == 1 else 'RESUME'}")
    if node["partitions"]:
        lines.append(f"Partitions={','.join(node['partitions'])} ")
    lines += [
        (
            f"BootTime={timestamp(node['boot_time'], 'None')} "
            f"SlurmdStartTime={timestamp(node['slurmd_start_time'], 'None')}"
        ),
        f"LastBusyTime={timestamp(node['last_busy'], 'Unknown')}",
        f"CfgTRES={node['tres_configured']}",
        f"AllocTRES={node['tres_allocated']}",
        "CapWatts=n/a",
        f"CurrentWatts={node['current_watts'] or 0} AveWatts={node['average_watts'] or 0}",
        "ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s",
    ]
    if node["reason"]:
        when = (
            f" [{node['reason_user']}@{timestamp(node['reason_time'])}]"
            if node["reason_time"] is not None
            else ""
        )
        lines.append(f"Reason={node['reason']}{when}")
    for name, column in (("Comment", "comment"), ("Extra", "extra")):
        if node[column]:
            lines.append(f"{name}={node[column]}")
    return lines


# What `node_lines` reads: first what nodes have each for itself, in the order in which it is shown,
# last what is a list.
_OF_ITS_OWN = 3
_LISTS = -3
_NAMES = (
    "name address hostname "
    "arch version cpu_load free_memory_mb owner cpu_bind cores_per_socket alloc_cpus "
    "effective_cpus cpus gres gres_drain gres_used port os memory_mb alloc_memory_mb sockets "
    "boards core_spec_count cpu_spec_list mem_spec_limit_mb state flags threads_per_core "
    "tmp_disk_mb weight mcs_label next_state boot_time slurmd_start_time last_busy "
    "tres_configured tres_allocated current_watts average_watts reason reason_user reason_time "
    "comment extra "
    "features active_features partitions"
)
NODE_COLUMNS = tuple(_NAMES.split())
_PLACE = "\0"  # which no value holds


class NodeTexts:
    """The texts of many nodes, of which most differ by their names alone: the rest is made once for
    all that are alike.
    """

    __slots__ = ("_details", "_forms", "_one_line")

    def __init__(self, *, details: bool, one_line: bool) -> None:
        self._details, self._one_line = details, one_line
        self._forms: dict[object, str] = {}

    def text(self, row: "list[Any]") -> str:
        """As `render` makes it of a row of NODE_COLUMNS."""
        alike = (*row[_OF_ITS_OWN:_LISTS], *map(tuple, row[_LISTS:]))
        form = self._forms.get(alike)
        if form is None:
            form = self._forms[alike] = self._form(row)
        return form % (row[0], row[1], row[2])

    def _form(self, row: "list[Any]") -> str:
        """With a place for each of the node's own."""
        node = dict(zip(NODE_COLUMNS, row, strict=True))
        for column in NODE_COLUMNS[:_OF_ITS_OWN]:
            node[column] = _PLACE
        whole = render(node_lines(node, details=self._details), one_line=self._one_line)
        return whole.replace("%", "%%").replace(_PLACE, "%s")


def partition_lines(partition: "Record") -> list[str]:
    """`show partition`."""
    accounts, qos = _allowed_or_denied("Accounts", partition), _allowed_or_denied("Qos", partition)
    binding = f" CpuBind={partition['cpu_bind']} " if partition["cpu_bind"] else ""
    alternate = f" Alternate={partition['alternate']}" if partition["alternate"] else ""
    default_time = (
        "UNLIMITED"
        if partition["default_time_is_unlimited"]
        else full_limit(partition["default_time_s"], "NONE")
    )
    over = partition["over_time_limit_s"]
    over_time = (
        "UNLIMITED"
        if partition["over_time_limit_is_unlimited"]
        else "NONE"
        if over is None
        else str(over // 60)
    )
    lines = [
        f"PartitionName={partition['name']}",
        f"{_allowed('Groups', partition)} {accounts} {qos}",
        (
            f"AllocNodes={partition['alloc_nodes'] or 'ALL'}{alternate} "
            f"Default={_yes(partition['is_default'])}{binding} QoS={or_na(partition['qos'])}"
        ),
        (
            f"DefaultTime={default_time} DisableRootJobs={_yes(partition['disable_root_jobs'])} "
            f"ExclusiveUser={_yes(partition['exclusive_user'])}"
            f" GraceTime={partition['grace_time_s']} Hidden={_yes(partition['hidden'])}"
        ),
        (
            f"MaxNodes={_unlimited(partition['max_nodes'])} "
            f"MaxTime={full_limit(partition['max_time_s'])} MinNodes={partition['min_nodes']}"
            f" LLN={_yes(partition['least_loaded_nodes'])} "
            f"MaxCPUsPerNode={_unlimited(partition['max_cpus_per_node'])}"
        ),
    ]
    if partition["node_sets"]:
        lines.append(f"NodeSets={partition['node_sets']}")
    lines += [
        f"Nodes={or_null(partition['nodes'])}",
        (
            f"PriorityJobFactor={partition['priority_job_factor']} "
            f"PriorityTier={partition['priority_tier']} "
            f"RootOnly={_yes(partition['root_only'])}"
            f" ReqResv={_yes(partition['requires_reservation'])} "
            f"OverSubscribe={partition['oversubscribe']}"
        ),
        f"OverTimeLimit={over_time} PreemptMode={partition['preempt_mode']}",
        (
            f"State={partition['state']} TotalCPUs={partition['total_cpus']} "
            f"TotalNodes={partition['total_nodes']}"
            f" SelectTypeParameters={partition['select_type_parameters'] or 'NONE'}"
        ),
        f"JobDefaults={or_null(partition['job_defaults'])}",
        f"{_memory('Def', 'default', partition)} {_memory('Max', 'max', partition)}",
        f"TRES={or_null(partition['tres'])}",
    ]
    if partition["tres_billing_weights"]:
        lines.append(f"TRESBillingWeights={partition['tres_billing_weights']}")
    return lines


_TRES_OF_STEPS = (
    ("CpusPerTres", "cpus_per_tres"),
    ("MemPerTres", "memory_per_tres"),
    ("TresBind", "tres_bind"),
    ("TresFreq", "tres_freq"),
    ("TresPerStep", "tres_per_step"),
    ("TresPerNode", "tres_per_node"),
    ("TresPerSocket", "tres_per_socket"),
    ("TresPerTask", "tres_per_task"),
)


def step_lines(step: "Record") -> list[str]:
    """`show step`."""
    batch = step["step"] == "batch"
    limit_s = step["time_limit_s"]
    return [
        (
            "StepId="
            + step_id_text(
                step["job_id"], step["array_job_id"], step["array_task_id"], step["step"]
            )
            + f" UserId={step['user_id']}"
            f" StartTime={timestamp(step['start_time'])} "
            f"TimeLimit={'UNLIMITED' if limit_s is None else full_duration(limit_s)}"
        ),
        (
            f"State={job_state(step['state'], 0)} Partition={step['partition']} "
            f"NodeList={step['nodes']}"
        ),
        (
            f"Nodes={step['node_count']} CPUs={0 if batch else step['cpus']} "
            f"Tasks={step['num_tasks']} Name={step['name']} Network=(null)"
        ),
        f"TRES={'(null)' if batch else step['tres_allocated']}",
        "ResvPorts=(null)",
        "CPUFreqReq=Default"
        + ("" if batch else f" Dist={distribution.shown(step['distribution']) or 'Unknown'}"),
        f"SrunHost:Pid={or_null(step['host'])}:{step['pid']}",
        *(f"{title}={step[name]}" for title, name in _TRES_OF_STEPS if step[name]),
    ]


def reservation_lines(reservation: "Record") -> list[str]:
    """`show reservation`."""
    start, end = reservation["start_time"], reservation["end_time"]
    delay = reservation["max_start_delay_s"]
    return [
        (
            f"ReservationName={reservation['name']} StartTime={timestamp(start)} "
            f"EndTime={_end(end)} Duration={full_duration(end - start)}"
        ),
        (
            f"Nodes={or_null(reservation['nodes'])} NodeCnt={reservation['node_count']} "
            f"CoreCnt={reservation['core_count']}"
            f" Features={or_null(reservation['features'])} "
            f"PartitionName={or_null(reservation['partition'])} Flags={reservation['flags']}"
        ),
        *(f"  NodeName={node} CoreIDs={cores}" for node, cores in reservation["cores"]),
        f"TRES={'cpu=' + str(reservation['cpu_count']) if reservation['cpu_count'] else '(null)'}",
        (
            f"Users={or_null(reservation['users'])} Groups={or_null(reservation['groups'])} "
            f"Accounts={or_null(reservation['accounts'])}"
            f" Licenses={or_null(reservation['licenses'])} "
            f"State={'ACTIVE' if reservation['is_active'] else 'INACTIVE'}"
            f" BurstBuffer={or_null(reservation['burst_buffer'])} Watts=n/a"
        ),
        f"MaxStartDelay={'(null)' if delay is None else full_duration(delay)}",
    ]


def _end(when: int) -> str:
    return "Unknown" if when >= NO_END else timestamp(when)


def _allowed(what: str, partition: "Record") -> str:
    return f"Allow{what}={joined(partition[f'allow_{what.lower()}'])}"


def _allowed_or_denied(what: str, partition: "Record") -> str:
    """Who is denied is shown where nobody in particular is allowed."""
    denied = partition[f"deny_{what.lower()}"]
    return (
        f"Deny{what}={','.join(denied)}"
        if denied and partition[f"allow_{what.lower()}"] is None
        else _allowed(what, partition)
    )


def _unlimited(value: int | None) -> str:
    return "UNLIMITED" if value is None else str(value)


def _memory(prefix: str, column: str, partition: "Record") -> str:
    per_cpu = partition[f"{column}_memory_per_cpu_mb"]
    if per_cpu is not None:
        return f"{prefix}MemPerCPU={per_cpu or 'UNLIMITED'}"
    return f"{prefix}MemPerNode={_unlimited(partition[f'{column}_memory_per_node_mb'])}"
