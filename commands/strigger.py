"""strigger: programs that the controller runs when something happens. Follows strigger(1) of
22.05.
"""

import os

from understudy.commands.shared.client import RefusedError
from understudy.commands.shared.context import Context, run
from understudy.commands.shared.in_order import EndedError, read_in_order
from understudy.commands.shared.options import NONE, OPTIONAL, REQUIRED, Option, OptionTable
from understudy.model.times import leading_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OPTIONS = OptionTable(
    [
        Option("set", "", NONE, "keep a trigger"),
        Option("get", "", NONE, "show triggers"),
        Option("cluster", "", REQUIRED, "", dest="clusters"),
        Option("clear", "", NONE, "forget triggers"),
        Option("primary_slurmctld_failure", "a", NONE, "event: the primary controller fails"),
        Option(
            "primary_slurmctld_resumed_operation",
            "A",
            NONE,
            "event: the primary controller works again",
        ),
        Option(
            "primary_slurmctld_resumed_control",
            "b",
            NONE,
            "event: the primary controller is in control again",
        ),
        Option("backup_slurmctld_failure", "B", NONE, "event: the backup controller fails"),
        Option(
            "backup_slurmctld_resumed_operation",
            "c",
            NONE,
            "event: the backup controller works again",
        ),
        Option(
            "backup_slurmctld_assumed_control", "C", NONE, "event: the backup controller takes over"
        ),
        Option("burst_buffer", "", NONE, "event: an error of a burst buffer"),
        Option("down", "d", NONE, "event: a node goes DOWN"),
        Option("drained", "D", NONE, "event: a node becomes DRAINED"),
        Option(
            "primary_slurmctld_acct_buffer_full",
            "e",
            NONE,
            "event: the controller can keep no more records for accounting",
        ),
        Option("fini", "f", NONE, "event: the job has ended"),
        Option("fail", "F", NONE, "event: a node is expected to fail"),
        Option("flags", "", REQUIRED, "PERM: stay when the event has come"),
        Option(
            "front_end", "", NONE, "of front ends, of which there are none: kept, and never comes"
        ),
        Option("primary_slurmdbd_failure", "g", NONE, "event: the accounting daemon fails"),
        Option(
            "primary_slurmdbd_resumed_operation",
            "G",
            NONE,
            "event: the accounting daemon works again",
        ),
        Option("primary_database_failure", "h", NONE, "event: the database fails"),
        Option("primary_database_resumed_operation", "H", NONE, "event: the database works again"),
        Option("help", "", NONE, "print this text"),
        Option("id", "i", REQUIRED, "NUMBER: of a trigger"),
        Option("idle", "I", NONE, "event: a node stays IDLE for as long as --offset says"),
        Option("jobid", "j", REQUIRED, "ID: about this job"),
        Option("clusters", "M", REQUIRED, "LIST: clusters to ask"),
        Option("node", "n", OPTIONAL, "HOSTS: about these nodes, or all"),
        Option("noheader", "N", NONE, "no header line"),
        Option(
            "offset", "o", REQUIRED, "SECONDS: so long after the event, or before it if negative"
        ),
        Option("program", "p", REQUIRED, "PATH: what to run, with arguments"),
        Option("quiet", "Q", NONE, "say nothing of triggers that are gone already"),
        Option("reconfig", "r", NONE, "event: the configuration, or a node's state, changes"),
        Option("time", "t", NONE, "event: the job reaches its time limit"),
        Option("up", "u", NONE, "event: a node that was DOWN comes back"),
        Option("usage", "", NONE, "print a short summary of the options"),
        Option("user", "", REQUIRED, "NAME: only triggers of this user"),
        Option("verbose", "v", NONE, "say more"),
        Option("version", "V", NONE, "print the version"),
    ]
)
USAGE = "Usage: strigger [--set | --get | --clear | --version] [-aAbBcCdDefFgGhHiIjnNopQrtuv]"
_NODE_EVENTS = ("down", "drained", "fail", "idle", "up", "reconfig")
_JOB_EVENTS = ("fini", "time")
_RESOURCES = {
    "slurmctld": (
        "primary_slurmctld_failure",
        "primary_slurmctld_resumed_operation",
        "primary_slurmctld_resumed_control",
        "primary_slurmctld_acct_buffer_full",
        "backup_slurmctld_failure",
        "backup_slurmctld_resumed_operation",
        "backup_slurmctld_assumed_control",
    ),
    "slurmdbd": ("primary_slurmdbd_failure", "primary_slurmdbd_resumed_operation"),
    "database": ("primary_database_failure", "primary_database_resumed_operation"),
    "other": ("burst_buffer",),
}
_EVENTS = (
    *_NODE_EVENTS,
    *_JOB_EVENTS,
    *(event for events in _RESOURCES.values() for event in events),
)
_NO_TRIGGER = """\
You must specify a trigger (--down, --up, --reconfig, --time, --fini, --burst_buffer,
--primary_slurmctld_failure,
--primary_slurmctld_resumed_operation,
--primary_slurmctld_resumed_control,
--primary_slurmctld_acct_buffer_full,
--backup_slurmctld_failure,
--backup_slurmctld_resumed_operation,
--backup_slurmctld_as_ctrl,
--primary_slurmdbd_failure,
--primary_slurmdbd_resumed_operation,
--primary_database_failure, or 
--primary_database_resumed_operation)
"""  # noqa: W291 - so it stands there
MOST_OFFSET = 32000
NO_SUCH_TRIGGER = 3
_COLUMNS = [
    "trigger_id",
    "resource",
    "resource_id",
    "events",
    "offset_s",
    "user_id",
    "user_name",
    "is_permanent",
    "program",
]
_HEADER = (
    f"{'TRIG_ID'} {'RES_TYPE':<9} {'RES_ID':>7} {'TYPE':<35} {'OFFSET':>6} {'USER':<8} "
    f"{'FLAGS':<5} PROGRAM"
)


class _BadError(Exception):
    """What is wrong with the command line."""


def strigger(arguments: "list[str]", context: Context) -> int:
    """The command. Returns the exit code."""
    try:
        given, _ = read_in_order(OPTIONS, arguments, USAGE, lambda *_: None, context)
    except EndedError as ended:
        return ended.code
    options = {
        option.dest: value or ""
        for option, value in [*OPTIONS.from_environment(context.environ), *given]
    }
    try:
        for option, value in given:
            _check_value(option.dest, value or "")
        _check(options)
    except _BadError as error:
        context.error(str(error))
        return 1
    if "get" in options:
        return _get(options, context)
    return _set(options, context) if "set" in options else _clear(options, context)


def _check_value(name: str, value: str) -> None:
    """What an option cannot be, which is complained of before what is missing.

    Raises:
        _BadError: as it says.
    """
    if name == "flags" and not value.lower().startswith("perm"):
        raise _BadError(f"Invalid flags {value}")
    if name == "jobid" and leading_number(value) <= 0:
        raise _BadError(f"Invalid jobid {value}")
    if name == "user":
        _user_id(value)


def _check(options: "dict[str, str]") -> None:
    """What the command itself finds out of all options.

    Raises:
        _BadError: as it says.
    """
    if "user" in options:
        options["user_id"] = str(_user_id(options["user"]))
    if sum(action in options for action in ("set", "get", "clear")) != 1:
        raise _BadError(
            "You must use exactly one of the following options: --set, --get or --clear"
        )
    if "clear" in options and not (
        options.keys() & {"jobid", "user"} or leading_number(options.get("id", ""))
    ):
        raise _BadError("You must specify a --id, --jobid, or --user to clear")
    if "set" in options and not options.keys() & set(_EVENTS):
        raise _BadError(_NO_TRIGGER)
    program = options.get("program", "")
    if "set" in options and "program" not in options:
        raise _BadError("You must specify a --program value")
    if options.keys() & set(_JOB_EVENTS) and "jobid" not in options:
        raise _BadError("You must specify a --jobid value")
    if "program" in options and not program.startswith("/"):
        raise _BadError('The --program value must start with "/"')
    if "set" in options and not os.path.isfile(program.split()[0]):
        raise _BadError("Invalid --program value, file not found")
    if abs(leading_number(options.get("offset", ""))) > MOST_OFFSET:
        raise _BadError(f"The --offset parameter must be between +/-{MOST_OFFSET}")


def _user_id(text: str) -> int:
    import pwd

    if text.isdigit():
        return int(text)
    try:
        return pwd.getpwnam(text).pw_uid
    except KeyError:
        raise _BadError(f"Invalid user {text}") from None


def _set(options: "dict[str, str]", context: Context) -> int:
    events = [event for event in _EVENTS if event in options]
    resource, resource_id = "node", options.get("node") or "*"
    if "jobid" in options:
        resource, resource_id = "job", str(leading_number(options["jobid"]))
    elif "front_end" in options:
        resource, resource_id = "front_end", ""
    elif "node" not in options:
        for name, own in _RESOURCES.items():
            if options.keys() & set(own):
                resource = name
    if resource == "other":
        resource_id = ""
    try:
        context.client.call(
            "SetTrigger",
            resource,
            resource_id,
            events,
            leading_number(options.get("offset", "")),
            options["program"],
            "flags" in options,
        )
    except RefusedError as error:
        return _refused("slurm_set_trigger", error, context)
    if "verbose" in options:
        context.complain(f"{context.program}: trigger set")
    return 0


def _clear(options: "dict[str, str]", context: Context) -> int:
    number = leading_number(options.get("id", ""))
    try:
        context.client.call(
            "ClearTriggers",
            number,
            leading_number(options.get("jobid", "")),
            int(options.get("user_id", -1)),
        )
    except RefusedError as error:
        if error.code == NO_SUCH_TRIGGER and "quiet" in options:
            return 0
        return _refused("slurm_clear_trigger", error, context)
    if "verbose" in options:
        what = f"trigger {number}" if number else "triggers"
        context.complain(f"{context.program}: {what} cleared")
    return 0


def _get(options: "dict[str, str]", context: Context) -> int:
    try:
        rows = context.client.query("triggers", _COLUMNS).dicts()
    except RefusedError as error:
        return _refused("slurm_get_triggers", error, context)
    if "verbose" in options:
        context.complain(f"{context.program}: Read {len(rows)} trigger records")
    rows = [row for row in rows if _is_wanted(row, options)]
    if rows and "noheader" not in options:
        context.print(_HEADER)
    for row in rows:
        events = row["events"]
        kind = events[0] if len(events) == 1 else "unknown"
        flags = "PERM" if row["is_permanent"] else ""
        context.print(
            f"{row['trigger_id']:7} {row['resource']:<9} {row['resource_id'] or '(null)':>7} "
            f"{kind:<35} {row['offset_s']:6} "
            f"{row['user_name']:<8} {flags:<5} {row['program']}"
        )
    return 0


def _is_wanted(row: "dict[str, Any]", options: "dict[str, str]") -> bool:
    """Whether what the options name is all true of the trigger. --reconfig chooses none."""
    if any(
        event in options and row["events"] != [event] for event in _EVENTS if event != "reconfig"
    ):
        return False
    if "id" in options and leading_number(options["id"]) not in {0, row["trigger_id"]}:
        return False
    if "user_id" in options and row["user_id"] != int(options["user_id"]):
        return False
    if "jobid" in options:
        return bool(
            row["resource"] == "job" and row["resource_id"] == str(leading_number(options["jobid"]))
        )
    if "down" in options and row["resource"] == "job":
        return False
    return "node" not in options or row["resource"] == "node"  # whichever nodes it names


def _refused(what: str, error: RefusedError, context: Context) -> int:
    context.complain(f"{what}: {error.text}")
    return 1


def main() -> int:
    """Run as a program; does not return."""
    return run("strigger", strigger)


if __name__ == "__main__":
    main()
