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
_DENIED = "Access/permission denied"
_DENIED_BEFORE = (  # what the plug-in says of a further request
    f"Sending message type DBD_MODIFY_ASSOCS: {ACCESS_DENIED}: {_DENIED}",
    f"DBD_MODIFY_ASSOCS failure: {_DENIED}",
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
    alteration = Alteration(session, action, entity)
    alteration.put(request, tell)
    return alteration.finish()


class Alteration:
    """A change in parts, each of which may fail for itself; the user is asked once."""

    def __init__(self, session: "Session", action: str, entity: str) -> None:
        self.session, self.action, self.entity = session, action, entity
        self.code = 0
        self._to_do: list[Request] = []
        self._was_denied = False

    def put(self, request: "Request", tell: "Callable[[Answer], int | None]") -> None:
        """Say what a part does; do it, if nobody is to be asked."""
        session = self.session
        if self._was_denied:
            for text in _DENIED_BEFORE:
                session.context.error(text)
            session.context.complain(f" Error with request: {_DENIED}")
            return
        try:
            answer = ask(session, self.action, self.entity, request, commit=not session.asks)
        except RefusedError as error:
            self.code = 1
            self._refuse(request, error)
            return
        code = tell(answer)
        self.code = max(self.code, 1 if code is None else code)
        if code is not None and has_done(answer):
            self._to_do.append(request)

    def finish(self) -> int:
        """Do it, if that is wanted. The exit code."""
        if self.session.asks and self._to_do and self.session.confirmed():
            for request in self._to_do:
                ask(self.session, self.action, self.entity, request, commit=True)
        return self.code

    def _refuse(self, request: "Request", error: RefusedError) -> None:
        session = self.session
        if error.code == ACCESS_DENIED:
            is_of_user = (self.action, self.entity) == ("modify", "user")
            if is_of_user and _changes_own_limits(session, request):
                nothing_modified(session)
                tell_no_effect(session, "assocs")
                return
            self._was_denied = True
            session.context.error(_why_denied(session, request))
        elif self.entity == "qos":
            session.context.error(error.text)
        session.context.complain(f" Error with request: {error.text}")


def tell_no_effect(session: "Session", what: str, why: str = _NO_EFFECT) -> None:
    """What the plug-in says where nothing came of it."""
    session.context.complain(
        f"sacctmgr: accounting_storage/slurmdbd: acct_storage_p_modify_{what}: {why}"
    )


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
    if entity in {"account", "user"} and "qos" in where:  # what is inherited does not count
        where["own_qos"] = where.pop("qos")
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
