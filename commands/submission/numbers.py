"""Numbers as the options of submissions take them: what is one, and how many bits of it count.

Place: under sbatch, salloc and srun.
"""

from understudy.commands.submission.job import BadOptionError
from understudy.model.times import as_int

MOST_INT = 0x7FFFFFFF
MOST_LONG = (1 << 63) - 1
SCALES = {"k": 1024, "m": 1024 * 1024}


def number(name: str, value: str, least: int = 1, *, said: str = "") -> int:
    """A whole number, of which 32 bits with a sign are kept. `said`: what an error calls it, if not
    by the option's name.

    Raises:
        BadOptionError: another text, too small, or too large for 64 bits.
    """
    digits = value.lstrip().removeprefix("+")
    said = said or f"--{name}"
    if not digits.isdecimal() or int(digits) < least:
        raise BadOptionError(f'Invalid numeric value "{value}" for {said}.', 1)
    if int(digits) >= MOST_LONG:
        raise BadOptionError(f"Numeric argument ({MOST_LONG}) to big for {said}.", 1)
    return as_int(int(digits))


def half_of(count: int, *, all_ones_count: bool = True) -> int | None:
    """The 16 bits that the controller is told; None where these stand for nothing said."""
    half = count & 0xFFFF
    return None if half == 0xFFFE or (half == 0xFFFF and not all_ones_count) else half
