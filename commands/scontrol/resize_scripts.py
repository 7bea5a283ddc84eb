"""What a job's scripts need after scontrol has changed its nodes: files that set the variables
anew. Follows scontrol of 22.05.

Place: under `update_job`, for commands that are run within a job.
"""

import os

from understudy.commands.shared.task_counts import compressed
from understudy.model.environment import RESIZED, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.shared.context import Context

_COLUMNS = ["job_id", "nodes", "node_count", "node_shares"]
_UNSET = ("SLURM_NPROCS", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE")


def write_scripts(job: str, context: "Context") -> None:
    """Write slurm_job_N_resize.csh and .sh into the working directory, and say how they are
    used.
    """
    rows = context.client.query("jobs", _COLUMNS, {"job_id": [int(job)]}).dicts()
    if not rows or not rows[0]["nodes"]:
        return
    row = rows[0]
    cpus = compressed([share[1] for share in row["node_shares"]])
    nodes, count = f'"{row["nodes"]}"', row["node_count"]
    facts = {"nodes": nodes, "node_count": count, "cpus_per_node": f'"{cpus}"'}
    values = told(RESIZED, facts)
    name = f"slurm_job_{job}_resize"
    texts = {
        f"{name}.csh": [
            *(f"setenv {key} {value}" for key, value in values.items()),
            *(f"unsetenv {key}" for key in _UNSET),
        ],
        f"{name}.sh": [
            *(f"export {key}={value}" for key, value in values.items()),
            *(f"unset {key}" for key in _UNSET),
        ],
    }
    for path, lines in texts.items():
        try:
            with open(
                os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o700), "w", encoding="utf-8"
            ) as file:
                file.write("".join(f"{line}\n" for line in lines))
        except OSError as error:
            context.complain(f"Could not create file {path}: {error.strerror}")
            return
    context.print("To reset Slurm environment variables, execute")
    context.print(f"  For bash or sh shells:  . ./{name}.sh")
    context.print(f"  For csh shells:         source ./{name}.csh")
