"""JobCompType=jobcomp/filetxt: a line for every job that has ended, in a text file.

Place: notices; the edge hands in a function that appends a line. Follows:
slurm.conf(5) JobCompLoc, and the lines that Slurm 22.05.8 writes, blank at the end included.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from understudy.controller.facts.job import memory_text, tres_allocated, tres_requested
from understudy.model.states import JobFlag, JobState

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job

FILE_TEXT: Final = "jobcomp/filetxt"


class CompletionLog:
    """Notes which jobs have ended. A run is written down once, and once more if it is requeued when
    it is over.
    """

    def __init__(self, core: Core, write: Callable[[str], None]) -> None:
        self._core, self._write = core, write
        self._written: dict[int, tuple[int, bool]] = {}  # by job id: the run, and was it requeued

    def known(self) -> None:
        """The jobs that the controller came back with are on record as far as they had ended."""
        self._written = {
            job.job_id: (job.restarts, False)
            for job in self._core.tables.jobs.values()
            if job.is_finished
        }

    def note(self, job_id: int) -> None:
        """The job's record has changed."""
        job = self._core.tables.jobs.get(job_id)
        if job is None:
            self._written.pop(job_id, None)
        elif job.is_finished and self._written.get(job_id) != (
            run := (job.restarts, job.is_wanted_again)
        ):
            self._written[job_id] = run
            self._write(line(self._core, job))


def line(core: Core, job: Job) -> str:
    """The job's line."""
    held, spec, is_again = job.allocation, job.spec, job.is_wanted_again
    is_taken_back = job.flags & JobFlag.REQUEUE and job.state is JobState.CANCELLED
    fields: dict[str, object] = {
        "JobId": job.job_id,
        "UserId": f"{core.users.user_name(job.user_id)}({job.user_id})",
        "GroupId": f"{core.users.group_name(job.group_id)}({job.group_id})",
        "Name": spec.name,
        "JobState": "PENDING" if is_again or is_taken_back else job.state.name,  # what it becomes
        "Partition": job.partition,
        "TimeLimit": "UNLIMITED" if job.time_limit_s is None else -(-job.time_limit_s // 60),
        "StartTime": _time(job.start_time),
        "EndTime": _time(job.end_time),
        "NodeList": job.node_list or "(null)",
        "NodeCnt": held.node_count if held is not None and not is_again else 0,
        "ProcCnt": held.cpus if held is not None else 0,
        "WorkDir": spec.work_dir,
        "ReservationName": spec.reservation,
        "Tres": _resources(core, job),
        "Account": spec.account,
        "QOS": spec.qos,
        "WcKey": spec.wckey,
        "Cluster": core.settings.cluster_name
        if core.settings.enforced.associations or core.associations.qos
        else "unknown",
        "SubmitTime": _time(job.submit_time),
        "EligibleTime": _time(job.eligible_time),
    }
    if job.array is not None and job.array_task_id is not None:
        fields |= {"ArrayJobId": job.array.job_id, "ArrayTaskId": job.array_task_id}
    if job.het is not None:
        fields |= {"HetJobId": job.het.job_id, "HetJobOffset": job.het_offset}
    fields |= {
        "DerivedExitCode": f"{job.derived_exit_code}:0",
        "ExitCode": f"{job.exit_code}:{job.exit_signal}",
    }
    return " ".join(f"{name}={value}" for name, value in fields.items()) + " \n"


def _resources(core: Core, job: Job) -> str:
    """What it had or asked for; who asked for no memory counts as having all of it, even where
    memory is given to nobody.
    """
    text = tres_allocated(core, job, 0) or tres_requested(core, job, 0)
    if ",mem=" in text:
        return text
    nodes = job.allocation.node_count if job.allocation is not None else job.min_nodes
    cpus, _, rest = text.partition(",")
    partition = core.tables.partitions.get(job.partition)
    memory_mb = 0 if partition is None else partition.first_node_memory_mb
    return f"{cpus},mem={memory_text(memory_mb * nodes)},{rest}"


def _time(seconds: int | None) -> str:
    return (
        "unknown"
        if seconds is None
        else datetime.fromtimestamp(seconds, tz=UTC).astimezone().strftime("%Y-%m-%dT%H:%M:%S")
    )
