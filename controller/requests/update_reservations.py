"""scontrol create, update and delete reservation: what may be reserved, and which nodes and cores
are.

Place: requests. Follows: scontrol(1) "RESERVATIONS - SPECIFICATIONS FOR CREATE,
UPDATE, AND DELETE COMMANDS": administrators only.
"""

from __future__ import annotations

from copy import copy
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from understudy.controller.core.lookups import check_features, find_partitions, node_bitmap
from understudy.controller.reservations.admission import jobs_in
from understudy.controller.reservations.choose import (
    busy_nodes,
    check_overlap,
    free_cores,
    free_nodes,
    meet,
    pick,
    some_nodes,
)
from understudy.controller.reservations.over_time import arm, catch_up, remove, watch_end
from understudy.controller.reservations.times import TICKS_A_BEGIN, skip, tick_from
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.licenses import read_licenses
from understudy.controller.tables.reservation import Reservation
from understudy.model import nodeset
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.reservations import (
    ALL_NODES,
    ANY_NODES,
    FIRST_CORES,
    IGNORE_JOBS,
    PART_NODES,
    PURGE_COMP,
    REPEATS,
    REPLACE,
    REPLACE_DOWN,
    SPEC_NODES,
    TIME_FLOAT,
    read_flags,
)
from understudy.model.times import YEAR, parse_limit, parse_limit_in_minutes
from understudy.protocol.messages import Message, Ok, ReservationChanged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.controller.tables.partition import Partition
    from understudy.protocol.messages import UpdateReservation

UNKNOWN_END: Final = 0xFFFFFFFF  # of a reservation without a length
GRACE_S: Final = 60  # a start so long ago still counts as now
PURGE_COMP_S: Final = 300


def update_reservation(core: Core, message: UpdateReservation, sender: Sender) -> Message:
    """Create, change or delete a reservation."""
    if not core.is_operator(sender.user_id):
        raise SlurmError(ErrorCode.INVALID_USER)
    now = core.time.now()
    catch_up(core, now)
    changes = dict(message.changes)
    if message.action == "create":
        answer: Message = ReservationChanged(_create(core, message.name, changes, now))
    elif message.action == "update":
        reservation = _known(core, message.name)
        _update(core, reservation, changes, now)
        answer = ReservationChanged(reservation.name)
    elif message.action == "delete":
        reservation = _known(core, message.name)
        if jobs_in(core, reservation):
            raise SlurmError(ErrorCode.RESERVATION_IN_USE)
        remove(core, reservation)
        answer = Ok()
    else:
        raise SlurmError(-1, f"unknown action {message.action}")
    core.last_reservation_update = core.last_node_update = now
    catch_up(core, now)
    core.changed(Note.CHANGE, now)
    arm(core)
    return answer


def _known(core: Core, name: str) -> Reservation:
    reservation = core.tables.reservations.by_name.get(name)
    if reservation is None:
        raise SlurmError(ErrorCode.INVALID_RESERVATION)
    return reservation


# --- create ---------------------------------------------------------------------------------------


def _create(core: Core, name: str, changes: dict[str, str], now: float) -> str:
    table = core.tables.reservations
    number = table.next_id
    flags, _, purge = read_flags(changes.get("flags", "")) if changes.get("flags") else (0, 0, "")
    start, end = _times(changes, now, floats=bool(flags & TIME_FLOAT))
    new = Reservation(name, number, start, end, flags=flags)
    _set_purge(new, purge)
    _set_partition(core, new, changes)
    _set_people(core, new, changes)
    if not (new.users or new.groups or new.accounts):
        raise SlurmError(ErrorCode.RESERVATION_WITHOUT_USERS)
    if new.users and new.groups:
        raise SlurmError(ErrorCode.USERS_OR_GROUPS)
    _set_texts(core, new, changes, now)
    _set_delay(new, changes)
    if flags & TIME_FLOAT and flags & REPEATS:
        raise SlurmError(ErrorCode.NOT_SUPPORTED)
    _choose(core, new, changes, now)
    if name and name in table.by_name:
        raise SlurmError(ErrorCode.DUPLICATE_RESERVATION)
    new.name = name or _default_name(new)
    while new.name in table.by_name:
        number += 1
        new.reservation_id = number
        new.name = _default_name(new)
    table.next_id = new.reservation_id + 1
    if flags & TIME_FLOAT:
        new.start_time, new.end_time = start - int(now), end - int(now)
    new.cores_told_at = tick_from(core, now, TICKS_A_BEGIN)
    table.by_name[new.name] = new
    core.journal.reservation(new.name)
    return new.name


def _default_name(reservation: Reservation) -> str:
    """The first account's, user's or group's name with the reservation's number."""
    names = reservation.accounts or reservation.users or reservation.groups
    return f"{names[0].lstrip('-')}_{reservation.reservation_id}"


def _times(changes: dict[str, str], now: float, *, floats: bool) -> tuple[int, int]:
    start = int(changes["starttime"])
    if floats:
        start = max(start, int(now))
    if start < now - GRACE_S:
        raise SlurmError(ErrorCode.INVALID_TIME)
    if "endtime" in changes:
        end = int(changes["endtime"])
        if end < start or end < now - GRACE_S:
            raise SlurmError(ErrorCode.INVALID_TIME)
        return start, end
    duration = parse_limit_in_minutes(changes["duration"])
    return (
        start,
        start + YEAR if duration is None else start + duration if duration else UNKNOWN_END,
    )


def _set_purge(reservation: Reservation, text: str) -> None:
    if reservation.flags & PURGE_COMP:
        given = _purge_after(text)
        reservation.purge_comp_s = given or reservation.purge_comp_s or PURGE_COMP_S


def _purge_after(text: str) -> int:
    """Seconds; 0 where the flag says none, or nothing that can be read."""
    try:
        return parse_limit(text) or 0 if text else 0
    except ValueError:
        return 0


def _set_partition(core: Core, reservation: Reservation, changes: dict[str, str]) -> None:
    if "partitionname" in changes:
        reservation.partition = (
            find_partitions(core, changes["partitionname"])[0].name
            if changes["partitionname"]
            else ""
        )


def _set_texts(core: Core, reservation: Reservation, changes: dict[str, str], now: float) -> None:
    """Licences and burst buffer."""
    if "licenses" in changes:
        _check_licenses(core, reservation, changes["licenses"], now)
        reservation.licenses = changes["licenses"]
    if "burstbuffer" in changes:
        reservation.burst_buffer = changes["burstbuffer"]


def _set_delay(reservation: Reservation, changes: dict[str, str]) -> None:
    if "maxstartdelay" in changes:
        reservation.max_start_delay_s = parse_limit(changes["maxstartdelay"]) or None


def _check_licenses(core: Core, reservation: Reservation, text: str, now: float) -> None:
    """Refuse licences that are not there, or that others have reserved for the time."""
    if not text:
        return
    try:
        wanted = read_licenses(text)
    except ValueError:
        raise SlurmError(ErrorCode.INVALID_LICENSES) from None
    held: dict[str, int] = {}
    for each in core.tables.reservations:
        if (
            each.licenses
            and each is not reservation
            and each.name != reservation.name
            and meet(each, reservation, now)
        ):
            for name, count in read_licenses(each.licenses):
                held[name] = held.get(name, 0) + count
    for name, count in wanted:
        if count + held.get(name, 0) > core.tables.licenses.totals.get(name, 0):
            raise SlurmError(ErrorCode.INVALID_LICENSES)


# --- who ------------------------------------------------------------------------------------------


def _set_people(core: Core, reservation: Reservation, changes: dict[str, str]) -> None:
    for key in ("groups", "groups+", "groups-"):
        if key in changes:
            words, excludes = _listed(
                reservation.groups, changes[key], key[6:], ErrorCode.INVALID_GROUP
            )
            if excludes or not all(core.users.is_group(word) for word in words):
                raise SlurmError(ErrorCode.INVALID_GROUP)
            reservation.groups = words
    for key in ("users", "users+", "users-"):
        if key in changes:
            text, sign = _as_less(reservation.users, changes[key], key[5:])
            _check_listed(
                text,
                sign,
                ErrorCode.INVALID_USER,
                lambda word: core.users.user_id(word) is not None,
            )
            names, excludes = _listed(reservation.users, text, sign, ErrorCode.INVALID_USER)
            kept = list(names)
            ids: list[int] = []
            for word in names:
                user_id = core.users.user_id(word)
                if user_id is None:
                    raise SlurmError(ErrorCode.INVALID_USER)
                if sign == "+" and user_id in ids:  # `Users+=0` where root is one
                    kept.remove(word)
                else:
                    ids.append(user_id)
            reservation.users, reservation.user_ids = tuple(kept), tuple(ids)
            reservation.excludes_users = excludes
    for key in ("accounts", "accounts+", "accounts-"):
        if key in changes:
            old = reservation.accounts
            text, sign = _as_less(old, changes[key], key[8:])
            is_there = old.__contains__ if sign == "-" else bool
            _check_listed(text, sign, ErrorCode.INVALID_ACCOUNT, is_there)
            words, excludes = _listed(old, text, sign, ErrorCode.INVALID_ACCOUNT)
            reservation.accounts, reservation.excludes_accounts = words, excludes


def _check_people(core: Core, reservation: Reservation) -> None:
    """Refuse accounts that there are not, and users who have not each of them."""
    known = core.associations
    if known.associations and not all(known.account(name) for name in reservation.accounts):
        raise SlurmError(ErrorCode.INVALID_ACCOUNT)
    is_both = reservation.users and reservation.accounts
    if not is_both or reservation.excludes_users or reservation.excludes_accounts:
        return
    # where there are accounts, each of the users must have each of them
    if known.associations and not all(
        known.find(account, core.users.user_name(user_id))
        for account in reservation.accounts
        for user_id in reservation.user_ids
    ):
        raise SlurmError(ErrorCode.INVALID_ACCOUNT)


def _as_less(old: tuple[str, ...], text: str, sign: str) -> tuple[str, str]:
    """(words, sign): `Users=-a` where others are named is `Users-=a`, and `Users=+a` `Users+=a`."""
    given = [word for word in text.split(",") if word]
    signs = {word[0] for word in given}
    if sign or not old or signs not in ({"-"}, {"+"}):
        return text, sign
    return ",".join(word[1:] for word in given), signs.pop()


def _check_listed(text: str, sign: str, code: int, is_there: Callable[[str], bool]) -> None:
    """What is added or taken away is something, and each name of it is one."""
    given = [word for word in text.split(",") if word]
    if sign and not (given and all(map(is_there, given))):
        raise SlurmError(code)


def _listed(old: tuple[str, ...], text: str, sign: str, code: int) -> tuple[tuple[str, ...], bool]:
    """The list set to, extended by, or without the words; whether it names those who are kept
    out.
    """
    given = [word for word in text.split(",") if word]
    if not sign:
        words = given
    elif sign == "+":
        words = [*old, *(word for word in given if word not in old)]
    else:
        words = [word for word in old if word not in given and word.lstrip("-") not in given]
    out = [word.startswith("-") for word in words]
    if any(out) and not all(out):
        raise SlurmError(code)
    return tuple(word.lstrip("-") for word in words), bool(words) and all(out)


# --- which nodes ----------------------------------------------------------------------------------


def _choose(core: Core, new: Reservation, changes: dict[str, str], now: float) -> None:
    """Set the nodes and cores: those named, or so many of a partition. Who may use them is looked
    at when all else is well, and before nodes are counted off.
    """
    counts = _node_counts(changes.get("nodecnt", ""))
    wanted = changes.get("corecnt", "")
    core_counts = list(takewhile(bool, _numbers(wanted))) if wanted else None
    named = changes.get("nodes", "")
    if "nodes" in changes and not named and not new.partition:
        raise SlurmError(ErrorCode.INVALID_NODE)
    partition = None
    if named:
        _choose_named(core, new, changes, core_counts, now)
    elif new.flags & ANY_NODES:
        if core_counts is not None:
            raise SlurmError(ErrorCode.INVALID_CPU_COUNT)
        if counts or not (new.licenses or new.burst_buffer):
            raise SlurmError(ErrorCode.INVALID_RESERVATION)
    else:
        partition = _partition_of(core, new, changes)
        if core_counts is not None:
            _choose_cores(core, new, partition, counts, core_counts, now)
            partition = None
    _check_people(core, new)
    if partition is not None:
        if not counts:
            raise SlurmError(ErrorCode.INVALID_NODE)
        for count in counts:
            new.nodes |= some_nodes(core, new, partition, count, now, new.nodes)


def _partition_of(core: Core, new: Reservation, changes: dict[str, str]) -> Partition:
    """From which nodes are chosen: the one that is named, else the default one."""
    partition = (
        core.tables.partitions[new.partition] if new.partition else find_partitions(core, "")[0]
    )
    new.partition = partition.name
    if "features" in changes:
        check_features(core, changes["features"])
        new.features = changes["features"]
    return partition


def _choose_named(
    core: Core,
    new: Reservation,
    changes: dict[str, str],
    core_counts: Sequence[int] | None,
    now: float,
) -> None:
    """The nodes that are named, or so many cores of each."""
    new.features = changes.get("features", "")  # kept, and no matter but for cores
    _take_named(core, new, changes["nodes"])
    if not new.nodes:
        raise SlurmError(ErrorCode.INVALID_NODE)
    if new.flags & (REPLACE | REPLACE_DOWN):
        raise SlurmError(ErrorCode.INVALID_NODE)
    check_overlap(core, new, now)
    if core_counts is not None:
        _take_cores_of_named(core, new, core_counts, now)
    elif not new.flags & (IGNORE_JOBS | TIME_FLOAT) and busy_nodes(core, new, now) & new.nodes:
        raise SlurmError(ErrorCode.NODES_BUSY)


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",") if word]


def _node_counts(text: str) -> list[int]:
    """Those before the first nothing."""
    return list(takewhile(bool, _numbers(text)))


def _take_named(core: Core, new: Reservation, text: str) -> None:
    new.flags |= SPEC_NODES
    new.flags &= ~(ALL_NODES | PART_NODES)
    if text.upper() == "ALL":
        if new.partition:
            new.flags |= PART_NODES
            new.nodes = core.tables.partitions[new.partition].nodes
        else:
            new.flags |= ALL_NODES
            new.nodes = core.names.all
    else:
        new.nodes = node_bitmap(core, text)


def _take_cores_of_named(core: Core, new: Reservation, counts: Sequence[int], now: float) -> None:
    """`CoreCnt=2,3 Nodes=n[1-2]`: so many of each."""
    nodes = nodeset.indices(new.nodes)
    if not new.partition:
        new.partition = find_partitions(core, "")[0].name
    if len(counts) != len(nodes):
        raise SlurmError(ErrorCode.CORES_DO_NOT_MATCH)
    if new.features:
        check_features(core, new.features)
    new.cores = {}
    for node, count in zip(nodes, counts, strict=True):
        free = free_cores(core, new, node, now)
        if free.bit_count() < count:
            raise SlurmError(ErrorCode.NODES_BUSY)
        new.cores[node] = nodeset.lowest(free, count)


def _choose_cores(
    core: Core,
    new: Reservation,
    partition: Partition,
    counts: Sequence[int],
    core_counts: Sequence[int],
    now: float,
) -> None:
    """Cores of nodes that are chosen for it: so many in all, or on so many nodes."""
    if new.flags & (REPLACE | REPLACE_DOWN):
        raise SlurmError(ErrorCode.INVALID_CPU_COUNT)
    if not core_counts:
        raise SlurmError(ErrorCode.NODES_BUSY)
    candidates = [
        (node, free)
        for node in nodeset.indices(free_nodes(core, new, partition, now))
        if (free := free_cores(core, new, node, now))
    ]
    new.cores = {}
    if not counts and len(core_counts) == 1:
        left = core_counts[0]
        for node, free in candidates:
            take = min(left, free.bit_count())
            new.cores[node] = nodeset.lowest(free, take)
            left -= take
            if not left:
                break
        if left:
            raise SlurmError(ErrorCode.NODES_BUSY)
    else:
        sizes = list(counts) or [len(core_counts)] * len(core_counts)
        for place, size in enumerate(sizes):
            wanted = core_counts[min(place, len(core_counts) - 1)]
            open_ones = [one for one in candidates if one[0] not in new.cores]
            nodes, each, rest = size, wanted, 0
            if counts and not new.flags & FIRST_CORES:
                nodes = min(size, len(open_ones))
                each, rest = divmod(wanted, nodes) if wanted > nodes > 0 else (1, 0)
            fitting = [(node, free) for node, free in open_ones if free.bit_count() >= each][:nodes]
            if not fitting or len(fitting) < nodes:
                raise SlurmError(ErrorCode.NODES_BUSY)
            new.cores |= _shares(fitting, each, rest)
    new.nodes = nodeset.from_positions(new.cores)


def _shares(fitting: Sequence[tuple[int, int]], each: int, rest: int) -> dict[int, int]:
    """So many cores of each node. As 22.05.8 deals them, the first gives the rest, too, and all
    others are had whole then.
    """
    if not rest:
        return {node: nodeset.lowest(free, each) for node, free in fitting}
    first, free = fitting[0]
    return dict(fitting) | {first: nodeset.lowest(free, min(each + rest, free.bit_count()))}


# --- update ---------------------------------------------------------------------------------------


def _update(core: Core, reservation: Reservation, changes: dict[str, str], now: float) -> None:
    """All changes or none, but for the longest delay: they are made to a copy."""
    if "corecnt" in changes:
        raise SlurmError(ErrorCode.CORES_ARE_FIXED)
    if "maxstartdelay" in changes:
        _set_delay(reservation, changes)
        core.journal.reservation(reservation.name)
    new = copy(reservation)
    if "flags" in changes or "flags+" in changes or "flags-" in changes:
        _update_flags(new, changes)
    _set_partition(core, new, changes)
    _set_texts(core, new, changes, now)
    if "features" in changes and changes["features"] != new.features:
        raise SlurmError(ErrorCode.NOT_SUPPORTED)
    _set_people(core, new, changes)
    if not (new.users or new.groups or new.accounts):
        raise SlurmError(ErrorCode.RESERVATION_WITHOUT_USERS)
    if (new.users or changes.get("users")) and new.groups:  # `Users=-a`, too
        raise SlurmError(ErrorCode.USERS_OR_GROUPS)
    _update_times(new, changes, now)
    if "skip" in changes and not skip(new):
        raise SlurmError(ErrorCode.NOT_SKIPPABLE)
    if new.cores is not None and ("nodecnt" in changes or "nodes" in changes):
        raise SlurmError(ErrorCode.CORES_ARE_FIXED)
    if changes.get("nodes"):
        if new.flags & (REPLACE | REPLACE_DOWN):
            raise SlurmError(ErrorCode.NOT_SUPPORTED)
        _take_named(core, new, changes["nodes"])
    _check_people(core, new)
    count = sum(_node_counts(changes["nodecnt"])) if changes.get("nodecnt") else None
    if "nodes" in changes and not changes["nodes"]:  # as many, whichever
        new.flags &= ~SPEC_NODES
        count = count or new.nodes.bit_count()
        new.nodes = 0
    if count is not None:
        _resize(core, new, count, now)
    if not new.nodes and (changes.get("nodes") or changes.get("nodecnt")):
        raise SlurmError(ErrorCode.INVALID_RESERVATION)
    if new.nodes and new.cores is None:
        check_overlap(core, new, now)
        if not new.flags & (IGNORE_JOBS | TIME_FLOAT) and busy_nodes(core, new, now) & new.nodes:
            raise SlurmError(ErrorCode.NODES_BUSY)
    new.has_ended = False
    new.was_active = reservation.was_active and new.start_time <= now
    for field in Reservation.__dataclass_fields__:
        setattr(reservation, field, getattr(new, field))
    core.journal.reservation(reservation.name)
    for job in jobs_in(core, reservation):
        if job.is_running:
            watch_end(core, job)


def _update_flags(new: Reservation, changes: dict[str, str]) -> None:
    for key in ("flags", "flags+", "flags-"):
        if key in changes:
            wanted, unwanted, purge = read_flags(changes[key])
            if wanted & TIME_FLOAT:
                raise SlurmError(ErrorCode.INVALID_TIME)
            if key == "flags-":
                wanted, unwanted = 0, wanted | unwanted
            if (
                key == "flags"
                and wanted & REPEATS
                and new.flags & REPEATS
                and not wanted & new.flags & REPEATS
            ):
                raise SlurmError(ErrorCode.NOT_SUPPORTED)
            new.flags = (new.flags | wanted) & ~unwanted
            _set_purge(new, purge)


def _update_times(new: Reservation, changes: dict[str, str], now: float) -> None:
    start = end = None
    if "starttime" in changes:
        start = int(changes["starttime"])
        if new.start_time <= now and start != new.start_time:
            raise SlurmError(ErrorCode.HAS_STARTED)
        if start < now - GRACE_S:
            raise SlurmError(ErrorCode.INVALID_TIME)
        duration = new.duration_s
        new.start_time = start
        new.end_time = start + duration
    if "endtime" in changes:
        end = int(changes["endtime"])
        if end < now - GRACE_S:
            raise SlurmError(ErrorCode.INVALID_TIME)
        new.end_time = end
    for sign in ("", "+", "-"):
        if f"duration{sign}" in changes:
            seconds = parse_limit_in_minutes(changes[f"duration{sign}"])
            if seconds is None:
                new.end_time = new.start_time + YEAR
            elif sign == "+":
                new.end_time += seconds
            elif sign == "-":
                new.end_time -= seconds
            else:
                new.end_time = new.start_time + seconds
    if new.start_time >= new.end_time:
        raise SlurmError(ErrorCode.INVALID_TIME)


def _resize(core: Core, new: Reservation, count: int, now: float) -> None:
    """More nodes, as far as there are some; or fewer: the idle and lowest ones go first."""
    partition = (
        core.tables.partitions[new.partition] if new.partition else find_partitions(core, "")[0]
    )
    have = new.nodes.bit_count()
    new.flags &= ~(ALL_NODES | PART_NODES)
    if count < have:
        busy = new.nodes & ~core.tables.nodes.idle_nodes
        idle = new.nodes & ~busy
        going = nodeset.lowest(idle, min(have - count, idle.bit_count()))
        missing = have - count - going.bit_count()
        if missing:
            going |= nodeset.lowest(busy, missing)
        new.nodes &= ~going
    elif count > have:
        nodes = free_nodes(core, new, partition, now, rather=True) & ~new.nodes
        if nodes.bit_count() < count - have:
            nodes = free_nodes(core, new, partition, now) & ~new.nodes
        if not new.flags & IGNORE_JOBS:
            nodes &= ~busy_nodes(core, new, now)
        missing = min(count - have, nodes.bit_count())
        if missing:
            new.nodes |= pick(core, nodes, missing)
