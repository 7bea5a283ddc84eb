"""Batch scripts and environments of jobs.

Revision: 0006, after 0005.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0006"
down_revision = "0005"
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
    """Add the texts, and which of them jobs have."""
    op.create_table(
        "job_texts",
        sa.Column("cluster", _name(), nullable=False),
        sa.Column("key", _name(64), nullable=False),
        sa.Column("text", _text()),
        sa.PrimaryKeyConstraint("cluster", "key"),
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        for name in ("script", "environment"):
            batch_op.add_column(sa.Column(name, _name(64)))
