"""`understudy exec` and `shell`, and what `up` says of commands that would go elsewhere."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from understudy.model.cluster import Cluster
from understudy.tool.cluster.processes import identify
from understudy.tool.understudy.cluster import announce

UNDERSTUDY = Path(sys.executable).parent / "understudy"


@pytest.fixture
def run_dir(tmp_path):
    """Of a cluster that seems to run: this process stands for its controller."""
    folder = tmp_path / "run dir"
    folder.mkdir()
    Cluster("tux", str(tmp_path / "tux.conf")).save(folder)
    own = identify("controller", os.getpid())
    (folder / "controller.pid").write_text(f"{own.pid} {own.start_time}\n")
    return folder


def run(*words, **environment):
    return subprocess.run(
        [UNDERSTUDY, *map(str, words)],
        env={"PATH": "/usr/bin:/bin", "HOME": "/", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_command_finds_itself_in_the_clusters_surroundings(run_dir):
    said = "echo $SLURM_CONF; command -v squeue; echo $SQUEUE_FORMAT"
    words = ("exec", "--run-dir", run_dir, "--", "sh", "-c", said)
    done = run(*words, SLURM_CONF="/etc/slurm/slurm.conf", SQUEUE_FORMAT="%j")
    assert done.stdout.splitlines() == [f"{run_dir}/slurm.conf", f"{run_dir}/bin/squeue", "%j"]
    assert done.returncode == 0


def test_options_of_the_command_are_its_own_and_so_are_exit_code_and_signals(run_dir):
    assert run("exec", "--run-dir", run_dir, "sh", "-c", "exit 7").returncode == 7
    assert run("exec", "--run-dir", run_dir, "squeue", "--version").stdout == "slurm 22.05.8\n"
    killed = run("exec", "--run-dir", run_dir, "sh", "-c", "kill -TERM $$")
    assert killed.returncode == -signal.SIGTERM
    piped = run("exec", "--run-dir", run_dir, "sh", "-c", "kill -PIPE $$")
    assert piped.returncode == -signal.SIGPIPE


def test_a_shell_is_the_users_own_and_says_whose_it_is(run_dir, tmp_path):
    shell = tmp_path / "myshell"
    shell.write_text("#!/bin/sh\necho my $SLURM_CONF; exit 3\n")
    shell.chmod(0o755)
    done = run("shell", "--run-dir", run_dir, SHELL=str(shell))
    assert (done.stdout, done.returncode) == (f"my {run_dir}/slurm.conf\n", 3)
    assert done.stderr == "Slurm's commands speak to cluster tux here; `exit` leaves it.\n"


def test_a_start_file_that_sets_the_path_anew_does_not_take_bash_elsewhere(run_dir, tmp_path):
    (tmp_path / ".bashrc").write_text("PATH=/usr/bin:/bin; SLURM_CONF=/etc/slurm.conf; mine=yes\n")
    seen = tmp_path / "seen"
    pid, terminal = pty.fork()
    if not pid:
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SHELL": "/bin/bash"}
        words = [str(UNDERSTUDY), "shell", "--run-dir", str(run_dir)]
        os.execve(UNDERSTUDY, words, environment)
    said = "echo $SLURM_CONF; command -v squeue; echo $mine; echo $PATH"
    os.write(terminal, f"{{ {said}; }} > {seen}; exit 5\n".encode())
    with contextlib.suppress(OSError):  # the terminal's end
        while os.read(terminal, 4096):
            pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
    conf, squeue, mine, path = seen.read_text().splitlines()
    assert (conf, squeue, mine) == (f"{run_dir}/slurm.conf", f"{run_dir}/bin/squeue", "yes")
    assert path == f"{run_dir}/bin:/usr/bin:/bin"


def test_what_cannot_be_run_is_said_with_a_shells_exit_codes(run_dir, tmp_path):
    done = run("exec", "--run-dir", run_dir, "no-such-command")
    assert (done.stderr, done.returncode) == (
        *("understudy exec: no-such-command: no such command\n", 127),
    )
    (tmp_path / "text").write_text("")
    done = run("exec", "--run-dir", run_dir, tmp_path / "text")
    assert done.stderr == f"understudy exec: {tmp_path}/text: Permission denied\n"
    assert done.returncode == 126
    done = run("exec", "--run-dir", tmp_path, "true")
    assert done.returncode == 1
    assert f"{tmp_path} is not a cluster's run directory" in done.stderr
    (run_dir / "controller.pid").unlink()
    done = run("exec", "--run-dir", run_dir, "true")
    assert done.stderr == f"understudy exec: error: no cluster runs in {run_dir}\n"


def test_up_says_where_commands_would_go_instead(run_dir, capsys, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm/slurm.conf")
    monkeypatch.setenv("PATH", f"{UNDERSTUDY.parent}:/usr/bin:/bin")
    announce(Cluster("tux", "tux.conf"), run_dir, 1.0)
    said = capsys.readouterr().out
    assert "As SLURM_CONF is /etc/slurm/slurm.conf, commands do not find it yet: `unde" in said
    monkeypatch.delenv("SLURM_CONF")
    announce(Cluster("tux", "tux.conf"), run_dir, 1.0)
    assert "find it as the last cluster that you started" in capsys.readouterr().out
