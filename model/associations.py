"""Associations: who may charge which account, on which cluster, and the limits that hold for it;
and a snapshot of all that the controller asks.

Place: the vocabulary between the accounting daemon, which keeps these, and the controller, which
enforces them. An association is an account's place in the tree (no user) or a user's use of an
account, perhaps in one partition. None as a limit: nothing was said here. Grp* limits hold for an
association and all below it, and are checked along the chain of parents; Max* limits hold for each
user or job, and are inherited until somebody further down says otherwise:
`AssociationState.effective`. Walls are in minutes. Follows sacctmgr(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from understudy.model.tres import inherited

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.model.qos import Qos

ROOT: Final = "root"
SHARES_OF_PARENT: Final = 0x7FFFFFFF  # Fairshare=parent
NO_ADMIN, OPERATOR, ADMINISTRATOR = "None", "Operator", "Administrator"

INHERITED: Final = (
    "max_jobs",
    "max_jobs_accrue",
    "max_submit_jobs",
    "max_wall",
    "min_prio_threshold",
    "priority",
    "default_qos",
)
# by resource
INHERITED_TRES: Final = ("max_tres_per_job", "max_tres_per_node", "max_tres_mins_per_job")


class Association(msgspec.Struct, frozen=True, array_like=True):
    """One association. `qos`: None if it is inherited; `delta_qos` ("+name", "-name") then changes
    what is inherited.
    """

    id: int
    cluster: str
    account: str
    user: str = ""  # "": the account itself
    partition: str = ""
    parent_id: int = 0  # 0: the cluster's root
    position: int = 0  # among its siblings
    is_default: bool = False  # the user's default account
    shares: int = 1  # SHARES_OF_PARENT: the parent's
    priority: int | None = None
    qos: tuple[str, ...] | None = None
    delta_qos: tuple[str, ...] = ()
    default_qos: str | None = None
    grp_jobs: int | None = None
    grp_jobs_accrue: int | None = None
    grp_submit_jobs: int | None = None
    grp_wall: int | None = None
    grp_tres: dict[str, int] = {}
    grp_tres_mins: dict[str, int] = {}
    grp_tres_run_mins: dict[str, int] = {}
    max_jobs: int | None = None
    max_jobs_accrue: int | None = None
    max_submit_jobs: int | None = None
    max_wall: int | None = None
    max_tres_per_job: dict[str, int] = {}
    max_tres_per_node: dict[str, int] = {}
    max_tres_mins_per_job: dict[str, int] = {}
    min_prio_threshold: int | None = None
    creation_time: int = 0
    mod_time: int = 0

    @property
    def is_user(self) -> bool:
        return bool(self.user)


class AccountingUser(msgspec.Struct, frozen=True, array_like=True):
    """A user that accounting knows. `coordinates`: accounts over which the user is a coordinator,
    those below them not named.
    """

    name: str
    admin_level: str = NO_ADMIN
    default_wckey: str = ""
    coordinates: tuple[str, ...] = ()
    creation_time: int = 0
    mod_time: int = 0


class Wckey(msgspec.Struct, frozen=True, array_like=True):
    """A workload characterization key that a user may give to jobs."""

    id: int
    name: str
    cluster: str
    user: str
    is_default: bool = False
    creation_time: int = 0


class Tres(msgspec.Struct, frozen=True, array_like=True):
    """A trackable resource and its number in the database."""

    id: int
    name: str  # cpu, mem, gres/gpu ...


def resolve_qos(
    parents: tuple[str, ...], own: tuple[str, ...] | None, delta: Iterable[str]
) -> tuple[str, ...]:
    """The qualities of service that an association may use: its own list, or its parents' with its
    changes.
    """
    if own is not None:
        return own
    names = dict.fromkeys(parents)
    for change in delta:
        if change[:1] == "-":
            names.pop(change[1:], None)
        else:
            names[change[1:]] = None
    return tuple(names)


def inherit(association: Association, parent: Association | None) -> Association:
    """The association with what it inherits from its parent, whose own inheritance has been filled
    in. Grp* limits are not inherited.
    """
    if parent is None:
        return msgspec.structs.replace(
            association, qos=resolve_qos((), association.qos, association.delta_qos), delta_qos=()
        )
    changes: dict[str, object] = {
        "qos": resolve_qos(parent.qos or (), association.qos, association.delta_qos),
        "delta_qos": (),
    }
    for name in INHERITED:
        if getattr(association, name) is None:
            changes[name] = getattr(parent, name)
    for name in INHERITED_TRES:
        above = getattr(parent, name)
        if above:
            changes[name] = inherited(getattr(association, name), above)
    return msgspec.structs.replace(association, **changes)


class AssociationState:
    """What the controller knows of accounting: one cluster's associations, all qualities of
    service, users, keys and trackable resources.

    Change it with `apply` alone; `number` counts the states of the accounting daemon.
    """

    def __init__(
        self,
        cluster: str = "",
        number: int = 0,
        *,
        associations: Iterable[Association] = (),
        qos: Iterable[Qos] = (),
        users: Iterable[AccountingUser] = (),
        wckeys: Iterable[Wckey] = (),
        tres: Iterable[Tres] = (),
    ) -> None:
        self.cluster, self.number = cluster, number
        self.associations: dict[int, Association] = {each.id: each for each in associations}
        self.qos: dict[str, Qos] = {each.name: each for each in qos}
        self.users: dict[str, AccountingUser] = {each.name: each for each in users}
        self.wckeys: list[Wckey] = list(wckeys)
        self.tres: dict[str, int] = {each.name: each.id for each in tres}
        self._index()

    def _index(self) -> None:
        self._by_key = {
            (each.account, each.user, each.partition): each for each in self.associations.values()
        }
        self.has_users = any(
            each.user and (each.user, each.account) != (ROOT, ROOT)
            for each in self.associations.values()
        )
        self._defaults = {
            each.user: each.account for each in self.associations.values() if each.is_default
        }
        self._effective: dict[int, Association] = {}
        self.children: dict[int, list[Association]] = {each: [] for each in self.associations}
        for each in sorted(self.associations.values(), key=lambda each: (each.position, each.id)):
            if each.parent_id in self.children:
                self.children[each.parent_id].append(each)

    def apply(
        self,
        number: int,
        *,
        associations: Iterable[Association] = (),
        removed_associations: Iterable[int] = (),
        qos: Iterable[Qos] = (),
        removed_qos: Iterable[str] = (),
        users: Iterable[AccountingUser] = (),
        removed_users: Iterable[str] = (),
        wckeys: Iterable[Wckey] | None = None,
        tres: Iterable[Tres] = (),
    ) -> None:
        """Take over what has changed; `wckeys` and `tres`, if given, are all that there are."""
        for association_id in removed_associations:
            self.associations.pop(association_id, None)
        self.associations.update({each.id: each for each in associations})
        for name in removed_qos:
            self.qos.pop(name, None)
        self.qos.update({each.name: each for each in qos})
        for name in removed_users:
            self.users.pop(name, None)
        self.users.update({each.name: each for each in users})
        if wckeys is not None:
            self.wckeys = list(wckeys)
        self.tres.update({each.name: each.id for each in tres})
        self.number = number
        self._index()

    # --- look-ups ---------------------------------------------------------------------------------

    def find(self, account: str, user: str, partition: str = "") -> Association | None:
        """The user's association with the account: that for the partition if there is one, else
        that for all partitions.
        """
        if partition:
            found = self._by_key.get((account, user, partition))
            if found is not None:
                return found
        return self._by_key.get((account, user, ""))

    def account(self, account: str) -> Association | None:
        """The association of the account itself."""
        return self._by_key.get((account, "", ""))

    @property
    def root(self) -> Association | None:
        return self.account(ROOT)

    def default_account(self, user: str) -> str | None:
        """The account that is charged if a job names none."""
        return self._defaults.get(user)

    def chain(self, association: Association) -> list[Association]:
        """The association itself, its parent, and so on to the root: those whose Grp* limits hold
        for its jobs.
        """
        found = [association]
        while (parent := self.associations.get(found[-1].parent_id)) is not None:
            found.append(parent)
        return found

    def effective(self, association: Association) -> Association:
        """The association with what it inherits: Max* limits, priority, qualities of service and
        the default among them.
        """
        known = self._effective.get(association.id)
        if known is None:
            parent = self.associations.get(association.parent_id)
            known = self._effective[association.id] = inherit(
                association, self.effective(parent) if parent is not None else None
            )
        return known

    def allowed_qos(self, association: Association) -> tuple[str, ...]:
        """Names of the qualities of service that jobs of the association may use."""
        return self.effective(association).qos or ()

    def default_qos(self, association: Association) -> str:
        """The quality of service of a job that names none: the association's default, else `normal`
        if it may use that, else its only one.
        """
        own = self.effective(association)
        if own.default_qos:
            return own.default_qos
        allowed = own.qos or ()
        if "normal" in allowed or len(allowed) != 1:
            return "normal"
        return allowed[0]

    def coordinates(self, user: str, account: str) -> bool:
        """Whether the user is a coordinator of the account or of one above it."""
        found = self.users.get(user)
        place = self.account(account)
        if found is None or place is None:
            return False
        return any(each.account in found.coordinates for each in self.chain(place))
