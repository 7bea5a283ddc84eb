"""Job credentials: what the controller signs at launch and node daemons check, so that nobody else
can start a job there.

Ed25519 with the controller's key pair (keys.py). A credential names the job, its run (restart
count), nodes, user and start, and a time after which it is worthless. Follows: the job credential
of slurm.conf(5) `AuthInfo=cred_expire`, default 120 s.

An order is what the controller signs of a message that goes down the tree, where others than itself
hand it on: so whoever gets it knows whose it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgpack

from understudy.auth.handshake import AuthError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.auth.keys import Keys

_SIGNATURE_BYTES = 64
_EXPIRY_BYTES = 8
_ORDER = b"understudy order\0"  # credentials begin otherwise: with an array
DEFAULT_LIFETIME_S = 120


class CredentialError(Exception):
    """Not a credential of this cluster, or not valid now."""


@dataclass(frozen=True, slots=True)
class Credential:
    """What was signed. Times are seconds of the cluster's clock since the epoch."""

    job_id: int
    restart: int
    nodes: str
    user_id: int
    start_time: int
    expires: int


@dataclass(frozen=True, slots=True)
class StepCredential:
    """What was signed for srun: it may have these nodes run this step of the job; step -1: it may
    send files there.
    """

    job_id: int
    restart: int
    step_id: int
    nodes: str
    user_id: int
    group_id: int
    expires: int
    # what the controller tells the prolog of the nodes, where there is one
    program_environment: list[str] = field(default_factory=list)


class Signer:
    """The controller's side."""

    def __init__(self, keys: Keys, lifetime_s: int = DEFAULT_LIFETIME_S) -> None:
        self._sign = keys.sign
        self._lifetime_s = lifetime_s
        self._last_us = 0  # when the last order expires: no two are alike

    def sign(self, job_id: int, restart: int, nodes: str, user_id: int, start_time: int) -> bytes:
        """The credential: 64 bytes of signature, then the signed text."""
        text: bytes = msgpack.packb(
            [job_id, restart, nodes, user_id, start_time, start_time + self._lifetime_s]
        )
        return self._sign(text) + text

    def sign_step(
        self,
        job_id: int,
        restart: int,
        step_id: int,
        nodes: str,
        user_id: int,
        group_id: int,
        now: int,
        *,
        program_environment: Sequence[str] = (),
    ) -> bytes:
        """A step's credential, to be handed to whoever launches it."""
        content = [job_id, restart, step_id, nodes, user_id, group_id, now + self._lifetime_s]
        text: bytes = msgpack.packb(
            [*content, list(program_environment)] if program_environment else content
        )
        return self._sign(text) + text

    def order(self, now: Callable[[], float], inner: bytes) -> bytes:
        """What goes with a message (as it is encoded) for many nodes."""
        expires_us = int((now() + self._lifetime_s) * 1e6)
        self._last_us = expires_us = max(expires_us, self._last_us + 1)
        expires = expires_us.to_bytes(_EXPIRY_BYTES, "big")
        return self._sign(_ORDER + expires + inner) + expires


def order_expires(order: bytes) -> float:
    """When an order that was found right is good no more."""
    return int.from_bytes(order[_SIGNATURE_BYTES:], "big") / 1e6


class Verifier:
    """The node daemons' side."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._verified: tuple[bytes, bytes] | None = None

    def verify(
        self, credential: bytes, now: float | None = None, *, or_formerly: bool = False
    ) -> Credential:
        """What was signed. `or_formerly`: with a key that the controller had, too.

        Raises:
            CredentialError: malformed, not signed by this cluster's controller, or expired at
            `now`.
        """
        try:
            content = Credential(*self._signed(credential, or_formerly=or_formerly))
        except (AuthError, ValueError, TypeError) as error:
            raise CredentialError(
                "job credential is not signed by this cluster's controller"
            ) from error
        if now is not None and now > content.expires:
            raise CredentialError(
                f"job credential of job {content.job_id} expired {now - content.expires:.0f} s ago"
            )
        return content

    def verify_step(
        self, credential: bytes, now: float | None = None, *, or_formerly: bool = False
    ) -> StepCredential:
        """What was signed for a step.

        Raises:
            CredentialError: as `verify`.
        """
        try:
            content = StepCredential(*self._signed(credential, or_formerly=or_formerly))
        except (AuthError, ValueError, TypeError) as error:
            raise CredentialError(
                "job step credential is not signed by this cluster's controller"
            ) from error
        if now is not None and now > content.expires:
            raise CredentialError(
                f"job step credential of job {content.job_id} expired "
                f"{now - content.expires:.0f} s ago"
            )
        return content

    def is_order(self, order: bytes, inner: bytes, now: float) -> bool:
        """Whether the controller has signed the message, and it is not too old. Where many nodes
        share a process they are asked about the same one, one after the other.
        """
        expires = order[_SIGNATURE_BYTES:]
        if len(expires) != _EXPIRY_BYTES or now > order_expires(order):
            return False
        if self._verified != (order, inner):
            text = _ORDER + expires + inner
            try:
                is_signed = self._keys.has_controller_signed(order[:_SIGNATURE_BYTES], text)
            except AuthError:
                is_signed = False
            if not is_signed:
                return False
            self._verified = order, inner
        return True

    def _signed(self, credential: bytes, *, or_formerly: bool) -> list[Any]:
        signature, text = credential[:_SIGNATURE_BYTES], credential[_SIGNATURE_BYTES:]
        if not self._keys.has_controller_signed(signature, text, or_formerly=or_formerly):
            raise ValueError("no signature of the controller's")
        content: list[Any] = msgpack.unpackb(text)
        return content
