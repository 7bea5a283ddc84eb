"""sacctmgr load: associations from the text that `sacctmgr dump` writes.

Place: under sacctmgr. The file is read whole, compared with what accounting knows, and what is new
or different told; then, if the user agrees, it is asked for, change by change. Follows sacctmgr(1),
FLAT FILE DUMP AND LOAD.
"""

import re
import time

from understudy.commands.sacctmgr import fields
from understudy.commands.sacctmgr import keys as sk
from understudy.commands.sacctmgr import words as sw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.commands.sacctmgr.session import Session

    Row = dict[str, Any]
    Values = dict[str, Any]

_LINE = re.compile(r"\s*(\w+)\s*-\s*(.*)")
_PART = re.compile(r"(?:[^:'\"]|'[^']*'|\"[^\"]*\")+")
_LIMITS = (
    "share,grptresmins,grptresrunmins,grptres,grpjobs,grpjobsaccrue,grpmem,grpnodes,grpsubmit,"
    "grpwall,maxtresmins,maxtres,maxtrespernode,maxjobs,"
    "maxsubmit,maxnodes,maxwall,qos,defaultqos"
)
_OF_ASSOCIATIONS = "account,parentname," + _LIMITS
_OF_USERS = "user,account," + _LIMITS
_LABELS = {
    "admin_level": "Admin Level",
    "shares": "fairshare",
    "description": "description",
    "organization": "organization",
}
_FLUSH = (
    "You requested to flush the cluster before adding it again.\n"
    "Are you sure you want to continue? (You have 30 seconds to decide)"
)
_EXTRA = [
    sk.Key("Coordinator", 2, "coordinator", "names"),
    sk.Key("Partition", 4, "partition", "text"),
    sk.Key("WCKeys", 2, "wckeys", "names"),
]


class _BadFileError(Exception):
    """The file cannot be taken; says what to print, and whether anything else was to be said."""

    def __init__(self, text: str, *, is_misread: bool = False) -> None:
        self.text, self.is_misread = text, is_misread
        super().__init__(text)


class _Load:
    """One file being read."""

    def __init__(self, session: "Session", cluster: str, *, is_clean: bool) -> None:
        self.session, self.cluster, self.is_clean = session, cluster, is_clean
        self.parent = ""
        # what will be asked for
        self.changes: list[tuple[str, str, list[str], Values, dict[str, list[str]]]] = []
        self.tables: dict[str, list[Row]] = {
            name: [] for name in ("Accounts", "Account Associations", "Users", "User Associations")
        }
        self.accounts: dict[str, Row] = {
            row["name"]: row
            for row in session.table.rows("accounts", ["name", "description", "organization"])
        }
        users = session.table.rows("users", ["name", "admin_level", "default_wckey", "coordinates"])
        self.users: dict[str, Row] = {row["name"]: row for row in users}
        # account, user, partition: what the cluster has
        self.placed: dict[tuple[str, str, str], Row] = {}
        self.defaults: dict[str, str] = {}

    def take(self, number: int, line: str) -> None:
        """Read one line."""
        match = _LINE.fullmatch(line)
        parts = _PART.findall(match[2]) if match else []
        kind = match[1].lower() if match else ""
        if kind and "machine".startswith(kind):
            kind = "cluster"
        name = sw.unquoted(parts[0].strip()).lower() if parts else ""
        if kind == "cluster" and name:
            self._take_cluster(name, self._values("cluster", number, parts[1:]))
            return
        if not self.placed:
            raise _BadFileError(
                " You need to specify a cluster name first with 'Cluster - $NAME' in your file"
            )
        if kind == "parent" and name:
            if (name, "", "") not in self.placed:
                raise _BadFileError(
                    f" line({number}) You need to add this parent ({name}) as a child "
                    "before you can add children to it."
                )
            self.parent = name
            return
        if not self.parent:
            self.session.context.print(
                " No parent given creating off root, If incorrect specify 'Parent - name' "
                "before any children in your file"
            )
            self.parent = "root"
        if kind in {"account", "project"} and name:
            self._take_account(name, self._values("account", number, parts[1:]))
        elif kind == "user" and name:
            self._take_user(name, self._values("user", number, parts[1:]))
        else:
            raise _BadFileError(f" Misformatted line({number}): {line}\n", is_misread=True)

    def _values(self, entity: str, number: int, parts: "list[str]") -> "Values":
        found: Values = {}
        for part in parts:
            name, _, text = part.partition("=")
            key = (
                sk.find_key(_EXTRA, name)
                or sk.find_key(sk.SET[entity], name)
                or sk.find_key(sk.SET["account"], name)
            )
            if key is None:
                where = " error: Problem" if entity == "cluster" else " Problem"
                raise _BadFileError(
                    f" Unknown option: {part}\n{where} with line({number})", is_misread=True
                )
            try:
                found[key.field] = sw.read_value(
                    key,
                    "=",
                    sw.unquoted(text),
                    part,
                    self.session.words,
                    self.session.context.error,
                )
            except sw.ValueRefusedError as error:
                raise _BadFileError(
                    f"{error.text}\n Problem with line({number})", is_misread=True
                ) from None
        return found

    def _take_cluster(self, name: str, values: "Values") -> None:
        session = self.session
        self.cluster = self.cluster or name
        session.context.print(f"For cluster {self.cluster}")
        limits = _limits(values)
        rows = _placed(session, self.cluster)
        self.defaults = {row["user"]: row["account"] for row in rows if row["is_default"]}
        if self.is_clean:
            rows = []
        self.placed = {(row["account"], row["user"], row["partition"]): row for row in rows}
        if rows:
            self._compare(
                "Cluster",
                self.cluster,
                self.placed["root", "", ""],
                limits,
                ("modify", "cluster", [], limits, {"names": [self.cluster]}),
            )
            return
        if self.is_clean:
            self.changes.append(("delete", "cluster", [], {}, {"names": [self.cluster]}))
        self.changes.append(("add", "cluster", [self.cluster], limits, {}))
        self.placed = {("root", "", ""): {}, ("root", "root", ""): {}}
        _print_table(session, "", _OF_ASSOCIATIONS, [{"account": "root", **values}], 62)

    def _take_account(self, name: str, values: "Values") -> None:
        limits = _limits(values)
        known = self.accounts.get(name)
        where = {"clusters": [self.cluster]}
        if known is None:
            row = {
                "name": name,
                "description": values.get("description", name),
                "organization": values.get("organization", self._organization(name)),
            }
            self.accounts[name] = row
            self.tables["Accounts"].append(row)
        else:
            own: Values = {
                field: values[field] for field in ("description", "organization") if field in values
            }
            self._compare(
                "Account", name, known, own, ("modify", "account", [], own, {"names": [name]})
            )
        place = self.placed.get((name, "", ""))
        if place is None:
            self.placed[name, "", ""] = {}
            self.tables["Account Associations"].append(
                {"account": name, "parent_account": self.parent, **values}
            )
            row = self.accounts[name]
            own = {"description": row["description"], "organization": row["organization"]}
            self.changes.append(
                ("add", "account", [name], {"parent": self.parent, **own, **limits}, where)
            )
        else:
            self._compare(
                "Account",
                name,
                place,
                limits,
                ("modify", "account", [], limits, {"names": [name], **where}),
            )

    def _organization(self, name: str) -> str:
        return name if self.parent == "root" else self.parent

    def _take_user(self, name: str, values: "Values") -> None:
        limits = _limits(values)
        known = self.users.get(name)
        where = {"names": [name], "clusters": [self.cluster]}
        default = values.get("default_account", "" if name in self.users else self.parent)
        own = {
            field: values[field] for field in ("admin_level", "default_wckey") if values.get(field)
        }
        if known is None:
            coordinated = values.get("coordinator", "")
            self.users[name] = {"admin_level": "None", **own, "coordinates": []}
            row = {
                "name": name,
                "default_account": default,
                "default_wckey": values.get("default_wckey", ""),
            }
            self.tables["Users"].append(
                {
                    **row,
                    "admin_level": values.get("admin_level", "Not Set"),
                    "coordinators": [coordinated] if coordinated else [],
                }
            )
        else:
            self._compare("User", name, known, own, ("modify", "user", [], own, {"names": [name]}))
            if default and default != self.defaults.get(name, ""):
                self._tell(
                    "Default Account", "User", name, self.defaults.get(name) or "(null)", default
                )
        partition = values.get("partition", "")
        place = self.placed.get((self.parent, name, partition))
        if place is None:
            self.placed[self.parent, name, partition] = {}
            self.tables["User Associations"].append(
                {"user": name, "account": self.parent, **values}
            )
            new = {
                "accounts": [self.parent],
                "partitions": [partition] if partition else [],
                **limits,
                **(own if known is None else {}),
            }
            if values.get("wckeys"):
                new["wckeys"] = values["wckeys"].split(",")
            self.changes.append(("add", "user", [name], new, {"clusters": [self.cluster]}))
        else:
            there = {
                **where,
                "accounts": [self.parent],
                **({"partitions": [partition]} if partition else {}),
            }
            self._compare("User", name, place, limits, ("modify", "user", [], limits, there))
        if default and (self.is_clean or default != self.defaults.get(name, "")):
            self.defaults[name] = default
            self.changes.append(("default", "user", [], {"default_account": default}, where))
        accounts = [
            each
            for each in values.get("coordinator", "").split(",")
            if each and each not in self.users[name]["coordinates"]
        ]
        if accounts:
            if known is not None:
                self.session.context.print(
                    f" Making User '{name}' coordinator for account(s) {','.join(accounts)}"
                )
            self.changes.append(("coordinate", "coordinator", [name], {}, {"accounts": accounts}))

    def _compare(
        self,
        kind: str,
        name: str,
        known: "Row",
        values: "Values",
        change: "tuple[str, str, list[str], Values, dict[str, list[str]]]",
    ) -> None:
        """Tell what differs, and have it changed."""
        different = {
            field: value
            for field, value in values.items()
            if known and not _is_same(field, known.get(field), value)
        }
        for field, value in different.items():
            before, after = (_text(field, each) for each in (known.get(field), value))
            self._tell(_label(field), kind, name, before, after)
        if different:
            action, entity, names, _, where = change
            self.changes.append((action, entity, names, different, where))

    def _tell(self, what: str, kind: str, name: str, before: str, after: str) -> None:
        self.session.context.print(
            f" Changed {what[:21]:<21} for {kind:<7} {name[:10]:<10} {before:>8} -> {after}"
        )

    def ask_for(self) -> None:
        """Have accounting change all that was found: first what is added, then defaults and
        coordinators, which name it.
        """
        late = {"default": "modify", "coordinate": "add"}
        for action, entity, names, values, where in sorted(
            self.changes, key=lambda each: each[0] in late
        ):
            self.session.context.client.call(
                "AccountingChange", late.get(action, action), entity, names, values, where, True
            )


def load(session: "Session", words: "list[str]") -> int:
    """Read a file and add what it has. The exit code."""
    context = session.context
    path = cluster = ""
    is_clean = False
    for word in words:
        key, _, value = sw.split_word(word)
        if not key and value.lower() == "clean":
            is_clean = True
        elif not key or "file".startswith(key.lower()):
            if path:
                context.complain(f" File name already set to {path}")
                continue
            path = value
        elif "cluster".startswith(key.lower()):
            cluster = value.lower()
        else:
            context.complain(f" Unknown option: {word}")
    if not path:
        context.complain(" No filename given, specify one with file=''")
        return 1
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError as error:
        context.complain(f' Unable to read "{path}": {error.strerror}')
        return 1
    if is_clean and not session.confirmed(_FLUSH, "Aborted"):
        context.print(" Nothing new added.")
        return 0
    began = time.monotonic()
    reading = _Load(session, cluster, is_clean=is_clean)
    try:
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.lstrip().startswith("#"):
                reading.take(number, line)
    except _BadFileError as error:
        context.complain(error.text)
        if error.is_misread:
            context.complain(" Problem with requests: Unspecified error")
        else:
            context.print(" Nothing new added.")
        return 1
    if not reading.changes:
        context.print(" Nothing new added.")
        return 0
    for name, form, dashes in (
        ("Accounts", "name,description,organization,qos", 51),
        ("Account Associations", _OF_ASSOCIATIONS, 62),
        ("Users", "name,defaultaccount,defaultwckey,qos,adminlevel,coordinators", 51),
        ("User Associations", _OF_USERS, 62),
    ):
        if reading.tables[name]:
            _print_table(session, name, form, reading.tables[name], dashes)
    if session.confirmed():
        reading.ask_for()
        context.complain(
            f"sacctmgr: Done adding cluster in usec={int((time.monotonic() - began) * 1e6)}"
        )
    return 0


def _placed(session: "Session", cluster: str) -> "list[Row]":
    names = ["account", "user", "partition", "is_default", *sorted(_LIMIT_FIELDS)]
    return session.table.rows("associations", names, {"clusters": [cluster]}, ["raw"])


# -1 where there is none
_NUMBERS = {
    f"{of}_{what}" for of in ("grp", "max") for what in ("jobs", "jobs_accrue", "submit_jobs")
}
_LIMIT_FIELDS = {key.field for key in sk.SET["cluster"]} - {
    "classification",
    "features",
    "fed_state",
    "federation",
    "parent",
}


def _limits(values: "Values") -> "Values":
    return {
        field: value
        for field, value in values.items()
        if field in _LIMIT_FIELDS and value is not None
    }


def _is_same(field: str, known: "Any", value: "Any") -> bool:
    if field == "qos":
        return sorted(known or ()) == sorted(value)
    return bool(known == value or (not known and not value))


def _text(field: str, value: "Any") -> str:
    if field == "qos" and value:
        return ",".join(sorted(value))
    return sw.text_of_limit(field, value) or ("-1" if field in _NUMBERS else "(null)")


def _label(field: str) -> str:
    return _LABELS.get(field) or next(
        (key.name for key in (*sk.SET["account"], *sk.SET["user"]) if key.field == field), field
    )


def _print_table(session: "Session", title: str, form: str, rows: "list[Row]", dashes: int) -> None:
    context = session.context
    if title:
        context.print(title)
    for line in fields.lines(fields.columns_of(form), rows, header=True, parsable=0):
        context.print(line)
    context.print("-" * dashes + "\n")
