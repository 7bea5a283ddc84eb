"""What sbatch, salloc and srun say of their options with --verbose."""

import os
import signal

from understudy.commands.shared.texts import full_duration
from understudy.model.times import SIGNAL_AT_S, parse_limit, parse_memory, parse_signal_option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.shared.context import Context
    from understudy.commands.shared.options import Option
    from understudy.commands.submission.job import Job


def say_options(
    given: "list[tuple[Option, str | None]]", job: "Job", times: int, context: "Context"
) -> None:
    """What sbatch, salloc and srun say of the options that were given, on the command line or by
    variables, where --verbose is asked for `times` times.
    """
    is_step = context.program == "srun"
    texts = {
        option.long: _value(option, value, job, is_step=is_step)
        for option, value in given
        if option.dest not in {"verbose", "quiet", "req_switch"}
    }
    texts["verbose"] = str(times)
    if is_step and (nodes := context.environ.get("SLURM_JOB_NODELIST")):
        texts["(null)"] = nodes  # the job's, which is no option
        if name := context.environ.get("SLURM_JOB_NAME"):
            texts.setdefault("job-name", name)
    rule = "-" * 20
    for line in (
        "defined options",
        f"{rule} {rule}",
        *(f"{name:<20}: {texts[name]}" for name in sorted(texts)),
        f"{rule} {rule}",
        "end of defined options",
    ):
        context.complain(f"{context.program}: {line}")


# What an option without a value, or with an empty one, is shown as; else "set".
_WITHOUT_VALUE = {
    "requeue": "requeue",
    "no_requeue": "no-requeue",
    "oversubscribe": "oversubscribe",
    "exclusive": "exclusive",
    "bell": "bell-always",
    "no_bell": "bell-never",
    "get_user_env": "0",
    "immediate": "1",
    "kill_command": "TERM",
    "kill_on_bad_exit": "1",
    "nice": "100",
    "propagate": "ALL",
    "resv_ports": "0",
}


def _value(option: "Option", value: str | None, job: "Job", *, is_step: bool) -> str:
    spec = job.spec
    if not option.value or not value:
        return _WITHOUT_VALUE.get(option.dest, "set")
    if option.dest in {"mem", "mem_per_cpu", "tmp"}:
        return _size(parse_memory(value))
    if option.dest == "open_mode":
        return value[:1]
    if option.dest == "signal":
        return _signal(value)
    if option.dest == "switches":
        count, at, limit = value.partition("@")
        return count + (at and at + full_duration(parse_limit(limit) or 0))
    if option.dest in {"time", "time_min"}:
        seconds = spec.get("time_limit_s" if option.dest == "time" else "time_min_s")
        return "UNLIMITED" if seconds in {None, -1} else full_duration(seconds or 0)
    if option.dest in {"output", "error", "input"}:
        if value == "none":
            return "/dev/null"
        return value if is_step else os.path.join(spec.get("work_dir") or os.getcwd(), value)
    if option.dest == "nodes":
        least, most = spec["min_nodes"], spec.get("max_nodes")
        return str(least) if most in {None, -1, least} else f"{least}-{most}"
    special = {
        "gres": "gres",
        "mail_type": "mail_type",
        "begin": "begin_time",
    }
    field = special.get(option.dest)
    if field == "begin_time":
        from understudy.commands.shared.texts import timestamp
        from understudy.model.moments import parse_time

        return timestamp(parse_time(value or "", job.now))
    return str(spec[field]) if field in spec else value


def _size(megabytes: int) -> str:
    if not megabytes:
        return "0?"
    for unit in ("", "G", "T", "P"):
        if megabytes % 1024 or unit == "P":
            return f"{megabytes}{unit}"
        megabytes //= 1024
    raise AssertionError


def _signal(value: str) -> str:
    number, seconds, batch_only, overlaps = parse_signal_option(value)
    letters = "R" * overlaps + "B" * batch_only
    at = "" if seconds == SIGNAL_AT_S else f"@{seconds}"
    name = signal.Signals(number).name.removeprefix("SIG")
    return letters + (letters and ":") + name + at
