"""What `srun -v` and SLURM_DEBUG say of a step: where it is launched, when its tasks have started,
how they ended. Scripts and debuggers read it.

Place: under srun; loaded only where it is asked for. Follows srun of 22.05.8 with one `-v`.
"""

from understudy.commands.shared.task_counts import counts
from understudy.commands.srun.task_texts import ranges_text, tasks_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.srun.step import Step
    from understudy.commands.submission.allocation import Allocation


def allocated(step: "Step", allocation: "Allocation") -> None:
    """What a job, or a component of one, has."""
    cpus = counts(allocation.environment.get("SLURM_JOB_CPUS_PER_NODE", ""))
    groups: list[list[int]] = []
    for each in cpus:
        if groups and groups[-1][0] == each:
            groups[-1][1] += 1
        else:
            groups.append([each, 1])
    text = ",".join(f"{each}(x{times})" for each, times in groups)
    nodes = allocation.environment.get("SLURM_JOB_NODELIST", allocation.nodes)
    step.say(
        f"jobid {allocation.job_id}: nodes({allocation.node_count}):`{nodes}', cpu counts: {text}"
    )


def launching(step: "Step") -> None:
    """Which tasks go to which node."""
    from understudy.model.hostlist import expand

    for share in step.shares:
        binding = share.settings.cpu_bind or "(null type)"
        step.say(f"launch/slurm: launch_p_step_launch: CpuBindType={binding}")
        for node, numbers in zip(expand(share.nodes), share.tasks, strict=True):
            text = ranges_text(numbers)
            step.say(
                f"launching StepId={step.job_id}.{step.step_id} on host {node}, "
                f"{len(numbers)} tasks: {f'[{text}]' if len(numbers) > 1 else text}"
            )


def started(step: "Step", body: bytes) -> None:
    """Tasks of nodes of one daemon have started; their numbers and processes."""
    numbers = [int(word.partition(b":")[0]) for word in body.split()]
    for node, its in step.by_node(numbers).items():
        step.say(f"launch/slurm: _task_start: Node {node}, {len(its)} tasks started")


def ended(step: "Step", status: int, numbers: list[int]) -> None:
    """Tasks of one daemon have ended alike."""
    for node, its in step.by_node(numbers).items():
        what = "1 task" if len(its) == 1 else f"{len(its)} tasks"
        step.say(
            f"launch/slurm: _task_finish: Received task exit notification for {what} of "
            f"StepId={step.job_id}.{step.step_id} (status=0x{status:04x})."
        )
        if not status:
            step.say(f"launch/slurm: _task_finish: {node}: {tasks_text(its)}: Completed")
