"""sacctmgr add, delete coordinator."""

from understudy.commands.sacctmgr.ask import add, alter
from understudy.commands.sacctmgr.texts import print_names, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.sacctmgr.answer import Answer
    from understudy.commands.sacctmgr.request import Request
    from understudy.commands.sacctmgr.session import Session


def add_coordinator(session: "Session", request: "Request") -> int:
    context = session.context
    if not request.is_well:
        return 1
    accounts = request.where.get("accounts", [])
    if not request.names and not accounts:
        context.complain(" You need to specify conditions to to add the coordinator.")
        return 1
    if not request.names or not accounts:
        context.complain(
            f" You need to specify {'a user' if not request.names else 'an account'} list here."
        )
        return 1

    def tell(answer: "Answer") -> "int | None":
        if _tell_strangers(session, answer):
            return None
        print_names(session, " Adding Coordinator User(s)", request.names)
        print_names(session, " To Account(s) and all sub-accounts", accounts)
        return 0

    return add(session, "coordinator", request, "coordinator", tell)


def delete_coordinator(session: "Session", request: "Request") -> int:
    context = session.context
    if not request.is_well:
        return 1
    names, accounts = request.where.get("names", []), request.where.get("accounts", [])
    if not names and not accounts:
        context.complain(" You need to specify a user list or account list here.")
        return 1

    def tell(answer: "Answer") -> "int | None":
        if _tell_strangers(session, answer):
            return None
        if names:
            print_names(session, " Removing Coordinators with user name", names)
            print_names(session, " From Account(s)" if accounts else " From all accounts", accounts)
        else:
            print_names(session, " Removing all users from Accounts", accounts)
        if not answer.associations:
            context.print(" Nothing removed")
            return None
        context.print(" Removed Coordinators (sub accounts not listed)...")
        say(
            session,
            [
                f"  U = {user:<9} A = {account:<10}"
                for _, account, _, user, _ in answer.associations
            ],
        )
        return 0

    return alter(session, "delete", "coordinator", request, tell)


def _tell_strangers(session: "Session", answer: "Answer") -> bool:
    for kind, names in answer.problems:
        session.context.complain(
            f" You specified a non-existent {'account' if kind == 'no_account' else 'user'} "
            f"'{names[0]}'."
        )
    return bool(answer.problems)
