"""What a submission asks of burst buffers, read and checked, or refused as Slurm refuses it.

Place: jobs; `take_in.py` asks. Follows Slurm's guide to burst buffers, burst_buffer.conf(5)
AllowUsers and DenyUsers, and what 22.05.8 with burst_buffer/lua was seen to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from understudy.controller.core.core import log
from understudy.model.burst_buffers import (
    LUA,
    InvalidRequestError,
    Request,
    datawarp_line,
    directives,
    read_datawarp,
    read_lua,
)
from understudy.model.errors import ErrorCode, SlurmError
from understudy.protocol.messages import AllocateJob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job
    from understudy.protocol.messages import JobSpec, SubmitJob

ROOT_REFUSED = "User root can not allocate burst buffers"


def check_nodes(core: Core, message: SubmitJob | AllocateJob) -> None:
    """Refuse a burst buffer to a job of no nodes, before it is refused for that.

    Raises:
        SlurmError: lua has none for it.
    """
    table, spec = core.tables.burst_buffers, message.spec
    if spec.min_nodes == 0 and table and table.kind == LUA:
        script = None if isinstance(message, AllocateJob) else message.script
        if _lines(core, spec.extra.get("bb", ""), script):
            raise SlurmError(ErrorCode.BURST_BUFFER_INVALID)


def take_request(core: Core, message: SubmitJob | AllocateJob, job: Job) -> None:
    """Read what a new job asks for; the `bb` of its specification are the lines of that from now
    on.

    Raises:
        SlurmError: the user may have no burst buffer, or not this one.
    """
    if core.tables.burst_buffers:
        script = None if isinstance(message, AllocateJob) else message.script
        job.spec, job.burst_buffer = _with_request(core, job.spec, script, job.user_id)


def ask_site(core: Core, message: SubmitJob | AllocateJob, job: Job) -> None:
    """Have the site's script look at a new job, which has its number by now.

    Raises:
        SlurmError: the script wants it not.
    """
    if core.buffer_script is None or job.burst_buffer is None:
        return
    script = "" if isinstance(message, AllocateJob) else message.script
    said = core.buffer_script.process(job, script)
    if said is None:
        return
    refused = SlurmError(ErrorCode.BURST_BUFFER_INVALID)
    if said:
        refused = SlurmError(refused.code, f"burst_buffer/{LUA}: {said}\n{refused.text}")
    raise refused


def without_script(message: SubmitJob | AllocateJob) -> SubmitJob | AllocateJob:
    """As it is for all components of a heterogeneous job but the leader, whose the script is."""
    if isinstance(message, AllocateJob):
        return message
    return msgspec.structs.replace(message, script="")


def _with_request(
    core: Core, spec: JobSpec, script: str | None, user_id: int
) -> tuple[JobSpec, Request | None]:
    given = spec.extra.get("bb", "")
    lines = _lines(core, given, script)
    if given and not lines and script is None:
        raise SlurmError(ErrorCode.BURST_BUFFER_INVALID)
    if not lines:
        if given:
            extra = {name: text for name, text in spec.extra.items() if name != "bb"}
            spec = msgspec.structs.replace(spec, extra=extra)
        return spec, None
    _check_user(core, user_id)
    request = read_again(core, "\n".join(lines))
    _check_persistent(core, spec, request, user_id)
    if given != request.text:
        spec = msgspec.structs.replace(spec, extra=spec.extra | {"bb": request.text})
    return spec, request


def read_again(core: Core, text: str) -> Request:
    """The request of directive lines.

    Raises:
        SlurmError: they ask for what cannot be.
    """
    table = core.tables.burst_buffers
    try:
        if table.kind == LUA:
            is_emulated = core.buffer_script is None
            return read_lua(text.split("\n"), table.pools, emulated=is_emulated)
        default = core.settings.burst_buffer.default_pool or next(iter(table.pools), "")
        return read_datawarp(text.split("\n"), table.pools, default)
    except InvalidRequestError as error:
        log.info("burst buffer request: %s", error)
        raise SlurmError(ErrorCode.BURST_BUFFER_INVALID) from None


def request_again(core: Core, text: str) -> Request | None:
    """Of a job that was saved; None where the pools that it asks for are gone."""
    try:
        return read_again(core, text)
    except SlurmError:
        return None


def _lines(core: Core, given: str, script: str | None) -> Sequence[str]:
    if core.tables.burst_buffers.kind == LUA:
        starts: tuple[str, ...] = (core.settings.burst_buffer.directive,)
    else:
        starts, given = ("DW", "BB"), datawarp_line(given)
    return [*directives(given, starts), *directives(script or "", starts)]


def _check_user(core: Core, user_id: int) -> None:
    """Root may have none, as in Slurm; under virtual time whoever runs a replay may."""
    if user_id == 0 and not core.time.is_virtual:
        code = ErrorCode.BURST_BUFFER_DENIED
        raise SlurmError(code, f"{ROOT_REFUSED}\n{SlurmError(code).text}")
    conf = core.settings.burst_buffer
    names = {str(user_id), core.users.user_name(user_id)}
    if (conf.allow and names.isdisjoint(conf.allow)) or not names.isdisjoint(conf.deny):
        raise SlurmError(ErrorCode.BURST_BUFFER_DENIED)


def _check_persistent(core: Core, spec: JobSpec, request: Request, user_id: int) -> None:
    """Who may make and destroy buffers that stay: operators, or anybody with EnablePersistent; not
    a job array.
    """
    if not request.creates and not request.destroys:
        return
    if spec.array:
        raise SlurmError(ErrorCode.BURST_BUFFER_INVALID)
    if "EnablePersistent" not in core.settings.burst_buffer.flags and not core.is_operator(user_id):
        raise SlurmError(ErrorCode.BURST_BUFFER_DENIED)
    table = core.tables.burst_buffers
    for name, _ in request.destroys:
        buffer = table.persistent.get(name)
        if buffer is not None and buffer.user_id != user_id and not core.is_operator(user_id):
            raise SlurmError(ErrorCode.BURST_BUFFER_DENIED)
