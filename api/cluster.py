"""A cluster that lives as long as a block of Python, or as somebody wants it.

Place: of the API; over tool/cluster, as `understudy up` is. All that is done here blocks and uses
no event loop of this process, so it can be done in any thread, and where a loop runs (which then
waits: `asyncio.to_thread` keeps it going).

The daemons are processes of their own. Beside them one waits at a pipe to this process
(tool/cluster/if_killed.py): whatever becomes of it, they end with it. The cluster is registered in
its run directory alone, so it is nobody's "last cluster that was started".
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
import time as clock_time
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from understudy.api.clock import Clock
from understudy.api.errors import UnderstudyError, in_our_words, several
from understudy.api.records import JOB_COLUMNS, NODE_COLUMNS, Job, Node

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from understudy.commands.shared.client import Client
    from understudy.commands.shared.locate import Location
    from understudy.tool.cluster.launch import Started

_LOG_LINES: Final = 20
_POLL_S: Final = (0.005, 0.25)  # ours: between two looks at a job, at first and at last
_PATIENCE_S: Final = 20.0  # ours: until another command has let go of the run directory
_HELD: Final = "held"  # the file on which who has the cluster holds a lock
_LAST_PORT: Final = 65535
_NAMES: Final = "n[1-4]"  # in ci.conf


class Cluster:
    """A cluster of daemons, commands and nodes.

    with understudy.Cluster(nodes=8) as cluster:
        job = cluster.submit("sleep 10", "-N", "2")
        print(cluster.run("squeue").stdout)
        assert cluster.wait(job).state == "COMPLETED"
    """

    def __init__(
        self,
        conf: str | os.PathLike[str] | None = None,
        nodes: int | None = None,
        time: str = "real",
        executor: Literal["emulated", "real"] = "emulated",
        run_dir: str | os.PathLike[str] | None = None,
        *,
        settings: Sequence[str] = (),
        noded: int = 1,
        port: int | None = None,
    ) -> None:
        """Describe it; nothing is started or written yet.

        Args:
            conf: a slurm.conf, its companions beside it. None: four nodes of four CPUs, and a
                scheduler that does not pause (api/ci.conf).
            nodes: how many nodes there are, n1 and so on, where `conf` does not say it.
            time: `real`; `scaled:60`, sixty times as fast; `virtual`, as fast as possible.
            executor: `emulated`: jobs take nodes and time, and their scripts do not run; `real`:
                they run, as processes of this user.
            run_dir: where logs and state are, made if absent, and staying. None: a temporary
                folder, which goes with the cluster.
            settings: changes to the configuration, as of `understudy replay --set`: `KEY=VALUE`,
                `KEY+=WORD`, `PartitionName=debug MaxTime=60`.
            noded: how many node daemons share the nodes.
            port: of the controller on 127.0.0.1, 0 for any that is free; None: the cluster listens
                on Unix sockets alone, whatever slurm.conf says.
        """
        self._conf = None if conf is None else Path(conf)
        self._nodes, self._time, self._executor = nodes, time, executor
        self._wanted_dir = None if run_dir is None else Path(run_dir)
        self._settings, self._noded, self._port = several("settings", settings), noded, port
        self._run_dir: Path | None = None
        self._started: Started | None = None
        self._location: Location | None = None
        self._owner = 0  # the process that started it
        self._clock: Clock | None = None
        self._exit = contextlib.ExitStack()

    # --- its life ---------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        where = f"in {self._run_dir}" if self._started is not None else "not started"
        return f"<understudy.Cluster {self._time} time, {self._executor} jobs, {where}>"

    def start(self) -> Self:
        """Start the daemons; its nodes are idle when this returns.

        Raises:
            UnderstudyError: it does not come up, and nothing of it is left running.
        """
        if self._started is not None:
            raise UnderstudyError(f"the cluster in {self._run_dir} has been started already")
        with contextlib.ExitStack() as stack, in_our_words():
            self._begin(stack)
            self._exit = stack.pop_all()
        # also of a cluster that nobody stops, as in a notebook
        atexit.register(self.stop)
        return self

    def stop(self) -> None:
        """End the daemons and all jobs that really run; the run directory goes, unless it was
        named. A second call does nothing, and so does one in a process that was forked.
        """
        if self._started is None or self._owner != os.getpid():
            return
        atexit.unregister(self.stop)
        self._exit.close()

    def _begin(self, stack: contextlib.ExitStack) -> None:
        from understudy.tool.cluster import launch
        from understudy.tool.cluster.if_killed import ended_if_killed
        from understudy.tool.cluster.run_dir import LaunchError, clear_stale, exclusive
        from understudy.tool.cluster.start import parse_time, start
        from understudy.tool.cluster.surroundings import make_commands, registry_of

        if self._executor not in ("emulated", "real"):
            raise LaunchError(f"executor {self._executor}: emulated or real")
        if self._port is not None and not 0 <= self._port <= _LAST_PORT:
            raise LaunchError(f"port={self._port}: 0 to {_LAST_PORT}")
        if self._noded < 1:
            raise LaunchError(f"noded={self._noded}: at least one")
        mode, rate = parse_time(self._time)
        is_temporary = self._wanted_dir is None
        run_dir = self._make_run_dir(stack)
        with exclusive(run_dir):
            clear_stale(run_dir)
            make_commands(run_dir)  # what keeps them off the PATH is better said now
            lock = stack.enter_context(_held(run_dir))
            stack.enter_context(ended_if_killed(run_dir, lock, remove=is_temporary))
            prepare = partial(
                launch.prepare,
                run_dir,
                self._made_conf(run_dir / "source"),
                time=mode,
                rate=rate,
                executor=self._executor,
                noded=self._noded,
                tcp="never",
                port=self._port,
            )
            cluster, self._started = start(run_dir, prepare, str(registry_of(run_dir)))
        self._run_dir, self._owner = run_dir, os.getpid()
        self._location = launch.location_of(cluster, run_dir)
        self._clock = Clock(lambda: self._where, cluster.zero or cluster.epoch)
        stack.callback(self._end)

    def _make_run_dir(self, stack: contextlib.ExitStack) -> Path:
        if self._wanted_dir is not None:
            return self._wanted_dir.resolve()
        run_dir = Path(tempfile.mkdtemp(prefix="understudy-")).resolve()
        stack.callback(shutil.rmtree, run_dir, ignore_errors=True)
        return run_dir

    def _made_conf(self, folder: Path) -> Path:
        """The file to start with."""
        from understudy.tool.cluster.run_dir import LaunchError
        from understudy.tool.replay.conf import edits_of, made_conf, site_conf

        edits = edits_of(self._settings)
        if self._conf is None:
            count = 4 if self._nodes is None else self._nodes
            if count < 1:
                raise LaunchError(f"nodes={count}: at least one")
            text = (files("understudy.api") / "ci.conf").read_text(encoding="utf-8")
            names = f"n[1-{count}]" if count > 1 else "n1"
            return made_conf(text.replace(_NAMES, names), folder, edits).path
        if self._nodes is not None:
            raise LaunchError(
                f"nodes={self._nodes} goes without conf=: {self._conf} says which nodes there are"
            )
        if not edits:
            return self._conf
        return site_conf(self._conf, folder, edits).path

    def _end(self) -> None:
        from understudy.tool.cluster import launch
        from understudy.tool.cluster.run_dir import LaunchError, exclusive
        from understudy.tool.cluster.surroundings import registry_of

        with contextlib.ExitStack() as stack:
            with contextlib.suppress(LaunchError, OSError):  # else who has it is ending it, too
                stack.enter_context(exclusive(self.run_dir, _PATIENCE_S))
            try:
                launch.stop(self.run_dir, self._started)
            except KeyboardInterrupt:  # somebody is in a hurry, but they would be left
                launch.stop(self.run_dir, self._started)
                raise
        shutil.rmtree(registry_of(self.run_dir), ignore_errors=True)
        self._started = self._location = self._clock = None

    # --- what it is -------------------------------------------------------------------------------

    @property
    def run_dir(self) -> Path:
        """Logs, state and sockets."""
        if self._run_dir is None:
            raise UnderstudyError("the cluster has not been started")
        return self._run_dir

    @property
    def conf(self) -> Path:
        """The slurm.conf in use, which SLURM_CONF names for who is to speak to it."""
        return self.run_dir / "slurm.conf"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of this process, changed for programs that are to speak to this cluster:
        PATH, SLURM_CONF, UNDERSTUDY_REGISTRY, and nothing of a job in which this process may run.
        """
        from understudy.tool.cluster.surroundings import surroundings

        with in_our_words():
            return surroundings(Path(self._where.run_dir), os.environ)

    @property
    def clock(self) -> Clock:
        """Its time."""
        if self._clock is None:
            raise UnderstudyError("the cluster does not run")
        return self._clock

    @property
    def _where(self) -> Location:
        if self._location is None:
            raise UnderstudyError("the cluster does not run")
        return self._location

    def log(self, daemon: str = "controller", lines: int = _LOG_LINES) -> str:
        """The last lines of a daemon's log (`controller`, `noded0`, `clock` ...)."""
        path = self.run_dir / "logs" / f"{daemon}.log"
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise UnderstudyError(f"{path}: {error.strerror}") from None
        return "\n".join(text.splitlines()[-lines:])

    def logs(self) -> list[str]:
        """The daemons that have a log."""
        return sorted(path.stem for path in (self.run_dir / "logs").glob("*.log"))

    # --- what is done with it ---------------------------------------------------------------------

    def run(
        self,
        *words: str | os.PathLike[str],
        input: str | None = None,  # noqa: A002  as of subprocess.run
        check: bool = False,
        timeout_s: float | None = 60.0,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Type a command: `cluster.run("squeue", "-h")`. Any program can be run so.

        Args:
            words: the command and its arguments, one by one.
            input: what it reads; None: nothing.
            check: whether an exit code other than 0 raises.
            timeout_s: real seconds after which it is killed; None: never.
            cwd: where it runs; None: here.
            env: further variables.

        Raises:
            UnderstudyError: there is no such program; or, with `check`, it failed.
            TimeoutError: it took longer.
        """
        typed = [os.fspath(word) for word in words]
        shown = " ".join(typed)
        environment = {**self.environment, **(env or {})}
        program = shutil.which(typed[0], path=environment["PATH"]) if typed else None
        if program is None:
            raise UnderstudyError(f"{shown or 'run()'}: no such command")
        try:
            done = subprocess.run(
                [program, *typed[1:]],
                input="" if input is None else input,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                cwd=cwd,
                env=environment,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{shown}: killed after {timeout_s:g} s") from None
        if check and done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise UnderstudyError(f"{shown}: exit code {done.returncode}: {said}")
        return done

    def submit(
        self,
        script: str | os.PathLike[str],
        *options: str,
        cwd: str | os.PathLike[str] | None = None,
    ) -> int:
        """Submit a batch job with `sbatch`; its number.

        Args:
            script: the text of a script, if it begins with `#!`; a command line, as of `--wrap`; or
                a path object, of a script's file.
            options: of sbatch: `"-N", "2", "--time=10"`.
            cwd: where it is submitted from, and so its working directory; None: here.

        Raises:
            UnderstudyError: it was refused; with sbatch's words.
        """
        words = ["sbatch", "--parsable", *options]
        if not isinstance(script, str):
            done = self.run(*words, script, check=True, cwd=cwd)
        elif script.startswith("#!"):
            done = self.run(*words, input=script, check=True, cwd=cwd)
        else:
            done = self.run(*words, "--wrap", script, check=True, cwd=cwd)
        return int(done.stdout.strip().partition(";")[0])

    def wait(self, job: int, timeout_s: float | None = 60.0) -> Job:
        """Wait until a job is over and its nodes are free. Of an array all tasks are waited for; of
        several the first that did not complete is returned, else the last.

        Args:
            job: its number.
            timeout_s: real seconds; None: as long as it takes.

        Raises:
            UnderstudyError: there is no such job; or it waits and time stands still.
            TimeoutError: it is not over by then; the text has its state.
        """
        pause, longest = _POLL_S
        deadline = None if timeout_s is None else clock_time.monotonic() + timeout_s
        still = ""
        while True:
            found = self._with_number(job)
            if not found:
                raise UnderstudyError(f"there is no job {job}, or it is forgotten (MinJobAge)")
            rest = [each for each in found if not each.is_over]
            if not rest:
                return next((each for each in found if each.state != "COMPLETED"), found[-1])
            what = f"job {job} is {rest[0].state}"
            what += f" ({rest[0].reason})" if rest[0].reason else ""
            if deadline is not None and clock_time.monotonic() >= deadline:
                raise TimeoutError(f"waited {timeout_s:g} s, and {what}")
            # looked at twice: what was asked for may just be on its way
            state = self.clock.state if self._where.clock else "running"
            if state == still and state != "running":
                raise UnderstudyError(f"{what}, and time is {state}: see `Cluster.clock`")
            still = state
            clock_time.sleep(pause)
            pause = min(pause * 1.5, longest)

    def job(self, job: int) -> Job:
        """One job.

        Raises:
            UnderstudyError: there is no such job, or it is forgotten (MinJobAge).
        """
        for each in self._with_number(job):
            if each.id == job:
                return each
        raise UnderstudyError(f"there is no job {job}, or it is forgotten (MinJobAge)")

    def jobs(self) -> list[Job]:
        """All jobs that the controller knows, in the order of their numbers: those that are over
        for MinJobAge.
        """
        return self._jobs({})

    def nodes(self) -> list[Node]:
        """All nodes, in the order of slurm.conf."""
        with self._asking() as client:
            return [Node.of(row) for row in client.query("nodes", NODE_COLUMNS).dicts()]

    def _with_number(self, job: int) -> list[Job]:
        found = self._jobs({"job_id": [job]}) + self._jobs({"array_job_id": [job]})
        once = {each.id: each for each in found}.values()
        # the last task of an array has the array's own number
        return sorted(once, key=lambda each: -1 if each.array_task is None else each.array_task)

    def _jobs(self, where: dict[str, list[Any]]) -> list[Job]:
        with self._asking() as client:
            rows = client.query("jobs", JOB_COLUMNS, where).dicts()
        return sorted((Job.of(row) for row in rows), key=lambda job: job.id)

    @contextlib.contextmanager
    def _asking(self) -> Iterator[Client]:
        from understudy.commands.shared.client import Client

        location = self._where
        with in_our_words(), contextlib.closing(Client(lambda: location)) as client:
            yield client


@contextlib.contextmanager
def _held(run_dir: Path) -> Iterator[int]:
    """A lock that says that somebody in Python has the cluster; its descriptor.

    Raises:
        LaunchError: somebody has, or has been killed and what he had is just being ended.
    """
    from understudy.tool.cluster.run_dir import LaunchError

    with (run_dir / _HELD).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LaunchError(f"another program in Python has the cluster in {run_dir}") from None
        yield file.fileno()
