"""Many connections of one tree's own client: run by a case, with that tree's interpreter.

    python -P driver.py submit JOBS CONNECTIONS hold|SECONDS     prints the seconds that it took
    python -P driver.py one NODES                                a batch job, submitted to completed
    python -P driver.py one-interactive NODES                    the same of one as salloc's
    python -P driver.py storm RATE SECONDS                       held jobs a second; prints how many
    python -P driver.py ask SECONDS                              seconds of each question

The cluster is the one of SLURM_CONF. A submission's answer comes when the job is on disk.
"""

import os
import random
import subprocess
import sys
import time
from threading import Thread

try:
    from understudy.commands.shared.client import Client, pack_named
    from understudy.commands.shared.locate import find
except ImportError:  # commits before the commands had rooms
    from understudy.commands.client import Client, pack_named  # type: ignore[import-not-found,no-redef]
    from understudy.commands.locate import find  # type: ignore[import-not-found,no-redef]

PROCESSES = 2
HELD = "hold"
PENDING, RUNNING, COMPLETE = 0, 1, 3  # understudy.model.states
COMPLETING = 0x8000


def submit_some(
    spec: list, script: str, count: int, location: object, submitted: list[int]
) -> None:
    client = Client(lambda: location)  # type: ignore[arg-type,return-value]
    for _ in range(count):
        client.call("SubmitJob", spec, script)
    submitted.append(count)


def submit_from_here(jobs: int, connections: int, run: str) -> None:
    values = {"name": "wrap", "time_limit_s": 3600, "work_dir": "/tmp", "command": "wrap"}
    spec = pack_named("JobSpec", values | ({"hold": True} if run == HELD else {}))
    script = "#!/bin/sh\n" + ("" if run == HELD else f"#UNDERSTUDY run={run}\n")
    location = find()
    shares = [jobs // connections + (each < jobs % connections) for each in range(connections)]
    submitted: list[int] = []
    threads = [
        Thread(target=submit_some, args=(spec, script, n, location, submitted)) for n in shares
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if sum(submitted) < jobs:  # threads that have failed say so themselves
        os._exit(1)


def submit(jobs: str, connections: str, run: str) -> None:
    """By two processes, as one would be busy with its own threads."""
    all_jobs, children = int(jobs), []
    parts = [all_jobs // PROCESSES + (n < all_jobs % PROCESSES) for n in range(PROCESSES)]
    begin = time.perf_counter()
    for part in parts:
        child = os.fork()
        if not child:
            submit_from_here(part, max(1, int(connections) // PROCESSES), run)
            os._exit(0)
        children.append(child)
    failed = [child for child in children if os.waitpid(child, 0)[1]]
    if failed:
        sys.exit("submissions failed")
    print(time.perf_counter() - begin)


def one(nodes: str) -> None:
    """A batch job, of which two times are printed: from its submission, and from its start, until
    its nodes are free of it. In between it waits for Slurm's main loop, as real Slurm's do.
    """
    client = Client()
    client.query("partitions", ["name"])
    begin = time.perf_counter()
    spec = pack_named("JobSpec", wide(nodes))
    job = client.call("SubmitJob", spec, "#!/bin/sh\n#UNDERSTUDY run=0\n")[0]
    started = until(client, job, RUNNING)
    ended = until(client, job, COMPLETE)
    print(ended - begin, ended - started)


def one_interactive(nodes: str) -> None:
    """As salloc: it starts at once, and ends when it is told to."""
    client = Client()
    client.query("partitions", ["name"])
    begin = time.perf_counter()
    job, is_running = client.call("AllocateJob", pack_named("JobSpec", wide(nodes)))[:2]
    if not is_running:
        sys.exit("the job has not started at once")
    client.call("CompleteJob", job, 0)
    print(until(client, job, COMPLETE) - begin)


def wide(nodes: str) -> dict:
    values = {"name": "wrap", "time_limit_s": 3600, "work_dir": "/tmp", "command": "wrap"}
    return values | {"min_nodes": int(nodes), "max_nodes": int(nodes)}


def until(client: Client, job: int, wanted: int) -> float:
    """When the job has that state or a later one; complete is it when its nodes are free of it."""
    while True:
        ((state, flags),) = client.query("jobs", ["state", "flags"], {"job_id": [job]}).rows
        if state not in (PENDING, RUNNING, COMPLETE):
            sys.exit(f"the job's state is {state}")
        if state >= wanted and not (wanted == COMPLETE and flags & COMPLETING):
            return time.perf_counter()
        time.sleep(0.002)


def storm(rate: str, seconds: str) -> None:
    """Held jobs, each when it is due, through 16 connections; who falls behind submits on."""
    spec = pack_named(
        "JobSpec",
        {"name": "wrap", "time_limit_s": 60, "work_dir": "/tmp", "command": "wrap", "hold": True},
    )
    location, begin, connections = find(), time.perf_counter(), 16
    gap, count = connections / float(rate), int(float(rate) * float(seconds) / connections)
    done = [0] * connections

    def work(place: int) -> None:
        client = Client(lambda: location)
        for number in range(count):
            left = begin + (number + place / connections) * gap - time.perf_counter()
            if left > 0:
                time.sleep(left)
            client.call("SubmitJob", spec, "#!/bin/sh\n")
            done[place] += 1

    threads = [Thread(target=work, args=(place,)) for place in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(done) / (time.perf_counter() - begin))


def ask(seconds: str) -> None:
    client = Client()
    waits, end = [], time.monotonic() + float(seconds)
    while time.monotonic() < end:
        begin = time.perf_counter()
        client.query("partitions", ["name"])
        waits.append(time.perf_counter() - begin)
        time.sleep(0.005)
    print(*waits)


def ask_while(*words: str) -> None:
    """The same, for as long as a command runs."""
    client = Client()
    waits = []
    listing = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    while listing.poll() is None:
        begin = time.perf_counter()
        client.query("partitions", ["name"])
        waits.append(time.perf_counter() - begin)
        time.sleep(0.005)
    print(*waits)


def fill(nodes: str, waiting: str = "500") -> None:
    """Jobs that fill the cluster, and others of all sizes that wait behind them."""
    chance = random.Random(7)
    sizes = [(chance.randrange(1, 200), chance.randrange(60, 1440)) for _ in range(160)]
    for _ in range(int(waiting)):
        wide = min(int(chance.paretovariate(0.5)) * 2, int(nodes))
        sizes.append((wide, chance.randrange(10, 1440)))
    location = find()

    def work(mine: list) -> None:
        client = Client(lambda: location)
        for count, minutes in mine:
            values = {"name": "wrap", "time_limit_s": minutes * 60, "work_dir": "/tmp"}
            values |= {"command": "wrap", "min_nodes": count, "max_nodes": count}
            script = f"#!/bin/sh\n#UNDERSTUDY run={minutes * 60}\n"
            client.call("SubmitJob", pack_named("JobSpec", values), script)

    threads = [Thread(target=work, args=(sizes[place::16],)) for place in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    known = {"submit": submit, "one": one, "one-interactive": one_interactive, "ask": ask}
    known |= {"ask-while": ask_while, "fill": fill, "storm": storm}
    known[sys.argv[1]](*sys.argv[2:])
