"""`/metrics` of one daemon: what Prometheus scrapes, over HTTP.

Place: beside daemon.py, which starts it where cluster.json gives the daemon an address, as do the
clock service and the agent. The server is prometheus-client's, in a thread of its own; the daemon's
figures are gathered on its loop, in slices, so that a scrape never sees a table in the midst of a
change and nobody waits for one. The text is made in the thread. A scrape changes nothing: in
virtual time it takes no time.
"""

from __future__ import annotations

import asyncio
import gc
import time
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from understudy.model.metrics import Family, gauge

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from understudy.model.cluster import Cluster
    from understudy.model.metrics import Samples, Source

_PATIENCE_S: Final = 10.0  # ours, as long as Prometheus waits (its scrape_timeout)
_TOTAL: Final = "_total"


def serve(
    cluster: Cluster, name: str, sources: list[Source], loop: asyncio.AbstractEventLoop
) -> Metrics:
    """Tell Prometheus the figures of a daemon to which the cluster gives an address for it.

    Raises:
        OSError: nobody can listen there.
    """
    metrics = Metrics(loop, name, sources)
    metrics.start(cluster.metrics[name])
    return metrics


class Metrics:
    """The figures of one daemon, and the server that tells them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, daemon: str, sources: list[Source]) -> None:
        self._sources = sources
        self._loop = loop
        self._daemon = daemon
        self._server: Any = None  # prometheus-client's
        self.address = ""  # HOST:PORT

    def start(self, address: str) -> None:
        """Serve at HOST:PORT.

        Raises:
            OSError: nobody can listen there.
        """
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(self)
        host, _, port = address.rpartition(":")
        self._server, _ = start_http_server(int(port), host, registry)
        self.address = f"{host}:{self._server.server_port}"

    async def close(self) -> None:
        """Serve no more. The loop goes on meanwhile, as scrapes may wait for it."""
        await asyncio.to_thread(self._server.shutdown)
        self._server.server_close()

    def describe(self) -> Iterable[Metric]:
        """Nothing: else the registry would scrape to know the names."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Called in a thread of the server's."""
        asked = time.perf_counter()
        gathering = asyncio.run_coroutine_threadsafe(self._gather(asked), self._loop)
        for family in gathering.result(_PATIENCE_S):
            yield _metric(family)

    async def _gather(self, asked: float) -> list[Family]:
        began = time.perf_counter()
        found = [
            Family(
                "understudy_daemon_info",
                "Which daemon this is.",
                {(self._daemon,): 1},
                ("daemon",),
            ),
            gauge(
                "understudy_loop_delay_seconds",
                "How long this scrape waited for the daemon's event loop.",
                began - asked,
            ),
            *_collections(),
        ]
        for source in self._sources:
            for family in source():
                if family is None:
                    await asyncio.sleep(0)
                else:
                    found.append(family)
        found.append(
            gauge(
                "understudy_scrape_seconds",
                "How long figures were gathered, with what the loop did in between.",
                time.perf_counter() - began,
            )
        )
        return found


def _collections() -> Iterator[Family]:
    """Of Python's garbage collector, by generation."""
    stats = gc.get_stats()
    by_generation: Samples = {(str(n),): each["collections"] for n, each in enumerate(stats)}
    yield Family(
        "python_gc_collections_total",
        "Garbage collections.",
        by_generation,
        ("generation",),
        counts=True,
    )


def _metric(family: Family) -> Metric:
    kind = CounterMetricFamily if family.counts else GaugeMetricFamily
    metric: Metric = kind(
        family.name.removesuffix(_TOTAL) if family.counts else family.name,
        family.text,
        labels=family.labels,
    )
    for labels, value in family.samples.items():
        metric.add_metric(labels, value)  # type: ignore[attr-defined]
    return metric
