"""What steps used, and the numbers of jobs' reservations, keys and qualities of service.

Revision: 0002, after 0001.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        for name in ("reservation_id", "wckey_id", "qos_id"):
            batch_op.add_column(sa.Column(name, sa.BigInteger()))
    with op.batch_alter_table("steps", schema=None) as batch_op:
        for name in ("user_cpu_us", "system_cpu_us"):
            batch_op.add_column(sa.Column(name, sa.BigInteger()))
        batch_op.add_column(sa.Column("usage", sa.JSON(none_as_null=True)))
