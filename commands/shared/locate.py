"""Where the cluster is: the registry of running clusters, and what a slurm.conf says of its
controller.

Place: the first thing that every command asks; `understudy up` and `down` write the registry. It
knows no messages and opens no connection. Every command pays for its imports, so there is no json,
re, pathlib or dataclass here.

The registry is a folder with one small JSON file a running cluster, `CLUSTERNAME-HASH.json`, where
HASH is made from the run directory:
    $UNDERSTUDY_REGISTRY, else /run/understudy for root, else $XDG_RUNTIME_DIR/understudy, else
    ~/.understudy
Commands look in their own user's registry and then in root's.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

SYSTEM_REGISTRY = "/run/understudy"
DEFAULT_MESSAGE_TIMEOUT_S = 10  # slurm.conf(5)
DEFAULT_TAKEOVER_TIMEOUT_S = 120  # slurm.conf(5), SlurmctldTimeout
DEFAULT_PORT = 6817  # slurm.conf(5), SlurmctldPort
DEFAULT_ACCOUNTING_PORT = 6819  # slurm.conf(5), AccountingStoragePort


class NoClusterError(Exception):
    """SLURM_CONF is not set and this user has started no cluster."""


class BadConfigurationError(Exception):
    """The file that SLURM_CONF names cannot be read, or does not say where the controller is."""


class Location:
    """Where a cluster's daemons listen. Addresses are `tcp:HOST:PORT` or `unix:PATH`, "" where
    unknown. `started` is in seconds since the epoch. `backups`: of each backup controller its host
    and its addresses.
    """

    __slots__ = (
        "accounting",
        "accounting_unix",
        "agent",
        "backups",
        "clock",
        "conf",
        "controller",
        "controller_host",
        "controller_unix",
        "name",
        "run_dir",
        "started",
    )

    def __init__(
        self,
        name: str = "",
        conf: str = "",
        run_dir: str = "",
        controller: str = "",
        controller_unix: str = "",
        agent: str = "",
        clock: str = "",
        started: float = 0.0,
        accounting: str = "",
        accounting_unix: str = "",
        controller_host: str = "",
        backups: "list[list[str]] | None" = None,
    ) -> None:
        self.name = name
        self.conf = conf
        self.run_dir = run_dir
        self.controller = controller
        self.controller_unix = controller_unix
        self.agent = agent
        self.clock = clock
        self.started = started
        self.accounting = accounting
        self.accounting_unix = accounting_unix
        self.controller_host = controller_host
        self.backups = backups or []

    @property
    def accounting_addresses(self) -> list[str]:
        """The accounting daemon's addresses in the order in which to try them; [] if the cluster
        has none.
        """
        return [address for address in (self.accounting_unix, self.accounting) if address]

    @property
    def controller_addresses(self) -> list[str]:
        """The controller's addresses in the order in which to try them: the local socket is faster
        than TCP.
        """
        return [address for address in (self.controller_unix, self.controller) if address]

    @property
    def controllers(self) -> "list[list[str]]":
        """The addresses of each controller, the primary first."""
        of_backups = [[address for address in each[1:] if address] for each in self.backups]
        return [self.controller_addresses, *of_backups]


def own_registry(environ: "Mapping[str, str] | None" = None, user_id: int | None = None) -> str:
    """The folder in which this user's clusters are registered."""
    env = os.environ if environ is None else environ
    if chosen := env.get("UNDERSTUDY_REGISTRY"):
        return chosen
    if (os.geteuid() if user_id is None else user_id) == 0:
        return SYSTEM_REGISTRY
    if runtime := env.get("XDG_RUNTIME_DIR"):
        return runtime + "/understudy"
    return os.path.expanduser("~/.understudy")


def shared_registry(user_id: int) -> str:
    """Where a user who is not root makes his clusters known to others, whose slurm.conf names him
    as SlurmUser.
    """
    return f"/tmp/understudy-registry-{user_id}"  # noqa: S108  entries that another user wrote are left out


def register(location: Location, folder: str | None = None) -> str:
    """Make a running cluster known to commands; returns the file written. A second call for the
    same run directory replaces the first's entry.
    """
    if folder is not None:
        return _register(location, folder)
    own = own_registry()
    if os.geteuid() == 0 or os.environ.get("UNDERSTUDY_REGISTRY"):
        return _register(location, own)
    shared = _register(location, shared_registry(os.geteuid()))
    try:
        return _register(location, own)
    except OSError:  # as of a user without a home
        return shared


def _register(location: Location, folder: str) -> str:
    import json

    is_shared = os.geteuid() == 0 or folder == shared_registry(os.geteuid())
    os.makedirs(folder, mode=0o755 if is_shared else 0o700, exist_ok=True)
    path = _entry_path(folder, location.name, location.run_dir)
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump({key: getattr(location, key) for key in Location.__slots__}, file, indent=1)
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)
    return path


def unregister(name: str, run_dir: str, folder: str | None = None) -> bool:
    """Forget a cluster. Returns whether there was an entry."""
    found = False
    for each in (own_registry(), shared_registry(os.geteuid())) if folder is None else (folder,):
        try:
            os.unlink(_entry_path(each, name, run_dir))
            found = True
        except OSError:
            continue
    return found


def registered(environ: "Mapping[str, str] | None" = None) -> "list[Location]":
    """All clusters that this user's commands can see, the latest first; the user's own before
    root's.
    """
    own = own_registry(environ)
    found = sorted(_entries(own), key=lambda each: -each.started)
    if own != SYSTEM_REGISTRY:
        found += sorted(_entries(SYSTEM_REGISTRY), key=lambda each: -each.started)
    return found


def latest(environ: "Mapping[str, str] | None" = None) -> Location | None:
    """The last cluster that this user started, if it has not been unregistered."""
    own = list(_entries(own_registry(environ), only_user=os.geteuid()))
    if (
        not own
        and os.geteuid()
        and not (os.environ if environ is None else environ).get("UNDERSTUDY_REGISTRY")
    ):
        own = list(_entries(shared_registry(os.geteuid()), only_user=os.geteuid()))
    return max(own, key=lambda each: each.started, default=None)


def find(environ: "Mapping[str, str] | None" = None) -> Location:
    """The cluster to which a command speaks. Its `conf` is the file that the command goes by: what
    SLURM_CONF names, else the run directory's own, which the daemons have read.

    Raises:
        NoClusterError: nothing says which.
        BadConfigurationError: SLURM_CONF names a file that does not serve.
    """
    env = os.environ if environ is None else environ
    conf = env.get("SLURM_CONF")
    if not conf:
        location = latest(env)
        if location is None:
            raise NoClusterError(
                "SLURM_CONF is not set, and no running cluster of this user is registered"
            )
        location.conf = location.run_dir + "/slurm.conf"
        return location
    real = os.path.realpath(conf)
    known = registered(env)
    for location in known:
        if real in (
            os.path.realpath(location.conf),
            os.path.realpath(location.run_dir + "/slurm.conf"),
        ):
            if not _is_read(location, real):
                _check(conf)
            location.conf = conf
            return location
    values = _values(conf)
    known += _of_slurm_user(values.get("slurmuser", ""), env)
    stated = _stated(conf, values)
    for location in known:
        if location.name == stated.name and location.controller.rpartition(":")[2] in (
            "",
            stated.controller.rpartition(":")[2],
        ):
            if not (
                _is_same(conf, location.conf)
                and _is_read(location, os.path.realpath(location.conf))
            ):
                _check(conf)
            location.conf = conf
            return location
    _check(conf)
    return stated


def _is_read(location: Location, path: str) -> bool:
    """Whether the cluster has read the file, and all that it includes, as they are now (see
    understudy.model.conf_copy).
    """
    try:
        with open(
            location.run_dir + "/conf.read", encoding="utf-8", errors="surrogateescape"
        ) as file:
            lines = file.read().splitlines()
        own = os.path.realpath(location.run_dir) + os.sep
        is_own = path.startswith(own)
        found = False
        for line in lines:
            size, changed, name = line.split(" ", 2)
            if name.startswith(own) is is_own:
                status = os.stat(name)
                if status.st_size != int(size) or status.st_mtime_ns != int(changed):
                    return False
                found = found or name == path
    except (OSError, ValueError):
        return False
    return found


def _is_same(one: str, other: str) -> bool:
    """Whether two files have the same text."""
    try:
        with open(one, "rb") as first, open(other, "rb") as second:
            return first.read() == second.read()
    except OSError:
        return False


def _check(conf: str) -> None:
    """Read the whole file.

    Raises:
        BadConfigurationError: it cannot be used.
    """
    from understudy.commands.shared.conf_words import complaint

    if text := complaint(conf):
        raise BadConfigurationError(text)


def _of_slurm_user(name: str, environ: "Mapping[str, str]") -> "list[Location]":
    """Clusters that SlurmUser has started, whom slurm.conf names and who is trusted therefore."""
    if not name or name == "root":
        return []
    import pwd

    try:
        user_id = int(name) if name.isdigit() else pwd.getpwnam(name).pw_uid
    except KeyError:
        return []
    folder = environ.get("UNDERSTUDY_REGISTRY") or shared_registry(user_id)
    return sorted(_entries(folder, only_user=user_id), key=lambda each: -each.started)


def from_configuration(conf: str) -> Location:
    """The endpoint that a slurm.conf states.

    Raises:
        BadConfigurationError: the file cannot be read or names no controller.
    """
    return _stated(conf, _values(conf))


def message_timeout_s(location: Location) -> int:
    """MessageTimeout of the cluster, as slurm.conf says it now; the default where it cannot be
    read.
    """
    return _seconds(location, "messagetimeout", DEFAULT_MESSAGE_TIMEOUT_S)


def takeover_timeout_s(location: Location) -> int:
    """The same of SlurmctldTimeout."""
    return _seconds(location, "slurmctldtimeout", DEFAULT_TAKEOVER_TIMEOUT_S)


def _seconds(location: Location, key: str, default: int) -> int:
    try:
        value = int(_values(location.conf)[key])
    except (BadConfigurationError, KeyError, ValueError):
        return default
    return value if value > 0 else default


def _values(conf: str) -> "dict[str, str]":
    """Of SlurmctldHost all lines, at line ends; of other keys the first."""
    values: dict[str, str] = {}
    try:
        for key, value in _settings(conf, 0):
            if key == "slurmctldhost" and key in values:
                values[key] += "\n" + value
            else:
                values.setdefault(key, value)
    except OSError as error:
        raise BadConfigurationError(f"unable to read {error.filename}: {error.strerror}") from None
    return values


def _stated(conf: str, values: "Mapping[str, str]") -> Location:
    host, *backups = values.get("slurmctldhost", "").split("\n")
    if not host:
        host = values.get("controlmachine", "")
        if backup := values.get("backupcontroller"):
            backups = [f"{backup}({values.get('backupaddr') or backup})"]
    if not host:
        _check(conf)
        raise BadConfigurationError("No SlurmctldHost defined.")
    name, _, bracketed = host.partition("(")
    address = (
        values.get("slurmctldaddr") or bracketed.rstrip(")") or values.get("controladdr") or name
    )
    port = values.get("slurmctldport", str(DEFAULT_PORT)).partition("-")[0]
    agent = ""
    for part in values.get("authinfo", "").split(","):
        option, _, value = part.partition("=")
        if option.lower() == "socket":
            agent = "unix:" + value
    accounting = ""
    if values.get("accountingstoragetype", "").lower().endswith("slurmdbd"):
        accounting = (
            f"tcp:{values.get('accountingstoragehost', 'localhost')}:"
            f"{values.get('accountingstorageport', DEFAULT_ACCOUNTING_PORT)}"
        )
    return Location(
        name=values.get("clustername", ""),
        conf=conf,
        controller=f"tcp:{address}:{port}",
        agent=agent,
        accounting=accounting,
        controller_host=name,
        backups=[_stated_backup(each, port) for each in backups],
    )


def _stated_backup(host: str, port: str) -> list[str]:
    """A backup controller's host and address."""
    name, _, bracketed = host.partition("(")
    return [name, f"tcp:{bracketed.rstrip(')') or name}:{port}"]


_KEYS = frozenset(
    (
        "accountingstoragehost",
        "accountingstorageport",
        "accountingstoragetype",
        "clustername",
        "messagetimeout",
        "slurmctldhost",
        "slurmctldaddr",
        "slurmctldport",
        "slurmctldtimeout",
        "slurmuser",
        "controlmachine",
        "controladdr",
        "authinfo",
        "backupaddr",
        "backupcontroller",
    )
)


def _settings(conf: str, depth: int) -> "Iterator[tuple[str, str]]":
    """The few keys of the file that say where the controller is; the full reader is
    `understudy.model.conf`.
    """
    with open(conf, encoding="utf-8", errors="replace") as file:
        text = file.read()
    for line in text.replace("\\\n", "").split("\n"):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if words[0].lower() == "include" and len(words) > 1 and depth < 8:
            path = (
                words[1]
                if words[1].startswith("/")
                else os.path.join(os.path.dirname(conf), words[1])
            )
            if os.path.exists(path):
                yield from _settings(path, depth + 1)
            continue
        for word in words:
            key, equals, value = word.partition("=")
            if equals and key.lower() in _KEYS:
                yield key.lower(), value.strip('"')


def _entry_path(folder: str, name: str, run_dir: str) -> str:
    import hashlib

    digest = hashlib.sha256(os.path.realpath(run_dir).encode()).hexdigest()[:12]
    return f"{folder}/{name}-{digest}.json"


def _entries(folder: str, only_user: int | None = None) -> "Iterator[Location]":
    """The registry's readable entries. Files that neither this user nor root wrote are left out:
    they could lead a command to a false controller.
    """
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    trusted = {0, os.geteuid()} if only_user is None else {only_user}
    for name in names:
        if not name.endswith(".json"):
            continue
        try:
            with open(f"{folder}/{name}", encoding="utf-8") as file:
                if os.fstat(file.fileno()).st_uid not in trusted:
                    continue
                entry = _parse_json(file.read())
        except (OSError, ValueError, StopIteration):
            continue
        if isinstance(entry, dict):
            yield Location(
                **{key: value for key, value in entry.items() if key in Location.__slots__}
            )


class _ScannerContext:
    """What the C scanner of the json package asks for. Importing the package itself would cost a
    command 5 ms (it imports re and enum).
    """

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float

    def __init__(self) -> None:
        self.memo: dict[str, str] = {}


def _parse_json(text: str) -> "Any":
    try:
        from _json import make_scanner
    except ImportError:  # another Python than CPython
        import json

        return json.loads(text)
    start = len(text) - len(text.lstrip())
    return make_scanner(_ScannerContext())(text, start)[0]  # type: ignore[arg-type]
