"""sacctmgr modify account or user set RawUsage=0."""

from understudy.commands.sacctmgr.ask import ask
from understudy.commands.shared.client import RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.sacctmgr.request import Request
    from understudy.commands.sacctmgr.session import Session


def reset_use(session: "Session", entity: str, request: "Request") -> int:
    """RawUsage=0, with which nothing else is changed."""
    context = session.context
    where = request.where
    if entity == "user" and not where.get("accounts"):
        context.error("An account must be specified")
        return 1
    if not where.get("clusters"):
        context.print(
            f"No cluster specified, resetting on local cluster {context.client.cluster_name}"
        )
    cluster = (where.get("clusters") or [context.client.cluster_name])[0]
    where["clusters"] = where.get("clusters") or [cluster]
    request.set = {"raw_usage": 0}
    try:
        answer = ask(session, "modify", entity, request, commit=not session.asks)
    except RefusedError:
        return 1
    if not answer.names:
        account = (
            where.get("names") if entity == "account" else where.get("accounts") or [""]
        ) or [""]
        user = f" user {(where.get('names') or [''])[0]}" if entity == "user" else ""
        context.error(
            f"Failed to find cluster {cluster} account {account[0]}{user} association in database"
        )
        return 1
    if session.asks and session.confirmed(
        "Would you like to reset usage? (You have 30 seconds to decide)"
    ):
        ask(session, "modify", entity, request, commit=True)
    return 0
