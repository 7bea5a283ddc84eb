"""`/metrics` as Prometheus reads it: text, counters, labels, figures that are gathered on the loop.

Covers: clock/metrics, model/metrics.
"""

import asyncio
import threading
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from understudy.clock.metrics import Metrics
from understudy.model.metrics import Family, counter, gauge


def get(address):
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        return answer.read().decode()


def scrape(*sources):
    """What a scrape of a daemon with these sources says: the value by name and labels."""

    async def main():
        metrics = Metrics(asyncio.get_running_loop(), "noded7", list(sources))
        metrics.start("127.0.0.1:0")
        try:
            return await asyncio.to_thread(get, metrics.address)
        finally:
            await metrics.close()

    found = {}
    for family in text_string_to_metric_families(asyncio.run(main())):
        for sample in family.samples:
            found[sample.name, *sample.labels.items()] = (sample.value, family.type)
    return found


def test_gauges_and_counters_have_their_names_and_labels():
    def source():
        yield gauge("slurm_nodes_idle", "Idle.", 3)
        yield counter("slurm_scheduler_backfilled_jobs_since_start_total", "Started.", 5)
        by_account = {("physics",): 2.0, ('a "b"\n',): 1.0}
        yield Family("slurm_account_jobs_pending", "Waiting.", by_account, ("account",))

    found = scrape(source)
    assert found["slurm_nodes_idle",] == (3, "gauge")
    assert found["slurm_scheduler_backfilled_jobs_since_start_total",] == (5, "counter")
    assert found["slurm_account_jobs_pending", ("account", "physics")] == (2, "gauge")
    assert found["slurm_account_jobs_pending", ("account", 'a "b"\n')] == (1, "gauge")


def test_every_daemon_tells_who_it_is_and_what_its_process_uses():
    found = scrape()
    assert found["understudy_daemon_info", ("daemon", "noded7")] == (1, "gauge")
    assert found["process_resident_memory_bytes",][0] > 0
    assert found["understudy_loop_delay_seconds",][0] >= 0


def test_figures_are_gathered_on_the_loop_and_others_have_it_in_between():
    turns = []

    def source():
        loop = asyncio.get_running_loop()
        turns.append(threading.get_ident())
        loop.call_soon(turns.append, "another")
        yield None
        turns.append("rest")

    scrape(source)
    assert turns == [threading.get_ident(), "another", "rest"]


def test_a_source_that_fails_fails_the_scrape_and_not_the_daemon():
    def source():
        yield gauge("one", "One.", 1)
        raise LookupError("gone")

    with pytest.raises(urllib.error.HTTPError, match="500") as failed:
        scrape(source)
    failed.value.close()


def test_an_address_that_is_taken_is_an_error():
    async def main():
        first = Metrics(asyncio.get_running_loop(), "a", [])
        first.start("127.0.0.1:0")
        try:
            with pytest.raises(OSError, match="in use"):
                Metrics(asyncio.get_running_loop(), "b", []).start(first.address)
        finally:
            await first.close()

    asyncio.run(main())
