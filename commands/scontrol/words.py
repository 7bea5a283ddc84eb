"""The words behind scontrol's keywords: `KEY=VALUE` pairs, names of jobs, what is said of each."""

from understudy.commands.shared.client import UNANSWERED, RefusedError
from understudy.commands.shared.context import Context
from understudy.model.times import leading_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.commands.scontrol.session import Session

# Actions that are updates of a job, so that a refusal is said once per job and once more.
HOLDS = ("hold", "uhold", "release")
INVALID_NODE, NODES_BUSY, _UNEXPECTED = 2018, 2016, 1000
# what Slurm answers to the suspension of a job that it does not know, and where nobody answers
UNEXPECTED = "Unexpected message received"
_NO_NEWS = (*UNANSWERED, _UNEXPECTED)
# refusals that say nothing of tasks
_OF_REQUESTS = dict.fromkeys(("suspend", "resume"), (*_NO_NEWS, 2002))
_TASKS = r"\d+_[\d,:-]+"  # as the controller names tasks
# a number, an array's tasks, a component
_JOB = r"\d+(?:_(?:\d[\d:-]*|\*|\[[\d,:%-]+\]))?|\d+\+\d+"


class RefusedInputError(Exception):
    """Input that makes no sense; what to say has been said. `code`: what the command ends with."""

    code = 1


class SilentlyDoneError(RefusedInputError):
    """What was wrong has been said, and the exit code says nothing of it."""

    code = 0


def full_key(word: str, known: "Sequence[tuple[str, int]]") -> str | None:
    """The full key in lower case: the first that begins so. Of each as many letters as stand beside
    it must be written.
    """
    lowered = word.lower()
    return next(
        (
            name.lower()
            for name, least in known
            if len(lowered) >= least and name.lower().startswith(lowered)
        ),
        None,
    )


def pairs(words: "Sequence[str]") -> list[tuple[str, str, str]]:
    """(key, sign, value) of `key=value`, `key+=value`, `key-=value` each; the value is None-like ""
    where there is no "=".
    """
    found = []
    for word in words:
        key, _, value = word.partition("=")
        sign = key[-1:] if key[-1:] in {"+", "-"} else ""
        found.append((key.rstrip("+-") if sign else key, sign, value))
    return found


def is_reservation(word: str) -> bool:
    """Whether it is `reservation` or `reservationname`, or begins so."""
    return len(word) >= 3 and "reservationname".startswith(word.lower())


def check_limit(value: str, context: Context, name: str = "TimeLimit") -> None:
    from understudy.model.times import parse_limit

    try:
        parse_limit(value)
    except ValueError:
        context.error(f"Invalid {name} value")
        raise RefusedInputError from None


def say_results(
    session: "Session", results: "list[tuple[str, int, str]]", *, action: str = ""
) -> int:
    """Say what was refused of jobs that were asked for together; of arrays, what became of each
    task. The exit code.
    """
    code, last, is_refused = 0, "", False
    for job, error, text in results:
        if (
            text
            and error not in _OF_REQUESTS.get(action, _NO_NEWS)
            and action != "top"
            and _names_tasks(job)
        ):
            session.complain(f"{job}: {text}")
            code, last = 1, ""
        elif error:
            session.complain(f"{text} for job {job}")
            code, last, is_refused = 1, text, True
        else:
            last = ""
    if is_refused and action in HOLDS:  # the last of them tells
        session.complain(f"slurm_suspend error: {last or 'No error'}")
    return code


def _names_tasks(job: str) -> bool:
    import re

    return re.fullmatch(_TASKS, job) is not None


def jobs_in(text: str) -> list[str]:
    """The jobs of a list; commas within brackets part tasks. A list with a word that names no job
    is taken as a whole, which then names none.
    """
    import re

    words = [each for each in re.split(r",(?![^\[\]]*\])", text) if each]
    return words if all(re.fullmatch(_JOB, word) for word in words) else [text]


def leading_job(text: str) -> int:
    """The number that the text begins with, 0 for none: where one job is wanted, what stands behind
    its number is not looked at.
    """
    return max(leading_number(text), 0) & 0xFFFFFFFF


def say_unreachable(
    session: "Session", jobs: "Sequence[str]", error: RefusedError, *, action: str = ""
) -> int:
    """No controller has answered: said of each job."""
    text = UNEXPECTED if error.code in UNANSWERED and action != "top" else error.text
    say_results(session, [(job, error.code, text) for job in jobs], action=action)
    return 1
