"""The number that a text begins with.

Place: beside `texts`; of widths in formats, and of other numbers that nobody checks.
"""


def leading_integer(text: str) -> int:
    """An integer of 32 bits as C's atoi reads it: blanks and a sign may come first, and whatever
    follows the digits is passed over; 0 where there are none.
    """
    bare = text.lstrip(" \t\n\v\f\r")
    digits = bare[1:] if bare[:1] in {"+", "-"} else bare
    digits = digits[: len(digits) - len(digits.lstrip("0123456789"))]
    value = min(int(digits or 0), (1 << 63) - 1) * (-1 if bare.startswith("-") else 1)
    return ((value + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
