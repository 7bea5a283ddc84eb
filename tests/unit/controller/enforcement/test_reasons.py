"""Names of limits. As recorded from real Slurm 22.05.8, each with a job that met the limit."""

import pytest

from understudy.controller.enforcement.reasons import ASSOCIATION, QOS, is_limit, of_tres

RECORDED = """
QOS per_job cpu QOSMaxCpuPerJobLimit
QOS per_job node QOSMaxNodePerJobLimit
QOS per_job mem QOSMaxMemoryPerJob
QOS per_job gres/gpu QOSMaxGRESPerJob
QOS per_job license/lic QOSMaxLicensePerJob
QOS per_job billing QOSMaxBillingPerJob
QOS per_node cpu QOSMaxCpuPerNode
QOS per_node mem QOSMaxMemoryPerNode
QOS grp cpu QOSGrpCpuLimit
QOS grp mem QOSGrpMemLimit
QOS grp node QOSGrpNodeLimit
QOS grp gres/gpu QOSGrpGRES
QOS grp license/lic QOSGrpLicense
QOS grp_mins cpu QOSGrpCPUMinutesLimit
QOS grp_mins mem QOSGrpMemoryMinutes
QOS grp_run_mins cpu QOSGrpCPURunMinutesLimit
QOS grp_run_mins gres/gpu QOSGrpGRESRunMinutes
QOS mins_per_job cpu QOSMaxCpuMinutesPerJobLimit
QOS mins_per_job gres/gpu QOSMaxGRESMinutesPerJob
QOS per_user cpu QOSMaxCpuPerUserLimit
QOS per_user node QOSMaxNodePerUserLimit
QOS per_user mem QOSMaxMemoryPerUser
QOS per_user gres/gpu QOSMaxGRESPerUser
QOS per_account cpu MaxCpuPerAccount
QOS per_account node MaxNodePerAccount
QOS per_account mem MaxMemoryPerAccount
QOS min cpu QOSMinCpuNotSatisfied
QOS min node QOSMinNode
QOS min gres/gpu QOSMinGRES
QOS min mem QOSMinMemory
Assoc per_job cpu AssocMaxCpuPerJobLimit
Assoc per_job node AssocMaxNodePerJobLimit
Assoc per_job mem AssocMaxMemPerJob
Assoc per_job gres/gpu AssocMaxGRESPerJob
Assoc per_job billing AssocMaxBillingPerJob
Assoc per_node cpu AssocMaxCpuPerNode
Assoc per_node mem AssocMaxMemPerNode
Assoc grp mem AssocGrpMemLimit
Assoc grp gres/gpu AssocGrpGRES
Assoc grp_mins cpu AssocGrpCPUMinutesLimit
Assoc grp_mins mem AssocGrpMemMinutes
Assoc grp_run_mins cpu AssocGrpCPURunMinutesLimit
Assoc mins_per_job cpu AssocMaxCpuMinutesPerJobLimit
Assoc mins_per_job gres/gpu AssocMaxGRESMinutesPerJob
Assoc grp vmem AssocGrpUnknown
"""


@pytest.mark.parametrize("line", RECORDED.strip().splitlines())
def test_limits_have_slurms_names(line: str) -> None:
    owner, form, tres, reason = line.split()
    assert owner in (ASSOCIATION, QOS)
    assert of_tres(owner, form, tres) == reason
    assert is_limit(reason)


def test_other_reasons_are_no_limits() -> None:
    assert not any(
        map(is_limit, ("Resources", "Priority", "QOSNotAllowed", "MaxMemPerLimit", "Licenses"))
    )
