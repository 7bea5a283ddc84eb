"""The groups of a job's user, as this host knows him.

Place: used where processes of jobs are begun. The daemon asks, once; its children would each have
to load what the host's name service needs.
"""

from __future__ import annotations

import os
import pwd


def groups_of(user_id: int, group_id: int) -> list[int]:
    """All groups of the user, with the one in which the job runs. A user whom the host does not
    know has that alone.
    """
    try:
        return os.getgrouplist(pwd.getpwuid(user_id).pw_name, group_id)
    except KeyError:
        return [group_id]
