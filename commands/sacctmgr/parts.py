"""Changes of users and accounts: what they are themselves, and their associations' limits.

Place: under sacctmgr. Both parts are put to accounting one after the other, and either may fail.
"""

from understudy.commands.sacctmgr.ask import (
    Alteration,
    has_done,
    nothing_modified,
    tell_no_effect,
)
from understudy.commands.sacctmgr.texts import modified_line, no_access_to_default_qos, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.commands.sacctmgr.answer import Answer
    from understudy.commands.sacctmgr.request import Request
    from understudy.commands.sacctmgr.session import Session

    Part = tuple[Request, Callable[[Answer], int | None]]


def alter_own_and_limits(
    session: "Session",
    entity: str,
    own: "Part",
    limits: "Part",
    of_places: "frozenset[str]",
    code: int = 0,
) -> int:
    """Put both to accounting. Who is meant by conditions `of_places` alone is unknown to the first,
    and by others without a name to the second, which is said instead. `code`: of what was found out
    before. The exit code.
    """
    where = {name for name, values in own[0].where.items() if values}
    by_place = bool(where & of_places)
    by_itself = bool(where - of_places - {"clusters"})
    alteration = Alteration(session, "modify", entity)
    if own[0].set and by_place and not by_itself:
        code = _refuse_conditions(session)
    elif own[0].set:
        alteration.put(*own)
    if limits[0].set and by_itself and not by_place and "names" not in where:
        code = _refuse_conditions(session)
    elif limits[0].set and entity == "account" and "qos" in where:  # which Slurm cannot look up
        nothing_modified(session)
        tell_no_effect(session, "assocs", "No error")
        code = 1
    elif limits[0].set:
        alteration.put(*limits)
    return max(code, alteration.finish())


def _refuse_conditions(session: "Session") -> int:
    session.context.complain(" There was a problem with your 'where' options.")
    return 1


def tell_associations(session: "Session", answer: "Answer", head: str) -> "int | None":
    """The associations that were changed."""
    if no_access_to_default_qos(session, answer):
        return 0
    if not has_done(answer):
        nothing_modified(session)
        return None
    say(session, [head, *map(modified_line, answer.associations)])
    return 0
