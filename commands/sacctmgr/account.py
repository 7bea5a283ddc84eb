"""sacctmgr add, modify, delete account."""

from understudy.commands.sacctmgr.ask import (
    add,
    alter,
    has_conditions,
    has_something_to_set,
    nothing_modified,
    tell_deleted,
)
from understudy.commands.sacctmgr.parts import alter_own_and_limits, tell_associations
from understudy.commands.sacctmgr.request import has_cluster
from understudy.commands.sacctmgr.texts import (
    NOTHING_NEW,
    association_line,
    has_active_jobs,
    limits_text,
    print_names,
    say,
    tell_default_accounts,
    tell_problems,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.sacctmgr.answer import Answer
    from understudy.commands.sacctmgr.request import Request
    from understudy.commands.sacctmgr.session import Session

_OWN = frozenset(("description", "organization"))
_OF_PLACES = frozenset(
    ("clusters", "default_qos", "parents", "partitions", "qos", "users")
)  # what `where` says of accounts' places
_KEEP_ACCOUNTS = (
    " Please either remove the accounts listed above from list and resubmit,\n"
    " or change these users' default accounts to remove the account(s)."
)


def add_account(session: "Session", request: "Request") -> int:
    context = session.context
    if not request.is_complete(session, "account"):
        return 1
    if not has_cluster(session, request, "add accounts"):
        return 1

    def tell(answer: "Answer") -> "int | None":
        tell_problems(session, answer)
        if not answer.names and not answer.associations:
            if any(kind == "no_parent" for kind, _ in answer.problems):
                context.complain(" No associations created.")
            elif not answer.problems:
                context.print(NOTHING_NEW)
            return None
        if answer.names:
            print_names(session, " Adding Account(s)", answer.names)
            context.print(" Settings")
            context.print(f"  Description     = {request.set.get('description') or 'Account Name'}")
            context.print(
                f"  Organization    = {request.set.get('organization') or 'Parent/Account Name'}"
            )
        if answer.associations:
            say(session, [" Associations", *map(association_line, answer.associations)])
        if request.keys - {"clusters"}:
            say(session, [" Settings", *limits_text({"parent": "root", **request.set})])
        return 1 if answer.problems else 0

    return add(session, "account", request, "accounts", tell)


def modify_account(session: "Session", request: "Request") -> int:
    """First what accounts are called, then their places and limits."""
    if not has_something_to_set(session, request):
        return 1
    parent = request.set.get("parent")
    if parent is not None and not session.table.rows("accounts", ["name"], {"names": [parent]}):
        session.context.complain(f" Parent Account {parent} doesn't exist.")
        return 1
    own, limits = request.part(_OWN), request.part(_OWN, others=True)

    def tell_own(answer: "Answer") -> "int | None":
        if not answer.names:
            nothing_modified(session)
            return None
        print_names(session, " Modified accounts...", answer.names)
        return 0

    def tell_limits(answer: "Answer") -> "int | None":
        return tell_associations(session, answer, " Modified account associations...")

    return alter_own_and_limits(
        session, "account", (own, tell_own), (limits, tell_limits), _OF_PLACES
    )


def delete_account(session: "Session", request: "Request") -> int:
    if not has_conditions(session, request):
        return 1
    complain = session.context.complain

    def tell(answer: "Answer") -> "int | None":
        if any(kind == "root" for kind, _ in answer.problems):
            complain(
                " You are not allowed to remove the root account.\n Use remove cluster instead."
            )
            return None
        if has_active_jobs(session, answer):
            return None
        if answer.problems:
            tell_default_accounts(session, answer, _KEEP_ACCOUNTS)
            return None
        return tell_deleted(
            session, answer, " Deleting accounts...", " Deleting account associations..."
        )

    return alter(session, "delete", "account", request, tell)
