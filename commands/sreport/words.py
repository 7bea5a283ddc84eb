"""What stands before the equals signs of sreport's conditions, and the names of its fields: each
report has its own, and how many letters of a name are enough.

Place: under sreport, tables. Follows sreport(1) and what 22.05.8 takes.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    Names = tuple[tuple[str, int, str], ...]  # name, how many letters are enough, what it is here

_TIMES: "Names" = (("end", 1, "end"), ("start", 1, "start"))
_OF_ACCOUNTS: "Names" = (("accounts", 2, "accounts"), ("acct", 4, "accounts"))
_OF_ASSOCIATIONS: "Names" = (
    *_OF_ACCOUNTS,
    ("clusters", 1, "clusters"),
    ("format", 1, "format"),
    ("users", 1, "users"),
    *_TIMES,
)
_OF_KEYS: "Names" = (
    ("clusters", 3, "clusters"),
    ("format", 1, "format"),
    ("user", 1, "users"),
    ("wckeys", 3, "wckeys"),
    *_TIMES,
)
_CONDITIONS: "dict[str, Names]" = {  # by report, else by kind of report
    "Utilization": (("clusters", 1, "clusters"), ("format", 1, "format"), *_TIMES),
    "UserUtilizationByWckey": _OF_KEYS,
    "WCKeyUtilizationByUser": _OF_KEYS,
    "cluster": _OF_ASSOCIATIONS,
    "user": (*_OF_ASSOCIATIONS, ("topcount", 1, "topcount")),
    "job": (
        *_OF_ACCOUNTS,
        ("clusters", 1, "clusters"),
        ("format", 2, "format"),
        ("gid", 2, "gid"),
        ("grouping", 2, "grouping"),
        ("jobs", 1, "jobs"),
        ("nodes", 1, "nodes"),
        ("partitions", 2, "partitions"),
        ("users", 1, "users"),
        ("wckeys", 2, "wckeys"),
        *_TIMES,
    ),
    "reservation": (
        ("clusters", 1, "clusters"),
        ("flags", 2, "flags"),
        ("format", 2, "format"),
        ("names", 1, "names"),
        ("nodes", 1, "nodes"),
        *_TIMES,
    ),
}
_FIELDS: "dict[str, Names]" = {
    "cluster": (
        ("accounts", 2, "account"),
        ("allocated", 2, "allocated"),
        ("cluster", 2, "cluster"),
        ("count", 2, "trescount"),
        ("cpucount", 2, "trescount"),
        ("down", 1, "down"),
        ("energy", 1, "energy"),
        ("idle", 1, "idle"),
        ("login", 1, "login"),
        ("overcommitted", 1, "overcommitted"),
        ("planneddown", 2, "planneddown"),  # planned, too
        ("proper", 2, "proper"),
        ("reported", 3, "reported"),
        ("reserved", 3, "planned"),
        ("trescount", 5, "trescount"),
        ("tresname", 5, "tresname"),
        ("used", 1, "used"),
        ("wckey", 2, "wckey"),
    ),
    "user": (
        ("accounts", 1, "account"),
        ("cluster", 1, "cluster"),
        ("energy", 1, "energy"),
        ("login", 1, "login"),
        ("proper", 1, "proper"),
        ("tresname", 5, "tresname"),
        ("used", 1, "used"),
    ),
    "job": (("account", 1, "account"), ("cluster", 2, "cluster"), ("wckey", 1, "wckey")),
    "reservation": (
        ("allocated", 2, "allocated"),
        ("associations", 2, "associations"),
        ("cluster", 2, "cluster"),
        ("count", 2, "trescount"),
        ("cpucount", 2, "trescount"),
        ("end", 2, "end"),
        ("flags", 2, "flags"),
        ("idle", 1, "idle"),
        ("name", 2, "name"),
        ("nodes", 2, "nodes"),
        ("reservationid", 2, "reservationid"),
        ("start", 2, "start"),
        ("totaltime", 2, "totaltime"),
        ("trescount", 5, "trescount"),
        ("tresname", 5, "tresname"),
        ("trestime", 2, "trestime"),
    ),
}


def condition(kind: str, report: str, word: str) -> "str | None":
    """What the word before an equals sign is a condition on."""
    named = report if kind == "cluster" and report in _CONDITIONS else kind
    return _find(_CONDITIONS[named], word)


def field(kind: str, word: str) -> "str | None":
    """The field that a word of format= means."""
    return _find(_FIELDS[kind], word)


def _find(names: "Names", word: str) -> "str | None":
    lowered = word.lower()
    for name, least, meant in names:
        if len(lowered) >= least and name.startswith(lowered):
            return meant
    return None


def is_order(word: str) -> bool:
    """Whether -s names what users are sorted by: their names, or their times."""
    lowered = word.lower()
    return lowered == "time" or (bool(lowered) and "name".startswith(lowered))


def reservation_flags(words: "list[str]") -> "set[str]":
    """Flags of reservations, by the names that they are kept under.

    Raises:
        ValueError: one of them is none.
    """
    from understudy.model.reservations import flags_text, read_flags

    return set(flags_text(read_flags(",".join(words))[0]).split(",")) if words else set()
