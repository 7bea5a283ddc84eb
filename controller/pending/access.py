"""Which account, QOS and workload key a job has, and whether its user may have them.

Place: pending. What a job does not name is filled in: the user's default account, the
association's default QOS. Follows: slurm.conf(5) AccountingStorageEnforce, AllowAccounts, AllowQos;
sacctmgr(1). As long as accounting knows no user but root nothing is enforced: a cluster on which
nobody could submit is no use to anybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from understudy.model.errors import ERROR_TEXT, ErrorCode, SlurmError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.controller.core.core import Core
    from understudy.controller.enforcement.limits import JobLimits
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition

_OF_PARTITIONS: Final = ("PartitionMaxNodes", "PartitionMinNodes", "PartitionTimeLimit")


class Access(NamedTuple):
    """What a job is charged to."""

    account: str
    qos: str
    wckey: str
    qos_flags: tuple[str, ...]


def resolve(
    core: Core,
    user_id: int,
    account: str,
    qos: str,
    wckey: str,
    partitions: Iterable[Partition],
    *,
    reservation: str = "",
    any_qos: bool = False,
    no_qos: bool = False,
) -> Access:
    """Fill in what is not named, and check it; `any_qos`: an administrator gave it; `no_qos`: one
    was given, and is empty.

    Raises:
        SlurmError: no such association, a QOS that is unknown or not for this association, an
        unknown key.
    """
    state, enforced = core.associations, core.settings.enforced
    if not state.associations:
        return Access(account, qos, wckey, ())
    user = core.users.user_name(user_id)
    account = account.lower() or state.default_account(user) or ""
    own = None
    names = [partition.name for partition in partitions]
    # at first only of root
    is_enforcing = enforced.associations and (
        state.has_users or state.default_account(user) is not None
    )
    for name in names:
        own = state.find(account, user, name) if account else None
        if own is None and is_enforcing:
            raise SlurmError(ErrorCode.INVALID_ACCOUNT)
        if own is None and (default := state.default_account(user)) is not None:
            account, own = default, state.find(default, user, name)
        if own is not None and own.partition and len(names) > 1:
            raise SlurmError(ErrorCode.SEVERAL_PARTITIONS)
    if no_qos:
        qos = ""
    elif not qos and own is not None:
        qos = state.default_qos(own)
    elif not qos and "normal" in state.qos:
        qos = "normal"
    found = state.qos.get(qos)
    if found is None and not is_enforcing:
        qos = ""
    if is_enforcing and enforced.qos:
        assert own is not None
        if (
            found is None
            or (qos not in state.allowed_qos(own) and not any_qos)
            or (found.has("RequiresReservation") and not reservation)
        ):
            raise SlurmError(ErrorCode.INVALID_QOS)
    if enforced.wckeys and is_enforcing:
        known = {each.name for each in state.wckeys if each.user == user}
        default = state.users[user].default_wckey if user in state.users else ""
        if not wckey and default:
            wckey = f"*{default}"
        if wckey.removeprefix("*") not in known:
            raise SlurmError(ErrorCode.INVALID_WCKEY)
    return Access(account, qos, wckey, flags_for_partitions(core, qos))


def flags_for_partitions(core: Core, qos: str) -> tuple[str, ...]:
    """The flags of the QOS that let its jobs pass limits of partitions."""
    found = core.associations.qos.get(qos)
    return (
        ()
        if found is None or not found.flags
        else tuple([flag for flag in _OF_PARTITIONS if found.has(flag)])
    )


def give_default_time(core: Core, job: Job, partition: Partition) -> None:
    """A job without a time limit gets the longest that its QOS or association allows, unless the
    partition has a default.
    """
    if (
        job.time_limit_is_set
        or partition.default_time_s is not None
        or (limits := at_work(core)) is None
    ):
        return
    line = limits.line(job, partition)
    if not isinstance(line, str) and line.max_wall is not None:
        job.time_limit_s, job.time_limit_is_set = line.max_wall * 60, True


def at_work(core: Core) -> JobLimits | None:
    """The limits, if they are enforced."""
    limits = core.job_limits
    return limits if limits is not None and limits.enforced else None


def check_policy(core: Core, job: Job, tasks: int) -> None:
    """Refuse a job that is one too many, or could never start where such jobs are refused
    (DenyOnLimit).

    Raises:
        SlurmError: with the limit's name in a line of its own, which sbatch prints.
    """
    limits = at_work(core)
    if limits is None:
        return
    for name in job.partitions:
        reason = limits.refusal(job, core.tables.partitions[name], tasks)
        if reason:
            raise SlurmError(
                ErrorCode.VIOLATES_POLICY, f"{reason}\n{ERROR_TEXT[ErrorCode.VIOLATES_POLICY]}"
            )


def explain_access(job: Job, partition: Partition) -> str:
    """Why the job's account or QOS is not permitted to use the partition, in full; "" if it is."""
    account, qos, name = job.spec.account, job.spec.qos, partition.name
    for who, mine, allowed, denied in (
        ("account", account, partition.allow_accounts, partition.deny_accounts),
        ("QOS", qos, partition.allow_qos, partition.deny_qos),
    ):
        if not mine:
            continue
        if allowed is not None:
            if mine not in allowed:
                return (
                    f"Job's {who} not permitted to use this partition ({name} allows "
                    f"{','.join(allowed)} not {mine})"
                )
        elif mine in denied:
            return (
                f"Job's {who} not permitted to use this partition ({name} denies "
                f"{','.join(denied)} including {mine})"
            )
    return ""


def accounting_has_changed(core: Core) -> None:
    """Accounting has told of a change, or a partition was changed: limits and sums are worked out
    again.
    """
    core.patterns.clear()
    now = core.time.now()
    core.tables.unreserving_qos = frozenset(
        [name for name, qos in core.associations.qos.items() if qos.has("NoReserve")]
    )
    for job in core.tables.pending.values():
        job.qos_flags = flags_for_partitions(core, job.spec.qos)
    if core.job_limits is not None:
        core.job_limits.options = core.settings.enforced
        core.job_limits.rebuild(now)
