"""The accounting daemon's core on a database in memory, and sacctmgr in front of it: no sockets, no
processes.
"""

import io
import shlex
from dataclasses import dataclass

import msgspec

from understudy.accounting.core import Accounting, Sender
from understudy.accounting.store import Store
from understudy.commands.sacctmgr.sacctmgr import sacctmgr
from understudy.commands.shared.client import Client, RefusedError, pack
from understudy.commands.shared.context import Context, guarded
from understudy.model.errors import SlurmError
from understudy.protocol.messages import AnyMessage, Failure, GetAssociations, Ok, Shutdown

NOW = 1_700_000_000
USERS = {0: "root", 1: "daemon", 2: "bin"}


@dataclass
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


class LocalClient(Client):
    """Hands messages to the core as they come off the wire."""

    def __init__(self, accounting, user_id=0):
        super().__init__()
        self.accounting, self.user_id = accounting, user_id

    @property
    def cluster_name(self):
        return "conform"

    def exchange(self, message, *fields):
        request = msgspec.convert(
            msgspec.msgpack.decode(msgspec.msgpack.encode(pack(message, *fields))), AnyMessage
        )
        try:
            answer, _ = self.accounting.handle(
                request, Sender("command", self.user_id, is_daemon=False)
            )
        except SlurmError as error:
            answer = Failure(error.code, error.text)
        _, *content = msgspec.to_builtins(answer)
        return type(answer).__name__, content


class House:
    """An accounting daemon whose only cluster is `conform`, unless another list is given."""

    def __init__(self, url="sqlite://", clusters=("conform",)):
        self.now = NOW
        self.url = url
        self.store = Store(url)
        self.stopped = False
        self.open()
        for cluster in clusters:
            self.register(cluster)

    def open(self):
        self.accounting = Accounting(
            self.store,
            now=lambda: self.now,
            superusers=frozenset((0,)),
            user_name=lambda number: USERS.get(number, str(number)),
            stop=self.stop,
        )

    def reopen(self):
        """As after a restart of the daemon."""
        self.store.close()
        self.store = Store(self.url)
        self.open()

    def stop(self):
        self.stopped = True

    def register(self, cluster, peer="controller"):
        message = GetAssociations(
            cluster, "127.0.0.1", 6817, "n[1-2]", {"cpu": 8, "mem": 8000, "node": 2, "billing": 8}
        )
        answer, _ = self.accounting.handle(message, Sender(peer, 0, is_daemon=True))
        return answer

    def tell(self, message):
        """A daemon's message; the answer and the news for controllers."""
        return self.accounting.handle(message, Sender("controller", 0, is_daemon=True))

    def run(self, program, command, line, *, stdin="", user_id=0, environ=None):
        """Run one line of a command."""
        out, err = io.StringIO(), io.StringIO()
        words = shlex.split(line) if isinstance(line, str) else line
        client = LocalClient(self.accounting, user_id)
        context = Context(
            program,
            client=client,
            environ=environ or {},
            stdin=io.StringIO(stdin),
            stdout=out,
            stderr=err,
        )
        code = guarded(context, command, words)
        return Said(code, out.getvalue(), err.getvalue())

    def sacctmgr(self, line, *, stdin="", user_id=0):
        """Run one line of sacctmgr."""
        return self.run("sacctmgr", sacctmgr, line, stdin=stdin, user_id=user_id)

    def do(self, *lines):
        """Lines that must succeed, with -i."""
        for line in lines:
            said = self.sacctmgr("-i " + line)
            assert said.code == 0, (line, said)

    def show(self, line):
        """What `-n -P show` prints, a line each."""
        said = self.sacctmgr("-n -P show " + line)
        assert said.code == 0, said
        return said.out.splitlines()


__all__ = ["NOW", "House", "LocalClient", "Ok", "RefusedError", "Said", "Shutdown"]
