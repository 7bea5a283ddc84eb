"""slurmdbd.conf: where accounting's database is, what it keeps, and for how long. Follows
slurmdbd.conf(5) of 22.05.

Place: the vocabulary, on understudy.model.conf_scan. The database that a site's file names may be
the site's own, so nobody opens it unless told to.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from understudy.model.conf_scan import scan
from understudy.model.errors import ConfigError

_TEXT, _NUMBER, _BOOLEAN, _AGE, _STORAGE = range(5)
_KEYS: Final = {
    **dict.fromkeys(
        (
            "ArchiveEvents",
            "ArchiveJobs",
            "ArchiveResvs",
            "ArchiveSteps",
            "ArchiveSuspend",
            "ArchiveTXN",
            "ArchiveUsage",
        ),
        _BOOLEAN,
    ),
    **dict.fromkeys(("AllowNoDefAcct", "TrackSlurmctldDown", "TrackWCKey"), _BOOLEAN),
    **dict.fromkeys(
        ("CommitDelay", "DbdPort", "MessageTimeout", "StoragePort", "TCPTimeout"), _NUMBER
    ),
    **dict.fromkeys(
        (
            "PurgeEventAfter",
            "PurgeJobAfter",
            "PurgeResvAfter",
            "PurgeStepAfter",
            "PurgeSuspendAfter",
            "PurgeTXNAfter",
            "PurgeUsageAfter",
        ),
        _AGE,
    ),
    **dict.fromkeys(
        (
            *(
                "ArchiveDir",
                "ArchiveScript",
                "AuthInfo",
                "AuthAltTypes",
                "AuthAltParameters",
                "AuthType",
                "CommunicationParameters",
                "DbdBackupHost",
            ),
            *(
                "DbdAddr",
                "DbdHost",
                "DebugFlags",
                "DebugLevel",
                "DebugLevelSyslog",
                "DefaultQOS",
                "LogFile",
                "LogTimeFormat",
                "MaxQueryTimeRange",
            ),
            *(
                "Parameters",
                "PidFile",
                "PluginDir",
                "PrivateData",
                "SlurmUser",
                "StorageBackupHost",
                "StorageHost",
                "StorageLoc",
            ),
            *("StorageParameters", "StoragePass", "StorageUser"),
        ),
        _TEXT,
    ),
    "StorageType": _STORAGE,
}
_BY_LOWER: Final = {name.lower(): (name, kind) for name, kind in _KEYS.items()}
_AGE_FORM: Final = re.compile(r"(\d+)(h(?:ours?)?|d(?:ays?)?|m(?:onths?)?)?", re.IGNORECASE)
_NUMBER_FORM: Final = re.compile(r"\d+")
_BOOLEANS: Final = frozenset(("yes", "no", "true", "false", "1", "0", "up", "down"))
# the last two are this program's own
_DRIVERS: Final = {
    "mysql": "mariadb+pymysql",
    "postgresql": "postgresql+psycopg",
    "sqlite": "sqlite",
}


class Purge(NamedTuple):
    """Which records are old: those before a time, at which an hour, a day or a month (`unit`: h, d,
    m) begins.
    """

    before: int
    unit: str

    def period_start(self, when: int) -> int:
        """When the hour, day or month began in which the time is."""
        return _period_start(when, self.unit)


def _period_start(when: float, unit: str, back: int = 0) -> int:
    moment = time.localtime(when)
    if unit == "h":
        return int(when) // 3600 * 3600 - back * 3600
    day, month = (
        (moment.tm_mday - back, moment.tm_mon) if unit == "d" else (1, moment.tm_mon - back)
    )
    return int(time.mktime((moment.tm_year, month, day, 0, 0, 0, 0, 0, -1)))


def purge_of(text: str, now: float) -> Purge | None:
    """What `12months`, `3days` or `36hours` makes old; full hours, days or months. A number alone
    means months. None: no such text.
    """
    match = _AGE_FORM.fullmatch(text)
    if match is None:
        return None
    unit = (match[2] or "m")[0].lower()
    return Purge(_period_start(now, unit, int(match[1])), unit)


@dataclass(slots=True)
class DbdConfig:
    """The keys as given, by their names."""

    path: str = ""
    values: dict[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        return self.values.get(name, "")

    def boolean(self, name: str) -> bool:
        return self.text(name).lower() in {"yes", "true", "1", "up"}

    @property
    def url(self) -> str:
        """The database by SQLAlchemy's URL, from StorageType, StorageHost, StoragePort,
        StorageUser, StoragePass and StorageLoc.
        """
        kind = self.text("StorageType").lower().rpartition("/")[2] or "mysql"
        driver = _DRIVERS[kind]
        place = self.text("StorageLoc") or "slurm_acct_db"
        if kind == "sqlite":
            return f"{driver}:///{place}"
        user, password = self.text("StorageUser"), self.text("StoragePass")
        who = (
            quote(user, safe="") + (f":{quote(password, safe='')}" if password else "") + "@"
            if user
            else ""
        )
        port = f":{self.text('StoragePort')}" if self.text("StoragePort") else ""
        return (
            f"{driver}://{who}{self.text('StorageHost') or 'localhost'}{port}/"
            f"{place}{'?charset=utf8mb4' if kind == 'mysql' else ''}"
        )


def load_beside(conf: str | Path) -> DbdConfig:
    """The slurmdbd.conf in the folder of a slurm.conf; empty if there is none, or it is not for us
    to read.

    Raises:
        ConfigError: it has an error; says file and line.
    """
    path = Path(conf).with_name("slurmdbd.conf")
    try:
        with path.open("rb"):
            pass
    except OSError:
        return DbdConfig()
    return load(path)


def load(path: str | Path) -> DbdConfig:
    """Read a slurmdbd.conf.

    Raises:
        ConfigError: a line that cannot be read, an unknown key, a wrong value; says file and line.
    """
    found = scan(str(path))
    for finding in found.findings:
        raise ConfigError(finding.message, finding.file, finding.line)
    config = DbdConfig(str(path))
    for line in found.lines:
        for key, value in line.pairs:
            known = _BY_LOWER.get(key)
            if known is None:
                raise ConfigError(f"unknown key {key}", line.file, line.line)
            name, kind = known
            if not _is_valid(kind, value):
                raise ConfigError(f"{name} cannot be {value!r}", line.file, line.line)
            config.values[name] = value
    return config


def _is_valid(kind: int, value: str) -> bool:
    if kind == _NUMBER:
        return _NUMBER_FORM.fullmatch(value) is not None
    if kind == _BOOLEAN:
        return value.lower() in _BOOLEANS
    if kind == _AGE:
        return _AGE_FORM.fullmatch(value) is not None
    if kind == _STORAGE:
        return (
            value.lower().startswith("accounting_storage/")
            and value.lower().rpartition("/")[2] in _DRIVERS
        )
    return True
