"""srun --no-allocate: tasks on nodes without a job, and without the controller.

Place: under srun. Whoever can read the controller's key signs the step himself; all others are
refused, as Slurm's nodes refuse all but SlurmUser and root. Follows: srun(1) -Z, and what Slurm
22.05.8 was seen to do.
"""

import os
import pwd
import random
import time

from understudy.commands.shared.context import Context
from understudy.commands.srun.launch import run
from understudy.commands.srun.step import Step
from understudy.commands.submission.allocation import Allocation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.auth.keys import Keys
    from understudy.commands.srun.srun_settings import Settings
    from understudy.model.cluster import Cluster

FIRST_NUMBER = 0xFFFF0000  # jobs never have such numbers
ACCESS_DENIED, NO_ADDRESS = (
    (2002, "Access/permission denied"),
    (1012, "Can't find an address, check slurm.conf"),
)
_KILL_WAIT_S = 30


class FreeStep(Step):
    """A step of no job."""

    is_free = True
    cluster: "Cluster"
    keys: "Keys"

    def create(
        self, settings: "Settings", allocation: Allocation, _name: str, _step_id: int | None
    ) -> "list[Any]":
        from understudy.auth.credential import Signer
        from understudy.model.hostlist import compress, expand

        nodes = expand(allocation.nodes)
        tasks = _laid_out(int(settings.job.spec.get("num_tasks") or len(nodes)), len(nodes))
        if len(tasks) < len(nodes):
            nodes = nodes[: len(tasks)]
        expression, step_id = compress(nodes, sort=False), random.getrandbits(31)
        credential = Signer(self.keys).sign_step(
            allocation.job_id, 0, step_id, expression, *_user(settings), int(time.time())
        )
        daemons = []
        for daemon in self.cluster.nodeds:
            own = dict.fromkeys(expand(daemon.nodes))
            if part := [node for node in nodes if node in own]:
                daemons.append([daemon.name, daemon.address, compress(part)])
        told = [f"{name}={value}" for name, value in allocation.environment.items()]
        cpus = int(settings.job.spec.get("cpus_per_task") or 1)
        return [
            *(
                allocation.job_id,
                0,
                step_id,
                expression,
                tasks,
                [cpus * len(each) for each in tasks],
                credential,
                daemons,
                32,
            ),
            *(
                told,
                None,
                _KILL_WAIT_S,
                allocation.environment["SLURM_JOB_USER"],
                None,
                [],
                "none",
                [],
            ),
        ]


def _user(settings: "Settings") -> tuple[int, int]:
    """As whom the tasks run."""
    job = settings.job
    return (
        job.user_id if job.user_id >= 0 else os.geteuid(),
        job.group_id if job.group_id >= 0 else os.getegid(),
    )


def _laid_out(count: int, nodes: int) -> list[list[int]]:
    """The tasks of each node, in blocks; nodes without one are left out."""
    each, more = divmod(count, nodes)
    sizes = [each + (index < more) for index in range(nodes)]
    starts = [sum(sizes[:index]) for index in range(nodes)]
    return [
        list(range(start, start + size)) for start, size in zip(starts, sizes, strict=True) if size
    ]


def run_without_job(
    settings: "Settings", name: str, programs: "list[Any]", context: Context
) -> int:
    """The exit code."""
    from pathlib import Path

    from understudy.auth.handshake import AuthError
    from understudy.auth.keys import Keys
    from understudy.model.cluster import CONTROLLER, Cluster
    from understudy.model.environment import TASKS, told, written
    from understudy.model.hostlist import expand

    spec = settings.job.spec
    context.complain("srun: do not allocate resources")
    location = context.client.location
    nodes, job_id = spec["required_nodes"], FIRST_NUMBER + random.getrandbits(15)
    try:
        cluster = Cluster.load(Path(location.run_dir))
        keys = Keys(CONTROLLER, Path(cluster.key_folder))
        keys.refresh()
    except (OSError, AuthError):
        return _refused(expand(nodes), job_id, ACCESS_DENIED, context)
    known = {node for daemon in cluster.nodeds for node in expand(daemon.nodes)}
    if unknown := [node for node in expand(nodes) if node not in known]:
        for node in unknown:
            context.error(f"fwd_tree_thread: can't find address for host {node}, check slurm.conf")
        return _refused(unknown, job_id, NO_ADDRESS, context)
    user_id, group_id = _user(settings)
    facts = {
        "cluster": cluster.name,
        "group_id": group_id,
        "nodes": nodes,
        "user": pwd.getpwuid(user_id).pw_name,
        "user_id": user_id,
    }
    allocation = Allocation(job_id, nodes, written(told(TASKS, facts)), b"", [])
    spec.setdefault("name", name)
    spec.setdefault(
        "distribution",
        "cyclic" if int(spec.get("num_tasks") or 1) <= len(expand(nodes)) else "block",
    )
    step = FreeStep([(settings, allocation)], allocation, programs, context, owns_job=True)
    step.cluster, step.keys = cluster, keys
    return run(step, name)[0]


def _refused(nodes: list[str], job_id: int, why: tuple[int, str], context: Context) -> int:
    code, text = why
    step_id = random.getrandbits(31)
    for node in nodes:
        context.error(f"Task launch for StepId={job_id}.{step_id} failed on node {node}: {text}")
    context.error(f"Application launch failed: {text}")
    context.complain("srun: Job step aborted")
    return code % 256
