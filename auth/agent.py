"""The credential agent: vouches for users on its host, as MUNGE does.

Place: one process a host; holds a key of its own and answers on a Unix socket that everybody may
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
from typing import TYPE_CHECKING

import msgpack

from understudy.auth.handshake import (
    MAX_HANDSHAKE,
    AuthError,
    frame,
    read_hello,
)
from understudy.auth.local import other_end
from understudy.auth.refusals import PeerCounts, Refusals, most_of_one_user

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from understudy.auth.keys import Keys
    from understudy.model.metrics import Family

log = logging.getLogger("understudy.agent")

_PATIENCE_S = 5.0  # ours: with a peer that says nothing


def vouch(keys: Keys, request: bytes, user_id: int, group_id: int) -> bytes:
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
    if is_daemon:
        raise AuthError(
            f"user {user_id} claims to be daemon {name!r}: daemons have keys of their own"
        )
    if claimed_user != user_id:
        raise AuthError(f"user {user_id} claims to be user {claimed_user}")
    if claimed_group != group_id and not _is_member(user_id, claimed_group):
        raise AuthError(f"user {user_id} claims group {claimed_group}")
    secret, _ = keys.secret(hello, challenge)
    return secret


def _is_member(user_id: int, group_id: int) -> bool:
    try:
        entry = pwd.getpwuid(user_id)
    except KeyError:
        return False
    return group_id in os.getgrouplist(entry.pw_name, entry.pw_gid)


class CredentialAgent:
    """Serves `vouch` on a Unix socket."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._server: asyncio.Server | None = None
        self._counts = PeerCounts(most_of_one_user())
        self._refusals: Refusals | None = None
        self._vouched = self._refused = 0

    def figures(self) -> Iterator[Family]:
        """For Prometheus."""
        from understudy.model.metrics import counter  # noqa: PLC0415  few ask for it

        yield counter(
            "understudy_agent_vouched_total",
            "Connections of commands for which the agent has vouched.",
            self._vouched,
        )
        yield counter(
            "understudy_agent_refused_total",
            "Requests that the agent has refused.",
            self._refused,
        )

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
        user_id, group_id = other_end(writer.get_extra_info("socket"))
        if why := self._counts.refuses(user_id, is_trusted=False):
            self._refused += 1
            refusals.warn("refused user %d: %s", user_id, why)
            writer.close()
            return
        self._counts.opened(user_id)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                length = int.from_bytes(await reader.readexactly(4), "big")
                if length > 2 * MAX_HANDSHAKE:
                    self._refused += 1
                    refusals.warn("refused user %d: request of %d bytes", user_id, length)
                    return
                try:
                    answer = vouch(self._keys, await reader.readexactly(length), user_id, group_id)
                    self._vouched += 1
                except AuthError as error:
                    self._refused += 1
                    refusals.warn("refused: %s", error)
                    answer = b""
                writer.write(frame(answer))
                await writer.drain()
        except (asyncio.IncompleteReadError, TimeoutError, ConnectionError):
            pass  # the other end went away or sent nothing: its own affair
        finally:
            self._counts.closed(user_id, was_proven=False)
            writer.close()
