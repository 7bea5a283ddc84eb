"""A controller's core with accounts: ann and bob in an account below another, qualities of service,
and limits as the test wants them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from controller_harness import USER, Harness, make_tables

from understudy.controller.accounting.link import NotingJournal
from understudy.controller.edge.limits import make_limits
from understudy.controller.jobs.start import Planning
from understudy.controller.pending.access import accounting_has_changed
from understudy.controller.ports import NoJournal
from understudy.controller.priority.options import PriorityOptions
from understudy.controller.scheduling.api import Note
from understudy.controller.scheduling.slurm.backfill import Backfill
from understudy.controller.tables.settings import Enforced, Settings
from understudy.model.associations import Association, AssociationState
from understudy.model.qos import Qos

if TYPE_CHECKING:
    from understudy.controller.enforcement.limits import JobLimits
    from understudy.controller.tables.job import Job

NAMES = ("normal", "q", "over", "part")

WAIT_S = 15  # in which both schedulers run


class House(Harness):
    """`Harness` with the main scheduler and backfill. Accounts: root > upper > lower (ann, bob),
    and root > other (bob).
    """

    def __init__(
        self,
        *,
        enforce: str = "limits,qos",
        parameters: dict[str, str] | None = None,
        options: PriorityOptions | None = None,
        counts_use: bool = True,
        **each: Any,
    ) -> None:
        noting = NotingJournal(NoJournal())
        settings = Settings(min_job_age_s=0, enforced=Enforced.of(enforce.split(",")), **each)
        super().__init__(make_tables(count=4, cpus=8), journal=noting, settings=settings)
        core = self.core
        core.associations = AssociationState(
            "c",
            1,
            associations=[
                Association(1, "c", "root", qos=("normal",)),
                Association(2, "c", "upper", parent_id=1),
                Association(3, "c", "lower", parent_id=2, delta_qos=("+q", "+over")),
                Association(4, "c", "lower", "ann", parent_id=3, is_default=True),
                Association(5, "c", "lower", "bob", parent_id=3, is_default=True),
                Association(6, "c", "other", parent_id=1),
                Association(7, "c", "other", "bob", parent_id=6),
            ],
            qos=[Qos(number, name) for number, name in enumerate(NAMES, 1)],
        )
        core.job_limits = core.tables.limits = self.limits = make_limits(
            core, options or PriorityOptions(calc_period_s=60), counts_use=counts_use
        )
        noting.listeners.append(lambda job_id: self.limits.note(job_id, self.time.now()))
        core.policy = Backfill(
            core.tables,
            core.selector,
            Planning(core),
            parameters or {"bf_interval": "10", "bf_resolution": "1"},
        )
        accounting_has_changed(core)
        core.changed(Note.START, self.time.now())

    def set_association(self, number: int, **limits: Any) -> None:
        """What `sacctmgr modify` does."""
        state = self.core.associations
        state.apply(
            state.number + 1,
            associations=[msgspec.structs.replace(state.associations[number], **limits)],
        )
        self._changed()

    def set_qos(self, name: str, **limits: Any) -> None:
        """What `sacctmgr modify qos` does."""
        state = self.core.associations
        state.apply(state.number + 1, qos=[msgspec.structs.replace(state.qos[name], **limits)])
        self._changed()

    def _changed(self) -> None:
        accounting_has_changed(self.core)
        self.core.changed(Note.CHANGE, self.time.now())
        self.core.after_event()


def sums(limits: JobLimits) -> dict[str, Any]:
    """All sums, without those that are zero."""
    found: dict[str, Any] = {}
    uses = {f"a{number}": use for number, use in limits.of_association.items()}
    for name, qos in limits.of_qos.items():
        uses[name] = qos.whole
        uses |= {f"{name} {user}": use for user, use in qos.by_user.items()}
        uses |= {f"{name} {account}": use for account, use in qos.by_account.items()}
    for name, use in uses.items():
        found[name] = (
            use.jobs,
            use.submitted,
            {k: v for k, v in use.tres.items() if v},
            {k: v for k, v in use.run_s.items() if v},
            use.nodes,
        )
    return {name: values for name, values in found.items() if any(values)}


def submit(house: House, sender: Any = USER, **spec: Any) -> Job:
    """A job that asks for little memory."""
    return house.submit(sender, **{"mem_per_cpu_mb": 10} | spec)
