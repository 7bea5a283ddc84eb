"""Counts for each node in Slurm's short form: `2(x3),1`.

Place: under srun. Imports nothing.
"""


def counts(text: str) -> list[int]:
    """`2(x3),1` as numbers."""
    found: list[int] = []
    for word in text.split(","):
        value, _, times = word.partition("(x")
        found += [int(value)] * int(times.rstrip(")") or 1)
    return found


def compressed(values: list[int]) -> str:
    rows: list[list[int]] = []
    for value in values:
        if rows and rows[-1][0] == value:
            rows[-1][1] += 1
        else:
            rows.append([value, 1])
    return ",".join(f"{value}(x{count})" if count > 1 else str(value) for value, count in rows)
