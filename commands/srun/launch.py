"""A step of srun: its parts from the controller, its launch, and what is done before and after.

Place: under srun, which says what is wanted; the node daemons run the tasks (see
`../docs/adr/0011-the-streams-of-steps.md`).
"""

import _signal  # type: ignore[import-not-found]  # as in client.py
import os

from understudy.commands.shared.client import pack
from understudy.commands.srun.create import Share
from understudy.commands.srun.environment import environment_of
from understudy.commands.srun.follow import Progress
from understudy.commands.srun.io import StepIO
from understudy.commands.srun.send_down import send_down
from understudy.commands.srun.step import Step
from understudy.commands.srun.streams import Streams

TYPE_CHECKING = False


def run(step: Step, name: str) -> tuple[int, int]:
    """(exit code, signal that ended the task with the highest)."""
    from understudy.model.hostlist import compress, expand

    shares = step.shares = _create(step, name)
    mpi = step.settings.own.get("mpi", shares[0].mpi_default)
    if mpi != "none":
        from understudy.commands.srun.mpi_types import check

        step.mpi = check(mpi, step.context)
    step.step_id, step.end_time, step.kill_wait_s = (
        shares[0].step_id,
        shares[0].end_time,
        shares[0].kill_wait_s,
    )
    step.tasks = [tasks for share in shares for tasks in share.tasks]
    names = [name for share in shares for name in expand(share.nodes)]
    step.nodes = shares[0].nodes if len(shares) == 1 else compress(names, sort=False)
    daemons = [daemon for share in shares for daemon in share.daemons]
    for node, numbers in zip(names, step.tasks, strict=True):
        for each in numbers:
            step.node_of[each] = node
    step.size = len(step.node_of)
    host = (
        "127.0.0.1"
        if all(address.startswith("unix:") or ":127." in address for _, address, _ in daemons)
        else os.uname().nodename
    )
    step.io = StepIO(host, os.urandom(32), len(daemons))
    step.progress = Progress(step)
    step.io.on_frame = step.progress.take
    step.progress.catch_signals()
    prolog = step.settings.own.get("prolog", "none")
    environments = [
        environment_of(step, share.settings, shares[0].environment, names, host) for share in shares
    ]
    task_environment = environments[0]
    if prolog.lower() not in {"none", ""} and (status := step.run_here(prolog, task_environment)):
        step.error(f"srun prolog failed rc = {status}. Aborting step.")
    step.streams = Streams(step, task_environment)
    if "bcast" in step.settings.own:
        step.copy_program(names)
    launch(step, environments, host)
    step.progress.follow()
    if step.terminal is not None:
        from understudy.commands.srun.terminal import restore

        restore(step.terminal)
    epilog = step.settings.own.get("epilog", "none")
    if epilog.lower() not in {"none", ""} and (status := step.run_here(epilog, task_environment)):
        step.error(f"srun epilog failed status={status}")
    if not step.owns_job and not step.is_free:  # a job's end is the step's, too
        step.progress.await_end()
    if step.progress.aborted_with is not None:
        return step.progress.aborted_with, 0
    return step.progress.highest, step.progress.ended_by


def _create(step: Step, name: str) -> list[Share]:
    """What the step has of each component."""
    if step.settings.verbose and not step.is_free:
        from understudy.commands.srun import verbose

        for _, allocation in step.parts:
            verbose.allocated(step, allocation)
    shares: list[Share] = []
    for settings, allocation in step.parts:
        first = shares[0] if shares else None
        created = step.create(settings, allocation, name, None if first is None else first.step_id)
        shares.append(
            Share(
                created,
                settings,
                sum(len(share.tasks) for share in shares),
                sum(share.size for share in shares),
            )
        )
    return shares


def launch(step: Step, environments: list[dict[str, str]], host: str) -> None:
    """Tell the node daemons: some of them, who tell the others."""
    umask = os.umask(0)
    os.umask(umask)
    pty = step.pty_size()
    if step.settings.verbose:
        from understudy.commands.srun import verbose

        verbose.launching(step)
    layout = step.tasks if len(step.shares) > 1 else []
    for share, environment, remote in zip(
        step.shares, environments, step.streams.remote, strict=True
    ):
        own = share.settings.own
        message = pack(
            "LaunchTasks", share.credential, share.job_id, share.restart, step.step_id, share.nodes,
            share.tasks, share.cpus, share.user,
            share.settings.command, [f"{name}={value}" for name, value in environment.items()],
            share.settings.work_dir, umask,
            f"tcp:{host}:{step.io.port}", step.io.key, remote["std_in"], remote["std_out"],
            remote["std_err"],
            own.get("open_mode", "").startswith("a"), step.end_time, own.get("task_prolog", ""),
            own.get("task_epilog", ""), step.programs, pty,
            step.mpi, environment.get("SLURM_JOB_NAME", ""), "unbuffered" in own or pty is not None,
            step.streams.stdin_task, share.first_node, layout, step.settings.cpu_bind,
            share.gpus, step.settings.gpu_bind, share.memory_mb,
        )  # fmt: skip
        step.note_failures(
            send_down(step.context.client, message, share.daemons, share.width, codes=True), share
        )
    if step.failure:
        step.error(f"Application launch failed: {step.failure}")
        if step.io.expected:
            step.progress.highest = 1
            step.progress.abort()
        else:
            step.progress.highest = step.failure_code % 256 or 1
            step.say("Job step aborted")
            step.progress.is_aborted = True
        step.progress.terminate(_signal.SIGKILL)
    step.streams.feed()
