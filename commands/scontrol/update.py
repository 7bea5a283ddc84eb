"""scontrol's update, create and delete, and what it does to jobs as a whole (hold, release, requeue
...). Follows scontrol(1) of 22.05.

Place: under scontrol. Keys may be written in any case and shortened as long as they say which; what
is checked here is what Slurm's scontrol checks before it asks the controller.
"""

from understudy.commands.scontrol.words import (
    HOLDS,
    INVALID_NODE,
    NODES_BUSY,
    RefusedInputError,
    check_limit,
    full_key,
    is_reservation,
    jobs_in,
    pairs,
    say_results,
    say_unreachable,
)
from understudy.commands.shared.client import RefusedError
from understudy.commands.shared.context import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.commands.scontrol.session import Session

# With how many letters of it must be written at least.
NODE_KEYS = (
    ("ActiveFeatures", 3),
    ("AvailableFeatures", 3),
    ("Comment", 2),
    ("CpuBind", 7),
    ("Extra", 1),
    ("Features", 1),
    ("Gres", 1),
    ("NodeAddr", 5),
    ("NodeHostName", 5),
    ("Reason", 1),
    ("State", 1),
    ("Weight", 1),
)
PARTITION_KEYS = (
    ("AllocNodes", 6),
    ("AllowAccounts", 6),
    ("AllowGroups", 6),
    ("AllowQos", 6),
    ("Alternate", 3),
    ("CpuBind", 7),
    ("Default", 7),
    ("DefaultTime", 8),
    ("DefMemPerCPU", 10),
    ("DefMemPerNode", 10),
    ("DenyAccounts", 5),
    ("DenyQos", 5),
    ("DisableRootJobs", 1),
    ("ExclusiveUser", 1),
    ("GraceTime", 5),
    ("Hidden", 1),
    ("JobDefaults", 4),
    ("LLN", 1),
    ("MaxCPUsPerNode", 4),
    ("MaxMemPerCPU", 10),
    ("MaxMemPerNode", 10),
    ("MaxNodes", 4),
    ("MaxTime", 4),
    ("MinNodes", 2),
    ("Nodes", 1),
    ("OverSubscribe", 5),
    ("OverTimeLimit", 5),
    ("PreemptMode", 3),
    ("Priority", 3),
    ("PriorityJobFactor", 9),
    ("PriorityTier", 9),
    ("QoS", 3),
    ("ReqResv", 3),
    ("RootOnly", 3),
    ("Shared", 2),
    ("State", 2),
    ("TresBillingWeights", 1),
)
_FRONTEND_KEYS = (("FrontendName", 1), ("Reason", 1), ("State", 1))
# Keys that one may write but that mean another.
_SAME_KEY = {"shared": "oversubscribe"}
NODE_STATES = (
    "DOWN", "IDLE", "ALLOCATED", "MIXED", "FUTURE", "UNKNOWN", "DRAIN", "FAIL", "NORESP",
    "NORESPOND", "POWER_DOWN", "POWER_DOWN_ASAP",
    "POWER_DOWN_FORCE", "POWER_UP", "RESUME", "UNDRAIN", "CANCEL_REBOOT",
)  # fmt: skip
_MOST_WEIGHT = 4_294_967_280
_NEED_REASON = ("DOWN", "DRAIN", "FAIL")
_PARTITION_STATES = ("UP", "DOWN", "DRAIN", "INACTIVE")
# What one may update, each by the names of its key (enough letters of it). Any of the words may say
# which it is; the first here that one says counts.
_ENTITIES = (
    ("job", "jobid", 3),
    ("job", "jobname", 4),
    ("step", "stepid", 4),
    ("reservation", "reservationname", 3),
    ("node", "nodename", 3),
    ("frontend", "frontendname", 2),
    ("partition", "partitionname", 3),
    ("debug", "slurmctlddebug", 2),
)


def update(words: "Sequence[str]", session: "Session") -> int:
    """`scontrol update ...`. What it is that is changed, any of the words may say."""
    context = session.context
    if words[0].lower().startswith("res") and "=" not in words[0]:
        from understudy.commands.scontrol.reservation import update as update_reservation

        return update_reservation(words, context)
    keys = [key.lower() for key, _, _ in pairs(words)]
    kind = next(
        (
            kind
            for kind, name, least in _ENTITIES
            if any(len(key) >= least and name.startswith(key) for key in keys)
        ),
        "",
    )
    try:
        if kind == "node":
            return _update_nodes(list(words), session)
        if kind == "partition":
            return _update_partition(list(words), session)
        if kind == "job":
            from understudy.commands.scontrol.update_job import update_jobs

            return update_jobs(list(words), session)
        if kind == "step":
            return _update_step(list(words), session)
    except RefusedInputError as error:
        return error.code
    except RefusedError as error:
        # but for jobs, this is told though it is to be quiet
        (session if kind == "job" else context).complain(f"slurm_update error: {error.text}")
        return 1
    if kind == "reservation":
        from understudy.commands.scontrol.reservation import update as update_reservation

        return update_reservation(words, context)
    if kind == "frontend":
        return _update_frontend(words, session)
    if kind == "debug":
        from understudy.commands.scontrol.daemons import level_of, set_level

        level = words[0].partition("=")[2]
        if level_of(level) is None or not level.isdigit():
            session.complain(f"invalid debug level: {level}")
            context.complain("slurm_update error: No error")
            return 1
        return set_level(session, level, "slurm_update error")
    context.complain("No valid entity in update command")
    context.complain(
        'Input line must include "NodeName", "PartitionName", "Reservation", "JobId", or '
        '"SlurmctldDebug"'
    )
    return 1


def _update_frontend(words: "Sequence[str]", session: "Session") -> int:
    """There are no front ends."""
    values: dict[str, str] = {}
    for word, (key, _, value) in zip(words, pairs(words), strict=True):
        known = full_key(key, _FRONTEND_KEYS)
        if known is None:
            session.context.complain(f"Update of this parameter is not supported: {word}")
            session.context.complain("Request aborted")
            return 1
        values[known] = value.lower()
    if values.get("state", "").startswith(("down", "drain")) and not values.get("reason"):
        session.context.complain(
            "You must specify a reason when DOWNING or DRAINING a frontend node"
        )
        session.context.complain("Request aborted")
        return 1
    session.context.complain("slurm_update error: Invalid node name specified")
    return 1


def _update_step(words: "list[str]", session: "Session") -> int:
    """The time limit of a step, or of all of a job's."""
    context = session.context
    job, step, limit = "", "", None
    for position, (key, sign, value) in enumerate(pairs(words)):
        lowered = key.lower()
        if len(lowered) > 3 and "stepid".startswith(lowered):
            job, _, step = value.partition(".")
            if not job.isdigit():
                context.complain(f"Invalid StepID parameter: {words[position]}")
                context.complain("Request aborted")
                return 1
        elif len(lowered) > 1 and "timelimit".startswith(lowered):
            check_limit(value.removeprefix("+").removeprefix("-"), context)
            limit = sign + value
        else:
            context.complain(f"Update of this parameter is not supported: {words[position]}")
            context.complain("Request aborted")
            return 1
    if limit is None:
        context.complain("No changes specified")
        return 1
    context.client.call("UpdateStep", job, step, limit)
    return 0


def _update_nodes(words: list[str], session: "Session") -> int:
    context = session.context
    nodes = ""
    changes: dict[str, str] = {}
    for position, (key, sign, value) in enumerate(pairs(words)):
        if "=" not in words[position]:
            context.error(f"Invalid input: {words[position]}  Request aborted")
            raise RefusedError(0, "No error")
        if "nodename".startswith(key.lower()):
            nodes = value
            continue
        known = full_key(key, NODE_KEYS)
        if known == "weight":
            try:
                changes[known] = str(_weight(value))
            except ValueError as error:
                context.error(f"Weight value ({value}) is {error}")
                break  # the other words are not looked at
            continue
        if known is None or sign:
            context.complain(f"Update of this parameter is not supported: {words[position]}")
            context.complain("Request aborted")
            return 1
        if known == "cpubind" and (wrong := _cpu_binding(value, words[position])):
            context.error(wrong)
            raise RefusedError(0, "No error")
        changes[known] = _node_state(value, words[position], context) if known == "state" else value
    if changes.get("state") in _NEED_REASON and not changes.get("reason"):
        context.complain(
            "You must specify a reason when DOWNING or DRAINING a node. Request denied"
        )
        return 1
    if not changes:
        context.complain("No changes specified")
        return 1
    context.client.call("UpdateNodes", nodes, changes)
    return 0


def _node_state(value: str, word: str, context: Context) -> str:
    wanted = value.upper()
    state = (
        wanted
        if wanted in NODE_STATES
        else next(
            (name for name in NODE_STATES if len(wanted) > 2 and name.startswith(wanted)), None
        )
    )
    if state is None:
        context.complain(f"Invalid input: {word}")
        context.complain("Request aborted")
        context.complain(
            "Valid states are: NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN"
        )
        context.complain("Not all states are valid given a node's prior state")
        raise RefusedInputError
    return state


_MOST_OF_64_BITS = (1 << 63) - 1


def _number(
    name: str, most: int = 0xFFFFFFFD, *, takes_unlimited: bool = False
) -> "Callable[[str, str], str]":
    """A whole number, of which there may be nothing but a plus; or UNLIMITED."""

    def check(value: str, _word: str) -> str:
        digits = value.removeprefix("+") or "0"
        if (takes_unlimited and value.lower() in {"unlimited", "infinite"}) or (
            digits.isdigit() and int(digits) <= most
        ):
            return ""
        return f"Invalid {name} value: {value}"

    return check


def _weight(value: str) -> int:
    """`5`, `+5`, `1k`; nothing is 0.

    Raises:
        ValueError: it is none; the text says what it is.
    """
    digits = value.lstrip("+-")
    number = digits[:-1] if digits[-1:] in {"k", "K"} else digits
    if value and not (number.isdigit() and len(value) - len(digits) < 2):
        raise ValueError("not a valid number")
    if value[:1] == "-":
        raise ValueError("less than zero")
    weight = int(number or 0) * (1 if number == digits else 1024)
    if weight > _MOST_WEIGHT:
        raise ValueError(f"greater than {_MOST_WEIGHT}")
    return weight


def _cpu_binding(value: str, word: str) -> str:
    from understudy.model.cpu_binding import cpu_binding

    try:
        cpu_binding(value)
    except ValueError:
        return f"Invalid input {word}"
    return ""


def _one_of(name: str, allowed: "Sequence[str]", known: str) -> "Callable[[str, str], str]":
    def check(value: str, word: str) -> str:
        given = value.upper().partition(":")[0]
        if given in allowed or (
            name == "State" and given and any(each.startswith(given) for each in allowed)
        ):
            return ""
        return f"Invalid input: {word}\nAcceptable {name} values are {known}"

    return check


def _time(value: str, word: str) -> str:
    from understudy.model.times import parse_limit

    try:
        parse_limit(value)
    except ValueError:
        return f"Invalid input {word}"
    return ""


def _preempt_mode(value: str, word: str) -> str:
    allowed = {"OFF", "CANCEL", "GANG", "REQUEUE", "SUSPEND", "WITHIN"}
    return (
        "" if {each.upper() for each in value.split(",")} <= allowed else f"Invalid input: {word}"
    )


_YES_OR_NO = ("YES", "NO")
_PARTITION_SWITCHES = (
    "Default",
    "Hidden",
    "RootOnly",
    "ReqResv",
    "LLN",
    "ExclusiveUser",
    "DisableRootJobs",
)
# Keys of partitions whose values are looked at before the controller is asked. What to say, one
# error a line; "" if it is well.
_PARTITION_CHECKS = {
    "cpubind": _cpu_binding,
    "state": _one_of("State", _PARTITION_STATES, "UP, DOWN, DRAIN and INACTIVE"),
    "maxtime": _time,
    "defaulttime": _time,
    "preemptmode": _preempt_mode,
    "oversubscribe": _one_of(
        "OverSubscribe", ("NO", "EXCLUSIVE", "YES", "FORCE"), "NO, EXCLUSIVE, YES:#, and FORCE:#"
    ),
    **{name.lower(): _one_of(name, _YES_OR_NO, "YES and NO") for name in _PARTITION_SWITCHES},
    **{
        name.lower(): _number(name, 65533)
        for name in ("Priority", "PriorityTier", "PriorityJobFactor")
    },
    "gracetime": _number("GraceTime"),
    "overtimelimit": _number("OverTimeLimit", 65533, takes_unlimited=True),
    "maxcpuspernode": _number("MaxCPUsPerNode", takes_unlimited=True),
    **{
        name.lower(): _number(name, _MOST_OF_64_BITS - 1)
        for name in ("DefMemPerCPU", "DefMemPerNode", "MaxMemPerCPU", "MaxMemPerNode")
    },
}

_NUMBERS = frozenset((
    *("priority", "prioritytier", "priorityjobfactor", "gracetime", "overtimelimit"),
    *("maxcpuspernode", "defmempercpu", "defmempernode", "maxmempercpu", "maxmempernode"),
))  # fmt: skip


_SWITCHES = frozenset(map(str.lower, _PARTITION_SWITCHES))
_NO_COUNT = "4294967295"  # what 22.05.8 makes of a word
_BITS, _MOST_NODES = 0xFFFFFFFF, 0x7FFFFFFF


def _most_nodes(value: str, context: Context) -> "str | None":
    """Of `2-4` the first. None for what is no number, which is said; the other changes are made all
    the same.
    """
    if value.lower() in {"unlimited", "infinite"}:
        return value
    counts = [_count(part) for part in value.split("-", 1)] if value else [1]
    if None in counts:
        context.error(f'Invalid numeric value "{value}" for MaxNodes.')
        return None
    for count in counts:
        if count is not None and count > _MOST_NODES:
            context.error(f"Numeric argument ({count}) to big for MaxNodes.")
            return None
    return str(counts[0])


def _least_nodes(value: str, context: Context) -> str:
    """Of `2-4` the first. What is no number is said, and changes it all the same; a large one has
    32 bits with a sign.
    """
    least, dash, most = value.partition("-")
    text = least or "1" if dash else least
    number = _count(text)
    if number is None or (not dash and _signed(number) < 0):
        context.error(f'"{text}" is not a valid node count')
        digits = text[: len(text) - len(text.lstrip("0123456789"))]
        return str(int(digits) & _BITS) if digits else _NO_COUNT
    number = _signed(number)
    last = _count(most) if most else -1
    if dash and last is not None and _signed(last) < number:
        context.error(
            f"Maximum node count {_signed(last)} is less than minimum node count {number}"
        )
    return str(number if number >= 0 else 1)


def _signed(number: int) -> int:
    return (number + _MOST_NODES + 1 & _BITS) - _MOST_NODES - 1


def _count(text: str) -> int | None:
    """A number of nodes; None if it is none. A k behind it stands for 1024, an m for 1024 k."""
    unit = {"k": 1 << 10, "m": 1 << 20}.get(text[-1:].lower(), 1)
    digits = (text if unit == 1 else text[:-1]).lstrip().removeprefix("+")
    return int(digits) * unit if digits.isdecimal() else None


def _partition_changes(words: list[str], context: Context) -> tuple[str, dict[str, str], int]:
    """The partition's name, what is to change, and what the command ends with."""
    name, code = "", 0
    changes: dict[str, str] = {}
    for position, (key, sign, value) in enumerate(pairs(words)):
        word = words[position]
        if "=" not in word:
            context.error(f"Invalid input: {word}  Request aborted")
            raise RefusedError(0, "No error")
        if len(key) > 1 and "partitionname".startswith(key.lower()):
            name = value
            continue
        known = None if sign else full_key(key, PARTITION_KEYS)
        if known is None:
            context.error(f"Update of this parameter is not supported: {word}\n")
            context.error("Request aborted")
            raise RefusedError(0, "No error")
        known = _SAME_KEY.get(known, known)
        if known == "maxnodes":
            most = _most_nodes(value, context)
            if most is None:
                code = 1
                continue
            value = most  # noqa: PLW2901
        elif known == "minnodes":
            value = _least_nodes(value, context)  # noqa: PLW2901
        wrong = _PARTITION_CHECKS[known](value, word) if known in _PARTITION_CHECKS else ""
        if wrong:
            for line in wrong.split("\n"):
                context.error(line)
            digits = value.lstrip("+-")
            is_large = digits.isdigit() and int(digits) > _MOST_OF_64_BITS
            raise RefusedError(0, "Numerical result out of range" if is_large else "No error")
        if known == "state":
            changes[known] = next(
                each for each in _PARTITION_STATES if each.startswith(value.upper())
            )
        elif known in _NUMBERS:
            changes[known] = value.removeprefix("+") or "0"
        elif known not in _SWITCHES or changes.get(known, "").lower() != "yes":  # a YES holds
            changes[known] = value
    return name, changes, code


def _update_partition(words: list[str], session: "Session") -> int:
    name, changes, code = _partition_changes(words, session.context)
    if not changes and not code:
        session.context.error("No changes specified")
        return 1
    session.context.client.call("UpdatePartition", "update", name, changes)
    return code


def create(words: "Sequence[str]", session: "Session") -> int:
    """`scontrol create partition=... | reservation ... | nodename=...`."""
    context = session.context
    keys = [word.partition("=")[0].lower() for word in words]
    if len(keys[0]) >= 4 and "nodename".startswith(keys[0]):
        return _create_nodes(words, session)
    what = next((key for key in keys if key.startswith("part") or is_reservation(key)), "")
    if not what:
        context.error(f"Invalid creation entity: {words[0]}")
        return 1
    if what.startswith("res"):
        from understudy.commands.scontrol.reservation import create as create_reservation

        words = [word for word in words if not is_reservation(word)]
        return create_reservation(words, context)
    if not keys[0].startswith("part"):
        bare = next((word for word in words if "=" not in word), None)
        if bare is not None:
            context.error(f"Invalid input: {bare}  Request aborted")
            return 1
    elif "=" not in words[0]:
        if len(words) == 1 or "=" not in words[1] or not words[1].lower().startswith("part"):
            context.error(f"Invalid input: {words[0]}  Request aborted")
            return 1
        words = words[1:]
    try:
        name, changes, code = _partition_changes(list(words), context)
        context.client.call("UpdatePartition", "create", name, changes)
    except RefusedError as error:
        if error.code:
            context.complain(f"Error creating the partition: {error.text}")
        return 1
    return code


# What one may say of a new node, as on a line of slurm.conf. True: a number.
_NEW_NODE_KEYS = {
    "nodename": False, "state": False, "feature": False, "features": False, "gres": False,
    "nodeaddr": False, "nodehostname": False, "reason": False,
    "bcastaddr": False, "cpubind": False, "cpuspeclist": False, "restrictcorestocpu": False,
    "sockets": True, "cpus": True, "procs": True,
    "realmemory": True, "weight": True, "boards": True, "socketsperboard": True,
    "corespersocket": True, "threadspercore": True, "tmpdisk": True,
    "memspeclimit": True, "corespeccount": True, "port": False, "tresweights": False,
}  # fmt: skip


def _create_nodes(words: "Sequence[str]", session: "Session") -> int:
    context = session.context
    parts = [(key.lower(), value) for key, _, value in pairs(words)]
    values = dict(parts)
    is_good = (
        all("=" in word for word in words)
        and parts[0][0] == "nodename"
        and bool(values.get("nodename"))
    )
    for key, value in parts:
        is_good = is_good and key in _NEW_NODE_KEYS and (not _NEW_NODE_KEYS[key] or value.isdigit())
    if not is_good:
        context.error(f"Failed to parse nodeline '{' '.join(words)}'")
        context.complain("Error creating the node(s): Unspecified error")
        return 1
    if values.get("state", "").upper() not in {"FUTURE", "CLOUD"}:
        context.error("Only State=FUTURE and State=CLOUD allowed for nodes created by scontrol")
        context.complain("Error creating the node(s): Invalid node state specified")
        return 1
    try:
        context.client.call("ChangeNodeTable", "create", values["nodename"], values["state"])
    except RefusedError as error:
        context.complain(f"Error creating the node(s): {error.text}")
        return 1
    return 0


def delete(words: "Sequence[str]", session: "Session") -> int:
    """`scontrol delete partition=... | reservation=...`, or the entity and its name as two
    words.
    """
    context = session.context
    typed, equals, name = words[0].partition("=")
    if not equals:
        name = words[1] if len(words) > 1 else ""
    if equals and len(words) > 1:
        context.complain(f"Invalid deletion entity: {words[0]}")
        return 1
    if not equals and (not name or len(words) > 2):
        context.error("Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'")
        return 1
    key = typed.lower()
    try:
        if len(key) > 2 and "reservationname".startswith(key):
            what = "reservation"
            context.client.call("UpdateReservation", "delete", name, {})
        elif len(key) > 2 and "partitionname".startswith(key):
            what = "partition"
            context.client.call("UpdatePartition", "delete", name, {})
        elif len(key) > 2 and "nodename".startswith(key):
            what = "node"
            try:
                context.client.call("ChangeNodeTable", "delete", name)
            except RefusedError as error:
                if name and error.code in {INVALID_NODE, NODES_BUSY}:
                    context.error(f"failed to delete nodes {_sorted_names(name)}")
                raise
        else:
            context.complain(f"Invalid deletion entity: {words[0]}")
            return 1
    except RefusedError as error:
        context.complain(f"delete_{what} {words[0]}: {error.text}")
        return 1
    return 0


def _sorted_names(expression: str) -> str:
    from understudy.model.hostlist import compress, expand

    try:
        return compress(expand(expression), sort=True)
    except ValueError:
        return expression


def control(action: str, words: "Sequence[str]", session: "Session") -> int:
    """`hold`, `release`, `requeue` and the like, for jobs by number, `JobId=N` or, to hold and
    release, `JobName=x`.
    """
    context = session.context
    asked: list[tuple[list[str], dict[str, list[str]]]] = []
    options: list[str] = []
    for word in words:
        key, equals, value = word.partition("=")
        if equals and action in HOLDS and key.lower() in {"jobname", "name"}:
            asked.append(([], {"name": [value]}))
            continue
        if option := _requeue_option(word) if action in _REQUEUES else "":
            options.append(option)
            continue
        chosen = value if equals and key.lower() in {"job", "jobid"} else word
        jobs = [chosen] if action == "top" else jobs_in(chosen)
        if jobs:
            asked.append((jobs, {}))
    code = 0
    for jobs, where in asked:
        try:
            code |= say_results(
                session,
                context.client.call("ControlJobs", action, jobs, where, options)[0],
                action=action,
            )
        except RefusedError as error:
            if jobs:
                code = say_unreachable(session, jobs, error, action=action)
            else:
                session.complain(f"slurm_suspend error: {error.text}")
                code = 1
    return code


_REQUEUES = frozenset(("requeue", "requeuehold"))


def _requeue_option(word: str) -> str:
    """What the word says of how jobs are requeued; "" for one that names jobs."""
    low = word.lower()
    if low and "incomplete".startswith(low):
        return "incomplete"
    return "special_exit" if low.startswith(("state=se", "state=specialexit")) else ""
