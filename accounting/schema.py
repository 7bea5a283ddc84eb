"""The tables of the database, as the newest migration leaves them.

Place: the store of the accounting daemon. One statement of the schema for SQLite, PostgreSQL and
MariaDB; `migrations` holds the way from one version to the next, and a test that both say the same.
Tables of the ledger have the fields of its records as columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.dialects import mysql

if TYPE_CHECKING:
    from sqlalchemy.types import TypeEngine

metadata: Final = MetaData()


def _name(length: int = 191) -> TypeEngine[str]:
    """A name, told apart by case on MariaDB, too. 191 characters of four bytes are what several fit
    into one of its keys.
    """
    return String(length).with_variant(
        mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
    )


def _text() -> TypeEngine[str]:
    return Text().with_variant(
        mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
    )


def _key(name: str, length: int = 191) -> Column[str]:
    return Column(name, _name(length), primary_key=True)


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, primary_key=True, autoincrement=False)


def _numbers(names: str) -> list[Column[int]]:
    return [Column(name, BigInteger) for name in names.split()]


def _mappings(names: str) -> list[Column[object]]:
    """Amounts by resource, and lists of names."""
    return [Column(name, JSON(none_as_null=True)) for name in names.split()]


def _texts(names: str) -> list[Column[str]]:
    return [Column(name, _text()) for name in names.split()]


def _deleted() -> Column[bool]:
    """Whether it was deleted, and is kept to be shown."""
    return Column("deleted", Boolean(create_constraint=False))


_GROUP_LIMITS: Final = "grp_jobs grp_jobs_accrue grp_submit_jobs grp_wall"
_GROUP_TRES: Final = "grp_tres grp_tres_mins grp_tres_run_mins"

clusters = Table(
    "clusters",
    metadata,
    _key("name"),
    *_texts("control_host classification nodes federation fed_state"),
    *_numbers("control_port rpc_version creation_time mod_time fed_id"),
    *_mappings("tres features"),
    _deleted(),
)
federations = Table("federations", metadata, _key("name"), *_numbers("creation_time mod_time"))
resources = Table(
    "resources",
    metadata,
    _number("id"),
    *(Column(name, _name()) for name in ("name", "server")),
    *_texts("type server_type description"),
    *_numbers("count creation_time mod_time"),
    *_mappings("allowed"),
)
accounts = Table(
    "accounts",
    metadata,
    _key("name"),
    *_texts("description organization"),
    *_numbers("creation_time mod_time"),
    _deleted(),
)
users = Table(
    "users",
    metadata,
    _key("name"),
    Column("admin_level", _name(20)),
    *_texts("default_wckey"),
    *_mappings("coordinates"),
    *_numbers("creation_time mod_time"),
    _deleted(),
)
associations = Table(
    "associations",
    metadata,
    _number("id"),
    *(Column(name, _name()) for name in ("cluster", "account", "user", "partition")),
    *_numbers("parent_id position"),
    Column("is_default", Boolean(create_constraint=False)),
    *_numbers("shares priority"),
    *_mappings("qos delta_qos"),
    *_texts("default_qos"),
    *_numbers(_GROUP_LIMITS),
    *_mappings(_GROUP_TRES),
    *_numbers("max_jobs max_jobs_accrue max_submit_jobs max_wall"),
    *_mappings("max_tres_per_job max_tres_per_node max_tres_mins_per_job"),
    *_numbers("min_prio_threshold creation_time mod_time"),
    _deleted(),
)
qos = Table(
    "qos",
    metadata,
    _number("id"),
    Column("name", _name()),
    *_texts("description"),
    *_numbers("priority"),
    *_mappings("flags"),
    *_numbers("grace_time_s"),
    *_mappings("preempt"),
    *_texts("preempt_mode"),
    *_numbers("preempt_exempt_time_s"),
    *(Column(name, Float(53)) for name in ("usage_factor", "usage_threshold", "limit_factor")),
    *_numbers(_GROUP_LIMITS),
    *_mappings(_GROUP_TRES),
    *_numbers(
        "max_jobs_per_account max_jobs_per_user max_jobs_accrue_per_account "
        "max_jobs_accrue_per_user"
    ),
    *_numbers("max_submit_jobs_per_account max_submit_jobs_per_user"),
    *_mappings(
        "max_tres_per_job max_tres_per_node max_tres_per_account max_tres_per_user "
        "max_tres_mins_per_job"
    ),
    *_numbers("max_wall min_prio_threshold"),
    *_mappings("min_tres_per_job"),
    *_numbers("creation_time mod_time"),
    _deleted(),
)
wckeys = Table(
    "wckeys",
    metadata,
    _number("id"),
    *(Column(name, _name()) for name in ("name", "cluster", "user")),
    Column("is_default", Boolean(create_constraint=False)),
    *_numbers("creation_time"),
    _deleted(),
)
tres = Table("tres", metadata, _number("id"), Column("name", _name()))
counters = Table("counters", metadata, _key("name"), Column("value", BigInteger, nullable=False))
transactions = Table(
    "transactions",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    *_numbers("time"),
    *(Column(name, _name()) for name in ("action", "actor", "cluster")),
    *_texts("where info"),
    Index("transactions_by_time", "time"),
)

_RUN: Final = ("job_id", "submit_time", "restarts")  # with the cluster: one run of a job

jobs = Table(
    "jobs",
    metadata,
    _key("cluster"),
    *(_number(name) for name in _RUN),
    *(Column(name, _name()) for name in ("user", "account", "partition", "qos", "wckey")),
    *_numbers(
        "user_id group_id association_id state eligible_time start_time end_time suspended_s"
    ),
    *_numbers(
        "exit_code exit_signal derived_exit_code derived_exit_signal node_count "
        "time_limit_min priority killed_by"
    ),
    *_numbers("array_job_id array_task_id reservation_id wckey_id qos_id het_job_id het_offset"),
    *_texts(
        "group name reason nodes constraints work_dir submit_line comment admin_comment "
        "system_comment reservation flags array_tasks container"
    ),
    *(Column(name, _name(64)) for name in ("script", "environment")),
    *_mappings("tres_requested tres_allocated"),
    Index("jobs_by_end", "cluster", "end_time"),
    Index("jobs_by_start", "cluster", "start_time"),
    Index("jobs_by_user", "user", "end_time"),
)
job_texts = Table("job_texts", metadata, _key("cluster"), _key("key", 64), *_texts("text"))
steps = Table(
    "steps",
    metadata,
    _key("cluster"),
    *(_number(name) for name in _RUN),
    _key("step", 40),
    *_numbers(
        "state start_time end_time suspended_s exit_code exit_signal node_count tasks "
        "cpus killed_by user_cpu_us system_cpu_us"
    ),
    *_texts("name nodes layout submit_line"),
    *_mappings("tres_allocated usage"),
)
events = Table(
    "events",
    metadata,
    _key("cluster"),
    _key("node"),
    _number("start_time"),
    *_numbers("end_time state user_id"),
    *_texts("reason nodes"),
    *_mappings("tres"),
)
reservations = Table(
    "reservations",
    metadata,
    _key("cluster"),
    _number("id"),
    _number("start_time"),
    *_numbers("end_time"),
    *_texts("name nodes flags"),
    *_mappings("tres associations"),
)
usage = Table(
    "usage",
    metadata,
    _key("period", 10),  # hour, day, month
    _key("cluster"),
    _number("start_time"),
    _key("kind", 20),  # association, wckey; of the cluster: allocated, down, idle
    _number("subject"),  # the association's or key's number; 0
    _key("tres", 100),
    Column("amount", BigInteger, nullable=False),  # resource times seconds
)
# all hours before this have been added up
rollups = Table("rollups", metadata, _key("cluster"), Column("until", BigInteger, nullable=False))
