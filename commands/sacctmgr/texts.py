"""Slurm's lines for what a change does: limits, associations, problems.

Place: under sacctmgr's changes.
"""

from understudy.commands.sacctmgr import words as sw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.commands.sacctmgr.answer import Answer
    from understudy.commands.sacctmgr.session import Session

NOTHING_NEW = " Nothing new added."
HELP = "        Contact your admin to"
_LIMIT_LABELS = (
    ("Fairshare", "shares"),
    ("GrpJobs", "grp_jobs"),
    ("GrpJobsAccrue", "grp_jobs_accrue"),
    ("GrpSubmitJobs", "grp_submit_jobs"),
    ("GrpTRES", "grp_tres"),
    ("GrpTRESMins", "grp_tres_mins"),
    ("GrpTRESRunMins", "grp_tres_run_mins"),
    ("GrpWall", "grp_wall"),
    ("MaxJobs", "max_jobs"),
    ("MaxJobsPrioAcc", "max_jobs_accrue"),
    ("MaxSubmitJobs", "max_submit_jobs"),
    ("MaxTRES", "max_tres_per_job"),
    ("MaxTRESPerNode", "max_tres_per_node"),
    ("MaxTRESMins", "max_tres_mins_per_job"),
    ("MaxWall", "max_wall"),
    ("MinPrioThresh", "min_prio_threshold"),
    ("Parent", "parent"),
    ("Priority", "priority"),
    ("QOS", "qos"),
    ("DefQOS", "default_qos"),
)


def limits_text(values: "dict[str, Any]") -> "list[str]":
    """One line for each limit that is set. Where a name fills its column, two lines have another
    width, as in Slurm.
    """
    found = []
    for label, field in _LIMIT_LABELS:
        if field not in values:
            continue
        value = values[field]
        text = ",".join(sorted(value)) if field == "qos" else sw.text_of_limit(field, value)
        if value is None:
            text = "(null)" if field == "default_qos" else "NONE"
        if text or field == "qos":
            found.append(
                f"  {label:<25}= {text}" if field == "grp_jobs_accrue" else f"  {label:<14}= {text}"
            )
    return found


def association_line(association: "list[str]") -> str:
    """As additions list it."""
    cluster, account, _, user, partition = association
    text = (
        f"  U = {user[:9]:<9} A = {account[:10]:<10} C = {cluster[:10]:<10}"
        if user
        else f"  A = {account[:10]:<10} C = {cluster[:10]:<10}"
    )
    return text + (f" P = {partition[:10]:<10}" if partition else "")


def modified_line(association: "list[str]") -> str:
    """As changes list it."""
    cluster, account, parent, user, partition = association
    if not user:
        return (
            f"  C = {cluster:<10} A = {account} of {parent}"
            if parent
            else f"  C = {cluster:<10} A = {account}"
        )
    return f"  C = {cluster:<10} A = {account:<20} U = {user:<9}" + (
        f" P = {partition}" if partition else ""
    )


def deleted_line(association: "list[str]") -> str:
    """As deletions list it."""
    cluster, account, parent, user, partition = association
    if not user:
        return f"  C = {cluster:<10} A = {account} of {parent}"
    return f"  C = {cluster:<10} A = {account:<10} U = {user:<9}" + (
        f" P = {partition}" if partition else ""
    )


def print_names(session: "Session", head: str, names: list[str]) -> None:
    for line in (head, *(f"  {name}" for name in names)):
        session.context.print(line)


def say(session: "Session", lines: list[str]) -> None:
    for line in lines:
        session.context.print(line)


def tell_problems(session: "Session", answer: "Answer") -> None:
    """What could not be added, and why."""
    complain = session.context.complain
    for kind, names in answer.problems:
        if kind == "no_cluster":
            complain(f" This cluster '{names[0]}' doesn't exist.\n{HELP} add it to accounting.")
        elif kind == "no_parent":
            complain(
                f" Parent account '{names[0]}' doesn't exist on cluster {names[1]}\n"
                f"{HELP} add this account."
            )
        elif kind == "no_account":
            complain(f" This account '{names[0]}' doesn't exist.\n{HELP} add this account.")
        elif kind == "no_account_on_cluster":
            complain(
                f" This account '{names[0]}' doesn't exist on cluster {names[1]}\n"
                f"{HELP} add this account."
            )


def no_access_to_default_qos(session: "Session", answer: "Answer") -> bool:
    """Whether that is why nothing was changed, which has been said then."""
    lines = [names for kind, names in answer.problems if kind == "no_access_to_default_qos"]
    if not lines:
        return False
    session.context.complain(" These associations don't have access to their default qos.")
    session.context.complain(" Please give them access before they the default can be set to this.")
    for names in lines:
        session.context.complain(default_qos_line(names))
    return True


def has_active_jobs(session: "Session", answer: "Answer") -> bool:
    """Whether that is why nothing was deleted, which has been said then."""
    lines = [names for kind, names in answer.problems if kind == "active_job"]
    if not lines:
        return False
    session.context.complain(" Error with request: Job(s) active, cancel job(s) before remove")
    for job, cluster, account, user, partition in lines:
        place = f"  JobID = {job:<10} C = {cluster:<10} A = {account:<10}"
        session.context.complain(
            place + (f" U = {user:<9}" if user else "") + (f" P = {partition}" if partition else "")
        )
    return True


def default_qos_line(names: "list[str]") -> str:
    qos, cluster, account, user, partition = names
    place = f"  DefQOS = {qos:<10} C = {cluster:<10} A = {account:<20} "
    return place + (f"U = {user:<9}" if user else "") + (f" P = {partition}" if partition else "")


def tell_default_accounts(session: "Session", answer: "Answer", advice: str) -> None:
    """Whose default account would go."""
    complain = session.context.complain
    complain(" Error with request: You can not remove the default account of a user")
    for _, (cluster, account, user) in answer.problems:
        complain(f"  C = {cluster:<15} A = {account:<10} U = {user:<9}")
    complain(advice)
    complain(" Changes Discarded")
