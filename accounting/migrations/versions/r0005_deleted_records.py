"""What was deleted is kept, and marked so.

Revision: 0005, after 0004.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the mark to what can be deleted."""
    for table in ("clusters", "accounts", "users", "associations", "qos", "wckeys"):
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.add_column(sa.Column("deleted", sa.Boolean()))
