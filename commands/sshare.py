"""sshare: associations as fair share sees them. Follows sshare(1) of 22.05."""

import os

from understudy.commands.shared.accounting_client import say_authenticated
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
from understudy.commands.shared.texts import last_of_each
from understudy.documents.documents import VERSION
from understudy.model.times import leading_integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Row = dict[str, Any]

_ALL_USERS = "-1"  # in place of a name: all
_FORGOTTEN = "forgotten"  # letters that Slurm's sshare takes and has no use for
NO_SHARES = 255  # the exit code when the controller does not answer
OPTIONS = OptionTable(
    [
        Option("accounts", "A", REQUIRED, "LIST: only these accounts"),
        Option("all", "a", NONE, "associations of all users"),
        Option("helpformat", "e", NONE, "print the names of fields"),
        Option("help", "", NONE, "print this text"),
        Option("long", "l", NONE, "more fields"),
        Option("cluster", "", REQUIRED, "", dest="clusters"),
        Option("clusters", "M", REQUIRED, "LIST: clusters to ask"),
        Option("partition", "m", NONE, "print partitions, too"),
        Option("noheader", "n", NONE, "print no header"),
        Option("", "h", NONE, "", dest="noheader"),
        Option("", "q", NONE, "", dest=_FORGOTTEN),
        Option("", "t", REQUIRED, "", dest=_FORGOTTEN),
        Option("format", "o", REQUIRED, "FIELDS: what to print"),
        Option("parsable", "p", NONE, "fields with a | behind each"),
        Option("parsable2", "P", NONE, "fields with a | between them"),
        Option("users", "u", REQUIRED, "LIST: only these users"),
        Option("Users", "U", NONE, "users alone, without their accounts", dest="users_only"),
        Option("usage", "", NONE, "the same"),
        Option("verbose", "v", NONE, "say more"),
        Option("version", "V", NONE, "print the version"),
    ]
)


def _account(row: "Row") -> str:
    return f"{' ' * row['depth']}{row['account']}"


def _shares(row: "Row") -> str:
    if not row["parent_id"]:
        return ""
    return "parent" if row["shares"] is None else str(row["shares"])


def _six(name: str, *, of_root: bool = True) -> "Callable[[Row], str]":
    return lambda row: (
        f"{row[name]:.6f}" if row[name] is not None and (of_root or row["parent_id"]) else ""
    )


def _users_factor(row: "Row") -> str:
    return f"{row['fair_share']:.6f}" if row["user"] or not row["is_tree"] else ""


def _level(row: "Row") -> str:
    # where no plug-in counts shares, root has it, too
    is_shown = (row["parent_id"] and row["shares"] is not None) or row["normal_shares"] is None
    return f"{row['level_fair_share']:.6f}" if is_shown else ""


def _amounts(name: str) -> "Callable[[Row], str]":
    return lambda row: ",".join([f"{tres}={amount}" for tres, amount in row[name]])


# name, width (negative: left-justified), text
FIELDS: "list[tuple[str, int, Callable[[Row], str]]]" = [
    ("Account", -20, _account),
    ("Cluster", 10, lambda row: str(row["cluster"])),
    ("EffectvUsage", 13, _six("effective_usage")),
    ("FairShare", 10, _users_factor),
    ("GrpTRESMins", 30, _amounts("grp_tres_mins")),
    ("GrpTRESRaw", 30, _amounts("grp_tres_raw")),
    ("ID", 6, lambda row: str(row["association_id"])),
    ("LevelFS", 10, _level),
    ("NormShares", 11, _six("normal_shares")),
    ("NormUsage", 11, _six("normal_usage", of_root=False)),
    ("Partition", 12, lambda row: str(row["partition"])),
    ("RawShares", 10, _shares),
    ("RawUsage", 11, lambda row: str(int(row["raw_usage"]))),
    ("TRESRunMins", 30, _amounts("tres_run_mins")),
    ("User", 10, lambda row: str(row["user"])),
]
DEFAULT = "account,user,rawshares,normshares,rawusage,effectvusage,fairshare"
LONG = (
    "account,user,rawshares,normshares,rawusage,normusage,effectvusage,fairshare,levelfs,"
    "grptresmins,tresrunmins"
)
LONG_CLASSIC = (
    "account,user,rawshares,normshares,rawusage,normusage,effectvusage,fairshare,"
    "grptresmins,tresrunmins"
)
_NO_FORMAT = "account"  # what is printed where --format names nothing
_COLUMNS = [
    "association_id",
    "parent_id",
    "account",
    "user",
    "partition",
    "shares",
    "normal_shares",
    "raw_usage",
    "normal_usage",
    "effective_usage",
    "fair_share",
    "level_fair_share",
    "is_tree",
    "depth",
    "grp_tres_mins",
    "grp_tres_raw",
    "tres_run_mins",
    "cluster",
]


def sshare(arguments: "list[str]", context: Context) -> int:
    """The command. Returns the exit code."""
    given, _, refused = OPTIONS.read(arguments)  # words mean nothing
    if refused is not None:
        code = _read_in_order(given, context)
        if code is not None:
            return code
        raise refused
    options = last_values([*OPTIONS.from_environment(context.environ), *given])
    let_last_parsable_count(given, options)
    _last_of_users(given, options)
    if formats := [text for option, text in given if option.dest == "format" and text]:
        words = [word for text in formats for word in text.split(",") if word]
        options["format"] = ",".join(last_of_each(words)) or _NO_FORMAT
    elif "format" in options:
        options["format"] = _NO_FORMAT
    if lists := [text or "" for option, text in given if option.dest == "accounts"]:
        options["accounts"] = ",".join(filter(None, lists))
    if "verbose" in options:
        options["verbose"] = str(sum(option.dest == "verbose" for option, _ in given))
    try:
        code = _read_in_order(given, context)
        return _show(options, context) if code is None else code
    except RefusedError as error:  # the priority plug-in is known from slurm.conf, in Slurm
        context.complain(f"Couldn't get shares from controller: {error.text}")
        return NO_SHARES if error.code in UNANSWERED else 1


def _read_in_order(given: "list[tuple[Option, str | None]]", context: Context) -> "int | None":
    """What ends the command where it stands among the options. The exit code then."""
    for option, value in given:
        if option.dest in {"help", "usage"}:
            context.help(OPTIONS)
            return 0
        if option.dest == "version":
            context.print(f"slurm {VERSION}")
            return 0
        if option.dest == "helpformat":
            names = [f"{name:<17}" for name, _, _ in FIELDS]
            context.stdout.write(
                "\n".join([" ".join(names[at : at + 4]) for at in range(0, len(names), 4)]) + "\n"
            )
            return 0
        if option.dest == "clusters" and context.refuses_clusters(value):
            return 1
        if option.dest == _FORGOTTEN:
            context.complain(f"getopt error, returned {option.short}")
            return 1
        if option.dest == "users":
            try:
                _names(value or "", context)
            except KeyError as error:
                context.complain(f"Invalid user id: {error.args[0]}")
                return 1
    return None


def _last_of_users(
    given: "list[tuple[Option, str | None]]", options: "dict[str, str | None]"
) -> None:
    """All lists of --users count; of --users and --all the last one. A list of none is as if it
    were not there, but that it takes --all back.
    """
    whose = [option.dest for option, _ in given if option.dest in {"users", "all"}]
    lists = [value or "" for option, value in given if option.dest == "users"]
    if lists and lists[-1] == _ALL_USERS:
        whose.append("all")
    if whose and whose[-1] == "all":
        options["all"] = None
        options.pop("users", None)
        return
    options.pop("all", None)
    options["users"] = ",".join(lists)
    if not (options["users"] or "").strip(","):
        options.pop("users", None)


def _show(options: "dict[str, str | None]", context: Context) -> int:
    known = context.client.query("shares", _COLUMNS).dicts()
    users = _users(options, context)
    if "verbose" in options:
        _print_options(users, options, context)
        say_authenticated(context, "sshare", int(options["verbose"] or 1))
    rows = _chosen(known, users, options)
    is_tree = bool(known and known[0]["is_tree"])
    text = options.get("format") or (
        (LONG if is_tree else LONG_CLASSIC) if "long" in options else DEFAULT
    )
    if "partition" in options and not options.get("format"):
        text = text.replace("user,", "user,partition,")
    fields = []
    widths: dict[str, int] = {}  # a field that is named twice has one width, the last
    for part in filter(None, text.split(",")):
        name, _, specification = part.partition("%")
        found = next((field for field in FIELDS if field[0].lower().startswith(name.lower())), None)
        if found is None:
            context.error(f'Invalid field requested: "{name}"')
            return 1
        if width := leading_integer(specification):
            widths[found[0]] = width
        fields.append(found)
    fields = [(name, widths.get(name, own), make) for name, own, make in fields]
    context.print_cluster()
    context.stdout.write("".join([line + "\n" for line in _lines(fields, rows, options)]))
    return 0


def _print_options(
    users: "set[str] | None", options: "dict[str, str | None]", context: Context
) -> None:
    """Whose associations are meant, as -v says."""
    accounts = options.get("accounts")
    for title, names in (
        ("Users", sorted(users) if users is not None else ["all"]),
        ("Accounts", accounts.split(",") if accounts else ["all"]),
    ):
        context.complain(f"{title} requested:" + "".join([f"\n\t: {name}" for name in names]))


def _chosen(
    rows: "list[Row]", users: "set[str] | None", options: "dict[str, str | None]"
) -> "list[Row]":
    """Accounts, and of users those that are meant: oneself unless others or all are named."""
    text = options.get("accounts")
    accounts = None if text is None else set(text.lower().split(","))
    found = []
    for row in rows:
        if accounts is not None and row["account"] not in accounts:
            continue
        if row["user"] and users is not None and row["user"] not in users:
            continue
        if not row["user"] and "users_only" in options:
            continue
        found.append(row)
    if "users_only" in options:
        for row in found:
            row["depth"] = 0
    elif accounts is not None:
        _indent(rows, found)
    return found


def _indent(rows: "list[Row]", found: "list[Row]") -> None:
    """Each of those found, of all rows of the tree, by one more than what it is in, if that has
    been found, too.
    """
    shown = {id(row) for row in found}
    above: list[int] = []  # how far the rows are indented that the next one is in; -1: not shown
    for row in rows:
        del above[row["depth"] :]
        indent = (above[-1] if above else -1) + 1
        above += [-1] * (row["depth"] - len(above))
        above.append(indent if id(row) in shown else -1)
        if id(row) in shown:
            row["depth"] = indent


def _users(options: "dict[str, str | None]", context: Context) -> "set[str] | None":
    """Names of users that are meant; None: all."""
    text = options.get("users")
    if text is not None:
        return _names(text, context)
    if "all" in options:
        return None
    import pwd

    try:
        return {pwd.getpwuid(os.getuid()).pw_name}
    except KeyError:
        return set()


def _names(text: str, context: Context) -> "set[str]":
    """Users by name or number: what begins with a digit is as much of a number as C's atol reads.

    Raises:
        KeyError: a number of no user.
    """
    import pwd

    names = set()
    for word in filter(None, text.lower().split(",")):
        digits = word[: len(word) - len(word.lstrip("0123456789"))]
        # too large a number is the largest, of which an id keeps 32 bits
        number = min(int(digits or 0), (1 << 63) - 1) & 0xFFFFFFFF
        try:
            names.add(pwd.getpwuid(number).pw_name if digits else word)
        except (KeyError, OverflowError):
            # an emulated cluster's user whom this host does not know
            if [word] not in context.client.query("shares", ["user"]).rows:
                raise KeyError(str(number)) from None
            names.add(word)
    return names


def _lines(
    fields: "list[tuple[str, int, Callable[[Row], str]]]",
    rows: "list[Row]",
    options: "dict[str, str | None]",
) -> "list[str]":
    table = [[make(row) for _, _, make in fields] for row in rows]
    heads = [[name for name, _, _ in fields]] if "noheader" not in options else []
    if "parsable" in options or "parsable2" in options:
        end = "" if "parsable2" in options else "|"
        return ["|".join(texts) + end for texts in [*heads, *table]]
    widths = [width for _, width, _ in fields]
    found = [
        "".join(
            [_fit(text[: abs(width)], width) for text, width in zip(texts, widths, strict=True)]
        )
        for texts in heads
    ]
    if heads:
        found.append("".join(["-" * abs(width) + " " for width in widths]))
    return found + [
        "".join([_fit(text, width) for text, width in zip(texts, widths, strict=True)])
        for texts in table
    ]


def _fit(text: str, width: int) -> str:
    size = abs(width)
    if len(text) > size:
        text = text[: size - 1] + "+"
    return (text.ljust(size) if width < 0 else text.rjust(size)) + " "


def main() -> int:
    """Run as a program; does not return."""
    return run("sshare", sshare)


if __name__ == "__main__":
    main()
