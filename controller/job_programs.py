"""Programs of the site around a job: PrologSlurmctld before its script, EpilogSlurmctld at its end, and what they and the nodes' programs are told.

Place: the controller's core; the edge (`programs.py`) runs them. Follows: slurm.conf(5), "PROLOG AND EPILOG SCRIPTS", and what Slurm 22.05.8 was seen
to do. Where jobs are emulated no program is run: a replay of a site's configuration must not call the site's programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.core import log
from understudy.controller.job import JobEvent
from understudy.controller.job_columns import std_in, std_out
from understudy.model.errors import SlurmError
from understudy.model.states import JobFlag

if TYPE_CHECKING:
    from understudy.controller.core import Core
    from understudy.controller.job import Job


def begin_prolog(core: Core, job: Job) -> bool:
    """Run PrologSlurmctld; the job is configuring until it has ended. Whether there is one."""
    program = core.settings.prolog_slurmctld
    if not program or core.settings.emulates_jobs:
        return False
    run = job.restarts
    job.flags |= JobFlag.CONFIGURING
    core.in_prolog.add(job.job_id)

    def ended(code: int) -> None:
        core.in_prolog.discard(job.job_id)
        if job.restarts == run and job.is_running:
            if code:
                log.error("PrologSlurmctld of job %d ended with %d", job.job_id, code)
                _give_up(core, job)
            else:
                from understudy.controller.limits import finish_configuring  # noqa: PLC0415 - limits ends jobs, which starts others

                finish_configuring(core, job, core.time.now())
        core.settled()

    core.run_script([program], {**environment(core, job), "SLURM_SCRIPT_CONTEXT": "prolog_slurmctld"}, ended)
    return True


def _give_up(core: Core, job: Job) -> None:
    """The prolog has failed: the job waits for another run, or is cancelled if it must not have one."""
    from understudy.controller.complete import end_job  # noqa: PLC0415 - ends call this module
    from understudy.controller.requeue import requeue  # noqa: PLC0415 - as above

    try:
        requeue(core, job, core.time.now(), hold=False)
    except SlurmError:
        job.killed_by = 0
        end_job(core, job, JobEvent.CANCELLED, core.time.now(), reason="None")


def run_epilog(core: Core, job: Job) -> None:
    """Run EpilogSlurmctld; nobody waits for it."""
    program = core.settings.epilog_slurmctld
    if program and not core.settings.emulates_jobs:
        core.run_script(
            [program],
            {**environment(core, job), **exit_environment(job), "SLURM_SCRIPT_CONTEXT": "epilog_slurmctld"},
            lambda code: log.error("EpilogSlurmctld of job %d ended with %d", job.job_id, code) if code else None,
        )


def node_environment(core: Core, job: Job, *, is_over: bool) -> list[str]:
    """For Prolog (or, when the job is over, Epilog) on its nodes; nothing where there is none."""
    settings = core.settings
    if settings.emulates_jobs or not (settings.has_epilog if is_over else settings.has_prolog):
        return []
    variables = environment(core, job)
    for name in ("SLURM_JOB_ACCOUNT", "SLURM_JOB_GROUP", "SLURM_JOB_NAME"):
        del variables[name]
    variables |= {"SLURM_NODELIST": variables.pop("SLURM_JOB_NODELIST"), "SLURM_UID": str(job.user_id)}
    if is_over:
        variables |= exit_environment(job)
    return [f"{name}={value}" for name, value in variables.items()]


def environment(core: Core, job: Job) -> dict[str, str]:
    """What all are told of a job."""
    from understudy.controller.arrays import array_environment  # noqa: PLC0415 - arrays end jobs

    spec, now = job.spec, core.time.now()
    found: dict[str, object] = {
        **array_environment(job),
        "SLURM_CLUSTER_NAME": core.settings.cluster_name,
        "SLURM_JOBID": job.job_id,
        "SLURM_JOB_ACCOUNT": spec.account or "(null)",
        "SLURM_JOB_COMMENT": spec.comment,
        "SLURM_JOB_CONSTRAINTS": spec.features,
        "SLURM_JOB_GID": job.group_id,
        "SLURM_JOB_GROUP": core.users.group_name(job.group_id),
        "SLURM_JOB_ID": job.job_id,
        "SLURM_JOB_LICENSES": spec.licenses,
        "SLURM_JOB_NAME": spec.name,
        "SLURM_JOB_NODELIST": job.node_list or "(null)",
        "SLURM_JOB_PARTITION": job.partition,
        "SLURM_JOB_RESERVATION": spec.reservation,
        "SLURM_JOB_RESTART_COUNT": job.restarts,
        "SLURM_JOB_UID": job.user_id,
        "SLURM_JOB_USER": core.users.user_name(job.user_id),
        "SLURM_JOB_WORK_DIR": spec.work_dir,
    }
    if not job.interactive:
        found |= {"SLURM_JOB_STDIN": std_in(core, job, now), "SLURM_JOB_STDOUT": std_out(core, job, now)}
    if job.allocation is not None:
        found |= {"SLURM_JOB_CPUS_PER_NODE": job.allocation.per_node_text(), "SLURM_JOB_NUM_NODES": job.allocation.node_count}
    return {name: str(value) for name, value in found.items() if value != ""}


def exit_environment(job: Job) -> dict[str, str]:
    """How it ended."""
    return {
        "SLURM_JOB_DERIVED_EC": str(job.derived_exit_code),
        "SLURM_JOB_EXIT_CODE": str(job.exit_code << 8 | job.exit_signal),
        "SLURM_JOB_EXIT_CODE2": f"{job.exit_code}:{job.exit_signal}",
    }
