"""The accounting database: the same tests on SQLite, PostgreSQL and MariaDB.

Covers: accounting/answers, accounting/change_clusters, accounting/conditions, accounting/core,
accounting/fields, accounting/ledger, accounting/migrate, accounting/schema, accounting/statistics.
"""

import contextlib
import itertools
import sys

import pytest
from accounting_harness import NOW, House
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from database_servers import mariadb, postgresql
from sqlalchemy import MetaData, create_engine, event, text
from sqlalchemy.exc import OperationalError

from understudy.accounting import migrate, schema
from understudy.accounting.core import Accounting
from understudy.accounting.store import Store, StoreError
from understudy.model.dbd_conf import Purge
from understudy.model.states import JobState
from understudy.protocol.messages import (
    AccountingQuery,
    AccountingRecords,
    EventRecord,
    JobRecord,
    ReservationRecord,
    StepRecord,
)
from understudy.tool.faults.disk import DatabaseDisk

SERVERS = {"postgresql": postgresql, "mariadb": mariadb}


@pytest.fixture(scope="module", params=["sqlite", *SERVERS])
def server(request):
    """A URL, or None for SQLite."""
    with SERVERS[request.param]() if request.param in SERVERS else contextlib.nullcontext() as url:
        yield url


@pytest.fixture
def url(server, tmp_path):
    """An empty database."""
    if server is None:
        return f"sqlite:///{tmp_path / 'accounting.sqlite'}"
    engine = create_engine(server)
    with engine.begin() as connection:
        everything = MetaData()
        everything.reflect(connection)
        everything.drop_all(connection)
    engine.dispose()
    return server


@pytest.fixture
def house(url):
    house = House(url)
    yield house
    house.store.close()


def job(number, **fields):
    return JobRecord(
        **{
            "job_id": number,
            "submit_time": NOW,
            "restarts": 0,
            "user": "anna",
            "user_id": 1001,
            "group_id": 100,
            **fields,
        }
    )


def test_what_was_changed_is_there_after_a_restart(house):
    house.do(
        "add qos fast priority=7 maxtrespu=cpu=4 flags=DenyOnLimit usagefactor=1.5 preempt=normal",
        "add account physics grptres=cpu=64,mem=10G maxwall=1-0 fairshare=parent "
        "description='Größe ☃'",
        "add user anna account=physics partition=debug defaultwckey=key qos=+fast "
        "adminlevel=operator",
        "add coordinator account=physics names=anna",
        "delete qos normal",
        "add resource matlab count=50 server=flex_host type=license cluster=conform "
        "percentallowed=25",
        "add federation fed clusters=conform",
        "modify cluster conform set features=a,b",
    )
    before = house.accounting.ledger
    house.reopen()
    assert house.accounting.ledger == before
    assert house.accounting.ledger is not before
    assert before.accounts["physics"].description == "größe ☃"  # Slurm keeps it in lower case


def test_numbers_are_not_given_twice_although_their_owners_have_gone(house):
    house.do("add account a1", "add qos q1", "delete account a1", "delete qos q1")
    house.reopen()
    house.do("add account a2", "add qos q2")
    ledger = house.accounting.ledger
    assert ledger.association("conform", "a2").id == 4
    assert ledger.qos_named("q2").id == 3


def test_names_are_told_apart_by_case(house):
    house.tell(AccountingRecords("conform", [EventRecord("n1", NOW), EventRecord("N1", NOW)]))
    assert len(house.store.find(schema.events, [schema.events.c.node != ""])) == 2


def test_a_record_replaces_what_was_known_of_the_same_run(house):
    house.tell(AccountingRecords("conform", [job(1, state=0), job(2), job(1, restarts=1)]))
    house.tell(
        AccountingRecords(
            "conform",
            [
                job(
                    1,
                    state=int(JobState.COMPLETED),
                    tres_allocated={"cpu": 2, "mem": 100},
                    work_dir="/tmp/ü",
                )
            ],
        )
    )
    rows = house.store.find(schema.jobs, order=[schema.jobs.c.job_id, schema.jobs.c.restarts])
    assert [(row["job_id"], row["restarts"], row["state"]) for row in rows] == [
        (1, 0, 3),
        (1, 1, 0),
        (2, 0, 0),
    ]
    assert rows[0]["tres_allocated"] == {"cpu": 2, "mem": 100}
    assert rows[0]["work_dir"] == "/tmp/ü"


def test_a_message_that_a_newer_one_has_overtaken_changes_nothing(house):
    over = job(1, state=int(JobState.COMPLETED))
    house.tell(AccountingRecords("conform", [job(1), over], since=NOW, last=2))
    house.tell(AccountingRecords("conform", [job(1)], since=NOW, last=1))
    house.tell(AccountingRecords("conform", [job(1)], since=NOW - 60, last=9))
    assert [row["state"] for row in house.store.find(schema.jobs)] == [3]
    # who leads next counts from 1
    house.tell(AccountingRecords("conform", [job(2)], since=NOW + 60, last=1))
    assert len(house.store.find(schema.jobs)) == 2
    # or comes with a clock that is behind
    house.register("conform")
    house.tell(AccountingRecords("conform", [job(3)], since=NOW - 60, last=1))
    assert len(house.store.find(schema.jobs)) == 3


def test_records_of_all_kinds_come_back_as_they_went(house):
    records = [
        StepRecord(1, NOW, 0, "batch", state=3, tasks=1, tres_allocated={"cpu": 1}),
        EventRecord("n1", NOW, NOW + 5, reason="broken", tres={"cpu": 4}),
        ReservationRecord(3, "maintenance", NOW, NOW + 60, "n[1-2]", {"cpu": 8}, "MAINT", [1, 2]),
    ]
    house.tell(AccountingRecords("conform", records))
    for record, table in zip(
        records, (schema.steps, schema.events, schema.reservations), strict=True
    ):
        (row,) = house.store.find(table, [table.c.node != ""] if "node" in table.c else [])
        assert row.pop("cluster") == "conform"
        assert type(record)(**row) == record


def test_a_reservation_that_ends_when_it_begins_is_forgotten(house):
    for end in (NOW + 60, NOW):
        house.tell(AccountingRecords("conform", [ReservationRecord(3, "maintenance", NOW, end)]))
    assert house.store.find(schema.reservations) == []


def test_many_records_fit_into_one_message(house):
    house.tell(AccountingRecords("conform", [job(number) for number in range(1, 1502)]))
    house.tell(AccountingRecords("conform", [job(number, state=3) for number in range(1, 1502)]))
    assert len(house.store.find(schema.jobs, [schema.jobs.c.state == 3])) == 1501


def test_usage_is_added_up_by_hour_day_and_month(house):
    hour = NOW // 3600 * 3600
    house.now = hour + 3 * 3600 + 5
    house.tell(
        AccountingRecords(
            "conform",
            [
                job(
                    1,
                    association_id=7,
                    start_time=hour + 1800,
                    end_time=hour + 2 * 3600,
                    tres_allocated={"cpu": 2},
                ),
                EventRecord("n1", hour + 3600, hour + 3660, tres={"cpu": 4}),
            ],
        )
    )
    house.accounting.roll_up()
    used = {
        (row["period"], (row["start_time"] - hour) // 3600): row["amount"]
        for row in house.store.find(
            schema.usage, [schema.usage.c.kind == "association", schema.usage.c.tres == "cpu"]
        )
        if row["period"] == "hour"
    }
    assert used == {("hour", 0): 3600, ("hour", 1): 7200}
    for period in ("day", "month"):
        rows = house.store.find(
            schema.usage, [schema.usage.c.kind == "association", schema.usage.c.period == period]
        )
        assert sum(row["amount"] for row in rows) == 10800
    down = house.store.find(
        schema.usage,
        [
            schema.usage.c.kind == "down",
            schema.usage.c.period == "hour",
            schema.usage.c.tres == "cpu",
        ],
    )
    assert [row["amount"] for row in down] == [240]
    idle = house.store.find(
        schema.usage,
        [
            schema.usage.c.kind == "idle",
            schema.usage.c.start_time == hour + 3600,
            schema.usage.c.tres == "cpu",
        ],
    )
    assert {row["amount"] for row in idle if row["period"] == "hour"} == {8 * 3600 - 7200 - 240}


def test_usage_that_is_told_late_is_added_up_again(house):
    hour = NOW // 3600 * 3600
    house.now = hour + 2 * 3600
    house.tell(
        AccountingRecords(
            "conform", [job(1, association_id=7, start_time=hour, tres_allocated={"cpu": 1})]
        )
    )
    house.accounting.roll_up()
    house.tell(
        AccountingRecords(
            "conform",
            [
                job(
                    1,
                    association_id=7,
                    start_time=hour,
                    end_time=hour + 1800,
                    tres_allocated={"cpu": 1},
                )
            ],
        )
    )
    house.accounting.roll_up()
    rows = house.store.find(
        schema.usage, [schema.usage.c.kind == "association", schema.usage.c.period == "hour"]
    )
    assert sum(row["amount"] for row in rows) == 1800


@pytest.mark.parametrize("which", range(8))
def test_usage_is_right_whichever_commit_fails_once(house, which):
    """Who is refused says it again."""
    disk, hour = DatabaseDisk(), NOW // 3600 * 3600
    house.now = hour + 50 * 3600
    commits = itertools.count()

    def fail_once(_connection):
        disk.is_full = next(commits) == which

    event.listen(house.store.engine, "commit", fail_once)
    disk.attach(house.store.engine)

    def insist(action):
        try:
            action()
        except OperationalError:
            action()

    def tell(end_time):
        times = {"start_time": hour, "end_time": end_time}
        record = job(1, association_id=7, tres_allocated={"cpu": 1}, **times)
        house.tell(AccountingRecords("conform", [record]))

    insist(lambda: tell(None))
    insist(house.accounting.roll_up)
    insist(lambda: tell(hour + 49 * 3600))
    insist(house.accounting.roll_up)
    assert disk.refused == (which < next(commits) - 1)
    used = {
        period: sum(
            row["amount"]
            for row in house.store.find(
                schema.usage,
                [schema.usage.c.kind == "association", schema.usage.c.period == period],
            )
            if row["tres"] == "cpu"
        )
        for period in ("hour", "day", "month")
    }
    assert used == dict.fromkeys(used, 49 * 3600)


def test_migrations_lead_to_the_schema_that_the_program_states(house):
    with house.store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": False})
        assert compare_metadata(context, schema.metadata) == []


def test_a_database_of_a_later_version_is_refused(house, url):
    with house.store.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="later than 0006"):
        Store(url)


def test_a_new_database_has_the_newest_version(house):
    with house.store.engine.connect() as connection:
        current = MigrationContext.configure(connection).get_current_revision()
    assert (
        current == migrate.ScriptDirectory.from_config(migrate.configuration()).get_current_head()
    )


def test_gathered_records_are_written_before_somebody_asks(house):
    house.accounting = Accounting(
        house.store,
        now=lambda: house.now,
        superusers=frozenset((0,)),
        user_name=str,
        stop=house.stop,
        gathers=True,
    )
    house.tell(AccountingRecords("conform", [job(1, state=0)]))
    house.tell(AccountingRecords("conform", [job(1, state=3), job(2, state=0)]))
    assert not house.store.find(schema.jobs)
    answer, _ = house.tell(AccountingQuery("jobs", ["job_id", "state"]))
    assert sorted(answer.rows) == [[1, 3], [2, 0]]


def test_old_records_are_purged_by_kind_and_open_ones_stay(house):
    old, young = NOW - 1000, NOW - 10
    records = [
        job(1, end_time=old),
        job(2, end_time=young),
        job(3),
        *(
            StepRecord(number, NOW, 0, "batch", end_time=end)
            for number, end in ((1, old), (2, young), (3, None))
        ),
        EventRecord("n1", old - 5, old),
        EventRecord("n2", old),
    ]
    house.tell(AccountingRecords("conform", records))
    house.accounting.purge({"Job": Purge(NOW - 500, "h")})
    left = house.store.find(schema.jobs, order=[schema.jobs.c.job_id])
    assert [row["job_id"] for row in left] == [2, 3]
    # steps have an age of their own
    assert sorted(row["job_id"] for row in house.store.find(schema.steps)) == [1, 2, 3]
    assert len(house.store.find(schema.events, [schema.events.c.node != ""])) == 2
    house.accounting.purge({"Step": Purge(NOW - 500, "h")})
    assert sorted(row["job_id"] for row in house.store.find(schema.steps)) == [2, 3]
    house.accounting.purge({"Event": Purge(NOW - 500, "h")})
    assert [
        row["node"] for row in house.store.find(schema.events, [schema.events.c.node != ""])
    ] == ["n2"]


def test_what_is_archived_goes_into_files_and_comes_back_once(house, tmp_path):
    house.do("add account physics")
    records = [
        job(
            1,
            start_time=NOW - 900,
            end_time=NOW - 800,
            tres_allocated={"cpu": 2},
            work_dir="/tmp/ü",
        ),
        StepRecord(
            1, NOW, 0, "batch", start_time=NOW - 900, end_time=NOW - 800, tres_allocated={"cpu": 2}
        ),
        EventRecord("n1", NOW - 900, NOW - 800, reason="broken"),
        ReservationRecord(
            3, "maintenance", NOW - 900, NOW - 800, "n[1-2]", {"cpu": 8}, "MAINT", [1, 2]
        ),
        job(2),
    ]
    house.tell(AccountingRecords("conform", records))
    house.now += 2 * 86400
    tables = [schema.jobs, schema.steps, schema.events, schema.reservations, schema.transactions]
    before = [sorted(map(str, house.store.find(table))) for table in tables]
    house.do(
        f"archive dump directory={tmp_path} events jobs steps resv txn purgeeventafter=1day "
        "purgejobafter=24hours purgestepafter=1d"
        " purgeresvafter=1days purgetxnafter=1days"
    )
    counts = [len(house.store.find(table)) for table in tables]
    assert counts == [1, 0, 1, 0, 0]  # what is open stays
    files = sorted(path for path in tmp_path.iterdir() if "_archive_" in path.name)
    kinds = [path.name.partition("_table_archive_")[0].removeprefix("conform_") for path in files]
    assert kinds == ["event", "job", "resv", "step", "txn"]
    for path in files:
        house.do(f"archive load file={path}")
        said = house.sacctmgr(f"-i archive load {path}")
        assert (said.code, said.err) == (
            1,
            (
                "sacctmgr: error: Error with request.\n"
                " Problem loading archive file: Unspecified error\n"
            ),
        )
    assert [sorted(map(str, house.store.find(table))) for table in tables] == before


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [
        ("postgresql+psycopg://u@127.0.0.1:1/d", "psycopg", "postgresql"),
        ("mysql+pymysql://u@127.0.0.1:1/d", "pymysql", "mariadb"),
    ],
)
def test_a_database_without_its_driver_names_the_extra(url, module, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(StoreError, match=rf"pip install 'understudy\[{extra}\]'"):
        Store(url)
