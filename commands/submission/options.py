"""What each of sbatch's options does to the job's specification. Follows sbatch(1) of 22.05.

Place: under sbatch; pure but for names of users and files that an option may name. Which options
there are: option_table.py; what is checked when all are known: whole.py.
"""

import os

from understudy.commands.shared.options import Option
from understudy.commands.submission.job import BadOptionError, Job
from understudy.commands.submission.numbers import MOST_INT, MOST_LONG, SCALES, half_of, number
from understudy.model.noted import GIVEN_EMPTY, NO_NODES
from understudy.model.times import (
    as_int,
    leading_number,
    parse_limit,
    parse_memory,
    parse_signal_option,
    split_number,
    whole_minutes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


DEFAULT_NICE = 100  # of --nice without a value
_MOST_NICE = 2147483645
_UNSAID_NICE = -2  # stands for nothing said
_MAIL_TYPES = (
    "NONE", "BEGIN", "END", "FAIL", "REQUEUE", "ALL", "INVALID_DEPEND", "STAGE_OUT", "TIME_LIMIT",
    "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50",
    "ARRAY_TASKS",
)  # fmt: skip
_ALL_MAIL = "INVALID_DEPEND,BEGIN,END,FAIL,REQUEUE,STAGE_OUT"


def _text(field: str) -> "Callable[[Job, Option, str], None]":
    def set_text(job: Job, _option: Option, value: str) -> None:
        job.spec[field] = value

    return set_text


def _maybe_empty(field: str) -> "Callable[[Job, Option, str], None]":
    """A text that is shown as given, though it is empty."""

    def set_text(job: Job, _option: Option, value: str) -> None:
        job.spec[field] = value
        job.note(GIVEN_EMPTY, field, is_so=not value)

    return set_text


def _features(job: Job, _option: Option, value: str) -> None:
    job.note(GIVEN_EMPTY, "features", is_so=not value)
    job.spec["features"] = value if "[" in value or "(" in value else value.replace(",", "&")


def _count(field: str) -> "Callable[[Job, Option, str], None]":
    def set_count(job: Job, option: Option, value: str) -> None:
        job.spec[field] = number(option.long, value)

    return set_count


def _half(field: str, *, all_ones_count: bool = True) -> "Callable[[Job, Option, str], None]":
    """A count that the controller keeps in 16 bits."""

    def set_half(job: Job, option: Option, value: str) -> None:
        half = half_of(number(option.long, value), all_ones_count=all_ones_count)
        if half is None:  # as if nothing was said
            job.spec.pop(field, None)
        else:
            job.spec[field] = half

    return set_half


def _sockets(job: Job, option: Option, value: str) -> None:
    _half(option.dest)(job, option, value)
    job.note(NO_NODES, "extra_node_info", is_so=False)


def _cpus_per_node(job: Job, option: Option, value: str) -> None:
    if (count := number(option.long, value)) > 0:
        job.spec["min_cpus_node"] = half_of(count)


def _tasks_per_node(job: Job, option: Option, value: str) -> None:
    count = number(option.long, value)
    half = half_of(count)
    job.spec["ntasks_per_node"] = half or None
    if half != count:  # the tasks are counted before it is cut
        job.spec.setdefault("num_tasks", max(count, 1))


def _tasks(job: Job, option: Option, value: str) -> None:
    if tasks := number(option.long, value):
        job.spec["num_tasks"] = tasks
    else:
        job.spec.pop("num_tasks", None)
    job.note(NO_NODES, option.dest, is_so=not tasks)


def _flag(field: str, *, value: bool = True) -> "Callable[[Job, Option, str], None]":
    def set_flag(job: Job, _option: Option, _value: str) -> None:
        job.spec[field] = value

    return set_flag


def _own(job: Job, option: Option, _value: str) -> None:
    job.flags.add(option.dest)


def _own_text(field: str) -> "Callable[[Job, Option, str], None]":
    def set_text(job: Job, _option: Option, value: str) -> None:
        setattr(job, field, value)

    return set_text


def _bad(option: Option, *lines: str) -> BadOptionError:
    return BadOptionError(f"Invalid --{option.long} specification", 255, *lines)


def _nodes(job: Job, option: Option, value: str) -> None:
    least, dash, most = value.partition("-")
    counts = []
    for text in (least or "1" if dash else least, (most or "-1") if dash else least):
        digits, scale = (
            (text[:-1], SCALES[text[-1].lower()])
            if text[-1:].lower() in SCALES
            else (text.strip(), 1)
        )
        number, rest = split_number(digits)
        if rest or not digits:
            raise BadOptionError(f'"{text}" is not a valid node count')
        counts.append(as_int(number * scale))
    if counts[0] < 0:
        if not dash:
            raise BadOptionError(f'"{value}" is not a valid node count')
        counts[0] = 1
    if counts[1] and counts[1] < counts[0]:  # 0: no maximum
        raise BadOptionError(
            f"Maximum node count {counts[1]} is less than minimum node count {counts[0]}"
        )
    job.note(NO_NODES, option.dest, is_so=not counts[0])
    if counts[0]:
        job.spec["min_nodes"], job.spec["max_nodes"] = counts
    else:
        job.spec.pop("min_nodes", None)


def _limit(field: str) -> "Callable[[Job, Option, str], None]":
    def set_limit(job: Job, option: Option, value: str) -> None:
        try:
            seconds = parse_limit(value)
        except ValueError:
            raise _bad(option) from None
        job.spec[field] = -1 if not seconds else whole_minutes(seconds)  # 0 asks for no limit, too

    return set_limit


def _memory(field: str) -> "Callable[[Job, Option, str], None]":
    def set_memory(job: Job, option: Option, value: str) -> None:
        try:
            amount = parse_memory(value)
        except ValueError:
            raise _bad(option) from None
        if field == "tmp_disk_mb":  # of which 32 bits are kept, and all but the last are none
            amount = 0 if amount & 0xFFFFFFFF == 0xFFFFFFFE else amount & 0xFFFFFFFF
        if field in {"mem_per_node_mb", "mem_per_cpu_mb"}:
            job.spec.pop("mem_per_node_mb", None)
            job.spec.pop("mem_per_cpu_mb", None)
        job.spec["mem_per_node_mb" if field == "mem_per_cpu_mb" and not amount else field] = amount

    return set_memory


def _moment(field: str) -> "Callable[[Job, Option, str], None]":
    def set_moment(job: Job, option: Option, value: str) -> None:
        from understudy.model.moments import not_understood_from, parse_time

        try:
            parse_time(value, job.now)
        except ValueError:
            lines = (
                [f"Invalid time specification (pos={not_understood_from(value)}): {value}"]
                if value
                else []
            )
            raise _bad(option, *lines) from None
        setattr(job, field, value)

    return set_moment


def _signal(job: Job, option: Option, value: str) -> None:
    try:
        signal, seconds, batch_only, overlaps = parse_signal_option(value)
    except ValueError:
        raise _bad(option) from None
    job.spec["kill_signal"], job.spec["kill_signal_before_s"], job.spec["kill_signal_batch"] = (
        signal,
        seconds,
        batch_only,
    )
    job.spec["kill_signal_reservation"] = overlaps


def _nice(job: Job, _option: Option, value: str) -> None:
    amount = leading_number(value) if value else DEFAULT_NICE
    if abs(amount) > _MOST_NICE:
        raise BadOptionError(f"Invalid --nice value, out of range (+/- {_MOST_NICE})")
    job.spec["nice"] = 0 if amount == _UNSAID_NICE else amount


_NO_PRIORITY = 0xFFFFFFFE
_TOP_PRIORITY = _NO_PRIORITY - 1


def _priority(job: Job, _option: Option, value: str) -> None:
    """The number that the text begins with. 0, and what begins with none, asks for no priority of
    its own.
    """
    amount = _TOP_PRIORITY if value.upper() == "TOP" else leading_number(value)
    if amount < 0:
        raise BadOptionError("Priority must be >= 0")
    if amount >= _NO_PRIORITY:
        raise BadOptionError(f"Priority must be < {_NO_PRIORITY}")
    if amount:
        job.spec["priority"] = amount
    else:
        job.spec.pop("priority", None)


def _reboot(job: Job, option: Option, _value: str) -> None:
    job.extra[option.dest] = "1"
    job.spec["exclusive"] = True  # nobody else's job may lose its node


def _exclusive(job: Job, option: Option, value: str) -> None:
    if value not in {"", "exclusive", "user", "mcs"}:
        raise _bad(option)
    job.spec.pop("exclusive", None)
    job.spec.pop("oversubscribe", None)
    job.spec.pop("exclusive_for", None)
    if value in {"user", "mcs"}:
        job.spec["exclusive_for"] = value
    else:
        job.spec["exclusive"] = True


def _oversubscribe(job: Job, _option: Option, _value: str) -> None:
    """Of --exclusive and this, the last one holds."""
    job.spec.pop("exclusive", None)
    job.spec.pop("exclusive_for", None)
    job.spec["oversubscribe"] = True


def _no_kill(job: Job, option: Option, value: str) -> None:
    if value.lower() not in {"", "set", "off", "no"}:
        raise _bad(option)
    job.spec["no_kill"] = value.lower() not in {"off", "no"}


def _mail_type(job: Job, option: Option, value: str) -> None:
    types = mail_types(value)
    if types is None:
        raise _bad(option)
    job.spec["mail_type"] = types


# As scontrol shows them.
_MAIL_ORDER = (
    "ARRAY_TASKS",
    "INVALID_DEPEND",
    "BEGIN",
    "END",
    "FAIL",
    "REQUEUE",
    "STAGE_OUT",
    "TIME_LIMIT_50",
    "TIME_LIMIT_80",
    "TIME_LIMIT_90",
    "TIME_LIMIT",
)


def mail_types(value: str) -> str | None:
    """The events that somebody wants mail about, "" for none of them; None if the words make no
    sense.
    """
    words = [word for word in value.upper().split(",") if word in _MAIL_TYPES]
    if not words:
        return None
    if "NONE" in words:
        return ""
    if "ALL" in words:
        words = [*_ALL_MAIL.split(","), *(word for word in words if word != "ALL")]
    return ",".join(sorted(set(words), key=_MAIL_ORDER.index))


def _open_mode(job: Job, option: Option, value: str) -> None:
    if value[:1].lower() not in {"a", "t"}:
        raise _bad(option)
    job.spec["open_mode"] = "append" if value[0] in "aA" else "truncate"


def _distribution(job: Job, option: Option, value: str) -> None:
    from understudy.model.distribution import BadPlaneError, canonical

    try:
        job.spec["distribution"] = canonical(value)
    except BadPlaneError:
        raise _bad(option, "{program}: error: Invalid plane size or size not specified") from None
    except ValueError:
        raise _bad(option) from None


def _gres(job: Job, _option: Option, value: str) -> None:
    if value == "help":
        job.flags.add("gres_help")
    else:
        job.note(GIVEN_EMPTY, "gres", is_so=not all(value.split(",")))
        job.gres["gres"] = "" if value.lower() == "none" else _prefixed(value)
        _name_gres(job)


def _prefixed(value: str, name: str = "") -> str:
    """`gpu:2,tape` as `gres:gpu:2,gres:tape`; `name` is put before each word that lacks it."""
    words = [word.strip() for word in value.split(",") if word.strip()]
    return ",".join(
        f"gres:{name}:{word}" if name else word if word.startswith("gres:") else f"gres:{word}"
        for word in words
    )


def _name_gres(job: Job) -> None:
    """What --gres and --gpus-per-node ask for of each node."""
    job.spec["gres"] = ",".join(
        filter(None, (job.gres.get("gpus_per_node", ""), job.gres.get("gres", "")))
    )


def _gpus_per_node(job: Job, _option: Option, value: str) -> None:
    job.gres["gpus_per_node"] = _prefixed(value, "gpu")
    job.extra["gpus_per_node"] = value
    _name_gres(job)


def _gpus(field: str) -> "Callable[[Job, Option, str], None]":
    def set_gpus(job: Job, _option: Option, value: str) -> None:
        job.spec[field] = _prefixed(value, "gpu")

    return set_gpus


def _cpus_per_gpu(job: Job, option: Option, value: str) -> None:
    if count := number(option.long, value):
        job.spec["cpus_per_tres"] = f"gres:gpu:{count}"


def _mem_per_gpu(job: Job, option: Option, value: str) -> None:
    try:
        job.spec["mem_per_tres"] = f"gres:gpu:{parse_memory(value)}"
    except ValueError:
        raise _bad(option) from None
    job.spec.pop("mem_per_node_mb", None)
    job.spec.pop("mem_per_cpu_mb", None)


def _gres_flags(job: Job, option: Option, value: str) -> None:
    if value not in {"enforce-binding", "disable-binding"}:
        raise _bad(option)
    job.spec["gres_flags"] = value


def _tres_bind(job: Job, _option: Option, value: str) -> None:
    from understudy.model.gpu_options import is_gpu_binding

    wrong = BadOptionError(f"Invalid --gpu-bind argument: gpu:{value}")
    if not is_gpu_binding(value):
        raise wrong
    kind, _, numbers = value.removeprefix("verbose,").partition(":")
    if kind in {"map_gpu", "mask_gpu"}:
        digits = "0123456789" if kind == "map_gpu" else "0123456789abcdefABCDEF"
        for number_ in numbers.split(","):
            plain = (
                number_[2:] if kind == "mask_gpu" and number_.lower().startswith("0x") else number_
            )
            if found := plain.lstrip(digits)[:1]:
                said = (
                    f"{{program}}: error: Failed to validate {number_}, offending "
                    f"character is {found}"
                )
                raise BadOptionError(wrong.text, wrong.exit_code, said)
    job.extra["tres_bind"] = f"gpu:{value}"


def _tres_freq(job: Job, _option: Option, value: str) -> None:
    from understudy.model.gpu_options import is_gpu_frequency

    if not is_gpu_frequency(value):
        raise BadOptionError(f"Invalid --gpu-freq argument: gpu:{value}")
    job.extra["tres_freq"] = f"gpu:{value}"


def _node_file(job: Job, _option: Option, value: str) -> None:
    job.node_file = value


def _node_list(job: Job, option: Option, value: str) -> None:
    job.node_file = None
    job.note(NO_NODES, option.dest, is_so=not value)
    if "/" in value:
        from understudy.commands.submission.host_file import entries

        try:
            job.spec["required_nodes"] = ",".join(entries(value))
        except OSError as error:
            raise BadOptionError(
                f"slurm_allocate_resources error opening file {value}, {error.strerror}", 1
            ) from None
    else:
        job.spec["required_nodes"] = value


def _require_root(option: Option) -> None:
    if os.getuid():
        raise BadOptionError(f"--{option.long} only permitted by root user", 255)


def _user(job: Job, option: Option, value: str) -> None:
    import pwd

    _require_root(option)
    try:
        entry = pwd.getpwuid(int(value)) if value.isdigit() else pwd.getpwnam(value)
    except KeyError:
        raise _bad(option) from None
    job.user_id = entry.pw_uid  # the group stays that of who submits, as with Slurm


def _group(job: Job, option: Option, value: str) -> None:
    import grp

    _require_root(option)
    try:
        job.group_id = (grp.getgrgid(int(value)) if value.isdigit() else grp.getgrnam(value)).gr_gid
    except KeyError:
        raise _bad(option) from None


def _chdir(job: Job, _option: Option, value: str) -> None:
    job.spec["work_dir"] = os.path.join(os.getcwd(), value)


def _node_info(job: Job, option: Option, value: str) -> None:
    names = ("sockets_per_node", "cores_per_socket", "threads_per_core")
    job.spec["extra_node_info"] = True
    if not value:
        return
    words = ("first", "second", "third")
    tasks, is_cut = 1, False
    for name, which, part in zip(names, words, value.split(":"), strict=False):
        if part in {"*", ""}:
            continue
        said = f"{which} arg of -{option.short}"
        least = part.partition("-")[0].lstrip().removeprefix("+")
        scale = SCALES.get(least[-1:].lower(), 1)
        digits = least[:-1] if scale > 1 else least
        if not digits.isdecimal():
            raise BadOptionError(f'Invalid numeric value "{part}" for {said}.', 1)
        if int(digits) * scale > MOST_INT:
            raise BadOptionError(f"Numeric argument ({digits}) to big for {said}.", 1)
        count = int(digits) * scale
        tasks *= count
        is_cut = is_cut or half_of(count) != count
        if (half := half_of(count)) is not None:
            job.spec[name] = half
    job.note(NO_NODES, option.dest, is_so=not tasks)
    if tasks and is_cut:  # the tasks are counted before that
        job.spec.setdefault("num_tasks", tasks * (job.spec.get("min_nodes") or 1))


def _switches(job: Job, option: Option, value: str) -> None:
    from understudy.model.switches import read_switches

    if (count := number(option.long, value.partition("@")[0])) > 0:
        job.spec["switches"], job.spec["switches_wait_s"] = count, read_switches(value)[1]


def _req_switch(job: Job, option: Option, value: str) -> None:
    if (count := number(option.long, value)) > 0:
        job.spec["switches"] = count


def _kill_on_invalid(job: Job, option: Option, value: str) -> None:
    if value.lower() not in {"yes", "no"}:
        raise _bad(option)
    job.spec["kill_on_invalid_dep"] = value.lower() == "yes"


def _wait_all(job: Job, option: Option, value: str) -> None:
    if number(option.long, value or "0", 0) & 0xFFFF > 1:
        raise _bad(option)
    job.extra[option.dest] = value


def _core_spec(job: Job, option: Option, value: str) -> None:
    is_of_cores = option.dest == "core_spec"
    least = 0 if is_of_cores else 1
    job.extra[option.dest] = str(number(option.long, value or ("0" if is_of_cores else ""), least))


def _export_file(job: Job, _option: Option, value: str) -> None:
    job.export_file = value


def _acctg_freq(job: Job, option: Option, value: str) -> None:
    """`30`, or `task=30,energy=5`. Of what stands for a number its beginning counts."""
    for part in filter(None, value.split(",")):
        kind, equals, seconds = part.rpartition("=")
        digits = seconds.lstrip().lstrip("+-")[:1]
        if (
            not digits.isdigit()
            or min(leading_number(seconds), MOST_LONG) & 0xFFFFFFFF == 0xFFFFFFFF
            or (equals and kind.lower() not in {"task", "energy", "network", "filesystem"})
        ):
            raise BadOptionError(f"Invalid --{option.long} specification: {part}")
    job.extra[option.dest] = value


def _profile(job: Job, option: Option, value: str) -> None:
    words = [word for word in value.lower().split(",") if word]
    if not words or any(
        word not in {"none", "all", "energy", "task", "filesystem", "lustre", "network"}
        for word in words
    ):
        raise BadOptionError(f"invalid --{option.long}={value} option")
    job.extra[option.dest] = value


def _cpu_freq(job: Job, option: Option, value: str) -> None:
    from understudy.commands.submission.cpu_frequency import kept

    if text := kept(value, option.long):
        job.extra[option.dest] = text


_LIMITS = {
    "ALL",
    "NONE",
    "AS",
    "CORE",
    "CPU",
    "DATA",
    "FSIZE",
    "MEMLOCK",
    "NOFILE",
    "NPROC",
    "RSS",
    "STACK",
}


def check_limits(value: str) -> None:
    """The limits that --propagate names: what all options say is known before.

    Raises:
        BadOptionError: one of them is none.
    """
    for word in value.replace(",", " ").split():
        if word.removeprefix("RLIMIT_") not in _LIMITS:
            raise BadOptionError(
                f"--propagate={value} is not valid.",
                1,
                f"{{program}}: error: Bad rlimit name: {word}",
            )


def _propagate(job: Job, option: Option, value: str) -> None:
    job.extra[option.dest] = value or "ALL"


def _power(job: Job, option: Option, value: str) -> None:
    words = value.split(",")
    job.ignored += [f"unrecognized power option ({word})" for word in words if word != "level"]
    job.extra[option.dest] = value


def _mem_bind(job: Job, option: Option, value: str) -> None:
    from understudy.commands.submission.memory_binding import check

    check(value)
    job.extra[option.dest] = value


def _delay_boot(job: Job, option: Option, value: str) -> None:
    if value == "-1":
        value = "UNLIMITED"
    try:
        parse_limit(value)
    except ValueError:
        raise _bad(option) from None
    job.extra[option.dest] = value


def _get_user_env(job: Job, option: Option, value: str) -> None:
    if value and not (value.rstrip("sSlL").isdigit() or value.upper() in {"S", "L"}):
        raise _bad(option)
    job.flags.add(option.dest)
    job.extra[option.dest] = value


ACTIONS: "dict[str, Callable[[Job, Option, str], None]]" = {
    "account": _maybe_empty("account"),
    "acctg_freq": _acctg_freq,
    "core_spec": _core_spec,
    "cpu_freq": _cpu_freq,
    "delay_boot": _delay_boot,
    "get_user_env": _get_user_env,
    "mem_bind": _mem_bind,
    "profile": _profile,
    "power": _power,
    "propagate": _propagate,
    "thread_spec": _core_spec,
    "array": _text("array"),
    "begin": _moment("begin"),
    "chdir": _chdir,
    "comment": _maybe_empty("comment"),
    "constraint": _features,
    "contiguous": _flag("contiguous"),
    "cores_per_socket": _half("cores_per_socket"),
    "cpus_per_gpu": _cpus_per_gpu,
    "cpus_per_task": _count("cpus_per_task"),
    "deadline": _moment("deadline"),
    "dependency": _text("dependency"),
    "distribution": _distribution,
    "error": _text("std_err"),
    "exclude": _text("excluded_nodes"),
    "exclusive": _exclusive,
    "export": _own_text("export"),
    "batch": _maybe_empty("batch_features"),
    "export_file": _export_file,
    "extra_node_info": _node_info,
    "gid": _group,
    "gpu_bind": _tres_bind,
    "gpu_freq": _tres_freq,
    "gpus": _gpus("tres_per_job"),
    "gpus_per_node": _gpus_per_node,
    "gpus_per_socket": _gpus("tres_per_socket"),
    "gpus_per_task": _gpus("tres_per_task"),
    "gres": _gres,
    "gres_flags": _gres_flags,
    "help": _own,
    "hint": _text("hint"),  # looked at when all options are known
    "hold": _flag("hold"),
    "ignore_pbs": _own,
    "input": _text("std_in"),
    "job_name": _text("name"),
    "kill_on_invalid_dep": _kill_on_invalid,
    "licenses": _text("licenses"),
    "mail_type": _mail_type,
    "mail_user": _text("mail_user"),
    "mem": _memory("mem_per_node_mb"),
    "mem_per_cpu": _memory("mem_per_cpu_mb"),
    "mem_per_gpu": _mem_per_gpu,
    "mincpus": _cpus_per_node,
    "nice": _nice,
    "no_kill": _no_kill,
    "no_requeue": _flag("requeue", value=False),
    "nodefile": _node_file,
    "nodelist": _node_list,
    "nodes": _nodes,
    "ntasks": _tasks,
    "ntasks_per_core": _half("ntasks_per_core", all_ones_count=False),
    "ntasks_per_gpu": _half("ntasks_per_tres"),
    "ntasks_per_node": _tasks_per_node,
    "ntasks_per_socket": _half("ntasks_per_socket", all_ones_count=False),
    "open_mode": _open_mode,
    "prefer": _text("prefer"),
    "output": _text("std_out"),
    "overcommit": _flag("overcommit"),
    "oversubscribe": _oversubscribe,
    "parsable": _own,
    "partition": _maybe_empty("partition"),
    "priority": _priority,
    "qos": _maybe_empty("qos"),
    "quiet": _own,
    "reboot": _reboot,
    "requeue": _flag("requeue"),
    "reservation": _text("reservation"),
    "signal": _signal,
    "sockets_per_node": _sockets,
    "spread_job": _flag("spread_job"),
    "switches": _switches,
    "req_switch": _req_switch,
    "test_only": _own,
    "threads_per_core": _half("threads_per_core"),
    "time": _limit("time_limit_s"),
    "time_min": _limit("time_min_s"),
    "tmp": _memory("tmp_disk_mb"),
    "uid": _user,
    "usage": _own,
    "use_min_nodes": _flag("use_min_nodes"),
    "verbose": _own,
    "version": _own,
    "wait": _own,
    "wait_all_nodes": _wait_all,
    "wckey": _text("wckey"),
    "wrap": _own_text("wrap"),
}


def apply(job: Job, option: Option, value: "str | None") -> None:
    """Take one option.

    Raises:
        BadOptionError: a value that it cannot have.
    """
    action = ACTIONS.get(option.dest)
    if action is None:
        job.extra[option.dest] = "1" if value is None else value
    else:
        action(job, option, value or "")
