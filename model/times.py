"""Slurm's ways to write durations, memory sizes and signals.

Place: the vocabulary, used by commands, the controller and the reader of slurm.conf. Every command
pays for its imports, so there are none. Follows sbatch(1) "--time", "--mem", "--signal", checked
against 22.05. Points in time are `moments.py`'s.
"""

MINUTE = 60
HOUR = 3600
DAY = 86400
YEAR = 365 * DAY  # what has no limit counts as so long

_UNLIMITED = frozenset({"unlimited", "infinite", "-1"})


# --- numbers --------------------------------------------------------------------------------------


def split_number(text: str) -> tuple[int, str]:
    """The number that the text begins with, as C's strtol reads it, and what is left; 0 and all of
    it where there is none.
    """
    signed = text.lstrip(" \t\n\v\f\r")
    bare = signed[1:] if signed[:1] in ("+", "-") else signed
    rest = bare.lstrip("0123456789")
    digits = bare[: len(bare) - len(rest)]
    if not digits:
        return 0, text
    return int(digits) * (-1 if signed[:1] == "-" else 1), rest


def leading_number(text: str) -> int:
    """The number that the text begins with, 0 if with none, whatever follows it."""
    return split_number(text)[0]


def as_int(number: int) -> int:
    """What a C program keeps of a number that it reads as a long and holds as an int."""
    number = max(-(1 << 63), min(number, (1 << 63) - 1))
    return ((number + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


def leading_integer(text: str) -> int:
    """The number that the text begins with, as C's atoi has it."""
    return as_int(leading_number(text))


# --- durations ------------------------------------------------------------------------------------


def _is_number(text: str, most: int) -> bool:
    return len(text) <= most and text.isascii() and text.isdigit()


def parse_limit(text: str) -> int | None:
    """A time limit in seconds; None for UNLIMITED, INFINITE and -1.

    "minutes", "minutes:seconds", "hours:minutes:seconds", "days-hours", "days-hours:minutes",
    "days-hours:minutes:seconds". Each part may be larger than a clock shows. Nothing is rounded;
    sbatch rounds up to minutes, see `whole_minutes`.

    Raises:
        ValueError: anything else.
    """
    if text.lower() in _UNLIMITED:
        return None
    days, dash, behind = text.rpartition("-")
    parts = behind.split(":") if behind or not dash else []
    if not (
        all(_is_number(part, 9) for part in parts)
        and len(parts) <= 3
        and (_is_number(days, 9) or not dash)
    ):
        raise ValueError(f"Invalid time limit specification: {text[:80]!r}")
    numbers = [int(part) for part in parts]
    if dash:
        hours, minutes, seconds = [*numbers, 0, 0, 0][:3]
    elif len(numbers) == 1:
        hours, minutes, seconds = 0, numbers[0], 0
    else:
        hours, minutes, seconds = [0, *numbers][-3:]
    return int(days or 0) * DAY + hours * HOUR + minutes * MINUTE + seconds


def parse_limit_in_minutes(text: str) -> int | None:
    """The same in whole minutes, as Slurm keeps most; a part of one counts as one."""
    limit_s = parse_limit(text)
    return None if limit_s is None else whole_minutes(limit_s)


def whole_minutes(seconds: int) -> int:
    """Seconds rounded up to whole minutes, as sbatch takes a limit."""
    return -(-seconds // MINUTE) * MINUTE


def format_duration(seconds: int | None) -> str:
    """As scontrol and sacct print a duration: `HH:MM:SS`, `D-HH:MM:SS`; UNLIMITED for None, INVALID
    for what is negative.
    """
    if seconds is None:
        return "UNLIMITED"
    if seconds < 0:
        return "INVALID"
    days, rest = divmod(seconds, DAY)
    clock = f"{rest // HOUR:02d}:{rest // MINUTE % 60:02d}:{rest % 60:02d}"
    return f"{days}-{clock}" if days else clock


# --- memory ---------------------------------------------------------------------------------------

_UNITS = {"": 1, "K": 0, "M": 1, "G": 1024, "T": 1024 * 1024}


def parse_memory(text: str) -> int:
    """A memory size in MB: `4G`, `4GB`, `1024` (MB), `100K` (rounded up to 1), `2T`.

    Raises:
        ValueError: anything else, fractions and negative numbers included.
    """
    number = text.lstrip().removeprefix("+").upper().removesuffix("B")
    unit = number[-1:] if number[-1:] in _UNITS else ""
    number = number.removesuffix(unit)
    if not _is_number(number, 19) or int(number) >= 1 << 63:
        raise ValueError(f"Invalid memory specification: {text[:80]!r}")
    return -(-int(number) // 1024) if unit == "K" else int(number) * _UNITS[unit]


# --- signals --------------------------------------------------------------------------------------

# Those that Slurm's commands know by name; others are given by number.
SIGNALS = {
    "HUP": 1,
    "INT": 2,
    "QUIT": 3,
    "ABRT": 6,
    "KILL": 9,
    "USR1": 10,
    "USR2": 12,
    "ALRM": 14,
    "TERM": 15,
    "CONT": 18,
    "STOP": 19,
    "TSTP": 20,
    "TTIN": 21,
    "TTOU": 22,
    "URG": 23,
    "XCPU": 24,
}


def parse_signal(text: str) -> int:
    """A signal's number from `9`, `USR1`, `SIGUSR1`, in any case.

    Raises:
        ValueError: not a signal.
    """
    word = text.strip().upper()
    if _is_number(word, 5) and int(word):
        return int(word)
    number_of_name = SIGNALS.get(word.removeprefix("SIG"))
    if number_of_name is None:
        raise ValueError(f"Invalid signal: {text[:80]!r}")
    return number_of_name


SIGNAL_AT_S = 60  # before its limit a job is sent a signal, where --signal does not say


def parse_signal_option(text: str) -> tuple[int, int, bool, bool]:
    """The option --signal=[{R|B}:]SIGNAL[@SECONDS] as (signal, seconds before the limit: 60 if not
    said, batch shell only, for reservations).

    Raises:
        ValueError: not of this form.
    """
    options, colon, rest = text.strip().rpartition(":")
    letters = options.upper()
    if colon and (not letters or set(letters) - {"B", "R"}):
        raise ValueError(f"Invalid signal specification: {text[:80]!r}")
    name, at, seconds = rest.partition("@")
    if at and seconds and not _is_number(seconds, 5):
        raise ValueError(f"Invalid signal specification: {text[:80]!r}")
    before = int(seconds or 0) if at else SIGNAL_AT_S
    if before > 65535:
        raise ValueError(f"Invalid signal specification: {text[:80]!r}")
    return parse_signal(name), before, "B" in letters, "R" in letters
