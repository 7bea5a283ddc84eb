"""What the commands say of their own options with --verbose.

Place: under the commands, which import it only where it is asked for. Follows squeue and sbatch of 22.05.
"""

import os

from understudy.commands.texts import full_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.client import Context
    from understudy.commands.options import Option
    from understudy.commands.sbatch_options import Job

_RULE = "-" * 29


def _truth(value: object) -> str:
    return "true" if value else "false"


def squeue_options(options: "dict[str, str | None]", times: int, start_format: str, start_sort: str) -> str:
    """The block of options of squeue; `times` is how often -v was given."""
    starts = "start" in options
    entries = [
        ("all", _truth("all" in options or "partition" in options)),
        ("array", _truth("array" in options)),
        ("federation", _truth("federation" in options)),
        ("format", options.get("format") or (start_format if starts else "(null)")),
        ("iterate", options.get("iterate") or "0"),
        ("job_flag", str(int("jobs" in options))),
        ("jobs", options.get("jobs") or "(null)"),
        ("licenses", options.get("licenses") or "(null)"),
        ("local", _truth("local" in options)),
        ("names", options.get("name") or "(null)"),
        ("nodes", options.get("nodelist") or ""),
        ("partitions", options.get("partition") or "(null)"),
        ("priority", _truth("priority" in options)),
        ("reservation", options.get("reservation") or "(null)"),
        ("sibling ", _truth("sibling" in options)),
        ("sort", options.get("sort") or (start_sort if starts else "(null)")),
        ("start_flag", str(int(starts))),
        ("states", options.get("states") or ("PD" if starts else "(null)")),
        ("step_flag", str(int("steps" in options))),
        ("steps", options.get("steps") or "(null)"),
        ("users", options.get("user") or "(null)"),
        ("verbose", str(times)),
    ]
    lines = [_RULE, *(f"{name:<11} = {value}" if name != "sibling " else f"sibling      = {value}" for name, value in entries)]
    if times > 1:
        lines += [f"job_list[{at}] = {word}" for at, word in enumerate((options.get("jobs") or "").split(",")) if word]
    return "\n".join([*lines, _RULE, "", ""])


def say_options(given: "list[tuple[Option, str | None]]", job: "Job", context: "Context") -> None:
    """What sbatch, salloc and srun say of the options that were given, where --verbose is one of them."""
    chosen = {option.long: (option, value) for option, value in given}
    times = sum(option.dest == "verbose" for option, _ in given)
    if not times or "quiet" in chosen:
        return
    texts = {_name(option): str(times) if option.dest == "verbose" else _value(option, value, job) for option, value in chosen.values()}
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
    special = {"gres": "gres", "mail_type": "mail_type", "begin": "begin_time", "mem": "mem_per_node_mb", "mem_per_cpu": "mem_per_cpu_mb"}
    field = special.get(option.dest)
    if field == "begin_time":
        from understudy.commands.texts import timestamp
        from understudy.model.moments import parse_time

        return timestamp(parse_time(value or "", job.now))
    return str(spec[field]) if field in spec else value or ""
