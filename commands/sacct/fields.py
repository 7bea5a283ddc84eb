"""sacct's output fields. Follows sacct(1) "Job Accounting Fields" of 22.05.

Place: commands alone; pure. A field has one way to make its text from a job's record and one from a
step's, which has its job's under "job".
"""

from understudy.commands.sacct.use import disk, of_tasks, size, tres_in, tres_out
from understudy.commands.shared.texts import full_duration, timestamp
from understudy.documents.job_texts import amount, elapsed, nodes
from understudy.documents.states import CANCELLED, job_state
from understudy.model.times import leading_integer
from understudy.model.tres import is_in_megabytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Row = dict[str, Any]
    Make = Callable[[Row], str]
    Fit = Callable[[str, int], str]


class UnknownFieldError(Exception):
    """No field begins like this."""


class Field:
    """One field. `width`: negative for left-justified ones. Texts that are too long are cut and
    marked, times cut, numbers left whole.
    """

    __slots__ = ("fit", "header", "job", "name", "step", "width")

    def __init__(
        self,
        name: str,
        width: int,
        job: "Make",
        step: "Make | None" = None,
        header: str = "",
        fit: "Fit | None" = None,
    ) -> None:
        self.name, self.width, self.job, self.step, self.header, self.fit = (
            name,
            width,
            job,
            step or _blank,
            header or name,
            fit or _marked,
        )

    def with_width(self, width: int) -> "Field":
        """The same, this wide."""
        return Field(self.name, width, self.job, self.step, self.header, self.fit)


def _marked(text: str, size: int) -> str:
    if not size:
        return ""
    return text if len(text) <= size else text[: size - 1] + "+"


def _cut(text: str, size: int) -> str:
    return text[:size]


def _whole(text: str, size: int) -> str:
    return text or ("" if size else " ")


def _blank(_row: "Row") -> str:
    return ""


def _text(name: str) -> "Make":
    return lambda row: str(row[name] if row[name] is not None else "")


def _of_job(make: "Make") -> "Make":
    return lambda row: make(row["job"])


def _when(name: str) -> "Make":
    return lambda row: timestamp(row[name], "Unknown")


def _start(row: "Row") -> str:
    never_ran = row["start_time"] is None and row["end_time"] is not None
    return "None" if never_ran else timestamp(row["start_time"], "Unknown")


def cpus(row: "Row") -> int:
    """CPUs held; of a job that holds none those that it asks for."""
    return amount(row, "tres_allocated", "cpu") or amount(row, "tres_requested", "cpu")


def _tres(name: str) -> "Make":
    def make(row: "Row") -> str:
        amounts = row[name] or {}
        return ",".join(
            [
                f"{each}={size(amounts[each]) if is_in_megabytes(each) else amounts[each]}"
                for each in sorted(amounts)
            ]
        )

    return make


def _cpu_seconds(row: "Row") -> int:
    return elapsed(row) * cpus(row)


def reserved(row: "Row") -> "int | None":
    """How long it waited since it might run, in seconds; None if it may run only later."""
    eligible = row["eligible_time"]
    if eligible is None:
        return 0
    until = row["start_time"] if row["start_time"] is not None else row["end_time"]
    waited = int((row["now"] if until is None else until) - eligible)
    return waited if waited >= 0 else None


def _reserved(row: "Row") -> str:
    waited = reserved(row)
    return "INVALID" if waited is None else full_duration(waited)


def _reserved_cpu(row: "Row") -> str:
    waited = reserved(row)
    return (
        "INVALID"
        if waited is None
        else full_duration(waited * amount(row, "tres_requested", "cpu"))
    )


def _reserved_cpu_raw(row: "Row") -> str:
    return str((reserved(row) or 0) * amount(row, "tres_requested", "cpu"))


def state_of(row: "Row") -> str:
    """The state in words, with who cancelled it."""
    state = row["state"]
    text = job_state(0, state) if state > 0xFF else job_state(state, 0)
    killer = row.get("killed_by")
    return f"{text} by {killer}" if state == CANCELLED and killer is not None else text


def _exit(row: "Row") -> str:
    code = row["exit_code"]
    # What a shell makes of a signal is shown as the signal's number; so Slurm shows any such code.
    return (
        "" if code is None else f"{code - 128 if code >= 128 else code}:{row['exit_signal'] or 0}"
    )


def _derived(row: "Row") -> str:
    return f"{row['derived_exit_code'] or 0}:{row['derived_exit_signal'] or 0}"


def job_id(row: "Row") -> str:
    """`17`, `17_3`, `17_[1-4%2]`, `17+1`."""
    if row["het_job_id"]:
        return f"{row['het_job_id']}+{row['het_offset']}"
    array = row["array_job_id"]
    if array and row["array_tasks"]:
        return f"{array}_[{row['array_tasks']}]"
    if array and row["array_task_id"] is not None:
        return f"{array}_{row['array_task_id']}"
    return str(row["job_id"])


def _step_id(row: "Row") -> str:
    return f"{job_id(row['job'])}.{row['step']}"


def _step_id_raw(row: "Row") -> str:
    return f"{row['job_id']}.{row['step']}"


def _limit(row: "Row") -> str:
    minutes = row["time_limit_min"]
    if minutes is None:
        return "UNLIMITED"
    return "Partition_Limit" if minutes < 0 else full_duration(minutes * 60)


def _limit_raw(row: "Row") -> str:
    minutes = row["time_limit_min"]
    if minutes is None:
        return "UNLIMITED"
    return "Partition_Limit" if minutes < 0 else str(minutes)


def _cpu_time(*names: str) -> "Make":
    return lambda row: cpu_time(sum(row.get(name) or 0 for name in names))


def cpu_time(microseconds: int) -> str:
    """CPU time: `00:00:00`, `00:01.250`, `01:00:03`."""
    seconds, rest = divmod(microseconds, 1_000_000)
    if rest and seconds < 3600:
        return f"{seconds // 60:02}:{seconds % 60:02}.{rest // 1000:03}"
    return full_duration(seconds)


def _nodes_text(row: "Row") -> str:
    return row["nodes"] or "None assigned"


def _frequency(row: "Row") -> str:
    return "0" if row.get("step") == "batch" else "Unknown"


def _mem(row: "Row") -> str:
    return size(amount(row, "tres_requested", "mem"))  # "0" where no memory was asked for


def _number(function: "Callable[[Row], int]") -> "Make":
    return lambda row: str(function(row))


def _allocated_nodes(row: "Row") -> int:
    return int(row["node_count"] or 0)


def _zero(_row: "Row") -> str:
    return "0"


def _energy(row: "Row") -> str:
    """Nobody measures it; of a job it is the sum of what is known of its steps, of one that never
    began nothing.
    """
    return "0" if row.get("knows_energy") or row.get("start_time") is None else ""


def _duration(function: "Callable[[Row], int]") -> "Make":
    return lambda row: full_duration(function(row))


FIELDS = [
    Field("Account", 10, _text("account"), _of_job(_text("account"))),
    Field("AdminComment", 15, _text("admin_comment")),
    Field("AllocCPUS", 10, _number(cpus), _number(cpus), fit=_whole),
    Field("AllocNodes", 10, _number(_allocated_nodes), _number(_allocated_nodes), fit=_whole),
    Field("AllocTRES", 10, _tres("tres_allocated"), _tres("tres_allocated")),
    Field("AssocID", 7, _text("association_id"), _of_job(_text("association_id")), fit=_whole),
    Field("AveCPU", 10, _blank, of_tasks("ave", "cpu_us")),
    Field("AveCPUFreq", 10, _blank, _zero),
    Field("AveDiskRead", 14, _blank, disk("ave", "read")),
    Field("AveDiskWrite", 14, _blank, disk("ave", "written")),
    Field("AvePages", 10, _blank, of_tasks("ave", "pages")),
    Field("AveRSS", 10, _blank, of_tasks("ave", "rss")),
    Field("AveVMSize", 10, _blank, of_tasks("ave", "vmsize")),
    Field("BlockID", 16, _blank),
    Field("Cluster", 10, _text("cluster"), _text("cluster")),
    Field("Comment", 14, _text("comment")),
    Field("Constraints", 19, _text("constraints")),
    Field("ConsumedEnergy", 14, _energy, _zero),
    Field("ConsumedEnergyRaw", 17, _energy, _zero),
    Field("Container", 19, _text("container")),
    Field("CPUTime", 10, _duration(_cpu_seconds), _duration(_cpu_seconds), fit=_whole),
    Field("CPUTimeRAW", 10, _number(_cpu_seconds), _number(_cpu_seconds), fit=_whole),
    Field("DBIndex", -10, _text("job_id"), _text("job_id"), fit=_whole),
    Field("DerivedExitCode", 15, _derived),
    Field("Elapsed", 10, _duration(elapsed), _duration(elapsed), fit=_whole),
    Field("ElapsedRaw", 10, _number(elapsed), _number(elapsed), fit=_whole),
    Field("Eligible", 19, _when("eligible_time"), _when("start_time"), fit=_cut),
    Field("End", 19, _when("end_time"), _when("end_time"), fit=_cut),
    Field("ExitCode", 8, _exit, _exit),
    Field("Flags", 19, _text("flags")),
    Field("GID", 6, _text("group_id"), fit=_whole),
    Field("Group", 9, _text("group")),
    Field("JobID", -12, job_id, _step_id),
    Field("JobIDRaw", -12, _text("job_id"), _step_id_raw),
    Field("JobName", 10, _text("name"), _text("name")),
    Field("Layout", 9, _blank, _text("layout")),
    Field("MaxDiskRead", 12, _blank, disk("max", "read")),
    Field("MaxDiskReadNode", 15, _blank, of_tasks("max_node", "read")),
    Field("MaxDiskReadTask", 15, _blank, of_tasks("max_task", "read"), fit=_whole),
    Field("MaxDiskWrite", 12, _blank, disk("max", "written")),
    Field("MaxDiskWriteNode", 16, _blank, of_tasks("max_node", "written")),
    Field("MaxDiskWriteTask", 16, _blank, of_tasks("max_task", "written"), fit=_whole),
    Field("MaxPages", 8, _blank, of_tasks("max", "pages")),
    Field("MaxPagesNode", 12, _blank, of_tasks("max_node", "pages")),
    Field("MaxPagesTask", 14, _blank, of_tasks("max_task", "pages"), fit=_whole),
    Field("MaxRSS", 10, _blank, of_tasks("max", "rss")),
    Field("MaxRSSNode", 10, _blank, of_tasks("max_node", "rss")),
    Field("MaxRSSTask", 10, _blank, of_tasks("max_task", "rss"), fit=_whole),
    Field("MaxVMSize", 10, _blank, of_tasks("max", "vmsize")),
    Field("MaxVMSizeNode", 14, _blank, of_tasks("max_node", "vmsize")),
    Field("MaxVMSizeTask", 14, _blank, of_tasks("max_task", "vmsize"), fit=_whole),
    Field("McsLabel", 12, _blank),
    Field("MinCPU", 10, _blank, of_tasks("min", "cpu_us")),
    Field("MinCPUNode", 10, _blank, of_tasks("min_node", "cpu_us")),
    Field("MinCPUTask", 10, _blank, of_tasks("min_task", "cpu_us"), fit=_whole),
    Field("NCPUS", 10, _number(cpus), _number(cpus), fit=_whole),
    Field("NNodes", 8, _number(nodes), _number(nodes), fit=_whole),
    Field("NodeList", 15, _nodes_text, _nodes_text),
    Field("NTasks", 8, _blank, _text("tasks"), fit=_whole),
    Field("Partition", 10, _text("partition")),
    Field("Priority", 10, _text("priority"), fit=_whole),
    Field("QOS", 10, lambda row: str(row["qos"] or "Unknown")),
    Field("QOSRAW", 6, _text("qos_id"), fit=_whole),
    Field("Reason", 22, _text("reason")),
    Field("ReqCPUFreq", 10, _frequency, _frequency),
    Field("ReqCPUFreqGov", 13, _frequency, _frequency),
    Field("ReqCPUFreqMax", 13, _frequency, _frequency),
    Field("ReqCPUFreqMin", 13, _frequency, _frequency),
    Field(
        "ReqCPUS",
        8,
        lambda row: str(amount(row, "tres_requested", "cpu")),
        _number(cpus),
        fit=_whole,
    ),
    Field("ReqMem", 10, _mem),
    Field(
        "ReqNodes",
        8,
        lambda row: str(amount(row, "tres_requested", "node")),
        _number(nodes),
        fit=_whole,
    ),
    Field("ReqTRES", 10, _tres("tres_requested")),
    Field("Reservation", 20, _text("reservation")),
    Field("ReservationId", 8, lambda row: str(row["reservation_id"] or ""), header="Reservat"),
    Field("Reserved", 10, _reserved, fit=_whole),
    Field("ResvCPU", 10, _reserved_cpu, fit=_whole),
    Field("ResvCPURAW", 10, _reserved_cpu_raw, fit=_whole),
    Field("Start", 19, _start, _start, fit=_cut),
    Field("State", 10, state_of, state_of),
    Field("Submit", 19, _when("submit_time"), _when("start_time"), fit=_cut),
    Field("SubmitLine", 20, _text("submit_line"), _text("submit_line")),
    Field(
        "Suspended",
        10,
        lambda row: full_duration(row["suspended_s"] or 0),
        lambda row: full_duration(row["suspended_s"] or 0),
        fit=_whole,
    ),
    Field("SystemComment", 15, _text("system_comment")),
    Field("SystemCPU", 10, _cpu_time("system_cpu_us"), _cpu_time("system_cpu_us")),
    Field("Timelimit", 10, _limit),
    Field("TimelimitRaw", 10, _limit_raw, header="TimelimitR"),
    Field(
        "TotalCPU",
        10,
        _cpu_time("user_cpu_us", "system_cpu_us"),
        _cpu_time("user_cpu_us", "system_cpu_us"),
    ),
    Field("TRESUsageInAve", 14, _blank, tres_in("ave")),
    Field("TRESUsageInMax", 14, _blank, tres_in("max")),
    Field("TRESUsageInMaxNode", 18, _blank, tres_in("max_node")),
    Field("TRESUsageInMaxTask", 18, _blank, tres_in("max_task")),
    Field("TRESUsageInMin", 14, _blank, tres_in("min")),
    Field("TRESUsageInMinNode", 18, _blank, tres_in("min_node")),
    Field("TRESUsageInMinTask", 18, _blank, tres_in("min_task")),
    Field("TRESUsageInTot", 14, _blank, tres_in("sum")),
    Field("TRESUsageOutAve", 15, _blank, tres_out("ave")),
    Field("TRESUsageOutMax", 15, _blank, tres_out("max")),
    Field("TRESUsageOutMaxNode", 19, _blank, tres_out("max_node")),
    Field("TRESUsageOutMaxTask", 19, _blank, tres_out("max_task")),
    Field("TRESUsageOutMin", 15, _blank, tres_out("min")),
    Field("TRESUsageOutMinNode", 19, _blank, tres_out("min_node")),
    Field("TRESUsageOutMinTask", 19, _blank, tres_out("min_task")),
    Field("TRESUsageOutTot", 15, _blank, tres_out("sum")),
    Field("UID", 6, _text("user_id"), fit=_whole),
    Field("User", 9, _text("user")),
    Field("UserCPU", 10, _cpu_time("user_cpu_us"), _cpu_time("user_cpu_us")),
    Field("WCKey", 10, _text("wckey")),
    Field("WCKeyID", 10, _text("wckey_id"), fit=_whole),
    Field("WorkDir", 20, _text("work_dir")),
]
DEFAULT = "jobid,jobname,partition,account,alloccpus,state,exitcode"
BRIEF = "jobid,state,exitcode"
LONG = (
    "jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,"
    "maxrssnode,maxrsstask,averss,maxpages,maxpagesnode,"
    "maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,ntasks,alloccpus,elapsed,state,"
    "exitcode,avecpufreq,reqcpufreqmin,reqcpufreqmax,"
    "reqcpufreqgov,reqmem,consumedenergy,maxdiskread,maxdiskreadnode,maxdiskreadtask,"
    "avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask,"
    "avediskwrite,reqtres,alloctres,tresusageinave,tresusageinmax,tresusageinmaxn,"
    "tresusageinmaxt,tresusageinmin,tresusageinminn,tresusageinmint,"
    "tresusageintot,tresusageoutmax,tresusageoutmaxn,tresusageoutmaxt,tresusageoutave,"
    "tresusageouttot"
)
ALL = ",".join(field.name for field in FIELDS)


def fields_of(text: str) -> "list[Field]":
    """The fields of a format: names, or beginnings of them, each with its width (`state%20`,
    `jobname%-30`) if it has one.

    Raises:
        UnknownFieldError: with the name.
    """
    found: list[Field] = []
    widths: dict[str, Field] = {}  # one that is named twice has one width, the last
    for part in text.split(","):
        if not part:
            break  # so does Slurm
        name, percent, width = part.partition("%")
        lowered = name.lower()
        fields = (
            FIELDS
            if "all".startswith(lowered)
            else [each for each in FIELDS if each.name.lower().startswith(lowered)][:1]
        )
        if not fields:
            raise UnknownFieldError(name)
        found += fields
        if percent:
            size = leading_integer(width)
            widths |= {each.name: each.with_width(size) for each in fields}
    return [widths.get(field.name, field) for field in found]


def help_format() -> str:
    """What --helpformat prints: the names, four a line."""
    names = [f"{field.name:<19}" for field in FIELDS]
    return (
        "\n".join([" ".join(names[start : start + 4]) for start in range(0, len(names), 4)]) + "\n"
    )


def lines(
    fields: "list[Field]", rows: "Iterable[Row]", *, header: bool, parsable: int, delimiter: str
) -> "list[str]":
    """The lines to print. `parsable`: 0 for columns, 1 for fields with a delimiter behind each, 2
    for fields with one between.
    """
    table = [
        [field.step(row) if "job" in row else field.job(row) for field in fields] for row in rows
    ]
    if parsable:
        end = delimiter if parsable == 1 else ""
        heads = [[field.name for field in fields]] if header else []
        return [delimiter.join(texts) + end for texts in [*heads, *table]]
    found = []
    if header:
        found.append("".join([_padded(field.name[: abs(field.width)], field) for field in fields]))
        found.append("".join(["-" * abs(field.width) + " " for field in fields]))
    return found + [
        "".join(
            [
                _padded(field.fit(text, abs(field.width)), field)
                for text, field in zip(texts, fields, strict=True)
            ]
        )
        for texts in table
    ]


def _padded(text: str, field: "Field") -> str:
    size = abs(field.width)
    return (text.ljust(size) if field.width < 0 else text.rjust(size)) + " "
