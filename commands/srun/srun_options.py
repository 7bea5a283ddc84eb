"""srun's options: those of a job, as sbatch has them, and those of a step. Follows srun(1) of
22.05.

Place: under srun; pure.
"""

from understudy.commands.shared.options import NONE, OPTIONAL, REQUIRED, Option
from understudy.commands.submission.allocation import table

OPTIONS = table(
    "SLURM_",
    [
        Option("accel-bind", "", REQUIRED, "", env="SLURM_ACCEL_BIND"),
        Option(
            "bcast", "", OPTIONAL, "PATH: copy the program to the nodes first", env="SLURM_BCAST"
        ),
        Option(
            "bcast-exclude",
            "",
            REQUIRED,
            "PATHS: libraries that are not copied",
            env="SLURM_BCAST_EXCLUDE",
        ),
        Option("compress", "", OPTIONAL, "KIND: of compression with --bcast", env="SLURM_COMPRESS"),
        Option("cpu-bind", "", REQUIRED, "SPEC: tasks to CPUs", env="SLURM_CPU_BIND"),
        Option("cpu_bind", "", REQUIRED, ""),
        Option("debugger-test", "", NONE, ""),
        Option(
            "disable-status", "X", NONE, "no status at the first Ctrl-C", env="SLURM_DISABLE_STATUS"
        ),
        Option(
            "epilog", "", REQUIRED, "PROGRAM: run here when the step has ended", env="SLURM_EPILOG"
        ),
        Option("error", "e", REQUIRED, "FILE: for standard error", env="SLURM_STDERRMODE"),
        Option("exact", "", NONE, "no more CPUs than asked for", env="SLURM_EXACT"),
        Option(
            "exclusive",
            "",
            OPTIONAL,
            "WHO: share nodes with no other job, CPUs with no other step",
            env="SLURM_EXCLUSIVE",
        ),
        Option(
            "export",
            "",
            REQUIRED,
            "NAMES: environment variables for the tasks",
            env="SLURM_EXPORT_ENV",
        ),
        Option("help", "h", NONE, "print this text"),
        Option("het-group", "", REQUIRED, "LIST: components of a heterogeneous job"),
        Option(
            "immediate",
            "I",
            OPTIONAL,
            "SECONDS: give up when there are no resources by then",
            env="SLURM_IMMEDIATE",
        ),
        Option("input", "i", REQUIRED, "FILE: for standard input", env="SLURM_STDINMODE"),
        Option("interactive", "", NONE, ""),
        Option("jobid", "", REQUIRED, "ID: within this job", env="SLURM_JOB_ID"),
        Option(
            "kill-on-bad-exit",
            "K",
            OPTIONAL,
            "0|1: end the step when a task fails",
            env="SLURM_KILL_BAD_EXIT",
        ),
        Option("label", "l", NONE, "put the task's number before each line", env="SLURM_LABELIO"),
        Option("mpi", "", REQUIRED, "TYPE: of MPI (list: all)", env="SLURM_MPI_TYPE"),
        Option("msg-timeout", "", REQUIRED, ""),
        Option("multi-prog", "", NONE, "the command is a file that says which task runs what"),
        Option(
            "no-allocate",
            "Z",
            NONE,
            "on nodes of -w, without a job (administrators)",
            env="SLURM_NO_ALLOCATE",
        ),
        Option("nodelist", "w", REQUIRED, "HOSTS: there"),
        Option(
            "nodes",
            "N",
            REQUIRED,
            "MIN[-MAX]: number of nodes",
            env="SLURM_JOB_NUM_NODES",
        ),
        Option("ntasks", "n", REQUIRED, "COUNT: of tasks", env="SLURM_NTASKS SLURM_NPROCS"),
        Option("cpus-per-task", "c", REQUIRED, "COUNT: for each task", env="SRUN_CPUS_PER_TASK"),
        Option("ntasks-per-node", "", REQUIRED, "COUNT: on each node", env="SLURM_NTASKS_PER_NODE"),
        Option("open-mode", "", REQUIRED, "append|truncate: output files", env="SLURM_OPEN_MODE"),
        Option("output", "o", REQUIRED, "FILE: for standard output", env="SLURM_STDOUTMODE"),
        Option("overlap", "", OPTIONAL, "share CPUs with other steps", env="SLURM_OVERLAP"),
        Option("pack-group", "", REQUIRED, "", dest="het_group"),
        Option(
            "preserve-env",
            "E",
            NONE,
            "accepted; options count more than variables",
            env="SLURM_PRESERVE_ENV",
        ),
        Option("prolog", "", REQUIRED, "PROGRAM: run here before the step", env="SLURM_PROLOG"),
        Option("propagate", "", OPTIONAL, "LIST: limits to hand on", env="SLURM_PROPAGATE"),
        Option("pty", "", NONE, "task 0 has a terminal of its own"),
        Option("quiet", "Q", NONE, "print errors only"),
        Option(
            "quit-on-interrupt", "", NONE, "end at the first Ctrl-C", env="SLURM_QUIT_ON_INTERRUPT"
        ),
        Option("relative", "r", REQUIRED, "NUMBER: leave out so many of the job's nodes"),
        Option(
            "resv-ports", "", OPTIONAL, "COUNT: accepted; no ports are kept", env="SLURM_RESV_PORTS"
        ),
        Option(
            "send-libs",
            "",
            OPTIONAL,
            "yes|no: with --bcast the libraries, too",
            env="SLURM_SEND_LIBS",
        ),
        Option(
            "signal",
            "",
            REQUIRED,
            "[R:]SIGNAL[@SECONDS]: before the time limit",
            env="SLURM_SIGNAL",
        ),
        Option("slurmd-debug", "", REQUIRED, "LEVEL: of messages", env="SLURMD_DEBUG"),
        Option(
            "task-epilog", "", REQUIRED, "PROGRAM: run after each task", env="SLURM_TASK_EPILOG"
        ),
        Option(
            "task-prolog", "", REQUIRED, "PROGRAM: run before each task", env="SLURM_TASK_PROLOG"
        ),
        Option(
            "test-only",
            "",
            NONE,
            "check, and say when it could start; run nothing",
            env="SLURM_TEST_EXEC",
        ),
        Option(
            "threads", "T", REQUIRED, "COUNT: accepted; of threads that launch", env="SLURM_THREADS"
        ),
        Option(
            "unbuffered",
            "u",
            NONE,
            "pass output on as it comes, not line by line",
            env="SLURM_UNBUFFEREDIO",
        ),
        Option("usage", "", NONE, "print a short summary of the options"),
        Option("verbose", "v", NONE, "say more"),
        Option("version", "V", NONE, "print the version"),
        Option(
            "wait",
            "W",
            REQUIRED,
            "SECONDS: after the first task's end, for the others",
            env="SLURM_WAIT",
        ),
        Option("whole", "", NONE, "all that the job has on its nodes", env="SLURM_WHOLE"),
        Option("x11", "", OPTIONAL, ""),
    ],
    {
        "chdir": "SLURM_WORKING_DIR SLURM_REMOTE_CWD",
        "job-name": "SLURM_JOB_NAME",
        "time": "SLURM_TIMELIMIT",
        "nodefile": "",
        "distribution": "SLURM_DISTRIBUTION",
        "hint": "SLURM_HINT",
        "clusters": "SLURM_CLUSTERS",
    },
    ("get-user-env", "kill-on-invalid-dep", "wait-all-nodes"),
)
USAGE = """\
Usage: srun [-N nnodes] [-n ntasks] [-i in] [-o out] [-e err]
            [-c ncpus] [-r n] [-p partition] [--hold] [-t minutes]
            [-D path] [--immediate[=secs]] [--overcommit] [--overlap] [--no-kill]
            [--oversubscribe] [--label] [--unbuffered] [-m dist] [-J jobname]
            [--jobid=id] [--verbose] [--slurmd_debug=#] [--gres=list]
            [-T threads] [-W sec] [--gres-flags=opts]
            [--licenses=names] [--clusters=cluster_names]
            [--qos=qos] [--time-min=minutes]
            [--contiguous] [--mincpus=n] [--mem=MB] [--tmp=MB] [-C list]
            [--mpi=type] [--account=name] [--dependency=type:jobid[+time]]
            [--kill-on-bad-exit] [--propagate[=rlimits] [--comment=name]
            [--cpu-bind=...] [--mem-bind=...] [--network=type]
            [--ntasks-per-node=n] [--ntasks-per-socket=n] [reservation=name]
            [--ntasks-per-core=n] [--mem-per-cpu=MB] [--preserve-env]
            [--profile=...] [--exact]
            [--mail-type=type] [--mail-user=user] [--nice[=value]]
            [--prolog=fname] [--epilog=fname]
            [--task-prolog=fname] [--task-epilog=fname]
            [--ctrl-comm-ifhn=addr] [--multi-prog] [--mcs-label=mcs]
            [--cpu-freq=min[-max[:gov]]] [--power=flags] [--spread-job]
            [--switches=max-switches{@max-time-to-wait}] [--reboot]
            [--core-spec=cores] [--thread-spec=threads]
            [--bb=burst_buffer_spec] [--bbf=burst_buffer_file]
            [--bcast=<dest_path>] [--bcast-exclude=<NONE|path1,...,pathN>]
            [--send-libs[=y|n]] [--compress[=library]]
            [--acctg-freq=<datatype>=<interval>] [--delay-boot=mins]
            [-w hosts...] [-x hosts...] [--use-min-nodes]
            [--mpi-combine=yes|no] [--het-group=value]
            [--cpus-per-gpu=n] [--gpus=n] [--gpu-bind=...] [--gpu-freq=...]
            [--gpus-per-node=n] [--gpus-per-socket=n] [--gpus-per-task=n]
            [--mem-per-gpu=MB]
            executable [args...]"""
# What the parts of a heterogeneous step take over from the one before them on the command line.
HANDED_ON = frozenset(
    (
        *(
            "chdir",
            "error",
            "export",
            "input",
            "kill_on_bad_exit",
            "label",
            "open_mode",
            "output",
            "overlap",
            "propagate",
            "quiet",
        ),
        *("task_epilog", "task_prolog", "unbuffered", "verbose", "wait"),
    )
)
# What is srun's own affair, and none of the job's.
OWN = frozenset(
    [
        "accel_bind",
        "bcast",
        "bcast_exclude",
        "compress",
        "cpu_bind",
        "debugger_test",
        "disable_status",
        "epilog",
        "error",
        "exact",
        "exclusive",
        "export",
        "help",
        "het_group",
        "immediate",
        "input",
        "interactive",
        "jobid",
        "kill_on_bad_exit",
        "label",
        "mpi",
        "msg_timeout",
        "multi_prog",
        "no_allocate",
        "open_mode",
        "output",
        "overlap",
        "preserve_env",
        "prolog",
        "propagate",
        "pty",
        "quiet",
        "quit_on_interrupt",
        "relative",
        "resv_ports",
        "send_libs",
        "slurmd_debug",
        "task_epilog",
        "task_prolog",
        "test_only",
        "threads",
        "unbuffered",
        "usage",
        "verbose",
        "version",
        "wait",
        "whole",
        "x11",
    ]
)
