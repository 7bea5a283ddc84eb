"""What somebody meets who tries each command for the first time: help, wrong options, no
controller, one that dies, readers that go away.

Texts and codes are those of 22.05.8. Each command is found by the catalogue, so a new one is held
to the same.

Covers: commands/shared/client, commands/shared/context.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from importlib import import_module

import pytest
from fake_controller import FakeClient, run_command

from understudy.auth.handshake import frame, server_challenge
from understudy.auth.local import LOCAL_HELLO
from understudy.commands.shared.client import Client, RefusedError, pack
from understudy.commands.shared.locate import Location
from understudy.commands.shared.packing import pack as pack_bytes
from understudy.commands.shared.packing import unpack
from understudy.tool.manual.catalogue import commands, module_of

COMMANDS = {command.name: command for command in commands()}
USAGE_EXIT = {"sbatch": 255, "srun": 255, "salloc": 255}
NO_ANSWER = "Unable to contact slurm controller (connect failure)"


def function(name):
    return getattr(import_module(module_of(name)), name)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_every_option_and_is_no_error(name):
    said = run_command(function(name), "--help", client=FakeClient())
    assert (said.code, said.err) == (0, "")
    assert name in said.lines[0]


@pytest.mark.parametrize(
    "name", [name for name, command in COMMANDS.items() if "usage" in command.options.by_long]
)
def test_usage_is_no_error_either(name):
    said = run_command(function(name), "--usage", client=FakeClient())
    assert (said.code, said.err) == (0, "")
    assert name in said.out


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    ("argument", "complaint"),
    [
        ("--no-such-option", "unrecognized option '--no-such-option'"),
        ("--no-such-option=1", "unrecognized option '--no-such-option=1'"),
        ("-%", "invalid option -- '%'"),
    ],
)
def test_a_wrong_option_is_named_with_a_hint(name, argument, complaint):
    said = run_command(
        function(name), argument, client=FakeClient(), usage_exit=USAGE_EXIT.get(name, 1)
    )
    assert said.code == USAGE_EXIT.get(name, 1)
    assert said.out == ""
    assert said.err.splitlines()[0] == f"{name}: {complaint}"


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("squeue", 1, f"slurm_load_jobs error: {NO_ANSWER}"),
        ("sinfo", 1, f"slurm_load_partitions: {NO_ANSWER}"),
        ("sinfo -T", 1, f"slurm_load_reservations: {NO_ANSWER}"),
        ("sbatch --wrap true", 1, f"sbatch: error: Batch job submission failed: {NO_ANSWER}"),
        ("sbatch --test-only --wrap true", 1, f"allocation failure: {NO_ANSWER}"),
        ("scancel -u root", 1, f"slurm_load_jobs error: {NO_ANSWER}"),
        ("scontrol show job", 1, f"slurm_load_jobs error: {NO_ANSWER}"),
        ("scontrol show node", 1, f"slurm_load_node error: {NO_ANSWER}"),
        ("scontrol show lic", 1, f"slurm_load_license error: {NO_ANSWER}"),
        ("scontrol write batch_script 1", 0, f"job script retrieval failed: {NO_ANSWER}"),
        ("scontrol top 1", 1, f"{NO_ANSWER} for job 1"),
        ("sshare", 255, f"Couldn't get shares from controller: {NO_ANSWER}"),
        ("strigger --get", 1, f"slurm_get_triggers: {NO_ANSWER}"),
    ],
)
def test_no_controller(line, code, text):
    name, *arguments = line.split()
    client = FakeClient()
    client.answers = dict.fromkeys(
        ("Query", "SubmitJob", "GetScript", "UpdateJobs", "ControlJobs", "CancelJobs"),
        RefusedError(1005, NO_ANSWER),
    )
    said = run_command(function(name), *arguments, client=client)
    assert (said.code, said.out, said.err) == (code, "", text + "\n")


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("squeue -i x", 1, "squeue: error: --iterate=x\n"),
        ("scontrol show", 1, "too few arguments for keyword:show"),
    ],
)
def test_a_wrong_value(line, code, text):
    name, *arguments = line.split()
    said = run_command(function(name), *arguments, client=FakeClient())
    assert (said.code, said.err) == (code, text + "\n")


# --- real connections and streams -----------------------------------------------------------------


@pytest.mark.parametrize("waits", [True, False])
def test_nobody_listens(tmp_path, monkeypatch, waits):
    """22.05.8 tries as often as MessageTimeout has seconds, one second apart."""
    now = monkeypatched_time(monkeypatch)
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=c\nMessageTimeout=3\n")
    location = Location(controller_unix=f"unix:{tmp_path}/nobody", conf=str(conf))
    with pytest.raises(RefusedError) as refused:
        Client(lambda: location, waits=waits).call("Ping")
    assert (refused.value.code, refused.value.text) == (1005, NO_ANSWER)
    assert now[0] == (102.0 if waits else 100.0)


def monkeypatched_time(monkeypatch):
    now = [100.0]
    module = import_module("understudy.commands.shared.client")
    monkeypatch.setattr(module, "_monotonic", lambda: now[0])

    def pause(seconds):
        now[0] += seconds

    monkeypatch.setattr(module, "_pause", pause)
    return now


class RestartedController(threading.Thread):
    """Takes so many connections and ends each before it answers; then one that answers. `asked`
    holds the messages that it has read.
    """

    def __init__(self, path, deaths, *, reads=True):
        super().__init__()
        self.path, self.deaths, self.reads, self.asked = path, deaths, reads, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()

    def run(self):
        with self.listener:
            for _ in range(self.deaths):
                connection, _ = self.listener.accept()
                if self.reads:
                    self._question(connection)
                connection.close()
            connection, _ = self.listener.accept()
            with connection:
                number = self._question(connection)
                answer = pack_bytes([1, number, 0, 0, pack("Submitted", 7)])
                connection.sendall(len(answer).to_bytes(4, "big") + answer)

    def _question(self, connection):
        frames = connection.makefile("rb")
        while True:
            body = frames.read(int.from_bytes(frames.read(4), "big"))
            if body != LOCAL_HELLO:
                _, number, _, _, message = unpack(body)
                self.asked.append(message)
                return number


@pytest.mark.parametrize("reads", [True, False])
def test_a_submission_that_breaks_off_is_made_again_under_its_token(tmp_path, monkeypatch, reads):
    monkeypatched_time(monkeypatch)
    controller = RestartedController(f"{tmp_path}/controller", 3, reads=reads)
    controller.start()
    client = Client(lambda: Location(controller_unix=f"unix:{tmp_path}/controller"))
    script = "#!/bin/sh\n" + "#" * 1_000_000  # more than a socket takes before it is read
    spec = pack("JobSpec")
    assert client.submit("SubmitJob", spec, script, None, -1, -1, False, [])[0] == 7
    client.close()
    controller.join(10)
    tokens = {message[-1] for message in controller.asked}
    assert len(controller.asked) == (4 if reads else 1)
    assert len(tokens) == 1
    assert len(tokens.pop()) == 32


@pytest.mark.parametrize(
    ("reads", "said"),
    [
        (True, (5005, "Zero Bytes were transmitted or received")),
        (False, (104, "Connection reset by peer")),
    ],
)
def test_what_is_no_submission_is_not_asked_again(tmp_path, reads, said):
    controller = RestartedController(f"{tmp_path}/controller", 1, reads=reads)
    controller.start()
    client = Client(lambda: Location(controller_unix=f"unix:{tmp_path}/controller"))
    with pytest.raises(RefusedError) as refused:
        client.call("CancelJobs", ["1" * 1_000_000], None, {})
    assert (refused.value.code, refused.value.text) == said
    client.submit("AllocateJob", pack("JobSpec"), False, -1, -1, [])  # so that the thread ends
    client.close()
    controller.join(10)


@pytest.mark.parametrize("over_tcp", [True, False])
def test_a_controller_of_another_version_is_named_as_such(over_tcp, tmp_path):
    family = socket.AF_INET if over_tcp else socket.AF_UNIX
    other = server_challenge("controller").replace(b"understudy/2", b"understudy/9")
    with socket.socket(family) as listener:
        listener.bind(("127.0.0.1", 0) if over_tcp else f"{tmp_path}/controller")
        listener.listen()

        def answer():
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(frame(other))
                while connection.recv(4096):
                    pass

        thread = threading.Thread(target=answer)
        thread.start()
        location = (
            Location(controller=f"tcp:127.0.0.1:{listener.getsockname()[1]}")
            if over_tcp
            else Location(controller_unix=f"unix:{tmp_path}/controller")
        )
        client = Client(lambda: location)
        with pytest.raises(RefusedError) as refused:
            client.call("Ping")
        client.close()
        thread.join(10)
    assert refused.value.text == "Incompatible versions of client and server code"


def test_a_connection_that_was_closed_since_the_last_answer_is_opened_again(tmp_path):
    location = Location(controller_unix=f"unix:{tmp_path}/controller")
    client = Client(lambda: location)
    for _ in range(2):
        controller = RestartedController(f"{tmp_path}/controller", 0)
        controller.start()
        assert client.call("GetScript", 1)[0] == 7
        controller.join(10)
        os.unlink(f"{tmp_path}/controller")
    client.close()


@pytest.mark.parametrize(
    ("timeout", "clock", "lasts"),
    [("1", "", 0.0), ("9", "", 8.0), ("x", "", 9.0), ("1", "unix:clock", 99.0)],
)
def test_an_answer_is_waited_for_as_long_as_slurm_conf_says(tmp_path, timeout, clock, lasts):
    """Before a second is over, slurm.conf is not read."""
    conf = tmp_path / "slurm.conf"
    conf.write_text(f"MessageTimeout={timeout}")
    location = Location(conf=str(conf), clock=clock)
    client = Client(lambda: location)
    waited = []

    class Silent:
        def recv_into(self, _view):
            raise TimeoutError

        settimeout = staticmethod(waited.append)

        def close(self): ...

    client._locate, client._socket, client._is_short = lambda: location, Silent(), True
    with pytest.raises(RefusedError) as refused:
        client.finish()
    assert waited == ([lasts] if lasts else [])
    assert (refused.value.code, refused.value.text) == (
        5004,
        "Socket timed out on send/recv operation",
    )


@pytest.mark.parametrize("answer", [b"", b"\0\0", b"\0\0\0\x08half"])
def test_a_controller_that_dies_in_the_middle(tmp_path, answer):
    """It takes the connection and is gone before it has answered, or in the middle of its
    answer.
    """
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{tmp_path}/controller")
    listener.listen()

    def die():
        connection, _ = listener.accept()
        connection.recv(1 << 16)
        connection.sendall(answer)
        connection.close()

    thread = threading.Thread(target=die)
    thread.start()
    with pytest.raises(RefusedError) as refused:
        Client(lambda: Location(controller_unix=f"unix:{tmp_path}/controller")).call("Ping")
    thread.join()
    listener.close()
    assert (refused.value.code, refused.value.text) == (
        5005,
        "Zero Bytes were transmitted or received",
    )


class BusyController(threading.Thread):
    """Answers so many questions by "back off", and later ones by Ok."""

    def __init__(self, path, refusals):
        super().__init__()
        self.refusals, self.asked = refusals, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()

    def run(self):
        connection, _ = self.listener.accept()
        with self.listener, connection, connection.makefile("rb") as frames:
            while length := frames.read(4):
                body = frames.read(int.from_bytes(length, "big"))
                if body == LOCAL_HELLO:
                    continue
                _, number, _, _, message = unpack(body)
                self.asked.append(message)
                is_refused = len(self.asked) <= self.refusals
                answer = pack("Failure", 1804, "later") if is_refused else pack("Ok")
                body = pack_bytes([1, number, 0, 0, answer])
                connection.sendall(len(body).to_bytes(4, "big") + body)


@pytest.mark.parametrize(("refusals", "questions"), [(0, 1), (3, 4), (1000, 101)])
def test_a_controller_that_wants_to_be_left_alone_is_asked_again_but_not_for_ever(
    tmp_path, monkeypatch, refusals, questions
):
    controller = BusyController(f"{tmp_path}/controller", refusals)
    controller.start()
    client = Client(lambda: Location(controller_unix=f"unix:{tmp_path}/controller"))
    slept = []
    monkeypatch.setattr(client, "sleep", slept.append)
    try:
        answer = client.exchange("Ping")
    finally:
        client.close()
        controller.join(10)
    assert answer == (("Failure", [1804, "later"]) if refusals == 1000 else ("Ok", []))
    assert slept == [1.0] * (questions - 1)
    assert controller.asked == [pack("Ping")] * questions


def shell(line, **environ):
    """Run a shell line in which `squeue` is the command; stdout, stderr and the exit code."""
    program = "import sys; from understudy.commands.squeue.squeue import main; main()"
    prefix = f'squeue() {{ "{sys.executable}" -c "{program}" "$@"; }}; '
    paths = os.pathsep.join(path for path in sys.path if path)
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": paths,
        "UNDERSTUDY_REGISTRY": "/nowhere",
        "HOME": "/nowhere",
        **environ,
    }
    done = subprocess.run(
        ["bash", "-c", prefix + line], capture_output=True, env=env, timeout=60, check=False
    )
    return done.stdout, done.stderr, done.returncode


def test_a_reader_that_goes_away_is_no_error_to_talk_about():
    out, err, _ = shell("squeue --help | head -1")
    assert out.count(b"\n") == 1
    assert err == b""


def test_closed_streams():
    assert shell("squeue --help >&-") == (b"", b"", 0)
    assert shell("squeue --bogus 2>&-") == (b"", b"", 1)
    assert shell("squeue --help <&-")[2] == 0


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_names_in_any_letters_come_out_as_they_went_in(locale):
    out, err, code = shell("squeue --name=$'\\xc3\\xa4' $'\\xc3\\xa4'", LC_ALL=locale)
    assert code == 1
    assert "ä".encode() in err
    assert out


@pytest.mark.parametrize("columns", ["1", "80", "500"])
def test_the_width_of_a_terminal_changes_nothing(columns):
    assert shell("squeue --help", COLUMNS=columns) == shell("squeue --help")
