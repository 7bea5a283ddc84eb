"""Job credentials: what the controller signs at launch and node daemons check, so that nobody else
can start a job there.

Ed25519 with a key pair derived from the cluster's key. A credential names the job, its run (restart
count), nodes, user and start, and a time after which it is worthless. Follows: the job credential
of slurm.conf(5) `AuthInfo=cred_expire`, default 120 s.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hmac import digest as hmac_digest
from typing import TYPE_CHECKING

import msgpack
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

if TYPE_CHECKING:
    from collections.abc import Sequence

_SIGNATURE_BYTES = 64
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


def _private_key(key: bytes) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(
        hmac_digest(key, b"understudy job credential", "sha256")
    )


class Signer:
    """The controller's side."""

    def __init__(self, key: bytes, lifetime_s: int = DEFAULT_LIFETIME_S) -> None:
        self._sign = _private_key(key).sign
        self._lifetime_s = lifetime_s

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


class Verifier:
    """The node daemons' side."""

    def __init__(self, key: bytes) -> None:
        self._verify = _private_key(key).public_key().verify

    def verify(self, credential: bytes, now: float | None = None) -> Credential:
        """What was signed.

        Raises:
            CredentialError: malformed, not signed by this cluster's controller, or expired at
            `now`.
        """
        text = credential[_SIGNATURE_BYTES:]
        try:
            self._verify(credential[:_SIGNATURE_BYTES], text)
            content = Credential(*msgpack.unpackb(text))
        except (InvalidSignature, ValueError, TypeError) as error:
            raise CredentialError(
                "job credential is not signed by this cluster's controller"
            ) from error
        if now is not None and now > content.expires:
            raise CredentialError(
                f"job credential of job {content.job_id} expired {now - content.expires:.0f} s ago"
            )
        return content

    def verify_step(self, credential: bytes, now: float | None = None) -> StepCredential:
        """What was signed for a step.

        Raises:
            CredentialError: as `verify`.
        """
        text = credential[_SIGNATURE_BYTES:]
        try:
            self._verify(credential[:_SIGNATURE_BYTES], text)
            content = StepCredential(*msgpack.unpackb(text))
        except (InvalidSignature, ValueError, TypeError) as error:
            raise CredentialError(
                "job step credential is not signed by this cluster's controller"
            ) from error
        if now is not None and now > content.expires:
            raise CredentialError(
                f"job step credential of job {content.job_id} expired "
                f"{now - content.expires:.0f} s ago"
            )
        return content
