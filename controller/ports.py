"""What the controller's core needs from its surroundings, as interfaces: the time, the wire, the
store, the names of users.

Place: the core depends on these alone; the edge (understudy.controller.edge.main) and the tests
supply them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from understudy.protocol.messages import Message


class TimerHandle(Protocol):
    """A timer that was set."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The cluster's time."""

    @property
    def is_virtual(self) -> bool: ...

    def now(self) -> float: ...

    def call_at(self, when: float, callback: Callable[..., object], *args: Any) -> TimerHandle: ...

    def call_periodically(
        self, when: float, matters: Callable[[], bool], callback: Callable[..., object], *args: Any
    ) -> TimerHandle: ...

    def call_after_wait(
        self, delay_s: float, callback: Callable[..., object], *args: Any
    ) -> TimerHandle: ...

    def wait_clock(self) -> float: ...

    def pause(self, reason: str) -> None: ...


class Wire(Protocol):
    """Messages to other daemons."""

    def add_peer(self, name: str, address: str) -> None: ...

    def send(
        self,
        peer: str,
        message: Message,
        on_reply: Callable[[Message], None] | None = None,
        timeout_s: float = 10.0,
        *,
        only_failures: bool = False,
    ) -> None: ...


class Rows(Protocol):
    """What a statement gave."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...


class Database(Protocol):
    """One connection to a database, used by one thread at a time (understudy.controller.saved.
    database). Statements have `?` for values. `shown`: where it is, without a password.
    """

    shown: str

    def execute(self, text: str, values: Sequence[object] = ()) -> Rows: ...

    def read_locked(self, select: str) -> Rows: ...

    def executemany(self, text: str, rows: Sequence[Sequence[object]]) -> None: ...

    def create(self, schema: str) -> None: ...

    def version(self) -> int: ...

    def set_version(self, number: int) -> None: ...

    def transaction(self) -> AbstractContextManager[None]: ...

    def locked_by(self) -> set[int]: ...

    def close(self) -> None: ...


class Sender(Protocol):
    """Who sent a request, authenticated."""

    @property
    def name(self) -> str: ...

    @property
    def user_id(self) -> int: ...

    @property
    def group_id(self) -> int: ...

    @property
    def is_daemon(self) -> bool: ...

    @property
    def is_node(self) -> bool: ...


class Signer(Protocol):
    """Signs job credentials."""

    def sign(
        self, job_id: int, restart: int, nodes: str, user_id: int, start_time: int
    ) -> bytes: ...


class StepSigner(Protocol):
    """Signs job step credentials."""

    def sign_step(
        self,
        job_id: int,
        restart: int,
        step_id: int,
        nodes: str,
        user_id: int,
        group_id: int,
        now: int,
        *,
        program_environment: Sequence[str] = (),
    ) -> bytes: ...


class Users(Protocol):
    """Names of users and groups, as the controller's host knows them; the number as text for one
    that it does not.
    """

    def user_name(self, user_id: int) -> str: ...

    def group_name(self, group_id: int) -> str: ...

    def groups_of(self, user_id: int) -> frozenset[str]: ...

    def user_id(self, name: str) -> int | None: ...

    def is_group(self, name: str) -> bool: ...


class Journal(Protocol):
    """Notes what has changed, so that the store can write it. With the state kept in memory it does
    nothing.
    """

    def job(self, job_id: int) -> None: ...

    def nodes(self, nodes: int) -> None: ...

    def partition(self, name: str) -> None: ...

    def reservation(self, name: str) -> None: ...

    def document(self, name: str) -> None: ...

    def submission(self, user_id: int, token: str) -> None: ...


class NoJournal:
    """Nothing is kept on disk."""

    def job(self, job_id: int) -> None:
        """A job's record was added, changed or forgotten."""

    def nodes(self, nodes: int) -> None:
        """The states of the nodes (a bitmap) have changed."""

    def partition(self, name: str) -> None:
        """A partition was added, changed or deleted."""

    def reservation(self, name: str) -> None:
        """A reservation was added, changed or deleted."""

    def document(self, name: str) -> None:
        """Something that is saved as a whole has changed."""

    def submission(self, user_id: int, token: str) -> None:
        """A submission was noted under its token, or forgotten."""
