"""The columns of the tables that `Query` reads: what the controller fills in and the commands
format.

Place: the vocabulary between controller/ and commands/; imports nothing heavy, as commands start
with it. Values are raw, never text made for a reader: times are whole seconds of the cluster's
clock since the epoch, durations seconds, memory and disk MB, states and flags the numbers of
understudy.model.states, node sets host list expressions. Where a column may be None, it says so in
`optional` and what None means. "" stands for a text that nobody gave.

Follows: squeue(1) -o and -O, sinfo(1) -o and -O, scontrol(1) "show job", "show node", "show
partition" of 22.05.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


NO_TASKS: Final = 0xFFFFFFFE  # what a listing shows where it is not known how many


class Column:
    """One column: the type of its values, what they mean, and whether None occurs."""

    __slots__ = ("kind", "meaning", "optional")

    def __init__(self, kind: type, meaning: str, optional: bool = False) -> None:
        self.kind, self.meaning, self.optional = kind, meaning, optional


def _text(meaning: str) -> Column:
    return Column(str, meaning)


def _number(meaning: str) -> Column:
    return Column(int, meaning)


def _maybe(meaning: str) -> Column:
    return Column(int, meaning, optional=True)


def _flag(meaning: str) -> Column:
    return Column(bool, meaning)


JOBS: Final[dict[str, Column]] = {
    # who and what
    "job_id": _number("the job's own id; of a pending array that is not split yet, the array's"),
    "array_job_id": _number("id of the array that it belongs to; 0 if it is in none"),
    "array_task_id": _maybe(
        "its number in the array; None for a job outside arrays and for an array not yet split"
    ),
    "array_task_expression": _text(
        "numbers of the tasks that are not split yet, as '1-4,7' (scontrol's ArrayTaskId "
        "without '%'); '' outside arrays"
    ),
    "array_max_tasks": _number("how many tasks may run at a time ('%4'); 0: no limit"),
    "het_job_id": _number("id of the leader of a heterogeneous job; 0: not one"),
    "het_job_offset": _number("the component's number in a heterogeneous job"),
    "het_job_id_set": _text("ids of all components of a heterogeneous job"),
    "name": _text("job name"),
    "user_id": _number("the owner's number"),
    "user_name": _text(
        "the owner's name, as the controller's host knows it; the number as text if it does not"
    ),
    "group_id": _number("the owner's group"),
    "group_name": _text("its name"),
    "account": _text("account charged"),
    "qos": _text("quality of service"),
    "wckey": _text("workload characterisation key"),
    "association_id": _number("id of the association; 0: none"),
    "cluster": _text("the cluster's name"),
    "mcs_label": _text("MCS label"),
    # state
    "state": _number("base state, a JobState"),
    "flags": _number("JobFlag bits"),
    "reason": _text(
        "why it waits or how it ended, Slurm's word ('None', 'Resources', 'JobHeldUser', "
        "'NonZeroExitCode' ...)"
    ),
    "reason_detail": _text("longer text shown instead of the reason by %R and scontrol if not ''"),
    "exit_code": _number("exit code of the script, 0..255"),
    "exit_signal": _number("signal that ended the script, 0 if none"),
    "derived_exit_code": _number("highest exit code of its steps"),
    "derived_exit_signal": _number("signal that goes with it"),
    "restarts": _number("how often it was requeued"),
    "requeue": _flag("whether it may be requeued"),
    "batch": _flag("submitted with a script"),
    "reboot": _flag("--reboot was given"),
    "state_description": _text("longer text on the state; ''"),
    "failed_node": _text("the node whose failure ended it"),
    # priority and dependencies
    "priority": _number("0: held"),
    "nice": _number("adjustment of the priority by the user"),
    "dependency": _text("what is left of its dependencies, as 'afterok:17(unfulfilled)'"),
    "held_by": _text("'JobHeldAdmin', 'JobHeldUser' or ''"),
    # times
    "submit_time": _number("when it was submitted, or last requeued"),
    "begin_time": _maybe("--begin; None if not given"),
    "eligible_time": _maybe("from when it may run; None while it may not"),
    "accrue_time": _maybe("from when its age counts; None: not yet"),
    "start_time": _maybe(
        "when it started; while pending the scheduler's expectation; None: unknown"
    ),
    "end_time": _maybe(
        "when it ended; while it runs the expected end; None: unknown, or no time limit"
    ),
    "expected_start": _maybe("the scheduler's promise to a pending job; None: no promise"),
    "expected_nodes": _text("nodes that the promise is for"),
    "preempt_time": _maybe("when it was chosen to make room for another; None: never"),
    "preemptable_time": _maybe("from when it may be preempted; None: never"),
    "suspend_time": _maybe("when it was last suspended or resumed; None: never"),
    "pre_suspend_s": _number("run time before the last suspension"),
    "deadline": _maybe("--deadline; None: none"),
    "last_sched_eval": _maybe("when the scheduler last considered it; None: never"),
    "last_scheduler": _text("which loop considered it: 'Main', 'Backfill' or ''"),
    "resize_time": _maybe("when its size was last changed; None: never"),
    "time_limit_s": _maybe("time limit; None: UNLIMITED. See time_limit_is_set"),
    "time_limit_is_set": _flag("False: nobody gave a limit, so the partition's applies"),
    "time_min_s": _maybe("--time-min; None: not given"),
    "run_time_s": _number("time run so far or in all, suspensions left out; 0 while pending"),
    "delay_boot_s": _number("--delay-boot"),
    # where it runs
    "partition": _text(
        "partition where it runs or ran; while pending all candidates, comma separated"
    ),
    "nodes": _text("nodes that it holds or held; '' while pending"),
    "completing_nodes": _text("nodes on which it is not cleaned up yet"),
    "batch_host": _text("node of the script; '' while pending"),
    "node_count": _number("nodes held; while pending the least that it will need"),
    "cpus": _number("CPUs held; while pending the least that it will need"),
    "cpu_ids": Column(list, "per entry of node_shares the numbers of its CPUs, as '0-3,7'"),
    "node_shares": Column(
        list,
        "per node in order [node name, CPUs, memory MB, core numbers as '0-3,7', gres]; "
        "[] while pending; for scontrol -d",
    ),
    "tres_requested": _text("'cpu=4,mem=4000M,node=1,billing=4' as asked for"),
    "tres_allocated": _text("the same as held; '' while pending"),
    "gres_allocated": _text("gres held, as 'gpu:2'; ''"),
    "alloc_node": _text("host from which it was submitted"),
    "alloc_session_id": _number("session id of the submitter"),
    "reservation": _text("reservation"),
    "switches": _maybe("--switches; None: not given"),
    "switches_wait_s": _number("how long to wait for them"),
    "network": _text("--network"),
    # what it asked for
    "min_nodes": _number("least number of nodes"),
    "max_nodes": _number("greatest number of nodes; 0: not given"),
    "min_cpus": _number("least number of CPUs in all"),
    "max_cpus": _number("greatest number of CPUs; 0: not given"),
    "num_tasks": _number("tasks; NO_TASKS: not known"),
    "cpus_per_task": _number("CPUs per task; 1 where nothing was said"),
    "cpus_per_task_is_set": _flag("--cpus-per-task was given"),
    "ntasks_per_node": _number("0: not given"),
    "ntasks_per_board": _number("0: not given"),
    "ntasks_per_socket": _maybe("None: not given"),
    "ntasks_per_core": _maybe("None: not given"),
    "ntasks_per_tres": _maybe("None: not given"),
    "boards_per_node": _maybe("None: not given"),
    "sockets_per_board": _maybe("None: not given"),
    "sockets_per_node": _maybe("None: not given"),
    "cores_per_socket": _maybe("None: not given"),
    "threads_per_core": _maybe("None: not given"),
    "min_cpus_node": _number("least number of CPUs on each node"),
    "min_memory_mb": _maybe(
        "least memory per node, or per CPU if min_memory_per_cpu; 0: none asked; None: "
        "all of each node"
    ),
    "min_memory_per_cpu": _flag("whether min_memory_mb counts per CPU"),
    "min_tmp_disk_mb": _number("least temporary disk on each node"),
    "features": _text("--constraint"),
    "prefer": _text("--prefer"),
    "cluster_features": _text("--cluster-constraint"),
    "batch_features": _text("--batch"),
    "required_nodes": _text("--nodelist"),
    "excluded_nodes": _text("--exclude"),
    "required_nodes_said": _text("as an update named them; '' if none did"),
    "excluded_nodes_said": _text("the same"),
    "exclusive": _flag("holds its nodes alone"),
    "oversubscribe": _text(
        "as scontrol shows it: 'OK', 'NO' (exclusive), 'YES' (--oversubscribe), 'USER', 'MCS'"
    ),
    "overcommit": _flag("--overcommit"),
    "contiguous": _flag("--contiguous"),
    "core_spec": _maybe("--core-spec; None: not given"),
    "thread_spec": _maybe("--thread-spec; None: not given"),
    "licenses": _text("--licenses"),
    "gres": _text("--gres, as 'gres:gpu:2'"),
    "tres_bind": _text("--tres-bind"),
    "tres_freq": _text("--tres-freq"),
    "tres_per_job": _text("--gpus"),
    "tres_per_node": _text("--gres and --gpus-per-node"),
    "tres_per_socket": _text("--gpus-per-socket"),
    "tres_per_task": _text("--gpus-per-task"),
    "cpus_per_tres": _text("--cpus-per-gpu"),
    "memory_per_tres": _text("--mem-per-gpu"),
    "cpu_freq": _text("--cpu-freq"),
    "distribution": _text("--distribution"),
    "burst_buffer": _text("--bb"),
    "burst_buffer_state": _text("what has become of it"),
    "container": _text("--container"),
    "power_flags": _text("--power"),
    "profile": _text("--profile"),
    "no_kill": _flag("--no-kill"),
    "kill_on_invalid_dependency": _maybe("1: yes, 0: no, None: as the site says"),
    "spread_job": _flag("--spread-job"),
    # files and texts
    "command": _text("script and its arguments; '' for --wrap"),
    "cron_spec": _text("the times of an entry of a crontab, as written; '' for any other job"),
    "work_dir": _text("--chdir, or where it was submitted"),
    "std_in": _text("with patterns replaced"),
    "std_out": _text("with patterns replaced"),
    "std_err": _text("with patterns replaced"),
    "raw_std_in": _text("as given, in the working directory"),
    "raw_std_out": _text("as given, in the working directory; '' if nothing was"),
    "raw_std_err": _text("as given, in the working directory; '' if nothing was"),
    "record_flags": Column(
        list,
        "Slurm's names of the flags of its job record, in order: 'JOB_CPUS_SET', "
        "'JOB_WAS_RUNNING' ...",
    ),
    "comment": _text("--comment"),
    "given_empty": _text("names of texts that were given, and are empty: 'comment qos'"),
    "admin_comment": _text("administrator's comment"),
    "system_comment": _text("system's comment"),
    "extra": _text("arbitrary text"),
    "mail_type": _text("--mail-type, as 'END,FAIL'"),
    "mail_user": _text("--mail-user"),
    "submit_line": _text("the submitting command"),
}

NODES: Final[dict[str, Column]] = {
    "index": _number("place in the node table, from 0"),
    "name": _text("NodeName"),
    "address": _text("NodeAddr"),
    "hostname": _text("NodeHostName"),
    "bcast_address": _text("BcastAddr"),
    "port": _number("port of slurmd"),
    "cluster": _text("the cluster's name"),
    # state
    "state": _number("base state as shown, a NodeState: ALLOCATED and MIXED are there already"),
    "flags": _number("NodeFlag bits"),
    "next_state": _number("state after reboot as NodeState; UNKNOWN: none"),
    "reason": _text("why it is down or draining"),
    "reason_user": _text("name of who said so"),
    "reason_user_id": _number("number of who said so"),
    "reason_time": _maybe("when; None: never"),
    "boot_time": _maybe("None: never registered"),
    "slurmd_start_time": _maybe("None: never registered"),
    "last_busy": _maybe("when a job was last there; None: unknown"),
    "resume_after": _maybe("when it returns to service by itself; None: not"),
    "version": _text("version of its slurmd; '' if never registered"),
    "os": _text("its operating system; ''"),
    "arch": _text("its architecture; ''"),
    "owner": Column(str, "user whose jobs alone may run there; None: anybody's", optional=True),
    "mcs_label": _text("MCS label; ''"),
    "is_front_end": _flag("stands for other nodes"),
    # what it has
    "cpus": _number("CPUs (CPUTot)"),
    "effective_cpus": _number("CPUs for jobs (CPUEfctv)"),
    "boards": _number("boards"),
    "sockets": _number("sockets in all"),
    "cores_per_socket": _number("cores per socket"),
    "threads_per_core": _number("threads per core"),
    "memory_mb": _number("RealMemory"),
    "tmp_disk_mb": _number("TmpDisk"),
    "weight": _number("scheduling weight"),
    "features": Column(list, "available features, each a text"),
    "active_features": Column(list, "active features, each a text"),
    "gres": _text("gres, as 'gpu:tesla:4'"),
    "gres_drain": _text("gres that are draining"),
    "core_spec_count": _number("cores for the system"),
    "cpu_spec_list": _text("CPUs for the system"),
    "mem_spec_limit_mb": _number("memory for the system; 0: none set"),
    # what is in use
    "alloc_cpus": _number("CPUs held by jobs"),
    "idle_cpus": _number("CPUs that are free and usable"),
    "other_cpus": _number("CPUs that are neither: of nodes down or draining"),
    "alloc_memory_mb": _number("memory held by jobs"),
    "free_memory_mb": _maybe("free memory as the node says; None: unknown"),
    "gres_used": _text("gres held by jobs, as 'gpu:tesla:1(IDX:0)'"),
    "cpu_load": Column(float, "load of the node; None: unknown", optional=True),
    "tres_configured": _text("'cpu=4,mem=4000M,billing=4'"),
    "tres_allocated": _text("the same in use; '' if nothing is"),
    "current_watts": _maybe("None: not supported"),
    "average_watts": _maybe("None: not supported"),
    "partitions": Column(list, "names of the partitions that it is in, in order"),
    "comment": _text("comment"),
    "extra": _text("arbitrary text"),
    "cpu_bind": _text("how tasks are bound where nothing is said, as 'cores'; ''"),
    "daemon": _text("the node daemon that stands for it; '' if none has registered it"),
}

PARTITIONS: Final[dict[str, Column]] = {
    "name": _text("PartitionName"),
    "cluster": _text("the cluster's name"),
    "is_default": _flag("jobs that name none go there"),
    "state": _text("UP, DOWN, DRAIN or INACTIVE"),
    "nodes": _text("its nodes, as scontrol shows them; '' if it has none"),
    "node_indices": Column(list, "its nodes as runs [first index, count] over the nodes table"),
    "node_sets": _text("names of node sets in its Nodes="),
    "total_nodes": _number("number of nodes"),
    "total_cpus": _number("CPUs of its nodes"),
    "tres": _text("'cpu=16,mem=16000M,node=4,billing=16'"),
    # limits
    "max_time_s": _maybe("None: UNLIMITED"),
    "default_time_s": _maybe("None: NONE, so max_time_s applies. See default_time_is_unlimited"),
    "default_time_is_unlimited": _flag("DefaultTime=UNLIMITED was set"),
    "min_nodes": _number("least number of nodes of a job"),
    "max_nodes": _maybe("greatest number of nodes of a job; None: UNLIMITED"),
    "max_cpus_per_node": _maybe("None: UNLIMITED"),
    "max_cpus_per_socket": _maybe("None: UNLIMITED"),
    "default_memory_per_node_mb": _maybe("None: not set"),
    "default_memory_per_cpu_mb": _maybe("None: not set"),
    "max_memory_per_node_mb": _maybe("None: not set"),
    "max_memory_per_cpu_mb": _maybe("None: not set"),
    "over_time_limit_s": _maybe("None: the cluster's; see over_time_limit_is_unlimited"),
    "over_time_limit_is_unlimited": _flag("OverTimeLimit=UNLIMITED was set"),
    "grace_time_s": _number("time between warning and end at preemption"),
    "suspend_time_s": _maybe("power saving; None: the cluster's"),
    "suspend_timeout_s": _maybe("None: the cluster's"),
    "resume_timeout_s": _maybe("None: the cluster's"),
    "job_defaults": _text("'DefCpuPerGPU=2,DefMemPerGPU=100'; ''"),
    # order and sharing
    "priority_tier": _number("partitions of a higher tier come first"),
    "priority_job_factor": _number("part of the jobs' priority"),
    "oversubscribe": _text("'NO', 'EXCLUSIVE', 'YES:4', 'FORCE:4'"),
    "preempt_mode": _text(
        "'OFF', 'REQUEUE', 'CANCEL', 'SUSPEND,GANG' ...; the cluster's where the partition has none"
    ),
    "exclusive_user": _flag("ExclusiveUser"),
    "exclusive_topo": _flag("ExclusiveTopo"),
    "least_loaded_nodes": _flag("LLN"),
    "select_type_parameters": _text("'NONE', 'CR_CORE', 'CR_SOCKET' ..."),
    "tres_billing_weights": _text("''"),
    "alternate": _text("partition used when this one is down; ''"),
    "power_down_on_idle": _flag("PowerDownOnIdle"),
    # who may use it
    "hidden": _flag("Hidden"),
    "root_only": _flag("RootOnly"),
    "disable_root_jobs": _flag("DisableRootJobs"),
    "requires_reservation": _flag("ReqResv"),
    "allow_groups": Column(list, "None: ALL", optional=True),
    "allow_accounts": Column(list, "None: ALL", optional=True),
    "allow_qos": Column(list, "None: ALL", optional=True),
    "deny_accounts": Column(list, "[]: none; shown instead of allow_accounts if not empty"),
    "deny_qos": Column(list, "[]: none; shown instead of allow_qos if not empty"),
    "cpu_bind": _text("how tasks are bound where nothing is said, as 'cores'; ''"),
    "alloc_nodes": _text("nodes from which jobs may be submitted; 'ALL'"),
    "qos": _text("the partition's QOS; ''"),
}

CONFIG: Final[dict[str, Column]] = {
    "name": _text("as scontrol show config prints it"),
    "value": _text("its value, as printed"),
}

PING: Final[dict[str, Column]] = {
    "host": _text("the controller's host"),
    "role": _text("'primary', 'backup', 'backup2' ..."),
    "responding": _flag("whether it answers"),
}

LICENSES: Final[dict[str, Column]] = {
    "name": _text("the licence's name"),
    "total": _number("how many there are"),
    "used": _number("how many running jobs have"),
    "reserved": _number("how many active reservations keep"),
    "is_remote": _flag("it is the cluster's part of what accounting has for several"),
}

FEDERATION: Final[dict[str, Column]] = {
    "name": _text("the federation's name"),
    "cluster": _text("this cluster's"),
    "host": _text("where its controller is"),
    "port": _number("and at which port"),
    "number": _number("of the cluster within the federation"),
    "state": _text("ACTIVE, DRAIN ..."),
    "features": Column(list, "of the cluster"),
}

RESERVATIONS: Final[dict[str, Column]] = {
    "name": _text("the reservation's name"),
    "start_time": _number("when it begins"),
    "end_time": _number("when it is over"),
    "is_active": _flag("whether it is in force now"),
    "nodes": _text("its nodes; ''"),
    "node_count": _number("how many"),
    "core_count": _number("how many cores are reserved in all"),
    "cpu_count": _number("how many CPUs"),
    "cores": Column(
        list, "[node, its reserved cores as '0-1,3'] each, where nodes are named and not whole"
    ),
    "features": _text("features that its nodes have"),
    "partition": _text("partition from which its nodes come; ''"),
    "flags": _text("as 'MAINT,SPEC_NODES'"),
    "users": _text("who may use it, as 'ada,bob', or may not, '-ada'"),
    "groups": _text("groups that may"),
    "accounts": _text("accounts that may, or may not"),
    "licenses": _text("reserved licences"),
    "burst_buffer": _text("reserved burst buffers"),
    "max_start_delay_s": _maybe("how late jobs may start; None: not said"),
}

BURST_BUFFER: Final[dict[str, Column]] = {
    "name": _text("of the plug-in: lua or datawarp"),
    "default_pool": _text("DefaultPool; ''"),
    "granularity": _number("of the plug-in's own pool, as the next two"),
    "total": _number("its space"),
    "used": _number("what is had of it"),
    "pools": Column(list, "[name, granularity, total, used] each"),
    "flags": _text("as 'DisablePersistent'"),
    "timeouts_s": Column(list, "of stage-in, stage-out, validation and the other stages"),
    "allow_users": _text("AllowUsers"),
    "deny_users": _text("DenyUsers"),
    "get_sys_state": _text("GetSysState"),
    "get_sys_status": _text("GetSysStatus"),
    "buffers": Column(
        list,
        "[name, job's id, that of its array or 0, its task or None, when it was made, pool, size, "
        "state, user's number, user's name] each, the last made first",
    ),
    "users": Column(list, "[user's name, number, what they have] each"),
}

TOPOLOGY: Final[dict[str, Column]] = {
    "name": _text("of the switch"),
    "level": _number("0: nodes are directly below it"),
    "link_speed": _number("as configured"),
    "nodes": _text("below it, as a host list expression"),
    "switches": _text("directly below it, as a host list expression"),
}

PRIORITIES: Final[dict[str, Column]] = {
    "job_id": _number("the waiting job"),
    "partition": _text("one of those that it names"),
    "user_name": _text("its owner"),
    "user_id": _number("its owner"),
    "priority": _number("its priority there"),
    "is_set": _flag("an administrator has set it, and it has no parts"),
    "site": _number("what the site adds"),
    "nice": _number("what is subtracted"),
    **{
        f"{kind}_{name}": Column(float, what)
        for kind, what in (
            ("weighted", "what the factor contributes"),
            ("normal", "the factor, between 0 and 1"),
        )
        for name in ("age", "association", "fair_share", "job_size", "partition", "qos")
    },
    "weighted_tres": Column(list, "[resource, what it contributes]"),
    "normal_tres": Column(list, "[resource, the factor]"),
}

PRIORITY_WEIGHTS: Final[dict[str, Column]] = {
    "name": _text("a factor as in the columns of priorities, or a resource"),
    "weight": Column(float, "its weight"),
}

SHARES: Final[dict[str, Column]] = {
    "association_id": _number("its number"),
    "parent_id": _number("that of the association above it, 0 for the root"),
    "cluster": _text("the cluster's name"),
    "account": _text("the account"),
    "user": _text("'' for the account's own"),
    "partition": _text("'' for all"),
    "shares": Column(int, "None: its parent's", optional=True),
    "normal_shares": Column(float, "its part of the shares"),
    "raw_usage": Column(float, "its use with that of all below it, decayed"),
    "normal_usage": Column(
        float,
        "its part of the cluster's; None: no period has ended since it was made",
        optional=True,
    ),
    "effective_usage": Column(float, "its part as it counts"),
    "fair_share": Column(float, "its factor; 0 for accounts where users are ranked"),
    "level_fair_share": Column(float, "shares over use among its siblings; infinite without use"),
    "is_tree": _flag("users are ranked by Fair Tree"),
    "depth": _number("how far below the root"),
    "grp_tres_mins": Column(list, "[resource, limit]"),
    "grp_tres_raw": Column(list, "[resource, minutes used]"),
    "tres_run_mins": Column(list, "[resource, minutes that running jobs may still use]"),
}

STEPS: Final[dict[str, Column]] = {
    "job_id": _number("the job's own id"),
    "array_job_id": _number("id of the array that the job belongs to; 0 if it is in none"),
    "array_task_id": _maybe("the job's number in the array; None outside arrays"),
    "step": _text("the step's number, or 'batch'"),
    "name": _text("its name"),
    "user_id": _number("the owner's number"),
    "user_name": _text("the owner's name"),
    "partition": _text("the job's partition"),
    "state": _number("base state"),
    "start_time": _number("when it began"),
    "run_time_s": _number("for how long it has run"),
    "time_limit_s": _maybe("its own limit; None: none but the job's"),
    "nodes": _text("its nodes"),
    "node_count": _number("how many"),
    "cpus": _number("CPUs of its nodes that it has"),
    "num_tasks": _number("tasks"),
    "memory_mb": _number("memory that it has, MB; 0: not limited"),
    "tres_allocated": _text("what it has, as 'cpu=1,node=1'"),
    "distribution": _text(
        "how its tasks are dealt out: 'block', 'cyclic' ...; '' for the batch step"
    ),
    "host": _text("where its srun runs"),
    "pid": _number("the pid of its srun"),
    "cluster": _text("the cluster's name"),
    "cpus_per_tres": _text("--cpus-per-gpu"),
    "memory_per_tres": _text("--mem-per-gpu"),
    "tres_bind": _text("--gpu-bind, or what follows from other options"),
    "tres_freq": _text("--gpu-freq"),
    "tres_per_step": _text("--gpus, and CPUs, where generic resources were asked for"),
    "tres_per_node": _text("--gres, or the job's"),
    "tres_per_socket": _text("--gpus-per-socket"),
    "tres_per_task": _text("--gpus-per-task"),
}

TRIGGERS: Final[dict[str, Column]] = {
    "trigger_id": _number("its number"),
    "resource": _text("job, node, slurmctld, slurmdbd, database or other"),
    "resource_id": _text("the job's id, the nodes, or '*'"),
    "events": Column(list, "names of the events that it waits for"),
    "offset_s": _number("seconds after the event"),
    "user_id": _number("who has set it, and as whom the program runs"),
    "user_name": _text("their name"),
    "is_permanent": _flag("stays when it has fired"),
    "program": _text("what runs, with arguments"),
}

CACHED_USERS: Final[dict[str, Column]] = {
    "user_name": _text("the name"),
    "user_id": _maybe("the number; None: this host does not know the name"),
    "default_account": _text("the account that is charged where none is named"),
    "default_wckey": _text("the key of jobs that name none"),
    "admin_level": _text("None, Operator or Administrator"),
    "is_new": _flag("accounting has told of it since the controller started"),
}

_LIMITS_OF_GROUPS: Final = {
    "grp_jobs": Column(list, "[limit or None, running jobs]"),
    "grp_jobs_accrue": Column(list, "[limit or None, jobs whose age counts]"),
    "grp_submit_jobs": Column(list, "[limit or None, submitted jobs]"),
    "grp_wall": Column(list, "[limit or None, minutes used]"),
    "grp_tres": Column(list, "[resource, limit or None, held] each"),
    "grp_tres_mins": Column(list, "[resource, limit or None, minutes used] each"),
    "grp_tres_run_mins": Column(
        list, "[resource, limit or None, minutes that running jobs may still use] each"
    ),
    "max_wall": _maybe("minutes of a job; None: no limit"),
    "max_tres_per_job": Column(list, "[resource, limit]"),
    "max_tres_per_node": Column(list, "[resource, limit]"),
    "max_tres_mins_per_job": Column(list, "[resource, limit]"),
    "min_prio_threshold": _maybe("the priority below which no nodes are kept for a job; None: any"),
    "priority": _number("that it gives"),
}

CACHED_ASSOCIATIONS: Final[dict[str, Column]] = {
    "association_id": _number("its number"),
    "cluster": _text("the cluster's name"),
    "account": _text("the account"),
    "user_name": _text("'' for the account's own"),
    "user_id": _maybe("the user's number; None: an account, or nobody whom this host knows"),
    "partition": _text("'' for all"),
    "is_default": _flag("of the user's default account"),
    "parent_account": _text("of an account: the one above; ''"),
    "parent_id": _number("the association above it; 0"),
    "place": _number(
        "where its branch of the tree begins, all branches counted in order, last made first"
    ),
    "shares": Column(int, "None: its parent's", optional=True),
    "normal_shares": Column(float, "its part of the shares"),
    "level_shares": _number("the shares of all its siblings"),
    "fair_share": Column(float, "its factor"),
    "raw_usage": Column(float, "its use with that of all below it, decayed"),
    "normal_usage": Column(float, "its part of the cluster's"),
    "effective_usage": Column(float, "its part as it counts"),
    **_LIMITS_OF_GROUPS,
    "max_jobs": Column(list, "[limit or None, running jobs]"),
    "max_jobs_accrue": Column(list, "[limit or None, jobs whose age counts]"),
    "max_submit_jobs": Column(list, "[limit or None, submitted jobs]"),
}

CACHED_QOS: Final[dict[str, Column]] = {
    "qos_id": _number("its number"),
    "name": _text("its name"),
    "raw_usage": Column(float, "its use, decayed"),
    **_LIMITS_OF_GROUPS,
    "min_tres_per_job": Column(list, "[resource, limit]"),
    "preempt_mode": _text("as 'REQUEUE'; 'OFF': the cluster's"),
    **{
        f"by_{who}": Column(
            list,
            "[name, [limit, running jobs], [limit, those whose age counts], [limit, "
            "submitted], [resource, limit, held]] each",
        )
        for who in ("account", "user")
    },
}

TABLES: Final[dict[str, dict[str, Column]]] = {
    "jobs": JOBS,
    "steps": STEPS,
    "nodes": NODES,
    "partitions": PARTITIONS,
    "licenses": LICENSES,
    "federation": FEDERATION,
    "reservations": RESERVATIONS,
    "topology": TOPOLOGY,
    "burst_buffer": BURST_BUFFER,
    "config": CONFIG,
    "ping": PING,
    "priorities": PRIORITIES,
    "priority_weights": PRIORITY_WEIGHTS,
    "shares": SHARES,
    "triggers": TRIGGERS,
    "cached_users": CACHED_USERS,
    "cached_associations": CACHED_ASSOCIATIONS,
    "cached_qos": CACHED_QOS,
}


def columns(table: str) -> list[str]:
    """The names of all columns of a table, in their order.

    Raises:
        KeyError: there is no such table.
    """
    return list(TABLES[table])


def accepts(table: str, column: str, value: object) -> bool:
    """Whether `value` is one that the column may hold; an int does for a float, a bool does not for
    an int.
    """
    known = TABLES[table][column]
    kind = known.kind
    if value is None:
        return known.optional
    if kind is float:
        return type(value) in (float, int)
    return type(value) is kind
