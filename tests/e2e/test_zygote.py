"""Commands that a zygote forks are as those that an interpreter runs.

Covers: tool/zygote/child, tool/zygote/zygote.
"""

import os
import resource
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from understudy.tool.cluster import starters
from understudy.tool.zygote.zygote import COMMANDS, SPARE

pytestmark = pytest.mark.skipif(
    not (shutil.which("cc") or shutil.which("gcc")), reason="there is no C compiler"
)
HOUSE = str(Path(starters.__file__).parents[3])
# Where the zygote does not answer, this interpreter, which is none, makes it an error.
NO_PYTHON = str(Path(sys.executable).with_name("no-such-python"))
NOT_SERVED = 126
# A zygote whose commands tell what they are, and end with 3.
SERVER = """
import os, resource, signal, sys
from understudy.commands.shared.context import Caller
from understudy.tool.zygote import zygote

def tell():
    print(os.getpid(), os.getcwd(), oct(os.umask(0)), os.environ.get("COLOUR"),
        os.getsid(Caller.pid), resource.getrlimit(resource.RLIMIT_CORE)[0], sys.argv[1:],
        flush=True)
    Caller.leave(3)

def copy():
    print(os.getpid(), flush=True)
    print(sys.stdin.read(), end="")
    sys.stdout.flush()
    Caller.leave(0)

def read_nine():
    print(os.read(9, 100))
    sys.stdout.flush()
    Caller.leave(0)

def fail():
    raise RuntimeError("as bugs do")

def break_pipe():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.stdin.read()
    os.write(1, b"x")

one = zygote.Zygote(sys.argv[1] + "/zygote.sock")
one._mains |= {
    "sbatch": tell, "squeue": tell, "sinfo": copy, "sacct": read_nine, "sprio": fail,
    "sdiag": break_pipe,
}
print("ready", flush=True)
one.serve()
"""
WIDE = 60  # seconds for all that should take none


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Starters that lead to a zygote alone, and starters as they were without."""
    folder = tmp_path_factory.mktemp("starters")
    native = starters.compile_native(folder, NO_PYTHON)
    assert native
    for name, module in COMMANDS.items():
        target = f"understudy.commands.{module}:main"
        for kind, by in (("quick", native), ("plain", "")):
            path = folder / kind / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(starters.starter(sys.executable, [HOUSE], target, by))
            path.chmod(0o755)
    return folder


@pytest.fixture
def site(tmp_path):
    """The environment of who uses the zygote of this folder, where no cluster is."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SLURM")}
    return {
        **kept,
        "SLURM_CONF": str(tmp_path / "slurm.conf"),
        "UNDERSTUDY_REGISTRY": str(tmp_path / "registry"),
    }


@pytest.fixture
def facts(tmp_path, site):
    """A zygote whose commands tell what they are."""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", SERVER, str(tmp_path)],
        env=site,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


@pytest.fixture
def real(tmp_path, site):
    """A zygote as `understudy up` starts it."""
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "understudy.tool.zygote", "--run-dir", str(tmp_path)],
        env=site,
        start_new_session=True,
    ) as process:
        # a starter waits where nobody listens yet, so until there is a socket
        while not (tmp_path / "zygote.pid").exists():
            assert process.poll() is None
        yield process
        process.kill()


def run(path, *words, environment, **more):
    return subprocess.run(
        [path, *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=WIDE,
        **more,
    )


@pytest.mark.parametrize(
    "line",
    [
        "sbatch --version",
        "sbatch --help",
        "sbatch --nonsense",
        "sbatch --time=never --wrap true",
        "sbatch /no/such/script",
        "sbatch --wrap true",
        "squeue --usage",
        "sinfo -N",
        "scancel 1",
        "sacct --helpformat",
    ],
)
def test_a_command_says_and_ends_as_without_a_zygote(line, quick, site, real, tmp_path):
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=none\nSlurmctldHost=localhost(127.0.0.1)\nMessageTimeout=2\n"
    )
    name, *words = line.split()
    plain = run(quick / "plain" / name, *words, environment=site, cwd=tmp_path)
    for _ in range(2):
        served = run(quick / "quick" / name, *words, environment=site, cwd=tmp_path)
        assert (served.returncode, served.stdout, served.stderr) == (
            plain.returncode,
            plain.stdout,
            plain.stderr,
        )


def test_a_command_is_what_its_starter_is(quick, site, facts, tmp_path):
    def change():
        os.setsid()
        os.umask(0o27)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    folder = tmp_path / "a folder"
    folder.mkdir()
    first = run(quick / "quick/sbatch", "a", "", "b c", environment=site)
    pid, where, umask, colour, session, *_ = first.stdout.split()
    assert first.returncode == 3
    assert (where, colour, int(session)) == (os.getcwd(), "None", os.getsid(0))
    process = subprocess.Popen(
        [quick / "quick/sbatch"],
        env={**site, "COLOUR": "red"},
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        preexec_fn=change,  # noqa: PLW1509
    )
    text, _ = process.communicate(timeout=WIDE)
    assert text.split(None, 1)[1] == f"{folder} 0o27 red {process.pid} 0 []\n"
    assert "['a', '', 'b c']" in first.stdout
    again = run(quick / "quick/sbatch", environment=site)
    assert again.stdout.split()[1:4] == [where, umask, "None"]
    assert facts.pid not in {int(pid), process.pid}


def test_descriptors_that_a_starter_has_are_at_their_numbers(quick, site, facts, tmp_path):
    (tmp_path / "nine").write_text("of a file")
    line = f"exec {quick}/quick/sacct 9<{tmp_path}/nine"
    assert run("/bin/sh", "-c", line, environment=site).stdout == "b'of a file'\n"
    assert run("/bin/sh", "-c", f"{quick}/quick/sinfo <&-", environment=site).returncode == (
        NOT_SERVED
    )


def test_sbatch_leaves_a_process_that_takes_the_next_and_others_do_not(quick, site, facts):
    def pids(name):
        return {
            run(quick / "quick" / name, environment=site).stdout.split()[0]
            for _ in range(2 * SPARE)
        }

    assert len(pids("squeue")) == 2 * SPARE
    assert len(pids("sbatch")) <= SPARE


@pytest.mark.parametrize(
    "change",
    [{"PYTHONHASHSEED": "1"}, {"LC_ALL": "C.UTF-8", "LANG": "xx"}, {"LD_BIND_NOW": "1"}],
    ids=["python", "locale", "linker"],
)
def test_who_differs_in_what_is_read_at_a_start_is_not_served(change, quick, site, facts):
    served = run(quick / "quick/sbatch", environment={**site, **change})
    assert (served.returncode, served.stdout) == (NOT_SERVED, "")
    assert run(quick / "quick/sbatch", environment=site).returncode == 3


def test_without_a_zygote_python_runs_the_command(quick, site, tmp_path):
    assert run(quick / "quick/sbatch", environment=site).returncode == NOT_SERVED
    native = starters.compile_native(tmp_path, sys.executable)
    path = tmp_path / "sbatch"
    path.write_text(
        starters.starter(sys.executable, [HOUSE], "understudy.commands.sbatch:main", native)
    )
    path.chmod(0o755)
    assert run(path, "--version", environment=site).stdout.startswith("slurm 22.05")


def test_long_commands_do_not_keep_others_waiting(quick, site, facts):
    long = [
        subprocess.Popen(
            [quick / "quick/sinfo"],
            env=site,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(SPARE + 2)
    ]
    assert run(quick / "quick/sbatch", environment=site).returncode == 3
    ends = [process.communicate("read\n", timeout=WIDE)[0] for process in long]
    assert [text.split()[1] for text in ends] == ["read"] * len(long)
    assert {process.returncode for process in long} == {0}
    assert run(quick / "quick/sbatch", environment=site).returncode == 3


def test_a_command_ends_with_its_starter(quick, site, facts):
    with subprocess.Popen(
        [quick / "quick/sinfo"], env=site, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        child = os.pidfd_open(int(process.stdout.readline()))
        process.send_signal(signal.SIGTERM)
        assert process.wait(WIDE) == -signal.SIGTERM
        poll = select.poll()
        poll.register(child, select.POLLIN)
        assert poll.poll(WIDE * 1000)
        os.close(child)


def test_a_command_whose_reader_has_gone_ends_by_sigpipe(quick, site, facts):
    process = subprocess.Popen(
        [quick / "quick/sdiag"],
        env=site,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    process.stdout.close()
    process.stdin.close()
    assert process.wait(WIDE) == -signal.SIGPIPE


def test_a_command_that_fails_says_so_and_the_next_is_served(quick, site, facts):
    failed = run(quick / "quick/sprio", environment=site)
    assert failed.returncode == 1
    assert failed.stderr.endswith("RuntimeError: as bugs do\n")
    assert run(quick / "quick/sbatch", environment=site).returncode == 3


def test_a_zygote_takes_the_place_of_one_that_was_killed(quick, site, real, tmp_path):
    real.kill()
    real.wait(WIDE)
    # children that were forked ahead may serve one each until they see that it is gone
    ends = [
        run(quick / "quick/sbatch", "--version", environment=site).returncode
        for _ in range(2 * SPARE + 1)
    ]
    assert ends[-1] == NOT_SERVED
    (tmp_path / "zygote.pid").unlink()
    with subprocess.Popen(real.args, env=site, start_new_session=True) as another:
        while not (tmp_path / "zygote.pid").exists():
            assert another.poll() is None
        assert run(quick / "quick/sbatch", "--version", environment=site).returncode == 0
        another.kill()


def test_children_end_with_their_zygote(quick, site, facts):
    pid = int(run(quick / "quick/sbatch", environment=site).stdout.split()[0])
    child = os.pidfd_open(pid)
    facts.terminate()
    facts.wait(WIDE)
    poll = select.poll()
    poll.register(child, select.POLLIN)
    assert poll.poll(WIDE * 1000)
    os.close(child)
    assert run(quick / "quick/sbatch", environment=site).returncode == NOT_SERVED


CONF = """
ClusterName=quick
SlurmctldHost=localhost
NodeName=n[1-4] CPUs=4
PartitionName=debug Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP
"""


def test_a_cluster_has_its_zygote_from_up_to_down(quick, site, tmp_path):
    conf = tmp_path / "conf"
    conf.write_text(CONF)
    environment = {**site, "SLURM_CONF": f"{tmp_path}/run/slurm.conf"}
    where = ("--run-dir", str(tmp_path / "run"))
    understudy = Path(sys.executable).with_name("understudy")
    up = run(understudy, "up", "--conf", conf, "--zygote", *where, environment=site)
    assert up.returncode == 0, up.stderr
    try:
        submitted = run(quick / "quick/sbatch", "-H", "--wrap", "true", environment=environment)
        assert (submitted.stdout, submitted.stderr) == ("Submitted batch job 1\n", "")
        listed = run(quick / "quick/squeue", "-h", "-o", "%i", environment=environment)
        assert listed.stdout == "1\n"
        assert "zygote" in run(understudy, "status", *where, environment=site).stdout
    finally:
        down = run(understudy, "down", *where, environment=site)
    assert down.returncode == 0
    assert "zygote" in down.stdout
    assert not (tmp_path / "run/zygote.sock").exists()
