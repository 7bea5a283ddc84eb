"""sacctmgr add, modify, delete cluster."""

from understudy.commands.sacctmgr.ask import (
    add,
    alter,
    has_conditions,
    has_something_to_set,
    nothing_modified,
    tell_deleted,
)
from understudy.commands.sacctmgr.texts import (
    has_active_jobs,
    limits_text,
    modified_line,
    no_access_to_default_qos,
    print_names,
    say,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.sacctmgr.answer import Answer
    from understudy.commands.sacctmgr.request import Request
    from understudy.commands.sacctmgr.session import Session

_OF_CLUSTERS = frozenset(("classification", "features", "fed_state", "federation"))


def add_cluster(session: "Session", request: "Request") -> int:
    context = session.context
    if not request.is_new(session, "cluster"):
        return 1

    def tell(answer: "Answer") -> int:
        context.print(" Adding Cluster(s)")
        say(session, [f"  Name           = {name}" for name in answer.names])
        say(session, _cluster_settings(request))
        return 0

    return add(session, "cluster", request, "clusters", tell)


def modify_cluster(session: "Session", request: "Request") -> int:
    if not has_something_to_set(session, request):
        return 1
    say(session, _cluster_settings(request))

    def tell(answer: "Answer") -> "int | None":
        if no_access_to_default_qos(session, answer):
            return 0
        if not answer.names:
            nothing_modified(session)
            return None
        if answer.associations:
            say(
                session,
                [
                    " Modified cluster defaults for associations...",
                    *map(modified_line, answer.associations),
                ],
            )
        if _OF_CLUSTERS.intersection(request.set):
            print_names(session, " Modified cluster...", answer.names)
        return 0

    return alter(session, "modify", "cluster", request, tell)


def delete_cluster(session: "Session", request: "Request") -> int:
    if not request.is_well or not has_conditions(session, request):
        return 1

    def tell(answer: "Answer") -> "int | None":
        return (
            None
            if has_active_jobs(session, answer)
            else tell_deleted(session, answer, " Deleting clusters...")
        )

    return alter(session, "delete", "cluster", request, tell)


def _cluster_settings(request: "Request") -> "list[str]":
    """What is set of clusters themselves, and of their roots' limits."""
    values = request.set
    lines = [
        f"  {label:<15}= {values[field]}"
        for label, field in (("Classification", "classification"), ("Federation", "federation"))
        if field in values
    ]
    lines += [
        f"  Feature     {each[0]}= {each[1:]}" if each[0] in "+-" else f"  Feature       = {each}"
        for each in values.get("features", [])
    ]
    if "fed_state" in values:
        lines.append(f"  FedState       = {values['fed_state']}")
    limits = limits_text(values)
    if limits:
        lines += ["  Default Limits:", *limits]
    return [" Setting", *lines] if lines else []
