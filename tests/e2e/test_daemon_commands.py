"""slurmctld, slurmd and slurmdbd as an existing start script calls them: in any order, a node
daemon for some nodes each, steps that span them.
"""

import contextlib
import os
import pwd
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from ports import reserved

from understudy.tool.manual.catalogue import module_of

CONF = """ClusterName=d
SlurmctldHost=localhost
SlurmctldPort={port}
SlurmctldPidFile={folder}/ctld.pid
AccountingStorageType=accounting_storage/slurmdbd
AccountingStoragePort={accounting}
SelectType=select/cons_tres
NodeName=n[1-4] CPUs=2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES
"""


class Site:
    def __init__(self, folder, ports):
        self.folder = folder
        port, accounting = ports
        conf = folder / "slurm.conf"
        conf.write_text(CONF.format(port=port, accounting=accounting, folder=folder))
        names = {
            "SLURM_CONF": str(conf),
            "XDG_STATE_HOME": f"{folder}/state",
            "UNDERSTUDY_REGISTRY": f"{folder}/registry",
        }
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SLURM")},
            **names,
        }
        self.daemons = {}

    def command(self, name, *arguments):
        if name == "sacctmgr":
            return [str(Path(sys.executable).parent / name), *arguments]
        return [sys.executable, "-P", "-m", module_of(name), *arguments]

    def start(self, name, *arguments):
        with (self.folder / f"{name}.out").open("ab") as out:
            command = self.command(name, "-D", *arguments)
            daemon = subprocess.Popen(
                command, env=self.environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL
            )
        self.daemons[name, *arguments] = daemon
        return daemon

    def run(self, name, *arguments, check=True):
        done = subprocess.run(
            self.command(name, *arguments),
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    def until(self, condition, what):
        for _ in range(300):
            if condition():
                return
            time.sleep(0.1)
        raise AssertionError(what)

    def all_idle(self):
        return self.run("sinfo", "-h", "-o", "%D %T", check=False).stdout == "4 idle\n"

    def close(self):
        for path in self.folder.glob("state/understudy/*/*.pid"):
            with contextlib.suppress(ProcessLookupError, ValueError, OSError):
                os.kill(int(path.read_text().split()[0]), signal.SIGTERM)
        for daemon in self.daemons.values():
            daemon.terminate()
            daemon.wait(20)


@pytest.fixture
def site(tmp_path):
    with reserved(2) as ports:
        site = Site(tmp_path, ports)
        yield site
        site.close()


def test_daemons_that_are_started_one_by_one_are_a_cluster(site):
    site.start("slurmd", "-N", "n1")
    site.start("slurmdbd")
    site.start("slurmctld", "-c", "-f", site.environment["SLURM_CONF"])
    site.start("slurmd", "-N", "n2")
    site.run("slurmd", "-N", "n[3-4]")  # in the background: ready when it returns
    site.until(site.all_idle, "nodes are not idle")
    step = site.run("srun", "-N4", "sh", "-c", "echo $SLURMD_NODENAME")
    assert sorted(step.stdout.split()) == ["n1", "n2", "n3", "n4"]
    spools = {path.name for path in site.folder.glob("state/understudy/*/spool/*")}
    assert spools == {"slurmd.n1", "slurmd.n2", "slurmd.n[3-4]"}
    refused = site.run("slurmctld", "-D", check=False)
    assert refused.returncode == 1
    assert "runs already" in refused.stderr
    site.until(
        lambda: site.run("sacct", "-n", "-X", "-o", "State").stdout.split() == ["COMPLETED"],
        "accounting knows no job",
    )

    job = site.run(
        "sbatch", "--parsable", "-w", "n1", "-o", "out", "--wrap", "sleep 3; echo end"
    ).stdout.strip()
    site.until(
        lambda: site.run("squeue", "-h", "-j", job, "-o", "%T").stdout == "RUNNING\n",
        "it does not run",
    )
    daemon = site.daemons["slurmd", "-N", "n1"]
    daemon.kill()
    daemon.wait()
    site.start("slurmd", "-N", "n1")
    site.until(
        lambda: (
            site.run("sacct", "-n", "-X", "-j", job, "-o", "State").stdout.split() == ["COMPLETED"]
        ),
        "the job is lost",
    )
    assert (site.folder / "out").read_text() == "end\n"

    os.kill(int((site.folder / "ctld.pid").read_text()), signal.SIGTERM)
    site.daemons["slurmctld", "-c", "-f", site.environment["SLURM_CONF"]].wait(20)
    assert not (site.folder / "ctld.pid").exists()
    site.start("slurmctld")
    site.until(
        lambda: (
            f"{job} COMPLETED\n"
            in site.run("squeue", "-h", "-t", "all", "-o", "%i %T", check=False).stdout
        ),
        "state is lost",
    )


def test_a_daemon_that_cannot_be_says_why(site):
    refused = site.run("slurmd", "-N", "n9", check=False)
    assert (refused.returncode, refused.stderr) == (
        1,
        'slurmd: fatal: _find_node_record: lookup failure for node "n9"\n',
    )
    assert site.run("slurmctld", "-V").stdout == "slurm 22.05.8\n"
    assert Path(site.environment["SLURM_CONF"]).exists()


def test_daemons_take_up_a_changed_configuration_and_end_together(site):
    """Programs of the site come and go with `scontrol reconfigure`; a controller that is started
    again reads the file as it is now.
    """
    conf = Path(site.environment["SLURM_CONF"])
    text = (
        conf.read_text()
        .replace("slurmdbd", "none")
        .replace("State=UNKNOWN", "Port=7002-7005 Features=a State=UNKNOWN")
    )
    conf.write_text(text)
    controller = site.start("slurmctld")
    node = site.start("slurmd", "-N", "n[1-4]")
    site.until(site.all_idle, "nodes are not idle")
    assert site.run("sinfo", "-h", "-N", "-n", "n3", "-O", "Port").stdout.split() == ["7004"]

    task_prolog, prolog = site.folder / "task_prolog", site.folder / "prolog"
    task_prolog.write_text("#!/bin/sh\necho export SAID=yes\n")
    prolog.write_text(f"#!/bin/sh\necho $SLURM_JOB_ID >> {site.folder}/prologs\n")
    for program in (task_prolog, prolog):
        program.chmod(0o755)
    said = ("srun", "-N1", "sh", "-c", "echo ${SAID:-no}")
    assert site.run(*said).stdout == "no\n"
    conf.write_text(f"{text}TaskProlog={task_prolog}\nProlog={prolog}\n")
    site.run("scontrol", "reconfigure")
    site.until(lambda: site.run(*said).stdout == "yes\n", "the task prolog does not run")
    ran = len((site.folder / "prologs").read_text().split())
    assert ran >= 1
    conf.write_text(text)
    site.run("scontrol", "reconfigure")
    site.until(lambda: site.run(*said).stdout == "no\n", "the task prolog runs on")
    assert site.run(*said).stdout == "no\n"
    assert len((site.folder / "prologs").read_text().split()) <= ran + 1

    conf.write_text(text + "Nonsense=1\n")
    refused = site.run("scontrol", "reconfigure", check=False)
    assert refused.returncode == 1
    assert "Nonsense" in refused.stderr
    conf.write_text(text.replace("Features=a", "Features=b"))
    site.run("scontrol", "shutdown", "slurmctld")
    assert controller.wait(20) == 0
    assert node.poll() is None
    controller = site.start("slurmctld")
    site.until(site.all_idle, "nodes are not idle")
    assert site.run("sinfo", "-h", "-o", "%f").stdout == "b\n"
    site.run("scontrol", "shutdown")
    assert (controller.wait(20), node.wait(20)) == (0, 0)


def test_a_daemon_in_the_background_is_found_by_its_name_and_its_command_line(site):
    site.run("slurmd", "-N", "n[2-3]")
    pid = next(site.folder.glob("state/understudy/*/slurmd.n?2-3?.pid")).read_text().split()[0]
    assert Path(f"/proc/{pid}/comm").read_text() == "slurmd\n"
    words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    assert words == [b"slurmd", b"-N", b"n[2-3]", b"-D"]
    assert (
        pid
        in subprocess.run(
            ["pgrep", "-f", r"^slurmd -N n\[2-3\]"], capture_output=True, text=True, check=True
        ).stdout.split()
    )


def test_logs_tell_of_jobs_as_far_as_their_level_lets_them(site):
    """At a healthy start nothing is warned of; `-v`, SlurmctldDebug and `scontrol setdebug` choose
    what is written.
    """
    conf = Path(site.environment["SLURM_CONF"])
    text = conf.read_text().replace("slurmdbd", "none")
    conf.write_text(text)
    site.run("slurmctld")
    site.run("slurmd", "-N", "n[1-4]")
    site.until(site.all_idle, "nodes are not idle")

    def said(program):
        return next(site.folder.glob(f"state/understudy/*/logs/{program}.log")).read_text()

    job = site.run("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "exit 3").stdout.strip()
    site.until(
        lambda: f"_job_complete: JobId={job} WEXITSTATUS 3\n" in said("slurmctld"),
        "its end is not told",
    )
    assert re.search(
        r"^\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\] _slurm_rpc_submit_batch_job: "
        rf"JobId={job} InitPrio=\d+ usec=\d+$",
        said("slurmctld"),
        re.MULTILINE,
    )
    assert f"Launching batch job {job} for UID {os.getuid()}\n" in said("slurmd")
    assert not re.search("error|warning", said("slurmctld") + said("slurmd"), re.IGNORECASE)
    site.run("scontrol", "setdebug", "error")
    before = len(said("slurmctld"))
    site.run("srun", "true")
    assert len(said("slurmctld")) == before
    site.run("scontrol", "setdebug", "debug2")
    site.run("squeue")
    assert "debug2: Processing RPC: REQUEST_JOB_INFO from UID=" in said("slurmctld")[before:]
    conf.write_text(f"{text}SlurmctldDebug=quiet\nSlurmdDebug=quiet\nLogTimeFormat=short\n")
    site.run("scontrol", "reconfigure")
    site.run("srun", "true")
    before = len(said("slurmctld")), len(said("slurmd"))
    site.run("srun", "true")
    assert (len(said("slurmctld")), len(said("slurmd"))) == before
    site.run("scontrol", "shutdown")


def test_logs_are_where_slurm_conf_says_or_the_command_line(site):
    """In the foreground on the terminal, too; a log that was moved away (logrotate, which sends
    SIGUSR2) is begun anew.
    """
    conf = Path(site.environment["SLURM_CONF"])
    logs = f"SlurmctldLogFile={site.folder}/ctld.log\nSlurmdLogFile={site.folder}/%n.log\n"
    conf.write_text(conf.read_text().replace("slurmdbd", "none") + logs)
    site.run("slurmctld")
    site.start("slurmd", "-N", "n1")
    site.run("slurmd", "-N", "n[2-4]", "-L", f"{site.folder}/others.log")
    site.until(site.all_idle, "nodes are not idle")
    log, moved = site.folder / "ctld.log", site.folder / "ctld.log.1"
    assert log.stat().st_mode & 0o777 == 0o600
    job = site.run(
        "sbatch", "--parsable", "-N4", "-o", "/dev/null", "--wrap", "srun true"
    ).stdout.strip()
    site.until(lambda: f"_job_complete: JobId={job} done" in log.read_text(), "its end is not told")
    kept = next(site.folder.glob("state/understudy/*/logs/slurmctld.log"))
    assert "JobId=" not in kept.read_text()
    assert f" Launching batch job {job} " in (site.folder / "n1.log").read_text()
    assert f"slurmd: Launching batch job {job} " in (site.folder / "slurmd.out").read_text()
    assert (site.folder / "others.log").exists()
    assert not (site.folder / "n[2-4].log").exists()
    log.rename(moved)
    os.kill(int((site.folder / "ctld.pid").read_text()), signal.SIGUSR2)
    job = site.run("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "true").stdout.strip()
    site.until(
        lambda: log.exists() and f"_job_complete: JobId={job} done" in log.read_text(),
        "the log does not go on",
    )
    assert f"JobId={job}" not in moved.read_text()
    site.run("scontrol", "shutdown")
    site.daemons["slurmd", "-N", "n1"].wait(20)
    conf.write_text(conf.read_text().replace(f"{site.folder}/%n.log", "/nonexistent/%n.log"))
    site.start("slurmd", "-N", "n1")
    said = (
        "(null): _log_init: Unable to open logfile `/nonexistent/n1.log': No such file or "
        "directory\n"
    )
    site.until(
        lambda: said in (site.folder / "slurmd.out").read_text(), "that it cannot be is not said"
    )


def test_commands_find_the_cluster_by_what_the_file_says_whoever_starts_it(site):
    """Accounting comes first; a copy of the file leads to the same cluster; SlurmUser's cluster
    serves other users.
    """
    conf = Path(site.environment["SLURM_CONF"])
    site.run("slurmdbd")
    site.run("sacctmgr", "-i", "add", "cluster", "d")
    assert (
        site.run("squeue", check=False).stderr
        == "slurm_load_jobs error: Unable to contact slurm controller (connect "
        "failure)\n"
    )
    site.run("slurmctld")
    site.run("slurmd", "-N", "n[1-4]")
    site.until(site.all_idle, "nodes are not idle")
    copy = site.folder / "copy.conf"
    copy.write_text(conf.read_text())
    site.environment["SLURM_CONF"] = str(copy)
    assert site.run("sinfo", "-h", "-o", "%D").stdout == "4\n"
    copy.write_text(conf.read_text() + "Nonsense=1\n")
    broken = site.run("sinfo", check=False)
    assert (broken.returncode, broken.stderr) == (
        1, ("sinfo: error: _parse_next_key: Parsing error at unrecognized key: Nonsense\n"
            "sinfo: fatal: Unable to process configuration file\n"),
    )  # fmt: skip
    site.environment["SLURM_CONF"] = str(conf)
    site.run("scontrol", "shutdown")
    site.until(lambda: site.run("sinfo", check=False).returncode, "the controller has not ended")
    shown = site.run("sacctmgr", "-n", "show", "cluster", "format=cluster", check=False)
    assert (shown.stdout.split(), shown.stderr) == (["d"], ""), "accounting goes on"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")
def test_a_cluster_of_slurm_user_serves_root_and_others(site):
    """SlurmUser is a user without a home, as it is in distributions."""
    user = pwd.getpwnam("nobody").pw_uid
    conf = Path(site.environment["SLURM_CONF"])
    conf.write_text(
        conf.read_text().replace("slurmdbd", "none").replace(f"{site.folder}/ctld.pid", "/dev/null")
        + "SlurmUser=nobody\n"
    )
    for folder in (site.folder, *site.folder.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o755)
    with contextlib.ExitStack() as stack:
        state = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="u")))
        os.chown(state, user, -1)
        state.chmod(0o755)
        del site.environment["UNDERSTUDY_REGISTRY"]
        site.environment |= {"XDG_STATE_HOME": str(state), "HOME": "/nonexistent"}
        site.environment.pop("XDG_RUNTIME_DIR", None)

        def command(as_user, name, *arguments):
            return subprocess.run(
                site.command(name, *arguments),
                env=site.environment,
                user=as_user,
                cwd="/",
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )

        started = command(user, "slurmctld")
        assert started.returncode == 0, started.stderr
        try:
            for other in (user, 0, pwd.getpwnam("daemon").pw_uid):
                asked = command(other, "sinfo", "-h", "-o", "%D")
                assert (asked.stdout, asked.stderr) == ("4\n", "")
            conf.write_text(conf.read_text().replace("State=UNKNOWN", "Features=new State=UNKNOWN"))
            assert command(0, "scontrol", "reconfigure").stderr == ""
            assert command(0, "sinfo", "-h", "-o", "%f").stdout == "new\n"
        finally:
            assert command(0, "scontrol", "shutdown").returncode == 0
            site.until(lambda: not list(state.glob("understudy/*/*.pid")), "it has not ended")
