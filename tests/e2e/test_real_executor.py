"""Real batch scripts as child processes: what they get, what becomes of them, what is left of
them.

Covers: noded/forker, noded/health, noded/programs, noded/real, noded/stepd.
"""

import asyncio
import contextlib
import getpass
import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from understudy.noded import stepd
from understudy.noded.core import NodeJob
from understudy.noded.health import HealthCheck
from understudy.noded.programs import Programs
from understudy.noded.real import RealExecutor, start_time
from understudy.noded.settings import KILL_JOB, KILL_LARGEST, NodeSettings
from understudy.protocol.messages import JobSpec, LaunchBatch

ME = (os.getuid(), os.getgid())


class Site:
    """An executor and the ends that it reports."""

    def __init__(self, tmp_path, **options):
        self.work = tmp_path / "work"
        self.work.mkdir(exist_ok=True)
        self.spool = tmp_path / "spool"
        self.ends: asyncio.Queue[tuple] = asyncio.Queue()
        self.executor = RealExecutor(
            self.spool,
            self._ended,
            logging.getLogger("test"),
            conf="/c/slurm.conf",
            # a busy machine takes its time,
            settings=NodeSettings(**({"kill_wait_s": 10.0} | options)),
        )
        self.usage: dict[str, int] = {}
        self.fault = ""

    def _ended(self, key, exit_code, number, *, timed_out, usage=None, fault=""):
        self.usage, self.fault = usage or {}, fault
        self.ends.put_nowait((*key, exit_code, number))

    def launch(
        self,
        script,
        job_id=1,
        *,
        restart=0,
        environment=(),
        user=ME,
        start_time=None,
        submitted=None,
        memory_mb=0,
        program_environment=(),
        **spec,
    ):
        text = "#!/bin/bash\n" + textwrap.dedent(script) if not script.startswith("#!") else script
        fields = {
            "name": "test",
            "work_dir": str(self.work),
            "environment": submitted or [f"PATH={os.environ['PATH']}"],
        } | spec
        when = int(time.time()) if start_time is None else start_time
        own = {"memory_mb": memory_mb, "program_environment": list(program_environment)}
        return LaunchBatch(
            job_id,
            restart,
            "n1",
            when,
            b"",
            *user,
            None,
            text,
            JobSpec(**fields),
            list(environment),
            **own,
        )

    async def end(self):
        # longer than a login may take, so that one that hangs is seen for what it is
        try:
            return await asyncio.wait_for(self.ends.get(), 180)
        except TimeoutError:
            raise AssertionError(f"no end was told:\n{_processes()}") from None

    async def run(self, script, job_id=1, **fields):
        self.executor.start(self.launch(script, job_id, **fields))
        return await self.end()

    async def until(self, condition):
        for _ in range(6000):
            if condition():
                return
            await asyncio.sleep(0.01)
        raise AssertionError("it did not happen")

    def output(self, name="slurm-1.out"):
        return (self.work / name).read_text()


def _processes():
    command = ["ps", "-eo", "pid,ppid,stat,wchan:20,etimes,args", "--forest"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@pytest.fixture
async def site(tmp_path):
    site = Site(tmp_path)
    yield site
    site.executor.close()


async def test_a_script_runs_in_its_directory_with_its_arguments_and_environment(site):
    script = (
        'pwd; echo "$1|$2|$SLURM_JOB_ID|$SLURMD_NODENAME|$MINE"; [ $SLURM_TASK_PID = $$ ] '
        "&& echo same; cat; basename $0"
    )
    end = await site.run(script, arguments=["a", "b c"], environment=["SLURM_JOB_ID=1"])
    assert end == (1, 0, 0, 0)
    assert site.output().splitlines() == [str(site.work), "a|b c|1|n1|", "same", "slurm_script"]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("exit 3", (3, 0)),
        ("kill -9 $$", (0, 9)),
        ("kill -TERM $$; sleep 5", (0, 15)),
        ("exit 137", (137, 0)),
    ],
)
async def test_exit_codes_and_signals_are_told_apart(site, script, expected):
    assert (await site.run(script))[2:] == expected


async def test_output_files_are_named_appended_and_apart(site):
    (site.work / "old").write_text("before\n")
    await site.run(
        "echo out; echo err >&2", std_out="old", std_err="%x-%5j.err", open_mode="append"
    )
    assert site.output("old") == "before\nout\n"
    assert site.output("test-00001.err") == "err\n"
    await site.run("echo again", std_out="old", open_mode="truncate")
    assert site.output("old") == "again\n"


async def test_input_comes_from_a_file_or_is_empty(site):
    (site.work / "data").write_text("some data\n")
    await site.run("cat", std_in="data")
    assert site.output() == "some data\n"


@pytest.mark.parametrize("field", ["std_out", "std_err", "std_in"])
async def test_a_file_that_cannot_be_opened_fails_the_job_as_slurm_does(site, field):
    assert await site.run("true", **{field: "/nonexistent/file"}) == (1, 0, 0, 53)


async def test_a_missing_directory_is_replaced_by_tmp(site):
    await site.run("pwd", work_dir="/nonexistent/dir", std_out=str(site.work / "out"))
    assert site.output("out").splitlines() == [
        (
            "slurmstepd-n1: error: couldn't chdir to `/nonexistent/dir': No such file or "
            "directory: going to /tmp instead"
        ),
        "/tmp",
    ]
    assert await site.run("pwd", job_id=2, work_dir="/nonexistent/dir") == (2, 0, 0, 53)


async def test_a_missing_interpreter_is_named_in_the_output(site):
    assert await site.run("#!/nonexistent/interp\n") == (1, 0, 2, 0)
    assert (
        site.output()
        == "slurmstepd-n1: error: execve(): bad interpreter(/nonexistent/interp): No such "
        "file or directory\n"
    )


async def test_processes_that_the_script_leaves_behind_are_ended(site):
    assert await site.run("sleep 300 & echo $!; exit 0") == (1, 0, 0, 0)
    left = int(site.output())
    await site.until(lambda: not _is_alive(left))


async def test_a_killed_script_may_catch_the_first_signal(site):
    site.executor.start(
        site.launch('trap "echo caught; exit 7" TERM; echo ready; sleep 300 & wait')
    )
    await site.until(lambda: (site.work / "slurm-1.out").exists() and "ready" in site.output())
    site.executor.kill((1, 0))
    assert await site.end() == (1, 0, 7, 0)
    lines = site.output().splitlines()
    assert lines[0] == "ready"
    assert any(
        line.startswith("slurmstepd-n1: error: *** JOB 1 ON n1 CANCELLED AT 2")
        and line.endswith(" ***")
        for line in lines
    )
    assert "caught" in lines
    assert "TIME LIMIT" not in site.output()


async def test_a_script_is_told_why_it_is_ended(site):
    site.executor.start(site.launch("echo ready; sleep 300"))
    await site.until(lambda: (site.work / "slurm-1.out").exists() and "ready" in site.output())
    site.executor.kill((1, 0), "JOB REQUEUE")
    assert await site.end() == (1, 0, 0, 15)
    assert [
        line
        for line in site.output().splitlines()
        if "CANCELLED AT" in line and line.endswith(" DUE TO JOB REQUEUE ***")
    ]


async def test_a_script_that_does_not_end_is_killed_by_force_after_kill_wait(tmp_path):
    site = Site(tmp_path, kill_wait_s=0.3)
    site.executor.start(site.launch('trap "" TERM; echo ready; while true; do sleep 0.05; done'))
    await site.until(lambda: (site.work / "slurm-1.out").exists() and "ready" in site.output())
    begin = time.monotonic()
    site.executor.kill((1, 0))
    assert await site.end() == (1, 0, 0, 9)
    assert time.monotonic() - begin >= 0.29
    site.executor.close()


async def test_a_kill_at_the_very_start_ends_the_script_too(tmp_path):
    site = Site(tmp_path)
    site.executor.start(site.launch("sleep 300"))
    site.executor.kill((1, 0))
    assert await site.end() == (1, 0, 0, 15)
    site.executor.close()


async def test_a_stopped_script_is_continued_to_be_ended(site):
    site.executor.start(site.launch("echo ready; sleep 300"))
    await site.until(lambda: (site.work / "slurm-1.out").exists() and "ready" in site.output())
    site.executor.signal((1, 0), signal.SIGSTOP, batch_only=False)
    site.executor.kill((1, 0))
    assert await site.end() == (1, 0, 0, 15)


async def test_the_time_limit_is_named_as_the_cause(site):
    site.executor.start(
        site.launch("echo ready; sleep 300", time_limit_s=60, start_time=int(time.time()) - 60)
    )
    await site.until(lambda: (site.work / "slurm-1.out").exists() and "ready" in site.output())
    site.executor.kill((1, 0))
    await site.end()
    assert " DUE TO TIME LIMIT ***" in site.output()


async def test_a_signal_goes_to_all_processes_or_to_the_script_alone(site):
    turns = "while [ ! -e stop ]; do sleep 0.02; done"
    child = f"""bash -c 'trap "echo child" USR1; echo up; {turns}'"""
    site.executor.start(site.launch(f"{child} & trap 'echo script' USR1; echo ready; {turns}"))
    await site.until(
        lambda: (
            (site.work / "slurm-1.out").exists() and {"ready", "up"} <= set(site.output().split())
        )
    )
    site.executor.signal((1, 0), signal.SIGUSR1, batch_only=True)
    await site.until(lambda: "script" in site.output())
    assert "child" not in site.output()
    site.executor.signal((1, 0), signal.SIGUSR1, batch_only=False)
    await site.until(
        lambda: "child" in site.output() and site.output().splitlines().count("script") == 2
    )
    (site.work / "stop").touch()
    assert (await site.end())[2:] == (0, 0)


async def test_the_process_that_scripts_are_forked_from_is_replaced_when_it_is_lost(site):
    assert (await site.run("exit 3"))[2:] == (3, 0)
    forker = site.executor._forker._process
    forker.kill()
    forker.wait()
    assert (await site.run("exit 4", job_id=2))[2:] == (4, 0)


async def test_a_user_who_does_not_exist_fails_the_job(site):
    assert await site.run("true", user=(4_000_000, 4_000_000)) == (1, 0, 0, 53)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
async def test_root_runs_scripts_as_their_user(site, tmp_path):
    import pwd

    daemon = pwd.getpwnam("daemon")
    for folder in (tmp_path, *tmp_path.parents):  # pytest's folders are closed to others
        if folder.owner() == getpass.getuser() and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    site.work.chmod(0o777)
    end = await site.run(
        "id -un; id -gn; umask", user=(daemon.pw_uid, daemon.pw_gid), environment=[]
    )
    assert end == (1, 0, 0, 0)
    assert site.output().split()[:2] == ["daemon", "daemon"]
    assert (site.work / "slurm-1.out").stat().st_uid == daemon.pw_uid


async def test_the_spool_is_cleared_when_nothing_is_left_of_the_job(site):
    await site.run("true")
    assert (site.spool / "job00001" / "slurm_script").exists()
    site.executor.forget((1, 0))
    assert not (site.spool / "job00001").exists()


def program(path, text):
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)
    return str(path)


async def test_the_epilog_runs_on_each_node_and_says_where_it_failed(tmp_path):
    text = (
        'echo "$SLURM_JOB_ID $SLURMD_NODENAME $SLURM_SCRIPT_CONTEXT" > '
        f"{tmp_path}/seen.$SLURMD_NODENAME; [ $SLURMD_NODENAME != n2 ]"
    )
    site = Site(tmp_path, epilog=(program(tmp_path / "epilog", text),))
    done = []
    job = NodeJob((5, 0), "n[1-2]", "n1", os.getuid(), program_environment=["SLURM_JOB_ID=5"])
    site.executor.run_epilog(
        job, "n[1-2]", 0.0, lambda _job, nodes, failed="": done.append((nodes, failed))
    )
    await site.until(lambda: done == [("n[1-2]", "n2")])
    assert (tmp_path / "seen.n1").read_text() == "5 n1 epilog_slurmd\n"
    site.executor.close()


@pytest.mark.parametrize(
    ("code", "expected", "fault"), [(0, (1, 0, 7, 0), ""), (1, (1, 0, 0, 0), "prolog")]
)
async def test_the_prolog_runs_before_the_script_which_it_can_prevent(
    tmp_path, code, expected, fault
):
    site = Site(
        tmp_path,
        prolog=(
            program(
                tmp_path / "prolog",
                f"echo $SLURM_SCRIPT_CONTEXT $A > {tmp_path}/work/seen; exit {code}",
            ),
        ),
    )
    assert await site.run("cat seen; exit 7", program_environment=("A=x",)) == expected
    assert site.fault == fault
    assert (site.work / "seen").read_text() == "prolog_slurmd x\n"
    assert code or site.output() == "prolog_slurmd x\n"
    site.executor.close()


async def test_task_prolog_and_epilog_run_as_the_task_does(tmp_path):
    prolog = program(
        tmp_path / "prolog",
        'echo "export TP=a b"; echo "print  hello"; echo print; echo "unset GONE"; '
        "echo nonsense; echo no >&2; exit $FAIL",
    )
    epilog = program(
        tmp_path / "epilog", "echo nothing; echo $SLURM_SCRIPT_CONTEXT $GONE >&2; exit 3"
    )
    site = Site(tmp_path, task_prolog=prolog, task_epilog=epilog)
    path = f"PATH={os.environ['PATH']}"
    assert await site.run('echo "$TP|$GONE"; exit 5', submitted=[path, "GONE=x", "FAIL=0"]) == (
        1,
        0,
        5,
        0,
    )
    last = ["epilog_task x", "slurmstepd-n1: error: --task-epilog failed status=768"]
    assert site.output().splitlines() == ["hello", "a b|", *last]
    assert await site.run("echo never", submitted=[path, "GONE=x", "FAIL=2"]) == (1, 0, 2, 0)
    assert site.output().splitlines() == [
        "hello",
        "slurmstepd-n1: error: TaskProlog failed status=2",
        *last,
    ]
    site.executor.close()


async def test_the_health_check_runs_for_each_node_one_at_a_time(tmp_path):
    text = (
        f"echo >> {tmp_path}/checked.$SLURMD_NODENAME; until [ -e {tmp_path}/go ]; do "
        "sleep 0.02; done"
    )
    settings, programs = (
        NodeSettings(health_program=program(tmp_path / "health", text)),
        Programs(logging.getLogger("test")),
    )
    health = HealthCheck(settings, programs, "/c/slurm.conf", logging.getLogger("test"))

    async def until(count):
        for _ in range(1000):
            if [
                path.read_text().count("\n") for path in sorted(tmp_path.glob("checked.*"))
            ] == count:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(list(tmp_path.iterdir()))

    health.check(["n1", "n2"])
    await until([1, 1])
    health.check(["n1", "n3"])
    await until([1, 1, 1])
    (tmp_path / "go").touch()
    for _ in range(1000):
        health.check(["n3"])
        if (tmp_path / "checked.n3").read_text().count("\n") > 1:
            break
        await asyncio.sleep(0.01)
    else:
        raise AssertionError("it was not run again")
    programs.close()


async def test_what_a_script_uses_is_measured(tmp_path):
    site = Site(tmp_path, gather_s=1)
    code = (
        "import time; b = bytearray(80 << 20); t = time.process_time()\n"
        "while time.process_time() - t < 0.3: pass\ntime.sleep(1.2)"
    )
    await site.run(f"{sys.executable} -c '{code}'")
    assert 0.3e6 <= site.usage["user_cpu_us"] + site.usage["system_cpu_us"] < 3e6
    assert 80 << 20 < site.usage["max_rss"] < 160 << 20
    assert site.usage["max_vmsize"] > site.usage["max_rss"]
    assert (site.usage["tasks"], site.usage["max_rss_task"], site.usage["max_rss_node"]) == (
        1,
        0,
        0,
    )
    assert 0.2e6 <= site.usage["sum_cpu_us"] < 3e6
    assert site.usage["sum_read"] > 0
    site.executor.close()


@pytest.mark.parametrize(
    ("rule", "expected", "fault"),
    [(KILL_JOB, (1, 0, 0, 9), "killed"), (KILL_LARGEST, (1, 0, 4, 0), "memory")],
)
async def test_who_uses_more_memory_than_he_has_is_killed(tmp_path, rule, expected, fault):
    site = Site(tmp_path, over_memory=rule)
    assert (
        await site.run(
            f"{sys.executable} -c 'import time; b = bytearray(90 << 20); time.sleep(20)' || exit 4",
            memory_mb=50,
        )
        == expected
    )
    assert site.fault == fault
    words = {
        KILL_JOB: " > 52428800), being killed\n",
        KILL_LARGEST: "Detected 1 oom-kill event(s) in StepId=1.batch.",
    }
    assert words[rule] in site.output()
    site.executor.close()


async def test_limits_of_the_submitter_become_those_of_the_script(site):
    await site.run(
        "ulimit -n; ulimit -c",
        submitted=[f"PATH={os.environ['PATH']}", "SLURM_RLIMIT_NOFILE=77", "SLURM_RLIMIT_CORE=0"],
    )
    assert site.output() == "77\n0\n"


async def test_a_login_fills_in_what_was_not_submitted(site):
    await site.run('echo "$HOME|$USER|$A"', submitted=["SLURM_GET_USER_ENV=1", "A=1", "USER=me"])
    assert site.output() == f"{Path.home()}|me|1\n"


async def test_closing_ends_all_scripts(tmp_path):
    site = Site(tmp_path)
    site.executor.start(site.launch("trap '' TERM; echo $$; sleep 300"))
    await site.until(lambda: (site.work / "slurm-1.out").exists() and site.output())
    site.executor.close()
    pid = int(site.output())
    await site.until(lambda: not _is_alive(pid))


# --- a daemon that is killed ----------------------------------------------------------------------

_FIRST_LIFE = """
import asyncio, logging, os, signal, sys
sys.path[:0] = [{tests!r}]
from pathlib import Path
from e2e_site import Site
async def main():
    site = Site(Path({tmp!r}))
    site.executor.start(site.launch({script!r}))
    await site.until(lambda: (site.work / "ready").exists())
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


def _first_life(tmp_path, script):
    """A daemon that starts a script and is killed when the script says so."""
    source = Path(__file__).read_text().partition("@pytest.fixture")[0]
    (tmp_path / "e2e_site.py").write_text(source)
    code = _FIRST_LIFE.format(tests=str(tmp_path), tmp=str(tmp_path), script=script)
    result = subprocess.run([sys.executable, "-c", code], timeout=30, check=False)
    assert result.returncode == -signal.SIGKILL


def test_a_script_outlives_its_daemon_and_the_next_one_reports_its_end(tmp_path):
    _first_life(tmp_path, "touch ready; while [ ! -e go ]; do sleep 0.02; done; exit 5")

    async def second_life():
        site = Site(tmp_path)
        site.executor.adopt(site.launch(""))
        await asyncio.sleep(0.05)
        assert site.ends.empty()
        (site.work / "go").touch()
        assert await site.end() == (1, 0, 5, 0)

    asyncio.run(second_life())


def test_an_end_that_nobody_saw_is_reported(tmp_path):
    _first_life(tmp_path, "touch ready; exit 6")

    async def second_life():
        site = Site(tmp_path)
        await site.until((site.spool / "job00001" / "exit").exists)
        site.executor.adopt(site.launch(""))
        assert await site.end() == (1, 0, 6, 0)

    asyncio.run(second_life())


def test_an_adopted_script_can_be_killed(tmp_path):
    _first_life(tmp_path, "touch ready; sleep 300")

    async def second_life():
        site = Site(tmp_path)
        site.executor.adopt(site.launch(""))
        site.executor.kill((1, 0))
        assert await site.end() == (1, 0, 0, 15)

    asyncio.run(second_life())


def test_a_script_of_which_nothing_is_left_counts_as_killed(tmp_path):
    async def life():
        site = Site(tmp_path)
        (site.spool / "job00001").mkdir()
        (site.spool / "stepd.1.0").write_text(f"{os.getpid()} 0\n")  # of before a restart
        site.executor.adopt(site.launch(""))
        assert await site.end() == (1, 0, 0, 9)

    asyncio.run(life())


def test_a_script_that_the_daemon_was_killed_before_it_could_begin_begins(tmp_path):
    async def life():
        site = Site(tmp_path)
        (site.spool / "job00001").mkdir()
        site.executor.adopt(site.launch("exit 4"))
        assert await site.end() == (1, 0, 4, 0)
        site.executor.close()

    asyncio.run(life())


def test_of_two_that_would_begin_a_script_for_two_daemons_one_does(tmp_path):
    """The first was forked when the daemon was killed, and has not said so yet."""
    claim = tmp_path / "stepd.1.0"
    assert stepd.claim(str(claim))
    number, started = claim.read_text().split()
    assert (int(number), started) == (os.getpid(), start_time(os.getpid()))
    assert not stepd.claim(str(claim))
    assert [path.name for path in tmp_path.iterdir()] == ["stepd.1.0"]


@pytest.mark.parametrize("text", ["0", "1", "-1", "{other}"])
def test_only_processes_of_the_job_are_ever_signalled(tmp_path, text):
    """The pid file is the user's to write: it must not lead the daemon to other processes."""
    _first_life(tmp_path, "touch ready; while [ ! -e go ]; do sleep 0.02; done")
    with subprocess.Popen(["sleep", "300"], start_new_session=True) as other:
        (tmp_path / "spool" / "job00001" / "pid").write_text(text.format(other=other.pid))

        async def second_life():
            site = Site(tmp_path)
            site.executor.adopt(site.launch(""))
            site.executor.signal((1, 0), signal.SIGKILL, batch_only=True)
            await asyncio.sleep(0.2)
            assert site.ends.empty()
            (site.work / "go").touch()
            assert await site.end() == (1, 0, 0, 0)

        asyncio.run(second_life())
        assert other.poll() is None
        other.kill()


def test_the_kill_of_an_adopted_script_that_has_ended_signals_nobody(tmp_path):
    _first_life(tmp_path, "touch ready; exit 6")

    async def second_life():
        site = Site(tmp_path)
        await site.until((site.spool / "job00001" / "exit").exists)
        site.executor.adopt(site.launch(""))
        site.executor.kill((1, 0))
        assert await site.end() == (1, 0, 6, 0)

    asyncio.run(second_life())


def _is_alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
