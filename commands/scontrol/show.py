"""scontrol show: which records an entity's name asks for. Follows scontrol(1) of 22.05.

Place: under scontrol; how a record is printed is scontrol_records' matter.
"""

import os

from understudy.commands.scontrol.records import (
    NODE_COLUMNS,
    NodeTexts,
    job_columns,
    job_lines,
    partition_lines,
    render,
    reservation_lines,
    step_lines,
)
from understudy.commands.shared.client import RefusedError
from understudy.commands.shared.texts import timestamp
from understudy.documents.job_texts import task_numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from understudy.commands.scontrol.session import Session


def _show_jobs(session: "Session", words: list[str]) -> int:
    context = session.context
    columns = job_columns(details=session.details)
    try:
        if not words:
            return _show_all_jobs(session, columns)
        if "+" in words[0]:
            return _show_component(session, words[0])
        number, underscore, task = words[0].partition("_")
        task = task.partition("_")[0] or "0"
        if not number.isdigit() or not (task.isdigit() or not underscore):
            session.complain("scontrol_print_job error: Invalid job id specified")
            return 1
        jobs = context.client.query("jobs", columns, {"job_id": [int(number)]}).dicts()
        if jobs and jobs[0]["het_job_id"] == int(number):
            jobs = context.client.query("jobs", columns, {"het_job_id": [int(number)]}).dicts()
        elif not jobs or jobs[0]["array_job_id"]:
            known = {job["job_id"] for job in jobs}
            tasks = context.client.query("jobs", columns, {"array_job_id": [int(number)]}).dicts()
            # the task that was split off last comes first
            jobs += [job for job in reversed(tasks) if job["job_id"] not in known]
        if not jobs:
            session.complain("slurm_load_jobs error: Invalid job id specified")
            return 1
        if underscore:
            jobs = _of_task(jobs, int(task))
            if not jobs:
                session.say(f"Job {number}_{task} not found")
                return 1
    except RefusedError as error:
        session.complain(f"slurm_load_jobs error: {error.text}")
        return 1
    return _print_jobs(session, jobs)


def _show_all_jobs(session: "Session", columns: list[str]) -> int:
    from understudy.commands.scontrol.job_forms import JobTexts
    from understudy.documents.job_texts import in_places

    context = session.context
    found = context.client.query("jobs", columns, all_partitions=session.shows_all)
    if not found.rows:
        session.say("No jobs in the system")
    rows = in_places(found.rows, columns)
    if session.details:
        return _print_jobs(session, [dict(zip(columns, row, strict=True)) for row in rows])
    texts = JobTexts(one_line=session.one_line)
    context.stdout.write("".join(map(texts.text, rows)))
    return 0


def _show_component(session: "Session", name: str) -> int:
    """`17+2`: a component of a heterogeneous job."""
    number, _, offset = name.partition("+")
    if not number.isdigit() or not offset.isdigit():
        session.complain("scontrol_print_job error: Invalid job id specified")
        return 1
    jobs = session.context.client.query(
        "jobs",
        job_columns(details=session.details),
        {"het_job_id": [int(number)], "het_job_offset": [int(offset)]},
    ).dicts()
    if not jobs:
        if session.context.client.query("jobs", ["job_id"], {"job_id": [int(number)]}).rows:
            session.say(f"Job {name} not found")
        else:
            session.complain("slurm_load_jobs error: Invalid job id specified")
        return 1
    return _print_jobs(session, jobs)


_QUOTE = "'"
# stands for the task's number in the paths of an array whose tasks have no records of their own
_NO_TASK = "4294967294"


def _of_task(jobs: "list[dict[str, Any]]", task: int) -> "list[dict[str, Any]]":
    """The record of one task of an array; from the array's own record if the task is not split off
    yet.
    """
    for job in jobs:
        if job["array_task_id"] == task:
            return [job]
    return [
        {
            **job,
            "array_task_id": task,
            **{path: job[path].replace(_NO_TASK, str(task)) for path in ("std_out", "std_err")},
        }
        for job in jobs
        if task in task_numbers(job["array_task_expression"])
    ]


def _print_jobs(session: "Session", jobs: "list[dict[str, Any]]") -> int:
    texts = [
        render(job_lines(job, details=session.details), one_line=session.one_line) for job in jobs
    ]
    session.context.stdout.write("".join(texts))
    return 0


def _show_partitions(session: "Session", words: list[str]) -> int:
    from understudy.model.records import PARTITIONS

    context = session.context
    try:
        partitions = context.client.query(
            "partitions",
            list(PARTITIONS),
            {"name": [words[0]]} if words else {},
            all_partitions=session.shows_all,
        ).dicts()
    except RefusedError as error:
        session.complain(f"slurm_load_partitions error: {error.text}")
        return 1
    if not partitions:
        session.say(f"Partition {words[0]} not found" if words else "No partitions in the system")
        return 1 if words else 0
    for partition in partitions:
        context.stdout.write(render(partition_lines(partition), one_line=session.one_line))
    return 0


def _show_nothing(what: str) -> "Callable[[Session, list[str]], int]":
    """Of this there is none. `what`: how it is called where nobody can be asked."""

    def show_nothing(session: "Session", words: list[str]) -> int:
        del words
        try:
            session.context.client.query("ping", ["host"])
        except RefusedError as error:
            session.complain(f"slurm_load_{what} error: {error.text}")
            return 1
        return 0

    return show_nothing


def _show_buffer_status(session: "Session", words: list[str]) -> int:
    """What the site's program says, asked with these words."""
    try:
        (text,) = session.context.client.call("GetBufferStatus", words)
    except RefusedError as error:
        session.complain(f"slurm_load_burst_buffer_stat error: {error.text}")
        return 1
    if text:
        session.context.print(text.removesuffix("\n"))
    return 0


def _show_reservations(session: "Session", words: list[str]) -> int:
    from understudy.model.records import RESERVATIONS

    context = session.context
    try:
        reservations = context.client.query(
            "reservations", list(RESERVATIONS), {"name": [words[0]]} if words else {}
        ).dicts()
    except RefusedError as error:
        session.complain(f"slurm_load_reservations error: {error.text}")
        return 1
    if not reservations:
        session.say(
            f"Reservation {words[0]} not found" if words else "No reservations in the system"
        )
        return 1 if words else 0
    for reservation in reservations:
        context.stdout.write(render(reservation_lines(reservation), one_line=session.one_line))
    return 0


def _show_steps(session: "Session", words: list[str]) -> int:
    from understudy.model.records import STEPS

    context = session.context
    job, dot, number = words[0].partition(".") if words else ("", "", "")
    array, _, task = job.partition("_")
    if words and not array.isdigit():
        session.say("Job step 0.Invalid not found")
        return 1
    if dot and not number.isdigit():  # read as a number, as all that begins with none
        number = "" if task else "0"
    try:
        if (
            job.isdigit()
            and (known := context.client.query("jobs", ["job_id"]).rows)
            and [int(job)] not in known
        ):
            raise RefusedError(2017, "Invalid job id specified")
        steps = context.client.query("steps", list(STEPS)).dicts()
    except RefusedError as error:
        session.complain(f"slurm_get_job_steps error: {error.text}")
        return 1
    if job:
        steps = [
            step
            for step in steps
            if (
                str(step["job_id"]) == job
                or (str(step["array_job_id"]) == array and task in ("", str(step["array_task_id"])))
            )
            and number in ("", step["step"])
        ]
    else:  # tasks of arrays are not among all steps
        steps = [step for step in steps if not step["array_job_id"]]
    if not steps:
        session.say(f"Job step {job}.{number} not found" if words else "No job steps in the system")
        return 1 if words else 0
    place = {step["job_id"]: at for at, step in reversed(list(enumerate(steps)))}
    for step in sorted(
        steps,
        key=lambda step: (
            step["array_task_id"] or 0 if job else 0,
            place[step["job_id"]],
            step["step"].isdigit(),
        ),
    ):  # a script before the steps of its job
        context.stdout.write(render(step_lines(step), one_line=session.one_line))
    return 0


def _show_nodes(session: "Session", words: list[str]) -> int:
    from understudy.documents.states import FUTURE

    context = session.context
    where: dict[str, list[Any]] = {}
    wanted: list[str] = []
    if words:
        from understudy.model.hostlist import expand

        try:
            wanted = expand(words[0])
        except ValueError:
            wanted = [words[0]]
        where = {"name": wanted}
    try:
        nodes = context.client.query("nodes", NODE_COLUMNS, where).rows
    except RefusedError as error:
        session.complain(f"slurm_load_node error: {error.text}")
        return 1
    if not session.future:
        state = NODE_COLUMNS.index("state")
        nodes = [node for node in nodes if node[state] != FUTURE]
    if not words and not nodes:
        context.print("No nodes in the system")
    texts = NodeTexts(details=session.details, one_line=session.one_line)
    if not words:
        context.stdout.write("".join([texts.text(node) for node in nodes]))
        return 0
    by_name = {node[0]: node for node in nodes}
    code = 0
    for name in wanted:
        if name in by_name:
            context.stdout.write(texts.text(by_name[name]))
        else:
            session.say(f"Node {name} not found")
            code = 1
    return code


def _show_config(session: "Session", _words: list[str]) -> int:
    context = session.context
    try:
        answer = context.client.query("config", ["name", "value"])
    except RefusedError as error:
        session.complain(f"slurm_load_ctl_conf error: {error.text}")
        return 1
    context.print(f"Configuration data as of {timestamp(answer.now)}")
    for name, value in answer.rows:
        context.print(f"\n{name}" if _is_title(name) else f"{name:<23} = {value}")
    from understudy.commands.scontrol.daemons import controllers

    context.print("")
    for role, host, is_up in controllers(session):
        context.print(f"Slurmctld({role}) at {host} is {'UP' if is_up else 'DOWN'}")
    return 0


def _is_title(name: str) -> bool:
    """Whether a line is that of what follows: the settings of another file."""
    return name.endswith(":")


def _complain_of_hosts(session: "Session", expression: str, error: ValueError) -> None:
    what, _, rest = str(error).partition("'")
    if what in {"Invalid range: ", "Too many hosts in range "}:
        session.context.error(f"_parse_single_range: {what}`{rest.split(_QUOTE)[0]}'")
    session.context.complain(f"Invalid hostlist: {expression}")


def _show_host_names(session: "Session", words: list[str]) -> int:
    """Hosts line by line: those named, or those of the job in which the command runs."""
    from understudy.model.hostlist import expand_typed

    context = session.context
    expression = words[0] if words else context.environ.get("SLURM_NODELIST", "")
    if not words and not expression:
        context.error("host list is empty")
        return 0
    try:
        names = expand_typed(expression)
    except ValueError as error:
        _complain_of_hosts(session, expression, error)
        return 0
    if names:
        context.print("\n".join(names))
    return 0


def _show_host_list(session: "Session", words: list[str], *, is_sorted: bool = False) -> int:
    """Names, or those that a file lists, as one expression."""
    from understudy.model.hostlist import LIMIT, compress, expand_typed

    context = session.context
    if not words:
        session.show_help()
        context.complain("invalid encode argument")
        return 1
    expression = words[0]
    if expression.startswith("/"):
        try:
            with open(expression, encoding="utf-8") as file:
                expression = ",".join(file.read().replace(",", " ").split())
        except OSError:
            context.complain(f"Can not open {expression}")
            return 1
    try:
        names = expand_typed(expression)
    except ValueError as error:
        _complain_of_hosts(session, expression, error)
        return 1
    context.print(compress(names, sort=is_sorted, widest=LIMIT))
    return 0


def _show_sorted_list(session: "Session", words: list[str]) -> int:
    return _show_host_list(session, words, is_sorted=True)


def _show_aliases(session: "Session", words: list[str]) -> int:
    """The node names whose hosts are named."""
    context = session.context
    try:
        rows = context.client.query("nodes", ["name", "hostname"]).rows
    except RefusedError:
        return 0
    wanted = words[0] if words else os.uname().nodename.partition(".")[0]
    names = [name for name, host in rows if host == wanted]
    if names:
        context.print(" ".join(names))
    return 0


def _show_licenses(session: "Session", words: list[str]) -> int:
    context = session.context
    try:
        rows = context.client.query(
            "licenses", ["name", "total", "used", "reserved", "is_remote"]
        ).rows
    except RefusedError as error:
        session.complain(f"slurm_load_license error: {error.text}")
        return 1
    if not rows:
        context.print("No licenses configured in Slurm.")
    between = " " if session.one_line else "\n    "
    for name, total, used, reserved, is_remote in sorted(rows):
        if not words or name == words[0]:
            counts = f"Total={total} Used={used} Free={max(total - used, 0)} Reserved={reserved}"
            context.print(
                f"LicenseName={name}{between}{counts} Remote={'yes' if is_remote else 'no'}"
            )
    return 0


def _show_topology(session: "Session", words: list[str]) -> int:
    from understudy.model.hostlist import expand

    context = session.context
    try:
        rows = context.client.query(
            "topology", ["name", "level", "link_speed", "nodes", "switches"]
        ).rows
    except RefusedError as error:
        session.complain(f"slurm_load_topo error: {error.text}")
        return 0
    if not rows and not words:
        context.error("No topology information available")
    shown = [row for row in rows if not words or row[0] == words[0]] or [
        row for row in rows if words and words[0] in expand(row[3])
    ]
    if words and not shown:
        context.error(f"Topology information contains no switch or node named {words[0]}")
    for name, level, speed, nodes, switches in shown:
        below = f" Switches={switches}" if switches else ""
        context.print(f"SwitchName={name} Level={level} LinkSpeed={speed} Nodes={nodes}{below}")
    return 0


def _show_daemons(session: "Session", _words: list[str]) -> int:
    """The daemons that run on this host."""
    session.context.print("slurmctld ")
    return 0


def _show_frontends(session: "Session", words: list[str]) -> int:
    if _show_nothing("front_end")(session, words):
        return 1
    session.say(f"Node {words[0]} not found" if words else "No nodes in the system")
    return 1 if words else 0


def _show_slurmd(session: "Session", _words: list[str]) -> int:
    """What the node daemon of this host says of its node: SLURMD_NODENAME, or the node that has
    this host's name.
    """
    context = session.context
    wanted = context.environ.get("SLURMD_NODENAME") or os.uname().nodename.partition(".")[0]
    columns = ["name", "cpus", "boards", "sockets", "cores_per_socket", "threads_per_core",
        "memory_mb", "tmp_disk_mb", "boot_time",
               "slurmd_start_time", "hostname", "version"]  # fmt: skip
    try:
        answer = context.client.query("nodes", columns, {"name": [wanted]})
        jobs = context.client.query("jobs", ["job_id", "batch_host"], {"state": [1]}).rows
    except RefusedError:
        answer = None
    node = answer.dicts()[0] if answer is not None and answer.rows else None
    if answer is None or node is None or node["slurmd_start_time"] is None:
        context.error("slurm_slurmd_info: Connection refused")
        session.complain("slurm_load_slurmd_status: Connection refused")
        return 1
    cores = node["cores_per_socket"] * node["sockets"] * node["boards"]
    for name, value in (
        ("Active Steps", ",".join(str(job) for job, host in jobs if host == wanted) or "NONE"),
        ("Actual CPUs", node["cpus"]),
        ("Actual Boards", node["boards"]),
        ("Actual sockets", node["sockets"]),
        ("Actual cores", cores),
        ("Actual threads per core", node["threads_per_core"]),
        ("Actual real memory", f"{node['memory_mb']} MB"),
        ("Actual temp disk space", f"{node['tmp_disk_mb']} MB"),
        ("Boot time", timestamp(node["slurmd_start_time"])),
        ("Hostname", node["hostname"]),
        ("Last slurmctld msg time", timestamp(answer.now)),
        ("Slurmd PID", os.getppid()),
        ("Slurmd Debug", 3),
        ("Slurmd Logfile", "(null)"),
        ("Version", node["version"]),
    ):
        context.print(f"{name:<24} = {value}")
    return 0


def _show_assoc_mgr(session: "Session", words: list[str]) -> int:
    from understudy.commands.scontrol.assoc_mgr import show_assoc_mgr

    return show_assoc_mgr(session, words)


def _show_burst_buffer(session: "Session", words: list[str]) -> int:
    from understudy.commands.scontrol.burst_buffer import show_burst_buffer

    return show_burst_buffer(session, words)


def _show_federation(session: "Session", words: list[str]) -> int:
    del words
    context = session.context
    try:
        places = context.client.query(
            "federation", ["name", "cluster", "host", "port", "number", "state", "features"]
        ).rows
    except RefusedError as error:
        session.complain(f"Failed to load federation information: {error.text}")
        return 1
    for name, cluster, host, port, number, state, features in places:
        context.print(f"Federation: {name}")
        context.print(
            f"Self:       {cluster}:{host}:{port} ID:{number} FedState:{state} "
            f"Features:{','.join(features)}"
        )
    return 0


class Entity:
    """What one may show. `least`: how many letters of the name must be written."""

    __slots__ = ("least", "name", "show")

    def __init__(self, name: str, least: int, show: "Callable[[Session, list[str]], int]") -> None:
        self.name, self.least, self.show = name, least, show


# In the order in which an abbreviation is looked up.
ENTITIES = (
    Entity("aliases", 1, _show_aliases),
    Entity("assoc_mgr", 2, _show_assoc_mgr),
    Entity("bbstat", 2, _show_buffer_status),
    Entity("burstbuffer", 2, _show_burst_buffer),
    Entity("config", 1, _show_config),
    Entity("daemons", 1, _show_daemons),
    Entity("dwstat", 2, _show_buffer_status),
    Entity("federation", 1, _show_federation),
    Entity("frontends", 2, _show_frontends),
    Entity("hostnames", 5, _show_host_names),
    Entity("hostlist", 5, _show_host_list),
    Entity("hostlistsorted", 9, _show_sorted_list),
    Entity("jobs", 1, _show_jobs),
    Entity("jobid", 1, _show_jobs),
    Entity("licenses", 2, _show_licenses),
    Entity("nodes", 1, _show_nodes),
    Entity("partitions", 2, _show_partitions),
    Entity("partitionname", 2, _show_partitions),
    Entity("reservations", 1, _show_reservations),
    Entity("reservationname", 1, _show_reservations),
    Entity("slurmd", 2, _show_slurmd),
    Entity("steps", 2, _show_steps),
    Entity("stepid", 2, _show_steps),
    Entity("topology", 1, _show_topology),
)


_MANY_WORDS = ("assoc_mgr", "bbstat", "dwstat")  # take more than one


def show(session: "Session", words: list[str]) -> int:
    """`scontrol show ENTITY [NAME]`, or ENTITY=NAME."""
    entity, equals, name = words[0].partition("=")
    rest = words[1:]
    if equals:
        rest = [] if entity.lower().startswith("assoc") else [name]
    lowered = entity.lower()
    found = next(
        (each for each in ENTITIES if len(lowered) >= each.least and each.name.startswith(lowered)),
        None,
    )
    if found is None:
        session.complain(f"invalid entity:{words[0]} for keyword:show ")
        return 1
    if len(rest) > (0 if found.name == "daemons" else 1) and found.name not in _MANY_WORDS:
        session.complain("too many arguments for keyword:show")
        return 1
    return found.show(session, rest)
