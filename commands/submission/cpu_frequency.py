"""`--cpu-freq`: which clock rates of a CPU a job asks for. Follows sbatch(1) of 22.05.

Place: under sbatch, salloc and srun; read where one asks for it.
"""

from understudy.commands.submission.job import BadOptionError
from understudy.commands.submission.numbers import MOST_LONG
from understudy.model.times import leading_number

_FREQUENCIES = ("low", "medium", "highm1", "high")  # the least first, above all numbers
_GOVERNORS = {"conservative", "ondemand", "performance", "powersave", "schedutil", "userspace"}


def _frequency(word: str) -> int:
    """To compare frequencies by: kHz, of which 32 bits count; of a name more than any number.

    Raises:
        ValueError: the word says none.
    """
    if word.lower() in _FREQUENCIES:
        return (1 << 32) + _FREQUENCIES.index(word.lower())
    kilohertz = min(leading_number(word), MOST_LONG) & 0xFFFFFFFF
    if not kilohertz or word.startswith("-"):
        raise ValueError(word)
    return kilohertz


def _shown_frequency(bound: int) -> str:
    """As it is kept; "" for what stands for none said."""
    if bound >> 32:
        return _FREQUENCIES[bound & 0xFFFFFFFF]
    return "" if bound == 0xFFFFFFFE else "unknown" if bound >> 31 else str(bound)


def kept(value: str, name: str) -> str:
    """`P1[-P2][:P3]`: frequencies by number or name, and a governor, as the job keeps them; "" for
    nothing. A governor may stand alone.

    Raises:
        BadOptionError: the value of the option `name` is none.
    """

    def wrong(text: str) -> BadOptionError:
        return BadOptionError(f"Invalid --{name} argument", 255, f"{{program}}: error: {text}")

    frequencies, colon, governor = value.partition(":")
    least, dash, rest = frequencies.partition("-")
    if least.lower().partition(",")[0] in _GOVERNORS:
        if colon or dash:
            raise wrong(f"governor cannot be specified twice {least}{{-}}:{governor} in --cpu-freq")
        return least
    words = [least, *([rest.partition("-")[0]] if dash else [])]
    bounds = []
    for word in words:
        try:
            bounds.append(_frequency(word))
        except ValueError:
            raise wrong(f'unrecognized --cpu-freq argument "{word}"') from None
    if dash and bounds[1] < bounds[0]:
        raise wrong(f"min cpu-frec ({words[0]}) must be < max cpu-freq ({words[1]})")
    if colon and not dash:
        raise wrong(f"gov on cpu-frec ({governor}) illegal without max")
    if colon and governor.lower().partition(",")[0] not in _GOVERNORS:
        raise wrong(f"illegal governor: {governor} on --cpu-freq")
    named = [_shown_frequency(bound) for bound in bounds]
    return "-".join(named) + colon + governor if any(named) or governor else ""
