"""The connection of sacctmgr, sacct and sshare to the accounting daemon.

Place: commands alone; beside client.py, whose protocol it speaks.
"""

from understudy.commands.shared.client import Client, RefusedError
from understudy.commands.shared.context import Context
from understudy.commands.shared.locate import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from understudy.commands.shared.locate import Location


class NoAccountingError(Exception):
    """The cluster has no accounting daemon."""


class AccountingClient(Client):
    """Asks the accounting daemon instead of the controller. As Slurm's commands do not, it does
    not wait for one that is away.
    """

    default_server = "accounting"

    def __init__(
        self, locate: "Callable[[], Location]" = find, *, timeout_s: float | None = 100.0
    ) -> None:
        super().__init__(locate, timeout_s=timeout_s, waits=False)

    def addresses(self) -> list[str]:
        found = self.location.accounting_addresses
        if not found:
            raise NoAccountingError
        return found

    def controller_jobs(self) -> "list[int]":
        """The jobs that the controller knows, tasks of arrays among them."""
        return [number for (number,) in Client().query("jobs", ["job_id"]).rows]

    def controller_config(self) -> "dict[str, str]":
        """What slurm.conf says, as the controller shows it; nothing if it does not answer."""
        try:
            return dict(Client().query("config", ["name", "value"]).rows)
        except RefusedError:
            return {}


INFO, DEBUG, DEBUG2 = 1, 2, 3  # how often -v was given
_DEBUG = (
    "debug:  auth/munge: init: Munge authentication plugin loaded",
    "debug:  hash/k12: init: init: KangarooTwelve hash plugin loaded",
)


def say_authenticated(context: Context, command: str, level: int) -> None:
    """What Slurm's commands say with -vv when they first speak to a daemon."""
    for line in _DEBUG if level >= DEBUG else ():
        context.complain(f"{command}: {line}")


def say_connected(context: Context, command: str, level: int) -> None:
    """What Slurm's commands say with -v when they connect to accounting."""
    if level >= INFO:
        context.complain(
            f"{command}: accounting_storage/slurmdbd: init: Accounting storage SLURMDBD "
            "plugin loaded"
        )
    say_authenticated(context, command, level)
    if level >= DEBUG:
        context.complain(
            f"{command}: debug:  accounting_storage/slurmdbd: _connect_dbd_conn: Sent "
            "PersistInit msg"
        )


class Table:
    """Rows of one of accounting's tables, each by column name."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.now = 0.0

    def rows(
        self,
        table: str,
        columns: "Sequence[str]",
        where: "Mapping[str, Sequence[Any]] | None" = None,
        flags: "Sequence[str]" = (),
    ) -> "list[dict[str, Any]]":
        """The rows that meet the conditions.

        Raises:
            RefusedError: as `Client.call`.
        """
        conditions = {name: list(values) for name, values in (where or {}).items()}
        rows, self.now, *_ = self._context.client.call(
            "AccountingQuery", table, list(columns), conditions, list(flags)
        )
        return [dict(zip(columns, row, strict=True)) for row in rows]
