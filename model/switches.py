"""How many leaf switches a job's nodes may be on, and how long it waits for so few.

Place: the vocabulary. Follows sbatch(1) --switches.
"""

from understudy.model.times import leading_number, parse_limit


def read_switches(text: str) -> tuple[int | None, int | None]:
    """Count and seconds of `COUNT[@TIME]`. None for no count; None for a time that is not given, or
    not understood, which is no error.
    """
    count, _, wait = text.partition("@")
    try:
        wait_s = parse_limit(wait) if wait else None
    except ValueError:
        wait_s = None
    return max(leading_number(count), 0) or None, wait_s
