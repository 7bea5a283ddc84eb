"""One blocking connection to the controller.

Place: under every command. It speaks the protocol of protocol/messenger.py with the lists of
protocol/wire_table.py, without asyncio, msgspec, msgpack, socket or logging: a command's whole life
is to last no longer than a person notices, or than a portal that runs `squeue` a hundred times can
bear.
"""

import _socket
import os

from understudy.auth.local import LOCAL_HELLO, is_trusted
from understudy.commands.shared.locate import (
    Location,
    find,
    message_timeout_s,
    takeover_timeout_s,
)
from understudy.commands.shared.packing import pack as pack_bytes
from understudy.commands.shared.packing import unpack
from understudy.protocol.wire_table import WIRE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from understudy.auth.handshake import SealedChannel

CONNECTION_RESET = 104  # errno, as a controller that dies with the request unread leaves it
CONNECT_FAILED = 1005
AUTHENTICATION_FAILED = 1007
BACK_OFF = 1804  # SLURMCTLD_COMMUNICATIONS_BACKOFF
STANDBY = 2027  # of a controller that does not lead
TIMED_OUT = 5004
ZERO_BYTES = 5005
CONNECT_FAILED_TEXT = "Unable to contact slurm controller (connect failure)"
_AUTHENTICATION_FAILED_TEXT = "Protocol authentication error"
_OTHER_VERSION_TEXT = "Incompatible versions of client and server code"
_CONNECTION_RESET_TEXT = "Connection reset by peer"
_ZERO_BYTES_TEXT = "Zero Bytes were transmitted or received"
_TIMED_OUT_TEXT = "Socket timed out on send/recv operation"
_CONNECT_S = 10.0  # slurm.conf(5), the default of MessageTimeout
_CONNECT_AMONG_S = 2.0  # ours: where others may lead the cluster
_OF_TAKEOVER = 1.5  # observed at 22.05.8: commands wait for SlurmctldTimeout and half of it again
# ours, between two tries to connect. Slurm's commands sleep for a second: a controller that is
# restarted again and again could escape them.
_TRY_AGAIN_S = 0.25
# the least of MessageTimeout, slurm.conf(5): before, slurm.conf need not be read
_LEAST_TIMEOUT_S = 1.0
_BESIDE_CLOCK_S = 100.0  # ours: virtual time may stand still while a question is on its way
# a question to which there is no answer, whatever became of it
UNANSWERED = frozenset((CONNECTION_RESET, CONNECT_FAILED, TIMED_OUT, ZERO_BYTES))
BREAKS = frozenset((CONNECTION_RESET, ZERO_BYTES))  # the controller ended before it answered
_MOST_BREAKS = 20  # ours: so often may one question break off
BACK_OFF_S = 1.0  # slurm.conf(5) of 23.02, rl_enable
_MOST_BACK_OFFS = 100  # ours: as many seconds as a question may take at all
_ASK, _ANSWER = 0, 1
MAX_ANSWER = 1 << 30  # bytes
_NAME_OF_TAG = {tag: name for name, (tag, _, _) in WIRE.items()}


class RefusedError(Exception):
    """The controller refused, or could not be asked. `code` is Slurm's error number."""

    def __init__(self, code: int, text: str) -> None:
        self.code = code
        self.text = text
        super().__init__(text)


class Rows:
    """What a query answered: rows of columns in the order of the query, and the cluster's time."""

    __slots__ = ("columns", "now", "rows")

    def __init__(self, columns: "Sequence[str]", rows: "list[list[Any]]", now: float) -> None:
        self.columns = list(columns)
        self.rows = rows
        self.now = now

    def dicts(self) -> "list[dict[str, Any]]":
        """The rows by column name, for commands that print records one by one."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class _LedElsewhereError(Exception):
    """Who was asked does not answer, and another controller leads."""


class _Refusing:
    """Turns what goes wrong with a connection into what a command says of it. Whoever asks again
    connects again.
    """

    __slots__ = ("_client",)

    def __init__(self, client: "Client") -> None:
        self._client = client

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            return
        # from a module that is imported only with connections that are sealed
        kind = type(error).__name__
        is_forged = kind in ("AuthError", "VersionError")
        was_there = (is_forged or isinstance(error, OSError)) and self._client.drop()
        if isinstance(error, TimeoutError):
            raise RefusedError(TIMED_OUT, _TIMED_OUT_TEXT) from None
        if isinstance(error, OSError) and was_there and error.errno:
            raise RefusedError(CONNECTION_RESET, _CONNECTION_RESET_TEXT) from None
        if isinstance(error, OSError) and was_there:
            raise RefusedError(ZERO_BYTES, _ZERO_BYTES_TEXT) from None
        if isinstance(error, OSError):
            raise RefusedError(CONNECT_FAILED, CONNECT_FAILED_TEXT) from None
        if is_forged:
            text = _OTHER_VERSION_TEXT if kind == "VersionError" else _AUTHENTICATION_FAILED_TEXT
            raise RefusedError(AUTHENTICATION_FAILED, text) from None


class Client:
    """A connection to the controller, opened at the first question.

    As Slurm's commands do, it tries for MessageTimeout to reach a controller that is away (unless
    `waits` is False), and waits as long for each answer. `timeout_s`: another time than
    MessageTimeout for the answers; None: for ever.
    """

    default_server = "controller"

    def __init__(
        self,
        locate: "Callable[[], Location]" = find,
        *,
        timeout_s: float | None = -1.0,
        waits: bool = True,
    ) -> None:
        self.waits = waits
        self._address = ""
        self._server = self.default_server
        self._reached = ""  # whom the connection is to
        self._first = 0  # which of the controllers is tried first
        self._until = 0.0  # until when another one's lead is waited for; 0: nobody waits
        self._parts = 0  # of an answer, that were read
        self._locate = locate
        self._location: Location | None = None  # as long as the connection lasts
        self._timeout_s = timeout_s
        self._socket: _socket.socket | None = None
        self._channel: SealedChannel | None = None  # None: the kernel stands for both ends
        self._is_short = False  # the socket's timeout is less than MessageTimeout
        self._number = 0
        self._asked: list[Any] = []

    def sleep(self, seconds: float) -> None:
        """Wait, as long as the cluster's time takes for who types commands in it."""
        import time

        time.sleep(seconds)

    @property
    def cluster_name(self) -> str:
        """The cluster's name, as far as its registry entry or configuration says: in lower case, as
        Slurm knows it.
        """
        return self.location.name.lower()

    @property
    def location(self) -> Location:
        """Where the cluster is."""
        if self._location is None:
            self._location = self._locate()
        return self._location

    def call(self, message: str, *fields: "Any") -> "list[Any]":
        """Ask; the answer's fields. Trailing fields may be left out where the message has defaults.

        Raises:
            RefusedError: the controller's Failure, or that it cannot be reached.
        """
        name, answer = self.exchange(message, *fields)
        if name == "Failure":
            raise RefusedError(answer[0], answer[1])
        return answer

    def _answers(self, message: str, *fields: "Any") -> "Iterator[list[Any]]":
        """Ask; the parts of the answer."""
        name, answer = self.exchange(message, *fields)
        while True:
            if name == "Failure":
                raise RefusedError(answer[0], answer[1])
            yield answer
            if not answer[3]:
                return
            name, answer = self.finish()

    def exchange(self, message: str, *fields: "Any") -> "tuple[str, list[Any]]":
        """Ask; the answer's name and fields, a Failure too."""
        self.begin(message, *fields)
        return self.finish()

    def submit(self, message: str, *fields: "Any") -> "list[Any]":
        """As `call`, for a message whose last field is a token, which is added here. If the
        controller ends before it has answered, the next one is asked, and knows by the token what
        it has taken in already.
        """
        return self.insist(message, *fields, os.urandom(16).hex())

    def insist(self, message: str, *fields: "Any") -> "list[Any]":
        """As `call`, for a message that does no harm twice: if the controller ends before it has
        answered, the next one is asked.
        """
        broken, until = 0, 0.0
        while True:
            try:
                return self.call(message, *fields)
            except RefusedError as error:
                if error.code not in BREAKS:
                    raise
                broken += 1
                if self._has_choice:
                    until = until or _monotonic() + self._takeover_s()
                    self._pass_over()
                if broken > _MOST_BREAKS and _monotonic() >= until:
                    raise
            _pause(_TRY_AGAIN_S)

    def begin(self, message: str, *fields: "Any") -> None:
        """Ask, and go on; `finish` reads the answer."""
        self.send(pack(message, *fields))

    def send(self, message: "list[Any]") -> None:
        """Ask with a message that is packed already."""
        self._number += 1
        self._asked, self._parts = message, 0
        body = pack_bytes([_ASK, self._number, 0, 0, message])
        if self._socket is not None:
            if self._is_left():
                self.drop()
            else:
                self._set_patience()
        with _Refusing(self):
            hello = b"" if self._socket is not None else self._connect()
            self._send_bytes(
                hello + (_frame(body) if self._channel is None else self._channel.seal(body))
            )

    def finish(self) -> "tuple[str, list[Any]]":
        """The name and fields of the next answer, or of a part of one. A controller that wants to
        be left alone for a while is asked again then.
        """
        for _ in range(_MOST_BACK_OFFS):
            name, answer = self._answer_of_leader()
            if name != "Failure" or answer[0] != BACK_OFF:
                return name, answer
            self.sleep(BACK_OFF_S)
            self.send(self._asked)
        return self._answer_of_leader()

    def finish_here(self) -> "tuple[str, list[Any]] | None":
        """As `finish`, for who waits for other things, too: None where another controller had to be
        asked instead, whose answer is still to come.
        """
        try:
            name, answer = self._read_answer()
        except _LedElsewhereError:
            pass
        else:
            if name != "Failure" or answer[0] != STANDBY or not self._has_choice:
                return name, answer
        self._pass_over()
        if not self._first:
            _pause(_TRY_AGAIN_S)
        self.send(self._asked)
        return None

    def _answer_of_leader(self) -> "tuple[str, list[Any]]":
        """An answer of the controller that leads: those that do not are passed over, and it is
        waited for as long as one may take to take over.
        """
        until = 0.0
        while True:
            try:
                name, answer = self._read_answer()
            except _LedElsewhereError:
                self._pass_over()
                self.send(self._asked)
                continue
            if name != "Failure" or answer[0] != STANDBY or not self._has_choice:
                return name, answer
            now = _monotonic()
            until = until or now + self._takeover_s()
            if now >= until:
                return name, answer
            self._pass_over()
            if not self._first:
                _pause(_TRY_AGAIN_S)
            self.send(self._asked)

    def _read_answer(self) -> "tuple[str, list[Any]]":
        with _Refusing(self):
            answer = self.opened(self._read_frame(MAX_ANSWER))
        self._parts += 1
        return answer

    @property
    def _has_choice(self) -> bool:
        """Whether there are several controllers, of which one leads."""
        return not self._address and bool(self.location.backups)

    def _takeover_s(self) -> float:
        return max(
            _OF_TAKEOVER * takeover_timeout_s(self.location), message_timeout_s(self.location)
        )

    def _pass_over(self) -> None:
        """Ask the controller that follows who was asked."""
        controllers = self.location.controllers
        asked = [self._reached in each for each in controllers].index(True)
        self._first = (asked + 1) % len(controllers)
        self.drop()

    def opened(self, body: bytes) -> "tuple[str, list[Any]]":
        """The name and fields of the answer that a frame holds.

        Raises:
            AuthError: the frame is forged.
        """
        envelope = unpack(body if self._channel is None else self._channel.open(body))
        if isinstance(envelope[0], str):  # in place of an answer: of what version the daemon is
            raise RefusedError(AUTHENTICATION_FAILED, _OTHER_VERSION_TEXT)
        _kind, _number, _deliver, _sequence, (tag, *answer) = envelope
        return _NAME_OF_TAG[tag], answer

    def drop(self) -> bool:
        """Close the connection; whether there was one."""
        connection, self._socket, self._channel, self._location = self._socket, None, None, None
        if connection is not None:
            connection.close()
        return connection is not None

    def query(
        self,
        table: str,
        columns: "Sequence[str]",
        where: "Mapping[str, list[Any]] | None" = None,
        *,
        all_partitions: bool = True,
    ) -> Rows:
        """Rows of one of the controller's tables.

        Raises:
            RefusedError: as `call`.
        """
        rows: list[list[Any]] = []
        now = 0.0
        for part in self._answers(
            "Query", table, list(columns), dict(where or {}), all_partitions, True
        ):
            rows += part[0]
            now = part[1]
        return Rows(columns, rows, now)

    @property
    def has_accounting(self) -> bool:
        """Whether the cluster has an accounting daemon."""
        return bool(self.location.accounting_addresses)

    def another(self, address: str = "", server: str = "", *, waits: bool = True) -> "Client":
        """A connection of its own, for a question whose answer may take long; or, with an address,
        to the node daemon `server`; "": whichever stands for a node there. Not `waits`: a
        controller that is away is not waited for.
        """
        other = Client(
            lambda: self.location,
            timeout_s=self._timeout_s if address else None,
            waits=self.waits and not address and waits,
        )
        other._address = address
        if address:
            other._server = server
        return other

    def fileno(self) -> int:
        """The descriptor on which an answer arrives."""
        assert self._socket is not None
        return self._socket.fileno()

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = self._channel = None

    def addresses(self) -> list[str]:
        """Where to try, in this order."""
        if self._address:
            return [self._address]
        controllers = self.location.controllers
        turned = controllers[self._first :] + controllers[: self._first]
        return [address for each in turned for address in each]

    def _connect(self) -> bytes:
        """Open the connection; what is to be sent before the first frame."""
        self._socket = self._open()
        if self._socket.family == _socket.AF_UNIX and is_trusted(self._socket):
            self._set_patience()
            return _frame(LOCAL_HELLO)
        from understudy.auth.handshake import (
            MAX_HANDSHAKE,
            SealedChannel,
            client_hello,
            read_challenge,
        )

        self._set_patience()
        hello = client_hello("command", os.geteuid(), os.getegid(), is_daemon=False)
        self._socket.sendall(_frame(hello), _socket.MSG_NOSIGNAL)
        challenge = self._read_frame(MAX_HANDSHAKE)
        from understudy.model.cluster import is_controller

        name, _, _ = read_challenge(challenge)
        is_meant = name == self._server or (is_controller(self._server) and is_controller(name))
        if self._server and not is_meant:
            from understudy.auth.handshake import AuthError

            raise AuthError(f"{name!r} answers in place of {self._server}")
        self._channel = SealedChannel(secret(self.location, hello, challenge), is_client=True)
        return b""

    def _open(self) -> _socket.socket:
        """A connection to the first address where somebody listens, within MessageTimeout."""
        until = 0.0
        while True:
            reason: OSError = ConnectionRefusedError("no address")
            patience_s = _CONNECT_AMONG_S if self._has_choice else _CONNECT_S
            for address in self.addresses():
                try:
                    sock = open_socket(address, patience_s)
                except OSError as error:
                    reason = error
                else:
                    self._reached = address
                    return sock
            if not self.waits or not self.addresses():
                raise reason
            now = _monotonic()
            # Slurm tries as often as MessageTimeout has seconds, a second apart
            until = until or now + message_timeout_s(self.location) - 1
            if now >= until:
                raise reason
            _pause(min(_TRY_AGAIN_S, until - now))

    def _is_left(self) -> bool:
        """Whether the other end has closed the connection since it answered."""
        assert self._socket is not None
        self._socket.settimeout(0.0)
        try:
            return not self._socket.recv(1, _socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _set_patience(self) -> None:
        assert self._socket is not None
        timeout_s = self._timeout_s
        self._until = 0.0
        self._is_short = timeout_s is not None and timeout_s < 0
        is_short = self._is_short or self._has_choice
        self._socket.settimeout(_LEAST_TIMEOUT_S if is_short else timeout_s)

    def _lengthen(self) -> None:
        """A second is over: wait for what is left of MessageTimeout, if that is longer.

        Raises:
            TimeoutError: it is not.
            _LedElsewhereError: another controller leads by now.
        """
        if self._has_choice:
            self._look_elsewhere()
            return
        left = 0.0
        if self._is_short:
            most = _BESIDE_CLOCK_S if self.location.clock else message_timeout_s(self.location)
            left = most - _LEAST_TIMEOUT_S
        self._is_short = False
        if left <= 0:
            raise TimeoutError
        assert self._socket is not None
        self._socket.settimeout(left)

    def _look_elsewhere(self) -> None:
        """Who was asked does not answer: wait on, unless another controller leads. What is asked
        again there may have been done before; of that no more than a part of an answer is known.
        """
        for address in self.addresses():
            if address == self._reached or self._parts:
                continue
            other = Client(lambda: self.location, timeout_s=_LEAST_TIMEOUT_S, waits=False)
            other._address = address
            try:
                _name, leads, _fence = other.call("GetLeader")
            except RefusedError:
                continue
            finally:
                other.close()
            if leads:
                raise _LedElsewhereError
        now, timeout_s = _monotonic(), self._timeout_s
        if timeout_s is not None:
            patience_s = timeout_s if timeout_s >= 0 else self._takeover_s()
            self._until = self._until or now - _LEAST_TIMEOUT_S + patience_s
            if now >= self._until:
                raise TimeoutError

    def _send_bytes(self, octets: bytes) -> None:
        assert self._socket is not None
        view = memoryview(octets)
        while view:
            try:
                view = view[self._socket.send(view, _socket.MSG_NOSIGNAL) :]
            except TimeoutError:
                self._lengthen()

    def _read_frame(self, most: int) -> bytes:
        length = int.from_bytes(self._read_bytes(4), "big")
        if length > most:
            from understudy.auth.handshake import AuthError

            raise AuthError(f"frame of {length} bytes")
        return self._read_bytes(length)

    def _read_bytes(self, length: int) -> bytes:
        assert self._socket is not None
        buffer = bytearray(length)
        view = memoryview(buffer)
        done = 0
        while done < length:
            try:
                count = self._socket.recv_into(view[done:])
            except TimeoutError:
                self._lengthen()
                continue
            if not count:
                raise ConnectionResetError("closed by the controller")
            done += count
        return bytes(buffer)


def _monotonic() -> float:
    import time

    return time.monotonic()


def _pause(seconds: float) -> None:
    import time

    time.sleep(seconds)


def _frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def pack(message: str, *fields: "Any") -> "list[Any]":
    """A message as it goes on the wire: its tag and all its fields."""
    tag, names, defaults = WIRE[message]
    missing = len(names) - len(fields)
    assert 0 <= missing <= len(defaults), (
        f"{message} has {len(names)} fields, {len(fields)} were given"
    )
    return [tag, *fields, *defaults[len(defaults) - missing :]]


def pack_named(message: str, values: "Mapping[str, Any]") -> "list[Any]":
    """A message from the fields that differ from their defaults."""
    tag, names, defaults = WIRE[message]
    required = len(names) - len(defaults)
    assert values.keys() <= set(names), (
        f"{message} has no fields {sorted(values.keys() - set(names))}"
    )
    return [
        tag,
        *(
            values[name] if index < required or name in values else defaults[index - required]
            for index, name in enumerate(names)
        ),
    ]


def open_socket(address: str, patience_s: float = _CONNECT_S) -> _socket.socket:
    kind, _, rest = address.partition(":")
    family, where = _socket.AF_UNIX, rest
    sockets: list[tuple[int, Any]] = [(family, where)]
    if kind == "tcp":
        host, _, port = rest.rpartition(":")
        sockets = [
            (entry[0], entry[4])
            for entry in _socket.getaddrinfo(host.strip("[]"), int(port), 0, _socket.SOCK_STREAM)
        ]
    reason: OSError = ConnectionRefusedError("no address")
    for family, where in sockets:
        sock = _socket.socket(family, _socket.SOCK_STREAM)
        sock.settimeout(patience_s)
        try:
            sock.connect(where)
        except OSError as error:
            sock.close()
            reason = error
            continue
        if kind == "tcp":
            sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
        return sock
    raise reason


def secret(location: Location, hello: bytes, challenge: bytes) -> bytes:
    """The connection's secret, from the credential agent of this host.

    Raises:
        AuthError: there is none, or it does not vouch for this user.
    """
    from understudy.auth.handshake import MAX_HANDSHAKE, AuthError

    if not location.agent:
        raise AuthError("no credential agent")
    try:
        agent = open_socket(location.agent)
    except OSError:
        raise AuthError("the credential agent does not answer") from None
    try:
        agent.sendall(_frame(pack_bytes([hello, challenge])), _socket.MSG_NOSIGNAL)
        answer = b""
        while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "big"):
            part = agent.recv(MAX_HANDSHAKE)
            if not part:
                raise AuthError("the credential agent gave no credential")
            answer += part
    finally:
        agent.close()
    if len(answer) == 4:
        raise AuthError("the credential agent does not vouch for this user")
    return answer[4:]
