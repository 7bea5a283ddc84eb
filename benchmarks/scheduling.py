"""What decisions cost, without daemons; a part of the case `decisions`.

Times are process times, in the way of nothing but other load on the machine.
"""

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "harness"))

from scheduling_harness import SHARED, World, make_job, read_swf, table, tables_of

from understudy.controller.scheduling.api import Ask
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.slurm.backfill import Backfill
from understudy.controller.scheduling.slurm.backfill_pass import BackfillPass
from understudy.controller.scheduling.slurm.queue import PendingQueue, slurm_order
from understudy.controller.scheduling.textbook.easy import Easy
from understudy.controller.scheduling.textbook.fcfs import Fcfs


def timed(action):
    start = time.process_time()
    action()
    return time.process_time() - start


def replay(policy, rows, nodes):
    """(microseconds a job with the events, of these in the policy and what it calls)."""
    world = World(table(nodes), policy, SelectConsTres(frozenset({"CR_CPU"})))
    for _, submit, run, processors, limit in rows:
        world.submit(at=submit, run_s=run, limit_s=limit, cpus=processors)
    inside = 0.0
    decide = world.policy.run

    def run(now):
        nonlocal inside
        start = time.perf_counter()
        yield from decide(now)
        inside += time.perf_counter() - start

    world.policy.run = run
    total = timed(world.run)
    return total / len(rows) * 1e6, inside / len(rows) * 1e6


def whole_cluster(nodes):
    tables = tables_of(table(nodes, cores=4))
    selector, main = SelectConsTres(frozenset({"CR_CPU"})), tables.partitions["main"]
    job = make_job(num_tasks=nodes, min_nodes=nodes, max_nodes=nodes)
    found = []
    seconds = timed(lambda: found.append(selector.select(Ask(job, main, main.nodes), tables)))
    return (
        seconds,
        timed(lambda: tables.nodes.allocate(found[0])),
        timed(lambda: tables.nodes.release(found[0], found[0].nodes)),
    )


def backfill_pass(nodes, pending):
    """One pass over `pending` jobs on nodes that are nearly full."""
    chance = random.Random(7)
    world = World(table(nodes, cores=4), Backfill, SelectConsTres(frozenset({"CR_CPU"})))
    tables = world.tables
    main = tables.partitions["main"]
    job_id = 0
    while tables.nodes.idle_nodes.bit_count() > nodes // 50:
        job_id += 1
        size = min(int(chance.paretovariate(0.7)) * 4, nodes)
        job = make_job(job_id, limit_s=chance.randrange(600, 86_400, 60), num_tasks=size)
        ask = Ask(job, main, main.nodes)
        allocation = world.selector.select(ask, tables)
        if allocation is not None:
            world.run_s[job_id] = 10**6
            tables.jobs[job_id] = tables.pending[job_id] = job
            world.start(ask, allocation, 0.0)
    running = len(tables.running)
    for _ in range(pending):
        job_id += 1
        world.run_s[job_id] = 600
        tasks = min(int(chance.paretovariate(0.5)) * 8, nodes * 2)
        tables.pending[job_id] = make_job(
            job_id, limit_s=chance.randrange(600, 86_400, 60), num_tasks=tasks
        )
    queue = PendingQueue(tables, slurm_order)
    queue.refresh(100)
    a_pass = BackfillPass(tables, world.selector, world, {})
    seconds = timed(lambda: list(a_pass.run(queue.records, 100.0)))
    return seconds, running, a_pass.started, len(world.promises)


def main():
    trace = SHARED / "oracles" / "kth-sp2-normalised.swf.gz"
    if trace.exists():
        rows = list(read_swf(trace))
        for policy in (Easy, Fcfs):
            total, inside = replay(policy, rows, 100)
            say(f"KTH-SP2, {policy.name}, in the policy", inside, "us a job")
            say(f"KTH-SP2, {policy.name}, with the events", total, "us a job")
    for what, seconds in zip(("select", "allocate", "release"), whole_cluster(16_384), strict=True):
        say(f"a job on all of 16,384 nodes: {what}", seconds * 1e3, "ms")
    for nodes in (1000, 16_384):
        seconds, running, started, promised = backfill_pass(nodes, 500)
        said = f"{running} running, {started} started, {promised} promised"
        say(f"backfill pass, {nodes} nodes, 500 pending, {said}", seconds * 1e3, "ms")


def say(what, value, unit):
    print(what, value, unit, sep="\t", flush=True)


if __name__ == "__main__":
    main()
