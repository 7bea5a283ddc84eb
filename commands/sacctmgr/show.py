"""sacctmgr show: conditions and formats from words, rows from accounting, lines out.

Place: under sacctmgr.
"""

from understudy.commands.sacctmgr import fields
from understudy.commands.sacctmgr import keys as sk
from understudy.commands.sacctmgr import words as sw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.commands.sacctmgr.session import Session
    from understudy.commands.shared.accounting_client import Table

    Row = dict[str, Any]

_FLAGS = [  # word, how many letters are enough
    ("WithAssociations", 5),
    ("WithCoordinators", 5),
    ("WithDeleted", 5),
    ("WithRawQOSLevel", 5),
    ("WithSubAccounts", 5),
    ("WithClusters", 5),
    ("WithFed", 5),
    ("WOPInfo", 4),
    ("WOPLimits", 4),
    ("WOLimits", 3),
    ("OnlyDefaults", 2),
    ("Tree", 4),
    ("All_Clusters", 5),
    ("All_Time", 5),
]
_PEOPLE = ("account", "user")
# where a flag is one; elsewhere the word is a name
_WITH_FLAG = {
    "WithAssociations": (*_PEOPLE, "transaction"),
    "WithCoordinators": _PEOPLE,
    "WithDeleted": (*_PEOPLE, "association", "cluster", "qos", "tres", "wckey", "resource"),
    "WithRawQOSLevel": (*_PEOPLE, "association"),
    "WithSubAccounts": ("association",),
    "WithClusters": ("resource",),
    "WithFed": ("cluster",),
    "WOPInfo": ("association",),
    "WOPLimits": (*_PEOPLE, "association"),
    "WOLimits": ("association", "cluster"),
    "OnlyDefaults": ("association",),
    "Tree": ("association", "federation", "problem"),
    "All_Clusters": ("event",),
    "All_Time": ("event",),
}
# what a word without a key is; else a name
_POSITIONAL = {
    "association": sk.Key("", 0, "ids", "numbers"),
    "event": sk.Key("", 0, "event", "event"),
    "transaction": sk.Key("", 0, "ids", "transaction_numbers"),
    "runawayjobs": sk.Key("", 0, "clusters", "names"),
    "tres": sk.Key("", 0, "types", "names"),
}
_NAME = sk.Key("", 0, "names", "names")
_NEED_ASSOCIATIONS = {  # conditions that Slurm looks at with WithAssoc alone
    "account": {"clusters", "parents", "partitions", "qos", "default_qos", "users"},
    "user": {"accounts", "partitions", "qos", "default_qos"},
}
_ONLY_WITH_ASSOCIATIONS = (
    "You requested options that are only valid when querying with the withassoc option.\n"
    "Are you sure you want to continue? (You have 30 seconds to decide)"
)
_TABLES = {
    "account": "accounts",
    "user": "users",
    "association": "associations",
    "cluster": "clusters",
    "qos": "qos",
    "tres": "tres",
    "wckey": "wckeys",
    "transaction": "transactions",
    "event": "events",
    "reservation": "reservations",
    "problem": "problems",
    "federation": "federations",
    "resource": "resources",
}
_ASSOCIATION = [
    *(
        "id",
        "cluster",
        "account",
        "user",
        "partition",
        "parent_id",
        "parent_account",
        "left",
        "right",
        "depth",
        "shares",
        "priority",
        "qos",
        "qos_raw",
    ),
    *(
        "default_qos",
        "grp_jobs",
        "grp_jobs_accrue",
        "grp_submit_jobs",
        "grp_wall",
        "grp_tres",
        "grp_tres_mins",
        "grp_tres_run_mins",
        "max_jobs",
    ),
    *(
        "max_jobs_accrue",
        "max_submit_jobs",
        "max_wall",
        "max_tres_per_job",
        "max_tres_per_node",
        "max_tres_mins_per_job",
        "min_prio_threshold",
    ),
    "is_default",
]
_COLUMNS = {
    "account": ["name", "description", "organization", "coordinators"],
    "user": ["name", "admin_level", "default_account", "default_wckey", "coordinates"],
    "association": _ASSOCIATION,
    "cluster": [
        *(
            "cluster",
            "control_host",
            "control_port",
            "rpc_version",
            "classification",
            "nodes",
            "tres",
            "federation",
            "fed_id",
            "fed_state",
            "features",
        ),
        *(
            name
            for name in _ASSOCIATION
            if name not in {"cluster", "account", "user", "partition", "depth", "qos_raw"}
        ),
    ],
    "qos": [
        *(
            "id",
            "name",
            "description",
            "priority",
            "flags",
            "grace_time_s",
            "preempt",
            "preempt_mode",
            "preempt_exempt_time_s",
            "usage_factor",
        ),
        *(
            "usage_threshold",
            "limit_factor",
            "grp_jobs",
            "grp_jobs_accrue",
            "grp_submit_jobs",
            "grp_wall",
            "grp_tres",
            "grp_tres_mins",
        ),
        *(
            "grp_tres_run_mins",
            "max_jobs_per_account",
            "max_jobs_per_user",
            "max_jobs_accrue_per_account",
            "max_jobs_accrue_per_user",
        ),
        *(
            "max_submit_jobs_per_account",
            "max_submit_jobs_per_user",
            "max_tres_per_job",
            "max_tres_per_node",
            "max_tres_per_account",
        ),
        *(
            "max_tres_per_user",
            "max_tres_mins_per_job",
            "max_wall",
            "min_prio_threshold",
            "min_tres_per_job",
        ),
    ],
    "tres": ["id", "type", "name"],
    "wckey": ["id", "name", "cluster", "user"],
    "transaction": ["id", "time", "action", "actor", "where", "info", "cluster"],
    "event": [
        "cluster",
        "node",
        "start_time",
        "end_time",
        "state",
        "reason",
        "user_id",
        "nodes",
        "tres",
    ],
    "reservation": [
        "cluster",
        "id",
        "name",
        "start_time",
        "end_time",
        "nodes",
        "tres",
        "flags",
        "associations",
    ],
    "problem": ["cluster", "account", "user", "problem"],
    "federation": ["federation", "cluster", "fed_id", "features", "fed_state"],
    "resource": [
        "id",
        "name",
        "server",
        "type",
        "count",
        "server_type",
        "description",
        "allocated",
        "cluster",
        "allowed",
    ],
}
_FOR_OPERATORS = {  # what others are told
    "problem": "Access/permission denied",
    "wckey": "Your user doesn't have privilege to perform this action",
}
_BAD_MODE = "?"
_LOCAL_CLUSTER = (
    "If requesting nodes you must also request the cluster.\n"
    "Would you like to use the local cluster of '{}'? (You have 30 seconds to decide)"
)
_HINTS = dict.fromkeys(("user", "account", "cluster", "tres", "reservation", "federation"), "value")


_HINTS |= {"qos": "SLURM_PRINT_VALUE", "resource": "SLURM_PRINT_VALUE"}


def show(session: "Session", entity: str, words: list[str]) -> int:
    """Print the records of the entity that the words choose. The exit code."""
    if entity == "configuration":
        return _show_configuration(session)
    if entity == "runawayjobs":
        return _show_runaways(session, words)
    if entity == "stats":
        return _show_statistics(session)
    context = session.context
    chosen = _read(session, entity, words)
    if chosen is None:
        return 1
    where, flags, form = chosen
    if entity == "user" and "wckeys" in where:
        return 1  # without a word, as Slurm does
    if session.with_associations and entity in {"user", "account"}:
        flags.add("WithAssociations")
    if entity in _NEED_ASSOCIATIONS and "WithAssociations" not in flags:
        strange = _NEED_ASSOCIATIONS[entity].intersection(where)
        if strange and not session.confirmed(_ONLY_WITH_ASSOCIATIONS, "Aborted"):
            return 0
        if entity == "account":
            where = {name: values for name, values in where.items() if name not in strange}
    try:
        is_of_cluster = entity == "event" and where.get("event") == ["cluster"]
        columns = fields.columns_of(
            form
            if form is not None
            else (
                fields.DEFAULTS["event cluster"]
                if is_of_cluster
                else _default_format(entity, flags)
            )
        )
    except fields.UnknownFieldError as error:
        context.complain(f"Unknown field '{error}'")
        return 1
    if entity in _FOR_OPERATORS and not session.is_operator():
        context.error(_FOR_OPERATORS[entity])
        context.complain(" Error with request: Access/permission denied")
        return 1
    if entity == "reservation" and "nodes" in where and "clusters" not in where:
        if not session.confirmed(_LOCAL_CLUSTER.format(context.client.cluster_name), ""):
            return 0
        where["clusters"] = [context.client.cluster_name]
    rows = _rows(session, entity, where, flags)
    columns = [fields.for_entity(entity, column) for column in columns]
    if entity in {"association", "problem"} and "Tree" in flags:
        columns = [
            column.with_width(-20)
            if column.name == "Account" and column.width == fields.ACCOUNT_WIDTH
            else column
            for column in columns
        ]
    for line in fields.lines(columns, rows, header=session.header, parsable=session.parsable):
        context.print(line)
    return 0


def _read(
    session: "Session", entity: str, words: list[str]
) -> "tuple[dict[str, list[Any]], set[str], str | None] | None":
    """Conditions, flags and the format; None if something was not understood, which has been said
    then.
    """
    where: dict[str, list[Any]] = {}
    flags: set[str] = set()
    form: str | None = None
    is_well = True
    for word in words:
        key, operator, value = sw.split_word(word)
        if not operator:
            flag = next(
                (
                    name
                    for name, least in _FLAGS
                    if len(value) >= least
                    and name.lower().startswith(value.lower())
                    and entity in _WITH_FLAG[name]
                ),
                "",
            )
            if flag:
                flags.add(flag)
            elif value.lower() in {"where", "set"}:
                continue
            elif entity == "reservation" and value:
                _complain_of_condition(session, entity, word)
                is_well = False
            elif value or (entity != "reservation" and entity not in _POSITIONAL):
                meant = _POSITIONAL.get(entity, _NAME)
                for each in value.split(",") if meant.kind == "event" else [value]:
                    is_well = _take(session, entity, where, meant, each) and is_well
            continue
        least = 2 if entity in {"cluster", "federation"} else 1
        if len(key) >= least and "format".startswith(key.lower()):
            form = (form + "," if form else "") + value
            continue
        found = sk.find_key(sk.WHERE[entity], key)
        if found is None:
            _complain_of_condition(session, entity, word)
            is_well = False
        else:
            is_well = _take(session, entity, where, found, value, word) and is_well
    return (where, flags, form) if is_well else None


def _complain_of_condition(session: "Session", entity: str, word: str) -> None:
    hint = _HINTS.get(entity)
    session.context.complain(
        f" Unknown condition: {word}" + (f"\n Use keyword 'set' to modify {hint}" if hint else "")
    )


def _take(
    session: "Session",
    entity: str,
    where: "dict[str, list[Any]]",
    key: sk.Key,
    value: str,
    word: str = "",
) -> bool:
    former = where.get(key.field, [])
    try:
        values = sw.read_condition(key, value, session.words, word)
        if error := sw.nothing_new(key.kind, former, values):
            raise error
    except sw.ValueRefusedError as error:
        (session.context.error if error.is_error else session.context.complain)(error.text)
        if key.kind == "known_qos":
            _complain_of_condition(session, entity, word)
        elif key.kind == "modes":  # one that is bad makes all that follow so
            where[key.field] = [_BAD_MODE]
        # Slurm goes on without
        return key.kind == "cpus" or (key.kind == "time" and entity != "reservation")
    if former == [_BAD_MODE]:
        session.context.complain(f" Bad Preempt Mode given: {word}")
        return False
    if values == [""] and (key.field == "reasons" or (key.field == "qos" and entity != "user")):
        values = []  # else nothing is called so
    if values and key.kind == "levels":  # the last one counts
        where[key.field] = []
    if values:
        where.setdefault(key.field, []).extend(values)
    if entity == "resource" and key.field == "clusters":
        from understudy.commands.sacctmgr.request import strange_clusters

        return not strange_clusters(session, values)
    return True


def _default_format(entity: str, flags: set[str]) -> str:
    if entity in {"user", "account"}:
        form = fields.DEFAULTS[f"{entity} assoc" if "WithAssociations" in flags else entity]
        if "WithCoordinators" in flags:
            form = (
                form.replace("admin", "admin,coordinators")
                if entity == "user"
                else form + ",coordinators"
            )
        return form
    if entity == "association" and flags & {"WOLimits", "WOPLimits"}:
        return fields.DEFAULTS["association short"]
    if entity == "transaction" and "WithAssociations" in flags:
        return fields.DEFAULTS["transaction"] + ",user,account,cluster"
    if entity == "cluster":
        short = fields.DEFAULTS["cluster short" if "WOLimits" in flags else "cluster"]
        return f"{short},federation,id,features,fedstate" if "WithFed" in flags else short
    if entity == "resource" and "WithClusters" in flags:
        return fields.DEFAULTS["resource"] + ",cluster,allowed"
    return fields.DEFAULTS[entity]


def _rows(
    session: "Session", entity: str, where: "dict[str, list[Any]]", flags: set[str]
) -> "list[Row]":
    table = session.table
    if entity == "association":
        return _association_rows(session, where, flags)
    if entity in {"user", "account"}:
        return _with_associations(session, entity, where, flags)
    conditions = dict(where)
    if entity == "event":
        return _event_rows(session, conditions, flags)
    if entity == "tres" and "WithDeleted" in flags and not conditions:
        rows = table.rows("tres", _COLUMNS[entity])
        return sorted(
            [*rows, {"id": 1000, "type": "dynamic_offset", "name": ""}], key=lambda row: row["id"]
        )
    if entity == "transaction":
        return _transaction_rows(table, conditions, flags)
    named = conditions.pop("nodes", []) if entity == "reservation" else []
    if entity == "problem":
        conditions = {}
    wire = ["with_deleted"] if "WithDeleted" in flags else []
    if entity == "resource" and "WithClusters" in flags:
        wire.append("with_clusters")
    rows = table.rows(_TABLES[entity], _COLUMNS[entity], conditions, wire)
    if named:
        rows = [
            row
            for row in rows
            if row["nodes"] and not set(named).isdisjoint(sw.names_in(row["nodes"], lower=False))
        ]
    return [
        _finish(session, entity, row)
        for row in rows
        if entity != "problem" or _is_problem_of(row, where)
    ]


def _association_rows(
    session: "Session", where: "dict[str, list[Any]]", flags: set[str]
) -> "list[Row]":
    wire = [
        name
        for name, flag in (
            ("with_deleted", "WithDeleted"),
            ("with_sub_accounts", "WithSubAccounts"),
            ("only_defaults", "OnlyDefaults"),
        )
        if flag in flags
    ]
    if flags & {"WOPInfo", "WOPLimits"}:
        wire.append("raw")
    rows = session.table.rows("associations", _ASSOCIATION, where, wire)
    if "WOPInfo" not in flags:
        return _finish_associations(session, rows, is_tree="Tree" in flags)
    # nobody knows what is below what: those of users come first
    rows.sort(key=lambda row: (not row["user"], row["left"]))
    rows = [{**row, "parent_id": 0, "parent_account": ""} for row in rows]
    return _finish_associations(session, rows, is_tree=False)


def _event_rows(
    session: "Session", conditions: "dict[str, list[Any]]", flags: set[str]
) -> "list[Row]":
    is_open_ended = "All_Time" not in flags and "after" not in conditions
    if is_open_ended:
        conditions["after"] = [session.words.read_time("midnight") - 86400]
    reasons, states, users = (conditions.pop(name, []) for name in ("reasons", "states", "users"))
    kinds, least, most, open_only = (
        conditions.pop(name, []) for name in ("event", "least_cpus", "most_cpus", "open")
    )
    rows = [
        _finish(session, "event", row)
        for row in session.table.rows("events", _COLUMNS["event"], conditions)
    ]
    # what a cluster has comes before what befell its nodes
    rows.sort(key=lambda row: (row["cluster"], row["node"], row["start_time"]))
    return [
        row
        for row in rows
        if _is_meant(row, reasons, states, users)
        and (len(kinds) != 1 or (kinds == ["node"]) == bool(row["node"]))
        and (row["node"] or not conditions.get("nodes"))
        and _is_of_size(row["tres"].get("cpu", 0), least[-1:], most[-1:])
        and not (
            # who asks for states means those of now, unless he says since when
            (open_only or (states and is_open_ended)) and row["end_time"] is not None
        )
    ]


def _transaction_rows(
    table: "Table", conditions: "dict[str, list[Any]]", flags: set[str]
) -> "list[Row]":
    accounts, users = conditions.pop("accounts", []), conditions.pop("users", [])
    meant = _associations_of(table, accounts, users)
    after = conditions.get("after")
    rows = table.rows("transactions", _COLUMNS["transaction"], conditions)
    _name_associations(table, rows if "WithAssociations" in flags else [])
    return [
        row
        for row in rows
        if (not after or row["time"] >= after[0])
        and (
            not (accounts or users)
            or row["where"] in {*accounts, *users}
            or any(f"'{name}'" in row["where"] for name in (*accounts, *users))
            or any(f"acct='{name}'" in row["info"] for name in accounts)
            or any(f"user='{name}'" in row["info"] for name in users)
            or not meant.isdisjoint(row["where"].strip("()").split(" || "))
        )
    ]


def _associations_of(table: "Table", accounts: "list[str]", users: "list[str]") -> "set[str]":
    """Their numbers, of either, as transactions name them."""
    found: set[str] = set()
    for name, values in (("accounts", accounts), ("users", users)):
        if values:
            rows = table.rows("associations", ["id"], {name: values})
            found |= {f"{_NUMBERED}{row['id']}" for row in rows}
    return found


def _is_problem_of(row: "Row", where: "dict[str, list[Any]]") -> bool:
    """Whether a problem is of the clusters, accounts and users that are meant, or of none."""
    return all(
        not row[name] or not where.get(key) or row[name] in where[key]
        for name, key in (("cluster", "clusters"), ("account", "accounts"), ("user", "users"))
    )


def _finish(session: "Session", entity: str, row: "Row") -> "Row":
    """What columns read beside what was asked."""
    row["@now"] = session.table.now
    if entity in {"cluster", "federation"}:
        row["id"] = row["fed_id"]
    if entity == "cluster":
        row["node_names"] = row["nodes"]
        row["node_count"] = row["tres"].get("node", 0)
    elif entity == "wckey":
        row["wckey"] = row["name"]
    elif entity == "event":
        from understudy.documents.states import node_state_code

        row["node_names"] = row["node"]
        row["state_raw"], row["state"] = (
            row["state"],
            node_state_code(row["state"] & 15, row["state"] & ~15).upper() if row["node"] else "",
        )
        row["user"] = _user_text(row["user_id"])
    elif entity == "reservation":
        row["node_names"] = row["nodes"]
        row["flags"] = row["flags"].split(",") if row["flags"] else []
        row["associations"] = [str(each) for each in row["associations"]]
    return row


_NUMBERED = "id_assoc="


def _name_associations(table: "Table", rows: "list[Row]") -> None:
    """Say of transactions which association they were about."""
    numbers = {
        row["where"].removeprefix(_NUMBERED) for row in rows if row["where"].startswith(_NUMBERED)
    }
    wanted = [int(number) for number in numbers if number.isdigit()]
    found = {}
    if wanted:
        found = {
            str(row["id"]): row
            for row in table.rows(
                "associations",
                ["id", "cluster", "account", "user"],
                {"ids": wanted},
                ["with_deleted"],
            )
        }
    for row in rows:
        known = found.get(row["where"].removeprefix(_NUMBERED), {})
        row |= {name: known.get(name, "") for name in ("cluster", "account", "user")}


def _is_of_size(cpus: int, least: "list[int]", most: "list[int]") -> bool:
    """Without a least number the greatest says nothing; without a greatest it is the number."""
    if not any(least):
        return True
    return least[0] <= cpus <= most[0] if any(most) else cpus == least[0]


def _is_meant(row: "Row", reasons: "list[str]", states: "list[str]", users: "list[str]") -> bool:
    """Whether an event is of one of the reasons, users and, by their beginnings, states."""
    state, user = row["state"], row["user"].partition("(")[0]
    return (
        (not reasons or row["reason"] in reasons)
        and (not users or any(each in {str(row["user_id"]), user} for each in users))
        and (
            not states
            or any(
                not each or (state and (state.startswith(each) or each.startswith(state)))
                for each in states
            )
        )
    )


def _user_text(user_id: "int | None") -> str:
    if user_id is None:
        return ""
    import pwd

    try:
        return f"{pwd.getpwuid(user_id).pw_name}({user_id})"
    except KeyError:
        return f"{user_id}({user_id})"


def _finish_associations(
    session: "Session", rows: "list[Row]", *, is_tree: bool = False
) -> "list[Row]":
    numbers: dict[str, str] = {}
    for row in rows:
        if row["qos_raw"] and not numbers:
            numbers = {
                each["name"]: str(each["id"]) for each in session.table.rows("qos", ["name", "id"])
            }
        row["qos_raw"] = ",".join(
            name[0] + numbers.get(name[1:], "") if name[0] in "+-" else numbers.get(name, "")
            for name in row["qos_raw"]
        )
        if is_tree:
            row["@indent"] = row["depth"]
    return rows


# what conditions say of associations
_OF_PLACES = frozenset(
    ("clusters", "accounts", "partitions", "parents", "qos", "default_qos", "users")
)
_NOWHERE = {  # in place of an association that meets them
    "@amount": 0,
    **dict.fromkeys(
        (
            "shares",
            "grp_jobs",
            "grp_jobs_accrue",
            "grp_submit_jobs",
            "grp_wall",
            "max_jobs",
            "max_jobs_accrue",
            "max_submit_jobs",
        ),
        0,
    ),
    "max_wall": 0,
}
_NOT_ASKED_FOR = {  # in place of all associations
    **_NOWHERE,
    **dict.fromkeys(("id", "left", "right", "parent_id", "min_prio_threshold"), 0),
}


def _with_associations(
    session: "Session", entity: str, where: "dict[str, list[Any]]", flags: set[str]
) -> "list[Row]":
    """Users or accounts, with WithAssoc one row for each of their associations."""
    table = session.table
    is_with = "WithAssociations" in flags
    kept = ["with_deleted"] if "WithDeleted" in flags else []
    conditions = {name: values for name, values in where.items() if name in _OF_PLACES}
    own = {name: values for name, values in where.items() if name not in conditions}
    if entity == "user" and "qos" in conditions:  # of users what is inherited does not count
        conditions["own_qos"] = conditions.pop("qos")
    rows = table.rows(_TABLES[entity], _COLUMNS[entity], own, kept)
    for row in rows:
        row[entity] = row["name"]
        if entity == "user":
            row["coordinators"] = row["coordinates"]
    raw = ["raw"] if "WOPLimits" in flags else []
    placed: dict[str, list[Row]] = {}
    if is_with or (entity == "user" and conditions):
        conditions[entity + "s"] = [row["name"] for row in rows]
        for each in _finish_associations(
            session,
            table.rows("associations", _ASSOCIATION, conditions, ["left_to_right", *raw, *kept]),
        ):
            placed.setdefault(each[entity], []).append(each)
        if entity == "user":
            _keep_defaults_of(rows, placed, where.get("clusters"), session)
    if not is_with:
        return [{**_NOT_ASKED_FOR, **row} for row in rows]
    found = []
    for row in rows:
        found += [{**each, **row} for each in placed.get(row["name"], [])] or [{**_NOWHERE, **row}]
    return found


def _keep_defaults_of(
    rows: "list[Row]",
    placed: "dict[str, list[Row]]",
    clusters: "list[str] | None",
    session: "Session",
) -> None:
    """Of users, default accounts that are among the places which were asked for, and keys of the
    clusters.
    """
    is_elsewhere = bool(clusters) and session.context.client.cluster_name not in (clusters or ())
    for row in rows:
        if not any(each["is_default"] for each in placed.get(row["name"], [])):
            row["default_account"] = ""
        if is_elsewhere:
            row["default_wckey"] = ""


_OF_SLURM_CONF = (
    *(
        "AccountingStorageBackupHost",
        "AccountingStorageHost",
        "AccountingStorageParameters",
        "AccountingStoragePass",
        "AccountingStoragePort",
    ),
    *(
        "AccountingStorageType",
        "AccountingStorageUser",
        "AuthType",
        "MessageTimeout",
        "PluginDir",
        "PrivateData",
        "SlurmUserId",
        "SLURM_CONF",
    ),
    *("SLURM_VERSION", "TCPTimeout", "TrackWCKey"),
)


def _show_configuration(session: "Session") -> int:
    """What concerns accounting in slurm.conf, and the accounting daemon's own configuration."""
    from understudy.commands.shared.texts import timestamp
    from understudy.documents.documents import VERSION

    context = session.context
    own = session.table.rows("config", ["name", "value"])
    shown = context.client.controller_config()  # type: ignore[attr-defined]
    defaults = {
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "SLURM_VERSION": VERSION,
        "SlurmUserId": _user_text(0),
    }
    context.print(f"Configuration data as of {timestamp(session.table.now)}")
    for name in _OF_SLURM_CONF:
        value = shown.get("SlurmUser" if name == "SlurmUserId" else name) or defaults.get(
            name, "(null)"
        )
        value = {"AccountingStorageUser": "N/A"}.get(name, value)  # of no meaning with slurmdbd
        # two blanks there, as Slurm has it
        context.print(f"{name + ' ' * (name == 'AccountingStorageBackupHost'):<22} = {value}")
    context.print("\nSlurmDBD configuration:")
    for row in own:
        context.print(f"{row['name']:<22} = {row['value']}")
    return 0


_RUNAWAYS = """
Would you like to fix these runaway jobs?
(This will set the end time for each job to the latest out of the start, eligible, or submit times, and set the state to completed.
Once corrected, this will trigger the rollup to reroll usage from before the earliest submit time of all the runaway jobs.)

"""  # noqa: E501


def _show_runaways(session: "Session", words: list[str]) -> int:
    """Jobs that have not ended for accounting and that the controller does not know; and, if
    wanted, end them.
    """
    from understudy.documents.states import job_state

    context = session.context
    read = _read(session, "runawayjobs", words)
    chosen = read or ({}, set(), "")
    if not session.is_operator():
        context.error("You must have an AdminLevel>=Operator to fix runaway jobs")
        return 1
    clusters = chosen[0].get("clusters") or [context.client.cluster_name]
    if len(clusters) > 1:
        context.error("You can only fix runaway jobs on one cluster at a time.")
        return 1
    cluster = clusters[0]
    names = [
        "job_id",
        "name",
        "partition",
        "cluster",
        "state",
        "start_time",
        "end_time",
        "array_task_id",
        "array_tasks",
    ]
    known = set(context.client.controller_jobs())  # type: ignore[attr-defined]
    rows = [
        row
        for row in session.table.rows("jobs", names, {"clusters": [cluster]})
        if row["end_time"] is None and row["job_id"] not in known
    ]
    if not rows:
        context.print(f"Runaway Jobs: No runaway jobs found on cluster {cluster}")
        return 0 if read else 1
    try:
        columns = fields.columns_of(
            chosen[2] or "id,name,partition,cluster,state%10,timestart,timeend"
        )
    except fields.UnknownFieldError as error:
        context.complain(f"Unknown field '{error}'")
        return 1
    rows.sort(key=lambda row: row["job_id"])
    for row in rows:
        row |= {"id": row["job_id"], "state": job_state(row["state"], 0)}
    context.print(
        "NOTE: Runaway jobs are jobs that don't exist in the controller but have a start "
        "time and no end time in the database"
    )
    for line in fields.lines(columns, rows, header=session.header, parsable=session.parsable):
        context.print(line)
    context.stdout.write(_RUNAWAYS)
    if session.confirmed("(You have 30 seconds to decide)"):
        numbers = [str(row["job_id"]) for row in rows]
        context.client.call(
            "AccountingChange",
            "modify",
            "job",
            [],
            {"runaway": 1},
            {"job_ids": numbers, "clusters": [cluster]},
            True,
        )
    return 0


def _show_statistics(session: "Session") -> int:
    """Requests to the accounting daemon and the times that it added up use."""
    from understudy.commands.shared.requests import by_count, requests_and_users, when

    if not session.is_administrator():
        session.context.complain(
            "sacctmgr: accounting_storage/slurmdbd: acct_storage_p_get_stats: RC:2002 Your "
            "user doesn't have privilege to perform this action"
        )
        return 1
    now, since, numbers, requests, users = session.context.client.call("GetStatistics")
    stars = "*" * 67
    lines = [
        stars,
        f"sacctmgr show stats output at {when(now)}",
        f"Data since                    {when(since)}",
    ]
    lines += ["All statistics are in microseconds", stars, ""]
    if "count" in numbers:
        lines += [
            f"Internal DBD rollup last ran {when(numbers['rolled'])}",
            f"\tLast cycle:   {numbers['last_us']}",
        ]
        lines += [
            f"\tMax cycle:    {numbers['longest_us']}",
            f"\tTotal time:   {numbers['us']}",
            f"\tTotal cycles: {numbers['count']}",
        ]
        lines += [f"\tMean cycle:   {numbers['us'] // numbers['count']}", ""]
    lines += requests_and_users(by_count(requests), by_count(users), (25, 20, 10))
    session.context.print("\n".join(lines))
    return 0
