"""What a text names: partitions, nodes, features, components of jobs; and who may control a job.

Place: the core. Refuses what there is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.scheduling.select.features import check_form
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.hostlist import UnknownHostError, compress, expand

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition


def find_component(core: Core, text: str) -> Job:
    """The component that `17+2` names.

    Raises:
        SlurmError: there is no such job or component.
    """
    number, _, offset = text.partition("+")
    if not number.isdecimal() or not offset.isdecimal():
        raise SlurmError(ErrorCode.INVALID_JOB)
    leader = core.tables.jobs.get(int(number))
    if (
        leader is None
        or leader.het is None
        or leader.het_offset
        or int(offset) not in leader.het.components
    ):
        raise SlurmError(ErrorCode.INVALID_JOB)
    return leader.het.components[int(offset)]


def known_nodes(core: Core, expression: str) -> tuple[int, list[str]]:
    """The nodes of a host list that there are, and the names of the others: slurm.conf may have
    lost some for which a daemon still stands.

    Raises:
        ValueError: not a host list.
    """
    try:
        return core.names.to_bitmap(expression), []
    except UnknownHostError:
        names, index_of = expand(expression), core.tables.nodes.index_of
        known = compress([name for name in names if name in index_of])
        return core.names.to_bitmap(known), [name for name in names if name not in index_of]


def is_coordinator(core: Core, user_id: int, account: str) -> bool:
    """Whether the user coordinates the account or one above it."""
    return bool(account and core.associations.users) and core.associations.coordinates(
        core.users.user_name(user_id), account
    )


def may_control(core: Core, user_id: int, job: Job) -> bool:
    """Whether the user may hold, change and end the job: its owner, an operator, or a coordinator
    of its account.
    """
    return (
        job.user_id == user_id
        or core.is_operator(user_id)
        or is_coordinator(core, user_id, job.spec.account)
    )


def find_partitions(core: Core, text: str) -> list[Partition]:
    """The partitions of a comma separated list, the default one for "".

    Raises:
        SlurmError: no such partition, or no default one.
    """
    table = core.tables.partitions
    if not text:
        for partition in table.values():
            if partition.is_default:
                return [partition]
        raise SlurmError(ErrorCode.NO_PARTITION)
    try:
        return [table[name] for name in text.split(",")] if "," in text else [table[text]]
    except KeyError:
        raise SlurmError(ErrorCode.INVALID_PARTITION) from None


def _without_strays(expression: str) -> str:
    """The expression without blanks, parentheses that are left open, and a bracket that closes
    none; "" if it has none of these.
    """
    found = "".join(expression.split())
    if found.count("(") > found.count(")"):
        found = found.replace("(", "").replace(")", "")
    if "[" not in found:
        found = found.replace("]", "")
    return "" if found == expression else found


def check_features(core: Core, expression: str, code: int = ErrorCode.INVALID_FEATURE) -> None:
    """Refuse what is no expression, and with `code` a feature that no node has. Who prefers
    something may leave brackets open, or blanks, in names that no node has then.
    """
    if code == ErrorCode.INVALID_PREFERENCE and (cleaned := _without_strays(expression)):
        check_form(cleaned)
        raise SlurmError(code)
    check_form(expression)
    words = expression.replace("&", " ").replace("|", " ").replace(",", " ")
    for bracket in "()[]":
        words = words.replace(bracket, " ")
    for word in words.split():
        name = word.partition("*")[0]
        nodes = core.tables.nodes
        if name and not nodes.with_feature(name) and name not in nodes.former_features:
            raise SlurmError(code)


def node_bitmap(core: Core, expression: str) -> int:
    """The nodes of a host list expression.

    Raises:
        SlurmError: an unknown node, or not such an expression.
    """
    try:
        return core.names.to_bitmap(expression)
    except ValueError:
        raise SlurmError(ErrorCode.INVALID_NODE) from None
