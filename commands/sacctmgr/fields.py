"""The columns of `sacctmgr show`: their names for `format=`, headers, widths, and how they become
text.

Place: under sacctmgr, pure. Text longer than its column ends in `+`. Follows what 22.05.8 prints.
"""

from understudy.commands.sacctmgr.words import text_of_limit, wall_text
from understudy.commands.shared.texts import last_of_each, timestamp
from understudy.model import tres
from understudy.model.times import leading_integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Row = dict[str, Any]


class Column:
    """One column. A negative width: to the left."""

    __slots__ = ("header", "least", "make", "name", "width")

    def __init__(
        self, name: str, least: int, header: str, width: int, make: "Callable[[Row], str]"
    ) -> None:
        self.name, self.least, self.header, self.width, self.make = name, least, header, width, make

    def with_width(self, width: int) -> "Column":
        return Column(self.name, self.least, self.header, width, self.make)


class UnknownFieldError(Exception):
    """A field of `format=` that nobody knows."""


def _plain(field: str) -> "Callable[[Row], str]":
    return lambda row: "" if row.get(field) is None else str(row[field])


def _limit(field: str) -> "Callable[[Row], str]":
    return lambda row: text_of_limit(field, row.get(field))


def _either(field: str, of_qos: str) -> "Callable[[Row], str]":
    """A limit of an association; a quality of service has it for each user."""
    return lambda row: text_of_limit(field, row.get(of_qos) if of_qos in row else row.get(field))


def _sorted(field: str) -> "Callable[[Row], str]":
    return lambda row: ",".join(sorted(row.get(field) or ()))


def _listed(field: str) -> "Callable[[Row], str]":
    return lambda row: ",".join(row.get(field) or ())


def _amount(field: str, name: str) -> "Callable[[Row], str]":
    return lambda row: str((row.get(field) or {}).get(name, row.get("@amount", "")))


def _when(field: str) -> "Callable[[Row], str]":
    return lambda row: timestamp(row.get(field), "Unknown")


def _seconds(field: str) -> "Callable[[Row], str]":
    return lambda row: "" if row.get(field) is None else wall_text(row[field])


def _tres_text(row: "Row") -> str:
    """Of a node's event without the node itself; of a cluster, and of its event, with what it has
    none of.
    """
    counts = row.get("tres") or {}
    if row.get("node"):
        counts = {name: count for name, count in counts.items() if name != "node"}
    elif counts and ("node" in row or "control_host" in row):
        counts = {"energy": 0, "fs/disk": 0, "pages": 0, "vmem": 0, **counts}
    return tres.text_of(counts)


def _duration(row: "Row") -> str:
    end = row["end_time"] if row.get("end_time") is not None else row["@now"]
    return wall_text(int(end) - row["start_time"])


def _one(field: str, low: str, high: str) -> "Callable[[Row], str]":
    """A word for an event of a cluster, or of a node."""
    return lambda row: high if row.get(field) else low


ACCOUNT_WIDTH = 10
_KEY_WIDTH, _KEYS_WIDTH = 10, 20  # of a key, and of users' keys
_COLUMNS = [
    Column(
        "Account",
        3,
        "Account",
        ACCOUNT_WIDTH,
        lambda row: " " * row.get("@indent", 0) + row.get("account", ""),
    ),
    Column("Action", 4, "Action", 20, _plain("action")),
    Column("Actor", 4, "Actor", 10, _plain("actor")),
    Column("AdminLevel", 2, "Admin", 9, _plain("admin_level")),
    Column("Associations", 2, "Assocs", 10, _listed("associations")),
    Column("Classification", 3, "Class", 9, _plain("classification")),
    Column("ClusterNodes", 8, "Cluster Nodes", 20, _plain("nodes")),
    Column("Cluster", 1, "Cluster", 10, _plain("cluster")),
    Column("Coordinators", 2, "Coord Accounts", 20, _sorted("coordinators")),
    Column("ControlHost", 8, "ControlHost", 15, _plain("control_host")),
    Column("ControlPort", 8, "ControlPort", 12, _plain("control_port")),
    Column("DefaultAccount", 8, "Def Acct", 10, _plain("default_account")),
    Column("DefaultQOS", 8, "Def QOS", 9, _plain("default_qos")),
    Column("DefaultWCKey", 8, "Def WCKey", 10, _plain("default_wckey")),
    Column("Descriptions", 3, "Descr", 20, _plain("description")),
    Column("Duration", 2, "Duration", 13, _duration),
    Column("End", 2, "TimeEnd", 19, _when("end_time")),
    Column("EventRaw", 6, "EventRaw", 8, _one("node", "1", "2")),
    Column("Event", 2, "Event", 7, _one("node", "Cluster", "Node")),
    Column("Features", 3, "Features", 20, _listed("features")),
    Column("Federation", 3, "Federation", 10, _plain("federation")),
    Column("FedID", 4, "ID", 2, _plain("fed_id")),
    Column(
        "FedState",
        4,
        "FedState",
        12,
        lambda row: (
            row.get("fed_state")
            or ("" if row.get("federation") or "control_port" not in row else "NA")
        ),
    ),
    Column(
        "FedStateRaw",
        9,
        "FedStateRaw",
        11,
        lambda row: "1" if row.get("fed_state") == "ACTIVE" else "0",
    ),
    Column("Features", 3, "Features", 20, _listed("features")),
    Column(
        "Flags",
        2,
        "Flags",
        20,
        lambda row: "None" if "control_port" in row else _listed("flags")(row),
    ),
    Column("FairShare", 2, "Share", 9, _limit("shares")),
    Column("Shares", 1, "Share", 9, _limit("shares")),
    Column("GraceTime", 3, "GraceTime", 10, _seconds("grace_time_s")),
    Column("GrpCPUMins", 8, "GrpCPUMins", 11, _amount("grp_tres_mins", "cpu")),
    Column("GrpCPURunMins", 7, "GrpCPURunMins", 13, _amount("grp_tres_run_mins", "cpu")),
    Column("GrpCPUs", 6, "GrpCPUs", 8, _amount("grp_tres", "cpu")),
    Column("GrpTRES", 7, "GrpTRES", 13, _limit("grp_tres")),
    Column("GrpTRESMins", 8, "GrpTRESMins", 13, _limit("grp_tres_mins")),
    Column("GrpTRESRunMins", 8, "GrpTRESRunMins", 13, _limit("grp_tres_run_mins")),
    Column("GrpJobs", 4, "GrpJobs", 7, _limit("grp_jobs")),
    Column("GrpJobsAccrue", 8, "GrpJobsAccrue", 13, _limit("grp_jobs_accrue")),
    Column("GrpMemory", 4, "GrpMem", 7, _amount("grp_tres", "mem")),
    Column("GrpNodes", 4, "GrpNodes", 8, _amount("grp_tres", "node")),
    Column("GrpSubmitJobs", 4, "GrpSubmit", 9, _limit("grp_submit_jobs")),
    Column("GrpWall", 4, "GrpWall", 11, _limit("grp_wall")),
    Column("ID", 2, "ID", 6, _plain("id")),
    Column("Info", 3, "Info", 20, _plain("info")),
    Column("LFT", 1, "LFT", 6, _plain("left")),
    Column("LimitFactor", 6, "LimitFactor", 11, _limit("limit_factor")),
    Column("MaxCPUMinsPerJob", 7, "MaxCPUMins", 11, _amount("max_tres_mins_per_job", "cpu")),
    Column("MaxCPUsPerUser", 11, "MaxCPUsPU", 9, _amount("max_tres_per_user", "cpu")),
    Column("MaxCPUsPU", 9, "MaxCPUsPU", 9, _amount("max_tres_per_user", "cpu")),
    Column("MaxCPUsPerJob", 7, "MaxCPUs", 8, _amount("max_tres_per_job", "cpu")),
    Column("MaxTRESPerJob", 7, "MaxTRES", 13, _limit("max_tres_per_job")),
    Column("MaxTRESPerNode", 11, "MaxTRESPerNode", 14, _limit("max_tres_per_node")),
    Column("MaxTRESMinsPerJob", 8, "MaxTRESMins", 13, _limit("max_tres_mins_per_job")),
    Column("MaxTRESPerAccount", 11, "MaxTRESPA", 13, _limit("max_tres_per_account")),
    Column("MaxTRESPA", 9, "MaxTRESPA", 13, _limit("max_tres_per_account")),
    Column("MaxTRESPerUser", 11, "MaxTRESPU", 13, _limit("max_tres_per_user")),
    Column("MaxTRESPU", 9, "MaxTRESPU", 13, _limit("max_tres_per_user")),
    Column("MaxJobs", 4, "MaxJobs", 7, _either("max_jobs", "max_jobs_per_user")),
    Column(
        "MaxJobsAccruePerAccount", 16, "MaxJobsAccruePA", 15, _limit("max_jobs_accrue_per_account")
    ),
    Column("MaxJobsAccruePA", 15, "MaxJobsAccruePA", 15, _limit("max_jobs_accrue_per_account")),
    Column("MaxJobsAccruePerUser", 16, "MaxJobsAccruePU", 15, _limit("max_jobs_accrue_per_user")),
    Column("MaxJobsAccruePU", 15, "MaxJobsAccruePU", 15, _limit("max_jobs_accrue_per_user")),
    Column("MaxJobsAccrue", 8, "MaxJobsAccrue", 13, _limit("max_jobs_accrue")),
    Column("MaxJobsPerAccount", 11, "MaxJobsPA", 9, _limit("max_jobs_per_account")),
    Column("MaxJobsPA", 9, "MaxJobsPA", 9, _limit("max_jobs_per_account")),
    Column("MaxJobsPerUser", 8, "MaxJobsPU", 9, _limit("max_jobs_per_user")),
    Column("MaxJobsPU", 8, "MaxJobsPU", 9, _limit("max_jobs_per_user")),
    Column("MaxNodesPerUser", 12, "MaxNodesPU", 10, _amount("max_tres_per_user", "node")),
    Column("MaxNodesPU", 10, "MaxNodesPU", 10, _amount("max_tres_per_user", "node")),
    Column("MaxNodesPerJob", 4, "MaxNodes", 8, _amount("max_tres_per_job", "node")),
    Column("MaxSubmitJobsPerAccount", 17, "MaxSubmitPA", 11, _limit("max_submit_jobs_per_account")),
    Column("MaxSubmitJobsPA", 15, "MaxSubmitPA", 11, _limit("max_submit_jobs_per_account")),
    Column("MaxSubmitPA", 10, "MaxSubmitPA", 11, _limit("max_submit_jobs_per_account")),
    Column("MaxSubmitJobsPerUser", 14, "MaxSubmitPU", 11, _limit("max_submit_jobs_per_user")),
    Column("MaxSubmitJobsPU", 14, "MaxSubmitPU", 11, _limit("max_submit_jobs_per_user")),
    Column("MaxSubmitPU", 10, "MaxSubmitPU", 11, _limit("max_submit_jobs_per_user")),
    Column(
        "MaxSubmitJobs", 4, "MaxSubmit", 9, _either("max_submit_jobs", "max_submit_jobs_per_user")
    ),
    Column("MaxWallDurationPerJob", 4, "MaxWall", 11, _limit("max_wall")),
    Column("MinCPUs", 6, "MinCPUs", 8, _amount("min_tres_per_job", "cpu")),
    Column("MinPrioThreshold", 4, "MinPrioThres", 12, _limit("min_prio_threshold")),
    Column("MinTRESPerJob", 7, "MinTRES", 13, _limit("min_tres_per_job")),
    Column("Name", 2, "Name", 10, _plain("name")),
    Column("NodeCount", 5, "NodeCount", 9, _plain("node_count")),
    Column("NodeNames", 5, "NodeName", -15, _plain("node_names")),
    Column("Organization", 1, "Org", 20, _plain("organization")),
    Column("ParentID", 7, "ParentID", 8, _plain("parent_id")),
    Column("ParentName", 7, "ParentName", 10, _plain("parent_account")),
    Column("Partition", 3, "Partition", 10, _plain("partition")),
    Column(
        "PluginIDSelect",
        2,
        "PluginIDSelect",
        14,
        lambda row: "109" if row.get("control_port") else "0",
    ),
    Column("Preempt", 7, "Preempt", 10, _sorted("preempt")),
    Column("PreemptMode", 8, "PreemptMode", 11, _plain("preempt_mode")),
    Column("PreemptExemptTime", 8, "PreemptExemptTime", 19, _limit("preempt_exempt_time_s")),
    Column("Priority", 3, "Priority", 10, _limit("priority")),
    Column("Problem", 1, "Problem", 40, _plain("problem")),
    Column("QOSLevel", 3, "QOS", 20, _sorted("qos")),
    Column("QOSRAWLevel", 4, "QOS_RAW", 10, _plain("qos_raw")),
    Column("Reason", 1, "Reason", 30, _plain("reason")),
    Column("RGT", 1, "RGT", 6, _plain("right")),
    Column("RPC", 1, "RPC", 5, _plain("rpc_version")),
    Column("Server", 4, "Server", 10, _plain("server")),
    Column("ServerType", 7, "ServerType", 10, _plain("server_type")),
    Column("Counts", 4, "Count", 6, _plain("count")),
    Column("Allowed", 5, "% Allowed", 10, _plain("allowed")),
    Column("Allocated", 4, "% Allocated", 11, _plain("allocated")),
    Column("StateRaw", 6, "StateRaw", 8, _plain("state_raw")),
    Column("State", 1, "State", 6, _plain("state")),
    Column("TimeStamp", 1, "Time", 19, _when("time")),
    Column("Start", 1, "TimeStart", 19, _when("start_time")),
    Column("TimeStart", 7, "TimeStart", 19, _when("start_time")),
    Column("TimeEnd", 7, "TimeEnd", 19, _when("end_time")),
    Column("TRES", 2, "TRES", 20, _tres_text),
    Column("Type", 2, "Type", 8, _plain("type")),
    Column("UnusedWall", 2, "UnusedWall", 10, _plain("unused_wall")),
    Column("UsageFactor", 6, "UsageFactor", 11, _limit("usage_factor")),
    Column("UsageThreshold", 6, "UsageThres", 10, _limit("usage_threshold")),
    Column("User", 1, "User", 10, _plain("user")),
    Column("WCKeys", 2, "WCKeys", _KEYS_WIDTH, _plain("wckey")),
    Column("Where", 2, "Where", 20, _plain("where")),
]
DEFAULTS = {
    "account": "account,descr,org",
    "account assoc": (
        "account,descr,org,cluster,parentname,user,share,priority,grpjobs,grpnodes,grpcpus,"
        "grpmem,grpsubmit,grpwall,grpcpumins,maxjobs,maxnodes,maxcpus,"
        "maxsubmit,maxwall,maxcpumins,qos,defaultqos"
    ),
    "user": "user,defaultaccount,admin",
    "user assoc": (
        "user,defaultaccount,admin,cluster,account,partition,share,priority,maxjobs,maxnodes,"
        "maxcpus,maxsubmit,maxwall,maxcpumins,qos,defaultqos"
    ),
    "association": (
        "cluster,account,user,partition,share,priority,grpjobs,grptres,grpsubmit,grpwall,"
        "grptresmins,maxjobs,maxtres,maxtrespernode,maxsubmit,maxwall,"
        "maxtresmins,qos,defaultqos,grptresrunmins"
    ),
    "association short": "cluster,account,user,partition",
    "cluster": "cluster,controlhost,controlport,rpc,share,grpjobs,grptres,grpsubmit,maxjobs,"
    "maxtres,maxsubmit,maxwall,qos,defaultqos",
    "cluster short": "cluster,controlhost,controlport,rpc",
    "qos": (
        "name,priority,gracetime,preempt,preemptexempttime,preemptmode,flags%40,usagethres,"
        "usagefactor,grptres,grptresmins,grptresrunmins,grpjobs,"
        "grpsubmit,grpwall,maxtres,maxtrespernode,maxtresmins,maxwall,maxtrespu,maxjobspu,"
        "maxsubmitpu,maxtrespa,maxjobspa,maxsubmitpa,mintres"
    ),
    "tres": "type,name%15,id",
    "wckey": "wckey,cluster,user",
    "transaction": "timestamp,action,actor,where,info",
    "event": "cluster,nodenames%-15,start,end,state,reason,user",
    "event cluster": "cluster,tres,start,end,clusternodes",
    "reservation": "cluster,name%15,tres%30,start,end,unusedwall",
    "problem": "cluster,account,user,problem",
    "federation": "federation,cluster,fedid,features%20,fedstate",
    "resource": "name,server,type,counts,allocated,servertype",
}


def columns_of(text: str) -> "list[Column]":
    """The columns of a format.

    Raises:
        UnknownFieldError: with the field.
    """
    found = []
    for part in last_of_each(filter(None, text.split(","))) or [""]:
        name, _, width = part.partition("%")
        lowered = name.lower()
        column = next(
            (
                each
                for each in _COLUMNS
                if len(lowered) >= each.least and each.name.lower().startswith(lowered)
            ),
            None,
        )
        if column is None:
            raise UnknownFieldError(lowered)
        size = leading_integer(width)
        found.append(column.with_width(size) if size else column)
    return found


def for_entity(entity: str, column: Column) -> Column:
    """The column as it is of these: the name of a key is called one, and accounts and users have
    theirs elsewhere.
    """
    if column.name == "WCKeys" and entity == "wckey":
        width = _KEY_WIDTH if column.width == _KEYS_WIDTH else column.width
        return Column("WCKeys", 2, "WCKey", width, column.make)
    if column.name != "Name":
        return column
    if entity == "wckey":
        return Column("Name", 2, "WCKey", column.width, column.make)
    if entity in {"account", "user"}:
        return Column("Name", 2, "Name", column.width, lambda _row: "")
    return column


def lines(
    columns: "list[Column]", rows: "Iterable[Row]", *, header: bool, parsable: int
) -> "list[str]":
    """The lines to print. `parsable`: 0 for columns, 1 for fields with a `|` behind each, 2 for
    fields with a `|` between.
    """
    table = [[column.make(row) for column in columns] for row in rows]
    if parsable:
        end = "|" if parsable == 1 else ""
        heads = [[column.header for column in columns]] if header else []
        return ["|".join(texts) + end for texts in [*heads, *table]]
    found = []
    if header:
        found.append("".join([_fit(column.header, column.width, cut="") for column in columns]))
        found.append("".join(["-" * abs(column.width) + " " for column in columns]))
    found += [
        "".join(
            [_fit(text, column.width, cut="+") for text, column in zip(texts, columns, strict=True)]
        )
        for texts in table
    ]
    return found


def _fit(text: str, width: int, *, cut: str) -> str:
    size = abs(width)
    if len(text) > size:
        text = text[: size - len(cut)] + cut
    return (text.ljust(size) if width < 0 else text.rjust(size)) + " "
