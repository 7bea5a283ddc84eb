"""Configurations as sites write them, drawn from a seed: nodes of several kinds, partitions with
all that keeps jobs out, old keys, DEFAULT lines, companions, includes, odd spelling. Most can run a
job of one CPU somewhere; none may end a replay without saying why.

    write_site(random.Random(7), folder)   a slurm.conf in `folder`, and companions beside it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from pathlib import Path

_OLD = (
    "ControlMachine=head",
    "FastSchedule={digit}",
    "CryptoType=crypto/munge",
    "CacheGroups=0",
    "CheckpointType=checkpoint/none",
    "JobCheckpointDir=/var/slurm/checkpoint",
    "MpichGmDirectSupport=0",
    "UsePAM=1",
    "AccountingStoreJobComment=YES",
    "DefaultStorageType=slurmdbd",
    "LaunchType=launch/slurm",
    "RoutePlugin=route/topology",
    "SchedulerRootFilter=1",
    "MemLimitEnforce=yes",
    "BackupController=head2",
)
_PLAIN = (
    "AuthType=auth/munge",
    "AuthInfo=/var/run/munge/munge.socket.2",
    "AuthAltTypes=auth/jwt",
    "AuthAltParameters=jwt_key=/nonexistent/jwt.key",
    "SlurmUser=slurm",
    "SlurmUser=nosuchuser",
    "SlurmdUser=root",
    "SlurmctldPort=6810-6817",
    "SlurmdPort=7003",
    "StateSaveLocation=/var/nonexistent/state",
    "SlurmdSpoolDir=/var/nonexistent/%n",
    "SlurmctldPidFile=/run/slurmctld.pid",
    "SwitchType=switch/none",
    "ProctrackType=proctrack/cgroup",
    "ReturnToService={digit}",
    "TaskPlugin=task/affinity,task/cgroup",
    "TaskPlugin=affinity,cgroup",
    "MpiDefault=pmix",
    "MpiParams=ports=12000-12999",
    "PropagateResourceLimitsExcept=MEMLOCK",
    "InactiveLimit=60",
    "KillWait=30",
    "OverTimeLimit=5",
    "CompleteWait={digit}0",
    "MessageTimeout=60",
    "BatchStartTimeout=1",
    "SlurmdTimeout={digit}00",
    "SlurmctldTimeout=300",
    "Waittime=0",
    "TreeWidth={digit}",
    "MaxJobCount=200",
    "MaxArraySize=100",
    "FirstJobId=5000",
    "MaxJobId=100000",
    "JobRequeue=0",
    "KillOnBadExit=1",
    "DisableRootJobs=YES",
    "EnforcePartLimits=ALL",
    "EnforcePartLimits=ANY",
    "PrivateData=accounts,jobs,nodes,reservations,usage,users",
    "PrivateData=cloud",
    "Prolog=/etc/slurm/prolog.sh",
    "Epilog=/etc/slurm/epilog.sh",
    "Prolog=/etc/slurm/prolog.d/*",
    "PrologSlurmctld=/etc/slurm/prologctld.sh",
    "EpilogSlurmctld=/etc/slurm/epilogctld.sh",
    "TaskProlog=/etc/slurm/taskprolog.sh",
    "TaskEpilog=/etc/slurm/taskepilog.sh",
    "SrunProlog=/etc/slurm/srun.prolog",
    "ResvProlog=/etc/slurm/resv.sh",
    "PrologFlags=Alloc,Contain,X11",
    "PrologFlags=contain,serial,nohold",
    "HealthCheckProgram=/usr/sbin/nhc",
    "HealthCheckInterval=300",
    "HealthCheckNodeState=ANY,CYCLE",
    "RebootProgram=/sbin/reboot",
    "UnkillableStepTimeout=180",
    "JobSubmitPlugins=lua",
    "JobSubmitPlugins=lua,require_timelimit",
    "JobSubmitPlugins=job_submit/lua",
    "CliFilterPlugins=lua",
    "PlugStackConfig=/etc/slurm/plugstack.conf",
    "MailProg=/usr/bin/smail",
    "MailDomain=example.org",
    "JobCompType=jobcomp/filetxt",
    "JobCompType=jobcomp/elasticsearch",
    "JobCompLoc=/nonexistent/jobcomp.log",
    "JobAcctGatherType=jobacct_gather/cgroup",
    "JobAcctGatherFrequency=task=30,energy=60",
    "JobAcctGatherParams=UsePss,NoOverMemoryKill",
    "AcctGatherEnergyType=acct_gather_energy/rapl",
    "AcctGatherNodeFreq=30",
    "Licenses=matlab:10,ansys@server:5,stata*2",
    "DebugFlags=NO_CONF_HASH,backfill",
    "SlurmctldDebug=debug3",
    "SlurmctldDebug=7",
    "SlurmSchedLogFile=/var/log/slurm/sched.log",
    "SlurmSchedLogLevel=1",
    "SlurmctldParameters=enable_configless,idle_on_node_suspend,power_save_interval=10",
    "LaunchParameters=use_interactive_step",
    "CommunicationParameters=NoAddrCache",
    "DependencyParameters=kill_invalid_depend",
    "ScronParameters=enable",
    "TopologyParam=TopoOptional",
    "VSizeFactor=101",
    "X11Parameters=home_xauthority",
    "TmpFS=/scratch",
    "TrackWCKey=yes",
    "BurstBufferType=burst_buffer/lua",
    "NodeFeaturesPlugins=node_features/helpers",
    "FederationParameters=fed_display",
    "MCSPlugin=mcs/account",
    "MCSParameters=enforced,select",
    "SuspendExcParts=debug",
    "RequeueExit=1,5-7",
    "GroupUpdateForce=1",
    "EioTimeout=60",
    "AllowSpecResourcesUsage=1",
)
_SCHEDULER_WORDS = (
    "bf_continue", "bf_window={digit}440", "bf_interval={digit}0", "bf_resolution=600",
    "bf_max_job_test=1000", "bf_max_job_user={digit}",
    "bf_max_job_part={digit}0", "bf_max_job_start=2", "bf_busy_nodes", "bf_one_resv_per_job",
    "bf_min_age_reserve=600", "bf_min_prio_reserve=100",
    "bf_running_job_reserve", "bf_licenses", "bf_max_time=60", "bf_yield_interval=1000000",
    "bf_job_part_count_reserve=2", "defer",
    "batch_sched_delay={digit}",
    "default_queue_depth={digit}0", "partition_job_depth={digit}", "sched_interval=30",
    "sched_min_interval=2000000", "sched_max_job_start={digit}",
    "max_rpc_cnt=128", "max_switch_wait=86400", "preempt_youngest_first", "preempt_reorder_count=3",
    "preempt_strict_order", "assoc_limit_stop",
    "enable_user_top", "kill_invalid_depend", "pack_serial_at_end", "bf_windw=3", "max_job_bf=300",
    "nohold_on_prolog_fail", "salloc_wait_nodes",
)  # fmt: skip
_PARTITION = (
    "MaxTime=UNLIMITED", "MaxTime=2-00:00:00", "MaxTime=30", "MaxTime=INFINITE", "DefaultTime=10",
    "MaxNodes=1", "MaxNodes=UNLIMITED", "MinNodes=2",
    "State=DOWN", "State=DRAIN", "State=INACTIVE", "State=UP", "Hidden=YES", "RootOnly=YES",
    "ReqResv=YES", "DisableRootJobs=YES", "LLN=YES",
    "ExclusiveUser=YES", "AllowGroups=chem,bio", "AllowGroups=ALL", "AllowAccounts=physics",
    "DenyAccounts=guests", "AllowQos=normal,high",
    "DenyQos=low", "QOS=normal", "PriorityTier={digit}", "PriorityJobFactor={digit}0",
    "Priority={digit}00", "OverSubscribe=FORCE:2",
    "OverSubscribe=YES", "OverSubscribe=EXCLUSIVE", "OverSubscribe=FORCE", "Shared=NO",
    "Shared=FORCE", "PreemptMode=off", "PreemptMode=requeue",
    "PreemptMode=suspend", "GraceTime=60", "DefMemPerCPU=2000", "DefMemPerCPU=900000",
    "DefMemPerNode=1000", "DefMemPerNode=900000",
    "MaxMemPerCPU=500", "MaxMemPerNode=4000", "MaxCPUsPerNode=2", "Alternate=spare",
    "AllocNodes=login[1-2]", "OverTimeLimit=10",
    "DefMemPerGPU=4000", "DefCpuPerGPU=4", "SelectTypeParameters=CR_Core_Memory",
    "TRESBillingWeights=CPU=1.0,Mem=0.25G,GRES/gpu=2.0",
    "SuspendTime=300", "ResumeTimeout=600", "CpuBind=core",
)  # fmt: skip


def _pick(rng: random.Random, words: tuple[str, ...], chance: float) -> list[str]:
    return [
        word.replace("{digit}", str(rng.randint(1, 9))) for word in words if rng.random() < chance
    ]


def _node_lines(rng: random.Random) -> tuple[list[str], list[str], list[str]]:
    """Lines, expressions that name nodes, features."""
    lines, names = [], []
    features = ["intel", "amd", "ib"]
    if rng.random() < 0.4:
        defaults = [
            "RealMemory=4000",
            "Sockets=2 CoresPerSocket=2",
            "State=UNKNOWN Weight=5",
            "CPUs=4",
        ]
        lines.append(f"NodeName=DEFAULT {rng.choice(defaults)}")
    for kind in range(rng.randint(1, 4)):
        count = rng.choice([1, 2, 5, 12])
        base = f"{rng.choice(['n', 'node', 'gpu-', 'c1'])}{'abcd'[kind]}"
        name = (
            rng.choice([f"{base}[1-{count}]", f"{base}[01-{count:02}]", f"{base}{kind}"])
            if count > 1
            else f"{base}{kind}"
        )
        shape = rng.choice(
            ["CPUs=4", "Procs=2", "Sockets=2 CoresPerSocket=2 ThreadsPerCore=2",
            "CPUs=8 Sockets=1 CoresPerSocket=4 ThreadsPerCore=2",
             "CPUs=4 Boards=1 SocketsPerBoard=2 CoresPerSocket=2 ThreadsPerCore=1", "", "CPUs=3"]
        )  # fmt: skip
        more = _pick(
            rng,
            ("RealMemory=8000", f"Feature={rng.choice(features)},x{kind}", "Features=ib",
            "Weight={digit}0", "TmpDisk=1000", "CoreSpecCount=1",
             "MemSpecLimit=500", "CpuSpecList=0", "Gres=gpu:2", "Gres=gpu:tesla:2,tmp:100",
             "Reason=slow", "State=UNKNOWN", "State=IDLE",
             "Port=17005"),
            0.2,
        )  # fmt: skip
        if rng.random() < 0.15:
            more.append(
                rng.choice(
                    ["State=DOWN", "State=DRAIN", "State=FUTURE", "State=CLOUD", "State=FAIL"]
                )
            )
        seen: dict[str, str] = {
            word.partition("=")[0].replace("Features", "Feature"): word for word in more
        }
        lines.append(" ".join(filter(None, [f"NodeName={name}", shape, *seen.values()])))
        names.append(name)
    if rng.random() < 0.1:
        lines.append(f'DownNodes={names[0]} State=DOWN Reason="it is broken"')
    if rng.random() < 0.15:
        lines.append("NodeSet=fastset Feature=ib")
        names.append("fastset")
    return lines, names, features


def _partition_lines(rng: random.Random, names: list[str]) -> list[str]:
    lines = []
    if rng.random() < 0.3:
        lines.append(" ".join(["PartitionName=DEFAULT", *_pick(rng, _PARTITION, 0.03)]))
    count = rng.randint(1, 4)
    default = rng.choice([0, 0, 0, count - 1, -1])
    for number, name in enumerate(["debug", "batch", "spare", "gpu"][:count]):
        nodes = rng.choice(
            ["ALL", names[0], ",".join(names), names[-1], '""']
            if number
            else ["ALL", names[0], ",".join(names)]
        )
        extra: dict[str, str] = {
            word.partition("=")[0].replace("Shared", "OverSubscribe"): word
            for word in _pick(rng, _PARTITION, 0.05)
        }
        nodes_word = [] if nodes == '""' else [f"Nodes={nodes}"]
        lines.append(
            " ".join(
                [
                    f"PartitionName={name}",
                    *nodes_word,
                    *extra.values(),
                    *(["Default=YES"] if number == default else []),
                ]
            )
        )
    return lines


def _kinds(rng: random.Random) -> list[str]:
    """Plug-ins and what goes with them."""
    select = rng.choice(
        ["select/cons_tres", "select/cons_tres", "select/cons_res", "select/linear", ""]
    )
    lines = [f"SelectType={select}"] if select else []
    if select.startswith("select/cons") and rng.random() < 0.9:
        word = rng.choice(
            [
                "CR_CPU",
                "CR_Core",
                "CR_Core_Memory",
                "CR_CPU_Memory",
                "CR_Socket",
                "CR_Socket_Memory",
                "CR_Memory",
            ]
        )
        lines.append(
            "SelectTypeParameters="
            + ",".join(
                [
                    word,
                    *_pick(
                        rng,
                        (
                            "CR_LLN",
                            "CR_Pack_Nodes",
                            "CR_ONE_TASK_PER_CORE",
                            "CR_CORE_DEFAULT_DIST_BLOCK",
                        ),
                        0.15,
                    ),
                ]
            )
        )
    lines.append(
        f"SchedulerType=sched/{rng.choice(['backfill', 'backfill', 'backfill', 'builtin'])}"
    )
    words = _pick(rng, _SCHEDULER_WORDS, 0.12)
    if words:
        lines.append("SchedulerParameters=" + rng.choice(["", "", "="]) + ",".join(words))
    if rng.random() < 0.5:
        lines += ["PriorityType=priority/multifactor"]
        lines += _pick(
            rng,
            ("PriorityWeightAge={digit}000", "PriorityWeightFairshare={digit}0000",
            "PriorityWeightJobSize=100", "PriorityWeightPartition=1000",
             "PriorityWeightQOS=500", "PriorityWeightTRES=CPU=10,Mem=20,GRES/gpu=100",
             "PriorityMaxAge=7-0", "PriorityDecayHalfLife=0",
             "PriorityUsageResetPeriod=MONTHLY", "PriorityFavorSmall=YES",
             "PriorityFlags=FAIR_TREE", "PriorityFlags=MAX_TRES,ACCRUE_ALWAYS",
             "PriorityCalcPeriod=1", "FairShareDampeningFactor=5"),
            0.3,
        )  # fmt: skip
    preempt = rng.choice(["none", "none", "partition_prio", "qos"])
    if preempt != "none":
        lines += [
            f"PreemptType=preempt/{preempt}",
            f"PreemptMode={rng.choice(['REQUEUE', 'CANCEL', 'SUSPEND,GANG'])}",
        ]
        lines += _pick(rng, ("PreemptExemptTime=00:10:00",), 0.2)
    elif rng.random() < 0.1:
        lines += ["PreemptMode=GANG", "SchedulerTimeSlice=30"]
    storage = rng.choice(["none", "slurmdbd", "slurmdbd", "filetxt", "mysql", ""])
    if storage:
        lines.append(f"AccountingStorageType=accounting_storage/{storage}")
    lines += _pick(
        rng,
        ("AccountingStorageHost=dbhost", "AccountingStoragePort=6819",
        "AccountingStorageUser=slurm", "AccountingStoragePass=/var/run/munge.socket",
         "AccountingStorageTRES=gres/gpu,license/matlab",
         "AccountingStoreFlags=job_comment,job_script",
         "AccountingStorageEnforce=associations,limits,qos,safe"),
        0.3,
    )  # fmt: skip
    if rng.random() < 0.25:
        lines += [
            "SuspendProgram=/usr/sbin/suspend.sh",
            "ResumeProgram=/usr/sbin/resume.sh",
            f"SuspendTime={rng.choice(['60', '600', '-1', 'INFINITE'])}",
        ]
        lines += _pick(
            rng,
            (
                "SuspendRate={digit}",
                "ResumeRate=0",
                "ResumeTimeout=120",
                "SuspendTimeout=20",
                "SuspendExcNodes=login1",
            ),
            0.4,
        )
    if rng.random() < 0.3:
        lines += [f"DefMemPer{rng.choice(['CPU', 'Node'])}={rng.choice([100, 2000, 1_000_000])}"]
    if rng.random() < 0.3:
        lines += [f"MaxMemPer{rng.choice(['CPU', 'Node'])}={rng.choice([100, 2000, 1_000_000])}"]
    return lines


def _spelled(rng: random.Random, line: str) -> str:
    """The line as somebody else would type it."""
    key, _, value = line.partition("=")
    way = rng.random()
    if way < 0.1:
        return f"{key.lower()}={value}"
    if way < 0.15 and " " not in value:
        return f"{key} = {value}"
    if way < 0.2 and " " not in value and '"' not in value:
        return f'{key}="{value}"'
    if way < 0.3:
        return (
            line.replace(" ", "\t")
            + "   # "
            + rng.choice(["as agreed", "für später", '50%, "maybe"'])
        )
    if way < 0.35 and " " in line:
        return line.replace(" ", " \\\n    ", 1)
    return line


def _usable(general: list[str], partitions: list[str]) -> tuple[list[str], list[str]]:
    """Without what slurmctld does not start with: resources that are tracked without slurmdbd,
    weights of those that are not, parts of GPUs where nobody counts them, and a log without a file.
    """
    if "AccountingStorageType=accounting_storage/slurmdbd" not in general:
        general = [line for line in general if not line.startswith("AccountingStorageTRES=")]
    if not any(line.startswith("AccountingStorageTRES=") for line in general):
        general = [line.replace(",GRES/gpu=100", "") for line in general]
        partitions = [line.replace(",GRES/gpu=2.0", "") for line in partitions]
    if "SelectType=select/cons_tres" not in general:
        general = [line.replace("gpu,mps,", "gpu,") for line in general]
    if not any(line.startswith("SlurmSchedLogFile=") for line in general):
        general = [line for line in general if not line.startswith("SlurmSchedLogLevel=")]
    return general, partitions


def write_site(rng: random.Random, folder: Path) -> Path:
    """Draw a site."""
    folder.mkdir(parents=True, exist_ok=True)
    head = (
        ["SlurmctldHost=head(10.0.0.1)"]
        if rng.random() < 0.8
        else ["ControlMachine=head", "ControlAddr=10.0.0.1"]
    )
    if rng.random() < 0.2:
        head.append("SlurmctldHost=head2")
    general = [f"ClusterName={rng.choice(['site', 'Uni-HPC', 'c_1', 'SITE'])}", *head, *_kinds(rng)]
    taken = {line.partition("=")[0].lower() for line in general}
    for line in [
        *_pick(rng, _PLAIN, 0.12),
        *_pick(rng, _OLD, 0.1),
        *_pick(rng, ("MinJobAge=0", "MinJobAge={digit}00", "MinJobAge=2"), 0.4),
    ]:
        if (key := line.partition("=")[0].lower()) not in taken:
            taken.add(key)
            general.append(line)
    nodes, names, _ = _node_lines(rng)
    if any("Gres=" in line for line in nodes):
        general.append("GresTypes=" + rng.choice(["gpu,tmp", "gpu", "gpu,mps,tmp"]))
        if rng.random() < 0.7:
            (folder / "gres.conf").write_text(
                rng.choice(
                    [
                        "AutoDetect=nvml\n",
                        f"NodeName={names[0]} Name=gpu File=/dev/nvidia[0-1]\n",
                        "Name=gpu Count=2\nName=tmp Count=100 Flags=CountOnly\n",
                    ]
                )
            )
    if rng.random() < 0.2:
        general.append("TopologyPlugin=topology/tree")
        plain = [name for name in names if name != "fastset"]
        (folder / "topology.conf").write_text(
            "".join(f"SwitchName=s{number} Nodes={name}\n" for number, name in enumerate(plain))
            + (f"SwitchName=top Switches=s[0-{len(plain) - 1}]\n" if len(plain) > 1 else "")
        )
    if rng.random() < 0.3:
        (folder / "cgroup.conf").write_text(
            "CgroupAutomount=yes\nConstrainCores=yes\nConstrainRAMSpace=yes\nTaskAffinity=no\n"
        )
    if rng.random() < 0.3:
        (folder / "slurmdbd.conf").write_text(
            "AuthType=auth/munge\nDbdHost=dbhost\nStorageType=accounting_storage/mysql\n"
            "StoragePass=secret\nPurgeJobAfter=1months\nArchiveJobs=yes\n"
            "ArchiveDir=/nonexistent\n"
        )
    if rng.random() < 0.2:
        (folder / "plugstack.conf").write_text(
            "optional /usr/lib/slurm/private-tmp.so base=/tmp\n"
            "include /etc/slurm/plugstack.conf.d/*.conf\n"
        )
    partitions = _partition_lines(rng, names)
    if rng.random() < 0.1:
        nodes.append("FrontendName=fe1 State=UNKNOWN")
    general, partitions = _usable(general, partitions)
    rng.shuffle(general)
    lines = [_spelled(rng, line) for line in general]
    if rng.random() < 0.25:
        (folder / "nodes.conf").write_text("\n".join(_spelled(rng, line) for line in nodes) + "\n")
        lines += [rng.choice(["Include nodes.conf", "include /etc/slurm/nodes.conf"])]
    else:
        lines += [_spelled(rng, line) for line in nodes]
    lines += [_spelled(rng, line) for line in partitions]
    text = "# slurm.conf\n\n" + "\n".join(lines) + rng.choice(["", "\n", "\n\n"])
    if rng.random() < 0.15:
        text = text.replace("\n", "\r\n")
    (folder / "slurm.conf").write_bytes(text.encode(rng.choice(["utf-8", "latin-1"])))
    return folder / "slurm.conf"
