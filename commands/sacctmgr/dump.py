"""sacctmgr dump: a cluster's associations as the text that `sacctmgr load` of Slurm reads.

Place: under sacctmgr. Follows sacctmgr(1), FLAT FILE DUMP AND LOAD.
"""

from understudy.commands.sacctmgr import words as sw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.commands.sacctmgr.session import Session

    Row = dict[str, Any]

_HEADER = """\
# To edit this file start with a cluster line for the new cluster
# Cluster - 'cluster_name':MaxTRESPerJob=node=50
# Followed by Accounts you want in this fashion (root is created by default)...
# Parent - 'root'
# Account - 'cs':MaxTRESPerJob=node=5:MaxJobs=4:Description='Computer Science':Organization='LC'
# and by users, each behind the account to which it belongs:
# Parent - 'cs'
# User - 'lipari':MaxJobs=3:Fairshare=1
"""
_LIMITS = (
    ("GrpTRESMins", "grp_tres_mins"),
    ("GrpTRESRunMins", "grp_tres_run_mins"),
    ("GrpTRES", "grp_tres"),
    ("GrpJobs", "grp_jobs"),
    ("GrpJobsAccrue", "grp_jobs_accrue"),
    ("GrpSubmitJobs", "grp_submit_jobs"),
    ("GrpWall", "grp_wall"),
    ("MaxJobs", "max_jobs"),
    ("MaxJobsAccrue", "max_jobs_accrue"),
    ("MaxSubmitJobs", "max_submit_jobs"),
    ("MaxTRESPerJob", "max_tres_per_job"),
    ("MaxTRESPerNode", "max_tres_per_node"),
    ("MaxTRESMinsPerJob", "max_tres_mins_per_job"),
    ("MaxWallDurationPerJob", "max_wall"),
    ("MinPrioThreshold", "min_prio_threshold"),
    ("Priority", "priority"),
)


def dump(session: "Session", words: list[str]) -> int:
    """Write the file, and what goes into it to stderr as Slurm does. The exit code."""
    context = session.context
    cluster = path = ""
    code = 0
    for word in words:
        key, _, value = sw.split_word(word)
        if key and "file".startswith(key.lower()):
            path = value
        elif not key or "cluster".startswith(key.lower()):
            if cluster:
                context.complain(f" Can only do one cluster at a time.  Already doing {cluster}")
                code = 1
            else:
                cluster = value.lower()
        else:
            context.complain(f" Unknown option: {word}")
            code = 1
    if not cluster:
        context.complain(" We need a cluster to dump.")
        return 1
    if not session.table.rows("clusters", ["cluster"], {"names": [cluster]}):
        context.complain(f" Cluster {cluster} doesn't exist.")
        return 1
    if not path:
        path = f"./{cluster}.cfg"
        context.print(f" No filename given, using {path}.")
    if not session.is_administrator():
        context.complain(" Your user does not have sufficient privileges to dump clusters.")
        return 1
    lines = _lines(session, cluster)
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(_HEADER + "\n".join(lines) + "\n")
    except OSError as error:
        context.complain(f"Can't open file {path}, {error.strerror}")
        return code
    for line in lines:
        context.complain(f"sacctmgr: {line}")
    return code


def _lines(session: "Session", cluster: str) -> list[str]:
    table = session.table
    fields = [field for _, field in _LIMITS]
    rows = table.rows(
        "associations",
        [
            "id",
            "parent_id",
            "account",
            "user",
            "partition",
            "shares",
            "qos",
            "default_qos",
            *fields,
        ],
        {"clusters": [cluster]},
        ["raw"],
    )
    accounts = {
        row["name"]: row for row in table.rows("accounts", ["name", "description", "organization"])
    }
    users = {
        row["name"]: row
        for row in table.rows(
            "users",
            ["name", "admin_level", "default_account", "default_wckey", "coordinates"],
            None,
            ["raw"],
        )
    }
    keys: dict[str, list[str]] = {}
    for row in table.rows("wckeys", ["name", "user"], {"clusters": [cluster]}):
        keys.setdefault(row["user"], []).append(row["name"])
    below: dict[int, list[Row]] = {}
    for row in rows:
        below.setdefault(row["parent_id"], []).append(row)
    root = below[0][0]
    lines = [f"Cluster - '{cluster}'" + _limits(root)]

    def walk(parent: "Row") -> None:
        children = below.get(parent["id"], [])
        if not children:
            return
        lines.append(f"Parent - '{parent['account']}'")
        for row in children:
            if row["user"]:
                lines.append(
                    f"User - '{row['user']}'"
                    + _user(row, users[row["user"]], keys.get(row["user"], []))
                    + _limits(row)
                )
            else:
                account = accounts[row["account"]]
                own = (
                    f":Description='{account['description']}':Organization="
                    f"'{account['organization']}'"
                )
                lines.append(f"Account - '{row['account']}'" + own + _limits(row))
        for row in children:
            if not row["user"]:
                walk(row)

    walk(root)
    return lines


def _user(row: "Row", user: "Row", keys: list[str]) -> str:
    text = f":Partition='{row['partition']}'" if row["partition"] else ""
    text += f":DefaultAccount='{user['default_account'] or '(null)'}'"
    if user["default_wckey"]:
        text += f":DefaultWCKey='{user['default_wckey']}'"
    if user["admin_level"] != "None":
        text += f":AdminLevel='{user['admin_level']}'"
    if user["coordinates"]:
        text += f":Coordinator='{','.join(user['coordinates'])}'"
    if keys:
        text += f":WCKeys='{','.join(keys)}'"
    return text


def _limits(row: "Row") -> str:
    text = f":Fairshare={row['shares']}"
    for label, field in _LIMITS:
        value = row[field]
        if value is not None and value != {}:
            is_text = field in {"max_wall", "grp_wall"}
            text += f":{label}={value if is_text else sw.text_of_limit(field, value)}"
    if row["default_qos"]:
        text += f":DefaultQOS='{row['default_qos']}'"
    if row["qos"]:
        text += f":QOS='{','.join(sorted(row['qos']))}'"
    return text
