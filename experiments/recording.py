"""What becomes of the jobs of a run, as the controller tells of it.

Place: used by replays of traces and of scenarios. Pure: it is handed the messenger, and somebody
who writes down what comes.

    follow() -> FollowJobs ... JobRuns, again and again; finish() -> FollowJobs(0, after) until no
    job is left of which nothing is known

The controller tells of a run when it ends, so what it forgets later (MinJobAge) is known here, and
what was told before an interruption as well.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final

from understudy.experiments.records import expand_tasks
from understudy.experiments.stories import story_of
from understudy.experiments.watched import Watched
from understudy.protocol.messages import Failure, FollowJobs, JobRuns, Message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.experiments.records import JobRecord
    from understudy.experiments.replay import Sender
    from understudy.experiments.stories import Story
    from understudy.protocol.messages import JobRun

    Key = tuple[str, int, str]  # tag, place in a heterogeneous job, task

# runs in a message: what one costs is little among so many jobs, and more would be lost with a
# controller that is killed
LEAST_TOGETHER: Final = 64
MOST_TOGETHER: Final = 512
PARTS: Final = 200  # of a long run: with as many messages little of it is lost
# ours: how often a job starts again, with nothing left to be submitted, before it counts as one
# that does for ever
MOST_AGAIN: Final = 1000
_ANSWER_S: Final = 600.0  # ours: of real time, until the controller counts as gone


class Recording:
    """The records so far, by job; earlier runs of a job are `attempts`, in the order in which they
    ended.
    """

    def __init__(
        self,
        record: Callable[[JobRun, str], JobRecord | None],
        write: Callable[[Sequence[JobRecord]], None] = lambda _records: None,
        write_stories: Callable[[Sequence[Story]], None] = lambda _stories: None,
        *,
        name_of: Callable[[str], str] = lambda name: name,
    ) -> None:
        """`record(told, task)` makes a record, None of what is none of the run's jobs; `write` gets
        those that are new, `write_stories` what there is to tell of them. `name_of`: what a
        record's id is for a job that the controller knows by that name.
        """
        self._record, self.write, self.write_stories = record, write, write_stories
        self._name_of = name_of
        self.last: dict[Key, JobRecord] = {}
        self.attempts: list[JobRecord] = []
        self.unfinished: list[JobRecord] = []
        self.watched = Watched()
        self._again: Counter[Key] = Counter()
        self._give_up: Callable[[str], None] | None = None

    def await_end(self, give_up: Callable[[str], None]) -> None:
        """Nothing is submitted any more: from now on `give_up` is told of a job that starts again
        and again (its exit code is one of RequeueExit, jobs preempt each other), for which nobody
        can wait.
        """
        self._give_up = give_up
        self._again.clear()

    def add(self, runs: Sequence[JobRun]) -> list[JobRecord]:
        """These runs have ended."""
        new, stories = [], []
        for told in runs:
            for task in expand_tasks(told):
                record = self._record(told, task)
                if record is None:
                    continue
                key = (told.tag, told.het_offset, task)
                earlier = self.last.get(key)
                if earlier is not None and record.restarts != earlier.restarts:
                    self.attempts.append(earlier)
                    self._count_again(key, told)
                self.last[key] = record
                new.append(record)
                if (story := story_of(told, record, self._name_of)) is not None:
                    stories.append(story)
        if new:
            self.write(new)
        if stories:
            self.write_stories(stories)
        return new

    def _count_again(self, key: Key, told: JobRun) -> None:
        if self._give_up is None:
            return
        self._again[key] += 1
        if self._again[key] == MOST_AGAIN:
            name = self._name_of(told.tag) + (f"_{key[2]}" if key[2] else "")
            self._give_up(
                f"job {name} has started again {MOST_AGAIN} times since the last submission, and "
                f"would for ever: its last run ended as {told.state}"
                + (f" with exit code {told.exit_code}" if told.exit_code else "")
            )

    def add_unfinished(self, runs: Sequence[JobRun]) -> None:
        """These jobs are not over."""
        self.unfinished += self.add(runs)

    @property
    def records(self) -> list[JobRecord]:
        """One a job."""
        return sorted(self.last.values(), key=lambda record: record.job)


class Follower:
    """Asks the controller."""

    def __init__(
        self, messenger: Sender, recording: Recording, jobs: int, controller: str = "controller"
    ) -> None:
        """`jobs`: how many there will be, about."""
        self._messenger, self._recording, self._controller = messenger, recording, controller
        self._together = min(max(jobs // PARTS, LEAST_TOGETHER), MOST_TOGETHER)
        self._done: Callable[[str], None] | None = None

    def follow(self) -> None:
        """Have each run recorded that ends from now on."""
        self._messenger.send(self._controller, FollowJobs(self._together), self._told, math.inf)

    def _told(self, answer: Message) -> None:
        if isinstance(answer, JobRuns):
            self._recording.add(answer.ended)
            self._recording.watched.add(answer)
            if self._done is None:
                self.follow()

    def finish(self, done: Callable[[str], None]) -> None:
        """Ask for all that has not been told, and for jobs that are not over. `done` is told "", or
        why that was not answered.
        """
        self._done = done
        self._ask(0)

    def _ask(self, after: int) -> None:
        self._messenger.send(self._controller, FollowJobs(0, after), self._rest, _ANSWER_S)

    def _rest(self, answer: Message) -> None:
        assert self._done is not None
        if not isinstance(answer, JobRuns):
            text = (
                f"{answer.text} ({answer.code})"
                if isinstance(answer, Failure)
                else f"unexpected {type(answer).__name__}"
            )
            self._done(f"what became of the jobs was not answered: {text}")
            return
        self._recording.add(answer.ended)
        self._recording.watched.add(answer)
        self._recording.add_unfinished(answer.unfinished)
        if answer.unfinished:
            self._ask(answer.unfinished[-1].job_id)
        else:
            self._done("")
