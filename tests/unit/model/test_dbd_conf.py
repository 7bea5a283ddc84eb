"""slurmdbd.conf: the database that it names, how long records are kept, and errors with file and
line.
"""

import time

import pytest

from understudy.model.dbd_conf import load, load_beside, purge_of
from understudy.model.errors import ConfigError

ORDINARY = """
# an ordinary file
DbdHost=db
storagetype=accounting_storage/mysql
StorageHost=db.site.org
StoragePort=3307
StorageUser=slurm
StoragePass=a/b@c
StorageLoc=acct
PurgeJobAfter=12months
PurgeEventAfter=36hours
PurgeTXNAfter=2
PurgeStepAfter=10days
TrackWCKey=Yes
"""


def read(tmp_path, text):
    path = tmp_path / "slurmdbd.conf"
    path.write_text(text)
    return load(path)


def test_the_database_is_named_by_a_url(tmp_path):
    assert (
        read(tmp_path, ORDINARY).url
        == "mariadb+pymysql://slurm:a%2Fb%40c@db.site.org:3307/acct?charset="
        "utf8mb4"
    )
    assert (
        read(tmp_path, "StorageType=accounting_storage/mysql").url
        == "mariadb+pymysql://localhost/slurm_acct_db?charset="
        "utf8mb4"
    )
    assert (
        read(tmp_path, "StorageType=accounting_storage/sqlite\nStorageLoc=/x/y.sqlite").url
        == "sqlite:////x/y.sqlite"
    )
    postgresql = read(
        tmp_path, "StorageType=accounting_storage/postgresql\nStorageUser=me\nStorageHost=h"
    )
    assert postgresql.url == "postgresql+psycopg://me@h/slurm_acct_db"


def test_ages_are_hours_days_or_months(tmp_path):
    config = read(tmp_path, ORDINARY)
    now = time.mktime((2023, 3, 15, 10, 20, 30, 0, 0, -1))
    olds = [
        purge_of(config.text(f"Purge{name}After"), now)
        for name in ("Job", "Event", "TXN", "Step", "Usage")
    ]
    said = [
        (old.unit, time.strftime("%F %T", time.localtime(old.before))) if old is not None else None
        for old in olds
    ]
    assert said == [
        ("m", "2022-03-01 00:00:00"),
        ("h", "2023-03-13 22:00:00"),
        ("m", "2023-01-01 00:00:00"),
        ("d", "2023-03-05 00:00:00"),
        None,
    ]
    assert [
        time.strftime("%F %T", time.localtime(olds[index].period_start(int(now))))
        for index in (0, 1, 3)
    ] == [
        "2023-03-01 00:00:00",
        "2023-03-15 10:00:00",
        "2023-03-15 00:00:00",
    ]
    assert config.boolean("TrackWCKey")
    assert not config.boolean("TrackSlurmctldDown")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("NoSuchKey=1", "line 2: unknown key nosuchkey"),
        ("DbdPort=many", "line 2: DbdPort cannot be 'many'"),
        ("PurgeJobAfter=soon", "line 2: PurgeJobAfter cannot be 'soon'"),
        ("StorageType=accounting_storage/oracle", "line 2: StorageType cannot be"),
        ("TrackWCKey=perhaps", "line 2: TrackWCKey cannot be 'perhaps'"),
        ("rubbish", "line 2"),
    ],
)
def test_errors_name_the_file_and_the_line(tmp_path, line, message):
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, f"DbdHost=db\n{line}\n")
    assert f"{tmp_path / 'slurmdbd.conf'} {message}" in str(caught.value)


def test_there_need_not_be_one(tmp_path):
    assert load_beside(tmp_path / "slurm.conf").values == {}
    (tmp_path / "slurmdbd.conf").write_text("DbdHost=db\n")
    assert load_beside(tmp_path / "slurm.conf").text("DbdHost") == "db"
