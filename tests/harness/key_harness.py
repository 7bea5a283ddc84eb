"""Keys of daemons for tests, in one folder that is made when it is first asked for."""

from __future__ import annotations

import shutil
import tempfile
from atexit import register
from functools import cache
from pathlib import Path

from understudy.auth.handshake import read_hello
from understudy.auth.keys import AGENT, Keys, create_keys


@cache
def folder() -> Path:
    made = Path(tempfile.mkdtemp(prefix="understudy-keys-"))
    register(shutil.rmtree, made, ignore_errors=True)
    return made


@cache
def keys_of(name: str) -> Keys:
    """The keys of the daemon of this name; all whom a test has asked for know each other."""
    create_keys(folder(), [name, AGENT])
    return Keys(name, folder())


def secret_of(hello: bytes, challenge: bytes) -> bytes:
    """What who said this hello derives from the answer to it, with its own key or the agent's."""
    name, _, _, is_daemon = read_hello(hello)
    return keys_of(name if is_daemon else AGENT).secret(hello, challenge)[0]
