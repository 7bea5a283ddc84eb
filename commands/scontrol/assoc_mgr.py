"""scontrol show assoc_mgr: the users, associations and qualities of service that the controller
knows, their limits and their use.

Place: under `show`. Follows: scontrol(1) of 22.05 "show assoc_mgr", and the lines that its
scontrol prints.
"""

from understudy.commands.shared.client import RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.commands.scontrol.session import Session

    Record = dict[str, Any]

_FLAGS = {"users": "users", "assoc": "associations", "qos": "QOS"}
_KEYS = ("accounts", "flags", "qos", "users")
_NO_LIMIT = "N"
_PARENTS = 0x7FFFFFFF  # Slurm's number for fairshare=parent


def show_assoc_mgr(session: "Session", words: "list[str]") -> int:
    """`users=`, `accounts=` and `qos=` choose records of the three kinds, `flags=` the kinds."""
    chosen = set(_FLAGS)
    names: dict[str, set[str]] = {}
    for word in words:
        typed, _, value = word.partition("=")
        key = next((key for key in _KEYS if typed and key.startswith(typed.lower())), None)
        if not value:
            session.context.complain(f"No value given for option {word}")
            return 0
        if key is None:
            session.complain(f"invalid entity: {word} for keyword:show assoc_mgr")
            return 1
        if key != "flags":
            names[key] = set(value.split(","))
            continue
        flags = [flag.lower() for flag in value.split(",")]
        strange = next(
            (
                flag
                for flag in flags
                if len(flag) <= 1 or not any(name.startswith(flag) for name in _FLAGS)
            ),
            None,
        )
        if strange is not None:
            session.context.complain(
                f"invalid flag '{strange}', valid options are 'Assoc, QOS, and/or Users'"
            )
            return 0
        chosen = {name for name in _FLAGS if any(name.startswith(flag) for flag in flags)}
    try:
        parts = [_part(session, kind, names) for kind in _FLAGS if kind in chosen]
    except RefusedError as error:
        session.complain(f"slurm_load_assoc_mgr_info error: {error.text}")
        return 1
    end = "\n" if session.one_line else "\n\n"
    session.context.stdout.write(
        f"Current Association Manager state{end}" + ("" if session.one_line else "\n").join(parts)
    )
    return 0


def _part(session: "Session", kind: str, names: "dict[str, set[str]]") -> str:
    title, records = _RECORDS[kind](session, names)
    end = "\n" if session.one_line else "\n\n"
    if not records:
        return f"No {_FLAGS[kind]} currently cached in Slurm.{end}"
    between = " " if session.one_line else "\n    "
    return f"{title} Records{end}" + "".join([between.join(lines) + "\n" for lines in records])


def _users(session: "Session", names: "dict[str, set[str]]") -> "tuple[str, list[list[str]]]":
    rows = _query(session, "cached_users")
    wanted = names.get("users")
    return "User", [
        [_user_line(row)] for row in rows if wanted is None or row["user_name"] in wanted
    ]


def _user_line(row: "Record") -> str:
    key = row["default_wckey"] or ("(null)" if row["is_new"] else "")
    level = row["admin_level"]
    if level == "None" and row["is_new"]:
        level = "Not Set"
    return (
        f"UserName={_who(row)} DefAccount={row['default_account'] or '(null)'} "
        f"DefWckey={key} AdminLevel={level}"
    )


def _associations(
    session: "Session", names: "dict[str, set[str]]"
) -> "tuple[str, list[list[str]]]":
    accounts, users = names.get("accounts"), names.get("users")
    return "Association", [
        _association_lines(row)
        for row in _query(session, "cached_associations")
        if (accounts is None or row["account"] in accounts)
        and (users is None or not row["user_name"] or row["user_name"] in users)
    ]


def _association_lines(row: "Record") -> "list[str]":
    parent = f"{row['parent_account']}({row['parent_id']})" if row["parent_account"] else ""
    shares = _PARENTS if row["shares"] is None else row["shares"]
    return [
        (
            f"ClusterName={row['cluster']} Account={row['account']} UserName={_who(row)} "
            f"Partition={row['partition']}"
            f" Priority={row['priority']} ID={row['association_id']}"
        ),
        (
            f"SharesRaw/Norm/Level/Factor={shares}/{row['normal_shares']:.2f}/"
            f"{row['level_shares']}/{row['fair_share']:.2f}"
        ),
        (
            f"UsageRaw/Norm/Efctv={row['raw_usage']:.2f}/{row['normal_usage']:.2f}/"
            f"{row['effective_usage']:.2f}"
        ),
        (
            f"ParentAccount={parent} Lft={row['place']} "
            f"DefAssoc={'Yes' if row['is_default'] else 'No'}"
        ),
        f"GrpJobs={_limit(row['grp_jobs'])} GrpJobsAccrue={_limit(row['grp_jobs_accrue'])}",
        f"GrpSubmitJobs={_limit(row['grp_submit_jobs'])} GrpWall={_minutes(row['grp_wall'])}",
        *_group_lines(row),
        (
            f"MaxJobs={_own_limit(row['max_jobs'])} "
            f"MaxJobsAccrue={_own_limit(row['max_jobs_accrue'])}"
            f" MaxSubmitJobs={_own_limit(row['max_submit_jobs'])} "
            f"MaxWallPJ={_number(row['max_wall'])}"
        ),
        f"MaxTRESPJ={_pairs(row['max_tres_per_job'])}",
        f"MaxTRESPN={_pairs(row['max_tres_per_node'])}",
        f"MaxTRESMinsPJ={_pairs(row['max_tres_mins_per_job'])}",
        f"MinPrioThresh={_number(row['min_prio_threshold'])}",
    ]


def _qos(session: "Session", names: "dict[str, set[str]]") -> "tuple[str, list[list[str]]]":
    wanted = names.get("qos")
    rows = _query(session, "cached_qos")
    return "QOS", [
        _qos_lines(row, one_line=session.one_line)
        for row in rows
        if wanted is None or row["name"] in wanted
    ]


def _qos_lines(row: "Record", *, one_line: bool) -> "list[str]":
    return [
        f"QOS={row['name']}({row['qos_id']})",
        f"UsageRaw={row['raw_usage']:.6f}",
        (
            f"GrpJobs={_limit(row['grp_jobs'])} GrpJobsAccrue="
            f"{_limit(row['grp_jobs_accrue'])} GrpSubmitJobs={_limit(row['grp_submit_jobs'])}"
            f" GrpWall={_minutes(row['grp_wall'])}"
        ),
        *_group_lines(row),
        f"MaxWallPJ={_number(row['max_wall'])}",
        f"MaxTRESPJ={_pairs(row['max_tres_per_job'])}",
        f"MaxTRESPN={_pairs(row['max_tres_per_node'])}",
        f"MaxTRESMinsPJ={_pairs(row['max_tres_mins_per_job'])}",
        f"MinPrioThresh={_number(row['min_prio_threshold'])} ",
        f"MinTRESPJ={_pairs(row['min_tres_per_job'])}",
        f"PreemptMode={row['preempt_mode']}",
        f"Priority={row['priority']}",
        *_within_lines("Account", "PA", row["by_account"], one_line=one_line),
        *_within_lines("User", "PU", row["by_user"], one_line=one_line),
    ]


def _within_lines(
    title: str, short: str, entries: "list[list[Any]]", *, one_line: bool
) -> "list[str]":
    """What the jobs of each account, or user, have of a QOS."""
    if not entries:
        return (
            [f"{title} Limits=No {title}s"] if one_line else [f"{title} Limits", f"    No {title}s"]
        )
    lines = [f"{title} Limits=" if one_line else f"{title} Limits"]
    for name, jobs, accruing, submitted, tres in entries:
        counts = (
            f"MaxJobs{short}={_limit(jobs)} MaxJobsAccrue{short}={_limit(accruing)} "
            f"MaxSubmitJobs{short}={_limit(submitted)}"
        )
        held = f"MaxTRES{short}={_by_tres(tres)}"
        lines += (
            [f"{name}={{{counts} {held}}}"]
            if one_line
            else [f"  {name}", f"    {counts}", f"    {held}"]
        )
    return lines


def _group_lines(row: "Record") -> "list[str]":
    names = (
        ("GrpTRES", "grp_tres"),
        ("GrpTRESMins", "grp_tres_mins"),
        ("GrpTRESRunMins", "grp_tres_run_mins"),
    )
    return [f"{name}={_by_tres(row[column])}" for name, column in names]


def _query(session: "Session", table: str) -> "list[Record]":
    from understudy.model.records import TABLES

    found: list[Record] = session.context.client.query(table, list(TABLES[table])).dicts()
    return found


def _who(row: "Record") -> str:
    if not row["user_name"]:
        return ""
    return f"{row['user_name']}({4294967294 if row['user_id'] is None else row['user_id']})"


def _limit(pair: "list[Any]") -> str:
    limit, used = pair
    return f"{_NO_LIMIT if limit is None else limit}({used})"


def _minutes(pair: "list[Any]") -> str:
    limit, used = pair
    return f"{_NO_LIMIT if limit is None else limit}({used:.2f})"


def _own_limit(pair: "list[Any]") -> str:
    return "" if pair[0] is None else _limit(pair)


def _number(value: "int | None") -> str:
    return "" if value is None else str(value)


def _pairs(limits: "list[list[Any]]") -> str:
    return ",".join([f"{name}={limit}" for name, limit in limits])


def _by_tres(entries: "list[list[Any]]") -> str:
    return ",".join(
        [f"{name}={_NO_LIMIT if limit is None else limit}({used})" for name, limit, used in entries]
    )


_RECORDS = {"users": _users, "assoc": _associations, "qos": _qos}
