"""The real executor: batch scripts as child processes, as the user, with Slurm's environment,
output files, signals and exit codes. Real time only.

Place: an executor of the node daemon (see executor.py). Each script has a small process of its own
between the daemon and itself (`stepd.py`), whose end the event loop sees through a pidfd: no thread
and no task a job. A script outlives a daemon that is killed; the next one adopts it by what is in
the spool directory. The prolog runs before a script, the epilog when nothing of the job is left on
a node, for each node. Follows: sbatch(1), slurm.conf(5) KillWait, Prolog, Epilog, TaskProlog,
TaskEpilog.

SPOOL/
    stepd.JOB.RESTART  pid and start time of the process in between
    jobNNNNN/          the user's own:
        slurm_script   the script
        pid            its pid
        exit           how it has ended, see stepd.py

What stands in the user's directory is not believed further than the user's own job goes: a pid
counts only while its process is below the one in between, which the daemon itself has begun for the
job.
"""

from __future__ import annotations

import asyncio
import contextlib
import marshal
import os
import pwd
import select
import shutil
import signal
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from understudy.model.byte_texts import restored
from understudy.model.environment import PROGRAM_HOST, read, told
from understudy.model.hostlist import expand
from understudy.noded import family
from understudy.noded.environment import batch_environment, limits_of, umask_of, wants_login
from understudy.noded.forker import Forker
from understudy.noded.groups import groups_of
from understudy.noded.output_files import Names, output_path
from understudy.noded.programs import Programs
from understudy.noded.prologs import Prologs
from understudy.noded.settings import KILL_JOB, NodeSettings
from understudy.noded.usage import MemoryWatch, Watched, sample
from understudy.protocol import endings

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable

    from understudy.noded.core import Key, NodeJob
    from understudy.noded.executor import OnEnded, OnEpilogEnded
    from understudy.protocol.messages import LaunchBatch

LAUNCH_FAILED: Final = 53  # reported as a signal, as Slurm does
_STOP_S: Final = 5.0  # ours: for processes to end before they are left behind


@dataclass(slots=True)
class _Script:
    """A script that runs, or is about to."""

    launch: LaunchBatch
    spool: Path
    stepd: int  # pid
    pidfd: int
    pipe: int  # on which it speaks; -1: adopted, the child of an earlier daemon
    script: int = 0  # pid; 0: not known yet
    # signals that came before the pid
    waiting: list[tuple[int, bool]] = field(default_factory=list)
    killer: asyncio.TimerHandle | None = None
    said: bytes = b""
    is_killed: bool = False
    why: str = ""  # it is ended
    memory: Watched | None = None
    notices: int = 0
    fault: str = ""
    oom_kills: int = 0
    ended: str = ""  # how, where there was no room for the file that says it


class RealExecutor:
    """Runs scripts. `spool` is the daemon's; `conf` the path that scripts find in SLURM_CONF;
    `controller` its HOST:PORT.
    """

    def __init__(
        self,
        spool: Path,
        on_ended: OnEnded,
        log: logging.Logger,
        *,
        conf: str,
        settings: NodeSettings,
        controller: str = "",
        forker: Forker | None = None,
    ) -> None:
        self._forker = forker or Forker()
        self._spool, self._on_ended, self._log = spool, on_ended, log
        self._conf, self._settings, self._controller = conf, settings, controller
        self._loop = asyncio.get_running_loop()
        self._scripts: dict[Key, _Script] = {}
        self._in_prolog: dict[Key, bool] = {}  # whether the job is to be ended
        self.programs = Programs(log)
        self.prologs = Prologs(spool, self.programs, settings, self._program_environment)
        self.memory = MemoryWatch(settings.gather_s, enforces=bool(settings.over_memory))
        self._host = socket.gethostname().partition(".")[0]
        spool.mkdir(parents=True, exist_ok=True)
        spool.chmod(0o755)  # users run their scripts from there

    def reconfigure(self, settings: NodeSettings) -> None:
        """Other settings hold for what begins from now on."""
        self._settings = settings
        self.prologs.reconfigure(settings)
        self.memory.reconfigure(settings.gather_s, enforces=bool(settings.over_memory))

    # --- the executor's interface -----------------------------------------------------------------

    def start(self, launch: LaunchBatch) -> None:
        if not self.has_prolog:
            self._start(launch)
            return
        key = launch.job_id, launch.restart
        node = expand(launch.nodes)[0]
        self._in_prolog[key] = False

        def ended(failed: dict[str, int]) -> None:
            if self._in_prolog.pop(key):
                self._on_ended(key, 0, signal.SIGTERM, timed_out=False)
            elif not failed:
                self._start(launch)
            elif self._settings.begins_early:
                self._on_ended(key, 0, 0, timed_out=False, fault=endings.PROLOG)
            else:
                self._start(launch, f"Error running slurm prolog: {failed[node]}")

        self.prologs.run(key, [node], launch.program_environment, ended)

    @property
    def has_prolog(self) -> bool:
        return bool(self._settings.prolog)

    def run_prolog(
        self,
        key: Key,
        nodes: str,
        program_environment: list[str],
        done: Callable[[dict[str, int]], None],
    ) -> None:
        self.prologs.run(key, expand(nodes), program_environment, done)

    def _start(self, launch: LaunchBatch, refusal: str = "", *, is_new: bool = True) -> None:
        """Run the script, or, with a refusal, write that where its errors would go. `is_new`: there
        is nobody who can have begun it.
        """
        key = launch.job_id, launch.restart
        try:
            if is_new:
                self._stepd_file(key).unlink(missing_ok=True)
            spool, user = self._prepare(launch)
            pid, pipe = self._spawn(launch, spool, user, refusal)
        except (OSError, KeyError, ValueError) as error:
            self._log.error("job %d could not be launched: %s", launch.job_id, error)
            self._loop.call_soon(lambda: self._on_ended(key, 0, LAUNCH_FAILED, timed_out=False))
            return
        script = _Script(
            launch, spool, pid, os.pidfd_open(pid), pipe, fault=endings.PROLOG if refusal else ""
        )
        self._scripts[key] = script
        os.set_blocking(pipe, False)
        self._loop.add_reader(pipe, self._hear, key, pipe)
        self._loop.add_reader(script.pidfd, self._stepd_ended, key)
        self._watch_memory(key, script)

    def adopt(self, launch: LaunchBatch) -> None:
        """Look after a script that an earlier daemon started; its end is reported even if it was
        long ago.
        """
        key = launch.job_id, launch.restart
        spool = self._job_dir(key)
        if self.has_prolog and not spool.exists():  # it waited for its prolog
            self.start(launch)
            return
        if not (self._stepd_file(key).exists() or (spool / "exit").exists()):
            self._start(launch, is_new=False)  # the daemon was killed before it could begin
            return
        pid = 0 if (spool / "exit").exists() else self._claimant(key)
        script = _Script(launch, spool, pid, -1, -1, self._read_pid(spool))
        self._scripts[key] = script
        if pid:
            with contextlib.suppress(ProcessLookupError):
                script.pidfd = os.pidfd_open(pid)
        if script.pidfd >= 0:
            self._loop.add_reader(script.pidfd, self._stepd_ended, key)
            self._watch_memory(key, script)
        else:
            self._loop.call_soon(self._stepd_ended, key)

    def signal(self, key: Key, number: int, *, batch_only: bool) -> None:
        script = self._scripts.get(key)
        if script is None:
            return
        if not script.script:
            script.script = self._read_pid(script.spool)
        if not script.script:
            script.waiting.append((number, batch_only))
        else:
            self._send(script, number, batch_only=batch_only)

    def notify(self, key: Key, text: str) -> None:
        script = self._scripts.get(key)
        if script is None:
            return
        # The descriptor's place in the file is shared with the script, so it is for the process
        # that has it to write.
        script.notices += 1
        path = script.spool / f"notice.{script.notices:04d}"
        with contextlib.suppress(OSError):
            with open(
                os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644),
                "w",
                encoding="utf-8",
            ) as file:
                file.write(text)
            os.kill(script.stepd, signal.SIGHUP)

    def statistics(self, key: Key) -> list[list[object]]:
        """The script and what it has started, as one task."""
        script = self._scripts.get(key)
        if script is None or script.stepd <= 1:
            return []
        watched = script.memory or Watched(script.stepd)
        sample(watched)
        pids = ",".join(map(str, sorted(self._family(script), reverse=True)))
        return [
            [0, expand(script.launch.nodes)[0], pids, *task.most] for task in watched.tasks.values()
        ][:1]

    def _family(self, script: _Script) -> list[int]:
        """The script and all that it has started. The process above them cannot have another's
        number: we would have seen its end.
        """
        return family.below(script.stepd) if script.stepd > 1 and script.pidfd >= 0 else []

    def _send(self, script: _Script, number: int, *, batch_only: bool = False) -> None:
        """The one door for signals to a script."""
        if number == signal.SIGKILL and not batch_only:
            if script.stepd > 1 and script.pidfd >= 0:
                family.send(script.stepd, number)
            return
        for pid in self._family(script):
            if not batch_only or pid == script.script:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)

    def kill(self, key: Key, why: str = "") -> None:
        if key in self._in_prolog:
            self._in_prolog[key] = True
            return
        script = self._scripts.get(key)
        if script is None or script.is_killed:
            return
        script.is_killed, script.why = True, why
        if not script.stepd:
            return  # adopted when it was over: its end is about to be reported
        if script.script:
            self._end_gently(key, script)
        elif script.pipe < 0:  # adopted: there is no pipe on which its pid could come
            self._kill_when_begun(key)
        # else: as soon as its pid is known, in `_begun`
        if not script.script:
            self._loop.call_later(self._settings.kill_wait_s, self._end_unbegun, key)

    def run_epilog(self, job: NodeJob, nodes: str, delay_s: float, done: OnEpilogEnded) -> None:
        self.prologs.when_quiet(job.key, lambda: self._run_epilog(job, nodes, delay_s, done))

    def _run_epilog(self, job: NodeJob, nodes: str, delay_s: float, done: OnEpilogEnded) -> None:
        if not self._settings.epilog:
            self._loop.call_later(delay_s, done, job, nodes)
            return
        waiting, failed = expand(nodes), list[str]()
        count = len(waiting)
        for node in waiting:

            def ended(code: int, node: str = node) -> None:
                nonlocal count
                count -= 1
                if code:
                    failed.append(node)
                if not count:
                    self._loop.call_later(delay_s, done, job, nodes, ",".join(failed))

            variables = self._program_environment(job.program_environment, node, "epilog_slurmd")
            lane = node if self._settings.is_serial else ""
            self.programs.run(
                self._settings.epilog,
                variables,
                ended,
                limit_s=self._settings.program_limit_s,
                lane=lane,
            )

    def forget(self, key: Key) -> None:
        self._stepd_file(key).unlink(missing_ok=True)
        self.prologs.forget(key)
        _remove(self._job_dir(key))

    def close(self) -> None:
        """End all jobs by force: the cluster goes down."""
        running = [script for script in self._scripts.values() if script.pidfd >= 0]
        for script in running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(script.stepd, signal.SIGTERM)
        until = time.monotonic() + _STOP_S
        for script in running:
            if not select.select([script.pidfd], [], [], max(until - time.monotonic(), 0))[0]:
                self._send(script, signal.SIGKILL)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(script.stepd, signal.SIGKILL)
            self._watch_no_more(script)
        self._scripts.clear()
        self.memory.close()
        self._forker.close()
        self.programs.close()

    # --- starting ---------------------------------------------------------------------------------

    def _job_dir(self, key: Key) -> Path:
        return self._spool / (f"job{key[0]:05d}" if key[1] == 0 else f"job{key[0]:05d}.{key[1]}")

    def _stepd_file(self, key: Key) -> Path:
        return self._spool / f"stepd.{key[0]}.{key[1]}"

    def _claimant(self, key: Key) -> int:
        """Who stands before the script and lives; 0: nobody."""
        with contextlib.suppress(OSError, ValueError):
            number, started = self._stepd_file(key).read_text().split()
            if start_time(int(number)) == started:
                return int(number)
        return 0

    def _prepare(self, launch: LaunchBatch) -> tuple[Path, pwd.struct_passwd]:
        user = pwd.getpwuid(launch.user_id)
        if os.geteuid() not in (0, launch.user_id):
            raise PermissionError(
                f"this daemon runs as user {os.geteuid()} and cannot run jobs of user "
                f"{launch.user_id}"
            )
        spool = self._job_dir((launch.job_id, launch.restart))
        try:
            spool.mkdir(mode=0o750)
        except FileExistsError:
            _remove(spool)
            spool.mkdir(mode=0o750)
        path = str(spool / "slurm_script")
        with open(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700),
            "w",
            encoding="utf-8",
            errors="surrogateescape",
            newline="",
        ) as file:
            os.fchmod(file.fileno(), 0o700)
            file.write(restored(launch.script))
            if os.geteuid() == 0:
                os.fchown(file.fileno(), launch.user_id, launch.group_id)
                os.chown(spool, launch.user_id, launch.group_id)
        return spool, user

    def _spawn(
        self, launch: LaunchBatch, spool: Path, user: pwd.struct_passwd, refusal: str
    ) -> tuple[int, int]:
        """The pid of the process in between, and the pipe on which it speaks."""
        spec = launch.spec
        node = expand(launch.nodes)[0]
        work_dir = (spec.work_dir if spec is not None else "") or user.pw_dir
        std_in, std_out, std_err = _paths(launch, user.pw_name, self._host, work_dir)
        environment = batch_environment(
            launch,
            node=node,
            conf=self._conf,
            controller=self._controller,
            address=self._settings.topology_address(node),
        )
        settings = self._settings
        order = {
            "spool": str(spool),
            "claim": str(self._stepd_file((launch.job_id, launch.restart))),
            "node": node,
            "job": launch.job_id,
            "user": user.pw_name,
            "uid": launch.user_id,
            "gid": launch.group_id,
            "groups": groups_of(launch.user_id, launch.group_id),
            "shell": user.pw_shell,
            "umask": umask_of(launch),
            "append": spec is not None and spec.open_mode.startswith("a"),
            "work_dir": work_dir,
            "std_in": std_in,
            "std_out": std_out,
            "std_err": std_err,
            "script": str(spool / "slurm_script"),
            "refusal": refusal,
            "arguments": list(spec.arguments) if spec is not None else [],
            "environment": environment,
            "limits": limits_of(launch, settings.propagated),
            "wants_login": wants_login(launch),
            "login_limit_s": settings.login_limit_s,
            "task_prolog": settings.task_prolog,
            "task_epilog": settings.task_epilog,
        }
        heard, says = os.pipe()
        with os.fdopen(os.memfd_create("order"), "wb") as file:
            marshal.dump(restored(order), file)
            file.flush()
            file.seek(0)
            try:
                return self._forker.fork("stepd", [file.fileno(), says]), heard
            except OSError:
                os.close(heard)
                raise
            finally:
                os.close(says)

    def _hear(self, key: Key, descriptor: int) -> None:
        """Something on the pipe from stepd: the script's pid, or what went wrong."""
        script = self._scripts.get(key)
        try:
            data = os.read(descriptor, 65536)
        except BlockingIOError:
            return
        if not data or script is None:
            self._loop.remove_reader(descriptor)
            return
        *lines, script.said = (script.said + data).split(b"\n")
        for line in lines:
            word, _, text = line.decode(errors="replace").partition(" ")
            if word == "pid":
                self._begun(key, script, int(text))
            elif word == "left":
                self._send(script, signal.SIGKILL)
            elif word == "exit":
                script.ended = text
            else:
                self._log.error("job %d: %s", key[0], text)

    def _begun(self, key: Key, script: _Script, pid: int) -> None:
        script.script = pid
        for number, batch_only in script.waiting:
            self.signal(key, number, batch_only=batch_only)
        script.waiting.clear()
        if script.is_killed:
            self._end_gently(key, script)

    def _kill_when_begun(self, key: Key) -> None:
        script = self._scripts.get(key)
        if script is None:
            return
        script.script = self._read_pid(script.spool)
        if script.script:
            self._end_gently(key, script)
        else:
            self._loop.call_later(0.05, self._kill_when_begun, key)

    def _read_pid(self, spool: Path) -> int:
        with contextlib.suppress(OSError, ValueError):
            return int((spool / "pid").read_text())
        return 0

    # --- ending -----------------------------------------------------------------------------------

    def _end_gently(self, key: Key, script: _Script) -> None:
        """A word in the job's stderr, SIGCONT and SIGTERM; SIGKILL after KillWait."""
        spec = script.launch.spec
        limit_s = spec.time_limit_s if spec is not None else None
        is_over_limit = (
            limit_s is not None
            and limit_s > 0
            and time.time() >= script.launch.start_time + limit_s
        )
        if script.why:
            node, when = expand(script.launch.nodes)[0], time.strftime("%Y-%m-%dT%H:%M:%S")
            self.notify(
                key, f"*** JOB {key[0]} ON {node} CANCELLED AT {when} DUE TO {script.why} ***"
            )
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(script.stepd, signal.SIGUSR2 if is_over_limit else signal.SIGUSR1)
        self.signal(key, signal.SIGCONT, batch_only=False)
        self.signal(key, signal.SIGTERM, batch_only=False)
        script.killer = self._loop.call_later(self._settings.kill_wait_s, self._end_by_force, key)

    def _end_unbegun(self, key: Key) -> None:
        """What stands before the script does not come to an end, as where its output is a pipe that
        nobody reads.
        """
        script = self._scripts.get(key)
        if script is not None and not script.script and script.stepd > 1 and script.pidfd >= 0:
            family.send(script.stepd, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(script.stepd, signal.SIGKILL)

    def _end_by_force(self, key: Key) -> None:
        script = self._scripts.get(key)
        if script is not None:
            script.killer = self._loop.call_later(
                self._settings.kill_wait_s, self._end_by_force, key
            )
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(script.stepd, signal.SIGCONT)
            self.signal(key, signal.SIGKILL, batch_only=False)

    def _stepd_ended(self, key: Key) -> None:
        script = self._scripts.get(key)
        if script is None:
            return
        if not (script.spool / "exit").exists() and script.pipe >= 0:
            self._hear(key, script.pipe)  # its last word may still be there
        del self._scripts[key]
        self._watch_no_more(script)
        if not (script.ended or (script.spool / "exit").exists()) and self._claimant(key):
            self.adopt(script.launch)  # another has begun it, for the daemon before this one
            return
        usage: dict[str, int] = {}
        try:
            code, number, *used = map(
                int, (script.ended or (script.spool / "exit").read_text()).split()
            )
            usage = self._usage(script, used)
        except (OSError, ValueError):  # stepd itself was killed, or the host went down
            code, number = 0, signal.SIGKILL
            launch = script.launch
            mark = (
                f"SLURM_JOB_ID={launch.job_id}\0SLURM_CONF={self._conf}\0SLURMD_NODENAME="
                f"{expand(launch.nodes)[0]}"
            )
            family.end_strays(mark.encode(), script.stepd)
        self._on_ended(key, code, int(number), timed_out=False, usage=usage, fault=script.fault)

    def _usage(self, script: _Script, used: list[int]) -> dict[str, int]:
        found = dict(zip(("user_cpu_us", "system_cpu_us"), used, strict=False))
        return found if script.memory is None else found | script.memory.usage()

    def _watch_no_more(self, script: _Script) -> None:
        if script.memory is not None:
            self.memory.remove(script.memory)
        if script.killer is not None:
            script.killer.cancel()
        if script.pipe >= 0:
            self._loop.remove_reader(script.pipe)
            os.close(script.pipe)
            script.pipe = -1
        if script.pidfd >= 0:
            self._loop.remove_reader(script.pidfd)
            os.close(script.pidfd)
            script.pidfd = -1

    def _program_environment(self, of_job: list[str], node: str, context: str) -> dict[str, str]:
        return {
            **read(of_job),
            # where our commands are
            "PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
            **told(PROGRAM_HOST, {"conf": self._conf, "node": node, "context": context}),
        }

    # --- memory -----------------------------------------------------------------------------------

    def _watch_memory(self, key: Key, script: _Script) -> None:
        limit = script.launch.memory_mb << 20
        script.memory = Watched(
            script.stepd, limit, lambda used, largest: self._over_memory(key, script, used, largest)
        )
        self.memory.add(script.memory)

    def _over_memory(self, key: Key, script: _Script, used: int, largest: int) -> None:
        assert script.memory is not None
        if self._settings.over_memory == KILL_JOB:
            self.memory.remove(script.memory)
            script.fault = endings.KILLED
            self.notify(
                key,
                f"StepId={key[0]}.batch exceeded memory limit ({used} > "
                f"{script.memory.limit}), being killed",
            )
            self.notify(key, "Exceeded job memory limit")
            with contextlib.suppress(ProcessLookupError):
                os.kill(script.stepd, signal.SIGUSR1)
            self._send(script, signal.SIGKILL)
            return
        script.fault = endings.MEMORY
        script.oom_kills += 1
        with contextlib.suppress(OSError):  # what stands above the script says so in the end
            _write_over(script.spool / "oom", str(script.oom_kills))
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(largest, signal.SIGKILL)


def _write_over(path: Path, text: str) -> None:
    """Put another file in place of what is there; the folder is its user's, and no link of his is
    followed.
    """
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    with open(
        os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644),
        "w",
        encoding="ascii",
    ) as file:
        file.write(text)
    new.rename(path)


def _remove(folder: Path) -> None:
    """Remove a job's folder. It is its user's: what he has put there is removed as a whole, and no
    link of his is followed.
    """
    try:
        for name in os.listdir(folder):
            os.unlink(f"{folder}/{name}")
        folder.rmdir()
    except OSError:  # there are folders in it, or more at any moment
        shutil.rmtree(folder, ignore_errors=True)


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def start_time(pid: int) -> str:
    """A process's start time, by which a recycled pid is told from the first; "" if there is no
    such process.
    """
    fields = _stat(pid)
    return fields[19] if fields and fields[0] != "Z" else ""


def _paths(launch: LaunchBatch, user: str, host: str, work_dir: str) -> tuple[str, str, str]:
    """The files of the script's standard input, output and errors."""
    spec, given = launch.spec, read(launch.environment)
    array_job, array_task = given.get("SLURM_ARRAY_JOB_ID"), given.get("SLURM_ARRAY_TASK_ID")
    names = Names(
        launch.job_id,
        spec.name if spec is not None else "",
        user,
        host,
        int(array_job) if array_job else None,
        int(array_task) if array_task else None,
    )
    if spec is None:
        std_out = output_path("", names, work_dir)
        return os.devnull, std_out, std_out
    std_out = output_path(spec.std_out, names, work_dir)
    return (
        output_path(spec.std_in, names, work_dir) if spec.std_in else os.devnull,
        std_out,
        output_path(spec.std_err, names, work_dir) if spec.std_err else std_out,
    )
