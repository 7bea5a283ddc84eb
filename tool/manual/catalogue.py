"""What each command can do, read from its own declarations: options, fields, words, and which of
them have an effect here.

Place: the tool. Nobody needs it to run a command: it serves the page of options, the manual
pages and shell completion. A command is described by its module: the docstring's first line,
`OPTIONS`, the tables of fields and words beside it. Only what no declaration says stands here:
which options of jobs are kept and shown without effect (ACCEPTED), and what Slurm has and these
commands do not (REFUSED).
"""

from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec

from understudy.commands.shared.help_pages import PAGES
from understudy.commands.shared.options import NONE, OPTIONAL, Option, OptionTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

EMULATED, WITHOUT_EFFECT, NOT_THERE = "emulated", "accepted without effect", "refused"
COMMANDS = (
    *(
        "salloc",
        "sattach",
        "sbatch",
        "sbcast",
        "scancel",
        "scontrol",
        "scrontab",
        "sdiag",
        "sinfo",
        "sprio",
        "squeue",
        "srun",
        "sshare",
    ),
    *("smap", "sstat", "strigger", "sacct", "sacctmgr", "sreport"),
)
_SUBMIT_JOBS = ("salloc", "sbatch", "srun")
# Options of jobs that are kept with the job and shown where Slurm shows them, and change nothing.
ACCEPTED_OF_JOBS = frozenset(
    (
        *(
            "acctg-freq",
            "batch",
            "cluster-constraint",
            "container",
            "context",
            "core-spec",
            "cpu-freq",
            "delay-boot",
        ),
        *(
            "gpu-bind",
            "gpu-freq",
            "mcs-label",
            "mem-bind",
            "network",
            "power",
            "profile",
            "reboot",
            "thread-spec",
        ),
    )
)
ACCEPTED = {
    "scancel": frozenset(("ctld", "sibling")),
    "squeue": frozenset(("sibling", "sib")),
    "strigger": frozenset(("front_end",)),
}
REFUSED: "dict[str, tuple[str, ...]]" = {}
# Values that an option can have, where there is a fixed list.
_VALUES = {
    "exclusive": "user mcs",
    "gres-flags": "disable-binding enforce-binding",
    "hint": "compute_bound memory_bound multithread nomultithread",
    "kill-on-invalid-dep": "yes no",
    "mail-type": "NONE BEGIN END FAIL REQUEUE ALL INVALID_DEPEND STAGE_OUT TIME_LIMIT "
    "TIME_LIMIT_90 TIME_LIMIT_80 TIME_LIMIT_50 ARRAY_TASKS",
    "open-mode": "append truncate",
    "wait-all-nodes": "0 1",
    "flags": "PERM",
}
# What else an option can have, asked of the cluster.
_LIVE = {
    "partition": "partitions",
    "partitions": "partitions",
    "nodelist": "nodes",
    "nodes": "nodes",
    "node": "nodes",
    "exclude": "nodes",
    "jobs": "jobs",
    "jobid": "jobs",
    "job": "jobs",
    "user": "users",
    "users": "users",
    "uid": "users",
    "reservation": "reservations",
    "chdir": "files",
    "error": "files",
    "export-file": "files",
    "input": "files",
    "nodefile": "files",
    "output": "files",
    "program": "files",
}
_LIVE_OPERANDS = {
    "scancel": "jobs",
    "sbatch": "files",
    "scrontab": "files",
    "sattach": "jobs",
    "sbcast": "files",
    "srun": "files",
    "salloc": "files",
}
# Words that a command takes without dashes: (title, module, name of the table there).
_WORDS = {
    "scontrol": (
        ("Commands", "scontrol.scontrol", "KEYWORDS"),
        ("What `show` shows", "scontrol.show", "ENTITIES"),
        ("Keys of jobs", "scontrol.update_job", "JOB_KEYS"),
        ("Keys of nodes", "scontrol.update", "NODE_KEYS"),
        ("Keys of partitions", "scontrol.update", "PARTITION_KEYS"),
        ("Keys of reservations", "scontrol.reservation", "KEYS"),
    ),
    "sacctmgr": (
        ("Entities", "sacctmgr.sacctmgr", "_ENTITIES"),
        ("Keys of accounts", "sacctmgr.keys", "SET account"),
        ("Keys of users", "sacctmgr.keys", "SET user"),
        ("Keys of qualities of service", "sacctmgr.keys", "SET qos"),
    ),
    "sreport": (("Reports", "sreport.sreport", "_REPORTS"),),
}


class Command:
    """One command as its declarations describe it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._module = import_module(module_of(name))
        title, _, rest = (self._module.__doc__ or name).partition("\n")[0].partition(": ")
        self.summary = (rest or title).partition(". Follows")[0].rstrip(".")
        self.options: OptionTable = self._module.OPTIONS
        self.live_operands = _LIVE_OPERANDS.get(name, "")

    @property
    def usage(self) -> str:
        return PAGES[self.name].usage.partition("\n")[0].removeprefix("Usage:").strip()

    @property
    def listed(self) -> "list[Option]":
        """The options by name, without those that are other names of the same."""
        named = [option for option in self.options.options if option.long or option.help]
        return [
            option
            for option in named
            if option.help
            or not any(
                other is not option and other.dest == option.dest and other.help for other in named
            )
        ]

    def other_names(self, option: Option) -> "list[str]":
        return [
            other.long
            for other in self.options.options
            if other is not option
            and other.dest == option.dest
            and other.value == option.value
            and other.long
        ]

    def effect(self, option: Option) -> str:
        """EMULATED or WITHOUT_EFFECT."""
        accepted = option.help.startswith("accepted") or option.long in ACCEPTED.get(self.name, ())
        return (
            WITHOUT_EFFECT
            if accepted or (self.name in _SUBMIT_JOBS and option.long in ACCEPTED_OF_JOBS)
            else EMULATED
        )

    @property
    def refused(self) -> "tuple[str, ...]":
        return REFUSED.get(self.name, ())

    @property
    def fields(self) -> "list[tuple[str, str, str]]":
        """(letter, names, header) of each output field."""
        for holder in (self._module, _beside(self._module, "fields")):
            table = getattr(holder, "FIELDS", None)
            if table is not None:
                return [_describe_field(field) for field in getattr(table, "fields", table)]
        return []

    @property
    def words(self) -> "list[tuple[str, list[str]]]":
        """(title, words) of what it takes without dashes."""
        found = []
        for title, module, where in _WORDS.get(self.name, ()):
            attribute, _, key = where.partition(" ")
            table = getattr(_module(module), attribute, None)
            if table is not None:
                found.append((title, _word_list(table[key] if key else table)))
        return found

    @property
    def variables(self) -> "list[tuple[str, str]]":
        """(variable, option) for those that give an option."""
        return [(name, option.long) for option in self.options.options for name in option.env]


def module_of(command: str) -> str:
    """The module in which a command is the function of its name; "" if there is no such command."""
    entry = next(iter(entry_points(group="console_scripts", name=command)), None)
    return "" if entry is None or not entry.value.startswith("understudy.") else entry.module


def _module(name: str) -> "Any":
    return import_module(f"understudy.commands.{name}")


def _beside(module: "Any", name: str) -> "Any":
    full = f"{module.__package__}.{name}"
    return import_module(full) if find_spec(full) is not None else None


def _describe_field(field: "Any") -> "tuple[str, str, str]":
    if isinstance(field, tuple):
        return "", str(field[0]), str(field[0])
    names = getattr(field, "names", None)
    header = getattr(field, "header", "") or getattr(field, "name", "")
    return (
        getattr(field, "letter", ""),
        ", ".join(names) if names is not None else str(getattr(field, "name", header)),
        str(header),
    )


def _word_list(table: "Any") -> "list[str]":
    words: list[str] = []
    for each in table:
        word = each[0] if isinstance(each, tuple) else getattr(each, "name", each)
        words += (
            [f"{word} {item}" for item in table[each]]
            if isinstance(table, dict) and isinstance(table[each], tuple)
            else [str(word)]
        )
    return list(dict.fromkeys(words))


def commands() -> "list[Command]":
    """All commands that there are, by name."""
    return [Command(name) for name in sorted(COMMANDS) if module_of(name)]


def value_name(option: Option) -> "tuple[str, str]":
    """(name of its value, what it does)."""
    metavar, _, what = option.help.rpartition(": ")
    return (metavar if option.value != NONE else ""), what if option.value != NONE else option.help


def spelled(option: Option) -> str:
    """As manual pages write it: `-p, --partition=LIST`."""
    metavar, _ = value_name(option)
    if not option.long:
        return f"-{option.short}" + (f" {metavar}" if option.value != NONE else "")
    long = f"--{option.long}"
    if option.value != NONE:
        metavar = metavar or "VALUE"
        long += f"[={metavar}]" if option.value == OPTIONAL else f"={metavar}"
    return f"-{option.short}, {long}" if option.short else long


def fixed_values(option: Option) -> "list[str]":
    """The values that it can have, where there is a fixed list."""
    return [] if option.value == NONE else _VALUES.get(option.long, "").split()


def live_values(option: Option) -> str:
    """What its value names: jobs, nodes, partitions, users, reservations, files; "" for anything
    else.
    """
    return "" if option.value == NONE else _LIVE.get(option.long, "")


def unknown_names() -> "Iterable[str]":
    """Names in this module that no declaration knows, or knows by now: for the test that keeps it
    true.
    """
    for command in commands():
        known = command.options.by_long
        yield from (
            f"{command.name}: {name} is no option"
            for name in ACCEPTED.get(command.name, ())
            if name not in known
        )
        yield from (
            f"{command.name}: {name} is an option" for name in command.refused if name in known
        )
        if command.name == "sbatch":
            yield from (
                f"sbatch: {name} is no option"
                for name in sorted(ACCEPTED_OF_JOBS)
                if name not in known
            )
