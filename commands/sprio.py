"""sprio: what the priorities of waiting jobs are made of. Follows sprio(1) of 22.05."""

from understudy.commands.shared.client import RefusedError
from understudy.commands.shared.context import Context, run
from understudy.commands.shared.fields import Cell, Field, FieldTable, header_line, lines
from understudy.commands.shared.in_order import EndedError, read_in_order
from understudy.commands.shared.options import (
    NONE,
    OPTIONAL,
    REQUIRED,
    Option,
    OptionTable,
    last_values,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What is printed where nothing is said: the parts whose weight is not 0.
_BEFORE = ("%.15i %9r", "%.8u", "%.10Y %.10S")
_PARTS = (
    ("age", "%.10A"),
    ("association", "%.10B"),
    ("fair_share", "%.10F"),
    ("job_size", "%.10J"),
    ("partition", "%.10P"),
    ("qos", "%.10Q"),
)
LONG = "%.15i %9r %.8u %.10Y %.10S %.10A %.10B %.10F %.10J %.10P %.10Q %.11N %.20T"
NORMAL_LONG = "%.15i %9r %.8u %10y %10a %10b %10f %10j %10p %10q %20t"
_MOST = 0xFFFFFFFF
_SUM = (
    "priority is_set nice weighted_tres site weighted_age weighted_association "
    "weighted_fair_share weighted_job_size weighted_partition weighted_qos"
)
_USAGE = """\
Usage: sprio [-j jid[s]] [-u user_name[s]] [-o format] [-p partitions]
   [--federation] [--local] [--sibling] [--usage] [-hlnvVw]
"""
OPTIONS = OptionTable(
    [
        Option("help", "", NONE, "print this text"),
        Option("jobs", "j", OPTIONAL, "LIST: only these jobs"),
        Option("long", "l", NONE, "more about each job"),
        Option("local", "", NONE, "accepted; only this cluster is shown", env="SPRIO_LOCAL"),
        Option("cluster", "", REQUIRED, "", dest="clusters"),
        Option("clusters", "M", REQUIRED, "LIST: clusters to ask", env="SLURM_CLUSTERS"),
        Option("noheader", "h", NONE, "no header line"),
        Option("norm", "n", NONE, "factors between 0 and 1 in place of what they contribute"),
        Option("format", "o", REQUIRED, "FORMAT: what to print", env="SPRIO_FORMAT"),
        Option(
            "federation",
            "",
            NONE,
            "accepted; this cluster is in no federation",
            env="SPRIO_FEDERATION",
        ),
        Option("partition", "p", REQUIRED, "LIST: only jobs in these partitions"),
        Option("sort", "S", REQUIRED, "LETTERS: in which order"),
        Option("sib", "", NONE, "", dest="sibling"),
        Option("sibling", "", NONE, "accepted; this cluster is in no federation"),
        Option("user", "u", REQUIRED, "LIST: only jobs of these users"),
        Option("usage", "", NONE, "print a short summary of the options"),
        Option("verbose", "v", NONE, "say more"),
        Option("version", "V", NONE, "print the version"),
        Option("weights", "w", NONE, "print the weights of the factors"),
    ]
)


def _whole(amount: "float | None") -> str:
    return "" if amount is None else f"{amount:.0f}"


def _fraction(amount: "float | None") -> str:
    return "" if amount is None else f"{amount:.7f}"


def _tres(amounts: "list[tuple[str, float]]") -> str:
    return ",".join([f"{name}={amount:.0f}" for name, amount in amounts])


def _tres_fractions(amounts: "list[tuple[str, float]]") -> str:
    return ",".join([f"{name}={amount:.2f}" for name, amount in amounts])


def _plain(value: "Any") -> str:
    return "" if value is None else str(value)


def _normal_priority(
    priority: "int | None", is_set: bool, nice: int, tres: "list[tuple[str, float]]", *parts: float
) -> str:
    """Not cut to a whole number before it is divided. Slurm does not divide a priority that an
    administrator has set.
    """
    if priority is None:
        return ""
    worked_out = sum(parts) + sum(amount for _, amount in tres) - nice
    return f"{priority if is_set else worked_out / _MOST:.14f}"


FIELDS = FieldTable(
    [
        Field("i", "", "JOBID", "job_id", _plain),
        Field("r", "", "PARTITION", "partition", _plain),
        Field("c", "", "CLUSTER", "", lambda: "(null)"),
        Field("u", "", "USER", "user_name", _plain),
        Field("Y", "", "PRIORITY", "priority", _plain),
        Field("y", "", "PRIORITY", _SUM, _normal_priority),
        Field("S", "", "SITE", "site", _plain),
        Field("A", "", "AGE", "weighted_age", _whole),
        Field("a", "", "AGE", "normal_age", _fraction),
        Field("B", "", "ASSOC", "weighted_association", _whole),
        Field("b", "", "ASSOC", "normal_association", _fraction),
        Field("F", "", "FAIRSHARE", "weighted_fair_share", _whole),
        Field("f", "", "FAIRSHARE", "normal_fair_share", _fraction),
        Field("J", "", "JOBSIZE", "weighted_job_size", _whole),
        Field("j", "", "JOBSIZE", "normal_job_size", _fraction),
        Field("P", "", "PARTITION", "weighted_partition", _whole),
        Field("p", "", "PARTITION", "normal_partition", _fraction),
        Field("Q", "", "QOS", "weighted_qos", _whole),
        Field("q", "", "QOS", "normal_qos", _fraction),
        Field("N", "", "NICE", "nice", _plain),
        Field("T", "", "TRES", "weighted_tres", _tres),
        Field("t", "", "TRES", "normal_tres", _tres_fractions),
    ]
)
_COLUMNS = [
    "job_id",
    "partition",
    "user_name",
    "user_id",
    "priority",
    "is_set",
    "site",
    "nice",
    "weighted_tres",
    "normal_tres",
    "weighted_age",
    "weighted_association",
    "weighted_fair_share",
    "weighted_job_size",
    "weighted_partition",
    "weighted_qos",
    "normal_age",
    "normal_association",
    "normal_fair_share",
    "normal_job_size",
    "normal_partition",
    "normal_qos",
]


def sprio(arguments: "list[str]", context: Context) -> int:
    """The command. Returns the exit code."""
    try:
        given, words = read_in_order(
            OPTIONS,
            arguments,
            _USAGE.rstrip("\n"),
            lambda option, value: _look(option, value, context),
            context,
        )
    except EndedError as ended:
        return ended.code
    options = last_values([*OPTIONS.from_environment(context.environ), *given])
    if "jobs" in options:
        lists = [value for option, value in given if option.dest == "jobs" and value is not None]
        options["jobs"] = lists[-1] if lists else None  # a list of none means all
    try:
        return _show(options, given, words, context)
    except RefusedError as error:
        context.complain(f"slurm_load_ctl_conf error: {error.text}")
        return 1


def _look(option: Option, value: "str | None", context: Context) -> None:
    """Complain of users that there are not; a wrong number of a job ends it.

    Raises:
        EndedError: it does.
    """
    if option.dest == "user" and value:
        _users(value, context)
    elif option.dest == "jobs" and value and _job_numbers(value, context) is None:
        raise EndedError


def _show(
    options: "dict[str, str | None]",
    given: "list[tuple[Option, str | None]]",
    words: "list[str]",
    context: Context,
) -> int:
    last = [value for option, value in given if option.dest == "user" and value]
    users = _users(last[-1], context, quiet=True) if last else []
    if {"format", "long"} <= {option.dest for option, _ in given}:
        context.fatal(
            "Options -o(--format) and -l(--long) are mutually exclusive. Please remove "
            "one and retry."
        )
        return 1
    jobs = _job_numbers(options.get("jobs"), context)
    if jobs is not None and words and "jobs" in options:
        options["jobs"] = words.pop(0)
        jobs = _job_numbers(options["jobs"], context)
    if jobs is None:
        return 1
    if words:
        context.error(f"Unrecognized option: {words[0]}")
        context.stdout.write(_USAGE)
        return 1
    if "verbose" in options:
        _print_options(options, context)
    if _is_unsupported(context):
        return 1
    cells = _read_format(options, context)
    header = "noheader" not in options
    if "weights" in options:
        if header:
            context.print(header_line(cells))
        _print_weights(cells, context)
        return 0
    where = {} if options.get("jobs") is None else {"job_id": jobs}
    if options.get("user"):
        where["user_id"] = users
    return _print_jobs(cells, options, where, context, header=header)


def _job_numbers(text: "str | None", context: Context) -> "list[int] | None":
    """Those of a list; None if one of them is none, which has been said then."""
    words = [word for word in (text or "").split(",") if word]
    numbers = []
    for word in words:
        number, plus, component = word.lstrip().partition("+")
        first, of_array, task = number.partition("_")
        is_number = first.isdigit() and 0 < int(first) <= _MOST
        job_id = int(first) if is_number else None
        if is_number and of_array:
            job_id = None if plus else _job_of_task(int(first), task, context)
        if job_id is None or (plus and not component.isdigit()):
            context.error(f"Invalid job id: {word}")
            return None
        numbers.append(job_id)
    return numbers


def _job_of_task(array: int, task: str, context: Context) -> "int | None":
    """The number of the job that a task of an array is; None where there is none."""
    if not task.isdigit():
        return None
    where = {"array_job_id": [array], "array_task_id": [int(task)]}
    rows = context.client.query("jobs", ["job_id"], where).rows
    return int(rows[0][0]) if rows else None


def _is_unsupported(context: Context) -> bool:
    """Whether there is nothing to show, because priorities have no parts; that has been said
    then.
    """
    value = dict(
        context.client.query("config", ["name", "value"], {"name": ["PriorityType"]}).rows
    ).get("PriorityType", "")
    if value == "priority/multifactor":
        return False
    context.complain(
        f"You are not running a supported priority plugin\n({value}).\n"
        "Only 'priority/multifactor' is supported."
    )
    return True


def _read_format(options: "dict[str, str | None]", context: Context) -> "list[Cell]":
    is_long = "long" in options
    text = options.get("format")
    if text is None:
        normal = "norm" in options
        text = (
            (NORMAL_LONG if normal else LONG)
            if is_long
            else _default(context, normal=normal, with_user="user" in options)
        )
        if "sibling" in options:
            text = text.replace("%9r", "%9r %.8c")
    cells = FIELDS.parse_short(
        text, lambda letter: context.error(f"Invalid job format specification: {letter}")
    )
    # unknown letters print nothing
    return [cell for cell in cells if cell.field is not None or not cell.suffix.startswith("%")]


def _default(context: Context, *, normal: bool, with_user: bool) -> str:
    """The format that the weights ask for."""
    weights = dict(context.client.query("priority_weights", ["name", "weight"]).rows)
    job, user, priority = _BEFORE
    parts = [letter for name, letter in _PARTS if weights.pop(name, 0.0)] + (
        ["%.20T"] if any(weights.values()) else []
    )
    if normal:
        return " ".join(
            [
                job,
                *([user] if with_user else []),
                "%10y",
                *(letter.lower().replace(".", "") for letter in parts),
            ]
        )
    return " ".join([job, *([user] if with_user else []), priority, *parts])


def _print_options(options: "dict[str, str | None]", context: Context) -> None:
    """What was asked for, as -v shows it."""
    rule = "-" * 29
    names = ("format", "job_flag", "jobs", "partition", "users", "verbose")
    given = {
        "job_flag": str(int("jobs" in options)),
        "users": options.get("user"),
        "verbose": "1",
    } | {name: options.get(name) for name in ("format", "jobs", "partition")}
    context.stdout.write(
        "\n".join(
            [
                rule,
                *(
                    f"{name:<10} = {'(null)' if given[name] is None else given[name]}"
                    for name in names
                ),
                rule,
                "",
                "",
                "",
            ]
        )
    )


def _print_weights(cells: "list[Cell]", context: Context) -> None:
    weights = dict(context.client.query("priority_weights", ["name", "weight"]).rows)
    row = dict.fromkeys(_COLUMNS)
    row |= {
        "job_id": "Weights",
        "partition": "",
        "user_name": "",
        "is_set": False,
        "site": 1,
        "weighted_tres": [],
        "normal_tres": [],
    }
    for name in ("age", "association", "fair_share", "job_size", "partition", "qos"):
        weight = weights.pop(name, 0.0)
        row[f"weighted_{name}"] = weight
        row[f"normal_{name}"] = _Weight(weight)
    text = dict(
        context.client.query("config", ["name", "value"], {"name": ["PriorityWeightTRES"]}).rows
    ).get("PriorityWeightTRES", "")
    # resources as slurm.conf writes them
    words = [word.partition("=") for word in text.split(",") if word]
    row["weighted_tres"] = [
        (name, float(weight)) for name, _, weight in words if name.strip().lower() in weights
    ]
    context.stdout.write("\n".join([*lines(cells, lambda name: [row[name]], 1), ""]))


class _Weight(float):
    """A weight in the column of a factor: a whole number there, too."""

    def __format__(self, _how: str) -> str:
        return f"{float(self):.0f}"


def _print_jobs(
    cells: "list[Cell]",
    options: "dict[str, str | None]",
    wanted: "dict[str, list[int]]",
    context: Context,
    *,
    header: bool,
) -> int:
    where: dict[str, list[Any]] = dict(wanted)
    if options.get("partition"):
        where["partition"] = (options["partition"] or "").split(",")
    is_empty = "job_id" in where and not where["job_id"]
    rows = [] if is_empty else context.client.query("priorities", _COLUMNS, where).rows
    if not rows and ("job_id" in where or where.get("user_id")):
        context.print("Unable to find jobs matching user/id(s) specified")
        return 0
    if options.get("sort"):
        wrong = next(
            (
                word.lstrip("+-")[:1]
                for word in (options["sort"] or "").split(",")
                if word.lstrip("+-")[:1] not in FIELDS.by_letter
            ),
            None,
        )
        if wrong is not None:
            context.error(f"Invalid sort specification: {wrong}")
            return 1
        _sort(rows, options["sort"] or "")
    if header:
        context.print(header_line(cells))
    place = {name: at for at, name in enumerate(_COLUMNS)}
    made = lines(cells, lambda name: [row[place[name]] for row in rows], len(rows))
    context.stdout.write("\n".join([*made, ""]))
    return 0


def _users(text: "str | None", context: Context, *, quiet: bool = False) -> "list[int]":
    """The numbers of the users of a list; who is none is said, unless `quiet`."""
    import pwd

    found = []
    for word in (text or "").split(","):
        try:
            if word.isdigit():
                pwd.getpwuid(int(word))
                found.append(int(word))
            else:
                found.append(pwd.getpwnam(word).pw_uid)
        except (KeyError, OverflowError):
            if word.isdigit() and _has_jobs(int(word), context):
                found.append(int(word))  # an emulated cluster's users may be unknown to this host
            elif not quiet:
                context.error(f"Invalid user: {word}\n")
    return found


def _has_jobs(user_id: int, context: Context) -> bool:
    return bool(context.client.query("priorities", ["job_id"], {"user_id": [user_id]}).rows)


def _sort(rows: "list[list[Any]]", text: str) -> None:
    """By the fields' letters, the first one first; a minus: the greatest first."""
    for word in reversed(text.split(",")):
        field = FIELDS.by_letter.get(word.lstrip("+-")[:1])
        if field is not None and field.columns:
            place = _COLUMNS.index(field.columns[0])
            rows.sort(key=lambda row, place=place: row[place], reverse=word.startswith("-"))  # type: ignore[misc]


def main() -> int:
    """Run as a program; does not return."""
    return run("sprio", sprio)


if __name__ == "__main__":
    main()
