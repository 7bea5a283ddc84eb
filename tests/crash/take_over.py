"""Take the leading controller away again and again while clients submit, and see whether its backup
takes over in time, and whether any job is lost, harmed, or there twice.

    python tests/crash/take_over.py [--count 200] [--clients 3] [--seed 1]
    [--kinds kill,stop,cut,full] [--timeout 3]

Two controllers share a state folder, each with a run directory of its own, as on hosts of their
own; between all hosts stands a relay, which can cut one off. The jobs are emulated, all else is
real: processes, sockets, time. In turns the one that leads

- is killed (kill),
- stands still, and goes on a while after the other has taken over (stop),
- is cut off from the network, though not from the state (cut),
- can write no file any more, as on a full disk (full),

and comes back, whereupon a primary takes control back. What must hold:

- the other leads within SlurmctldTimeout + 5 s;
- no submission fails: commands wait for whom they find to lead, `sbatch --wait` and `srun`
  through takeovers while their jobs run, too;
- all that tests/crash/kill_controller.py asks of jobs in the end: none lost, none twice, all
  completed in their first run; and the node daemon was told to begin each once;
- of those who say that they lead, no two say so under the same fencing number, and nobody does who
  was asked after another had answered under a higher one.

Ends with 1 if one of these does not hold, and keeps all files then.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kill_controller import CONF, Outcome, Submitter, Waiter, await_end, check

from understudy.commands.shared import locate
from understudy.commands.shared.client import Client, RefusedError
from understudy.commands.shared.locate import Location
from understudy.model.cluster import CONTROLLER, NodeDaemon
from understudy.protocol import addresses
from understudy.tool.cluster import launch
from understudy.tool.cluster.processes import end, identify

if TYPE_CHECKING:
    from collections.abc import Callable

BACKUP, NODED, CLIENTS = "backup1", "noded0", "clients"
CONTROLLERS = (CONTROLLER, BACKUP)
KINDS = ("kill", "stop", "cut", "full")
GRACE_S = 5.0  # beyond SlurmctldTimeout
AWAY_S = (0.0, 2.0)  # how long the victim stays away after the other has taken over
BETWEEN_S = (0.0, 1.0)  # between two blows, once both are there
LONGEST_RUN_S = 12.0  # so that jobs run on through several takeovers
PAUSE_S = (0.1, 0.5)  # between two submissions of a client: a job may take longer than one takeover
PATIENCE_S = 60.0  # for a controller to be back
WAITING = (  # commands that stay until their jobs are over, each by a client of its own
    ("sbatch", "--wait", "--parsable", "--wrap=sleep 3"),
    ("srun", "--quiet", "--ntasks=2", "sleep", "3"),
)


class Relay(threading.Thread):
    """Passes on what hosts send each other. Nothing comes to or from a host that is cut off, and
    nobody is told. `host_of`: where a process is.
    """

    def __init__(
        self, folder: Path, addresses: dict[str, Path], host_of: Callable[[int], str]
    ) -> None:
        super().__init__(name="relay", daemon=True)
        self._folder, self._addresses, self._host_of = folder, addresses, host_of
        self._loop = asyncio.new_event_loop()
        self._ways: dict[str, asyncio.Event] = {}
        self._is_up = threading.Event()
        self._pumps: set[asyncio.Task[None]] = set()

    def path(self, target: str) -> Path:
        """Where all others find `target`."""
        return self._folder / f"to-{target}"

    def begin(self) -> None:
        self.start()
        self._is_up.wait()

    def run(self) -> None:
        self._loop.run_until_complete(self._listen())
        self._loop.run_forever()

    async def _listen(self) -> None:
        for host in (*self._addresses, CLIENTS):
            self._ways[host] = asyncio.Event()
            self._ways[host].set()
        for target in self._addresses:
            await asyncio.start_unix_server(self._serve(target), self.path(target))
        self._is_up.set()

    def _serve(self, target: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            source = self._host_of(other_process(writer.get_extra_info("socket")))
            task = self._loop.create_task(self._connect(source, target, reader, writer))
            self._pumps.add(task)
            task.add_done_callback(self._pumps.discard)

        return accepted

    async def _connect(
        self,
        source: str,
        target: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                while octets := await reader.read(1 << 16):
                    for host in (source, target):
                        await self._ways[host].wait()
                    writer.write(octets)
                    await writer.drain()
            for host in (source, target):
                await self._ways[host].wait()
            writer.close()

        for host in (source, target):
            await self._ways[host].wait()
        try:
            there = await asyncio.open_unix_connection(self._addresses[target])
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))

    def cut(self, host: str) -> None:
        self._loop.call_soon_threadsafe(self._ways[host].clear)

    def heal(self, host: str) -> None:
        self._loop.call_soon_threadsafe(self._ways[host].set)


def other_process(sock: socket.socket) -> int:
    """The pid at the other end (unix(7), SO_PEERCRED)."""
    octets = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid: int = struct.unpack("3i", octets)[0]
    return pid


class Word(NamedTuple):
    """A controller's answer: when it was asked and had answered, and the fencing number under which
    it leads (0: it does not).
    """

    asked: float
    answered: float
    name: str
    fence: int


class Prober(threading.Thread):
    """Asks one controller all the time whether it leads, past the relay."""

    def __init__(self, name: str, address: Path, stop: threading.Event) -> None:
        super().__init__(name=f"prober of {name}", daemon=True)
        self._controller, self._stop_asked = name, stop
        self._location = Location(controller_unix=f"unix:{address}")
        self.words: list[Word] = []

    def run(self) -> None:
        while not self._stop_asked.wait(0.02):
            client = Client(lambda: self._location, timeout_s=1.0, waits=False)
            asked = time.monotonic()
            try:
                _name, leads, fence = client.call("GetLeader")
            except RefusedError:
                continue
            finally:
                client.close()
            word = Word(asked, time.monotonic(), self._controller, fence if leads else 0)
            self.words.append(word)

    @property
    def last(self) -> Word | None:
        return self.words[-1] if self.words else None


class SharedCluster:
    """Two controllers and a node daemon, each on a host of its own as far as they can tell."""

    def __init__(self, folder: Path, timeout_s: int) -> None:
        self.folder, self.stop_asked = folder, threading.Event()
        conf = folder / "slurm.conf"
        text = CONF.replace("SlurmctldHost=localhost", "SlurmctldHost=ctl1\nSlurmctldHost=ctl2")
        conf.write_text(f"{text}SlurmctldTimeout={timeout_s}\n")
        sockets = folder / "s"
        sockets.mkdir()
        own = {name: sockets / name for name in (*CONTROLLERS, NODED)}
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.relay = Relay(sockets, own, self._host_of)
        self.relay.begin()
        for name in own:
            self._describe(conf, name, own)
        for name in CONTROLLERS:
            self.start(name)
        # the node daemon says to controllers where it is: behind the relay
        listener = addresses.listen(f"unix:{own[NODED]}")
        self.start(NODED, listener.fileno())
        listener.close()
        self.location = Location(
            name="crash",
            run_dir=str(folder),
            started=time.time(),
            conf=str(conf),
            controller_unix=f"unix:{self.relay.path(CONTROLLER)}",
            backups=[["ctl2", f"unix:{self.relay.path(BACKUP)}", ""]],
        )
        self.registry = folder / "registry"
        locate.register(self.location, str(self.registry))
        self.probers = {name: Prober(name, own[name], self.stop_asked) for name in CONTROLLERS}
        for prober in self.probers.values():
            prober.start()

    def _describe(self, conf: Path, name: str, own: dict[str, Path]) -> None:
        """The run directory of one host, where the others are found by way of the relay."""
        run_dir = self.folder / name
        cluster = launch.prepare(run_dir, conf)
        at = {
            each: f"unix:{path if each == name and name != NODED else self.relay.path(each)}"
            for each, path in own.items()
        }
        cluster = replace(
            cluster,
            controller_unix=at[CONTROLLER],
            backups=[replace(cluster.backups[0], unix=at[BACKUP])],
            nodeds=[NodeDaemon(NODED, at[NODED], cluster.nodeds[0].nodes)],
            state_dir=str(self.folder / "state"),
            key_folder=str(self.folder / CONTROLLER / "keys"),
        )
        cluster.save(run_dir)

    def _host_of(self, pid: int) -> str:
        hosts = {child.pid: name for name, child in list(self.children.items())}
        return hosts.get(pid, CLIENTS)

    def client(self) -> Client:
        return Client(lambda: self.location)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "UNDERSTUDY_REGISTRY": str(self.registry),
        }

    def start(self, name: str, *listener: int) -> None:
        run_dir = self.folder / name
        words = [word for each in listener for word in ("--listener", str(each))]
        with (run_dir / "logs" / f"{name}.log").open("ab") as log:
            self.children[name] = subprocess.Popen(
                [*launch.daemon_command(name, run_dir), *words],
                pass_fds=listener,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=run_dir,
            )

    def leader(self) -> Word | None:
        """Who says that he leads, under the highest number."""
        said = [prober.last for prober in self.probers.values()]
        leading = [word for word in said if word is not None and word.fence]
        return max(leading, key=lambda word: word.fence, default=None)

    def await_all(self) -> None:
        """Return when one leads and the other answers, both since now."""
        began = time.monotonic()
        while True:
            last = [prober.last for prober in self.probers.values()]
            if all(word is not None and word.asked > began for word in last) and self.leader():
                return
            for name in CONTROLLERS:  # a primary that was told to leave has ended
                if self.children[name].poll() is not None:
                    self.start(name)
            if time.monotonic() > began + PATIENCE_S:
                raise AssertionError(f"not both controllers are there, see {self.folder}")
            time.sleep(0.02)

    def stop(self) -> None:
        self.stop_asked.set()
        for name, child in self.children.items():
            if child.poll() is None:
                child.send_signal(signal.SIGCONT)
                end([identify(name, child.pid)], 10.0)
            child.wait()


@dataclass
class Takeovers:
    """How long they took, by kind, and what went wrong."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    ended: Counter[str] = field(default_factory=Counter)  # victims that did not live through it
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = []
        for kind, seconds in self.seconds.items():
            taken = sorted(seconds)
            lines.append(
                f"{kind}: {len(taken)} takeovers, {taken[0]:.1f} to {taken[-1]:.1f} s, half within "
                f"{taken[len(taken) // 2]:.1f} s; {self.ended[kind]} victims ended"
            )
        return "\n".join(lines)


class Blows:
    """Takes the leading controller away, and gives it back."""

    def __init__(self, cluster: SharedCluster, rng: random.Random, limit_s: float) -> None:
        self._cluster, self._rng, self._limit_s = cluster, rng, limit_s
        self.found = Takeovers()

    def strike(self, kind: str) -> None:
        """One takeover."""
        cluster, found = self._cluster, self.found
        cluster.await_all()
        time.sleep(self._rng.uniform(*BETWEEN_S))
        while (before := cluster.leader()) is None:  # a primary is just taking control back
            time.sleep(0.01)
        victim = before.name
        child = cluster.children[victim]
        began = time.monotonic()
        self._hit(kind, victim, child)
        limit_s = self._limit_s
        while True:
            now = cluster.leader()
            if now is not None and now.name != victim and now.fence > before.fence:
                break
            if time.monotonic() > began + limit_s + PATIENCE_S:
                raise AssertionError(f"{kind}: nobody takes over, see {cluster.folder}")
            time.sleep(0.01)
        took_s = now.answered - began
        found.seconds[kind].append(took_s)
        if took_s > limit_s:
            found.violations.append(f"{kind}: a takeover took {took_s:.1f} s")
        time.sleep(self._rng.uniform(*AWAY_S))
        self._help(kind, victim, child)
        if child.poll() is not None:
            found.ended[kind] += 1
            cluster.start(victim)

    def _hit(self, kind: str, victim: str, child: subprocess.Popen[bytes]) -> None:
        if kind == "kill":
            child.kill()
            child.wait()
        elif kind == "stop":
            child.send_signal(signal.SIGSTOP)
        elif kind == "cut":
            self._cluster.relay.cut(victim)
        else:
            resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    def _help(self, kind: str, victim: str, child: subprocess.Popen[bytes]) -> None:
        if kind == "stop":
            child.send_signal(signal.SIGCONT)
        elif kind == "cut":
            self._cluster.relay.heal(victim)
        elif kind == "full":
            with contextlib.suppress(ProcessLookupError):
                unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
                resource.prlimit(child.pid, resource.RLIMIT_FSIZE, unlimited)


def rivals(words: list[Word]) -> list[str]:
    """Who said that he led though he could not."""
    names, heard = defaultdict(set), {}
    for word in sorted(words, key=lambda word: word.answered):
        if word.fence:
            names[word.fence].add(word.name)
            heard.setdefault(word.fence, word.answered)
    found = [f"{sorted(who)} lead under {fence}" for fence, who in names.items() if len(who) > 1]
    for word in words:
        later = [when for fence, when in heard.items() if fence > word.fence > 0]
        if later and min(later) < word.asked:
            found.append(f"{word.name} answers under {word.fence} after another led")
    return found


def run(
    folder: Path,
    *,
    count: int,
    clients: int,
    seed: int,
    kinds: tuple[str, ...] = KINDS,
    timeout_s: int = 3,
    grace_s: float = GRACE_S,
    say: Callable[[str], None] = lambda _text: None,
) -> tuple[Outcome, Takeovers]:
    """Do it all in a folder of its own."""
    cluster = SharedCluster(folder, timeout_s)
    blows = Blows(cluster, random.Random(f"{seed} blows"), timeout_s + grace_s)
    outcome, began = Outcome(), time.monotonic()
    try:
        cluster.await_all()
        stop = threading.Event()
        submitters = [
            Submitter(cluster, number, seed, stop, longest_run_s=LONGEST_RUN_S, pause_s=PAUSE_S)
            for number in range(clients)
        ]
        waiters = [Waiter(cluster, stop, (command,), command[0]) for command in WAITING]
        for thread in (*submitters, *waiters):
            thread.start()
        for number in range(count):
            blows.strike(kinds[number % len(kinds)])
            if (number + 1) % 20 == 0:
                jobs = sum(len(each.done) for each in submitters)
                say(f"{number + 1} takeovers, {jobs} jobs, {time.monotonic() - began:.0f} s")
        cluster.await_all()
        stop.set()
        for waiter in waiters:
            waiter.join(PATIENCE_S)
            if waiter.is_alive():
                outcome.violations.append(f"{waiter.name} hangs")
            outcome.waited += waiter.done
            outcome.violations += [f"failed: {text}" for text in waiter.failed]
        outcome.take(submitters)
        check(outcome, await_end(cluster, outcome, 120.0))
        cluster.stop_asked.set()
        words = [word for prober in cluster.probers.values() for word in prober.words]
        outcome.violations += rivals(words)
        say(f"{len(words)} answers of controllers, {sum(word.fence > 0 for word in words)} leading")
        outcome.violations += told_twice(folder / NODED / "logs" / f"{NODED}.log")
        for name in (*CONTROLLERS, NODED):
            outcome.look_into_log(folder / name / "logs" / f"{name}.log")
    finally:
        cluster.stop()
    outcome.violations += blows.found.violations
    outcome.seconds = time.monotonic() - began
    return outcome, blows.found


def told_twice(log: Path) -> list[str]:
    """Jobs that the node daemon has begun twice."""
    begun = Counter(re.findall(r"Launching batch job (\d+) ", log.read_text(errors="replace")))
    return [f"job {job} was begun {count} times" for job, count in begun.items() if count > 1]


def main() -> int:
    """The script."""
    parser = argparse.ArgumentParser(
        description="Take the leading controller away while clients submit: its backup is to take "
        "over in time, and no job may be lost, harmed or there twice."
    )
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--timeout", type=int, default=3, help="SlurmctldTimeout, in seconds")
    parser.add_argument("--grace", type=float, default=GRACE_S, help="seconds beyond that")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="understudy-lead-"))
    outcome, found = run(
        folder,
        count=arguments.count,
        clients=arguments.clients,
        seed=arguments.seed,
        kinds=tuple(arguments.kinds.split(",")),
        timeout_s=arguments.timeout,
        grace_s=arguments.grace,
        say=lambda text: print(text, flush=True),
    )
    for violation in outcome.violations[:20]:
        print(f"VIOLATION: {violation}", file=sys.stderr)
    print(found)
    print(outcome)
    if outcome.violations:
        print(f"What is left of the cluster: {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
