"""What srun's own options may be: looked at one after the other, with those of the job.

Place: under srun. Follows srun(1) of 22.05, and what it was seen to say.
"""

from understudy.commands.submission.allocation import immediate_s
from understudy.commands.submission.job import BadOptionError
from understudy.commands.submission.numbers import number
from understudy.model.times import leading_number

# least values, names in errors, and whether one may be given without a value
_COUNTS = {
    "jobid": (1, "jobid", False),
    "threads": (1, "threads", False),
    "msg_timeout": (1, "msg-timeout", False),
    "resv_ports": (0, "resv-port", True),
    "wait": (0, "wait", True),
    "kill_on_bad_exit": (0, "kill-on-bad-exit", True),
    "relative": (0, "relative", True),
}
_MOST_GROUP = 127
_MOST_DEBUG = 4
_DEBUG_LEVELS = ("quiet", "fatal", "error", "info", "verbose")


def check_own(name: str, value: str) -> str:
    """Look at one option. Returns a warning; "" for none.

    Raises:
        BadOptionError: a value that it cannot have.
    """
    if name in _COUNTS:
        least, said, may_be_empty = _COUNTS[name]
        if value or not may_be_empty:
            number(said, value, least)
    elif name == "immediate":
        immediate_s(value)
    elif name == "send_libs" and value.lower() not in {"", "y", "n", "yes", "no"}:
        raise BadOptionError("Invalid --send-libs specification")
    elif name == "compress" and value.lower() not in {"", "lz4", "none"}:
        return f"error: Compression type '{value}' unknown, disabling compression support."
    return ""


def debug_notice(value: str) -> str:
    """What is said of a level of messages of --slurmd-debug that is too high; "" for one that is
    none.
    """
    if _debug_level(value) <= _MOST_DEBUG:
        return ""
    return f"Using srun's max debug increment of {_MOST_DEBUG}"


def _debug_level(text: str) -> int:
    if text.lower() in _DEBUG_LEVELS:
        return _DEBUG_LEVELS.index(text.lower())
    return leading_number(text) if text[:1].isdigit() else _MOST_DEBUG + 1


def het_groups(text: str) -> list[int]:
    """The components that --het-group names: `0,2-3`, in brackets or not.

    Raises:
        BadOptionError: a word that says none.
    """
    bare, found = text, list[int]()
    if text.startswith("["):
        if not text.endswith("]"):
            raise BadOptionError(f"Invalid --het-group value: {text}", 1)
        bare = text[1:-1]
    for word in bare.split(","):
        first, dash, last = word.partition("-")
        numbers = [first.strip(), last if dash else first.strip()]
        if not all(map(str.isdigit, numbers)) or int(numbers[0]) > int(numbers[1]):
            raise BadOptionError(
                f"Invalid --het-group value: {text}",
                1,
                f"{{program}}: error: _parse_single_range: Invalid range: `{word}'",
            )
        if int(numbers[1]) > _MOST_GROUP:
            raise BadOptionError(f"Invalid --het-group value: {text}", 1)
        found += range(int(numbers[0]), int(numbers[1]) + 1)
    return found
