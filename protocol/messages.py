"""Every message that crosses a connection, declared once.

Place: the contract between daemons and commands. A message is a frozen, array-like `msgspec.Struct`
with an integer tag; on the wire `[tag, field, field, ...]` in msgpack. Decoding checks every type;
unknown tags and wrong types raise `msgspec.ValidationError`. New fields go to the end and have a
default, so that an older sender is understood. After a change run `make wire`: commands read a
generated table of tags and field names, because importing msgspec would cost them 30 ms a start.

Times are seconds of the cluster's clock since the epoch; durations are in seconds; memory in MB.
"""

from typing import Any, ClassVar, Final

import msgspec

from understudy.model.associations import AccountingUser, Association, Tres, Wckey
from understudy.model.qos import Qos


class Message(msgspec.Struct, frozen=True, array_like=True):
    """Base of all messages."""

    # Bulk messages may be longer than the ordinary frame limit; see protocol.frames.
    bulk: ClassVar[bool] = False


# --- answers --------------------------------------------------------------------------------------


class Ok(Message, frozen=True, tag=1):
    """It is done (and on disk, where state is kept there)."""


class Failure(Message, frozen=True, tag=2):
    """It was refused. `code` is Slurm's error number, `text` what the user reads."""

    code: int
    text: str


class Rows(Message, frozen=True, tag=3):
    """Rows of a table, the columns in the order that was asked for. See understudy.model.records
    for the columns.
    """

    rows: list[list[Any]]
    now: float
    last_update: float = 0.0
    more: bool = False  # another message with rows follows


# --- commands to the controller -------------------------------------------------------------------


class Emulation(Message, frozen=True, tag=10):
    """How an emulated job behaves: runs `run_s` seconds, then ends with `exit_code`, or by `signal`
    if not 0.

    `fault`: "cancelled" if its owner cancels it then, "memory" if it has used more memory than it
    had. `task_run_s` and `task_end` (exit code, signal, fault): for an array, by task number, where
    tasks differ.
    """

    run_s: float
    exit_code: int = 0
    signal: int = 0
    task_run_s: dict[str, float] = {}
    fault: str = ""
    task_end: dict[str, tuple[int, int, str]] = {}
    tag: str = ""  # what the submitter calls the job


class JobSpec(Message, frozen=True, tag=11):
    """What a submitter asks for; None or "" where nothing was said. Names follow sbatch(1)."""

    name: str = ""
    partition: str = ""
    account: str = ""
    qos: str = ""
    wckey: str = ""
    reservation: str = ""
    comment: str = ""
    time_limit_s: int | None = None  # sbatch rounds up to whole minutes; -1 is UNLIMITED
    time_min_s: int | None = None
    begin_time: float | None = None
    deadline: float | None = None
    min_nodes: int | None = None
    max_nodes: int | None = None
    num_tasks: int | None = None
    cpus_per_task: int | None = None
    ntasks_per_node: int | None = None
    ntasks_per_socket: int | None = None
    ntasks_per_core: int | None = None
    threads_per_core: int | None = None
    min_cpus_node: int | None = None
    mem_per_node_mb: int | None = None  # 0 is all memory of each node
    mem_per_cpu_mb: int | None = None
    tmp_disk_mb: int | None = None
    features: str = ""
    required_nodes: str = ""
    excluded_nodes: str = ""
    contiguous: bool = False
    exclusive: bool = False
    oversubscribe: bool = False
    overcommit: bool = False
    licenses: str = ""
    gres: str = ""
    dependency: str = ""
    array: str = ""
    nice: int = 0
    priority: int | None = None
    hold: bool = False
    requeue: bool | None = None
    no_kill: bool = False
    kill_signal: int | None = None
    kill_signal_before_s: int = 60
    kill_signal_batch: bool = False
    work_dir: str = ""
    std_in: str = ""
    std_out: str = ""
    std_err: str = ""
    open_mode: str = ""
    mail_type: str = ""
    mail_user: str = ""
    environment: list[str] = []
    arguments: list[str] = []  # of the script
    command: str = ""  # the script's name, or "(null)" / "wrap"
    distribution: str = ""
    submit_line: str = ""
    extra: dict[str, str] = {}  # options that decide nothing: shown, or told to the job
    prefer: str = ""
    tres_per_job: str = ""  # of --gpus, as `gres:gpu:a100:2`; `gres` is what is asked for each node
    tres_per_socket: str = ""  # of --gpus-per-socket
    tres_per_task: str = ""  # of --gpus-per-task
    cpus_per_tres: str = ""  # of --cpus-per-gpu
    mem_per_tres: str = ""  # of --mem-per-gpu, MB
    ntasks_per_tres: int | None = None  # of --ntasks-per-gpu
    gres_flags: str = ""
    # --signal=R: may be on nodes of reservations with a MaxStartDelay of as long
    kill_signal_reservation: bool = False
    spread_job: bool = False
    use_min_nodes: bool = False
    switches: int | None = None  # leaf switches that its nodes may be on
    switches_wait_s: int | None = None  # for them; None: as long as max_switch_wait says
    sockets_per_node: int | None = None
    cores_per_socket: int | None = None
    extra_node_info: bool = False  # -B was given, which is in the two above and threads_per_core
    hint: str = ""
    exclusive_for: str = ""  # of --exclusive=user and --exclusive=mcs
    batch_features: str = ""  # of --batch
    kill_on_invalid_dep: bool | None = None  # None: as the site says
    site_factor: int = 0  # what an administrator has set


class SubmitJob(Message, frozen=True, tag=12):
    """sbatch. Answered by `Submitted` or `Failure`. `user_id` may differ from the connection's only
    for root and SlurmUser (-1: the connection's).
    """

    spec: JobSpec
    script: str
    emulation: Emulation | None = None
    user_id: int = -1
    group_id: int = -1
    test_only: bool = False
    components: list[JobSpec] = []  # of a heterogeneous job: all but the first, which is `spec`
    token: str = ""  # chosen by the command: the same once more is the same submission


class Submitted(Message, frozen=True, tag=13):
    job_id: int
    note: str = ""  # printed to stderr by sbatch if not empty


class ForeseeJob(Message, frozen=True, tag=51):
    """A look at a submission before it is made: would it be taken in, and would the job start if it
    were alone on the cluster as it is now?

    Nothing is changed. Begin times, deadlines and dependencies are left out of account. Answered by
    `Foreseen`; a `Failure` is how the submission would be refused.
    """

    submission: SubmitJob


class Foreseen(Message, frozen=True, tag=52):
    """What there is to say of a submission that would be taken in. Its fields begin as those of
    `Submitted`: sbatch itself may have asked.
    """

    cpus: int  # that it asks for, all components together
    reason: str = ""  # why it would not start, as squeue shows it; "": it would
    tasks: int = 1  # of an array


class Query(Message, frozen=True, tag=14):
    """squeue, sinfo, scontrol show. Answered by `Rows`, one row a record, the columns as in
    `columns`.

    `where` keeps records whose column is one of the values. Unknown tables or columns are a
    `Failure`.
    """

    table: str  # jobs, nodes, partitions, config, ping
    columns: list[str]
    where: dict[str, list[Any]] = {}
    all_partitions: bool = True  # hidden ones, too
    in_parts: bool = False  # many rows may come in several messages


class CancelJobs(Message, frozen=True, tag=15):
    """scancel. Each of `job_ids` ("17", "17_3", "17_[1-4]"), or with none given all that match
    `where` (columns of the jobs table).

    Beside `job_ids`, the column `state` of `where` says in which states they may be: a job that has
    started since somebody looked is not meant.
    """

    job_ids: list[str]
    signal: int | None = None  # None: cancel; else send this signal
    where: dict[str, list[Any]] = {}
    batch_only: bool = False
    full: bool = False
    hurry: bool = False


class JobResults(Message, frozen=True, tag=16):
    """What became of each job: (job id as given, error code or 0, text)."""

    results: list[tuple[str, int, str]]


class UpdateJobs(Message, frozen=True, tag=17):
    """scontrol update jobid=... ; `changes` has Slurm's key names in lower case and the user's
    text. Answered by `JobResults`.
    """

    job_ids: list[str]
    changes: dict[str, str]


class ControlJobs(Message, frozen=True, tag=18):
    """scontrol hold | uhold | release | requeue | requeuehold | suspend | resume | top. Answered by
    `JobResults`.
    """

    action: str
    job_ids: list[str]
    where: dict[str, list[Any]] = {}
    # of a requeue: incomplete (leave jobs alone that do not run), special_exit
    options: list[str] = []


class UpdateNodes(Message, frozen=True, tag=19):
    """scontrol update nodename=... ; `nodes` is a host list expression. Answered by `Ok` or
    `Failure`.
    """

    nodes: str
    changes: dict[str, str]


class RebootNodes(Message, frozen=True, tag=140):
    """scontrol reboot; `nodes` is a host list expression or ALL, `next_state` RESUME, DOWN or
    nothing. Answered by `Ok` or `Failure`.
    """

    nodes: str
    asap: bool = False
    next_state: str = ""
    reason: str = ""


class UpdateStep(Message, frozen=True, tag=141):
    """scontrol update stepid=... : the time limit of a step, or with `step` "" of all of a job's.
    Answered by `Ok` or `Failure`.
    """

    job_id: str
    step: str
    time_limit: str


class NotifyJob(Message, frozen=True, tag=142):
    """scontrol notify: a line for whoever watches the job's output. Answered by `Ok` or
    `Failure`.
    """

    job_id: str
    text: str


class SetConfiguration(Message, frozen=True, tag=143):
    """scontrol setdebug | setdebugflags | schedloglevel | fsdampeningfactor: keys of slurm.conf
    that change until it is read again.

    DebugFlags are given as `+a,b` or `-a,b`. Answered by `Ok` or `Failure`.
    """

    changes: dict[str, str]


class GetStatistics(Message, frozen=True, tag=144):
    """sdiag. Answered by `Statistics`, or with `reset` by `Ok` or `Failure`."""

    reset: bool = False


class Statistics(Message, frozen=True, tag=145):
    """What the controller has counted: numbers by name, and requests by type and by user: (name,
    number, count, microseconds in all).
    """

    now: float
    since: float
    numbers: dict[str, int]
    requests: list[tuple[str, int, int, int]] = []
    users: list[tuple[str, int, int, int]] = []


class UpdatePartition(Message, frozen=True, tag=20):
    """scontrol update | create | delete partition. Answered by `Ok` or `Failure`."""

    action: str  # update, create, delete
    name: str
    changes: dict[str, str]


class ChangeNodeTable(Message, frozen=True, tag=48):
    """scontrol create | delete node. Answered by `Ok` or `Failure`. `state`: of new nodes, FUTURE
    or CLOUD.
    """

    action: str  # create, delete
    nodes: str
    state: str = ""


class UpdateReservation(Message, frozen=True, tag=28):
    """scontrol update | create | delete reservation. Answered by `ReservationChanged`, `Ok` or
    `Failure`.

    `changes` has Slurm's key names in lower case, with `+` or `-` behind it where a list is
    changed; times are seconds since the epoch.
    """

    action: str  # update, create, delete
    name: str
    changes: dict[str, str]


class ReservationChanged(Message, frozen=True, tag=29):
    """The name of a reservation that was created or changed."""

    name: str


class Reconfigure(Message, frozen=True, tag=21):
    """scontrol reconfigure: read slurm.conf again."""


class Shutdown(Message, frozen=True, tag=22):
    """scontrol shutdown: end after saving state. A controller ends its node daemons, too, unless it
    is to end alone.
    """

    alone: bool = False


class Ping(Message, frozen=True, tag=23):
    """Are you there? Answered by `Ok`."""


class GetLeader(Message, frozen=True, tag=46):
    """Is it you who leads the cluster? To a controller, from anybody. Answered by `Leader`."""


class Leader(Message, frozen=True, tag=47):
    """A controller's word: its name among the daemons, whether it leads, and the fencing number of
    its lease (0: there are no backup controllers, or it does not lead).
    """

    name: str
    leads: bool
    fence: int


class Lead(Message, frozen=True, tag=53):
    """A controller to node daemons: from now on it is I who lead, and under a higher fencing number
    than who did before. Answered by `Ok`.
    """

    fence: int


class TakeOver(Message, frozen=True, tag=54):
    """scontrol takeover, to a backup controller. Answered by `Ok` when it will lead."""


class GetScript(Message, frozen=True, tag=24):
    """scontrol write batch_script. Answered by `Script`."""

    job_id: str


class Script(Message, frozen=True, tag=25):
    text: str


class GetBufferStatus(Message, frozen=True, tag=186):
    """scontrol show bbstat and dwstat: what the site's program says of the burst buffers. Answered
    by `BufferStatus`.
    """

    words: list[str]


class BufferStatus(Message, frozen=True, tag=187):
    text: str


class SetTrigger(Message, frozen=True, tag=150):
    """strigger --set. Answered by `Ok` or `Failure`. `resource`: job, node, slurmctld, slurmdbd,
    database or other; of nodes `*` means all.
    """

    resource: str
    resource_id: str
    events: list[str]
    offset_s: int
    program: str
    is_permanent: bool = False


class ClearTriggers(Message, frozen=True, tag=151):
    """strigger --clear: the triggers that match all that is given (0, and -1 for the user:
    anything). Answered by `Ok` or `Failure`.
    """

    trigger_id: int = 0
    job_id: int = 0
    user_id: int = -1


class GetCrontab(Message, frozen=True, tag=152):
    """scrontab -l and -e: a user's file (-1: the sender's). Answered by `Crontab` or `Failure`."""

    user_id: int = -1


class Crontab(Message, frozen=True, tag=153):
    text: str


class SetCrontab(Message, frozen=True, tag=154):
    """scrontab: put this file in place of a user's; without text there is none any more. Answered
    by `CrontabSet` or `Failure`.

    `entries`: of each entry its time, its first and last line (with its options, from 1), what it
    asks for, and its script.
    """

    text: str
    entries: list[tuple[str, int, int, JobSpec, str]]
    user_id: int = -1
    group_id: int = -1


class CrontabSet(Message, frozen=True, tag=155):
    """The entries' jobs; or the first entry whose job was refused, and why: then nothing has
    changed.
    """

    job_ids: list[int]
    failed_entry: int = -1
    failure: str = ""


class AwaitEmpty(Message, frozen=True, tag=26):
    """Answered with `Ok` when no job is pending, running or completing (held jobs count: they are
    pending). Used by replay.
    """


class BreakAtStart(Message, frozen=True, tag=27):
    """understudy clock break job ID: stop virtual time when the job starts. Answered by `Ok` or
    `Failure`.
    """

    job_id: str


class AllocateJob(Message, frozen=True, tag=30):
    """srun or salloc asks for resources. Answered by `Allocated`, whose job may still be waiting,
    or `Failure`.

    `immediate`: it must start now or not at all.
    """

    spec: JobSpec
    immediate: bool = False
    user_id: int = -1
    group_id: int = -1
    components: list[JobSpec] = []  # of a heterogeneous job: all but the first, which is `spec`
    token: str = ""  # as of SubmitJob


class Allocated(Message, frozen=True, tag=31):
    """The resources of an interactive job, or, not `is_running`, that it waits for them."""

    job_id: int
    is_running: bool
    nodes: str = ""
    environment: list[str] = []
    state: int = 0  # model.states.JobState
    end_time: int | None = None
    credential: bytes = b""  # lets its owner send files to the nodes (sbcast)
    # name, address and nodes of those that stand for its nodes
    daemons: list[tuple[str, str, str]] = []
    # the error number that says why it cannot start for now, where that is worth a word
    note: int = 0
    components: list["Allocated"] = []  # of a heterogeneous job: all, in their order
    # nothing has to be done on its nodes, or by the site's programs, before it may begin
    is_ready: bool = True
    notice: str = ""  # what its owner is told of its end
    is_watched: bool = False  # it is ended when nobody waits for its end any more


class AwaitJob(Message, frozen=True, tag=32):
    """Answered by `Allocated` when the job has started or is over; `until_end`: when it is over;
    `until_ready`: when its nodes are ready, too.
    """

    job_id: int
    until_end: bool = False
    until_ready: bool = False


class GetAllocation(Message, frozen=True, tag=33):
    """The resources of a job, for its owner. Answered by `Allocated` or `Failure`."""

    job_id: int


class CompleteJob(Message, frozen=True, tag=34):
    """srun or salloc is done with its job. Answered by `Ok` or `Failure`."""

    job_id: int
    exit_code: int
    exit_signal: int = 0


class StepSpec(Message, frozen=True, tag=35):
    """What srun asks for within a job; None or "" where nothing was said. Names follow srun(1)."""

    name: str = ""
    min_nodes: int | None = None
    max_nodes: int | None = None
    num_tasks: int | None = None
    cpus_per_task: int | None = None
    ntasks_per_node: int | None = None
    nodes: str = ""  # --nodelist; with the distribution "arbitrary" one entry a task
    excluded_nodes: str = ""
    relative: int | None = None
    distribution: str = ""
    overlap: bool = False
    exact: bool = False
    overcommit: bool = False
    mem_per_node_mb: int | None = None
    mem_per_cpu_mb: int | None = None
    time_limit_s: int | None = None
    submit_line: str = ""
    host: str = ""  # where srun runs
    pid: int = 0
    sends_output: bool = True  # False: nobody reads it
    # a step in several components of a heterogeneous job has the number that it was given in the
    # first
    step_id: int | None = None
    gres: str | None = None  # of each node; None: nothing was said, "": none
    tres_per_step: str = ""
    tres_per_task: str = ""
    # what is shown of it besides: tres_per_node, tres_bind ..., as in model.records; empty: nothing
    # of generic resources
    asked: dict[str, str] = {}
    ports: int = 0  # that each node is to keep


BATCH_STEP: Final = -5


class CreateStep(Message, frozen=True, tag=36):
    """srun: a step of a running job. Answered by `StepCreated` or `Failure`."""

    job_id: int
    spec: StepSpec
    token: str = ""  # chosen by srun: the same once more is the same step


class StepCreated(Message, frozen=True, tag=37):
    """A step: its nodes, the tasks of each (global numbers) and the CPUs, what its credential is,
    and which daemons stand for the nodes.
    """

    job_id: int
    restart: int
    step_id: int
    nodes: str
    tasks: list[list[int]]
    cpus: list[int]
    credential: bytes
    daemons: list[tuple[str, str, str]]  # name, address, nodes
    tree_width: int
    environment: list[str]
    end_time: int | None = None
    kill_wait_s: int = 30
    user: str = ""
    end_time_of_step: int | None = None
    # how many on each node, and their numbers; empty where the job has no generic resources
    gpus: list[tuple[int, list[int]]] = []
    mpi_default: str = "none"
    memory_mb: list[int] = []  # of each node; 0: nobody said


class GetStep(Message, frozen=True, tag=38):
    """sattach and sstat: a running step, as it was created; BATCH_STEP: the job's script. Answered
    by `StepCreated` or `Failure`.
    """

    job_id: int
    step_id: int


class AwaitStep(Message, frozen=True, tag=39):
    """srun: answered by `Ok` when the controller knows that the step has ended."""

    job_id: int
    step_id: int


# --- node daemons to the controller ---------------------------------------------------------------


class RegisterNodes(Message, frozen=True, tag=40):
    """A node daemon announces the nodes for which it stands. Answered by `Registered`."""

    daemon: str  # its name among the participants
    address: str  # where it listens: tcp:HOST:PORT or unix:PATH
    nodes: str  # host list expression
    boot_time: float
    slurmd_start_time: float
    # job and restart count: those of which something is left
    running_jobs: list[tuple[int, int]] = []
    jobs_of_steps: list[tuple[int, int]] = []  # likewise: those of which only steps are there


class Registered(Message, frozen=True, tag=41):
    """Jobs (with restart counts) that the node daemon has and the controller does not know any
    more: end them.
    """

    unknown_jobs: list[tuple[int, int]] = []


class FindJobs(Message, frozen=True, tag=49):
    """The controller misses jobs (with restart counts) in a registration of the node daemon that
    took them. Answered by `JobsFound`.
    """

    jobs: list[tuple[int, int]]


class JobsFound(Message, frozen=True, tag=50):
    """Those of the jobs that are there after all, or have ended there, of which the controller has
    yet to hear. The others are lost.
    """

    jobs: list[tuple[int, int]] = []


class BatchComplete(Message, frozen=True, tag=42):
    """The batch script of a job has ended: `exit_code` 0..255, `signal` 0 or what ended it.
    `timed_out`: ended by its exact time limit.

    A daemon that stands for all of an emulated job's nodes has run the epilog, too, and says so in
    `epilog_nodes`: no TerminateJob is needed then.
    """

    job_id: int
    # the job's restart count at launch, so that late news of an earlier run is recognised
    restart: int
    exit_code: int
    signal: int
    timed_out: bool = False
    node: str = ""
    # nodes that are free of the job already: an emulated job leaves nothing to clean up
    epilog_nodes: str = ""
    # user_cpu_us, system_cpu_us, and what model.task_usage names: of the script and what it started
    usage: dict[str, int] = {}
    # "prolog": it failed, and the script was not run; "memory": processes were killed, as the job
    # used more than it had; "killed": the job was
    fault: str = ""


class EpilogComplete(Message, frozen=True, tag=43):
    """The nodes (host list expression) are free of the job."""

    job_id: int
    restart: int
    nodes: str
    failed: str = ""  # those of them on which the epilog failed


class PrologComplete(Message, frozen=True, tag=45):
    """On these nodes the prolog has ended; `failed`: on which of them it failed."""

    job_id: int
    restart: int
    nodes: str
    failed: str = ""


class StepComplete(Message, frozen=True, tag=44):
    """On these nodes the step's tasks have ended; the highest exit code, and what signal ended one
    if any.
    """

    job_id: int
    restart: int
    step_id: int
    nodes: str
    exit_code: int
    exit_signal: int
    usage: dict[str, int] = {}  # user_cpu_us, system_cpu_us, and what model.task_usage names
    fault: str = ""  # "killed": it used more memory than it had


# --- the controller to node daemons ---------------------------------------------------------------


class LaunchBatch(Message, frozen=True, tag=60):
    """Run a batch job whose first node is one of the daemon's. Answered by `Ok` or `Failure`."""

    job_id: int
    restart: int
    nodes: str
    start_time: int
    credential: bytes
    user_id: int
    group_id: int
    emulation: Emulation | None = None
    script: str = ""
    spec: JobSpec | None = None  # with the real executor
    environment: list[str] = []
    # textbook policies: the emulated job's end counts from start_time, and it is ended at this
    # limit
    exact_limit_s: int | None = None
    memory_mb: int = 0  # what the job has on its first node; 0: nobody said
    program_environment: list[str] = []  # for the prolog
    # an emulated job begins so much later, as others are launched before it
    begins_after_s: float = 0.0
    # of its first node, as far as the sender knows (epoch); a node that has booted since does not
    # take it: a former life of it may have. 0: nobody said
    boot_time: int = 0


class LaunchProlog(Message, frozen=True, tag=72):
    """Run the prolog for a job on these of its nodes, for which the receiver stands. Answered by
    `Ok` or `Failure`, and later by `PrologComplete`.
    """

    job_id: int
    restart: int
    nodes: str
    program_environment: list[str] = []


class CheckHealth(Message, frozen=True, tag=73):
    """Run HealthCheckProgram for these nodes. Answered by `Ok` at once."""

    nodes: str


class TerminateJob(Message, frozen=True, tag=61):
    """End what is left of a job on the nodes and run the epilog. Each daemon sends `EpilogComplete`
    when done, also for a job it does not know.

    `nodes` (host list expression) are those of the job for which the receiver stands.
    """

    job_id: int
    restart: int
    nodes: str = ""
    program_environment: list[str] = []  # for the epilog, where there is one
    # what its output says of that, where it is neither somebody's wish nor the time limit
    why: str = ""
    # its script is told to end now, and emulated nodes without it are clean no sooner than the one
    # that has it
    lingers: bool = False


class SignalJob(Message, frozen=True, tag=62):
    """Send a signal to a job's processes. `batch_only`: to the script alone."""

    job_id: int
    restart: int
    signal: int
    batch_only: bool = False


class NotifyTasks(Message, frozen=True, tag=146):
    """A line of text for the error output of a job's script. Answered by `Ok`."""

    job_id: int
    restart: int
    text: str


class SignalTasks(Message, frozen=True, tag=66):
    """Send a signal to a step's tasks; `ends`: they are to end, and those who read their output
    hear of it. A command needs the credential.
    """

    job_id: int
    restart: int
    step_id: int
    signal: int
    ends: bool = False
    credential: bytes = b""


class LaunchTasks(Message, frozen=True, tag=67):
    """srun to the node daemons: run the tasks of a step. `tasks` and `cpus` have one entry for each
    of `nodes`.

    The tasks' streams go to `io_address`, where `io_key` says who speaks, unless they are files
    (`std_out` and so on: patterns as in srun(1), "" for srun itself, "none").
    """

    credential: bytes
    job_id: int
    restart: int
    step_id: int
    nodes: str
    tasks: list[list[int]]
    cpus: list[int]
    user: str
    arguments: list[str]
    environment: list[str]
    work_dir: str
    umask: int
    io_address: str
    io_key: bytes
    std_in: str = ""
    std_out: str = ""
    std_err: str = ""
    append: bool = False
    end_time: int | None = None
    task_prolog: str = ""
    task_epilog: str = ""
    programs: list[tuple[list[int], list[str]]] = []  # --multi-prog: these tasks, this command line
    pty: tuple[int, int] | None = None  # rows and columns
    mpi: str = ""
    job_name: str = ""
    unbuffered: bool = False
    stdin_task: int = -1  # the one that reads what srun reads; -1: all, -2: none
    first_node: int = 0  # of a step in several components: how many of its nodes come before these
    layout: list[list[int]] = []  # and the tasks of all its nodes
    cpu_bind: str = ""  # `rank`, `map_cpu:LIST`, `mask_cpu:LIST`, `cores` ...
    gpus: list[tuple[int, list[int]]] = []  # of each node, as in `StepCreated`
    gpu_bind: str = ""  # `map_gpu:LIST`, `single:2`, `per_task:1` ...
    memory_mb: list[int] = []  # of each node, as in `StepCreated`


class AttachTasks(Message, frozen=True, tag=68):
    """sattach: send a copy of the tasks' output there as well, and take input from there."""

    credential: bytes
    job_id: int
    restart: int
    step_id: int
    io_address: str
    io_key: bytes


class StatTasks(Message, frozen=True, tag=69):
    """sstat: what the tasks of a step use. Answered by `TaskStatistics`."""

    credential: bytes
    job_id: int
    restart: int
    step_id: int


class TaskStatistics(Message, frozen=True, tag=70):
    """By task: [number, node, pid, CPU microseconds, bytes resident, bytes of address space, pages
    faulted in, bytes read, bytes written].

    Of a script all its pids are told, as a text.
    """

    tasks: list[list[Any]]


class SendFile(Message, frozen=True, tag=71):
    """sbcast: a piece of a file for each of the nodes. The first begins it, the last makes it
    complete.
    """

    credential: bytes
    job_id: int
    path: str
    number: int
    data: bytes
    is_last: bool
    mode: int
    user_name: str
    force: bool = False
    times: tuple[float, float] | None = None


class Forward(Message, frozen=True, tag=63):
    """A message for many nodes, on its way down the tree. Answered by `NodeReplies`.

    `inner` is the encoded message. `nodes` are those for which the receiver answers, itself
    included if it stands for one of them. `order`: the controller's signature of `inner`, for those
    to whom it is handed on (understudy.auth.credential).
    """

    inner: bytes
    nodes: str
    width: int
    timeout_s: float
    order: bytes = b""


class NodeReply(Message, frozen=True, tag=64):
    """What the nodes (host list expression) answered: code 0 and "" if all is well."""

    nodes: str
    code: int
    text: str


class NodeReplies(Message, frozen=True, tag=65):
    replies: list[NodeReply]


# --- the clock service ----------------------------------------------------------------------------
# Participants' reports and grants are the hot path and have frames of their own
# (understudy.clock.protocol).


class ClockControl(Message, frozen=True, tag=80):
    """understudy clock pause | resume | step | run-until | rate | break | status. Answered by
    `ClockStatus` or `Failure`.
    """

    action: str
    value: float = 0.0
    text: str = ""


class ClockStatus(Message, frozen=True, tag=81):
    mode: str
    now: float
    rate: float
    state: str  # running, paused, idle, ended
    reason: str = ""
    participants: list[str] = []
    windows: int = 0


# --- accounting -----------------------------------------------------------------------------------


class AccountingChange(Message, frozen=True, tag=100):
    """sacctmgr add | modify | delete. Answered by `AccountingChanged`, or `Failure` where it is not
    allowed.

    `names` are those to add; `where` chooses what to modify or delete, values by condition
    (clusters, accounts, users, partitions, parents, names). `set` has field names of the record
    (understudy.model.associations, .qos) and values of their types; None or, by resource, -1 takes
    one away. Lists of qualities of service may have "+name" and "-name". Without `commit` nothing
    is changed, and the answer says what would be.
    """

    action: str
    entity: str  # cluster, account, user, qos, coordinator, job
    names: list[str] = []
    set: dict[str, Any] = {}
    where: dict[str, list[str]] = {}
    commit: bool = True


class AccountingChanged(Message, frozen=True, tag=101):
    """What was changed, or would be: names of the records themselves, and associations (cluster,
    account, parent's account, user, partition) and WCKeys (user, key, cluster) along with them.
    `problems`: what could not be done, a word and the names that go with it.
    """

    names: list[str] = []
    associations: list[tuple[str, str, str, str, str]] = []
    wckeys: list[tuple[str, str, str]] = []
    problems: list[tuple[str, list[str]]] = []


class AccountingQuery(Message, frozen=True, tag=102):
    """sacctmgr show, sacct, sshare. Answered by `Rows`: the columns of the table in the order that
    was asked for; [] for all, in the table's own.

    Tables: clusters, accounts, users, associations, qos, tres, wckeys, transactions, events,
    reservations, problems, jobs, steps, usage, config.
    """

    table: str
    columns: list[str]
    where: dict[str, list[Any]] = {}
    flags: list[str] = []


class GetAssociations(Message, frozen=True, tag=103):
    """The controller of a cluster announces itself, and asks for all that concerns it. Answered by
    `Associations`.
    """

    cluster: str
    host: str
    port: int
    nodes: str = ""  # host list expression
    tres: dict[str, int] = {}  # what the cluster has, by name


class FederationPlace(msgspec.Struct, frozen=True, array_like=True):
    """What a cluster is in its federation, and where its controller said that it is."""

    name: str
    cluster: str
    host: str
    port: int
    number: int
    state: str
    features: tuple[str, ...] = ()


class Associations(Message, frozen=True, tag=104):
    """The whole state of accounting as far as it concerns one cluster."""

    bulk: ClassVar[bool] = True

    cluster: str
    number: int
    associations: list[Association]
    qos: list[Qos]
    users: list[AccountingUser]
    wckeys: list[Wckey]
    tres: list[Tres]
    federation: FederationPlace | None = None
    # by `name@server`: how many of those that clusters share are this one's
    licenses: dict[str, int] = {}


class AssociationsChanged(Message, frozen=True, tag=105):
    """What has changed since `number` - 1, told to the cluster's controller; answered by `Ok` when
    it has been taken over.
    """

    bulk: ClassVar[bool] = True

    cluster: str
    number: int
    associations: list[Association] = []
    removed_associations: list[int] = []
    qos: list[Qos] = []
    removed_qos: list[str] = []
    users: list[AccountingUser] = []
    removed_users: list[str] = []
    wckeys: list[Wckey] | None = None  # all of them, if any has changed
    tres: list[Tres] = []
    # RawUsage=0: what these have used, with all below them, is forgotten
    unused_associations: list[int] = []
    unused_qos: list[str] = []
    licenses: dict[str, int] | None = None  # all of them, if any has changed
    federation: FederationPlace | None = None
    has_moved: bool = False  # `federation` is what the cluster has now


class JobRecord(Message, frozen=True, tag=106):
    """A job as accounting keeps it: told when it was submitted, started, ended, and each replaces
    what was told of the same run before.
    """

    job_id: int
    submit_time: int
    restarts: int
    user: str
    user_id: int
    group_id: int
    group: str = ""
    name: str = ""
    account: str = ""
    association_id: int = 0
    partition: str = ""
    qos: str = ""
    wckey: str = ""
    state: int = 0  # model.states.JobState
    reason: str = "None"
    eligible_time: int | None = None
    start_time: int | None = None
    end_time: int | None = None
    suspended_s: int = 0
    exit_code: int = 0
    exit_signal: int = 0
    derived_exit_code: int = 0
    derived_exit_signal: int = 0
    nodes: str = ""
    node_count: int = 0
    tres_requested: dict[str, int] = {}
    tres_allocated: dict[str, int] = {}
    time_limit_min: int | None = None
    priority: int = 0
    constraints: str = ""
    work_dir: str = ""
    submit_line: str = ""
    comment: str = ""
    admin_comment: str = ""
    system_comment: str = ""
    reservation: str = ""
    flags: str = ""
    killed_by: int | None = None  # user id
    array_job_id: int = 0
    array_task_id: int | None = None
    array_tasks: str = ""  # of what is left of an array: `[1-20%3]` without the brackets
    container: str = ""
    reservation_id: int = 0
    wckey_id: int = 0
    qos_id: int = 0
    het_job_id: int = 0  # of the heterogeneous job of which it is a component
    het_offset: int = 0
    script: str = ""  # the key of a `JobText`, where batch scripts are kept
    environment: str = ""  # the same


class JobText(Message, frozen=True, tag=112):
    """A batch script, or an environment, a line for each variable. Jobs name it by its key; many
    may have the same.
    """

    key: str
    text: str


class StepRecord(Message, frozen=True, tag=107):
    """A step of a job, as `JobRecord`. `step`: "batch", "extern", "interactive" or its number."""

    job_id: int
    submit_time: int
    restarts: int
    step: str
    name: str = ""
    state: int = 0
    start_time: int | None = None
    end_time: int | None = None
    suspended_s: int = 0
    exit_code: int | None = 0  # None: nobody knows, its node failed
    exit_signal: int = 0
    nodes: str = ""
    node_count: int = 0
    tasks: int = 0
    cpus: int = 0
    tres_allocated: dict[str, int] = {}
    layout: str = ""
    submit_line: str = ""
    killed_by: int | None = None
    user_cpu_us: int = 0
    system_cpu_us: int = 0
    usage: dict[str, int] = {}  # what model.task_usage names


class EventRecord(Message, frozen=True, tag=108):
    """A time for which a node, or with `node` "" the cluster itself, was in a state worth a record.
    It ends what was open of the same node; one that ends when it begins does no more than that,
    unless it has a reason.
    """

    node: str
    start_time: int
    end_time: int | None = None
    state: int = 0
    reason: str = ""
    user_id: int | None = None
    tres: dict[str, int] = {}
    nodes: str = ""  # of a cluster's event


class ReservationRecord(Message, frozen=True, tag=109):
    """A reservation from a time on at which it was made or changed; one that ends when it begins
    never was.
    """

    id: int
    name: str
    start_time: int
    end_time: int
    nodes: str = ""
    tres: dict[str, int] = {}
    flags: str = ""
    associations: list[int] = []


class AccountingRecords(Message, frozen=True, tag=110):
    """What has happened on a cluster, in order. Answered by `Ok` when it is in the database; may
    come twice, the first time behind the second.
    """

    bulk: ClassVar[bool] = True

    cluster: str
    records: list[JobRecord | StepRecord | EventRecord | ReservationRecord | JobText]
    since: float = 0.0  # epoch: when who sends it began to lead
    last: int = 0  # the number of the last record, among those of the sender; 0: it counts none


class DumpArchive(Message, frozen=True, tag=113):
    """sacctmgr archive dump: forget old records. Answered by `Ok` or `Failure`. What is not given
    is as slurmdbd.conf has it.

    `archived`: kinds of records (Event, Job, Resv, Step, TXN, Usage) to write to files before;
    `purges`: how old each kind may get, as `12months`.
    """

    folder: str = ""
    archived: list[str] = []
    purges: dict[str, str] = {}


class LoadArchive(Message, frozen=True, tag=114):
    """sacctmgr archive load: put back what is in a file on the daemon's host. Answered by `Ok` or
    `Failure`.
    """

    path: str


class AwaitRecorded(Message, frozen=True, tag=111):
    """A replay asks the controller: answered by `Ok` when accounting knows all that has happened so
    far, or does not answer.
    """


class FollowJobs(Message, frozen=True, tag=115):
    """A replay asks what becomes of jobs, and has the runs recorded that end from the first time
    on. Answered by `JobRuns` when `batch` runs have ended, sooner if no job is left; with `batch` 0
    now, and unless `after` is None with jobs that are not over, too, with higher numbers than that.
    """

    batch: int
    after: int | None = None


class JobRun(Message, frozen=True, tag=116):
    """One run of a job, or a job that never ran. Times in seconds since the epoch."""

    job_id: int
    tag: str  # of its `Emulation`
    name: str
    array_job_id: int
    # its number; several where one record stands for tasks that wait or have been cancelled
    # together
    array_tasks: str
    het_job_id: int
    het_offset: int
    user: str
    account: str
    partition: str
    qos: str
    submit: int  # when it was queued: after a requeue again
    eligible: int | None
    start: int | None
    end: int | None
    limit_s: int | None
    state: str  # REQUEUED: so ended a run that was requeued by hand
    exit_code: int
    exit_signal: int
    cpus: int
    nodes: str
    node_count: int
    memory_mb: int
    gres: str
    priority: int
    waited_for: str  # the reason that it waited for longest
    reason: str  # why it waits, or how it ended
    reason_detail: str
    restarts: int
    preemptions: int
    scheduler: str  # Main, Backfill, Submit
    first_promise: int | None  # the start that it was first promised
    last_promise: int | None
    promise_moves: int
    reasons: list[tuple[int, str]] = []  # from when it waited for what
    promises: list[tuple[int, int]] = []  # when it was promised which start
    events: list[tuple[int, str, str]] = []  # when, what, and the name of the job that it is due to


class JobRuns(Message, frozen=True, tag=117):
    """Runs that have ended, in that order, and jobs that are not over, if these were asked for.
    `nodes`: when, how many had jobs, and of the others how many were down, drained and without
    power; `shares`: of whole cluster what is due to the account, or to its user.
    """

    ended: list[JobRun]
    unfinished: list[JobRun] = []
    nodes: list[tuple[int, int, int, int, int]] = []
    shares: list[tuple[str, str, float]] = []


AnyMessage = (
    Ok
    | Failure
    | Rows
    | Emulation
    | JobSpec
    | SubmitJob
    | Submitted
    | ForeseeJob
    | Foreseen
    | Query
    | CancelJobs
    | JobResults
    | UpdateJobs
    | ControlJobs
    | UpdateNodes
    | RebootNodes
    | UpdateStep
    | NotifyJob
    | SetConfiguration
    | GetStatistics
    | Statistics
    | NotifyTasks
    | UpdatePartition
    | ChangeNodeTable
    | UpdateReservation
    | ReservationChanged
    | Reconfigure
    | Shutdown
    | GetLeader
    | Leader
    | Lead
    | TakeOver
    | Ping
    | GetScript
    | Script
    | GetBufferStatus
    | BufferStatus
    | SetTrigger
    | ClearTriggers
    | GetCrontab
    | Crontab
    | SetCrontab
    | CrontabSet
    | AwaitEmpty
    | BreakAtStart
    | AllocateJob
    | Allocated
    | AwaitJob
    | AwaitStep
    | GetAllocation
    | CompleteJob
    | StepSpec
    | CreateStep
    | StepCreated
    | GetStep
    | StepComplete
    | SignalTasks
    | LaunchTasks
    | AttachTasks
    | StatTasks
    | TaskStatistics
    | SendFile
    | RegisterNodes
    | Registered
    | FindJobs
    | JobsFound
    | BatchComplete
    | EpilogComplete
    | PrologComplete
    | LaunchBatch
    | LaunchProlog
    | CheckHealth
    | TerminateJob
    | SignalJob
    | Forward
    | NodeReply
    | NodeReplies
    | ClockControl
    | ClockStatus
    | AccountingChange
    | AccountingChanged
    | AccountingQuery
    | GetAssociations
    | Associations
    | AssociationsChanged
    | JobRecord
    | JobText
    | StepRecord
    | EventRecord
    | ReservationRecord
    | AccountingRecords
    | DumpArchive
    | LoadArchive
    | AwaitRecorded
    | FollowJobs
    | JobRun
    | JobRuns
)
