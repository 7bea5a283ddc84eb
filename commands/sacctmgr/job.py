"""sacctmgr modify job."""

import re

from understudy.commands.sacctmgr.ask import alter, nothing_modified
from understudy.commands.sacctmgr.texts import print_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.sacctmgr.answer import Answer
    from understudy.commands.sacctmgr.request import Request
    from understudy.commands.sacctmgr.session import Session
    from understudy.commands.shared.context import Context


_JOB = re.compile(r"(\d+)(?:([_+])(\d*))?")  # whatever stands behind it: a step means its job


def _read_jobs(request: "Request", context: "Context") -> bool:
    """Whether jobs are named, be it tasks (`7_1`) or components (`7+1`); if not, that is said."""
    words = request.where["job_ids"]
    found = []
    for word in filter(None, words):
        match = _JOB.match(word)
        if match is None:
            context.fatal(f"Bad job/step specified: {word}")
            return False
        number, mark, behind = match.groups()
        if mark == "_" and not behind:
            context.fatal(f"Bad job array element specified: {number}")
            return False
        found.append(f"{number}{mark}{behind or 0}" if mark else number)
    if not found:
        context.complain(f"Invalid job id(s) {','.join(words)} specified")
    request.where["job_ids"] = found
    return bool(found)


def modify_job(session: "Session", request: "Request") -> int:
    """What could not be understood is passed over."""
    context = session.context
    if "job_ids" in request.where and not _read_jobs(request, context):
        return 1
    for word in request.where.get("names", []):
        context.complain(f" Unknown condition: {word}\n Use keyword 'set' to modify value")
    if not request.set and not request.is_misread:
        context.complain(" You didn't give me anything to set")
    if request.where.get("names") or not request.set or not request.is_well:
        return 1
    if request.set.get("derived_exit_status", 0) is None:  # as if nobody had said so
        del request.set["derived_exit_status"]

    def tell(answer: "Answer") -> "int | None":
        from understudy.commands.shared.texts import timestamp

        if not answer.names:
            context.complain(
                "sacctmgr: accounting_storage/slurmdbd: acct_storage_p_modify_job: Request "
                "didn't affect anything or your user doesn't have privilege"
                " to perform this action"
            )
            nothing_modified(session)
            return None
        jobs = [name.split() for name in answer.names]
        print_names(
            session,
            " Modified jobs...",
            [f"{number} submitted at {timestamp(int(submitted))}" for number, submitted in jobs],
        )
        return 0

    return alter(session, "modify", "job", request, tell)
