"""What a starter sends (starter.c): a command line, and what the process is that typed it.

Place: read by children of a zygote; imports next to nothing, as all there. Texts are bytes, as the
kernel gives them, each ended by a null byte:

    VERSION, interpreter, facts, umask, COUNT, the numbers of COUNT descriptors,
    COUNT, the script and its COUNT - 1 arguments, the environment
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = b"1"
MOST_BYTES = 1 << 17  # as in starter.c
MOST_DESCRIPTORS = 60  # as in starter.c; the current folder comes behind them
# Variables that an interpreter, the C library and the linker read at their start.
_FIXED = (b"PYTHON", b"LC_", b"LANG", b"LD_", b"GLIBC_", b"MALLOC_")
_PLACES = ("/", *(f"/proc/self/ns/{kind}" for kind in ("mnt", "net", "pid", "user", "uts")))


class Request:
    """One command line."""

    __slots__ = ("descriptors", "environ", "facts", "python", "umask", "version", "words")

    def __init__(self, data: bytes) -> None:
        """Raises:
        ValueError, IndexError: it is no request.
        """
        self.version, self.python, self.facts, umask, count, *texts, _ = data.split(b"\0")
        self.umask = int(umask, 8)
        at = int(count)
        self.descriptors = [int(text) for text in texts[:at]]
        end = at + 1 + int(texts[at])
        self.words = texts[at + 1 : end]
        self.environ = environment(texts[end:])

    @property
    def command(self) -> str:
        """The command's name."""
        return os.fsdecode(self.words[0].rpartition(b"/")[2])


def environment(texts: list[bytes]) -> dict[bytes, bytes]:
    """Variables by name from `NAME=value`; of those that are there twice the first, as Python
    does.
    """
    found: dict[bytes, bytes] = {}
    for text in texts:
        name, equals, value = text.partition(b"=")
        if equals:
            found.setdefault(name, value)
    return found


def first_environment() -> dict[bytes, bytes]:
    """The variables with which this process was started, before Python added its own (PEP 538)."""
    with open("/proc/self/environ", "rb") as file:
        return environment(file.read().split(b"\0"))


def fixed(environ: "Mapping[bytes, bytes]") -> dict[bytes, bytes]:
    """The variables that a process cannot take on after its start."""
    return {name: value for name, value in environ.items() if name.startswith(_FIXED)}


def facts() -> bytes:
    """Root folder, namespaces and groups of this process, which a starter must share."""
    found = [os.stat(place) for place in _PLACES]
    return "".join(
        [f"{each.st_dev}:{each.st_ino} " for each in found]
        + [f"{each} " for each in os.getgroups()]
    ).encode()
