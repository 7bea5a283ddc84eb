"""Which variables programs are told: each with the fact that it tells, and who is told.

Place: under all that compose an environment, the commands among them, so it imports nothing. Each
of them gathers the facts that it knows, by name, and `told` makes variables of them. The facts that
are options have the names of JobSpec's fields. Follows: "OUTPUT ENVIRONMENT VARIABLES" of
sbatch(1), salloc(1) and srun(1); slurm.conf(5), "Prolog and Epilog Scripts"; and what Slurm 22.05.8
was seen to give.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# what the controller says of a job
SCRIPT = 1  # to its batch script
JOB = 1 << 1  # to the script, and to the command that asked for the job
GROUP = 1 << 2  # to both once more of each component
TASKS = 1 << 3  # to the tasks of its steps
NOT_OWN_TASKS = 1 << 4  # of that, not to those of an srun that asked for the job itself
COMMAND = 1 << 5  # to salloc's command, and what salloc adds
WHOLE = 1 << 6  # of that, where a job has components: of all together
COMPONENT = 1 << 7  # and of each
SITE = 1 << 8  # to PrologSlurmctld, EpilogSlurmctld and MailProg
NODES = 1 << 9  # to Prolog and Epilog
RESIZED = 1 << 10  # to who resizes it
# what others add
SBATCH = 1 << 11  # sbatch, to the script
SRUN = 1 << 12  # srun, to tasks
HOST = 1 << 13  # a node, to the script
TASK_HOST = 1 << 14  # a node, to tasks
PROGRAM_HOST = 1 << 15  # a node, to Prolog, Epilog, HealthCheckProgram and those of tasks
UNSET = 1 << 16  # srun and nodes, to who was not told otherwise

_COMMANDS = JOB | TASKS | COMMAND
_ASKED = _COMMANDS | GROUP
_OPTIONS = _ASKED | NOT_OWN_TASKS
_ALL = _COMMANDS | SITE | NODES
_USERS = JOB | TASKS | SITE | NODES
_ON_NODE = HOST | TASK_HOST | PROGRAM_HOST

VARIABLES = {
    # who and what the job is
    "SLURM_CLUSTER_NAME": ("cluster", _ALL | WHOLE),
    "SLURM_WORKING_CLUSTER": ("working_cluster", SRUN | HOST),
    "SLURM_JOB_ID": ("job_id", _ALL | GROUP | WHOLE | COMPONENT),
    "SLURM_JOBID": ("job_id", _ALL | COMPONENT),
    "SLURM_JOB_NAME": ("name", _ASKED | COMPONENT | SITE | SBATCH | SRUN),
    "SLURM_JOB_ACCOUNT": ("account", _ASKED | SITE),
    "SLURM_JOB_COMMENT": ("comment", SITE | NODES),
    "SLURM_JOB_CONSTRAINTS": ("features", SITE | NODES),
    "SLURM_JOB_DEPENDENCY": ("dependency", SCRIPT),
    "SLURM_JOB_GID": ("group_id", _USERS),
    "SLURM_JOB_GROUP": ("group", SITE),
    "SLURM_JOB_LICENSES": ("licenses", SITE | NODES),
    "SLURM_JOB_PARTITION": ("partition", _ALL | GROUP | COMPONENT),
    "SLURM_JOB_QOS": ("qos", _ASKED),
    "SLURM_JOB_RESERVATION": ("reservation", SCRIPT | SITE | NODES),
    "SLURM_JOB_RESTART_COUNT": ("restarts", SITE | NODES),
    "SLURM_RESTART_COUNT": ("restarted", JOB | TASKS),
    "SLURM_JOB_STDIN": ("std_in_path", SITE | NODES),
    "SLURM_JOB_STDOUT": ("std_out_path", SITE | NODES),
    "SLURM_JOB_UID": ("user_id", _USERS),
    "SLURM_UID": ("user_id", NODES),
    "SLURM_JOB_USER": ("user", _USERS),
    "SLURM_JOB_WORK_DIR": ("work_dir", SITE | NODES),
    "SLURM_ARRAY_JOB_ID": ("array_job_id", _ALL | GROUP),
    "SLURM_ARRAY_TASK_COUNT": ("array_count", _ALL | GROUP),
    "SLURM_ARRAY_TASK_ID": ("array_task_id", _ALL | GROUP),
    "SLURM_ARRAY_TASK_MAX": ("array_last", _ALL | GROUP),
    "SLURM_ARRAY_TASK_MIN": ("array_first", _ALL | GROUP),
    "SLURM_ARRAY_TASK_STEP": ("array_step", _ALL | GROUP),
    "SLURM_HET_SIZE": ("components", _COMMANDS | WHOLE),
    "SLURM_PACK_SIZE": ("components", _COMMANDS | WHOLE),
    # its nodes, CPUs, tasks and memory
    "SLURM_NODELIST": ("nodes", _COMMANDS | COMPONENT | NODES | RESIZED),
    "SLURM_JOB_NODELIST": ("nodes", _ASKED | COMPONENT | SITE | RESIZED),
    "SLURM_NNODES": ("node_count", _COMMANDS | COMPONENT | RESIZED | SRUN),
    "SLURM_JOB_NUM_NODES": ("node_count", _ALL | GROUP | COMPONENT | RESIZED),
    "SLURM_JOB_CPUS_PER_NODE": ("cpus_per_node", _ALL | GROUP | COMPONENT | RESIZED),
    "SLURM_NODE_ALIASES": ("node_aliases", COMMAND | COMPONENT | HOST),
    "SLURM_CPUS_PER_TASK": ("cpus_per_task", _ASKED | SBATCH | SRUN),
    "SLURM_NPROCS": ("num_tasks", _ASKED | COMPONENT | SBATCH | SRUN),
    "SLURM_NTASKS": ("num_tasks", _ASKED | COMPONENT | SBATCH | SRUN),
    "SLURM_NTASKS_PER_CORE": ("ntasks_per_core", SCRIPT | SRUN),
    "SLURM_NTASKS_PER_GPU": ("ntasks_per_tres", SBATCH),
    "SLURM_NTASKS_PER_NODE": ("ntasks_per_node", _ASKED | SBATCH),
    "SLURM_NTASKS_PER_SOCKET": ("ntasks_per_socket", SCRIPT | SRUN),
    "SLURM_NTASKS_PER_TRES": ("ntasks_per_tres", SRUN),
    "SLURM_TASKS_PER_NODE": ("tasks_per_node", _ASKED | COMPONENT | SRUN),
    "SLURM_THREADS_PER_CORE": ("threads_per_core", SCRIPT | SRUN),
    "SLURM_MEM_PER_CPU": ("mem_per_cpu_mb", _OPTIONS | SBATCH),
    "SLURM_MEM_PER_NODE": ("mem_per_node_mb", _OPTIONS | SBATCH),
    "SLURM_OVERCOMMIT": ("overcommit", SCRIPT),
    "SLURM_DISTRIBUTION": ("distribution", COMMAND | SBATCH | SRUN),
    "SLURM_DIST_PLANESIZE": ("plane_size", COMMAND | SBATCH | SRUN),
    "SLURM_HINT": ("hint", SBATCH),
    # its generic resources
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": ("mps_percentage", _ASKED),
    "CUDA_VISIBLE_DEVICES": ("devices", JOB | TASK_HOST),
    "GPU_DEVICE_ORDINAL": ("whole_devices", JOB | TASK_HOST),
    "ROCR_VISIBLE_DEVICES": ("whole_devices", JOB | TASK_HOST),
    "SLURM_JOB_GPUS": ("devices", JOB | GROUP),
    "SLURM_STEP_GPUS": ("devices", TASK_HOST),
    "SLURM_GPUS_ON_NODE": ("gpus_on_node", JOB | GROUP | TASK_HOST),
    "SLURM_SHARDS_ON_NODE": ("shards", _ASKED),
    "SLURM_CPUS_PER_GPU": ("cpus_per_gpu", _ASKED),
    "SLURM_MEM_PER_GPU": ("mem_per_gpu", _ASKED),
    "SLURM_GPUS": ("gpus", _OPTIONS),
    "SLURM_GPUS_PER_NODE": ("gpus_per_node", _OPTIONS),
    "SLURM_GPUS_PER_SOCKET": ("gpus_per_socket", _OPTIONS),
    "SLURM_GPUS_PER_TASK": ("gpus_per_task", _OPTIONS),
    "SLURM_GPU_BIND": ("gpu_bind", _OPTIONS),
    "SLURM_GPU_FREQ": ("gpu_freq", _ASKED),
    "SLURMD_TRES_BIND": ("tres_bind", TASK_HOST),
    # how it ended, and what is mailed of it
    "SLURM_JOB_DERIVED_EC": ("derived_exit_code", SITE | NODES),
    "SLURM_JOB_EXIT_CODE": ("status", SITE | NODES),
    "SLURM_JOB_EXIT_CODE2": ("code_and_signal", SITE | NODES),
    "SLURM_JOB_EXIT_CODE_MAX": ("largest_exit_code", SITE),
    "SLURM_JOB_EXIT_CODE_MIN": ("smallest_exit_code", SITE),
    "SLURM_JOB_MAIL_TYPE": ("what_happened", SITE),
    "SLURM_JOB_QUEUED_TIME": ("queued_time", SITE),
    "SLURM_JOB_RUN_TIME": ("run_time", SITE),
    "SLURM_JOB_STATE": ("state", SITE),
    # what its submitter had and asked for
    "SLURM_SUBMIT_DIR": ("submit_dir", COMMAND | SBATCH | UNSET),
    "SLURM_SUBMIT_HOST": ("submit_host", COMMAND | SBATCH | UNSET),
    "SLURM_PRIO_PROCESS": ("nice_of_process", SBATCH | SRUN | UNSET),
    "SLURM_UMASK": ("umask", SBATCH | SRUN),
    "TMPDIR": ("temporary_dir", UNSET),
    "SLURM_EXPORT_ENV": ("export", SBATCH),
    "SLURM_GET_USER_ENV": ("wants_login", SBATCH),
    "SLURM_ACCTG_FREQ": ("acctg_freq", SBATCH),
    "SLURM_CONTAINER": ("container", SBATCH),
    "SLURM_CPU_FREQ_REQ": ("frequencies", SBATCH),
    "SLURM_OPEN_MODE": ("open_mode_letter", SBATCH),
    "SLURM_PROFILE": ("profiled", SBATCH),
    # a step
    "SLURM_STEP_ID": ("step_id", SRUN),
    "SLURM_STEPID": ("step_id", SRUN),
    "SLURM_STEP_NODELIST": ("step_nodes", SRUN),
    "SLURM_STEP_NUM_NODES": ("node_count", SRUN),
    "SLURM_STEP_NUM_TASKS": ("num_tasks", SRUN),
    "SLURM_STEP_TASKS_PER_NODE": ("tasks_per_node", SRUN),
    "SLURM_STEP_LAUNCHER_PORT": ("port", SRUN),
    "SLURM_SRUN_COMM_HOST": ("host", SRUN),
    "SLURM_SRUN_COMM_PORT": ("port", SRUN),
    "SLURM_LAUNCH_NODE_IPADDR": ("host", SRUN),
    "SLURM_LABELIO": ("label", SRUN),
    "SLURM_MEM_BIND_PREFER": ("mem_bind_prefer", SRUN),
    "SLURM_MEM_BIND_SORT": ("mem_bind_sort", SRUN),
    "SRUN_DEBUG": ("loudness", SRUN),
    # a node, and a task there
    "ENVIRONMENT": ("kind", HOST),
    "HOSTNAME": ("node", HOST),
    "SLURMD_NODENAME": ("node", _ON_NODE),
    "SLURM_CONF": ("conf", COMMAND | _ON_NODE),
    "SLURM_CPUS_ON_NODE": ("cpus_on_node", HOST | TASK_HOST),
    "SLURM_GTIDS": ("tasks_on_node", HOST | TASK_HOST),
    "SLURM_LOCALID": ("local_id", HOST | TASK_HOST),
    "SLURM_MPI_TYPE": ("mpi", TASK_HOST),
    "SLURM_PMIX_MAPPING_SERV": ("pmix_mapping", TASK_HOST),
    "SLURM_NODEID": ("node_id", HOST | TASK_HOST),
    "SLURM_PROCID": ("task_id", HOST | TASK_HOST),
    "SLURM_SCRIPT_CONTEXT": ("context", SITE | PROGRAM_HOST),
    "SLURM_TASK_PID": ("pid", HOST | TASK_HOST),
    "SLURM_TOPOLOGY_ADDR": ("address", HOST | TASK_HOST),
    "SLURM_TOPOLOGY_ADDR_PATTERN": ("address_pattern", HOST | TASK_HOST),
}
# and the name of a limit of processes: how it was where the job comes from
RLIMIT = "SLURM_RLIMIT_"
LIMITS = ("CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS")
TMP = "/tmp"  # noqa: S108  what Slurm gives as TMPDIR
# of 22.05, and the number of its select/cons_tres: both are told in SLURM_WORKING_CLUSTER
_PROTOCOL = 9728
_SELECT_PLUGIN = 109


def told(who: int, facts: "Mapping[str, object]") -> dict[str, str]:
    """The variables of these facts for one of the above, or for several. A fact that is None, False
    or "" is told to nobody; True is "1".
    """
    found = {}
    for variable, (fact, whom) in VARIABLES.items():
        value = facts.get(fact) if whom & who else None
        if value is not None and value is not False and value != "":
            found[variable] = "1" if value is True else str(value)
    return found


def handed_on(who: int, environment: "Mapping[str, str]") -> dict[str, str]:
    """Of what somebody was told that which he tells one of the above."""
    return {name: value for name, value in environment.items() if is_for(who, name)}


def is_for(who: int, variable: str) -> bool:
    """Whether a variable is for one of the above."""
    return variable in VARIABLES and bool(VARIABLES[variable][1] & who)


def of_components(environments: "Iterable[Mapping[str, str]]") -> dict[str, str]:
    """What is told of each component, under names that say of which; the older (PACK) are there,
    too.
    """
    return {
        f"{name}_{kind}_GROUP_{group}": value
        for group, environment in enumerate(environments)
        for name, value in environment.items()
        for kind in ("HET", "PACK")
    }


def read(entries: "Iterable[str]") -> dict[str, str]:
    """`NAME=value` each."""
    return dict(entry.partition("=")[::2] for entry in entries)


def written(environment: "Mapping[str, str]") -> list[str]:
    """`NAME=value` each."""
    return [f"{name}={value}" for name, value in environment.items()]


def binding(what: str, loud: str, kind: str, values: str, before: str = "") -> dict[str, str]:
    """How tasks are bound to what is CPU or MEM. `loud`: quiet or verbose; `kind`: with its colon;
    `before`: a word between them.
    """
    name = f"SLURM_{what}_BIND"
    whole = ",".join(word for word in (loud, before, kind + values) if word)
    return {name: whole, f"{name}_VERBOSE": loud, f"{name}_TYPE": kind, f"{name}_LIST": values}


def working_cluster(cluster: str, controller: str) -> str:
    """Where the controller is found without a file. `controller`: HOST:PORT."""
    return f"{cluster}:{controller}:{_PROTOCOL}:{_SELECT_PLUGIN}"


def distribution(text: str) -> dict[str, str]:
    """The facts of --distribution."""
    kind, _, plane = text.partition("=")
    return {"distribution": kind, "plane_size": plane}
