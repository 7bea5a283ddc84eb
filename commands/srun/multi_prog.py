"""srun --multi-prog: the file that says which tasks run which program. Follows srun(1), "MULTIPLE
PROGRAM CONFIGURATION".

Place: under srun; loaded only with that option.
"""

import shlex

from understudy.commands.srun.srun_settings import StepError, ranks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.commands.shared.context import Context
    from understudy.commands.srun.srun_settings import Settings


def read_file(settings: "Settings", context: "Context") -> str:
    """What the file of --multi-prog says; it is read once."""
    if settings.programs is not None:
        return settings.programs
    if not settings.command:
        context.error("configuration file not specified")
        raise StepError
    path = settings.command[0]
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            settings.programs = file.read()
            return settings.programs
    except OSError:
        context.error(f"Could not open multi_prog config file {path}")
        raise StepError from None


def read_programs(settings: "Settings", context: "Context") -> "list[Any]":
    """--multi-prog: [(task ranges or None for the rest, command)] of the file, checked."""
    text = read_file(settings, context)
    path = settings.command[0]
    lines = text.replace("\\\n", "").split("\n")
    tasks = settings.job.spec.get("num_tasks") or settings.job.spec.get("min_nodes") or 1
    found: list[Any] = []
    taken: set[int] = set()
    for at, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        wanted, _, rest = text.partition(" ") if " " in text else text.partition("\t")
        try:
            words = shlex.split(rest)
        except ValueError:
            words = []
        numbers = (
            [each for each in range(tasks) if each not in taken] if wanted == "*" else ranks(wanted)
        )
        first = 0 if wanted == "*" else None
        bad = ""
        if numbers is None:
            bad = f"Invalid task range specification ({wanted})"
        elif twice := [each for each in numbers if each in taken]:
            bad = f"Duplicate record for task {twice[0]}"
        if bad or not words:
            context.error(bad or f"No program name given in line {at}")
            context.error(f"Line {at} of configuration file {path} invalid")
            raise StepError
        assert numbers is not None
        taken.update(numbers)
        for position, each in enumerate(numbers):
            offset = position if first is None else each
            if each < tasks:
                found.append(
                    (
                        [each],
                        [
                            word.replace("%t", str(each)).replace("%o", str(offset))
                            for word in words
                        ],
                    )
                )
    for each in range(tasks):
        if each not in taken:
            context.error(f"Configuration file {path} invalid, no record for task id {each}")
            raise StepError
    return found
