"""sacctmgr add, modify, delete resource."""

from understudy.commands.sacctmgr.ask import (
    add,
    alter,
    has_done,
    has_something_to_set,
    nothing_modified,
    tell_no_effect,
)
from understudy.commands.sacctmgr.texts import HELP, NOTHING_NEW, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.sacctmgr.answer import Answer
    from understudy.commands.sacctmgr.request import Request
    from understudy.commands.sacctmgr.session import Session


def add_resource(session: "Session", request: "Request") -> int:
    context = session.context
    clusters = request.where.get("clusters", [])
    known = (
        {row["cluster"] for row in session.table.rows("clusters", ["cluster"])}
        if clusters
        else set()
    )
    strange = [name for name in clusters if name not in known]
    for name in strange:
        context.complain(f" This cluster '{name}' doesn't exist.\n{HELP} add it to accounting.")
    if strange and len(strange) == len(clusters):
        context.complain(" Need a valid cluster name to add a cluster resource.")
        return 1
    if not request.is_well:
        return 1
    if not request.names:
        context.complain(" Need name of resource to add.")
        return 1
    there = {
        (row["name"], row["server"]) for row in session.table.rows("resources", ["name", "server"])
    }
    values = request.set

    def tell(answer: "Answer") -> "int | None":
        for kind, names in answer.problems:
            if kind == "over":
                count, name, percent, used = names
                context.complain(
                    f" Adding this {count} clusters to resource {name} at {percent}% each , "
                    f"with {used}% already used,  would go over 100%.  Please"
                    " redo your math and resubmit."
                )
            else:
                context.complain(
                    f" Need to designate a resource {kind.removeprefix('no_')} to "
                    f"initially add '{names[0]}'."
                )
        if answer.problems:
            return None
        if not answer.names:
            context.print(NOTHING_NEW)
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
        shown += [
            ("Description", values.get("description") or (request.names[-1] if is_new else ""))
        ]
        shown += [
            ("ServerType", values.get("server_type", "")),
            ("Count", values.get("count", "")),
            ("Type", "License"),
        ]
        say(
            session,
            [" Settings", *(f"  {label:<15}= {value}" for label, value in shown if value != "")],
        )
        return 0

    return add(session, "resource", request, "system resource", tell)


def _resource_lines(answer: "Answer") -> "list[str]":
    return [
        *(f"  {name}" for name in answer.names),
        *(f"  Cluster - {cluster}\t- {name}" for cluster, name, *_ in answer.associations),
    ]


def modify_resource(session: "Session", request: "Request") -> int:
    context = session.context
    request.set.pop("type", None)  # there is one alone
    if not has_something_to_set(session, request):
        return 1
    clusters = request.where.get("clusters")
    if "allowed" in request.set and not clusters:
        context.complain('Can\'t change "percentallowed" without specifying a cluster.')
        return 1
    if "count" in request.set and clusters:
        context.complain(
            'Can\'t change "count" on a cluster-based resource. Remove cluster selection.'
        )
        return 1

    def tell(answer: "Answer") -> "int | None":
        if answer.problems:
            _tell_too_much(session, answer)
            return None
        if not has_done(answer):
            nothing_modified(session)
            if clusters or not request.set.keys() - {"server"}:
                tell_no_effect(session, "res")
            return None
        say(session, [" Modified server resource ...", *_resource_lines(answer)])
        return 0

    return alter(session, "modify", "resource", request, tell)


def _tell_too_much(session: "Session", answer: "Answer") -> None:
    session.context.error("You can not allocate more than 100% of a resource")
    session.context.complain(" If change was accepted it would look like this...")
    for _, (name, total, *parts) in answer.problems:
        session.context.complain(f"  {name}")
        for part in parts:
            cluster, _, percent = part.rpartition("=")
            session.context.complain(f"   Cluster - {cluster}\t {percent}%")
        session.context.complain(f"   total\t\t{total}%")


def delete_resource(session: "Session", request: "Request") -> int:
    if not request.where:
        session.context.complain(" No conditions given to remove, not executing.")
        return 1
    is_well = request.is_well  # clusters that nobody knows are passed over

    def tell(answer: "Answer") -> "int | None":
        if not has_done(answer):
            session.context.print(" Nothing deleted")
            return None
        say(session, [" Deleting resource(s)...", *_resource_lines(answer)])
        return 0 if is_well else 1

    return alter(session, "delete", "resource", request, tell)
