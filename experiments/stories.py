"""The stories of jobs: for what each run of a job waited when, which starts it was promised, and
what was done to it meanwhile.

Place: between a replay, which is told them, and those who explain a run. `stories.jsonl.gz` has a
line for each run of which there is anything to tell, in the order in which the runs ended. It grows
by whole gzip members, so what is there of a run that was cut short can be read.
"""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from understudy.experiments.records import JobRecord
    from understudy.protocol.messages import JobRun

STORIES: Final = "stories.jsonl.gz"
_QUICK: Final = 1  # of gzip's levels: 6 makes it a fifth smaller and takes three times as long


class StoriesError(ValueError):
    """A file of stories that cannot be read. Says where."""


class Story(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Of one run. Times in seconds from the trace's zero; each list in the order of time."""

    id: str  # as in jobs.csv
    submit: int  # when it was queued for this run, which tells it from the job's other runs
    reasons: list[tuple[int, str]] = []  # from when it waited for what, until the next
    promises: list[tuple[int, int]] = []  # when it was promised which start
    # when, what, and the id of the job that it is due to
    events: list[tuple[int, str, str]] = []


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Story)


def story_of(
    told: JobRun, record: JobRecord, name_of: Callable[[str], str] = lambda name: name
) -> Story | None:
    """What the controller told of a run; None: nothing. `name_of`: the id in jobs.csv of what the
    controller knows by that name.
    """
    reasons, events = told.reasons, told.events
    if reasons and reasons[-1][0] == told.start:  # it waited for that for less than a second
        reasons = reasons[:-1]
    if told.start is None and told.end is not None:  # jobs.csv has ends of runs alone
        events = [*events, (told.end, told.state, "")]
    if not (reasons or told.promises or events):
        return None
    zero = told.submit - record.submit
    return Story(
        record.id,
        record.submit,
        [(at - zero, reason) for at, reason in reasons],
        [(at - zero, start - zero) for at, start in told.promises],
        [(at - zero, what, name_of(who)) for at, what, who in events],
    )


class StoriesFile:
    """FOLDER/stories.jsonl.gz while the run goes on."""

    def __init__(self, folder: Path, mode: str = "w") -> None:
        """`mode`: "a" to go on with one."""
        self._file = (folder / STORIES).open(f"{mode}b")

    def add(self, stories: Iterable[Story]) -> None:
        """Write them down, at once on disk."""
        lines = _encoder.encode_lines(list(stories))
        if lines:
            self._file.write(gzip.compress(lines, _QUICK, mtime=0))
            self._file.flush()

    def close(self) -> None:
        """No more will come."""
        self._file.close()


class KeptStories:
    """The stories of a run, of which a few are wanted: only these are decoded."""

    def __init__(self, path: Path) -> None:
        """What a run that was killed wrote half is left out.

        Raises:
            OSError: the file cannot be opened.
            StoriesError: it is damaged, or holds something else.
        """
        self._path = path
        unpacked = _unpacked(path)
        self._lines = b"\n" + unpacked[: unpacked.rfind(b"\n") + 1]
        if len(self._lines) > 1:
            self._decode(1)

    def find(self, name: str, submit: int) -> Story | None:
        """That of the run of the job of that id that was queued then, if there is one.

        Raises:
            StoriesError: its line is damaged.
        """
        head = _encoder.encode(Story(name, submit)).removesuffix(b"}")
        end = len(self._lines)
        while (end := self._lines.rfind(b"\n" + head, 0, end)) >= 0:  # the last that was told
            begin = end + 1
            if self._lines[begin + len(head)] in b",}":
                return self._decode(begin)
        return None

    def _decode(self, begin: int) -> Story:
        try:
            return _decoder.decode(self._lines[begin : self._lines.index(b"\n", begin)])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            number = self._lines.count(b"\n", 0, begin)
            raise StoriesError(f"{self._path} line {number}: no story of a job: {error}") from None


def _unpacked(path: Path) -> bytes:
    """All members; of one that was cut short, what can be had."""
    packed, unpacked = path.read_bytes(), []
    while packed:
        member = zlib.decompressobj(wbits=31)
        try:
            unpacked.append(member.decompress(packed))
        except zlib.error as error:
            raise StoriesError(f"{path}: damaged gzip file: {error}") from error
        packed = member.unused_data
    return b"".join(unpacked)
