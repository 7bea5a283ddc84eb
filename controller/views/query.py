"""Queries: rows of the controller's tables, only the columns that were asked for.

Place: views. A query is a generator that yields between slices, so that the edge
can let others in during a long listing (it holds the locks for reading meanwhile, so the listing is
of one instant). Its result are the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from understudy.controller.reservations.over_time import catch_up
from understudy.controller.views.associations import association_rows, qos_rows, user_rows
from understudy.controller.views.burst_buffers import burst_buffer_rows
from understudy.controller.views.columns import rows_of
from understudy.controller.views.job_columns import JOB_COLUMNS
from understudy.controller.views.node_columns import NODE_COLUMNS, NodeView
from understudy.controller.views.partition_columns import PARTITION_COLUMNS
from understudy.controller.views.priorities import priority_rows, share_rows
from understudy.controller.views.reservation_columns import RESERVATION_COLUMNS
from understudy.controller.views.step_columns import step_rows
from understudy.controller.views.triggers import trigger_rows
from understudy.controller.views.visibility import Viewer
from understudy.model import hostlist
from understudy.model.errors import SlurmError
from understudy.model.records import TABLES
from understudy.model.states import NodeFlag
from understudy.protocol.messages import Query, Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Sequence

    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.controller.tables.job import Job

_NONE: Final[frozenset[str]] = frozenset()
_SHOW_PLANS: Final = {
    "jobs": frozenset(("start_time", "end_time", "expected_start", "expected_nodes")),
    "nodes": frozenset(("flags",)),
}
PART: Final = 4096  # rows in a message, where the answer may come in parts
SLICE: Final = 1000  # values computed between two yields: less than a millisecond
LEAST: Final = 64  # rows, as a slice costs by itself what some rows do
INVALID_QUERY: Final = -1
_SHARED: Final = frozenset(("jobs", "nodes"))
_BY_NAME: Final = frozenset(("job_id", "name"))  # few rows, quickly found

_pack = msgspec.msgpack.Encoder().encode


def run_query(
    core: Core, query: Query, sender: Sender | None = None
) -> Generator[Rows | None, None, Rows]:
    """The rows of a table, as far as the sender may see them. Where parts were asked for, a part is
    yielded when there are many rows.

    Raises:
        SlurmError: unknown table or column, or one that the sender may not see.
    """
    known = TABLES.get(query.table)
    if known is None:
        raise SlurmError(INVALID_QUERY, f"no such table: {query.table}")
    for column in (*query.columns, *query.where):
        if column not in known:
            raise SlurmError(INVALID_QUERY, f"no such column of {query.table}: {column}")
    if not _SHOW_PLANS.get(query.table, _NONE).isdisjoint((*query.columns, *query.where)):
        core.policy.complete_plan(core.time.now())
    viewer = Viewer(core, sender)
    viewer.require(query.table)
    return _QUERIES[query.table](core, query, viewer)


def audience(
    core: Core, query: Query, sender: Sender | None = None
) -> tuple[Hashable, int | None] | None:
    """What a listing's rows depend on beside the tables: the query with whatever of its sender
    decides what they see, and the second of the cluster's clock, None where no time is shown. Who
    has the same is shown the same. None for what is not worth sharing.
    """
    if query.table not in _SHARED or not _BY_NAME.isdisjoint(query.where):
        return None
    second = int(core.time.now())
    if query.table == "nodes":  # their flags tell of reservations
        return _pack(query), second if core.tables.reservations else None
    viewer = Viewer(core, sender)
    hidden = None if query.all_partitions else frozenset(viewer.hidden_partitions())
    return (_pack(query), hidden, viewer.of_jobs), second


def select_jobs(core: Core, where: dict[str, list[Any]]) -> list[Job]:
    """The jobs of whose columns each has one of the values given, by job id."""
    for column in where:
        if column not in JOB_COLUMNS:
            raise SlurmError(INVALID_QUERY, f"no such column of jobs: {column}")
    table = core.tables.jobs
    if "job_id" in where:
        jobs = [table[job_id] for job_id in sorted(set(where["job_id"])) if job_id in table]
        where = {column: values for column, values in where.items() if column != "job_id"}
    else:
        jobs = list(table.values())
    now = core.time.now()
    for column, values in where.items():
        getter, wanted = JOB_COLUMNS[column], set(values)
        jobs = [job for job in jobs if getter(core, job, now) in wanted]
    return jobs


def _jobs(core: Core, query: Query, viewer: Viewer) -> Generator[Rows | None, None, Rows]:
    now = core.time.now()
    jobs = viewer.jobs(select_jobs(core, query.where))
    if not query.all_partitions:
        hidden = viewer.hidden_partitions()
        if hidden:
            jobs = [job for job in jobs if not hidden.issuperset(job.partitions)]
    getters = [JOB_COLUMNS[column] for column in query.columns]
    rows: list[list[Any]] = []
    step = max(LEAST, SLICE // max(1, len(getters)))
    for at in range(0, len(jobs), step):
        rows += rows_of(getters, jobs[at : at + step], core, now)
        if query.in_parts and len(rows) >= PART:
            yield Rows(rows, now, core.last_job_update, more=True)
            rows = []
        else:
            yield None
    return Rows(rows, now, core.last_job_update)


def _nodes(core: Core, query: Query, _viewer: Viewer) -> Generator[Rows | None, None, Rows]:
    view = NodeView(core)
    nodes = core.tables.nodes.nodes
    where = dict(query.where)
    if "name" in where:
        index_of = core.tables.nodes.index_of
        nodes = [
            nodes[at]
            for at in sorted({index_of[name] for name in where.pop("name") if name in index_of})
        ]
    if not core.settings.shows_cloud:
        hidden = int(NodeFlag.CLOUD | NodeFlag.POWERED_DOWN)
        nodes = [node for node in nodes if int(node.flags) & hidden != hidden]
    for column, values in where.items():
        getter = NODE_COLUMNS[column]
        nodes = [node for node in nodes if getter(view, node) in values]
    getters = [NODE_COLUMNS[column] for column in query.columns]
    rows: list[list[Any]] = []
    step = max(LEAST, SLICE // max(1, len(getters)))
    for at in range(0, len(nodes), step):
        rows += rows_of(getters, nodes[at : at + step], view)
        if query.in_parts and len(rows) >= PART:
            yield Rows(rows, core.time.now(), core.last_node_update, more=True)
            rows = []
        else:
            yield None
    return Rows(rows, core.time.now(), core.last_node_update)


def _partitions(core: Core, query: Query, viewer: Viewer) -> Generator[Rows | None, None, Rows]:
    hidden = set() if query.all_partitions else viewer.hidden_partitions()
    partitions = [
        partition for partition in core.tables.partitions.values() if partition.name not in hidden
    ]
    rows = _filtered(
        partitions,
        query,
        lambda column: lambda partition: PARTITION_COLUMNS[column](core, partition),
    )
    yield None
    return Rows(rows, core.time.now(), core.last_partition_update)


def _licenses(core: Core, query: Query, _viewer: Viewer) -> Generator[Rows | None, None, Rows]:
    pool = core.tables.licenses
    reserved = core.tables.reservations.reserved_licenses(core.time.now())
    shown = [
        {
            "name": name,
            "total": total,
            "used": pool.used.get(name, 0),
            "reserved": reserved.get(name, 0),
            "is_remote": name in core.remote_licenses,
        }
        for name, total in pool.totals.items()
    ]
    yield None
    return Rows(
        _filtered(shown, query, lambda column: lambda row: row[column]),
        core.time.now(),
        core.last_job_update,
    )


def _federation(core: Core, query: Query, _viewer: Viewer) -> Generator[Rows | None, None, Rows]:
    place = core.federation
    shown = (
        []
        if place is None
        else [{**msgspec.structs.asdict(place), "features": list(place.features)}]
    )
    yield None
    return Rows(_filtered(shown, query, lambda column: lambda row: row[column]), core.time.now())


def _reservations(core: Core, query: Query, viewer: Viewer) -> Generator[Rows | None, None, Rows]:
    now = core.time.now()
    catch_up(core, now)
    rows = _filtered(
        viewer.reservations(list(core.tables.reservations)),
        query,
        lambda column: lambda each: RESERVATION_COLUMNS[column](core, each, now),
    )
    yield None
    return Rows(rows, now, core.last_reservation_update)


def _topology(core: Core, query: Query, _viewer: Viewer) -> Generator[Rows | None, None, Rows]:
    tree = core.tables.nodes.tree
    shown = [
        {
            "name": switch.name,
            "level": switch.level,
            "link_speed": switch.link_speed,
            "nodes": core.names.to_expression(switch.nodes),
            "switches": hostlist.compress(switch.below),
        }
        for switch in (() if tree is None else tree.switches)
    ]
    yield None
    return Rows(
        _filtered(shown, query, lambda column: lambda row: row[column]),
        core.time.now(),
        core.start_time,
    )


def _burst_buffer(core: Core, query: Query, viewer: Viewer) -> Generator[Rows | None, None, Rows]:
    shown = burst_buffer_rows(core, viewer.sees_buffers_of)
    yield None
    return Rows(
        _filtered(shown, query, lambda column: lambda row: row[column]),
        core.time.now(),
        core.last_job_update,
    )


def _config(core: Core, query: Query, _viewer: Viewer) -> Generator[Rows | None, None, Rows]:
    shown = [{"name": name, "value": value} for name, value in core.show_configuration()]
    yield None
    return Rows(
        _filtered(shown, query, lambda column: lambda row: row[column]),
        core.time.now(),
        core.start_time,
    )


def _ping(core: Core, query: Query, _viewer: Viewer) -> Generator[Rows | None, None, Rows]:
    shown = [{"host": core.settings.controller_host, "role": "primary", "responding": True}]
    yield None
    return Rows(
        _filtered(shown, query, lambda column: lambda row: row[column]),
        core.time.now(),
        core.start_time,
    )


def _priorities(core: Core, query: Query, _viewer: Viewer) -> Generator[Rows | None, None, Rows]:
    now = core.time.now()
    yield None
    return Rows(
        _filtered(priority_rows(core, now), query, lambda column: lambda row: row[column]),
        now,
        core.last_job_update,
    )


def _priority_weights(
    core: Core, query: Query, _viewer: Viewer
) -> Generator[Rows | None, None, Rows]:
    shown = [
        {"name": name, "weight": float(weight)}
        for name, weight in core.priorities.weights().items()
    ]
    yield None
    return Rows(
        _filtered(shown, query, lambda column: lambda row: row[column]),
        core.time.now(),
        core.start_time,
    )


def _shares(core: Core, query: Query, viewer: Viewer) -> Generator[Rows | None, None, Rows]:
    now = core.time.now()
    yield None
    return Rows(
        _filtered(
            viewer.shares(share_rows(core, now)), query, lambda column: lambda row: row[column]
        ),
        now,
        core.last_job_update,
    )


def _triggers(core: Core, query: Query, _viewer: Viewer) -> Generator[Rows | None, None, Rows]:
    yield None
    return Rows(
        _filtered(trigger_rows(core), query, lambda column: lambda row: row[column]),
        core.time.now(),
    )


def _cached(
    rows_of: Callable[[Core, float], list[dict[str, Any]]],
    seen_by: Callable[[Viewer, list[dict[str, Any]]], list[dict[str, Any]]] | None = None,
) -> Callable[[Core, Query, Viewer], Generator[Rows | None, None, Rows]]:
    """What the controller keeps of accounting."""

    def rows(core: Core, query: Query, viewer: Viewer) -> Generator[Rows | None, None, Rows]:
        now = core.time.now()
        yield None
        found = rows_of(core, now)
        return Rows(
            _filtered(
                found if seen_by is None else seen_by(viewer, found),
                query,
                lambda column: lambda row: row[column],
            ),
            now,
        )

    return rows


def _filtered(
    records: Sequence[Any], query: Query, getter_of: Callable[[str], Callable[[Any], Any]]
) -> list[list[Any]]:
    for column, values in query.where.items():
        getter = getter_of(column)
        records = [record for record in records if getter(record) in values]
    getters = [getter_of(column) for column in query.columns]
    return [[getter(record) for getter in getters] for record in records]


def _steps(core: Core, query: Query, viewer: Viewer) -> Generator[Rows | None, None, Rows]:
    now = core.time.now()
    where = dict(query.where)
    if "job_id" in where:
        jobs = [
            core.tables.jobs[job_id]
            for job_id in sorted(set(where.pop("job_id")))
            if job_id in core.tables.jobs
        ]
    else:
        jobs = [*core.tables.running.values(), *core.completing.values()]
        jobs.sort(key=lambda job: job.job_id)
    shown = [row for job in viewer.jobs(jobs) for row in step_rows(core, job, now)]
    yield None
    inner = Query(query.table, query.columns, where)
    return Rows(
        _filtered(shown, inner, lambda column: lambda row: row[column]), now, core.last_job_update
    )


_QUERIES: Final[dict[str, Callable[[Core, Query, Viewer], Generator[Rows | None, None, Rows]]]] = {
    "jobs": _jobs,
    "nodes": _nodes,
    "steps": _steps,
    "partitions": _partitions,
    "licenses": _licenses,
    "federation": _federation,
    "reservations": _reservations,
    "topology": _topology,
    "burst_buffer": _burst_buffer,
    "config": _config,
    "ping": _ping,
    "priorities": _priorities,
    "priority_weights": _priority_weights,
    "shares": _shares,
    "triggers": _triggers,
    "cached_users": _cached(user_rows, Viewer.users),
    "cached_associations": _cached(association_rows, Viewer.associations),
    "cached_qos": _cached(qos_rows),
}
