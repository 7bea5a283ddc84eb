"""Which heterogeneous jobs jobs are components of.

Revision: 0003, after 0002.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        for name in ("het_job_id", "het_offset"):
            batch_op.add_column(sa.Column(name, sa.BigInteger()))
