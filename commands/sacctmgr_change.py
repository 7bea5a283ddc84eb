"""sacctmgr add, modify, delete: words into one request, the request's answer into Slurm's texts, and a question before it is carried out.

Place: under sacctmgr. Accounting is asked twice unless `-i` was given: what would happen, and, if the user agrees, to do it.
"""

from understudy.commands import sacctmgr_words as sw
from understudy.commands.client import RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from understudy.commands.sacctmgr import Session

ACCESS_DENIED = 2002
NOTHING_NEW = " Nothing new added."


class Answer:
    """AccountingChanged, by name."""

    __slots__ = ("associations", "names", "problems", "wckeys")

    def __init__(self, fields: "list[Any]") -> None:
        self.names: list[str]
        self.associations: list[list[str]]
        self.names, self.associations, self.wckeys, self.problems = fields


class Request:
    """What the words ask for."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.set: dict[str, Any] = {}
        self.where: dict[str, list[Any]] = {}
        self.keys: set[str] = set()  # fields that words named, names aside
        self.is_well = True


def change(session: "Session", action: str, entity: str, words: list[str]) -> int:
    """Carry out a change. The exit code."""
    request = _read_addition(session, entity, words) if action == "add" else _read_words(session, entity, words, sets=action == "modify")
    if entity in {"resource", "federation"}:
        from understudy.commands import sacctmgr_shared

        return sacctmgr_shared.change(session, action, entity, request)
    if action == "modify" and "raw_usage" in request.set and request.is_well:
        return _reset_use(session, entity, request)
    function: Callable[[Session, Request], int] = globals()[f"_{action}_{entity}"]
    return function(session, request)


# --- words ---------------------------------------------------------------------------------------------------------------------


_TO_STDOUT = frozenset(("job", "qos", "resource"))  # where Slurm says what it does not know


def _refuse(session: "Session", error: sw.ValueRefusedError) -> None:
    context = session.context
    if not error.text:
        return
    (context.error if error.is_error else context.print if error.to_stdout else context.complain)(error.text)


def _unknown_option(session: "Session", entity: str, word: str, *, adds_user: bool = False) -> None:
    text = f" Unknown option: {word}" + ("" if adds_user else "\n Use keyword 'where' to modify condition")
    (session.context.print if entity in _TO_STDOUT else session.context.complain)(text)


def _set(session: "Session", request: Request, entity: str, key: sw.Key, operator: str, value: str, word: str, *, is_new: bool = False) -> None:
    """Take one word of `set` over."""
    try:
        read = sw.read_value(key, operator, value, word, session.words)
    except sw.ValueRefusedError as error:
        _refuse(session, error)
        if key.kind == "classification" or (entity in {"qos", "resource"} and key.kind in {"number", "factor"}):
            return  # Slurm goes on as if it had not been there
        request.is_well = False
        if entity not in _TO_STDOUT and key.kind not in {"default_qos", "fed_state", "classification", "raw_usage"}:
            _unknown_option(session, entity, word)
        return
    if key.kind == "ignored":
        return
    if key.kind == "raw_usage" and is_new:
        request.keys.add(key.field)  # what is new has used nothing
        return
    if isinstance(read, dict) and key.field in request.set:
        read = {**request.set[key.field], **read}
    elif isinstance(read, list) and isinstance(request.set.get(key.field), list):
        read = request.set[key.field] + read
    request.set[key.field] = read
    request.keys.add(key.field)


def _read_addition(session: "Session", entity: str, words: list[str]) -> Request:
    """The words behind `add ENTITY`; `where` and `set` among them say nothing."""
    request = Request()
    for word in words:
        key, operator, value = sw.split_word(word)
        if not key:
            if value.lower() not in {"where", "set", ""}:
                request.names += sw.names_in(value)
            continue
        place = sw.find_key(sw.ADDED_TO[entity], key)
        if place is not None and place.field == "names":
            request.names += sw.names_in(value)
        elif place is not None:
            request.where.setdefault(place.field, []).extend(sw.names_in(value, lower=place.kind == "names"))
            request.keys.add(place.field)
        elif (found := sw.find_key(sw.SET[entity], key)) is not None:
            _set(session, request, entity, found, operator, value, word, is_new=True)
        else:
            request.is_well = False
            if entity == "coordinator":
                session.context.complain(f" Unknown condition: {word}\n Use keyword 'set' to modify value")
            else:
                _unknown_option(session, entity, word, adds_user=entity == "user")
    return request


def _read_words(session: "Session", entity: str, words: list[str], *, sets: bool) -> Request:
    """The words behind `modify ENTITY` or `delete ENTITY`."""
    request = Request()
    in_set = False
    hint = "SLURM_PRINT_VALUE" if entity in {"qos", "resource"} else "value"
    for word in words:
        key, operator, value = sw.split_word(word)
        if not key:
            if value.lower() == "set":
                in_set = sets
            elif value.lower() == "where":
                in_set = False
            elif value and not in_set:
                request.where.setdefault("names", []).extend(sw.names_in(value))
            continue
        if in_set:
            found = sw.find_key(sw.SET[entity], key)
            if found is None:
                request.is_well = False
                _unknown_option(session, entity, word)
            else:
                _set(session, request, entity, found, operator, value, word)
            continue
        place = sw.find_key(sw.WHERE[entity], key)
        if place is None:
            request.is_well = False
            session.context.complain(f" Unknown condition: {word}\n Use keyword 'set' to modify {hint}")
            continue
        try:
            values = sw.read_condition(place, value, session.words)
        except sw.ValueRefusedError as error:
            _refuse(session, error)
            request.is_well = False
            continue
        if values:
            request.where.setdefault(place.field, []).extend(values)
    return request


# --- asking accounting ---------------------------------------------------------------------------------------------------------


def _ask(session: "Session", action: str, entity: str, request: Request, *, commit: bool) -> Answer:
    where = {name: [str(value) for value in values] for name, values in request.where.items()}
    return Answer(session.context.client.call("AccountingChange", action, entity, request.names, request.set, where, commit))


def add(session: "Session", entity: str, request: Request, what: str, tell: "Callable[[Answer], int | None]") -> int:
    """Say what an addition does, ask, and do it. `tell` prints it and returns an exit code, or None if there is nothing to do."""
    code = tell(_ask(session, "add", entity, request, commit=False))
    if code is None:
        return 1
    if not session.confirmed():
        return code
    try:
        _ask(session, "add", entity, request, commit=True)
    except RefusedError as error:
        session.context.complain(f" Problem adding {what}: {error.text}")
        return 1
    return code


def alter(session: "Session", action: str, entity: str, request: Request, tell: "Callable[[Answer], int | None]") -> int:
    """Say what a change or a deletion does, ask, and do it."""
    try:
        answer = _ask(session, action, entity, request, commit=not session.asks)
    except RefusedError as error:
        if error.code == ACCESS_DENIED:
            raises = "admin_level" in request.set
            text = "You must be a super user to modify a users admin level" if raises else "Your user doesn't have privilege to perform this action"
            session.context.error(text)
        elif entity == "qos":
            session.context.error(error.text)
        session.context.complain(f" Error with request: {error.text}")
        return 1
    code = tell(answer)
    if code is None:
        return 1
    if session.asks and has_done(answer) and session.confirmed():
        _ask(session, action, entity, request, commit=True)
    return code


def has_done(answer: Answer) -> bool:
    return bool(answer.names or answer.associations)


# --- texts ---------------------------------------------------------------------------------------------------------------------

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


def _reset_use(session: "Session", entity: str, request: Request) -> int:
    """RawUsage=0, with which nothing else is changed."""
    context = session.context
    where = request.where
    if entity == "user" and not where.get("accounts"):
        context.error("An account must be specified")
        return 1
    if not where.get("clusters"):
        context.print(f"No cluster specified, resetting on local cluster {context.client.cluster_name}")
    cluster = (where.get("clusters") or [context.client.cluster_name])[0]
    where["clusters"] = where.get("clusters") or [cluster]
    request.set = {"raw_usage": 0}
    answer = _ask(session, "modify", entity, request, commit=not session.asks)
    if not answer.names:
        account = (where.get("names") if entity == "account" else where.get("accounts") or [""]) or [""]
        user = f" user {(where.get('names') or [''])[0]}" if entity == "user" else ""
        context.error(f"Failed to find cluster {cluster} account {account[0]}{user} association in database")
        return 1
    if session.asks and session.confirmed("Would you like to reset usage? (You have 30 seconds to decide)"):
        _ask(session, "modify", entity, request, commit=True)
    return 0


def _limits_text(values: "dict[str, Any]") -> "list[str]":
    """One line for each limit that is set. Where a name fills its column, two lines have another width, as in Slurm."""
    found = []
    for label, field in _LIMIT_LABELS:
        if field not in values:
            continue
        value = values[field]
        text = ",".join(sorted(value)) if field == "qos" else sw.text_of_limit(field, value)
        if value is None:
            text = "(null)" if field == "default_qos" else "NONE"
        if text:
            found.append(f"  {label:<25}= {text}" if field == "grp_jobs_accrue" else f"  {label:<14}= {text}")
    return found


def _association_line(association: "list[str]") -> str:
    """As additions list it."""
    cluster, account, _, user, partition = association
    text = f"  U = {user[:9]:<9} A = {account[:10]:<10} C = {cluster[:10]:<10}" if user else f"  A = {account[:10]:<10} C = {cluster[:10]:<10}"
    return text + (f" P = {partition[:10]:<10}" if partition else "")


def _modified_line(association: "list[str]") -> str:
    """As changes list it."""
    cluster, account, parent, user, partition = association
    if not user:
        return f"  C = {cluster:<10} A = {account} of {parent}" if parent else f"  C = {cluster:<10} A = {account}"
    return f"  C = {cluster:<10} A = {account:<20} U = {user:<9}" + (f" P = {partition}" if partition else "")


def _deleted_line(association: "list[str]") -> str:
    """As deletions list it."""
    cluster, account, parent, user, partition = association
    if not user:
        return f"  C = {cluster:<10} A = {account} of {parent}"
    return f"  C = {cluster:<10} A = {account:<10} U = {user:<9}" + (f" P = {partition}" if partition else "")


def print_names(session: "Session", head: str, names: list[str]) -> None:
    for line in (head, *(f"  {name}" for name in names)):
        session.context.print(line)


def say(session: "Session", lines: list[str]) -> None:
    for line in lines:
        session.context.print(line)


HELP = "        Contact your admin to"


def _tell_problems(session: "Session", answer: Answer) -> None:
    """What could not be added, and why."""
    complain = session.context.complain
    for kind, names in answer.problems:
        if kind == "no_cluster":
            complain(f" This cluster '{names[0]}' doesn't exist.\n{HELP} add it to accounting.")
        elif kind == "no_parent":
            complain(f" Parent account '{names[0]}' doesn't exist on cluster {names[1]}\n{HELP} add this account.")
        elif kind == "no_account":
            complain(f" This account '{names[0]}' doesn't exist.\n{HELP} add this account.")
        elif kind == "no_account_on_cluster":
            complain(f" This account '{names[0]}' doesn't exist on cluster {names[1]}\n{HELP} add this account.")


def _no_access_to_default_qos(session: "Session", answer: Answer) -> bool:
    """Whether that is why nothing was changed, which has been said then."""
    lines = [names for kind, names in answer.problems if kind == "no_access_to_default_qos"]
    if not lines:
        return False
    session.context.complain(" These associations don't have access to their default qos.")
    session.context.complain(" Please give them access before they the default can be set to this.")
    for names in lines:
        session.context.complain(_default_qos_line(names))
    return True


def _default_qos_line(names: "list[str]") -> str:
    qos, cluster, account, user, partition = names
    place = f"  DefQOS = {qos:<10} C = {cluster:<10} A = {account:<20} "
    return place + (f"U = {user:<9}" if user else "") + (f" P = {partition}" if partition else "")


# --- add -----------------------------------------------------------------------------------------------------------------------


def _add_cluster(session: "Session", request: Request) -> int:
    context = session.context
    if not request.is_well:
        return 1
    if not request.names:
        context.complain(" Need name of cluster to add.")
        return 1
    known = {row["cluster"] for row in session.table.rows("clusters", ["cluster"])}
    for name in [name for name in request.names if name in known]:
        context.print(f" This cluster {name} already exists.  Not adding.")
        request.names.remove(name)
    if not request.names:
        return 1

    def tell(answer: Answer) -> int:
        context.print(" Adding Cluster(s)")
        say(session, [f"  Name           = {name}" for name in answer.names])
        say(session, _cluster_settings(request))
        return 0

    return add(session, "cluster", request, "clusters", tell)


def _add_account(session: "Session", request: Request) -> int:
    context = session.context
    if not request.is_well:
        return 1
    if not request.names:
        context.complain(" Need name of account to add.")
        return 1

    def tell(answer: Answer) -> "int | None":
        _tell_problems(session, answer)
        if not answer.names and not answer.associations:
            if any(kind == "no_parent" for kind, _ in answer.problems):
                context.complain(" No associations created.")
            elif not answer.problems:
                context.print(NOTHING_NEW)
            return None
        if answer.names:
            print_names(session, " Adding Account(s)", answer.names)
            context.print(" Settings")
            context.print(f"  Description     = {request.set.get('description') or 'Account Name'}")
            context.print(f"  Organization    = {request.set.get('organization') or 'Parent/Account Name'}")
        if answer.associations:
            say(session, [" Associations", *map(_association_line, answer.associations)])
        if request.keys - {"clusters"}:
            say(session, [" Settings", *_limits_text({"parent": "root", **request.set})])
        return 1 if answer.problems else 0

    return add(session, "account", request, "accounts", tell)


def _add_user(session: "Session", request: Request) -> int:
    context = session.context
    if not request.is_well:
        return 1
    if not request.names:
        context.complain(" Need name of user to add.")
        return 1
    values = request.set
    if not values.get("admin_level", "None"):
        del values["admin_level"]
    for name in ("accounts", "partitions", "wckeys"):
        if name in request.where:
            values[name] = request.where.pop(name)
    if not values.get("accounts") and not values.get("default_account") and not values.get("wckeys"):
        context.complain(" Need name of account to add user to.")
        return 1
    known = {row["name"] for row in session.table.rows("users", ["name"], {"names": request.names})}

    def tell(answer: Answer) -> "int | None":
        _tell_problems(session, answer)
        if not answer.associations and not answer.wckeys:
            if any(kind == "no_cluster" for kind, _ in answer.problems):
                return None
            if known.issuperset(request.names):
                context.print(NOTHING_NEW)
            elif answer.problems:
                context.complain(" No associations or wckeys created.")
            return None
        if answer.names:
            print_names(session, " Adding User(s)", answer.names)
        _tell_user_settings(session, values)
        if answer.associations:
            say(session, [" Associations =", *map(_association_line, answer.associations)])
        if answer.wckeys:
            say(session, [" WCKeys =", *(f"  U = {user[:9]:<9} W = {key[:10]:<10} C = {cluster[:10]:<10}" for user, key, cluster in answer.wckeys)])
        if request.keys - {"default_account", "admin_level"}:
            limits = {name: value for name, value in values.items() if name not in {"parent", "accounts"}}
            say(session, [" Non Default Settings", *_limits_text(limits)])
        return 1 if answer.problems else 0

    return add(session, "user", request, "users", tell)


def _tell_user_settings(session: "Session", values: "dict[str, Any]") -> None:
    shown = (("Default Account =", "default_account"), ("Default WCKey   =", "default_wckey"), ("Admin Level     =", "admin_level"))
    lines = [f"  {label} {values[field]}" for label, field in shown if values.get(field)]
    if lines:
        say(session, [" Settings =", *lines])


def _add_qos(session: "Session", request: Request) -> int:
    context = session.context
    if not request.is_well:
        return 1
    if not request.names:
        context.complain(" Need name of qos to add.")
        return 1

    def tell(answer: Answer) -> "int | None":
        if not answer.names:
            context.print(NOTHING_NEW)
            return None
        print_names(session, " Adding QOS(s)", answer.names)
        say(session, [" Settings", f"  Description    = {request.set.get('description') or request.names[-1]}"])
        for label, field in _QOS_LABELS:
            value = request.set.get(field)
            if value is None or value in ({}, []):
                continue
            text = sw.text_of_limit(field, value)
            if field == "flags":
                text = ",".join(flag for flag in sw.QOS_FLAGS if flag in {each.lstrip("+") for each in value})
            elif field == "preempt":
                text = ",".join(sorted(value))
            elif field == "preempt_mode":
                text = text.upper()
            elif isinstance(value, float):
                text = f"{value:.4f}"
            context.print(f"  {label} = {text}" if field == "max_jobs_per_user" else f"  {label:<25}= {text}")
        return 0

    return add(session, "qos", request, "QOS", tell)


def _add_coordinator(session: "Session", request: Request) -> int:
    context = session.context
    if not request.is_well:
        return 1
    accounts = request.where.get("accounts", [])
    if not request.names and not accounts:
        context.complain(" You need to specify conditions to to add the coordinator.")
        return 1
    if not request.names or not accounts:
        context.complain(f" You need to specify {'a user' if not request.names else 'an account'} list here.")
        return 1

    def tell(answer: Answer) -> "int | None":
        if _tell_strangers(session, answer):
            return None
        print_names(session, " Adding Coordinator User(s)", request.names)
        print_names(session, " To Account(s) and all sub-accounts", accounts)
        return 0

    return add(session, "coordinator", request, "coordinator", tell)


def _tell_strangers(session: "Session", answer: Answer) -> bool:
    for kind, names in answer.problems:
        session.context.complain(f" You specified a non-existent {'account' if kind == 'no_account' else 'user'} '{names[0]}'.")
    return bool(answer.problems)


# --- modify --------------------------------------------------------------------------------------------------------------------


def has_something_to_set(session: "Session", request: Request) -> bool:
    if not request.set and request.is_well:
        session.context.complain(" You didn't give me anything to set")
    return bool(request.set) and request.is_well


def nothing_modified(session: "Session") -> None:
    session.context.print(" Nothing modified")


def _modify_cluster(session: "Session", request: Request) -> int:
    if not has_something_to_set(session, request):
        return 1
    say(session, _cluster_settings(request))

    def tell(answer: Answer) -> "int | None":
        if _no_access_to_default_qos(session, answer):
            return 0
        if not answer.names:
            nothing_modified(session)
            return None
        if answer.associations:
            say(session, [" Modified cluster defaults for associations...", *map(_modified_line, answer.associations)])
        if _OF_CLUSTERS.intersection(request.set):
            print_names(session, " Modified cluster...", answer.names)
        return 0

    return alter(session, "modify", "cluster", request, tell)


_OF_CLUSTERS = frozenset(("classification", "features", "fed_state", "federation"))


def _cluster_settings(request: Request) -> "list[str]":
    """What is set of clusters themselves, and of their roots' limits."""
    values = request.set
    lines = [
        f"  {label:<15}= {values[field]}" for label, field in (("Classification", "classification"), ("Federation", "federation")) if field in values
    ]
    lines += [f"  Feature     {each[0]}= {each[1:]}" if each[0] in "+-" else f"  Feature       = {each}" for each in values.get("features", [])]
    if "fed_state" in values:
        lines.append(f"  FedState       = {values['fed_state']}")
    limits = _limits_text(values)
    if limits:
        lines += ["  Default Limits:", *limits]
    return [" Setting", *lines] if lines else []


def _modify_account(session: "Session", request: Request) -> int:
    if not has_something_to_set(session, request):
        return 1
    if {"descriptions", "organizations"}.intersection(request.where) and not {"description", "organization"}.intersection(request.set):
        session.context.complain(" There was a problem with your 'where' options.")
        return 1
    parent = request.set.get("parent")
    if parent is not None and not session.table.rows("accounts", ["name"], {"names": [parent]}):
        session.context.complain(f" Parent Account {parent} doesn't exist.")
        return 1

    def tell(answer: Answer) -> "int | None":
        if _no_access_to_default_qos(session, answer):
            return 0
        if not has_done(answer):
            nothing_modified(session)
            return None
        if answer.names:
            print_names(session, " Modified accounts...", answer.names)
        if answer.associations:
            say(session, [" Modified account associations...", *map(_modified_line, answer.associations)])
        return 0

    return alter(session, "modify", "account", request, tell)


def _modify_user(session: "Session", request: Request) -> int:
    if not has_something_to_set(session, request):
        return 1
    context = session.context
    if request.set.get("admin_level") == "":
        nothing_modified(session)
        context.complain(
            "sacctmgr: accounting_storage/slurmdbd: acct_storage_p_modify_users: Request didn't affect anything or your user doesn't have privilege"
            " to perform this action"
        )
        return 1

    def tell(answer: Answer) -> "int | None":
        if _no_access_to_default_qos(session, answer):
            return 0
        strange = False
        for problem, what in (("not_in_account", "account"), ("not_of_wckey", "wckey")):
            lines = [names for kind, names in answer.problems if kind == problem]
            if lines:
                strange = True
                context.print(f" Can't modify because these users aren't associated with new default {what} '{lines[0][2]}'...")
                say(session, [f"  U = {user} C = {cluster}" for user, cluster, _ in lines])
        if answer.names:
            print_names(session, " Modified users...", answer.names)
        if answer.associations:
            say(session, [" Modified user associations...", *map(_modified_line, answer.associations)])
        if not strange and not has_done(answer):
            nothing_modified(session)
            return None
        return 1 if strange else 0

    return alter(session, "modify", "user", request, tell)


def _modify_qos(session: "Session", request: Request) -> int:
    if not request.set and request.is_well:
        session.context.complain(" You didn't give me anything to set")
    if not request.set or not request.is_well:
        return 1

    def tell(answer: Answer) -> "int | None":
        if not answer.names:
            nothing_modified(session)
            return None
        print_names(session, " Modified qos...", answer.names)
        return 0

    return alter(session, "modify", "qos", request, tell)


# --- delete --------------------------------------------------------------------------------------------------------------------


def has_conditions(session: "Session", request: Request) -> bool:
    if not request.where:
        session.context.complain(" No conditions given to remove, not executing.")
        return False
    return request.is_well


def tell_deleted(session: "Session", answer: Answer, head: str, associations_head: str = "") -> "int | None":
    if not has_done(answer):
        session.context.print(" Nothing deleted")
        return None
    if answer.names:
        print_names(session, head, answer.names)
    else:
        say(session, [associations_head, *map(_deleted_line, answer.associations)])
    return 0


def _delete_cluster(session: "Session", request: Request) -> int:
    if not request.is_well or not has_conditions(session, request):
        return 1
    return alter(session, "delete", "cluster", request, lambda answer: tell_deleted(session, answer, " Deleting clusters..."))


_KEEP_ACCOUNTS = (
    " Please either remove the accounts listed above from list and resubmit,\n or change these users' default accounts to remove the account(s)."
)
_CHANGE_DEFAULTS = (
    " You must change the default account of these users or remove the users completely from the affected clusters to allow these changes."
)


def _tell_default_accounts(session: "Session", answer: Answer, advice: str) -> None:
    """Whose default account would go."""
    complain = session.context.complain
    complain(" Error with request: You can not remove the default account of a user")
    for _, (cluster, account, user) in answer.problems:
        complain(f"  C = {cluster:<15} A = {account:<10} U = {user:<9}")
    complain(advice)
    complain(" Changes Discarded")


def _delete_account(session: "Session", request: Request) -> int:
    if not has_conditions(session, request):
        return 1
    complain = session.context.complain

    def tell(answer: Answer) -> "int | None":
        if any(kind == "root" for kind, _ in answer.problems):
            complain(" You are not allowed to remove the root account.\n Use remove cluster instead.")
            return None
        if answer.problems:
            _tell_default_accounts(session, answer, _KEEP_ACCOUNTS)
            return None
        return tell_deleted(session, answer, " Deleting accounts...", " Deleting account associations...")

    return alter(session, "delete", "account", request, tell)


def _delete_user(session: "Session", request: Request) -> int:
    if not has_conditions(session, request):
        return 1

    def tell(answer: Answer) -> "int | None":
        if answer.problems:
            _tell_default_accounts(session, answer, _CHANGE_DEFAULTS)
            return None
        if not answer.associations:
            return tell_deleted(session, answer, " Deleting users...")
        say(session, [" Deleting user associations...", *map(_deleted_line, answer.associations)])
        if answer.names:
            print_names(session, " Deleting users (No Associations)...", answer.names)
        return 0

    return alter(session, "delete", "user", request, tell)


def _delete_qos(session: "Session", request: Request) -> int:
    if not has_conditions(session, request):
        return 1

    def tell(answer: Answer) -> "int | None":
        if not answer.problems:
            return tell_deleted(session, answer, " Deleting QOS(s)...")
        complain = session.context.complain
        complain(" Associations listed below have these as their Default QOS.")
        for _, names in answer.problems:
            complain(_default_qos_line(names))
        complain(
            " Please either remove the qos' listed above from list and resubmit,\n or change the default qos to remove the qos.\n Changes Discarded"
        )
        return None

    return alter(session, "delete", "qos", request, tell)


def _modify_job(session: "Session", request: Request) -> int:
    """What could not be understood is passed over."""
    context = session.context
    for word in request.where.get("names", []):
        context.complain(f" Unknown condition: {word}\n Use keyword 'set' to modify value")
    if not request.set:
        context.complain(" You didn't give me anything to set")
    if request.where.get("names") or not request.set or not request.is_well:
        return 1
    strange = next((each for each in request.where.get("job_ids", []) if not each.isdigit()), None)
    if strange is not None:
        context.fatal(f"Bad job/step specified: {strange}")
        return 1

    def tell(answer: Answer) -> "int | None":
        from understudy.commands.texts import timestamp

        if not answer.names:
            context.complain(
                "sacctmgr: accounting_storage/slurmdbd: acct_storage_p_modify_job: Request didn't affect anything or your user doesn't have privilege"
                " to perform this action"
            )
            nothing_modified(session)
            return None
        jobs = [name.split() for name in answer.names]
        print_names(session, " Modified jobs...", [f"{number} submitted at {timestamp(int(submitted))}" for number, submitted in jobs])
        return 0

    return alter(session, "modify", "job", request, tell)


def _delete_coordinator(session: "Session", request: Request) -> int:
    context = session.context
    if not request.is_well:
        return 1
    names, accounts = request.where.get("names", []), request.where.get("accounts", [])
    if not names and not accounts:
        context.complain(" You need to specify a user list or account list here.")
        return 1

    def tell(answer: Answer) -> "int | None":
        if _tell_strangers(session, answer):
            return None
        if names:
            print_names(session, " Removing Coordinators with user name", names)
            print_names(session, " From Account(s)" if accounts else " From all accounts", accounts)
        else:
            print_names(session, " Removing all users from Accounts", accounts)
        if not answer.associations:
            context.print(" Nothing removed")
            return None
        context.print(" Removed Coordinators (sub accounts not listed)...")
        say(session, [f"  U = {user:<9} A = {account:<10}" for _, account, _, user, _ in answer.associations])
        return 0

    return alter(session, "delete", "coordinator", request, tell)
