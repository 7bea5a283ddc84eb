"""What squeue's options and variables ask for, and what is wrong in them.

Options are looked at in the order of the line, then what belongs together, the nodes, and the
states and users of the environment.
"""

import os

from understudy.commands.shared.client import RefusedError
from understudy.commands.shared.in_order import EndedError
from understudy.commands.squeue.filter import ANY_CASE, Filter
from understudy.documents.states import JOB_FLAGS, JOB_STATES, job_state_from
from understudy.model.times import leading_number, split_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.shared.context import Context
    from understudy.commands.shared.options import Option

_FORMATS = {"format": "-o (--format)", "long_format": "-O (--Format)"}
_TEXT_FILTERS = {
    "accounts": "account",
    "name": "name",
    "partition": "partition",
    "qos": "qos",
    "reservation": "reservation",
}
_FILTERS = (*_TEXT_FILTERS, "jobs", "licenses", "nodelist", "user")


def _words(text: str | None) -> list[str]:
    return [word for word in (text or "").split(",") if word]


class LineReader:
    """Looks at the options of the line one after the other."""

    def __init__(self, context: "Context") -> None:
        self.context = context
        self.format = ""  # the first of -o and -O

    def look(self, option: "Option", text: str | None) -> None:
        """Complain of what is wrong in an option.

        Raises:
            EndedError: it is more than a user whom nobody knows.
        """
        name, context = option.dest, self.context
        if name == "jobs":
            read_jobs(text, context)
        elif name == "steps":
            read_steps(text, context)
        elif name == "states":
            _read_states(text or "", Filter(), context)
        elif name == "user":
            read_users(text, context)
        elif name == "iterate":
            read_interval(text, context)
        elif name in _FORMATS:
            self.format = self.format or name
            if name != self.format:
                context.error(f"{_FORMATS[name]} is incompatible with {_FORMATS[self.format]}")
                raise EndedError


def read_environment(
    line: "dict[str, str | None]", environment: "dict[str, str | None]", context: "Context"
) -> None:
    """Complain of states and users of the environment that count.

    Raises:
        EndedError: it is more than a user whom nobody knows.
    """
    if "states" not in line:
        _read_states(environment.get("states") or "", Filter(), context)
    if line.keys().isdisjoint({"user", "me"}):
        read_users(environment.get("user"), context)


def read_filter(options: "dict[str, str | None]", context: "Context") -> Filter:
    """What is asked for; what is wrong in it has been said."""
    wanted = Filter()
    given = {name: _words(options[name]) for name in _FILTERS if options.get(name) is not None}
    wanted.is_empty = any(not options[name] for name in given)
    if given.get("jobs"):
        wanted.jobs = read_jobs(options["jobs"], context)
    if "states" in options:
        _read_states(options["states"] or "", wanted, context)
    if given.get("user"):
        known = map(_user_id, given["user"])
        wanted.users = [user for user, _ in known if user is not None]
    wanted.is_empty |= options.get("jobs") is not None and not wanted.jobs
    for name, column in _TEXT_FILTERS.items():
        if given.get(name):
            wanted.texts[column] = {
                word.lower() if column in ANY_CASE else word for word in given[name]
            }
    if given.get("licenses"):
        wanted.licenses = set(given["licenses"])
    if given.get("nodelist"):
        wanted.nodes = _host_names(options["nodelist"] or "", context)
    if "me" in options:
        wanted.users = [os.getuid()]
    return wanted


def read_jobs(text: str | None, context: "Context") -> list[tuple[int, int | None]]:
    """The jobs of a list, with the task that it names.

    Raises:
        EndedError: one is no job.
    """
    return [_read_job(word, context) for word in _words(text)]


def read_steps(text: str | None, context: "Context") -> None:
    """Complain of what is no step.

    Raises:
        EndedError: one is none.
    """
    if not text:
        return
    from understudy.commands.squeue.steps import BadStepError, read_steps

    try:
        read_steps(text)
    except BadStepError as error:
        context.error(f"Invalid job_step id: {error}")
        raise EndedError from None


def read_users(text: str | None, context: "Context") -> None:
    """Complain of users whom nobody knows."""
    for word in _words(text):
        if not _user_id(word)[1]:
            context.error(f"Invalid user: {word}\n")


def _read_job(word: str, context: "Context") -> tuple[int, int | None]:
    number, behind = split_number(word)
    if number <= 0:
        context.error(f"Invalid job id: {word}")
        raise EndedError
    # a component stands for its whole job; of what else follows nothing counts
    if not behind.startswith("_"):
        return number, None
    return number, leading_number(behind[1:]) if behind[1:2].isdigit() else -1


def _read_states(text: str, wanted: Filter, context: "Context") -> None:
    wanted.states = []
    if text.lower() == "all":
        wanted.all_states = True
        return
    for word in _words(text):
        state = job_state_from(word)
        if state is None:
            context.error(f"Invalid job state specified: {word}")
            context.error("Valid job states include: " + ",".join(state_names()) + "\n")
            raise EndedError
        wanted.states.append(state)


def state_names() -> list[str]:
    """All states in the order in which squeue lists them."""
    flags = [
        "COMPLETING",
        "CONFIGURING",
        "RESIZING",
        "RESV_DEL_HOLD",
        "REQUEUED",
        "REQUEUE_FED",
        "REQUEUE_HOLD",
        "REVOKED",
        "SIGNALING",
    ]
    flags += ["SPECIAL_EXIT", "STAGE_OUT", "STOPPED"]
    assert {name for _, name, _ in JOB_FLAGS} == set(flags)
    return [name for name, _ in JOB_STATES] + flags


def _user_id(word: str) -> tuple[int | None, bool]:
    """The number of a user, and whether this host knows it."""
    import pwd

    if word.isdigit():
        try:
            pwd.getpwuid(int(word))
        except (KeyError, OverflowError):
            return int(word), False  # an emulated cluster has users whom this host does not know
        return int(word), True
    try:
        return pwd.getpwnam(word).pw_uid, True
    except KeyError:
        return None, False


def _host_names(text: str, context: "Context") -> set[str]:
    from understudy.model.hostlist import expand_typed

    try:
        return set(expand_typed(text))
    except ValueError as error:
        what, _, rest = str(error).partition("'")
        if what in {"Invalid range: ", "Too many hosts in range "}:
            wrong = rest.split("'")[0]
            context.error(f"_parse_single_range: {what}`{wrong}'")
        context.error(f"'{text}' invalid entry for --nodelist")
        raise EndedError from None


def check_nodes(text: str | None, context: "Context") -> None:
    """Complain of a node that the cluster does not have.

    Raises:
        EndedError: there is one, or nobody knows.
    """
    if not text:
        return
    names = _host_names(text, context)
    try:
        known = {row[0] for row in context.client.query("nodes", ["name"]).rows}
    except RefusedError as error:
        context.complain(f"slurm_load_node error: {error.text}")
        raise EndedError from None
    for name in sorted(names - known):
        context.error(f"Invalid node name {name}")
        raise EndedError


def read_interval(text: str | None, context: "Context") -> int | None:
    if text is None:
        return None
    number = leading_number(text)
    if number <= 0:
        context.error(f"--iterate={text}\n")
        raise EndedError
    return number
