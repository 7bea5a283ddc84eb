"""Changes put to accounting: what would happen, a question to the user, and to do it.

Place: under sacctmgr. Accounting is asked twice unless `-i` was given. What an answer means in
words is its caller's.
"""

from understudy.commands.sacctmgr.answer import Answer
from understudy.commands.sacctmgr.texts import deleted_line, print_names, say
from understudy.commands.shared.client import RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.commands.sacctmgr.request import Request
    from understudy.commands.sacctmgr.session import Session

ACCESS_DENIED = 2002
_NO_EFFECT = (
    "Request didn't affect anything or your user doesn't have privilege to perform this action"
)
_OF_USERS = ("admin_level", "default_account", "default_wckey", "new_name")


def add(
    session: "Session",
    entity: str,
    request: "Request",
    what: str,
    tell: "Callable[[Answer], int | None]",
) -> int:
    """Say what an addition does, ask, and do it. `tell` prints it and returns an exit code, or None
    if there is nothing to do.
    """
    code = tell(ask(session, "add", entity, request, commit=False))
    if code is None:
        return 1
    if not session.confirmed():
        return code
    try:
        ask(session, "add", entity, request, commit=True)
    except RefusedError as error:
        session.context.complain(f" Problem adding {what}: {error.text}")
        return 1
    return code


def alter(
    session: "Session",
    action: str,
    entity: str,
    request: "Request",
    tell: "Callable[[Answer], int | None]",
) -> int:
    """Say what a change or a deletion does, ask, and do it."""
    try:
        answer = ask(session, action, entity, request, commit=not session.asks)
    except RefusedError as error:
        if error.code == ACCESS_DENIED:
            if (action, entity) == ("modify", "user") and _changes_own_limits(session, request):
                nothing_modified(session)
                session.context.complain(
                    "sacctmgr: accounting_storage/slurmdbd: "
                    f"acct_storage_p_modify_assocs: {_NO_EFFECT}"
                )
                return 1
            session.context.error(_why_denied(session, request))
        elif entity == "qos":
            session.context.error(error.text)
        session.context.complain(f" Error with request: {error.text}")
        return 1
    code = tell(answer)
    if code is None:
        return 1
    if session.asks and has_done(answer) and session.confirmed():
        ask(session, action, entity, request, commit=True)
    return code


def _why_denied(session: "Session", request: "Request") -> str:
    if "admin_level" in request.set:
        if session.is_operator():
            return "You must be a super user to modify a users admin level"
        if _is_own(session, request):
            return "You can only change your own default account, default wckey nothing else"
    return "Your user doesn't have privilege to perform this action"


def _is_own(session: "Session", request: "Request") -> bool:
    return request.where.get("names") == [session.own_name()]


def _changes_own_limits(session: "Session", request: "Request") -> bool:
    """Whether a user, who coordinates nothing, wants other limits for himself."""
    if not _is_own(session, request) or not request.set.keys().isdisjoint(_OF_USERS):
        return False
    return not any(
        row["coordinates"]
        for row in session.table.rows("users", ["coordinates"], {"names": [session.own_name()]})
    )


def ask(
    session: "Session", action: str, entity: str, request: "Request", *, commit: bool
) -> Answer:
    where = {name: [str(value) for value in values] for name, values in request.where.items()}
    return Answer(
        session.context.client.call(
            "AccountingChange", action, entity, request.names, request.set, where, commit
        )
    )


def has_done(answer: Answer) -> bool:
    return bool(answer.names or answer.associations or answer.wckeys)


def has_something_to_set(session: "Session", request: "Request") -> bool:
    # which does not count as something
    is_something = bool(request.set.keys() - {"classification"})
    if not is_something and request.is_well:
        session.context.complain(" You didn't give me anything to set")
    return is_something and request.is_well


def nothing_modified(session: "Session") -> None:
    session.context.print(" Nothing modified")


def tell_modified(session: "Session", answer: Answer, head: str) -> "int | None":
    if not answer.names:
        nothing_modified(session)
        return None
    print_names(session, head, answer.names)
    return 0


def has_conditions(session: "Session", request: "Request") -> bool:
    if not request.where:
        session.context.complain(" No conditions given to remove, not executing.")
        return False
    return request.is_well


def tell_deleted(
    session: "Session", answer: Answer, head: str, associations_head: str = ""
) -> "int | None":
    if not has_done(answer):
        session.context.print(" Nothing deleted")
        return None
    if answer.names:
        print_names(session, head, answer.names)
    else:
        say(session, [associations_head, *map(deleted_line, answer.associations)])
    return 0
