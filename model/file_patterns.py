"""Patterns in the names of output files, as far as all who fill them in agree.

Place: model, pure; it imports nothing, as the process that forks tasks uses it. Follows: sbatch(1)
"FILENAME PATTERN".
"""


def without_backslashes(pattern: str) -> str:
    """A name whose backslashes switch the replacing off: each is left out, and what follows it, be
    it another one, stays.
    """
    found, is_escaped = "", False
    for letter in pattern:
        is_escaped = letter == "\\" and not is_escaped
        if not is_escaped:
            found += letter
    return found
