"""scontrol: what it prints of records, and what it asks of the controller.

Covers: commands/scontrol/daemons, commands/scontrol/records, commands/scontrol/reservation,
commands/scontrol/resize_scripts, commands/scontrol/session, commands/scontrol/show,
commands/scontrol/update, commands/scontrol/update_job, commands/scontrol/words,
commands/shared/task_counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fake_controller import NOW, FakeClient, Outcome, record, run_command

from understudy.commands.scontrol.scontrol import scontrol
from understudy.commands.shared.client import RefusedError
from understudy.model.records import NO_TASKS

if TYPE_CHECKING:
    from pathlib import Path

RUNNING = record(
    "jobs", job_id=7301, name="full", user_name="root", group_name="root", priority=4294901760,
    state=1, reason="None", requeue=True, batch=True,
    run_time_s=5, time_limit_s=600, time_limit_is_set=True, submit_time=2064646800,
    eligible_time=2064646800, accrue_time=2064646800,
    start_time=2064646801, end_time=2064647401, last_sched_eval=2064646801, last_scheduler="Main",
    partition="debug", alloc_node="host",
    alloc_session_id=77, nodes="n[1-2]", batch_host="n1", node_count=2, cpus=3, num_tasks=3,
    cpus_per_task=1, tres_allocated="cpu=3,node=2,billing=3",
    min_cpus_node=1, min_memory_mb=100, features="fast", oversubscribe="OK", command="/w/job.sh",
    work_dir="/w", comment="some text",
    std_err="/w/e.txt", std_in="/dev/zero", std_out="/w/o.txt", mail_user="me@example.com",
    mail_type="END,FAIL",
    node_shares=[["n1", 2, 0, "0-1", ""], ["n2", 1, 0, "0", ""]], cpu_ids=["0-1", "0"],
)  # fmt: skip
ARRAY = {
    **RUNNING, "job_id": 7303, "array_job_id": 7303, "array_task_expression": "1-4",
    "array_max_tasks": 1, "state": 0, "reason": "Resources",
    "nodes": "",
    "batch_host": "", "node_count": 4, "max_nodes": 4, "start_time": None, "end_time": None,
    "mail_user": "", "mail_type": "", "comment": "",
}  # fmt: skip
NODE = record(
    "nodes", name="n1", index=0, arch="x86_64", cores_per_socket=1, alloc_cpus=2, effective_cpus=4,
    cpus=4, cpu_load=0.35, address="127.0.0.1",
    hostname="n1", port=7001, version="22.05.8", memory_mb=4000, alloc_memory_mb=100,
    free_memory_mb=900, sockets=4, boards=1, state=5, flags=0x200,
    threads_per_core=1, weight=1, partitions=["debug", "batch"],
    tres_configured="cpu=4,mem=4000M,billing=4", tres_allocated="cpu=2,mem=100M",
    reason="bad disk", reason_user="root", reason_time=2064646800, features=["fast"],
    active_features=["fast"],
)  # fmt: skip
PARTITION = record(
    "partitions", name="debug", is_default=True, state="UP", nodes="n[1-4]", total_nodes=4,
    total_cpus=16, tres="cpu=16,mem=16000M,node=4,billing=16",
    max_time_s=3600, default_time_s=300, max_nodes=3, default_memory_per_cpu_mb=100,
    priority_tier=1, priority_job_factor=1, oversubscribe="NO",
    preempt_mode="OFF", alloc_nodes="ALL", select_type_parameters="NONE",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("SLURM_TIME_FORMAT", raising=False)
    time.tzset()


@pytest.fixture
def client() -> FakeClient:
    return FakeClient(
        jobs=[RUNNING, ARRAY],
        nodes=[NODE, record("nodes", name="n2", hostname="n2")],
        partitions=[PARTITION],
        config=[
            record("config", name="KillWait", value="30 sec"),
            record("config", name="SLURM_CONF", value="/w/slurm.conf"),
        ],
        ping=[record("ping", host="host", role="primary", responding=True)],
    )


def ask(client: FakeClient, line: str, stdin: str = "") -> Outcome:
    return run_command(scontrol, *line.split(), client=client, stdin=stdin)


def test_a_job_is_shown_line_by_line(client: FakeClient) -> None:
    assert ask(client, "show job 7301").out == (
        "JobId=7301 JobName=full\n"
        "   UserId=root(0) GroupId=root(0) MCS_label=N/A\n"
        "   Priority=4294901760 Nice=0 Account=(null) QOS=(null)\n"
        "   JobState=RUNNING Reason=None Dependency=(null)\n"
        "   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0\n"
        "   RunTime=00:00:05 TimeLimit=00:10:00 TimeMin=N/A\n"
        "   SubmitTime=2035-06-05T09:00:00 EligibleTime=2035-06-05T09:00:00\n"
        "   AccrueTime=2035-06-05T09:00:00\n"
        "   StartTime=2035-06-05T09:00:01 EndTime=2035-06-05T09:10:01 Deadline=N/A\n"
        "   SuspendTime=None SecsPreSuspend=0 LastSchedEval=2035-06-05T09:00:01 Scheduler=Main\n"
        "   Partition=debug AllocNode:Sid=host:77\n"
        "   ReqNodeList=(null) ExcNodeList=(null)\n"
        "   NodeList=n[1-2]\n"
        "   BatchHost=n1\n"
        "   NumNodes=2 NumCPUs=3 NumTasks=3 CPUs/Task=1 ReqB:S:C:T=0:0:*:*\n"
        "   TRES=cpu=3,node=2,billing=3\n"
        "   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*\n"
        "   MinCPUsNode=1 MinMemoryNode=100M MinTmpDiskNode=0\n"
        "   Features=fast DelayBoot=00:00:00\n"
        "   OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)\n"
        "   Command=/w/job.sh\n"
        "   WorkDir=/w\n"
        "   Comment=some text \n"
        "   StdErr=/w/e.txt\n"
        "   StdIn=/dev/zero\n"
        "   StdOut=/w/o.txt\n"
        "   Power=\n"
        "   MailUser=me@example.com MailType=END,FAIL\n"
        "   \n"
        "\n"
    )


def test_details_show_what_is_held_on_each_node(client: FakeClient) -> None:
    lines = ask(client, "-d show job 7301").lines
    assert "   DerivedExitCode=0:0" in lines
    first = lines.index("   JOB_GRES=(null)")
    assert lines[first + 1 : first + 3] == [
        "     Nodes=n1 CPU_IDs=0-1 Mem=0 GRES=",
        "     Nodes=n2 CPU_IDs=0 Mem=0 GRES=",
    ]


def test_one_line_keeps_the_blanks_between_fields(client: FakeClient) -> None:
    out = ask(client, "-o show job 7301").out
    assert out.count("\n") == 1
    assert " Comment=some text  StdErr=/w/e.txt " in out
    assert out.endswith(" Power= MailUser=me@example.com MailType=END,FAIL \n")
    assert ask(client, "show -o job 7301").out == out


def test_arrays_and_their_tasks_are_found(client: FakeClient) -> None:
    lines = ask(client, "show job 7303").lines
    assert (
        lines[0] == "JobId=7303 ArrayJobId=7303 ArrayTaskId=1-4%1 ArrayTaskThrottle=1 JobName=full"
    )
    assert "   NumNodes=4-4 NumCPUs=3 NumTasks=3 CPUs/Task=1 ReqB:S:C:T=0:0:*:*" in lines
    assert (
        ask(client, "show job 7303_2").lines[0]
        == "JobId=7303 ArrayJobId=7303 ArrayTaskId=2 ArrayTaskThrottle=1 "
        "JobName=full"
    )
    result = ask(client, "show job 7303_9")
    assert (result.code, result.out) == (1, "Job 7303_9 not found\n")


@pytest.mark.parametrize(
    ("line", "out", "err"),
    [
        ("show job 99999", "", "slurm_load_jobs error: Invalid job id specified\n"),
        ("show jobid=99999", "", "slurm_load_jobs error: Invalid job id specified\n"),
        ("-Q show job 99999", "", ""),
        ("show job abc", "", "scontrol_print_job error: Invalid job id specified\n"),
        ("show partition zzz", "Partition zzz not found\n", ""),
        ("show node zzz", "Node zzz not found\n", ""),
        ("show node n1 n2", "", "too many arguments for keyword:show\n"),
        ("-Q show node zzz", "", ""),
        ("sh job", "", "invalid keyword: sh\n"),
        ("ping x", "", "too many arguments for keyword:ping\n"),
        ("verb x", "", "too many arguments for verb keyword\n"),
        ("hold", "", "too few arguments for keyword:hold\n"),
        ("top 1 2", "", "too many arguments for keyword:top\n"),
        ("setdebug weird", "", "invalid debug level: weird\n"),
        ("setdebugflags gres", "", "invalid debug flag: gres\nUsage: setdebugflags [+|-]NAME\n"),
        ("setdebugflags +no", "",
        "scontrol: error: Invalid DebugFlag: no\ninvalid debug flag: +no\n"),
        ("schedloglevel foo", "", "invalid schedlog level: foo\n"),
        ("takeover 1", "", "takeover: invalid backup controller index (1)\n"),
        ("wait_job 9", "", "scontrol: Problem running job 9\n"),
        ("notify 9", "", "too few arguments for keyword:notify\n"),
        ("errnumstr", "", "one arguments required for keyword:errnumstr\n"),
        ("errnumstr abc", "", "numeric arguments required for keyword:errnumstr\n"),
        ("reboot", "", "Missing node list. Specify ALL|<NodeList>\n"),
        ("shutdown foo", "", "invalid shutdown argument:foo\n"),
        ("write foo", "", "invalid write argument:foo\n"),
        ("create nodename=x", "",
        ("scontrol: error: Only State=FUTURE and State=CLOUD allowed for nodes created by "
         "scontrol\n"
         "Error creating the node(s): Invalid node state specified\n")),
        ("delete foo=1", "", "Invalid deletion entity: foo=1\n"),
        ("update stepid=abc timelimit=1", "",
        "Invalid StepID parameter: stepid=abc\nRequest aborted\n"),
        ("update partition=p lln=maybe", "", ("scontrol: error: Invalid input: lln=maybe\n"
         "scontrol: error: Acceptable LLN values are YES and NO\nslurm_update error: No error\n")),
        ("update partition=p gracetime=x", "",
        "scontrol: error: Invalid GraceTime value: x\nslurm_update error: No error\n"),
        ("update partition=p gracetime=unlimited", "",
        "scontrol: error: Invalid GraceTime value: unlimited\nslurm_update error: No error\n"),
        ("update partition=p overtimelimit=99999", "",
        "scontrol: error: Invalid OverTimeLimit value: 99999\nslurm_update error: No error\n"),
        ("update node n1 weight=3", "",
        "scontrol: error: Invalid input: node  Request aborted\nslurm_update error: No error\n"),
        ("show", "", "too few arguments for keyword:show\n"),
        ("show nosuch", "", "invalid entity:nosuch for keyword:show \n"),
        ("nosuch", "", "invalid keyword: nosuch\n"),
        ("update", "", "too few arguments for update keyword\n"),
        ("update nosuchthing=1", "", ('No valid entity in update command\n'
         'Input line must include "NodeName", "PartitionName", "Reservation", "JobId", or '
         '"SlurmctldDebug"\n')),
        ("update jobid=7301", "", "No changes specified\n"),
        ("update jobid=7301 userid=1", "", "No changes specified\n"),
        ("update jobid=7301 nosuch=1", "",
        "Update of this parameter is not supported: nosuch=1\nRequest aborted\n"),
        ("update jobid=7301 nosuch 1", "",
        "Update of this parameter is not supported: 1\nRequest aborted\n"),
        ("update jobid=7301 timelimit+ 1", "",
        "Update of this parameter is not supported: 1\nRequest aborted\n"),
        ("update jobid=7301 timelimit", "", "Invalid input: timelimit\nRequest aborted\n"),
        ("update jobid=7301 nice 5", "", "Invalid input: 5\nRequest aborted\n"),
        ("create reservation r1 starttime=now", "",
        ("scontrol: error: Misformatted parameter 'r1', most options have a parameter after '='."
         "  No reservation created.\n")),
        ("update jobid=7301 timelimit=abc", "", "scontrol: error: Invalid TimeLimit value\n"),
        ("update nodename=n7 state=drain", "",
        "You must specify a reason when DOWNING or DRAINING a node. Request denied\n"),
        ("update nodename=n5 state=nosuch", "", ("Invalid input: state=nosuch\nRequest aborted\n"
         "Valid states are: NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN\n"
         "Not all states are valid given a node's prior state\n")),
        ("update partitionname=new state=weird", "",
        ("scontrol: error: Invalid input: state=weird\n"
         "scontrol: error: Acceptable State values are UP, DOWN, DRAIN and INACTIVE\n"
         "slurm_update error: No error\n")),
        ("update partitionname=new maxtime=abc", "",
        "scontrol: error: Invalid input maxtime=abc\nslurm_update error: No error\n"),
        ("update partitionname=new nosuchkey=1", "",
        ("scontrol: error: Update of this parameter is not supported: nosuchkey=1\n\n"
         "scontrol: error: Request aborted\nslurm_update error: No error\n")),
        ("create partition", "", "scontrol: error: Invalid input: partition  Request aborted\n"),
        ("delete partition", "",
        "scontrol: error: Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'\n"),
    ],
)  # fmt: skip
def test_mistakes_are_answered_in_slurms_words(
    client: FakeClient, line: str, out: str, err: str
) -> None:
    result = ask(client, line)
    assert (result.code, result.out, result.err, client.asked) == (1, out, err, [])


def test_a_node_is_shown_line_by_line(client: FakeClient) -> None:
    assert ask(client, "show node n1").lines == [
        "NodeName=n1 Arch=x86_64 CoresPerSocket=1 ",
        "   CPUAlloc=2 CPUEfctv=4 CPUTot=4 CPULoad=0.35",
        "   AvailableFeatures=fast",
        "   ActiveFeatures=fast",
        "   Gres=(null)",
        "   NodeAddr=127.0.0.1 NodeHostName=n1 Port=7001 Version=22.05.8",
        "   RealMemory=4000 AllocMem=100 FreeMem=900 Sockets=4 Boards=1",
        "   State=MIXED+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A",
        "   Partitions=debug,batch ",
        "   BootTime=None SlurmdStartTime=None",
        "   LastBusyTime=Unknown",
        "   CfgTRES=cpu=4,mem=4000M,billing=4",
        "   AllocTRES=cpu=2,mem=100M",
        "   CapWatts=n/a",
        "   CurrentWatts=0 AveWatts=0",
        "   ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s",
        "   Reason=bad disk [root@2035-06-05T09:00:00]",
        "",
    ]


def test_nodes_are_named_by_expressions(client: FakeClient) -> None:
    assert [line for line in ask(client, "-o show nodes n[2,1]").lines if line] == [
        line for name in ("n2", "n1") for line in ask(client, f"-o show node {name}").lines
    ]


def test_a_partition_is_shown_line_by_line(client: FakeClient) -> None:
    assert ask(client, "show partition debug").lines == [
        "PartitionName=debug",
        "   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL",
        "   AllocNodes=ALL Default=YES QoS=N/A",
        "   DefaultTime=00:05:00 DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO",
        "   MaxNodes=3 MaxTime=01:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED",
        "   Nodes=n[1-4]",
        "   PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO",
        "   OverTimeLimit=NONE PreemptMode=OFF",
        "   State=UP TotalCPUs=16 TotalNodes=4 SelectTypeParameters=NONE",
        "   JobDefaults=(null)",
        "   DefMemPerCPU=100 MaxMemPerNode=UNLIMITED",
        "   TRES=cpu=16,mem=16000M,node=4,billing=16",
        "",
    ]


def test_the_configuration_ends_with_the_controllers_state(client: FakeClient) -> None:
    assert ask(client, "show config").lines == [
        f"Configuration data as of {'2027-01-15T08:00:00' if NOW == 1_800_000_000 else ''}",
        "KillWait                = 30 sec",
        "SLURM_CONF              = /w/slurm.conf",
        "",
        "Slurmctld(primary) at host is UP",
    ]


@pytest.mark.parametrize(
    ("line", "message", "fields"),
    [
        (
            "update jobid=7301 name=x TimeLimit+=10",
            "UpdateJobs",
            {"job_ids": ["7301"], "changes": {"jobname": "x", "timelimit+": "10"}},
        ),
        (
            "update job 7301 timelimit=-5",
            "UpdateJobs",
            {"job_ids": ["7301"], "changes": {"timelimit": "-5"}},
        ),
        (
            "update JobId 7301 Priority 3 nice TimeLimit 7 Comment a=b",
            "UpdateJobs",
            {
                "job_ids": ["7301"],
                "changes": {"priority": "3", "nice": "100", "timelimit": "7", "comment": "a=b"},
            },
        ),
        (
            "update TimeLimit=7 JobId 7301",
            "UpdateJobs",
            {"job_ids": ["7301"], "changes": {"timelimit": "7"}},
        ),
        (
            "update job 7301 prio=5",
            "UpdateJobs",
            {"job_ids": ["7301"], "changes": {"priority": "5"}},
        ),
        (
            "update jobname=full nice=5",
            "UpdateJobs",
            {"job_ids": ["7301", "7303"], "changes": {"nice": "5"}},
        ),
        (
            "update nodename=n[5-9] state=drain reason=x",
            "UpdateNodes",
            {"nodes": "n[5-9]", "changes": {"state": "DRAIN", "reason": "x"}},
        ),
        (
            "update partitionname=p maxtime=5",
            "UpdatePartition",
            {"action": "update", "name": "p", "changes": {"maxtime": "5"}},
        ),
        (
            "create partition=new nodes=n1",
            "UpdatePartition",
            {"action": "create", "name": "new", "changes": {"nodes": "n1"}},
        ),
        (
            "delete partition new",
            "UpdatePartition",
            {"action": "delete", "name": "new", "changes": {}},
        ),
        (
            "hold 1,2,3",
            "ControlJobs",
            {"action": "hold", "job_ids": ["1", "2", "3"], "where": {}, "options": []},
        ),
        (
            "release name=x",
            "ControlJobs",
            {"action": "release", "job_ids": [], "where": {"name": ["x"]}, "options": []},
        ),
        (
            "requeuehold 5",
            "ControlJobs",
            {"action": "requeuehold", "job_ids": ["5"], "where": {}, "options": []},
        ),
        (
            "requeuehold incomplete State=SpecialExit 5",
            "ControlJobs",
            {
                "action": "requeuehold",
                "job_ids": ["5"],
                "where": {},
                "options": ["incomplete", "special_exit"],
            },
        ),
        (
            "reboot n[1-2]",
            "RebootNodes",
            {"nodes": "n[1-2]", "asap": False, "next_state": "", "reason": ""},
        ),
        (
            "reboot asap nextstate=resume reason=bios ALL",
            "RebootNodes",
            {"nodes": "ALL", "asap": True, "next_state": "RESUME", "reason": "bios"},
        ),
        ("cancel_reboot n1", "UpdateNodes", {"nodes": "n1", "changes": {"state": "CANCEL_REBOOT"}}),
        ("reconfig", "Reconfigure", {}),
        ("setdebug 5", "SetConfiguration", {"changes": {"SlurmctldDebug": "debug"}}),
        (
            "setdebugflags -gres,steps",
            "SetConfiguration",
            {"changes": {"DebugFlags": "-gres,steps"}},
        ),
        ("schedloglevel enable", "SetConfiguration", {"changes": {"SlurmSchedLogLevel": "1"}}),
        ("fsdampeningfactor 3", "SetConfiguration", {"changes": {"FairShareDampeningFactor": "3"}}),
        ("notify 7301 hello world", "NotifyJob", {"job_id": "7301", "text": "hello world"}),
        (
            "update stepid=7301.0 time=5",
            "UpdateStep",
            {"job_id": "7301", "step": "0", "time_limit": "5"},
        ),
        ("update slurmctlddebug=3", "SetConfiguration", {"changes": {"SlurmctldDebug": "info"}}),
        ("shutdown", "Shutdown", {"alone": False}),
        ("shutdown controller", "Shutdown", {"alone": True}),
    ],
)
def test_changes_are_asked_of_the_controller(
    client: FakeClient, line: str, message: str, fields: dict[str, object]
) -> None:
    client.answers |= {"UpdateJobs": [[]], "ControlJobs": [[]]}
    client.tables["config"].append({"name": "RebootProgram", "value": "/sbin/reboot"})
    result = ask(client, line)
    assert (result.code, result.out, result.err) == (0, "", "")
    assert client.asked == [(message, fields)]


@pytest.mark.parametrize(
    ("line", "message", "error"),
    [
        ("update nodename=n77 weight=1", "UpdateNodes", "slurm_update error: refused\n"),
        ("update partitionname=x state=up", "UpdatePartition", "slurm_update error: refused\n"),
        ("create partition=x", "UpdatePartition", "Error creating the partition: refused\n"),
        ("delete partition=x", "UpdatePartition", "delete_partition partition=x: refused\n"),
        ("reconfigure", "Reconfigure", "slurm_reconfigure error: refused\n"),
    ],
)
def test_refusals_are_passed_on(client: FakeClient, line: str, message: str, error: str) -> None:
    client.answers[message] = RefusedError(1, "refused")
    result = ask(client, line)
    assert (result.code, result.err) == (1, error)


def test_refused_jobs_are_named_one_by_one(client: FakeClient) -> None:
    client.answers["ControlJobs"] = [[("1", 0, ""), ("2", 2002, "Access/permission denied")]]
    result = ask(client, "release 1,2")
    assert (result.code, result.err) == (
        1,
        "Access/permission denied for job 2\nslurm_suspend error: Access/permission denied\n",
    )
    client.answers["UpdateJobs"] = [[("9", 2017, "Invalid job id specified")]]
    assert ask(client, "update jobid=9 name=x").err == "Invalid job id specified for job 9\n"


def test_host_lists_go_both_ways(client: FakeClient) -> None:
    assert ask(client, "show hostnames a[1-2],b3").lines == ["a1", "a2", "b3"]
    assert ask(client, "show hostlist a2,a1,b3").out == "a[2,1],b3\n"
    assert ask(client, "show hostlistsorted a2,b3,a1,a1").out == "a[1,1-2],b3\n"
    assert ask(client, "show hostnames n1,n[2-").lines == ["n1", "n]"]
    assert ask(client, "show hostlist n[1-2][").out == "n[1-2]]\n"
    assert ask(client, "show hostnames n]").lines == ["n]"]
    assert ask(client, "show hostnames").err == "scontrol: error: host list is empty\n"
    assert (
        ask(client, "show hostnames n[3-1]").err
        == "scontrol: error: _parse_single_range: Invalid range: `3-1'\n"
        "Invalid hostlist: n[3-1]\n"
    )


def test_of_arrays_it_is_told_which_tasks_met_with_what(client: FakeClient) -> None:
    client.answers["ControlJobs"] = [
        [["7_1", 2087, "Job is not suspended"], ["7_2-3", 0, "No error"]]
    ]
    result = ask(client, "resume 7")
    assert (result.code, result.err) == (1, "7_1: Job is not suspended\n7_2-3: No error\n")


def test_ping_says_whether_the_controller_is_there(client: FakeClient) -> None:
    assert ask(client, "ping").out == "Slurmctld(primary) at host is UP\n"
    client.answers["Query"] = RefusedError(1005, "x")
    result = ask(client, "ping")
    assert result.code == 1
    assert "** RESTORE SLURMCTLD DAEMON TO SERVICE **" in result.lines


def test_a_script_is_written_to_a_file_or_shown(client: FakeClient, tmp_path: Path) -> None:
    client.answers["GetScript"] = ["#!/bin/sh\ntrue\n"]
    assert ask(client, "write batch_script 7 -").out == "#!/bin/sh\ntrue\n"
    assert ask(client, "write batch 7 -").code == 0
    for short in ("b", "batc", "conf"):
        assert ask(client, f"write {short} 7 -").err == f"invalid write argument:{short}\n"
    target = tmp_path / "x.sh"
    assert (
        ask(client, f"write batch_script 7 {target}").out == "batch script for job 7 written to "
        f"{target}\n"
    )
    assert target.read_text() == "#!/bin/sh\ntrue\n"


def test_interactive_mode_shows_what_a_pipe_types(client: FakeClient) -> None:
    result = ask(client, "", stdin="show hostnames a[1-2]\nping\nquit\n")
    assert (
        result.out == "scontrol: show hostnames a[1-2]\na1\na2\nscontrol: ping\n"
        "Slurmctld(primary) at host is UP\nscontrol: quit\n"
    )
    result = ask(client, "", stdin="nosuch\nexit\n")
    assert (result.code, result.err) == (1, "invalid keyword: nosuch\n")


def test_licences_are_shown_with_what_is_left_of_them(client: FakeClient) -> None:
    assert ask(client, "show licenses").out == "No licenses configured in Slurm.\n"
    client.tables["licenses"] = [
        record("licenses", name="matlab", total=4, used=3),
        record("licenses", name="ansys", total=2),
    ]
    remote = FakeClient(licenses=[record("licenses", name="mat@srv", total=5, is_remote=True)])
    assert (
        ask(remote, "-o show lic").out == "LicenseName=mat@srv Total=5 Used=0 Free=5 Reserved=0 "
        "Remote=yes\n"
    )
    matlab = "LicenseName=matlab\n    Total=4 Used=3 Free=1 Reserved=0 Remote=no\n"
    assert (
        ask(client, "show licenses").out
        == "LicenseName=ansys\n    Total=2 Used=0 Free=2 Reserved=0 "
        "Remote=no\n" + matlab
    )
    assert ask(client, "show licenses matlab").out == matlab


RESERVATION = record(
    "reservations", name="r1", start_time=2051222400, end_time=2051229600, nodes="n[1-2]",
    node_count=2, core_count=3, cpu_count=3,
    cores=[["n1", "0-1"], ["n2", "0"]], flags="SPEC_NODES", users="root",
)  # fmt: skip
BEGIN = "starttime=2035-01-01T00:00:00"


def test_a_reservation_is_shown_as_slurm_shows_it() -> None:
    out = run_command(
        scontrol, "show", "res", "r1", client=FakeClient(reservations=[RESERVATION])
    ).out
    assert (
        out
        == """ReservationName=r1 StartTime=2035-01-01T00:00:00 EndTime=2035-01-01T02:00:00 Duration=02:00:00
   Nodes=n[1-2] NodeCnt=2 CoreCnt=3 Features=(null) PartitionName=(null) Flags=SPEC_NODES
     NodeName=n1 CoreIDs=0-1
     NodeName=n2 CoreIDs=0
   TRES=cpu=3
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=(null)

"""  # noqa: E501
    )


def test_a_reservation_is_created_with_what_the_line_says() -> None:
    client = FakeClient()
    client.answers["UpdateReservation"] = ["root_1"]
    line = (
        f"create reservation {BEGIN} dur=120 user=root nodec=2,1 flags=maint,ignore "
        "partition=debug tres=cpu=4"
    )
    outcome = run_command(scontrol, *line.split(), client=client)
    assert (outcome.code, outcome.out) == (0, "Reservation created: root_1\n")
    (asked,) = [fields for name, fields in client.asked if name == "UpdateReservation"]
    assert asked == {
        "action": "create",
        "name": "",
        "changes": {
            "starttime": "2051222400", "duration": "120", "users": "root", "nodecnt": "2,1",
            "flags": "maint,ignore", "partitionname": "debug",
            "corecnt": "4",
        },
    }  # fmt: skip


def test_where_whole_nodes_are_given_a_reservation_counts_no_cores() -> None:
    client = FakeClient()
    client.tables["config"] = [{"name": "SelectType", "value": "select/linear"}]
    done = run_command(scontrol, *f"create reservation {BEGIN} corecnt=2".split(), client=client)
    assert done.code == 1
    assert "CoreCnt or CPUCnt is only supported when SelectType includes" in done.err
    assert not client.asked


@pytest.mark.parametrize("more", ["", " nodes=", " nodecnt=0"])
def test_a_reservation_of_a_partition_alone_has_all_of_its_nodes(more: str) -> None:
    client = FakeClient()
    client.answers["UpdateReservation"] = ["r"]
    line = f"create reservation {BEGIN} dur=5 user=root partition=debug flags=maint{more}"
    assert run_command(scontrol, *line.split(), client=client).code == 0
    (asked,) = [fields for name, fields in client.asked if name == "UpdateReservation"]
    changes = asked["changes"]
    assert (changes["nodes"], changes["flags"]) == ("ALL", "maint,PART_NODES")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("duration=5 users=root nodes=n1", "A start time must be given."),
        (f"{BEGIN} users=root nodes=n1", "An end time or duration must be given."),
        (f"{BEGIN} duration=5 nodes=n1", "Either Users/Groups and/or Accounts must be specified."),
        (
            f"{BEGIN} duration=5 users=root",
            "CoreCnt, Nodes, NodeCnt, BurstBuffer, Licenses or Watts must be specified.",
        ),
        (
            f"{BEGIN} duration=5 users=root nodecnt=0",
            "CoreCnt, Nodes, NodeCnt, BurstBuffer, Licenses or Watts must be specified.",
        ),
        (f"{BEGIN} duration=abc users=root nodes=n1", "Invalid duration duration=abc."),
        (
            f"{BEGIN} duration=5 users=root nodes=n1 flags=maint,weird",
            "Error parsing flags maint,weird.",
        ),
        (f"{BEGIN} duration=5 users=root nodes=n1 nosuch=1", "Unknown parameter nosuch=1."),
        (
            f"{BEGIN} duration=5 users=root nodes=n1 bare",
            "Misformatted parameter 'bare', most options have a parameter after '='.",
        ),
        (f"{BEGIN} endtime=2034-01-01 users=root nodes=n1", "Start time cannot be after end time."),
        (
            f"{BEGIN} endtime=2035-01-02 duration=5 users=root nodes=n1",
            "StartTime + Duration does not equal EndTime.",
        ),
        (
            f"{BEGIN} duration=5 users=root nodes=n1 flags=part_nodes",
            "PART_NODES flag requires specifying a Partition and ALL nodes.",
        ),
        (
            f"{BEGIN} duration=5 users=root nodes=n1 watts=1",
            "A power reservation must be empty and set the LICENSE_ONLY flag.",
        ),
    ],
)
def test_a_reservation_that_lacks_something_is_refused_before_anybody_is_asked(
    line: str, error: str
) -> None:
    client = FakeClient()
    outcome = run_command(scontrol, "create", "reservation", *line.split(), client=client)
    assert (outcome.code, outcome.err) == (
        1,
        f"scontrol: error: {error}  No reservation created.\n",
    )
    assert not [name for name, _ in client.asked if name == "UpdateReservation"]


def test_what_the_controller_says_against_a_reservation_is_printed() -> None:
    client = FakeClient()
    client.answers["UpdateReservation"] = RefusedError(2016, "Requested nodes are busy")
    outcome = run_command(
        scontrol, "create", "res", BEGIN, "duration=5", "users=root", "nodecnt=9", client=client
    )
    assert outcome.err == "Error creating the reservation: Requested nodes are busy\n"
    assert outcome.lines[0].startswith("Note, unless nodes are directly requested")
    outcome = run_command(scontrol, "update", "reservationname=r", "duration=5", client=client)
    assert (
        outcome.err == "Error updating the reservation: Requested nodes are busy\n"
        "slurm_update error: Requested nodes are busy\n"
    )
    outcome = run_command(scontrol, "delete", "reservation=r", client=client)
    assert outcome.err == "delete_reservation reservation=r: Requested nodes are busy\n"
    outcome = run_command(scontrol, "update", "res=r", "nodes+=n1", client=client)
    assert outcome.err.startswith(
        "scontrol: error: The +=/-= notation is not supported when updating nodes."
    )


def test_a_job_shows_its_reservation() -> None:
    out = run_command(
        scontrol, "show", "job", client=FakeClient(jobs=[{**RUNNING, "reservation": "r1"}])
    ).lines
    at = out.index("   Reservation=r1")
    assert out[at - 1].startswith("   Features=fast")
    assert out[at + 1].startswith("   OverSubscribe=OK")


def test_nodes_are_rebooted_where_there_is_a_program_that_does_it(client: FakeClient) -> None:
    result = ask(client, "reboot n1")
    assert (result.code, result.err) == (
        1,
        (
            "scontrol: error: RebootProgram isn't defined\n"
            "scontrol_reboot_nodes error: Unspecified error\n"
        ),
    )
    assert not client.asked


@pytest.mark.parametrize(
    "line", ["hold 7", "release 7", "update jobid=7 comment=x", "suspend 7", "requeue 7"]
)
def test_where_no_controller_answers_it_is_said_of_each_job_in_slurms_odd_words(
    client: FakeClient, line: str
) -> None:
    client.answers |= dict.fromkeys(
        ("UpdateJobs", "ControlJobs"),
        RefusedError(1005, "Unable to contact slurm controller (connect failure)"),
    )
    result = ask(client, line)
    assert result.code == 1
    assert result.err.splitlines()[0] == "Unexpected message received for job 7"


@pytest.mark.parametrize(
    ("word", "sent"),
    [
        ("priority=", "0"),
        ("numtasks=+2", "2"),
        ("mincpusnode=65533", "65533"),
        ("minmemorynode=5000000000", "5000000000"),
        ("contiguous=", "no"),
        ("contiguous=+2", "yes"),
        ("numcpus=", "1-2147483647"),
        ("numcpus=+1-2k", "1-2048"),
        ("numnodes=2m", "2097152"),
        ("numnodes=k", "0"),
    ],
)
def test_numbers_of_jobs_are_read_as_slurm_reads_them(
    client: FakeClient, word: str, sent: str
) -> None:
    client.answers["UpdateJobs"] = [[]]
    client.tables["jobs"] = [record("jobs", job_id=7)]
    assert ask(client, f"update jobid=7 {word}").code == 0
    assert client.asked[-1][1]["changes"] == {word.partition("=")[0]: sent}


def test_counts_may_have_a_plus_and_a_delay_has_an_end(client: FakeClient) -> None:
    client.answers["UpdateReservation"] = ["r"]
    assert ask(client, "update reservationname=r corecnt=+1,2 nodecnt=+3").code == 0
    assert client.asked[-1][1]["changes"] == {"corecnt": "1,2", "nodecnt": "3"}
    said = ask(client, "create reservationname=r users=a maxstartdelay=infinite").err
    assert "Invalid duration maxstartdelay=infinite.  No reservation created.\n" in said


@pytest.mark.parametrize("words", ["Users=a Users=b", "Accounts=a Accounts+=b"])
def test_who_may_use_a_reservation_is_said_once(client: FakeClient, words: str) -> None:
    error = f"scontrol: error: Parameter {words.split()[1]} specified more than once\n"
    said = ask(client, f"create reservationname=r {words} nodes=n1")
    assert (said.code, said.err, client.asked) == (1, error, [])
    said = ask(client, f"update reservationname=r {words}")
    assert (said.code, said.err) == (1, error + "slurm_update error: No error\n")


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("-1", "less than zero"),
        ("x", "not a valid number"),
        ("2m", "not a valid number"),
        ("4294967281", "greater than 4294967280"),
    ],
)
def test_a_weight_that_is_none_is_named(client: FakeClient, value: str, wrong: str) -> None:
    said = ask(client, f"update nodename=n1 weight={value}").err.splitlines()[0]
    assert said == f"scontrol: error: Weight value ({value}) is {wrong}"


def test_a_weight_may_have_a_plus_or_a_k(client: FakeClient) -> None:
    client.answers["UpdateNodes"] = []
    for value, weight in (("+5", "5"), ("1k", "1024"), ("", "0")):
        ask(client, f"update nodename=n1 weight={value}")
        assert client.asked[-1][1]["changes"]["weight"] == weight


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("contiguous=maybe", "scontrol: error: Invalid Contiguous value: maybe"),
        (
            "numcpus=x",
            (
                'scontrol: error: Invalid numeric value "x" for NumCPUs.\n'
                "scontrol: error: Invalid NumCPUs value: x"
            ),
        ),
        ("deadline=nosuch", "Invalid time specification (pos=0): nosuch\nNo changes specified"),
        ("starttime=", "No changes specified"),
        (
            "nice=99999999999",
            "scontrol: error: Nice value out of range (+/- 2147483645). Value ignored",
        ),
        ("mailtype=nosuch", "Invalid MailType: nosuch"),
        ("minmemorynode=100M", "scontrol: error: Invalid MinMemoryNode value: 100M"),
        ("delayboot=x", "scontrol: error: Invalid DelayBoot value"),
        ("cpuspertask=65534", "scontrol: error: Invalid CPUsPerTask value: 65534"),
        ("contiguous=65534", "scontrol: error: Invalid Contiguous value: 65534"),
        ("numtasks=1k", "scontrol: error: Invalid NumTasks value: 1k"),
        ("arraytaskthrottle=-1", "scontrol: error: Invalid ArrayTaskThrottle value"),
        (
            "sitefactor=5000000000",
            "scontrol: error: SiteFactor value out of range (+/- 2147483645). Value ignored",
        ),
        ("numcpus=k", "scontrol: error: Invalid NumCPUs value: k"),
        (
            "numcpus=3000m",
            (
                "scontrol: error: Numeric argument (3145728000) to big for NumCPUs.\n"
                "scontrol: error: Invalid NumCPUs value: 3000m"
            ),
        ),
        ("comment", "Invalid input: comment\nRequest aborted"),
        (
            "systemcomment=x",
            "Update of this parameter is not supported: systemcomment=x\nRequest aborted",
        ),
        ("userid=nosuch", "Invalid UserID: nosuch\nRequest aborted"),
        ("gres=help", "No changes specified"),
    ],
)
def test_values_of_jobs_that_make_no_sense_are_not_sent(
    client: FakeClient, word: str, said: str
) -> None:
    result = ask(client, f"update jobid=7 {word}")
    assert (result.code, result.err) == (1, said + "\n")
    assert not client.asked


def test_a_node_count_that_is_none_is_said_and_that_is_all(client: FakeClient) -> None:
    result = ask(client, "update jobid=7 numnodes=x")
    assert (result.code, result.err) == (
        0,
        'scontrol: error: Invalid numeric value "x" for requested node count.\n',
    )
    assert '"n[1-2]" for requested' in ask(client, "update jobid=7 numnodes=n[1-2]").err


def test_what_is_quoted_in_the_interactive_mode_is_one_word(client: FakeClient) -> None:
    client.answers["UpdateJobs"] = [[]]
    run_command(scontrol, client=client, stdin='update jobid=7 comment="a b"\nexit x\nversion\n')
    assert client.asked == [("UpdateJobs", {"job_ids": ["7"], "changes": {"comment": '"a b"'}})]


@pytest.mark.parametrize("line", ["show bbstat a b", "show dwst a b"])
def test_what_the_sites_program_says_of_burst_buffers_is_printed(client: FakeClient, line: str):
    client.answers["GetBufferStatus"] = ["two\nlines\n"]
    result = ask(client, line)
    assert (result.code, result.out) == (0, "two\nlines\n")
    assert client.asked == [("GetBufferStatus", {"words": ["a", "b"]})]
    client.answers["GetBufferStatus"] = [""]
    assert ask(client, "show bbstat").out == ""


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("show topology", 0, "slurm_load_topo error: gone"),
        ("show burstbuffer", 1, "slurm_load_burst_buffer_info error: gone"),
        ("show bbstat", 1, "slurm_load_burst_buffer_stat error: gone"),
        ("show frontend", 1, "slurm_load_front_end error: gone"),
        ("update jobname=x comment=y", 1,
        "scontrol: error: Could not load state information: gone"),
        ("hold jobname=x", 1, "slurm_suspend error: gone"),
        ("top 5", 1, "gone for job 5"),
        ("token", 1, ("scontrol: error: slurm_fetch_token: error receiving response: gone\n"
                      "Error fetching token")),
        ("create reservation reservationname=r users=root nodes=n1 starttime=now duration=5", 1,
         "Error creating the reservation: Unexpected message received"),
    ],
)  # fmt: skip
def test_what_is_said_where_nobody_answers(line: str, code: int, said: str) -> None:
    client = FakeClient()
    gone = RefusedError(1005, "gone")
    client.answers |= dict.fromkeys(
        ("Query", "ControlJobs", "UpdateReservation", "GetBufferStatus"), gone
    )
    result = ask(client, line)
    assert (result.code, result.err) == (code, said + "\n")


def test_jobs_that_are_moved_to_the_top_are_asked_for_as_they_were_written(
    client: FakeClient,
) -> None:
    client.answers["ControlJobs"] = [[["1,2", 2073, "no"]]]
    result = ask(client, "top 1,2")
    assert (client.asked[-1][1]["job_ids"], result.code, result.err) == (
        ["1,2"],
        1,
        "no for job 1,2\n",
    )


@pytest.mark.parametrize(
    ("line", "results", "said"),
    [
        (
            "hold 4_[1-9]",
            [["4_1-6", 0, "No error"], ["4_7-9", 2017, "no such"]],
            "4_1-6: No error\n4_7-9: no such\n",
        ),
        (
            "hold 4_x",
            [["4_x", 2017, "no such"]],
            "no such for job 4_x\nslurm_suspend error: no such\n",
        ),
        (
            "hold 9,3",
            [["9", 2017, "no such"], ["3", 0, ""]],
            "no such for job 9\nslurm_suspend error: No error\n",
        ),
        (
            "hold 3,4",
            [["3", 2010, "not yours"], ["4_1", 2010, "not yours"]],
            "not yours for job 3\n4_1: not yours\nslurm_suspend error: No error\n",
        ),
        ("suspend 9_1", [["9_1", 1000, "unexpected"]], "unexpected for job 9_1\n"),
        ("update jobid=4_9 nice=1", [["4_9", 2017, "no such"]], "4_9: no such\n"),
    ],
)
def test_of_tasks_it_is_said_which_were_refused(
    client: FakeClient, line: str, results: object, said: str
) -> None:
    client.answers |= {"ControlJobs": [results], "UpdateJobs": [results]}
    result = ask(client, line)
    assert (result.code, result.err) == (1, said)


def test_commas_in_brackets_part_tasks(client: FakeClient) -> None:
    client.answers["ControlJobs"] = [[]]
    ask(client, "hold 4_[1,3],5 6")
    assert [fields["job_ids"] for _, fields in client.asked] == [["4_[1,3]", "5"], ["6"]]


def test_an_update_of_no_job_changes_nothing(client: FakeClient) -> None:
    assert (ask(client, "update jobid= comment=x").code, client.asked) == (0, [])
    assert ask(client, "update name=x comment=y").err.startswith(
        "No valid entity in update command\n"
    )


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("2002", "Access/permission denied"),
        ("1800", "Unable to contact slurm controller (connect failure)"),
        ("1005", "Incompatible versions of client and server code"),
        ("2", "No such file or directory"),
        ("99999", "Unknown error 99999"),
    ],
)
def test_what_an_error_number_means(client: FakeClient, number: str, text: str) -> None:
    assert ask(client, f"errnumstr {number}").lines == [text]
    assert (
        run_command(scontrol, client=client, stdin="errnumstr -1\n").lines[1] == "Unspecified error"
    )


def test_a_job_shows_what_was_asked_for_beside_the_ordinary() -> None:
    job = {
        **RUNNING, "batch_features": "fast", "cluster_features": "c", "prefer": "ib",
        "reservation": "r", "burst_buffer": "b", "container": "/x",
        "power_flags": "LEVEL", "cpu_freq": "low-high:ondemand,performance", "switches": 1,
        "switches_wait_s": 300,
        "record_flags": ["KILL_INV_DEP", "GRES_ENFORCE_BIND", "SPREAD_JOB"],
    }  # fmt: skip
    lines = ask(FakeClient(jobs=[job]), "show job 7301").out.split("\n   ")
    after = {line: lines[at - 1].partition("=")[0] for at, line in enumerate(lines)}
    assert after["BatchFeatures=fast"] == "BatchHost"
    assert [after[line] for line in ("ClusterFeatures=c", "Prefer=ib", "Reservation=r")] == [
        "Features",
        "ClusterFeatures",
        "Prefer",
    ]
    last = lines[lines.index("Switches=1@00:05:00") :]
    assert last[1:5] == [
        "BurstBuffer=b",
        "CPU_min_freq=Low CPU_max_freq=High Governor=OnDemand",
        "Power=LEVEL",
        "GresEnforceBind=YesKillOInInvalidDependent=YesSpreadJob=Yes",
    ]
    assert last[-2] == "Container=/x"


@pytest.mark.parametrize(
    "word",
    [
        "cpus=1",
        "cpu=1",
        "numnode=1",
        "time=5",
        "nu=1",
        "minmem=1",
        "uid=root",
        "reset=1",
        "resetaccruetime=",
    ],
)
def test_keys_need_as_many_letters_as_slurm_asks_for(client: FakeClient, word: str) -> None:
    outcome = ask(client, f"update jobid=7301 {word}")
    assert (outcome.code, outcome.err) == (
        1,
        f"Update of this parameter is not supported: {word}\nRequest aborted\n",
    )


def test_more_than_the_limit_cannot_be_taken_off(client: FakeClient) -> None:
    outcome = ask(client, "update jobid=7301 timelimit-=20")
    assert (outcome.code, outcome.err) == (
        1,
        "scontrol: error: TimeLimit decrement larger than current time limit (20 > 10)\n",
    )


def test_what_is_taken_off_a_tasks_limit_is_looked_at_as_that_of_a_job(client: FakeClient) -> None:
    outcome = ask(client, "update jobid=7303_2 timelimit-=2-0")
    assert outcome.err.startswith(
        "scontrol: error: TimeLimit decrement larger than current time limit (2880 > "
    )
    outcome = ask(client, "update jobid=7303_99 timelimit+=5")
    assert (outcome.code, outcome.out, outcome.err) == (1, "", "")
    assert not [name for name, _ in client.asked if name == "UpdateJobs"]


def test_a_job_that_is_none_and_a_task_that_is_not_there_are_told_apart(client: FakeClient) -> None:
    invalid = "scontrol_print_job error: Invalid job id specified\n"
    for name, error in (("7303_x", invalid), ("7303_1.0", invalid), ("7301.0", invalid)):
        assert ask(client, f"show job {name}").err == error
    none = ask(client, "show job 7303_")
    assert f"{none.out}{none.err}" == "Job 7303_0 not found\n"
    assert ask(client, "show job 7303_2_9").out == ask(client, "show job 7303_2").out


_NOT_THERE = "Could not load state information for job {}: Invalid job id specified"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("jobid=abc numnodes=1", "Invalid job ID abc"),
        ("jobid=7301,7302 reqnodelist=", "Invalid job ID 7301,7302"),
        ("jobid=7303_[1-2] numnodes=1", "Invalid job ID 7303_[1-2]"),
        ("jobid=7301+1 nodelist=n1", "Invalid job ID 7301+1"),
        ("jobid=abc timelimit+=5 nosuch=1", "Invalid job ID abc"),
        ("jobid=99 reqnodelist=n1", _NOT_THERE.format("99")),
        ("jobid=0 numnodes=1", _NOT_THERE.format("0")),
        ("jobid= reqnodes=1", _NOT_THERE.format("")),
        ("jobid=99 timelimit+=5", _NOT_THERE.format("99")),
        ("jobid=7303 numnodes=1", "Job resizing not supported for job arrays"),
        ("jobid=7303 timelimit=-5",
         "TimeLimit increment/decrement not supported for job arrays"),
        ("timelimit+=5 jobid=7301", "JobId must precede TimeLimit increment or decrement"),
        ("jobname=full timelimit+=5", "JobId must precede TimeLimit increment or decrement"),
    ],
)  # fmt: skip
def test_what_goes_by_what_a_job_has_is_for_one_job(
    client: FakeClient, line: str, error: str
) -> None:
    outcome = ask(client, f"update {line}")
    assert (outcome.code, outcome.err) == (1, f"scontrol: error: {error}\n")
    assert not [name for name, _ in client.asked if name == "UpdateJobs"]


def test_there_is_nothing_to_repeat_at_first(client: FakeClient) -> None:
    assert (
        ask(client, "", stdin="!!\nquit\n").code,
        ask(client, "", stdin="version\n!!\nquit\n").code,
    ) == (1, 0)


def test_a_component_that_a_job_has_not_is_not_found(client: FakeClient) -> None:
    assert ask(client, "show job 7301+7").out == "Job 7301+7 not found\n"
    assert ask(client, "show job 999+7").err == "slurm_load_jobs error: Invalid job id specified\n"


def test_within_a_job_scripts_are_written_that_follow_its_nodes(
    client: FakeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shares = [[name, 2, 100, [], ""] for name in ("n1", "n2")] + [["n3", 1, 100, [], ""]]
    client.tables["jobs"].append(
        record("jobs", job_id=77, nodes="n[1-3]", node_count=3, node_shares=shares)
    )
    client.answers["UpdateJobs"] = [[["77", 0, ""]]]
    assert run_command(scontrol, "update", "jobid=77", "numnodes=3", client=client).out == ""
    said = run_command(
        scontrol, "update", "jobid=77", "numnodes=3", client=client, environ={"SLURM_JOBID": "77"}
    )
    assert said.lines[1] == "  For bash or sh shells:  . ./slurm_job_77_resize.sh"
    shell = (tmp_path / "slurm_job_77_resize.sh").read_text().splitlines()
    assert shell[0] == 'export SLURM_NODELIST="n[1-3]"'
    assert shell[4:6] == ['export SLURM_JOB_CPUS_PER_NODE="2(x2),1"', "unset SLURM_NPROCS"]
    assert (tmp_path / "slurm_job_77_resize.csh").read_text().splitlines()[
        3
    ] == "setenv SLURM_JOB_NUM_NODES 3"
    assert (tmp_path / "slurm_job_77_resize.csh").stat().st_mode & 0o777 == 0o700


def test_the_federation_is_shown() -> None:
    assert ask(FakeClient(), "show federation").out == ""
    place = record(
        "federation",
        name="fed",
        cluster="lo",
        host="h",
        port=6817,
        number=1,
        state="ACTIVE",
        features=["a", "b"],
    )
    assert (
        ask(FakeClient(federation=[place]), "show fed").out
        == "Federation: fed\nSelf:       lo:h:6817 ID:1 FedState:ACTIVE "
        "Features:a,b\n"
    )


def test_an_empty_number_of_a_partition_is_zero_and_a_plus_is_nothing(client: FakeClient) -> None:
    client.answers["UpdatePartition"] = []
    assert ask(client, "update partition=p prioritytier= gracetime=+7 qos=").code == 0
    assert client.asked[-1][1]["changes"] == {"prioritytier": "0", "gracetime": "7", "qos": ""}


def test_a_partition_that_is_made_something_and_not_in_one_line_is_made_it(
    client: FakeClient,
) -> None:
    client.answers["UpdatePartition"] = []
    for line in ("hidden=yes hidden=no", "hidden=no hidden=yes"):
        assert ask(client, f"update partition=p {line}").code == 0
        assert client.asked[-1][1]["changes"] == {"hidden": "yes"}


def test_numbers_that_no_64_bits_hold_are_out_of_range(client: FakeClient) -> None:
    client.answers["UpdatePartition"] = []
    assert ask(client, f"update partition=p defmempercpu={2**63 - 2}").code == 0
    for number, said in ((2**63 - 1, "No error"), (2**63, "Numerical result out of range")):
        assert ask(client, f"update partition=p defmempercpu={number}").err.endswith(
            f"Invalid DefMemPerCPU value: {number}\nslurm_update error: {said}\n"
        )


@pytest.mark.parametrize(("what", "said"), [("job", "jobs"), ("step", "job steps")])
def test_that_there_is_none_is_not_said_quietly(what: str, said: str) -> None:
    client = FakeClient(jobs=[], steps=[])
    assert ask(client, f"show {what}").out == f"No {said} in the system\n"
    assert ask(client, f"-Q show {what}").out == ""


def test_a_job_that_never_ran_has_no_tasks(client: FakeClient) -> None:
    for state, nodes, tasks, shown in (
        (4, "", NO_TASKS, "N/A"),
        (4, "", 3, "3"),
        (4, "n1", 3, "3"),
    ):
        job = record("jobs", job_id=1, state=state, nodes=nodes, num_tasks=tasks)
        said = ask(FakeClient(jobs=[job]), "show job -d 1").out
        assert f"NumTasks={shown} " in said
        assert ("JOB_GRES=" in said) == (nodes != "")


def test_steps_of_an_array_are_shown_by_task_and_not_among_all() -> None:
    client = FakeClient(
        jobs=[record("jobs", job_id=number) for number in (4, 5, 6, 9)],
        steps=[
            record("steps", job_id=job, step="batch", array_job_id=array, array_task_id=task)
            for job, array, task in ((4, 4, 3), (5, 4, 1), (6, 4, 2), (9, 0, None))
        ],
    )

    def names(words: str) -> list[str]:
        return [line.split()[0] for line in ask(client, f"-o show step {words}").lines]

    assert names("4") == ["StepId=4_1.batch", "StepId=4_2.batch", "StepId=4_3.batch"]
    assert names("4_2.batch") == ["StepId=4_2.batch"]
    assert names("") == ["StepId=9.batch"]
    assert ask(client, "show step 4.batch").out == "Job step 4.0 not found\n"
    assert ask(client, "show step 4_9.batch").out == "Job step 4_9. not found\n"


@pytest.mark.parametrize(
    ("word", "sent"),
    [("maxnodes=1k", "1024"), ("maxnodes=2-3", "2"), ("maxnodes=1m", "1048576"),
     ("maxnodes=unlimited", "unlimited"), ("minnodes=1-2", "1"), ("minnodes=2K", "2048"),
     ("minnodes=+3", "3"), ("maxnodes=", "1")],
)  # fmt: skip
def test_counts_of_a_partitions_nodes_may_be_ranges_and_have_units(word: str, sent: str) -> None:
    client = FakeClient()
    client.answers["UpdatePartition"] = []
    assert ask(client, f"update partitionname=debug {word}").err == ""
    assert client.asked[-1][1]["changes"] == {word.partition("=")[0]: sent}


def test_a_number_that_stands_for_none_is_no_priority(client: FakeClient) -> None:
    error = "scontrol: error: Invalid Priority value: 4294967294\n"
    assert ask(client, "update jobid=7301 priority=4294967294").err == error
