"""Accounts, users, limits and QOS of a site as commands of sacctmgr: from what `sacctmgr dump`
writes, and from `sacctmgr show assoc|qos|user -P`; and when its reservations were (`sacctmgr show
reservation -P`).

Place: pure; `understudy import` writes the commands into sacctmgr.txt. Follows: sacctmgr(1) of
22.05, on the dump's format and the names of columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from understudy.experiments.past import HistoryError
from understudy.experiments.sacct_words import instant
from understudy.model.nouns import many

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_ENTITY: Final = re.compile(
    r"(?:sacctmgr: )?(Cluster|Parent|Account|User) - " r"'?([^':]+)'?(?::(.*))?"
)
_OPTION: Final = re.compile(r"([A-Za-z]\w*)=('[^']*'|[^:]*)(?::|$)")
# Columns of `show assoc` and `show user`: what they are called when they are set.
_ASSOCIATION: Final = {
    "share": "fairshare",
    "fairshare": "fairshare",
    "priority": "priority",
    "grpjobs": "GrpJobs",
    "grpjobsaccrue": "GrpJobsAccrue",
    "grptres": "GrpTRES",
    "grpsubmit": "GrpSubmitJobs",
    "grpwall": "GrpWall",
    "grptresmins": "GrpTRESMins",
    "grptresrunmins": "GrpTRESRunMins",
    "maxjobs": "MaxJobs",
    "maxjobsaccrue": "MaxJobsAccrue",
    "maxtres": "MaxTRESPerJob",
    "maxtrespernode": "MaxTRESPerNode",
    "maxsubmit": "MaxSubmitJobs",
    "maxwall": "MaxWallDurationPerJob",
    "maxtresmins": "MaxTRESMinsPerJob",
    "qos": "qos",
    "defqos": "defaultqos",
}
_QOS: Final = {
    "priority": "Priority",
    "gracetime": "GraceTime",
    "preemptexempttime": "PreemptExemptTime",
    "preemptmode": "PreemptMode",
    "flags": "Flags",
    "usagethres": "UsageThreshold",
    "usagefactor": "UsageFactor",
    "grptres": "GrpTRES",
    "grptresmins": "GrpTRESMins",
    "grptresrunmins": "GrpTRESRunMins",
    "grpjobs": "GrpJobs",
    "grpsubmit": "GrpSubmitJobs",
    "grpwall": "GrpWall",
    "maxtres": "MaxTRESPerJob",
    "maxtrespernode": "MaxTRESPerNode",
    "maxtresmins": "MaxTRESMinsPerJob",
    "maxwall": "MaxWall",
    "maxtrespu": "MaxTRESPerUser",
    "maxjobspu": "MaxJobsPerUser",
    "maxsubmitpu": "MaxSubmitJobsPerUser",
    "maxtrespa": "MaxTRESPerAccount",
    "maxjobspa": "MaxJobsPerAccount",
    "maxsubmitpa": "MaxSubmitJobsPerAccount",
    "mintres": "MinTRESPerJob",
}
# a user's own, not one association's
_OF_USERS: Final = frozenset(("defaultaccount", "defaultwckey", "wckeys", "adminlevel"))
_PLAIN: Final = {
    "Priority": "0",
    "GraceTime": "00:00:00",
    "PreemptMode": "cluster",
    "UsageFactor": "1.000000",
    "fairshare": "1",
}


@dataclass(slots=True)
class SiteAccounts:
    """What a site has. Options are what `sacctmgr add` takes, in order."""

    cluster: dict[str, str] = field(default_factory=dict)
    accounts: dict[str, dict[str, str]] = field(default_factory=dict)  # with `parent`
    # (user, account, partition)
    users: dict[tuple[str, str, str], dict[str, str]] = field(default_factory=dict)
    qos: dict[str, dict[str, str]] = field(default_factory=dict)
    preempt: dict[str, str] = field(default_factory=dict)
    coordinators: dict[tuple[str, str], None] = field(default_factory=dict)  # (account, user)
    # name: begins and ends
    reservations: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    @property
    def limits_resources(self) -> bool:
        """Whether there are limits of TRES, of anybody."""
        groups = (self.accounts, self.users, self.qos, {"": self.cluster})
        tables = (table for group in groups for table in group.values())
        return any("TRES" in key and value for table in tables for key, value in table.items())

    def read(self, text: str, name: str) -> None:
        """Take what a file says.

        Raises:
            HistoryError: it is none of those that are known, or a line of it is not understood.
        """
        lines = text.splitlines()
        first = next(
            (
                line
                for line in lines
                if line.strip() and not line.lstrip().removeprefix("sacctmgr: ").startswith("#")
            ),
            "",
        )
        if _ENTITY.match(first):
            self._read_dump(lines, name)
            return
        columns = [column.strip().lower().replace(" ", "") for column in first.split("|")]
        if "|" not in first:
            raise HistoryError(
                f"{name}: neither a file of `sacctmgr dump` nor what `sacctmgr show "
                "assoc|qos|reservation -P` writes"
            )
        if "user" in columns and "account" in columns:
            self._read_table(lines, columns, name, self._association)
        elif {"name", "timestart", "timeend"} <= set(columns):
            self._read_table(lines, columns, name, self._reservation)
        elif "name" in columns and (
            "preempt" in columns
            or "gracetime" in columns
            or "maxtrespu" in columns
            or "priority" in columns
        ):
            self._read_table(lines, columns, name, self._quality)
        else:
            raise HistoryError(
                f"{name}: a table with the columns {', '.join(columns)[:100]} is neither "
                "of associations nor of QOS"
            )

    def _read_dump(self, lines: Sequence[str], name: str) -> None:
        parent = "root"
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if not text or text.removeprefix("sacctmgr: ").startswith("#"):
                continue
            match = _ENTITY.fullmatch(text)
            if match is None:
                raise HistoryError(f"{name} line {number}: not understood: {text[:60]!r}")
            kind, who, rest = match.groups()
            options = {key: value.strip("'") for key, value in _OPTION.findall(rest or "")}
            if kind == "Cluster":
                self.cluster = {
                    key: value
                    for key, value in options.items()
                    if key.lower() not in ("fairshare", "classification")
                }
            elif kind == "Parent":
                parent = who
            elif kind == "Account":
                self.accounts[who] = {"parent": parent, **options}
            else:
                for account in filter(None, (options.pop("Coordinator", "")).split(",")):
                    self.coordinators[account, who] = None
                self.users[who, parent, options.pop("Partition", "")] = options

    def _read_table(
        self, lines: Sequence[str], columns: Sequence[str], name: str, take: object
    ) -> None:
        assert callable(take)
        is_head = True
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            if is_head:
                is_head = False
                continue
            fields = line.split("|")
            if len(fields) == len(columns) + 1 and not fields[-1]:
                fields.pop()
            if len(fields) != len(columns):
                raise HistoryError(
                    f"{name} line {number}: {len(fields)} fields where the header has "
                    f"{len(columns)}"
                )
            take(dict(zip(columns, (each.strip() for each in fields), strict=True)))

    def _association(self, row: Mapping[str, str]) -> None:
        options = {
            _ASSOCIATION[key]: value for key, value in row.items() if value and key in _ASSOCIATION
        }
        account, user = row["account"], row["user"]
        if not account:
            return
        if user:
            for key, name in (
                ("defacct", "defaultaccount"),
                ("defaultaccount", "defaultaccount"),
                ("admin", "adminlevel"),
            ):
                if row.get(key) and row[key] != "None":
                    options[name] = row[key]
            self.users.setdefault((user, account, row.get("partition", "")), {}).update(options)
        elif account == "root":
            self.cluster = {
                key: value
                for key, value in options.items()
                if key != "fairshare" and (key, value) != ("qos", "normal")
            }
        else:
            self.accounts.setdefault(account, {}).update(
                {"parent": row.get("parentname") or "root", **options}
            )

    def _reservation(self, row: Mapping[str, str]) -> None:
        start, end = instant(row["timestart"]), instant(row["timeend"])
        if start is not None and end is not None:
            self.reservations.setdefault(row["name"], []).append((start, end))

    def _quality(self, row: Mapping[str, str]) -> None:
        self.qos[row["name"]] = {
            _QOS[key]: value
            for key, value in row.items()
            if value and key in _QOS and _PLAIN.get(_QOS[key]) != value
        }
        if row.get("preempt"):
            self.preempt[row["name"]] = row["preempt"]

    # --- what is missing, and all of it as commands -----------------------------------------------

    def complete(
        self,
        associations: Iterable[tuple[str, str]],
        qos: Mapping[str, Mapping[tuple[str, str], None]],
    ) -> list[str]:
        """Add what the history names and the site does not have; says what, a sentence each."""
        new_accounts: dict[str, None] = {}
        new_users: dict[str, None] = {}
        new_links: dict[str, None] = {}
        for user, account in associations:
            if account and account != "root" and account not in self.accounts:
                self.accounts[account] = {}
                new_accounts[account] = None
            if not account:
                continue
            theirs = [key for key in self.users if key[0] == user]
            if any(key[1] == account for key in theirs):
                continue
            self.users[user, account, ""] = {}
            if user == account == "root":  # which each cluster has
                continue
            (new_links if theirs and user not in new_users else new_users)[
                user if not theirs else f"{user} in {account}"
            ] = None
        new_qos = [
            name
            for name in qos
            if name != "normal" and name not in self.qos and not self._has_quality(name)
        ]
        for name in new_qos:
            self.qos[name] = {}
        permitted = 0
        for name, uses in qos.items():
            for entry in (options for key, options in self.users.items() if key[:2] in uses):
                key = next((each for each in entry if each.lower() == "qos"), "qos")
                # of what the account has
                is_change = key not in entry or entry[key].startswith(("+", "-"))
                if name in _names_of_qos(entry) or (is_change and name == "normal"):
                    continue
                entry[key] = ",".join(
                    [*filter(None, [entry.get(key)]), f"+{name}" if is_change else name]
                )
                permitted += 1
        said = [
            f"{len(names)} {f'{one} is' if len(names) == 1 else f'{several} are'} made: "
            f"{_some(list(names))}"
            for one, several, names in (
                ("account", "accounts", new_accounts),
                ("user", "users", new_users),
                ("further association", "further associations", new_links),
                ("QOS", "QOS", dict.fromkeys(new_qos)),
            )
            if names
        ]
        return said + (
            [f"{many(permitted, 'association')} with a QOS more, as jobs used it"]
            if permitted
            else []
        )

    def _has_quality(self, name: str) -> bool:
        return any(
            name in _names_of_qos(options)
            for options in (self.cluster, *self.accounts.values(), *self.users.values())
        )

    def commands(self) -> list[str]:
        """Arguments of `sacctmgr -i`, one command a line, in an order in which each finds what it
        needs.
        """
        found = []
        listed = dict.fromkeys(
            name
            for options in (self.cluster, *self.accounts.values(), *self.users.values())
            for name in _names_of_qos(options)
            if name != "normal"
        )
        for name in [*self.qos, *(name for name in listed if name not in self.qos)]:
            words = _words(self.qos.get(name, {}))
            if name == "normal":
                found += [f"modify qos normal set {words}"] if words else []
            else:
                found.append(f"add qos {name} {words}".rstrip())
        found += [
            f"modify qos {name} set preempt={others}" for name, others in self.preempt.items()
        ]
        if self.cluster:
            found.append(f"modify cluster set {_words(self.cluster)}")
        done = {"root"}
        waiting = {name: dict(options) for name, options in self.accounts.items() if name != "root"}
        while waiting:
            ready = [
                name for name, options in waiting.items() if options.get("parent", "root") in done
            ] or list(waiting)
            for name in ready:
                options = waiting.pop(name)
                if options.get("parent", "root") not in done:
                    options["parent"] = "root"
                found.append(f"add account {name} {_words(options)}".rstrip())
                done.add(name)
        found += self._user_commands()
        found += [
            f"add coordinator account={account} name={user}" for account, user in self.coordinators
        ]
        return found

    def _user_commands(self) -> list[str]:
        """Each user's associations, that with the default account first: `add user` with a
        DefaultAccount makes that one, too.
        """
        of_users: dict[str, list[tuple[str, str, dict[str, str]]]] = {}
        for (user, account, partition), options in self.users.items():
            of_users.setdefault(user, []).append((account, partition, options))
        found = []
        for user, entries in of_users.items():
            if user == "root":
                found += _commands_for_root(entries)
                continue
            own = {
                key: value
                for _, _, options in entries
                for key, value in options.items()
                if key.lower() in _OF_USERS
            }
            default = next(
                (value for key, value in own.items() if key.lower() == "defaultaccount"), ""
            )
            entries.sort(key=lambda entry: entry[0] != default)
            if entries[0][0] != default:
                own = {key: value for key, value in own.items() if key.lower() != "defaultaccount"}
            for place, (account, partition, options) in enumerate(entries):
                where = f"account={account}" + (f" partition={partition}" if partition else "")
                theirs = {
                    key: value for key, value in options.items() if key.lower() not in _OF_USERS
                }
                found.append(
                    f"add user {user} {where} "
                    f"{_words(own | theirs if not place else theirs)}".rstrip()
                )
        return found


def _commands_for_root(entries: list[tuple[str, str, dict[str, str]]]) -> list[str]:
    """Change the association that root has, and add the others."""
    found = []
    for account, partition, options in entries:
        where = f"account={account}" + (f" partition={partition}" if partition else "")
        words = _words({k: value for k, value in options.items() if k.lower() not in _OF_USERS})
        if account != "root" or partition:
            found.append(f"add user root {where} {words}".rstrip())
        elif words:
            found.append(f"modify user root where {where} set {words}")
    defaults = {
        value
        for _, _, options in entries
        for key, value in options.items()
        if key.lower() == "defaultaccount"
    }
    return found + [f"modify user root set defaultaccount={each}" for each in defaults - {"root"}]


def _names_of_qos(options: Mapping[str, str]) -> list[str]:
    """`a,b`, or `+a,-b`: what is added to, and taken from, that of the account above."""
    return [
        name.lstrip("+-")
        for key, text in options.items()
        if key.lower() == "qos"
        for name in text.split(",")
        if name
    ]


def _words(options: Mapping[str, str]) -> str:
    quoted = (
        f"{key}='{value}'" if re.search(r"\s", value) else f"{key}={value}"
        for key, value in options.items()
    )
    return " ".join(quoted)


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
