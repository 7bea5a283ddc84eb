"""Commands of a cluster with backup controllers: they find the one that leads, wait while none
does, and ask another where one stands still.

Covers: commands/shared/client.
"""

import contextlib
import socket
import threading
from importlib import import_module

import pytest
from fake_controller import FakeClient, record, run_command

from understudy.auth.local import LOCAL_HELLO
from understudy.commands.scontrol.scontrol import scontrol
from understudy.commands.shared.client import Client, RefusedError, pack
from understudy.commands.shared.locate import Location
from understudy.commands.shared.packing import pack as pack_bytes
from understudy.commands.shared.packing import unpack

STANDBY = pack("Failure", 2027, "Slurm backup controller in standby mode")
LEADS, WAITS = pack("Leader", "backup1", True, 2), pack("Leader", "controller", False, 0)
SUBMITTED = pack("Submitted", 7)


class Controller(threading.Thread):
    """Answers each question by what `answers` has for the message's tag; None: never."""

    def __init__(self, path, **answers):
        super().__init__(daemon=True)
        self.answers = {pack_tag(name): answer for name, answer in answers.items()}
        self.asked = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, connection.makefile("rb") as frames, contextlib.suppress(OSError):
            while length := frames.read(4):
                body = frames.read(int.from_bytes(length, "big"))
                if body == LOCAL_HELLO:
                    continue
                _, number, _, _, message = unpack(body)
                self.asked.append(message)
                answer = self.answers.get(message[0], STANDBY)
                if answer is not None:
                    body = pack_bytes([1, number, 0, 0, answer])
                    connection.sendall(len(body).to_bytes(4, "big") + body)

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def pack_tag(name):
    return import_module("understudy.protocol.wire_table").WIRE[name][0]


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Makes controllers and a client of theirs; waiting takes no time."""
    monkeypatch.setattr("understudy.commands.shared.client._pause", lambda _seconds: None)
    (tmp_path / "slurm.conf").write_text("ClusterName=c\nSlurmctldTimeout=4\nMessageTimeout=2\n")
    location = Location(
        conf=str(tmp_path / "slurm.conf"),
        controller_unix=f"unix:{tmp_path}/controller",
        backups=[["ctl2", f"unix:{tmp_path}/backup1", ""]],
    )
    made = []

    def make(name, **answers):
        made.append(Controller(tmp_path / name, **answers))
        return made[-1]

    make.client = Client(lambda: location)
    yield make
    make.client.close()
    for each in made:
        each.close()


def submit(client):
    return client.submit("SubmitJob", pack("JobSpec"), "#!/bin/sh", None, -1, -1, False, [])[0]


def test_a_controller_that_stands_by_is_passed_over(site):
    primary, backup = site("controller"), site("backup1", SubmitJob=SUBMITTED)
    assert [submit(site.client) for _ in range(2)] == [7, 7]
    assert (len(primary.asked), len(backup.asked)) == (1, 2)


def test_who_leads_is_found_though_the_primary_is_not_there(site):
    site("backup1", SubmitJob=SUBMITTED)
    assert submit(site.client) == 7


def test_as_long_as_nobody_leads_commands_wait_for_the_timeout_and_half_of_it(site, monkeypatch):
    """As 22.05.8, which says then that the backup controller stands by."""
    now = [100.0]
    monkeypatch.setattr("understudy.commands.shared.client._monotonic", lambda: now[0])

    def pause(seconds):
        now[0] += seconds

    monkeypatch.setattr("understudy.commands.shared.client._pause", pause)
    site("controller")
    backup = site("backup1")
    with pytest.raises(RefusedError, match="Slurm backup controller in standby mode"):
        submit(site.client)
    assert now[0] == 106.0
    backup.answers[pack_tag("SubmitJob")] = SUBMITTED
    assert submit(site.client) == 7


def test_where_one_stands_still_the_other_is_asked_under_the_same_token(site, monkeypatch):
    monkeypatch.setattr("understudy.commands.shared.client._LEAST_TIMEOUT_S", 0.01)
    primary = site("controller", SubmitJob=None)
    backup = site("backup1", SubmitJob=SUBMITTED, GetLeader=LEADS)
    assert submit(site.client) == 7
    assert primary.asked[0] == backup.asked[-1]


def test_who_stands_still_is_waited_for_as_long_as_nobody_else_leads(site, monkeypatch):
    monkeypatch.setattr("understudy.commands.shared.client._LEAST_TIMEOUT_S", 0.01)
    now = iter(range(100, 200))
    monkeypatch.setattr("understudy.commands.shared.client._monotonic", lambda: float(next(now)))
    site("controller", CancelJobs=None)
    backup = site("backup1", GetLeader=WAITS)
    with pytest.raises(RefusedError, match="Socket timed out on send/recv operation"):
        site.client.call("CancelJobs", ["1"], None, {})
    assert len(backup.asked) == 7


# --- scontrol -------------------------------------------------------------------------------------


class Cluster(FakeClient):
    """`up`: addresses of the controllers that are there."""

    def __init__(self, *up, backups=1):
        super().__init__(ping=[record("ping", host="h", role="primary", responding=True)])
        self.up = up
        self.location = Location(
            controller_unix="c",
            controller_host="ctl1",
            backups=[[f"ctl{n + 1}", f"b{n}", ""] for n in range(1, backups + 1)],
        )
        self.told = []

    def another(self, address):
        other = FakeClient()
        other.close = lambda: None
        if address not in self.up:
            refusal = RefusedError(1005, "Unable to contact slurm controller (connect failure)")
            other.answers = {"Ping": refusal, "TakeOver": refusal, "Shutdown": refusal}
        original = other.call
        other.call = lambda *words: (self.told.append((address, *words)), original(*words))[1]
        return other


BANNER = [f"{'*' * 41}", "** RESTORE SLURMCTLD DAEMON TO SERVICE **", f"{'*' * 41}"]


@pytest.mark.parametrize(
    ("up", "states", "code"),
    [
        (("c", "b1"), ("UP", "UP"), 0),
        (("b1",), ("DOWN", "UP"), 0),
        (("c",), ("UP", "DOWN"), 0),
        ((), ("DOWN", "DOWN"), 1),
    ],
)
def test_ping_tells_of_each_controller(up, states, code):
    said = run_command(scontrol, "ping", client=Cluster(*up))
    lines = [
        f"Slurmctld(primary) at ctl1 is {states[0]}",
        f"Slurmctld(backup) at ctl2 is {states[1]}",
    ]
    assert said.lines == lines + (BANNER if "DOWN" in states else [])
    assert said.code == code


def test_several_backups_are_numbered():
    said = run_command(scontrol, "ping", client=Cluster("c", "b1", "b2", backups=2))
    assert [line.split()[0] for line in said.lines] == [
        "Slurmctld(primary)",
        "Slurmctld(backup1)",
        "Slurmctld(backup2)",
    ]


@pytest.mark.parametrize(
    ("words", "told", "error"),
    [
        ([], [("b1", "TakeOver")], ""),
        (["2"], [("b2", "TakeOver")], ""),
        (["3"], [], "takeover: invalid backup controller index (3)\n"),
        (["0"], [], "takeover: invalid backup controller index (0)\n"),
        (["1", "2"], [], "takeover: too many arguments\n"),
    ],
)
def test_takeover_tells_the_backup_that_is_meant(words, told, error):
    cluster = Cluster("c", "b1", "b2", backups=2)
    said = run_command(scontrol, "takeover", *words, client=cluster)
    assert (said.code, said.err, cluster.told) == (1 if error else 0, error, told)


def test_takeover_says_that_the_backup_is_not_there():
    said = run_command(scontrol, "takeover", client=Cluster("c"))
    text = "slurm_takeover error: Unable to contact slurm controller (connect failure)\n"
    assert (said.code, said.err) == (1, text)


def test_shutdown_ends_those_that_stand_by_too():
    cluster = Cluster("b1")
    assert run_command(scontrol, "shutdown", client=cluster).code == 0
    assert cluster.told == [("c", "Shutdown", True), ("b1", "Shutdown", True)]
