"""What sbatch, salloc and srun say of their options with --verbose."""

import os

from understudy.commands.shared.texts import full_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.shared.client import Context
    from understudy.commands.shared.options import Option
    from understudy.commands.submission.job import Job


def say_options(given: "list[tuple[Option, str | None]]", job: "Job", context: "Context") -> None:
    """What sbatch, salloc and srun say of the options that were given, where --verbose is one of
    them.
    """
    chosen = {option.long: (option, value) for option, value in given}
    times = sum(option.dest == "verbose" for option, _ in given)
    if not times or "quiet" in chosen:
        return
    texts = {
        _name(option): str(times) if option.dest == "verbose" else _value(option, value, job)
        for option, value in chosen.values()
    }
    rule = "-" * 20
    for line in (
        "defined options",
        f"{rule} {rule}",
        *(f"{name:<20}: {texts[name]}" for name in sorted(texts)),
        f"{rule} {rule}",
        "end of defined options",
    ):
        context.complain(f"{context.program}: {line}")


def _name(option: "Option") -> str:
    return "requeue" if option.dest == "no_requeue" else option.long


def _value(option: "Option", value: str | None, job: "Job") -> str:
    spec = job.spec
    if option.dest in {"requeue", "no_requeue"}:
        return option.long
    if option.dest == "exclusive":
        return value or "exclusive"
    if not option.value:
        return "set"
    if option.dest in {"time", "time_min"}:
        limit = spec.get("time_limit_s" if option.dest == "time" else "time_min_s")
        return "UNLIMITED" if limit in {None, -1} else full_duration(limit or 0)
    if option.dest in {"output", "error", "input"}:
        return os.path.join(spec.get("work_dir") or os.getcwd(), value or "")
    if option.dest == "nodes":
        least, most = spec["min_nodes"], spec.get("max_nodes")
        return str(least) if most in {None, -1, least} else f"{least}-{most}"
    special = {
        "gres": "gres",
        "mail_type": "mail_type",
        "begin": "begin_time",
        "mem": "mem_per_node_mb",
        "mem_per_cpu": "mem_per_cpu_mb",
    }
    field = special.get(option.dest)
    if field == "begin_time":
        from understudy.commands.shared.texts import timestamp
        from understudy.model.moments import parse_time

        return timestamp(parse_time(value or "", job.now))
    return str(spec[field]) if field in spec else value or ""
