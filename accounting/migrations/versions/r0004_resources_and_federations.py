"""Resources that clusters share, and federations of clusters.

Revision: 0004, after 0003.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0004"
down_revision = "0003"
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
    """Add the tables, and what a cluster is in its federation."""
    op.create_table(
        "resources",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", _name()),
        sa.Column("server", _name()),
        sa.Column("type", _text()),
        sa.Column("server_type", _text()),
        sa.Column("description", _text()),
        sa.Column("count", sa.BigInteger()),
        sa.Column("creation_time", sa.BigInteger()),
        sa.Column("mod_time", sa.BigInteger()),
        sa.Column("allowed", sa.JSON(none_as_null=True)),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "federations",
        sa.Column("name", _name(), nullable=False),
        sa.Column("creation_time", sa.BigInteger()),
        sa.Column("mod_time", sa.BigInteger()),
        sa.PrimaryKeyConstraint("name"),
    )
    with op.batch_alter_table("clusters", schema=None) as batch_op:
        for name in ("federation", "fed_state"):
            batch_op.add_column(sa.Column(name, _text()))
        batch_op.add_column(sa.Column("fed_id", sa.BigInteger()))
        batch_op.add_column(sa.Column("features", sa.JSON(none_as_null=True)))
