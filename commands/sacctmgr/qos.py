"""sacctmgr add, modify, delete qos."""

from understudy.commands.sacctmgr import words as sw
from understudy.commands.sacctmgr.ask import add, alter, has_conditions, tell_deleted, tell_modified
from understudy.commands.sacctmgr.texts import NOTHING_NEW, default_qos_line, print_names, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.sacctmgr.answer import Answer
    from understudy.commands.sacctmgr.request import Request
    from understudy.commands.sacctmgr.session import Session

_QOS_LABELS = (
    ("Flags", "flags"),
    ("GraceTime", "grace_time_s"),
    ("GrpJobs", "grp_jobs"),
    ("GrpJobsAccrue", "grp_jobs_accrue"),
    ("GrpSubmitJobs", "grp_submit_jobs"),
    ("GrpTRES", "grp_tres"),
    ("GrpTRESMins", "grp_tres_mins"),
    ("GrpTRESRunMins", "grp_tres_run_mins"),
    ("GrpWall", "grp_wall"),
    ("MaxJobsAccruePerAccount", "max_jobs_accrue_per_account"),
    ("MaxJobsAccruePerUser", "max_jobs_accrue_per_user"),
    ("MaxJobsPerAccount", "max_jobs_per_account"),
    ("MaxJobsPerUser", "max_jobs_per_user"),
    ("MaxSubmitJobsPerAccount", "max_submit_jobs_per_account"),
    ("MaxSubmitJobsPerUser", "max_submit_jobs_per_user"),
    ("MaxTRESPerAccount", "max_tres_per_account"),
    ("MaxTRESPerJob", "max_tres_per_job"),
    ("MaxTRESPerNode", "max_tres_per_node"),
    ("MaxTRESPerUser", "max_tres_per_user"),
    ("MinPrioThresh", "min_prio_threshold"),
    ("MinTRESPerJob", "min_tres_per_job"),
    ("MaxTRESMins", "max_tres_mins_per_job"),
    ("MaxWall", "max_wall"),
    ("Preempt", "preempt"),
    ("PreemptMode", "preempt_mode"),
    ("PreemptExemptTime", "preempt_exempt_time_s"),
    ("Priority", "priority"),
    ("UsageFactor", "usage_factor"),
    ("UsageThreshold", "usage_threshold"),
    ("LimitFactor", "limit_factor"),
)


def _flags_text(flags: "list[str]") -> str:
    """Which flags, in their order, behind what += and -= are called."""
    signs = {"Add": "+", "Remove": "-"}
    words = [word for word, sign in signs.items() if any(each[0] == sign for each in flags)]
    named = {each.lstrip("+-") for each in flags}
    return ",".join([*words, *(flag for flag in sw.QOS_FLAGS if flag in named)])


def add_qos(session: "Session", request: "Request") -> int:
    context = session.context
    if not request.is_complete(session, "qos"):
        return 1

    def tell(answer: "Answer") -> "int | None":
        if not answer.names:
            context.print(NOTHING_NEW)
            return None
        print_names(session, " Adding QOS(s)", answer.names)
        say(
            session,
            [
                " Settings",
                f"  Description    = {request.set.get('description') or request.names[-1]}",
            ],
        )
        for label, field in _QOS_LABELS:
            value = request.set.get(field)
            if value is None or value in ({}, []):
                continue
            text = sw.text_of_limit(field, value)
            if field == "flags":
                text = _flags_text(value)
            elif field == "preempt":
                text = ",".join(sorted(value))
            elif field == "preempt_mode":
                text = text.upper()
            elif isinstance(value, float):
                text = f"{value:.4f}"
            context.print(
                f"  {label} = {text}" if field == "max_jobs_per_user" else f"  {label:<25}= {text}"
            )
        return 0

    return add(session, "qos", request, "QOS", tell)


def modify_qos(session: "Session", request: "Request") -> int:
    if not request.set and request.is_well:
        session.context.complain(" You didn't give me anything to set")
    if not request.set or not request.is_well:
        return 1

    return alter(
        session,
        "modify",
        "qos",
        request,
        lambda answer: tell_modified(session, answer, " Modified qos..."),
    )


def delete_qos(session: "Session", request: "Request") -> int:
    if not has_conditions(session, request):
        return 1

    def tell(answer: "Answer") -> "int | None":
        if not answer.problems:
            return tell_deleted(session, answer, " Deleting QOS(s)...")
        complain = session.context.complain
        complain(" Associations listed below have these as their Default QOS.")
        for _, names in answer.problems:
            complain(default_qos_line(names))
        complain(
            " Please either remove the qos' listed above from list and resubmit,\n"
            " or change the default qos to remove the qos.\n Changes Discarded"
        )
        return None

    return alter(session, "delete", "qos", request, tell)
