"""A zygote: a process that has imported Slurm's commands and forks, so that no command waits for an
interpreter (`understudy up --zygote`).

Place: beside a cluster's daemons, of which it knows nothing: a command finds its cluster by itself,
as always. Its clients are the starters (starter.c) of the same installation, run by the same user
beside the same slurm.conf. Children (child.py) are forked ahead, wait for starters themselves and
answer them; this process sees to it that some always wait.

As in noded/forking.py, nothing is imported that children do not need: a fork costs what its parent
has in memory, page by page.
"""

import _signal  # type: ignore[import-not-found]  # as in client.py
import _socket
import gc
import os
import select
import sys
import time

from understudy.tool.zygote.child import Child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SPARE = 4  # ours: children that wait
_BACKLOG = 128
_PAUSE_S = 0.05  # ours: after a child that failed
# Those that neither talk with a terminal nor have children of their own.
COMMANDS = {
    "sacct": "sacct.sacct",
    "sbatch": "sbatch",
    "scancel": "scancel",
    "sdiag": "sdiag",
    "sinfo": "sinfo.sinfo",
    "sprio": "sprio",
    "squeue": "squeue.squeue",
    "sshare": "sshare",
    "sstat": "sstat",
}
# What these import late on their ordinary way.
_LATE = ("resource", "math", "_json", "io", "understudy.model.shape")


class Zygote:
    """The process from which children are forked.

    Args:
        path: of the socket where starters come.
    """

    def __init__(self, path: str) -> None:
        for late in _LATE:
            __import__(late)
        self._mains: dict[str, Callable[[], object]] = {}
        for name, module in COMMANDS.items():
            full = f"understudy.commands.{module}"
            __import__(full)
            self._mains[name] = sys.modules[full].main
        self._listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        if os.path.exists(path):  # of one that was killed
            os.unlink(path)
        self._listener.bind(path)
        os.chmod(path, 0o600)
        self._listener.listen(_BACKLOG)
        self._listener.setblocking(False)
        # Parent's end and children's, who see by it when the parent is no more.
        self._ours, self._theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        self._ours.setblocking(False)
        self._busy: set[int] = set()  # children for long commands: others have been forked

    def serve(self) -> None:
        """Fork for as long as this process lives."""
        gc.disable()
        gc.freeze()
        reads, writes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        _signal.set_wakeup_fd(writes)
        _signal.signal(_signal.SIGCHLD, lambda _number, _frame: None)
        poll = select.poll()
        poll.register(self._ours.fileno(), select.POLLIN)
        poll.register(reads, select.POLLIN)
        for _ in range(SPARE):
            self._fork()
        while True:
            poll.poll()
            try:  # noqa: SIM105
                os.read(reads, 4096)
            except BlockingIOError:
                pass
            # Who has ended first: what it had said before is there in any case.
            ended = _bury()
            self._note_busy()
            for pid, status in ended:
                if status:
                    time.sleep(_PAUSE_S)
                if pid in self._busy:
                    self._busy.remove(pid)
                else:
                    self._fork()

    def _note_busy(self) -> None:
        """Fork another for each child that says that it is busy."""
        while True:
            try:
                pid = int.from_bytes(self._ours.recv(4), "big")
            except BlockingIOError:
                return
            self._busy.add(pid)
            self._fork()

    def _fork(self) -> None:
        """One child more."""
        if os.fork():
            return
        code = 1
        try:
            _signal.set_wakeup_fd(-1)
            _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
            self._ours.close()
            Child(self._mains, self._listener, self._theirs).run()
            code = 0
        except BaseException:  # noqa: BLE001  nobody above would say it
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)


def _bury() -> list[tuple[int, int]]:
    """Children that have ended, with their status as waitpid(2) gives it."""
    ended = []
    try:
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended.append(found)
    except ChildProcessError:
        pass
    return ended


def write_pid_file(run_dir: str) -> None:
    """As understudy.clock.daemon writes those of daemons."""
    with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
        started = file.read().rpartition(")")[2].split()[19]
    with open(f"{run_dir}/zygote.pid.new", "w", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {started}\n")
    os.replace(f"{run_dir}/zygote.pid.new", f"{run_dir}/zygote.pid")


def main() -> None:
    """Serve the starters of a run directory."""
    run_dir = sys.argv[sys.argv.index("--run-dir") + 1]
    zygote = Zygote(f"{run_dir}/zygote.sock")
    write_pid_file(run_dir)
    zygote.serve()
