"""What stands before the equals signs after `sacctmgr add | modify | delete | show ENTITY`: which
keys an entity knows, and into which field each goes.

Place: under sacctmgr, tables. A key may be cut short as long as the table's least number of letters
is left; the first that fits counts. How values are read is in `words`. Follows sacctmgr(1).
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Key:
    """A key: its full name, how many letters of it are enough, the field, and how its value is
    read.
    """

    __slots__ = ("field", "kind", "least", "name")

    def __init__(self, name: str, least: int, field: str, kind: str) -> None:
        self.name, self.least, self.field, self.kind = name, least, field, kind


def _keys(text: str) -> "list[Key]":
    keys = []
    for line in filter(str.strip, text.splitlines()):
        name, least, field, kind = line.split()
        keys.append(Key(name, int(least), field, kind))
    return keys


_LIMITS = """
DefaultQOS 8 default_qos default_qos
FairShare 1 shares shares
Shares 1 shares shares
GrpCPUMins 7 grp_tres_mins tres:cpu
GrpCPURunMins 7 grp_tres_run_mins tres:cpu
GrpCPUs 7 grp_tres tres:cpu
GrpJobs 4 grp_jobs number
GrpJobsAccrue 8 grp_jobs_accrue number
GrpMemory 4 grp_tres tres:mem
GrpNodes 4 grp_tres tres:node
GrpSubmitJobs 4 grp_submit_jobs number
GrpTRES 7 grp_tres tres
GrpTRESMins 8 grp_tres_mins tres
GrpTRESRunMins 8 grp_tres_run_mins tres
GrpWall 4 grp_wall minutes
MaxCPUMinsPerJob 7 max_tres_mins_per_job tres:cpu
MaxCPUsPerJob 7 max_tres_per_job tres:cpu
MaxJobs 4 max_jobs number
MaxJobsAccrue 8 max_jobs_accrue number
MaxNodesPerJob 4 max_tres_per_job tres:node
MaxSubmitJobs 4 max_submit_jobs number
MaxTRESPerJob 7 max_tres_per_job tres
MaxTRESPerNode 11 max_tres_per_node tres
MaxTRESMinsPerJob 8 max_tres_mins_per_job tres
MaxWallDurationPerJob 4 max_wall minutes
MinPrioThres 4 min_prio_threshold number
Parent 2 parent name
Priority 3 priority number
QosLevel 1 qos qos
"""
_ACCOUNT_SET = (
    _LIMITS
    + """
Description 3 description lowered
Organization 1 organization lowered
RawUsage 3 raw_usage raw_usage
"""
)
_USER_SET = (
    _LIMITS
    + """
AdminLevel 2 admin_level level
DefaultAccount 8 default_account name
DefaultWCKey 8 default_wckey name
NewName 1 new_name name
RawUsage 3 raw_usage raw_usage
"""
)
_QOS_SET = """
Description 1 description lowered
Flags 2 flags flags
GraceTime 3 grace_time_s number
GrpCPUMins 7 grp_tres_mins tres:cpu
GrpCPURunMins 7 grp_tres_run_mins tres:cpu
GrpCPUs 7 grp_tres tres:cpu
GrpJobs 4 grp_jobs number
GrpJobsAccrue 8 grp_jobs_accrue number
GrpMemory 4 grp_tres tres:mem
GrpNodes 4 grp_tres tres:node
GrpSubmitJobs 8 grp_submit_jobs number
GrpTRES 7 grp_tres tres
GrpTRESMins 8 grp_tres_mins tres
GrpTRESRunMins 8 grp_tres_run_mins tres
GrpWall 4 grp_wall minutes
LimitFactor 1 limit_factor factor
MaxCPUMinsPerJob 7 max_tres_mins_per_job tres:cpu
MaxCPUsPerUser 11 max_tres_per_user tres:cpu
MaxCPUsPerJob 7 max_tres_per_job tres:cpu
MaxJobsAccruePerAccount 16 max_jobs_accrue_per_account number
MaxJobsAccruePA 15 max_jobs_accrue_per_account number
MaxJobsAccruePerUser 16 max_jobs_accrue_per_user number
MaxJobsAccruePU 15 max_jobs_accrue_per_user number
MaxJobsPerAccount 11 max_jobs_per_account number
MaxJobsPA 9 max_jobs_per_account number
MaxJobsPerUser 4 max_jobs_per_user number
MaxJobsPU 9 max_jobs_per_user number
MaxNodesPerUser 12 max_tres_per_user tres:node
MaxNodesPerJob 4 max_tres_per_job tres:node
MaxSubmitJobsPerAccount 17 max_submit_jobs_per_account number
MaxSubmitJobsPA 15 max_submit_jobs_per_account number
MaxSubmitJobsPerUser 4 max_submit_jobs_per_user number
MaxSubmitJobsPU 15 max_submit_jobs_per_user number
MaxTRESPerAccount 11 max_tres_per_account tres
MaxTRESPA 9 max_tres_per_account tres
MaxTRESPerJob 7 max_tres_per_job tres
MaxTRESPerNode 11 max_tres_per_node tres
MaxTRESPerUser 11 max_tres_per_user tres
MaxTRESPU 9 max_tres_per_user tres
MaxTRESMinsPerJob 8 max_tres_mins_per_job tres
MaxWallDurationPerJob 4 max_wall minutes
MinPrioThres 4 min_prio_threshold number
MinCPUs 6 min_tres_per_job tres:cpu
MinTRESPerJob 7 min_tres_per_job tres
Preempt 7 preempt preempt
PreemptMode 8 preempt_mode mode
PreemptExemptTime 8 preempt_exempt_time_s exempt
Name 1 name ignored
Priority 3 priority number
RawUsage 3 raw_usage raw_usage
UsageFactor 6 usage_factor factor
UsageThreshold 6 usage_threshold factor
"""
_ACCOUNT_WHERE = """
Names 1 names names
Acct 4 names names
Accounts 1 names names
Clusters 1 clusters names
DefaultQOS 8 default_qos known_qos
Descriptions 1 descriptions texts
Organizations 1 organizations texts
Parents 3 parents names
Partitions 3 partitions texts
QosLevel 1 qos known_qos
Users 1 users names
"""
_USER_WHERE = """
Names 1 names names
Users 1 names names
Accounts 2 accounts names
Acct 4 accounts names
AdminLevel 2 admin_levels levels
Clusters 1 clusters names
DefaultAccount 8 default_accounts names
DefaultQOS 8 default_qos known_qos
DefaultWCKey 8 default_wckeys names
Partitions 3 partitions texts
QosLevel 1 qos known_qos
WCKeys 1 wckeys names
"""
_ADDED_TO = """
Names 1 names names
Users 1 names names
Accounts 2 accounts names
Acct 4 accounts names
Clusters 1 clusters names
Partitions 3 partitions texts
WCKeys 1 wckeys names
"""
SET = {  # what `set` takes, and what `add` takes beside names
    "account": _keys(_ACCOUNT_SET),
    "user": _keys(_USER_SET),
    "qos": _keys(_QOS_SET),
    "cluster": _keys(
        _LIMITS + "\nClassification 3 classification classification\n"
        "Features 2 features signed\nFederation 3 federation name\n"
        "FedState 4 fed_state fed_state"
    ),
    "resource": _keys(
        "Count 3 count number\nDescription 1 description lowered\nFlags 2 flags no_flags\n"
        "Server 2 server name\nServerType 7 server_type text\n"
        "Type 1 type license\nPercentAllowed 1 allowed number"
    ),
    "federation": _keys("Clusters 1 clusters signed"),
    "coordinator": [],
    "job": _keys(
        "AdminComment 2 admin_comment lowered\nComment 2 comment lowered\n"
        "DerivedExitCode 12 derived_exit_status number\nDerivedEC 9 derived_exit_status number\n"
        "DerivedExitString 12 comment lowered\nDerivedES 9 comment lowered\n"
        "NewWCKey 1 wckey text\nSystemComment 2 system_comment lowered"
    ),
}
# What `set` takes, too, although it changes nothing: it is passed over, or refused.
NEVER_SET = {
    "account": _keys(
        "Accounts 1 name_of_an_account fixed\nNames 1 name_of_an_account fixed\n"
        "Acct 4 name_of_an_account fixed\nClusters 1 cluster_of_an_account fixed"
    ),
    "cluster": _keys("Names 1 names ignored\nClusters 3 names ignored"),
    "resource": _keys("Names 1 names ignored\nClusters 1 cluster_of_an_resource fixed"),
}
WHERE = {
    "job": _keys(
        "Clusters 1 clusters names\nJobs 1 job_ids jobs\nJobIDs 4 job_ids jobs\nUsers 1 users users"
    ),
    "account": _keys(_ACCOUNT_WHERE),
    "user": _keys(_USER_WHERE),
    "qos": _keys(
        "Names 1 names names\nQOSLevel 1 names names\nDescriptions 1 descriptions names\n"
        "Ids 1 ids qos_numbers\nPreemptMode 8 preempt_modes modes"
    ),
    "cluster": _keys(
        "Names 1 names names\nClusters 3 names names\nClassification 3 classifications classes\n"
        "Federations 3 federations names\nFlags 2 flags names\n"
        "RPC 1 rpc_versions any_numbers"
    ),
    "resource": _keys(
        "Names 1 names names\nClusters 1 clusters names\nDescriptions 1 descriptions names\n"
        "Ids 1 ids resource_numbers\n"
        "PercentAllowed 1 percents any_numbers\nServer 2 servers names\n"
        "ServerType 7 server_types texts"
    ),
    "federation": _keys(
        "Names 1 names names\nFederations 3 names names\nClusters 3 clusters names"
    ),
    "coordinator": _keys(
        "Names 1 names names\nUsers 1 names names\nAccounts 1 accounts names\nAcct 4 accounts names"
    ),
    "association": _keys(
        "Ids 1 ids numbers\nAssociations 2 ids numbers\nAccounts 2 accounts names\n"
        "Acct 4 accounts names\nClusters 1 clusters names\n"
        "DefaultQOS 8 default_qos known_qos\nPartitions 4 partitions texts\n"
        "Parents 3 parents names\nQosLevel 1 qos known_qos\nUsers 1 users names"
    ),
    "wckey": _keys(
        "Names 3 names names\nWCKeys 3 names names\nClusters 3 clusters names\n"
        "Ids 1 ids wckey_numbers\nUsers 1 users names"
    ),
    "tres": _keys("Names 1 names names\nIds 1 ids any_numbers\nType 2 types names"),
    "transaction": _keys(
        "Accounts 3 accounts names\nAction 4 actions action\nActors 4 actors names\n"
        "Clusters 3 clusters names\nEnd 1 before time\nIds 1 ids transaction_numbers\n"
        "Start 1 after time\nUsers 1 users names"
    ),
    "event": _keys(
        "Clusters 2 clusters names\nCondFlags 2 open open\nEnd 2 before time\n"
        "Event 1 event event\nMaxCpus 2 most_cpus cpus\n"
        "MinCpus 2 least_cpus cpus\nNodes 1 nodes nodes\nStart 4 after time\n"
        "Reason 1 reasons texts\nStates 4 states states\nUser 1 users users"
    ),
    "reservation": _keys(
        "Clusters 1 clusters names\nEnd 1 before time\nIds 1 ids numbers\n"
        "Names 2 names texts\nNodes 2 nodes nodes\nStart 5 after time"
    ),
    "problem": _keys(
        "Accounts 2 accounts names\nAcct 4 accounts names\nClusters 1 clusters names\n"
        "Users 1 users names"
    ),
    "runawayjobs": _keys("Cluster 1 clusters names"),
}
ADDED_TO = {  # where `add` puts it
    "account": _keys(
        "Names 1 names names\nAccounts 1 names names\nAcct 4 names names\nClusters 1 clusters names"
    ),
    "user": _keys(_ADDED_TO),
    "qos": _keys("Names 1 names names"),
    "cluster": _keys("Names 1 names names\nClusters 3 names names"),
    "resource": _keys("Names 1 names names\nClusters 1 clusters names"),
    "federation": _keys("Names 1 names names"),
    "coordinator": WHERE["coordinator"],
}


def find_key(keys: "Iterable[Key]", word: str) -> "Key | None":
    """The first key that the word, in any case, may stand for."""
    lowered = word.lower()
    for key in keys:
        if len(lowered) >= key.least and key.name.lower().startswith(lowered):
            return key
    return None
