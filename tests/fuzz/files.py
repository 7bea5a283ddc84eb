"""Files and command lines that are almost right."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from typing import TYPE_CHECKING, Any

from controller_harness import Harness
from fake_controller import FakeClient, run_command
from fuzz.mutate import octets, text

from understudy.auth.handshake import AuthError
from understudy.auth.keys import Keys, create_keys
from understudy.commands.shared.client import RefusedError
from understudy.commands.submission.batch_script import ScriptError, directives, read_script
from understudy.controller.saved.records import StateError
from understudy.controller.saved.recover import recover
from understudy.controller.saved.store import Dirty, Store
from understudy.experiments.past import Count, HistoryError
from understudy.experiments.sacct_rows import read_rows
from understudy.experiments.scenario import ScenarioError, read_scenario
from understudy.experiments.swf import read_swf
from understudy.experiments.trace import TraceError
from understudy.model.cluster import Cluster, NodeDaemon
from understudy.model.conf import read
from understudy.model.dbd_conf import load as load_dbd
from understudy.model.errors import ConfigError
from understudy.model.hostlist import compress, count, expand
from understudy.noded.journal import Journal, entries
from understudy.protocol.messages import BatchComplete
from understudy.tool.manual.catalogue import commands, module_of

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

_CONF = """ClusterName=c
SlurmctldHost=a(127.0.0.1)
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu,shard
TopologyPlugin=topology/tree
SchedulerParameters=bf_window=10,default_queue_depth=5
Licenses=matlab:5,x
NodeName=n[1-8] Sockets=2 CoresPerSocket=4 RealMemory=1000 Gres=gpu:a:2 Feature=f,g Weight=3
NodeName=DEFAULT State=UNKNOWN
DownNodes=n1 State=DOWN Reason="x y"
PartitionName=DEFAULT MaxTime=1-0
PartitionName=p Nodes=n[1-8] Default=YES OverSubscribe=FORCE:2 AllowGroups=a,b
NodeSet=s Feature=f
include other.conf
"""
_COMPANIONS = {
    "gres.conf": "AutoDetect=off\nNodeName=n[1-8] Name=gpu Type=a File=/dev/nvidia[0-1] Cores=0-3\n"
    "Name=shard Count=8\n",
    "topology.conf": "SwitchName=s1 Nodes=n[1-4]\nSwitchName=s2 Nodes=n[5-8]\n"
    "SwitchName=t Switches=s[1-2] LinkSpeed=1\n",
    "cgroup.conf": "CgroupPlugin=cgroup/v1\nConstrainRAMSpace=yes\nAllowedRAMSpace=95.5\n",
    "other.conf": "MessageTimeout=20\ninclude other.conf\n",
}
_DBD = """AuthType=auth/munge
DbdHost=localhost
StorageType=accounting_storage/mysql
StoragePass=secret
PurgeJobAfter=12months
ArchiveJobs=yes
PrivateData=jobs,users
"""
_SWF = """; Version: 2.2
; MaxNodes: 8
; UnixStartTime: 0
1 0 5 10 2 -1 -1 2 20 -1 1 3 4 -1 1 1 -1 -1
2 3 5 10.5 2 -1 -1 2 20 100 1 3 4 -1 1 1 1 5
"""
_SACCT = """JobID|JobName|State|Submit|Start|End|Elapsed|NCPUS|Timelimit|User
1|a|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:10|2026-01-01T00:01:10|00:01:00|4|01:00:00|ann
1.batch|b|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:10|2026-01-01T00:01:10|00:01:00|4||
2_[1-3]|b|CANCELLED by 7|2026-01-01T00:00:00|Unknown|Unknown|00:00:00|1|UNLIMITED|bob
"""
_HOSTS = ("n[1-8]", "a[01-10,12]b[1-2],c", "n1,n2", "r[1-2]n[1-4]-ib", "n[1-65000]", "x")
_SCRIPT = """#!/bin/bash
#SBATCH -N 2 --time=1:00:00 --job-name "a b"
#SBATCH --gres=gpu:1 # a word
#SBATCH hetjob
#SBATCH --mem=1G --array=1-5%2
srun true
"""
_LINES = (
    "-N 2-4 -n 8 -c 2 -t 1-0 -p debug --mem=1G --wrap true",
    "--array=1-5%2 --wrap hostname",
    "-J a -o %A_%a.out --dependency=afterok:1 --wrap true",
    "-l -u root -t PD -o %i.%j%30P --sort=-p,i",
    "-N -o %20N -t idle,down -p debug",
    "show job 1",
    "show node n[1-2]",
    "update jobid=1 timelimit=5",
    "update nodename=n1 state=drain reason=x",
    "create reservation starttime=now duration=5 users=root nodes=ALL",
    "create partition partitionname=x nodes=ALL",
    "hold 1 2_3",
    "-s USR1 -u root -t R 1 2_[1-3]",
    "-S now-1day -E now -o jobid,state%20 -s CD",
    "show user format=a%5,b",
    "add user x account=y fairshare=5",
    "--set -j 1 --fini --program=/bin/true",
    "cluster utilization start=1/1 end=now -t hours",
    "--begin=16:00 --deadline=now+1hour --signal=B:USR1@60 -w n[1-3] -x n4 --wrap true",
)


def configuration(rng: random.Random, folder: Path) -> None:
    """slurm.conf or a companion of it."""
    files = {"slurm.conf": _CONF, **_COMPANIONS}
    name = rng.choice([*files, "slurm.conf"])
    for other, content in files.items():
        changed = text(rng, (content,)) if other == name else content
        (folder / other).write_text(changed, encoding="utf-8", errors="surrogateescape")
    with contextlib.suppress(ConfigError):
        read(folder / "slurm.conf")


def hosts(rng: random.Random, _folder: Path) -> None:
    """A host list; what can be counted can be written and read again."""
    expression = text(rng, _HOSTS)
    try:
        if count(expression) > 100_000:
            return
        names = expand(expression)
    except ValueError:
        return
    assert expand(compress(names, sort=False)) == names


def swf(rng: random.Random, folder: Path) -> None:
    path = folder / "trace.swf"
    path.write_text(text(rng, (_SWF,)), encoding="utf-8", errors="surrogateescape")
    with contextlib.suppress(TraceError):
        read_swf(path, strict=rng.random() < 0.5)


def sacct(rng: random.Random, _folder: Path) -> None:
    lines = text(rng, (_SACCT,)).split("\n")
    try:
        for _ in read_rows(iter(lines), Count()):
            pass
    except HistoryError:
        pass


def script(rng: random.Random, _folder: Path) -> None:
    try:
        where, whole = read_script(None, io.StringIO(text(rng, (_SCRIPT,))))
        directives(whole, where)
    except ScriptError:
        pass


class _Controller(FakeClient):
    """Answers queries and submissions, and refuses all else."""

    def call(self, message: str, *fields: Any) -> list[Any]:
        if message != "SubmitJob":
            raise RefusedError(1000, "Unexpected message received")
        return super().call(message, *fields)

    submit = call


_COMMANDS = [
    command.name for command in commands()
    if command.name not in ("srun", "salloc", "sattach", "scrontab")
]  # fmt: skip


def command_line(rng: random.Random, folder: Path) -> None:
    """A command with options of which most are another's, beside a controller that knows little."""
    from importlib import import_module

    name = rng.choice(_COMMANDS)
    words = [word.replace("\0", "") for word in text(rng, _LINES).split(" ")]
    if any(word.startswith(("-i", "--iter", "-o/", "-f", "--ui")) for word in words):
        return  # for ever, or into files
    client = _Controller()
    client.answers["SubmitJob"] = [1, ""]
    stdin = text(rng, (_SCRIPT, "", "quit\n"))
    said = run_command(
        getattr(import_module(module_of(name)), name), *words, client=client, stdin=stdin,
        environ={"PATH": str(folder)},
    )  # fmt: skip
    assert "Traceback" not in said.err


def state(rng: random.Random, folder: Path) -> None:
    """The controller's database, cut or changed anywhere: it comes back, or says what is wrong."""
    place, good = folder / "state", folder / "good"
    if not good.exists():
        dirty, store = Dirty(), Store(good)
        h = Harness(journal=dirty)
        for _ in range(3):
            h.submit(min_nodes=1, comment="c")
        store.write(dirty.take(h.core))
        store.close()
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(good, place)
    file = rng.choice(sorted(place.iterdir()))
    file.write_bytes(octets(rng, file.read_bytes()))
    store = None
    try:
        store = Store(place)
        h = Harness(register=False)
        recover(h.core, store.read(h.core))
    except StateError:
        pass
    finally:
        if store is not None:
            store.close()


_ABOUT = {"name": "s", "title": "a title", "horizon": 540, "users": {"ann": {}}}
_WORKLOAD = (
    '{"id": "j1", "at": 0.6, "user": "ann", "run": 31.1, "options": ["-N2", "--time=1"]}\n'
    '{"id": "j2", "at": 1, "user": "ann", "run": 5, "exit": 3, "options": ["--array=1-3"]}\n'
)
_EVENTS = '{"at": 10, "cmd": ["scontrol", "update", "PartitionName=p", "State=DOWN"]}\n'


def scenario(rng: random.Random, folder: Path) -> None:
    (folder / "slurm.conf").write_text(_CONF.replace("include other.conf\n", ""))
    files = {"about.json": json.dumps(_ABOUT), "workload.jsonl": _WORKLOAD, "events.jsonl": _EVENTS}
    for name, content in files.items():
        changed = text(rng, (content,)) if rng.random() < 0.5 else content
        (folder / name).write_text(changed, encoding="utf-8", errors="surrogateescape")
    with contextlib.suppress(ScenarioError, ConfigError):
        read_scenario(folder)


def keys(rng: random.Random, folder: Path) -> None:
    """The private key of a daemon, or the public ones of all."""
    place = folder / "keys"
    create_keys(place, ("controller", "noded0"))
    file = place / rng.choice(("public", "noded0"))
    good = file.read_bytes()
    file.write_bytes(octets(rng, good))
    try:
        Keys("noded0", place).answered(b"hello", "controller")
    except AuthError:
        pass
    finally:
        file.write_bytes(good)


def accounting_conf(rng: random.Random, folder: Path) -> None:
    path = folder / "slurmdbd.conf"
    path.write_text(text(rng, (_DBD,)), encoding="utf-8", errors="surrogateescape")
    with contextlib.suppress(ConfigError):
        load_dbd(path)


def journal(rng: random.Random, folder: Path) -> None:
    """A node daemon's journal, cut or changed anywhere: what is whole comes back."""
    place = folder / "journal"
    shutil.rmtree(place, ignore_errors=True)
    first = Journal(place)
    for number in range(1, 4):
        first.put(BatchComplete(number, 0, 0, 0))
    first.close()
    file = place / "entries"
    file.write_bytes(octets(rng, file.read_bytes()))
    again = Journal(place)
    again.put(BatchComplete(9, 0, 0, 0))
    assert BatchComplete(9, 0, 0, 0) in entries(place), "what was written after it is lost"
    again.close()


def description(rng: random.Random, folder: Path) -> None:
    """cluster.json."""
    Cluster("c", "slurm.conf", nodeds=[NodeDaemon("noded0", "unix:/x", "n1")]).save(folder)
    file = folder / "cluster.json"
    file.write_text(text(rng, (file.read_text(),)), encoding="utf-8", errors="surrogateescape")
    with contextlib.suppress(OSError, ValueError, TypeError):
        Cluster.load(folder)


FILES: dict[str, Callable[[random.Random, Path], None]] = {
    "conf": configuration,
    "hosts": hosts,
    "swf": swf,
    "sacct": sacct,
    "script": script,
    "line": command_line,
    "state": state,
    "scenario": scenario,
    "keys": keys,
    "dbd": accounting_conf,
    "journal": journal,
    "cluster": description,
}
