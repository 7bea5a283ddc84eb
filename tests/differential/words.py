"""The words that sequences are drawn from: values of options, right, on the border and wrong; keys
and what they may be set to; what can be shown. Pure.
"""

# Never drawn: what goes on for ever, asks at the terminal, or says what is known to be other words
LEFT_OUT = {
    "iterate", "interactive", "wait", "version", "verbose", "federation", "local", "cluster",
    "clusters", "sibling", "sib", "uid", "gid", "get-user-env", "help-fields", "container", "pty",
    "chdir", "quiet", "cluster-constraint", "sbatch-wait", "export-file", "signal-wait", "json",
    "yaml", "bb", "bbf", "helpformat", "reboot", "power", "usage", "help", "file", "completion",
    "input", "output", "error", "batch-script", "env-vars", "delay-boot",
}  # fmt: skip
# Fields that are of the host or the folder, or ours alone.
LEFT_OUT_FIELDS = {
    "allocnodes", "allocsid", "workdir", "plannednodes", "plannedstart", "command", "freemem",
    "cpusload", "nodeaddr", "port", "cpuload",
}  # fmt: skip
LISTING = ("squeue", "sinfo", "sacct", "sprio", "sshare", "sstat", "scontrol", "sreport")
USERS = ("", "", "", "daemon", "bin")
STATES = (
    "R", "PD", "running", "pending", "CG", "completed", "CD", "F", "CA", "all", "R,PD", "nosuch",
    "S", "SUSPENDED", "", "TO", "NF", "R,nosuch", "RUNNING,", "BF", "OOM", "RH", "STAGE_OUT",
)  # fmt: skip
NODE_STATES = (
    "idle", "alloc", "mix", "down", "drain", "IDLE", "all", "nosuch", "idle,alloc", "resp",
    "completing", "drained", "maint", "fail", "planned", "", "idle&drain", "up", "reserved",
)  # fmt: skip
JOBS = ("@j1", "@j2", "@j1,@j2", "99999", "abc", "0", "-1", "@j1_1", "@j1_[1-2]", "@j1+1",
    "@j1.0",
        "@j1.batch", "", "@j1,abc", "1.5", "@j1_99")  # fmt: skip
TIMES = ("10", "1:00", "1:0:0", "1-0", "1-2:3:4", "x", "0", "-1", "UNLIMITED", "INFINITE", "61",
         "5:", "", "100000", "1.5", "00:00:30", "1-", ":30")  # fmt: skip
MOMENTS = ("now", "now-1hour", "now+1hour", "today", "tomorrow", "midnight", "noon", "16:00",
           "2010-01-01", "2010-01-01T10:00:00", "01/02/10", "x", "", "now+x", "now+1weeks",
           "2038-02-30", "fika", "now-1", "10/10", "25:00")  # fmt: skip
NUMBERS = ("1", "2", "0", "-1", "x", "1k", "", "4", "5", "1-2", "2-1", "99999", "1.5",
    "4294967295",
           "007", "+1", "1,2", "3x")  # fmt: skip
SIZES = ("100", "1G", "0", "-1", "x", "1K", "5000", "4000M", "1T", "100X", "1.5G", "", "100MB")
NAMES = ("debug", "batch", "nosuch", "", "debug,batch", "debug,nosuch", "root", "daemon", "n1",
         "n[1-2]", "n9", "n[1-", "normal", "a1", "matlab:1", "matlab", "1", "all", "f1",
         "J*", "x y")  # fmt: skip
POOLS = {
    "partition": ("debug", "batch", "nosuch", "", "debug,batch", "debug,nosuch", "DEBUG"),
    "partitions": ("debug", "batch", "nosuch", "", "debug,batch", "debug,nosuch"),
    "states": STATES, "state": STATES, "jobs": JOBS, "job": JOBS, "jobid": JOBS,
    "user": ("root", "daemon", "nosuch", "0", "1", "99999", "", "root,daemon", "root,nosuch"),
    "users": ("root", "daemon", "nosuch", "0", "1", "99999", "", "root,daemon"),
    "time": TIMES, "time-min": TIMES, "timelimit-min": TIMES, "timelimit-max": TIMES,
    "begin": MOMENTS, "deadline": MOMENTS, "starttime": MOMENTS, "endtime": MOMENTS,
    "start": MOMENTS, "end": MOMENTS,
    "mem": SIZES, "mem-per-cpu": SIZES, "tmp": SIZES, "mem-per-gpu": SIZES,
    "nodes": ("1", "2", "1-2", "2-1", "0", "5", "x", "-1", "", "1-", "n1", "n[1-2]", "n9", "1k"),
    "nodelist": ("n1", "n[1-2]", "n9", "n[1-", "", "n1,n1", "n[1-9]", "localhost", "n1 n2"),
    "exclude": ("n1", "n[1-4]", "n9", "", "n[1-"),
    "dependency": ("afterok:@j1", "afterany:@j1", "after:@j1", "singleton", "afterok:99999", "x",
                   "afterok", "afterok:", "afternotok:@j1", "after:@j1+5", "aftercorr:@j1",
                   "afterok:@j1,afterany:@j1", "afterok:@j1?afterany:@j1", "expand:@j1", ""),
    "array": ("1-3", "0-2", "1,3", "1-5:2", "1-3%1", "3-1", "x", "", "0", "-1", "1-3%0",
        "1-99999",
              "1-1", "[1-2]", "1-3%x", "1,1"),
    "constraint": ("f1", "nosuch", "f1&f2", "f1|nosuch", "[f1*1]", "", "f1*2", "(f1", "!f1"),
    "licenses": ("matlab", "matlab:1", "matlab:5", "matlab:4", "nosuch:1", "matlab:x", "",
                 "matlab:0", "matlab:1,matlab:1", "matlab:-1"),
    "mail-type": ("ALL", "BEGIN,END", "nosuch", "", "NONE", "TIME_LIMIT_50", "begin"),
    "signal": ("USR1", "10", "B:10@60", "USR1@30", "x", "R:TERM@5", "", "@5", "99", "KILL",
        "STOP",
               "SIGTERM", "0"),
    "distribution": ("block", "cyclic", "plane=2", "x", "block:cyclic", "arbitrary", "plane",
                     "block,pack", "cyclic:block,NoPack", ""),
    "gres": ("gpu:1", "gpu", "x", "", "none", "gpu:x"), "gpus": ("1", "gpu:1", "x", "0", ""),
    "exclusive": ("", "user", "mcs", "x"), "hint": ("nomultithread", "multithread", "x", "help",
                                                    "compute_bound", "memory_bound", ""),
    "nice": ("", "10", "-10", "x", "0", "2147483645", "99999999999"),
    "priority": ("10", "0", "-1", "x", "TOP", "", "4294967294", "99999999999"),
    "export": ("ALL", "NONE", "A=b", "ALL,A=b", "", "NIL"),
    "kill-on-invalid-dep": ("yes", "no", "x", ""), "open-mode": ("append", "truncate", "x", "a"),
    "account": ("a1", "nosuch", "", "root"), "qos": ("normal", "nosuch", ""),
    "comment": ("c", "x y", ""), "job-name": ("alpha", "x y", "", "a/b"), "name": ("job.sh", "x"),
    "reservation": ("r1", "nosuch", ""), "switches": ("1", "1@10", "x", "1@x", ""),
    "core-spec": NUMBERS, "thread-spec": NUMBERS, "profile": ("all", "none", "task", "x", ""),
    "cpus-per-task": NUMBERS, "acctg-freq": ("10", "task=10", "x", "", "-1"),
    "extra-node-info": ("1", "1:2", "1:2:1", "x", "1:x", "*", "1:*:1", "0", ""),
    "cpu-freq": ("low", "high", "x", "1000", "low-high", "performance", "low-high:performance"),
    "wckey": ("w", "*w", ""), "noconvert": ("",), "units": ("K", "M", "G", "x", "T", "P", ""),
    "delimiter": (";", "", "ab"), "whole-hetjob": ("yes", "no", "x", ""),
    "truncate": ("",), "clusters": ("conform", "nosuch"), "mcs-label": ("m", ""),
    "gres-flags": ("disable-binding", "enforce-binding", "x", ""), "spread-job": ("",),
    "threads-per-core": NUMBERS, "sort": ("i", "-i", "P,t,-p", "x", "", "N", "+i", "i,", "*",
        "t,#"),
}  # fmt: skip
JOB_SCRIPTS = {"run": "sleep 600", "end": "true", "fail": "exit 3"}
JOB_KEYS = (
    ("TimeLimit", (*TIMES, "+10", "-5")), ("Priority", POOLS["priority"]), ("Nice",
        POOLS["nice"]),
    ("JobName", ("b", "", "x y")), ("Name", ("b",)), ("Partition", POOLS["partition"]),
    ("NumNodes", POOLS["nodes"]), ("NumCPUs", NUMBERS), ("NumTasks", NUMBERS),
    ("ReqNodeList", POOLS["nodelist"]), ("NodeList", POOLS["nodelist"]), ("ExcNodeList",
        POOLS["exclude"]),
    ("MinMemoryNode", SIZES), ("MinMemoryCPU", SIZES), ("MinCPUsNode", NUMBERS),
    ("Features", POOLS["constraint"]), ("Dependency", POOLS["dependency"]), ("Comment", ("c", "",
        "x y")),
    ("StartTime", MOMENTS), ("EligibleTime", MOMENTS), ("Deadline", MOMENTS), ("EndTime",
        MOMENTS),
    ("Requeue", ("0", "1", "2", "x", "yes")), ("Licenses", POOLS["licenses"]), ("Account",
        POOLS["account"]),
    ("QOS", POOLS["qos"]), ("WCKey", ("w", "")), ("ArrayTaskThrottle", NUMBERS), ("AdminComment",
        ("a", "")),
    ("OverSubscribe", ("yes", "no", "x")), ("Contiguous", ("yes", "no", "x")), ("MailType",
        POOLS["mail-type"]),
    ("MailUser", ("u", "")), ("StdOut", ("/tmp/x", "")), ("WorkDir", ("/tmp",)), ("UserID",
        ("daemon", "x")),
    ("Gres", POOLS["gres"]), ("MinTmpDiskNode", SIZES), ("Switches", POOLS["switches"]),
    ("NoSuch", ("1",)),
    ("ReservationName", ("r1", "")), ("TimeMin", TIMES), ("CPUsPerTask", NUMBERS), ("SiteFactor",
        NUMBERS),
    ("NtasksPerNode", NUMBERS), ("ReqCores", NUMBERS), ("Delayboot", TIMES), ("BurstBuffer", ("x",
        "")),
)  # fmt: skip
NODE_KEYS = (
    ("State", ("DOWN", "DRAIN", "RESUME", "IDLE", "FAIL", "UNDRAIN", "nosuch", "", "down",
        "MAINT",
               "POWER_UP", "FUTURE", "CANCEL_REBOOT", "NORESP", "ALLOC")),
    ("Reason", ("r", "x y", "")), ("Weight", NUMBERS), ("Features", ("f1", "f2", "f1,f2", "")),
    ("ActiveFeatures", ("f1", "f2", "")), ("Comment", ("c", "")), ("Extra", ("e", "")),
    ("CpuBind", ("core", "none", "x")), ("Gres", ("gpu:1", "", "x")), ("NoSuch", ("1",)),
)  # fmt: skip
PARTITION_KEYS = (
    ("State", ("UP", "DOWN", "DRAIN", "INACTIVE", "x", "")), ("MaxTime", TIMES), ("DefaultTime",
        TIMES),
    ("MaxNodes", (*NUMBERS, "UNLIMITED")), ("MinNodes", NUMBERS), ("Hidden", ("yes", "no", "x")),
    ("Default", ("yes", "no", "x")), ("RootOnly", ("yes", "no", "x")), ("Priority", NUMBERS),
    ("PriorityTier", NUMBERS), ("PriorityJobFactor", NUMBERS), ("OverSubscribe", ("yes", "no",
        "force", "force:2", "exclusive", "x")),
    ("AllowGroups", ("root", "nosuch", "all", "")), ("AllowAccounts", ("a1", "all", "")),
    ("AllowQOS", ("normal", "nosuch")),
    ("Nodes", ("n1", "n[1-4]", "n9", "", "+n3", "-n1")), ("GraceTime", TIMES), ("PreemptMode",
        ("off", "requeue", "x", "cancel")),
    ("DefMemPerCPU", SIZES), ("MaxMemPerNode", SIZES), ("QOS", ("normal", "nosuch")),
    ("Alternate", ("batch", "nosuch")),
    ("LLN", ("yes", "no", "x")), ("DisableRootJobs", ("yes", "no", "x")), ("ReqResv", ("yes",
        "no")), ("NoSuch", ("1",)),
    ("MaxCPUsPerNode", NUMBERS), ("OverTimeLimit", NUMBERS), ("ExclusiveUser", ("yes", "no")),
)  # fmt: skip
RESERVATION_KEYS = (
    ("StartTime", MOMENTS), ("EndTime", MOMENTS), ("Duration", TIMES), ("Nodes", ("n1", "ALL",
        "n9", "")),
    ("NodeCnt", NUMBERS), ("Users", ("root", "daemon", "nosuch", "", "+bin", "-root")),
    ("Accounts", ("a1", "nosuch")),
    ("Flags", ("MAINT", "IGNORE_JOBS", "x", "DAILY", "MAINT,OVERLAP", "FLEX", "ANY_NODES",
        "PURGE_COMP", "WEEKLY")),
    ("PartitionName", ("debug", "nosuch")), ("CoreCnt", NUMBERS), ("Licenses", POOLS["licenses"]),
    ("Features", ("f1", "nosuch")), ("NoSuch", ("1",)), ("Groups", ("root", "nosuch")), ("TRES",
        ("cpu=1", "node=1", "x")),
    ("MaxStartDelay", TIMES), ("Comment", ("c",)), ("Skip", ("1",)), ("BurstBuffer", ("x",)),
)  # fmt: skip
ACCOUNT_KEYS = (
    "Description=d", "Organization=o", "Parent=root", "Parent=nosuch", "Fairshare=10",
        "Fairshare=x", "Fairshare=parent",
    "MaxJobs=2", "MaxJobs=x", "MaxJobs=-1", "GrpTRES=cpu=4", "GrpTRES=x=4", "GrpTRES=cpu=x",
        "MaxWall=10",
    "MaxWall=x", "QOS=normal", "QOS=nosuch", "QOS+=normal", "DefaultQOS=normal", "GrpJobs=1",
        "MaxSubmitJobs=1",
    "GrpTRESMins=cpu=1", "MaxTRESPerJob=cpu=1", "NoSuch=1", "Name=a2", "Cluster=conform",
        "Cluster=nosuch", "Priority=1",
)  # fmt: skip
USER_KEYS = (
    "Account=a1", "Account=nosuch", "Account=a1,a2", "DefaultAccount=a1", "AdminLevel=Admin",
        "AdminLevel=x",
    "AdminLevel=Operator", "Partition=debug", "Partition=nosuch", "Fairshare=5", "MaxJobs=2",
        "QOS=normal", "NoSuch=1",
    "DefaultQOS=normal", "DefaultQOS=nosuch", "MaxSubmitJobs=1", "DefaultWCKey=w", "WCKeys=w",
        "GrpTRES=node=1",
)  # fmt: skip
QOS_KEYS = (
    "Priority=10", "Priority=x", "Flags=DenyOnLimit", "Flags=x", "MaxJobsPerUser=1",
        "MaxTRESPerUser=cpu=2", "GrpTRES=cpu=2",
    "MaxWall=5", "PreemptMode=cancel", "PreemptMode=x", "Preempt=normal", "Preempt=nosuch",
        "GraceTime=10", "NoSuch=1",
    "UsageFactor=2", "UsageFactor=x", "Description=d", "MaxTRESPerJob=node=1", "GrpSubmitJobs=2",
        "Flags+=NoReserve",
    "MinTRESPerJob=cpu=2", "LimitFactor=1.5", "MaxJobsAccruePerUser=1", "UsageThreshold=0.5",
)  # fmt: skip
SHOWS = (
    "job", "job @j1", "job 99999", "job abc", "jobs", "node", "node n1", "node n9", "nodes",
        "partition",
    "partition nosuch", "partition debug", "reservation", "reservation nosuch", "step",
        "step @j1",
    "step @j1.0", "hostnames n[1-3]", "hostlist n1,n2", "hostlistsorted n3,n1", "licenses", "lic",
    "config", "daemons", "topology", "aliases", "aliases n1", "nosuch", "", "assoc_mgr flags=qos",
        "federation", "slurmd",
    "burstbuffer", "job @j1_1", "job -1", "node n[1-2]", "frontend", "hostnames", "hostlist",
        "jo", "p", "bbstat",
    "job @j1 @j2", "partition debug batch", "license matlab", "license nosuch", "hostnames n[1-",
        "res r1",
)  # fmt: skip
DUTIES = (
    "hold {}", "release {}", "requeue {}", "requeuehold {}", "suspend {}", "resume {}",
        "uhold {}", "top {}",
    "notify {} hello", "hold", "release", "hold name=alpha", "release name=alpha",
        "hold jobname=nosuch",
    "requeue state=SPECIAL_EXIT {}", "write batch_script {} -", "listpids", "ping", "completing",
        "update",
    "update {}", "update job {}", "delete", "delete {}", "create", "create x", "wait_job {}",
        "nosuch", "show", "help x",
    "cluster", "details", "oneliner", "setdebug x", "schedloglevel x", "takeover x",
        "fsdampeningfactor x", "getaddrs n1",
    "hold {} extra", "errnumstr 2015", "errnumstr x", "pidinfo 1", "token", "cancel_reboot n1",
        "update nosuch=1",
)  # fmt: skip
REPORTS = (
    "cluster utilization", "cluster accountutilizationbyuser", "job sizesbyaccount", "user top",
    "cluster nosuch", "nosuch", "reservation utilization", "cluster",
)  # fmt: skip
REPORT_WORDS = (
    "", "-n", "-P", "-t hours", "-t x", "start=2010-01-01", "end=x", "format=nosuch",
)  # fmt: skip
ACCOUNTING_VERBS = (
    "add {kind} {name} {some}", "add {kind} {name} {some}", "modify {kind} {name} set {some}",
    "modify {kind} where name={name} set {some}", "delete {kind} {name}", "show {kind} {some}",
    "show {kind} {name} {some}", "modify {kind} {name} {some}", "show {kind} format={field}",
)  # fmt: skip
ACCOUNTING_SHOWS = (
    "show assoc", "show user withassoc", "-nP show qos", "show tres", "show cluster",
    "show nosuch", "nosuch", "show", "show config", "list account", "show event",
    "show runawayjobs", "show problem", "show wckey", "dump nosuch",
)  # fmt: skip
ALL_COMMANDS = (
    "sbatch", "squeue", "scancel", "sinfo", "sacct", "scontrol", "sprio", "sshare", "sacctmgr",
    "srun", "salloc", "sreport", "sstat", "sdiag", "strigger", "sbcast", "sattach",
)  # fmt: skip
