"""What options ask for: fields of the message JobSpec, and what the command itself does with them.

Place: under sbatch, salloc, srun and scrontab; `options.py` fills it.
"""

from understudy.model.noted import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.commands.shared.context import Context

_SUBMISSIONS = {"salloc": "Job submit/allocate failed", "srun": "Unable to allocate resources"}


CONTRARY_TIMES = "Incompatible begin and deadline time specification"


class BadOptionError(Exception):
    """A value that sbatch refuses. `lines` come before the error; `exit_code` is 255 for most
    options, 1 for numbers.

    `{submission}` in the text stands for how the program says that a job was refused.
    `help`: what the value asks for, which is no error.
    """

    def __init__(self, text: str, exit_code: int = 255, *lines: str, help: str = "") -> None:  # noqa: A002
        self.text = text
        self.help = help
        self.exit_code = exit_code
        self.lines = lines
        super().__init__(text)

    def say(self, context: "Context") -> int:
        """Print it; returns the exit code."""
        if self.help:
            context.print(self.help)
            return self.exit_code
        for line in self.lines:
            context.complain(line.replace("{program}", context.program, 1))
        context.error(
            self.text.replace(
                "{submission}", _SUBMISSIONS.get(context.program, "Batch job submission failed"), 1
            )
        )
        return self.exit_code


class Job:
    """What the options ask for: fields of the message JobSpec, and what sbatch itself does with
    them.
    """

    def __init__(self, now: float) -> None:
        self.now = now
        self.spec: dict[str, Any] = {}
        self.extra: dict[str, str] = {}
        self.gres: dict[str, str] = {}  # what was asked for of each node, by option
        self.begin = ""  # texts; the cluster's clock decides what they mean
        self.deadline = ""
        self.node_file: str | None = None  # read when all options have been
        self.wrap: str | None = None
        self.export: str | None = None
        self.export_file: str | None = None
        self.user_id = -1
        self.group_id = -1
        self.flags: set[str] = set()  # dest of options without further meaning for the job
        self.ignored: list[str] = []  # what was asked for and is nothing

    def note(self, kind: str, name: str, *, is_so: bool) -> None:
        """Note what an option's value alone does not say, or take it back: `model/noted.py`."""
        if names := note(self.extra, kind, name, is_so=is_so):
            self.extra[kind] = names
        else:
            self.extra.pop(kind, None)

    @property
    def asks_for_gres(self) -> bool:
        """Whether an option was given that is about generic resources."""
        return any(
            name in self.spec
            for name in (
                "gres",
                "tres_per_job",
                "tres_per_socket",
                "tres_per_task",
                "cpus_per_tres",
                "mem_per_tres",
                "ntasks_per_tres",
            )
        )
