"""sacctmgr add, modify, delete of what clusters share: resources and federations.

Place: under sacctmgr, beside sacctmgr_change, whose requests it sends.
"""

from understudy.commands import sacctmgr_change as sc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.commands.sacctmgr import Session
    from understudy.commands.sacctmgr_change import Answer, Request


def change(session: "Session", action: str, entity: str, request: "Request") -> int:
    """Carry out a change. The exit code."""
    function: Callable[[Session, Request], int] = globals()[f"_{action}_{entity}"]
    return function(session, request)


# --- resources -----------------------------------------------------------------------------------------------------------------


def _add_resource(session: "Session", request: "Request") -> int:
    context = session.context
    clusters = request.where.get("clusters", [])
    known = {row["cluster"] for row in session.table.rows("clusters", ["cluster"])} if clusters else set()
    strange = [name for name in clusters if name not in known]
    for name in strange:
        context.complain(f" This cluster '{name}' doesn't exist.\n{sc.HELP} add it to accounting.")
    if strange and len(strange) == len(clusters):
        context.complain(" Need a valid cluster name to add a cluster resource.")
        return 1
    if not request.is_well:
        return 1
    if not request.names:
        context.complain(" Need name of resource to add.")
        return 1
    there = {(row["name"], row["server"]) for row in session.table.rows("resources", ["name", "server"])}
    values = request.set

    def tell(answer: "Answer") -> "int | None":
        for kind, names in answer.problems:
            if kind == "over":
                count, name, percent, used = names
                context.complain(
                    f" Adding this {count} clusters to resource {name} at {percent}% each , with {used}% already used,  would go over 100%.  Please"
                    " redo your math and resubmit."
                )
            else:
                context.complain(f" Need to designate a resource {kind.removeprefix('no_')} to initially add '{names[0]}'.")
        if answer.problems:
            return None
        if not answer.names:
            context.print(sc.NOTHING_NEW)
            return None
        context.print(" Adding Resource(s)")
        for name in answer.names:
            context.print(f"  {name}")
            for cluster, of, percent, _, _ in answer.associations:
                if of == name:
                    context.print(f"   Cluster - {cluster}\t{percent}%")
        server = answer.names[0].partition("@")[2]
        is_new = any((name, server) not in there for name in request.names)
        shown = [("Name", request.names[-1] if is_new else ""), ("Server", server)]
        shown += [("Description", values.get("description") or (request.names[-1] if is_new else ""))]
        shown += [("ServerType", values.get("server_type", "")), ("Count", values.get("count", "")), ("Type", "License")]
        sc.say(session, [" Settings", *(f"  {label:<15}= {value}" for label, value in shown if value != "")])
        return 0

    return sc.add(session, "resource", request, "resources", tell)


def _resource_lines(answer: "Answer") -> "list[str]":
    return [*(f"  {name}" for name in answer.names), *(f"  Cluster - {cluster}\t- {name}" for cluster, name, *_ in answer.associations)]


def _modify_resource(session: "Session", request: "Request") -> int:
    context = session.context
    if not sc.has_something_to_set(session, request):
        return 1
    if "allowed" in request.set and not request.where.get("clusters"):
        context.complain('Can\'t change "percentallowed" without specifying a cluster.')
        return 1

    def tell(answer: "Answer") -> "int | None":
        if not sc.has_done(answer):
            sc.nothing_modified(session)
            return None
        sc.say(session, [" Modified server resource ...", *_resource_lines(answer)])
        return 0

    return sc.alter(session, "modify", "resource", request, tell)


def _delete_resource(session: "Session", request: "Request") -> int:
    if not sc.has_conditions(session, request):
        return 1

    def tell(answer: "Answer") -> "int | None":
        if not sc.has_done(answer):
            session.context.print(" Nothing deleted")
            return None
        sc.say(session, [" Deleting resource(s)...", *_resource_lines(answer)])
        return 0

    return sc.alter(session, "delete", "resource", request, tell)


# --- federations ---------------------------------------------------------------------------------------------------------------


def _add_federation(session: "Session", request: "Request") -> int:
    context = session.context
    if not request.is_well:
        return 1
    if not request.names:
        context.complain(" Need name of federation to add.")
        return 1
    known = {row["federation"] for row in session.table.rows("federations", ["federation"])}
    for name in [name for name in request.names if name in known]:
        context.print(f" This federation {name} already exists.  Not adding.")
        request.names.remove(name)
    if not request.names:
        return 1
    changes = _clusters_changed(session, request, request.names[0])
    if changes is None:
        return 1
    request.set["clusters"] = [change[1:] for change in changes]

    def tell(answer: "Answer") -> int:
        sc.print_names(session, " Adding Federation(s)", answer.names)
        if changes:
            sc.say(session, [" Settings", *(f"  Cluster       = {change[1:]}" for change in changes)])
        return 0

    return sc.add(session, "federation", request, "federations", tell)


def _clusters_changed(session: "Session", request: "Request", federation: str) -> "list[str] | None":
    """Which clusters come (`+name`) and which go (`-name`), once those that are there or are not have been told; None if there is no such cluster."""
    complain = session.context.complain
    homes = {row["cluster"]: row["federation"] for row in session.table.rows("clusters", ["cluster", "federation"])}
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
        found += [f"-{name}" for name, home in sorted(homes.items()) if home == federation and name not in wanted]
    return found


def _modify_federation(session: "Session", request: "Request") -> int:
    context = session.context
    if not sc.has_something_to_set(session, request):
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
    sc.say(session, [" Setting", *(f"  Cluster      {change[0]}= {change[1:]}" for change in changes)])

    def tell(answer: "Answer") -> "int | None":
        if not answer.names:
            sc.nothing_modified(session)
            return None
        sc.print_names(session, " Modified federation...", answer.names)
        return 0

    return sc.alter(session, "modify", "federation", request, tell)


def _delete_federation(session: "Session", request: "Request") -> int:
    if not sc.has_conditions(session, request):
        return 1
    return sc.alter(session, "delete", "federation", request, lambda answer: sc.tell_deleted(session, answer, " Deleting federations..."))
