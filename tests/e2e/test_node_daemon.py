"""A node daemon as a process, with real jobs, and a test in the controller's place.

Covers: noded/main.
"""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from understudy.auth.credential import Signer
from understudy.auth.keys import Keys, create_keys
from understudy.model.cluster import Cluster, NodeDaemon
from understudy.noded.journal import entries
from understudy.protocol.messages import (
    BatchComplete,
    EpilogComplete,
    Failure,
    Forward,
    JobSpec,
    LaunchBatch,
    NodeReplies,
    Ok,
    Ping,
    Registered,
    RegisterNodes,
    SignalJob,
    TerminateJob,
)
from understudy.protocol.messenger import Messenger


class Controller:
    """Keeps what node daemons say, and acknowledges it unless it is `deaf`."""

    def __init__(self, run_dir, executor="real"):
        self.run_dir = run_dir
        create_keys(run_dir / "keys", ["controller", "noded0", "noded1"])
        self.keys = Keys("controller", run_dir / "keys")
        (run_dir / "slurm.conf").write_text("ClusterName=c\nKillWait=1\n")
        self.cluster = Cluster(
            "c",
            str(run_dir / "slurm.conf"),
            executor=executor,
            controller=f"unix:{run_dir}/controller.sock",
            key_folder=str(run_dir / "keys"),
            nodeds=[
                NodeDaemon("noded0", f"unix:{run_dir}/noded0.sock", "n[0-9]"),
                NodeDaemon("noded1", f"unix:{run_dir}/noded1.sock", "n[10-19]"),
            ],
        )
        self.cluster.save(run_dir)
        self.deaf = False
        self.heard = []
        self.messenger = Messenger("controller", asyncio.get_running_loop(), self.keys)
        self.messenger.set_handler(self._handle)
        self.messenger.listen([self.cluster.controller])
        for noded in self.cluster.nodeds:
            self.messenger.add_peer(noded.name, noded.address)
        self.processes = []

    def _handle(self, request):
        if self.deaf:
            return Failure(-1, "not ready")
        message = request.message
        if isinstance(message, BatchComplete):
            # what it has used differs from run to run
            message = msgspec.structs.replace(message, usage={})
        self.heard.append(message)
        return Registered() if isinstance(request.message, RegisterNodes) else Ok()

    def start(self, name="noded0"):
        with (self.run_dir / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "understudy.noded",
                    "--run-dir",
                    str(self.run_dir),
                    "--name",
                    name,
                ],
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        self.processes.append(process)
        return process

    async def hear(self, kind, count=1):
        for _ in range(2000):
            found = [message for message in self.heard if isinstance(message, kind)]
            if len(found) >= count:
                return found[-1]
            await asyncio.sleep(0.01)
        raise AssertionError(
            f"no {kind.__name__}: {self.heard} "
            f"{[path.read_text() for path in self.run_dir.glob('*.log')]}"
        )

    def launch(self, job_id, script, nodes="n0"):
        now = int(time.time())
        credential = Signer(self.keys).sign(job_id, 0, nodes, os.getuid(), now)
        spec = JobSpec(
            name="j", work_dir=str(self.run_dir), environment=[f"PATH={os.environ['PATH']}"]
        )
        return LaunchBatch(
            job_id,
            0,
            nodes,
            now,
            credential,
            os.getuid(),
            os.getgid(),
            None,
            script,
            spec,
            environment=[f"SLURM_JOB_ID={job_id}", f"SLURM_JOB_NODELIST={nodes}"],
        )

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()
        self.messenger.close()


@pytest.fixture
async def controller(tmp_path, caplog):
    caplog.set_level(logging.ERROR, logger="understudy")
    controller = Controller(tmp_path)
    yield controller
    controller.end()
    await asyncio.sleep(0)


def is_alive(pid):
    return Path(f"/proc/{pid}").exists()


async def stop(process):
    process.send_signal(signal.SIGTERM)
    return await asyncio.to_thread(process.wait, 20)


async def test_a_batch_job_from_launch_to_epilog(controller):
    process = controller.start()
    registration = await controller.hear(RegisterNodes)
    assert (registration.daemon, registration.nodes, registration.running_jobs) == (
        "noded0",
        "n[0-9]",
        [],
    )
    assert registration.boot_time < registration.slurmd_start_time
    launch = controller.launch(
        17, "#!/bin/sh\necho $SLURM_JOB_ID on $SLURM_JOB_NODELIST\nexit 4\n", "n[0-1]"
    )
    assert await controller.messenger.call("noded0", launch) == Ok()
    assert await controller.hear(BatchComplete) == BatchComplete(17, 0, 4, 0, False, "n0")
    assert (controller.run_dir / "slurm-17.out").read_text() == "17 on n[0-1]\n"
    assert await controller.messenger.call("noded0", TerminateJob(17, 0, "n[0-1]")) == Ok()
    assert await controller.hear(EpilogComplete) == EpilogComplete(17, 0, "n[0-1]")
    assert await stop(process) == 0
    assert "Traceback" not in (controller.run_dir / "noded0.log").read_text()
    assert [path.name for path in (controller.run_dir / "spool" / "noded0").iterdir()] == [
        "journal"
    ]
    assert entries(controller.run_dir / "spool" / "noded0" / "journal") == []


async def test_a_forged_launch_starts_nothing(controller):
    controller.start()
    await controller.hear(RegisterNodes)
    launch = controller.launch(17, "#!/bin/sh\ntouch was_here\n")
    forged = type(launch)(
        *[
            getattr(launch, name) if name != "user_id" else 0x7FFF
            for name in launch.__struct_fields__
        ]
    )
    answer = await controller.messenger.call("noded0", forged)
    assert (type(answer), answer.code) == (Failure, 2026)
    await asyncio.sleep(0.1)
    assert not (controller.run_dir / "was_here").exists()


async def test_jobs_go_on_and_nothing_is_lost_when_the_daemon_is_killed(controller):
    first = controller.start()
    await controller.hear(RegisterNodes)
    await controller.messenger.call(
        "noded0",
        controller.launch(1, "#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.02; done\nexit 3\n"),
    )
    await controller.messenger.call("noded0", controller.launch(2, "#!/bin/sh\nexit 2\n", "n1"))
    await controller.messenger.call("noded0", controller.launch(3, "#!/bin/sh\nsleep 300\n", "n2"))
    await controller.hear(BatchComplete)
    controller.deaf = True  # what it hears now it does not take note of
    await controller.messenger.call("noded0", TerminateJob(2, 0, "n1"))
    first.kill()
    first.wait()
    controller.deaf = False
    controller.heard.clear()
    second = controller.start()
    assert (await controller.hear(RegisterNodes)).running_jobs in (
        [(1, 0), (3, 0)],
        [(1, 0), (2, 0), (3, 0)],
    )  # 2: until its epilog has been run again
    assert await controller.hear(EpilogComplete) == EpilogComplete(2, 0, "n1")
    assert not [
        message
        for message in controller.heard
        if isinstance(message, BatchComplete) and message.job_id == 1
    ]
    (controller.run_dir / "go").touch()
    while BatchComplete(1, 0, 3, 0, False, "n0") not in controller.heard:  # noqa: ASYNC110  what comes is not one event
        await asyncio.sleep(0.01)
    assert await controller.messenger.call("noded0", SignalJob(3, 0, signal.SIGINT)) == Ok()
    while BatchComplete(3, 0, 0, 2, False, "n2") not in controller.heard:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert await stop(second) == 0


async def test_ending_the_daemon_ends_its_jobs(controller):
    process = controller.start()
    await controller.hear(RegisterNodes)
    await controller.messenger.call(
        "noded0",
        controller.launch(
            1, "#!/bin/sh\ntrap '' TERM\necho $$ > pid.new; mv pid.new pid\nsleep 300\n"
        ),
    )
    while not (controller.run_dir / "pid").exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    pid = int((controller.run_dir / "pid").read_text())
    assert await stop(process) == 0
    for _ in range(500):
        if not is_alive(pid):
            break
        await asyncio.sleep(0.01)
    assert not is_alive(pid)


async def test_daemons_forward_to_each_other(controller):
    controller.start("noded0")
    controller.start("noded1")
    await controller.hear(RegisterNodes, 2)
    inner = msgspec.msgpack.encode(Ping())
    order = Signer(controller.keys).order(time.time, inner)
    message = Forward(inner, "n[0-19]", 1, 5.0, order)
    answer = await controller.messenger.call("noded0", message, 20.0)
    assert isinstance(answer, NodeReplies)
    assert [(reply.nodes, reply.code) for reply in answer.replies] == [("n[0-19]", 0)]
    controller.processes[1].kill()
    controller.processes[1].wait()
    answer = await controller.messenger.call("noded0", message, 20.0)
    assert [(reply.nodes, reply.code) for reply in answer.replies] in (
        [("n[0-9]", 0), ("n[10-19]", code)] for code in (1005, 1006)
    )


def test_a_daemon_that_the_cluster_does_not_have_says_so(tmp_path):
    Cluster("c", "x").save(tmp_path)
    result = subprocess.run(
        [sys.executable, "-m", "understudy.noded", "--run-dir", str(tmp_path), "--name", "noded7"],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (result.returncode, result.stderr) == (
        1,
        "understudy-noded: cluster c has no node daemon noded7\n",
    )
