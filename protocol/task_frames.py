"""The frames between a step's process and srun: a two byte kind, a four byte task, a four byte
length, then the data.

Place: what both ends share: `noded/taskd.py` and `emulated_steps.py`, and `commands/srun/io.py`.
Imports nothing, as commands start often. Follows: `../docs/adr/0011-the-streams-of-steps.md`.
"""

(
    HELLO,
    STDOUT,
    STDERR,
    STDIN,
    STARTED,
    EXITED,
    MESSAGE,
    ABORT,
    DONE,
    WINDOW,
    PMI,
    PMIX,
    MPI_ABORT,
    LOST,
) = range(1, 15)
ALL = 0xFFFFFFFF
HEAD = 10  # bytes before the data


def frame(kind: int, task: int, data: bytes) -> bytes:
    return kind.to_bytes(2, "big") + task.to_bytes(4, "big") + len(data).to_bytes(4, "big") + data


def first_of(data: bytes | bytearray) -> tuple[int, int, bytes] | None:
    """The first frame in what has come, if it is whole: its kind, its task, its data."""
    if len(data) < HEAD:
        return None
    length = int.from_bytes(data[6:HEAD], "big")
    if len(data) < HEAD + length:
        return None
    return (
        int.from_bytes(data[:2], "big"),
        int.from_bytes(data[2:6], "big"),
        bytes(data[HEAD : HEAD + length]),
    )
