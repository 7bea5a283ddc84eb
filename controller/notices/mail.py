"""Mail about jobs to those who asked for it (`--mail-type`), through MailProg.

Place: notices; the edge (`programs.py`) runs the program. It hears of every change of
a job and finds out what is new. Follows: sbatch(1) --mail-type, and the subjects of Slurm 22.05.8.
Where jobs are emulated nobody gets mail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.core.alarms import LEVELS
from understudy.controller.facts.environment import end_facts, site_environment
from understudy.model.states import JobFlag, JobState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job

NEVER: Final = "DependencyNeverSatisfied"
_WELL: Final = frozenset((JobState.COMPLETED, JobState.CANCELLED))
_PENDING, _BEGAN, _ENDED = range(3)


class Mailer:
    """Tells of jobs, of each event once."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._mailed: dict[int, tuple[int, int]] = {}  # by job id: the run, and how far it was
        self._warned: dict[int, int] = {}  # by job id: the highest percent of the limit
        self._hopeless: set[int] = set()
        self._arrays: set[int] = set()  # of which the beginning has been told

    def known(self, jobs: Iterable[Job]) -> None:
        """The jobs that the controller came back with: all that has happened to them is known."""
        for job in jobs:
            self._mailed[job.job_id] = job.restarts, _stage(job)
            if job.array is not None and _stage(job) != _PENDING:
                self._arrays.add(job.array.job_id)

    def note(self, job_id: int) -> None:
        """The job's record has changed."""
        job = self._core.tables.jobs.get(job_id)
        if job is None:
            self._mailed.pop(job_id, None)
            self._warned.pop(job_id, None)
            self._hopeless.discard(job_id)
            return
        if not job.spec.mail_type:
            return
        if job.is_pending and job.reason == NEVER and job_id not in self._hopeless:
            self._hopeless.add(job_id)
            self._tell(job, "INVALID_DEPEND", "Invalid dependency")
        before, now = self._mailed.get(job_id, (0, _PENDING)), (job.restarts, _stage(job))
        if now <= before:
            return
        self._mailed[job_id] = now
        if now[1] == _BEGAN:
            self._began(job)
        elif now[1] == _ENDED:
            self._ended(job)

    def requeued(self, job: Job) -> None:
        """A job is about to be put back into the queue."""
        self._mailed[job.job_id] = job.restarts, _ENDED
        self._tell(job, "REQUEUE", "Requeued", self._run_time(job))

    def staged_out(self, job: Job) -> None:
        """What a job left in its burst buffer is where it belongs."""
        took_s = int(self._core.time.now()) - (job.end_time or 0)
        self._tell(job, "STAGE_OUT", "Staged Out", f", StageOut time {_duration(took_s)}")

    def time_passes(self, job: Job, percent: float) -> None:
        """So much of a running job's time has passed."""
        for level in LEVELS:
            if self._warned.get(job.job_id, 0) < level <= percent:
                self._warned[job.job_id] = level
                self._tell(
                    job,
                    f"TIME_LIMIT_{level}",
                    f"Reached {level}% of time limit",
                    self._run_time(job),
                )
        if self._warned.get(job.job_id, 0) < 100 <= percent:
            self._warned[job.job_id] = 100
            self._tell(job, "TIME_LIMIT", "Reached time limit", self._run_time(job))

    # --- what is told -----------------------------------------------------------------------------

    def _began(self, job: Job) -> None:
        if _as_array(job):
            assert job.array is not None
            if job.array.job_id not in self._arrays:
                self._arrays.add(job.array.job_id)
                self._tell(job, "BEGIN", "Began")
            return
        waited = int(self._core.time.now()) - (job.eligible_time or job.submit_time)
        self._tell(
            job,
            "BEGIN",
            "Began",
            f", Queued time {_duration(waited)}",
            {"queued_time": _duration(waited)},
        )

    def _ended(self, job: Job) -> None:
        if not _as_array(job):
            is_well = job.state in _WELL
            code = "" if job.exit_signal else f", ExitCode {job.exit_code}"
            self._tell(
                job,
                "END" if is_well else "FAIL",
                "Ended" if is_well else "Failed",
                f"{self._run_time(job)}, {job.state.name}{code}",
            )
            return
        assert job.array is not None
        tasks = list(job.array.records.values())
        if not all(each.is_finished for each in tasks):
            return
        codes, states = [each.exit_code for each in tasks], {each.state for each in tasks}
        is_well = states <= _WELL
        state = job.state.name if len(states) == 1 else "Mixed"
        what, word = ("END", "Ended") if is_well else ("FAIL", "Failed")
        bounds: dict[str, object] = {
            "largest_exit_code": max(codes),
            "smallest_exit_code": min(codes),
        }
        self._tell(job, what, word, f", {state}, ExitCode [{min(codes)}-{max(codes)}]", bounds)

    def _run_time(self, job: Job) -> str:
        return f", Run time {self._duration_of(job)}"

    def _duration_of(self, job: Job) -> str:
        end = (
            job.end_time
            if job.is_finished and job.end_time is not None
            else int(self._core.time.now())
        )
        return _duration(max(end - (job.start_time or end), 0))

    def _tell(
        self, job: Job, kind: str, word: str, rest: str = "", more: dict[str, object] | None = None
    ) -> None:
        core, spec = self._core, job.spec
        if kind not in spec.mail_type.split(",") or not core.settings.mail_program:
            return
        subject = f"Slurm {_title(job)} Name={spec.name} {word}{rest}"
        facts: dict[str, object] = {"what_happened": word, "state": job.state.name}
        if kind not in {"BEGIN", "INVALID_DEPEND"}:
            facts["run_time"] = self._duration_of(job)
        if job.is_finished:
            facts |= end_facts(job) | {"largest_exit_code": job.exit_code}
        facts |= more or {}
        to = spec.mail_user or core.users.user_name(job.user_id)
        if core.settings.mail_domain and "@" not in to:
            to = f"{to}@{core.settings.mail_domain}"
        core.run_script(
            [core.settings.mail_program, "-s", subject, to],
            site_environment(core, job, **facts),
            lambda _code: None,
        )


def mail_requeued(core: Core, job: Job, _now: float) -> None:
    """The job is about to be put back into the queue."""
    if core.mailer is not None:
        core.mailer.requeued(job)


def _stage(job: Job) -> int:
    if job.is_finished:
        return _ENDED
    return _BEGAN if job.is_active and not job.flags & JobFlag.CONFIGURING else _PENDING


def _as_array(job: Job) -> bool:
    """Whether its mail is one for the whole array."""
    return job.array is not None and "ARRAY_TASKS" not in job.spec.mail_type.split(",")


def _title(job: Job) -> str:
    if job.array is None:
        return f"Job_id={job.job_id}"
    if _as_array(job):
        return f"Array Summary Job_id={job.array.job_id}_* ({job.array.job_id})"
    return f"Array Task Job_id={job.array.job_id}_{job.array_task_id} ({job.job_id})"


def _duration(seconds: int) -> str:
    days, rest = divmod(seconds, 86400)
    text = f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
    return f"{days}-{text}" if days else text
