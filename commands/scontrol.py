"""scontrol: look at the cluster's records one by one, and change them. Follows scontrol(1) of 22.05.

Place: what the words mean; records are printed by scontrol_records, changes made by scontrol_update.
"""

import os

from understudy.commands import scontrol_update
from understudy.commands.client import VERSION, Context, RefusedError, UsageError, run
from understudy.commands.options import NONE, REQUIRED, Option, OptionError, OptionTable
from understudy.commands.scontrol_records import job_lines, node_lines, partition_lines, render, reservation_lines
from understudy.commands.squeue import task_numbers
from understudy.commands.texts import timestamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

OPTIONS = OptionTable(
    [
        Option("all", "a", NONE, "show hidden partitions, too", env="SCONTROL_ALL"),
        Option("cluster", "", REQUIRED, "", dest="clusters"),
        Option("clusters", "M", REQUIRED, "NAME: cluster to ask", env="SLURM_CLUSTERS"),
        Option("details", "d", NONE, "more about each record"),
        Option("federation", "", NONE, "accepted; this cluster is in no federation", env="SCONTROL_FEDERATION"),
        Option("future", "F", NONE, "show nodes in state FUTURE, too", env="SCONTROL_FUTURE"),
        Option("help", "h", NONE, "print this text"),
        Option("hide", "", NONE, "leave out hidden partitions"),
        Option("local", "", NONE, "accepted; only this cluster is shown", env="SCONTROL_LOCAL"),
        Option("oneliner", "o", NONE, "each record on one line"),
        Option("quiet", "Q", NONE, "print no errors"),
        Option("sibling", "", NONE, "", env="SCONTROL_SIB"),
        Option("uid", "u", REQUIRED, "USER: update jobs as this user"),
        Option("usage", "", NONE, "print a short summary"),
        Option("verbose", "v", NONE, "say more"),
        Option("version", "V", NONE, "print the version"),
    ]
)

HELP = """
Keywords:
  show ENTITY [NAME]        config, daemons, hostlist, hostlistsorted, hostnames, job, node, partition, step ...
  update KEY=VALUE...       a job (JobId=), a node (NodeName=), a partition (PartitionName=) or a reservation
  create, delete            partition=NAME, reservation=NAME
  hold, uhold, release      jobs that wait
  suspend, resume           jobs that run
  requeue, requeuehold      jobs, from their beginning
  top                       jobs, before the user's others
  ping                      is the controller there?
  reconfigure               read slurm.conf again
  shutdown                  end the daemons
  write batch_script JOB [FILE]
  version, help, quit
"""

PROMPT = "scontrol: "


class Session:
    """What the options, and keywords of the interactive mode, have set."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.one_line = False
        self.details = False
        self.all = True
        self.quiet = False
        self.ended = False

    def do(self, words: list[str]) -> int:
        """One command line in words."""
        keyword, rest = words[0].lower(), words[1:]
        name = _full_name(keyword, KEYWORDS)
        if name is None:
            self.context.complain(f"invalid keyword: {words[0]}")
            return 1
        return KEYWORDS[name](self, rest)

    def complain(self, text: str) -> None:
        if not self.quiet:
            self.context.complain(text)


def _full_name(word: str, known: "dict[str, Any]") -> str | None:
    """The name that the word is or begins; the first in the table's order."""
    if word in known:
        return word
    return next((name for name in known if word and name.startswith(word)), None)


def scontrol(arguments: list[str], context: Context) -> int:
    """The command. Returns the exit code."""
    first = next((word for word in arguments if not word.startswith("-")), "")
    try:
        given, words = OPTIONS.parse(arguments, permute=not first.lower().startswith("setdebugf"))
    except OptionError as error:
        raise UsageError(str(error)) from None
    names = {option.dest for option, _ in given} | {option.dest for option, _ in OPTIONS.from_environment(context.environ)}
    if "help" in names or "usage" in names:
        context.stdout.write(OPTIONS.help_text("scontrol [OPTIONS...] [KEYWORD...]") + HELP)
        return 0
    if "version" in names:
        context.print(f"slurm {VERSION}")
        return 0
    if context.refuses_clusters(next((value for option, value in given if option.dest == "clusters"), None)):
        return 1
    session = Session(context)
    session.one_line, session.details, session.quiet = "oneliner" in names, "details" in names, "quiet" in names
    session.all = "hide" not in names
    return session.do(words) if words else _interactive(session)


def _interactive(session: Session) -> int:
    """Read lines until the end. What is typed into a pipe is shown, as the line editor shows it."""
    context = session.context
    code = 0
    echoes = not context.stdin.isatty()
    while not session.ended:
        context.stdout.write(PROMPT)
        context.stdout.flush()
        line = context.stdin.readline()
        if not line:
            break
        if echoes:
            context.stdout.write(line)
        words = line.split()
        if words:
            code = session.do(words) or code
    return code


# --- show ----------------------------------------------------------------------------------------------------------------------


def _show(session: Session, words: list[str]) -> int:
    if not words:
        return 1
    entity, equals, name = words[0].partition("=")
    if equals:
        words = [entity, name, *words[1:]]
    name_of_entity = _full_name(entity.lower(), ENTITIES)
    if name_of_entity is None:
        session.complain(f"invalid entity:{words[0]} for keyword:show ")
        return 1
    return ENTITIES[name_of_entity](session, words[1:])


def _show_jobs(session: Session, words: list[str]) -> int:
    from understudy.model.records import JOBS

    context = session.context
    columns = list(JOBS)
    try:
        if not words:
            jobs = context.client.query("jobs", columns, all_partitions=session.all).dicts()
            if not jobs:
                context.print("No jobs in the system")
            return _print_jobs(session, jobs)
        if "+" in words[0]:
            return _show_component(session, words[0])
        number, underscore, task = words[0].partition("_")
        if not number.isdigit():
            session.complain("scontrol_print_job error: Invalid job id specified")
            return 1
        jobs = context.client.query("jobs", columns, {"job_id": [int(number)]}).dicts()
        if jobs and jobs[0]["het_job_id"] == int(number):
            jobs = context.client.query("jobs", columns, {"het_job_id": [int(number)]}).dicts()
        elif not jobs or jobs[0]["array_job_id"]:
            known = {job["job_id"] for job in jobs}
            jobs += [job for job in context.client.query("jobs", columns, {"array_job_id": [int(number)]}).dicts() if job["job_id"] not in known]
        if not jobs:
            session.complain("slurm_load_jobs error: Invalid job id specified")
            return 1
        if underscore:
            jobs = _of_task(jobs, int(task) if task.isdigit() else -1)
            if not jobs:
                context.print(f"Job {words[0]} not found")
                return 1
    except RefusedError as error:
        session.complain(f"slurm_load_jobs error: {error.text}")
        return 1
    return _print_jobs(session, jobs)


def _show_component(session: Session, name: str) -> int:
    """`17+2`: a component of a heterogeneous job."""
    from understudy.model.records import JOBS

    number, _, offset = name.partition("+")
    if not number.isdigit() or not offset.isdigit():
        session.complain("scontrol_print_job error: Invalid job id specified")
        return 1
    jobs = session.context.client.query("jobs", list(JOBS), {"het_job_id": [int(number)], "het_job_offset": [int(offset)]}).dicts()
    if not jobs:
        session.complain("slurm_load_jobs error: Invalid job id specified")
        return 1
    return _print_jobs(session, jobs)


def _of_task(jobs: "list[dict[str, Any]]", task: int) -> "list[dict[str, Any]]":
    """The record of one task of an array; from the array's own record if the task is not split off yet."""
    for job in jobs:
        if job["array_task_id"] == task:
            return [job]
    return [{**job, "array_task_id": task} for job in jobs if task in task_numbers(job["array_task_expression"])]


def _print_jobs(session: Session, jobs: "list[dict[str, Any]]") -> int:
    for job in jobs:
        session.context.stdout.write(render(job_lines(job, details=session.details), one_line=session.one_line))
    return 0


def _show_nodes(session: Session, words: list[str]) -> int:
    from understudy.model.hostlist import expand
    from understudy.model.records import NODES

    context = session.context
    where: dict[str, list[Any]] = {}
    wanted: list[str] = []
    if words:
        try:
            wanted = expand(words[0])
        except ValueError:
            wanted = [words[0]]
        where = {"name": wanted}
    try:
        nodes = context.client.query("nodes", list(NODES), where).dicts()
    except RefusedError as error:
        session.complain(f"slurm_load_node error: {error.text}")
        return 1
    if not words and not nodes:
        context.print("No nodes in the system")
    by_name = {node["name"]: node for node in nodes}
    code = 0
    for name in wanted or by_name:
        if name in by_name:
            context.stdout.write(render(node_lines(by_name[name], details=session.details), one_line=session.one_line))
        else:
            context.print(f"Node {name} not found")
            code = 1
    return code


def _show_partitions(session: Session, words: list[str]) -> int:
    from understudy.model.records import PARTITIONS

    context = session.context
    try:
        partitions = context.client.query("partitions", list(PARTITIONS), {"name": [words[0]]} if words else {}, all_partitions=session.all).dicts()
    except RefusedError as error:
        session.complain(f"slurm_load_partitions error: {error.text}")
        return 1
    if not partitions:
        context.print(f"Partition {words[0]} not found" if words else "No partitions in the system")
        return 1 if words else 0
    for partition in partitions:
        context.stdout.write(render(partition_lines(partition), one_line=session.one_line))
    return 0


def _show_config(session: Session, words: list[str]) -> int:
    context = session.context
    try:
        answer = context.client.query("config", ["name", "value"])
        hosts = context.client.query("ping", ["host", "role"]).rows
    except RefusedError as error:
        session.complain(f"slurm_load_ctl_conf error: {error.text}")
        return 1
    context.print(f"Configuration data as of {timestamp(answer.now)}")
    for name, value in answer.rows:
        if not words or words[0].lower() in name.lower():
            context.print(f"{name:<23} = {value}")
    context.print("")
    for host, role in hosts:
        context.print(f"Slurmctld({role}) at {host} is UP")
    return 0


def _hosts(session: Session, words: list[str]) -> list[str] | None:
    """The hosts that words (or the job's own environment, or a file) name."""
    from understudy.model.hostlist import expand

    context = session.context
    expression = ",".join(words) or context.environ.get("SLURM_JOB_NODELIST", "")
    if expression.startswith("/"):
        try:
            with open(expression, encoding="utf-8") as file:
                expression = ",".join(file.read().replace(",", " ").split())
        except OSError as error:
            context.error(f"Unable to open {expression}: {error.strerror}")
            return None
    if not expression:
        context.error("host list is empty")
        return None
    try:
        return expand(expression)
    except ValueError:
        context.error(f"Invalid hostlist: {expression}")
        return None


def _show_host_names(session: Session, words: list[str]) -> int:
    names = _hosts(session, words)
    if names:
        session.context.print("\n".join(names))
    return 0


def _show_host_list(session: Session, words: list[str], *, is_sorted: bool = False) -> int:
    from understudy.model.hostlist import compress

    names = _hosts(session, words)
    if names:
        session.context.print(compress(dict.fromkeys(names) if is_sorted else names, sort=is_sorted))
    return 0


def _show_sorted_list(session: Session, words: list[str]) -> int:
    return _show_host_list(session, words, is_sorted=True)


def _show_aliases(session: Session, words: list[str]) -> int:
    """The node names whose hosts are named."""
    context = session.context
    try:
        rows = context.client.query("nodes", ["name", "hostname"]).rows
    except RefusedError as error:
        session.complain(f"slurm_load_node error: {error.text}")
        return 1
    wanted = words[0] if words else os.uname().nodename.partition(".")[0]
    names = [name for name, host in rows if host == wanted]
    if not names:
        return 1
    context.print(" ".join(names))
    return 0


def _show_licenses(session: Session, words: list[str]) -> int:
    context = session.context
    try:
        rows = context.client.query("licenses", ["name", "total", "used", "reserved"]).rows
    except RefusedError as error:
        session.complain(f"slurm_load_licenses error: {error.text}")
        return 1
    if not rows:
        context.print("No licenses configured in Slurm.")
    for name, total, used, reserved in rows:
        if not words or name == words[0]:
            context.print(f"LicenseName={name}\n    Total={total} Used={used} Free={max(total - used, 0)} Reserved={reserved} Remote=no")
    return 0


def _show_topology(session: Session, words: list[str]) -> int:
    from understudy.model.hostlist import expand

    context = session.context
    try:
        rows = context.client.query("topology", ["name", "level", "link_speed", "nodes", "switches"]).rows
    except RefusedError as error:
        session.complain(f"slurm_load_topo error: {error.text}")
        return 1
    shown = [row for row in rows if not words or row[0] == words[0]] or [row for row in rows if words and words[0] in expand(row[3])]
    if not shown:
        missing = f"Topology information contains no switch or node named {words[0]}" if words else "No topology information available"
        session.complain(missing)
    for name, level, speed, nodes, switches in shown:
        below = f" Switches={switches}" if switches else ""
        context.print(f"SwitchName={name} Level={level} LinkSpeed={speed} Nodes={nodes}{below}")
    return 0


def _show_daemons(session: Session, _words: list[str]) -> int:
    session.context.print("slurmctld ")
    return 0


def _show_nothing(session: Session, words: list[str]) -> int:
    del session, words
    return 0


def _none_of(text: str, *, is_error: bool = False) -> "Callable[[Session, list[str]], int]":
    """Entities of which this cluster has none."""

    def show(session: Session, words: list[str]) -> int:
        del words
        (session.context.error if is_error else session.context.print)(text)
        return 0

    return show


def _show_reservations(session: Session, words: list[str]) -> int:
    from understudy.model.records import RESERVATIONS

    context = session.context
    try:
        reservations = context.client.query("reservations", list(RESERVATIONS), {"name": [words[0]]} if words else {}).dicts()
    except RefusedError as error:
        session.complain(f"slurm_load_reservations error: {error.text}")
        return 1
    if not reservations:
        context.print(f"Reservation {words[0]} not found" if words else "No reservations in the system")
        return 1 if words else 0
    for reservation in reservations:
        context.stdout.write(render(reservation_lines(reservation), one_line=session.one_line))
    return 0


def _show_steps(session: Session, words: list[str]) -> int:
    session.context.print(f"Job step {words[0]} not found" if words else "No job steps in the system")
    return 1 if words else 0


# In the order in which an abbreviation is looked up.
ENTITIES: "dict[str, Callable[[Session, list[str]], int]]" = {
    "aliases": _show_aliases,
    "assoc_mgr": _none_of("Current Association Manager state\n\nNo users currently cached in Slurm.\n\nNo associations currently cached in Slurm.\n"),
    "burstbuffer": _show_nothing,
    "bbstat": _show_nothing,
    "config": _show_config,
    "daemons": _show_daemons,
    "dwstat": _show_nothing,
    "federation": _show_nothing,
    "frontend": _none_of("No nodes in the system"),
    "hostlist": _show_host_list,
    "hostlistsorted": _show_sorted_list,
    "hostnames": _show_host_names,
    "jobs": _show_jobs,
    "jobid": _show_jobs,
    "licenses": _show_licenses,
    "nodes": _show_nodes,
    "nodename": _show_nodes,
    "partitions": _show_partitions,
    "partitionname": _show_partitions,
    "reservations": _show_reservations,
    "reservationname": _show_reservations,
    "slurmd": _none_of("slurm_load_slurmd_status: Unable to contact slurmd", is_error=True),
    "steps": _show_steps,
    "topology": _show_topology,
}


# --- other keywords ------------------------------------------------------------------------------------------------------------


def _ping(session: Session, _words: list[str]) -> int:
    context = session.context
    try:
        for host, role in context.client.query("ping", ["host", "role"]).rows:
            context.print(f"Slurmctld({role}) at {host} is UP")
    except RefusedError:
        context.print(f"Slurmctld(primary) at {os.uname().nodename.partition('.')[0]} is DOWN")
        stars = "*" * 41
        context.print(f"{stars}\n** RESTORE SLURMCTLD DAEMON TO SERVICE **\n{stars}")
        return 1
    return 0


def _reconfigure(session: Session, _words: list[str]) -> int:
    return _plain_call(session, "Reconfigure", "slurm_reconfigure error")


def _shutdown(session: Session, _words: list[str]) -> int:
    return _plain_call(session, "Shutdown", "slurm_shutdown error")


def _plain_call(session: Session, message: str, failing: str) -> int:
    try:
        session.context.client.call(message)
    except RefusedError as error:
        session.complain(f"{failing}: {error.text}")
        return 1
    return 0


def _write(session: Session, words: list[str]) -> int:
    context = session.context
    what = words[0].lower() if words else ""
    if len(words) < 2 or not "batch_script".startswith(what[:12]) or len(what) < 5:
        session.complain("invalid write argument" if words else "too few arguments for keyword:write")
        return 1
    job = words[1]
    try:
        (text,) = context.client.call("GetScript", job)
    except RefusedError as error:
        session.complain(f"job script retrieval failed: {error.text}")
        return 1
    target = words[2] if len(words) > 2 else f"slurm-{job}.sh"
    if target == "-":
        context.stdout.write(text)
        return 0
    try:
        with open(target, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        os.chmod(target, 0o700)
    except OSError as error:
        context.error(f"failed to open file `{target}`: {error.strerror}")
        return 1
    context.print(f"batch script for job {job} written to {target}")
    return 0


def _error_text(session: Session, words: list[str]) -> int:
    from understudy.model.errors import ERROR_TEXT

    for word in words:
        text = ERROR_TEXT.get(int(word)) if word.isdigit() else None
        session.context.print(text or f"Unknown error {word}")
    return 0


def _set_flag(name: str, *, value: bool) -> "Callable[[Session, list[str]], int]":
    def set_flag(session: Session, words: list[str]) -> int:
        setattr(session, name, value)
        return session.do(words) if words else 0

    return set_flag


def _help(session: Session, _words: list[str]) -> int:
    session.context.stdout.write(OPTIONS.help_text("scontrol [OPTIONS...] [KEYWORD...]") + HELP)
    return 0


def _version(session: Session, _words: list[str]) -> int:
    session.context.print(f"slurm {VERSION}")
    return 0


def _not_supported(session: Session, _words: list[str]) -> int:
    session.complain("scontrol: error: this cluster does not support it yet")
    return 1


def _reboot(session: Session, words: list[str]) -> int:
    """scontrol(1) reboot [ASAP] [nextstate=RESUME|DOWN] [reason=TEXT] ALL|NODES."""
    asap, after, reason, nodes = False, "", "", ""
    for word in words:
        key, equals, value = word.partition("=")
        if not equals and key.upper() == "ASAP":
            asap = True
        elif equals and key.lower() == "nextstate":
            after = value.upper()
            if after not in {"DOWN", "RESUME"}:
                session.complain(f"Invalid state: {value}\nValid states: DOWN, RESUME")
                return 1
        elif equals and key.lower() == "reason":
            reason = value
        else:
            nodes = word
    if not nodes:
        session.complain("Missing node list. Specify ALL|<NodeList>")
        return 1
    try:
        session.context.client.call("RebootNodes", nodes, asap, after, reason)
    except RefusedError as error:
        session.complain(f"scontrol_reboot_nodes error: {error.text}")
        return 1
    return 0


def _cancel_reboot(session: Session, words: list[str]) -> int:
    if not words:
        session.complain("missing argument for keyword:cancel_reboot")
        return 1
    return scontrol_update.update([f"NodeName={words[0]}", "State=CANCEL_REBOOT"], session.context)


def _jobs(action: str) -> "Callable[[Session, list[str]], int]":
    def act(session: Session, words: list[str]) -> int:
        return scontrol_update.control(action, words, session.context)

    return act


# In the order in which an abbreviation is looked up.
KEYWORDS: "dict[str, Callable[[Session, list[str]], int]]" = {
    "abort": _not_supported,
    "all": _set_flag("all", value=True),
    "cancel_reboot": _cancel_reboot,
    "completing": _show_nothing,
    "create": lambda session, words: scontrol_update.create(words, session.context),
    "delete": lambda session, words: scontrol_update.delete(words, session.context),
    "details": _set_flag("details", value=True),
    "errnumstr": _error_text,
    "exit": _set_flag("ended", value=True),
    "help": _help,
    "hide": _set_flag("all", value=False),
    "hold": _jobs("hold"),
    "holdu": _jobs("uhold"),
    "notify": _not_supported,
    "oneliner": _set_flag("one_line", value=True),
    "ping": _ping,
    "quiet": _set_flag("quiet", value=True),
    "quit": _set_flag("ended", value=True),
    "reboot": _reboot,
    "reconfigure": _reconfigure,
    "release": _jobs("release"),
    "requeue": _jobs("requeue"),
    "requeuehold": _jobs("requeuehold"),
    "resume": _jobs("resume"),
    "schedloglevel": _not_supported,
    "setdebug": _not_supported,
    "setdebugflags": _not_supported,
    "show": _show,
    "shutdown": _shutdown,
    "suspend": _jobs("suspend"),
    "takeover": _not_supported,
    "token": _not_supported,
    "top": _jobs("top"),
    "uhold": _jobs("uhold"),
    "update": lambda session, words: scontrol_update.update(words, session.context),
    "verbose": _show_nothing,
    "version": _version,
    "write": _write,
}


def main() -> int:
    """Run as a program; does not return."""
    return run("scontrol", scontrol)


if __name__ == "__main__":
    main()
