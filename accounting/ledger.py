"""What accounting holds in memory: clusters, accounts, users, associations, qualities of service,
keys and resources; all but jobs and usage.

Place: the core of the accounting daemon, no I/O. A `Ledger` is a set of tables of frozen records.
Changes are made on a `Draft`, a copy, which replaces the ledger when the store has it on disk: what
fails half way, or is only tried, leaves nothing behind. The store writes what differs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from understudy.model import tres
from understudy.model.associations import (
    ADMINISTRATOR,
    ROOT,
    AccountingUser,
    Association,
    Tres,
    Wckey,
)
from understudy.model.qos import DEFAULT_NAME, Qos

if TYPE_CHECKING:
    from collections.abc import Mapping

RPC_VERSION: Final = 9728  # of 22.05


class ClusterRecord(msgspec.Struct, frozen=True, array_like=True):
    """A cluster, and where its controller said that it is."""

    name: str
    control_host: str = ""
    control_port: int = 0
    rpc_version: int = 0
    classification: str = ""
    nodes: str = ""
    tres: dict[str, int] = {}
    creation_time: int = 0
    mod_time: int = 0
    federation: str = ""
    fed_id: int = 0  # its number within the federation
    fed_state: str = ""
    features: tuple[str, ...] = ()


class Federation(msgspec.Struct, frozen=True, array_like=True):
    """A group of clusters; these name it."""

    name: str
    creation_time: int = 0
    mod_time: int = 0


class Resource(msgspec.Struct, frozen=True, array_like=True):
    """A resource that clusters share. `allowed`: how many percent of it each may use."""

    id: int
    name: str
    server: str
    type: str = "License"
    count: int = 0
    server_type: str = ""
    description: str = ""
    allowed: dict[str, int] = {}
    creation_time: int = 0
    mod_time: int = 0


class Account(msgspec.Struct, frozen=True, array_like=True):
    """An account; its places in the trees of clusters are associations."""

    name: str
    description: str = ""
    organization: str = ""
    creation_time: int = 0
    mod_time: int = 0


class Transaction(msgspec.Struct, frozen=True, array_like=True):
    """A change, for `sacctmgr show transaction`."""

    time: int
    action: str
    actor: str
    where: str
    info: str = ""
    cluster: str = ""


@dataclass(slots=True)
class Deleted:
    """What was deleted and is still on record, by key."""

    clusters: dict[str, ClusterRecord] = field(default_factory=dict)
    accounts: dict[str, Account] = field(default_factory=dict)
    users: dict[str, AccountingUser] = field(default_factory=dict)
    associations: dict[int, Association] = field(default_factory=dict)
    qos: dict[int, Qos] = field(default_factory=dict)
    wckeys: dict[int, Wckey] = field(default_factory=dict)

    def copy(self) -> Deleted:
        """Tables of their own with the same records."""
        return Deleted(
            dict(self.clusters),
            dict(self.accounts),
            dict(self.users),
            dict(self.associations),
            dict(self.qos),
            dict(self.wckeys),
        )


@dataclass(slots=True)
class Ledger:
    """The tables, by key. `counters`: the last number given to an association, a quality of
    service, a key.
    """

    clusters: dict[str, ClusterRecord] = field(default_factory=dict)
    accounts: dict[str, Account] = field(default_factory=dict)
    users: dict[str, AccountingUser] = field(default_factory=dict)
    associations: dict[int, Association] = field(default_factory=dict)
    qos: dict[int, Qos] = field(default_factory=dict)
    wckeys: dict[int, Wckey] = field(default_factory=dict)
    tres: dict[int, Tres] = field(default_factory=dict)
    resources: dict[int, Resource] = field(default_factory=dict)
    federations: dict[str, Federation] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    deleted: Deleted = field(default_factory=Deleted)

    def copy(self) -> Ledger:
        """Tables of their own with the same records."""
        copied = Ledger(deleted=self.deleted.copy())
        for name in TABLES:
            setattr(copied, name, dict(getattr(self, name)))
        return copied

    def qos_named(self, name: str) -> Qos | None:
        return next((each for each in self.qos.values() if each.name == name), None)

    def association(
        self, cluster: str, account: str, user: str = "", partition: str = ""
    ) -> Association | None:
        """The association of exactly these."""
        wanted = (cluster, account, user, partition)
        return next(
            (
                each
                for each in self.associations.values()
                if (each.cluster, each.account, each.user, each.partition) == wanted
            ),
            None,
        )

    def tres_numbers(self) -> dict[str, int]:
        """Names of resources to their numbers."""
        return {each.name: each.id for each in self.tres.values()}


TABLES: Final = (
    "clusters",
    "accounts",
    "users",
    "associations",
    "qos",
    "wckeys",
    "tres",
    "resources",
    "federations",
    "counters",
)


def first_ledger(now: int) -> Ledger:
    """What a new database holds: the account and the user root, the quality of service `normal`,
    and Slurm's own resources.
    """
    ledger = Ledger()
    ledger.accounts[ROOT] = Account(ROOT, "default root account", ROOT, now, now)
    ledger.users[ROOT] = AccountingUser(ROOT, ADMINISTRATOR, creation_time=now, mod_time=now)
    ledger.qos[1] = Qos(1, DEFAULT_NAME, "Normal QOS default", creation_time=now, mod_time=now)
    ledger.tres = {number: Tres(number, name) for number, name in enumerate(tres.BASE, 1)}
    ledger.counters = {"associations": 0, "qos": 1, "wckeys": 0}
    return ledger


class Draft:
    """A ledger that is being changed, by whom and when, and the transactions that will be on
    record.
    """

    def __init__(self, ledger: Ledger, actor: str, now: int) -> None:
        self.ledger = ledger.copy()
        self.actor, self.now = actor, now
        self.transactions: list[Transaction] = []

    def number(self, table: str) -> int:
        """The next number for a record of the table."""
        self.ledger.counters[table] = self.ledger.counters.get(table, 0) + 1
        return self.ledger.counters[table]

    def note(self, action: str, where: str, info: str = "", cluster: str = "") -> None:
        """Put the change on record."""
        self.transactions.append(Transaction(self.now, action, self.actor, where, info, cluster))

    def change_association(
        self, association: Association, changes: Mapping[str, Any]
    ) -> Association:
        """Replace fields of an association."""
        changed = msgspec.structs.replace(association, mod_time=self.now, **changes)
        self.ledger.associations[changed.id] = changed
        return changed


def info_text(values: Mapping[str, Any]) -> str:
    """The changes of a transaction as text: `name=value, ...`."""
    return ", ".join(f"{name}={_info_value(value)}" for name, value in values.items())


def _info_value(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, dict):
        return f"'{tres.text_of(value)}'"
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, list | tuple):
        return f"'{','.join(map(str, value))}'"
    return str(value)
