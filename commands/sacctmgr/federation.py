"""sacctmgr add, modify, delete federation."""

from understudy.commands.sacctmgr.ask import (
    add,
    alter,
    has_conditions,
    has_something_to_set,
    tell_deleted,
    tell_modified,
)
from understudy.commands.sacctmgr.texts import print_names, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.sacctmgr.answer import Answer
    from understudy.commands.sacctmgr.request import Request
    from understudy.commands.sacctmgr.session import Session


def add_federation(session: "Session", request: "Request") -> int:
    if not request.is_new(session, "federation"):
        return 1
    changes = _clusters_changed(session, request, request.names[0])
    if changes is None:
        return 1
    request.set["clusters"] = [change[1:] for change in changes]

    def tell(answer: "Answer") -> int:
        print_names(session, " Adding Federation(s)", answer.names)
        if changes:
            say(session, [" Settings", *(f"  Cluster       = {change[1:]}" for change in changes)])
        return 0

    return add(session, "federation", request, "federation(s)", tell)


def _clusters_changed(
    session: "Session", request: "Request", federation: str
) -> "list[str] | None":
    """Which clusters come (`+name`) and which go (`-name`), once those that are there or are not
    have been told; None if there is no such cluster.
    """
    complain = session.context.complain
    homes = {
        row["cluster"]: row["federation"]
        for row in session.table.rows("clusters", ["cluster", "federation"])
    }
    wanted: list[str] = request.set.get("clusters", [])
    found = []
    for word in wanted:
        sign, name = (word[0], word[1:]) if word[:1] in {"+", "-"} else ("=", word)
        if name not in homes:
            complain(f" The cluster {name} doesn't exist. Please add first.")
            return None
        if sign == "-" and homes[name] != federation:
            complain(f" The cluster {name} isn't assigned to federation {federation}")
        elif sign == "-":
            found.append(word)
        elif homes[name] == federation:
            complain(f" The cluster {name} is already assigned to federation {federation}")
        else:
            if homes[name]:
                complain(f" The cluster {name} is assigned to federation {homes[name]}")
            found.append(f"+{name}")
    if "clusters" in request.set and not any(word[:1] in {"+", "-"} for word in wanted):
        found += [
            f"-{name}"
            for name, home in sorted(homes.items())
            if home == federation and name not in wanted
        ]
    return found


def modify_federation(session: "Session", request: "Request") -> int:
    context = session.context
    if not has_something_to_set(session, request):
        return 1
    names = request.where.get("names", [])
    known = {row["federation"] for row in session.table.rows("federations", ["federation"])}
    for name in names:
        if name not in known:
            context.complain(f" The federation {name} doesn't exist.")
            return 1
    changes = _clusters_changed(session, request, names[0] if names else "")
    if not changes:
        if changes is not None:
            context.print("Nothing to change")
        return 1
    request.set["clusters"] = changes
    say(session, [" Setting", *(f"  Cluster      {change[0]}= {change[1:]}" for change in changes)])

    return alter(
        session,
        "modify",
        "federation",
        request,
        lambda answer: tell_modified(session, answer, " Modified federation..."),
    )


def delete_federation(session: "Session", request: "Request") -> int:
    if not has_conditions(session, request):
        return 1
    return alter(
        session,
        "delete",
        "federation",
        request,
        lambda answer: tell_deleted(session, answer, " Deleting federations..."),
    )
