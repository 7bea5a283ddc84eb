"""The real executor: batch scripts as child processes, as the user, with Slurm's environment, output files, signals and exit codes. Real time only.

Place: an executor of the node daemon (see executor.py). Each script has a small process of its own between the daemon and itself (`stepd.py`), whose
end the event loop sees through a pidfd: no thread and no task a job. A script outlives a daemon that is killed; the next one adopts it by what is in
the spool directory. Follows: sbatch(1), slurm.conf(5) KillWait, Epilog.

SPOOL/
    stepd.JOB.RESTART  pid and start time of the process in between
    jobNNNNN/          the user's own:
        slurm_script   the script
        pid            its pid
        exit           "CODE SIGNAL", when it has ended

What stands in the user's directory is not believed further than the user's own job goes: a pid counts only while its process is below the one in
between, which the daemon itself has begun for the job.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from understudy.model.hostlist import expand
from understudy.noded import family
from understudy.noded.environment import batch_environment, umask_of
from understudy.noded.output_files import Names, output_path

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable

    from understudy.noded.core import Key, NodeJob
    from understudy.noded.executor import OnEnded
    from understudy.protocol.messages import LaunchBatch

DEFAULT_KILL_WAIT_S: Final = 30.0
LAUNCH_FAILED: Final = 53  # reported as a signal, as Slurm does
FOLDER: Final = str(Path(__file__).parents[2])  # with it, a process without `site` finds the house; a module, unlike a program, is compiled once
_STEPD: Final = f"import sys; sys.path.insert(0, {FOLDER!r}); from understudy.noded import stepd; sys.exit(stepd.main(*sys.argv[1:]))"
_STOP_S: Final = 5.0


@dataclass(slots=True)
class _Script:
    """A script that runs, or is about to."""

    launch: LaunchBatch
    spool: Path
    stepd: int  # pid
    pidfd: int
    process: subprocess.Popen[bytes] | None  # None: adopted, the child of an earlier daemon
    script: int = 0  # pid; 0: not known yet
    waiting: list[tuple[int, bool]] = field(default_factory=list)  # signals that came before the pid
    killer: asyncio.TimerHandle | None = None
    said: bytes = b""
    is_killed: bool = False


class RealExecutor:
    """Runs scripts. `spool` is the daemon's; `conf` the path that scripts find in SLURM_CONF."""

    def __init__(
        self,
        spool: Path,
        on_ended: OnEnded,
        log: logging.Logger,
        *,
        cluster: str,
        conf: str,
        kill_wait_s: float = DEFAULT_KILL_WAIT_S,
        epilog: str = "",
    ) -> None:
        self._spool, self._on_ended, self._log = spool, on_ended, log
        self._cluster, self._conf, self._kill_wait_s, self._epilog = cluster, conf, kill_wait_s, epilog
        self._loop = asyncio.get_running_loop()
        self._scripts: dict[Key, _Script] = {}
        self._epilogs: dict[int, subprocess.Popen[bytes]] = {}
        self._host = socket.gethostname().partition(".")[0]
        spool.mkdir(parents=True, exist_ok=True)
        spool.chmod(0o755)  # users run their scripts from there

    # --- the executor's interface --------------------------------------------------------------------------------------------

    def start(self, launch: LaunchBatch) -> None:
        key = launch.job_id, launch.restart
        try:
            spool, user = self._prepare(launch)
            process = self._spawn(launch, spool, user)
        except (OSError, KeyError, ValueError) as error:
            self._log.error("job %d could not be launched: %s", launch.job_id, error)
            self._loop.call_soon(lambda: self._on_ended(key, 0, LAUNCH_FAILED, timed_out=False))
            return
        script = _Script(launch, spool, process.pid, os.pidfd_open(process.pid), process)
        self._scripts[key] = script
        self._stepd_file(key).write_text(f"{process.pid} {start_time(process.pid)}\n")
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        self._loop.add_reader(process.stdout.fileno(), self._hear, key, process.stdout.fileno())
        self._loop.add_reader(script.pidfd, self._stepd_ended, key)

    def adopt(self, launch: LaunchBatch) -> None:
        """Look after a script that an earlier daemon started; its end is reported even if it was long ago."""
        key = launch.job_id, launch.restart
        spool = self._job_dir(key)
        pid = 0
        with contextlib.suppress(OSError, ValueError):
            number, started = self._stepd_file(key).read_text().split()
            if not (spool / "exit").exists() and start_time(int(number)) == started:
                pid = int(number)
        script = _Script(launch, spool, pid, -1, None, self._read_pid(spool))
        self._scripts[key] = script
        if pid:
            with contextlib.suppress(ProcessLookupError):
                script.pidfd = os.pidfd_open(pid)
        if script.pidfd >= 0:
            self._loop.add_reader(script.pidfd, self._stepd_ended, key)
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
        pid = script.script or self._read_pid(script.spool)
        if pid in self._family(script):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/fd/2", "a", encoding="utf-8") as output:
                output.write(f"slurmstepd-{expand(script.launch.nodes)[0]}: error: {text}\n")

    def _family(self, script: _Script) -> list[int]:
        """The script and all that it has started. The process above them cannot have another's number: we would have seen its end."""
        return family.below(script.stepd) if script.stepd > 1 and script.pidfd >= 0 else []

    def _send(self, script: _Script, number: int, *, batch_only: bool = False) -> None:
        """The one door for signals to a script."""
        for pid in self._family(script):
            if not batch_only or pid == script.script:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)

    def kill(self, key: Key) -> None:
        script = self._scripts.get(key)
        if script is None or script.is_killed:
            return
        script.is_killed = True
        if not script.stepd:
            return  # adopted when it was over: its end is about to be reported
        if script.script:
            self._end_gently(key, script)
        elif script.process is None:  # adopted: there is no pipe on which its pid could come
            self._kill_when_begun(key)
        # else: as soon as its pid is known, in `_begun`

    def run_epilog(self, job: NodeJob, nodes: str, delay_s: float, done: Callable[[NodeJob, str], None]) -> None:
        if not self._epilog:
            self._loop.call_later(delay_s, done, job, nodes)
            return
        try:
            process = subprocess.Popen(
                [self._epilog],
                env=self._epilog_environment(job, nodes),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            self._log.error("epilog %s of job %d: %s", self._epilog, job.key[0], error.strerror)
            self._loop.call_later(delay_s, done, job, nodes)
            return
        pidfd = os.pidfd_open(process.pid)
        self._epilogs[pidfd] = process

        def ended() -> None:
            self._loop.remove_reader(pidfd)
            os.close(pidfd)
            del self._epilogs[pidfd]
            if process.wait() != 0:
                self._log.error("epilog of job %d ended with %d", job.key[0], process.returncode)
            self._loop.call_later(delay_s, done, job, nodes)

        self._loop.add_reader(pidfd, ended)

    def forget(self, key: Key) -> None:
        self._stepd_file(key).unlink(missing_ok=True)
        shutil.rmtree(self._job_dir(key), ignore_errors=True)

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
            if script.process is not None:
                script.process.wait()
        self._scripts.clear()
        for process in self._epilogs.values():
            process.kill()
            process.wait()

    # --- starting ------------------------------------------------------------------------------------------------------------

    def _job_dir(self, key: Key) -> Path:
        return self._spool / (f"job{key[0]:05d}" if key[1] == 0 else f"job{key[0]:05d}.{key[1]}")

    def _stepd_file(self, key: Key) -> Path:
        return self._spool / f"stepd.{key[0]}.{key[1]}"

    def _prepare(self, launch: LaunchBatch) -> tuple[Path, pwd.struct_passwd]:
        user = pwd.getpwuid(launch.user_id)
        if os.geteuid() not in (0, launch.user_id):
            raise PermissionError(f"this daemon runs as user {os.geteuid()} and cannot run jobs of user {launch.user_id}")
        spool = self._job_dir((launch.job_id, launch.restart))
        shutil.rmtree(spool, ignore_errors=True)
        spool.mkdir(mode=0o750)
        path = spool / "slurm_script"
        path.write_text(launch.script)
        path.chmod(0o700)
        if os.geteuid() == 0:
            for each in (spool, path):
                os.chown(each, launch.user_id, launch.group_id)
        return spool, user

    def _spawn(self, launch: LaunchBatch, spool: Path, user: pwd.struct_passwd) -> subprocess.Popen[bytes]:
        spec = launch.spec
        node = expand(launch.nodes)[0]
        work_dir = (spec.work_dir if spec is not None else "") or user.pw_dir
        given = dict(entry.partition("=")[::2] for entry in launch.environment)
        array_job, array_task = given.get("SLURM_ARRAY_JOB_ID"), given.get("SLURM_ARRAY_TASK_ID")
        names = Names(
            launch.job_id,
            spec.name if spec is not None else "",
            user.pw_name,
            self._host,
            int(array_job) if array_job else None,
            int(array_task) if array_task else None,
        )
        std_out = output_path(spec.std_out if spec is not None else "", names, work_dir)
        std_err = output_path(spec.std_err, names, work_dir) if spec is not None and spec.std_err else std_out
        std_in = output_path(spec.std_in, names, work_dir) if spec is not None and spec.std_in else os.devnull
        environment = batch_environment(
            launch, node=node, cluster=self._cluster, conf=self._conf, user=user.pw_name, home=user.pw_dir, shell=user.pw_shell
        )
        append = "1" if spec is not None and spec.open_mode.startswith("a") else "0"
        return subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", "-c", _STEPD, str(spool), node, str(launch.job_id), user.pw_name, str(launch.user_id)),
                *(str(launch.group_id), f"{umask_of(launch):o}", append, work_dir, std_in, std_out, std_err, str(spool / "slurm_script")),
                *(spec.arguments if spec is not None else ()),
            ],
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

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

    # --- ending --------------------------------------------------------------------------------------------------------------

    def _end_gently(self, key: Key, script: _Script) -> None:
        """A word in the job's stderr, SIGCONT and SIGTERM; SIGKILL after KillWait."""
        spec = script.launch.spec
        limit_s = spec.time_limit_s if spec is not None else None
        is_over_limit = limit_s is not None and limit_s > 0 and time.time() >= script.launch.start_time + limit_s
        with contextlib.suppress(ProcessLookupError):
            os.kill(script.stepd, signal.SIGUSR2 if is_over_limit else signal.SIGUSR1)
        self.signal(key, signal.SIGCONT, batch_only=False)
        self.signal(key, signal.SIGTERM, batch_only=False)
        script.killer = self._loop.call_later(self._kill_wait_s, self._end_by_force, key)

    def _end_by_force(self, key: Key) -> None:
        script = self._scripts.get(key)
        if script is not None:
            script.killer = self._loop.call_later(self._kill_wait_s, self._end_by_force, key)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(script.stepd, signal.SIGCONT)
            self.signal(key, signal.SIGKILL, batch_only=False)

    def _stepd_ended(self, key: Key) -> None:
        script = self._scripts.pop(key, None)
        if script is None:
            return
        self._watch_no_more(script)
        if script.process is not None:
            script.process.wait()
        try:
            code, number = map(int, (script.spool / "exit").read_text().split())
        except (OSError, ValueError):  # stepd itself was killed, or the host went down
            code, number = 0, signal.SIGKILL
            launch = script.launch
            mark = f"SLURM_JOB_ID={launch.job_id}\0SLURM_CONF={self._conf}\0SLURMD_NODENAME={expand(launch.nodes)[0]}"
            family.end_strays(mark.encode(), script.stepd)
        self._on_ended(key, code, int(number), timed_out=False)

    def _watch_no_more(self, script: _Script) -> None:
        if script.killer is not None:
            script.killer.cancel()
        if script.process is not None and script.process.stdout is not None:
            self._loop.remove_reader(script.process.stdout.fileno())
            script.process.stdout.close()
        if script.pidfd >= 0:
            self._loop.remove_reader(script.pidfd)
            os.close(script.pidfd)
            script.pidfd = -1

    def _epilog_environment(self, job: NodeJob, nodes: str) -> dict[str, str]:
        user = ""
        with contextlib.suppress(KeyError):
            user = pwd.getpwuid(job.user_id).pw_name
        return {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "SLURM_CLUSTER_NAME": self._cluster,
            "SLURM_CONF": self._conf,
            "SLURM_JOBID": str(job.key[0]),
            "SLURM_JOB_ID": str(job.key[0]),
            "SLURM_JOB_NODELIST": nodes,
            "SLURM_JOB_UID": str(job.user_id),
            "SLURM_JOB_USER": user,
            "SLURM_SCRIPT_CONTEXT": "epilog_slurmd",
            "SLURMD_NODENAME": job.first_node or nodes.partition(",")[0],
            "SLURM_UID": str(job.user_id),
        }


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def start_time(pid: int) -> str:
    """A process's start time, by which a recycled pid is told from the first; "" if there is no such process."""
    fields = _stat(pid)
    return fields[19] if fields and fields[0] != "Z" else ""
