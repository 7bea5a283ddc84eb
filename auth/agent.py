"""The credential agent: vouches for users on its host, as MUNGE does.

Place: one process a host; holds the cluster's key and answers on a Unix socket that everybody may
connect to. A command sends the two texts of its handshake (see handshake.py); the agent compares
the identity in the hello with what the kernel says of the socket's other end, and returns the
connection's secret. It never vouches for a daemon.

Wire: one plain frame each way. Request: msgpack `[hello, challenge]`. Answer: the secret's 32
bytes, or an empty frame for a refusal.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
import socket
import struct
from typing import TYPE_CHECKING

import msgpack

from understudy.auth.handshake import (
    MAX_HANDSHAKE,
    AuthError,
    frame,
    read_challenge,
    read_hello,
    session_secret,
)
from understudy.auth.refusals import Refusals

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger("understudy.agent")

_PATIENCE_S = 5.0  # ours: with a peer that says nothing
_MAX_AT_ONCE = 256


def vouch(key: bytes, request: bytes, user_id: int, group_id: int) -> bytes:
    """The secret for the connection that the request describes, if the user may have it.

    Raises:
        AuthError: malformed, or not the identity that the kernel reports.
    """
    try:
        hello, challenge = msgpack.unpackb(request)
    except Exception as error:
        raise AuthError("malformed request") from error
    if not isinstance(hello, bytes) or not isinstance(challenge, bytes):
        raise AuthError("malformed request")
    name, claimed_user, claimed_group, is_daemon = read_hello(hello)
    read_challenge(challenge)
    if is_daemon:
        raise AuthError(
            f"user {user_id} claims to be daemon {name!r}: daemons hold the key themselves"
        )
    if claimed_user != user_id:
        raise AuthError(f"user {user_id} claims to be user {claimed_user}")
    if claimed_group != group_id and not _is_member(user_id, claimed_group):
        raise AuthError(f"user {user_id} claims group {claimed_group}")
    return session_secret(key, hello, challenge)


def _is_member(user_id: int, group_id: int) -> bool:
    try:
        entry = pwd.getpwuid(user_id)
    except KeyError:
        return False
    return group_id in os.getgrouplist(entry.pw_name, entry.pw_gid)


class CredentialAgent:
    """Serves `vouch` on a Unix socket."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._server: asyncio.Server | None = None
        self._slots = asyncio.Semaphore(_MAX_AT_ONCE)
        self._refusals: Refusals | None = None

    async def listen(self, path: Path) -> None:
        """Accept requests from all users of the host."""
        path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._serve, path)
        path.chmod(0o666)

    def close(self) -> None:
        """Stop."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusals is None:
            self._refusals = Refusals(log, asyncio.get_running_loop().call_later)
        refusals = self._refusals
        peer = writer.get_extra_info("socket")
        _, user_id, group_id = struct.unpack(
            "3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        )
        try:
            async with self._slots, asyncio.timeout(_PATIENCE_S):
                length = int.from_bytes(await reader.readexactly(4), "big")
                if length > 2 * MAX_HANDSHAKE:
                    refusals.warn("refused user %d: request of %d bytes", user_id, length)
                    return
                try:
                    answer = vouch(self._key, await reader.readexactly(length), user_id, group_id)
                except AuthError as error:
                    refusals.warn("refused: %s", error)
                    answer = b""
                writer.write(frame(answer))
                await writer.drain()
        except (asyncio.IncompleteReadError, TimeoutError, ConnectionError):
            pass  # the other end went away or sent nothing: its own affair
        finally:
            writer.close()
