"""Who has which key: each daemon a private one of its own, and everybody the public ones of all.

Place: under all that connects, is connected to, or signs; knows no messages. A folder of keys,
RUN_DIR/keys, holds

    NAME     the private keys of the daemon of this name, mode 0600: 32 random bytes each. There is
             one, and while keys are being changed two.
    public   the public keys of all, a line `NAME KEY` each, KEY in hexadecimal. The last line of a
             name is the key in use; those above it are accepted, too, while keys are being changed.
             `NAME.former` are keys that are no more: they open nothing, but what the controller had
             signed with them is known again.
    .lock    held by whoever writes here: several may start daemons or change keys at a time.

All commands of one host, of whichever user, are vouched for with the key of the credential agent,
whose name here is `agent`.

From a private key an X25519 and an Ed25519 pair are derived (RFC 7748, RFC 8032); a public key is
the 32 bytes of either, one behind the other. Two ends share a secret that nobody else can know,
that of Diffie and Hellman's exchange of their two keys, and derive each connection's own from it
(handshake.py). It is worked out once for each peer.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from hmac import digest as hmac_digest
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from understudy.auth.handshake import (
    EXCHANGE_BYTES,
    AuthError,
    read_challenge,
    server_challenge,
    session_secret,
)
from understudy.model.cluster import is_controller

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PRIVATE_BYTES: Final = 32
PUBLIC_BYTES: Final = 2 * EXCHANGE_BYTES
PUBLIC: Final = "public"
FORMER: Final = ".former"
AGENT: Final = "agent"
_LOCK: Final = ".lock"
_CENTRAL: Final = ("accounting", "clock", AGENT, "replay")
_BELIEVED: Final = ("cluster.json", "slurm.conf", "keys", "state", "logs", "spool")
_SECRET: Final = ("state", "accounting")


def is_central(name: str) -> bool:
    """Whether a daemon of this name is no node daemon: those have other names."""
    return name in _CENTRAL or is_controller(name)


class _Private:
    """One private key."""

    def __init__(self, seed: bytes) -> None:
        self.seed = seed
        exchange = X25519PrivateKey.from_private_bytes(
            hmac_digest(seed, b"understudy exchange", "sha256")
        )
        signing = Ed25519PrivateKey.from_private_bytes(
            hmac_digest(seed, b"understudy signature", "sha256")
        )
        self.sign = signing.sign
        self.public = (
            exchange.public_key().public_bytes_raw() + signing.public_key().public_bytes_raw()
        )
        self._exchange = exchange
        self._shared: dict[bytes, bytes] = {}

    def shared_with(self, public: bytes) -> bytes:
        """The secret shared with who has this public key; only such as are listed are asked for."""
        found = self._shared.get(public)
        if found is None:
            peer = X25519PublicKey.from_public_bytes(public[:EXCHANGE_BYTES])
            found = self._shared[public] = self._exchange.exchange(peer)
        return found


@lru_cache(maxsize=64)
def _verifier(public: bytes) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(public[EXCHANGE_BYTES:])


class Keys:
    """What the daemon `name` proves itself with, and knows others by. Changes of the files in
    `folder` hold from the next connection or signature on.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self._public_path = name, str(folder / PUBLIC)
        self._private_path = str(folder / name)
        self._private: list[_Private] = []
        self._public: dict[str, list[bytes]] = {}
        self._stamps: tuple[object, object] = (None, None)
        self.changes = 0  # how often something has changed

    def refresh(self) -> None:
        """Read again what has changed.

        Raises:
            AuthError: a file cannot be read, may be read or written by whom it is not for, or is
            none of keys.
        """
        try:
            stamps = _stamp(self._private_path), _stamp(self._public_path)
            if stamps == self._stamps:
                return
            seeds = read_private(Path(self._private_path))
            self._public = read_public(Path(self._public_path))
        except OSError as error:
            raise AuthError(f"{error.filename}: {error.strerror}") from error
        known = {each.seed: each for each in self._private}  # with what they share with others
        self._private = [known.get(seed) or _Private(seed) for seed in seeds]
        self._stamps = stamps
        self.changes += 1

    def knows(self, name: str, public: bytes) -> bool:
        """Whether this is a key of the daemon `name`, as of the last refresh."""
        return public in self._public.get(name, ())

    def answered(self, hello: bytes, client: str) -> tuple[bytes, bytes, bytes]:
        """The challenge with which a hello of `client` is answered, the connection's secret, and
        the client's key.

        Raises:
            AuthError: nobody of this name has a key.
        """
        self.refresh()
        mine, theirs = self._own(), self._in_use(client)
        challenge = server_challenge(
            self.name, mine.public[:EXCHANGE_BYTES], theirs[:EXCHANGE_BYTES]
        )
        return challenge, session_secret(mine.shared_with(theirs), hello, challenge), theirs

    def secret(self, hello: bytes, challenge: bytes, server: str = "") -> tuple[bytes, bytes]:
        """The secret of a connection on which our hello was answered with this challenge, and the
        server's key. `server`: who was meant, of controllers any; "": whoever listens there.

        Raises:
            AuthError: another answers, or one of the two has no such key.
        """
        self.refresh()
        name, theirs, ours = read_challenge(challenge)
        if server and name != server and not (is_controller(server) and is_controller(name)):
            raise AuthError(f"{name!r} answers in place of {server}")
        for mine in self._private:
            if mine.public.startswith(ours):
                for public in self._public.get(name, ()):
                    if public.startswith(theirs):
                        secret = session_secret(mine.shared_with(public), hello, challenge)
                        return secret, public
                raise AuthError(f"{name!r} has no such key")
        raise AuthError(f"{name!r} counts on another key of {self.name}")

    def sign(self, text: bytes) -> bytes:
        """Our signature, 64 bytes."""
        self.refresh()
        return self._own().sign(text)

    def has_controller_signed(
        self, signature: bytes, text: bytes, *, or_formerly: bool = False
    ) -> bool:
        """Whether a controller has signed the text; `or_formerly`: with a key that is no more,
        too.
        """
        self.refresh()
        for name, keys in self._public.items():
            owner = name.removesuffix(FORMER)
            if not is_controller(owner) or (owner != name and not or_formerly):
                continue
            for public in reversed(keys):
                try:
                    _verifier(public).verify(signature, text)
                except InvalidSignature:
                    continue
                return True
        return False

    def _own(self) -> _Private:
        """Our key in use."""
        public = self._in_use(self.name)
        for each in self._private:
            if each.public == public:
                return each
        raise AuthError(f"{self._private_path} is not the private key to {self.name}'s public one")

    def _in_use(self, name: str) -> bytes:
        try:
            return self._public[name][-1]
        except KeyError:
            raise AuthError(f"{name!r} has no key in {self._public_path}") from None


def _stamp(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_ino, found.st_mtime_ns


# --- the files ------------------------------------------------------------------------------------


def create_keys(folder: Path, names: Iterable[str], private: Path | None = None) -> None:
    """Have a folder with keys of these daemons; those that are there stay as they are. `private`:
    where each private key is, in `private/NAME/NAME`; None: all beside the public ones.

    Raises:
        AuthError: a file that is there cannot be used.
    """
    _make_folder(folder)
    with _locked(folder):
        _create(folder, names, private)


def _create(folder: Path, names: Iterable[str], private: Path | None) -> None:
    is_there = (folder / PUBLIC).exists()
    public = read_public(folder / PUBLIC) if is_there else {}
    for name in names:
        path = folder / name if private is None else private / name / name
        _make_folder(path.parent)
        try:
            seeds = read_private(path)
        except FileNotFoundError:
            seeds = [os.urandom(PRIVATE_BYTES)]
            _replace(path, seeds[0], 0o600)
        own = _Private(seeds[-1]).public
        if own not in public.get(name, ()):
            public[name], is_there = [own], False
    if not is_there:
        _write_public(folder / PUBLIC, public)


@dataclass(slots=True)
class Change:
    """New keys for some daemons, while the cluster runs. The old ones are accepted beside them
    until `finish`. Others may change keys meanwhile, those of the same daemons, too.
    """

    folder: Path
    names: list[str]
    private: Path | None = None
    _new: dict[str, bytes] = field(default_factory=dict)

    def begin(self) -> None:
        """Bring the new keys into use.

        Raises:
            AuthError, OSError: the files cannot be used.
        """
        with _locked(self.folder):
            public = read_public(self.folder / PUBLIC)
            for name in self.names:
                if name not in public:
                    raise AuthError(f"{name!r} has no key in {self.folder / PUBLIC}")
            for name in self.names:
                seed = os.urandom(PRIVATE_BYTES)
                self._new[name] = _Private(seed).public
                path = self._path(name)
                _replace(path, read_private(path)[-1] + seed, 0o600)
                _retire(public, name, public[name][:-1])
                public[name].append(self._new[name])
            _write_public(self.folder / PUBLIC, public)

    def finish(self) -> None:
        """Have the old keys open nothing any more. Keys that came after ours stay."""
        with _locked(self.folder):
            public = read_public(self.folder / PUBLIC)
            for name, new in self._new.items():
                if new not in public[name]:  # another change has retired it
                    continue
                _retire(public, name, public[name][: public[name].index(new)])
                path, kept = self._path(name), public[name]
                seeds = [seed for seed in read_private(path) if _Private(seed).public in kept]
                _replace(path, b"".join(seeds), 0o600)
            _write_public(self.folder / PUBLIC, public)

    def _path(self, name: str) -> Path:
        return self.folder / name if self.private is None else self.private / name / name


def read_private(path: Path) -> list[bytes]:
    """The private keys in a file.

    Raises:
        AuthError: it holds none, or may be read by others than its owner.
        OSError: it cannot be read by us.
    """
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        content = file.read(2 * PRIVATE_BYTES + 1)
    if mode & 0o077:
        raise AuthError(f"key file {path} may be read by others: chmod 600 it")
    if len(content) not in (PRIVATE_BYTES, 2 * PRIVATE_BYTES):
        raise AuthError(
            f"key file {path} has {len(content)} bytes, expected {PRIVATE_BYTES} or "
            f"{2 * PRIVATE_BYTES}"
        )
    return [content[at : at + PRIVATE_BYTES] for at in range(0, len(content), PRIVATE_BYTES)]


def read_public(path: Path) -> dict[str, list[bytes]]:
    """The public keys of all, by name.

    Raises:
        AuthError: what is there is none, or may be written by others than its owner.
        OSError: it cannot be read.
    """
    if path.stat().st_mode & 0o022:
        raise AuthError(f"{path} may be written by others: chmod 644 it")
    found: dict[str, list[bytes]] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        name, _, text = line.decode(errors="replace").partition(" ")
        try:
            public = bytes.fromhex(text)
        except ValueError:
            public = b""
        if not name or len(public) != PUBLIC_BYTES:
            raise AuthError(f"{path}:{number}: not a name and a public key")
        found.setdefault(name, []).append(public)
    return found


def _retire(public: dict[str, list[bytes]], name: str, keys: list[bytes]) -> None:
    if keys:
        public.setdefault(name + FORMER, []).extend(keys)
        public[name] = [each for each in public[name] if each not in keys]


def _write_public(path: Path, public: dict[str, list[bytes]]) -> None:
    lines = (f"{name} {key.hex()}\n" for name, keys in public.items() for key in keys)
    _replace(path, "".join(lines).encode(), 0o644)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Alone to write in the folder: who reads, changes and writes beside another would undo the
    other's change.
    """
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make_folder(path: Path) -> None:
    if path.exists():  # what is in it may be another's by now, whatever its mode is from here on
        _refuse_open(path)
    path.mkdir(parents=True, exist_ok=True)
    if path.stat().st_mode & 0o022:
        path.chmod(0o755)


def _replace(path: Path, content: bytes, mode: int) -> None:
    """Write a file so that a reader sees the old or the new one, and nobody else's eyes either."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)
    temporary.replace(path)


def check_folder(run_dir: Path) -> None:
    """What a daemon believes is what these files say: not everybody may write them. Nor may
    everybody read what users trust it with.

    Raises:
        AuthError: somebody may.
    """
    for path in (run_dir, *(run_dir / name for name in _BELIEVED)):
        _refuse_open(path)
    for name in _SECRET:
        if _mode(run_dir / name) & 0o007:
            raise AuthError(f"{run_dir / name} may be read by everybody: chmod 700 it")


def _refuse_open(path: Path) -> None:
    if _mode(path) & 0o002:
        raise AuthError(f"{path} may be written by everybody: chmod o-w it")


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError:
        return 0
