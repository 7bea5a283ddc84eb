"""The frame around a command: its streams, its errors, its end.

Place: around every command; what it says to the controller is in client.py.
"""

import _signal  # type: ignore[import-not-found]  # the module behind signal, without its enums
import gc
import os
import sys

from understudy.commands.shared.client import Client
from understudy.commands.shared.locate import BadConfigurationError, NoClusterError
from understudy.commands.shared.options import OptionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping
    from typing import Any, TextIO

    from understudy.commands.shared.options import OptionTable


class Context:
    """A command's surroundings, so that tests can put their own in place."""

    def __init__(
        self,
        program: str,
        *,
        client: "Any" = None,
        environ: "Mapping[str, str] | None" = None,
        stdin: "TextIO | None" = None,
        stdout: "TextIO | None" = None,
        stderr: "TextIO | None" = None,
    ) -> None:
        self.program = program
        self.named_cluster = ""  # ours, if --clusters named it
        self.client: Client = client if client is not None else Client()
        self.environ = os.environ if environ is None else environ
        self.stdin = stdin if stdin is not None else sys.stdin
        self.stdout = stdout if stdout is not None else sys.stdout
        self.stderr = stderr if stderr is not None else sys.stderr

    def print(self, text: str) -> None:
        self.stdout.write(text + "\n")

    def tells(self, table: "OptionTable", given: "Container[str]", usage: str) -> bool:
        """Answer --help, --usage and --version; whether one of them was given."""
        if "help" in given:
            self.help(table)
        elif "usage" in given:
            self.print(usage)
        elif "version" in given:
            from understudy.documents.documents import VERSION

            self.print(f"slurm {VERSION}")
        else:
            return False
        return True

    def help(self, table: "OptionTable", more: str = "") -> None:
        """What --help prints: the options, and `more` behind them."""
        from understudy.commands.shared.help_pages import help_page

        self.stdout.write(help_page(self.program, table) + more)

    def complain(self, text: str) -> None:
        """A line on stderr as it stands."""
        self.stderr.write(text + "\n")

    def error(self, text: str) -> None:
        """A line on stderr as Slurm's logging writes errors."""
        self.stderr.write(f"{self.program}: error: {text}\n")

    def refuses_clusters(self, names: str | None, said_by: str = "--cluster") -> bool:
        """Whether --clusters names only other clusters than ours: where those are, an accounting
        database would have to tell. Errors are said.
        """
        if names is None:
            return False
        wanted = names.split(",")
        own = self.client.cluster_name
        has_accounting = self.client.has_accounting
        strange = (
            [name for name in wanted if name.lower() not in {own, "all"}]
            if has_accounting
            else wanted
        )
        for name in strange if has_accounting else strange[:1]:
            self.error(
                f"No cluster '{name}' known by database."
                if has_accounting
                else "Problem talking to database"
            )
        is_refused = len(strange) == len(wanted)
        if is_refused and names == "all":
            self.error("No clusters can be reached now. Contact your admin to resolve the problem.")
        elif is_refused:
            self.error(
                f"'{names}' can't be reached now, or it is an invalid entry for {said_by}.  "
                "Use 'sacctmgr list clusters' to see available clusters."
            )
        else:
            self.named_cluster = own
        return is_refused

    def print_cluster(self) -> None:
        """The line over a listing that says whose it is, where --clusters asks for clusters."""
        if self.named_cluster:
            self.print(f"CLUSTER: {self.named_cluster}")

    def fatal(self, text: str) -> None:
        self.stderr.write(f"{self.program}: fatal: {text}\n")


class Caller:
    """Who has typed the command: this process, or a starter for which a zygote's child runs it (see
    understudy.tool.zygote).
    """

    pid = 0  # whose session it is, as getsid(2) takes it
    leave: "Callable[[int], None]" = os._exit


def _forget_own_locale() -> None:
    """Where no locale is set, Python sets one for itself (PEP 538), of which jobs must not hear."""
    with open("/proc/self/environ", "rb") as file:
        if not any(entry.startswith(b"LC_CTYPE=") for entry in file.read().split(b"\0")):
            del os.environ["LC_CTYPE"]


def run(
    program: str,
    command: "Callable[[list[str], Context], int]",
    usage_exit: int = 1,
    client: "Client | None" = None,
) -> int:
    """Run a command as a process of its own: never returns, but ends through `os._exit` once the
    streams are flushed.

    (Freeing an interpreter's memory piece by piece takes 12 ms that nobody needs.) A reader that
    closes the pipe ends the command without a word, as SIGPIPE does to a C program.
    """
    gc.disable()
    if os.environ.get("LC_CTYPE") == "C.UTF-8":
        _forget_own_locale()
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    if sys.stdout is None or sys.stderr is None:  # started with the stream closed
        nowhere = open(os.devnull, "w")  # noqa: SIM115  for as long as the process lives
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")
    context = Context(program, client=client)
    try:
        code = guarded(context, command, sys.argv[1:], usage_exit)
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # the disk that holds our output is full, or the like
        code = 1
    Caller.leave(code)
    raise AssertionError("unreachable")


def guarded(
    context: Context,
    command: "Callable[[list[str], Context], int]",
    arguments: "list[str]",
    usage_exit: int = 1,
) -> int:
    """The command's exit code; what it could not handle is said as Slurm says it."""
    try:
        return command(arguments, context)
    except OptionError as error:
        context.complain(f"{error.program or context.program}: {error}")
        context.complain(f'Try "{context.program} --help" for more information')
        return usage_exit
    except NoClusterError as error:
        context.error(str(error))
        context.fatal("Could not establish a configuration source")
        return 1
    except BadConfigurationError as error:
        for line in str(error).split("\n"):
            context.error(line)
        context.fatal("Unable to process configuration file")
        return 1
