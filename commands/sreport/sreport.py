"""sreport: reports on what clusters, accounts, users and reservations used. Follows sreport(1) of
22.05.
"""

import time

from understudy.commands.shared.accounting_client import AccountingClient, NoAccountingError, Table
from understudy.commands.shared.client import RefusedError
from understudy.commands.shared.context import Context, run
from understudy.commands.shared.options import (
    NONE,
    REQUIRED,
    Option,
    OptionTable,
    last_values,
    let_last_parsable_count,
)
from understudy.commands.shared.texts import last_of_each, timestamp
from understudy.commands.sreport.figures import Tree, add_up, job_sizes, size_groups, text_of
from understudy.commands.sreport.words import condition, is_order, reservation_flags
from understudy.commands.sreport.words import field as field_named
from understudy.documents.documents import VERSION
from understudy.model.times import leading_integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Row = dict[str, Any]

OPTIONS = OptionTable(
    [
        Option("all_clusters", "a", NONE, "all clusters"),
        Option("cluster", "M", REQUIRED, "LIST: these clusters", dest="clusters"),
        Option("federation", "", NONE, "accepted; this cluster is in no federation"),
        Option("help", "h", NONE, "print this text"),
        Option("local", "", NONE, "accepted"),
        Option("noheader", "n", NONE, "print no header"),
        Option("parsable", "p", NONE, "fields with a | behind each"),
        Option("parsable2", "P", NONE, "fields with a | between them"),
        Option("quiet", "Q", NONE, "print errors alone"),
        Option(
            "",
            "t",
            REQUIRED,
            "FORMAT: Seconds, Minutes, Hours, Percent, SecPer, MinPer or HourPer",
            dest="time",
        ),
        Option("", "s", REQUIRED, "", dest="sort"),
        Option("tres", "T", REQUIRED, "LIST: of which resources", env="SREPORT_TRES"),
        Option("usage", "", NONE, ""),
        Option("verbose", "v", NONE, "say more"),
        Option("version", "V", NONE, "print the version"),
    ]
)
_UNITS = (  # name, how many letters are enough, title, seconds, with percentage
    ("SecPer", 6, "Seconds/Percentage of Total", 1, True),
    ("MinPer", 6, "Minutes/Percentage of Total", 60, True),
    ("HourPer", 6, "Hours/Percentage of Total", 3600, True),
    ("Seconds", 1, "Seconds", 1, False),
    ("Minutes", 1, "Minutes", 60, False),
    ("Hours", 1, "Hours", 3600, False),
    ("Percent", 1, "Percentage of Total", 0, True),
)
_REPORTS = {  # by kind, each with how many letters are enough; the first that fits counts
    "cluster": (
        *(
            ("AccountUtilizationByUser", 1),
            ("UserUtilizationByAccount", 18),
            ("UserUtilizationByWckey", 18),
        ),
        *(("Utilization", 2), ("WCKeyUtilizationByUser", 1)),
    ),
    "job": (("SizesByAccount", 1), ("SizesByAccountAndWcKey", 15), ("SizesByWckey", 8)),
    "reservation": (("Utilization", 1),),
    "user": (("TopUsage", 1),),
}
_LAST_COUNTS = frozenset(("topcount", "flags"))
_ALL_STAND = frozenset(("start", "end", "format"))
_LETTERS = {"cluster": 2, "job": 1, "reservation": 2, "user": 1}
_VALID = {
    "cluster": (
        'Valid cluster reports are, "AccountUtilizationByUser", "UserUtilizationByAccount", '
        '"UserUtilizationByWckey", "Utilization", and '
        '"WCKeyUtilizationByUser"'
    ),
    "job": 'Valid job reports are, "SizesByAccount, SizesByAccountAndWcKey, and  SizesByWckey"',
    "reservation": 'Valid reservation reports are, "Utilization"',
    "user": 'Valid user reports are, "Top"',
}
# what to do with a wrong condition is not said there
_WITHOUT_HINT = {"userutilizationbywckey", "wckeyutilizationbyuser"}
_COLUMNS = {  # name in format=: header, width; a width of 0: that of amounts
    "cluster": ("Cluster", 9),
    "allocated": ("Allocated", 0),
    "down": ("Down", 0),
    "planneddown": ("PLND Down", 0),
    "idle": ("Idle", 0),
    "planned": ("Planned", 0),
    "reported": ("Reported", 0),
    "overcommitted": ("Over Comm", 0),
    "trescount": ("TRES Count", 10),
    "tresname": ("TRES Name", 14),
    "account": ("Account", 15),
    "login": ("Login", 9),
    "proper": ("Proper Name", 15),
    "wckey": ("WCKey", 15),
    "used": ("Used", 0),
    "energy": ("Energy", 0),
    "name": ("Name", 9),
    "start": ("Start", 19),
    "end": ("End", 19),
    "associations": ("Associations", 15),
    "flags": ("Flags", 20),
    "nodes": ("Nodes", 15),
    "reservationid": ("Id", 8),
    "totaltime": ("TotalTime", 9),
    "trestime": ("TRES Time", 9),
}
_OF_RESERVATIONS = {"trescount": "TRES count"}
_RESERVATION_FIELDS = "cluster,name,start,end,tresname,allocated,idle"
_RULE = "-" * 80
_FLAGS = {"acctasparent", "all_clusters", "flatview", "group", "printjobcount", "tree"}


class _UnknownError(Exception):
    """A word that means nothing here; it has been said."""


class Report:
    """One report: what was asked for, and where the figures come from."""

    def __init__(self, context: Context, options: "dict[str, str | None]") -> None:
        self.context, self.table = context, Table(context)
        self.header = "noheader" not in options
        self.parsable = 2 if "parsable2" in options else 1 if "parsable" in options else 0
        self.unit, self.unit_s, self.has_percent = "Minutes", 60, False
        self.has_tres = "tres" in options
        self.tres = [word.lower() for word in (options.get("tres", "cpu") or "").split(",") if word]
        self.clusters: list[str] = []
        self.start = self.end = 0
        self.given: dict[str, list[str]] = {}
        self.widths: dict[str, int] = {}  # that the format asked for
        self.code = 0
        self.kind = self.name = ""

    def amount(self, seconds: int, total: int) -> str:
        return text_of(seconds, total, self.unit_s, has_percent=self.has_percent)

    @property
    def amount_width(self) -> int:
        return 17 if self.has_percent and self.unit_s else 8

    def show(self, title: str, lines: "list[str]", fields: "list[str]", rows: "list[Row]") -> None:
        """Print it. Rows have texts by field."""
        columns = [
            (_COLUMNS[name][0], _COLUMNS[name][1] or self.amount_width, name) for name in fields
        ]
        self.print(
            title,
            lines,
            [
                (self._header(head, name), self._width(width, name), name)
                for head, width, name in columns
            ],
            rows,
        )

    def _header(self, header: str, name: str) -> str:
        del name
        return header

    def _width(self, width: int, name: str) -> int:
        if name in self.widths and _COLUMNS[name][1]:
            return self.widths[name]
        is_tree = name == "account" and "tree" in self.given and self.kind != "user"
        return -20 if is_tree else width

    def _parted(self, texts: "list[str]") -> str:
        return "|".join(texts) + ("|" if texts and self.parsable == 1 else "")

    def print(
        self,
        title: str,
        lines: "list[str]",
        columns: "list[tuple[str, int, str]]",
        rows: "list[Row]",
    ) -> None:
        context = self.context
        if self.header:
            context.stdout.write("\n".join([_RULE, title, *lines, _RULE]) + "\n")
            if self.parsable:
                context.print(self._parted([head for head, _, _ in columns]))
            else:
                context.print(
                    "".join([_fit(head[: abs(width)], width) for head, width, _ in columns])
                )
                context.print("".join(["-" * abs(width) + " " for _, width, _ in columns]))
        for row in rows:
            texts = [str(row.get(name, "")) for _, _, name in columns]
            if self.parsable:
                context.print(self._parted(texts))
            else:
                context.print(
                    "".join(
                        [
                            _fit(text, width)
                            for text, (_, width, _) in zip(texts, columns, strict=True)
                        ]
                    )
                )

    @property
    def period(self) -> str:
        return f"{timestamp(self.start)} - {timestamp(self.end - 1)}"

    @property
    def usage_line(self) -> str:
        what = "TRES " if self.has_tres else "CPU " if self.unit_s else ""
        return f"Usage reported in {what}{self.unit}"

    def usage(self, kinds: "list[str]") -> "list[Row]":
        """Rows of the usage of the period: of days where it has whole ones, else of hours."""
        whole_days = all(time.localtime(when)[3:6] == (0, 0, 0) for when in (self.start, self.end))
        where: dict[str, list[Any]] = {
            "periods": ["day" if whole_days else "hour"],
            "kinds": [*kinds],
            "clusters": self.clusters,
        }
        where |= {"after": [self.start], "before": [self.end - 1]}
        rows = self.table.rows("usage", ["cluster", "kind", "subject", "tres", "amount"], where)
        return [row for row in rows if row["tres"] in {*self.tres, "energy"}]

    def totals(self) -> "dict[tuple[str, str], int]":
        """The cluster's whole time by (cluster, resource)."""
        return add_up(
            self.usage(["allocated", "down", "planned_down", "idle", "planned"]), "cluster", "tres"
        )

    def selected(self, name: str, value: str) -> bool:
        return not self.given.get(name) or value in self.given[name]


def _fit(text: str, width: int) -> str:
    size = abs(width)
    if len(text) > size:
        text = text[: size - 1] + "+"
    return (text.ljust(size) if width < 0 else text.rjust(size)) + " "


def sreport(arguments: "list[str]", context: Context) -> int:
    """The command. Returns the exit code."""
    session = _Session(context, {})
    given, words, refused = OPTIONS.read(arguments)
    if refused is not None:
        if _read_in_order(session, given) is None:
            raise refused
        return 0
    session.options |= {
        name: value for name, value in last_values(given).items() if name not in {"time", "sort"}
    }
    let_last_parsable_count(given, session.options)
    code = _read_in_order(session, given)
    if code is not None:
        return code
    if len({"all_clusters", "clusters", "local"}.intersection(session.options)) > 1:
        context.complain(
            "Only one cluster option can be used (--all_clusters OR --cluster OR --local)"
        )
        return 1
    try:
        _check_tres(session)
        if words:
            _command(session, words)
        else:
            _interactive(session)
    except _UnknownError:
        return 1
    except NoAccountingError:
        context.complain(
            "You are not running a supported accounting_storage plugin\n"
            "Only 'accounting_storage/slurmdbd' is supported."
        )
        return 1
    except RefusedError as error:
        context.error(error.text)
        return 1
    return session.code


def _read_in_order(session: "_Session", given: "list[tuple[Option, str | None]]") -> "int | None":
    """What is told of an option where it stands, and what ends the command there: its exit code
    then.
    """
    for option, value in given:
        if option.dest in {"help", "usage"}:
            _help(session.context)
            return 0
        if option.dest == "version":
            session.context.print(f"slurm {VERSION}")
            return 0
        if option.dest == "time":
            _take_unit(session, value or "")
        elif option.dest == "sort" and not is_order(value or ""):
            session.context.stderr.write(f"unknown timesort format {value}")
    return None


def _check_tres(session: "_Session") -> None:
    """Resources that -T names, none of which is known, are the end."""
    report = session.report()
    if not report.has_tres or "all" in report.tres:
        return
    known = {row["tres"] for row in report.table.rows("tres", ["tres"])}
    if not known.intersection(report.tres):
        session.context.fatal("No valid TRES given")
        raise _UnknownError


def _help(context: Context) -> None:
    from understudy.commands.sreport.help_words import HELP

    context.help(OPTIONS, HELP)


class _Session:
    """One run of the command: options, which words may change, and the exit code."""

    def __init__(self, context: Context, options: "dict[str, str | None]") -> None:
        self.context, self.options, self.code = context, options, 0

    def report(self) -> Report:
        """A new report under the options as they are."""
        report = Report(self.context, self.options)
        if self.options.get("time"):
            _set_unit(report, self.options["time"] or "")
        return report


def _take_unit(session: _Session, word: str) -> None:
    """Have all reports from now on in this unit; one that is none is said at once, and ignored."""
    if _set_unit(Report(session.context, session.options), word):
        session.options["time"] = word
    else:
        session.context.stderr.write(f"unknown time format {word}")


def _set_unit(report: Report, word: str) -> bool:
    for name, least, title, seconds, has_percent in _UNITS:
        if len(word) >= least and name.lower().startswith(word.lower()):
            report.unit, report.unit_s, report.has_percent = title, seconds, has_percent
            return True
    return False


def _interactive(session: _Session) -> None:
    from understudy.commands.shared.interactive import typed

    for words in typed(session.context, "sreport: "):
        if words[0].lower() in {"quit", "exit"}:
            return
        try:
            _command(session, words)
        except _UnknownError:
            session.code = 1


def _command(session: _Session, words: "list[str]") -> None:
    context = session.context
    first = words[0].lower()
    kind = next(
        (
            name
            for name, least in _LETTERS.items()
            if len(first) >= least and name.startswith(first)
        ),
        "reservation" if first == "resv" else None,
    )
    if kind is None:
        _set_option(session, first, words)
        if len(words) > 1 and first != "time":
            is_turned = first in {"verbose", "version"}
            what = f"{words[0]} keyword" if is_turned else f"keyword:{words[0]}"
            context.complain(f"too many arguments for {what}")
            raise _UnknownError
        return
    if len(words) == 1:
        if "quiet" not in session.options:
            context.complain(f"too few arguments for keyword:{words[0]}")
        raise _UnknownError
    wanted = words[1].lower()
    name = next(
        (
            each
            for each, least in _REPORTS[kind]
            if len(wanted) >= least and each.lower().startswith(wanted)
        ),
        None,
    )
    if name is None:
        context.complain(f"Not valid report {words[1]}\n{_VALID[kind]}")
        raise _UnknownError
    report = session.report()
    report.kind, report.name = kind, name
    _read_conditions(report, session.options, words[2:])
    _MAKERS[name.lower() if kind != "reservation" else "reservation"](report)
    session.code = max(session.code, report.code)


def _set_option(session: _Session, word: str, words: "list[str]") -> None:
    """A command that is no report."""
    context = session.context
    if word == "help":
        _help(context)
    elif word == "version":
        context.print(f"slurm {VERSION}")
    elif word in {"parsable", "parsable2"}:
        session.options.pop("parsable" if word == "parsable2" else "parsable2", None)
        session.options[word] = None
    elif word in {"verbose", "quiet"}:
        session.options[word] = None
    elif word == "nonparsable":
        session.options.pop("parsable", None)
        session.options.pop("parsable2", None)
    elif word == "time" and len(words) > 1:
        _take_unit(session, words[1])
    elif word == "time":
        context.complain("too few arguments for keyword:time")
        raise _UnknownError
    elif word not in {"exit", "quit"}:
        context.complain(f"invalid keyword: {words[0]}")
        raise _UnknownError


def _read_conditions(report: Report, options: "dict[str, str | None]", words: "list[str]") -> None:
    for word in words:
        name, equals, value = word.partition("=")
        lowered = name.lower()
        if not equals and lowered not in _FLAGS:
            report.given.setdefault("clusters", []).append(word)
            continue
        found = condition(report.kind, report.name, lowered) if equals else lowered
        if found is None:
            hint = (
                "" if report.name.lower() in _WITHOUT_HINT else "\nUse keyword set to modify value"
            )
            report.context.complain(f" Unknown condition: {word}{hint}")
            report.code = 1
            continue
        values = [each for each in value.strip("'\"").split(",") if each]
        if found == "flags":
            try:
                values = sorted(reservation_flags(values))
            except ValueError:
                report.context.error(f"Error parsing flags {value}.  _set_resv_cond")
                continue
        if found not in _LAST_COUNTS:
            values = [*report.given.get(found, []), *values]
            values = values if found in _ALL_STAND else list(dict.fromkeys(values))
        report.given[found] = values
    report.table.rows("tres", ["id"], {"ids": [0]})  # for the time
    now = report.table.now
    midnight = _midnight(now)
    start, end = (  # the last counts, and each that is none is said
        [_time(report, text, now) for text in report.given.get(name, [])][-1:]
        for name in ("start", "end")
    )
    report.start = next(filter(None, start), None) or _midnight(midnight - 43200)
    report.end = next(filter(None, end), None) or midnight
    if report.end > now:  # what is not over has not been added up
        report.end = int(now) // 3600 * 3600
    if report.end <= report.start:
        report.end = report.start + 3600
    if "all_clusters" not in options and "all_clusters" not in report.given:
        report.clusters = report.given.get("clusters") or (
            options.get("clusters") or report.context.client.cluster_name
        ).split(",")


def _midnight(when: float) -> int:
    moment = time.localtime(when)
    return int(time.mktime((moment.tm_year, moment.tm_mon, moment.tm_mday, 0, 0, 0, 0, 0, -1)))


def _time(report: Report, text: str, now: float) -> "int | None":
    """The nearest hour."""
    from understudy.commands.shared.past_times import past_time

    try:
        return (past_time(text, now) + 1830) // 3600 * 3600  # seconds are rounded to minutes first
    except ValueError:
        from understudy.model.moments import not_understood_from

        report.context.complain(
            f"Invalid time specification (pos={not_understood_from(text)}): {text}"
        )
        return None


def _format(report: Report, default: str) -> "list[str]":
    """The fields to print. With -T the resource's name comes before the amounts."""
    asked = report.given.get("format")
    if asked is None:
        return default.split(",")
    found = []
    for part in last_of_each(asked or ("",)):
        name = part.partition("%")[0].lower()
        field = field_named(report.kind, name)
        if field is None:
            report.context.complain(f" Unknown field '{name}'")
            report.code = 1
            continue
        found.append(field)
        if width := leading_integer(part.partition("%")[2]):
            report.widths[field] = width
    return found


def _utilization(report: Report) -> None:
    if "node" in report.tres:
        report.context.fatal(
            "TRES node usage is no longer reported in the Cluster Utilization report.  Please "
            "use TRES CPU instead."
        )
        raise _UnknownError
    sums = add_up(
        report.usage(["allocated", "down", "planned_down", "idle", "planned", "overcommitted"]),
        "cluster",
        "tres",
        "kind",
    )
    sizes = {
        row["cluster"]: row["tres"] for row in report.table.rows("clusters", ["cluster", "tres"])
    }
    rows = []
    for cluster in sorted({key[0] for key in sums}):
        for tres in report.tres:
            parts = {
                kind: sums.get((cluster, tres, kind), 0)
                for kind in (
                    "allocated",
                    "down",
                    "planned_down",
                    "idle",
                    "planned",
                    "overcommitted",
                )
            }
            total = sum(parts.values()) - parts["overcommitted"]
            if not total:
                continue
            count = (sizes.get(cluster) or {}).get(tres, 0)
            texts = {kind: report.amount(amount, total) for kind, amount in parts.items()}
            texts["reported"] = report.amount(total, count * (report.end - report.start))
            rows.append(
                {
                    "cluster": cluster,
                    "tresname": tres,
                    "trescount": count,
                    "planneddown": texts["planned_down"],
                    **texts,
                }
            )
    fields = (
        "cluster,"
        + ("tresname," if report.has_tres else "")
        + "allocated,down,planneddown,idle,planned,"
        "reported"
    )
    report.show(
        f"Cluster Utilization {report.period}", [report.usage_line], _format(report, fields), rows
    )


def _used(
    report: Report,
    sums: "dict[Any, int]",
    key: "tuple[Any, ...]",
    tres: str,
    total: "dict[tuple[str, str], int]",
) -> "Row":
    cluster = key[0]
    return {
        "cluster": cluster,
        "tresname": tres,
        "used": report.amount(sums.get((*key, tres), 0), total.get((cluster, tres), 0)),
        "energy": report.amount(sums.get((*key, "energy"), 0), total.get((cluster, "energy"), 0)),
    }


def _ending(report: Report) -> str:
    return ",tresname,used" if report.has_tres else ",used,energy"


def _accounts_by_user(report: Report) -> None:
    sums, totals, tree = _association_sums(report), report.totals(), _tree(report)
    rows = []
    for place in tree.places(report.given.get("accounts")):
        if not report.selected("users", place["user"]):
            continue
        for tres in report.tres:
            key = (place["cluster"], place["id"])
            if tree.sums(sums, place, tres) or tree.sums(sums, place, report.tres[0]):
                both = {(*key, name): tree.sums(sums, place, name) for name in (tres, "energy")}
                account = (
                    " " * place["depth"] + place["account"]
                    if "tree" in report.given
                    else place["account"]
                )
                rows.append(
                    _used(report, both, key, tres, totals)
                    | {"account": account, "login": place["user"], "proper": _proper(place["user"])}
                )
    title = f"Cluster/Account/User Utilization {report.period} ({report.end - report.start} secs)"
    report.show(
        title,
        [report.usage_line],
        _format(report, "cluster,account,login,proper" + _ending(report)),
        rows,
    )


def _users_by_account(report: Report) -> None:
    rows = _user_rows(report, is_grouped=False)
    title = f"Cluster/User/Account Utilization {report.period} ({report.end - report.start} secs)"
    report.show(
        title,
        [report.usage_line],
        _format(report, "cluster,login,proper,account" + _ending(report)),
        rows,
    )


def _top(report: Report) -> None:
    asked = next(iter(report.given.get("topcount", ["10"])), "0")
    count = leading_integer(asked) & 0xFFFFFFFF
    if not asked.lstrip().lstrip("+-")[:1].isdigit():
        report.context.error(f"Invalid value for TopCount ({asked})")
        report.code, count = 1, 10
    rows = _user_rows(report, is_grouped="group" in report.given)[: count * len(report.tres)]
    title = f"Top {count} Users {report.period} ({report.end - report.start} secs)"
    report.show(
        title,
        [report.usage_line],
        _format(report, "cluster,login,proper,account" + _ending(report)),
        rows,
    )


def _association_sums(report: Report) -> "dict[Any, int]":
    return add_up(report.usage(["association"]), "cluster", "subject", "tres")


def _tree(report: Report) -> Tree:
    columns = ["id", "parent_id", "cluster", "account", "user", "partition"]
    return Tree(
        report.table.rows(
            "associations",
            columns,
            {"clusters": report.clusters},
            ["left_to_right", "raw", "with_deleted"],
        )
    )


def _user_rows(report: Report, *, is_grouped: bool) -> "list[Row]":
    """Users by account, or with all their accounts, those who used most first."""
    sums, totals, tree = _association_sums(report), report.totals(), _tree(report)
    used: dict[tuple[str, str, str], dict[str, int]] = {}
    accounts: dict[tuple[str, str, str], list[str]] = {}
    for place in tree.associations:
        if (
            not place["user"]
            or not report.selected("users", place["user"])
            or not report.selected("accounts", place["account"])
        ):
            continue
        key = (place["cluster"], place["user"], "" if is_grouped else place["account"])
        amounts = used.setdefault(key, {})
        for tres in (*report.tres, "energy"):
            amount = sums.get((place["cluster"], place["id"], tres), 0)
            if amount and place["account"] not in accounts.setdefault(key, []):
                accounts[key].append(place["account"])
            amounts[tres] = amounts.get(tres, 0) + amount
    rows = []
    order = sorted(used, key=lambda key: (key[0], -used[key][report.tres[0]]))
    for key in order:
        if not accounts.get(key):
            continue
        flat = {(*key, tres): amount for tres, amount in used[key].items()}
        for tres in report.tres:
            row = _used(report, flat, key, tres, totals)
            rows.append(
                row
                | {"login": key[1], "proper": _proper(key[1]), "account": ",".join(accounts[key])}
            )
    return rows


def _by_wckey(report: Report, *, is_user_first: bool) -> None:
    sums, totals = add_up(report.usage(["wckey"]), "cluster", "subject", "tres"), report.totals()
    keys = [
        key
        for key in report.table.rows(
            "wckeys", ["id", "name", "cluster", "user"], {"clusters": report.clusters}
        )
        if report.selected("users", key["user"]) and report.selected("wckeys", key["name"])
    ]
    found: list[tuple[Any, Row]] = []
    for tres in report.tres:
        of_keys: dict[tuple[str, str], int] = {}
        for key in keys:
            amount = sums.get((key["cluster"], key["id"], tres), 0)
            if not amount:
                continue
            of_keys[key["cluster"], key["name"]] = (
                of_keys.get((key["cluster"], key["name"]), 0) + amount
            )
            row = _used(report, sums, (key["cluster"], key["id"]), tres, totals)
            place: tuple[Any, ...] = (
                (key["cluster"], -amount)
                if is_user_first
                else (key["cluster"], key["name"], 1, key["user"])
            )
            found.append(
                (
                    place,
                    row
                    | {"wckey": key["name"], "login": key["user"], "proper": _proper(key["user"])},
                )
            )
        if not is_user_first:
            for (cluster, name), amount in of_keys.items():
                found.append(
                    (
                        (cluster, name, 0, ""),
                        _used(
                            report, {(cluster, name, tres): amount}, (cluster, name), tres, totals
                        )
                        | {"wckey": name},
                    )
                )
    rows = [row for _, row in sorted(found, key=lambda each: each[0])]
    order, fields = (
        ("User/WCKey", "cluster,login,proper,wckey")
        if is_user_first
        else ("WCKey/User", "cluster,wckey,login,proper")
    )
    title = f"Cluster/{order} Utilization {report.period} ({report.end - report.start} secs)"
    report.show(
        title,
        [report.usage_line],
        _format(report, fields + (",tresname,used" if report.has_tres else ",used")),
        rows,
    )


def _is_user(text: str) -> bool:
    import pwd

    try:
        return bool(pwd.getpwuid(int(text)) if text.isdigit() else pwd.getpwnam(text))
    except (KeyError, OverflowError):
        return False


def _sized_jobs(report: Report) -> "list[Row]":
    """The jobs that are meant, with what they had. Users that nobody knows are named."""
    columns = [
        "cluster",
        "account",
        "wckey",
        "user",
        "partition",
        "job_id",
        "start_time",
        "end_time",
        "suspended_s",
        "tres_allocated",
        "association_id",
    ]
    where: dict[str, list[Any]] = {
        "clusters": report.clusters,
        "after": [report.start],
        "before": [report.end],
    }
    jobs = [
        job
        for job in report.table.rows("jobs", columns, where)
        if report.selected("users", job["user"])
        and report.selected("partitions", job["partition"])
        and report.selected("wckeys", job["wckey"])
    ]
    for user in report.given.get("users", []):
        if not _is_user(user):
            report.context.error(f"Invalid user id: {user}")
    return jobs


def _size_rows(
    report: Report, found: dict[tuple[str, str], list[int]], *, counts_jobs: bool
) -> list[dict[str, str]]:
    """A line for each subject of each cluster: amounts by size, and its share of the cluster's."""
    totals: dict[str, int] = {}
    for (cluster, _), amounts in found.items():
        totals[cluster] = totals.get(cluster, 0) + sum(amounts)
    rows = []
    for (cluster, name), amounts in sorted(found.items()):
        total = totals[cluster]
        row = {
            "cluster": cluster,
            "subject": name,
            "percent": f"{100 * sum(amounts) / total if total else 0:.2f}%",
        }
        row |= {
            f"size{at}": str(amount) if counts_jobs else report.amount(amount, total)
            for at, amount in enumerate(amounts)
        }
        rows.append(row)
    return rows


def _sizes(report: Report, *, by: str) -> None:
    """Job sizes: what jobs of so many CPUs used."""
    if len(report.tres) > 1 or "all" in report.tres:
        report.context.complain(
            " Job report only supports a single --tres type.\n"
            " Generate a separate report for each TRES type."
        )
        report.code = 1
        return
    tres = report.tres[0]
    jobs = _sized_jobs(report)
    groups = size_groups(
        report.given.get("grouping"), "TRES" if tres != "cpu" else "CPUs", jobs, tres
    )
    is_flat, counts_jobs = "flatview" in report.given, "printjobcount" in report.given
    name_of = _tree(report).namer(
        report.given.get("accounts"), is_flat=is_flat, below="acctasparent" in report.given
    )

    def subject(job: "Row") -> "str | None":
        if by == "wckey":
            return str(job["wckey"])
        account = name_of(job)
        return account if account is None or by == "account" else f"{account}:{job['wckey']}"

    found = job_sizes(
        jobs, subject, groups, tres, report.start, report.end, counts_jobs=counts_jobs
    )
    rows = _size_rows(report, found, counts_jobs=counts_jobs)
    title = (
        f"Job Sizes{' by Wckey' if by == 'wckey' else ''} {report.period} "
        f"({report.end - report.start} secs)"
    )
    lines = [] if tres == "cpu" else [f"TRES type is {tres}"]
    lines.append(
        "Units are in number of jobs ran" if counts_jobs else f"Time reported in {report.unit}"
    )
    own = ("Wckey" if by == "wckey" else "Account", -20 if by == "both" else 9, "subject")
    known = {"cluster": ("Cluster", 9, "cluster"), "account": own, "wckey": own}
    names = _format(report, "cluster,wckey" if by == "wckey" else "cluster,account")
    heads = [
        (title_of, report.widths.get(name, width), column)
        for name in names
        if name in known
        for title_of, width, column in [known[name]]
    ]
    if not groups:
        report.context.complain(" We need a grouping list to set up the print.")
        report.code = 1
        return
    width = 20 if report.has_percent and report.unit_s else 13
    sizes = [(title_of, width, f"size{at}") for at, (title_of, _, _) in enumerate(groups)]
    report.print(title, lines, [*heads, *sizes, ("% of cluster", 12, "percent")], rows)


def _used_of(reservation: "Row", jobs: "list[Row]", tres: str) -> int:
    """The TRES seconds of it that jobs have had."""
    used = 0
    for job in jobs:
        if (
            job["reservation_id"] == reservation["id"]
            and job["cluster"] == reservation["cluster"]
            and job["start_time"] is not None
        ):
            end = reservation["end_time"]
            if job["end_time"] is not None:
                end = min(job["end_time"], end)
            length = max(0, end - max(job["start_time"], reservation["start_time"]))
            used += (job["tres_allocated"] or {}).get(tres, 0) * length
    return used


def _reservations(report: Report) -> None:
    columns = [
        "cluster",
        "id",
        "name",
        "start_time",
        "end_time",
        "tres",
        "nodes",
        "flags",
        "associations",
    ]
    where: dict[str, list[Any]] = {
        "clusters": report.clusters,
        "after": [report.start],
        "before": [report.end],
    }
    jobs = report.table.rows(
        "jobs", ["cluster", "reservation_id", "start_time", "end_time", "tres_allocated"], where
    )
    rows = []
    flags = set(report.given.get("flags", []))
    for each in report.table.rows("reservations", columns, where):
        if not report.selected("names", each["name"]):
            continue
        if flags and flags.isdisjoint(each["flags"].split(",")):
            continue
        seconds = each["end_time"] - each["start_time"]
        for tres, amount in sorted((each["tres"] or {}).items()):
            if report.has_tres and tres not in report.tres:
                continue
            used = _used_of(each, jobs, tres)
            total = amount * seconds
            row = {
                "cluster": each["cluster"],
                "name": each["name"],
                "start": timestamp(each["start_time"]),
                "end": timestamp(each["end_time"]),
            }
            row |= {
                "tresname": tres,
                "allocated": report.amount(used, total),
                "idle": report.amount(max(total - used, 0), total),
            }
            row |= {
                "nodes": each["nodes"],
                "reservationid": each["id"],
                "flags": each["flags"],
                "associations": ",".join(map(str, each["associations"])),
            }
            row |= {
                "totaltime": report.amount(seconds, seconds),
                "trescount": amount,
                "trestime": report.amount(total, total),
            }
            rows.append(row)
    width = 29 if report.has_percent and report.unit_s else 20
    heads = []
    for name in _format(report, _RESERVATION_FIELDS):
        head, size = _COLUMNS[name]
        heads.append(
            (_OF_RESERVATIONS.get(name, head), report.widths.get(name) or size or width, name)
        )
    report.print(
        f"Reservation Utilization {report.period}",
        [f"Usage reported in {'TRES ' if report.unit_s else ''}{report.unit}"],
        heads,
        rows,
    )


def _proper(user: str) -> str:
    """The person's name as this host knows it."""
    import pwd

    try:
        return pwd.getpwnam(user).pw_gecos.partition(",")[0] if user else ""
    except KeyError:
        return ""


_MAKERS = {
    "utilization": _utilization,
    "accountutilizationbyuser": _accounts_by_user,
    "userutilizationbyaccount": _users_by_account,
    "userutilizationbywckey": lambda report: _by_wckey(report, is_user_first=True),
    "wckeyutilizationbyuser": lambda report: _by_wckey(report, is_user_first=False),
    "sizesbyaccount": lambda report: _sizes(report, by="account"),
    "sizesbyaccountandwckey": lambda report: _sizes(report, by="both"),
    "sizesbywckey": lambda report: _sizes(report, by="wckey"),
    "topusage": _top,
    "reservation": _reservations,
}


def main() -> int:
    """Run as a program; does not return."""
    return run("sreport", sreport, client=AccountingClient())


if __name__ == "__main__":
    main()
