"""Kill the controller again and again while clients submit, and see whether any job that it ever
acknowledged is lost, or is there twice.

    python tests/crash/kill_controller.py [--kills 200] [--clients 4] [--seed 1]
    [--node-daemon-kills 0]

The cluster is a real one: processes, sockets, state on disk, emulated jobs of a second or so in
real time. At random instants, also while it comes up, the controller gets SIGKILL and is started
again in its run directory. Clients submit through sbatch's own code, each job under a name of its
own; they wait for a controller that is away, as sbatch does, and ask again under the same token
when one dies before it has answered. Beside them run `sbatch --wait` and `salloc` as processes.
What must hold in the end:

- no submission failed, as a controller was always back within MessageTimeout;

- every job that was acknowledged is in the controller's table under the id and the name that sbatch
  printed;
- no name is there twice (a job whose acknowledgement got lost is there, once);
- no id was given to two jobs;
- every job comes to an end: completed, unless it was lost with its node daemon.

Ends with 1 if one of these does not hold, and keeps the run directory then.
"""

from __future__ import annotations

import argparse
import io
import itertools
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from understudy.commands.sbatch import sbatch
from understudy.commands.shared import locate
from understudy.commands.shared.client import Client
from understudy.commands.shared.context import Context
from understudy.model.states import JobState
from understudy.tool.cluster import launch
from understudy.tool.cluster.processes import read_pid_file

if TYPE_CHECKING:
    from collections.abc import Callable

NODES, CPUS = 64, 8
MESSAGE_TIMEOUT_S = 30  # of a host that does much else meanwhile
CONF = f"""
ClusterName=crash
SlurmctldHost=localhost
SchedulerType=sched/easy
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MinJobAge=0
AuthInfo=cred_expire=2
MessageTimeout={MESSAGE_TIMEOUT_S}
MaxJobCount=1000000
NodeName=n[1-{NODES}] CPUs={CPUS} State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
AFTER_START_S = (0.0, 0.7)  # how long a controller lives that is up
DURING_START = 0.25  # share of kills that do not wait until it is up
WHILE_STARTING_S = (0.0, 0.5)
AT_ONCE = 0.5  # share of kills of the node daemon that fall together with one of the controller
PAUSE_S = (0.0, 0.04)  # between two submissions of a client
LONGEST_RUN_S = 1.5
NOT_AGAIN = 0.3  # share of jobs that are not requeued when their node fails
COLUMNS = ["job_id", "name", "state", "flags", "restarts"]


@dataclass
class Outcome:
    """What came of it. `violations` is empty if all is well."""

    kills: int = 0
    node_daemon_kills: int = 0
    attempts: int = 0
    waited: int = 0  # commands that stayed until their jobs were over
    acknowledged: list[tuple[int, str]] = field(default_factory=list)  # (job id, name)
    in_table: int = 0
    ran_again: int = 0
    states: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def take(self, submitters: list[Submitter]) -> None:
        """What the clients have to tell, who have been told to stop."""
        for submitter in submitters:
            submitter.join(30.0)
            if submitter.is_alive():
                self.violations.append(f"{submitter.name} hangs")
            self.attempts += submitter.attempts
            self.acknowledged += submitter.done
            self.violations += [f"refused: {text}" for text in submitter.refused]

    def look_into_log(self, log: Path) -> None:
        """A traceback is a violation."""
        text = log.read_text(errors="replace")
        if "Traceback" in text:
            start = text.index("Traceback")
            self.violations.append(f"a traceback in {log.name}: {text[start : start + 2000]}")

    def __str__(self) -> str:
        states = ", ".join(f"{count} {name}" for name, count in sorted(self.states.items()))
        node_daemons = (
            f", {self.node_daemon_kills} of the node daemon" if self.node_daemon_kills else ""
        )
        return (
            f"{self.kills} kills of the controller{node_daemons}, {self.attempts} "
            f"submissions, {len(self.acknowledged)} acknowledged, {self.waited} waited for, "
            f"{self.in_table} in the table ({states}; {self.ran_again} ran again), "
            f"{self.seconds:.0f} s: "
            + (f"{len(self.violations)} VIOLATIONS" if self.violations else "none lost, none twice")
        )


class HasClients(Protocol):
    """A cluster to which clients submit."""

    def client(self) -> Client: ...


class HasWaiters(Protocol):
    """A cluster that commands of their own find. `environment`: by which."""

    @property
    def environment(self) -> dict[str, str]: ...


class CrashingCluster:
    """A cluster whose daemons are killed and started again."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir.resolve()
        conf = run_dir.parent / f"{run_dir.name}.conf"
        conf.write_text(CONF)
        self.cluster = launch.prepare(run_dir, conf, port=0)
        self.started = launch.start_daemons(self.cluster, run_dir)
        self.location = launch.location_of(self.cluster, run_dir)
        self.registry = self.run_dir.parent / "registry"
        locate.register(self.location, str(self.registry))
        try:
            launch.wait_listening(self.started)
            launch.wait_registered(self.cluster, self.started)
        except BaseException:
            launch.stop(self.run_dir, self.started)
            raise

    def client(self) -> Client:
        return Client(lambda: self.location)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "SLURM_CONF": str(self.run_dir / "slurm.conf"),
            "UNDERSTUDY_REGISTRY": str(self.registry),
        }

    def kill(self, name: str) -> None:
        """SIGKILL, and wait until the daemon is no more."""
        child = self.started.children[name]
        if child.poll() is not None:
            raise AssertionError(
                f"{name} ended by itself (exit code {child.returncode}), see "
                f"{self.run_dir / 'logs'}"
            )
        child.send_signal(signal.SIGKILL)
        child.wait()

    def start(self, name: str) -> None:
        """Start the daemon as `understudy up` does; returns at once."""
        with (self.run_dir / "logs" / f"{name}.log").open("ab") as log:
            self.started.children[name] = subprocess.Popen(
                launch.daemon_command(name, self.run_dir),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self.run_dir,
            )

    def await_listening(self, name: str, timeout_s: float = 30.0) -> None:
        """Return when the daemon says that it listens."""
        child = self.started.children[name]
        deadline = time.monotonic() + timeout_s
        while True:
            process = read_pid_file(self.run_dir / f"{name}.pid")
            if process is not None and process.pid == child.pid:
                return
            if child.poll() is not None:
                raise AssertionError(
                    f"{name} ended at its start (exit code {child.returncode}), see "
                    f"{self.run_dir / 'logs'}"
                )
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"{name} does not listen after {timeout_s:.0f} s, see {self.run_dir / 'logs'}"
                )
            time.sleep(0.005)

    def stop(self) -> None:
        launch.stop(self.run_dir, self.started)


class Submitter(threading.Thread):
    """One client. `done` holds what was acknowledged, `attempts` counts the names that were
    used.
    """

    def __init__(
        self,
        cluster: HasClients,
        number: int,
        seed: int,
        stop: threading.Event,
        *,
        longest_run_s: float = LONGEST_RUN_S,
        pause_s: tuple[float, float] = PAUSE_S,
    ) -> None:
        super().__init__(name=f"client{number}", daemon=True)
        self._longest_run_s, self._pause_s = longest_run_s, pause_s
        self._cluster, self._number, self._stop_asked = cluster, number, stop
        self._rng = random.Random(f"{seed} client {number}")
        self.done: list[tuple[int, str]] = []
        self.attempts = 0
        self.refused: list[str] = []

    def run(self) -> None:
        while not self._stop_asked.is_set():
            self.attempts += 1
            name = f"c{self._number}.{self.attempts}"
            size = self._rng.choice((1, 1, 1, 2, 4, CPUS, 3 * CPUS))
            output, errors = io.StringIO(), io.StringIO()
            client = self._cluster.client()
            context = Context(
                "sbatch", client=client, environ={"PATH": "/bin"}, stdout=output, stderr=errors
            )
            script = f"sleep {self._rng.uniform(0.0, self._longest_run_s):.2f}"
            again = ["--no-requeue"] if self._rng.random() < NOT_AGAIN else []
            code = sbatch(
                [
                    "--parsable",
                    f"--job-name={name}",
                    f"--ntasks={size}",
                    "--time=10",
                    *again,
                    f"--wrap={script}",
                ],
                context,
            )
            if code == 0:
                self.done.append((int(output.getvalue()), name))
            else:
                self.refused.append(f"{name}: {errors.getvalue().strip()}")
                return
            client.close()
            self._stop_asked.wait(self._rng.uniform(*self._pause_s))


class Waiter(threading.Thread):
    """Runs one command after another that stays until its job is over; all must end well."""

    COMMANDS: tuple[tuple[str, ...], ...] = (
        ("sbatch", "--wait", "--parsable", "--wrap=sleep 0.5"),
        ("salloc", "--quiet", "--ntasks=5", "sleep", "0.5"),
    )

    def __init__(
        self,
        cluster: HasWaiters,
        stop: threading.Event,
        commands: tuple[tuple[str, ...], ...] = COMMANDS,
        name: str = "w",
    ) -> None:
        super().__init__(name=f"waiter {name}", daemon=True)
        self._cluster, self._stop_asked, self._commands = cluster, stop, commands
        self._job_name = name
        self.done = 0
        self.failed: list[str] = []

    def run(self) -> None:
        environ = {"PATH": "/bin:/usr/bin", **self._cluster.environment}
        for command in itertools.cycle(self._commands):
            if self._stop_asked.is_set():
                return
            program = str(Path(sys.executable).parent / command[0])
            ran = subprocess.run(
                [
                    program,
                    f"--job-name={self._job_name}{self.done}",
                    *command[1:],
                ],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                env=environ,
                check=False,
            )
            if ran.returncode:
                self.failed.append(f"{' '.join(command)}: {ran.stderr or ran.stdout}")
            self.done += 1


def run(
    run_dir: Path,
    *,
    kills: int,
    clients: int,
    seed: int,
    node_daemon_kills: int = 0,
    patience_s: float = 120.0,
    say: Callable[[str], None] = lambda _text: None,
) -> Outcome:
    """Do it all in a run directory of its own."""
    rng = random.Random(f"{seed} kills")
    outcome = Outcome()
    began = time.monotonic()
    with_node_daemon = set(rng.sample(range(kills), min(kills, node_daemon_kills)))
    cluster = CrashingCluster(run_dir)
    try:
        stop = threading.Event()
        submitters = [Submitter(cluster, number, seed, stop) for number in range(clients)]
        waiter = Waiter(cluster, stop)
        for thread in (*submitters, waiter):
            thread.start()
        for number in range(kills):
            if rng.random() < DURING_START and number:
                time.sleep(rng.uniform(*WHILE_STARTING_S))
            else:
                cluster.await_listening("controller")
                time.sleep(rng.uniform(*AFTER_START_S))
            at_once = number in with_node_daemon and rng.random() < AT_ONCE
            cluster.kill("controller")
            outcome.kills += 1
            if at_once:
                cluster.kill("noded0")
                cluster.start("noded0")
                outcome.node_daemon_kills += 1
            cluster.start("controller")
            if at_once:
                cluster.await_listening("noded0")
            elif number in with_node_daemon:
                cluster.await_listening("controller")
                time.sleep(rng.uniform(*AFTER_START_S))
                cluster.kill("noded0")
                time.sleep(rng.uniform(0.0, 0.2))
                cluster.start("noded0")
                cluster.await_listening("noded0")
                outcome.node_daemon_kills += 1
            if (number + 1) % 20 == 0:
                say(
                    f"{number + 1} kills, "
                    f"{sum(len(submitter.done) for submitter in submitters)} jobs acknowledged, "
                    f"{time.monotonic() - began:.0f} s"
                )
        cluster.await_listening("controller")
        stop.set()
        outcome.take(submitters)
        say(f"waiting until all {len(outcome.acknowledged)} jobs have ended")
        await_end(cluster, outcome, patience_s)  # the waiter's is behind them
        waiter.join(2 * MESSAGE_TIMEOUT_S)
        if waiter.is_alive():
            outcome.violations.append("the waiter hangs")
        outcome.waited = waiter.done
        outcome.violations += [f"failed: {text}" for text in waiter.failed]
        check(outcome, await_end(cluster, outcome, patience_s))
        cluster.kill("controller")  # and once more, now that nothing changes
        cluster.start("controller")
        cluster.await_listening("controller")
        check(outcome, cluster.client().query("jobs", COLUMNS).rows)
        for name in ("controller", "noded0", "agent"):
            outcome.look_into_log(cluster.run_dir / "logs" / f"{name}.log")
    finally:
        cluster.stop()
    outcome.seconds = time.monotonic() - began
    return outcome


def await_end(cluster: HasClients, outcome: Outcome, patience_s: float) -> list[list[int | str]]:
    """The table of jobs when all have ended; those that have not when none has ended for so long
    are violations. How many wait in the end depends on how fast the machine takes them.
    """
    client = cluster.client()
    fewest, deadline = inf, 0.0
    while True:
        rows = client.query("jobs", COLUMNS).rows
        left = [row for row in rows if row[2] < JobState.COMPLETED or row[3]]
        if not left:
            return rows
        if len(left) < fewest:
            fewest, deadline = len(left), time.monotonic() + patience_s
        elif time.monotonic() > deadline:
            outcome.violations += [
                f"job {row[0]} ({row[1]}) has not ended: state {row[2]}, flags {row[3]:#x}"
                for row in left[:10]
            ]
            outcome.violations.append(
                f"{len(left)} jobs have not ended, and none of them in {patience_s:.0f} s"
            )
            return rows
        time.sleep(0.1)


def check(outcome: Outcome, rows: list[list[int | str]]) -> None:
    name_of = {row[0]: row[1] for row in rows}
    outcome.in_table, outcome.ran_again = len(rows), sum(row[4] > 0 for row in rows)
    outcome.states = Counter(JobState(int(row[2])).name for row in rows)
    violations = outcome.violations
    times_named = Counter(str(row[1]) for row in rows)
    violations += [
        f"{name} is there {count} times" for name, count in times_named.items() if count > 1
    ]
    given = Counter(job_id for job_id, _ in outcome.acknowledged)
    violations += [
        f"id {job_id} was given {count} times" for job_id, count in given.items() if count > 1
    ]
    for job_id, name in outcome.acknowledged:
        if job_id not in name_of:
            violations.append(f"job {job_id} ({name}) was acknowledged and is lost")
        elif name_of[job_id] != name:
            violations.append(f"job {job_id} was acknowledged as {name} and is {name_of[job_id]}")
    expected = {JobState.COMPLETED} | ({JobState.NODE_FAIL} if outcome.node_daemon_kills else set())
    violations += [
        f"job {row[0]} ({row[1]}) ended as {JobState(int(row[2])).name}"
        for row in rows
        if JobState.COMPLETED <= row[2] not in expected
    ]
    if not outcome.node_daemon_kills:
        violations += [
            f"job {row[0]} ({row[1]}) ran {int(row[4]) + 1} times" for row in rows if row[4]
        ]


def main() -> int:
    """The script."""
    parser = argparse.ArgumentParser(
        description="Kill the controller while clients submit; no acknowledged job may be lost "
        "or be "
        "there twice."
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--node-daemon-kills",
        type=int,
        default=0,
        help="kill the node daemon as well, after so many of the kills",
    )
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="understudy-crash-"))
    outcome = run(
        folder / "run",
        kills=arguments.kills,
        clients=arguments.clients,
        seed=arguments.seed,
        node_daemon_kills=arguments.node_daemon_kills,
        say=lambda text: print(text, flush=True),
    )
    for violation in outcome.violations[:20]:
        print(f"VIOLATION: {violation}", file=sys.stderr)
    print(outcome)
    if outcome.violations:
        print(f"What is left of the cluster: {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
