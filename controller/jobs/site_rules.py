"""Job submit plug-ins: a site's own rules on what users submit and change, in Python. They may
change it, refuse it, and say something to the user. A plug-in is a class without arguments, or a
module, with `submit(submission: Submission)` and `modify(modification: Modification)`; either may
be missing.

Place: jobs; asked before a job is looked at in any other way. Plug-ins are entry
points of the group GROUP, in any installed distribution; JobSubmitPlugins of slurm.conf names those
that count, in order. Follows: slurm.conf(5) JobSubmitPlugins, and what Slurm's `job_submit`
functions can do. Plug-ins of Slurm's own (`lua`, `require_timelimit` ...) are not here; the log
says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from understudy.controller.core.core import log
from understudy.controller.offers import offered
from understudy.model.errors import SlurmError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.protocol.messages import AllocateJob, JobSpec, SubmitJob

GROUP: Final = "understudy.job_submit"
UNSPECIFIED: Final = -1


@dataclass(slots=True)
class _Request:
    """What is asked of the controller, and by whom. `messages` are printed to him."""

    user_id: int
    user_name: str
    messages: list[str] = field(default_factory=list, kw_only=True)

    def tell(self, text: str) -> None:
        """Say something to the user."""
        self.messages.append(text)

    def refuse(self, text: str = "", code: int = UNSPECIFIED) -> None:
        """Do not let it be: `text` is printed before the error's own (`code`, Slurm's number).

        Raises:
            SlurmError: always.
        """
        own = "Unspecified error" if code == UNSPECIFIED else SlurmError(code).text
        raise SlurmError(code, "\n".join([*self.messages, *([text] if text else []), own]))


@dataclass(slots=True)
class Submission(_Request):
    """A new job. Its specification has the fields of understudy.protocol.messages.JobSpec."""

    spec: JobSpec
    script: str = ""  # of a batch job

    def change(self, **fields: Any) -> None:
        """Have other values in the specification: `change(partition="long", time_limit_s=3600)`."""
        self.spec = msgspec.structs.replace(self.spec, **fields)


@dataclass(slots=True)
class Modification(_Request):
    """A change of jobs (`scontrol update`): keys as the user wrote them, in lower case."""

    job_ids: list[str]
    changes: dict[str, str]


def missing(names: Sequence[str]) -> list[str]:
    """Those of JobSubmitPlugins that nobody offers."""
    known = offered(GROUP)
    return [name for name in names if name.removeprefix("job_submit/") not in known]


def load_plugins(names: Sequence[str]) -> list[Any]:
    """The plug-ins that JobSubmitPlugins names. Those that are not there, or do not work, are
    logged and left out.
    """
    known = offered(GROUP)
    found = []
    for name in names:
        point = known.get(name.removeprefix("job_submit/"))
        if point is None:
            log.error(
                "JobSubmitPlugins=%s: nobody offers it; there are: %s",
                name,
                ", ".join(sorted(known)) or "none",
            )
            continue
        try:
            plugin = point.load()
            found.append(plugin() if isinstance(plugin, type) else plugin)
        except Exception:  # noqa: BLE001 - whatever a site's code does
            log.exception("JobSubmitPlugins=%s cannot be loaded from %s", name, point.value)
    return found


def review_submission(
    core: Core, message: SubmitJob, sender: Sender
) -> tuple[SubmitJob, list[str]]:
    """The request as the plug-ins leave it, and what they say to the user. They see each component
    of a heterogeneous job.

    Raises:
        SlurmError: one refuses it, or fails.
    """
    user_id = message.user_id if message.user_id >= 0 else sender.user_id
    messages: list[str] = []
    seen = [
        _review(core, spec, message.script, user_id, messages)
        for spec in (message.spec, *message.components)
    ]
    return msgspec.structs.replace(
        message,
        spec=seen[0].spec,
        script=seen[0].script,
        components=[each.spec for each in seen[1:]],
    ), messages


def review_allocation(core: Core, message: AllocateJob, sender: Sender) -> AllocateJob:
    """The same for salloc and srun, to which nothing is said unless the request is refused."""
    user_id = message.user_id if message.user_id >= 0 else sender.user_id
    return msgspec.structs.replace(message, spec=_review(core, message.spec, "", user_id, []).spec)


def _review(
    core: Core, spec: JobSpec, script: str, user_id: int, messages: list[str]
) -> Submission:
    submission = Submission(user_id, core.users.user_name(user_id), spec, script, messages=messages)
    for plugin in core.job_submit:
        _ask(plugin, "submit", submission)
    return submission


def review_modification(
    core: Core, job_ids: list[str], changes: dict[str, str], sender: Sender
) -> dict[str, str]:
    """The changes as the plug-ins leave them.

    Raises:
        SlurmError: one refuses them, or fails.
    """
    modification = Modification(
        sender.user_id, core.users.user_name(sender.user_id), list(job_ids), dict(changes)
    )
    for plugin in core.job_submit:
        _ask(plugin, "modify", modification)
    return modification.changes


def _ask(plugin: Any, what: str, request: _Request) -> None:
    function = getattr(plugin, what, None)
    if function is None:
        return
    try:
        function(request)
    except SlurmError:
        raise
    except Exception:  # noqa: BLE001 - whatever a site's code does
        log.exception(
            "job submit plug-in %s fails", getattr(plugin, "__name__", type(plugin).__name__)
        )
        request.refuse()
