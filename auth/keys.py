"""The cluster's key: 32 random bytes in a file that only its owner can read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from understudy.auth.handshake import KEY_BYTES, AuthError

if TYPE_CHECKING:
    from pathlib import Path

_BELIEVED = ("cluster.json", "slurm.conf", "state", "logs", "spool")


def create_key(path: Path) -> bytes:
    """Write a new key (mode 0600) unless the file exists; the key in it either way."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return read_key(path)
    with os.fdopen(fd, "wb") as file:
        key = os.urandom(KEY_BYTES)
        file.write(key)
    return key


def read_key(path: Path) -> bytes:
    """The key.

    Raises:
        AuthError: wrong length, or readable by others than its owner.
        OSError: not readable by us.
    """
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        key = file.read(KEY_BYTES + 1)
    if mode & 0o077:
        raise AuthError(f"key file {path} may be read by others: chmod 600 it")
    if len(key) != KEY_BYTES:
        raise AuthError(f"key file {path} has {len(key)} bytes, expected {KEY_BYTES}")
    return key


def check_folder(run_dir: Path) -> None:
    """What a daemon believes is what these files say: not everybody may write them.

    Raises:
        AuthError: somebody may.
    """
    for path in (run_dir, *(run_dir / name for name in _BELIEVED)):
        try:
            mode = path.stat().st_mode
        except OSError:
            continue
        if mode & 0o002:
            raise AuthError(f"{path} may be written by everybody: chmod o-w it")
