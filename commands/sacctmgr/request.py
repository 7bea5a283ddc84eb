"""The words behind sacctmgr add, modify and delete, read into one request.

Place: under sacctmgr. It knows what words mean (`words.py`), not what is done with them.
"""

from understudy.commands.sacctmgr import keys as sk
from understudy.commands.sacctmgr import words as sw
from understudy.commands.sacctmgr.texts import NOTHING_NEW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.commands.sacctmgr.session import Session

_END_WITH_SIGN = " Bad format on {}: End your option with an '=' sign"
_NO_NAMES_IN_SET = {  # what is said of a word in `set` that stands alone
    "account": " Can't modify the name of an account",
    "user": _END_WITH_SIGN,
    "job": _END_WITH_SIGN,
}
_TO_STDOUT = frozenset(("job", "qos", "resource"))  # where Slurm says what it does not know


class Request:
    """What the words ask for."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.set: dict[str, Any] = {}
        self.where: dict[str, list[Any]] = {}
        self.keys: set[str] = set()  # fields that words named, names aside
        self.is_well = True
        self.is_misread = False  # a word stands where none can

    def part(self, names: "frozenset[str]", *, others: bool = False) -> "Request":
        """The part of it that sets these fields, or the other ones."""
        part = Request()
        part.names, part.where = self.names, self.where
        part.set = {name: value for name, value in self.set.items() if (name in names) != others}
        part.keys = {name for name in self.keys if (name in names) != others}
        return part

    def is_complete(self, session: "Session", what: str) -> bool:
        """Whether it can be added; says so where nobody named it."""
        if self.is_well and not self.names:
            session.context.complain(f" Need name of {what} to add.")
        elif self.is_well and "" in self.names:
            session.context.print(NOTHING_NEW)
            session.context.complain(" No blank names are allowed when adding.")
            return False
        return self.is_well and bool(self.names)

    def is_new(self, session: "Session", what: str) -> bool:
        """The same of what `what`s is the table of; says which are there, and takes them out."""
        if not self.is_complete(session, what):
            return False
        known = {row[what] for row in session.table.rows(f"{what}s", [what])}
        for name in [name for name in self.names if name in known]:
            session.context.print(f" This {what} {name} already exists.  Not adding.")
            self.names.remove(name)
        return bool(self.names)


def read_addition(session: "Session", entity: str, words: list[str]) -> Request:
    """The words behind `add ENTITY`; `where` and `set` among them say nothing."""
    request = Request()
    for word in words:
        key, operator, value = sw.split_word(word)
        if not operator:
            if value.lower() not in {"where", "set"}:
                request.names += sw.names_in(value)
            continue
        place = sk.find_key(sk.ADDED_TO[entity], key)
        if place is not None and place.field == "names":
            request.names += sw.names_in(value)
        elif place is not None:
            request.where.setdefault(place.field, []).extend(
                sw.names_in(value, lower=place.kind == "names")
            )
            request.keys.add(place.field)
        elif (found := sk.find_key(sk.SET[entity], key)) is not None:
            _set(session, request, entity, found, operator, value, word, is_new=True)
        else:
            request.is_well = False
            if entity == "coordinator":
                session.context.complain(
                    f" Unknown condition: {word}\n Use keyword 'set' to modify value"
                )
            else:
                _unknown_option(session, entity, word, adds_user=entity == "user")
    return request


def read_words(session: "Session", entity: str, words: list[str], *, sets: bool) -> Request:
    """The words behind `modify ENTITY` or `delete ENTITY`."""
    request = Request()
    in_set = False
    hint = "SLURM_PRINT_VALUE" if entity in {"qos", "resource"} else "value"
    for word in words:
        key, operator, value = sw.split_word(word)
        if not operator:
            if value.lower() == "set":
                in_set = sets
            elif value.lower() == "where":
                in_set = False
            elif not in_set:
                request.where.setdefault("names", []).extend(sw.names_in(value))
            elif entity in _NO_NAMES_IN_SET:
                request.is_well, request.is_misread = False, True
                session.context.complain(_NO_NAMES_IN_SET[entity].format(value))
            continue
        in_set = in_set and key.lower() != "where"
        if in_set:
            found = sk.find_key((*sk.NEVER_SET.get(entity, ()), *sk.SET[entity]), key)
            if found is None:
                request.is_well = False
                _unknown_option(session, entity, word)
            elif found.kind == "fixed":
                request.is_well = False
                what = found.field.replace("_", " ")
                session.context.complain(f" Can't modify the {what}")
            else:
                _set(session, request, entity, found, operator, value, word)
            continue
        unknown = f" Unknown condition: {word}\n Use keyword 'set' to modify {hint}"
        place = sk.find_key(sk.WHERE[entity], key)
        if place is None:
            request.is_well = False
            session.context.complain(unknown)
            continue
        try:
            values = sw.read_condition(place, value, session.words, word)
            if error := sw.nothing_new(place.kind, request.where.get(place.field, []), values):
                raise error
        except sw.ValueRefusedError as error:
            refuse(session, error)
            request.is_well = False
            if place.kind == "known_qos":
                session.context.complain(unknown)
            continue
        if entity == "resource" and place.field == "clusters":
            strange = strange_clusters(session, values)
            request.is_well = request.is_well and not strange
            values = [name for name in values if name not in strange]
        if values:
            request.where.setdefault(place.field, []).extend(values)
    return request


def has_cluster(session: "Session", request: Request, what: str) -> bool:
    """Whether there is a cluster to add to, or the words name some; says so if not."""
    if request.where.get("clusters") or session.table.rows("clusters", ["name"]):
        return True
    session.context.complain(
        f"  Can't {what}, no cluster defined yet.\n Please contact your administrator."
    )
    return False


def strange_clusters(session: "Session", names: "list[str]") -> "list[str]":
    """Those that accounting does not know, which is said."""
    known = {row["name"] for row in session.table.rows("clusters", ["name"])}
    strange = [name for name in names if name not in known]
    for name in strange:
        session.context.complain(
            f" This cluster '{name}' doesn't exist.\n"
            "        Contact your admin to add it to accounting."
        )
    if strange and len(strange) == len(names):
        session.context.complain(" Need a valid cluster name to add a cluster resource.")
    return strange


def _set(
    session: "Session",
    request: Request,
    entity: str,
    key: sk.Key,
    operator: str,
    value: str,
    word: str,
    *,
    is_new: bool = False,
) -> None:
    """Take one word of `set` over."""
    try:
        read = sw.read_value(key, operator, value, word, session.words, session.context.error)
        if error := sw.nothing_new(key.kind, request.set.get(key.field) or [], read):
            raise error
    except sw.ValueRefusedError as error:
        refuse(session, error)
        if (
            key.kind == "classification"
            or (entity in {"qos", "resource"} and key.kind in {"number", "factor"})
            or (key.kind == "raw_usage" and error.text.startswith("Invalid"))
        ):
            return  # Slurm goes on as if it had not been there
        request.is_well = False
        if entity not in _TO_STDOUT and key.kind not in {
            "default_qos",
            "fed_state",
            "classification",
            "raw_usage",
        }:
            _unknown_option(session, entity, word, adds_user=is_new and entity == "user")
        return
    if key.kind == "ignored":
        return
    if key.kind == "raw_usage" and is_new:
        request.keys.add(key.field)  # what is new has used nothing
        return
    if isinstance(read, dict) and key.field in request.set:
        read = {**request.set[key.field], **read}
    elif isinstance(read, list) and isinstance(request.set.get(key.field), list):
        former = request.set[key.field]
        if key.kind == "flags":  # the last ones count, and that they are to be added
            sign = former[0][0] if former[0][0] in {"+", "-"} else ""
            read = [sign + flag.lstrip("+-") for flag in read] if sign else read
        else:
            read = former + read
    request.set[key.field] = read
    request.keys.add(key.field)


def refuse(session: "Session", error: sw.ValueRefusedError) -> int:
    """Say why a value cannot be. The exit code."""
    context = session.context
    if not error.text:
        return 1
    (context.error if error.is_error else context.print if error.to_stdout else context.complain)(
        error.text
    )
    return 1


def _unknown_option(session: "Session", entity: str, word: str, *, adds_user: bool = False) -> None:
    text = f" Unknown option: {word}" + (
        "" if adds_user else "\n Use keyword 'where' to modify condition"
    )
    (session.context.print if entity in _TO_STDOUT else session.context.complain)(text)
