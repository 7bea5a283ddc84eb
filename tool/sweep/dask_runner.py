"""Runs the cells of a sweep on Dask distributed: a cluster of this command's own, or one that is
there.

Place: the edge of sweeps. A cell is a task, and so is a workload, on which the cells that replay it
depend. Dask gives a cell whose worker dies to another. A scheduler of our own that dies is started
anew, with what is not done yet; without another's there is nothing to do.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import logging
import queue
import re
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from understudy.experiments.sweep.file import SweepError
from understudy.experiments.sweep.rows import Row
from understudy.tool.sweep.local_cluster import LocalCluster, LocalClusterError
from understudy.tool.sweep.work import MadeWorkload, OtherVersionError, make_workload, run_cell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from understudy.tool.sweep.orders import Order, Plan, Recipe, Source

_AT_A_WORKER: Final = 2  # ours: cells, for each that runs there one that waits
_LOOK_S: Final = 0.3  # ours: between two looks whether all are there
_CONNECT_S: Final = 15.0  # ours: how long a scheduler may take to answer
_FEW_S: Final = 5.0  # ours: after which it is said that there are no workers
_ADDRESS: Final = re.compile(r"(\w+://)?[^\s/]+:\d+(/\S*)?")
_MOST_RESTARTS: Final = 20  # of our own scheduler
NEEDED: Final = (
    "a sweep runs on Dask distributed, which is not installed: pip install 'understudy[sweep]'"
)


class LostSchedulerError(Exception):
    """The scheduler is gone."""


class DaskRunner:
    """Runs orders. `told` hears of each row as it comes, `said` what users should know."""

    def __init__(
        self, plan: Plan, told: Callable[[Row], None], said: Callable[[str], None]
    ) -> None:
        self._plan, self._told, self._said = plan, told, said
        self._done: set[str] = set()

    def run_here(self, orders: Sequence[Order], workers: int) -> None:
        """On a cluster of our own.

        Raises:
            SweepError: it cannot be started, or its scheduler ends again and again.
        """
        _quiet()
        try:
            with LocalCluster(min(workers, len(orders))) as cluster:
                for _ in range(_MOST_RESTARTS):
                    try:
                        self._run(orders, cluster.address, cluster.security, cluster)
                    except LostSchedulerError:
                        self._said("the Dask scheduler has ended: another one is started")
                        cluster.start()
                    else:
                        return
                raise SweepError(f"the Dask scheduler has ended {_MOST_RESTARTS} times")
        except LocalClusterError as error:
            raise SweepError(str(error)) from None

    def run_at(self, orders: Sequence[Order], address: str) -> None:
        """On a cluster that is there.

        Raises:
            SweepError: the address is none, or its scheduler does not answer, or is gone.
        """
        if not _ADDRESS.fullmatch(address):
            raise SweepError(f"--dask {address}: expected an address as tcp://HOST:8786")
        _quiet()
        try:
            self._run(orders, address, None, None)
        except LostSchedulerError:
            raise SweepError(f"the Dask scheduler at {address} is gone") from None

    def _run(
        self, orders: Sequence[Order], address: str, security: Any, cluster: LocalCluster | None
    ) -> None:
        """All orders that are not done yet.

        Raises:
            LostSchedulerError: the scheduler is gone.
            SweepError: it does not answer, or its workers cannot do it.
        """
        left = [order for order in orders if order.key not in self._done]
        came: queue.SimpleQueue[Any] = queue.SimpleQueue()
        with _client(address, security, cluster) as client:
            made, following = self._workloads(client, left), iter(enumerate(left))
            futures: dict[str, Any] = {}
            began, is_silent = time.monotonic(), cluster is None
            while True:
                # not all at once: what only waits at a worker that dies counts as what killed it
                most = _AT_A_WORKER * max(_threads(client), 1)
                for number, order in itertools.islice(following, max(most - len(futures), 0)):
                    future = client.submit(
                        _cell, order, made[order.recipe], key=f"cell-{order.key}", priority=-number
                    )
                    future.add_done_callback(came.put)
                    futures[future.key] = future
                if not futures:
                    return
                with contextlib.suppress(queue.Empty):
                    future = came.get(timeout=_LOOK_S)
                    if (row := _row_of(future)) is not None:
                        del futures[future.key]
                        self._done.add(row.key)
                        self._told(row)
                        continue
                if client.status != "running" or (cluster and not cluster.has_scheduler):
                    raise LostSchedulerError
                if cluster is not None and (count := cluster.mend()):
                    self._said(f"{count} worker(s) had ended: others are started")
                if is_silent and time.monotonic() - began > _FEW_S:
                    is_silent = False
                    if not _threads(client):
                        self._said(f"no worker at {address} yet; waiting for one")

    def _workloads(self, client: Any, orders: Sequence[Order]) -> dict[str, Any]:
        """The futures of the workloads that the orders replay, by recipe."""
        plan = self._plan
        recipes = {order.recipe: plan.recipes[order.recipe] for order in orders}
        needed = {sha for recipe in recipes.values() for sha in recipe.sources}
        # a task each rather than data that is put somewhere: the scheduler can make it again when
        # a worker has died with it
        sources = {
            sha: client.submit(_itself, plan.sources[sha], key=f"source-{sha}", pure=False)
            for sha in sorted(needed)
        }
        return {
            key: client.submit(
                _workload, recipe, [sources[sha] for sha in recipe.sources], key=f"workload-{key}"
            )
            for key, recipe in recipes.items()
        }


def _threads(client: Any) -> int:
    """How many cells the workers run at a time; 0 where nobody says so, as a scheduler that is
    gone.
    """
    try:
        workers = client.scheduler_info()["workers"]
    except (OSError, RuntimeError, TimeoutError, KeyError):
        return 0
    return sum(worker["nthreads"] for worker in workers.values())


def _itself(source: Source) -> Source:
    return source


def _workload(recipe: Recipe, sources: Sequence[Source]) -> MadeWorkload:
    return make_workload(recipe, sources)


def _cell(order: Order, made: MadeWorkload) -> Row:
    """On a worker. Whether anybody still waits for it is known by the worker's list of tasks."""
    from distributed import get_worker

    worker = get_worker()
    key = f"cell-{order.key}"

    def is_wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state != "cancelled"

    return run_cell(order, made, Path(worker.local_directory), is_wanted)


def _row_of(future: Any) -> Row | None:
    """What came of a cell; None if its scheduler is gone.

    Raises:
        SweepError: no other cell would fare better.
    """
    if future.status == "cancelled":
        return None
    if future.status == "finished":
        try:
            row: Row = future.result(timeout=_CONNECT_S)
        except Exception:  # noqa: BLE001  whatever Dask says: it cannot be had any more
            return None
        return row
    key = future.key.removeprefix("cell-")
    error = future.exception(timeout=_CONNECT_S)
    if isinstance(error, OtherVersionError):
        raise SweepError(f"a worker has another Understudy: {error}")
    if isinstance(error, ImportError):
        raise SweepError(f"a worker has no Understudy that it could run: {error}")
    if type(error).__name__ == "KilledWorker":
        return Row(key, error="its worker ended each time that it was run")
    return Row(key, error=f"{type(error).__name__}: {error}")


@contextlib.contextmanager
def _client(address: str, security: Any, cluster: LocalCluster | None) -> Iterator[Any]:
    """A connection to the scheduler.

    Raises:
        LostSchedulerError: our own does not answer.
        SweepError: another's does not.
    """
    from distributed import Client

    try:
        client = Client(address, security=security, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        if cluster is not None:
            raise LostSchedulerError from None
        text = str(error) or type(error).__name__
        raise SweepError(f"no Dask scheduler at {address}: {text}") from None
    try:
        yield client
    finally:
        with contextlib.suppress(Exception):  # it may be gone
            client.close(timeout=1)


def _quiet() -> None:
    """What Dask says of lost connections we say ourselves. It sets its levels when it is
    imported.
    """
    importlib.import_module("distributed")
    for name in ("distributed", "distributed.client", "tornado", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", message="Sending large graph")
