"""What srun and salloc share: their options beside sbatch's, and getting resources, with what Slurm
says while one waits.

Place: under both commands. Follows srun(1) and salloc(1) of 22.05.
"""

import os
import time

from understudy.commands.shared.client import Client, RefusedError, pack_named
from understudy.commands.shared.context import Context
from understudy.commands.shared.options import Option, OptionTable
from understudy.commands.submission.job import CONTRARY_TIMES, BadOptionError, Job
from understudy.commands.submission.numbers import number
from understudy.commands.submission.option_table import OPTIONS as BATCH_OPTIONS
from understudy.model.environment import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_ALREADY_DONE = 2021
_BUSY = 2016
_TIMED_OUT = 110
# what --immediate is to blame for
_AT_ONCE_CODES = frozenset((11, _TIMED_OUT, 2013, _BUSY, 2068, 2070))
_CANCELLED_STATE, _TIMEOUT_STATE = 4, 6
_NOT_OF_BATCH = frozenset(
    (
        *(
            "array",
            "batch",
            "export-file",
            "ignore-pbs",
            "parsable",
            "requeue",
            "no-requeue",
            "wait",
            "wrap",
            "test-only",
            "input",
            "output",
            "error",
        ),
        *("open-mode", "export", "propagate", "usage", "help", "version", "quiet", "verbose"),
    )
)
# What there is to say when --immediate's seconds are over.
_TOO_LATE = {
    "salloc": (_TIMED_OUT, "Connection timed out"),
    "srun": (_BUSY, "Requested nodes are busy"),
}


class Allocation:
    """The resources of a job."""

    def __init__(
        self,
        job_id: int,
        nodes: str,
        environment: list[str],
        credential: bytes,
        daemons: "list[list[str]]",
    ) -> None:
        self.job_id, self.nodes, self.credential = job_id, nodes, credential
        self.environment = read(environment)
        self.daemons = daemons
        self.components: list[Allocation] = []  # of a heterogeneous job
        self.is_ready = True  # the job may begin
        self.is_watched = False  # the controller ends the job when its command is gone

    @property
    def node_count(self) -> int:
        return int(self.environment.get("SLURM_JOB_NUM_NODES", "1"))


class AllocationError(Exception):
    """No resources."""

    def __init__(self, code: int, text: str) -> None:
        self.code, self.text = code, text
        super().__init__(text)


# Options that ambiguities do not name by the alphabet: behind these words
_PLACES = {
    "bb": "bf", "bbf": "bg", "cluster-constraint": "c", "constraint": "contiguouz",
    "jobid": "job", "threads": "ta", "cpu_bind": "cpu-bind_", "use-min-nodes": "us",
}  # fmt: skip


def table(
    prefix: str, own: "Sequence[Option]", names: "dict[str, str]", lacks: "tuple[str, ...]"
) -> OptionTable:
    """Sbatch's options that concern the job, but those that it lacks, with this command's
    environment variables, and the command's own options.
    """
    shared = []
    for option in BATCH_OPTIONS.options:
        if (
            option.long in _NOT_OF_BATCH
            or option.long in lacks
            or any(each.long == option.long for each in own)
        ):
            continue
        given = names.get(option.long)
        env = (
            given
            if given is not None
            else " ".join(name.replace("SBATCH_", prefix) for name in option.env)
        )
        taken = any(each.short == option.short for each in own) if option.short else False
        shared.append(
            Option(
                option.long,
                "" if taken else option.short,
                option.value,
                option.help,
                env=env,
                dest=option.dest,
                env_dest=option.by_variable.dest,
            )
        )
    return OptionTable(
        sorted([*shared, *own], key=lambda option: _PLACES.get(option.long, option.long.lower()))
    )


def immediate_s(value: str | None) -> int:
    """--immediate[=SECONDS]."""
    return 1 if not value else number("immediate", value, 0, said="immediate")


def exit_code(error: AllocationError, immediate: int, environ: "Mapping[str, str]") -> int:
    """What a command that got no resources ends with: SLURM_EXIT_IMMEDIATE where --immediate is to
    blame, else SLURM_EXIT_ERROR.
    """
    text = environ.get(
        "SLURM_EXIT_IMMEDIATE" if blames_immediate(error, immediate) else "SLURM_EXIT_ERROR", ""
    )
    return int(text) if text.isdigit() and int(text) else 1


def blames_immediate(error: AllocationError, immediate: int) -> bool:
    """Whether there might have been resources, had the user waited."""
    return bool(immediate) and error.code in _AT_ONCE_CODES


def complete(job: Job, command: str, arguments: list[str], context: Context, name: str) -> None:
    """What follows from no option."""
    spec = job.spec
    spec.setdefault("name", name)
    spec.setdefault("work_dir", os.getcwd())
    spec["command"] = command
    job.extra["alloc_node"] = os.uname().nodename.partition(".")[0]
    job.extra["alloc_sid"] = str(os.getsid(0))
    spec["submit_line"] = " ".join([context.program, *arguments])
    spec["extra"] = job.extra
    for text, field in ((job.begin, "begin_time"), (job.deadline, "deadline")):
        if text:
            from understudy.model.moments import parse_time

            # the cluster's clock, which may be a virtual one
            now = context.client.query("ping", ["host"]).now
            spec[field] = float(parse_time(text, now))
    if job.begin and job.deadline and spec["begin_time"] > spec["deadline"]:
        raise BadOptionError(CONTRARY_TIMES, 1)


def of_answer(answer: "list[Any]") -> Allocation:
    """From the fields of `Allocated`."""
    (
        job_id,
        _is_running,
        nodes,
        environment,
        _state,
        _end,
        credential,
        daemons,
        _note,
        components,
        is_ready,
        _notice,
        is_watched,
    ) = answer
    found = Allocation(job_id, nodes, environment, credential, daemons)
    found.is_ready, found.is_watched = is_ready, is_watched
    found.components = [of_answer(each[1:]) for each in components]
    return found


def allocate(
    job: Job, immediate: int, context: Context, others: "Sequence[Job]" = (), *, quiet: bool
) -> Allocation:
    """Ask for resources and wait for them. `others`: the further components of a heterogeneous job.

    Raises:
        AllocationError: there will be none.
    """

    def say(text: str) -> None:
        if not quiet:
            context.complain(f"{context.program}: {text}")
            context.stderr.flush()

    client = context.client
    further = [pack_named("JobSpec", each.spec) for each in others]
    try:
        answer = client.submit(
            "AllocateJob",
            pack_named("JobSpec", job.spec),
            immediate == 1,
            job.user_id,
            job.group_id,
            further,
        )
    except RefusedError as error:
        *notes, last = error.text.split("\n")
        for note in notes:
            context.error(note)
        raise AllocationError(error.code, last) from None
    job_id, is_running = answer[:2]
    if is_running:
        return of_answer(answer)
    try:  # from here on an interruption is the job's end
        if note := answer[8]:
            from understudy.model.errors import ERROR_TEXT

            say(ERROR_TEXT[note])
        if context.program == "salloc":
            say(f"Pending job allocation {job_id}")
        say(f"job {job_id} queued and waiting for resources")
        later = _await(client, job_id, time.monotonic() + immediate if immediate else None)
    except KeyboardInterrupt:
        _cancel(client, job_id)
        say(f"Job allocation {job_id} has been revoked{'.' if context.program == 'salloc' else ''}")
        if context.program == "srun":
            say(f"Force Terminated JobId={job_id}")
        raise
    if later is None:
        _cancel(client, job_id)
        raise AllocationError(*_TOO_LATE[context.program])
    answer = later
    if not answer[1]:
        if answer[4] == _CANCELLED_STATE or context.program == "srun":
            say("Job has been cancelled")
        raise AllocationError(_ALREADY_DONE, "Job/step already completing or completed")
    say(f"job {job_id} has been allocated resources")
    return of_answer(answer)


class NotReadyError(Exception):
    """The job has ended before its nodes were ready. `notice`: what the controller has to say of
    it.
    """

    def __init__(self, notice: str) -> None:
        self.notice = notice
        super().__init__(notice)


def await_ready(client: Client, job_id: int) -> None:
    """Wait until nothing has to be done any more before the job may begin.

    Raises:
        NotReadyError: it has ended.
    """
    try:
        answer = _await(client, job_id, None, until_ready=True)
    except AllocationError:
        raise NotReadyError("") from None
    if answer is None or not answer[1]:
        raise NotReadyError(answer[11] if answer else "")


def _await(
    client: Client, job_id: int, until: float | None, *, until_ready: bool = False
) -> "list[Any] | None":
    """The answer when the job has started, or is ready, or is over; None when time is up."""
    while True:
        waiting = client.another()
        try:
            waiting.begin("AwaitJob", job_id, False, until_ready)
            if until is not None:
                import select

                poll = select.poll()
                poll.register(waiting.fileno(), select.POLLIN)
                if not poll.poll(max(int((until - time.monotonic()) * 1000), 0)):
                    return None
            name, answer = waiting.finish()
        except RefusedError:
            if until is not None and time.monotonic() > until:
                return None
            time.sleep(1)  # the controller is away: it may come back
            continue
        finally:
            waiting.close()
        if name == "Failure":
            raise AllocationError(answer[0], answer[1])
        return answer


def _cancel(client: Client, job_id: int) -> None:
    try:  # noqa: SIM105  contextlib costs a command time
        client.another().call("CancelJobs", [str(job_id)], None, {}, False, False, False)
    except RefusedError:
        pass


def release(client: Client, job_id: int, code: int, signal: int = 0) -> None:
    """The command is done with its job. Should the controller end meanwhile, the next one is told:
    else the job would hold its nodes for ever.
    """
    try:  # noqa: SIM105  contextlib costs a command time
        client.another().insist("CompleteJob", job_id, code, signal)
    except RefusedError:
        pass  # it had ended already
