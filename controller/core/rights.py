"""Who may do what: root and SlurmUser, and accounting's administrators, operators and coordinators.

Place: the controller's core, asked through `Core` and by handlers of requests. Follows: sacctmgr(1)
"AdminLevel"; what each request asks for is as Slurm 22.05.8 answers. Coordinators may do to the
jobs of their accounts, and of those below, what the jobs' owners may, and no more.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from understudy.model.associations import ADMINISTRATOR, OPERATOR

if TYPE_CHECKING:
    from understudy.controller.ports import Users
    from understudy.controller.tables.settings import Settings
    from understudy.model.associations import AssociationState


class Right(IntEnum):
    """Each has all that those below it have."""

    USER = 0
    OPERATOR = 1  # jobs and reservations of all
    ADMINISTRATOR = 2  # nodes, partitions and the configuration, too
    SLURM_USER = 3  # root and SlurmUser, or who started the cluster


_OF_LEVEL: Final = {OPERATOR: Right.OPERATOR, ADMINISTRATOR: Right.ADMINISTRATOR}


def right_of(
    associations: AssociationState, settings: Settings, users: Users, user_id: int
) -> Right:
    """What the user may do."""
    if user_id == 0 or user_id in settings.admin_ids:
        return Right.SLURM_USER
    if not associations.users:
        return Right.USER
    known = associations.users.get(users.user_name(user_id))
    return Right.USER if known is None else _OF_LEVEL.get(known.admin_level, Right.USER)
