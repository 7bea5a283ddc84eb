"""sbatch's options: which there are. Follows sbatch(1) of 22.05.

Place: commands; data alone. One table serves the command line, SBATCH_* variables and `#SBATCH`
lines; what each option does is in options.py.
"""

from understudy.commands.shared.options import NONE, OPTIONAL, REQUIRED, Option, OptionTable

OPTIONS = OptionTable(
    [
        Option("account", "A", REQUIRED, "NAME: charge this account", env="SBATCH_ACCOUNT"),
        Option(
            "acctg-freq",
            "",
            REQUIRED,
            "LIST: how often to sample accounting data",
            env="SBATCH_ACCTG_FREQ",
        ),
        Option(
            "array",
            "a",
            REQUIRED,
            "INDEXES: a job array with these task numbers",
            env="SBATCH_ARRAY_INX",
        ),
        Option(
            "batch",
            "",
            REQUIRED,
            "LIST: features of the node that runs the script",
            env="SBATCH_BATCH",
        ),
        Option("begin", "b", REQUIRED, "TIME: not before then"),
        Option("bb", "", REQUIRED, "SPEC: burst buffer", env="SBATCH_BURST_BUFFER"),
        Option("bbf", "", REQUIRED, "FILE: with a burst buffer specification"),
        Option("cluster-constraint", "", REQUIRED, "LIST: features of clusters"),
        Option("chdir", "D", REQUIRED, "FOLDER: where the script runs"),
        Option("cluster", "", REQUIRED, "", dest="clusters"),
        Option(
            "clusters",
            "M",
            REQUIRED,
            "LIST: clusters to submit to",
            env="SBATCH_CLUSTERS SLURM_CLUSTERS",
        ),
        Option("comment", "", REQUIRED, "TEXT: any"),
        Option("container", "", REQUIRED, "PATH: OCI bundle", env="SBATCH_CONTAINER"),
        Option("context", "", REQUIRED, ""),
        Option("contiguous", "", NONE, "nodes must follow one another"),
        Option(
            "constraint",
            "C",
            REQUIRED,
            "LIST: features that nodes must have",
            env="SBATCH_CONSTRAINT",
        ),
        Option(
            "core-spec", "S", REQUIRED, "COUNT: cores left to the system", env="SBATCH_CORE_SPEC"
        ),
        Option("cores-per-socket", "", REQUIRED, "COUNT: at least, on each socket"),
        Option("cpu-freq", "", REQUIRED, "SPEC: CPU frequency", env="SBATCH_CPU_FREQ_REQ"),
        Option("cpus-per-gpu", "", REQUIRED, "COUNT: for each GPU", env="SBATCH_CPUS_PER_GPU"),
        Option("cpus-per-task", "c", REQUIRED, "COUNT: for each task"),
        Option("deadline", "", REQUIRED, "TIME: give up when it cannot end by then"),
        Option(
            "delay-boot",
            "",
            REQUIRED,
            "MINUTES: before nodes are rebooted for a feature",
            env="SBATCH_DELAY_BOOT",
        ),
        Option("dependency", "d", REQUIRED, "LIST: wait for other jobs"),
        Option(
            "distribution", "m", REQUIRED, "TYPE: how tasks go to nodes", env="SBATCH_DISTRIBUTION"
        ),
        Option("error", "e", REQUIRED, "FILE: for standard error", env="SBATCH_ERROR"),
        Option("exclude", "x", REQUIRED, "HOSTS: not there"),
        Option(
            "exclusive", "", OPTIONAL, "WHO: share nodes with no other job", env="SBATCH_EXCLUSIVE"
        ),
        Option(
            "export", "", REQUIRED, "NAMES: environment variables for the job", env="SBATCH_EXPORT"
        ),
        Option("export-file", "", REQUIRED, "FILE: with environment variables"),
        Option("extra-node-info", "B", REQUIRED, "S[:C[:T]]: sockets, cores, threads"),
        Option(
            "get-user-env",
            "",
            OPTIONAL,
            "SECONDS: take the user's login environment",
            env="SBATCH_GET_USER_ENV",
        ),
        Option("gid", "", REQUIRED, "GROUP: run under this group (root only)"),
        Option("gpu-bind", "", REQUIRED, "SPEC: tasks to GPUs", env="SBATCH_GPU_BIND"),
        Option("gpu-freq", "", REQUIRED, "SPEC: GPU frequency", env="SBATCH_GPU_FREQ"),
        Option("gpus", "G", REQUIRED, "[TYPE:]COUNT: for the job", env="SBATCH_GPUS"),
        Option(
            "gpus-per-node", "", REQUIRED, "[TYPE:]COUNT: for each node", env="SBATCH_GPUS_PER_NODE"
        ),
        Option("gpus-per-socket", "", REQUIRED, "[TYPE:]COUNT: for each socket"),
        Option(
            "gpus-per-task", "", REQUIRED, "[TYPE:]COUNT: for each task", env="SBATCH_GPUS_PER_TASK"
        ),
        Option("gres", "", REQUIRED, "LIST: generic resources of each node", env="SBATCH_GRES"),
        Option("gres-flags", "", REQUIRED, "FLAGS: on generic resources", env="SBATCH_GRES_FLAGS"),
        Option("help", "h", NONE, "print this text"),
        Option("hint", "", REQUIRED, "KIND: of application", env="SBATCH_HINT SLURM_HINT"),
        Option("hold", "H", NONE, "submit held"),
        Option("ignore-pbs", "", NONE, "leave #PBS lines alone", env="SBATCH_IGNORE_PBS"),
        Option("input", "i", REQUIRED, "FILE: for standard input", env="SBATCH_INPUT"),
        Option("job-name", "J", REQUIRED, "NAME: of the job", env="SBATCH_JOB_NAME"),
        Option("kill-on-invalid-dep", "", REQUIRED, "yes|no: end when a dependency cannot be met"),
        Option("licenses", "L", REQUIRED, "LIST: of licences"),
        Option("mail-type", "", REQUIRED, "LIST: events to mail"),
        Option("mail-user", "", REQUIRED, "WHO: gets mail"),
        Option("mcs-label", "", REQUIRED, "LABEL: MCS"),
        Option("mem", "", REQUIRED, "SIZE: memory on each node", env="SBATCH_MEM_PER_NODE"),
        Option("mem-bind", "", REQUIRED, "SPEC: tasks to memory", env="SBATCH_MEM_BIND"),
        Option("mem-per-cpu", "", REQUIRED, "SIZE: memory for each CPU", env="SBATCH_MEM_PER_CPU"),
        Option("mem-per-gpu", "", REQUIRED, "SIZE: memory for each GPU", env="SBATCH_MEM_PER_GPU"),
        Option("mincpus", "", REQUIRED, "COUNT: CPUs on each node, at least"),
        Option("network", "", REQUIRED, "SPEC: of the network", env="SBATCH_NETWORK"),
        Option("nice", "", OPTIONAL, "VALUE: lower the priority by it"),
        Option("no-kill", "k", OPTIONAL, "off: go on when a node fails", env="SBATCH_NO_KILL"),
        Option("no-requeue", "", NONE, "never requeue", env="SBATCH_NO_REQUEUE"),
        Option("nodefile", "F", REQUIRED, "FILE: with hosts"),
        Option("nodelist", "w", REQUIRED, "HOSTS: there"),
        Option("nodes", "N", REQUIRED, "MIN[-MAX]: number of nodes"),
        Option("ntasks", "n", REQUIRED, "COUNT: of tasks"),
        Option("ntasks-per-core", "", REQUIRED, "COUNT: at most, on each core"),
        Option("ntasks-per-gpu", "", REQUIRED, "COUNT: for each GPU"),
        Option("ntasks-per-node", "", REQUIRED, "COUNT: on each node"),
        Option("ntasks-per-socket", "", REQUIRED, "COUNT: at most, on each socket"),
        Option("ntasks-per-tres", "", REQUIRED, "", dest="ntasks_per_gpu"),
        Option("open-mode", "", REQUIRED, "append|truncate: output files", env="SBATCH_OPEN_MODE"),
        Option("output", "o", REQUIRED, "FILE: for standard output", env="SBATCH_OUTPUT"),
        Option("overcommit", "O", NONE, "more tasks than CPUs", env="SBATCH_OVERCOMMIT"),
        Option("oversubscribe", "s", NONE, "share resources with other jobs"),
        Option("parsable", "", NONE, "print the job's number alone"),
        Option("partition", "p", REQUIRED, "LIST: of partitions", env="SBATCH_PARTITION"),
        Option("power", "", REQUIRED, "FLAGS: power management", env="SBATCH_POWER"),
        Option("prefer", "", REQUIRED, "LIST: features that nodes should have"),
        Option("priority", "", REQUIRED, "VALUE: set the priority"),
        Option("profile", "", REQUIRED, "LIST: what to profile", env="SBATCH_PROFILE"),
        Option("propagate", "", OPTIONAL, "LIST: limits to hand on"),
        Option("qos", "q", REQUIRED, "NAME: quality of service", env="SBATCH_QOS"),
        Option("quiet", "Q", NONE, "print errors only"),
        Option("reboot", "", NONE, "reboot nodes first"),
        Option("requeue", "", NONE, "may be requeued", env="SBATCH_REQUEUE"),
        Option("reservation", "", REQUIRED, "NAME: run in it", env="SBATCH_RESERVATION"),
        Option(
            "signal",
            "",
            REQUIRED,
            "[{R|B}:]SIGNAL[@SECONDS]: before the time limit",
            env="SBATCH_SIGNAL",
        ),
        Option("sockets-per-node", "", REQUIRED, "COUNT: at least, on each node"),
        Option("spread-job", "", NONE, "over as many nodes as possible", env="SBATCH_SPREAD_JOB"),
        Option(
            "switches",
            "",
            REQUIRED,
            "COUNT[@TIME]: of network switches",
            env="SBATCH_REQ_SWITCH",
            env_dest="req_switch",  # which has no time
        ),
        Option("tasks-per-node", "", REQUIRED, "", dest="ntasks_per_node"),
        Option("test-only", "", NONE, "check, and say when it could start; submit nothing"),
        Option(
            "thread-spec",
            "",
            REQUIRED,
            "COUNT: threads left to the system",
            env="SBATCH_THREAD_SPEC",
        ),
        Option(
            "threads-per-core",
            "",
            REQUIRED,
            "COUNT: to use on each core",
            env="SBATCH_THREADS_PER_CORE",
        ),
        Option("time", "t", REQUIRED, "LIMIT: run time", env="SBATCH_TIMELIMIT"),
        Option("time-min", "", REQUIRED, "LIMIT: least run time that is of use"),
        Option("tmp", "", REQUIRED, "SIZE: temporary disk on each node"),
        Option("uid", "", REQUIRED, "USER: run as this user (root only)"),
        Option(
            "use-min-nodes", "", NONE, "of a range of nodes rather few", env="SBATCH_USE_MIN_NODES"
        ),
        Option("usage", "", NONE, "print a short summary of the options"),
        Option("verbose", "v", NONE, "say more"),
        Option("version", "V", NONE, "print the version"),
        Option("wait", "W", NONE, "end when the job ends, with its exit code", env="SBATCH_WAIT"),
        Option(
            "wait-all-nodes",
            "",
            REQUIRED,
            "0|1: begin when all nodes are ready",
            env="SBATCH_WAIT_ALL_NODES",
        ),
        Option("wckey", "", REQUIRED, "KEY: workload characterisation", env="SBATCH_WCKEY"),
        Option("wrap", "", REQUIRED, "COMMAND: instead of a script"),
    ]
)
USAGE = """Usage: sbatch [-N nnodes] [-n ntasks]
              [-c ncpus] [-r n] [-p partition] [--hold] [--parsable] [-t minutes]
              [-D path] [--no-kill] [--overcommit]
              [--input file] [--output file] [--error file]
              [--time-min=minutes] [--licenses=names] [--clusters=cluster_names]
              [--chdir=directory] [--oversubscribe] [-m dist] [-J jobname]
              [--verbose] [--gid=group] [--uid=user]
              [--contiguous] [--mincpus=n] [--mem=MB] [--tmp=MB] [-C list]
              [--account=name] [--dependency=type:jobid[+time]] [--comment=name]
              [--mail-type=type] [--mail-user=user] [--nice[=value]] [--wait]
              [--requeue] [--no-requeue] [--ntasks-per-node=n] [--propagate]
              [--nodefile=file] [--nodelist=hosts] [--exclude=hosts]
              [--network=type] [--mem-per-cpu=MB] [--qos=qos] [--gres=list]
              [--mem-bind=...] [--reservation=name] [--mcs-label=mcs]
              [--cpu-freq=min[-max[:gov]]] [--power=flags] [--gres-flags=opts]
              [--switches=max-switches{@max-time-to-wait}] [--reboot]
              [--core-spec=cores] [--thread-spec=threads]
              [--bb=burst_buffer_spec] [--bbf=burst_buffer_file]
              [--array=index_values] [--profile=...] [--ignore-pbs] [--spread-job]
              [--export[=names]] [--export-file=file|fd] [--delay-boot=mins]
              [--use-min-nodes]
              [--cpus-per-gpu=n] [--gpus=n] [--gpu-bind=...] [--gpu-freq=...]
              [--gpus-per-node=n] [--gpus-per-socket=n] [--gpus-per-task=n]
              [--mem-per-gpu=MB]
              executable [args...]"""
# What of one component of a heterogeneous job holds for the next ones, too.
KEPT = frozenset(
    (
        *(
            "account",
            "begin",
            "chdir",
            "cluster_constraint",
            "comment",
            "container",
            "deadline",
            "delay_boot",
            "dependency",
            "error",
            "exclude",
        ),
        *(
            "export",
            "export_file",
            "gid",
            "hint",
            "hold",
            "input",
            "job_name",
            "kill_on_invalid_dep",
            "mem",
            "nice",
            "no_requeue",
            "output",
            "prefer",
        ),
        *("qos", "reboot", "requeue", "reservation", "time", "time_min", "uid"),
    )
)
