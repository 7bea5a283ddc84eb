"""The window protocol's decisions: who may run, and how far. The clock service's core, without I/O.

Place: driven by `service.py`, tested alone. Knows no sockets and no real time but what it is
handed.

A message sent at virtual time t is delivered at t + L or later, L > 0 being the smallest latency.
So what a participant does at t cannot reach another before t + L, and cannot come back to itself
before t + 2L. Once all that were granted time have reported, each participant i with next event
n(i) may run up to min over the others of n(j) + L; it ends its own window earlier, 2L after its
first message (the participant sees to that itself). This is wider than one window [T, T + L) for
all: a participant that is alone with its events goes through many of them on one grant, and the
schedule is the same, because deliveries are ordered by (delivery time, sender, sender's sequence
number) and come before timers of the same time whatever the windows are.

All times are integers, microseconds since the cluster's epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from understudy.clock.timers import NEVER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(slots=True, eq=False)
class Participant:
    """What the service knows of one participant."""

    name: str
    next_us: int = 0
    now_us: int = 0
    in_flight_us: int = NEVER  # earliest delivery on its way there that it has not been told of
    running: bool = True  # granted, has not reported
    wants_hold: bool = False
    waiting: bool = False  # for an answer, or for jobs to end
    # so far time must go on for it; what it has to do later is periodic, and need not come
    needs_us: int = -1
    watches: bool = False  # is told when nothing goes on
    told: bool = False
    sent_to_it: dict[str, int] = field(default_factory=dict)  # by sender, all in all
    news: dict[str, int] = field(default_factory=dict)  # of sent_to_it, since the last grant

    @property
    def earliest_us(self) -> int:
        return min(self.next_us, self.in_flight_us)


class Grant(NamedTuple):
    """Run all that lies before `end_us`, after having received so many messages in all from each
    sender in `must_have`; but what is periodic up to `needed_us` alone, unless there is something
    else to do. Until then others need time to go on, whatever happens.
    """

    to: str
    end_us: int
    must_have: dict[str, int]
    needed_us: int = NEVER


@dataclass(frozen=True, slots=True)
class Held:
    """All others stand still: do what came from outside virtual time at `now_us`, then report."""

    to: str
    now_us: int


@dataclass(frozen=True, slots=True)
class Stalled:
    """Nobody has anything left to do, or someone is gone: `reason` says what is the matter."""

    to: str
    reason: str


Decision = Grant | Held | Stalled


class Windows:
    """The state of virtual time. Each input is a method; `decide` then says whom to grant what."""

    def __init__(self, latency_us: int, expected: Iterable[str] = ()) -> None:
        assert latency_us > 0
        self.latency_us = latency_us
        self.participants: dict[str, Participant] = {}
        self._awaited = set(expected)
        self._running = 0
        self._log: list[str] = []
        self.paused = ""  # why, or ""
        # the next breakpoint: nothing at or after it happens before it is reached and `resume`
        # comes
        self.stop_us = NEVER
        # so far time goes by request, though nobody have anything to do until then
        self.target_us = NEVER
        # the last breakpoint that stopped time: it is that late, though nothing happens at that
        # instant
        self.reached_us = 0
        self._breaks_us: list[int] = []  # ascending
        self._every_us = 0
        self._origin_us = 0
        self.allowed_us: Callable[[], int] | None = None  # how far a rate lets time go now
        self.throttled = False
        self.steps_left = -1  # windows until the next pause; -1: no limit
        self.windows = 0
        self.lost: list[str] = []  # participants that died

    # --- what participants say --------------------------------------------------------------------

    def join(self, name: str, *, watches: bool = False) -> None:
        """A participant takes part from now on. One that was expected begins at time 0; a late one
        asks for a hold by joining.
        """
        if name in self.participants:
            raise ValueError(f"participant {name} takes part already")
        participant = Participant(name, watches=watches)
        if name in self._awaited:
            self._awaited.discard(name)
            self._running += 1
        else:
            participant.next_us = NEVER
            participant.running = False
            participant.wants_hold = True
        self.participants[name] = participant

    def report(
        self,
        name: str,
        next_us: int,
        now_us: int,
        sent: dict[str, tuple[int, int]],
        *,
        waiting: bool,
        needs_us: int,
    ) -> None:
        """The participant has nothing left before its window's end. `sent`: receiver -> (messages,
        earliest delivery) since its last report; `needs_us`: until when time must go on for its
        sake, -1 if it need not.
        """
        participant = self.participants[name]
        assert participant.running, f"{name} reported without a grant"
        participant.running = False
        self._running -= 1
        participant.next_us = next_us
        participant.now_us = now_us
        participant.waiting = waiting
        participant.needs_us = needs_us
        for receiver_name, (count, earliest_us) in sent.items():
            receiver = self.participants.get(receiver_name)
            if receiver is None:
                continue  # died or left meanwhile; the sender's connection tells it
            total = receiver.sent_to_it.get(name, 0) + count
            receiver.sent_to_it[name] = receiver.news[name] = total
            receiver.in_flight_us = min(receiver.in_flight_us, earliest_us)

    def hold(self, name: str) -> None:
        """The participant has something from outside virtual time to do."""
        self.participants[name].wants_hold = True

    def leave(self, name: str, *, died: bool = False) -> None:
        """The participant takes part no longer. If it died, watchers are told."""
        participant = self.participants.pop(name, None)
        if participant is None:
            return
        if participant.running:
            self._running -= 1
        for other in self.participants.values():
            other.sent_to_it.pop(name, None)
            other.news.pop(name, None)
        if died:
            self.lost.append(name)
            for other in self.participants.values():
                other.told = False

    # --- what people say --------------------------------------------------------------------------

    @property
    def now_us(self) -> int:
        """The latest instant that anybody has reached, or the breakpoint at which time stands."""
        return max([self.reached_us, *(p.now_us for p in self.participants.values())])

    @property
    def next_event_us(self) -> int:
        return min((p.earliest_us for p in self.participants.values()), default=NEVER)

    @property
    def running(self) -> list[str]:
        """Who has been granted time and has not reported."""
        return [p.name for p in self.participants.values() if p.running]

    @property
    def awaited(self) -> list[str]:
        return sorted(self._awaited)

    def state(self) -> tuple[str, str]:
        """(running, paused, idle or waiting; why)."""
        if self._awaited:
            return "waiting", "for " + ", ".join(self.awaited) + " to join"
        if self.paused:
            return "paused", self.paused
        next_us = self.next_event_us
        if (
            not self._running
            and self.target_us == NEVER
            and (next_us == NEVER or (next_us > self._needed_us() and not self._is_driven))
        ):
            return "idle", "nobody has anything to do"
        return "running", ""

    @property
    def _is_driven(self) -> bool:
        """Whether somebody drives time, so that it goes on for periodic events, too: until an
        instant, by steps, or at a rate.
        """
        return self.stop_us != NEVER or self.allowed_us is not None or self.steps_left >= 0

    def _needed_us(self, besides: Participant | None = None) -> int:
        """Time must come so far, whatever happens: somebody is there already, whom the others have
        to follow, or has something to do or a message on its way, and nothing before it, that could
        take the need away.
        """
        needed_us = 0
        for each in self.participants.values():
            if each is besides:
                continue
            needed_us = max(needed_us, each.now_us)
            if each.needs_us >= 0 or each.in_flight_us != NEVER:
                earliest_us = min(each.in_flight_us, each.next_us)
                needed_us = max(needed_us, earliest_us)
        return needed_us

    def pause(self, reason: str) -> None:
        self.paused = reason

    def resume(self) -> None:
        """Go on, until the next breakpoint."""
        self.paused = ""
        self.steps_left = -1
        self.target_us = NEVER

    def run_until(self, when_us: int) -> None:
        """Go on until `when_us`, and stop before anything at or after it happens."""
        self.resume()
        self.target_us = when_us
        self.break_at(when_us)

    def step(self, windows: int) -> None:
        self.resume()
        self.steps_left = windows

    def break_at(self, when_us: int) -> None:
        """Stop before anything at or after `when_us` happens."""
        if when_us not in self._breaks_us:
            self._breaks_us = sorted([*self._breaks_us, when_us])
        self._arm()

    def break_every(self, period_us: int, origin_us: int = 0) -> None:
        """Stop at each multiple of the period after the origin. 0: no more, and not at single
        instants either.
        """
        self._every_us, self._origin_us = period_us, origin_us
        if not period_us:
            self._breaks_us = []
            self.target_us = NEVER
        self._arm()

    def _arm(self) -> None:
        """Find the next breakpoint."""
        self.stop_us = self._breaks_us[0] if self._breaks_us else NEVER
        if self._every_us:
            periods = max(0, (self.now_us - self._origin_us) // self._every_us) + 1
            self.stop_us = min(self.stop_us, self._origin_us + periods * self._every_us)

    def _stop(self) -> None:
        """Time has come to the breakpoint: whoever looks now, and what they do, is at its
        instant.
        """
        self.reached_us = self.stop_us
        self.target_us = NEVER
        self._breaks_us = [when_us for when_us in self._breaks_us if when_us > self.reached_us]
        self._arm()
        self.pause("breakpoint")

    # --- what follows -----------------------------------------------------------------------------

    def decide(self) -> list[Decision]:
        """Whom to grant what now; nothing while somebody runs."""
        if self._running or self._awaited or not self.participants:
            return []
        everybody = self.participants.values()
        first_us = second_us = NEVER
        first: Participant | None = None
        is_driven = False
        for participant in everybody:
            if participant.wants_hold:
                return [self._grant_hold(participant)]
            earliest_us = participant.next_us
            earliest_us = min(earliest_us, participant.in_flight_us)
            if earliest_us < first_us:
                first, first_us, second_us = participant, earliest_us, first_us
            elif earliest_us < second_us:
                second_us = earliest_us
        if self.lost:
            return self._tell_watchers(f"{', '.join(self.lost)} died")
        if self.paused:
            return []
        if first is None or (first.needs_us < 0 and first_us > self._needed_us()):
            waiting = [p.name for p in everybody if p.waiting]
            told = (
                self._tell_watchers(
                    "nobody has anything left to do; waiting: " + ", ".join(waiting)
                )
                if waiting
                else []
            )
            if told or not self._is_driven or (first is None and self.target_us == NEVER):
                return told
            is_driven = True
        if first_us < self.stop_us and self.steps_left == 0:
            self.pause("step done")
            return []
        allowed_us = NEVER if self.allowed_us is None else self.allowed_us()
        self.throttled = min(first_us, self.stop_us) > allowed_us
        if self.throttled:
            return []
        if first is None or first_us >= self.stop_us:
            self._stop()
            return []
        ceiling_us = min(self.stop_us, allowed_us + 1)
        self.windows += 1
        if self.steps_left > 0:
            self.steps_left -= 1
            second_us = min(second_us, first_us)  # a step is one narrow window
        end_us = min(first_us + self.latency_us, ceiling_us)
        until_us = min(second_us + self.latency_us, ceiling_us)
        if second_us >= end_us:
            return [self._grant(first, until_us, NEVER if is_driven else self._needed_us(first))]
        granted = [
            (first, until_us),
            *(
                (other, end_us)
                for other in everybody
                if other is not first and other.earliest_us < end_us
            ),
        ]
        needed_us = [NEVER if is_driven else self._needed_us(each) for each, _ in granted]
        return [
            self._grant(each, until_us, needed)
            for (each, until_us), needed in zip(granted, needed_us, strict=True)
        ]

    def _grant(self, participant: Participant, end_us: int, needed_us: int) -> Grant:
        participant.running = True
        participant.told = False
        self._running += 1
        participant.in_flight_us = NEVER
        news, participant.news = participant.news, {}
        return Grant(participant.name, end_us, news, needed_us)

    def _grant_hold(self, participant: Participant) -> Held:
        participant.wants_hold = False
        participant.running = True
        participant.told = False
        self._running += 1
        now_us = max(participant.now_us, min(self.now_us, self.next_event_us))
        return Held(participant.name, now_us)

    def _tell_watchers(self, reason: str) -> list[Decision]:
        told: list[Decision] = []
        for participant in self.participants.values():
            if participant.watches and not participant.told:
                participant.told = True
                told.append(Stalled(participant.name, reason))
        return told
