"""Options about GPUs that do not go together.

Place: model, pure: commands say it of what they submit, the controller of what it is sent. Follows
sbatch(1) --gpus and its kin; texts and their order as 22.05.8 answered 1,900 drawn combinations.
"""

_VALIDATE = "Failed to validate job spec"
_PER_NODE = "--gres=gpu/--gpus-per-node"
_NEEDS_TASKS = (
    "gres_job_state_validate: --ntasks-per-tres needs either a GRES GPU specification or a "
    "node/ntask specification"
)


def added_gpus(count: int) -> str:
    """That so many could not be added for the tasks."""
    return (
        f"gres_job_state_validate: Failed to add generated GRES gres:gpu:{count} "
        "(via ntasks_per_tres) to gres_list"
    )


NO_GPU_IS_ADDED = added_gpus(0)


_FREQUENCIES = ("low", "medium", "high", "highm1", "verbose")


def is_gpu_binding(text: str) -> bool:
    """Whether `--gpu-bind` may be this, numbers apart. Of `closest` and `none` the first letter
    counts; the others need their colon, and what is behind it may be missing.
    """
    kind, colon, numbers = text.removeprefix("verbose,").partition(":")
    if kind in {"map_gpu", "mask_gpu"} and colon:
        return True
    if kind in {"single", "per_task"} and colon:
        return not numbers.startswith("-")
    return kind[:1].lower() in {"c", "n"}


def is_gpu_frequency(text: str) -> bool:
    """Whether `--gpu-freq` may be this."""
    values = [word.rpartition("=")[2] for word in text.split(",")]
    return all(value in _FREQUENCIES or value.isdecimal() for value in values)


class GpuOptions:
    """What a job says of its GPUs, of one kind, and of the numbers that these must agree with;
    0: nothing. `threads_per_node`: as far as a node is described. No dataclass: commands start in
    less time than importing those takes.
    """

    __slots__ = (
        "asks_for_gpus",
        "cpus_per_gpu",
        "cpus_per_task",
        "max_nodes",
        "min_nodes",
        "num_tasks",
        "per_job",
        "per_node",
        "per_socket",
        "per_task",
        "sockets_per_node",
        "tasks_per_gpu",
        "tasks_per_node",
        "threads_per_node",
    )

    def __init__(
        self,
        *,
        per_job: int = 0,
        per_node: int = 0,
        per_socket: int = 0,
        per_task: int = 0,
        cpus_per_gpu: int = 0,
        tasks_per_gpu: int = 0,
        min_nodes: int = 0,
        max_nodes: int = 0,
        num_tasks: int = 0,
        cpus_per_task: int = 0,
        tasks_per_node: int = 0,
        sockets_per_node: int = 0,
        threads_per_node: int = 0,
    ) -> None:
        self.per_job = per_job
        self.per_node = per_node
        self.per_socket = per_socket
        self.per_task = per_task
        self.cpus_per_gpu = cpus_per_gpu
        self.tasks_per_gpu = tasks_per_gpu
        self.min_nodes = min_nodes
        self.max_nodes = max_nodes
        self.num_tasks = num_tasks
        self.cpus_per_task = cpus_per_task
        self.tasks_per_node = tasks_per_node
        self.sockets_per_node = sockets_per_node
        self.threads_per_node = threads_per_node
        # but by how many tasks each is for, of which as many follow as the tasks need
        self.asks_for_gpus = bool(per_job or per_node or per_socket or per_task)
        if tasks_per_gpu and not self.asks_for_gpus:
            self.per_job = num_tasks // tasks_per_gpu

    def is_for_no_gpu(self) -> bool:
        """Whether there are fewer tasks than go to one GPU: none is asked for, which commands say,
        and the job is taken.
        """
        return 0 < self.num_tasks < self.tasks_per_gpu and not self.asks_for_gpus

    def conflict(self) -> str:
        """The first of the things that do not go together, in Slurm's words; "" if all do."""
        return (
            self._nothing_known()
            or self._too_few()
            or self._without_its_other()
            or self._tasks_of_each()
            or self._nodes()
            or self._sockets()
            or self._tasks()
            or self._too_many_nodes()
        )

    def _nothing_known(self) -> str:
        if not self.tasks_per_gpu or self.asks_for_gpus or self.num_tasks:
            return ""
        return "" if self._exact_nodes() else _NEEDS_TASKS

    def _tasks_of_each(self) -> str:
        if not self.tasks_per_gpu or self.asks_for_gpus:
            return ""
        if self.num_tasks > self.tasks_per_gpu and self.num_tasks % self.tasks_per_gpu:
            return f"{_VALIDATE}, -n/--ntasks has to be a multiple of --ntasks-per-gpu."
        return ""

    def _too_few(self) -> str:
        if self.per_job and self.per_job < max(self.per_node, self.per_socket, self.per_task):
            return f"Failed to ensure --gpus >= {_PER_NODE} >= --gpus-per-socket"
        if self.per_node and self.per_node < max(self.per_socket, self.per_task):
            return "Failed to ensure --gpus >= --gpus-per-task"
        return ""

    def _without_its_other(self) -> str:
        if self.per_socket and not self.sockets_per_node:
            return "--gpus-per-socket option requires --sockets-per-node specification"
        if self.cpus_per_gpu and self.cpus_per_task:
            return "--cpus-per-gpu is mutually exclusive with --cpus-per-task"
        return ""

    def _nodes(self) -> str:
        if not (self.per_job and self.per_node):
            return ""
        if self.per_job % self.per_node:
            return f"{_VALIDATE}, --gpus is not multiple of {_PER_NODE}"
        nodes, least, most = self.per_job // self.per_node, self.min_nodes or 1, self.max_nodes
        if most and self.num_tasks:
            most = min(most, self.num_tasks)
        if nodes < least or (most and nodes > most):
            return (
                f"{_VALIDATE}. Based on --gpu and {_PER_NODE} required nodes "
                f"({nodes}) doesn't fall between min_nodes ({least}) and max_nodes ({most}) "
                "boundaries."
            )
        return ""

    def _sockets(self) -> str:
        if not (self.per_node and self.per_socket):
            return ""
        if self.per_node % self.per_socket:
            return f"{_VALIDATE}, {_PER_NODE} not multiple of --gpus-per-socket."
        if self.per_node != self.per_socket * self.sockets_per_node:
            return (
                f"{_VALIDATE}. Based on {_PER_NODE} and --gpus-per-socket "
                "required number of sockets differ from --sockets-per-node."
            )
        return ""

    def _known_tasks(self) -> int:
        """As many as are said, or follow from nodes; 0: not known."""
        if self.num_tasks:
            return self.num_tasks
        nodes = self._exact_nodes()
        if self.tasks_per_node:
            return self.tasks_per_node * (nodes or (0 if self.min_nodes else 1))
        return nodes * (self.threads_per_node or (0 if self.cpus_per_task else 1))

    def _exact_nodes(self) -> int:
        """As many as it must have, neither more nor fewer; 0: a range, or nothing said."""
        return self.min_nodes if self.min_nodes == self.max_nodes else 0

    def _tasks(self) -> str:
        each, tasks = self.per_task, self._known_tasks()
        if not each:
            return ""
        if not self.per_job and not tasks:
            return (
                f"{_VALIDATE}. --gpus-per-task used without either --gpus or -n/--ntasks "
                "is not allowed."
            )
        if self.per_job:
            if self.per_job % each:
                return f"{_VALIDATE}, --gpus not multiple of --gpus-per-task"
            needed = self.per_job // each
            if tasks and tasks != needed:
                return (
                    f"{_VALIDATE}. Based on --gpus and --gpus-per-task number of requested tasks "
                    "differ from -n/--ntasks."
                )
        if self.per_node % each:
            return f"{_VALIDATE}, {_PER_NODE} not multiple of --gpus-per-task."
        if self.per_node and self.tasks_per_node not in (0, self.per_node // each):
            return (
                f"{_VALIDATE}. Based on {_PER_NODE} and --gpus-per-task requested number of tasks "
                "per node differ from --ntasks-per-node."
            )
        if self.per_socket % each:
            return f"{_VALIDATE}, --gpus-per-socket not multiple of --gpus-per-task."
        return ""

    def _too_many_nodes(self) -> str:
        if self.per_job and self.per_job < self.min_nodes:
            return f"{_VALIDATE}, --gpus < -N"
        return ""
