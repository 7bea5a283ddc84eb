"""What the commands say of their own options with --verbose.

Place: under the commands, which import it only where it is asked for. Follows squeue, sinfo and
scancel of 22.05; those that submit have `submission/verbose.py`.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.commands.shared.fields import Cell

_RULE = "-" * 29


def _truth(value: object) -> str:
    return "true" if value else "false"


def squeue_options(
    options: "dict[str, str | None]", times: int, start_format: str, start_sort: str
) -> str:
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
    lines = [
        _RULE,
        *(
            f"{name:<11} = {value}" if name != "sibling " else f"sibling      = {value}"
            for name, value in entries
        ),
    ]
    if times > 1:
        lines += [
            f"job_list[{at}] = {word}"
            for at, word in enumerate((options.get("jobs") or "").split(","))
            if word
        ]
    return "\n".join([*lines, _RULE, "", ""])


_SINFO_FLAGS = {  # flag: the fields that set it
    "all_flag": "",
    "alloc_mem_flag": "allocmem",
    "avail_flag": "available",
    "comment_flag": "comment",
    "cpus_flag": "cpus cpusstate",
    "default_time_flag": "defaulttime",
    "disk_flag": "disk",
    "extra_flag": "extra",
    "features_flag": "features",
    "features_flag_act": "features_act",
    "groups_flag": "groups",
    "gres_flag": "gres",
    "gres_used_flag": "gresused",
    "job_size_flag": "size",
    "max_time_flag": "time",
    "memory_flag": "memory",
    "partition_flag": "partition partitionname",
    "port_flag": "port",
    "priority_job_factor_flag  ": "priorityjobfactor",
    "priority_tier_flag  ": "prioritytier",
    "reason_flag": "reason",
    "reason_timestamp_flag": "timestamp",
    "reason_user_flag": "user userlong",
    "reservation_flag": "",
    "root_flag": "root",
    "oversubscribe_flag     ": "oversubscribe",
    "state_flag": "statecompact statelong",
    "statecomplete_flag": "statecomplete",
    "weight_flag": "weight",
}


def sinfo_options(
    options: "dict[str, str | None]",
    times: int,
    interval: int | None,
    default: str,
    cells: "list[Cell]",
) -> str:
    """The block of options of sinfo; `default` is the format where none is given."""
    given = options["format"] if "format" in options else options.get("long_format")
    wants = {
        name: name in options
        for name in ("dead", "responding", "partition", "nodes", "states", "list_reasons")
    }
    entries = {
        "dead": _truth(wants["dead"]),
        "exact": str(int("exact" in options)),
        "filtering": _truth(any(wants.values())),
        "format": _long_names(default, cells) if given is None else given,
        "iterate": str(interval or 0),
        "long": _truth("long" in options),
        "no_header": _truth("noheader" in options),
        "node_field": _truth(given is None and default.startswith("%#N")),
        "node_format": _truth("node_oriented" in options),
        "nodes": options.get("nodes", "n/a"),
        "part_field": _truth(given is None and "P" in default),
        "partition": options.get("partition", "n/a"),
        "responding": _truth(wants["responding"]),
        "states": options.get("states", "down" if wants["list_reasons"] else "(null)"),
        "sort": options.get("sort", "(null)"),
        "summarize": _truth("summarize" in options),
        "verbose": str(times),
    }
    shown = {name for cell in cells if cell.field is not None for name in cell.field.names}
    switches = {
        "all_flag": "all" in options or wants["partition"],
        "reservation_flag": "reservation" in options,
    }
    flags = [
        f"{flag:<15} ={'' if flag == 'default_time_flag' else ' '}"
        + _truth(switches.get(flag, not shown.isdisjoint(names.split())))
        for flag, names in _SINFO_FLAGS.items()
    ]
    return "\n".join(
        [
            _RULE,
            *(f"{name:<11} = {value}" for name, value in entries.items()),
            _RULE,
            *flags,
            _RULE,
            "",
        ]
    )


def _long_names(default: str, cells: "list[Cell]") -> str:
    """A format of letters by the names of its fields; names of partitions in it are 9 wide at
    least.
    """
    widths = {"P": 9} if "#P" in default else {}
    return " ,".join(
        f"{cell.field.names[0]}:{'.' * cell.right}{cell.width or widths.get(cell.field.letter, 0)}"
        for cell in cells
        if cell.field is not None
    )


def scancel_options(
    options: "dict[str, str | None]",
    times: int,
    signal: int | None,
    state: str,
    user: int | None,
    jobs: list[str],
) -> list[str]:
    """What scancel says of its options where -v is given three times."""
    entries = {
        name: options.get(name, "(null)")
        for name in ("account", "nodelist", "partition", "qos", "reservation", "sibling", "wckey")
    }
    entries |= {
        name: _truth(name in options) for name in ("batch", "ctld", "full", "hurry", "interactive")
    }
    entries |= {
        "job_name": options.get("name", "(null)"),
        "state": state or "?",
        "verbose": str(times),
    }
    entries |= {
        "user_id": str(user or 0),
        "user_name": options.get("user", "(null)"),
    }
    if signal is not None:
        entries["signal"] = str(signal)
    return [
        *(f"{name:<14} : {entries[name]}" for name in sorted(entries)),
        *(f"{f'job_id[{at}]':<14} : {job}" for at, job in enumerate(jobs)),
    ]
