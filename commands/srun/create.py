"""A step, or its part in a component of a job, from the controller.

Place: under srun.
"""

import _signal  # type: ignore[import-not-found]  # as in client.py
import os
import time

from understudy.commands.shared.client import RefusedError, pack_named
from understudy.commands.shared.context import Context
from understudy.commands.srun.srun_settings import StepError
from understudy.commands.submission.gres import gpus_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.commands.srun.srun_settings import Settings
    from understudy.commands.submission.allocation import Allocation

_BUSY = 2016
_RETRY_S = (0.05, 1.0)  # ours: the first and the longest pause before a step is asked for again


class Share:
    """What a step has of one component of a job, which for most jobs is all of it. `first_node`,
    `first_task`: how many come before its own.
    """

    def __init__(
        self, created: "list[Any]", settings: "Settings", first_node: int, first_task: int
    ) -> None:
        (
            self.job_id,
            self.restart,
            self.step_id,
            self.nodes,
            tasks,
            self.cpus,
            self.credential,
            self.daemons,
            self.width,
        ) = created[:9]
        self.environment, self.end_time, self.kill_wait_s, self.user = created[9:13]
        self.tasks: list[list[int]] = [
            [number + first_task for number in numbers] for numbers in tasks
        ]
        self.size = sum(map(len, tasks))
        self.gpus, self.mpi_default, self.memory_mb = created[14:17]
        self.first_node, self.first_task, self.settings = first_node, first_task, settings


def create_step(
    settings: "Settings",
    allocation: "Allocation",
    name: str,
    step_id: int | None,
    context: Context,
    *,
    owns_job: bool,
) -> "list[Any]":
    """The step, or its part in a component, from the controller; waits while others use its
    CPUs.
    """
    wanted = _wanted(settings, allocation, name, owns_job=owns_job)
    if step_id is not None:
        wanted["step_id"] = step_id
    if not owns_job:
        _check_counts(wanted, settings, allocation, context)
    before = {
        each: _signal.signal(each, _interrupted)
        for each in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP)
    }
    try:
        return _ask(wanted, settings, allocation, context)
    except _InterruptedError as error:
        context.complain(f"srun: Cancelled pending job step with signal {error.args[0]}")
        context.error(
            f"Unable to create step for job {allocation.job_id}: Job/step already "
            "completing or completed"
        )
        raise StepError from None
    finally:
        for number, handler in before.items():
            _signal.signal(number, handler)


def _wanted(
    settings: "Settings", allocation: "Allocation", name: str, *, owns_job: bool
) -> "dict[str, Any]":
    """The fields of StepSpec. A step for which the job was made takes all of it."""
    spec = settings.job.spec
    own = settings.own
    wanted: dict[str, Any] = {
        "name": spec.get("name") if "job_name" in settings.on_line or owns_job else name,
        "submit_line": " ".join(["srun", *settings.arguments]),
        "host": os.uname().nodename.partition(".")[0],
        "pid": os.getpid(),
        "overlap": "overlap" in own,
        "exact": "exact" in own or ("exclusive" in own and not owns_job),
    }
    for ours, theirs in (
        ("required_nodes", "nodes"),
        ("excluded_nodes", "excluded_nodes"),
        ("distribution", "distribution"),
    ):
        if spec.get(ours) and not (
            owns_job and ours == "required_nodes" and spec.get("distribution") != "arbitrary"
        ):
            wanted[theirs] = spec[ours]
    for field in (
        "min_nodes",
        "max_nodes",
        "num_tasks",
        "cpus_per_task",
        "ntasks_per_node",
        "overcommit",
        "mem_per_node_mb",
        "mem_per_cpu_mb",
    ):
        if spec.get(field) is not None and not (
            owns_job and field.startswith(("mem", "min", "max"))
        ):
            wanted[field] = spec[field]
    if not owns_job and "num_tasks" in wanted and "min_nodes" in wanted:
        wanted.pop("ntasks_per_node", None)  # Slurm lays tasks out by the job's CPUs then
    if owns_job:
        wanted["min_nodes"] = wanted["max_nodes"] = allocation.node_count
        wanted.setdefault("distribution", "block")
    gpus = gpus_of(spec.get("tres_per_job")) or gpus_of(spec.get("gres"))
    if owns_job and gpus and spec.get("ntasks_per_tres"):
        wanted["num_tasks"] = max(spec.get("num_tasks") or 0, gpus * spec["ntasks_per_tres"])
    elif owns_job and "num_tasks" not in wanted:
        wanted["num_tasks"] = allocation.node_count * int(spec.get("ntasks_per_node") or 1)
    if spec.get("time_limit_s") and not owns_job:
        wanted["time_limit_s"] = spec["time_limit_s"]
    if not owns_job:
        for ours, theirs in (
            ("gres", "gres"),
            ("tres_per_job", "tres_per_step"),
            ("tres_per_task", "tres_per_task"),
        ):
            if ours in spec:
                wanted[theirs] = spec[ours]
    if asked := settings.asked_gres:
        wanted["asked"] = asked
    if settings.relative is not None:
        wanted["relative"] = settings.relative
    if ports := int(settings.own.get("resv_ports") or 0):
        wanted["ports"] = ports
    if os.path.exists(wanted.get("nodes", "")) and "/" in wanted["nodes"]:
        wanted.pop("nodes")
    return wanted


class _InterruptedError(Exception):
    """A signal came before there was a step to hand it to; its number."""


def _interrupted(number: int, _frame: object) -> None:
    raise _InterruptedError(number)


def _ask(
    wanted: "dict[str, Any]", settings: "Settings", allocation: "Allocation", context: Context
) -> "list[Any]":
    """The step, as soon as there is room for it."""
    pause, longest = _RETRY_S
    until = time.monotonic() + settings.immediate if settings.immediate else None
    has_waited = False
    client = context.client
    while True:
        try:
            created: list[Any] = client.submit(
                "CreateStep", allocation.job_id, pack_named("StepSpec", wanted)
            )
        except RefusedError as error:
            left = None if until is None else until - time.monotonic()
            if error.code != _BUSY or (left is not None and left <= 0):
                *notes, last = error.text.split("\n")
                for note in notes:
                    context.error(note)
                context.error(f"Unable to create step for job {allocation.job_id}: {last}")
                raise StepError from None
            if left is not None and settings.immediate == 1:
                time.sleep(left)
                continue
            if not has_waited and not settings.quiet:
                context.complain(
                    f"srun: Job {allocation.job_id} step creation temporarily disabled, "
                    "retrying (Requested nodes are busy)"
                )
            has_waited = True
            time.sleep(pause)
            pause = min(pause * 2, longest)
            continue
        if has_waited and not settings.quiet:
            context.complain(f"srun: Step created for job {allocation.job_id}")
        return created


def _check_counts(
    wanted: "dict[str, Any]", settings: "Settings", allocation: "Allocation", context: Context
) -> None:
    held = allocation.node_count
    least = wanted.get("min_nodes")
    if least is None:
        return
    is_asked = "nodes" in settings.on_line
    if settings.relative is not None and settings.relative + least > held:
        what = "--nodes" if is_asked else "SLURM_JOB_NUM_NODES"
        context.error(
            f"--relative and {what} option incompatible with count of allocated nodes "
            f"({settings.relative}+{least}>{held})"
        )
        raise StepError
    if least > held and is_asked:
        context.error(f"Only allocated {held} nodes asked for {least}")
        raise StepError
