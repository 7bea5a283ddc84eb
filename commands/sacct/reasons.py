"""Why a job may have waited or failed, in the words that sacct --reason takes: those of 22.05,
found by asking it for one after the other.

Place: commands alone; pure.
"""

_PLAIN = """None Priority Dependency Resources PartitionNodeLimit PartitionTimeLimit PartitionDown
PartitionInactive JobHeldAdmin BeginTime Licenses AssociationJobLimit AssociationResourceLimit
AssociationTimeLimit Reservation ReqNodeNotAvail JobHeldUser FrontEndDown DeadLine NodeDown
BadConstraints SystemFailure JobLaunchFailure NonZeroExitCode TimeLimit InactiveLimit InvalidAccount
InvalidQOS QOSUsageThreshold QOSJobLimit QOSResourceLimit QOSTimeLimit BlockMaxError BlockFreeAction
Cleaning Prolog QOSNotAllowed AccountNotAllowed AccountingPolicy DependencyNeverSatisfied
JobArrayTaskLimit BurstBufferResources BurstBufferStageIn BurstBufferOperation PowerNotAvail
PowerReserved OutOfMemory MaxMemPerLimit JobHoldMaxRequeue PartitionConfig FedJobLock
ReservationDeleted QOSMinCPUNotSatisfied QOSMinGRES QOSMinMemory QOSMinNode QOSMinEnergy QOSMinBB
QOSMinLicense QOSMinBilling QOSMinUnknown AssocMaxJobsLimit AssocGrpJobsLimit AssocMaxSubmitJobLimit
AssocGrpSubmitJobsLimit AssocMaxWallDurationPerJobLimit AssocGrpWallLimit QOSGrpJobsLimit
QOSGrpSubmitJobsLimit QOSMaxJobsPerUserLimit QOSMaxSubmitJobPerUserLimit QOSGrpWallLimit
QOSMaxWallDurationPerJobLimit MaxJobsPerAccount MaxSubmitJobsPerAccount MaxCpuPerAccount
MaxNodePerAccount MaxMemoryPerAccount MaxEnergyPerAccount MaxBillingPerAccount MaxBBPerAccount
MaxGRESPerAccount MaxLicensePerAccount MaxUnknownPerAccount"""
# endings for CPUs, for nodes, and for all else that is counted
_CPU = """{0}GrpCpuLimit {0}GrpCpuMinutesLimit {0}GrpCpuRunMinutesLimit {0}MaxCpuPerJobLimit
{0}MaxCpuPerNode {0}MaxCpuMinutesPerJobLimit"""
_NODE = """{0}GrpNodeLimit {0}GrpNodeMinutes {0}GrpNodeRunMinutes {0}MaxNodePerJobLimit
{0}MaxNodeMinutesPerJob"""
_OTHER = """{0}Grp{1} {0}Grp{1}Minutes {0}Grp{1}RunMinutes {0}Max{1}PerJob {0}Max{1}PerNode
{0}Max{1}MinutesPerJob"""


def known_reasons() -> "dict[str, str]":
    """Each reason, by its small letters."""
    words = _PLAIN.split()
    for of_whom, memory in (("Assoc", "Mem"), ("QOS", "Memory")):
        words += _CPU.format(of_whom).split() + _NODE.format(of_whom).split()
        words.append(f"{of_whom}GrpMemLimit")
        for kind in (memory, "Energy", "Billing", "BB", "Gres", "License", "Unknown"):
            words += _OTHER.format(of_whom, kind).split()
    words += ["QOSMaxCpuPerUserLimit", "QOSMaxNodePerUserLimit"]
    for kind in ("Memory", "Energy", "Billing", "BB", "Gres", "License", "Unknown"):
        words.append(f"QOSMax{kind}PerUser")
    never = ("GrpMem", "GrpMemory", "MaxLicensePerNode")
    gone = {f"{of_whom}{name}" for of_whom in ("Assoc", "QOS") for name in never}
    gone.add("QOSMaxBBMinutesPerJob")
    return {word.lower(): word for word in words if word not in gone}
