"""All tables of accounting.

Revision: 0001, after None.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _name(length: int = 191) -> sa.types.TypeEngine[str]:
    return sa.String(length).with_variant(
        mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
    )


def _text() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(
        mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
    )


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "accounts",
        sa.Column("name", _name(), nullable=False),
        sa.Column("description", _text()),
        sa.Column("organization", _text()),
        sa.Column("creation_time", sa.BigInteger()),
        sa.Column("mod_time", sa.BigInteger()),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "associations",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("cluster", _name()),
        sa.Column("account", _name()),
        sa.Column("user", _name()),
        sa.Column("partition", _name()),
        sa.Column("parent_id", sa.BigInteger()),
        sa.Column("position", sa.BigInteger()),
        sa.Column("is_default", sa.Boolean()),
        sa.Column("shares", sa.BigInteger()),
        sa.Column("priority", sa.BigInteger()),
        sa.Column("qos", sa.JSON(none_as_null=True)),
        sa.Column("delta_qos", sa.JSON(none_as_null=True)),
        sa.Column("default_qos", _text()),
        sa.Column("grp_jobs", sa.BigInteger()),
        sa.Column("grp_jobs_accrue", sa.BigInteger()),
        sa.Column("grp_submit_jobs", sa.BigInteger()),
        sa.Column("grp_wall", sa.BigInteger()),
        sa.Column("grp_tres", sa.JSON(none_as_null=True)),
        sa.Column("grp_tres_mins", sa.JSON(none_as_null=True)),
        sa.Column("grp_tres_run_mins", sa.JSON(none_as_null=True)),
        sa.Column("max_jobs", sa.BigInteger()),
        sa.Column("max_jobs_accrue", sa.BigInteger()),
        sa.Column("max_submit_jobs", sa.BigInteger()),
        sa.Column("max_wall", sa.BigInteger()),
        sa.Column("max_tres_per_job", sa.JSON(none_as_null=True)),
        sa.Column("max_tres_per_node", sa.JSON(none_as_null=True)),
        sa.Column("max_tres_mins_per_job", sa.JSON(none_as_null=True)),
        sa.Column("min_prio_threshold", sa.BigInteger()),
        sa.Column("creation_time", sa.BigInteger()),
        sa.Column("mod_time", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "clusters",
        sa.Column("name", _name(), nullable=False),
        sa.Column("control_host", _text()),
        sa.Column("classification", _text()),
        sa.Column("nodes", _text()),
        sa.Column("control_port", sa.BigInteger()),
        sa.Column("rpc_version", sa.BigInteger()),
        sa.Column("creation_time", sa.BigInteger()),
        sa.Column("mod_time", sa.BigInteger()),
        sa.Column("tres", sa.JSON(none_as_null=True)),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "counters",
        sa.Column("name", _name(), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "events",
        sa.Column("cluster", _name(), nullable=False),
        sa.Column("node", _name(), nullable=False),
        sa.Column("start_time", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("end_time", sa.BigInteger()),
        sa.Column("state", sa.BigInteger()),
        sa.Column("user_id", sa.BigInteger()),
        sa.Column("reason", _text()),
        sa.Column("nodes", _text()),
        sa.Column("tres", sa.JSON(none_as_null=True)),
        sa.PrimaryKeyConstraint("cluster", "node", "start_time"),
    )
    op.create_table(
        "jobs",
        sa.Column("cluster", _name(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("submit_time", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("restarts", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("user", _name()),
        sa.Column("account", _name()),
        sa.Column("partition", _name()),
        sa.Column("qos", _name()),
        sa.Column("wckey", _name()),
        sa.Column("user_id", sa.BigInteger()),
        sa.Column("group_id", sa.BigInteger()),
        sa.Column("association_id", sa.BigInteger()),
        sa.Column("state", sa.BigInteger()),
        sa.Column("eligible_time", sa.BigInteger()),
        sa.Column("start_time", sa.BigInteger()),
        sa.Column("end_time", sa.BigInteger()),
        sa.Column("suspended_s", sa.BigInteger()),
        sa.Column("exit_code", sa.BigInteger()),
        sa.Column("exit_signal", sa.BigInteger()),
        sa.Column("derived_exit_code", sa.BigInteger()),
        sa.Column("derived_exit_signal", sa.BigInteger()),
        sa.Column("node_count", sa.BigInteger()),
        sa.Column("time_limit_min", sa.BigInteger()),
        sa.Column("priority", sa.BigInteger()),
        sa.Column("killed_by", sa.BigInteger()),
        sa.Column("array_job_id", sa.BigInteger()),
        sa.Column("array_task_id", sa.BigInteger()),
        sa.Column("group", _text()),
        sa.Column("name", _text()),
        sa.Column("reason", _text()),
        sa.Column("nodes", _text()),
        sa.Column("constraints", _text()),
        sa.Column("work_dir", _text()),
        sa.Column("submit_line", _text()),
        sa.Column("comment", _text()),
        sa.Column("admin_comment", _text()),
        sa.Column("system_comment", _text()),
        sa.Column("reservation", _text()),
        sa.Column("flags", _text()),
        sa.Column("array_tasks", _text()),
        sa.Column("container", _text()),
        sa.Column("tres_requested", sa.JSON(none_as_null=True)),
        sa.Column("tres_allocated", sa.JSON(none_as_null=True)),
        sa.PrimaryKeyConstraint("cluster", "job_id", "submit_time", "restarts"),
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index("jobs_by_end", ["cluster", "end_time"], unique=False)
        batch_op.create_index("jobs_by_start", ["cluster", "start_time"], unique=False)
        batch_op.create_index("jobs_by_user", ["user", "end_time"], unique=False)

    op.create_table(
        "qos",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", _name()),
        sa.Column("description", _text()),
        sa.Column("priority", sa.BigInteger()),
        sa.Column("flags", sa.JSON(none_as_null=True)),
        sa.Column("grace_time_s", sa.BigInteger()),
        sa.Column("preempt", sa.JSON(none_as_null=True)),
        sa.Column("preempt_mode", _text()),
        sa.Column("preempt_exempt_time_s", sa.BigInteger()),
        sa.Column("usage_factor", sa.Float(precision=53)),
        sa.Column("usage_threshold", sa.Float(precision=53)),
        sa.Column("limit_factor", sa.Float(precision=53)),
        sa.Column("grp_jobs", sa.BigInteger()),
        sa.Column("grp_jobs_accrue", sa.BigInteger()),
        sa.Column("grp_submit_jobs", sa.BigInteger()),
        sa.Column("grp_wall", sa.BigInteger()),
        sa.Column("grp_tres", sa.JSON(none_as_null=True)),
        sa.Column("grp_tres_mins", sa.JSON(none_as_null=True)),
        sa.Column("grp_tres_run_mins", sa.JSON(none_as_null=True)),
        sa.Column("max_jobs_per_account", sa.BigInteger()),
        sa.Column("max_jobs_per_user", sa.BigInteger()),
        sa.Column("max_jobs_accrue_per_account", sa.BigInteger()),
        sa.Column("max_jobs_accrue_per_user", sa.BigInteger()),
        sa.Column("max_submit_jobs_per_account", sa.BigInteger()),
        sa.Column("max_submit_jobs_per_user", sa.BigInteger()),
        sa.Column("max_tres_per_job", sa.JSON(none_as_null=True)),
        sa.Column("max_tres_per_node", sa.JSON(none_as_null=True)),
        sa.Column("max_tres_per_account", sa.JSON(none_as_null=True)),
        sa.Column("max_tres_per_user", sa.JSON(none_as_null=True)),
        sa.Column("max_tres_mins_per_job", sa.JSON(none_as_null=True)),
        sa.Column("max_wall", sa.BigInteger()),
        sa.Column("min_prio_threshold", sa.BigInteger()),
        sa.Column("min_tres_per_job", sa.JSON(none_as_null=True)),
        sa.Column("creation_time", sa.BigInteger()),
        sa.Column("mod_time", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "reservations",
        sa.Column("cluster", _name(), nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("start_time", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("end_time", sa.BigInteger()),
        sa.Column("name", _text()),
        sa.Column("nodes", _text()),
        sa.Column("flags", _text()),
        sa.Column("tres", sa.JSON(none_as_null=True)),
        sa.Column("associations", sa.JSON(none_as_null=True)),
        sa.PrimaryKeyConstraint("cluster", "id", "start_time"),
    )
    op.create_table(
        "rollups",
        sa.Column("cluster", _name(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("cluster"),
    )
    op.create_table(
        "steps",
        sa.Column("cluster", _name(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("submit_time", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("restarts", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("step", _name(40), nullable=False),
        sa.Column("state", sa.BigInteger()),
        sa.Column("start_time", sa.BigInteger()),
        sa.Column("end_time", sa.BigInteger()),
        sa.Column("suspended_s", sa.BigInteger()),
        sa.Column("exit_code", sa.BigInteger()),
        sa.Column("exit_signal", sa.BigInteger()),
        sa.Column("node_count", sa.BigInteger()),
        sa.Column("tasks", sa.BigInteger()),
        sa.Column("cpus", sa.BigInteger()),
        sa.Column("killed_by", sa.BigInteger()),
        sa.Column("name", _text()),
        sa.Column("nodes", _text()),
        sa.Column("layout", _text()),
        sa.Column("submit_line", _text()),
        sa.Column("tres_allocated", sa.JSON(none_as_null=True)),
        sa.PrimaryKeyConstraint("cluster", "job_id", "submit_time", "restarts", "step"),
    )
    op.create_table(
        "transactions",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("time", sa.BigInteger()),
        sa.Column("action", _name()),
        sa.Column("actor", _name()),
        sa.Column("cluster", _name()),
        sa.Column("where", _text()),
        sa.Column("info", _text()),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("transactions", schema=None) as batch_op:
        batch_op.create_index("transactions_by_time", ["time"], unique=False)

    op.create_table(
        "tres",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", _name()),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "usage",
        sa.Column("period", _name(10), nullable=False),
        sa.Column("cluster", _name(), nullable=False),
        sa.Column("start_time", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", _name(20), nullable=False),
        sa.Column("subject", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tres", _name(100), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("period", "cluster", "start_time", "kind", "subject", "tres"),
    )
    op.create_table(
        "users",
        sa.Column("name", _name(), nullable=False),
        sa.Column("admin_level", _name(20)),
        sa.Column("default_wckey", _text()),
        sa.Column("coordinates", sa.JSON(none_as_null=True)),
        sa.Column("creation_time", sa.BigInteger()),
        sa.Column("mod_time", sa.BigInteger()),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "wckeys",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", _name()),
        sa.Column("cluster", _name()),
        sa.Column("user", _name()),
        sa.Column("is_default", sa.Boolean()),
        sa.Column("creation_time", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id"),
    )
