"""scontrol's create and update of reservations. Follows scontrol(1) of 22.05, "RESERVATIONS".

Place: under scontrol. Keys may be written in any case and shortened; what is checked here is what
Slurm's scontrol checks before it asks the controller, in its words.
"""

from understudy.commands.scontrol.words import UNEXPECTED, full_key
from understudy.commands.shared.client import UNANSWERED, RefusedError
from understudy.commands.shared.context import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# In the order in which an abbreviation is looked up, with the letters that suffice.
KEYS = (
    ("ReservationName", 1),
    ("StartTime", 1),
    ("EndTime", 1),
    ("Duration", 1),
    ("Flags", 2),
    ("NodeCnt", 5),
    ("NodeCount", 5),
    ("CoreCnt", 5),
    ("CoreCount", 5),
    ("Nodes", 5),
    ("Features", 2),
    ("Licenses", 1),
    ("PartitionName", 1),
    ("Users", 1),
    ("Groups", 1),
    ("Accounts", 1),
    ("BurstBuffer", 2),
    ("Watts", 1),
    ("TRES", 1),
    ("MaxStartDelay", 1),
)
_NO_CORES = (
    "CoreCnt or CPUCnt is only supported when SelectType includes select/cons_res or "
    "SelectTypeParameters includes OTHER_CONS_RES on a Cray."
)
_SAME_KEY = {"nodecount": "nodecnt", "corecount": "corecnt"}
_LISTS = ("users", "groups", "accounts", "flags", "duration")
_SCALES = {"k": 1024, "m": 1024 * 1024}
_COUNTED_TRES = {"cpu": "corecnt", "node": "nodecnt"}
_OTHER_TRES = frozenset(("mem", "energy", "billing", "fs/disk", "vmem", "pages"))
_ONCE = frozenset(("users", "groups", "accounts"))
BUSY = 2016
NOTE = """Note, unless nodes are directly requested a reservation must exist in a single partition.
If no partition is requested the default partition is assumed."""


class _RefusedInputError(Exception):
    """Input that makes no sense; what to say has been said."""


def create(words: "Sequence[str]", context: Context) -> int:
    """`scontrol create reservation ...`, without that word."""
    try:
        name, changes = _read(words, context, "No reservation created.")
        _check_new(changes, context)
        answer = context.client.call("UpdateReservation", "create", name, changes)
    except _RefusedInputError:
        return 1
    except RefusedError as error:
        context.complain(
            "Error creating the reservation: "
            f"{UNEXPECTED if error.code in UNANSWERED else error.text}"
        )
        if error.code == BUSY:
            context.print(NOTE)
        return 1
    context.print(f"Reservation created: {answer[0]}")
    return 0


def update(words: "Sequence[str]", context: Context) -> int:
    """`scontrol update reservationname=...`."""
    try:
        given = words if "=" in words[0] else words[1:]  # without the bare word `reservation`
        name, changes = _read(given, context, "No reservation update.")
        context.client.call("UpdateReservation", "update", name, changes)
    except _RefusedInputError as refused:
        context.complain(f"slurm_update error: {refused.args[0] if refused.args else 'No error'}")
        return 1
    except RefusedError as error:
        context.complain(f"Error updating the reservation: {error.text}")
        context.complain(f"slurm_update error: {error.text}")
        return 1
    context.print("Reservation updated.")
    return 0


def _refuse(context: Context, text: str) -> None:
    context.error(text)
    raise _RefusedInputError


def _key(word: str) -> str | None:
    found = full_key(word, KEYS)
    return None if found is None else _SAME_KEY.get(found, found)


def _read(words: "Sequence[str]", context: Context, outcome: str) -> tuple[str, dict[str, str]]:
    """(name, changes as the controller takes them)."""
    name = ""
    changes: dict[str, str] = {}
    now: float | None = None
    for word in words:
        if word.lower() == "skip":
            changes["skip"] = ""
            continue
        written, equals, value = word.partition("=")
        if not equals:
            _refuse(
                context,
                f"Misformatted parameter '{word}', most options have a parameter after "
                f"'='.  {outcome}",
            )
        sign = written[-1:] if written[-1:] in {"+", "-"} else ""
        key = _key(written.rstrip("+-"))
        if key is None:
            _refuse(context, f"Unknown parameter {word}.  {outcome}")
        assert key is not None
        if key in {"nodecnt", "corecnt"}:
            _read_counts(key, value, changes, context)
        if sign and key not in (*_LISTS, "starttime", "endtime", "reservationname"):
            _refuse(
                context,
                f"The +=/-= notation is not supported when updating {written[:-1]}.  {outcome}",
            )
        if key == "reservationname":
            name = value
        elif key in {"starttime", "endtime"}:
            if now is None:
                # the cluster's clock, which may be a virtual one
                now = context.client.query("ping", ["host"]).now
            changes[key] = _time(key, value, now, word, context, outcome)
        elif key in {"duration", "maxstartdelay"}:
            changes[key + sign] = _duration(key, value, word, context, outcome)
        elif key == "watts" and not _is_power(value):
            _refuse(context, f"Invalid Watts value: {value}")
        elif key == "tres":
            _read_tres(value, changes, context)
        elif key == "flags" and value:
            changes[key + sign] = _flags(value, sign, context, outcome)
        elif key not in {"flags", "nodecnt", "corecnt"}:
            if key in _ONCE and any(each.rstrip("+-") == key for each in changes):
                _refuse(context, f"Parameter {word} specified more than once")
            changes[key + (sign if key in _LISTS else "")] = value
    return name, changes


def _gives_whole_nodes(context: Context) -> bool:
    """Whether the cluster gives no cores, as select/linear does not."""
    known = dict(context.client.query("config", ["name", "value"]).rows)
    return bool(known.get("SelectType") == "select/linear")


def _read_counts(key: str, value: str, changes: dict[str, str], context: Context) -> None:
    """Numbers at commas, of nodes also in thousands (`2k`); none at all says nothing. A negative
    count of cores is one of 32 bits: more than there are.
    """
    if key == "corecnt" and _gives_whole_nodes(context):
        _refuse(context, _NO_CORES)
    counts = []
    for part in filter(None, value.split(",")):
        text = part.removeprefix("+")
        digits = text.rstrip("kKmM") if key == "nodecnt" else text.removeprefix("-")
        if not digits.isdecimal():
            _refuse(context, f"Invalid {'node' if key == 'nodecnt' else 'core'} count {value}")
        scale = _SCALES.get(text[-1].lower(), 1)
        counts.append(str(int(text.rstrip("kKmM")) * scale & 0xFFFFFFFF))
    if counts:
        changes[key] = ",".join(counts)


def _time(key: str, value: str, now: float, word: str, context: Context, outcome: str) -> str:
    from understudy.model.moments import not_understood_from, parse_time

    if not value:
        return "0"
    try:
        return str(parse_time(value, now))
    except ValueError:
        context.complain(f"Invalid time specification (pos={not_understood_from(value)}): {value}")
        context.error(f"Invalid {key.removesuffix('time')} time {word}.  {outcome}")
        raise _RefusedInputError("Invalid time specified") from None


def _duration(key: str, value: str, word: str, context: Context, outcome: str) -> str:
    from understudy.model.times import as_int, parse_limit

    try:
        seconds = parse_limit(value)
    except ValueError:
        _refuse(context, f"Invalid duration {word}.  {outcome}")
    if seconds is None and key == "duration":
        return value
    # counted in 32 bits with a sign, and of Duration rounded up to minutes in as many
    rest = -1 if seconds is None else as_int(seconds)
    if key == "duration":
        rest = as_int(rest + 59)
    if rest < 0 and (key != "duration" or rest <= -60):
        _refuse(context, f"Invalid duration {word}.  {outcome}")
    return "0" if rest < 0 else value


def _flags(value: str, sign: str, context: Context, outcome: str) -> str:
    from understudy.model.reservations import read_flags

    text = ",".join(f"-{flag.lstrip('-')}" for flag in value.split(",")) if sign == "-" else value
    try:
        read_flags(text)
    except ValueError:
        _refuse(context, f"Error parsing flags {text}.  {outcome}")
    return text


def _is_power(text: str) -> bool:
    return text.lower() in ("", "n/a") or text.rstrip("kKmM").isdecimal()


def _read_tres(value: str, changes: dict[str, str], context: Context) -> None:
    """`TRES=cpu=4,node=1`: another way to write counts."""
    for part in filter(None, value.split(",")):
        name, _, count = part.partition("=")
        if not count:
            _refuse(context, f"invalid TRES '{name}'")
        kind = name.lower()
        if kind in _OTHER_TRES:
            _refuse(context, f"TRES type '{kind}' not supported with reservations")
        if kind not in _COUNTED_TRES:
            _refuse(context, f"couldn't identify configured TRES '{name}'")
        if not count.isdecimal():
            _refuse(
                context,
                f"invalid TRES cpu value '{count}'"
                if kind == "cpu"
                else f"Invalid TRES node count {count}",
            )
        changes[_COUNTED_TRES[kind]] = count


def _check_new(changes: dict[str, str], context: Context) -> None:
    """What a new reservation must have."""
    outcome = "No reservation created."
    if "starttime" not in changes:
        _refuse(context, f"A start time must be given.  {outcome}")
    if "endtime" not in changes and "duration" not in changes:
        _refuse(context, f"An end time or duration must be given.  {outcome}")
    start = int(changes["starttime"])
    if "endtime" in changes:
        end = int(changes["endtime"])
        if "duration" in changes:
            from understudy.model.times import parse_limit_in_minutes

            if parse_limit_in_minutes(changes["duration"]) != end - start:
                _refuse(context, f"StartTime + Duration does not equal EndTime.  {outcome}")
        if end < start:
            _refuse(context, f"Start time cannot be after end time.  {outcome}")
    from understudy.model.reservations import PART_NODES, read_flags

    flags = read_flags(changes["flags"])[0] if changes.get("flags") else 0
    counts = any(int(changes.get(key, "0").partition(",")[0]) for key in ("nodecnt", "corecnt"))
    is_empty = "watts" not in changes and not (
        counts
        or "corecnt" in changes  # none, too, which the controller then does not find
        or any(changes.get(key) for key in ("nodes", "burstbuffer", "licenses"))
    )
    if changes.get("partitionname") == "":
        raise RefusedError(0, "Invalid partition name specified")
    if is_empty and "partitionname" in changes and not flags & PART_NODES:
        changes["nodes"] = "ALL"  # a partition alone means all of its nodes
        changes["flags"] = ",".join(filter(None, (changes.get("flags"), "PART_NODES")))
    elif is_empty and not flags & PART_NODES:
        _refuse(
            context,
            "CoreCnt, Nodes, NodeCnt, BurstBuffer, Licenses or Watts must be specified.  "
            f"{outcome}",
        )
    if not any(changes.get(key) for key in ("users", "groups", "accounts")):
        _refuse(context, f"Either Users/Groups and/or Accounts must be specified.  {outcome}")
    if changes.get("users") and changes.get("groups"):
        _refuse(
            context,
            "Users and Groups are mutually exclusive.  You can have one or the other, "
            f"but not both.  {outcome}",
        )
    if "watts" in changes and (counts or changes.get("nodes")):
        _refuse(
            context, f"A power reservation must be empty and set the LICENSE_ONLY flag.  {outcome}"
        )
    if flags & PART_NODES and not (
        changes.get("partitionname") and changes.get("nodes", "").upper() == "ALL"
    ):
        _refuse(
            context, f"PART_NODES flag requires specifying a Partition and ALL nodes.  {outcome}"
        )
