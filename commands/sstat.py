"""sstat: what the tasks of running steps use. Follows sstat(1) of 22.05."""

from understudy.commands.shared.client import UNANSWERED, RefusedError
from understudy.commands.shared.context import Context, run
from understudy.commands.shared.options import (
    NONE,
    REQUIRED,
    Option,
    OptionTable,
    last_values,
    let_last_parsable_count,
)
from understudy.commands.shared.texts import convert_units, thousands
from understudy.documents.documents import VERSION
from understudy.model.times import leading_integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Cell = tuple[str, int, Callable[[dict[str, Any]], str]]

OPTIONS = OptionTable(
    [
        Option("allsteps", "a", NONE, "all steps of a job that is named without one"),
        Option("helpformat", "e", NONE, "list the fields"),
        Option("help", "h", NONE, "print this text"),
        Option("pidformat", "i", NONE, "job, nodes and pids"),
        Option("jobs", "j", REQUIRED, "LIST: of jobs or steps"),
        Option("noheader", "n", NONE, "no header line"),
        Option("noconvert", "", NONE, "leave sizes as they are"),
        Option("fields", "", REQUIRED, "", dest="format"),
        Option("format", "o", REQUIRED, "FIELDS: what to print"),
        Option("parsable", "p", NONE, "fields parted and ended by |"),
        Option("parsable2", "P", NONE, "fields parted by |"),
        Option("usage", "", NONE, "print a short summary of the options"),
        Option("verbose", "v", NONE, "say more"),
        Option("version", "V", NONE, "print the version"),
    ]
)
DEFAULT_FIELDS = (
    "jobid,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,maxrssnode,maxrsstask,"
    "averss,maxpages,maxpagesnode,maxpagestask,avepages,mincpu,"
    "mincpunode,mincputask,avecpu,ntasks,avecpufreq,reqcpufreqmin,reqcpufreqmax,reqcpufreqgov,"
    "consumedenergy,maxdiskread,maxdiskreadnode,"
    "maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask,avediskwrite,"
    "tresusageinave,tresusageinmax,tresusageinmaxn,"
    "tresusageinmaxt,tresusageinmin,tresusageinminn,tresusageinmint,tresusageintot,"
    "tresusageoutave,tresusageoutmax,tresusageoutmaxn,"
    "tresusageoutmaxt,tresusageoutmin,tresusageoutminn,tresusageoutmint,tresusageouttot"
)
BATCH_STEP = -5  # as in protocol.messages
ACCESS_DENIED = 2002  # as in model.errors
NUMBER, NODE, PID, CPU, RSS, VSIZE, PAGES, READ, WRITTEN = range(9)


def cpu_text(microseconds: int) -> str:
    seconds = microseconds // 1_000_000
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


_OF_NOBODY = "213503982334-14:25:51"  # Slurm's mean of what JobAcctGatherType=none measures
_SPECIAL_STEPS: "tuple[str, ...]" = ("extern", "batch", "interactive")


def _of(column: int, which: str, text: "Callable[[int], str]") -> "Callable[[dict[str, Any]], str]":
    def value(step: "dict[str, Any]") -> str:
        tasks = step["tasks"]
        if not tasks:
            return ""
        if which == "ave":
            return text(sum(task[column] for task in tasks) // len(tasks))
        chosen = (min if which.startswith("min") else max)(tasks, key=lambda task: task[column])
        return (
            str(chosen[NODE])
            if which.endswith("node")
            else str(chosen[NUMBER])
            if which.endswith("task")
            else text(chosen[column])
        )

    return value


def _tres(step: "dict[str, Any]", kind: str, which: str) -> str:
    """`cpu=00:00:01,mem=1652K`: all at once."""
    columns = (
        [
            ("cpu", CPU, cpu_text),
            ("energy", -1, thousands),
            ("fs/disk", READ, thousands),
            ("mem", RSS, thousands),
            ("pages", PAGES, thousands),
            ("vmem", VSIZE, thousands),
        ]
        if kind == "in"
        else [("energy", -1, thousands), ("fs/disk", WRITTEN, thousands)]
    )
    tasks = step["tasks"]
    if not tasks:
        return ""
    found = []
    for name, column, text in columns:
        if column < 0:
            if not which.endswith("t") or which == "tot":  # of no task
                found.append(
                    f"{name}=0"
                    if which in {"ave", "max", "min", "tot"}
                    else f"{name}={tasks[0][NODE]}"
                )
        elif name == "cpu" and which in {"maxt", "mint"}:  # Slurm takes the number for a time
            found.append(
                f"{name}={cpu_text(int(_of(column, which + 'ask', text)(step)) * 1_000_000)}"
            )
        elif which == "tot":
            found.append(f"{name}={text(sum(task[column] for task in tasks))}")
        else:
            kinds = {
                "ave": "ave",
                "max": "max",
                "maxn": "maxnode",
                "maxt": "maxtask",
                "min": "min",
                "minn": "minnode",
                "mint": "mintask",
            }
            found.append(f"{name}={_of(column, kinds[which], text)(step)}")
    return ",".join(found)


def _frequency(step: "dict[str, Any]") -> str:
    return "0" if step["id"].endswith(".batch") else "Unknown"


def _mean_cpu(step: "dict[str, Any]") -> str:
    return _OF_NOBODY if step["is_unmeasured"] else _of(CPU, "ave", cpu_text)(step)


def _fields() -> "list[Cell]":
    """Header, width (negative: to the left) and how to get it, in the order in which they are
    listed: the first that a name is the beginning of is meant.
    """
    found: dict[str, Cell] = {"jobid": ("JobID", -12, lambda step: step["id"])}
    for name, column, text, width in (
        ("VMSize", VSIZE, thousands, 10),
        ("RSS", RSS, thousands, 10),
        ("Pages", PAGES, thousands, 8),
        ("DiskRead", READ, thousands, 12),
        ("DiskWrite", WRITTEN, thousands, 12),
    ):
        found[f"max{name}".lower()] = (f"Max{name}", width, _of(column, "max", text))
        of_place = {"VMSize": 14, "RSS": 10, "DiskRead": 15, "DiskWrite": 16}
        found[f"max{name}node".lower()] = (
            f"Max{name}Node",
            of_place.get(name, 12),
            _of(column, "maxnode", text),
        )
        found[f"max{name}task".lower()] = (
            f"Max{name}Task",
            of_place.get(name, 14),
            _of(column, "maxtask", text),
        )
        found[f"ave{name}".lower()] = (
            f"Ave{name}",
            12 if name.startswith("Disk") else 10,
            _of(column, "ave", text),
        )
    found["mincpu"] = ("MinCPU", 10, _of(CPU, "min", cpu_text))
    found["mincpunode"] = ("MinCPUNode", 10, _of(CPU, "minnode", cpu_text))
    found["mincputask"] = ("MinCPUTask", 10, _of(CPU, "mintask", cpu_text))
    found["avecpu"] = ("AveCPU", 10, _mean_cpu)
    found["ntasks"] = ("NTasks", 8, lambda step: str(step["count"]))
    found["nodelist"] = ("Nodelist", 20, lambda step: step["nodes"])
    found["pids"] = (
        "Pids",
        20,
        lambda step: ",".join(str(task[PID]) for task in step["processes"]),
    )
    found["avecpufreq"] = ("AveCPUFreq", 10, lambda _step: "0")
    found["reqcpufreq"] = ("ReqCPUFreq", 10, _frequency)
    found["reqcpufreqmin"] = ("ReqCPUFreqMin", 13, _frequency)
    found["reqcpufreqmax"] = ("ReqCPUFreqMax", 13, _frequency)
    found["reqcpufreqgov"] = ("ReqCPUFreqGov", 13, _frequency)
    found["consumedenergy"] = ("ConsumedEnergy", 14, lambda _step: "0")
    found["consumedenergyraw"] = ("ConsumedEnergyRaw", 17, lambda _step: "0")
    for kind in ("In", "Out"):
        for which in ("Ave", "Max", "MaxNode", "MaxTask", "Min", "MinNode", "MinTask", "Tot"):
            short = which.replace("Node", "N").replace("Task", "T")

            def value(
                step: "dict[str, Any]", kind: str = kind.lower(), short: str = short.lower()
            ) -> str:
                return _tres(step, kind, short)

            header = f"TRESUsage{kind}{which}"
            found[header] = (header, len(header), value)
    return sorted(found.values(), key=lambda cell: _place_in_help(cell[0]))


_USAGE = "Usage: sstat [options] -j <job(.stepid)>\n\tUse --help for help"


def sstat(arguments: list[str], context: Context) -> int:
    """The command. Returns the exit code."""
    given, operands, refused = OPTIONS.read(arguments)
    code = _read_in_order(given, context)
    if code is not None:
        return code
    if refused is not None:  # without a word of --help
        context.complain(f"sstat: {refused}")
        return 1
    options = last_values(given)
    let_last_parsable_count(given, options)
    lists = [value or "" for option, value in given if option.dest == "jobs"]
    if context.tells(OPTIONS, options, _USAGE):
        return 0
    if "helpformat" in options:
        headers = [header for header, _, _ in _fields()]
        for at in range(0, len(headers), 4):
            context.print(" ".join(f"{header:<19}" for header in headers[at : at + 4]))
        return 0
    # of words the first counts alone, and what is named twice is shown once
    wanted = [word for word in ",".join([*lists, *operands[:1]]).split(",") if word]
    try:
        wanted = [step for step, _ in dict.fromkeys(map(_step_name, wanted))]
        cells = _cells(given)
    except ValueError as error:
        context.fatal(str(error))
        return 1
    except KeyError as error:
        context.error(f'Invalid field requested: "{error.args[0]}"')
        return 1
    if not wanted:
        context.error("You didn't give me any jobs to stat.")
        return 1
    convert_units(convert="noconvert" not in options)
    _print_header(cells, options, context)
    for word in wanted:
        try:
            _print_steps(word, cells, options, context)
        except RefusedError:  # the controller is away, observed at 22.05.8
            context.error(f"couldn't get steps for job {word.partition('.')[0]}")
    return 0


def _read_in_order(given: "list[tuple[Option, str | None]]", context: Context) -> "int | None":
    """What ends the command where it stands: the version, or a word that names no job. The exit
    code then.
    """
    for option, value in given:
        if option.dest == "version":
            context.print(f"slurm {VERSION}")
            return 0
        try:
            for word in (value or "").split(",") if option.dest == "jobs" else ():
                _step_name(word or "0")
        except ValueError as error:
            context.fatal(str(error))
            return 1
    return None


def _cells(given: "list[tuple[Option, str | None]]") -> "list[Cell]":
    """The fields to print: those of all formats, of which -i is one, up to the first without a
    name. One that is named twice has one width, the last.

    Raises:
        KeyError: a name of no field.
    """
    formats = [
        "jobid,nodelist,pids" if option.dest == "pidformat" else value or ""
        for option, value in given
        if option.dest in {"pidformat", "format"}
    ]
    fields = _fields()
    chosen: list[Cell] = []
    widths: dict[str, int] = {}
    for word in (",".join(formats) if formats else DEFAULT_FIELDS).split(","):
        name, _, size = word.lstrip().partition("%")
        if not word:
            break
        found = next((field for field in fields if field[0].lower().startswith(name.lower())), None)
        if found is None:
            raise KeyError(name)
        chosen.append(found)
        if width := leading_integer(size):
            widths[found[0]] = width
    return [(header, widths.get(header, width), value) for header, width, value in chosen]


def _print_header(cells: "list[Cell]", options: "dict[str, str | None]", context: Context) -> None:
    if "noheader" in options:
        return
    if "parsable" in options or "parsable2" in options:
        context.print(_line([header for header, _, _ in cells], cells, options))
        return
    context.print(_line([header[: abs(width)] for header, width, _ in cells], cells, options))
    context.print("".join(["-" * abs(width) + " " for _, width, _ in cells]))


def _print_steps(
    word: str, cells: "list[Cell]", options: "dict[str, str | None]", context: Context
) -> None:
    """The steps that a word means, each as soon as it is known."""
    has_pids = any(header == "Pids" for header, _, _ in cells)
    for step in _steps(word, options, context):
        for each in _by_node(step) if has_pids else [step]:
            context.print(_line([value(each) for _, _, value in cells], cells, options))


def _by_node(step: "dict[str, Any]") -> "list[dict[str, Any]]":
    """Where processes are told of, each node has a line."""
    processes = step["processes"]
    nodes = list(dict.fromkeys(task[NODE] for task in processes))
    return [
        {**step, "nodes": node, "processes": [task for task in processes if task[NODE] == node]}
        for node in nodes
    ] or [step]


def _step_name(word: str) -> "tuple[str, str]":
    """A job or step, of whichever task or component: 12_3.0 and 12+1.0 are 12.0; and which task or
    component that was. What is behind a number is passed over, as Slurm does.

    Raises:
        ValueError: what Slurm says of a word that names none.
    """
    job, dot, step = word.partition(".")
    number = _digits(job)
    if not number:
        raise ValueError(f"Bad job/step specified: {word}")
    mark, which = job[len(number) :][:1], job[len(number) + 1 :]
    part = mark + _digits(which) if mark in {"_", "+"} else ""
    if part == mark != "":
        what = "job array element" if mark == "_" else "hetjob offset"
        raise ValueError(f"Bad {what} specified: {number}")
    if dot and step not in _SPECIAL_STEPS:
        step = _digits(step)
        if not step:
            raise ValueError(f"Bad step specified: {job}")
    return number + dot + step, part


def _digits(text: str) -> str:
    """Those it begins with."""
    return text[: len(text) - len(text.lstrip("0123456789"))]


def _place_in_help(header: str) -> "tuple[int, str]":
    """By name; then what was asked of frequencies in the table's order, then use."""
    if header.startswith("ReqCPUFreq"):
        return 1, ""
    return (2, header) if header.startswith("TRESUsage") else (0, header.lower())


def _line(
    texts: list[str], cells: "list[tuple[str, int, Any]]", options: "dict[str, str | None]"
) -> str:
    if "parsable2" in options:
        return "|".join(texts)
    if "parsable" in options:
        return "".join([text + "|" for text in texts])
    line = ""
    for text, (_, width, _) in zip(texts, cells, strict=True):
        size = abs(width)
        if len(text) > size:
            text = text[: size - 1] + "+"  # noqa: PLW2901
        line += (text.ljust(size) if width < 0 else text.rjust(size)) + " "
    return line


def _steps(
    word: str, options: "dict[str, str | None]", context: Context
) -> "Iterator[dict[str, Any]]":
    """The steps that a word means: one, or a job's first, or all of it, its script before the
    others.
    """
    job, _, name = word.partition(".")
    if not name and "allsteps" in options and int(job):
        tasks = _tasks(int(job), context)
        if tasks:
            for task in tasks:
                yield from _of_job(str(task), "", options, context)
            return
    yield from _of_job(job, name, options, context)


def _tasks(array: int, context: Context) -> list[int]:
    """The jobs of an array's tasks that have steps, in the tasks' order."""
    rows = context.client.query(
        "steps", ["array_task_id", "job_id"], {"array_job_id": [array]}
    ).rows
    return [job_id for _, job_id in sorted({(task or 0, job_id) for task, job_id in rows})]


def _of_job(
    job: str, name: str, options: "dict[str, str | None]", context: Context
) -> "Iterator[dict[str, Any]]":
    rows = context.client.query("steps", ["step", "nodes"], {"job_id": [int(job)]}).rows
    by_name = {str(step): nodes for step, nodes in rows}
    numbered = sorted(int(step) for step in by_name if step.isdigit())
    if name:
        name = str(int(name)) if name.isdigit() else name
        chosen = [name] if name in by_name else []
        if not chosen:
            _say_none(job, f"{job}.{name}", context)
    else:
        chosen = [step for step in _SPECIAL_STEPS if step in by_name and "allsteps" in options]
        if not numbered and not chosen and not by_name:
            _say_none(job, "", context)
        chosen += map(str, numbered if "allsteps" in options else numbered[:1])
    for step in chosen:
        number = BATCH_STEP if step == "batch" else int(step) if step.isdigit() else None
        try:
            yield (
                _without_tasks(job, step, by_name[step])
                if number is None
                else _statistics(int(job), number, context)
            )
        except RefusedError as error:
            if error.code in UNANSWERED:
                raise
            if error.code == ACCESS_DENIED:
                _say_not_yours(f"{job}.{step}", by_name[step], context)
            else:
                _say_none(job, f"{job}.{step}", context)


def _say_not_yours(step: str, nodes: str, context: Context) -> None:
    """What the step's nodes say to another user."""
    from understudy.model.hostlist import expand

    for node in expand(nodes):
        context.error(
            f"slurm_job_step_stat: there was an error with the request to {node} rc = "
            "Invalid user id"
        )
    context.error(f"problem getting step_layout for StepId={step}: Invalid user id")


def _say_none(job: str, step: str, context: Context) -> None:
    """That a job has no such step, no step at all (`step` is "" then), or is not there: which is
    not said of job 0, nor where there is no job at all.
    """
    number, query = int(job), context.client.query
    if (
        number
        and not query("jobs", ["job_id"], {"job_id": [number]}).rows
        and query("jobs", ["job_id"]).rows
    ):
        context.error(f"couldn't get steps for job {job}")
    elif step:
        context.error(f"StepId={step if number else 'Invalid'} not found running.")
    else:
        context.error(f"No steps running for job {job}")


def _without_tasks(job: str, step: str, nodes: str) -> "dict[str, Any]":
    return {
        "id": f"{job}.{step}",
        "nodes": nodes,
        "count": 1,
        "tasks": [],
        "processes": [],
        "is_unmeasured": False,
    }


def _is_measured(context: Context) -> bool:
    """Whether somebody measures what tasks use."""
    rows = context.client.query("config", ["value"], {"name": ["JobAcctGatherType"]}).rows
    return not any(str(value).lower().endswith("/none") for (value,) in rows)


def _statistics(job_id: int, step_id: int, context: Context) -> "dict[str, Any]":
    created = context.client.call("GetStep", job_id, step_id)
    restart, nodes, tasks, credential, daemons = (
        created[1],
        created[3],
        created[4],
        created[6],
        created[7],
    )
    used: list[list[Any]] = []
    for name, address, its_nodes in daemons:
        # a name that is the node's own is that of one which shares the address
        daemon = context.client.another(address, "" if name == its_nodes else name)
        try:
            used += daemon.call("StatTasks", credential, job_id, restart, step_id)[0]
        finally:
            daemon.close()
    used.sort()
    is_measured = _is_measured(context)
    return {
        "id": f"{job_id}.{'batch' if step_id == BATCH_STEP else step_id}",
        "nodes": nodes,
        "count": sum(map(len, tasks)) if is_measured else 0,
        "tasks": used if is_measured else [],
        "processes": used,
        "is_unmeasured": not is_measured,
    }


def main() -> int:
    """Run as a program; does not return."""
    return run("sstat", sstat)


if __name__ == "__main__":
    main()
