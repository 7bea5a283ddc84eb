"""Tags and fields of all messages: made by make_wire_table.py from messages.py, not to be edited.

WIRE[name] is (tag, field names, defaults of the last fields): on the wire a message is `[tag, field, field, ...]`.
"""

# fmt: off
# ruff: noqa: E501
WIRE: dict[str, tuple[int, tuple[str, ...], tuple[object, ...]]] = {
    "Ok": (1, (), ()),
    "Failure": (2, ("code", "text"), ()),
    "Rows": (3, ("rows", "now", "last_update"), (0.0,)),
    "Emulation": (10, ("run_s", "exit_code", "signal", "task_run_s"), (0, 0, {})),
    "JobSpec": (11, ("name", "partition", "account", "qos", "wckey", "reservation", "comment", "time_limit_s", "time_min_s", "begin_time", "deadline", "min_nodes", "max_nodes", "num_tasks", "cpus_per_task", "ntasks_per_node", "ntasks_per_socket", "ntasks_per_core", "threads_per_core", "min_cpus_node", "mem_per_node_mb", "mem_per_cpu_mb", "tmp_disk_mb", "features", "required_nodes", "excluded_nodes", "contiguous", "exclusive", "oversubscribe", "overcommit", "licenses", "gres", "dependency", "array", "nice", "priority", "hold", "requeue", "no_kill", "kill_signal", "kill_signal_before_s", "kill_signal_batch", "work_dir", "std_in", "std_out", "std_err", "open_mode", "mail_type", "mail_user", "environment", "arguments", "command", "distribution", "submit_line", "extra"), ("", "", "", "", "", "", "", None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, "", "", "", False, False, False, False, "", "", "", "", 0, None, False, None, False, None, 60, False, "", "", "", "", "", "", "", [], [], "", "", "", {})),
    "SubmitJob": (12, ("spec", "script", "emulation", "user_id", "group_id", "test_only"), (None, -1, -1, False)),
    "Submitted": (13, ("job_id", "note"), ("",)),
    "Query": (14, ("table", "columns", "where", "all_partitions"), ({}, True)),
    "CancelJobs": (15, ("job_ids", "signal", "where", "batch_only", "full", "hurry"), (None, {}, False, False, False)),
    "JobResults": (16, ("results",), ()),
    "UpdateJobs": (17, ("job_ids", "changes"), ()),
    "ControlJobs": (18, ("action", "job_ids", "where"), ({},)),
    "UpdateNodes": (19, ("nodes", "changes"), ()),
    "UpdatePartition": (20, ("action", "name", "changes"), ()),
    "Reconfigure": (21, (), ()),
    "Shutdown": (22, (), ()),
    "Ping": (23, (), ()),
    "GetScript": (24, ("job_id",), ()),
    "Script": (25, ("text",), ()),
    "AwaitEmpty": (26, (), ()),
    "BreakAtStart": (27, ("job_id",), ()),
    "RegisterNodes": (40, ("daemon", "address", "nodes", "boot_time", "slurmd_start_time", "running_jobs"), ([],)),
    "Registered": (41, ("unknown_jobs",), ([],)),
    "BatchComplete": (42, ("job_id", "restart", "exit_code", "signal", "timed_out", "node", "epilog_nodes"), (False, "", "")),
    "EpilogComplete": (43, ("job_id", "restart", "nodes"), ()),
    "LaunchBatch": (60, ("job_id", "restart", "nodes", "start_time", "credential", "user_id", "group_id", "emulation", "script", "spec", "environment", "exact_limit_s"), (None, "", None, [], None)),
    "TerminateJob": (61, ("job_id", "restart", "nodes"), ("",)),
    "SignalJob": (62, ("job_id", "restart", "signal", "batch_only"), (False,)),
    "Forward": (63, ("inner", "nodes", "width", "timeout_s", "every_hop"), (False,)),
    "NodeReply": (64, ("nodes", "code", "text"), ()),
    "NodeReplies": (65, ("replies",), ()),
    "ClockControl": (80, ("action", "value", "text"), (0.0, "")),
    "ClockStatus": (81, ("mode", "now", "rate", "state", "reason", "participants", "windows"), ("", [], 0)),
}
