"""sacctmgr add, modify, delete user."""

from understudy.commands.sacctmgr.ask import (
    add,
    alter,
    has_conditions,
    has_something_to_set,
    nothing_modified,
    tell_deleted,
    tell_no_effect,
)
from understudy.commands.sacctmgr.parts import alter_own_and_limits, tell_associations
from understudy.commands.sacctmgr.request import Request, has_cluster
from understudy.commands.sacctmgr.texts import (
    NOTHING_NEW,
    association_line,
    deleted_line,
    has_active_jobs,
    limits_text,
    print_names,
    say,
    tell_default_accounts,
    tell_problems,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.commands.sacctmgr.answer import Answer
    from understudy.commands.sacctmgr.session import Session

_OWN = frozenset(("admin_level", "default_account", "default_wckey", "new_name"))
_OF_PLACES = frozenset(("accounts", "default_qos", "partitions", "qos"))
_CHANGE_DEFAULTS = (
    " You must change the default account of these users or remove the users completely from "
    "the affected clusters to allow these changes."
)


def add_user(session: "Session", request: "Request") -> int:
    context = session.context
    if not request.is_complete(session, "user"):
        return 1
    if not has_cluster(session, request, "add/modify users"):
        return 1
    values = request.set
    if not values.get("admin_level", "None"):
        del values["admin_level"]
    for name in ("accounts", "partitions", "wckeys"):
        if name in request.where:
            values[name] = request.where.pop(name)
    if (
        not values.get("accounts")
        and not values.get("default_account")
        and not values.get("wckeys")
        and not values.get("default_wckey")
    ):
        context.complain(" Need name of account to add user to.")
        return 1
    known = {row["name"] for row in session.table.rows("users", ["name"], {"names": request.names})}
    keys = [key for key in (values.get("default_wckey"), *values.get("wckeys", [])) if key]
    if keys and not session.is_operator():
        context.error("Your user doesn't have privilege to perform this action")
        context.complain("sacctmgr: If you are a coordinator ignore the previous error")
        if known.issuperset(request.names) and not (
            values.get("accounts") or values.get("default_account")
        ):
            return _refuse_keys(session, request.names, keys)

    def tell(answer: "Answer") -> "int | None":
        tell_problems(session, answer)
        if not answer.associations and not answer.wckeys:
            if any(kind == "no_cluster" for kind, _ in answer.problems):
                return None
            if known.issuperset(request.names) or values.get("default_account") in [
                names[0] for _, names in answer.problems
            ]:
                context.print(NOTHING_NEW)
            elif answer.problems:
                context.complain(" No associations or wckeys created.")
            return None
        if answer.names:
            print_names(session, " Adding User(s)", answer.names)
            _tell_user_settings(session, values)
        if answer.associations:
            say(session, [" Associations =", *map(association_line, answer.associations)])
        if answer.wckeys:
            say(session, [" WCKeys =", *map(_key_line, answer.wckeys)])
        limits = limits_text(
            {name: value for name, value in values.items() if name not in {"parent", "accounts"}}
        )
        if request.keys - {"default_account", "admin_level", "default_wckey", "wckeys"}:
            say(session, [" Non Default Settings", *limits])
        return 1 if answer.problems else 0

    return add(session, "user", request, "users", tell)


def modify_user(session: "Session", request: "Request") -> int:
    """First what users are themselves, then the limits of their associations."""
    if "wckeys" in request.where:
        return 1  # without a word, as Slurm does
    if not has_something_to_set(session, request):
        return 1
    own, limits = request.part(_OWN), request.part(_OWN, others=True)
    is_known_level = own.set.get("admin_level") != ""
    if not is_known_level:
        del own.set["admin_level"]
    code = 0
    if own.set.get("default_wckey") and _is_kept_from_keys(session, own):
        own, code = Request(), 1
    elif (refusal := _refusal(session, own)) is not None:
        own, code = Request(), refusal

    def tell_own(answer: "Answer") -> "int | None":
        return _tell_modified_users(session, answer, own)

    def tell_limits(answer: "Answer") -> "int | None":
        return tell_associations(session, answer, " Modified user associations...")

    if own.set and "accounts" in limits.where:  # which the first part uses up
        limits.where = {name: each for name, each in limits.where.items() if name != "accounts"}
    if not is_known_level and not own.set and not code:
        nothing_modified(session)
        tell_no_effect(session, "users")
        code = 1
    return alter_own_and_limits(
        session, "user", (own, tell_own), (limits, tell_limits), _OF_PLACES, code
    )


def _refusal(session: "Session", own: "Request") -> "int | None":
    """The exit code of what users cannot be changed into, which has been said then."""
    context = session.context
    text = ""
    if own.set.get("default_account") == "":
        text = "You can not remove the default account of a user"
    elif own.set.get("new_name") and len(own.where.get("names", [])) > 1:
        text = "Can only change one at a time"
    if text:
        context.error(text)
        context.complain(f" Error with request: {text}")
        if "new_name" in own.set:
            context.complain(
                " If you are changing a users name you can only specify 1 user at a time."
            )
        return 1
    return None


def _tell_modified_users(session: "Session", answer: "Answer", own: "Request") -> "int | None":
    strange = False
    for problem, what in (("not_in_account", "account"), ("not_of_wckey", "wckey")):
        lines = [names for kind, names in answer.problems if kind == problem]
        if lines:
            strange = True
            session.context.print(
                " Can't modify because these users aren't associated with new "
                f"default {what} '{lines[0][2]}'..."
            )
            say(session, [f"  U = {user} C = {cluster}" for user, cluster, _ in lines])
    if answer.names:
        print_names(session, " Modified users...", answer.names)
    elif not strange:
        nothing_modified(session)
        if any(kind == "name_taken" for kind, _ in answer.problems):
            tell_no_effect(session, "users", "No error")
        elif not own.where.get("names") and not own.where.get("admin_levels"):
            tell_no_effect(session, "users")
        return None
    return 1 if strange else 0


def _refuse_keys(session: "Session", users: "list[str]", keys: "list[str]") -> int:
    """Keys of users whom accounting knows, for who is no operator: which there are he may not
    see.
    """
    cluster = session.context.client.cluster_name
    say(
        session, [" WCKeys =", *(_key_line([user, key, cluster]) for user in users for key in keys)]
    )
    session.context.error("Sending message type DBD_ADD_WCKEYS: 2002: Access/permission denied")
    session.context.complain(" Problem adding user associations: Access/permission denied")
    return 1


def _is_kept_from_keys(session: "Session", request: "Request") -> bool:
    """Whether it is a user's own default WCKey: only operators may look which there are."""
    own = session.own_name()
    if session.is_operator() or request.where.get("names") != [own]:
        return False
    if request.set.keys() - {"default_wckey", "default_account"}:
        return False
    if not session.table.rows("users", ["name"], {"names": [own]}):
        return False
    session.context.error("Your user doesn't have privilege to perform this action")
    session.context.print(
        " Can't modify because these users aren't associated with new default wckey "
        f"'{request.set['default_wckey']}'..."
    )
    say(session, [f"  U = {own} C = {session.context.client.cluster_name}"])
    return True


def delete_user(session: "Session", request: "Request") -> int:
    if not has_conditions(session, request):
        return 1

    def tell(answer: "Answer") -> "int | None":
        if has_active_jobs(session, answer):
            return None
        if answer.problems:
            tell_default_accounts(session, answer, _CHANGE_DEFAULTS)
            return None
        if answer.wckeys:
            say(session, [" Deleting user WCKeys...", *map(_deleted_key_line, answer.wckeys)])
            return 0
        if not answer.associations:
            return tell_deleted(session, answer, " Deleting users...")
        say(session, [" Deleting user associations...", *map(deleted_line, answer.associations)])
        if answer.names:
            print_names(session, " Deleting users (No Associations)...", answer.names)
        return 0

    return alter(session, "delete", "user", request, tell)


def _key_line(key: "list[str]") -> str:
    user, name, cluster = key
    return f"  U = {user[:9]:<9} W = {name[:10]:<10} C = {cluster[:10]:<10}"


def _deleted_key_line(key: "list[str]") -> str:
    user, name, cluster = key
    return f"  C = {cluster[:10]:<10} W = {name[:20]:<20} U = {user:<9}"


def _tell_user_settings(session: "Session", values: "dict[str, Any]") -> None:
    shown = (
        ("Default Account =", "default_account"),
        ("Default WCKey   =", "default_wckey"),
        ("Admin Level     =", "admin_level"),
    )
    lines = [f"  {label} {values[field]}" for label, field in shown if values.get(field)]
    if lines:
        say(session, [" Settings =", *lines])
