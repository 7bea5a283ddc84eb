"""The mutual challenge that opens every connection, and the sealed channel that it leads to.

Place: used by daemons (protocol) and commands alike, so it imports no asyncio and as little as it
can. No I/O here.

How it works. The client says who it is (`hello`, with a nonce), the server answers with a nonce of
its own and the public keys that it counts on, its own and the client's (`challenge`). Both derive a
session secret from the two texts and what the two keys share (keys.py); a command has no key, but
gets the secret from the credential agent on its host, which has one and gives the secret out only
for the identity that the kernel reports for the socket's other end (as MUNGE does). Nothing proves
the identity in the hello but the first sealed frame: only who has the secret can seal it, and the
server's first sealed answer proves the same of the server. Each direction has its own key and
counts its frames; the counter is the nonce, so a frame that is forged, replayed, reordered or left
out does not open.

    client                         server
      hello(name, uid, nonce)  ->
                               <-  challenge(name, nonce, its key, the client's key)
      sealed frame 0           ->  opens: the client is who it says
                               <-  sealed frame 0: so is the server

A server that speaks another version of this says so in its challenge, so that either end's log
names both.
"""

from __future__ import annotations

import os
from hmac import digest as hmac_digest

import msgpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# the public module imports all AEADs' wrappers and their errors: 15 ms that every command would pay
try:
    from cryptography.hazmat.bindings._rust import openssl as _openssl

    ChaCha20Poly1305 = _openssl.aead.ChaCha20Poly1305
except (ImportError, AttributeError):  # another version of the library
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

VERSION = "understudy/2"
NONCE_BYTES = 32
EXCHANGE_BYTES = 32  # of a public key, those that secrets are shared with
MAX_ID = (1 << 32) - 1
MAX_HANDSHAKE = 4096
MAX_FRAME = 64 << 20
_TAG_BYTES = 16


class AuthError(Exception):
    """The other end could not be authenticated, or a frame is not what it should be. One line, fit
    for the log.
    """


class VersionError(AuthError):
    """The other end speaks another version of the protocol."""


def client_hello(
    name: str, user_id: int, group_id: int, *, is_daemon: bool, addressee: str = ""
) -> bytes:
    """The client's first frame. `is_daemon`: claims to be one of the cluster's own daemons, for
    which it must hold that one's key. `addressee`: for whom it is, where several listen at one
    address.
    """
    hello = [VERSION, name, user_id, group_id, is_daemon, os.urandom(NONCE_BYTES)]
    packed: bytes = msgpack.packb([*hello, addressee] if addressee else hello)
    return packed


def read_hello(body: bytes) -> tuple[str, int, int, bool]:
    """(name, user id, group id, is a daemon) that the client claims.

    Raises:
        AuthError: not a hello.
    """
    content = _read(body, "hello")
    try:
        name, user_id, group_id, is_daemon, nonce, *addressee = content
    except ValueError as error:
        raise AuthError("malformed hello") from error
    if not (
        isinstance(name, str)
        and len(name) <= 255
        and name.isprintable()  # it goes to the log before anybody has proven anything
        and type(user_id) is int
        and type(group_id) is int
        and 0 <= user_id <= MAX_ID
        and 0 <= group_id <= MAX_ID
        and type(is_daemon) is bool
        and isinstance(nonce, bytes)
        and len(nonce) == NONCE_BYTES
        and (not addressee or _is_one_name(addressee))
    ):
        raise AuthError("malformed hello")
    return name, user_id, group_id, is_daemon


def read_addressee(body: bytes) -> str:
    """For whom a hello is that `read_hello` has found good; "": for whoever listens there."""
    hello = msgpack.unpackb(body)
    return hello[6] if len(hello) > 6 else ""


def _is_one_name(names: list[object]) -> bool:
    return len(names) == 1 and isinstance(names[0], str) and 0 < len(names[0]) <= 255


def _read(body: bytes, kind: str) -> list[Any]:
    """What follows the version, which is first in whatever version."""
    try:
        content: list[Any] = msgpack.unpackb(body)
        version = content[0]
    except Exception as error:
        raise AuthError(f"not a {kind} of this protocol") from error
    if version != VERSION:
        raise VersionError(f"protocol version {str(version)[:40]!r}, expected {VERSION!r}")
    return content[1:]


def server_challenge(name: str, own_key: bytes = b"", key_of_client: bytes = b"") -> bytes:
    """The server's answer to a hello; without keys only its version is of use."""
    content = [VERSION, name, os.urandom(NONCE_BYTES), own_key, key_of_client]
    packed: bytes = msgpack.packb(content)
    return packed


def read_challenge(body: bytes) -> tuple[str, bytes, bytes]:
    """The server's name, its key, and the client's on which it counts, 32 bytes each.

    Raises:
        AuthError: not a challenge.
    """
    content = _read(body, "challenge")
    try:
        name, nonce, *keys = content
    except ValueError as error:
        raise AuthError("malformed challenge") from error
    if not (
        isinstance(name, str)
        and len(name) <= 255
        and name.isprintable()
        and len(keys) == 2
        and all(isinstance(each, bytes) and len(each) == EXCHANGE_BYTES for each in (nonce, *keys))
    ):
        raise AuthError("malformed challenge")
    return name, keys[0], keys[1]


def session_secret(shared: bytes, hello: bytes, challenge: bytes) -> bytes:
    """The secret of one connection, from what the two ends' keys share and the two texts."""
    text = b"understudy session\0" + len(hello).to_bytes(4, "big") + hello + challenge
    return hmac_digest(shared, text, "sha256")


class SealedChannel:
    """Both directions of a connection after the challenge. `seal` and `open` count frames; any
    failure is final.
    """

    __slots__ = ("_open", "_opened", "_seal", "_sealed")

    def __init__(self, secret: bytes, *, is_client: bool) -> None:
        to_server = ChaCha20Poly1305(hmac_digest(secret, b"client to server", "sha256"))
        to_client = ChaCha20Poly1305(hmac_digest(secret, b"server to client", "sha256"))
        self._seal, self._open = (
            (to_server.encrypt, to_client.decrypt)
            if is_client
            else (to_client.encrypt, to_server.decrypt)
        )
        self._sealed = self._opened = 0

    def seal(self, body: bytes) -> bytes:
        """The frame for the wire: four bytes of length, then the sealed body."""
        nonce = self._sealed.to_bytes(12, "big")
        self._sealed += 1
        return (len(body) + _TAG_BYTES).to_bytes(4, "big") + self._seal(nonce, body, None)

    def open(self, sealed: bytes) -> bytes:
        """The body of the next frame.

        Raises:
            AuthError: wrong key, forged, replayed, out of order or cut short.
        """
        try:
            body: bytes = self._open(self._opened.to_bytes(12, "big"), sealed, None)
        except Exception as error:
            raise AuthError(
                f"frame {self._opened} does not authenticate (wrong key, forged, "
                "replayed, reordered or cut short)"
            ) from error
        self._opened += 1
        return body


def frame(body: bytes) -> bytes:
    """A plain frame, as the handshake uses: four bytes of length, then the body."""
    return len(body).to_bytes(4, "big") + body
