"""Associations and QOS as priorities need them, read from the controller's copy of accounting.

Place: priority, between understudy.model.associations and the plug-ins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.priority.api import QosFacts, Share
from understudy.model.associations import SHARES_OF_PARENT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.controller.tables.job import Job
    from understudy.model.associations import Association, AssociationState
    from understudy.model.qos import Qos


class AccountsOf:
    """Implements `understudy.controller.priority.api.Accounts`. `state` gives the present copy,
    `user_name` a user's name for a number.
    """

    def __init__(
        self, state: Callable[[], AssociationState], user_name: Callable[[int], str]
    ) -> None:
        self._state, self._user_name = state, user_name
        self._version = (0, -1)
        self._count = 0
        self._highest_qos = 0

    @property
    def version(self) -> int:
        """Raised with every change."""
        state = self._state()
        seen = (id(state), state.number)
        if seen != self._version:
            self._version = seen
            self._count += 1
            self._highest_qos = max((each.priority for each in state.qos.values()), default=0)
        return self._count

    def shares(self) -> Sequence[Share]:
        """All associations, parents before their children, siblings in their order."""
        state = self._state()
        roots = [
            each for each in state.associations.values() if each.parent_id not in state.associations
        ]
        found: list[Share] = []
        waiting = sorted(roots, key=lambda each: each.id, reverse=True)
        while waiting:
            each = waiting.pop()
            found.append(self._share(state, each))
            waiting += reversed(state.children[each.id])
        return found

    @staticmethod
    def _share(state: AssociationState, each: Association) -> Share:
        shares = None if each.shares == SHARES_OF_PARENT else each.shares
        return Share(
            each.id,
            each.parent_id,
            each.account,
            each.user,
            shares,
            state.effective(each).priority or 0,
            each.partition,
        )

    def association_of(self, job: Job) -> int:
        """The id of the job's association, 0 if it has none."""
        found = self._association(job)
        return 0 if found is None else found.id

    def _association(self, job: Job) -> Association | None:
        state = self._state()
        if not state.associations:
            return None
        user = self._user_name(job.user_id)
        account = job.spec.account or state.default_account(user)
        return None if account is None else state.find(account, user, job.partition)

    def qos_of(self, job: Job) -> QosFacts | None:
        """Of the job's QOS what counts for its priority."""
        found = self.qos_record(job)
        return None if found is None else QosFacts(found.priority, found.usage_factor)

    def qos_record(self, job: Job) -> Qos | None:
        """The job's QOS, its association's default if it names none."""
        state = self._state()
        if not state.qos:
            return None
        name = job.spec.qos
        if not name:
            association = self._association(job)
            name = "normal" if association is None else state.default_qos(association)
        return state.qos.get(name)

    def highest_qos_priority(self) -> int:
        """The largest priority of any QOS."""
        assert self.version >= 0
        return self._highest_qos
