"""A child of a zygote: waits for a starter, becomes what that one is (streams, folder, environment,
umask, limits, niceness), runs the command and tells how it ended.

Place: forked by zygote.py, to which it speaks when a command takes long. What it cannot become
(other namespaces or groups, a variable that is read at a process's start) it refuses, and the
starter starts Python. A starter that dies takes the child with it: the kernel sends SIGIO.

After a command that leaves nothing behind in memory (`REUSED`) a child takes the next: of what a
forked command costs, nine tenths are pages that are copied as it touches them.
"""

import _signal  # type: ignore[import-not-found]  # as in client.py
import _socket
import fcntl
import os
import resource
import select
import sys
import time

from understudy.commands.shared.context import Caller
from understudy.tool.zygote.request import (
    MOST_BYTES,
    MOST_DESCRIPTORS,
    VERSION,
    Request,
    facts,
    first_environment,
    fixed,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ENDED, REFUSED = b"e", b"r"
# Without state of their own: no module that they import has a variable that a command changes.
REUSED = frozenset(("sbatch",))
_MOST_USES = 200  # ours: the collector rests, and what is left over is never much
_MOST_NUMBER = 2048  # ours: of a descriptor
_OWN = 16  # descriptors above those of starters
_LONG_S = 0.2  # ours: a command that takes longer is not waited for
_LIMITS = range(16)  # getrlimit(2): RLIM_NLIMITS
_STREAMS = ("stdin", "stdout", "stderr")


class RefusalError(Exception):
    """The process cannot become what the starter is."""


class _LeftError(BaseException):
    """A command has ended."""


class Child:
    """One process that runs commands, one after another.

    Args:
        mains: by a command's name what runs it; it ends through `Caller.leave`.
        listener: where starters come; it does not block.
        parent: a message on it, this process's number, asks for another child; it hangs up when the
            parent is no more.
    """

    def __init__(
        self,
        mains: "Mapping[str, Callable[[], object]]",
        listener: _socket.socket,
        parent: _socket.socket,
    ) -> None:
        self._mains = mains
        self._facts = facts()
        self._fixed = fixed(first_environment())
        self._limits = [resource.getrlimit(each) for each in _LIMITS]
        self._nice = os.getpriority(os.PRIO_PROCESS, 0)
        streams = (sys.stdin, sys.stdout, sys.stderr)
        self._manners = [
            (stream.encoding, stream.errors, bool(getattr(stream, "write_through", False)))
            for stream in streams
        ]
        self._is_last = False
        # Above all that starters may pass on.
        self._top = min(self._limits[resource.RLIMIT_NOFILE][0], _MOST_NUMBER) - _OWN
        self._listener = self._move(listener)
        self._parent = self._move(parent)
        self._nowhere = self._high(os.open(os.devnull, os.O_RDWR))
        with select.epoll() as poll:
            self._poll = select.epoll.fromfd(self._high(os.dup(poll.fileno())))
        self._poll.register(self._listener.fileno(), select.EPOLLIN | select.EPOLLEXCLUSIVE)
        self._poll.register(self._parent.fileno(), 0)
        self._lowest = _lowest_free()

    def run(self) -> None:
        """Run commands until the parent is no more, or one should be the last."""
        _signal.signal(_signal.SIGALRM, self._on_alarm)
        uses = 0
        while not self._is_last:
            connection = self._accept()
            if connection < 0:
                return
            self._serve(connection)
            uses += 1
            self._is_last = self._is_last or uses >= _MOST_USES or _lowest_free() != self._lowest

    def _on_alarm(self, _number: int, _frame: object) -> None:
        """The command takes long: others should not wait for this process."""
        self._is_last = True
        try:  # noqa: SIM105
            self._parent.send(os.getpid().to_bytes(4, "big"))
        except OSError:  # it is no more
            pass

    def _accept(self) -> int:
        """The descriptor of a connection; -1: the parent is no more."""
        while True:
            if any(events & select.EPOLLHUP for _, events in self._poll.poll()):
                return -1
            try:
                return self._listener._accept()[0]  # type: ignore[attr-defined,no-any-return]
            except OSError:  # another child took it, or it has gone
                continue

    def _serve(self, connection: int) -> None:
        """Take one request, run its command, answer."""
        sock = self._move(_socket.socket(fileno=connection))
        try:
            data, control, *_ = sock.recvmsg(
                MOST_BYTES, _socket.CMSG_SPACE(4 * (MOST_DESCRIPTORS + 1))
            )
            passed = control[0][2]
        except (OSError, IndexError):  # it has gone, or is no starter
            sock.close()
            return
        _signal.setitimer(_signal.ITIMER_REAL, _LONG_S)
        try:
            request = Request(data)
            self._become(
                request,
                sock,
                [
                    int.from_bytes(passed[at : at + 4], sys.byteorder)
                    for at in range(0, len(passed), 4)
                ],
            )
        except Exception:  # noqa: BLE001  the command has not begun: Python can run it
            self._is_last = True  # it may have become half of it
            _tell(sock.fileno(), REFUSED)
            return
        code = self._run(request)
        _signal.setitimer(_signal.ITIMER_REAL, 0)
        fcntl.fcntl(sock.fileno(), fcntl.F_SETFL, 0)
        self._let_go(request)
        _tell(sock.fileno(), ENDED + bytes([code & 0xFF]))
        sock.close()

    def _become(self, request: Request, sock: _socket.socket, received: list[int]) -> None:
        """Be as the starter is.

        Raises:
            RefusalError, ValueError, OSError: that cannot be.
        """
        pid = self._check(request, sock)
        self._is_last = self._is_last or request.command not in REUSED
        self._take_limits(pid)
        _take_descriptors(request.descriptors, received)
        # gone with the starter: SIGIO ends this process
        fcntl.fcntl(sock.fileno(), fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(sock.fileno(), fcntl.F_SETFL, os.O_ASYNC)
        os.umask(request.umask)
        _take_environment(request.environ)
        self._renew_streams()
        sys.argv = [os.fsdecode(word) for word in request.words]
        Caller.pid = pid
        Caller.leave = _leave

    def _run(self, request: Request) -> int:
        """The exit code of the command."""
        try:
            self._mains[request.command]()
        except _LeftError as left:
            return int(left.args[0])
        except BaseException:  # noqa: BLE001  as an interpreter ends
            self._is_last = True
            sys.excepthook(*sys.exc_info())
        return 1

    def _let_go(self, request: Request) -> None:
        """Hold nothing of the starter's any more: who reads what it wrote waits for the end."""
        for each in request.descriptors:
            if each > 2:
                try:  # noqa: SIM105
                    os.close(each)
                except OSError:  # the command did
                    pass
            else:
                os.dup2(self._nowhere, each)
        os.chdir("/")

    def _high(self, descriptor: int) -> int:
        """The same file at a number above those of starters."""
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, self._top)
        os.close(descriptor)
        return moved

    def _move(self, sock: _socket.socket) -> _socket.socket:
        return _socket.socket(fileno=self._high(sock.detach()))

    def _check(self, request: Request, sock: _socket.socket) -> int:
        """The starter's process number.

        Raises:
            RefusalError: it is not what this process is, or could become.
        """
        ids = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        pid, *who = (int.from_bytes(ids[at : at + 4], sys.byteorder) for at in (0, 4, 8))
        ours = os.path.dirname(sys.executable)
        if (
            pid == 0
            or who != [os.geteuid(), os.getegid()]
            or request.version != VERSION
            or os.path.dirname(os.fsdecode(request.python)) != ours
            or request.facts != self._facts
            or fixed(request.environ) != self._fixed
            or request.command not in self._mains
            or not set(range(3)) <= set(request.descriptors) <= set(range(self._top))
        ):
            raise RefusalError
        return pid

    def _take_limits(self, pid: int) -> None:
        """Raises:
        ValueError, OSError: that is not allowed.
        """
        for each, own in zip(_LIMITS, self._limits, strict=True):
            if (wanted := resource.prlimit(pid, each)) != own:
                resource.setrlimit(each, wanted)
                self._is_last = True
        if (nice := os.getpriority(os.PRIO_PROCESS, pid)) != self._nice:
            os.setpriority(os.PRIO_PROCESS, 0, nice)
            self._is_last = True

    def _renew_streams(self) -> None:
        """sys.stdin and its like as an interpreter makes them."""
        import io

        for place, (name, (encoding, errors, is_unbuffered)) in enumerate(
            zip(_STREAMS, self._manners, strict=True)
        ):
            binary = open(  # noqa: SIM115  for as long as the command runs
                place, "wb" if place else "rb", 0 if place and is_unbuffered else -1, closefd=False
            )
            stream = io.TextIOWrapper(
                binary,
                encoding,
                errors,
                newline="\n" if place else None,
                line_buffering=place == 2 or os.isatty(place),
                write_through=is_unbuffered,
            )
            setattr(sys, name, stream)


def _leave(code: int) -> None:
    raise _LeftError(code)


def _lowest_free() -> int:
    """The descriptor that the next file would have."""
    found = os.dup(0)
    os.close(found)
    return found


def _take_descriptors(wanted: list[int], received: list[int]) -> None:
    """Have the starter's descriptors at their numbers, and be in its folder.

    Raises:
        OSError: that cannot be.
    """
    *received, folder = received
    os.fchdir(folder)
    os.close(folder)
    # first out of the way of each other
    above = max(wanted) + 1
    copies = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, above) for each in received]
    for each in received:
        os.close(each)
    for place, copy in zip(wanted, copies, strict=True):
        os.dup2(copy, place)
        os.close(copy)


def _take_environment(wanted: "Mapping[bytes, bytes]") -> None:
    own = os.environb
    for name in [name for name in own if name not in wanted]:
        del own[name]
    for name, value in wanted.items():
        if own.get(name) != value:
            own[name] = value
    time.tzset()


def _tell(connection: int, what: bytes) -> None:
    try:  # noqa: SIM105
        os.write(connection, what)
    except OSError:  # it has gone
        pass
