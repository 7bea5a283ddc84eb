"""The challenge that opens connections, and the sealed channel behind it.

Covers: auth/agent, auth/credential, auth/keys.
"""

import msgpack
import pytest
from key_harness import keys_of

from understudy.auth.agent import vouch
from understudy.auth.credential import CredentialError, Signer, Verifier
from understudy.auth.handshake import (
    AuthError,
    SealedChannel,
    client_hello,
    read_challenge,
    read_hello,
    server_challenge,
    session_secret,
)

SHARED, OTHER = b"k" * 32, b"o" * 32


def channels(client=SHARED, server=SHARED):
    hello = client_hello("me", 1000, 100, is_daemon=False)
    challenge = server_challenge("controller")
    return (
        SealedChannel(session_secret(client, hello, challenge), is_client=True),
        SealedChannel(session_secret(server, hello, challenge), is_client=False),
    )


def test_both_ends_read_what_the_other_seals():
    client, server = channels()
    for text in (b"first", b"", b"x" * 100_000):
        assert server.open(client.seal(text)[4:]) == text
        assert client.open(server.seal(text)[4:]) == text


def test_a_holder_of_another_key_is_refused():
    client, server = channels(client=OTHER)
    with pytest.raises(AuthError, match="does not authenticate"):
        server.open(client.seal(b"hello")[4:])


def test_a_replayed_frame_is_refused():
    client, server = channels()
    frame = client.seal(b"pay")[4:]
    server.open(frame)
    with pytest.raises(AuthError):
        server.open(frame)


def test_reordered_frames_are_refused():
    client, server = channels()
    client.seal(b"first")
    with pytest.raises(AuthError):
        server.open(client.seal(b"second")[4:])


def test_a_frame_sent_back_to_its_sender_is_refused():
    client, _ = channels()
    with pytest.raises(AuthError):
        client.open(client.seal(b"mirror")[4:])


@pytest.mark.parametrize(
    "damage",
    [
        lambda f: f[:-1],
        lambda f: f[:-1] + bytes([f[-1] ^ 1]),
        lambda f: b"",
        lambda f: bytes([f[0] ^ 1]) + f[1:],
    ],
)
def test_a_damaged_frame_is_refused(damage):
    client, server = channels()
    with pytest.raises(AuthError):
        server.open(damage(client.seal(b"something")[4:]))


def test_another_connections_frames_are_refused():
    client, _ = channels()
    _, server = channels()
    with pytest.raises(AuthError):
        server.open(client.seal(b"x")[4:])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        b"GET / HTTP/1.1\r\n",
        msgpack.packb([1, 2]),
        msgpack.packb(["understudy/0", "x", 1, 1, False, b"n" * 32]),
        msgpack.packb(["understudy/2", "x", "root", 1, False, b"n" * 32]),
        msgpack.packb(["understudy/2", "x", True, 1, False, b"n" * 32]),
        msgpack.packb(["understudy/2", "x" * 300, 1, 1, False, b"n" * 32]),
        msgpack.packb(["understudy/2", "x", 1, 1, False, b"short"]),
        msgpack.packb(["understudy/2", "x\n2030-01-01 a line in the log", 1, 1, False, b"n" * 32]),
        msgpack.packb(["understudy/2", "x", -1, 1, False, b"n" * 32]),
        msgpack.packb(["understudy/2", "x", 1, 1 << 32, False, b"n" * 32]),
    ],
)
def test_what_is_no_hello_is_an_auth_error_and_nothing_else(body):
    with pytest.raises(AuthError):
        read_hello(body)
    with pytest.raises(AuthError):
        read_challenge(body)


def test_the_agent_vouches_for_the_user_that_the_kernel_reports():
    hello = client_hello("squeue", 1000, 100, is_daemon=False)
    challenge, secret, _ = keys_of("controller").answered(hello, "agent")
    request = msgpack.packb([hello, challenge])
    assert vouch(keys_of("agent"), request, 1000, 100) == secret


@pytest.mark.parametrize(
    ("hello", "complaint"),
    [
        (client_hello("squeue", 0, 0, is_daemon=False), "claims to be user 0"),
        (client_hello("squeue", 1000, 0, is_daemon=False), "claims group 0"),
        (client_hello("controller", 1000, 100, is_daemon=True), "claims to be daemon"),
        (b"nonsense", "not a hello"),
    ],
    ids=["user", "group", "daemon", "nonsense"],  # hellos hold a nonce, which is no name for a test
)
def test_the_agent_vouches_for_nobody_else(hello, complaint):
    with pytest.raises(AuthError, match=complaint):
        vouch(keys_of("agent"), msgpack.packb([hello, b"challenge"]), 1000, 100)


def test_a_credential_says_what_the_controller_signed():
    content = Verifier(keys_of("noded0")).verify(
        Signer(keys_of("controller")).sign(7, 1, "n[1-4]", 1000, 500), now=600
    )
    assert (
        content.job_id,
        content.restart,
        content.nodes,
        content.user_id,
        content.start_time,
    ) == (7, 1, "n[1-4]", 1000, 500)


def test_a_credential_that_was_altered_expired_or_signed_elsewhere_is_refused():
    signed = Signer(keys_of("controller")).sign(7, 0, "n1", 1000, 500)
    for wrong in (
        signed[:-1] + b"\x00",
        b"",
        signed[:64],
        Signer(keys_of("noded0")).sign(7, 0, "n1", 1000, 500),
    ):
        with pytest.raises(CredentialError):
            Verifier(keys_of("noded0")).verify(wrong)
    with pytest.raises(CredentialError, match="expired 1 s ago"):
        Verifier(keys_of("noded0")).verify(signed, now=621)
